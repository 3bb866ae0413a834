"""Lemmas 2.2 and 5.2, B.6, A.2, B.1, C.1 and C.2: inequalities between Rényi divergences, and those that proofs use.

Proposition 5.3 and section 8's open questions: groups under zCDP, and the loss from passing to (ε, δ).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import digamma, logsumexp, ndtr

from experiments.papers.drawing import curves, formula, level, marks, panel, picture
from experiments.papers.experiment import Axis, Row, Single, Subject, Table, grid
from experiments.papers.laws import kl, random_chain, random_law, renyi, tilted
from experiments.papers.statements import Ends, Part, among, bounded, claim, off_by, positive
from ldpopt.mechanisms import gaussian, laplace
from ldpopt.privacy import ZCDP, FinitePair
from ldpopt.privacy.implications import group_zcdp
from ldpopt.values.distribution import Array

CELLS = ("order", "seed")
SIGN = Part("0 ≤ D_α", cells=CELLS, floor=1e-5)
ABOVE = Part("composition, with the largest", cells=CELLS, floor=1e-5)
BELOW = Part("composition, with the least", cells=CELLS, floor=1e-5)
QUASI = Part("quasi-convexity", cells=CELLS, floor=1e-5)
MIXED = Part("Lemma B.6: exp((α-1)D_α) is convex", cells=CELLS, floor=1e-5)
PROCESSED = Part("post-processing", cells=CELLS, floor=1e-5)
MONOTONE = Part("monotone in α", cells=CELLS, floor=1e-5)


@claim(
    "bs-lemma-2-2", "[BS, Lemma 2.2; BS, Lemma B.6]", SIGN, ABOVE, BELOW, QUASI, MIXED, PROCESSED, MONOTONE,
    title="Lemma 2.2: Rényi divergences",
    points=grid(order=Axis([1.0, 1.5, 2.0, 8.0, 40.0, 1e6], [1.0, 2.0, 1e6]), seed=Axis(40, 6)),
    caption="Left side against right side of each inequality on random laws.",
)  # fmt: skip
def divergences(order: float, seed: float) -> list[Row]:
    """Rényi divergences are nonnegative, quasi-convex and monotone in the order, and do not increase under
    post-processing. The divergence of a joint distribution lies between the first one's plus the smallest and plus
    the largest of the second's."""
    rng = np.random.default_rng([22, int(seed)])
    spread = float(rng.choice([0.1, 1.0, 3.0]))
    p1 = random_law(rng, 3)
    q1 = tilted(rng, p1, spread)
    second_p = np.stack([random_law(rng, 4) for _ in range(3)])
    second_q = np.stack([tilted(rng, law, spread) for law in second_p])
    if seed % 5 == 0:  # product laws, where composition is an equality
        second_p, second_q = second_p[[0, 0, 0]], second_q[[0, 0, 0]]
    joint_p, joint_q = (p1[:, None] * second_p).ravel(), (q1[:, None] * second_q).ravel()
    joint, first = renyi(joint_p, joint_q, order), renyi(p1, q1, order)
    conditional = [renyi(p, q, order) for p, q in zip(second_p, second_q, strict=True)]
    if seed % 5 == 1:  # equal laws, where the divergence is zero
        joint_q, q1, first, joint = joint_p, p1, 0.0, 0.0
        conditional, second_q = [0.0, 0.0, 0.0], second_p
    t = float(rng.random())
    mixed = renyi(t * second_p[0] + (1 - t) * second_p[1], t * second_q[0] + (1 - t) * second_q[1], order)
    power = order - 1 if 1 < order < 1e3 else 1.0
    raised_moments = [d if order == 1 else math.exp(power * min(d, 700 / power)) for d in (mixed, *conditional[:2])]
    kernel = np.stack([random_law(rng, 3) for _ in range(3)])
    if seed % 5 == 2:  # a relabelling loses nothing
        kernel = np.eye(3)[::-1]
    return [
        SIGN(1.0, 1.0 + joint),
        ABOVE(joint, first + max(conditional)),
        BELOW(first + min(conditional), joint),
        QUASI(mixed, max(conditional[:2])),
        *([MIXED(raised_moments[0], t * raised_moments[1] + (1 - t) * raised_moments[2])] if order <= 1e3 else []),
        PROCESSED(renyi(p1 @ kernel, q1 @ kernel, order), first),
        MONOTONE(renyi(joint_p, joint_q, 1 + (order - 1) * 0.8), joint),
    ]


