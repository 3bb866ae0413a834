"""Table 1: restricted divergences of Laplace and Gaussian noise, and where the printed bounds are false."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.mechanisms import gaussian, laplace
from ldpopt.mechanisms.matrix_mechanism import vector_divergence
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid

RENYI = [f"Rényi, {noise}{more}" for more in ("", ", d = 2") for noise in ("Laplace", "Gaussian")]


def laplace_bound(order: float, epsilon: float, d: int = 1) -> float:
    """The printed bound for Laplace noise and a change of 1 in each of d coordinates [CIM, Table 1]."""
    return math.log1p(2 ** (d * (order - 1)) * d * epsilon**order) / (order - 1)


def gaussian_bound(order: float, sigma: float, d: int = 1) -> float:
    """The printed bound for Gaussian noise and the same change [CIM, Table 1]; sqrt(2 pi) is 2 sqrt(pi/2)."""
    base = 2**d * math.sqrt(math.pi / 2)
    return math.log1p(base ** (order - 1) * d / sigma**order) / (order - 1)


def points(parameters: Parameters) -> list[Row]:
    """The KL rows at every size of the shift, and the Rényi rows also at every order."""
    return [
        *grid(row=["KL, Laplace", "KL, Gaussian"], shift=parameters["shifts"]),
        *grid(row=RENYI, shift=parameters["shifts"], order=parameters["orders"]),
    ]


def measure(row: str, shift: float, order: float = 1.0) -> Row:
    """The printed and the exact restricted parameter; `shift` is epsilon, or 1/sigma."""
    is_laplace = "Laplace" in row
    noise = laplace(shift) if is_laplace else gaussian(1 / shift)
    if row.startswith("KL"):
        root = math.sqrt(1 + shift**2)
        printed = root - 1 + math.log1p(-(((root - 1) / shift) ** 2)) if is_laplace else shift**2 / 2
        return {"printed": printed, "exact": noise.restricted_kl().value}
    d = 2 if row.endswith("d = 2") else 1
    bound = laplace_bound(order, shift, d) if is_laplace else gaussian_bound(order, 1 / shift, d)
    if d == 1:
        exact = noise.restricted_renyi(order).lower
    elif is_laplace:
        exact = vector_divergence(np.full(d, shift), np.eye(d), order)[0]
    else:  # only the direction of the change matters: Gaussian noise is the same in all
        exact = gaussian(1 / (math.sqrt(d) * shift)).restricted_renyi(order).lower
    return {"printed": bound, "exact": exact, "small_shift": d * order * shift**2 / (4 if is_laplace else 2)}


def judge(table: Table) -> Verdict:
    """The KL rows are equalities; a Rényi row fails where the exact value exceeds the printed bound."""
    exact = [rows for name, rows in table.groups("row") if str(name).startswith("KL")]
    off = max(float(np.max(np.abs(one.column("printed") / one.column("exact") - 1))) for one in exact)
    renyi = Table(tuple(row for row in table.rows if "order" in row))
    false = Table(tuple(row for row in renyi.rows if float(row["exact"]) > float(row["printed"]) * (1 + 1e-9)))
    figures = {"KL rows off by, relative": off, "false Rényi cells": len(false.rows), "Rényi cells": len(renyi.rows)}
    if not false.rows:
        return Verdict(Outcome.HOLDS if off < 1e-9 else Outcome.FAILS, "No counterexample among the cells.", figures)
    ratios = Table(tuple(row | {"ratio": float(row["exact"]) / float(row["printed"])} for row in false.rows))
    top = ratios.row("ratio", np.argmax)
    lowest = min(float(row["order"]) for row in false.rows)
    return Verdict(
        Outcome.FAILS,
        f"The KL rows are right to {off:.1e}. The Rényi rows are false in {len(false.rows)} of {len(renyi.rows)} "
        "cells, "
        f"all of order {lowest:g} or more and at small ε or 1/σ: for {str(top['row']).split(', ')[1]} noise at "
        f"{'ε' if 'Laplace' in str(top['row']) else '1/σ'} = {top['shift']:g}, α = {top['order']:g} the exact value is "
        f"{top['exact']:.6g}, the printed bound {top['printed']:.6g}. The exact value falls like the square of the "
        "shift, the bound like its power α.",
        figures
        | {f"{name}: exact / printed at most": float(rows.column("ratio").max()) for name, rows in ratios.groups("row")}
        | {"exact value there": float(top["exact"]), "printed bound there": float(top["printed"])},
    )


def draw(table: Table) -> Any:
    """Exact value and printed bound against the shift, for each order."""
    axes = frames(4, 4.1, 4.0)
    for ax, name in zip(axes, RENYI, strict=True):
        for at, (order, rows) in enumerate(table.where(row=name).groups("order")):
            line(ax, rows.column("shift"), rows.column("exact"), at, f"α = {order:g}, exact", ls="-", marker="o", ms=3)
            line(ax, rows.column("shift"), rows.column("printed"), at, f"α = {order:g}, printed bound", ls=":", lw=1.6)
        noise = name.removeprefix("Rényi, ")
        x = "ε" if "Laplace" in name else "1/σ"
        finish(ax, f"{noise}: linear adversary", f"{x} (shift 1)", "restricted Rényi divergence (nats)", scale="xy")
    return axes[0]


EXPERIMENT = Experiment(
    name="cim-table-1",
    claim="The privacy parameters of Laplace and Gaussian noise against a linear adversary are as in Table 1: "
    "equalities "
    "for KL, upper bounds for Rényi divergences.",
    source="[CIM, Table 1; CIM, Thm 9-13]",
    full={"shifts": [0.01, 0.03, 0.1, 0.2, 0.3333333333333333, 0.5, 1.0, 2.0], "orders": [2.0, 3.0, 6.0]},
    quick={"shifts": [0.1, 0.3333333333333333, 1.0], "orders": [2.0, 3.0, 6.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Exact restricted Rényi divergences (solid) and the printed bounds (dotted): where a dotted line is below "
    "the solid one of its colour, the bound is false.",
)
