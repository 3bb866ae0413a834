"""Theorem 6: the generalization gap of mechanisms on small samples, by summing over all of them."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np

from ldpopt.privacy import Affine, RestrictedKL, capacity_bounded
from ldpopt.privacy.implications import generalization_gap
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, grid
from ldpopt.reproduce.statements import Part, inequalities

GAP = Part("gap ≤ 8√ε", cells=("n", "strength", "share"))
WITH_PINSKER = Part("gap ≤ √(ε/2)", cells=("n", "strength", "share"))


def points(parameters: Parameters) -> list[Row]:
    """Every sample size, strength of the mechanism and share of ones in the population."""
    return grid(n=parameters["sizes"], strength=parameters["strengths"], share=parameters["shares"])


def measure(n: float, strength: float, share: float) -> list[Row]:
    """The exact gap of a mechanism that prefers queries with large values on the sample, and its bound.

    Points of the sample are 0 or 1. The queries are x, 1 - x and the constant 1/2. The mechanism chooses a query with
    probability proportional to exp(strength (sum over the sample)).
    """
    size = int(n)
    values = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])  # query, point

    def law(ones: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        score = strength * (values[:, 0] * (size - ones) + values[:, 1] * ones)
        weights = np.exp(score - score.max())
        return np.asarray(weights / weights.sum())

    laws = [law(ones) for ones in range(size + 1)]
    gap = 0.0
    for sample in product((0, 1), repeat=size):
        ones = sum(sample)
        chance = share**ones * (1 - share) ** (size - ones)
        seen = (values[:, 0] * (size - ones) + values[:, 1] * ones) / size
        gap += chance * float(laws[ones] @ (seen - values @ np.array([1 - share, share])))
    epsilon = max(capacity_bounded(np.stack([a, b]), Affine(values), RestrictedKL()).value for a, b in pairwise(laws))
    return [
        {
            "part": GAP.name,
            "epsilon": epsilon,
            "exact": abs(gap),
            "claimed": min(generalization_gap(epsilon), 8 * math.sqrt(epsilon)),
        },
        {"part": WITH_PINSKER.name, "epsilon": epsilon, "exact": abs(gap), "claimed": math.sqrt(epsilon / 2)},
    ]


def draw(table: Table) -> Any:
    """Gaps against the privacy parameter, with the bounds."""
    (ax,) = frames(1, 6.2, 4.3)
    rows = table.where(part=GAP.name)
    for at, (n, by) in enumerate(rows.groups("n")):
        ax.plot(by.column("epsilon"), by.column("exact"), "os^Dv"[at % 5], ms=4, mfc="none", label=f"n = {n:g}")
    x = np.geomspace(min(rows.column("epsilon")), max(rows.column("epsilon")), 60)
    line(ax, x, np.minimum(8 * np.sqrt(x), 1), 0, "min(1, 8√ε)", ls="-")
    line(ax, x, np.sqrt(x / 2), 1, "√(ε/2), Pinsker")
    finish(ax, "Theorem 6: exact generalization gaps", "(H, KL) parameter ε (nats)", "gap", scale="xy")
    return ax


EXPERIMENT: Experiment = inequalities(
    (GAP, WITH_PINSKER),
    title="",
    draw=draw,
    name="cim-theorem-6",
    claim="A mechanism of (H, KL)-capacity bounded privacy ε chooses queries whose mean on the sample is off that "
    "on the population by at most 8√ε, in expectation.",
    source="[CIM, Thm 6]",
    ending="The second bound is no claim of the paper: it is what Pinsker's inequality would give for values in [0, "
    "1].",
    full={"sizes": [1, 2, 4, 8], "strengths": [0.01, 0.1, 0.5, 1.0, 3.0], "shares": [0.5, 0.3, 0.05]},
    quick={"sizes": [2, 4], "strengths": [0.1, 1.0], "shares": [0.5]},
    points=points,
    measure=measure,
    caption="Exact expected gaps of the exponential mechanism over three queries, against its privacy parameter.",
)
