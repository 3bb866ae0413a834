"""Brackets of the best Chernoff exponent of several hypotheses, beside games with fixed orders.

    python experiments/trust/exponents.py [--seed 0] [--quick]

Three hypotheses on three answers at epsilon = 2 and 3, and ten other instances, up to four hypotheses and six answers,
with and without a cap on total variation, symmetric, nearly equal and with ties. exponents.csv has the bracket, its
relative width, the seconds, and the largest value of 200 linear games with random orders, solved here without the
package: a game above the bracket is a fault, and so is a bracket wider than 1e-4. Exit code 1 after a fault.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

from ldpopt.bounds import chernoff_of_several

WIDTH = 1e-4
HEADS = ("hypotheses", "answers", "epsilon", "eta", "kind", "lower", "upper", "width", "seconds", "best game / upper")
INSTANCES = [
    (3, 3, 2.0, None, "written"), (3, 3, 3.0, None, "written"), (3, 3, 1.0, 0.2, "written"),
    (3, 3, 1.0, None, "symmetric"), (4, 4, 2.0, None, "symmetric"), (3, 4, 0.5, None, "random"),
    (3, 6, 2.0, 0.4, "random"), (4, 4, 1.0, None, "random"), (4, 6, 2.0, None, "random"), (4, 6, 3.0, 0.4, "random"),
    (4, 5, 2.7, None, "two nearly equal"), (3, 4, 2.0, None, "ties"),
]  # fmt: skip


def hypotheses(rng: np.random.Generator, count: int, k: int, kind: str) -> np.ndarray:
    """The laws of an instance, (count, k)."""
    if kind == "written":
        return np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3]])
    if kind == "symmetric":
        return np.full((k, k), 0.2 / (k - 1)) + np.eye(k) * (0.8 - 0.2 / (k - 1))
    if kind == "ties":
        return np.array([[0.25, 0.25, 0.25, 0.25], [0.1, 0.4, 0.1, 0.4], [0.4, 0.1, 0.4, 0.1]])
    laws = rng.dirichlet(np.ones(k), count)
    if kind == "two nearly equal":
        laws[1] = laws[0] + (laws[1] - laws[0]) * 1e-3
    return np.asarray(laws)


def game(laws: np.ndarray, epsilon: float, eta: float | None, orders: np.ndarray) -> float:
    """The exponent -log(1 - v) of the linear game at fixed orders over all staircase columns."""
    k, growth = laws.shape[1], math.exp(epsilon)
    columns = 1 + (growth - 1) * np.array(list(itertools.product((0, 1), repeat=k)))[:-1]
    worth = []
    for (p, q), s in zip(itertools.combinations(laws, 2), orders, strict=True):
        b, x = columns @ q, np.log1p((columns @ (p - q)) / (columns @ q))
        worth.append(b * (s * np.expm1(x) - np.expm1(s * x)))
    scale = min(float(row.max()) for row in worth)
    above = [np.append(-row / scale, 1.0) / max(1.0, float(row.max()) / scale) for row in worth]
    pairs = itertools.permutations(range(k), 2)
    caps = [np.append(np.maximum(columns[:, x] - columns[:, y], 0.0), 0.0) for x, y in pairs]
    solved = linprog(
        np.append(np.zeros(len(columns)), -1.0), [*above, *caps], [0.0] * len(above) + [eta or 1.0] * len(caps),
        np.hstack([columns.T, np.zeros((k, 1))]), np.ones(k), [(0, None)] * len(columns) + [(None, None)],
    )  # fmt: skip
    return -math.log1p(solved.fun * scale)


def main() -> int:
    """Enclose, play, and write the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--quick", action="store_true", help="five games for each instance, and no file")
    options = asked.parse_args()
    rng, rows, faults = np.random.default_rng(options.seed), [], 0
    for count, k, epsilon, eta, kind in INSTANCES:
        laws = hypotheses(rng, count, k, kind)
        begun = time.perf_counter()
        found = chernoff_of_several(laws, epsilon, eta)
        seconds, width = time.perf_counter() - begun, found.upper / found.lower - 1
        games = 5 if options.quick else 200
        pairs = len(laws) * (len(laws) - 1) // 2
        best = max(game(laws, epsilon, eta, np.clip(0.5 + 0.04 * rng.standard_normal(pairs), 0.1, 0.9))
                   for _ in range(games))  # fmt: skip
        faults += not (best <= found.upper * (1 + 1e-7) and width <= WIDTH)
        ends = f"{found.lower:.9g}", f"{found.upper:.9g}", f"{width:.1e}", f"{seconds:.2f}", f"{best / found.upper:.7f}"
        rows.append((len(laws), k, epsilon, "" if eta is None else eta, kind, *ends))
    for row in (HEADS, *rows):
        print(*(f"{entry!s:>12}" for entry in row))
    print(f"{faults} faults")
    if not options.quick:
        with Path(__file__).with_suffix(".csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows((HEADS, *rows))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
