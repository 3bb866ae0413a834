"""Lemma 5.2: a triangle inequality for Rényi divergences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.mechanisms import gaussian
from ldpopt.privacy import FinitePair
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Three normal laws, the middle one at some share of the way between the others; then random triples."""
    orders = {"order": parameters["orders"], "k": parameters["factors"]}
    normal = grid(part=["normal"], **orders, place=parameters["places"])
    return normal + grid(part=["random"], **orders, seed=list(range(parameters["triples"])))


def bound(first: float, second: float, order: float, k: float) -> float:
    """The right side, from D_{(k order - 1)/(k - 1)}(P || R) and D_{k order}(R || Q)."""
    return k * order / (k * order - 1) * first + second


def measure(part: str, order: float, k: float, place: float = 0.0, seed: float = 0) -> Row:
    """Both sides. `place` is the position of R in units of 1/k of the way from Q to P; 1 is the best place."""
    inner, outer = (k * order - 1) / (k - 1), k * order
    if part == "normal":
        way = place / k
        first = gaussian(1.0, 1 - way).pair.renyi(inner).value if way < 1 else 0.0
        second = gaussian(1.0, way).pair.renyi(outer).value
        return {"exact": gaussian(1.0).pair.renyi(order).value, "bound": bound(first, second, order, k)}
    p, r, q = np.random.default_rng(int(seed)).dirichlet(np.ones(4), size=3) * 0.96 + 0.01

    def one_way(a: Any, b: Any, at: float) -> float:
        return float(np.log(np.sum(b * np.exp(at * FinitePair(a, b).losses))) / (at - 1))

    return {"exact": one_way(p, q, order), "bound": bound(one_way(p, r, inner), one_way(r, q, outer), order, k)}


def judge(table: Table) -> Verdict:
    """The verdict: equality for normal laws at the best place, and never a violation elsewhere."""
    ratios = table.column("bound") / table.column("exact")
    best = table.where(part="normal", place=1.0)
    tight = best.column("bound") / best.column("exact")
    other = table.where(part="random")
    loose = other.column("bound") / other.column("exact")
    return Verdict(
        outcome_of(np.concatenate([np.minimum(ratios, 1.0), tight])),
        f"An equality for normal laws with R at 1/k of the way (to {np.abs(tight - 1).max():.1e}); for {len(loose)} "
        f"random triples the right side is {loose.min():.3g} to {loose.max():.3g} times the left.",
        {"off for normal laws": float(np.abs(tight - 1).max()), "random, smallest": float(loose.min()),
         "random, largest": float(loose.max())},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """The ratio against the place of the middle law."""
    (ax,) = frames(1, 6.0, 4.2)
    normal = table.where(part="normal")
    order = float(min(normal.column("order")))
    for at, (k, rows) in enumerate(normal.where(order=order).groups("k")):
        line(ax, rows.column("place"), rows.column("bound") / rows.column("exact"), at, f"k = {k:g}", marker="o", ms=3)
    ax.axhline(1, color="0.5", lw=0.8)
    finish(ax, f"Lemma 5.2 for normal laws, α = {order:g}", "place of R, in 1/k of the way", "right side / left side")
    return ax


EXPERIMENT = Experiment(
    name="bs-lemma-5-2",
    claim="D_α(P‖Q) ≤ kα/(kα-1) D_{(kα-1)/(k-1)}(P‖R) + D_{kα}(R‖Q) for all k, α > 1.",
    source="[BS, Lemma 5.2]",
    full={
        "orders": [1.5, 2.0, 5.0],
        "factors": [1.5, 2.0, 4.0],
        "places": [0.2, 0.5, 0.8, 1.0, 1.2, 1.5],
        "triples": 30,
    },
    quick={"orders": [2.0], "factors": [2.0], "places": [0.5, 1.0], "triples": 4},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Right side over left side for three normal laws, against where the middle one stands.",
)  # fmt: skip
