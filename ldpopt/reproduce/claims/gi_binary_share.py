"""Figure 5: a lower bound on the share of the optimum that the binary mechanism reaches, and the least share.

The least share has a closed form. Let e = exp(epsilon), A = TV(P0, P1). For KL divergence a block of masses P0(B)
and P1(B) has (e - 1)^2 (P0(B) - P1(B))^2 times the integral of (1 - s)/(1 + (e - 1) P_s(B)) over s in [0, 1],
P_s = s P0 + (1 - s) P1; for chi-squared, Hellinger, Jensen-Shannon, Jeffreys and every operator convex f it is an
integral over s with other weights. For each s: the differences of either sign add up to A, so three or more blocks
have at most 2 (e - 1)^2 A^2, two (1 + 1/e)(e - 1)^2 A^2, and the binary mechanism's two at least 4/(e + 1) (e
- 1)^2 A^2, as 1/(1 + (e-1)u) + 1/(1 + (e-1)(1-u)) lies between its values at u = 1/2 and u = 0. An optimal channel
answers m-ary randomized response, which divides by e + m - 1 [SPR]. Hence BIN/OPT >= 4/(e + 1)^2 / max(1/e, 2/(e +
2)). It is approached as t tends to 0 by two inputs of mass t, one under each hypothesis alone, and two of one half
each, of ratios a hair above and below 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.bounds import binary_share_ghazi_issa, binary_share_kairouz
from ldpopt.design import Divergence, LocalDP, optimal_channel
from ldpopt.distribution import Array
from ldpopt.divergences import CHI_SQUARED, JEFFREYS, JENSEN_SHANNON, KL, SQUARED_HELLINGER
from ldpopt.mechanisms import binary
from ldpopt.reproduce.drawing import line, panel, picture
from ldpopt.reproduce.experiment import Experiment, Outcome, Row, Single, Table, Verdict, grid, span
from ldpopt.reproduce.laws import binary_value, deepest_pair, few_digits, optimum, random_law, read_pair, tilted

F = {f.name: f for f in (KL, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON, JEFFREYS)}


def least_share(epsilon: float) -> float:
    """The infimum of BIN/OPT over all pairs, for every operator convex f."""
    e = math.exp(epsilon)
    return 4 / (e + 1) ** 2 / max(1 / e, 2 / (e + 2))


def extremal(t: float) -> tuple[Array, Array]:
    """The pair that approaches the least share as t tends to 0."""
    tiny, hair = 1e-12, 1e-7
    p0 = np.array([t, (1 - t) / 2 * (1 + hair), (1 - t) / 2 * (1 - hair), tiny])
    return p0 / p0.sum(), p0[::-1] / p0.sum()


def share(part: str, epsilon: float, k: float = 4, starts: float = 1, steps: float = 1, t: float = 0.0,
          divergence: str = "", seed: float = 0) -> Row:  # fmt: skip
    """The ratio of the binary mechanism's value to the optimum; it is certified if the point names a pair."""
    if part == "random":
        rng = np.random.default_rng([7, int(seed)])
        p0 = random_law(rng, int(rng.integers(2, 7)), 0.5, least=1e-7)
        p1 = tilted(rng, p0, (0.03, 1.0, 4.0)[int(seed) % 3])
        f = F[divergence]
        return {"exact": float(binary_value(f, p0, p1, epsilon) / optimum(f, p0, p1, epsilon))}
    named: Row = {}
    if part == "search":
        deepest = deepest_pair(
            lambda p0, p1: optimum(KL, p0, p1, epsilon) / binary_value(KL, p0, p1, epsilon),
            int(k), int(starts), int(steps),
        )  # fmt: skip
        named = {name: deepest[name] for name in ("p0", "p1")}
    p0, p1 = read_pair(named) if named else extremal(t)
    utility = Divergence(KL, p0, p1)
    design, value = optimal_channel(utility, LocalDP(epsilon)), utility.value(binary(p0, p1, epsilon))
    return {"exact": value / design.value, "at least": value / design.upper_bound, **named}


