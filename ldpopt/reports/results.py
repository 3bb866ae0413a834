"""The estimates of a survey as data: what ``ldpopt survey estimate --json`` prints, with what the reports are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ldpopt.survey.collect.rowset import total

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.estimate.estimate import Estimate


def results(
    estimates: Mapping[str, Estimate], counts: Counts, answered: Mapping[str, Estimate] | None = None
) -> dict[str, dict[str, Any]]:
    """JSON-ready estimates by question, each with the plan and the reports that it is of.

    plan : the plan's checksum. reports : the fingerprint of all rows counted. simulation, unlabelled : as in `Counts`.
    answered : estimates among those who answered, which the question's data then have under
    ``among_those_who_answered``.

    >>> import numpy as np
    >>> from ldpopt.survey import Counts, QuestionSpec, Survey, SurveySpec, make_plan
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> survey = Survey(make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]}))
    >>> counts = Counts(survey.plan.checksum, 8, {("vote",): np.array([4, 4])})
    >>> results(survey.estimates(counts), counts)["vote"]["values"]
    [0.5, 0.5]
    """
    said = {
        "plan": counts.plan,
        "reports": total(counts.sources),
        "simulation": counts.simulation,
        "unlabelled": counts.unlabelled,
    }
    made = {name: {**one.to_dict(), **said} for name, one in estimates.items()}
    for name, one in (answered or {}).items():
        made[name]["among_those_who_answered"] = one.to_dict()
    return made
