"""Adaptive composition against limited adversaries, an open question: parameters do not simply add up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.privacy import RestrictedKL, RestrictedRenyi, capacity_bounded
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, Table, grid
from ldpopt.reproduce.laws import random_law, tilted
from ldpopt.reproduce.statements import Part, inequalities

FIXED = Part("Theorem 4, mechanisms fixed in advance", cells=("divergence", "seed"), tolerance=1e-6)
ADAPTIVE = Part("the same sum, adaptively", Subject.QUESTION, cells=("divergence", "seed"), tolerance=1e-6)
NOTHING = Part("a second step that reveals nothing", Subject.QUESTION, cells=("divergence", "seed"), tolerance=1e-6)
OF: dict[str, RestrictedKL | RestrictedRenyi] = {"KL": RestrictedKL(), "Rényi of order 3": RestrictedRenyi(3.0)}


def points(parameters: Parameters) -> list[Row]:
    """Random pairs of mechanisms under both divergences."""
    return grid(divergence=list(OF), seed=list(range(parameters["pairs"])))


def measure(divergence: str, seed: float) -> list[Row]:
    """The joint parameter of affine adversaries a y + b z + c, and the sum of the parameters of the two steps."""
    rng = np.random.default_rng([29, int(seed)])
    of, feature = OF[divergence], np.array([0.0, 1.0, 2.0])
    p = random_law(rng, 3, least=0.03)
    first = np.stack([p, tilted(rng, p, 1.0)])
    seconds = [random_law(rng, 2, least=0.05) for _ in range(3)]
    second = np.stack([np.stack([law, tilted(rng, law, 0.5)]) for law in seconds])  # report, world, outcome
    choice = rng.integers(0, 3, 3) if seed else np.arange(3)
    silent = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # reports whether the first report was 1, without new data
    both = np.column_stack([np.repeat(feature, 2), np.tile([0.0, 1.0], 3)])

    def parameter(rows: Any, features: Any) -> float:
        return float(capacity_bounded(rows, features, of).lower)

    alone, z = parameter(first, feature), np.array([0.0, 1.0])
    each = [parameter(pair, z) for pair in second]
    rows: list[Row] = []
    for part, laws, more in (
        (FIXED, [second[0]] * 3, each[0]),
        (ADAPTIVE, [second[c] for c in choice], max(each[c] for c in choice)),
        (NOTHING, [np.stack([law, law]) for law in silent], 0.0),
    ):
        joint = np.stack([np.concatenate([first[world, y] * laws[y][world] for y in range(3)]) for world in range(2)])
        used = joint.sum(axis=0) > 0
        rows.append({"part": part.name, "exact": parameter(joint[:, used], both[used]), "claimed": alone + more})
    return rows


def draw(table: Table) -> Any:
    """Joint parameters against sums."""
    (ax,) = frames(1, 5.6, 4.6)
    for at, part in enumerate((FIXED, ADAPTIVE, NOTHING)):
        rows = table.where(part=part.name)
        ax.plot(rows.column("claimed"), rows.column("exact"), "os^"[at], ms=4.5, mfc="none", color=COLOURS[at], ls="",
                label=part.name)  # fmt: skip
    ends = [0.8 * min(table.column("claimed")), 1.2 * max(table.column("exact"))]
    ax.plot(ends, ends, color="0.5", lw=1, label="equal: above it the sum is too small")
    finish(ax, "Sequential composition, affine adversaries", "sum of the parameters (nats)", "joint parameter (nats)",
           scale="xy")  # fmt: skip
    return ax


EXPERIMENT: Experiment = inequalities(
    (FIXED, ADAPTIVE, NOTHING),
    title="",
    draw=draw,
    ending="A second step that looks at the first report alone, and not at the data, has parameter 0; yet it hands the "
    "adversary a function of the report that was not in the class. So no bound by the two parameters alone can hold "
    "unless the second step's choice is a function in the class.",
    name="cim-adaptive-composition",
    claim="The parameters of capacity bounded privacy add up when the second mechanism is chosen in view of the first "
    "report.",
    source="[CIM, Thm 4; CIM, section 7]",
    full={"pairs": 40},
    quick={"pairs": 4},
    points=points,
    measure=measure,
    caption="The joint parameter of two steps against the sum of theirs, for steps fixed in advance and chosen "
    "adaptively.",
    subject=Subject.QUESTION,
)
