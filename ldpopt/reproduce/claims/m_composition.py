"""Lemma 1 and Proposition 4: how much likelier an event becomes under composition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.composition.k_fold import trinomial_log_pmf
from ldpopt.privacy.claims import PureDP
from ldpopt.privacy.conversions import pure_to_renyi
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Lemma 1 at every order; Proposition 4 for every number of mechanisms."""
    return [
        *grid(part=["lemma 1"], epsilon=parameters["epsilons"], order=parameters["orders"]),
        *grid(part=["proposition 4"], epsilon=parameters["epsilons"], n=parameters["counts"]),
    ]


def measure(part: str, epsilon: float, order: float = 2.0, n: float = 1) -> Row | list[Row]:
    """2 alpha epsilon^2 and the largest Rényi divergence; or the largest factor of an event under n mechanisms."""
    if part == "lemma 1":
        return {"claimed": 2 * order * epsilon**2, "exact": pure_to_renyi(PureDP(epsilon), order).epsilon}
    # Events of large likelihood ratio are best for their probability: "at least d more hits than misses".
    log_p = trinomial_log_pmf(int(n), epsilon, 0.0)
    tail = np.logaddexp.accumulate(log_p[::-1])[::-1]
    other = np.logaddexp.accumulate(log_p)[::-1]  # the same event with hits and misses exchanged
    inside = (other < -1e-12) & (np.arange(len(log_p)) % 2 == 0)
    return [
        {"log_q": float(q), "exact": float(p - q), "claimed": 2 * epsilon * math.sqrt(n * -float(q))}
        for p, q in zip(tail[inside], other[inside], strict=True)
    ]


def judge(table: Table) -> Verdict:
    """The ratios of claimed to exact values for both statements."""
    lemma, events = table.where(part="lemma 1"), table.where(part="proposition 4")
    first, second = (one.column("claimed") / one.column("exact") for one in (lemma, events))
    rare = second[events.column("log_q") <= -math.log(2)]
    return Verdict(
        outcome_of(np.concatenate([first, second])),
        f"Lemma 1's 2αε² is {first.min():.3g} to {first.max():.3g} times the largest divergence of ε-DP mechanisms. "
        f"Proposition 4's exponent is at least {second.min():.3g} times the exact one over all {len(second)} "
        f"likelihood-ratio events, and up to {rare.max():.3g} times for those of probability at most a half.",
        {
            "Lemma 1 over exact, smallest": float(first.min()),
            "Lemma 1 over exact, largest": float(first.max()),
            "Proposition 4 over exact, smallest": float(second.min()),
            "Proposition 4 over exact, largest for Q at most 1/2": float(rare.max()),
        },
    )


def draw(table: Table) -> Any:
    """Lemma 1 against the order; Proposition 4 against the probability."""
    left, right = frames(2)
    for at, (epsilon, rows) in enumerate(table.where(part="lemma 1").groups("epsilon")):
        line(left, rows.column("order"), rows.column("claimed") / rows.column("exact"), at, f"ε = {epsilon:g}")
    finish(left, "Lemma 1: 2αε² over the largest divergence", "order α", "times too large", scale="x")
    epsilon = min(table.column("epsilon"), key=lambda e: abs(e - 0.1))
    for at, (n, rows) in enumerate(table.where(part="proposition 4", epsilon=float(epsilon)).groups("n")):
        shown = rows.column("log_q") > -40
        log_q = rows.column("log_q")[shown] / math.log(10)
        line(right, log_q, rows.column("exact")[shown], at, f"n = {n:g}, exact", ls="-")
        line(right, log_q, rows.column("claimed")[shown], at, f"n = {n:g}, Proposition 4", ls=":")
    finish(right, f"Proposition 4, ε = {epsilon:g}", "log₁₀ of the event's probability Q", "log(P/Q) (nats)")
    return left


EXPERIMENT = Experiment(
    name="m-proposition-4",
    claim="ε-DP has D_α ≤ 2αε², and an event of probability Q under one input has at most "
    "exp(2ε√(n log 1/Q)) Q under its neighbour, after n mechanisms.",
    source="[M, Prop 4; M, Lemma 1]",
    full={"epsilons": [0.01, 0.1, 1.0], "orders": [1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0], "counts": [10, 100]},
    quick={"epsilons": [0.1, 1.0], "orders": [1.0, 4.0], "counts": [10]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Left: Lemma 1. Right: the exact gain of likelihood-ratio events of n-fold randomized response (solid) and "
    "Proposition 4 (dotted).",
)
