"""Lemma 3.6: the third of its three options is said to dominate the other two."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, Table, grid
from ldpopt.reproduce.statements import Part, inequalities

FIRST = Part("third ≤ first, √(πρ)", Subject.REMARK, cells=("rho", "excess"))
SECOND = Part("third ≤ second, 1/(1+(ε-ξ-ρ)/2ρ)", Subject.REMARK, cells=("rho", "excess"))


def points(parameters: Parameters) -> list[Row]:
    """Every rho, with every excess of epsilon over xi + rho in units of 2 rho."""
    return grid(rho=parameters["rhos"], excess=parameters["excesses"])


def measure(rho: float, excess: float) -> list[Row]:
    """The three factors of the exponential."""
    u = 1 + excess
    third = 2 / (u + math.sqrt(u * u + 4 / (math.pi * rho)))
    return [{"part": FIRST.name, "exact": third, "claimed": math.sqrt(math.pi * rho)},
            {"part": SECOND.name, "exact": third, "claimed": 1 / u}]  # fmt: skip


def draw(table: Table) -> Any:
    """The first two options divided by the third."""
    axes = frames(2)
    for ax, part in zip(axes, (FIRST, SECOND), strict=True):
        rows = table.where(part=part.name)
        chosen = list(dict.fromkeys(rows.column("rho").tolist()))
        picked = [chosen[i] for i in np.linspace(0, len(chosen) - 1, min(5, len(chosen))).astype(int)]
        for at, rho in enumerate(dict.fromkeys(picked)):
            one = rows.where(rho=rho)
            line(ax, 1 + one.column("excess"), one.column("claimed") / one.column("exact"), at, f"ρ = {rho:g}")
        ax.axhline(1, color="0.5", lw=0.8)
        finish(ax, part.name.split("≤ ")[1] + " over the third", "1 + (ε-ξ-ρ)/2ρ", "ratio", scale="xy")
    return axes[0]


EXPERIMENT: Experiment = inequalities(
    (FIRST, SECOND),
    title="",
    draw=draw,
    ending="The first is never attained but approached as ρ falls, the second as ρ or ε grows.",
    name="bs-lemma-3-6-options",
    claim="Of the three options of Lemma 3.6 the last is never larger than the first two.",
    source="[BS, Lemma 3.6]",
    full={"rhos": [10.0**i for i in range(-6, 4)], "excesses": [0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0]},
    quick={"rhos": [0.01, 1.0], "excesses": [0.0, 1.0, 30.0]},
    points=points,
    measure=measure,
    caption="How much larger the first and the second option are than the third.",
    subject=Subject.REMARK,
)
