"""The conjecture that groups of s have (s^2 mu, s tau) if individuals have (mu, tau), for every mechanism."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy import FinitePair, mcdp
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, Table
from ldpopt.reproduce.statements import Part, old_inequalities

PURE = Part("pure privacy with μ = ε(e^ε-1)/2 and τ = ε", cells=("first", "second", "third"))
CHAIN = Part("two outcomes: τ of the pair at distance 2", Subject.QUESTION, cells=("first", "second", "third"))

KNOWN = (0.99484, 0.97907, 0.93180)
"""Probabilities of the first of two outcomes under three inputs. The middle input is a neighbour of the other two."""


def points(parameters: Parameters) -> list[Row]:
    """The counterexample, chains near it, chains with equal ratios of odds, and then pure privacy of groups."""
    chains = [KNOWN, *(tuple(chain) for chain in _chains(parameters["chains"]).tolist())]
    named = [{"kind": "chain", "first": a, "second": b, "third": c} for a, b, c in chains]
    return [*named, *({"kind": "pure", "first": e, "second": 2.0, "third": 0.0} for e in parameters["epsilons"])]


def _chains(count: int) -> Array:
    """Chains of three probabilities, whose log odds fall by two random steps."""
    rng = np.random.default_rng(18)
    odds = rng.uniform(0, 6, (count, 1)) - np.cumsum(rng.uniform(0.05, 2, (count, 2)), axis=1)
    start = np.concatenate([odds[:, :1] + rng.uniform(0.05, 2, (count, 1)), odds], axis=1)
    return np.asarray(np.round(1 / (1 + np.exp(-start)), 6))


def standards(a: float, b: float) -> tuple[float, float]:
    """(mu, tau) of two laws on two outcomes, the larger of both directions."""
    found = mcdp(FinitePair(np.array([a, 1 - a]), np.array([b, 1 - b])))
    return float(found.mu.value), float(found.tau.value)


def measure(kind: str, first: float, second: float, third: float) -> Row:
    """The standard of the group and s times the standard of neighbours, and the same for the mean."""
    if kind == "pure":  # s people: the pair that dominates s epsilon
        high = 1 / (1 + math.exp(-first * second))
        mu, tau = standards(high, 1 - high)
        return {"part": PURE.name, "exact": tau, "claimed": second * first,
                "mu": mu, "mu_claimed": second**2 * first * math.expm1(first) / 2}  # fmt: skip
    near = standards(first, second), standards(second, third)
    mu, tau = standards(first, third)
    return {"part": CHAIN.name, "exact": tau, "claimed": 2 * max(near[0][1], near[1][1]),
            "mu": mu, "mu_claimed": 4 * max(near[0][0], near[1][0])}  # fmt: skip


def ending(table: Table) -> str:
    """The counterexample and the means."""
    known = table.where(first=KNOWN[0], second=KNOWN[1]).rows[0]
    wrong = int((table.column("mu") > table.column("mu_claimed") * (1 + 1e-9)).sum())
    return (
        "With Pr(first outcome) = 0.99484, 0.97907, 0.93180 the neighbours have τ at most "
        f"{float(known['claimed']) / 2:.5f}, the "
        f"ends {known['exact']:.5f}, more than twice that, though their μ = {known['mu']:.4f} is below 4 times the "
        f"neighbours'. The mean s²μ is exceeded in {wrong} of {len(table.rows)} cases."
    )


def draw(table: Table) -> Any:
    """The ratio of the ends' tau to twice the neighbours' tau, against the neighbours' tau."""
    (ax,) = frames(1, 6.2, 4.3)
    rows = table.where(part=CHAIN.name)
    ratio = rows.column("exact") / rows.column("claimed")
    wrong = ratio > 1 + 1e-9
    near = rows.column("claimed") / 2
    ax.plot(near[~wrong], ratio[~wrong], "o", ms=4, mfc="none", color=COLOURS[0], label="at most s τ")
    ax.plot(near[wrong], ratio[wrong], "o", ms=4, color=COLOURS[1], label="more than s τ")
    ax.plot(near[0], ratio[0], "*", ms=13, color=COLOURS[4], mec="black", label="0.99484, 0.97907, 0.93180")
    ax.axhline(1, color="0.4", lw=1)
    finish(
        ax, "Groups of two, mechanisms with two outcomes", "τ of the neighbours", "τ of the ends / (2 τ)", "lower left"
    )
    ax.set_ylim(0.3, 1.12)
    return ax


EXPERIMENT: Experiment = old_inequalities(
    (PURE, CHAIN),
    title="",
    draw=draw,
    ending=ending,
    name="dr-group-guess",
    claim="Every (μ, τ)-CDP mechanism is (s²μ, sτ)-CDP for groups of s (suspected; shown for pure privacy and Gaussian "
    "noise).",
    source="[DR, section 1]",
    full={"chains": 400, "epsilons": [0.1, 0.5, 1.0, 2.0, 4.0]},
    quick={"chains": 20, "epsilons": [1.0]},
    points=points,
    measure=measure,
    caption="The standard of two inputs at distance 2 over twice that of neighbours: above the line the guess is "
    "wrong.",
    subject=Subject.QUESTION,
)
