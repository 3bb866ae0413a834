"""Three remarks in the text: d-fold composition, polynomial adversaries at large orders, and a bound for Gaussians."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.reproduce.claims.cim_figures import polynomial_value
from ldpopt.reproduce.claims.cim_table_1 import laplace_bound
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, Table, grid
from ldpopt.reproduce.statements import Part, inequalities

BETTER = Part("d-dimensional bound ≤ d times composing", Subject.REMARK, cells=("d", "order", "epsilon"))
FALLS = Part("polynomial parameters fall at large α", Subject.REMARK, cells=("degree", "order"), tolerance=1e-7)
NORMAL = Part("√(2π)/σ < e^(α/2σ²) for all σ", Subject.REMARK, cells=("sigma", "order"))

LARGE = 100.0
"""Orders from here on count as large: a parameter that "eventually decreases" should fall between them."""


def points(parameters: Parameters) -> list[Row]:
    """Dimensions, orders and epsilons; pairs of large orders for every degree; orders and sigmas."""
    orders = parameters["large_orders"]
    steps = [{"order": a, "next": b} for a, b in pairwise(orders)]
    return [
        *grid(kind=["composing"], d=parameters["dimensions"], order=parameters["orders"], epsilon=[0.1, 0.5, 1.0, 2.0]),
        *({"kind": "degree", "degree": k} | step for k in parameters["degrees"] for step in steps),
        *grid(kind=["normal"], order=parameters["orders"], sigma=parameters["sigmas"]),
    ]


def measure(
    kind: str, order: float, d: float = 1, epsilon: float = 1.0, degree: float = 1, sigma: float = 1.0, **more: float
) -> Row:
    """Both sides of a remark."""
    if kind == "composing":  # sensitivity 1 spread over d coordinates, as d one-dimensional mechanisms
        # 1 + 2^(d(order - 1)) sum (epsilon/d)^order, as printed for ||v||_1 = 1
        many = math.log1p(2 ** (d * (order - 1)) * d * (epsilon / d) ** order) / (order - 1)
        return {"part": BETTER.name, "exact": many, "claimed": d * laplace_bound(order, epsilon / d)}
    if kind == "degree":
        now, then = (polynomial_value("Laplace", int(degree), at) for at in (order, more["next"]))
        return {"part": FALLS.name if order >= LARGE else "smaller orders", "exact": then, "claimed": now}
    return {"part": NORMAL.name, "exact": math.sqrt(2 * math.pi) / sigma, "claimed": math.exp(order / (2 * sigma**2))}


def ending(table: Table) -> str:
    """Sentences with the values from theory for each remark."""
    rows = table.where(part=BETTER.name)
    two = rows.where(d=2.0, order=3.0, epsilon=1.0).rows[0]
    normal = table.where(part=NORMAL.name)
    wrong = normal.column("order")[normal.column("exact") >= normal.column("claimed")]
    degrees = table.where(part=FALLS.name)
    rising = sorted({float(row["degree"]) for row in degrees.rows if float(row["exact"]) > float(row["claimed"])})
    falling = sorted({float(row["degree"]) for row in degrees.rows} - set(rising))
    said, fall = (" and ".join(f"{degree:g}" for degree in some) or "none" for some in (rising, falling))
    largest = max(degrees.column("next"))
    return (
        f"At d = 2, α = 3, ε = 1, v = (½, ½) the d-dimensional bound is {two['exact']:.4f}, composing gives "
        f"{two['claimed']:.4f}. Up to α = {largest:g} the parameters of degree {said} still rise, those of degree "
        f"{fall} fall. The inequality for σ fails exactly for α below 2π/e = {2 * math.pi / math.e:.4f} (largest "
        f"order with a violation: {wrong.max(initial=0):g})."
    )


def draw(table: Table) -> Any:
    """A panel for each remark."""
    first, second, third = frames(3, 4.3, 4.0)
    rows = table.where(part=BETTER.name, epsilon=1.0)
    for at, (d, by) in enumerate(rows.groups("d")):
        line(first, by.column("order"), by.column("exact") / by.column("claimed"), at, f"d = {d:g}", marker="o", ms=3)
    first.axhline(1, color="0.4", lw=1)
    finish(first, "d-dim. bound / composing, ε = 1", "order α", "ratio: above 1 contradicts", scale="y")
    for at, (degree, by) in enumerate(table.where(kind="degree").groups("degree")):
        orders = np.append(by.column("order"), by.column("next")[-1])
        values = np.append(by.column("claimed"), by.column("exact")[-1])
        line(second, orders, values, at, f"degree {degree:g}", marker="o", ms=3)
    finish(second, "Laplace, ε = 1: polynomials", "order α", "restricted Rényi (nats)", scale="x")
    for at, (order, by) in enumerate(table.where(part=NORMAL.name).groups("order")):
        line(third, by.column("sigma"), by.column("exact") / by.column("claimed"), at, f"α = {order:g}")
    third.axhline(1, color="0.4", lw=1)
    finish(third, "√(2π)/σ over e^(α/2σ²)", "σ", "ratio: above 1 contradicts", scale="x")
    return first


EXPERIMENT: Experiment = inequalities(
    (BETTER, FALLS, NORMAL),
    title="",
    draw=draw,
    ending=ending,
    name="cim-remarks",
    claim="The d-dimensional bound is slightly better than composing d times; polynomial Rényi parameters eventually "
    "decrease with α; √(2π)/σ < e^(α/2σ²) for all σ.",
    source="[CIM, section 5; CIM, App A]",
    full={
        "dimensions": [2, 3, 5], "orders": [1.5, 2.0, 2.25, 2.5, 3.0, 6.0],
        "degrees": [1, 2, 3], "large_orders": [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0, 150.0, 200.0],
        "sigmas": [round(float(s), 4) for s in np.geomspace(0.2, 20, 41)],
    },
    quick={"dimensions": [2], "orders": [2.0, 3.0], "degrees": [1, 2], "large_orders": [100.0, 200.0],
           "sigmas": [0.5, 1.0, 1.5, 2.0]},
    points=points,
    measure=measure,
    caption="Left: the d-dimensional bound over d times the one-dimensional one. Middle: parameters of polynomial "
    "adversaries. Right: the sides of the inequality.",
    subject=Subject.REMARK,
)  # fmt: skip
