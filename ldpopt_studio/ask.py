"""The view "Ask a question": one of half-width, people and epsilon from the other two, and other protocols.

A question goes to its optimal channel, verified by the kernel, and to simulated surveys of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    Constraint,
    Criterion,
    Design,
    FisherInformation,
    LocalDP,
    TotalVariation,
    optimal_channel,
)
from ldpopt.errors import InvalidInput, Phrase, SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.privacy import local_dp, total_variation
from ldpopt.values.distribution import Array, number, positive_epsilon, unit_interval
from ldpopt.words import guarantee_in_words
from ldpopt_studio import fields
from ldpopt_studio.fields import Report, State, choice, field, picked, take, whole, within, wrong
from ldpopt_studio.tell import proof
from ldpopt_survey import (
    Binomial,
    Budget,
    CountTable,
    HalfWidth,
    QuestionPlanner,
    compare_protocols,
    estimate,
    split_budget,
)
from ldpopt_survey.estimate.intervals import check_level
from ldpopt_survey.plan.question import MAX_EPSILON, MIN_EPSILON, MIN_ETA_SHARE

MAX_ANSWERS = 24
"""The most answers of a question on the page; the library takes 40."""


@dataclass(frozen=True)
class Together(HalfWidth):
    """A target half-width of the widest interval, reached with the channel of the least sum of variances."""

    def criterion(self, k: int) -> Criterion:
        """The sum of all variances."""
        return AOptimal()


AIMS = {"together": Together, "widest": HalfWidth}
"""What the channel minimises: the sum of the answers' variances, or the largest, as `ldpopt survey plan` does."""

AT_ONCE = {"together": 12, "widest": 8}
"""Up to this many answers a channel takes less than about 0.1 s. Beyond, it is a job."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A question: its answers, a pilot for their shares (k,), and the wanted half-width of the widest interval."""

    name: str
    labels: tuple[str, ...]
    pilot: Array
    target: HalfWidth

    @property
    def aim(self) -> str:
        """What the channel minimises, one of `AIMS`."""
        return "together" if isinstance(self.target, Together) else "widest"

    @property
    def quick(self) -> bool:
        """Whether its channel can be computed at once."""
        return len(self.labels) <= AT_ONCE[self.aim]

    @property
    def open_variance(self) -> float:
        """The largest variance of an answer's share, for one respondent without privacy."""
        return float((self.pilot * (1 - self.pilot)).max())


def asked(state: State, place: str = "", aim: str = "together", level: float = 0.95) -> Asked:
    """The question of a state: its pilot, shares or counts, and perhaps name, labels and half_width.

    A `FieldError` is about a field whose name begins with `place`.
    """
    pilot = take(state, "pilot", fields.shares, place=place)
    k = len(pilot)
    if not 2 <= k <= MAX_ANSWERS:
        raise wrong(f"{place}pilot", f"2 to {MAX_ANSWERS} answers", k)
    labels = fields.names_of(take(state, "labels", fields.texts, None, place), k, place)
    if not all(labels):
        raise wrong(f"{place}labels", "names of answers", Phrase("an empty one"))
    kind = AIMS[aim]
    target = take(
        state, "half_width", lambda width, _: kind(number(width, "half-width"), level), kind(0.05, level), place
    )
    return Asked(take(state, "name", fields.text, "question", place), labels, pilot, target)


def wishes(state: State) -> tuple[str, float, float]:
    """What the channel minimises, the confidence of intervals, and a cap on total variation, of a state."""
    aim = take(state, "aim", choice(list(AIMS)), "together")
    level = take(state, "level", number, 0.95)
    with field("level"):
        check_level(level)
    eta = take(state, "eta", unit_interval, 1.0)
    if eta == 0:
        raise wrong("eta", "a number above 0, since a report that nobody can tell anything by says nothing", 0)
    return aim, level, eta


class Made(NamedTuple):
    """A question's design, its channel, and the page's badge for it."""

    design: Design
    channel: Channel
    proof: dict[str, Any]


def designed(question: Asked, epsilon: float, eta: float = 1.0) -> Made:
    """The certified channel of a question at epsilon (nats) and eta, verified by the kernel; it is cached."""
    return _designed(question.labels, question.pilot.tobytes(), question.aim, epsilon, eta)


@lru_cache(maxsize=128)
def _designed(labels: tuple[str, ...], pilot: bytes, aim: str, epsilon: float, eta: float) -> Made:
    constraints: list[Constraint] = [LocalDP(epsilon)]
    if eta < math.tanh(epsilon / 2):  # [GI, Prop 2]: a larger cap has no effect
        constraints.append(TotalVariation(eta))
    utility = FisherInformation(np.frombuffer(pilot), AIMS[aim](0.05).criterion(len(labels)), inputs=labels)
    design = optimal_channel(utility, constraints)
    return Made(design, design.channel, proof(design, design.verify()))


