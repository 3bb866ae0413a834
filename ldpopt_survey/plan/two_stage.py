"""Plan a survey in two stages: a pilot estimates the shares, and the main stage's channel is designed for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import Array, distribution, positive_epsilon, positive_integer, unit_interval
from ldpopt.values.results import Result
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.groups import pooled_channel
from ldpopt_survey.estimate.linear import GeneralizedLeastSquares, asymptotic_covariance
from ldpopt_survey.estimate.results import simplex_projection
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.plan.question import QuestionPlanner
from ldpopt_survey.plan.spec import SurveySpec

PILOT_FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Shares of the respondents that are tried for the pilot wave."""

UNIFORM_WEIGHT = 0.02
"""The share of the uniform distribution mixed into a pilot's estimate, since shares of zero are never certain."""


def pilot_shares(first: Estimate | Array) -> Array:
    """Return the distribution (k,) that a second stage is designed for.

    Parameters
    ----------
    first : The estimate of the first stage, or its k proportions.

    Returns
    -------
    array
        (k,) the estimate, projected on the simplex and mixed with a little of the uniform distribution.

    >>> pilot_shares(np.array([1.1, -0.1])).round(3)
    array([0.99, 0.01])
    """
    values = first.values if isinstance(first, Estimate) else np.asarray(first, dtype=np.float64)
    p = simplex_projection(values)
    return np.asarray((1 - UNIFORM_WEIGHT) * p + UNIFORM_WEIGHT / len(p))


def second_channel(
    first: Estimate, epsilon: float, eta: float = 1.0, *, time_limit: float | None = None, progress: Progress = False
) -> Channel:
    """Design the optimal channel for the proportions that the pilot stage estimated.

    Every respondent is in one wave only, so each gives one report within epsilon.

    Parameters
    ----------
    first : The estimate of the pilot stage.
    epsilon : In nats.
    eta : The cap on total variation.
    time_limit, progress : As for `optimal_channel`.

    Returns
    -------
    Channel
        The channel, within epsilon and eta.

    Raises
    ------
    InvalidInput
        Unless epsilon is positive and eta is in [0, 1].

    >>> from ldpopt_survey import estimate
    >>> q = [[0.8, 0.2], [0.2, 0.8]]
    >>> second_channel(estimate({0: 300, 1: 700}, q), 1.0).shape
    (2, 2)
    """
    epsilon, eta = positive_epsilon(epsilon), unit_interval(eta, "eta")
    with watched(time_limit, progress) as deadline:
        best = _optimal(pilot_shares(first), epsilon, eta, deadline)
    return Channel(best.matrix, first.labels, best.outputs)


def second_spec(spec: SurveySpec, first: Mapping[str, Estimate], earlier_round: int = 1) -> SurveySpec:
    """Build the survey of a second stage, with the first estimates as pilots and a later round.

    Parameters
    ----------
    spec : The survey of the first stage.
    first : The estimates of the first wave, by question, with the same categories.
    earlier_round : The round of the first wave.

    Returns
    -------
    SurveySpec
        The survey of the second wave. Numbers are planned as before, and so are questions with options that the first
        wave has not estimated.

    Raises
    ------
    InvalidInput
        If an estimate is missing or has other categories.

    >>> from ldpopt_survey import QuestionSpec, estimate
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))
    >>> made = estimate([440, 560], [[0.8, 0.2], [0.2, 0.8]])
    >>> second_spec(spec, {"vote": replace(made, labels=("no", "yes"))}).questions[0].pilot.round(3)
    array([0.402, 0.598])
    """
    questions = []
    for question in spec.questions:
        if len(question.answers) > 1 and all(option.name in first for option in question.answers):
            pilots = [pilot_shares(first[option.name]) for option in question.answers]
            questions.append(replace(question, pilot=[pilot[1] for pilot in pilots]))
            continue
        if question.measure == "mean" or len(question.answers) > 1:
            questions.append(question)
            continue
        if question.name not in first or first[question.name].labels != question.categories:
            expected = "a report of it, and the categories of the plan"
            raise InvalidInput(f"first wave: it has no estimate of {question.name!r}, which needs {expected}")
        questions.append(replace(question, pilot=pilot_shares(first[question.name])))
    shares = {part.name: part.shares for question in questions for part in question.answers}
    targets = tuple(
        target if target.pilot is None else target.with_margins([shares[name] for name in spec.asked_together(target)])
        for target in spec.targets
    )
    return replace(spec, questions=tuple(questions), targets=targets, round=max(spec.round, earlier_round + 1))


