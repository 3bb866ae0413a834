"""End to end at scale: Parquet answers in, memoised reports out, counted; time and peak memory.

    python experiments/surveys/privatize_scale.py [ROWS] [FOLDER]

ROWS is 100,000,000 by default (about 1 GB of answers, 3 GB of pseudonyms while duplicates are sought, 0.3 GB of
reports). FOLDER is a temporary folder by default; whatever it writes there is deleted at the end.
"""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ldpopt_survey import Memoized, Plan, QuestionSpec, SurveySpec, aggregate, make_plan, privatize
from ldpopt_survey.collect.runner import Threads
from ldpopt_survey.collect.words import create_key

QUESTIONS = {"income": 24, "party": 7, "education": 7, "vote": 2}
GROUP = 1 << 20


def randomized_response(k: int, epsilon: float) -> np.ndarray:
    e = math.exp(epsilon)
    return (np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1)


def write_answers(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    labels = {name: pa.array([f"{name} {i}" for i in range(k)]) for name, k in QUESTIONS.items()}
    writer = None
    for start in range(0, rows, GROUP):
        n = min(GROUP, rows - start)
        columns = {"id": pa.array(np.arange(start, start + n))}
        for name, k in QUESTIONS.items():
            codes = np.minimum(rng.geometric(1.5 / k, n) - 1, k - 1).astype(np.int8)
            columns[name] = pa.DictionaryArray.from_arrays(pa.array(codes), labels[name])
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def run(folder: Path) -> None:
    plan = Plan.from_json((folder / "plan.json").read_bytes())
    begin = time.perf_counter()
    tally = privatize(plan, folder / "answers.parquet", folder / "reports", Memoized(folder / "key"), Threads(2))
    middle = time.perf_counter()
    counts = aggregate(plan, folder / "reports", runner=Threads(2))
    end = time.perf_counter()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    peak = usage.ru_maxrss / 2**20
    print(f"{tally.rows:,} rows: privatized in {middle - begin:.1f} s, counted in {end - middle:.1f} s, {counts}")
    print(f"processor time {usage.ru_utime:.1f} s user, {usage.ru_stime:.1f} s system; peak memory {peak:.2f} GiB")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        folder = Path(name)
        questions = tuple(QuestionSpec(q, tuple(f"{q} {i}" for i in range(k))) for q, k in QUESTIONS.items())
        spec = SurveySpec("scale", questions, respondent="id")
        plan = make_plan(spec, lambda q: randomized_response(len(q.categories), 1.0))
        (folder / "plan.json").write_text(plan.to_json())
        create_key(folder / "key")
        write_answers(folder / "answers.parquet", rows)
        # In a process of its own, so that its peak memory is that of privatizing alone.
        subprocess.run([sys.executable, __file__, "--run", name], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]))
    else:
        main()
