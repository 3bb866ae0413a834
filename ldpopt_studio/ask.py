"""The view "Ask a question": half-width, respondents or epsilon from the other two, for the optimal channel.

The kernel verifies the channel. The view also has simulated surveys, and other protocols for the same question.
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
from ldpopt_studio.fields import (
    Report,
    State,
    attributes_of,
    choice,
    field,
    field_error,
    number_between,
    positive_integer,
    take,
)
from ldpopt_studio.tell import proof_view
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
"""Largest number of answers of a question on the page; the library accepts 40."""


@dataclass(frozen=True)
class TotalVarianceHalfWidth(HalfWidth):
    """A target half-width of the widest interval, for the channel that minimizes the sum of the answers' variances."""

    def criterion(self, k: int) -> Criterion:
        """Return the criterion that sums all variances."""
        return AOptimal()


AIMS = {"together": TotalVarianceHalfWidth, "widest": HalfWidth}
"""Criteria that the channel minimizes: the sum of the variances, or the largest, as `ldpopt survey plan` does."""

MAX_ANSWERS_AT_ONCE = {"together": 12, "widest": 8}
"""Up to this many answers a channel takes less than about 0.1 s. Channels with more answers are jobs."""


@dataclass(frozen=True, eq=False)
class Question:
    """A question of a survey.

    Attributes
    ----------
    name : str
    labels : tuple of str
        The k answers.
    pilot : (k,) array
        Expected proportions of the answers.
    target : HalfWidth
        Target half-width of the widest interval.
    """

    name: str
    labels: tuple[str, ...]
    pilot: Array
    target: HalfWidth

    @property
    def aim(self) -> str:
        """The criterion that the channel minimizes, a key of `AIMS`."""
        return "together" if isinstance(self.target, TotalVarianceHalfWidth) else "widest"

    @property
    def is_quick(self) -> bool:
        """True if the channel can be computed without a job."""
        return len(self.labels) <= MAX_ANSWERS_AT_ONCE[self.aim]

    @property
    def variance_without_privacy(self) -> float:
        """The largest variance of an answer's proportion, for one respondent without privacy."""
        return float((self.pilot * (1 - self.pilot)).max())


def read_question(state: State, prefix: str = "", aim: str = "together", level: float = 0.95) -> Question:
    """Read a question of a state: its pilot, and optionally its name, labels and half_width.

    Errors name fields that begin with `prefix`.
    """
    pilot = take(state, "pilot", fields.proportions, prefix=prefix)
    k = len(pilot)
    if not 2 <= k <= MAX_ANSWERS:
        raise field_error(f"{prefix}pilot", f"2 to {MAX_ANSWERS} answers", k)
    labels = fields.answer_labels(take(state, "labels", fields.texts, None, prefix), k, prefix)
    if not all(labels):
        raise field_error(f"{prefix}labels", "names of answers", Phrase("an empty one"))
    target_type = AIMS[aim]
    target = take(
        state,
        "half_width",
        lambda width, _: target_type(number(width, "half-width"), level),
        target_type(0.05, level),
        prefix,
    )
    return Question(take(state, "name", fields.text, "question", prefix), labels, pilot, target)


def read_options(state: State) -> tuple[str, float, float]:
    """Read the aim, the confidence level and the cap eta on total variation from a state."""
    aim = take(state, "aim", choice(list(AIMS)), "together")
    level = take(state, "level", number, 0.95)
    with field("level"):
        check_level(level)
    eta = take(state, "eta", unit_interval, 1.0)
    if eta == 0:
        raise field_error("eta", "a number above 0, since reports carry no information at 0", 0)
    return aim, level, eta


class QuestionDesign(NamedTuple):
    """A question's design, its channel, and the page's badge for it."""

    design: Design
    channel: Channel
    proof: dict[str, Any]


def design_question(question: Question, epsilon: float, eta: float = 1.0) -> QuestionDesign:
    """Design the certified channel of a question at epsilon (nats) and eta.

    The kernel verifies it. The last designs are cached.
    """
    return _design_cached(question.labels, question.pilot.tobytes(), question.aim, epsilon, eta)


@lru_cache(maxsize=128)
def _design_cached(labels: tuple[str, ...], pilot: bytes, aim: str, epsilon: float, eta: float) -> QuestionDesign:
    constraints: list[Constraint] = [LocalDP(epsilon)]
    if eta < math.tanh(epsilon / 2):  # [GI, Prop 2]: a larger cap has no effect
        constraints.append(TotalVariation(eta))
    utility = FisherInformation(np.frombuffer(pilot), AIMS[aim](0.05).criterion(len(labels)), inputs=labels)
    design = optimal_channel(utility, constraints)
    return QuestionDesign(design, design.channel, proof_view(design, design.verify()))


def channel_view(channel: Channel, pilot: Array) -> dict[str, Any]:
    """Describe a channel for the page: its matrix, labels and the frequency of each report."""
    return {
        "matrix": channel.matrix,
        "inputs": [str(label) for label in channel.inputs],
        "outputs": [str(label) for label in channel.outputs],
        "chances": channel.push(pilot),
    }