def _optimal(p: Array, epsilon: float, eta: float, deadline: Deadline) -> Channel:
    return QuestionPlanner(p).channel(epsilon, eta, **deadline.passed)


MIN_SAVING = 0.005
"""Two stages are proposed only if they should save at least this share of the respondents."""


@dataclass(frozen=True, eq=False, repr=False)
class TwoStagePlan(Result):
    """Sizes of the two stages, the channel of the pilot, and the expected gain of two stages.

    - `pilot`, `second` : respondents of the two waves. `pilot` is 0 if one stage is expected to do as well.
    - `channel` : the channel of the pilot wave, or of the only wave.
    - `shares`, `variances` : the sizes of the pilot wave that were tried, as fractions of n, and for each the expected
      sum of the variances of the estimated proportions.
    - `single`, `informed` : this expected sum for one stage, and for one stage whose channel is designed for the true
      distribution.
    """

    pilot: int
    second: int
    channel: Channel
    shares: Array
    variances: Array
    single: float
    informed: float

    @property
    def saving(self) -> float:
        """The share of the respondents that two stages are expected to save; 0 for one stage."""
        return max(0.0, 1 - float(self.variances.min()) / self.single) if self.pilot else 0.0

    def __repr__(self) -> str:
        if not self.pilot:
            return f"TwoStagePlan(one stage of {self.second}; a pilot wave is not expected to pay)"
        return (
            f"TwoStagePlan({self.pilot} respondents, then {self.second} with the channel that suits them; "
            f"{self.saving:.1%} fewer than in one stage, of {1 - self.informed / self.single:.1%} at best)"
        )


