"""Figures 1 and 2 and three remarks: linear and polynomial adversaries, and where their curves cross."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize

from ldpopt.distribution import Array
from ldpopt.mechanisms import gaussian, laplace
from ldpopt.reproduce.claims.cim_table_1 import gaussian_bound, laplace_bound
from ldpopt.reproduce.drawing import curves, level, line, panel, picture
from ldpopt.reproduce.experiment import Points, Row, Subject, Table, Verdict, grid, holds_if, off_by
from ldpopt.reproduce.statements import Part, claim

BOUND = {"Laplace": laplace_bound, "Gaussian": gaussian_bound}
TAIL = {"Laplace": 45.0, "Gaussian": 13.0}


def crossing(noise: str) -> float:
    """The order at which the printed bound for linear adversaries meets the Rényi divergence; epsilon or sigma is 1."""
    pair = (laplace if noise == "Laplace" else gaussian)(1.0).pair
    return float(brentq(lambda order: BOUND[noise](order, 1.0) - pair.renyi(order).value, 1.5, 10, xtol=1e-12))


def polynomial_value(noise: str, degree: int, order: float) -> float:
    """The Rényi divergence restricted to polynomials of a degree, between answers 0 and 1 under noise of scale 1.

    With A = order/(order - 1), the divergence is minus log min E_q |h|^A over polynomials h with E_p h = 1 [CIM, eq.
    3]. This is a smooth convex program in at most `degree` unknowns, on Gauss-Legendre nodes. Both directions are
    equal, by reflection at 1/2. It shares no code with the package's own programs.
    """
    tail = TAIL[noise]
    edges = np.concatenate([np.linspace(-tail, 0, 121), np.linspace(0, 1, 13)[1:], np.linspace(1, 1 + tail, 121)[1:]])
    x, w = np.polynomial.legendre.leggauss(10)
    half = np.diff(edges)[:, None] / 2
    y, weight = (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    p, q = (weight * np.exp(-np.abs(u) if noise == "Laplace" else -u * u / 2) for u in (y, y - 1))
    p, q = p / p.sum(), q / q.sum()
    orthonormal = np.linalg.qr(np.sqrt(q)[:, None] * np.vander(y / 10, degree + 1))[0] / np.sqrt(q)[:, None]
    means = p @ orthonormal
    start = orthonormal @ (means / (means @ means))  # the solution for A = 2
    free = orthonormal @ np.linalg.svd(means[None, :])[2][1:].T
    power = order / (order - 1)

    def objective(z: Array) -> tuple[float, Array]:
        h = start + free @ z
        size = q * np.abs(h) ** (power - 1)
        total = float(size @ np.abs(h))
        return math.log(total), power * (free.T @ (size * np.sign(h))) / total

    return -float(minimize(objective, np.zeros(degree), jac=True, method="BFGS", options={"gtol": 1e-9}).fun)


def _figures_verdict(table: Table) -> Verdict:
    first, second = crossing("Laplace"), crossing("Gaussian")
    ladder = [table.column(name) for name in ("degree_1", "degree_2", "degree_3", "unrestricted")]
    rising = all(bool((low <= high * (1 + 1e-6)).all()) for low, high in pairwise(ladder))
    off = off_by(table.ratio("degree_1", "linear"))
    bounded = bool((table.column("linear") <= table.column("bound") * (1 + 1e-9)).all())
    return Verdict(
        holds_if(round(first, 1) == 3.3 and round(second, 1) == 2.3 and rising and bounded and off < 1e-3),
        f"The bound crosses the Rényi divergence at α = {first:.4f} for Laplace noise (printed: 3.3) and at α = "
        f"{second:.4f} for Gaussian (printed: 2.3). At ε = 1 and σ = 1 the exact linear value is below the bound, and "
        "degrees 1, 2, 3 rise towards the unrestricted divergence. Quadrature and exact linear value agree to "
        f"{off:.1e}.",
        {"crossing in Figure 1a": first, "crossing in Figure 2a": second, "quadrature off by, relative": off},
    )


def _figure(number: int, noise: str, what: str) -> list[Any]:
    def crossed(ax: Any, _: Table) -> None:
        at = crossing(noise)
        ax.axvline(at, color="0.6", lw=0.8)
        ax.annotate(f"α = {at:.2f}", (at, 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0), fontsize=8.5,
                    textcoords="offset points")  # fmt: skip

    left = panel(f"Figure {number}a: {noise}, {what} = 1", "order α", "nats",
                 curves("order", "unrestricted", "Rényi divergence", at=2),
                 curves("order", "bound", "linear, printed bound", at=1), curves("order", "linear", "linear, exact"),
                 crossed, where={"noise": noise})  # fmt: skip
    right = panel(f"Figure {number}b: {noise}, {what} = 1", "order α", "nats",
                  *(curves("order", f"degree_{degree}", f"degree {degree}", at=degree - 1) for degree in (1, 2, 3)),
                  curves("order", "unrestricted", "Rényi divergence", at=6, lw=1), where={"noise": noise},
                  legend="lower right" if number == 1 else "best", ylim=(0, None))  # fmt: skip
    return [left, right]


@claim(
    "cim-figures-1-2", "[CIM, Fig 1-2; CIM, eq. 3-4]",
    full={"orders": [round(1.5 + 0.25 * i, 2) for i in range(35)]}, quick={"orders": [2.0, 4.0]},
    points=grid(noise=["Laplace", "Gaussian"], order="orders"), judge=_figures_verdict,
    draw=picture(*_figure(1, "Laplace", "ε"), *_figure(2, "Gaussian", "σ"), width=4.1, height=3.9),
    caption="Restricted Rényi divergences of Laplace and Gaussian noise: the printed bound and the exact values (a), "
    "and polynomial adversaries of degree 1 to 3 (b).",
)  # fmt: skip
def adversaries(noise: str, order: float) -> Row:
    """At ε = 1 (σ = 1) the bound for linear adversaries overtakes the Rényi divergence at α ≈ 3.3 for Laplace noise and
    α ≈ 2.3 for Gaussian noise; polynomial adversaries approach the Rényi divergence as their degree grows."""
    mechanism = (laplace if noise == "Laplace" else gaussian)(1.0)
    return {
        "bound": BOUND[noise](order, 1.0),
        "linear": mechanism.restricted_renyi(order).value,
        "unrestricted": mechanism.pair.renyi(order).value,
    } | {f"degree_{degree}": polynomial_value(noise, degree, order) for degree in (1, 2, 3)}


BETTER = Part("d-dimensional bound ≤ d times composing", Subject.REMARK, cells=("d", "order", "epsilon"))
FALLS = Part("polynomial parameters fall at large α", Subject.REMARK, cells=("degree", "order"), tolerance=1e-7)
NORMAL = Part("√(2π)/σ < e^(α/2σ²) for all σ", Subject.REMARK, cells=("sigma", "order"))

LARGE = 100.0
"""Orders from here on count as large: a parameter that "eventually decreases" should fall between them."""


def _degrees(parameters: Any) -> list[Row]:
    """Pairs of neighbouring orders for every degree."""
    pairs = list(pairwise(parameters["large_orders"]))
    return [{"kind": "degree", "degree": k, "order": a, "next": b} for k in parameters["degrees"] for a, b in pairs]


def _remarks_in_numbers(table: Table) -> str:
    two = table.where(part=BETTER.name, d=2.0, order=3.0, epsilon=1.0).rows[0]
    normal, degrees = NORMAL.of(table), FALLS.of(table)
    wrong = normal.having(lambda row: row["exact"] >= row["claimed"]).column("order")
    rising = sorted({row["degree"] for row in degrees.rows if row["exact"] > row["claimed"]})
    falling = sorted({row["degree"] for row in degrees.rows} - set(rising))
    said, fall = (" and ".join(f"{degree:g}" for degree in some) or "none" for some in (rising, falling))
    return (
        f"At d = 2, α = 3, ε = 1, v = (½, ½) the d-dimensional bound is {two['exact']:.4f}, composing gives "
        f"{two['claimed']:.4f}. Up to α = {max(degrees.column('next')):g} the parameters of degree {said} still rise, "
        f"those of degree {fall} fall. The inequality for σ fails exactly for α below 2π/e = "
        f"{2 * math.pi / math.e:.4f} (largest order with a violation: {wrong.max(initial=0):g})."
    )


def _by_degree(ax: Any, table: Table) -> None:
    for at, (degree, by) in enumerate(table.groups("degree")):
        orders = np.append(by.column("order"), by.column("next")[-1])
        line(ax, orders, np.append(by.column("claimed"), by.column("exact")[-1]), at, f"degree {degree:g}",
             marker="o", ms=3)  # fmt: skip


@claim(
    "cim-remarks", "[CIM, section 5; CIM, App A]",
    BETTER, FALLS, NORMAL, ending=_remarks_in_numbers,
    full={"dimensions": [2, 3, 5], "orders": [1.5, 2.0, 2.25, 2.5, 3.0, 6.0],
          "degrees": [1, 2, 3], "large_orders": [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0, 150.0, 200.0],
          "sigmas": [round(float(s), 4) for s in np.geomspace(0.2, 20, 41)]},
    quick={"dimensions": [2], "orders": [2.0, 3.0], "degrees": [1, 2], "large_orders": [100.0, 200.0],
           "sigmas": [0.5, 1.0, 1.5, 2.0]},
    points=grid(kind=["composing"], d="dimensions", order="orders", epsilon=[0.1, 0.5, 1.0, 2.0])
    + Points((_degrees,)) + grid(kind=["normal"], order="orders", sigma="sigmas"),
    subject=Subject.REMARK,
    draw=picture(
        panel("d-dim. bound / composing, ε = 1", "order α", "ratio: above 1 contradicts",
              curves("order", "exact / claimed", "d = {d:g}", by=("d",), marker="o", ms=3), level(),
              where={"part": BETTER.name, "epsilon": 1.0}, scale="y"),
        panel("Laplace, ε = 1: polynomials", "order α", "restricted Rényi (nats)", _by_degree,
              where={"kind": "degree"}, scale="x"),
        panel("√(2π)/σ over e^(α/2σ²)", "σ", "ratio: above 1 contradicts",
              curves("sigma", "exact / claimed", "α = {order:g}", by=("order",)), level(),
              where={"part": NORMAL.name}, scale="x"), width=4.3),
    caption="Left: the d-dimensional bound over d times the one-dimensional one. Middle: parameters of polynomial "
    "adversaries. Right: the sides of the inequality.",
)  # fmt: skip
def remark(
    kind: str, order: float, d: float = 1, epsilon: float = 1.0, degree: float = 1, sigma: float = 1.0, **more: float
) -> Row:
    """The d-dimensional bound is slightly better than composing d times; polynomial Rényi parameters eventually
    decrease with α; √(2π)/σ < e^(α/2σ²) for all σ."""
    if kind == "composing":  # sensitivity 1 spread over d coordinates, as d one-dimensional mechanisms
        # 1 + 2^(d(order - 1)) sum (epsilon/d)^order, as printed for ||v||_1 = 1
        many = math.log1p(2 ** (d * (order - 1)) * d * (epsilon / d) ** order) / (order - 1)
        return BETTER(many, d * laplace_bound(order, epsilon / d))
    if kind == "degree":
        now, then = (polynomial_value("Laplace", int(degree), at) for at in (order, more["next"]))
        return FALLS(then, now) | ({} if order >= LARGE else {"part": "smaller orders"})
    return NORMAL(math.sqrt(2 * math.pi) / sigma, math.exp(order / (2 * sigma**2)))
