"""Problems of smooth constraints and corners: how many are certified, how long that takes, and another solver's value.

    python experiments/trust/smooth.py [--problems N] [--limit SECONDS] [--only KIND] [--csv FILE] [--quick]

Each kind of problem is drawn at random N times, with 2 to 12 inputs. A design is counted as certified if it says so and
verifies. Limits are processor seconds. `program` is the value of the plain convex program (`ConvexProgram`, cvxpy)
where that applies; a design below it by more than 1e-4, or a bound below it, is counted as wrong. Problem number N
depends on kind and N alone. The file is written after each kind, and keeps its rows of other kinds. Exit code 1 if
something is wrong.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from ldpopt.design import (
    ApproximateLDP,
    ConcentratedLDP,
    ConvexProgram,
    Divergence,
    ExpectedLoss,
    Invariant,
    LocalDP,
    MutualInformation,
    RenyiLDP,
    Support,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import NAMED
from ldpopt.errors import LdpoptError
from ldpopt.values import deadline

KINDS = (
    "renyi", "zcdp", "renyi and ldp", "zcdp and tv", "support", "invariant", "information along a graph",
    "information within a support", "tv alone", "tiny eta", "parallel edges", "epsilon, delta and ldp",
)  # fmt: skip
DIVERGENCES = ("kl", "chi-squared", "squared-hellinger", "total-variation", "jensen-shannon", "le-cam")


def posed(kind: str, rng: np.random.Generator) -> tuple[Any, list[Any]]:
    """A random problem of a kind."""
    k = int(rng.integers(2, 13))
    p, q = rng.dirichlet(np.ones(k), 2)
    pair = Divergence(NAMED[str(rng.choice(DIVERGENCES))], p, q)
    epsilon, eta = float(rng.uniform(0.2, 3)), float(rng.uniform(0.05, 0.6))
    renyi = RenyiLDP(float(rng.choice([1.5, 2, 4, 10])), float(rng.uniform(0.05, 1.5)))
    zcdp = ConcentratedLDP(float(rng.uniform(0.02, 1)))
    if kind in ("support", "invariant", "information within a support"):
        k = min(k, 6) if kind != "information within a support" else min(max(k, 3), 6)
        p = rng.dirichlet(np.ones(k))
        mask = rng.random((k, k)) < 0.7
        mask[np.arange(k), np.arange(k)] = mask[:, 0] = True
        if kind == "information within a support":
            p[-1] = 0.0
            return MutualInformation(p / p.sum()), [Support(mask), TotalVariation(eta)]
        linear = rng.random() < 0.5
        kept = ExpectedLoss(p, 1 - np.eye(k)) if linear else Divergence(pair.f, p, rng.dirichlet(np.ones(k)))
        return kept, [Support(mask), TotalVariation(eta)] if kind == "support" else [Invariant(p), LocalDP(epsilon)]
    if kind == "information along a graph":
        k = min(k, 6)
        return MutualInformation(rng.dirichlet(np.ones(k))), [LocalDP(epsilon, nx.path_graph(k))]
    if kind == "parallel edges":
        k = min(k, 7)
        graph = nx.MultiGraph(nx.path_graph(k))
        graph.add_edge(0, 1, weight=0.5)
        return Divergence(pair.f, *rng.dirichlet(np.ones(k), 2)), [LocalDP(epsilon, graph)]
    every = {
        "renyi": [renyi],
        "zcdp": [zcdp],
        "renyi and ldp": [renyi, LocalDP(epsilon)],
        "zcdp and tv": [zcdp, TotalVariation(eta)],
        "tv alone": [TotalVariation(eta)],
        "tiny eta": [LocalDP(epsilon), TotalVariation(10.0 ** -rng.uniform(1, 300))],
        "epsilon, delta and ldp": [ApproximateLDP(epsilon, eta / 20), LocalDP(epsilon + 1)],
    }
    return pair, every[kind]


def judged(kind: str, number: int, limit: float) -> dict[str, Any]:
    """What became of one problem."""
    utility, constraints = posed(kind, np.random.default_rng([zlib.crc32(kind.encode()), number]))
    row = {"kind": kind, "number": number, "k": len(utility.labels), "utility": utility.name, "wrong": ""}
    start = time.process_time()
    try:
        design = optimal_channel(utility, constraints, time_limit=limit)
    except LdpoptError as error:
        return row | {"certified": False, "seconds": time.process_time() - start, "wrong": "", "note": str(error)}
    searched = time.process_time() - start
    verified = design.verify().proved
    row |= {"certified": design.certified and verified, "gap": design.relative_gap, "seconds": searched}
    row |= {"proof": time.process_time() - start - searched, "value": design.value, "note": design.note}
    try:
        row["program"] = optimal_channel(utility, constraints, method=ConvexProgram(), certify=False).value
    except LdpoptError:
        return row
    if design.bound < row["program"] - 1e-6 * abs(row["program"]):
        row["wrong"] = "the bound is below another channel"
    elif design.certified and design.value < row["program"] - 1e-4 * abs(row["program"]):
        row["wrong"] = "the value is below another channel's"
    return row if verified or not design.certified else row | {"wrong": "it does not verify"}


COLUMNS = (
    "kind", "number", "k", "utility", "certified", "gap", "seconds", "proof", "value", "program", "wrong", "note",
)  # fmt: skip


def main() -> int:
    """Design, judge, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=20, help="of each kind")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each")
    parser.add_argument("--only", choices=KINDS, action="append")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--quick", action="store_true", help="one problem of some kinds")
    given = parser.parse_args()
    vars(deadline)["monotonic"] = time.process_time
    kinds = given.only or (("tv alone", "tiny eta", "parallel edges") if given.quick else KINDS)
    rows: list[dict[str, Any]] = []
    if given.csv and given.csv.exists():
        with given.csv.open(newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if row["kind"] not in kinds]
    wrong = False
    for kind in kinds:
        own = [judged(kind, number, given.limit) for number in range(1 if given.quick else given.problems)]
        rows += own
        wrong |= any(row["wrong"] for row in own)
        share = f"{sum(row['certified'] for row in own)} of {len(own)} certified"
        print(f"{kind}: {share}, at most {max(row['seconds'] for row in own):.1f} s", flush=True)
        for row in own:
            if not row["certified"] or row["wrong"]:
                print(
                    f"   {row['number']}: {row['utility']}, k={row['k']}: {row.get('gap', np.nan):.2g}, {row['note']}"
                )
            if row["wrong"]:
                print(f"   WRONG: {row['wrong']}", flush=True)
        if given.csv:
            with given.csv.open("w", newline="") as lines:
                writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(sorted(rows, key=lambda row: KINDS.index(row["kind"])))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