def _share_verdict(table: Table) -> Verdict:
    """No share is below the published ones or below the least, and the least is approached."""
    epsilons = [epsilon for epsilon, _ in table.groups("epsilon")]
    low = np.array([rows.column("exact").min() for _, rows in table.groups("epsilon")])
    newer, older, least = (
        np.array([bound(epsilon) for epsilon in epsilons])
        for bound in (binary_share_ghazi_issa, binary_share_kairouz, least_share)
    )
    searched = table.where(part="search")
    deepest = searched.row("exact", np.argmin)
    close = max(table.where(part="extremal", epsilon=e, exact=min).rows[0]["exact"] / least_share(e) for e in epsilons)
    gap = float((table.having(lambda row: "at least" in row).ratio("exact", "at least") - 1).max())
    right = bool((low >= newer).all() and (newer >= older).all() and (low >= least * (1 - 1e-6)).all())
    return Verdict(
        Outcome.LOOSELY if right else Outcome.FAILS,
        f"The newer share is {span(newer / older)} times the older, but the "
        "best possible is min(4e^ε, 2(e^ε+2))/(e^ε+1)² for KL and every operator convex f (proof: "
        f"gi_binary_share.py), {span(least / newer)} times the newer. No pair of "
        f"{len(table.rows)} is below it; an extremal family comes within {close - 1:.1e}. Deepest found by "
        f"search: {deepest['exact']:.4f} at ε = {deepest['epsilon']:g}, {few_digits(deepest)}. Optima certified to "
        f"{gap:.0e}.",
        {"older share at ε = 1": binary_share_kairouz(1.0), "newer share at ε = 1": binary_share_ghazi_issa(1.0),
         "extremal family over the least share, largest": float(close)}
        | {f"least share, ε = {e:g}": least_share(e) for e in epsilons}
        | {f"smallest share found by search, ε = {e:g}": float(rows.column("exact").min())
           for e, rows in searched.groups("epsilon")},
    )  # fmt: skip


def _shares(ax: Any, table: Table) -> None:
    """Figure 5's two curves, the best possible one, and the shares found."""
    epsilons = np.linspace(0.02, max(table.column("epsilon")), 200)
    for at, bound, label in ((2, least_share, "best possible"),
                             (1, binary_share_ghazi_issa, "1/(min(2, e^ε)(e^ε+1)) [GI]"),
                             (0, binary_share_kairouz, "1/(2(e^ε+1)²) [KOV14]")):  # fmt: skip
        line(ax, epsilons, [bound(e) for e in epsilons], at, label, ls=("--", "-.", "-")[at])
    for part, mark, label in (
        ("search", "o", "deepest found by search"),
        ("extremal", "x", "extremal pair, smallest t"),
    ):
        best = [(e, rows.column("exact").min()) for e, rows in table.where(part=part).groups("epsilon")]
        ax.plot(*zip(*best, strict=True), mark, ms=6, mfc="none", color="0.2", label=label)


SHARE = Experiment(
    "gi-figure-5", "[GI, Fig 5; GI, section VII-B1; KOV14, Thm 7]",
    "For KL divergence the binary mechanism reaches at least 1/(min(2, e^ε)(e^ε+1)) of the optimum, for all P0 "
    "and P1; 1/(2(e^ε+1)²) was known.",
    full={"epsilons": [0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0], "sizes": [3, 4], "starts": 3, "steps": 1000,
          "masses": [0.1, 0.01, 0.001, 0.0001], "pairs": 30},
    quick={"epsilons": [0.5, 3.0], "sizes": [4], "starts": 2, "steps": 300, "masses": [0.01, 0.001], "pairs": 6},
    points=grid(part=["search"], epsilon="epsilons", k="sizes", starts=Single("starts"), steps=Single("steps"))
    + grid(part=["extremal"], epsilon="epsilons", t="masses")
    + grid(part=["random"], epsilon="epsilons", divergence=F, seed="pairs"),
    measure=share, judge=_share_verdict,
    draw=picture(panel("Figure 5: share of the KL optimum kept by the binary mechanism", "ε (nats)", "share", _shares,
                       legend="lower left", scale="y", ylim=(1e-4, 1.3), xlim=(0, None)), width=6.6, height=4.4),
    caption="The two guaranteed shares of Figure 5, the best possible one, and the smallest shares found.",
)  # fmt: skip
