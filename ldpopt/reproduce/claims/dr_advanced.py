"""Theorem 1.1: advanced composition against the exact composition."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.composition import k_fold
from ldpopt.composition.sums import advanced_composition
from ldpopt.privacy.claims import ApproximateDP
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon, number of mechanisms and slack."""
    return grid(epsilon=parameters["epsilons"], slack=parameters["slacks"], k=parameters["counts"])


def measure(epsilon: float, slack: float, k: float) -> Row:
    """The theorem's epsilon, the exact one at the same delta, and basic composition."""
    claimed = advanced_composition(ApproximateDP(epsilon, 0.0), int(k), slack)
    return {
        "claimed": claimed.epsilon,
        "basic": k * epsilon,
        "exact": k_fold(epsilon, 0.0, None, int(k)).epsilon_at(claimed.delta),
    }


def judge(table: Table) -> Verdict:
    """The ratio of claimed to exact epsilon, and the settings in which basic composition is better."""
    shown = Table(tuple(row for row in table.rows if float(row["exact"]) > 0))
    ratios = shown.column("claimed") / shown.column("exact")
    worst = shown.with_column("r", ratios).row("r", np.argmax)
    vain = int((table.column("claimed") > table.column("basic")).sum())
    return Verdict(
        outcome_of(ratios),
        f"The theorem's ε is {ratios.min():.4f} to {ratios.max():.3g} times the exact one at the same δ (most at "
        f"ε = {worst['epsilon']:g}, k = {worst['k']:g}, δ = {worst['slack']:g}); in {vain} of {len(table.rows)} cells "
        "even "
        "the sum kε is smaller.",
        {
            "claimed over exact, smallest": float(ratios.min()),
            "claimed over exact, largest": float(ratios.max()),
            "cells where kε is smaller": vain,
            "cells": len(table.rows),
        },
    )


def draw(table: Table) -> Any:
    """epsilon against the number of mechanisms."""
    slack = min(table.column("slack"))
    shown = list(table.where(slack=float(slack)).groups("epsilon"))
    axes = frames(len(shown), 4.2, 3.9)
    for ax, (epsilon, rows) in zip(axes, shown, strict=True):
        line(ax, rows.column("k"), rows.column("claimed"), 1, "Theorem 1.1", ls="--")
        line(ax, rows.column("k"), rows.column("basic"), 2, "basic: kε", ls="-.")
        line(ax, rows.column("k"), rows.column("exact"), 0, "exact")
        finish(ax, f"ε = {epsilon:g} each, δ = {slack:g}", "mechanisms k", "ε of all (nats)", scale="xy")
    return axes[0]


EXPERIMENT = Experiment(
    name="dr-theorem-1-1",
    claim="k adaptive ε-DP mechanisms are (√(2k ln 1/δ) ε + kε(e^ε-1)/2, δ)-DP.",
    source="[DR, Thm 1.1; GI, Thm 2]",
    full={"epsilons": [0.01, 0.1, 1.0], "slacks": [1e-3, 1e-6], "counts": [1, 3, 10, 30, 100, 300, 1000, 3000]},
    quick={"epsilons": [0.1], "slacks": [1e-6], "counts": [1, 10, 100]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The ε of k mechanisms together: advanced composition, the plain sum, and the exact value.",
)
