"""Figures 1 and 2: the privacy regions, attained by the dominating pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.mechanisms import dominating_pair
from ldpopt.privacy.trade_off import TradeOffCurve
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, agreement, grid


def region(t: Array, epsilon: float, delta: float, eta: float) -> Array:
    """The least type II error at type I error t under (epsilon, delta)-DP and eta-TV [GI, Cor 1]."""
    growth = math.exp(epsilon)
    lines = [1 - delta - growth * t, (1 - delta - t) / growth, 1 - eta - t, np.zeros_like(t)]
    return np.asarray(np.max(lines, axis=0))


def points(parameters: Parameters) -> list[Row]:
    """Every (epsilon, delta) with every share of the largest eta; share 1 is Figure 1."""
    return grid(epsilon=parameters["epsilons"], delta=parameters["deltas"], share=parameters["shares"])


def measure(epsilon: float, delta: float, share: float) -> list[Row]:
    """The pair's Neyman-Pearson curve and the printed lines."""
    eta = delta + share * (1 - delta) * math.tanh(epsilon / 2)
    pair = dominating_pair(epsilon, delta, eta)
    curve = TradeOffCurve.of_pair(pair.p, pair.q)
    t = np.unique(np.round(np.concatenate([np.linspace(0, 1, 21), curve.knots[:, 0]]), 12))  # corners too
    printed = region(t, epsilon, delta, eta)
    return [
        {"eta": eta, "type_one": float(a), "curve": float(curve(a)), "printed": float(b)}
        for a, b in zip(t, printed, strict=True)
    ]


def judge(table: Table) -> Verdict:
    """The verdict: the pair's curve and the printed lines are equal."""
    errors = np.abs(table.column("curve") - table.column("printed"))
    return Verdict(
        agreement(errors, 1e-12),
        f"The dominating pair's trade-off curve is the region's edge to {errors.max():.1e} at {len(errors)} points.",
        {"largest error": float(errors.max())},
    )


def draw(table: Table) -> Any:
    """The two figures, with the region above the curve shaded."""
    epsilon = max(table.column("epsilon"), key=lambda e: -abs(e - 1))
    delta = float(max(table.column("delta")))
    shown = table.where(epsilon=float(epsilon), delta=delta)
    axes = frames(2)
    shares = sorted(set(shown.column("share")))
    figures = ((1.0, f"Figure 1: ε = {epsilon:g}, δ = {delta:g}"), (shares[-2], "Figure 2: the same"))
    for ax, (share, title) in zip(axes, figures, strict=True):
        rows = shown.where(share=share)
        t, curve = rows.column("type_one"), rows.column("curve")
        ax.fill_between(t, curve, 1 - t, where=1 - t >= curve, color="0.85", lw=0, label="what tests can reach")
        if share < 1:
            edge = shown.where(share=1.0)
            line(ax, edge.column("type_one"), edge.column("curve"), 1, "without η")
        line(ax, t, curve, 0, "dominating pair")
        eta = float(rows.column("eta")[0])
        finish(ax, f"{title}, η = {eta:.3f}", "type I error", "type II error")
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return axes[0]


EXPERIMENT = Experiment(
    name="gi-figures-1-2",
    claim="A mechanism is (ε, δ)-DP and η-TV exactly when its trade-off curves lie above three pairs of lines, and a "
    "five-point pair attains all of them.",
    source="[GI, Fig 1-2; GI, Cor 1; GI, eq. 7-8]",
    full={"epsilons": [0.3, 1.0, 3.0], "deltas": [0.0, 0.05], "shares": [0.3, 0.7, 1.0]},
    quick={"epsilons": [1.0], "deltas": [0.05], "shares": [0.7, 1.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The privacy regions: type II against type I error. Shaded: what some test of a mechanism may reach.",
)
