"""Kill a run with signal 9 at random moments, resume it, and compare with an uninterrupted run byte for byte.

python experiments/kill_and_resume.py [MOMENTS]     (20 by default; about two minutes)
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldpopt.survey.collect.privatize import privatize
from ldpopt.survey.collect.randomness.randomness import Memoised
from ldpopt.survey.collect.randomness.secret import create_key
from ldpopt.survey.plan.plan import Plan, make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

FILES, ROWS = 30, 100_000


def run(folder: Path, output: Path) -> None:
    plan = Plan.from_json((folder / "plan.json").read_bytes())
    if output.exists() and not output.with_name(f".{output.name}.partial").exists():
        return  # the last run was killed after its end
    privatize(plan, folder / "answers", output, Memoised(folder / "key"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


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
        (folder / "answers").mkdir()
        rng = np.random.default_rng(0)
        for file in range(FILES):
            ids = np.arange(file * ROWS, (file + 1) * ROWS)
            pq.write_table(
                pa.table({"id": ids, "q": rng.integers(0, 8, ROWS)}), folder / "answers" / f"{file:02d}.parquet"
            )
        command = [sys.executable, __file__, "--run", name]
        begin = time.perf_counter()
        subprocess.run([*command, "whole"], check=True)
        whole, seconds = contents(folder / "whole"), time.perf_counter() - begin
        same = resumed = 0
        for moment in range(moments):
            output = folder / f"reports{moment}"
            while not killed([*command, output.name], random.SystemRandom().uniform(0.1, 1.0) * seconds):
                shutil.rmtree(output)  # it ended first: once more
            resumed += output.with_name(f".{output.name}.partial").exists()
            subprocess.run([*command, output.name], check=True)
            same += contents(output) == whole
        left = sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
        print(f"{moments} runs killed, {resumed} with work begun: {same} byte-identical when resumed; left: {left}")
        if same != moments or left:
            sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]), Path(sys.argv[2]) / sys.argv[3])
    else:
        main()