@claim(
    "bs-lemma-5-2", "[BS, Lemma 5.2]",
    points=grid(part=["normal"], order=Axis([1.5, 2.0, 5.0], [2.0]), k=Axis([1.5, 2.0, 4.0], [2.0]),
                place=Axis([0.2, 0.5, 0.8, 1.0, 1.2, 1.5], [0.5, 1.0]))
    + grid(part=["random"], order="order", k="k", seed=Axis(30, 4)),
    judge=bounded(
        "An equality for normal laws with R at 1/k of the way (to {off for normal laws:.1e}); for {random.count} "
        "random triples the right side is {random} times the left.",
        {"_attained": among("bound / exact", part="normal", place=1.0),
         "_never below": lambda table: np.minimum(table.ratio("bound", "exact"), 1.0)},
        {"off for normal laws": among(lambda rows: off_by(rows.ratio("bound", "exact")), part="normal", place=1.0),
         "random": among("bound / exact", part="random")}),
    draw=picture(panel("Lemma 5.2 for normal laws, α = {order:g}", "place of R, in 1/k of the way",
                       "right side / left side",
                       curves("place", "bound / exact", "k = {k:g}", by=("k",), marker="o", ms=3),
                       level(color="0.5", lw=0.8), where={"part": "normal", "order": min})),
    caption="Right side over left side for three normal laws, against where the middle one stands.",
)  # fmt: skip
def triangle(part: str, order: float, k: float, place: float = 0.0, seed: float = 0) -> Row:
    """D_α(P‖Q) ≤ kα/(kα-1) D_{(kα-1)/(k-1)}(P‖R) + D_{kα}(R‖Q) for all k, α > 1."""
    # `place` is the position of R in units of 1/k of the way from Q to P; 1 is the best place.
    inner, outer = (k * order - 1) / (k - 1), k * order

    def bound(first: float, second: float) -> float:
        return outer / (outer - 1) * first + second

    if part == "normal":
        way = place / k
        first = gaussian(1.0, 1 - way).pair.renyi(inner).value if way < 1 else 0.0
        second = gaussian(1.0, way).pair.renyi(outer).value
        return {"exact": gaussian(1.0).pair.renyi(order).value, "bound": bound(first, second)}
    p, r, q = np.random.default_rng(int(seed)).dirichlet(np.ones(4), size=3) * 0.96 + 0.01

    def one_way(a: Array, b: Array, power: float) -> float:
        return float(np.log(np.sum(b * np.exp(power * FinitePair(a, b).losses))) / (power - 1))

    return {"exact": one_way(p, q, order), "bound": bound(one_way(p, r, inner), one_way(r, q, outer))}


LOWER = Part("A.2: lower bound on p", cells=("sigma", "t"))
UPPER = Part("A.2: upper bound on p", cells=("sigma", "t"))
RATIO = Part("A.2: p/q ≥ exp(2t/σ²)", cells=("sigma", "t"))
SINH = Part("B.1: (sinh x - sinh y)/sinh(x-y) ≤ e^(xy/2), x ≤ 2", cells=("x", "y"))
PINSKER = Part("C.1: Pinsker", cells=("seed",))
SECOND = Part("C.2: with D₂", cells=("seed", "test"))