def shown(channel: Channel, pilot: Array) -> dict[str, Any]:
    """A channel as the page draws it: its matrix, the labels, and how often each report occurs."""
    return {
        "matrix": channel.matrix,
        "inputs": [str(label) for label in channel.inputs],
        "outputs": [str(label) for label in channel.outputs],
        "chances": channel.push(pilot),
    }


REPEATS = 40
"""Surveys that are simulated at a time. The first is shown with all answers, all of them with one answer."""


def surveys(state: State, question: Asked, channel: Channel, n: int, epsilon: float) -> dict[str, Any]:
    """`REPEATS` surveys of n people with the pilot's shares, and one by randomized response at this epsilon.

    The same seed gives the same surveys. category : the answer whose interval is shown for all of them.
    """
    seed = take(state, "seed", whole, 1)
    k, level = len(question.labels), question.target.level
    category = min(take(state, "category", whole, 1), k) - 1
    drawn = [_survey(question, channel, n, level, (seed, number)) for number in range(REPEATS)]
    classical = Channel(randomized_response(k, epsilon).matrix, question.labels)
    beside = _survey(question, classical, n, level, (seed, REPEATS))
    repeats = [answers[category] for answers in drawn]
    return {
        "seed": seed,
        "n": n,
        "level": level,
        "category": category,
        "answers": drawn[0],
        "beside": {"name": "randomized response", "answers": beside},
        "repeats": repeats,
        "covered": sum(answer["covers"] for answer in repeats),
    }


def _survey(question: Asked, channel: Channel, n: int, level: float, seed: tuple[int, int]) -> list[dict[str, Any]]:
    """The estimate of each answer in a simulated survey, its interval, and whether this holds the true share."""
    chances = channel.push(question.pilot)
    counts = np.random.default_rng(seed).multinomial(n, chances / chances.sum())
    estimated = estimate(CountTable.from_counts(counts, channel.outputs), channel)
    shown = estimated.intervals(Binomial(level)).clip()
    parts = np.column_stack([estimated.values, shown.lower, shown.upper, question.pilot]).tolist()
    return [
        {"estimate": value, "low": low, "high": high, "truth": truth, "covers": low <= truth <= high}
        for value, low, high, truth in parts
    ]


MAX_QUESTIONS = 8
"""The most questions under one budget on the page."""
MAX_PEOPLE = 10**9
SOLVE = ("respondents", "half_width", "epsilon")


def view(state: State) -> dict[str, Any]:
    """The content of the page for a survey, or only ``{"slow": True}`` if a job should compute it, by `told`."""
    questions, solve = questions_of(state), take(state, "solve", choice(SOLVE), "respondents")
    designs = sum(len(question.labels) for question in questions) * (5 if solve == "epsilon" else 1)
    if not all(question.quick for question in questions) or designs > 60:
        return {"slow": True}
    return told(state)


def split(state: State, report: Report) -> dict[str, Any]:
    """The shares of epsilon with which the fewest people reach every half-width, and the number of these people."""
    report(0.0)
    questions, epsilon = questions_of(state), take(state, "epsilon", positive_epsilon)
    asked_for = {str(number): (question.pilot, question.target) for number, question in enumerate(questions)}
    with field("epsilon"):
        budget_split = split_budget(asked_for, Budget(epsilon), max_designed=0, progress=report)
    parts = [budget_split.epsilons[name] for name in asked_for]
    return {"split": [part / math.fsum(parts) for part in parts], "respondents": budget_split.respondents}


def told(state: State, report: Report = lambda share: None) -> dict[str, Any]:
    """The content of the page for a survey.

    questions : 1 to 8, each with pilot, labels, name, half_width. split : their shares of epsilon. at : the one shown.
    solve : which of respondents, half_width and epsilon is found from the other two. aim, level, eta : as in `wishes`.
    """
    report(0.0)
    (aim, level, eta), questions = wishes(state), questions_of(state)
    epsilons, n = _solved(state, questions, eta, report)
    if eta < (least := MIN_ETA_SHARE * math.tanh(max(epsilons) / 2)):
        raise wrong("eta", f"at least {ceil_digits(least, 3)}, or everybody has to be asked", eta)
    answered = []
    for place, (question, epsilon) in enumerate(zip(questions, epsilons, strict=True)):
        with field(f"questions.{place}.pilot"):
            answered.append(_answered(question, epsilon, eta))
        report(0.5 + 0.4 * (place + 1) / len(questions))
    needed = max(result["needed"] for result in answered)
    n = needed if n is None else n
    place = take(state, "at", fields.position(len(questions)), 0)
    question, chosen = questions[place], designed(questions[place], epsilons[place], eta)
    for result, each in zip(answered, questions, strict=True):
        result["half_width"] = each.target.width_for(result.pop("variance"), n)
    total = math.fsum(epsilons)
    return {
        "solve": take(state, "solve", choice(SOLVE), "respondents"),
        "aim": aim,
        "level": level,
        "epsilon": total,
        "split": [epsilon / total for epsilon in epsilons],
        "respondents": n,
        "needed": needed,
        "questions": answered,
        "at": place,
        "channel": shown(chosen.channel, question.pilot),
        "guarantees": [guarantee_in_words(measure(chosen.channel)) for measure in (local_dp, total_variation)],
        "protocols": _protocols(question, chosen, epsilons[place], eta, n),
        "survey": surveys(state, question, chosen.channel, n, epsilons[place]),
        "note": chosen.design.note,
    }


