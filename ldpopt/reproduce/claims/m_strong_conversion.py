"""Proposition 3 in the stronger form that its proof shows: the larger of two terms instead of their sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from ldpopt.composition.k_fold import trinomial_log_pmf
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, Table, grid
from ldpopt.reproduce.statements import Part, old_inequalities

CELLS = ("noise", "parameter", "order", "delta")
SUM = Part("Pr ≤ e^ε' Q + δ", cells=CELLS)
LARGER = Part("Pr ≤ max(e^ε' Q, δ)", cells=CELLS)


def points(parameters: Parameters) -> list[Row]:
    """Gaussian noise and 40 randomized responses, orders and deltas."""
    mechanisms = grid(noise=["Gaussian", "40 responses"], parameter=parameters["parameters"])
    return [row | more for row in mechanisms for more in grid(order=parameters["orders"], delta=parameters["deltas"])]


def events(noise: str, parameter: float, order: float) -> tuple[Any, Any, float]:
    """The probabilities of every likelihood-ratio event under both inputs, and D_order.

    `parameter` is mu or epsilon.
    """
    if noise == "Gaussian":
        x = np.linspace(-8, 8, 641)
        return ndtr(parameter - x), ndtr(-x), order * parameter**2 / 2
    log_p = trinomial_log_pmf(40, parameter, 0.0)
    tail = np.exp(np.logaddexp.accumulate(log_p[::-1])[::-1])
    other = np.exp(np.logaddexp.accumulate(log_p)[::-1])
    high = 1 / (1 + math.exp(-parameter))
    one = math.log(high**order * (1 - high) ** (1 - order) + (1 - high) ** order * high ** (1 - order)) / (order - 1)
    return tail, other, 40 * one


def measure(noise: str, parameter: float, order: float, delta: float) -> list[Row]:
    """The event that comes nearest to its bound."""
    p, q, divergence = events(noise, parameter, order)
    epsilon = divergence + math.log(1 / delta) / (order - 1)
    raised = math.exp(min(epsilon, 700)) * q
    rows: list[Row] = []
    for part, bound in ((SUM, raised + delta), (LARGER, np.maximum(raised, delta))):
        worst = int(np.argmax(p / bound))
        rows.append({"part": part.name, "exact": float(p[worst]), "claimed": float(bound[worst])})
    return rows


def draw(table: Table) -> Any:
    """The share of either bound that an event reaches, against the order."""
    axes = frames(2)
    for ax, (noise, by) in zip(axes, table.groups("noise"), strict=True):
        delta = float(min(by.column("delta")))
        at = 0
        for parameter, one in by.where(delta=delta).groups("parameter"):
            for part, style in ((SUM, "--"), (LARGER, "-")):
                rows = one.where(part=part.name)
                name = "μ" if noise == "Gaussian" else "ε"
                label = f"{name} = {parameter:g}, {'sum' if part is SUM else 'larger'}"
                line(ax, rows.column("order"), rows.column("exact") / rows.column("claimed"), at // 2, label, ls=style)
                at += 1
        ax.axhline(1, color="0.4", lw=1)
        finish(ax, f"{noise}, δ = {delta:g}", "order α", "largest Pr / bound", scale="xy")
        ax.set_xscale("log", base=2)
    return axes[0]


EXPERIMENT: Experiment = old_inequalities(
    (LARGER, SUM),
    title="",
    draw=draw,
    name="m-proposition-3",
    claim="(α, ε)-RDP gives Pr ≤ max(e^ε' Q, δ), ε' = ε + log(1/δ)/(α-1), for the probabilities Pr and Q of every "
    "event: stronger than (ε', δ)-DP.",
    source="[M, Prop 3]",
    full={"parameters": [0.1, 0.3, 1.0], "orders": [1.5, 2.0, 4.0, 8.0, 16.0, 32.0], "deltas": [1e-6, 1e-3, 0.1]},
    quick={"parameters": [0.3], "orders": [2.0, 8.0], "deltas": [1e-3]},
    points=points,
    measure=measure,
    caption="The largest share of the bound that any likelihood-ratio event reaches: below 1 the proposition holds.",
    subject=Subject.STATEMENT,
)