@claim(
    "bs-appendices", "[BS, Lemma A.2; BS, Lemma B.1; BS, Lemma C.1; BS, Lemma C.2]", LOWER, UPPER, RATIO, SINH, PINSKER,
    SECOND, title="Lemmas A.2, B.1, C.1, C.2",
    ending="B.1, which the paper verifies 'by inspecting a plot', holds on the whole grid and is attained as x "
    "tends to y at 0; C.2 is attained by f = P/Q - 1, C.1 by near laws and the sign of their difference.",
    points=grid(sigma=Axis([0.5, 1.0, 2.0], [1.0]), t=Axis([1.5, 2.0, 4.0, 8.0], [2.0, 4.0]))
    + grid(steps=Single(60, 12)) + grid(seed=Axis(60, 6)),
    caption="Left side against right side of each inequality.",
)  # fmt: skip
def tools(sigma: float = 0.0, t: float = 0.0, steps: float = 0, seed: float = -1) -> list[Row]:
    """Bounds on Gaussian tails (A.2), on differences of sinh (B.1), Pinsker's inequality (C.1), and the change of an
    expectation by √E_Q f² √(e^D₂ - 1) (C.2)."""
    # The tails p and q of two normal laws beyond t, all pairs x > y on a grid up to 2, or a random pair of laws.
    if steps:
        pairs = [(2 * i / steps, 2 * j / steps) for i in range(1, int(steps) + 1) for j in range(i)]
        return [SINH((math.sinh(x) - math.sinh(y)) / math.sinh(x - y), math.exp(x * y / 2), x=x, y=y) for x, y in pairs]
    if sigma:
        upper_tail, lower_tail = float(ndtr(-(t - 1) / sigma)), float(ndtr(-(t + 1) / sigma))
        peak = math.exp(-((t - 1) ** 2) / (2 * sigma**2)) * sigma / math.sqrt(2 * math.pi)
        return [LOWER(peak / (t + sigma - 1), upper_tail), UPPER(upper_tail, peak / (t - 1)),
                RATIO(2 * t / sigma**2, math.log(upper_tail / lower_tail))]  # fmt: skip
    rng = np.random.default_rng([100, int(seed)])
    q = random_law(rng, int(rng.integers(2, 6)), min_mass=0.002)
    p = tilted(rng, q, float(rng.choice([0.01, 0.5, 2.0])))
    values = np.where(p > q, 1.0, -1.0) if seed % 2 else rng.uniform(-1, 1, len(q))
    second = math.sqrt(math.expm1(renyi(p, q, 2.0)))
    return [
        PINSKER(abs(float((p - q) @ values)), math.sqrt(2 * kl(p, q))),
        *(SECOND(abs(float((p - q) @ f)), math.sqrt(float(q @ f**2)) * second, test=test)
          for test, f in (("random", rng.normal(size=len(q))), ("P/Q - 1", p / q - 1))),
    ]  # fmt: skip


def _noise(noise: str, letter: str) -> Any:
    return panel(f"{noise} mechanism", "group size", "claimed ρ / exact ρ",
                 curves("size", "claimed / exact", letter + " = {scale:g}, ξ = {xi_share:g} KL",
                        by=("scale", "xi_share"), marker="o", ms=3),
                 where={"noise": noise},
                 ylim=lambda ax: (0, max(2.0, 1.05 * ax.get_ylim()[1])))  # fmt: skip


