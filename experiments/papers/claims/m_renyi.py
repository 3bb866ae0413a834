"""Tables I and II, Propositions 1 and 3: the meaning of Rényi privacy, its composition and its conversions."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from experiments.papers.drawing import curves, diagonal, level, marks, panel, picture
from experiments.papers.experiment import Axis, Row, grid, middle
from experiments.papers.laws import rr
from experiments.papers.statements import Part, among, bounded, claim, decided, equal, off_by
from ldpopt.composition import compose, trinomial_log_pmf
from ldpopt.mechanisms import gaussian, laplace
from ldpopt.privacy import FinitePair, RenyiDP, renyi, zcdp
from ldpopt.privacy.conversions import renyi_to_approximate, renyi_to_approximate_closed
from ldpopt.privacy.implications import bad_outcome, bayes_factor_log, bayes_factor_moment, bayes_factor_tail
from ldpopt.values.distribution import Array


@claim(
    "m-proposition-1", "[M, Prop 1; BS, Lemma 2.3; BS, Lemma 1.7; BS, Lemma 1.8]",
    points=grid(order=Axis([0.0, 1.0, 1.5, 2.0, 8.0], [0.0, 2.0]), seed=Axis(40, 3)),
    judge=decided(
        "Two uses of one mechanism have exactly twice its divergence (to {two uses over twice one, off by:.1e}); an "
        "adaptive choice has at most {adaptive over sum, largest:.4f} of the sum, and a randomly merged report at most "
        "{merged over before:.4f} of the divergence it had.",
        {"two uses over twice one, off by": lambda table: off_by(table.ratio("same", "twice")),
         "adaptive over sum, largest":
         lambda table: float(np.max([table.ratio(name, "sum") for name in ("adaptive", "product")])),
         "merged over before": lambda table: float(table.ratio("merged", "product").max())},
        lambda figures: figures["adaptive over sum, largest"] <= 1 + 1e-9 and figures["merged over before"] <= 1 + 1e-9
        and figures["two uses over twice one, off by"] <= 1e-8),
    draw=picture(panel("Proposition 1: two mechanisms, the second chosen adaptively", "sum of the parameters (nats)",
                       "exact (nats)",
                       marks("sum", "adaptive", lambda rows: f"order {rows.rows[0]['order']:g}"
                             if rows.rows[0]["order"] else "zCDP ρ", "osD^v", by=("order",)),
                       diagonal("equal", "adaptive", "sum"), scale="xy")),
    caption="The exact divergence of two mechanisms together against the sum of their parameters; order 0 in the rows "
    "stands for ρ of zCDP.",
)  # fmt: skip
def adding(order: float, seed: float) -> Row:
    """(α, ε₁)-RDP and (α, ε₂)-RDP compose adaptively to (α, ε₁+ε₂)-RDP, ρ of zCDP likewise, and neither grows under
    post-processing."""
    # The adaptive second mechanism is one of two, chosen by the first report, and its parameter is the larger of
    # theirs. Order 0 stands for rho of zCDP.
    rng = np.random.default_rng(int(seed))
    first, second, other = (rng.dirichlet(np.ones(3), size=2) * 0.94 + 0.02 for _ in range(3))

    def loss(rows: Array) -> float:
        return zcdp(rows).value if order == 0 else renyi(rows, order).value

    product = np.einsum("iy,iz->iyz", first, second).reshape(2, -1)
    adaptive = np.concatenate([first[:, :1] * second, first[:, 1:2] * other, first[:, 2:] * second], axis=1)
    merged = product @ rng.dirichlet(np.ones(4), size=product.shape[1])
    same = np.einsum("iy,iz->iyz", first, first).reshape(2, -1)
    return {
        "sum": loss(first) + max(loss(second), loss(other)), "adaptive": loss(adaptive), "product": loss(product),
        "merged": loss(merged), "twice": 2 * loss(first), "same": loss(same),
    }  # fmt: skip


MECHANISMS = ("randomized response", "Laplace", "Gaussian")
ORDERS = tuple(float(a) for a in np.geomspace(1.05, 400, 120))


def printed(mechanism: str, order: float) -> float:
    """Compute the budget curves of Table II at p = e/(1+e), noise scale 1 and sigma 1."""
    if mechanism == "Gaussian":
        return order / 2
    if mechanism == "Laplace":
        left, right = math.log(order / (2 * order - 1)) + order - 1, math.log((order - 1) / (2 * order - 1)) - order
    else:
        log_p, log_q = -math.log1p(math.exp(-1)), -math.log1p(math.e)
        left, right = order * log_p + (1 - order) * log_q, order * log_q + (1 - order) * log_p
    return float(np.logaddexp(left, right)) / (order - 1)


def exact_epsilon(mechanism: str, delta: float, uses: int) -> float:
    """Bound the epsilon of `uses` uses at `delta` from below, to the digits shown."""
    if mechanism == "Gaussian":
        pair = gaussian(1.0, math.sqrt(uses)).pair
        return float(brentq(lambda e: math.log(max(pair.hockey_stick(e).lower, 1e-300) / delta), 0, 60 + 9 * uses))
    p, q = rr(1.0)
    if mechanism == "Laplace":  # the loss 1 - 2y on [0, 1] is cut into cells, which can only lower epsilon
        p = np.concatenate([[0.5], -np.diff(np.exp(-np.linspace(0, 1, 401))) / 2, [math.exp(-1) / 2]])
        p, q = p / p.sum(), p[::-1] / p.sum()
    return compose([FinitePair(p, q)], uses).approximate_dp(delta).lower


@claim(
    "m-budget-curves", "[M, Table II; M, Prop 3; CKS, Prop 12]",
    points=grid(part=["curve"], mechanism=MECHANISMS,
                order=Axis([1.1, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0], [1.5, 8.0]))
    + grid(part=["implied"], mechanism=MECHANISMS, delta=Axis([1e-3, 1e-6], [1e-6]),
           uses=Axis([1, 2, 4, 8, 16, 32, 64], [1, 16])),
    judge=bounded(
        "Table II is exact (to {Table II off by, relative:.1e}). The ε that Proposition 3 implies is {Proposition 3 "
        "over exact ε:.3f} times the exact one (most for {_worst[mechanism]}, {_worst[uses]:g} uses, δ = "
        "{_worst[delta]:g}); with the newer conversion [CKS, Prop 12] {newer conversion over exact ε:.3f} times.",
        {"Proposition 3 over exact ε": among("plain / exact", part="implied"),
         "newer conversion over exact ε": among("sharp / exact", part="implied"),
         "_table II": equal("printed / exact", 1e-9, part="curve")},
        {"Table II off by, relative": lambda table: off_by(table.where(part="curve").ratio("printed", "exact")),
         "_worst": lambda table: table.where(part="implied").top("plain / exact")}, 1e-4),
    draw=picture(
        panel("Budget curves at ε = 1, σ = 1", "order α", "Rényi divergence (nats)",
              curves("order", "exact", "{mechanism}", by=("mechanism",)), marks("order", "printed", "Table II", ms=3),
              where={"part": "curve"}, scale="xy"),
        panel("The ε of several uses at δ = {delta:g}", "uses", "ε (nats)",
              curves("uses", {"exact": ("exact", "-"), "plain": ("Proposition 3", ":")}, "{mechanism}, {}",
                     by=("mechanism",)), where={"part": "implied", "delta": min}, scale="xy")),
    caption="Left: the budget curves, measured (lines) and by Table II (circles). Right: the ε that they imply for "
    "several uses, and the exact one.",
)  # fmt: skip
def budget(part: str, mechanism: str, order: float = 0, delta: float = 0, uses: float = 1) -> Row:
    """Randomized response, Laplace and Gaussian noise have the Rényi budget curves of Table II, and (α, ε)-RDP implies
    (ε + log(1/δ)/(α-1), δ)-DP."""
    if part == "curve":
        pair = {"Laplace": laplace(1.0).pair, "Gaussian": gaussian(1.0).pair}.get(mechanism)
        exact = renyi(rr(1.0), order).value if pair is None else pair.renyi(order).value
        return {"printed": printed(mechanism, order), "exact": exact}
    claims = [RenyiDP(a, uses * printed(mechanism, a)) for a in ORDERS]
    return {
        "plain": min(renyi_to_approximate(claim, delta).epsilon for claim in claims),
        "sharp": min(renyi_to_approximate_closed(claim, delta).epsilon for claim in claims),
        "exact": exact_epsilon(mechanism, delta, int(uses)),
    }


CELLS = ("noise", "parameter", "order", "delta")
SUM = Part("Pr ≤ e^ε' Q + δ", cells=CELLS)
LARGER = Part("Pr ≤ max(e^ε' Q, δ)", cells=CELLS)


def events(noise: str, parameter: float, order: float) -> tuple[Array, Array, float]:
    """Compute the probabilities of every likelihood-ratio event, and D_order."""
    if noise == "Gaussian":
        x = np.linspace(-8, 8, 641)
        return ndtr(parameter - x), ndtr(-x), order * parameter**2 / 2
    log_p = trinomial_log_pmf(40, parameter, 0.0)
    tail, other = (np.exp(np.logaddexp.accumulate(part)[::-1]) for part in (log_p[::-1], log_p))
    high = 1 / (1 + math.exp(-parameter))
    moment = math.log(high**order * (1 - high) ** (1 - order) + (1 - high) ** order * high ** (1 - order)) / (order - 1)
    return tail, other, 40 * moment


@claim(
    "m-proposition-3", "[M, Prop 3]", LARGER, SUM,
    points=grid(noise=["Gaussian", "40 responses"], parameter=Axis([0.1, 0.3, 1.0], [0.3]),
                order=Axis([1.5, 2.0, 4.0, 8.0, 16.0, 32.0], [2.0, 8.0]), delta=Axis([1e-6, 1e-3, 0.1], [1e-3])),
    draw=picture(panel("{noise}, δ = {delta:g}", "order α", "largest Pr / bound",
                       *(curves("order", "exact / claimed", "parameter {parameter:g}, " + word, by=("parameter",),
                                where={"part": part.name}, ls=style)
                         for part, style, word in ((SUM, "--", "sum"), (LARGER, "-", "larger"))),
                       level(), repeat_by="noise", where={"delta": min}, scale="2y")),
    caption="The largest share of the bound that any likelihood-ratio event reaches: below 1 the proposition holds.",
)  # fmt: skip
def larger_or_sum(noise: str, parameter: float, order: float, delta: float) -> list[Row]:
    """(α, ε)-RDP gives Pr ≤ max(e^ε' Q, δ), ε' = ε + log(1/δ)/(α-1), for the probabilities Pr and Q of every event:
    stronger than (ε', δ)-DP."""
    # The event that comes nearest to its bound.
    p, q, divergence = events(noise, parameter, order)
    raised_bound = math.exp(min(divergence + math.log(1 / delta) / (order - 1), 700)) * q
    rows = []
    for part, bound in ((SUM, raised_bound + delta), (LARGER, np.maximum(raised_bound, delta))):
        worst = int(np.argmax(p / bound))
        rows.append(part(float(p[worst]), float(bound[worst])))
    return rows


@claim(
    "m-table-1", "[M, Table I]",
    points=grid(epsilon=Axis([0.1, 1.0], [0.5]), n=Axis([1, 10, 50], [10]),
                order=Axis([1.5, 2.0, 4.0, 8.0], [2.0, 8.0])),
    judge=bounded(
        "The moment of the Bayes factor is an equality (to {moment off by:.1e}). Times too far off: {_all}.",
        {"probability, from above": "claimed / exact",
         "probability, from below":
         lambda table: table.column("probability") / np.maximum(table.column("low_claimed"), 1e-300),
         "change of log odds": "log_claimed / log_exact", "odds move by more than":
         lambda table: table.having(lambda row: row["tail_exact"] > 0).ratio("tail_claimed", "tail_exact"),
         "_moment": "moment_claimed / moment_exact"},
        {"moment off by": lambda table: off_by(table.ratio("moment_claimed", "moment_exact"))}),
    draw=picture(panel("{n:g} randomized responses, ε = {epsilon:g}", "probability under one input",
                       "probability under its neighbour",
                       curves("probability", "exact", "exact", where={"order": min}, first=6, marker="o", ms=3),
                       curves("probability", "claimed", "bound at order {order:g}", by=("order",), lw=1.2),
                       where={"n": middle}, repeat_by="epsilon", scale="xy")),
    caption="How likely the likeliest reports of one input are under its neighbour: exactly, and by Table I.",
)  # fmt: skip
def table_1(epsilon: float, n: float, order: float) -> list[Row]:
    """(α, ε)-RDP bounds the probability of any outcome, moments and logarithm of the Bayes factor as in Table I."""
    q = np.exp(trinomial_log_pmf(int(n), epsilon, 0.0))[::2]  # hits minus misses, the rarest number first
    q = q[q > 0] / q.sum()
    p = q[::-1]
    claim = RenyiDP(order, float(renyi(np.stack([p, q]), order)))
    (power, moment), ratio = bayes_factor_moment(claim), p / q
    shared = {
        "moment_claimed": moment, "moment_exact": float(q @ ratio**power),
        "log_claimed": bayes_factor_log(claim), "log_exact": float(p @ np.log(ratio)),
    }  # fmt: skip
    rows = []
    for i in range(1, len(q)):
        event_q, event_p, factor = min(1.0, float(q[:i].sum())), min(1.0, float(p[:i].sum())), float(ratio[i - 1])
        rows.append(shared | {
            "probability": event_q, "exact": event_p,
            "claimed": bad_outcome(claim, event_q)[1], "low_claimed": bad_outcome(claim, event_p)[0],
            "tail_claimed": bayes_factor_tail(claim, max(1.0, factor)), "tail_exact": event_p if factor > 1 else 0.0,
        })  # fmt: skip
    return rows
