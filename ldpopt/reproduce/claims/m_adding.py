"""Proposition 1: Rényi divergences add under composition, and never grow under post-processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy import renyi, zcdp
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid


def points(parameters: Parameters) -> list[Row]:
    """Random pairs of mechanisms at every order. Order 0 stands for rho of zCDP."""
    return grid(order=parameters["orders"], seed=list(range(parameters["pairs"])))


def measure(order: float, seed: float) -> Row:
    """The sum of divergences, and the divergence of the product, of an adaptive choice and of a randomly merged report.

    The adaptive second mechanism is one of two, chosen by the first report. Their parameter is the larger of their
    divergences, over both directions of pairs of rows.
    """
    rng = np.random.default_rng(int(seed))
    first, second, other = (rng.dirichlet(np.ones(3), size=2) * 0.94 + 0.02 for _ in range(3))

    def of(rows: Array) -> float:
        return zcdp(rows).value if order == 0 else renyi(rows, order).value

    product = np.einsum("iy,iz->iyz", first, second).reshape(2, -1)
    adaptive = np.concatenate([first[:, :1] * second, first[:, 1:2] * other, first[:, 2:] * second], axis=1)
    merged = product @ rng.dirichlet(np.ones(4), size=product.shape[1])
    same = np.einsum("iy,iz->iyz", first, first).reshape(2, -1)
    return {
        "sum": of(first) + max(of(second), of(other)), "adaptive": of(adaptive), "product": of(product),
        "merged": of(merged), "twice": 2 * of(first), "same": of(same),
    }  # fmt: skip


def judge(table: Table) -> Verdict:
    """The verdict: sums are never exceeded, and attained by two uses of one mechanism; post-processing never helps."""
    total = table.column("sum")
    above = float(np.max(np.maximum(table.column("adaptive"), table.column("product")) / total))
    equal = float(np.max(np.abs(table.column("same") / table.column("twice") - 1)))
    grown = float(np.max(table.column("merged") / table.column("product")))
    right = above <= 1 + 1e-9 and equal <= 1e-8 and grown <= 1 + 1e-9
    return Verdict(
        Outcome.HOLDS if right else Outcome.FAILS,
        f"Two uses of one mechanism have exactly twice its divergence (to {equal:.1e}); an adaptive choice has at most "
        f"{above:.4f} of the sum, and a randomly merged report at most {grown:.4f} of the divergence it had.",
        {"two uses over twice one, off by": equal, "adaptive over sum, largest": above, "merged over before": grown},
    )


def draw(table: Table) -> Any:
    """The divergence of the composition against the sum."""
    (ax,) = frames(1, 5.4, 4.5)
    for at, (order, rows) in enumerate(table.groups("order")):
        name = "zCDP ρ" if order == 0 else f"order {order:g}"
        ax.plot(rows.column("sum"), rows.column("adaptive"), "osD^v"[at % 5], ms=4, mfc="none", color=COLOURS[at],
                ls="", label=name)  # fmt: skip
    ends = [min(table.column("adaptive")), max(table.column("sum"))]
    ax.plot(ends, ends, color="0.6", lw=1, label="equal")
    finish(ax, "Proposition 1: two mechanisms, the second chosen adaptively", "sum of the parameters (nats)",
           "exact (nats)", scale="xy")  # fmt: skip
    return ax


EXPERIMENT = Experiment(
    name="m-proposition-1",
    claim="(α, ε₁)-RDP and (α, ε₂)-RDP compose adaptively to (α, ε₁+ε₂)-RDP, ρ of zCDP likewise, and neither grows "
    "under post-processing.",
    source="[M, Prop 1; BS, Lemma 2.3; BS, Lemma 1.7; BS, Lemma 1.8]",
    full={"orders": [0.0, 1.0, 1.5, 2.0, 8.0], "pairs": 40},
    quick={"orders": [0.0, 2.0], "pairs": 5},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The exact divergence of two mechanisms together against the sum of their parameters; order 0 in the rows "
    "stands for ρ of zCDP.",
)
