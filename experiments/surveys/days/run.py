"""A day on four real data sets by commands alone: prints and writes the seconds of each command.

    python experiments/surveys/days/run.py [--brief]

Each data set is one that a package ships: the election study of 1996 and the affairs of `fair` from statsmodels, and
the breast tumours and the wines of scikit-learn, whose numbers are cut into a few answers. Every command is a process
of its own, so that its seconds include the start of Python. times.csv has a row a command, with seconds of the clock
and of the processor; --brief takes one data set and writes nothing. The tests of `tests/cli/test_real_days.py` run the
same commands, and hold the estimates against the files.
"""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
ROWS = 20_000


def from_statsmodels(name: str) -> pd.DataFrame:
    """A data set of statsmodels as its file is, names in quotes included."""
    import statsmodels

    path = Path(statsmodels.__file__).parent / "datasets" / name / f"{name}.csv"
    return pd.read_csv(path, sep=None, engine="python")


def from_sklearn(load, names: tuple[str, ...]) -> pd.DataFrame:
    """Columns of a data set of scikit-learn in words: numbers cut into three answers of about as many rows each."""
    made = load(as_frame=True).frame
    kind = made.pop("target").astype(str)
    columns = {name: pd.qcut(made[name], 3, labels=["low", "middle", "high"]).astype(str) for name in names}
    return pd.DataFrame({"kind": kind, **columns})


def days() -> dict[str, tuple[pd.DataFrame, list[str]]]:
    """The rows of each data set, and the questions that are asked."""
    from sklearn.datasets import load_breast_cancer, load_wine

    return {
        "anes96": (from_statsmodels("anes96"), ["vote", "PID"]),
        "fair": (from_statsmodels("fair"), ["rate_marriage", "religious"]),
        "breast_cancer": (from_sklearn(load_breast_cancer, ("mean radius", "mean texture")), ["kind", "mean radius"]),
        "wine": (from_sklearn(load_wine, ("alcohol", "hue")), ["kind", "alcohol", "hue"]),
    }


def commands(path: Path, questions: list[str]) -> dict[str, list[object]]:
    """The commands of a day."""
    asked = [word for name in questions for word in ("--question", name)]
    return {
        "new": ["new", path, *asked, "--epsilon", 3, "--yes"],
        "plan": ["plan", "survey.toml"],
        "consent": ["consent", "plan.json", "--force"],
        "paper": ["paper", "plan.json", "--device", "two-dice"],
        "privatize": ["privatize", "plan.json", path, "-o", "reports.parquet"],
        "estimate": ["estimate", "plan.json", "reports.parquet"],
        "report": ["report", "plan.json", "reports.parquet", "-o", "report.html"],
    }


def timed(words: list[object], folder: Path) -> tuple[float, float]:
    """Run a command, and return its seconds of the clock and of the processor; stop if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    program = [sys.executable, "-m", "ldpopt", "survey", *map(str, words)]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True)
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main(brief: bool = False) -> None:
    """Time every command of every day."""
    lines = []
    for day, (frame, questions) in list(days().items())[: 1 if brief else None]:
        rows = frame.sample(ROWS, replace=True, random_state=np.random.default_rng(1))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rows.to_csv(folder / f"{day}.csv", index=False)
            for command, words in commands(folder / f"{day}.csv", questions).items():
                clock, processor = timed(words, folder)
                lines.append(
                    {"data": day, "command": command, "clock": round(clock, 2), "processor": round(processor, 2)}
                )
                print(f"{day:14s} {command:10s} {clock:6.2f} s, {processor:6.2f} s of the processor", flush=True)
    if not brief:
        with (HERE / "times.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main("--brief" in sys.argv)
