"""A step in the proof of Proposition 4 that fails, while the proposition holds."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, Table, grid
from ldpopt.reproduce.statements import Part, old_inequalities

CELLS = ("epsilon", "n", "log10_q")
STEP = Part("2(α-1)nε² < ε√(n log 1/Q), as printed", Subject.STEP, cells=CELLS)
REPAIRED = Part("the same with nε²/2 for 2nε²", Subject.STEP, cells=CELLS)
END = Part("so 2ε√(n log 1/Q), by the repaired step", Subject.STEP, cells=CELLS)


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon, number of mechanisms and probability of an event."""
    return grid(epsilon=parameters["epsilons"], n=parameters["counts"], log10_q=parameters["logs"])


def measure(epsilon: float, n: float, log10_q: float) -> list[Row]:
    """The two sides if the proof's first case applies, log 1/Q >= n epsilon^2. Otherwise nothing is claimed."""
    log = -log10_q * math.log(10)
    order = math.sqrt(log) / (epsilon * math.sqrt(n))
    if order < 1:
        return [{"part": END.name, "exact": log, "claimed": max(log, 2 * epsilon * math.sqrt(n * log))}]
    claimed = epsilon * math.sqrt(n * log)
    return [
        {"part": STEP.name, "exact": 2 * (order - 1) * n * epsilon**2, "claimed": claimed},
        {"part": REPAIRED.name, "exact": (order - 1) * n * epsilon**2 / 2, "claimed": claimed},
        # log Pr <= (1 - 1/order)(D + log Q) with D = order n epsilon^2 / 2 [BS, Prop 1.4]; log(Pr/Q) adds log 1/Q.
        {"part": END.name, "exact": (order - 1) * n * epsilon**2 / 2 + log / order, "claimed": 2 * claimed},
    ]


def ending(table: Table) -> str:
    """A sentence with the numbers of the known counterexample."""
    rows = table.where(part=STEP.name, epsilon=0.1, n=10.0, log10_q=-6.0).rows
    said = f"At ε = 0.1, n = 10, Q = 10⁻⁶: {rows[0]['exact']:.4f} < {rows[0]['claimed']:.4f}? " if rows else ""
    return said + (
        "No. The proposition holds all the same (m-proposition-4): with the sharper D_α ≤ αε²/2 [BS, Prop 1.4] in "
        "place of Lemma 1's 2αε² the step is right."
    )


def draw(table: Table) -> Any:
    """The ratio of the two sides, printed and repaired, against the probability."""
    (ax,) = frames(1, 6.2, 4.2)
    epsilon = float(min(table.column("epsilon"), key=lambda one: abs(one - 0.1)))
    for at, (n, rows) in enumerate(table.where(part=STEP.name, epsilon=epsilon).groups("n")):
        line(
            ax, rows.column("log10_q"), rows.column("exact") / rows.column("claimed"), at, f"n = {n:g}, printed", ls="-"
        )
        other = table.where(part=REPAIRED.name, epsilon=epsilon, n=n)
        ratio = other.column("exact") / other.column("claimed")
        line(ax, other.column("log10_q"), ratio, at, f"n = {n:g}, repaired", ls=":")
    ax.axhline(1, color="0.3", lw=1)
    finish(ax, f"A step in the proof of Proposition 4, ε = {epsilon:g}", "log₁₀ Q", "left side / right side")
    return ax


EXPERIMENT: Experiment = old_inequalities(
    (STEP, REPAIRED, END),
    title="",
    draw=draw,
    ending=ending,
    name="m-proposition-4-step",
    claim="With α = √(log 1/Q)/(ε√n) ≥ 1, exp(2(α-1)nε²) < exp(ε√(n log 1/Q)) (a step in the proof of Proposition 4).",
    source="[M, Prop 4]",
    full={"epsilons": [0.01, 0.1, 0.5], "counts": [1, 10, 100],
          "logs": [-0.5, -1.0, -2.0, -3.0, -4.0, -6.0, -9.0, -12.0, -20.0, -40.0]},
    quick={"epsilons": [0.1], "counts": [10], "logs": [-1.0, -6.0]},
    points=points,
    measure=measure,
    caption="Left side over right side of the step: above 1 it fails. Dotted: with the sharper constant.",
    subject=Subject.STEP,
)  # fmt: skip
