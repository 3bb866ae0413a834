"""A step in the proof of Lemma 1 that fails, and its repair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.mechanisms import dominating_pair
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Subject, Table, Verdict, grid


def points(parameters: Parameters) -> list[Row]:
    """The epsilons."""
    return grid(epsilon=parameters["epsilons"])


def measure(epsilon: float) -> Row:
    """The largest 1-norm of an epsilon-DP pair, and both ends of the printed chain."""
    pair = dominating_pair(epsilon)
    return {
        "exact": float(np.abs(pair.p - pair.q).sum()),
        "middle": min(2.0, math.expm1(epsilon)),
        "printed": 2 * epsilon**2,
        "repaired": 2 * epsilon,
    }


def judge(table: Table) -> Verdict:
    """Whether the printed end of the chain is above the exact norm."""
    exact, printed = table.column("exact"), table.column("printed")
    top = Table(tuple(row | {"r": float(r)} for row, r in zip(table.rows, exact / printed, strict=True))).row(
        "r", np.argmax
    )
    repaired = bool(
        (exact <= table.column("middle")).all() and (table.column("middle") <= table.column("repaired")).all()
    )
    figures = {
        "exact over printed, largest": float(top["r"]),
        "at ε": float(top["epsilon"]),
        "‖P-Q‖₁ there": float(top["exact"]),
        "2ε² there": float(top["printed"]),
    }
    if float(top["r"]) <= 1:
        return Verdict(Outcome.LOOSELY, "No counterexample at these ε.", figures)
    return Verdict(
        Outcome.FAILS,
        f"At ε = {top['epsilon']:g} randomized response has ‖P-Q‖₁ = {top['exact']:.6g} > 2ε² = "
        f"{top['printed']:.6g}. With 2ε in place of 2ε² the chain "
        f"{'holds at every ε tried' if repaired else 'fails too'}, and it is enough for the lemma: ε‖P-Q‖₁ ≤ 2ε².",
        figures,
    )


def draw(table: Table) -> Any:
    """The four quantities."""
    (ax,) = frames(1, 6.0, 4.2)
    names = (
        ("exact", "‖P-Q‖₁, exact"),
        ("printed", "2ε² (printed)"),
        ("middle", "min(2, e^ε - 1)"),
        ("repaired", "2ε"),
    )
    for at, (name, label) in enumerate(names):
        line(ax, table.column("epsilon"), table.column(name), at, label)
    finish(ax, "A step in the proof of Lemma 1", "ε (nats)", "1-norm", scale="xy")
    return ax


EXPERIMENT = Experiment(
    name="m-lemma-1-step",
    claim="‖P-Q‖₁ ≤ min(2, e^ε - 1) ≤ 2ε² for every ε-DP pair (a step in the proof of Lemma 1, as printed).",
    source="[M, Lemma 1]",
    subject=Subject.STEP,
    full={"epsilons": [round(float(e), 4) for e in np.geomspace(0.01, 3, 25)]},
    quick={"epsilons": [0.1, 1.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Below ε of about a half the printed 2ε² is less than the exact norm; 2ε is not.",
)
