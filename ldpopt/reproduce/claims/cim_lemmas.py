"""Theorem 10 with unequal variances, and the small lemmas of Appendices C and D."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from ldpopt.distribution import Array
from ldpopt.privacy import RestrictedAlpha, RestrictedRenyi, capacity_bounded
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, grid
from ldpopt.reproduce.laws import random_law, tilted
from ldpopt.reproduce.statements import Part, inequalities

NORMAL = Part("Theorem 10, σ₁ and σ₂ unequal", equal=True, cells=("seed",), tolerance=1e-7)
RELEASE = Part("Lemma 2: no noise, no finite parameter", lower=True, cells=("seed",))
SUPREMUM = Part("Lemma 3's formula for D_α", equal=True, cells=("seed", "order"), tolerance=1e-6)
SIGNS = Part("Lemma 4: a of the signs of E_P x is best", equal=True, cells=("seed",), tolerance=1e-6)
PEAK = Part("Lemma 5: the maximum of a - X a^(α/(α-1))", equal=True, cells=("seed", "order"), tolerance=1e-9)
PARTS = (NORMAL, RELEASE, SUPREMUM, SIGNS, PEAK)


def points(parameters: Parameters) -> list[Row]:
    """Random parameters for each lemma, at every order."""
    return grid(seed=list(range(parameters["draws"])), order=parameters["orders"])


def measure(seed: float, order: float) -> list[Row]:
    """Both sides of every lemma, for one random draw of its parameters."""
    rng = np.random.default_rng([10, int(seed)])
    mu, one, two = float(rng.normal()), float(rng.uniform(0.3, 2)), float(rng.uniform(0.3, 2))

    def dual(a: float) -> float:
        inside = quad(lambda x: math.exp(a * x - x * x / (2 * two**2)), -60, 60, limit=400)[0]
        return math.log(inside / (two * math.sqrt(2 * math.pi))) - a * mu

    normal = minimize_scalar(dual, bounds=(-12, 12), method="bounded", options={"xatol": 1e-9})
    p = random_law(rng, 4, least=0.02)
    q = tilted(rng, p, 0.7)
    power, scale = order / (order - 1), (order - 1) ** (order / (order - 1)) / order
    exact = capacity_bounded(np.stack([p, q]), np.arange(4.0), RestrictedAlpha(order)).lower
    shown = max(_affine(p, q, power, scale, order), _affine(q, p, power, scale, order))
    x = float(rng.uniform(0.1, 3))
    peak = minimize_scalar(lambda a: x * a**power - a, bounds=(0, 4 * ((order - 1) / (order * x)) ** (order - 1)),
                           method="bounded", options={"xatol": 1e-13})  # fmt: skip
    apart = np.array([[1.0 - 1e-9, 1e-9], [1e-9, 1.0 - 1e-9]])
    finite = capacity_bounded(apart, [0.0, 1.0], RestrictedRenyi(order)).lower
    both, kept = _signs(rng, order)
    return [
        {"part": NORMAL.name, "first": one, "exact": -float(normal.fun), "claimed": mu**2 / (2 * two**2)},
        {"part": RELEASE.name, "exact": finite, "claimed": 0.9 * math.log(1e9)},
        {"part": SUPREMUM.name, "exact": exact, "claimed": shown},
        {"part": SIGNS.name, "exact": both, "claimed": kept},
        {"part": PEAK.name, "exact": -float(peak.fun),
         "claimed": (order - 1) ** (order - 1) / (order**order * x ** (order - 1))},
    ]  # fmt: skip


def _affine(p: Array, q: Array, power: float, scale: float, order: float) -> float:
    """sup over a, b of E_p[a x + b] - C E_q |a x + b|^power - 1/(order^2 - order), from three starts."""
    from scipy.optimize import minimize

    x = np.arange(float(len(p)))

    def loss(c: Array) -> float:
        h = c[0] * x + c[1]
        return float(scale * (q @ np.abs(h) ** power) - p @ h)

    found = min(
        float(minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxfev": 4000}).fun)
        for start in ([0.0, 1 / (order - 1)], [0.1, 0.5], [-0.1, 0.5])
    )
    return -found - 1 / (order**2 - order)


def _signs(rng: np.random.Generator, order: float) -> tuple[float, float]:
    """The supremum over all (a, b) of Lemma 4's form, and that over its signs, for Q symmetric on four points."""
    power, scale = order / (order - 1), (order - 1) ** (order / (order - 1)) / order
    mean = rng.normal(size=2)
    corners = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])

    def best(quadrants: list[tuple[float, float, float]]) -> float:
        from scipy.optimize import minimize

        found = []
        for signs in quadrants:

            def loss(c: Array, signs: tuple[float, float, float] = signs) -> float:
                a = np.abs(c[:2]) * signs[:2]
                b = abs(c[2]) * signs[2]
                return float(scale * np.mean(np.abs(corners @ a + b) ** power) - a @ mean - b)

            found.append(float(minimize(loss, [0.3, 0.3, 0.5], method="Nelder-Mead",
                                        options={"xatol": 1e-10, "fatol": 1e-14, "maxfev": 6000}).fun))  # fmt: skip
        return -min(found)

    every = [(float(i), float(j), float(b)) for i in (1, -1) for j in (1, -1) for b in (1, -1)]
    kept = [(float(np.sign(mean[0])), float(np.sign(mean[1])), 1.0)]
    return best(every), best(kept)


EXPERIMENT: Experiment = inequalities(
    PARTS,
    title="Theorem 10 and Lemmas 2 to 5",
    ending="Lemma 2's point masses are taken 10⁻⁹ apart from certainty: the parameter exceeds 0.9 log 10⁹.",
    name="cim-theorem-10",
    claim="KL restricted to affine functions is (μ₁-μ₂)²/(2σ₂²) between normal laws of any variances (Theorem 10); "
    "a release without noise has no finite parameter (2), D_α has the variational form (3), with a of given signs "
    "(4), and a maximum (5).",
    source="[CIM, Thm 10; CIM, Lemma 2; CIM, Lemma 3; CIM, Lemma 4; CIM, Lemma 5]",
    full={"draws": 8, "orders": [1.5, 2.0, 3.0]},
    quick={"draws": 1, "orders": [2.0, 3.0]},
    points=points,
    measure=measure,
    caption="Each quantity by optimisation or quadrature, against the formula.",
    subject=Subject.STATEMENT,
)
