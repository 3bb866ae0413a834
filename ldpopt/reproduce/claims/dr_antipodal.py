"""Lemmas 3.7 to 3.10: antipodal distributions, and the mean of the privacy loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy import antipodal_pair
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Random pairs of several sizes whose largest loss is epsilon; the one with seed 0 is randomized response."""
    return grid(epsilon=parameters["epsilons"], k=parameters["sizes"], seed=list(range(parameters["pairs"])))


def divergence(p: Array, q: Array) -> float:
    """KL(p || q) for laws with the same support."""
    used = p > 0
    return float(np.sum(p[used] * np.log(p[used] / q[used])))


def measure(epsilon: float, k: float, seed: float) -> Row:
    """KL of the pair, of its antipodal refinement in both directions, the largest loss, and the lemma's bound."""
    if seed == 0:
        p = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
        q = p[::-1]
    else:
        rng = np.random.default_rng([int(k), int(seed)])
        tilt = rng.uniform(-epsilon, epsilon, int(k))
        q = rng.dirichlet(np.ones(int(k)))
        p = q * np.exp(tilt / 2)
        p /= p.sum()
    split_p, split_q = antipodal_pair(p, q)
    loss = float(np.max(np.abs(np.log(p / q))))
    return {
        "loss": loss, "kl": divergence(p, q), "antipodal": divergence(split_p, split_q),
        "reversed": divergence(split_q, split_p), "bound": loss * math.expm1(loss) / 2,
        "both": divergence(p, q) + divergence(q, p), "older": loss * math.expm1(loss),
        "sharp": loss * math.tanh(loss / 2),
    }  # fmt: skip


def judge(table: Table) -> Verdict:
    """The verdict: KL never falls, is the same in both directions, and stays below both bounds."""
    kl, antipodal = table.column("kl"), table.column("antipodal")
    even = float(np.max(np.abs(table.column("reversed") / antipodal - 1)))
    bound, sharp = table.column("bound") / antipodal, table.column("sharp") / antipodal
    older = table.column("older") / table.column("both")  # Lemma 3.7 bounds the sum of both directions
    steps = np.concatenate([antipodal / kl, sharp, bound, older, [1.0 if even < 1e-9 else 0.0]])
    return Verdict(
        outcome_of(steps),
        f"The refinement multiplies KL by {(antipodal / kl).min():.4f} to {(antipodal / kl).max():.3g}; it is the same "
        f"in both directions then (to {even:.1e}). Lemma 3.8's ε(e^ε - 1)/2 is {bound.min():.4f} to "
        f"{bound.max():.3g} times too large, Lemma 3.7's ε(e^ε - 1), for both directions together, {older.min():.4f} "
        "to "
        f"{older.max():.3g} times, ε tanh(ε/2) {sharp.min():.4f} times at the least: randomized response attains it.",
        {"KL after / before, smallest": float((antipodal / kl).min()), "directions differ by": even,
         "bound over KL, smallest": float(bound.min()), "Lemma 3.7 over both, smallest": float(older.min()),
         "ε tanh(ε/2) over KL, smallest": float(sharp.min())},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """KL before and after the refinement, against the largest loss, with both bounds."""
    (ax,) = frames(1, 6.0, 4.3)
    loss = table.column("loss")
    ax.plot(loss, table.column("kl"), "o", ms=4, mfc="none", color=COLOURS[0], label="KL of the pair")
    ax.plot(loss, table.column("antipodal"), "x", ms=4, color=COLOURS[1], label="KL of its refinement")
    x = np.geomspace(min(loss), max(loss), 100)
    ax.plot(x, x * np.expm1(x) / 2, color="0.5", lw=1.2, ls="--", label="ε(e^ε - 1)/2")
    ax.plot(x, x * np.tanh(x / 2), color="0.2", lw=1.2, label="ε tanh(ε/2)")
    finish(ax, "Lemmas 3.8 to 3.10", "largest loss ε (nats)", "KL divergence (nats)", scale="xy")
    return ax


EXPERIMENT = Experiment(
    name="dr-lemma-3-9",
    claim="Every pair refines to one whose losses are -ε, 0 and ε, of no smaller KL divergence (3.9), the same in both "
    "directions (3.10) and at most ε(e^ε - 1)/2 (3.8); both directions together have at most ε(e^ε - 1) (3.7).",
    source="[DR, Lemma 3.9; DR, Lemma 3.10; DR, Lemma 3.8; DR, Lemma 3.7]",
    full={"epsilons": [0.1, 0.5, 1.0, 3.0], "sizes": [2, 4, 10], "pairs": 12},
    quick={"epsilons": [0.5, 3.0], "sizes": [4], "pairs": 3},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="KL of random pairs before and after the refinement, and the two bounds on it.",
)
