"""Theorem 3.5: pure privacy as mean-concentrated privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.mechanisms import dominating_pair
from ldpopt.privacy import mcdp
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """The epsilons."""
    return grid(epsilon=parameters["epsilons"])


def measure(epsilon: float) -> Row:
    """mu and tau of randomized response, by the theorem, and in closed form."""
    exact = mcdp(dominating_pair(epsilon).channel)
    return {
        "mu": exact.mu.lower,
        "mu_claimed": epsilon * math.expm1(epsilon) / 2,
        "mu_closed": epsilon * math.tanh(epsilon / 2),
        "tau": exact.tau.lower,
        "tau_claimed": epsilon,
        "tau_closed": math.sqrt(2 * epsilon * math.tanh(epsilon / 2)),
    }


def judge(table: Table) -> Verdict:
    """The ratios of claimed to exact values."""
    mu, tau = (table.column(f"{name}_claimed") / table.column(name) for name in ("mu", "tau"))
    off = max(float(np.max(np.abs(table.column(name) / table.column(f"{name}_closed") - 1))) for name in ("mu", "tau"))
    return Verdict(
        outcome_of(np.concatenate([mu, tau])),
        f"The mean ε(e^ε-1)/2 is {mu.min():.4f} to {mu.max():.4g} times the exact ε tanh(ε/2), the largest of all ε-DP "
        f"mechanisms; τ = ε is {tau.min():.4f} to {tau.max():.3g} times that of randomized response, "
        f"√(2ε tanh(ε/2)). The closed forms are exact to {off:.1e}.",
        {
            "μ claimed over exact, smallest": float(mu.min()),
            "μ claimed over exact, largest": float(mu.max()),
            "τ claimed over exact, largest": float(tau.max()),
            "closed forms off by, relative": off,
        },
    )


def draw(table: Table) -> Any:
    """mu and tau against epsilon."""
    axes = frames(2)
    for ax, name, symbol in zip(axes, ("mu", "tau"), "μτ", strict=True):
        line(ax, table.column("epsilon"), table.column(f"{name}_claimed"), 1, "Theorem 3.5", ls="--")
        line(ax, table.column("epsilon"), table.column(name), 0, "randomized response, exact", marker="o", ms=3.5)
        finish(ax, f"{symbol} of ε-DP", "ε (nats)", symbol, scale="xy")
    return axes[0]


EXPERIMENT = Experiment(
    name="dr-theorem-3-5",
    claim="Every ε-DP mechanism is (ε(e^ε-1)/2, ε)-mCDP.",
    source="[DR, Thm 3.5]",
    full={"epsilons": [0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0]},
    quick={"epsilons": [0.1, 1.0, 3.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The mean and the subgaussian standard of the privacy loss: the theorem and the exact values.",
)
