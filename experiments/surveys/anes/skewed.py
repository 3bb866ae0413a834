"""Skewed answers, p = (0.9, 0.025 x 4), epsilon 1: the optimal channel against every named protocol, simulated.

Run with `python experiments/surveys/anes/skewed.py`; about a minute. Writes skewed.csv: 20,000 surveys of 472
respondents each, estimated with the best linear estimate at p.
"""

from __future__ import annotations

import numpy as np
import run

from ldpopt.design import FisherInformation, LocalDP, MVOptimal, optimal_channel
from ldpopt.mechanisms import optimized_unary_encoding

PILOT = np.array([0.9, 0.025, 0.025, 0.025, 0.025])


def main() -> None:
    rng = np.random.default_rng(run.SEED + 2)
    utility = FisherInformation(PILOT)
    design = optimal_channel(utility, LocalDP(run.EPSILON))
    ours, expected = run.simulated(design.channel, PILOT, PILOT, rng), run.exact(design.channel, PILOT, PILOT)
    rows = []
    for name, rival in run.named(5).items():
        predicted = 1 - expected / run.exact(rival, PILOT, PILOT)
        rows.append(run.compare("skewed", name, ours, run.simulated(rival, PILOT, PILOT, rng), predicted))
    oracle = optimized_unary_encoding(5, run.EPSILON)
    theirs = run.simulated_encoding(oracle, PILOT, rng)
    usual = sum(oracle.variance(float(p), run.RESPONDENTS) for p in PILOT)
    rows.append(run.compare("skewed", "optimized unary encoding", ours, theirs, 1 - expected / usual))
    run.write("skewed.csv", rows)
    widest = optimal_channel(FisherInformation(PILOT, MVOptimal()), LocalDP(run.EPSILON))
    best = min(FisherInformation(PILOT, MVOptimal()).value(rival) for rival in run.named(5).values())
    print(f"largest variance: {widest.value:.6f}, best named {best:.6f}, saving {1 - widest.value / best:.2%}")


if __name__ == "__main__":
    main()
