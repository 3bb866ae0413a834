"""Corollary 1: advanced composition through Rényi divergences."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.composition import k_fold, renyi_advanced_composition
from ldpopt.composition.sums import advanced_composition
from ldpopt.privacy.claims import ApproximateDP, PureDP
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of

CURVES = {"exact": "exact", "claimed": "Corollary 1", "basic": "plain sum", "advanced": "[DR, Thm 1.1]"}


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon, delta and number of mechanisms for which log(1/delta) is at least epsilon^2 n."""
    made = grid(epsilon=parameters["epsilons"], delta=parameters["deltas"], n=parameters["counts"])
    return [row for row in made if -math.log(float(row["delta"])) >= float(row["epsilon"]) ** 2 * float(row["n"])]


def measure(epsilon: float, delta: float, n: float) -> Row:
    """The corollary's epsilon, the plain sum, advanced composition, and the exact value at the same delta."""
    return {
        "claimed": renyi_advanced_composition(PureDP(epsilon), int(n), delta).epsilon,
        "basic": n * epsilon,
        "advanced": advanced_composition(ApproximateDP(epsilon, 0.0), int(n), delta).epsilon,
        "exact": k_fold(epsilon, 0.0, None, int(n)).epsilon_at(delta),
    }


def judge(table: Table) -> Verdict:
    """The ratio of claimed to exact epsilon, and comparisons with the other two."""
    ratios = table.column("claimed") / table.column("exact")
    beside = table.column("claimed") / table.column("advanced")
    vain = int((table.column("claimed") > table.column("basic")).sum())
    return Verdict(
        outcome_of(ratios),
        f"The corollary's ε is {ratios.min():.3g} to {ratios.max():.3g} times the exact one, and {beside.min():.3g} to "
        f"{beside.max():.3g} times that of advanced composition [DR, Thm 1.1]; in {vain} of {len(ratios)} cells the "
        "plain sum is smaller.",
        {"claimed over exact, smallest": float(ratios.min()), "claimed over exact, largest": float(ratios.max()),
         "claimed over advanced composition, smallest": float(beside.min()),
         "claimed over advanced composition, largest": float(beside.max()),
         "cells where the sum is smaller": vain, "cells": len(ratios)},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """The epsilon of all four against the number of mechanisms."""
    delta = float(min(table.column("delta")))
    shown = list(table.where(delta=delta).groups("epsilon"))
    axes = frames(len(shown), 4.4, 3.9)
    for ax, (epsilon, rows) in zip(axes, shown, strict=True):
        for at, (column, label) in enumerate(CURVES.items()):
            line(ax, rows.column("n"), rows.column(column), at, label, marker="o", ms=2.5)
        finish(ax, f"ε = {epsilon:g} each, δ = {delta:g}", "mechanisms n", "ε of all (nats)", scale="xy")
    return axes[0]


EXPERIMENT = Experiment(
    name="m-corollary-1",
    claim="n adaptive ε-DP mechanisms are (4ε√(2n log 1/δ), δ)-DP when log 1/δ ≥ ε²n.",
    source="[M, Cor 1]",
    full={"epsilons": [0.01, 0.1, 0.5], "deltas": [1e-3, 1e-6, 1e-9], "counts": [1, 3, 10, 30, 100, 300, 1000]},
    quick={"epsilons": [0.1], "deltas": [1e-6], "counts": [1, 10, 100]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The ε of n mechanisms by Corollary 1, by two other rules, and exactly.",
)
