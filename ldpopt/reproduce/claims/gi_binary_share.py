"""Figure 5: a lower bound on the share of the optimum that the binary mechanism reaches, and the least share.

The least share has a closed form. Let e = exp(epsilon), A = TV(P0, P1). For KL divergence a block of masses P0(B)
and P1(B) is worth (e - 1)^2 (P0(B) - P1(B))^2 times the integral of (1 - s)/(1 + (e - 1) P_s(B)) over s in [0, 1],
P_s = s P0 + (1 - s) P1; for chi-squared, Hellinger, Jensen-Shannon, Jeffreys and every operator convex f it is an
integral over s with other weights. For each s: the differences of either sign add up to A, so three or more blocks
are worth at most 2 (e - 1)^2 A^2, two (1 + 1/e)(e - 1)^2 A^2, and the binary mechanism's two at least 4/(e + 1) (e
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
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid
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


def points(parameters: Parameters) -> list[Row]:
    """The searches for each number of inputs; the extremal pairs; random pairs under the other divergences."""
    searches = grid(part=["search"], epsilon=parameters["epsilons"], k=parameters["sizes"])
    more = {"starts": parameters["starts"], "steps": parameters["steps"]}
    return [
        *(row | more for row in searches),
        *grid(part=["extremal"], epsilon=parameters["epsilons"], t=parameters["masses"]),
        *grid(
            part=["random"], epsilon=parameters["epsilons"], divergence=list(F), seed=list(range(parameters["pairs"]))
        ),
    ]


def measure(part: str, epsilon: float, k: float = 4, starts: float = 1, steps: float = 1, t: float = 0.0,
            divergence: str = "", seed: float = 0) -> Row:  # fmt: skip
    """The ratio of the binary mechanism's value to the optimum; it is certified if the point names a pair."""
    if part == "random":
        rng = np.random.default_rng([7, int(seed)])
        p0 = random_law(rng, int(rng.integers(2, 7)), 0.5, least=1e-7)
        p1 = tilted(rng, p0, (0.03, 1.0, 4.0)[int(seed) % 3])
        f = F[divergence]
        return {"exact": float(binary_value(f, p0, p1, epsilon) / optimum(f, p0, p1, epsilon))}
    if part == "search":
        found = deepest_pair(
            lambda p0, p1: optimum(KL, p0, p1, epsilon) / binary_value(KL, p0, p1, epsilon),
            int(k), int(starts), int(steps),
        )  # fmt: skip
        p0, p1 = read_pair(found)
    else:
        found, (p0, p1) = {}, extremal(t)
    utility = Divergence(KL, p0, p1)
    design, kept = optimal_channel(utility, LocalDP(epsilon)), utility.value(binary(p0, p1, epsilon))
    named: Row = {"p0": found["p0"], "p1": found["p1"]} if found else {}
    return {"exact": kept / design.value, "at least": kept / design.upper_bound, **named}


def judge(table: Table) -> Verdict:
    """The verdict: no share is below the published ones or below the least, and the least is approached."""
    epsilons = np.array([float(e) for e, _ in table.groups("epsilon")])
    low = np.array([by.column("exact").min() for _, by in table.groups("epsilon")])
    newer = np.array([binary_share_ghazi_issa(float(e)) for e in epsilons])
    older = np.array([binary_share_kairouz(float(e)) for e in epsilons])
    least = np.array([least_share(float(e)) for e in epsilons])
    found = table.where(part="search").row("exact", np.argmin)
    near = table.where(part="extremal")
    close = np.array([by.column("exact").min() for _, by in near.groups("epsilon")]) / least
    certified = [row for row in table.rows if "at least" in row]
    gap = max(float(row["exact"]) / float(row["at least"]) - 1 for row in certified)
    right = bool((low >= newer).all() and (newer >= older).all() and (low >= least * (1 - 1e-6)).all())
    return Verdict(
        Outcome.LOOSELY if right else Outcome.FAILS,
        f"The newer share is {(newer / older).min():.3g} to {(newer / older).max():.3g} times the older, but the "
        "best possible is min(4e^ε, 2(e^ε+2))/(e^ε+1)² for KL and every operator convex f (proof: "
        f"gi_binary_share.py), {(least / newer).min():.3g} to {(least / newer).max():.3g} times the newer. No pair of "
        f"{len(table.rows)} is below it; an extremal family comes within {close.max() - 1:.1e}. Deepest found by "
        f"search: {found['exact']:.4f} at ε = {found['epsilon']:g}, {few_digits(found)}. Optima certified to "
        f"{gap:.0e}.",
        {
            "older share at ε = 1": binary_share_kairouz(1.0),
            "newer share at ε = 1": binary_share_ghazi_issa(1.0),
            "extremal family over the least share, largest": float(close.max()),
            **{f"least share, ε = {e:g}": float(v) for e, v in zip(epsilons, least, strict=True)},
            **{f"smallest share found by search, ε = {e:g}": float(by.column("exact").min())
               for e, by in table.where(part="search").groups("epsilon")},
        },
    )  # fmt: skip


def draw(table: Table) -> Any:
    """Figure 5's two curves, the best possible one, and the shares found."""
    (ax,) = frames(1, 6.6, 4.4)
    epsilons = np.linspace(0.02, max(table.column("epsilon")), 200)
    line(ax, epsilons, [least_share(e) for e in epsilons], 2, "best possible", ls="-")
    line(ax, epsilons, [binary_share_ghazi_issa(e) for e in epsilons], 1, "1/(min(2, e^ε)(e^ε+1)) [GI]", ls="-.")
    line(ax, epsilons, [binary_share_kairouz(e) for e in epsilons], 0, "1/(2(e^ε+1)²) [KOV14]", ls="--")
    for part, mark, label in (
        ("search", "o", "deepest found by search"),
        ("extremal", "x", "extremal pair, smallest t"),
    ):
        rows = [(float(e), by.column("exact").min()) for e, by in table.where(part=part).groups("epsilon")]
        ax.plot([e for e, _ in rows], [share for _, share in rows], mark, ms=6, mfc="none", color="0.2", label=label)
    finish(ax, "Figure 5: share of the KL optimum kept by the binary mechanism", "ε (nats)", "share", "lower left", "y")
    ax.set_ylim(1e-4, 1.3)
    ax.set_xlim(0, None)
    return ax


EXPERIMENT = Experiment(
    name="gi-figure-5",
    claim="For KL divergence the binary mechanism reaches at least 1/(min(2, e^ε)(e^ε+1)) of the optimum, for all P0 "
    "and P1; 1/(2(e^ε+1)²) was known.",
    source="[GI, Fig 5; GI, section VII-B1; KOV14, Thm 7]",
    full={
        "epsilons": [0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0], "sizes": [3, 4], "starts": 3, "steps": 1000,
        "masses": [0.1, 0.01, 0.001, 0.0001], "pairs": 30,
    },
    quick={"epsilons": [0.5, 3.0], "sizes": [4], "starts": 2, "steps": 300, "masses": [0.01, 0.001], "pairs": 6},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The two guaranteed shares of Figure 5, the best possible one, and the smallest shares found.",
)  # fmt: skip
