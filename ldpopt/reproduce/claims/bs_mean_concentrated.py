"""Lemma 4.3 and Lemma B.4, with the constants from the proof."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.privacy import FinitePair, mcdp
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, grid
from ldpopt.reproduce.laws import random_law, rr, tilted
from ldpopt.reproduce.statements import Part, inequalities

MEAN = Part("mean at most ξ + ρ", cells=("seed", "xi"))
STANDARD = Part("τ² ≤ 8 max(ξ+2ρ, e^(ξ+2ρ)-1)", cells=("seed", "xi"))
LARGE = Part("E e^(λ(Z-EZ)) ≤ e^(4(ξ+2ρ)λ²) for |λ| ≥ 1/2, in logarithms", Subject.STEP, cells=("seed", "scale"))
CENTRED = Part("Lemma B.4, in logarithms", cells=("seed", "scale"))
PARTS = (MEAN, STANDARD, LARGE, CENTRED)


def points(parameters: Parameters) -> list[Row]:
    """Random pairs, some far apart, with xi = 0 and xi = half the KL divergence. Seed 0 is randomized response."""
    return grid(seed=list(range(parameters["pairs"])), xi=[0.0, 0.5])


def measure(seed: float, xi: float) -> list[Row]:
    """The pair's exact (mu, tau) and the values proved from its (xi, rho), and the steps at several exponents."""
    rng = np.random.default_rng([43, int(seed)])
    p, q = rr(2.0)
    if seed:
        p = random_law(rng, 4, least=0.005)
        q = tilted(rng, p, float(rng.choice([0.2, 0.8, 2.0])))
    pair = FinitePair(p, q)
    own = mcdp(pair)
    offset = xi * float(own.mu.value)
    both = offset + 2 * float(pair.zcdp(offset).value)
    rows: list[Row] = [
        {"part": MEAN.name, "exact": float(own.mu.lower), "claimed": both / 2 + offset / 2},
        {"part": STANDARD.name, "exact": float(own.tau.lower) ** 2, "claimed": 8 * max(both, math.expm1(both))},
    ]
    loss = np.log(p / q)
    centred = loss - float(p @ loss)
    for scale in (-8.0, -2.0, -0.5, 0.5, 2.0, 8.0):
        moment = math.log(float(p @ np.exp(scale * centred)))
        pairwise = math.log(float(p @ np.cosh(2 * scale * loss)))
        rows.append({"part": LARGE.name, "scale": scale, "exact": moment, "claimed": 4 * both * scale**2})
        rows.append({"part": CENTRED.name, "scale": scale, "exact": moment, "claimed": pairwise})
    return rows


EXPERIMENT: Experiment = inequalities(
    PARTS,
    title="Lemma 4.3, with its proof's constants",
    ending="The lemma says O(√(ξ+2ρ)); its proof gives 8(ξ+2ρ) for |λ| ≥ 1/2 and 8(e^(ξ+2ρ)-1) below.",
    name="bs-lemma-4-3",
    claim="(ξ, ρ)-zCDP implies (ξ+ρ, τ)-mCDP with τ² at most 8 max(ξ+2ρ, e^(ξ+2ρ)-1), through "
    "E e^(X-E X) ≤ (E e^2X + E e^-2X)/2.",
    source="[BS, Lemma 4.3; BS, Lemma B.4; BS, Lemma B.5]",
    full={"pairs": 60},
    quick={"pairs": 6},
    points=points,
    measure=measure,
    caption="The exact mean and standard of pairs, and log moments of their losses, against what the lemma proves.",
)
