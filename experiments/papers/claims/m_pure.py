"""Lemma 1, Propositions 2 and 4, Corollary 1, section II: pure privacy, classical noise and groups, in Rényi terms."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from experiments.papers.drawing import curves, level, marks, panel, picture
from experiments.papers.experiment import Axis, Row, Subject, Table, grid, nearest
from experiments.papers.laws import random_chain, renyi
from experiments.papers.statements import Ends, Part, among, bounded, claim, off_by, refuted
from ldpopt.composition import advanced_composition, k_fold, renyi_advanced_composition, trinomial_log_pmf
from ldpopt.mechanisms import dominating_pair, gaussian, laplace
from ldpopt.privacy import ApproximateDP, PureDP, RenyiDP
from ldpopt.privacy.conversions import pure_to_renyi
from ldpopt.privacy.implications import group_renyi


@claim(
    "m-proposition-4", "[M, Prop 4; M, Lemma 1]",
    points=grid(part=["lemma 1"], epsilon=Axis([0.01, 0.1, 1.0], [0.1, 1.0]),
                order=Axis([1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0], [1.0, 4.0]))
    + grid(part=["proposition 4"], epsilon="epsilon", n=Axis([10, 100], [10])),
    judge=bounded(
        "Lemma 1's 2αε² is {Lemma 1 over exact} times the largest divergence of ε-DP mechanisms. Proposition 4's "
        "exponent is at least {Proposition 4 over exact.low:.3g} times the exact one over all "
        "{Proposition 4 over exact.count} likelihood-ratio events, and up to "
        "{Proposition 4 over exact, largest for Q at most 1/2:.3g} times for those of probability at most a half.",
        {"Lemma 1 over exact": among("claimed / exact", part="lemma 1"),
         "Proposition 4 over exact": among("claimed / exact", part="proposition 4")},
        {"Proposition 4 over exact, largest for Q at most 1/2": lambda table: table.having(
            lambda row: row.get("log_q", 0) <= -math.log(2)).ratio("claimed", "exact").max()}),
    draw=picture(
        panel("Lemma 1: 2αε² over the largest divergence", "order α", "times too large",
              curves("order", "claimed / exact", "ε = {epsilon:g}", by=("epsilon",)), where={"part": "lemma 1"},
              scale="x"),
        panel("Proposition 4, ε = {epsilon:g}", "log₁₀ of the event's probability Q", "log(P/Q) (nats)",
              curves(lambda rows: rows.column("log_q") / math.log(10),
                     {"exact": ("exact", "-"), "claimed": ("Proposition 4", ":")}, "n = {n:g}, {}", by=("n",)),
              where={"part": "proposition 4", "epsilon": nearest(0.1)}, xlim=(-17.4, 0.5))),
    caption="Left: Lemma 1. Right: the exact gain of likelihood-ratio events of n-fold randomized response (solid) and "
    "Proposition 4 (dotted).",
)  # fmt: skip
def lemma_and_events(part: str, epsilon: float, order: float = 2.0, n: float = 1) -> Row | list[Row]:
    """ε-DP has D_α ≤ 2αε², and an event of probability Q under one input has at most exp(2ε√(n log 1/Q)) Q under its
    neighbour, after n mechanisms."""
    if part == "lemma 1":
        return {"claimed": 2 * order * epsilon**2, "exact": pure_to_renyi(PureDP(epsilon), order).epsilon}
    # Events of large likelihood ratio are best for their probability: "at least d more hits than misses".
    log_p = trinomial_log_pmf(int(n), epsilon, 0.0)
    tail = np.logaddexp.accumulate(log_p[::-1])[::-1]
    other = np.logaddexp.accumulate(log_p)[::-1]  # the same event with hits and misses exchanged
    is_member = (other < -1e-12) & (np.arange(len(log_p)) % 2 == 0)
    return [
        {"log_q": float(q), "exact": float(p - q), "claimed": 2 * epsilon * math.sqrt(n * -float(q))}
        for p, q in zip(tail[is_member], other[is_member], strict=True)
    ]


NAMES = {"exact": "‖P-Q‖₁, exact", "printed": "2ε² (printed)", "middle": "min(2, e^ε - 1)", "repaired": "2ε"}


@claim(
    "m-lemma-1-step", "[M, Lemma 1]",
    points=grid(epsilon=Axis([round(float(e), 4) for e in np.geomspace(0.01, 3, 25)], [0.1, 1.0])),
    judge=refuted(
        "At ε = {_top[epsilon]:g} randomized response has ‖P-Q‖₁ = {_top[exact]:.6g} > 2ε² = {_top[printed]:.6g}. With "
        "2ε in place of 2ε² the chain {_repaired}, and it is enough for the lemma: ε‖P-Q‖₁ ≤ 2ε².",
        {"exact over printed": "exact / printed", "_top": lambda table: table.top("exact / printed"),
         "_repaired": lambda table: "holds at every ε tried" if all(
             row["exact"] <= row["middle"] <= row["repaired"] for row in table.rows) else "fails too"},
        lambda figures: not figures["exact over printed"].max() <= 1),
    subject=Subject.STEP,
    draw=picture(panel("A step in the proof of Lemma 1", "ε (nats)", "1-norm",
                       *(curves("epsilon", name, label, first=i) for i, (name, label) in enumerate(NAMES.items())),
                       scale="xy")),
    caption="Below ε of about a half the printed 2ε² is less than the exact norm; 2ε is not.",
)  # fmt: skip
def norm(epsilon: float) -> Row:
    """‖P-Q‖₁ ≤ min(2, e^ε - 1) ≤ 2ε² for every ε-DP pair (a step in the proof of Lemma 1, as printed)."""
    pair = dominating_pair(epsilon)
    return {"exact": float(np.abs(pair.p - pair.q).sum()), "middle": min(2.0, math.expm1(epsilon)),
            "printed": 2 * epsilon**2, "repaired": 2 * epsilon}  # fmt: skip


CELLS = ("epsilon", "n", "log10_q")
STEP = Part("2(α-1)nε² < ε√(n log 1/Q), as printed", Subject.STEP, cells=CELLS)
REPAIRED = Part("the same with nε²/2 for 2nε²", Subject.STEP, cells=CELLS)
END = Part("so 2ε√(n log 1/Q), by the repaired step", Subject.STEP, cells=CELLS)


def _step_in_numbers(table: Table) -> str:
    rows = table.where(part=STEP.name, epsilon=0.1, n=10.0, log10_q=-6.0).rows
    example = f"At ε = 0.1, n = 10, Q = 10⁻⁶: {rows[0]['exact']:.4f} < {rows[0]['claimed']:.4f}? " if rows else ""
    return example + (
        "No. The proposition holds all the same (m-proposition-4): with the sharper D_α ≤ αε²/2 [BS, Prop 1.4] in "
        "place of Lemma 1's 2αε² the step is right."
    )


@claim(
    "m-proposition-4-step", "[M, Prop 4]", STEP, REPAIRED, END, ending=_step_in_numbers,
    points=grid(epsilon=Axis([0.01, 0.1, 0.5], [0.1]), n=Axis([1, 10, 100], [10]),
                log10_q=Axis([-0.5, -1.0, -2.0, -3.0, -4.0, -6.0, -9.0, -12.0, -20.0, -40.0], [-1.0, -6.0])),
    subject=Subject.STEP,
    draw=picture(panel("A step in the proof of Proposition 4, ε = {epsilon:g}", "log₁₀ Q", "left side / right side",
                       *(curves("log10_q", "exact / claimed", "n = {n:g}, " + word, by=("n",),
                                where={"part": part.name}, ls=style)
                         for part, word, style in ((STEP, "printed", "-"), (REPAIRED, "repaired", ":"))),
                       level(color="0.3"), where={"epsilon": nearest(0.1)})),
    caption="Left side over right side of the step: above 1 it fails. Dotted: with the sharper constant.",
)  # fmt: skip
def step(epsilon: float, n: float, log10_q: float) -> list[Row]:
    """With α = √(log 1/Q)/(ε√n) ≥ 1, exp(2(α-1)nε²) < exp(ε√(n log 1/Q)) (a step in the proof of Proposition 4)."""
    # The proof's first case, log 1/Q >= n epsilon^2; otherwise nothing is claimed.
    log = -log10_q * math.log(10)
    order, claimed = math.sqrt(log) / (epsilon * math.sqrt(n)), epsilon * math.sqrt(n * log)
    if order < 1:
        return [END(log, max(log, 2 * claimed))]
    return [
        STEP(2 * (order - 1) * n * epsilon**2, claimed),
        REPAIRED((order - 1) * n * epsilon**2 / 2, claimed),
        # log Pr <= (1 - 1/order)(D + log Q) with D = order n epsilon^2 / 2 [BS, Prop 1.4]; log(Pr/Q) adds log 1/Q.
        END((order - 1) * n * epsilon**2 / 2 + log / order, 2 * claimed),
    ]


CURVES = {"exact": "exact", "claimed": "Corollary 1", "basic": "plain sum", "advanced": "[DR, Thm 1.1]"}


@claim(
    "m-corollary-1", "[M, Cor 1]",
    points=grid(lambda row: -math.log(row["delta"]) >= row["epsilon"] ** 2 * row["n"],
                epsilon=Axis([0.01, 0.1, 0.5], [0.1]), delta=Axis([1e-3, 1e-6, 1e-9], [1e-6]),
                n=Axis([1, 3, 10, 30, 100, 300, 1000], [1, 10, 100])),
    judge=bounded(
        "The corollary's ε is {claimed over exact} times the exact one, and {claimed over advanced composition} times "
        "that of advanced composition [DR, Thm 1.1]; in {cells where the sum is smaller} of {claimed over exact.count} "
        "cells the plain sum is smaller.",
        {"claimed over exact": "claimed / exact"},
        {"claimed over advanced composition": "claimed / advanced",
         "cells where the sum is smaller": lambda table: int((table.column("claimed") > table.column("basic")).sum()),
         "cells": lambda table: len(table.rows)}),
    draw=picture(panel("ε = {epsilon:g} each, δ = {delta:g}", "mechanisms n", "ε of all (nats)",
                       *(curves("n", name, label, first=index, marker="o", ms=2.5)
                         for index, (name, label) in enumerate(CURVES.items())),
                       where={"delta": min}, repeat_by="epsilon", scale="xy")),
    caption="The ε of n mechanisms by Corollary 1, by two other rules, and exactly.",
)  # fmt: skip
def corollary(epsilon: float, delta: float, n: float) -> Row:
    """n adaptive ε-DP mechanisms are (4ε√(2n log 1/δ), δ)-DP when log 1/δ ≥ ε²n."""
    return {
        "claimed": renyi_advanced_composition(PureDP(epsilon), int(n), delta).epsilon,
        "basic": n * epsilon,
        "advanced": advanced_composition(ApproximateDP(epsilon, 0.0), int(n), delta).epsilon,
        "exact": k_fold(epsilon, 0.0, None, int(n)).epsilon_at(delta),
    }


INSIDE = Part("δ is enough, ε < 1", cells=("epsilon", "delta"))
BEYOND = Part("δ is enough, ε ≥ 1 (not claimed)", cells=("epsilon", "delta"))


def _noise_needed(table: Table) -> str:
    share, beyond_rows = INSIDE.rows_of(table).column("needed"), BEYOND.rows_of(table)
    violating_epsilons = beyond_rows.column("epsilon")[beyond_rows.column("exact") > beyond_rows.column("claimed")]
    remark = (
        f"The formula first fails at ε = {violating_epsilons.min():g}."
        if len(violating_epsilons)
        else "It holds a little beyond ε = 1, too."
    )
    return f"The noise that is needed is {Ends(share):.3f} of the classical one, for ε below 1. {remark}"


def _until_1(ax: Any, _: Table) -> None:
    ax.axvline(1, color="0.6", lw=1, ls=":")


@claim(
    "m-section-2", "[M, section II]", INSIDE, ending=_noise_needed,
    points=grid(epsilon=Axis([0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.5, 3.0, 5.0, 8.0, 10.0, 15.0, 20.0],
                             [0.1, 0.999, 10.0]), delta=Axis([1e-10, 1e-6, 1e-3, 0.05], [1e-6])),
    draw=picture(
        panel("Noise σ = √(2 log 1.25/δ)/ε", "ε", "exact δ / claimed δ",
              curves("epsilon", "exact / claimed", "δ = {delta:g}", by=("delta",)), level(), _until_1, scale="xy"),
        panel("Noise needed", "ε", "σ needed / classical σ",
              curves("epsilon", "needed", "δ = {delta:g}", by=("delta",)), _until_1, scale="x")),
    caption="Left: the exact δ of the classical noise over the claimed one. Right: the share of that noise that is "
    "needed. Dotted: ε = 1, up to which it is claimed.",
)  # fmt: skip
def classical(epsilon: float, delta: float) -> Row:
    """Gaussian noise of σ > √(2 log 1.25/δ) Δ/ε is (ε, δ)-DP for every ε < 1."""
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    low, high = sigma / 50, 50 * sigma
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian(middle).pair.hockey_stick(epsilon).value > delta else (low, middle)
    exact = float(gaussian(sigma).pair.hockey_stick(epsilon).value)
    return (INSIDE if epsilon < 1 else BEYOND)(exact, delta) | {"needed": high / sigma}


def _noise(noise: str, letter: str) -> Any:
    return panel(f"{noise} noise, at the least order allowed", "group size 2^c", "claimed / exact divergence",
                 curves(lambda rows: 2 ** rows.column("doublings"), "claimed / exact", letter + " = {parameter:g}",
                        by=("parameter",), marker="o", ms=3),
                 where={"multiple": min, "noise": noise}, scale="2", ylim=(0.9, None))  # fmt: skip


@claim(
    "m-proposition-2", "[M, Prop 2]",
    points=grid(noise=["Laplace", "Gaussian"], parameter=Axis([0.1, 0.5, 2.0], [0.5]),
                doublings=Axis([0, 1, 2, 3, 4], [1, 3]), multiple=Axis([1.0, 2.0, 8.0], [1.0, 4.0]))
    + grid(noise=["chain"], parameter=Axis([2, 3, 5], [3], "chain_sizes"), doublings=[1, 2], multiple="multiple",
           seed=Axis(30, 3)),
    judge=bounded(
        "Times too large: {_all}. For Gaussian noise the factor is (3/2)^c at every order (to {(3/2)^c off by:.1e}), "
        "so the loss grows with the group as s^0.585.",
        lambda table: {noise: rows.ratio("claimed", "exact") for noise, rows in table.groups("noise")},
        {"(3/2)^c off by": among(lambda rows: off_by(rows.ratio("claimed", "exact") / 1.5 ** rows.column("doublings")),
                                 noise="Gaussian")}),
    draw=picture(_noise("Laplace", "ε"), _noise("Gaussian", "1/σ"),
                 panel("Chains of random laws", "group size 2^c", "claimed / exact divergence",
                       marks(lambda rows: 2 ** rows.column("doublings"), "claimed / exact", "{parameter:g} outcomes",
                             "os^", by=("parameter",), spread=0.1), level(),
                       where={"noise": "chain"}, scale="y", xticks=[2, 4])),
    caption="How many times 3^c ε exceeds the exact divergence of a group of 2^c.",
)  # fmt: skip
def group(noise: str, parameter: float, doublings: float, multiple: float, seed: float = 0) -> Row:
    """(α, ε)-RDP is (α/2^c, 3^c ε)-RDP for groups of 2^c, when α ≥ 2^(c+1)."""
    # `parameter` is epsilon, 1/sigma or a number of outcomes; the order is `multiple` times the least, 2^(c+1).
    c = int(doublings)
    order = multiple * 2 ** (c + 1)
    if noise == "chain":
        laws = random_chain(2**c, int(parameter), int(seed))
        largest_step = max(max(renyi(a, b, order), renyi(b, a, order)) for a, b in pairwise(laws))
        claim = group_renyi(RenyiDP(order, largest_step), c)
        return {"order": claim.order, "claimed": claim.epsilon, "exact": renyi(laws[0], laws[-1], claim.order)}
    single, many = (
        laplace(parameter * people).pair if noise == "Laplace" else gaussian(1 / parameter, people).pair
        for people in (1, 2**c)
    )
    claim = group_renyi(RenyiDP(order, single.renyi(order).value), c)
    return {"order": claim.order, "claimed": claim.epsilon, "exact": many.renyi(claim.order).lower}
