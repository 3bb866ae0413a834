"""How far the unimodal level shapes are from the certified optimum under (epsilon, delta)-LDP, for 3 to 8 answers.

    python experiments/trust/engine/shapes.py [--instances 200] [--seed 0] [--quick]

Random laws (Dirichlet 0.3 and 1), KL, chi-squared, squared Hellinger, Jensen-Shannon and a divergence with three kinks,
epsilon 0.1 to 3, delta 1e-4 to 0.3. The upper end is the bound that the kernel has proved for all channels; the lower
is what the best channel of the shapes 01, 10, 010, 120, 021, 0121, 1210 and unit vectors keeps, by a linear program
over all of them. `shapes.csv` has a line for each number of answers. Exit code 1 if the shapes lose more than 1e-6 of
the proved bound.
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

from ldpopt.design import ApproximateLDP, Divergence, optimal_channel
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, SQUARED_HELLINGER, FDivergence, piecewise_linear


def drawn(rng: np.random.Generator, k: int) -> tuple[Divergence, ApproximateLDP]:
    p0, p1 = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0])), 2) + 1e-6
    slopes = np.sort(rng.standard_normal(4))
    kinked = piecewise_linear(np.cumsum(rng.uniform(0.2, 1.0, 3)).tolist(), slopes.tolist())
    named: list[FDivergence] = [KL, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON, kinked]
    question = Divergence(named[rng.integers(len(named))], p0 / p0.sum(), p1 / p1.sum())
    return question, ApproximateLDP(float(rng.uniform(0.1, 3)), float(10 ** rng.uniform(-4, -0.5)))


def of_shapes(question: Divergence, limit: ApproximateLDP) -> float:
    """What the best channel of the shapes keeps, whose pairs of inputs are all posed."""
    order = np.argsort(question.p0 / question.p1)
    p0, p1, k, growth = question.p0[order], question.p1[order], len(order), math.exp(limit.epsilon)
    columns = list(np.eye(k))
    for shape in ("01", "10", "010", "120", "021", "0121", "1210"):
        heights = growth ** (np.array(list(map(int, shape))) - float(max(shape)))
        cuts = itertools.combinations(range(1, k), len(shape) - 1)
        columns += [np.repeat(heights, np.diff([0, *each, k])) for each in cuts]
    matrix = np.array(columns)
    worth = question.f.excess(matrix @ p0, matrix @ p1)
    pairs = itertools.permutations(range(k), 2)
    over = np.array([np.maximum(matrix[:, x] - growth * matrix[:, y], 0.0) for x, y in pairs])
    scale = float(np.abs(worth).max())
    if scale == 0:
        return 0.0
    caps = {"A_ub": over, "b_ub": np.full(len(over), limit.delta), "A_eq": matrix.T, "b_eq": np.ones(k)}
    return -scale * float(linprog(-worth / scale, **caps, method="highs").fun)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=200, help="for each number of answers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two instances of each, and no file")
    given = parser.parse_args(arguments)
    rows: list[tuple[object, ...]] = []
    lost = 0
    for k in range(3, 9):
        begun, losses, proved = time.process_time(), [], 0
        for turn in range(2 if given.quick else given.instances):
            question, limit = drawn(np.random.default_rng([given.seed, k, turn]), k)
            best = optimal_channel(question, limit)
            kept = of_shapes(question, limit)
            certified = best.certified and best.verify().proved
            proved += certified
            if certified and best.upper_bound > 1e-12:
                losses.append(1 - kept / best.upper_bound)
        worst = max(losses, default=math.nan)
        seconds, large = time.process_time() - begun, sum(loss > 1e-6 for loss in losses)
        lost += large
        rows.append((k, len(losses), proved, f"{worst:.1e}", large, f"{seconds:.0f}"))
        print(
            f"k = {k}: {len(losses)} compared, {proved} certified, largest loss {worst:.1e}, {seconds:.0f} s",
            flush=True,
        )
    if not given.quick:
        with Path(__file__).with_suffix(".csv").open("w", newline="") as file:
            head = ("answers", "compared", "certified", "largest_loss", "above_1e-6", "seconds")
            csv.writer(file, lineterminator="\n").writerows([head, *rows])
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
