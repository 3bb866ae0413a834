"""Theorems 2 and 3, their proofs' integrals, and section VI-D: composition of (ε, η), exact and in the limit.

Appendix J: the chain of inequalities that proves Proposition 2, line by line.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr

from experiments.papers.claims.gi_regions import TESTS
from experiments.papers.drawing import curves, line, marks, panel, picture
from experiments.papers.experiment import Axis, Row, Subject, Table, grid
from experiments.papers.laws import random_law, rr
from experiments.papers.statements import Part, claim, decided
from ldpopt.composition import gaussian_limit, gaussian_total_variation, k_fold, kov15, trinomial_log_pmf
from ldpopt.mechanisms import dominating_pair
from ldpopt.privacy import maximal_leakage
from ldpopt.values.distribution import Array


def printed_delta(j: int, k: int, epsilon: float, alpha: float) -> float:
    """Compute delta_j by the double sum as printed [GI, eq. 5]."""
    total = 0.0
    for a in range(k - j):
        for i in range(math.ceil((k - j - a) / 2)):
            gain = math.exp((k - i - a) * epsilon) - math.exp((i + j) * epsilon)
            weight = ((1 - alpha) / (1 + math.exp(epsilon))) ** (k - a) * alpha**a
            total += math.comb(k, a) * math.comb(k - a, i) * weight * gain
    return total


def enumerated(j: int, k: int, epsilon: float, delta: float, eta: float) -> float:
    """Compute the same guarantee by summing over all 5^k outcomes of k dominating pairs."""
    pair = dominating_pair(epsilon, delta, eta)
    p, q = (np.array([math.prod(cells) for cells in product(law, repeat=k)]) for law in (pair.p, pair.q))
    return float(np.maximum(p - math.exp(j * epsilon) * q, 0).sum())


def _figure_4b(table: Table) -> dict[str, Any]:
    setting_rows, exact = table.where(setting="1 0 0.3 5"), table.column("theorem")
    return {
        "largest error": max(np.abs(exact - table.column(name)).max() for name in ("printed", "enumerated")),
        "_gain": (setting_rows.column("without_eta") - setting_rows.column("theorem")).max(),
    } | {f"Figure 4b, δ_{row['j']:g}": row["enumerated"] for row in setting_rows.rows}


def _trade_off(column: str, label: str, number: int, parity: bool, **style: Any) -> Any:
    """The trade-off function of (j epsilon, delta_j) for all j, or for those of the parity of k."""

    def curve(t: Array, table: Table) -> Array:
        lines = [np.zeros_like(t)]
        for row in table.rows:
            if not parity or (row["j"] - row["k"]) % 2 == 0:
                growth, delta = math.exp(row["j"] * row["epsilon"]), row[column]
                lines += [1 - delta - growth * t, (1 - delta - t) / growth]
        return np.asarray(np.max(lines, axis=0))

    t = np.linspace(0, 1, 401)
    return lambda ax, table: line(ax, t, curve(t, table), number, label, **style)


def _figure_4(part: str, k: int) -> Any:
    return panel(f"Figure 4{part}: ε = 1, α = 0.3, k = {k}", "type I error", "type II error",
                 _trade_off("without_eta", "ε alone [GI, eq. 6]", 2, True),
                 _trade_off("theorem", "Theorem 2, j of the parity of k", 0, True, ls="--"),
                 _trade_off("theorem", "Theorem 2, all j", 1, False, ls="-"),
                 where={"setting": f"1 0 0.3 {k}"}, **TESTS)  # fmt: skip


@claim(
    "gi-theorem-2", "[GI, Thm 2; GI, Fig 4; GI, eq. 5-6]",
    points=grid(setting=Axis(["1 0 0.3 1", "1 0 0.3 5", "0.3 0.05 0.8 5", "2 0.01 0.5 6", "0.1 0 0.9 6"],
                             ["1 0 0.3 1", "1 0 0.3 5", "0.3 0.05 0.8 4"])),
    judge=decided(
        "Theorem, printed sum and enumeration agree to {largest error:.1e}; at Figure 4b's setting the total variation "
        "known lowers δ by up to {_gain:.4f}.", _figure_4b, lambda figures: figures["largest error"] <= 1e-9),
    draw=picture(_figure_4("a", 1), _figure_4("b", 5)),
    caption="The trade-off functions of one and of five mechanisms: knowing the total variation shrinks the region.",
)  # fmt: skip
def folds(setting: str) -> list[Row]:
    """The k-fold adaptive composition of (ε, δ)-DP and η-TV mechanisms is (jε, 1 - (1-δ)^k (1-δ_j))-DP for all j,
    exactly, with δ_j of equation 5."""
    # A setting is ε, δ, the probability α of erasure, and k.
    epsilon, delta, alpha, count = (float(number) for number in setting.split())
    count = int(count)
    eta = delta + (1 - alpha) * (1 - delta) * math.tanh(epsilon / 2)
    theorem, older = k_fold(epsilon, delta, eta, count), kov15(epsilon, delta, count)
    return [{
        "epsilon": epsilon, "k": count, "j": j,
        "theorem": float(theorem.deltas[list(theorem.indices).index(j)]),
        "printed": 1 - (1 - delta) ** count * (1 - printed_delta(j, count, epsilon, alpha)),
        "enumerated": enumerated(j, count, epsilon, delta, eta),
        "without_eta": older.delta_at(j * epsilon),
    } for j in range(count + 1)]  # fmt: skip


def _decay(table: Table, x: str, *names: str) -> dict[str, Any]:
    """The largest ratio of the distances at neighbouring x, and for each of the groups its power of x at the end."""
    steps, rates = [], {}
    for cell, rows in table.groups(*names):
        n, distance = rows.column(x), rows.column("distance")
        steps.append((distance[1:] / distance[:-1]).max())
        rates[cell] = math.log(distance[-1] / distance[-2]) / math.log(n[-1] / n[-2])
    last = float(table.where(**{x: max}).column("distance").max())
    slowest = np.max(list(rates.values()))
    return {"_step": np.max(steps), "_rates": rates, "slowest rate, power": slowest, "last distance": last}


@claim(
    "gi-theorem-3", "[GI, Thm 3]",
    points=grid(mu=Axis([0.5, 1.0, 2.0], [1.0]), alpha=Axis([0.0, 0.5]),
                k=Axis([4, 16, 64, 256, 1024, 4096], [4, 16, 64, 256])),
    judge=decided(
        "The distance to G_μ falls at every step, as k^{slowest rate, power:.2f} or faster, to {last distance:.1e} at "
        "the largest k.", lambda table: _decay(table, "k", "mu", "alpha"),
        lambda figures: figures["_step"] < 1 and figures["slowest rate, power"] < -0.4),
    draw=picture(panel("Theorem 3: distance of the composition from G_μ", "mechanisms k", "sup |f - G_μ|",
                       curves("k", "distance", "μ = {mu:g}, erased {alpha:.0%}", by=("mu", "alpha"), marker="o",
                              ms=3.5), scale="xy")),
    caption="How far the exact composition of k equal mechanisms is from its Gaussian limit.",
)  # fmt: skip
def equal_mechanisms(mu: float, alpha: float, k: float) -> Row:
    """If Σ ε_i η_i tends to μ²/2 and max ε_i to 0, the trade-off curve of the composition tends to G_μ."""
    epsilon = mu / math.sqrt((1 - alpha) * k)
    eta = mu * mu / (2 * k * epsilon)  # so that k epsilon eta = mu^2/2 exactly
    limit = gaussian_limit([epsilon] * int(k), [min(eta, math.tanh(epsilon / 2))] * int(k))
    return {"epsilon": epsilon, "mu_found": limit.mu, "distance": limit.distance}


def arrays(array: str, n: int) -> tuple[list[float], list[float]]:
    """Build (epsilons, etas) of n mechanisms with sum of products 1/2, that is mu = 1."""
    if array != "unequal":
        c = float(array.removeprefix("n^-"))
        return [n**-c] * n, [0.5 * n ** (c - 1)] * n
    # A quarter of the mechanisms is twice as strong, a quarter half as strong, a quarter erased; then all are scaled.
    epsilons = np.tile([2.0, 0.5, 1.0, 1.0], n // 4) / math.sqrt(n)
    etas = np.tanh(epsilons / 2) * np.tile([1.0, 1.0, 0.5, 0.25], n // 4)
    epsilons = epsilons * math.sqrt(0.5 / float(epsilons @ etas))
    etas = np.tanh(epsilons / 2) * np.tile([1.0, 1.0, 0.5, 0.25], n // 4)
    return epsilons.tolist(), (etas * 0.5 / float(epsilons @ etas) * (1 - 1e-12)).tolist()


@claim(
    "gi-theorem-3-examples", "[GI, Thm 3; GI, section V]",
    points=grid(array=Axis(["n^-0.1", "n^-0.2", "n^-0.3", "n^-0.4", "n^-0.5", "unequal"],
                           ["n^-0.3", "n^-0.5", "unequal"]),
                n=Axis([16, 64, 256, 1024, 4096], [16, 64, 256])),
    judge=decided(
        "The distance to G_1 falls at every step, the slower the slower ε does: {_said}; up to {last distance:.3f} is "
        "left at the largest n, where ε falls slowest.",
        lambda table: (figures := _decay(table, "n", "array")) | {
            "sums off 1/2 by": np.abs(table.column("sum") - 0.5).max(),
            "_said": ", ".join(f"{name} as n^{rate:.2f}" for name, rate in figures["_rates"].items())},
        lambda figures: (figures["_step"] < 1 and figures["slowest rate, power"] < -0.04
                         and figures["sums off 1/2 by"] < 0.02)),
    draw=picture(panel("After Theorem 3: distance from G_1", "mechanisms n", "sup |f - G_1|",
                       curves("n", "distance", lambda rows: "unequal ε and η" if rows.rows[0]["array"] == "unequal"
                              else f"ε = {rows.rows[0]['array']}", by=("array",), marker="o", ms=3.5),
                       scale="xy")),
    caption="How far compositions of n mechanisms are from G_1 when ε falls as a power of n, for several powers.",
)  # fmt: skip
def unequal_mechanisms(array: str, n: float) -> Row:
    """With ε = μ n^-c and η = μ/(2 n^(1-c)), any c in (0, 1/2), the composition of n mechanisms tends to G_μ; and so
    for unequal arrays."""
    epsilons, etas = arrays(array, int(n))
    etas = [min(eta, math.tanh(epsilon / 2)) for epsilon, eta in zip(epsilons, etas, strict=True)]
    total = math.fsum(a * b for a, b in zip(epsilons, etas, strict=True))
    return {"largest epsilon": max(epsilons), "sum": total, "distance": gaussian_limit(epsilons, etas).distance}


CELLS = ("epsilon", "share")
MEAN = Part("eq. 72: kl = εη", equal=True, cells=CELLS)
SECOND = Part("eq. 73: κ₂", equal=True, cells=CELLS)
THIRD = Part("eq. 74: κ₃", equal=True, cells=CELLS)
PRINTED = Part("eq. 72's integrals with the printed limit", Subject.STEP, equal=True, cells=CELLS)
REPAIRED = Part("the same with e^ε-1", Subject.STEP, equal=True, cells=CELLS)
EXPANSION = Part("|ε(e^ε+1)/(2(e^ε-1)) - 1| ≤ ε²", Subject.STEP, cells=("epsilon",))


@claim(
    "gi-appendix-e", "[GI, eq. 72-74; GI, App E]", MEAN, SECOND, THIRD, PRINTED, REPAIRED, EXPANSION,
    title="Appendix E: moments of the slope",
    ending="The lower limit of the second integral is 1 - ηe^ε/(e^ε-1); the results (72) to (74) are those of the "
    "right one.",
    points=grid(epsilon=Axis([0.01, 0.1, 0.5, 1.0, 2.0, 4.0], [0.1, 1.0]),
                share=Axis([0.1, 0.5, 0.9, 1.0], [0.5, 1.0])), subject=Subject.STEP,
    caption="Each formula against the moment computed from the curve's dominating pair. Filled: the printed limit.",
)  # fmt: skip
def slope_moments(epsilon: float, share: float) -> list[Row]:
    """The (ε, η) trade-off curve has kl = εη, κ₂ = ηε²(e^ε+1)/(e^ε-1) and κ₃ = ηε³(e^ε+1)/(e^ε-1). These are integrals
    from 0 to η/(e^ε-1) and from 1 - ηe^ε/(e^ε+1) (as printed) to 1."""
    eta, gain = share * math.tanh(epsilon / 2), math.expm1(epsilon)
    pair = dominating_pair(epsilon, 0.0, eta)
    used = (pair.p > 0) & (pair.q > 0)
    p, loss = pair.p[used], np.log(pair.p[used] / pair.q[used])

    def integrals(denominator: float) -> float:  # slope -e^epsilon on the first stretch, -e^-epsilon on the last
        return -(epsilon * eta / gain - epsilon * eta * math.exp(epsilon) / denominator)

    ratio, mean = (math.exp(epsilon) + 1) / gain, float(p @ loss)
    return [
        MEAN(mean, epsilon * eta),
        SECOND(float(p @ loss**2), eta * epsilon**2 * ratio),
        THIRD(float(p @ np.abs(loss) ** 3), eta * epsilon**3 * ratio),
        PRINTED(mean, integrals(math.exp(epsilon) + 1)),
        REPAIRED(mean, integrals(gain)),
        EXPANSION(abs(epsilon * ratio / 2 - 1), epsilon**2),
    ]


FOLD = Part("Dominating pair: 1-(1-δ)^k(1-δ₀)", equal=True, cells=("first", "second", "k"))
NORMAL = Part("Gaussian: 2Φ(√k μ/2) - 1", equal=True, cells=("first", "k"), tolerance=1e-7)
ATTACK = Part("advantage of the test 'loss > 0', Gaussian", equal=True, cells=("first", "k"), tolerance=1e-7)


@claim(
    "gi-section-6-d", "[GI, section VI-D]", FOLD, NORMAL, ATTACK,
    ending="What an attacker gains over guessing is this total variation, and the likelihood-ratio test attains it.",
    points=grid(kind=["pair"], first=Axis([0.1, 0.5, 1.0, 2.0], [0.5]), second=[0.0, 0.02],
                k=Axis([1, 2, 5, 10, 20, 50], [1, 5]))
    + grid(kind=["normal"], first=Axis([0.1, 0.3, 1.0], [0.3], "mus"), k="k"),
    draw=picture(
        panel("Dominating pair (circles: by summation)", "folds k", "total variation",
              curves("k", "claimed", "ε = {first:g}, η = 0.6 tanh(ε/2)", by=("first",)), marks("k", "exact"),
              where={"part": FOLD.name, "second": 0.0}, scale="x", ylim=(0, None)),
        panel("Gaussian noise (circles: by integration)", "folds k", "total variation",
              curves("k", "claimed", "μ = {first:g}", by=("first",)), marks("k", "exact"),
              where={"part": NORMAL.name}, scale="x")),
    caption="Total variation of k folds by the formulas (lines) and computed from all outcomes (circles).",
)  # fmt: skip
def membership(kind: str, first: float, k: float, second: float = 0.0) -> list[Row]:
    """Vulnerability to membership inference, the total variation under k folds, is 1-(1-δ)^k(1-δ₀) for dominating
    mechanisms, and 2Φ(√k μ/2)-1 for Gaussian noise."""
    # `first` is epsilon or mu.
    count = int(k)
    if kind == "normal":
        claimed, shift = gaussian_total_variation(first, count), math.sqrt(k) * first
        x = np.linspace(-12, 12 + shift, 400_001)
        gap = np.maximum(np.exp(-((x - shift) ** 2) / 2) - np.exp(-(x**2) / 2), 0.0)
        total_mass = float(gap.sum() * (x[1] - x[0])) / math.sqrt(2 * math.pi)
        return [NORMAL(total_mass, claimed), ATTACK(float(ndtr(shift / 2) - ndtr(-shift / 2)), claimed)]
    eta = second + 0.6 * (1 - second) * math.tanh(first / 2)
    erasure = 1 - (eta - second) / ((1 - second) * math.tanh(first / 2))
    law = np.exp(trinomial_log_pmf(count, first, max(0.0, erasure)))  # of the number of hits minus misses
    exact = float(1 - (1 - second) ** count * (1 - np.maximum(law - law[::-1], 0.0).sum()))
    return [FOLD(exact, k_fold(first, second, eta, count).total_variation().value)]


SUM = Part("(79) as printed: Σ max ≤ log 2ε/(e^ε+1)", Subject.STEP, cells=("epsilon", "seed"))
LOG = Part("(79) with the logarithm on the left alone", Subject.STEP, cells=("epsilon", "seed"))
SUM_REPAIRED = Part("(79) repaired: log Σ max ≤ log 2e^ε/(e^ε+1)", Subject.STEP, cells=("epsilon", "seed"))
LEAKAGE = Part("(80) as printed: TV = 1 - e^-I", Subject.STEP, equal=True, cells=("epsilon", "seed"))
LEAKAGE_REPAIRED = Part("(80) repaired: TV = e^I - 1", Subject.STEP, equal=True, cells=("epsilon", "seed"))
END = Part("(81) as printed: 1 - 2ε/(e^ε+1) = (e^ε-1)/(e^ε+1)", Subject.STEP, equal=True, cells=("epsilon", "seed"))
PROPOSITION = Part("Proposition 2: TV ≤ (e^ε-1)/(e^ε+1)", cells=("epsilon", "seed"))


@claim(
    "gi-appendix-j", "[GI, eq. 79-81; GI, Prop 2]", SUM, LOG, SUM_REPAIRED, LEAKAGE, LEAKAGE_REPAIRED, END, PROPOSITION,
    title="Appendix J, line by line",
    ending="With the logarithm, 2e^ε and e^I - 1 in their places the chain proves the proposition, which is right.",
    points=grid(epsilon=Axis([0.1, 0.5, 1.0, 2.0, 4.0], [0.5, 2.0]), seed=Axis(8, 3)), subject=Subject.STEP,
    caption="How far each line of the chain is from its right side, as printed and repaired.",
)  # fmt: skip
def chain(epsilon: float, seed: float) -> list[Row]:
    """The chain (79) to (81) as printed: ML = Σ max Q(y|x) ≤ log 2ε/(e^ε+1), TV = 1 - e^-ML ≤ (e^ε-1)/(e^ε+1)."""
    # Random pairs whose largest loss is epsilon; seed 0 is randomized response.
    rows = rr(epsilon)
    if seed:
        rng = np.random.default_rng([80, int(seed)])
        q = random_law(rng, 4)
        x = rng.uniform(-1, 1, 4)
        low, high = 0.0, 60.0
        for _ in range(200):  # bisect the tilt with largest loss epsilon
            middle = (low + high) / 2
            p = q * np.exp(middle * x)
            p /= p.sum()
            low, high = (middle, high) if np.abs(np.log(p / q)).max() < epsilon else (low, middle)
        rows = np.stack([p, q])
    total, leakage = float(rows.max(axis=0).sum()), float(maximal_leakage(rows).value)
    variation, printed = total - 1, 2 * epsilon / (math.exp(epsilon) + 1)
    return [
        SUM(total, math.log(printed)),
        LOG(math.log(total), math.log(printed)),
        SUM_REPAIRED(math.log(total), math.log(2 * math.exp(epsilon) / (math.exp(epsilon) + 1))),
        LEAKAGE(variation, -math.expm1(-leakage)),
        LEAKAGE_REPAIRED(variation, math.expm1(leakage)),
        END(math.tanh(epsilon / 2), 1 - printed),
        PROPOSITION(variation, math.tanh(epsilon / 2)),
    ]
