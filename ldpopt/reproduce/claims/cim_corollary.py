"""Corollary 1: a lower bound on the Rényi divergence of Laplace noise that no finite order reaches."""

from __future__ import annotations

from typing import Any

from ldpopt.reproduce.claims.cim_unrestricted import COROLLARY, LAPLACE, measure, points
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Table
from ldpopt.reproduce.statements import inequalities


def ending(table: Table) -> str:
    """The counterexample in numbers."""
    row = table.where(part=COROLLARY.name, shift=1.0, order=2.0, d=1.0).rows[0]
    return (
        f"At α = 2, ε‖v‖₁ = 1 the divergence is {row['exact']:.6g}, and it is below ε‖v‖₁ at every finite order. The "
        "proof drops the factor 2^-d; Table 1 has it."
    )


def draw(table: Table) -> Any:
    """The divergence divided by epsilon ||v||_1, against the order, with both bounds."""
    (ax,) = frames(1, 6.2, 4.2)
    for at, (shift, by) in enumerate(table.where(part=COROLLARY.name, d=1.0).groups("shift")):
        line(ax, by.column("order"), by.column("exact") / by.column("claimed"), at, f"ε = {shift:g}", marker="o", ms=3)
        bound = table.where(part=LAPLACE.name, d=1.0, shift=shift)
        line(ax, bound.column("order"), bound.column("claimed") / by.column("claimed"), at, lw=1, ls=":")
    ax.axhline(1, color="0.3", lw=1.2, label="Corollary 1")
    ax.plot([], [], ":", color="0.3", label="1 - log 2/(ε(α-1)), Table 1")
    finish(ax, "Laplace noise: D_α over ε‖v‖₁", "order α", "ratio", scale="x")
    ax.set_xscale("log", base=2)
    ax.set_ylim(-0.1, 1.1)
    return ax


EXPERIMENT: Experiment = inequalities(
    (COROLLARY, LAPLACE),
    title="",
    draw=draw,
    ending=ending,
    name="cim-corollary-1",
    claim="D_α(Lap(0, 1/ε), Lap(v, 1/ε)) ≥ ε‖v‖₁ for every α ≥ 1 (as printed).",
    source="[CIM, Cor 1; CIM, Table 1]",
    full={"shifts": [0.1, 0.5, 1.0, 3.0], "orders": [1.5, 2.0, 3.0, 6.0, 20.0, 60.0], "dimensions": [1, 3]},
    quick={"shifts": [1.0], "orders": [2.0, 6.0], "dimensions": [1]},
    points=points,
    measure=measure,
    caption="The exact divergence (solid) stays below the printed bound 1 and above Table 1's (dotted).",
)
