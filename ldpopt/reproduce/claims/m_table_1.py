"""Table I: what Rényi privacy says about bad outcomes and about odds, compared with exact values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.composition.k_fold import trinomial_log_pmf
from ldpopt.privacy import renyi
from ldpopt.privacy.claims import RenyiDP
from ldpopt.privacy.implications import bad_outcome, bayes_factor_log, bayes_factor_moment, bayes_factor_tail
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon, number of randomized responses and order."""
    return grid(epsilon=parameters["epsilons"], n=parameters["counts"], order=parameters["orders"])


def measure(epsilon: float, n: float, order: float) -> list[Row]:
    """The statements of the table for n randomized responses, with one row for each event of the likeliest reports."""
    q = np.exp(trinomial_log_pmf(int(n), epsilon, 0.0))[::2]  # hits minus misses, the rarest number first
    q = q[q > 0] / q.sum()
    p = q[::-1]
    claim = RenyiDP(order, float(renyi(np.stack([p, q]), order)))
    power, moment = bayes_factor_moment(claim)
    ratio = p / q
    shared: Row = {
        "moment_claimed": moment,
        "moment_exact": float(q @ ratio**power),
        "log_claimed": bayes_factor_log(claim),
        "log_exact": float(p @ np.log(ratio)),
    }
    rows: list[Row] = []
    for i in range(1, len(q)):
        event_q, event_p = min(1.0, float(q[:i].sum())), min(1.0, float(p[:i].sum()))
        factor = float(ratio[i - 1])
        rows.append(shared | {
            "probability": event_q,
            "exact": event_p,
            "claimed": bad_outcome(claim, event_q)[1],
            "low_claimed": bad_outcome(claim, event_p)[0],
            "tail_claimed": bayes_factor_tail(claim, max(1.0, factor)),
            "tail_exact": event_p if factor > 1 else 0.0,
        })  # fmt: skip
    return rows


def judge(table: Table) -> Verdict:
    """The ratio of claimed to exact values for every statement; the one on the moment is an equality."""
    q = table.column("probability")
    ratios = {
        "probability, from above": table.column("claimed") / table.column("exact"),
        "probability, from below": q / np.maximum(table.column("low_claimed"), 1e-300),
        "change of log odds": table.column("log_claimed") / table.column("log_exact"),
    }
    tail = table.column("tail_exact") > 0
    ratios["odds move by more than"] = table.column("tail_claimed")[tail] / table.column("tail_exact")[tail]
    moment = table.column("moment_claimed") / table.column("moment_exact")
    said = ", ".join(f"{name} {one.min():.4g} to {one.max():.3g}" for name, one in ratios.items())
    return Verdict(
        outcome_of(np.concatenate([moment, *ratios.values()])),
        f"The moment of the Bayes factor is an equality (to {np.abs(moment - 1).max():.1e}). Times too far "
        f"off: {said}.",
        {f"{name}, {word}": float(pick(one)) for name, one in ratios.items()
         for word, pick in (("smallest", np.min), ("largest", np.max))}
        | {"moment off by": float(np.abs(moment - 1).max())},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """The probability of an event under the other input: exact, and by the table at each order."""
    counts = sorted(set(table.column("n")))
    n = float(counts[len(counts) // 2])
    shown = list(table.where(n=n).groups("epsilon"))
    axes = frames(len(shown))
    for ax, (epsilon, by_epsilon) in zip(axes, shown, strict=True):
        for at, (order, rows) in enumerate(by_epsilon.groups("order")):
            if at == 0:
                line(ax, rows.column("probability"), rows.column("exact"), 6, "exact", marker="o", ms=3)
            line(ax, rows.column("probability"), rows.column("claimed"), at, f"bound at order {order:g}", lw=1.4)
        title = f"{n:g} randomized responses, ε = {epsilon:g}"
        finish(ax, title, "probability under one input", "probability under its neighbour", "lower right", "xy")
    return axes[0]


EXPERIMENT = Experiment(
    name="m-table-1",
    claim="(α, ε)-RDP bounds the probability of any outcome, moments and logarithm of the Bayes factor as in Table I.",
    source="[M, Table I]",
    full={"epsilons": [0.1, 1.0], "counts": [1, 10, 50], "orders": [1.5, 2.0, 4.0, 8.0]},
    quick={"epsilons": [0.5], "counts": [10], "orders": [2.0, 8.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="How likely the likeliest reports of one input are under its neighbour: exactly, and by Table I.",
)
