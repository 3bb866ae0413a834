"""The classical noise of the Gaussian mechanism, stated in section II, against the exact delta."""

from __future__ import annotations

import math
from typing import Any

from ldpopt.mechanisms import gaussian
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, grid
from ldpopt.reproduce.statements import Part, old_inequalities

INSIDE = Part("δ is enough, ε < 1", cells=("epsilon", "delta"))
BEYOND = Part("δ is enough, ε ≥ 1 (not claimed)", cells=("epsilon", "delta"))


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon and delta."""
    return grid(epsilon=parameters["epsilons"], delta=parameters["deltas"])


def measure(epsilon: float, delta: float) -> Row:
    """The exact delta of noise of the classical size, and the smallest noise that is enough."""
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    low, high = sigma / 50, 50 * sigma
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian(middle).pair.hockey_stick(epsilon).value > delta else (low, middle)
    exact = float(gaussian(sigma).pair.hockey_stick(epsilon).value)
    return {"part": (INSIDE if epsilon < 1 else BEYOND).name, "exact": exact, "claimed": delta, "needed": high / sigma}


def ending(table: Table) -> str:
    """A sentence about how much larger the noise is than needed."""
    inside = table.where(part=INSIDE.name)
    share = inside.column("needed")
    far = table.where(part=BEYOND.name)
    wrong = far.column("epsilon")[far.column("exact") > far.column("claimed")]
    more = (
        f" The formula first fails at ε = {wrong.min():g}." if len(wrong) else " It holds a little beyond ε = 1, too."
    )
    return (
        f"The noise that is needed is {share.min():.3f} to {share.max():.3f} of the classical one, for ε below 1.{more}"
    )


def draw(table: Table) -> Any:
    """The ratio of the exact to the claimed delta, and the noise that is needed."""
    left, right = frames(2)
    for at, (delta, rows) in enumerate(table.groups("delta")):
        line(left, rows.column("epsilon"), rows.column("exact") / rows.column("claimed"), at, f"δ = {delta:g}")
        line(right, rows.column("epsilon"), rows.column("needed"), at, f"δ = {delta:g}")
    left.axhline(1, color="0.4", lw=1)
    left.axvline(1, color="0.6", lw=1, ls=":")
    right.axvline(1, color="0.6", lw=1, ls=":")
    finish(left, "Noise σ = √(2 log 1.25/δ)/ε", "ε", "exact δ / claimed δ", scale="xy")
    finish(right, "Noise needed", "ε", "σ needed / classical σ", scale="x")
    return left


EXPERIMENT: Experiment = old_inequalities(
    (INSIDE,),
    title="",
    draw=draw,
    ending=ending,
    name="m-section-2",
    claim="Gaussian noise of σ > √(2 log 1.25/δ) Δ/ε is (ε, δ)-DP for every ε < 1.",
    source="[M, section II]",
    full={
        "epsilons": [0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.5, 3.0, 5.0, 8.0, 10.0, 15.0, 20.0],
        "deltas": [1e-10, 1e-6, 1e-3, 0.05],
    },
    quick={"epsilons": [0.1, 0.999, 10.0], "deltas": [1e-6]},
    points=points,
    measure=measure,
    caption="Left: the exact δ of the classical noise over the claimed one. Right: the share of that noise that is "
    "needed. Dotted: ε = 1, up to which it is claimed.",
)
