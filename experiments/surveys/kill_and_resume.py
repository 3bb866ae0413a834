"""Kill a run with signal 9 at random moments, resume it, and compare with an uninterrupted run byte for byte.

python experiments/surveys/kill_and_resume.py [MOMENTS [FORM ...]]

By default 20 of each form; about a quarter of an hour.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from ldpopt.errors import InvalidInput
from ldpopt_survey import Memoized, Plan, QuestionSpec, SurveySpec, make_plan, privatize
from ldpopt_survey.collect.words import create_key

FILES, ROWS = 25, 200_000
FORMS = ("reports.csv", "reports.parquet", "csv-reports", "parquet-reports")
"""Single files and folders; the answers are of the same kind."""


def run(folder: Path, output: Path) -> None:
    plan = Plan.from_json((folder / "plan.json").read_bytes())
    kind = "parquet" if "parquet" in output.name else "csv"
    try:
        privatize(plan, folder / f"answers-{kind}", output, Memoized(folder / "key"))
    except InvalidInput:
        if not output.exists():
            raise  # else the last run was killed after its end


def contents(output: Path) -> dict[str, str]:
    """The checksums of a file, or of the files in a folder."""
    files = sorted(output.iterdir()) if output.is_dir() else [output]
    return {path.name if output.is_dir() else "": sha256(path.read_bytes()).hexdigest() for path in files}


def killed(command: list[str], seconds: float) -> bool:
    """Start a run and kill it after `seconds`; False if it ended before."""
    child = subprocess.Popen(command)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return True
    return False


def main() -> None:
    moments = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = SurveySpec("kill", (QuestionSpec("q", tuple(range(8))),), respondent="id")
        (folder / "plan.json").write_text(make_plan(spec, {"q": (np.ones((8, 8)) + 2 * np.eye(8)) / 10}).to_json())
        create_key(folder / "key")
        rng = np.random.default_rng(0)
        for kind, write in (("parquet", pq.write_table), ("csv", csv.write_csv)):
            (folder / f"answers-{kind}").mkdir()
            for file in range(FILES):
                ids = np.arange(file * ROWS, (file + 1) * ROWS)
                table = pa.table({"id": ids, "q": rng.integers(0, 8, ROWS)})
                write(table, folder / f"answers-{kind}" / f"{file:02d}.{kind}")
        wrong = 0
        for form in sys.argv[2:] or FORMS:
            begin = time.perf_counter()
            subprocess.run([sys.executable, __file__, "--run", name, f"whole-{form}"], check=True)
            whole, seconds = contents(folder / f"whole-{form}"), time.perf_counter() - begin
            same = resumed = 0
            for moment in range(moments):
                output = folder / f"{moment}-{form}"
                command = [sys.executable, __file__, "--run", name, output.name]
                while not killed(command, random.SystemRandom().uniform(0.1, 1.0) * seconds):
                    shutil.rmtree(output) if output.is_dir() else output.unlink()  # it ended first: once more
                resumed += output.with_name(f".{output.name}.partial").exists()
                subprocess.run(command, check=True)
                same += contents(output) == whole
                shutil.rmtree(output) if output.is_dir() else output.unlink()
            left = sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
            print(
                f"{form}, {FILES * ROWS:,} rows: {moments} runs of {seconds:.1f} s killed, {resumed} with work begun: "
                f"{same} byte-identical when resumed; left: {left}",
                flush=True,
            )
            wrong += same != moments or bool(left)
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]), Path(sys.argv[2]) / sys.argv[3])
    else:
        main()
