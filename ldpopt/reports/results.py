"""The estimates of a survey as data, together with the source of the reports (``ldpopt survey estimate --json``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ldpopt.survey.collect.manifest import total
from ldpopt.survey.sample.analysis import Findings

if TYPE_CHECKING:
    from ldpopt.survey.collect.aggregate import Counts
    from ldpopt.survey.estimate.estimate import Estimate
    from ldpopt.survey.sample.analysis import Analysis


def results(
    estimates: Mapping[str, Estimate | Findings],
    counts: Counts,
    analysis: Analysis | None = None,
    answered: Mapping[str, Findings] | None = None,
) -> dict[str, dict[str, Any]]:
    """JSON-ready estimates by question, each with the plan and the reports from which it was made.

    analysis : the settings of the analysis. If it is not the default one, it is part of the result, and groups have
        estimates of their own.
    answered : estimates among the people who answered; the result has them as ``among_those_who_answered``.

    Each result also has the plan's checksum, ``plan``; the fingerprint of all counted rows, ``reports``; and
    ``simulation`` and ``unlabelled``, as in `Counts`.

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
    level = 0.95 if analysis is None else analysis.level
    if analysis is not None and not analysis.plain:
        said["analysis"] = analysis.to_dict()
    made = {name: {**_shown(one, level), **said} for name, one in estimates.items()}
    for name, among in (answered or {}).items():
        made[name]["among_those_who_answered"] = _shown(among, level)
    return made


def _shown(found: Estimate | Findings, level: float) -> dict[str, Any]:
    if not isinstance(found, Findings):
        return found.to_dict(level)
    groups = {name: one.to_dict(level) for name, one in found.groups.items()}
    return {**found.whole.to_dict(level), **({"groups": groups} if groups else {})}
