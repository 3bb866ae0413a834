"""Plan a survey: split the budget, design and round every channel, predict the precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ldpopt.errors import InvalidInput, SolverError
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import positive_integer
from ldpopt_survey.plan.booklet_channels import DesignedChannels
from ldpopt_survey.plan.budget import (
    TABULATED_EPSILONS,
    BudgetRequirement,
    people_to_invite,
)
from ldpopt_survey.plan.planned_survey import PlannedSurvey
from ldpopt_survey.plan.planning import Planning, epsilon_of_bound
from ldpopt_survey.plan.spec import SurveySpec
from ldpopt_survey.plan.too_many import TooManyRespondents
from ldpopt_survey.plan.units import Unit, joint_design, proof_of, respondents_bound, symmetric_proof, units_of

MAX_BOOKLET_EPSILON = 2.0
"""Up to this epsilon a split needs more respondents than one question each, for any number of questions."""

PLAN_PROGRESS = 0.2
"""The share of the progress that the plan is, where a proof follows it."""

PROOF_SECONDS = (3.0, 30.0)
"""Seconds of the first searches for a proof, whose bounds are known before that of the last search, which ends itself.
"""


def plan_survey(
    spec: SurveySpec,
    n: int | None = None,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
    prove: bool = False,
) -> PlannedSurvey:
    """Design the survey that `spec` describes and make the plan.

    Parameters
    ----------
    n : number of available people, if known. The plan then states the expected half-width, too.
    time_limit : seconds for all questions together, as for `optimal_channel`.
    progress : as for `optimal_channel`.
    prove : True to search for a proof that the best joint channel needs so many respondents. The search takes up to
        minutes. Otherwise `proof` is the closed-form bound.

    A question with a separate epsilon is asked of everybody. The others share the remaining budget. Either each
    respondent is asked one booklet with all of it, or it is split (`SurveySpec.design`). Either way the fewest
    respondents meet every target half-width (0.05 if there is none). Without a pilot all shares are taken as equal,
    which for yes/no questions is the least favorable pilot.

    Raises `InvalidInput` when a question has neither an epsilon nor a budget to draw on, `SolverError` when the time is
    over before a question has a channel.

    >>> from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), half_width=0.05),), epsilon=1.0)
    >>> plan_survey(spec, n=2000).plan.question("vote").expected["respondents"]
    1799.0
    >>> several = SurveySpec("demo", tuple(QuestionSpec(name, ("no", "yes")) for name in "abcdefghij"), epsilon=1.0)
    >>> planned = plan_survey(several)
    >>> planned.respondents, planned.split, planned.one_question, planned.least
    (17989, 153915, 17989, 17989)
    """
    with watched(time_limit, progress) as deadline:
        respondents = None if n is None else positive_integer(n, "n")
        design_deadline = deadline.part(0.0, PLAN_PROGRESS) if prove else deadline
        planning = Planning(spec, respondents, design_deadline)
        planned = None
        try:
            if spec.design is None and planning.one_question < planning.respondents and planning.alone is not None:
                planning = planning.alone
            if planning.better_split:
                split_spec = replace(spec, design="split")
                split = Planning(
                    split_spec, respondents, design_deadline, channels=planning.channels, curves=planning.curves
                ).planned()
                if split.respondents < planning.respondents:
                    planned = replace(split, one_question=planning.one_question)
                else:
                    planned = replace(planning.planned(), split=float(split.respondents))
            planned = planned or planning.planned()
        except TooManyRespondents as error:
            planned = _with_other_design(spec, respondents, design_deadline, error)
        for improved in _closer_bounds(planned, spec, deadline.part(PLAN_PROGRESS, 1.0)) if prove else ():
            planned = improved
        return planned


def _with_other_design(
    spec: SurveySpec, respondents: int | None, deadline: Deadline, error: TooManyRespondents
) -> PlannedSurvey:
    """Return the plan of a split budget if no design was requested; raise `error` with a design that serves.

    The error is unchanged if no design serves.
    """
    for design in ("split", "booklets", "one question"):
        if design == spec.design or (spec.design is None and design == "booklets"):
            continue
        try:
            planned = Planning(replace(spec, design=design), respondents, deadline).planned()
        except (InvalidInput, SolverError):
            continue
        if spec.design is None:
            return planned
        message = f'{error}; design = "{design}" in [budget] needs {planned.respondents:,} respondents'
        raise TooManyRespondents(message) from None
    raise error


def closer_bounds(
    planned: PlannedSurvey, spec: SurveySpec, *, time_limit: float | None = None, progress: Progress = False
) -> Iterator[PlannedSurvey]:
    """Yield the plan with larger and larger proved numbers that any survey needs.

    The last plan is that of ``plan_survey(spec, prove=True)``. A caller that stops earlier has the best bound so far.
    time_limit, progress : as for `optimal_channel`.
    """
    with watched(time_limit, progress, "proving") as deadline:
        yield from _closer_bounds(planned, spec, deadline)


def _closer_bounds(planned: PlannedSurvey, spec: SurveySpec, deadline: Deadline) -> Iterator[PlannedSurvey]:
    """Yield the plan with one closer bound after another, from longer and longer searches."""
    epsilon, units = epsilon_of_bound(spec, planned.plan), units_of(spec.questions)
    if epsilon is None or planned.proof is None or planned.respondents <= planned.least:
        return
    targeted_units = tuple(unit for unit in units if unit.targets)
    if (symmetric_dual := symmetric_proof(targeted_units, epsilon, deadline.inner)) is not None:
        bound = respondents_bound(units, epsilon, symmetric_dual)
        if bound.kernel is not None:
            yield planned.bounded_by(bound)
            return
    searches = (*PROOF_SECONDS, math.inf)
    for number, seconds in enumerate(searches):
        left = math.inf if deadline.left is None else deadline.left
        limit = None if math.isinf(min(seconds, left)) else min(seconds, left)
        part = deadline.part(number / len(searches), (number + 1) / len(searches))
        design = joint_design(targeted_units, epsilon, limit, part.tell)
        bound = respondents_bound(units, epsilon, proof_of(design, targeted_units))
        if bound.least > planned.least:
            planned = planned.bounded_by(bound)
            yield planned
        if (design is not None and design.certified) or left <= seconds:
            return


def respondents_needed(
    spec: SurveySpec,
    epsilons: Sequence[float] = TABULATED_EPSILONS,
    *,
    known_respondents: Mapping[float, int] = MappingProxyType({}),
    time_limit: float | None = None,
    progress: Progress = False,
) -> list[BudgetRequirement]:
    """List the respondents that all questions together need, for several budgets.

    epsilons : budgets in nats, each used as `plan_survey` uses it, but without a search for channels of several
        questions, which may need fewer people. Fixed epsilons of single questions are ignored.
    known_respondents : by epsilon, those of plans that exist already.
    time_limit : seconds for all budgets together; progress : both as for `optimal_channel`. When the time is over, more
        people than the fewest may be said.

    Budgets that no number of respondents suffices for are left out. `InvalidInput` for epsilons that are not
    positive.

    >>> from ldpopt_survey import QuestionSpec
    >>> respondents_needed(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), [1.0])
    [BudgetRequirement(epsilon=1.0, respondents=1799, invited=1799)]
    """
    questions = tuple(replace(question, epsilon=None) for question in spec.questions)
    requirements: list[BudgetRequirement] = []
    units: tuple[Unit, ...] | None = None
    channels = DesignedChannels()
    with watched(time_limit, progress) as deadline:
        for number, epsilon in enumerate(epsilons):
            variant = replace(spec, epsilon=epsilon, questions=questions)
            if (respondents := known_respondents.get(epsilon)) is None:
                try:
                    turn = deadline.turn(number, len(epsilons))
                    planning = Planning(variant, None, turn, False, units, channels)
                    units, respondents = planning.units, _coarse_respondents(planning)
                except InvalidInput:
                    continue
            # A plan for a smaller budget is within this one, too.
            smaller_budgets = (other for other in requirements if other.epsilon <= epsilon)
            respondents = min([respondents, *(other.respondents for other in smaller_budgets)])
            requirements.append(BudgetRequirement(epsilon, respondents, people_to_invite(variant, respondents)))
    return requirements


def _coarse_respondents(planning: Planning) -> int:
    """Compute the respondents of the plan, or of a split budget if they are fewer."""
    if not (planning.spec.epsilon or 0.0) > MAX_BOOKLET_EPSILON or not planning.better_split:
        return planning.respondents
    if planning.respondents <= planning.for_targets:
        return int(planning.split)
    # Also the split may rest on rare reports.
    split = Planning(replace(planning.spec, design="split"), None, planning.deadline.inner, search_joint=False)
    return min(planning.respondents, split.respondents)
