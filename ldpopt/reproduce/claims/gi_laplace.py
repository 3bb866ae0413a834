"""Figure 3: the Laplace mechanism, with the lines of its epsilon and of its total variation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.mechanisms import laplace
from ldpopt.reproduce.claims.gi_regions import region
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid


def points(parameters: Parameters) -> list[Row]:
    """The epsilons."""
    return grid(epsilon=parameters["epsilons"])


def measure(epsilon: float) -> list[Row]:
    """The exact curve, and the two regions."""
    t = np.linspace(0, 1, 201)
    eta = 1 - math.exp(-epsilon / 2)
    exact = laplace(epsilon).pair.trade_off_at(t)
    pure = region(t, epsilon, 0.0, math.tanh(epsilon / 2))
    both = region(t, epsilon, 0.0, eta)
    return [
        {"type_one": float(a), "exact": float(b), "pure": float(c), "with_eta": float(d)}
        for a, b, c, d in zip(t, exact, pure, both, strict=True)
    ]


def judge(table: Table) -> Verdict:
    """The verdict: the curve is above both regions and touches the line of eta; and the area between."""
    figures: dict[str, float] = {}
    below, apart = 0.0, 0.0
    for epsilon, rows in table.groups("epsilon"):
        exact, eta = rows.column("exact"), rows.column("with_eta")
        below = max(below, float(np.max(eta - exact)))
        variation = 1 - float(np.min(rows.column("type_one") + exact))
        apart = max(apart, abs(variation - (1 - math.exp(-float(epsilon) / 2))))
        for name, column in (("ε alone", rows.column("pure")), ("ε and η", eta)):
            figures[f"mean distance to the curve, {name}, ε = {epsilon:g}"] = float(np.mean(exact - column))
    better = all(figures[name] < figures[name.replace("ε and η", "ε alone")] for name in figures if "ε and η" in name)
    right = below <= 1e-9 and apart <= 1e-3 and better
    attained = right and all(distance <= 1e-6 for name, distance in figures.items() if "ε and η" in name)
    first, second = list(figures.values())[-2:]
    return Verdict(
        (Outcome.HOLDS if attained else Outcome.LOOSELY) if right else Outcome.FAILS,
        "The curve lies above the region of (ε, η), touches its η-line, and leaves the region elsewhere: the mean "
        f"distance falls from {first:.4f} with ε alone to {second:.4f} with η = 1 - exp(-ε/2) too, not to zero.",
        {"largest violation": max(below, 0.0), "total variation off its formula by": apart, **figures},
    )


def draw(table: Table) -> Any:
    """Figure 3, for the last epsilon."""
    epsilon, rows = list(table.groups("epsilon"))[-1]
    (ax,) = frames(1, 5.6, 4.6)
    t = rows.column("type_one")
    line(ax, t, rows.column("exact"), 2, "Laplace mechanism, exact", ls="-")
    line(ax, t, rows.column("pure"), 0, "region of ε", ls="--")
    line(ax, t, rows.column("with_eta"), 1, "region of ε and η = 1 - exp(-ε/2)", ls="-.")
    finish(ax, f"Figure 3: Laplace mechanism, ε = {epsilon:g}", "type I error", "type II error")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return ax


EXPERIMENT = Experiment(
    name="gi-figure-3",
    claim="The total variation 1 - exp(-ε/2) of the Laplace mechanism bounds its privacy region better than ε alone.",
    source="[GI, Fig 3; GI, section VI-A]",
    full={"epsilons": [0.3, 3.0, 1.0]},
    quick={"epsilons": [1.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The Laplace mechanism's exact trade-off curve, and what ε alone and ε with η say of it.",
)
