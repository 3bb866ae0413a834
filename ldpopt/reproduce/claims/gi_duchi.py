"""Theorem 6: the bound of Duchi, Jordan and Wainwright, and the bound that improves it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.bounds import duchi_jordan_wainwright, ghazi_issa_corollary
from ldpopt.reproduce.claims.gi_jeffreys import looseness
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of
from ldpopt.reproduce.laws import worst_pair

P0, P1 = (0.9, 0.1), (0.4, 0.6)


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon, and both directions of the search over the populations."""
    made = grid(epsilon=parameters["epsilons"], k=parameters["sizes"], sought=["loosest", "tightest"])
    return [row | {"starts": parameters["starts"], "steps": parameters["steps"]} for row in made]


def measure(epsilon: float, k: float, sought: str, starts: float, steps: float) -> Row:
    """The extreme of bound / optimum, and the ratio of Theorem 6 to Corollary 2, the same for all populations."""
    power = 1 if sought == "loosest" else -1
    older = duchi_jordan_wainwright(P0, P1, epsilon) / ghazi_issa_corollary(P0, P1, epsilon)
    found = worst_pair(lambda p0, p1: looseness(p0, p1, epsilon, 1.0) ** power, int(k), int(starts), int(steps))
    return found | {"ratio": older * float(found["ratio"]) ** power, "over_corollary_2": older}


def judge(table: Table) -> Verdict:
    """The verdict: the bound is never below the optimum and never below Corollary 2."""
    worst, best = table.row("ratio", np.argmax), table.row("ratio", np.argmin)
    older = table.column("over_corollary_2")
    return Verdict(
        outcome_of(np.concatenate([table.column("ratio"), older])),
        f"Never below the optimum: {best['ratio']:.3f} times it at the least, {worst['ratio']:.4g} times at the most "
        f"(ε = {worst['epsilon']:g}, P0 = ({worst['p0']}), P1 = ({worst['p1']})). Corollary 2 is {older.min():.4f} to "
        f"{older.max():.3g} times sharper: min(2, e^ε)(e^ε + 1)/2, for all populations.",
        {"loosest": float(worst["ratio"]), "tightest": float(best["ratio"]),
         "over Corollary 2, smallest": float(older.min()), "over Corollary 2, largest": float(older.max())},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """Loosest and tightest against epsilon, and the factor to Corollary 2."""
    (ax,) = frames(1, 6.2, 4.2)
    for at, (sought, pick) in enumerate((("loosest", np.max), ("tightest", np.min))):
        found = [(float(e), pick(one.column("ratio"))) for e, one in table.where(sought=sought).groups("epsilon")]
        line(ax, [e for e, _ in found], [r for _, r in found], at, f"Theorem 6 / optimum, {sought}", marker="o", ms=4)
    epsilon = np.geomspace(min(table.column("epsilon")), max(table.column("epsilon")), 100)
    factor = np.minimum(2, np.exp(epsilon)) * (np.exp(epsilon) + 1) / 2
    line(ax, epsilon, factor, 2, "Theorem 6 / Corollary 2", lw=1.3)
    finish(ax, "How many times too large the bound is", "ε (nats)", "ratio", scale="xy")
    return ax


EXPERIMENT = Experiment(
    name="gi-theorem-6",
    claim="Every ε-LDP channel has symmetrised KL divergence at most min(4, e^(2ε))(e^ε - 1)² TV(P0, P1)², and "
    "Corollary 2 is never larger.",
    source="[GI, Thm 6; DJW, Thm 1; GI, eq. 45]",
    full={"epsilons": [0.1, 0.3, math.log(2), 1.0, 2.0, 4.0], "sizes": [2, 3], "starts": 3, "steps": 300},
    quick={"epsilons": [0.3, 2.0], "sizes": [2], "starts": 2, "steps": 120},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Theorem 6 over the exact optimum, at the worst and the best populations found, and over Corollary 2.",
)
