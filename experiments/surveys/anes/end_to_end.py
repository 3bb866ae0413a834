"""The 1996 election study through the whole road: plan from one half, privatize the other, estimate, compare.

    python experiments/surveys/anes/end_to_end.py [ROWS] [FOLDER]

Income (24), party (7), education (7) and vote (2), each at epsilon = 1. The plan comes from 472 of the 944 respondents
and is kept in tests/data/anes_plan.json, where a test uses it; the others' answers are drawn with replacement up to
ROWS rows (100,000,000), written as Parquet, privatized with memoised reports on two threads, counted and estimated.
FOLDER is a temporary folder by default; the files in it are deleted at the end. Writes end_to_end.csv.
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
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

from ldpopt.datasets import load_anes96
from ldpopt_survey import (
    CountTable,
    Memoized,
    Plan,
    QuestionSpec,
    Simultaneous,
    SurveySpec,
    aggregate,
    estimate,
    plan_survey,
    privatize,
)
from ldpopt_survey.collect.runner import Threads
from ldpopt_survey.collect.words import create_key

HERE = Path(__file__).parent
KEPT = HERE.parents[2] / "tests" / "data" / "anes_plan.json"
QUESTIONS = ("income", "party", "education", "vote")
SEED, GROUP = 1996, 1 << 20


def halves() -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(SEED).permutation(944)
    return order[:472], order[472:]


def planned() -> Plan:
    """The plan from the first half; that of an earlier run where there is one."""
    data, (first, _) = load_anes96(), halves()
    if KEPT.exists():
        return Plan.from_json(KEPT.read_bytes())
    questions = []
    for name in QUESTIONS:
        counts = np.bincount(data[name].codes[first], minlength=len(data[name].labels)) + 0.5
        questions.append(QuestionSpec(name, data[name].labels, pilot=counts / counts.sum(), epsilon=1.0))
    begin = time.perf_counter()
    made = plan_survey(SurveySpec("ANES 1996", tuple(questions), respondent="id"))
    print(f"planned in {time.perf_counter() - begin:.0f} s\n{made}")
    KEPT.write_text(made.plan.to_json())
    return made.plan


def write_answers(path: Path, rows: int) -> None:
    """The second half, drawn with replacement: answers of one person stay together."""
    data, rng, (_, second) = load_anes96(), np.random.default_rng(SEED + 1), halves()
    writer = None
    for start in range(0, rows, GROUP):
        drawn = second[rng.integers(0, len(second), min(GROUP, rows - start))]
        columns = {"id": pa.array(np.arange(start, start + len(drawn)))}
        for name in QUESTIONS:
            codes = pa.array(data[name].codes[drawn].astype(np.int8))
            columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array([str(v) for v in data[name].labels]))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def run(folder: Path) -> None:
    plan = planned()
    begin = time.perf_counter()
    tally = privatize(plan, folder / "answers.parquet", folder / "reports", Memoized(folder / "key"), Threads(2))
    middle = time.perf_counter()
    counts = aggregate(plan, folder / "reports", runner=Threads(2))
    end = time.perf_counter()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent = f"privatized in {middle - begin:.1f} s, counted in {end - middle:.1f} s"
    used = f"{usage.ru_utime + usage.ru_stime:.1f} s of processor, peak {usage.ru_maxrss / 2**20:.2f} GiB"
    print(f"{tally.rows:,} rows: {spent}; {used}")
    data, (_, second) = load_anes96(), halves()
    rows = []
    for question in plan.questions:
        name = question.name
        channel = question.report_channel
        found = estimate(CountTable.from_counts(counts[name], channel.outputs), channel)
        truth = np.bincount(data[name].codes[second], minlength=len(question.categories)) / len(second)
        each, together = found.intervals(), found.intervals(Simultaneous())
        missed = (found.values - truth)[:-1]
        distance = missed @ np.linalg.solve(found.covariance[:-1, :-1], missed)
        inside = (each.lower <= truth) & (truth <= each.upper)
        rows.append({
            "question": name, "categories": len(truth), "reports": len(channel.outputs), "n": found.n,
            "largest_error": float(np.abs(found.values - truth).max()),
            "in_standard_errors": float((np.abs(found.values - truth) / found.standard_errors).max()),
            "p_value_of_all": float(stats.chi2.sf(distance, len(missed))),
            "intervals_that_cover": int(inside.sum()),
            "all_at_once": bool(((together.lower <= truth) & (truth <= together.upper)).all()),
            "widest_half_width": float((each.upper - each.lower).max() / 2),
        })  # fmt: skip
        print({k: f"{v:.3g}" if isinstance(v, float) else v for k, v in rows[-1].items()})
    with (HERE / "end_to_end.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    planned()
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        folder = Path(name)
        create_key(folder / "key")
        write_answers(folder / "answers.parquet", rows)
        # In a process of its own, so that its peak memory is that of privatizing and counting alone.
        subprocess.run([sys.executable, __file__, "--run", name], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]))
    else:
        main()
