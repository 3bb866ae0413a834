"""Theorem 3.4 and Corollary 3.1: composition of mean-concentrated privacy, and the tail of the privacy loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.composition import compose_mcdp
from ldpopt.composition.k_fold import trinomial_log_pmf
from ldpopt.privacy import FinitePair, mcdp
from ldpopt.privacy.claims import MCDP
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon, erased share and number of mechanisms, then the tails at several deviations."""
    made = {"epsilon": parameters["epsilons"], "alpha": parameters["erasures"], "k": parameters["counts"]}
    return grid(part=["composition"], **made) + grid(part=["tail"], **made, t=parameters["deviations"])


def composed(epsilon: float, alpha: float, k: float) -> FinitePair:
    """k randomized responses, each erased with probability alpha, as the law of the number of hits minus misses."""
    p = np.exp(trinomial_log_pmf(int(k), epsilon, alpha))
    p = p[p > 0]
    return FinitePair(p / p.sum(), p[::-1] / p.sum())


def measure(part: str, epsilon: float, alpha: float, k: float, t: float = 0.0) -> Row:
    """(mu, tau) by the theorem and exactly; or the tail of the loss and exp(-t^2/2)."""
    pair = composed(epsilon, alpha, k)
    exact = mcdp(pair)
    if part == "tail":
        threshold = exact.mu.value + t * exact.tau.value
        beyond = float(pair.p[pair.losses >= threshold - 1e-12 * max(1.0, threshold)].sum())
        return {"claimed": math.exp(-t * t / 2), "exact": beyond}
    single = mcdp(composed(epsilon, alpha, 1))
    claim = compose_mcdp([(MCDP(single.mu.value, single.tau.value), int(k))], adaptive=False)
    return {"mu_claimed": claim.mu, "mu": exact.mu.lower, "tau_claimed": claim.tau, "tau": exact.tau.lower}


def judge(table: Table) -> Verdict:
    """The verdict: the theorem is an equality for independent mechanisms, and the tail bound is not attained."""
    sums, tails = table.where(part="composition"), table.where(part="tail")
    ratios = np.concatenate(
        [sums.column("mu_claimed") / sums.column("mu"), sums.column("tau_claimed") / sums.column("tau")]
    )
    seen = tails.column("exact") > 0
    tail = tails.column("claimed")[seen] / tails.column("exact")[seen]
    return Verdict(
        outcome_of(np.concatenate([ratios, tail]), tolerance=1e-5),
        f"For mechanisms fixed in advance (Σμ, √Στ²) is exact (to {np.abs(ratios - 1).max():.1e}). The tail bound of "
        f"Corollary 3.1 is {tail.min():.3g} to {tail.max():.3g} times the probability.",
        {"Theorem 3.4 off by": float(np.abs(ratios - 1).max()), "tail bound over exact, smallest": float(tail.min()),
         "tail bound over exact, largest": float(tail.max())},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """tau against the number of mechanisms; the tail against the deviation."""
    left, right = frames(2)
    alpha = float(min(table.column("alpha")))
    for at, (epsilon, rows) in enumerate(table.where(part="composition", alpha=alpha).groups("epsilon")):
        line(left, rows.column("k"), rows.column("tau_claimed"), at, f"ε = {epsilon:g}", lw=1.4)
        left.plot(rows.column("k"), rows.column("tau"), "o", ms=4, mfc="none", color="0.2")
    left.plot([], [], "o", ms=4, mfc="none", color="0.2", label="exact")
    finish(left, "Theorem 3.4: τ of k randomized responses", "k", "τ", scale="xy")
    tails = table.where(part="tail", alpha=alpha)
    epsilon = min(tails.column("epsilon"))
    for at, (k, rows) in enumerate(tails.where(epsilon=float(epsilon)).groups("k")):
        shown = rows.column("exact") > 0
        line(right, rows.column("t")[shown], rows.column("exact")[shown], at, f"k = {k:g}, exact", marker="o", ms=3)
    t = np.linspace(0, max(tails.column("t")), 50)
    right.plot(t, np.exp(-t * t / 2), color="0.4", lw=1.2, label="exp(-t²/2)")
    finish(right, f"Corollary 3.1: Pr(loss ≥ μ + tτ), ε = {epsilon:g}", "t", "probability", scale="y")
    return left


EXPERIMENT = Experiment(
    name="dr-theorem-3-4",
    claim="(μ_i, τ_i)-CDP mechanisms, fixed in advance, compose to (Σμ_i, √Στ_i²)-CDP, and the privacy loss exceeds "
    "μ + tτ with probability at most exp(-t²/2).",
    source="[DR, Thm 3.4; DR, Cor 3.1]",
    full={
        "epsilons": [0.1, 1.0, 3.0],
        "erasures": [0.0, 0.3],
        "counts": [1, 4, 16, 64],
        "deviations": [0.5, 1.0, 2.0, 3.0, 4.0],
    },
    quick={"epsilons": [1.0], "erasures": [0.0], "counts": [1, 8], "deviations": [1.0, 2.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Left: τ by Theorem 3.4 (lines) and exactly (circles). Right: the tail of the privacy loss and its bound.",
)
