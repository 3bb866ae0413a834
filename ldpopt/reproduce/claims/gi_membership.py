"""Section VI-D: the advantage of membership inference, which is the total variation of a composition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from ldpopt.composition import gaussian_total_variation, k_fold
from ldpopt.composition.k_fold import trinomial_log_pmf
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, grid
from ldpopt.reproduce.statements import Part, inequalities

FOLD = Part("Dominating pair: 1-(1-δ)^k(1-δ₀)", equal=True, cells=("first", "second", "k"))
NORMAL = Part("Gaussian: 2Φ(√k μ/2) - 1", equal=True, cells=("first", "k"), tolerance=1e-7)
ATTACK = Part("advantage of the test 'loss > 0', Gaussian", equal=True, cells=("first", "k"), tolerance=1e-7)


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon and delta, and every mu, with every number of folds."""
    return [
        *grid(kind=["pair"], first=parameters["epsilons"], second=[0.0, 0.02], k=parameters["counts"]),
        *grid(kind=["normal"], first=parameters["mus"], k=parameters["counts"]),
    ]


def measure(kind: str, first: float, k: float, second: float = 0.0) -> list[Row] | Row:
    """The formula, and a sum or an integral over the outcomes of all folds."""
    count = int(k)
    if kind == "normal":
        claimed = gaussian_total_variation(first, count)
        x = np.linspace(-12, 12 + math.sqrt(k) * first, 400_001)
        shift = math.sqrt(k) * first
        gap = np.maximum(np.exp(-((x - shift) ** 2) / 2) - np.exp(-(x**2) / 2), 0.0)
        whole = float(gap.sum() * (x[1] - x[0])) / math.sqrt(2 * math.pi)
        attack = float(ndtr(shift / 2) - ndtr(-shift / 2))
        return [{"part": NORMAL.name, "exact": whole, "claimed": claimed},
                {"part": ATTACK.name, "exact": attack, "claimed": claimed}]  # fmt: skip
    eta = second + 0.6 * (1 - second) * math.tanh(first / 2)
    formula = k_fold(first, second, eta, count).total_variation
    return {"part": FOLD.name, "exact": _brute(first, second, eta, count), "claimed": formula}


def _brute(epsilon: float, delta: float, eta: float, count: int) -> float:
    """The total variation of the folds of the dominating pair, from the law of the number of hits minus misses."""
    erasure = 1 - (eta - delta) / ((1 - delta) * math.tanh(epsilon / 2))
    law = np.exp(trinomial_log_pmf(count, epsilon, max(0.0, erasure)))
    return float(1 - (1 - delta) ** count * (1 - np.maximum(law - law[::-1], 0.0).sum()))


def draw(table: Table) -> Any:
    """The advantage against the number of folds."""
    left, right = frames(2)
    for at, (first, rows) in enumerate(table.where(part=FOLD.name, second=0.0).groups("first")):
        line(left, rows.column("k"), rows.column("claimed"), at, f"ε = {first:g}, η = 0.6 tanh(ε/2)")
        left.plot(rows.column("k"), rows.column("exact"), "o", ms=4, mfc="none", color="0.2")
    finish(left, "Dominating pair (circles: by summation)", "folds k", "total variation", None, scale="x")
    left.set_ylim(0, 1.45)
    left.legend(fontsize=8.5, loc="upper left", frameon=False)
    for at, (first, rows) in enumerate(table.where(part=NORMAL.name).groups("first")):
        line(right, rows.column("k"), rows.column("claimed"), at, f"μ = {first:g}")
        right.plot(rows.column("k"), rows.column("exact"), "o", ms=4, mfc="none", color="0.2")
    finish(right, "Gaussian noise (circles: by integration)", "folds k", "total variation", scale="x")
    return left


EXPERIMENT: Experiment = inequalities(
    (FOLD, NORMAL, ATTACK),
    title="",
    draw=draw,
    ending="What an attacker gains over guessing is this total variation, and the likelihood-ratio test attains it.",
    name="gi-section-6-d",
    claim="Vulnerability to membership inference, the total variation under k folds, is 1-(1-δ)^k(1-δ₀) for dominating "
    "mechanisms, and 2Φ(√k μ/2)-1 for Gaussian noise.",
    source="[GI, section VI-D]",
    full={"epsilons": [0.1, 0.5, 1.0, 2.0], "mus": [0.1, 0.3, 1.0], "counts": [1, 2, 5, 10, 20, 50]},
    quick={"epsilons": [0.5], "mus": [0.3], "counts": [1, 5]},
    points=points,
    measure=measure,
    caption="Total variation of k folds by the formulas (lines) and computed from all outcomes (circles).",
)
