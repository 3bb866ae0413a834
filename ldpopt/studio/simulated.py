"""Simulated surveys: the result of one survey, and how often intervals contain the truth over many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import Array
from ldpopt.mechanisms import randomized_response
from ldpopt.studio.fields import State, take, whole
from ldpopt.studio.question import Asked
from ldpopt.survey.estimate.counts import CountTable
from ldpopt.survey.estimate.estimate import estimate
from ldpopt.survey.estimate.intervals import Intervals, Score

REPEATS = 40
"""Surveys that are simulated at a time. The first is shown with all answers, all of them with one answer."""


def surveys(state: State, question: Asked, channel: Channel, n: int, epsilon: float) -> dict[str, Any]:
    """`REPEATS` surveys of n people whose answers have the pilot's shares, each report through the channel.

    seed : for the random numbers, 1 by default; the same seed gives the same surveys. category : the answer whose
        interval is shown for all surveys.

    For comparison it also simulates one survey by randomized response at the same epsilon.

    >>> from ldpopt.studio.question import asked, designed
    >>> question = asked({"pilot": [0.3, 0.7]})
    >>> found = surveys({"seed": 7}, question, designed(question, 1.0).channel, 2000, 1.0)
    >>> found["seed"], len(found["repeats"]), found["covered"] <= REPEATS
    (7, 40, True)
    """
    seed = take(state, "seed", whole, 1)
    category = take(state, "category", whole, 1) - 1
    category = min(category, len(question.labels) - 1)
    level = question.target.level
    found = [_survey(question, channel, n, level, (seed, at)) for at in range(REPEATS)]
    first = found[0]
    repeats = [_one(values[category], limits, category, question) for values, limits in found]
    classical = Channel(randomized_response(len(question.labels), epsilon).matrix, question.labels)
    return {
        "seed": seed,
        "n": n,
        "level": level,
        "category": category,
        "answers": [_one(first[0][at], first[1], at, question) for at in range(len(question.labels))],
        "beside": {
            "name": "randomized response",
            "answers": _all(*_survey(question, classical, n, level, (seed, REPEATS)), question),
        },
        "repeats": repeats,
        "covered": sum(one["covers"] for one in repeats),
    }


def _survey(question: Asked, channel: Channel, n: int, level: float, seed: tuple[int, int]) -> tuple[Array, Intervals]:
    """The estimates and the intervals of one survey, from multinomial counts, as n independent reports have."""
    chances = channel.push(question.pilot)
    counts = np.random.default_rng(seed).multinomial(n, chances / chances.sum())
    found = estimate(CountTable.from_counts(counts, channel.outputs), channel)
    return found.values, found.intervals(Score(level)).clip()


def _all(values: Array, limits: Intervals, question: Asked) -> list[dict[str, Any]]:
    return [_one(values[at], limits, at, question) for at in range(len(values))]


def _one(value: float, limits: Intervals, at: int, question: Asked) -> dict[str, Any]:
    """The estimate of one answer, its interval, and whether the interval contains the true share."""
    low, high, truth = float(limits.lower[at]), float(limits.upper[at]), float(question.pilot[at])
    return {"estimate": float(value), "low": low, "high": high, "truth": truth, "covers": low <= truth <= high}
