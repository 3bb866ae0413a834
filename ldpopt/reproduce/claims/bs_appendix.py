"""Lemmas A.2, B.1, C.1 and C.2: four inequalities that the proofs use."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from ldpopt.reproduce.experiment import Experiment, Parameters, Row, grid
from ldpopt.reproduce.laws import kl, random_law, renyi, tilted
from ldpopt.reproduce.statements import Part, inequalities

LOWER = Part("A.2: lower bound on p", cells=("sigma", "t"))
UPPER = Part("A.2: upper bound on p", cells=("sigma", "t"))
RATIO = Part("A.2: p/q ≥ exp(2t/σ²)", cells=("sigma", "t"))
SINH = Part("B.1: (sinh x - sinh y)/sinh(x-y) ≤ e^(xy/2), x ≤ 2", cells=("x", "y"))
PINSKER = Part("C.1: Pinsker", cells=("seed",))
SECOND = Part("C.2: with D₂", cells=("seed", "test"))
PARTS = (LOWER, UPPER, RATIO, SINH, PINSKER, SECOND)


def points(parameters: Parameters) -> list[Row]:
    """Thresholds and noises; a grid of x > y up to 2; random pairs of laws."""
    tails = grid(sigma=parameters["sigmas"], t=parameters["thresholds"])
    steps = int(parameters["steps"])
    triangle: list[Row] = [{"x": 2 * i / steps, "y": 2 * j / steps} for i in range(1, steps + 1) for j in range(i)]
    return [*tails, *triangle, *grid(seed=list(range(parameters["pairs"])))]


def measure(sigma: float = 0.0, t: float = 0.0, x: float = 0.0, y: float = 0.0, seed: float = -1) -> list[Row] | Row:
    """Both sides of the inequality to which the point belongs."""
    if x > 0:
        return {"part": SINH.name, "exact": (math.sinh(x) - math.sinh(y)) / math.sinh(x - y),
                "claimed": math.exp(x * y / 2)}  # fmt: skip
    if seed < 0:
        return _tails(sigma, t)
    rng = np.random.default_rng([100, int(seed)])
    q = random_law(rng, int(rng.integers(2, 6)), least=0.002)
    p = tilted(rng, q, float(rng.choice([0.01, 0.5, 2.0])))
    values = np.where(p > q, 1.0, -1.0) if seed % 2 else rng.uniform(-1, 1, len(q))
    gap, bound = abs(float((p - q) @ values)), math.sqrt(2 * kl(p, q))
    rows: list[Row] = [{"part": PINSKER.name, "exact": gap, "claimed": bound}]
    for test, f in (("random", rng.normal(size=len(q))), ("P/Q - 1", p / q - 1)):
        right = math.sqrt(float(q @ f**2)) * math.sqrt(math.expm1(renyi(p, q, 2.0)))
        rows.append({"part": SECOND.name, "test": test, "exact": abs(float((p - q) @ f)), "claimed": right})
    return rows


def _tails(sigma: float, t: float) -> list[Row]:
    """Lemma A.2 on the tails p and q of two normal laws beyond t."""
    p, q = float(ndtr(-(t - 1) / sigma)), float(ndtr(-(t + 1) / sigma))
    peak = math.exp(-((t - 1) ** 2) / (2 * sigma**2)) * sigma / math.sqrt(2 * math.pi)
    return [
        {"part": LOWER.name, "exact": peak / (t + sigma - 1), "claimed": p},
        {"part": UPPER.name, "exact": p, "claimed": peak / (t - 1)},
        {"part": RATIO.name, "exact": 2 * t / sigma**2, "claimed": math.log(p / q)},
    ]


EXPERIMENT: Experiment = inequalities(
    PARTS,
    title="Lemmas A.2, B.1, C.1, C.2",
    ending="B.1, which the paper verifies 'by inspecting a plot', holds on the whole grid and is attained as x "
    "tends to y at 0; C.2 is attained by f = P/Q - 1, C.1 by near laws and the sign of their difference.",
    name="bs-appendices",
    claim="Bounds on Gaussian tails (A.2), on differences of sinh (B.1), Pinsker's inequality (C.1), and the change "
    "of an expectation by √E_Q f² √(e^D₂ - 1) (C.2).",
    source="[BS, Lemma A.2; BS, Lemma B.1; BS, Lemma C.1; BS, Lemma C.2]",
    full={"sigmas": [0.5, 1.0, 2.0], "thresholds": [1.5, 2.0, 4.0, 8.0], "steps": 60, "pairs": 60},
    quick={"sigmas": [1.0], "thresholds": [2.0, 4.0], "steps": 12, "pairs": 6},
    points=points,
    measure=measure,
    caption="Left side against right side of each inequality.",
)
