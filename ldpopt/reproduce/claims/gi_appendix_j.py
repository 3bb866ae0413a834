"""Appendix J: the chain of inequalities behind Proposition 2, with three misprints that cancel each other."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.privacy import maximal_leakage
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, grid
from ldpopt.reproduce.laws import random_law, rr
from ldpopt.reproduce.statements import Part, inequalities

CELLS = ("epsilon", "seed")
NAMES = {
    "79": Part("(79) as printed: Σ max ≤ log 2ε/(e^ε+1)", Subject.STEP, cells=CELLS),
    "79 log": Part("(79) with the logarithm on the left alone", Subject.STEP, cells=CELLS),
    "79 right": Part("(79) repaired: log Σ max ≤ log 2e^ε/(e^ε+1)", Subject.STEP, cells=CELLS),
    "80": Part("(80) as printed: TV = 1 - e^-I", Subject.STEP, equal=True, cells=CELLS),
    "80 right": Part("(80) repaired: TV = e^I - 1", Subject.STEP, equal=True, cells=CELLS),
    "81": Part("(81) as printed: 1 - 2ε/(e^ε+1) = (e^ε-1)/(e^ε+1)", Subject.STEP, equal=True, cells=CELLS),
    "end": Part("Proposition 2: TV ≤ (e^ε-1)/(e^ε+1)", cells=CELLS),
}


def points(parameters: Parameters) -> list[Row]:
    """Random pairs whose largest loss is epsilon; seed 0 is randomized response."""
    return grid(epsilon=parameters["epsilons"], seed=list(range(parameters["pairs"])))


def measure(epsilon: float, seed: float) -> list[Row]:
    """Both sides of every line of the chain."""
    rows = rr(epsilon)
    if seed:
        rng = np.random.default_rng([80, int(seed)])
        q = random_law(rng, 4)
        x = rng.uniform(-1, 1, 4)
        low, high = 0.0, 60.0
        for _ in range(200):  # the tilt at which the largest loss is epsilon
            middle = (low + high) / 2
            p = q * np.exp(middle * x)
            p /= p.sum()
            low, high = (middle, high) if np.abs(np.log(p / q)).max() < epsilon else (low, middle)
        rows = np.stack([p, q])
    total = float(rows.max(axis=0).sum())
    leakage = float(maximal_leakage(rows).value)
    variation, printed = total - 1, 2 * epsilon / (math.exp(epsilon) + 1)
    right = 2 * math.exp(epsilon) / (math.exp(epsilon) + 1)
    sides = {
        "79": (total, math.log(printed)),
        "79 log": (math.log(total), math.log(printed)),
        "79 right": (math.log(total), math.log(right)),
        "80": (variation, -math.expm1(-leakage)),
        "80 right": (variation, math.expm1(leakage)),
        "81": (math.tanh(epsilon / 2), 1 - printed),
        "end": (variation, math.tanh(epsilon / 2)),
    }
    return [{"part": NAMES[at].name, "exact": float(a), "claimed": float(b)} for at, (a, b) in sides.items()]


EXPERIMENT: Experiment = inequalities(
    tuple(NAMES.values()),
    title="Appendix J, line by line",
    ending="With the logarithm, 2e^ε and e^I - 1 in their places the chain proves the proposition, which is right.",
    name="gi-appendix-j",
    claim="The chain (79) to (81) as printed: ML = Σ max Q(y|x) ≤ log 2ε/(e^ε+1), TV = 1 - e^-ML ≤ (e^ε-1)/(e^ε+1).",
    source="[GI, eq. 79-81; GI, Prop 2]",
    full={"epsilons": [0.1, 0.5, 1.0, 2.0, 4.0], "pairs": 8},
    quick={"epsilons": [0.5, 2.0], "pairs": 3},
    points=points,
    measure=measure,
    caption="How far each line of the chain is from its right side, as printed and repaired.",
    subject=Subject.STEP,
)
