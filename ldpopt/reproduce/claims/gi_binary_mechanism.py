"""Theorems 4 and 5 and section VII-B: where the binary mechanism is optimal, with erasure and for small epsilon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.bounds import ghazi_issa_total_variation
from ldpopt.design import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, SQUARED_HELLINGER, TOTAL_VARIATION
from ldpopt.mechanisms import binary_with_erasure
from ldpopt.reproduce.drawing import COLOURS, diagonal, marks, panel, picture
from ldpopt.reproduce.experiment import Experiment, Row, Table, Verdict, grid, holds_if, off_by, outcome_of
from ldpopt.reproduce.laws import binary_value, optimum, random_law


def variation_kept(epsilon: float, share: float, k: float, seed: float) -> Row:
    """The bound, the certified optimum, and the binary mechanism with erasure; share 1 is Theorem 4."""
    p0, p1 = np.random.default_rng([int(k), int(seed)]).dirichlet(np.ones(int(k)), 2)
    eta, utility = share * math.tanh(epsilon / 2), Divergence(TOTAL_VARIATION, p0, p1)
    design = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)])
    return {
        "eta": eta, "distance": utility.unprivate, "bound": ghazi_issa_total_variation(p0, p1, eta),
        "optimum": design.value, "upper_bound": design.upper_bound,
        "binary_with_erasure": utility.value(binary_with_erasure(p0, p1, epsilon, eta)),
    }  # fmt: skip


def _variation_verdict(table: Table) -> Verdict:
    """The bound, the optimum and the mechanism have the same value."""
    ratios, reached = table.ratio("bound", "optimum"), table.ratio("binary_with_erasure", "optimum")
    off = max(off_by(ratios), off_by(reached))
    return Verdict(
        outcome_of(ratios, reached, 1 / ratios, 1 / reached),
        f"Bound, certified optimum and the binary mechanism with erasure agree to {off:.1e} on {len(ratios)} designs.",
        {"largest relative difference": off,
         "largest certified gap": float((table.ratio("upper_bound", "optimum") - 1).max())},
    )  # fmt: skip


VARIATION = Experiment(
    "gi-theorem-5", "[GI, Thm 5; GI, Thm 4; KOV14, Thm 6]",
    "No ε-LDP and η-TV channel keeps more of the total variation than η TV(P0, P1), tanh(ε/2) TV(P0, P1) without "
    "η, and the binary mechanism with erasure keeps exactly that.",
    full={"epsilons": [0.2, 1.0, 3.0], "shares": [0.3, 1.0], "sizes": [2, 5, 12], "pairs": 8},
    quick={"epsilons": [1.0], "shares": [0.3, 1.0], "sizes": [2, 5], "pairs": 2},
    points=grid(epsilon="epsilons", share="shares", k="sizes", seed="pairs"),
    measure=variation_kept, judge=_variation_verdict,
    draw=picture(panel("Theorems 4 and 5: total variation kept", "bound η·TV(P0, P1)", "certified optimum",
                       diagonal("optimum = η·TV(P0, P1)", "bound", "bound", 0, 1.05),
                       marks("bound", "optimum", "ε = {epsilon:g}", "osD^", by=("epsilon",), ms=5)), height=4.4),
    caption="Every certified optimum for total variation lies on the bound.",
)  # fmt: skip

F = {f.name: f for f in (KL, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON)}
SAME = 1e-10
"""Relative difference below which the binary mechanism counts as optimal."""


def threshold(divergence: str, k: float, seed: float) -> Row:
    """The largest epsilon below which the binary mechanism is optimal, on a fine grid, and what it reaches there.

    Every third of the random pairs is close together, and every third far apart.
    """
    rng = np.random.default_rng([5, int(k), int(seed)])
    p0 = random_law(rng, int(k), least=1e-3)
    tilt = np.exp((0.1, 1.0, 3.0)[int(seed) % 3] * rng.normal(size=int(k)))
    p1, f = p0 * tilt / (p0 @ tilt), F[divergence]

    def short(epsilon: float) -> float:
        return 1 - float(binary_value(f, p0, p1, epsilon)) / float(optimum(f, p0, p1, epsilon))

    epsilons = np.geomspace(1e-3, 8, 120)
    shorts = np.array([short(float(epsilon)) for epsilon in epsilons])
    above = np.flatnonzero(shorts > SAME)
    if not len(above):
        return {"threshold": 8.0, "at 0.001": float(shorts[0]), "certified": 1.0}
    low, high = float(epsilons[max(above[0] - 1, 0)]), float(epsilons[above[0]])
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if short(middle) <= SAME else (low, middle)
    bound = optimal_channel(Divergence(f, p0, p1), LocalDP(low)).upper_bound
    return {"threshold": low, "at 0.001": float(shorts[0]), "certified": float(binary_value(f, p0, p1, low)) / bound}


def _threshold_verdict(table: Table) -> Verdict:
    """Every pair has a positive threshold, which a certified bound confirms."""
    thresholds, certified = table.column("threshold"), table.column("certified")
    least = table.row("threshold", np.argmin)
    return Verdict(
        holds_if((thresholds > 2e-3).all() and certified.min() > 1 - 1e-6),
        f"For each of {len(thresholds)} pairs the binary mechanism is optimal up to a threshold, from "
        f"{thresholds.min():.4g} ({least['divergence']}, k = {least['k']:g}) to beyond 8 (in "
        f"{(thresholds >= 8).mean():.0%}), median {np.median(thresholds):.3g}; there it reaches the certified bound to "
        f"{1 - certified.min():.1e}. The threshold depends on the pair: none serves all.",
        {"least threshold": float(thresholds.min()), "median": float(np.median(thresholds)),
         "certified share, least": float(certified.min())},
    )  # fmt: skip


def _sorted_thresholds(ax: Any, table: Table) -> None:
    for at, (name, rows) in enumerate(table.groups("divergence")):
        values = np.sort(rows.column("threshold"))
        ax.plot(np.arange(1, len(values) + 1) / len(values), values, drawstyle="steps-pre", color=COLOURS[at],
                ls=("-", "--", "-.", ":")[at], label=name)  # fmt: skip


THRESHOLDS = Experiment(
    "gi-section-7-b", "[GI, section VII-B1; KOV14, Thm 5]",
    "For small enough ε (below a threshold of the pair) the binary mechanism is optimal, whatever the f-divergence.",
    full={"sizes": [3, 5, 8], "pairs": 24}, quick={"sizes": [4], "pairs": 3},
    points=grid(divergence=F, k="sizes", seed="pairs"), measure=threshold, judge=_threshold_verdict,
    draw=picture(panel("Below this ε the binary mechanism is optimal", "share of random pairs",
                       "threshold ε (8: beyond)", _sorted_thresholds, scale="y"), width=6.2, height=4.2),
    caption="The largest ε at which the binary mechanism is still optimal, over random pairs.",
)  # fmt: skip
