"""Theorem 3: many weak mechanisms compose to a Gaussian one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.composition import gaussian_limit
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid


def points(parameters: Parameters) -> list[Row]:
    """Every mu and erasure with every number of mechanisms."""
    return grid(mu=parameters["mus"], alpha=parameters["erasures"], k=parameters["counts"])


def measure(mu: float, alpha: float, k: float) -> Row:
    """The distance between the exact trade-off curve of k equal mechanisms and G_mu."""
    epsilon = mu / math.sqrt((1 - alpha) * k)
    eta = mu * mu / (2 * k * epsilon)  # so that k epsilon eta = mu^2/2 exactly
    limit = gaussian_limit([epsilon] * int(k), [min(eta, math.tanh(epsilon / 2))] * int(k))
    return {"epsilon": epsilon, "mu_found": limit.mu, "distance": limit.distance}


def judge(table: Table) -> Verdict:
    """The verdict: distances fall to zero, and at which rate."""
    slopes = []
    falling = True
    for _, by_mu in table.groups("mu"):
        for _, rows in by_mu.groups("alpha"):
            k, distance = rows.column("k"), rows.column("distance")
            falling = falling and bool((np.diff(distance) < 0).all())
            slopes.append(math.log(distance[-1] / distance[-2]) / math.log(k[-1] / k[-2]))
    largest = float(table.where(k=max(table.column("k"))).column("distance").max())
    return Verdict(
        Outcome.HOLDS if falling and max(slopes) < -0.4 else Outcome.FAILS,
        f"The distance to G_μ falls at every step, as k^{max(slopes):.2f} or faster, to {largest:.1e} at the largest "
        "k.",
        {"slowest rate, power of k": max(slopes), "fastest rate, power of k": min(slopes), "last distance": largest},
    )


def draw(table: Table) -> Any:
    """The distance against k, on logarithmic axes."""
    (ax,) = frames(1, 6.4, 4.2)
    at = 0
    for mu, by_mu in table.groups("mu"):
        for alpha, rows in by_mu.groups("alpha"):
            label = f"μ = {mu:g}, erased {float(alpha):.0%}"
            line(ax, rows.column("k"), rows.column("distance"), at, label, marker="o", ms=3.5)
            at += 1
    finish(ax, "Theorem 3: distance of the composition from G_μ", "mechanisms k", "sup |f - G_μ|", scale="xy")
    return ax


EXPERIMENT = Experiment(
    name="gi-theorem-3",
    claim="If Σ ε_i η_i tends to μ²/2 and max ε_i to 0, the trade-off curve of the composition tends to G_μ.",
    source="[GI, Thm 3]",
    full={"mus": [0.5, 1.0, 2.0], "erasures": [0.0, 0.5], "counts": [4, 16, 64, 256, 1024, 4096]},
    quick={"mus": [1.0], "erasures": [0.0, 0.5], "counts": [4, 16, 64, 256]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="How far the exact composition of k equal mechanisms is from its Gaussian limit.",
)
