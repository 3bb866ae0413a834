"""Three questions that the paper leaves open, on bounded zCDP of groups, xi of groups, and the implied curve's loss."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ldpopt.distribution import Array
from ldpopt.privacy import FinitePair
from ldpopt.reproduce.drawing import COLOURS, finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, Table, grid
from ldpopt.reproduce.laws import random_chain
from ldpopt.reproduce.statements import Part, inequalities

BOUNDED = Part("2-bounded ρ-zCDP: KL of groups ≤ k²ρ", Subject.QUESTION, cells=("size",))
LINEAR = Part(
    "groups need no more than ξs in place of ξsΣ1/i",
    Subject.QUESTION,
    cells=("seed", "size", "xi_share"),
    tolerance=1e-6,
)
IMPLIED = Part("the implied (ε, δ) allow D_α > ρα", Subject.QUESTION, lower=True, cells=("rho", "order"))


def points(parameters: Parameters) -> list[Row]:
    """Groups under bounded zCDP; chains of random laws with xi; orders and rhos."""
    chains = grid(kind=["chain"], size=[2, 3, 4], xi_share=[0.5, 1.0], seed=list(range(parameters["chains"])))
    return [
        *grid(kind=["bounded"], size=parameters["groups"]),
        *chains,
        *grid(kind=["implied"], rho=parameters["rhos"], order=parameters["orders"]),
    ]


def measure(
    kind: str, size: float = 0, xi_share: float = 0.0, seed: float = 0, rho: float = 1.0, order: float = 2.0
) -> Row:
    """Both sides of one question."""
    if kind == "bounded":
        exact, unit = _bounded(int(size))
        return {"part": BOUNDED.name, "exact": exact, "claimed": size**2 * unit}
    if kind == "implied":
        return {"part": IMPLIED.name, "exact": _implied(rho, order), "claimed": rho * order}
    laws = random_chain(int(size), 3, int(seed))
    pairs = [FinitePair(a, b) for a, b in pairwise(laws)]
    xi = xi_share * max(one.renyi(1.0).lower for one in pairs)
    each = max(one.zcdp(xi).value for one in pairs)
    ends = FinitePair(laws[0], laws[-1])
    needed = max(
        float(ends.renyi(a).lower) - each * size**2 * a for a in np.append(1 + np.geomspace(1e-6, 200, 60), 1.0)
    )
    return {"part": LINEAR.name, "exact": needed, "claimed": xi * size}


def _bounded(size: int) -> tuple[float, float]:
    """The KL divergence of the ends of a chain, and the rho of its neighbours for orders below 2.

    The first of two outcomes has probability 2c 2^(-2^i) for i = 0..size. So D_2 of neighbours stays about 2c, while
    the log ratio of the ends doubles with each step. Everything is computed in logarithms.
    """
    log_p = math.log(0.02) - 2.0 ** np.arange(size + 1) * math.log(2)

    def divergence(a: float, b: float, order: float) -> float:
        rest_a, rest_b = math.log1p(-math.exp(a)), math.log1p(-math.exp(b))
        if order == 1:
            return math.exp(a) * (a - b) + math.exp(rest_a) * (rest_a - rest_b)
        first, second = order * a + (1 - order) * b, order * rest_a + (1 - order) * rest_b
        return math.log1p(math.exp(first) + math.expm1(second)) / (order - 1)

    orders = [1.0, *(1 + np.geomspace(1e-3, 1, 40))]
    pairs = [pair for a, b in pairwise(log_p.tolist()) for pair in ((a, b), (b, a))]
    rho = max(divergence(a, b, order) / order for a, b in pairs for order in orders)
    return divergence(float(log_p[0]), float(log_p[-1]), 1.0), rho


def _implied(rho: float, order: float) -> float:
    """D_order of the pair whose curve delta(epsilon) is the largest one that Lemma 3.6 allows.

    With h(s) = delta(log s), exp((order - 1) D_order) is the integral of order (order-1) s^(order-2) h(s) over s > 0. h
    is convex, at most 1, and h(s) = 1 - s + s h(1/s).
    """
    u = np.linspace(0, rho + 40 * math.sqrt(rho) + 4 * order * rho, 40_001)
    z = np.maximum(u - rho, 0.0) / (2 * rho)
    delta = np.exp(-rho * z**2) * 2 / (1 + z + np.sqrt((1 + z) ** 2 + 4 / (math.pi * rho)))
    s = np.exp(u)
    least = _convex_minorant(s, np.minimum(delta, 1.0))
    left = 1 - 1 / s + least / s  # h at 1/s
    with np.errstate(divide="ignore"):
        log_above, log_below = np.log(least) + (order - 1) * u, np.log(left) - (order - 1) * u
    step = np.full(len(u), u[1])  # the trapezoid rule
    step[[0, -1]] /= 2
    both = np.concatenate([log_above, log_below]) + math.log(order * (order - 1))
    end = float(u[-1])  # the part below exp(-end), where h(s) is 1 - s up to exponentially small terms
    rest = max(order * math.exp((1 - order) * end) - (order - 1) * math.exp(-order * end), 1e-300)
    total = float(logsumexp(both, b=np.concatenate([step, step])))
    return float(np.logaddexp(total, math.log(rest))) / (order - 1)


def _convex_minorant(x: Array, y: Array) -> Array:
    """The largest convex function below the points, at x."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) >= 2 and (y[kept[-1]] - y[kept[-2]]) * (x[i] - x[kept[-2]]) >= (y[i] - y[kept[-2]]) * (
            x[kept[-1]] - x[kept[-2]]
        ):
            kept.pop()
        kept.append(i)
    return np.asarray(np.interp(x, x[kept], y[kept]))


