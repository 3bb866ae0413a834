"""Theorem 7 and Corollary 2: how loose the bounds are at worst and at best.

The largest looseness has a closed form. The binary mechanism reaches total variation t = tanh(epsilon/2) TV(P0, P1),
and J >= 2 t log((1+t)/(1-t)) >= 4 t^2 at total variation t, so the bound is at most min(2, e)(e + 1)/2 times too
large, e = exp(epsilon), with eta too by [GI, Thm 8]; two inputs with P0, P1 near (1/2, 1/2) come as close as you like.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.bounds import ghazi_issa
from ldpopt.design import Constraint, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.distribution import Array
from ldpopt.divergences import JEFFREYS
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Cell, Experiment, Parameters, Row, Table, Verdict, grid, outcome_of
from ldpopt.reproduce.laws import worst_pair


def looseness(p0: Array, p1: Array, epsilon: float, share: float) -> float:
    """The bound over the exact optimum, for eta the given share of tanh(epsilon/2)."""
    limits: list[Constraint] = [LocalDP(epsilon)]
    eta = share * math.tanh(epsilon / 2)
    if share < 1:
        limits.append(TotalVariation(eta))
    design = optimal_channel(Divergence(JEFFREYS, p0, p1), limits, certify=False)
    return ghazi_issa(p0, p1, epsilon, eta) / design.value


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon, share (1 is Corollary 2) and direction of the search, for each number of inputs."""
    made = grid(
        epsilon=parameters["epsilons"],
        share=parameters["shares"],
        k=parameters["sizes"],
        sought=["loosest", "tightest"],
    )
    return [row | {"starts": parameters["starts"], "steps": parameters["steps"]} for row in made]


def measure(epsilon: float, share: float, k: float, sought: str, starts: float, steps: float) -> Row:
    """The extreme of the looseness over P0 and P1, with the pair where it was found."""
    power = 1 if sought == "loosest" else -1
    found = worst_pair(lambda p0, p1: looseness(p0, p1, epsilon, share) ** power, int(k), int(starts), int(steps))
    return found | {
        "ratio": float(found["ratio"]) ** power,
        "limit": min(2.0, math.exp(epsilon)) * (math.exp(epsilon) + 1) / 2,
    }


def judge(table: Table) -> Verdict:
    """The verdict: the bound is never below the optimum, and its worst looseness, for which there is a closed form."""
    loose, tight = table.where(sought="loosest"), table.where(sought="tightest")
    worst, best = loose.row("ratio", np.argmax), tight.row("ratio", np.argmin)
    short = np.array([by.column("ratio").max() / by.column("limit")[0] for _, by in loose.groups("epsilon")])
    return Verdict(
        outcome_of(table.column("ratio")),
        f"Never below the optimum. At ε = {worst['epsilon']:g} up to {worst['ratio']:.4g} times too large, at P0 = "
        f"({worst['p0']}), P1 = ({worst['p1']}). The largest looseness approaches min(2, e^ε)(e^ε+1)/2, that of nearly "
        f"equal populations (found: {short.min():.2%} of it or more). The tightest is {best['ratio']:.4f} times, at "
        f"ε = {best['epsilon']:g}, P0 = ({best['p0']}), P1 = ({best['p1']}).",
        {
            "loosest": float(worst["ratio"]),
            "loosest at epsilon": float(worst["epsilon"]),
            "loosest, limit in closed form": float(worst["limit"]),
            "tightest": float(best["ratio"]),
            "tightest at epsilon": float(best["epsilon"]),
            **{
                f"{named(share)}: {sought}, ε = {e:g}": float(pick(one.column("ratio")))
                for share, rows in table.groups("share")
                for sought, pick in (("loosest", np.max), ("tightest", np.min))
                for e, one in rows.where(sought=sought).groups("epsilon")
            },
        },
    )


def named(share: Cell) -> str:
    """The name of the statement for a share of the largest eta."""
    return "Corollary 2" if share == 1 else f"Theorem 7, η = {share:g} tanh(ε/2)"


def draw(table: Table) -> Any:
    """Loosest and tightest ratio against epsilon, for Corollary 2 and for Theorem 7 with a smaller eta."""
    (ax,) = frames(1, 6.4, 4.3)
    at = 0
    for share, rows in table.groups("share"):
        for sought, pick in (("loosest", np.max), ("tightest", np.min)):
            found = [
                (float(epsilon), pick(one.column("ratio")))
                for epsilon, one in rows.where(sought=sought).groups("epsilon")
            ]
            line(ax, [e for e, _ in found], [r for _, r in found], at, f"{named(share)}: {sought}", marker="o", ms=4)
            at += 1
    epsilon = np.geomspace(min(table.column("epsilon")), max(table.column("epsilon")), 100)
    limit = np.minimum(2, np.exp(epsilon)) * (np.exp(epsilon) + 1) / 2
    ax.plot(epsilon, limit, color="0.5", lw=0.9, label="min(2, e^ε)(e^ε + 1)/2")
    finish(ax, "How many times too large the bound is, over all P0, P1", "ε (nats)", "bound / optimum", scale="xy")
    return ax


EXPERIMENT = Experiment(
    name="gi-theorem-7",
    claim="Every ε-LDP and η-TV channel has symmetrised KL divergence at most 2 η min(2, e^ε)(e^ε-1) TV(P0, P1)² "
    "(Theorem 7); without η, with tanh(ε/2) in its place (Corollary 2).",
    source="[GI, Thm 7; GI, Cor 2]",
    full={"epsilons": [0.1, 0.3, 0.7, 1.0, 2.0, 4.0], "shares": [0.5, 1.0], "sizes": [2, 3], "starts": 3, "steps": 300},
    quick={"epsilons": [0.3, 2.0], "shares": [1.0], "sizes": [2], "starts": 2, "steps": 120},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The largest and the smallest ratio of bound to exact optimum over the populations, by search.",
)
