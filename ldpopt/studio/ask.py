"""The view "Ask a question": one of half-width, people and epsilon from the other two, and other protocols."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ldpopt.distribution import positive_epsilon
from ldpopt.errors import InvalidInput, Phrase, SolverError
from ldpopt.privacy import local_dp, total_variation
from ldpopt.reports.words import guarantee_in_words
from ldpopt.rounding import ceil_digits
from ldpopt.studio.fields import State, choice, field, items, mapping, numbers, position, take, whole, wrong
from ldpopt.studio.question import Asked, Made, asked, designed, shown, surveys, wishes
from ldpopt.survey.plan.budget import Budget, split_budget
from ldpopt.survey.plan.protocols import compare_protocols
from ldpopt.survey.plan.question import MAX_EPSILON, MIN_EPSILON, MIN_ETA_SHARE, QuestionPlanner

MAX_QUESTIONS = 8
"""The most questions under one budget on the page."""
MAX_PEOPLE = 10**9
SOLVE = ("respondents", "half_width", "epsilon")


def view(state: State) -> dict[str, Any]:
    """The content of the page for a survey, or only ``{"slow": True}`` if it takes long; then `job` computes it.

    questions : 1 to 8 questions, each with pilot, labels, name, half_width.
    solve : which of respondents, half_width and epsilon is found from the other two.
    split : shares of epsilon, one for each question.
    at : the position of the question to show. aim, level, eta : as in `question.wishes`.
    seed : of the simulated surveys. category : the answer whose interval is shown for all simulated surveys.

    >>> told = view({"questions": [{"pilot": [0.3, 0.7]}], "solve": "respondents", "epsilon": 1.0})
    >>> told["respondents"], told["questions"][0]["proof"]["verified"]
    (1738, True)
    """
    questions, solve = _questions(state), take(state, "solve", choice(SOLVE), "respondents")
    designs = sum(len(question.labels) for question in questions) * (5 if solve == "epsilon" else 1)
    if not all(question.quick for question in questions) or designs > 60:
        return {"slow": True}
    return told(state)


def job(state: State, report: Callable[[float], None]) -> dict[str, Any]:
    """The content of `view`, for surveys that take long."""
    report(0.0)
    return told(state, report)


def split(state: State, report: Callable[[float], None]) -> dict[str, Any]:
    """The shares of epsilon with which the fewest people reach every half-width, and the number of these people.

    >>> two = [{"pilot": [0.3, 0.7]}, {"pilot": [0.3, 0.7]}]
    >>> found = split({"questions": two, "epsilon": 2.0}, lambda share: None)
    >>> [round(share, 6) for share in found["split"]]
    [0.5, 0.5]
    """
    report(0.0)
    questions, epsilon = _questions(state), take(state, "epsilon", positive_epsilon)
    asked_for = {str(at): (question.pilot, question.target) for at, question in enumerate(questions)}
    with field("epsilon"):
        found = split_budget(asked_for, Budget(epsilon), designed=0, progress=report)
    parts = [found.epsilons[name] for name in asked_for]
    return {"split": [part / math.fsum(parts) for part in parts], "respondents": found.respondents}


def told(state: State, report: Callable[[float], None] = lambda share: None) -> dict[str, Any]:
    """The content of `view`, however long it takes."""
    aim, level, eta = wishes(state)
    questions = _questions(state)
    epsilons, n = _solved(state, questions, eta, report)
    if eta < (least := MIN_ETA_SHARE * math.tanh(max(epsilons) / 2)):
        raise wrong("eta", f"at least {ceil_digits(least, 3)}, or everybody has to be asked", eta)
    answered = []
    for at, (question, epsilon) in enumerate(zip(questions, epsilons, strict=True)):
        with field(f"questions.{at}.pilot"):
            answered.append(_answered(question, epsilon, eta, n))
        report(0.5 + 0.4 * (at + 1) / len(questions))
    needed = max(one["needed"] for one in answered)
    n = needed if n is None else n
    at = take(state, "at", position(len(questions)), 0)
    question, made = questions[at], designed(questions[at], epsilons[at], eta)
    for one, each in zip(answered, questions, strict=True):
        one["half_width"] = each.target.width_for(one.pop("variance"), n)
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
        "at": at,
        "channel": shown(made.channel, question.pilot),
        "guarantees": [guarantee_in_words(local_dp(made.channel)), guarantee_in_words(total_variation(made.channel))],
        "protocols": _protocols(question, made, epsilons[at], eta, n),
        "survey": surveys(state, question, made.channel, n, epsilons[at]),
        "note": made.design.note,
    }


def _questions(state: State) -> list[Asked]:
    aim, level, _ = wishes(state)
    given = take(state, "questions", items)
    if not 1 <= len(given) <= MAX_QUESTIONS:
        raise wrong("questions", f"1 to {MAX_QUESTIONS} questions", len(given))
    with field("questions"):
        parts = [mapping(one, "question") for one in given]
    return [asked(one, f"questions.{at}.", aim, level) for at, one in enumerate(parts)]


def _solved(
    state: State, questions: list[Asked], eta: float, report: Callable[[float], None]
) -> tuple[list[float], int | None]:
    """The epsilon of every question, and the number of people, or None if that is to be found."""
    solve = take(state, "solve", choice(SOLVE), "respondents")
    n = None
    if solve != "respondents":
        n = take(state, "respondents", whole)
        if n > MAX_PEOPLE:
            raise wrong("respondents", f"at most {MAX_PEOPLE}", n)
    if solve == "epsilon":
        assert n is not None
        epsilons = []
        for at, question in enumerate(questions):
            with field("respondents" if len(questions) == 1 else f"questions.{at}.half_width"):
                epsilons.append(QuestionPlanner(question.pilot).epsilon(question.target, n, eta))
            report(0.5 * (at + 1) / len(questions))
        return epsilons, n
    total, shares = take(state, "epsilon", positive_epsilon), _split(state, len(questions))
    for share in shares:
        if not MIN_EPSILON <= total * share <= MAX_EPSILON:
            expected = f"{MIN_EPSILON:g} to {MAX_EPSILON:g} nats for each question"
            raise wrong("epsilon" if len(shares) == 1 else "split", expected, total * share)
    return [total * share for share in shares], n


def _split(state: State, count: int) -> list[float]:
    """The shares of epsilon; equal shares if none are given."""
    shares = take(state, "split", numbers, None)
    if shares is None or count == 1:
        return [1 / count] * count
    if len(shares) != count or min(shares) <= 0 or max(shares) > 1e9:
        raise wrong("split", f"{count} positive shares, one for each question", Phrase(str(shares[:8])))
    total = math.fsum(shares)
    return [share / total for share in shares]


def _answered(question: Asked, epsilon: float, eta: float, n: int | None) -> dict[str, Any]:
    """The results for one question at its epsilon."""
    try:
        made = designed(question, epsilon, eta)
    except SolverError as error:
        raise InvalidInput(f"The channel was not found: {error}") from None
    variance = question.target.variance_of(made.channel, question.pilot)
    if not variance < math.inf:
        raise InvalidInput("epsilon: expected a channel that tells all answers apart, got one that does not")
    plain = float((question.pilot * (1 - question.pilot)).max())
    return {
        "name": question.name,
        "labels": question.labels,
        "pilot": question.pilot,
        "wanted": question.target.width,
        "epsilon": epsilon,
        "eta": float(total_variation(made.channel)),
        "needed": question.target.respondents_for(variance),
        "open": question.target.respondents_for(plain),
        "variance": variance,
        "value": made.design.value,
        "bound": made.design.bound,
        "relative_gap": made.design.relative_gap,
        "proof": made.proof,
    }


def _protocols(question: Asked, made: Made, epsilon: float, eta: float, n: int) -> list[dict[str, Any]]:
    """Every protocol for the question, with the number of people that it needs and the half-width that it reaches."""
    plain = float((question.pilot * (1 - question.pilot)).max())
    target = question.target
    if not plain > 0:  # one answer has share 1: without privacy nobody is needed, so ratios mean nothing
        return []
    table = compare_protocols(question.pilot, target, epsilon, eta, made.channel)
    return [
        {
            "name": row.protocol,
            "optimal": row.protocol == "optimal channel",
            "epsilon": row.epsilon,
            "eta": row.eta,
            "needed": row.respondents,
            "half_width": target.width_for(row.design_effect * plain, n),
            "times": row.design_effect,
        }
        for row in table
    ]
