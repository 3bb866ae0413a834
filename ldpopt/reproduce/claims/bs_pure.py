"""Proposition 1.4: pure privacy as concentrated privacy, and the improvement from the total variation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.mechanisms import dominating_pair
from ldpopt.privacy import zcdp
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon with every share of the largest eta; share 1 stands for pure privacy without a cap."""
    return grid(epsilon=parameters["epsilons"], share=parameters["shares"])


def measure(epsilon: float, share: float) -> Row:
    """The exact rho of the dominating pair, the printed one and the two closed forms."""
    eta = share * math.tanh(epsilon / 2)
    exact = zcdp(dominating_pair(epsilon, 0.0, eta).channel)
    return {"exact": exact.value, "printed": epsilon**2 / 2, "epsilon_eta": epsilon * eta}


def judge(table: Table) -> Verdict:
    """The ratio of the printed bound to the exact value, and the settings with rho = epsilon eta."""
    pure = table.where(share=1.0)
    ratios = table.column("printed") / table.column("exact")
    alone = pure.column("printed") / pure.column("exact")
    closed = float(np.max(np.abs(pure.column("exact") / pure.column("epsilon_eta") - 1)))
    beyond = table.column("exact") / table.column("epsilon_eta")
    top = table.with_column("r", beyond).row("r", np.argmax)
    return Verdict(
        outcome_of(ratios),
        f"The exact ρ of pure privacy is ε tanh(ε/2) (to {closed:.1e}), so ε²/2 is {alone.min():.4f} to "
        f"{alone.max():.3g} "
        f"times too large. With η it is εη while little is erased and more beyond: {top['r']:.4f} times εη at "
        f"ε = {top['epsilon']:g}, η = {top['share']:g} tanh(ε/2).",
        {
            "ε²/2 over exact, smallest": float(alone.min()),
            "ε²/2 over exact, largest": float(alone.max()),
            "exact over εη, largest": float(beyond.max()),
            "ε²/2 over exact with η, largest": float(ratios.max()),
        },
    )


def draw(table: Table) -> Any:
    """rho against epsilon, and rho/(epsilon eta) against the share."""
    left, right = frames(2)
    pure = table.where(share=1.0)
    line(left, pure.column("epsilon"), pure.column("printed"), 1, "ε²/2 [BS]", ls="--")
    line(left, pure.column("epsilon"), pure.column("exact"), 0, "exact: ε tanh(ε/2)")
    for at, share in enumerate(sorted(set(table.column("share")) - {1.0})[::-1][:4]):
        rows = table.where(share=share)
        line(left, rows.column("epsilon"), rows.column("exact"), at + 2, f"exact, η = {share:g} tanh(ε/2)", lw=1.2)
    finish(left, "The zCDP of (ε, η)", "ε (nats)", "ρ", scale="xy")
    for at, (epsilon, rows) in enumerate(table.groups("epsilon")):
        if at % max(1, len(set(table.column("epsilon"))) // 5) == 0:
            line(right, rows.column("share"), rows.column("exact") / rows.column("epsilon_eta"), at, f"ε = {epsilon:g}")
    finish(right, "Exact ρ over εη", "η / tanh(ε/2)", "ρ / (εη)", scale="x")
    return left


EXPERIMENT = Experiment(
    name="bs-proposition-1-4",
    claim="Every ε-DP mechanism is ε²/2-zCDP.",
    source="[BS, Prop 1.4]",
    full={
        "epsilons": [0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0],
        "shares": [0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0],
    },
    quick={"epsilons": [0.1, 1.0, 5.0], "shares": [0.1, 0.7, 1.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Left: the exact ρ that ε, and ε with η, imply. Right: how far it exceeds εη when nearly all is erased.",
)