@claim(
    "bs-proposition-5-3", "[BS, Prop 5.3]",
    points=grid(noise=["Laplace", "Gaussian"], scale=Axis([0.2, 1.0, 2.0], [1.0]),
                xi_share=Axis([0.0, 0.5]), size=Axis([1, 2, 3, 4, 6, 8], [1, 3]))
    + grid(noise=["chain"], scale=Axis([2, 3, 5], [3], "chain_sizes"), xi_share="xi_share", size=[2, 3, 4],
           seed=Axis(30, 1)),
    judge=bounded(
        "Tight for the Gaussian mechanism without ξ (to {_off:.1e}); for the Laplace mechanism up to {Laplace, ξ = "
        "0.high:.3g} times too large at ξ = 0, and up to {all.high:.3g} times with ξ > 0. Chains of random laws, "
        "straight and bent, are {chains, ξ = 0.low:.4f} times off at the least at ξ = 0, never below.",
        {"all": lambda table: positive(table).ratio("claimed", "exact")},
        {f"{name}, ξ = 0": among("claimed / exact", noise=noise, xi_share=0.0)
         for name, noise in (("Gaussian", "Gaussian"), ("Laplace", "Laplace"), ("chains", "chain"))}
        | {"_off": among(lambda rows: abs(rows.ratio("claimed", "exact").max() - 1), noise="Gaussian", xi_share=0.0)}),
    draw=picture(_noise("Laplace", "ε"), _noise("Gaussian", "1/σ"),
                 panel("Chains of random laws", "group size", "claimed ρ / exact ρ",
                       marks("size", "claimed / exact", "ξ = {xi_share:g} KL", "o^", by=("xi_share",), spread=0.2),
                       level(), where={"noise": "chain"}, scale="y", xticks=[2, 3, 4])),
    caption="How many times the group's ρ exceeds the exact one, for the Laplace and the Gaussian mechanism and for "
    "chains of random laws.",
)  # fmt: skip
def group(noise: str, scale: float, xi_share: float, size: float, seed: float = 0) -> Row:
    """(ξ, ρ)-zCDP is (ξ s Σ_{i≤s} 1/i, ρ s²)-zCDP for groups of s."""
    # `scale` is epsilon, 1/sigma or a number of outcomes; xi is a share of the KL divergence of neighbours.
    neighbors: list[Any]
    ends: Any
    if noise == "chain":
        laws = random_chain(int(size), int(scale), int(seed))
        neighbors, ends = [FinitePair(a, b) for a, b in pairwise(laws)], FinitePair(laws[0], laws[-1])
    else:
        pairs = [laplace(scale * s).pair if noise == "Laplace" else gaussian(1 / scale, s).pair for s in (1, size)]
        neighbors, ends = pairs[:1], pairs[1]
    xi = xi_share * max(pair.renyi(1.0).lower for pair in neighbors)
    claimed = group_zcdp(ZCDP(xi, max(pair.zcdp(xi).value for pair in neighbors)), int(size))
    return {"xi": claimed.xi, "claimed": claimed.rho, "exact": ends.zcdp(claimed.xi).lower}


BOUNDED = Part("2-bounded ρ-zCDP: KL of groups ≤ k²ρ", Subject.QUESTION, cells=("size",))
LINEAR = Part("groups need no more than ξs in place of ξsΣ1/i", Subject.QUESTION, cells=("seed", "size", "xi_share"),
              tolerance=1e-6)  # fmt: skip
IMPLIED = Part("the implied (ε, δ) allow D_α > ρα", Subject.QUESTION, lower=True, cells=("rho", "order"))


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
    """Compute D_order of the pair with the largest curve delta(epsilon) that Lemma 3.6 allows.

    With h(s) = delta(log s), exp((order - 1) D_order) is the integral of order (order-1) s^(order-2) h(s) over s > 0.
    The function h is convex and at most 1, and h(s) = 1 - s + s h(1/s).
    """
    u = np.linspace(0, rho + 40 * math.sqrt(rho) + 4 * order * rho, 40_001)
    z = np.maximum(u - rho, 0.0) / (2 * rho)
    delta = np.exp(-rho * z**2) * 2 / (1 + z + np.sqrt((1 + z) ** 2 + 4 / (math.pi * rho)))
    s = np.exp(u)
    minorant = _convex_minorant(s, np.minimum(delta, 1.0))
    left = 1 - 1 / s + minorant / s  # h at 1/s
    with np.errstate(divide="ignore"):
        log_above, log_below = np.log(minorant) + (order - 1) * u, np.log(left) - (order - 1) * u
    step = np.full(len(u), u[1])  # the trapezoid rule
    step[[0, -1]] /= 2
    both = np.concatenate([log_above, log_below]) + math.log(order * (order - 1))
    end = float(u[-1])  # the part below exp(-end), where h(s) is 1 - s up to exponentially small terms
    rest = max(order * math.exp((1 - order) * end) - (order - 1) * math.exp(-order * end), 1e-300)
    total = float(logsumexp(both, b=np.concatenate([step, step])))
    return float(np.logaddexp(total, math.log(rest))) / (order - 1)