SIMULATED_SURVEYS = 40
"""Number of surveys in a simulation. The page displays all answers of the first, and one answer of all."""


def simulate_surveys(state: State, question: Question, channel: Channel, n: int, epsilon: float) -> dict[str, Any]:
    """Simulate surveys of n respondents whose answers have the pilot's proportions.

    `SIMULATED_SURVEYS` surveys use the channel, and one uses randomized response at the same epsilon (nats). The same
    seed
    gives the same surveys. The state's ``category`` is the answer whose interval is returned for all of them.
    """
    seed = take(state, "seed", positive_integer, 1)
    k, level = len(question.labels), question.target.level
    category = min(take(state, "category", positive_integer, 1), k) - 1
    simulated = [_simulate_survey(question, channel, n, level, (seed, number)) for number in range(SIMULATED_SURVEYS)]
    response = Channel(randomized_response(k, epsilon).matrix, question.labels)
    response_survey = _simulate_survey(question, response, n, level, (seed, SIMULATED_SURVEYS))
    intervals = [answers[category] for answers in simulated]
    return {
        "seed": seed,
        "n": n,
        "level": level,
        "category": category,
        "answers": simulated[0],
        "beside": {"name": "randomized response", "answers": response_survey},
        "repeats": intervals,
        "covered": sum(answer["covers"] for answer in intervals),
    }


def _simulate_survey(
    question: Question, channel: Channel, n: int, level: float, seed: tuple[int, int]
) -> list[dict[str, Any]]:
    """Return the estimate and interval of each answer, and whether the interval covers the true proportion."""
    chances = channel.push(question.pilot)
    counts = np.random.default_rng(seed).multinomial(n, chances / chances.sum())
    estimates = estimate(CountTable.from_counts(counts, channel.outputs), channel)
    intervals = estimates.intervals(Binomial(level)).clip()
    rows = np.column_stack([estimates.values, intervals.lower, intervals.upper, question.pilot]).tolist()
    return [
        {"estimate": value, "low": low, "high": high, "truth": truth, "covers": low <= truth <= high}
        for value, low, high, truth in rows
    ]


MAX_QUESTIONS = 8
"""Largest number of questions under one budget on the page."""
MAX_RESPONDENTS = 10**9
QUANTITIES = ("respondents", "half_width", "epsilon")


def view(state: State) -> dict[str, Any]:
    """Compute the content of the page for a survey, or return ``{"slow": True}``.

    In the latter case a job computes it, by `survey_view`.
    """
    questions, solve = read_questions(state), take(state, "solve", choice(QUANTITIES), "respondents")
    designs = sum(len(question.labels) for question in questions) * (5 if solve == "epsilon" else 1)
    if not all(question.is_quick for question in questions) or designs > 60:
        return {"slow": True}
    return survey_view(state)


def best_split(state: State, report: Report) -> dict[str, Any]:
    """Find the split of epsilon that needs the fewest respondents for all half-widths."""
    report(0.0)
    questions, epsilon = read_questions(state), take(state, "epsilon", positive_epsilon)
    targets = {str(number): (question.pilot, question.target) for number, question in enumerate(questions)}
    with field("epsilon"):
        budget_split = split_budget(targets, Budget(epsilon), max_designed=0, progress=report)
    epsilons = [budget_split.epsilons[name] for name in targets]
    return {"split": [part / math.fsum(epsilons) for part in epsilons], "respondents": budget_split.respondents}


def survey_view(state: State, report: Report = lambda share: None) -> dict[str, Any]:
    """Compute the content of the page for a survey.

    Parameters
    ----------
    state : mapping
        - ``questions``: 1 to 8 questions, each with pilot, labels, name and half_width.
        - ``split``: the questions' fractions of epsilon; equal by default.
        - ``at``: position of the question that is displayed.
        - ``solve``: the quantity to compute from the other two, one of `QUANTITIES`.
        - ``aim``, ``level``, ``eta``: as in `read_options`.
    report : function
        Called with the progress, from 0 to 1.
    """
    report(0.0)
    (aim, level, eta), questions = read_options(state), read_questions(state)
    epsilons, n = _epsilons_and_respondents(state, questions, eta, report)
    if eta < (min_eta := MIN_ETA_SHARE * math.tanh(max(epsilons) / 2)):
        raise field_error(
            "eta", f"at least {ceil_digits(min_eta, 3)}; below it a survey would need too many people", eta
        )
    results = []
    for position, (question, epsilon) in enumerate(zip(questions, epsilons, strict=True)):
        with field(f"questions.{position}.pilot"):
            results.append(_question_view(question, epsilon, eta))
        report(0.5 + 0.4 * (position + 1) / len(questions))
    respondents_needed = max(result["needed"] for result in results)
    n = respondents_needed if n is None else n
    position = take(state, "at", fields.position(len(questions)), 0)
    question, question_design = questions[position], design_question(questions[position], epsilons[position], eta)
    for result, item in zip(results, questions, strict=True):
        result["half_width"] = item.target.width_for(result.pop("variance"), n)
    total_epsilon = math.fsum(epsilons)
    return {
        "solve": take(state, "solve", choice(QUANTITIES), "respondents"),
        "aim": aim,
        "level": level,
        "epsilon": total_epsilon,
        "split": [epsilon / total_epsilon for epsilon in epsilons],
        "respondents": n,
        "needed": respondents_needed,
        "questions": results,
        "at": position,
        "channel": channel_view(question_design.channel, question.pilot),
        "guarantees": [guarantee_in_words(measure(question_design.channel)) for measure in (local_dp, total_variation)],
        "protocols": _protocol_rows(question, question_design, epsilons[position], eta, n),
        "survey": simulate_surveys(state, question, question_design.channel, n, epsilons[position]),
        "note": question_design.design.note,
    }