def plan_two_stages(
    n: int,
    epsilon: float,
    scenarios: Any,
    guess: Any = None,
    eta: float = 1.0,
    shares: tuple[float, ...] = PILOT_FRACTIONS,
    draws: int = 10,
    seed: int = 0,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> TwoStagePlan:
    """Choose the fraction of `n` respondents that the pilot wave takes.

    Parameters
    ----------
    n : The number of respondents.
    epsilon : In nats, for each respondent.
    scenarios : (s, k) or (k,), possible true distributions; the expected variance is averaged over them.
    eta : The cap on the total variation.
    guess : (k,), the distribution that the first channel is designed for; uniform by default.
    shares : The sizes of the pilot wave to try, as fractions of n in (0, 1).
    draws : The number of pilot waves simulated for each size and scenario.
    time_limit, progress : As for `optimal_channel`. After the time limit, the remaining sizes are not tried.

    Returns
    -------
    TwoStagePlan
        The sizes of the two waves, and the channel of the first.

    Raises
    ------
    InvalidInput
        For scenarios that are not distributions, and sizes outside (0, 1).

    Notes
    -----
    For every fraction w, pilot waves of w n respondents are simulated, and the second channel is designed for each. The
    expected variance is the mean trace of the inverse of J = w J_1 + (1 - w) J_2, the information of both waves
    [Rao, chapter 5].

    >>> plan_two_stages(2000, 1.0, [0.9, 0.025, 0.025, 0.025, 0.025], draws=2, shares=(0.1, 0.3))
    TwoStagePlan(200 respondents, then 1800 with the channel that suits them; ... fewer than in one stage, ... at best)
    """
    n, epsilon, eta = positive_integer(n, "n", 20), positive_epsilon(epsilon), unit_interval(eta, "eta")
    rows = np.atleast_2d(np.asarray(scenarios, dtype=np.float64))
    truths = [distribution(row, "scenario") for row in rows]
    k = len(truths[0])
    first_pilot = np.full(k, 1 / k) if guess is None else distribution(guess, "guess", size=k)
    if not shares or not (min(shares) > 0 and max(shares) < 1):
        raise invalid("shares", "numbers between 0 and 1", shares)
    rng, draws = np.random.default_rng(seed), positive_integer(draws, "draws")
    expected: list[float] = []
    with watched(time_limit, progress) as deadline:
        inner_deadline = deadline.inner
        first = _optimal(first_pilot, epsilon, eta, inner_deadline)
        single = float(np.mean([_variance([first], [n], p) for p in truths]))
        informed_channels = [_optimal(pilot_shares(p), epsilon, eta, inner_deadline) for p in truths]
        informed = float(
            np.mean([_variance([channel], [n], p) for channel, p in zip(informed_channels, truths, strict=True)])
        )
        for share in deadline.rounds(shares):
            size, total = max(1, round(share * n)), 0.0
            for p in truths:
                for _ in range(draws):
                    frequencies = rng.multinomial(size, first.push(p)) / size
                    estimate = GeneralizedLeastSquares().fit(frequencies, first)[0]
                    second = _optimal(pilot_shares(estimate), epsilon, eta, inner_deadline)
                    total += _variance([first, second], [size, n - size], p)
            expected.append(total / (len(truths) * draws))
    fractions, best = np.array(shares[: len(expected)]), int(np.argmin(expected))
    pilot = round(fractions[best] * n) if expected[best] < (1 - MIN_SAVING) * single else 0
    return TwoStagePlan(pilot, n - pilot, first, fractions, np.array(expected), single, min(informed, single))


def advise_stages(
    question: PlannedQuestion,
    n: int,
    draws: int = 2,
    seed: int = 0,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> TwoStagePlan:
    """Plan two stages with `n` respondents for a planned question, within its guarantees.

    The scenarios are four distributions drawn around the question's pilot. They have a Dirichlet distribution, as
    uncertain as after twenty answers. Without a pilot they are drawn from all distributions.

    Parameters
    ----------
    question : The planned question.
    n : The number of respondents.
    draws : The number of pilot waves simulated for each size and scenario.
    seed : The seed of the simulation.
    time_limit, progress : As for `plan_two_stages`.

    Returns
    -------
    TwoStagePlan
        The sizes of the two waves.

    Raises
    ------
    InvalidInput
        For a question without privacy.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))
    >>> advise_stages(plan_survey(spec).plan.question("vote"), 1000, draws=1)
    TwoStagePlan(one stage of 1000; a pilot wave is not expected to pay)
    """
    k = len(question.categories)
    rng = np.random.default_rng(seed)
    concentrations = np.ones(k) if question.pilot is None else 20 * question.pilot + 0.5
    eta = 1.0 if question.eta >= math.tanh(question.epsilon / 2) * (1 - 1e-9) else question.eta
    return plan_two_stages(
        n, question.epsilon, rng.dirichlet(concentrations, 4), question.pilot, eta, draws=draws, seed=seed,
        time_limit=time_limit, progress=progress,
    )  # fmt: skip


def _variance(channels: list[Channel], sizes: list[int], p: Array) -> float:
    """Return the sum of the variances of the efficient estimate from all stages."""
    channels_in_floats = [Channel(channel.matrix) for channel in channels]
    value = float(np.trace(asymptotic_covariance(pooled_channel(channels_in_floats, sizes), p, sum(sizes))))
    if not value > 0:
        raise invalid("waves", "channels that leave a positive variance", Phrase(f"{value}"))
    return value
