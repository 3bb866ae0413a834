"""Section 2: inequalities for subgaussian variables, with the printed constants."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy import FinitePair, mcdp
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, grid
from ldpopt.reproduce.laws import random_law, tilted
from ldpopt.reproduce.statements import Part, old_inequalities

TAIL = Part("Lemma 2.1", cells=("seed", "t"))
VARIANCE = Part("Fact 2.1", cells=("seed",))
MOMENTS = Part("Fact 2.2", cells=("seed", "k"))
PRODUCT = Part("Lemma 2.3, first line", cells=("seed", "tilt"), floor=1e-3)
SECOND = Part("Lemma 2.3, second line", cells=("seed", "tilt"), floor=1e-3)
USED = Part("Lemma 2.3, second line, E[X] ≥ 0", cells=("seed", "tilt"), floor=1e-3)
PARTS = (TAIL, VARIANCE, MOMENTS, PRODUCT, SECOND, USED)


def points(parameters: Parameters) -> list[Row]:
    """Random pairs. The centred privacy loss of each is subgaussian, and its exact standard is known."""
    return grid(seed=list(range(parameters["pairs"])))


def measure(seed: float) -> list[Row]:
    """Both sides of every inequality, for the centred privacy loss Y under p and another random variable X."""
    rng = np.random.default_rng([21, int(seed)])
    p = random_law(rng, int(rng.integers(2, 6)), least=0.01)
    q = tilted(rng, p, float(rng.choice([0.05, 0.3, 1.0])))
    y = np.log(p / q) - float(p @ np.log(p / q))
    tau = float(mcdp(FinitePair(p, q)).tau.value)
    rows: list[Row] = [{"part": VARIANCE.name, "exact": float(p @ y**2), "claimed": tau**2}]
    for t in (0.5, 1.0, 2.0):
        beyond = float(p[y >= t * tau].sum())
        rows += [{"part": TAIL.name, "t": t, "exact": beyond, "claimed": math.exp(-t * t / 2)}]
    for k in (2, 3, 4, 5, 6):
        half = math.ceil(k / 2)
        bound = math.factorial(half) * 2 ** (half + 1) * tau**k
        rows.append({"part": MOMENTS.name, "k": k, "exact": float(p @ y**k), "claimed": bound})
    for tilt in (-1.0, 0.0, 1.0):
        rows += _products(p, rng.normal(size=len(p)) + tilt, y * min(1.0, 1 / (3 * tau)), min(tau, 1 / 3), tilt)
    return rows


def _products(p: Array, x: Array, y: Array, tau: float, tilt: float) -> list[Row]:
    """E[X exp(Y)] and its two bounds."""
    mean, square = float(p @ x), float(p @ x**2)
    exact, more = float(p @ (x * np.exp(y))), tau + 3 * tau**2
    first = mean + math.sqrt(square) * more
    second = mean + (math.sqrt(max(0.0, square - mean**2)) + mean) * more
    both = [(PRODUCT, first), (SECOND, second)] + ([(USED, second)] if mean >= 0 else [])
    return [{"part": part.name, "tilt": tilt, "exact": exact, "claimed": bound} for part, bound in both]


EXPERIMENT: Experiment = old_inequalities(
    PARTS,
    title="Section 2: subgaussian variables",
    ending="The second line of Lemma 2.3 puts E[X] for |E[X]|: it needs E[X] ≥ 0, which the paper's uses of it have.",
    name="dr-section-2",
    claim="A τ-subgaussian Y has tails at most exp(-t²/2) (2.1), variance at most τ², k-th moment at most "
    "⌈k/2⌉! 2^(⌈k/2⌉+1) τ^k, and E[X e^Y] ≤ E[X] + √E[X²] (τ+3τ²) ≤ E[X] + (√Var X + E[X]) (τ+3τ²) for τ ≤ 1/3 (2.3).",
    source="[DR, Lemma 2.3; DR, Fact 2.1; DR, Fact 2.2; DR, Lemma 2.1]",
    full={"pairs": 80},
    quick={"pairs": 6},
    points=points,
    measure=measure,
    caption="How far each inequality is from equality, for the centred privacy losses of random pairs.",
)
