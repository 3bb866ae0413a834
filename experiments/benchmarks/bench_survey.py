"""Privatizing answers of 24 categories: exact reports with keys, the keystream alone, and the peers, in one run.

    python experiments/benchmarks/bench_survey.py [--environments FOLDER]

Promised: at least 15 million answers a second on one core, and at most four times the keystream alone. The peers
(pure-ldp, multi-freq-ldpy), each in an environment of its own as in run.py, draw from ordinary generators. Times are
processor time of one thread, the least of a few runs. Writes results/survey.csv.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import run

from ldpopt.exact import round_exact
from ldpopt_survey import Plan
from ldpopt_survey.collect.coding import Sampler
from ldpopt_survey.collect.words import CHUNK_WORDS, Keystream, Respondents, SecretKey, tag

N, K, REPEATS = 1 << 23, 24, 7
HERE = Path(__file__).resolve().parent
PLAN = HERE.parents[1] / "tests" / "data" / "anes_plan.json"
PEERS = [
    ("pure-ldp", "pure_ldp_direct_encoding"),
    ("multi-freq-ldpy", "multi_freq_grr"),
    ("multi-freq-ldpy", "multi_freq_grr_numba"),
]


def least(work: Callable[[], object]) -> float:
    """Processor seconds an answer, the least of some runs."""
    work()
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times) / N


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, default=HERE / ".environments")
    environments = parser.parse_args().environments
    key, rng = SecretKey(bytes(32)), np.random.default_rng(0)
    answers = rng.integers(0, K, N).astype(np.uint8)
    ids = Respondents(key, pa.array(np.arange(N)).cast(pa.large_string()))

    def keystream() -> None:
        stream, words = Keystream(key, 0, 0), np.empty(CHUNK_WORDS, np.uint64)
        for _ in range(N // CHUNK_WORDS):
            stream.fill(words)

    samplers = {
        "randomized response": Sampler(round_exact((np.ones((K, K)) + 1.7 * np.eye(K)) / (K + 1.7))),
        "dense random rows": Sampler(round_exact(rng.dirichlet(np.ones(K), K))),
        "optimal channel, 298 reports": Sampler(Plan.from_json(PLAN.read_bytes()).question("income").channel),
    }
    floor = least(keystream)
    rows: list[list[object]] = [["keystream alone", floor]]
    for name, sampler in samplers.items():
        rows.append([name, least(lambda sampler=sampler: sampler.reports(answers, Keystream(key, 0, 0)))])
    response = samplers["randomized response"]
    rows.append(["randomized response, memoised", least(lambda: response.reports(answers, ids.words([tag("q")])))])
    for peer, task in PEERS:
        found, why = run.ask(run.environment(environments, peer), task, K)
        rows.append([f"{peer}: {task}", found if found is not None else why])
    with (HERE / "results" / "survey.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", "seconds an answer", "million answers a second", "times the keystream"])
        for name, each in rows:
            known = isinstance(each, float)
            row = [name, f"{each:.3g}", f"{1e-6 / each:.3g}", f"{each / floor:.3g}"] if known else [name, each, "", ""]
            writer.writerow(row)
            print(*row, sep="  ", flush=True)


if __name__ == "__main__":
    main()
