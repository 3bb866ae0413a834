"""How many respondents a survey needs, against the budget that each of them is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldpopt.deadline import Progress, watched
from ldpopt.errors import InvalidInput
from ldpopt.results import Result
from ldpopt.survey.plan.budget import Budget, split_within
from ldpopt.survey.plan.precision import targets
from ldpopt.survey.plan.spec import SurveySpec

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, eq=False)
class Needed(Result):
    """With a budget of `epsilon` nats: `respondents` meet every target, `invited` people are to be invited for them."""

    epsilon: float
    respondents: int
    invited: int


def invited(spec: SurveySpec, respondents: float) -> int:
    """People to invite, so that enough answer and the sample is worth `respondents` of a simple random one.

    That is respondents x design effect / (1 - nonresponse), rounded up [SSW, section 2.10].

    >>> from ldpopt.survey import QuestionSpec
    >>> asked = (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),)
    >>> invited(SurveySpec("demo", asked, nonresponse=0.2, design_effect=1.5), 1000)
    1875
    """
    return math.ceil(respondents * spec.design_effect / (1 - spec.nonresponse) * (1 - 1e-12))


def respondents_needed(
    spec: SurveySpec,
    epsilons: Sequence[float] = EPSILONS,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> list[Needed]:
    """What all questions need together for several budgets; those that no number of people meets are left out.

    epsilons : budgets in nats, each split over the questions as `plan_survey` splits it; epsilons that questions have
    of their own are not looked at. time_limit : seconds for all budgets together, progress : both as for
    `optimal_channel`; when the time is over, more people than the fewest may be said. `InvalidInput` for budgets that
    are none.

    >>> from ldpopt.survey import QuestionSpec
    >>> respondents_needed(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), [1.0])
    [Needed(epsilon=1.0, respondents=1799, invited=1799)]
    """
    asked = {question.name: targets(question) for question in spec.questions}
    made = []
    with watched(time_limit, progress) as deadline:
        for at, epsilon in enumerate(epsilons):
            budget = Budget(epsilon, spec.delta)
            try:
                found = split_within(asked, budget, (), deadline.turn(at, len(epsilons))).respondents
            except InvalidInput:
                continue
            made.append(Needed(epsilon, found, invited(replace(spec, epsilon=epsilon), found)))
    return made
