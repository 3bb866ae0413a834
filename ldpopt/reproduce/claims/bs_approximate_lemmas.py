"""Lemmas 8.2 and 8.6: composition of approximate zCDP, and a mechanism that simulates all (epsilon, delta)-DP ones."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from ldpopt.composition import compose_approximate_zcdp
from ldpopt.distribution import Array
from ldpopt.privacy import FinitePair, approximate_dp, approximate_zcdp
from ldpopt.privacy.claims import ApproximateZCDP
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, grid
from ldpopt.reproduce.laws import random_law, tilted
from ldpopt.reproduce.statements import Part, inequalities

SUM = Part("8.2: ρ of two mechanisms at δ+δ'-δδ'", cells=("seed", "delta"))
LEAST = Part("8.6: the least ε at which a T exists", equal=True, cells=("seed", "delta"), tolerance=1e-5, floor=0.1)


def points(parameters: Parameters) -> list[Row]:
    """Random pairs of mechanisms and the delta of each."""
    return grid(seed=list(range(parameters["pairs"])), delta=parameters["deltas"])


def response(epsilon: float, delta: float) -> Array:
    """The rows of Definition 8.5's mechanism, (2, 4)."""
    high, low = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    return np.array([[delta, high, low, 0.0], [0.0, low, high, delta]])


def missing(from_rows: Array, to_rows: Array) -> float:
    """The least total deviation of from_rows T from to_rows over row-stochastic T; it is 0 if T exists."""
    m, n = from_rows.shape[1], to_rows.shape[1]
    size = 2 * n
    match = np.kron(from_rows, np.eye(n))
    stochastic = np.kron(np.eye(m), np.ones((1, n)))
    left = np.block([[match, np.eye(size), -np.eye(size)], [stochastic, np.zeros((m, 2 * size))]])
    cost = np.concatenate([np.zeros(m * n), np.ones(2 * size)])
    right = np.concatenate([to_rows.ravel(), np.ones(m)])
    return float(linprog(cost, A_eq=left, b_eq=right, method="highs").fun)


def measure(seed: float, delta: float) -> list[Row]:
    """Both lemmas on random pairs."""
    rng = np.random.default_rng([82, int(seed), int(1e6 * delta)])
    laws = [random_law(rng, 3, least=0.003) for _ in range(2)]
    pairs = [(law, tilted(rng, law, 1.0)) for law in laws]
    claims = [ApproximateZCDP(delta, 0.0, approximate_zcdp(np.stack(pair), delta).value) for pair in pairs]
    together = compose_approximate_zcdp(claims)
    joint = np.stack([np.outer(pairs[0][i], pairs[1][i]).ravel() for i in range(2)])
    rows: list[Row] = [
        {"part": SUM.name, "exact": approximate_zcdp(joint, together.delta).lower, "claimed": together.rho}
    ]
    rows_of = np.stack(pairs[0])
    epsilon = approximate_dp(FinitePair(*pairs[0]), delta).value
    low, high = 0.0, 2 * epsilon + 1
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if missing(response(middle, delta), rows_of) <= 1e-9 else (middle, high)
    rows.append({"part": LEAST.name, "exact": high, "claimed": epsilon})
    return rows


EXPERIMENT: Experiment = inequalities(
    (SUM, LEAST),
    title="Lemmas 8.2 and 8.6",
    name="bs-lemma-8-6",
    claim="Every (ε, δ)-DP pair is a post-processing of randomized response with a leak of δ (8.6), and δ- and "
    "δ'-approximate (0, ρ), (0, ρ')-zCDP compose to δ+δ'-δδ' with ρ+ρ' (8.2).",
    source="[BS, Lemma 8.6; BS, Lemma 8.2]",
    full={"pairs": 30, "deltas": [0.001, 0.01, 0.1]},
    quick={"pairs": 3, "deltas": [0.01]},
    points=points,
    measure=measure,
    caption="The exact ρ of two mechanisms against the sum; the least ε at which a post-processing T exists, by "
    "bisection over linear programs, against the least ε for which the pair is (ε, δ)-DP.",
)
