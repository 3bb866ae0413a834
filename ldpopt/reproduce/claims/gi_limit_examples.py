"""The example after Theorem 3, where epsilon falls as slowly as one likes, and unequal mechanisms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.composition import gaussian_limit
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid


def points(parameters: Parameters) -> list[Row]:
    """The paper's example for every exponent, and a mixture of three kinds of mechanisms, for every n."""
    return grid(array=[f"n^-{c:g}" for c in parameters["exponents"]] + ["unequal"], n=parameters["counts"])


def arrays(array: str, n: int) -> tuple[list[float], list[float]]:
    """(epsilons, etas) of n mechanisms with sum of products 1/2, that is mu = 1."""
    if array != "unequal":
        c = float(array.removeprefix("n^-"))
        return [n**-c] * n, [0.5 * n ** (c - 1)] * n
    # A quarter of the mechanisms is twice as strong, a quarter half as strong, a quarter erased; then all are scaled.
    epsilons = np.tile([2.0, 0.5, 1.0, 1.0], n // 4) / math.sqrt(n)
    etas = np.tanh(epsilons / 2) * np.tile([1.0, 1.0, 0.5, 0.25], n // 4)
    epsilons = epsilons * math.sqrt(0.5 / float(epsilons @ etas))
    etas = np.tanh(epsilons / 2) * np.tile([1.0, 1.0, 0.5, 0.25], n // 4)
    return epsilons.tolist(), (etas * 0.5 / float(epsilons @ etas) * (1 - 1e-12)).tolist()


def measure(array: str, n: float) -> Row:
    """The largest epsilon, the sum of the products, and the distance of the composition from its limit."""
    epsilons, etas = arrays(array, int(n))
    etas = [min(eta, math.tanh(epsilon / 2)) for epsilon, eta in zip(epsilons, etas, strict=True)]
    found = gaussian_limit(epsilons, etas)
    total = math.fsum(a * b for a, b in zip(epsilons, etas, strict=True))
    return {"largest epsilon": max(epsilons), "sum": total, "distance": found.distance}


def judge(table: Table) -> Verdict:
    """The verdict: distances always fall, and with which power of n."""
    rates: dict[str, float] = {}
    falling = True
    for name, rows in table.groups("array"):
        n, distance = rows.column("n"), rows.column("distance")
        falling = falling and bool((np.diff(distance) < 0).all())
        rates[str(name)] = math.log(distance[-1] / distance[-2]) / math.log(n[-1] / n[-2])
    off = float(np.abs(table.column("sum") - 0.5).max())
    last = float(table.where(n=max(table.column("n"))).column("distance").max())
    said = ", ".join(f"{name} as n^{rate:.2f}" for name, rate in rates.items())
    slow = max(rates.values())
    return Verdict(
        Outcome.HOLDS if falling and slow < -0.04 and off < 0.02 else Outcome.FAILS,
        f"The distance to G_1 falls at every step, the slower the slower ε does: {said}; up to {last:.3f} is left at "
        f"n = {max(table.column('n')):g}, where ε falls slowest.",
        {f"rate, {name}": rate for name, rate in rates.items()} | {"last distance": last, "sums off 1/2 by": off},
    )


def draw(table: Table) -> Any:
    """The distance against n."""
    (ax,) = frames(1, 6.4, 4.2)
    for at, (name, rows) in enumerate(table.groups("array")):
        label = f"ε = {name}" if name != "unequal" else "unequal ε and η"
        line(ax, rows.column("n"), rows.column("distance"), at, label, marker="o", ms=3.5)
    finish(ax, "After Theorem 3: distance from G_1", "mechanisms n", "sup |f - G_1|", scale="xy")
    return ax


EXPERIMENT = Experiment(
    name="gi-theorem-3-examples",
    claim="With ε = μ n^-c and η = μ/(2 n^(1-c)), any c in (0, 1/2), the composition of n mechanisms tends to G_μ; "
    "and so for unequal arrays.",
    source="[GI, Thm 3; GI, section V]",
    full={"exponents": [0.1, 0.2, 0.3, 0.4, 0.5], "counts": [16, 64, 256, 1024, 4096]},
    quick={"exponents": [0.3, 0.5], "counts": [16, 64, 256]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="How far compositions of n mechanisms are from G_1 when ε falls as a power of n, for several powers.",
)