def questions_of(state: State) -> list[Asked]:
    """The questions of a state."""
    aim, level, _ = wishes(state)
    given = take(state, "questions", fields.items)
    if not 1 <= len(given) <= MAX_QUESTIONS:
        raise wrong("questions", f"1 to {MAX_QUESTIONS} questions", len(given))
    with field("questions"):
        parts = [fields.mapping(question, "question") for question in given]
    return [asked(question, f"questions.{number}.", aim, level) for number, question in enumerate(parts)]


def _solved(state: State, questions: list[Asked], eta: float, report: Report) -> tuple[list[float], int | None]:
    """The epsilon of every question, and the number of people, or None if that is to be found."""
    solve = take(state, "solve", choice(SOLVE), "respondents")
    people = within(1, MAX_PEOPLE, f"a whole number of at most {MAX_PEOPLE}", integer=True)
    n = None if solve == "respondents" else take(state, "respondents", people)
    if solve == "epsilon":
        assert n is not None
        epsilons = []
        for number, question in enumerate(questions):
            with field("respondents" if len(questions) == 1 else f"questions.{number}.half_width"):
                epsilons.append(QuestionPlanner(question.pilot).epsilon(question.target, n, eta))
            report(0.5 * (number + 1) / len(questions))
        return epsilons, n
    total, shares = take(state, "epsilon", positive_epsilon), _split(state, len(questions))
    for share in shares:
        if not MIN_EPSILON <= total * share <= MAX_EPSILON:
            expected = f"{MIN_EPSILON:g} to {MAX_EPSILON:g} nats for each question"
            raise wrong("epsilon" if len(shares) == 1 else "split", expected, total * share)
    return [total * share for share in shares], n


def _split(state: State, count: int) -> list[float]:
    """The shares of epsilon; equal shares if none are given."""
    shares = take(state, "split", fields.numbers, None)
    if shares is None or count == 1:
        return [1 / count] * count
    if len(shares) != count or min(shares) <= 0 or max(shares) > 1e9:
        raise wrong("split", f"{count} positive shares, one for each question", Phrase(str(shares[:8])))
    total = math.fsum(shares)
    return [share / total for share in shares]


def _answered(question: Asked, epsilon: float, eta: float) -> dict[str, Any]:
    """The results for one question at its epsilon."""
    try:
        solved = designed(question, epsilon, eta)
    except SolverError as error:
        raise InvalidInput(f"The channel was not found: {error}") from None
    variance = question.target.variance_of(solved.channel, question.pilot)
    if not variance < math.inf:
        raise InvalidInput("epsilon: expected a channel that tells all answers apart, got one that does not")
    return {
        **picked(question, "name labels pilot"),
        "wanted": question.target.width,
        "epsilon": epsilon,
        "eta": float(total_variation(solved.channel)),
        "needed": question.target.respondents_for(variance),
        "open": question.target.respondents_for(question.open_variance),
        "variance": variance,
        **picked(solved.design, "value bound relative_gap"),
        "proof": solved.proof,
    }


def _protocols(question: Asked, result: Made, epsilon: float, eta: float, n: int) -> list[dict[str, Any]]:
    """Every protocol for the question, with the number of people that it needs and the half-width that it reaches."""
    plain, target = question.open_variance, question.target
    if not plain > 0:  # one answer has share 1: without privacy nobody is needed, so ratios mean nothing
        return []
    table = compare_protocols(question.pilot, target, epsilon, eta, result.channel)
    return [
        {
            "name": row.protocol,
            "optimal": row.protocol == "optimal channel",
            **picked(row, "epsilon eta"),
            "needed": row.respondents,
            "half_width": target.width_for(row.design_effect * plain, n),
            "times": row.design_effect,
        }
        for row in table
    ]