def _convex_minorant(x: Array, y: Array) -> Array:
    """The largest convex function below the points, at x."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) >= 2 and (y[hull[-1]] - y[hull[-2]]) * (x[i] - x[hull[-2]]) >= (y[i] - y[hull[-2]]) * (
            x[hull[-1]] - x[hull[-2]]
        ):
            hull.pop()
        hull.append(i)
    return np.asarray(np.interp(x, x[hull], y[hull]))


def _answers(table: Table) -> str:
    """The sentences about the result of each question."""
    bounded, implied, linear = (part.rows_of(table) for part in (BOUNDED, IMPLIED, LINEAR))
    first = bounded.column("size")[bounded.ratio("exact", "claimed") > 1].min(initial=np.inf)
    return (
        "In the chain Pr = 0.02·2^(-2^i) the KL divergence of groups grows like 2^k, beyond k²ρ from k = "
        f"{first:g} on, while D₂ of neighbours stays the same: bounded zCDP has no polynomial "
        f"bound for groups. The curve implied by ρ-zCDP allows D_α of {Ends(implied.ratio('exact', 'claimed'))} times "
        f"ρα. Chains of random laws need up to {linear.ratio('exact', 'claimed').max():.3g} times ξs, so ξs is not "
        "enough; whether all of ξsΣ1/i is needed stays open."
    )


@claim(
    "bs-open-questions", "[BS, section 8; BS, Def 8.4; BS, Prop 5.3]", BOUNDED, LINEAR, IMPLIED, ending=_answers,
    points=grid(kind=["bounded"], size=Axis([1, 2, 3, 4, 5, 6, 7, 8, 9], [2, 8]))
    + grid(kind=["chain"], size=[2, 3, 4], xi_share=[0.5, 1.0], seed=Axis(60, 1))
    + grid(kind=["implied"], rho=Axis([0.01, 0.1, 1.0], [0.1]), order=Axis([1.5, 2.0, 4.0, 8.0, 16.0], [2.0, 8.0])),
    subject=Subject.QUESTION,
    draw=picture(
        panel("2-bounded zCDP, groups of k", "group size k", "nats",
              curves("size", "exact", "KL of the ends", first=1, ls="--", marker="o", ms=3),
              curves("size", "claimed", "k²ρ", ls="--"), where={"part": BOUNDED.name}, scale="y"),
        panel("ξ that random chains need, over ξs", "group size s", "ratio (some lie below)",
              marks("size", "exact / claimed", "ξ = {xi_share:g} KL", "o^", by=("xi_share",), spread=0.2),
              formula(lambda s: digamma(s + 1) + np.euler_gamma, "size", "Σ1/i, Prop 5.3", 6, lw=1.2), level(),
              where={"part": LINEAR.name}, ylim=(-2.2, 2.4), xticks=[2, 3, 4]),
        panel("D_α that the implied (ε, δ) allow, over ρα", "order α", "ratio",
              curves("order", "exact / claimed", "ρ = {rho:g}", by=("rho",), marker="o", ms=3), level(),
              where={"part": IMPLIED.name}, scale="2")),
    caption="Left: groups under bounded zCDP. Middle: the ξ that groups need. Right: what is lost by passing to (ε, "
    "δ).",
)  # fmt: skip
def question(
    kind: str, size: float = 0, xi_share: float = 0.0, seed: float = 0, rho: float = 1.0, order: float = 2.0
) -> Row:
    """Does m-bounded zCDP protect groups of k much larger than m as k²ρ? Is ξs enough for groups? Is ρ-zCDP stronger
    than all the (ε, δ)-DP that it implies?"""
    if kind == "bounded":
        exact, unit = _bounded(int(size))
        return BOUNDED(exact, size**2 * unit)
    if kind == "implied":
        return IMPLIED(_implied(rho, order), rho * order)
    laws = random_chain(int(size), 3, int(seed))
    pairs, ends = [FinitePair(a, b) for a, b in pairwise(laws)], FinitePair(laws[0], laws[-1])
    xi = xi_share * max(pair.renyi(1.0).lower for pair in pairs)
    largest_rho = max(pair.zcdp(xi).value for pair in pairs)
    orders = np.append(1 + np.geomspace(1e-6, 200, 60), 1.0)
    return LINEAR(max(float(ends.renyi(a).lower) - largest_rho * size**2 * a for a in orders), xi * size)