def ending(table: Table) -> str:
    """The sentences about the result of each question."""
    bounded, implied, linear = (table.where(part=part.name) for part in (BOUNDED, IMPLIED, LINEAR))
    ratio = bounded.column("exact") / bounded.column("claimed")
    first = bounded.column("size")[ratio > 1]
    excess = implied.column("exact") / implied.column("claimed")
    need = linear.column("exact") / linear.column("claimed")
    return (
        "In the chain Pr = 0.02·2^(-2^i) the KL divergence of groups grows like 2^k, beyond k²ρ from k = "
        f"{first.min(initial=np.inf):g} on, while D₂ of neighbours stays the same: bounded zCDP has no polynomial "
        f"bound for groups. The curve implied by ρ-zCDP allows D_α of {excess.min():.3g} to {excess.max():.3g} times "
        f"ρα. Chains of random laws need up to {need.max():.3g} times ξs, so ξs is not enough; whether all of ξsΣ1/i "
        "is needed stays open."
    )


def draw(table: Table) -> Any:
    """A panel for each question."""
    first, second, third = frames(3, 4.4, 4.0)
    rows = table.where(part=BOUNDED.name)
    line(first, rows.column("size"), rows.column("exact"), 1, "KL of the ends", marker="o", ms=3)
    line(first, rows.column("size"), rows.column("claimed"), 0, "k²ρ", ls="--")
    finish(first, "2-bounded zCDP, groups of k", "group size k", "nats", scale="y")
    rows = table.where(part=LINEAR.name)
    for at, (share, by) in enumerate(rows.groups("xi_share")):
        ratio = by.column("exact") / by.column("claimed")
        place = by.column("size") + 0.1 * (2 * at - 1)
        second.plot(place, ratio, "o^"[at], ms=4, mfc="none", color=COLOURS[at], label=f"ξ = {share:g} KL")
    sizes = np.array(sorted(set(rows.column("size").tolist())))
    harmonic = [sum(1 / i for i in range(1, int(s) + 1)) for s in sizes]
    line(second, sizes, harmonic, 6, "Σ1/i, Prop 5.3", lw=1.2)
    second.axhline(1, color="0.4", lw=1)
    second.set_xticks(sizes)
    second.set_ylim(-2.2, 2.4)
    finish(second, "ξ that random chains need, over ξs", "group size s", "ratio (some lie below)", "lower left")
    for at, (rho, by) in enumerate(table.where(part=IMPLIED.name).groups("rho")):
        line(third, by.column("order"), by.column("exact") / by.column("claimed"), at, f"ρ = {rho:g}", marker="o", ms=3)
    third.axhline(1, color="0.4", lw=1)
    finish(third, "D_α that the implied (ε, δ) allow, over ρα", "order α", "ratio")
    third.set_xscale("log", base=2)
    return first


EXPERIMENT: Experiment = inequalities(
    (BOUNDED, LINEAR, IMPLIED),
    title="",
    draw=draw,
    ending=ending,
    name="bs-open-questions",
    claim="Does m-bounded zCDP protect groups of k much larger than m as k²ρ? Is ξs enough for groups? Is ρ-zCDP "
    "stronger than all the (ε, δ)-DP that it implies?",
    source="[BS, section 8; BS, Def 8.4; BS, Prop 5.3]",
    full={
        "groups": [1, 2, 3, 4, 5, 6, 7, 8, 9],
        "chains": 60,
        "rhos": [0.01, 0.1, 1.0],
        "orders": [1.5, 2.0, 4.0, 8.0, 16.0],
    },
    quick={"groups": [2, 8], "chains": 3, "rhos": [0.1], "orders": [2.0, 8.0]},
    points=points,
    measure=measure,
    caption="Left: groups under bounded zCDP. Middle: the ξ that groups need. Right: what is lost by passing to (ε, "
    "δ).",
    subject=Subject.QUESTION,
)
