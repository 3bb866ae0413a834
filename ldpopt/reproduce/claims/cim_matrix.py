"""Theorem 5: the matrix mechanism against a linear adversary, and where the printed bound is false."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.mechanisms import MatrixMechanism
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid

PREFIXES = np.tril(np.ones((3, 3)))
STRATEGIES = {
    "counts": np.eye(3),
    "prefix sums": PREFIXES,
    "total and counts": np.vstack([np.ones(3), np.eye(3)]),
}
"""Three ways to answer all prefix sums of three counts."""


def points(parameters: Parameters) -> list[Row]:
    """Every strategy, epsilon and order."""
    return grid(strategy=list(STRATEGIES), order=parameters["orders"], epsilon=parameters["epsilons"])


def measure(strategy: str, order: float, epsilon: float) -> Row:
    """The exact restricted divergence of the released prefix sums, and the printed bound."""
    rows = STRATEGIES[strategy]
    bound = math.log1p(2 ** (len(rows) * (order - 1)) * epsilon**order) / (order - 1)
    exact = MatrixMechanism(PREFIXES, rows, epsilon).restricted_renyi(order).lower
    return {"printed": bound, "exact": exact}


def judge(table: Table) -> Verdict:
    """Whether the exact value stays below the printed bound."""
    ratio = table.column("exact") / table.column("printed")
    shown = table.with_column("r", ratio)
    top = shown.row("r", np.argmax)
    false = Table(tuple(row for row in shown.rows if float(row["r"]) > 1 + 1e-9))
    figures = {"false cells": len(false.rows), "cells": len(ratio), "exact over printed, largest": float(ratio.max())}
    if not false.rows:
        return Verdict(Outcome.LOOSELY, "No counterexample among the cells.", figures)
    lowest = min(float(row["order"]) for row in false.rows)
    return Verdict(
        Outcome.FAILS,
        f"False in {len(false.rows)} of {len(ratio)} cells, all of order {lowest:g} or more and at small ε: with the "
        f"strategy of {top['strategy']} at ε = {top['epsilon']:g}, α = {top['order']:g} the exact value is "
        f"{top['exact']:.6g}, the printed bound {top['printed']:.6g}. It rests on Theorem 13, which fails there.",
        figures,
    )


def draw(table: Table) -> Any:
    """Exact value and printed bound against epsilon, for each strategy."""
    axes = frames(len(STRATEGIES), 4.2, 4.0)
    for ax, (name, by_strategy) in zip(axes, table.groups("strategy"), strict=True):
        for at, (order, rows) in enumerate(by_strategy.groups("order")):
            line(
                ax, rows.column("epsilon"), rows.column("exact"), at, f"α = {order:g}, exact", ls="-", marker="o", ms=3
            )
            line(ax, rows.column("epsilon"), rows.column("printed"), at, f"α = {order:g}, printed bound", ls=":")
        finish(ax, f"Strategy: {name}", "ε (nats)", "restricted Rényi divergence (nats)", scale="xy")
    return axes[0]


EXPERIMENT = Experiment(
    name="cim-theorem-5",
    claim="The matrix mechanism with a strategy of s rows has (lin, Rényi)-capacity bounded privacy of at most "
    "log(1 + 2^(s(α-1)) ε^α)/(α-1).",
    source="[CIM, Thm 5]",
    full={"epsilons": [0.01, 0.03, 0.1, 0.3, 1.0], "orders": [2.0, 3.0, 6.0]},
    quick={"epsilons": [0.03, 1.0], "orders": [2.0, 6.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Exact restricted Rényi divergences of three strategies (solid) and the printed bound (dotted): false where"
    " it is below.",
)
