"""Lemmas 7.3 and 7.4: the exponential mechanism, computed exactly, and the lower bound from a packing."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array
from ldpopt.privacy import FinitePair, local_dp
from ldpopt.privacy.claims import ZCDP
from ldpopt.privacy.implications import information_any
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, grid
from ldpopt.reproduce.statements import Part, inequalities

PRIVACY = Part("7.3: it is ε-DP", cells=("epsilon", "size", "n"))
TAIL = Part("7.3: Pr(loss > min + 2Δ/ε log(|T|/β)) ≤ β", cells=("epsilon", "size", "beta"))
MEAN = Part("7.3: E loss ≤ min + 2Δ/ε log |T|", cells=("epsilon", "size"))
PACKING = Part("7.4: (1-β) log |T| - log 2 ≤ ρn²", cells=("epsilon", "size", "n"))
PARTS = (PRIVACY, TAIL, MEAN, PACKING)


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon, number of answers and number of people. A person changes every loss by at most 1."""
    return grid(epsilon=parameters["epsilons"], size=parameters["sizes"], n=parameters["people"])


def exponential(losses: Array, epsilon: float) -> Array:
    """The law of its answers, proportional to exp(-epsilon loss / 2), along the last axis."""
    weights = np.exp(-epsilon / 2 * (losses - losses.min(axis=-1, keepdims=True)))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def measure(epsilon: float, size: float, n: float) -> list[Row]:
    """Data sets are votes: the loss of an answer is the number of people against it."""
    answers, people = int(size), int(n)
    unanimous = people * (1.0 - np.eye(answers))
    one_less = unanimous + np.roll(np.eye(answers), 1, axis=1) * -1 + np.eye(answers)  # one person changes sides
    laws, near = exponential(unanimous, epsilon), exponential(one_less, epsilon)
    worst = max(local_dp(np.stack([a, b])).lower for a, b in zip(laws, near, strict=True))
    rows: list[Row] = [{"part": PRIVACY.name, "exact": worst, "claimed": epsilon}]
    rng = np.random.default_rng([73, answers, people])
    for losses in (np.sort(rng.uniform(0, people, answers)), np.append(0.0, np.full(answers - 1, float(people)))):
        law, best = exponential(losses, epsilon), float(losses.min())
        rows.append(
            {"part": MEAN.name, "exact": float(law @ losses) - best, "claimed": 2 / epsilon * math.log(answers)}
        )
        for beta in (0.5, 0.1, 0.01):
            beyond = float(law[losses > best + 2 / epsilon * math.log(answers / beta)].sum())
            rows.append({"part": TAIL.name, "beta": beta, "exact": beyond, "claimed": beta})
    wrong = 1 - float(laws[0, 0])  # the chance of an answer other than the unanimous one
    rho = float(FinitePair(laws[0], near[0]).zcdp().value)
    bound = information_any(ZCDP(0.0, rho), people)
    information = (1 - wrong) * math.log(answers) - math.log(2)
    if information > 0:
        rows.append({"part": PACKING.name, "exact": information, "claimed": bound})
    return rows


EXPERIMENT: Experiment = inequalities(
    PARTS,
    title="Lemmas 7.3 and 7.4",
    ending="Votes of n people on |T| answers, all changes of a vote; ρ is the mechanism's own.",
    name="bs-lemma-7-3",
    claim="The exponential mechanism is ε-DP with loss at most min + 2Δ/ε log(|T|/β) but for probability β, and "
    "2Δ/ε log |T| on average (7.3); a (0, ρ)-zCDP mechanism that tells |T| apart has (1-β) log |T| - log 2 ≤ ρn² "
    "(7.4).",
    source="[BS, Lemma 7.3; BS, Lemma 7.4]",
    full={"epsilons": [0.1, 0.5, 1.0, 2.0], "sizes": [2, 4, 16, 64], "people": [1, 4, 10, 30]},
    quick={"epsilons": [0.5, 2.0], "sizes": [4, 16], "people": [4, 10]},
    points=points,
    measure=measure,
    caption="What the exponential mechanism does exactly, against the bounds.",
)