def read_questions(state: State) -> list[Question]:
    """Read the questions of a state."""
    aim, level, _ = read_options(state)
    entries = take(state, "questions", fields.items)
    if not 1 <= len(entries) <= MAX_QUESTIONS:
        raise field_error("questions", f"1 to {MAX_QUESTIONS} questions", len(entries))
    with field("questions"):
        question_states = [fields.mapping(question, "question") for question in entries]
    return [
        read_question(question, f"questions.{position}.", aim, level)
        for position, question in enumerate(question_states)
    ]


def _epsilons_and_respondents(
    state: State, questions: list[Question], eta: float, report: Report
) -> tuple[list[float], int | None]:
    """Return each question's epsilon (nats), and the number of respondents, or None if that is unknown."""
    unknown = take(state, "solve", choice(QUANTITIES), "respondents")
    read_respondents = number_between(1, MAX_RESPONDENTS, f"a whole number of at most {MAX_RESPONDENTS}", integer=True)
    n = None if unknown == "respondents" else take(state, "respondents", read_respondents)
    if unknown == "epsilon":
        assert n is not None
        epsilons = []
        for position, question in enumerate(questions):
            with field("respondents" if len(questions) == 1 else f"questions.{position}.half_width"):
                epsilons.append(QuestionPlanner(question.pilot).epsilon(question.target, n, eta))
            report(0.5 * (position + 1) / len(questions))
        return epsilons, n
    total_epsilon, shares = take(state, "epsilon", positive_epsilon), _read_split(state, len(questions))
    for share in shares:
        if not MIN_EPSILON <= total_epsilon * share <= MAX_EPSILON:
            expected = f"{MIN_EPSILON:g} to {MAX_EPSILON:g} nats for each question"
            raise field_error("epsilon" if len(shares) == 1 else "split", expected, total_epsilon * share)
    return [total_epsilon * share for share in shares], n


def _read_split(state: State, count: int) -> list[float]:
    """Read the questions' fractions of epsilon; they are equal if the state has none."""
    shares = take(state, "split", fields.numbers, None)
    if shares is None or count == 1:
        return [1 / count] * count
    if len(shares) != count or min(shares) <= 0 or max(shares) > 1e9:
        raise field_error("split", f"{count} positive shares, one for each question", Phrase(str(shares[:8])))
    total = math.fsum(shares)
    return [share / total for share in shares]


def _question_view(question: Question, epsilon: float, eta: float) -> dict[str, Any]:
    """Compute the results for one question at its epsilon (nats)."""
    try:
        question_design = design_question(question, epsilon, eta)
    except SolverError as error:
        raise InvalidInput(f"The channel could not be computed: {error}") from None
    variance = question.target.variance_of(question_design.channel, question.pilot)
    if not variance < math.inf:
        raise InvalidInput("epsilon, eta: expected limits at which reports distinguish all answers, got stricter ones")
    return {
        **attributes_of(question, "name labels pilot"),
        "wanted": question.target.width,
        "epsilon": epsilon,
        "eta": float(total_variation(question_design.channel)),
        "needed": question.target.respondents_for(variance),
        "open": question.target.respondents_for(question.variance_without_privacy),
        "variance": variance,
        **attributes_of(question_design.design, "value bound relative_gap"),
        "proof": question_design.proof,
    }


def _protocol_rows(
    question: Question, question_design: QuestionDesign, epsilon: float, eta: float, n: int
) -> list[dict[str, Any]]:
    """List the protocols for the question with the respondents that each needs and the half-width that it reaches."""
    variance, target = question.variance_without_privacy, question.target
    if (
        not variance > 0
    ):  # one answer has proportion 1: without privacy no respondent is needed, so ratios are undefined
        return []
    table = compare_protocols(question.pilot, target, epsilon, eta, question_design.channel)
    return [
        {
            "name": row.protocol,
            "optimal": row.protocol == "optimal channel",
            **attributes_of(row, "epsilon eta"),
            "needed": row.respondents,
            "half_width": target.width_for(row.design_effect * variance, n),
            "times": row.design_effect,
        }
        for row in table
    ]
