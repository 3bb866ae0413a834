"""How many respondents a survey needs, for several privacy budgets."""

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
    """For a budget of `epsilon` nats: the `respondents` that meet every target, and the people to invite, `invited`."""

    epsilon: float
    respondents: int
    invited: int


def invited(spec: SurveySpec, respondents: float) -> int:
    """The number of people to invite, so that the answers are as precise as a simple random sample of `respondents`.

    It is respondents x design effect / (1 - nonresponse), rounded up [SSW, section 2.10]. The design effect is the
    factor by which clusters and weights raise the number of respondents that is needed.

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
    """The respondents that all questions together need, for several budgets.

    epsilons : budgets in nats, each split over the questions as `plan_survey` splits it. Epsilons that the description
        fixes for single questions are ignored.
    time_limit : seconds for all budgets together; progress : both as for `optimal_channel`. When the time is over, more
        people than the fewest may be said.

    Budgets at which no number of respondents meets the targets are left out. `InvalidInput` for epsilons that are not
    positive.

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
