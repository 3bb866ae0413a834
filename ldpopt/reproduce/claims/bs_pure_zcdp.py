"""Lemma 3.2: pure privacy and (epsilon, 0)-zCDP are the same."""

from __future__ import annotations

import numpy as np

from ldpopt.privacy import local_dp, zcdp
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, grid
from ldpopt.reproduce.laws import random_law, tilted
from ldpopt.reproduce.statements import Part, inequalities

FORWARD = Part("ε-DP implies ρ = 0 at ξ = ε", equal=True, cells=("seed",))
LIMIT = Part("the least ξ with ρ = 0 is ε", equal=True, cells=("seed",), tolerance=1e-4)


def points(parameters: Parameters) -> list[Row]:
    """Random channels of several sizes and strengths."""
    return grid(seed=list(range(parameters["channels"])))


def measure(seed: float) -> list[Row]:
    """rho at the channel's epsilon, and the least xi at which it is 0, by bisection."""
    rng = np.random.default_rng([32, int(seed)])
    size, outputs = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    law = random_law(rng, outputs, least=0.01)
    rows = np.stack([tilted(rng, law, float(rng.choice([0.1, 0.7, 2.0]))) for _ in range(size)])
    epsilon = local_dp(rows).value
    made: list[Row] = [{"part": FORWARD.name, "exact": 1 + zcdp(rows, xi=epsilon).lower, "claimed": 1.0}]
    low, high = 0.0, 2 * epsilon
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (low, middle) if zcdp(rows, xi=middle).lower <= 1e-13 * epsilon else (middle, high)
    return [*made, {"part": LIMIT.name, "exact": high, "claimed": epsilon}]


EXPERIMENT: Experiment = inequalities(
    (FORWARD, LIMIT),
    title="Lemma 3.2: pure privacy as zCDP",
    name="bs-lemma-3-2",
    claim="A mechanism is ε-DP if and only if it is (ε, 0)-zCDP.",
    source="[BS, Lemma 3.2]",
    full={"channels": 24},
    quick={"channels": 2},
    points=points,
    measure=measure,
    caption="Bisection for the least ξ at which ρ is 0, against the channel's ε; 1 + ρ at ξ = ε against 1.",
)
