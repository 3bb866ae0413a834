"""A question from the page to its optimal channel, verified by the kernel, and to simulated surveys of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import AOptimal, Constraint, Design, FisherInformation, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.utilities.criterion import Criterion
from ldpopt.distribution import Array, unit_interval
from ldpopt.errors import Phrase
from ldpopt.mechanisms import randomized_response
from ldpopt.studio.fields import (
    FieldError,
    State,
    choice,
    field,
    names_of,
    number,
    shares,
    take,
    text,
    texts,
    whole,
    wrong,
)
from ldpopt.studio.tell import proof
from ldpopt.survey.estimate.counts import CountTable
from ldpopt.survey.estimate.estimate import estimate
from ldpopt.survey.estimate.intervals import Intervals, Score, check_level
from ldpopt.survey.plan.precision import HalfWidth

MAX_ANSWERS = 24
"""The most answers of a question on the page; the library takes 40."""

AIMS = ("together", "widest")
"""What the channel minimises: the sum of the answers' variances, as in `ldpopt survey plan`, or the largest of them."""

AT_ONCE = {"together": 12, "widest": 8}
"""Up to this many answers a channel takes less than about 0.1 s. Beyond, it is a job."""


@dataclass(frozen=True)
class Together(HalfWidth):
    """A target half-width of the widest interval, reached with the channel of the least sum of variances.

    >>> Together(0.05).criterion(3)
    AOptimal()
    """

    def criterion(self, k: int) -> Criterion:
        """The sum of all variances."""
        return AOptimal()


@dataclass(frozen=True, eq=False)
class Asked:
    """A question: its answers, a pilot for their shares (k,), and the wanted half-width of the widest interval."""

    name: str
    labels: tuple[str, ...]
    pilot: Array
    target: HalfWidth

    @property
    def quick(self) -> bool:
        """Whether its channel can be computed at once."""
        return len(self.labels) <= AT_ONCE["together" if isinstance(self.target, Together) else "widest"]


def asked(state: State, place: str = "", aim: str = "together", level: float = 0.95) -> Asked:
    """The question of a state; `FieldError` for a wrong field. The names of fields begin with `place`.

    name : the question's name, if any. labels : k distinct names of answers, if any.
    pilot : k shares or counts, which are divided by their sum. half_width : in (0, 1), 0.05 by default.

    >>> asked({"pilot": [30, 70]}).pilot
    array([0.3, 0.7])
    """
    pilot = _take(state, place, "pilot", shares)
    k = len(pilot)
    if not 2 <= k <= MAX_ANSWERS:
        raise wrong(f"{place}pilot", f"2 to {MAX_ANSWERS} answers", k)
    labels = names_of(_take(state, place, "labels", texts, None), k, place)
    if not all(labels):
        raise wrong(f"{place}labels", "names of answers", Phrase("an empty one"))
    width = _take(state, place, "half_width", lambda value, what: number(value, "half-width"), 0.05)
    with field(f"{place}half_width"):
        target = (Together if aim == "together" else HalfWidth)(width, level)
    return Asked(_take(state, place, "name", text, "") or "question", labels, pilot, target)


def wishes(state: State) -> tuple[str, float, float]:
    """(aim, level, eta) of a state: what the channel minimises, the confidence of intervals, a cap on total variation.

    >>> wishes({"aim": "widest"})
    ('widest', 0.95, 1.0)
    """
    aim = take(state, "aim", choice(AIMS), "together")
    level = take(state, "level", number, 0.95)
    with field("level"):
        check_level(level)
    eta = take(state, "eta", unit_interval, 1.0)
    if eta == 0:
        raise wrong("eta", "a number above 0, since a report that nobody can tell anything by says nothing", 0)
    return aim, level, eta


@dataclass(frozen=True)
class Made:
    """A question's design, and the page's badge for it."""

    design: Design
    proof: dict[str, Any]

    @property
    def channel(self) -> Channel:
        """The designed channel."""
        return self.design.channel


def designed(question: Asked, epsilon: float, eta: float = 1.0) -> Made:
    """The certified channel of a question at epsilon (nats) and eta, verified by the kernel. The last few are cached.

    >>> made = designed(asked({"pilot": [0.3, 0.7]}), 1.0)
    >>> made.channel.shape, made.proof["verified"]
    ((2, 2), True)
    """
    return _designed(question.labels, question.pilot.tobytes(), isinstance(question.target, Together), epsilon, eta)


@lru_cache(maxsize=128)
def _designed(labels: tuple[str, ...], pilot: bytes, together: bool, epsilon: float, eta: float) -> Made:
    criterion = (Together if together else HalfWidth)(0.05).criterion(len(labels))
    constraints: list[Constraint] = [LocalDP(epsilon)]
    if eta < math.tanh(epsilon / 2):  # [GI, Prop 2]: a larger cap has no effect
        constraints.append(TotalVariation(eta))
    utility = FisherInformation(np.frombuffer(pilot), criterion, inputs=labels)
    design = optimal_channel(utility, constraints)
    return Made(design, proof(design, design.verify()))


def shown(channel: Channel, pilot: Array) -> dict[str, Any]:
    """A channel as the page draws it: its matrix, the labels, and how often each report occurs.

    >>> shown(Channel([[0.75, 0.25], [0.25, 0.75]]), np.array([0.5, 0.5]))["chances"]
    array([0.5, 0.5])
    """
    return {
        "matrix": channel.matrix,
        "inputs": [str(label) for label in channel.inputs],
        "outputs": [str(label) for label in channel.outputs],
        "chances": channel.push(pilot),
    }


def _take(state: State, place: str, name: str, read: Any, *default: Any) -> Any:
    """`fields.take`, with errors about the field ``place + name``."""
    try:
        return take(state, name, read, *default)
    except FieldError as error:
        raise FieldError(place + error.field, str(error)) from None


REPEATS = 40
"""Surveys that are simulated at a time. The first is shown with all answers, all of them with one answer."""


def surveys(state: State, question: Asked, channel: Channel, n: int, epsilon: float) -> dict[str, Any]:
    """`REPEATS` surveys of n people whose answers have the pilot's shares, each report through the channel.

    seed : for the random numbers, 1 by default; the same seed gives the same surveys. category : the answer whose
        interval is shown for all surveys.

    For comparison it also simulates one survey by randomized response at the same epsilon.

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
