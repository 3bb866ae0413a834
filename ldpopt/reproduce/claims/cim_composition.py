"""Theorems 1 to 4: post-processing, convexity and composition against limited adversaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy import RestrictedAlpha, RestrictedKL, RestrictedRenyi, capacity_bounded
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of

DIVERGENCES: dict[str, RestrictedKL | RestrictedRenyi | RestrictedAlpha] = {
    "KL": RestrictedKL(),
    "Rényi of order 3": RestrictedRenyi(3.0),
    "α = 3": RestrictedAlpha(3.0),
}
STATEMENTS = ("Theorem 1", "Theorem 2", "Theorem 3", "Theorem 4")


def points(parameters: Parameters) -> list[Row]:
    """Random pairs of mechanisms, under both divergences of the statements."""
    made = grid(statement=list(STATEMENTS), divergence=list(DIVERGENCES), seed=list(range(parameters["pairs"])))
    speaks = {"Theorem 2": {"KL", "α = 3"}, "Theorem 1": set(DIVERGENCES)}
    return [row for row in made if row["divergence"] in speaks.get(str(row["statement"]), {"KL", "Rényi of order 3"})]


def measure(statement: str, divergence: str, seed: float) -> Row:
    """Claimed and exact parameter for affine adversaries, with one feature for each output."""
    rng = np.random.default_rng([STATEMENTS.index(statement), int(seed)])
    of = DIVERGENCES[divergence]
    first, second = rng.dirichlet(np.ones(3), size=2) * 0.97 + 0.01, rng.dirichlet(np.ones(4), size=2) * 0.96 + 0.01
    one, two = np.array([0.0, 1.0, 2.0]), rng.normal(size=4)

    def exact(rows: Array, features: Array) -> float:
        return capacity_bounded(rows, features, of).lower

    if statement == "Theorem 1":  # a linear map R^s -> R^d of reports on a lattice, some of which it merges
        s, d = int(rng.integers(2, 4)), int(rng.integers(1, 4))
        reports: Array = rng.integers(-1, 2, size=(6, s)).astype(np.float64)
        laws = rng.dirichlet(np.ones(6), size=2) * 0.94 + 0.01
        mapped = reports @ rng.integers(-2, 3, size=(s, d)).astype(np.float64)
        merged, place = np.unique(mapped, axis=0, return_inverse=True)
        counts = [np.bincount(place.ravel(), weights=law, minlength=len(merged)) for law in laws]
        after: Array = np.array(counts, dtype=np.float64)
        return {"claimed": exact(laws, reports), "exact": exact(after, merged) if len(merged) > 1 else 0.0}
    if statement == "Theorem 2":  # a coin between two mechanisms on the same reports
        other = rng.dirichlet(np.ones(3), size=2) * 0.97 + 0.01
        coin = float(rng.random())
        tossed = exact(coin * first + (1 - coin) * other, one)
        return {"claimed": max(exact(first, one), exact(other, one)), "exact": tossed}
    features = np.column_stack([np.repeat(one, 4), np.tile(two, 3)])  # H1 + H2 on pairs of reports
    if statement == "Theorem 3":  # on disjoint data sets only one of the two differs
        rows = [np.einsum("iy,iz->iyz", first, np.stack([second[0], second[0]])).reshape(2, -1),
                np.einsum("iy,iz->iyz", np.stack([first[0], first[0]]), second).reshape(2, -1)]  # fmt: skip
        return {"claimed": max(exact(first, one), exact(second, two)), "exact": max(exact(r, features) for r in rows)}
    together = np.einsum("iy,iz->iyz", first, second).reshape(2, -1)
    return {"claimed": exact(first, one) + exact(second, two), "exact": exact(together, features)}


def judge(table: Table) -> Verdict:
    """The ratio of claimed to exact values for every statement."""
    some = Table(tuple(row for row in table.rows if float(row["exact"]) > 1e-9 or not float(row["claimed"]) >= 0))
    ratios = some.column("claimed") / some.column("exact")
    shown = some.with_column("r", ratios)
    said = {str(name): rows.column("r") for name, rows in shown.groups("statement")}
    words = ", ".join(f"{name} {one.min():.4g} to {one.max():.3g}" for name, one in said.items())
    return Verdict(
        outcome_of(ratios, 1e-5),
        f"Never below the exact parameter, for fixed (not adaptive) mechanisms. Claimed over exact: {words}.",
        {f"{name}, {word}": float(pick(one)) for name, one in said.items()
         for word, pick in (("smallest", np.min), ("largest", np.max))},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """Claimed against exact values, with a colour for each statement."""
    (ax,) = frames(1, 5.6, 4.6)
    for at, (name, rows) in enumerate(table.groups("statement")):
        ax.plot(rows.column("exact"), rows.column("claimed"), "osD^"[at % 4], ms=5, mfc="none", color=COLOURS[at],
                ls="", label=str(name))  # fmt: skip
    ends = [max(1e-5, min(table.column("exact"))) * 0.8, max(table.column("claimed")) * 1.2]
    ax.plot(ends, ends, color="0.6", lw=1, label="equal")
    finish(ax, "Theorems 1-4: affine adversaries", "exact parameter (nats)", "claimed parameter (nats)", scale="xy")
    return ax


EXPERIMENT = Experiment(
    name="cim-theorems-1-4",
    claim="Against a limited adversary privacy survives post-processing inside the class (1) and a coin between "
    "mechanisms (2); disjoint data sets give the larger parameter (3), the same one the sum (4), for H1 + H2.",
    source="[CIM, Thm 1; CIM, Thm 2; CIM, Thm 3; CIM, Thm 4]",
    full={"pairs": 25},
    quick={"pairs": 3},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The parameter that each theorem gives against the exact one, on random mechanisms.",
)
