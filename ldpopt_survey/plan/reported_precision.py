"""Compute the precision of every share, and of tables of questions in one report, from a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.values.distribution import Array
from ldpopt.values.results import Result
from ldpopt_survey.estimate.conditional_mean import MIN_SHARE_ERRORS
from ldpopt_survey.estimate.intervals import two_sided
from ldpopt_survey.estimate.linear import (
    are_estimable,
    contrast_moments,
    contrast_variances,
    reports_to_estimate,
)
from ldpopt_survey.plan.booklet import SMALLEST_VARIANCE
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion, asks_some

MAX_TABLES = 45
"""The most tables of two questions whose precision is computed."""


@dataclass(frozen=True, eq=False)
class ReportedPrecision(Result):
    """Precision with n respondents of one question, or of the cells of the table of two.

    questions : its name, or both names.
    half_width : of the widest 95 % interval of its shares, or of the mean in the units of the answers; inf where not
        every share, or cell, is estimable with so many. It is that among the respondents who are asked the question.
    respondents : n, of a simple random sample.
    """

    questions: tuple[str, ...]
    half_width: float
    respondents: float

    @property
    def estimable(self) -> bool:
        """True if every share, or cell, is estimable."""
        return self.half_width < math.inf


def variances(plan: Plan, names: tuple[str, ...], n: float) -> Array:
    """Compute the variances (r,) per respondent of a question's shares, or of cells.

    The shares of a question that not everybody is asked are those among the respondents who are.
    The estimates from all booklets are combined, in proportion to their precision. The variance is inf if the combined
    estimate from n respondents is not estimable. For cells it is inf if no booklet determines all of them.
    """
    if len(names) == 1:
        is_identified, combined, third = moments_of(plan, names[0], among_asked=True)
        is_identified &= asks_enough(plan, names[0], n)
        return np.where(are_estimable(is_identified, combined, third, n), combined, np.inf)
    precisions = []
    for holders in plan.ways(names):
        channel, pilot, contrasts = joint_channel(holders, names)
        fraction = _fraction(holders)
        is_identified, variance, third = contrast_moments(channel, pilot, contrasts)
        all_determined = are_estimable(is_identified, variance, third, max(n * fraction, 1.0)).all()
        precisions.append(all_determined * fraction / np.maximum(variance, SMALLEST_VARIANCE))
    if not precisions:
        return np.full(1, np.inf)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / np.sum(precisions, axis=0))


def moments_of(plan: Plan, name: str, among_asked: bool = False) -> tuple[npt.NDArray[np.bool_], Array, Array]:
    """Compute the moments (r,) of the estimates of a question, as `contrast_moments`, for one respondent.

    They are those of its shares, or of its mean among those who are asked, on a scale from 0 to 1.

    among_asked : whether the shares are those among the respondents who are asked, too.

    The estimates from all booklets are combined, in proportion to their precision.
    """
    weights, third_moments = [], []
    for holders in plan.ways((name,)):
        channel, pilot, contrasts = joint_channel(holders, (name,))
        if (among_asked or plan.part(name).measure == "mean") and (
            rows := holders[0].rows_among_asked(name)
        ) is not None:
            contrasts = rows
        fraction = _fraction(holders)
        is_identified, variance, third = contrast_moments(channel, pilot, contrasts)
        weights.append(np.where(is_identified, fraction / np.maximum(variance, SMALLEST_VARIANCE), 0.0))
        third_moments.append(third / fraction**2)
    total = np.sum(weights, axis=0)
    relative_weights = np.array(weights) / np.where(total > 0, total, 1.0)
    with np.errstate(divide="ignore"):
        return total > 0, 1 / total, np.sum(relative_weights**3 * np.array(third_moments), axis=0)


def respondents_to_estimate(plan: Plan, name: str) -> float:
    """Return the fewest respondents, unrounded, who make all shares of a question estimable; inf if none do."""
    return max(float(reports_to_estimate(*moments_of(plan, name, among)).max()) for among in (False, True))


def asks_enough(plan: Plan, name: str, n: float) -> bool:
    """Return True if n respondents tell that somebody is asked a question whose mean is estimated.

    The estimated share of those who are asked must have `MIN_SHARE_ERRORS` standard errors. Other questions need none.
    """
    part = plan.part(name)
    if part.measure == "shares" or not asks_some(part):
        return True
    share, information = 0.0, 0.0
    for holders in plan.ways((name,)):
        channel, pilot, contrasts = joint_channel(holders, (name,))
        is_asked = contrasts[:2].sum(axis=0)
        fraction = _fraction(holders)
        variance = max(float(contrast_variances(channel, pilot, is_asked[None])[0]), SMALLEST_VARIANCE)
        share, information = float(is_asked @ pilot), information + fraction / variance
    return share * math.sqrt(n * information) >= MIN_SHARE_ERRORS


def planned_reports(holders: Sequence[PlannedQuestion]) -> float:
    """Return the respondents who are to answer all these questions, or 0 if not planned."""
    respondents = max([(question.expected or {}).get("respondents", 0.0) for question in holders])
    return respondents * float(math.prod(question.probability for question in holders if question.parts))


MIN_RESPONSE = 0.8
"""With at least this share of the planned reports, a table counts as estimable as with all of them."""


def is_table_estimable(
    plan: Plan, names: tuple[str, ...], reports: float = 0.0, holders: Sequence[PlannedQuestion] | None = None
) -> bool:
    """Return True if the reports of some booklet determine every cell of the table.

    reports : the number of all respondents with reports; 0 before there are any, when that of the plan counts. For a
        group of them, which has no number in the plan, compare its number with `respondents_for_table`.
    holders : the planned questions of that booklet.
    """
    for group in plan.ways(names) if holders is None else [list(holders)]:
        planned, fraction = planned_reports(group), _fraction(group)
        available = reports * fraction
        n = max(available, min(planned, available / MIN_RESPONSE)) if reports else planned
        if _reports_for_table(group, names) <= max(n, 1.0):
            return True
    return False


def respondents_for_table(
    plan: Plan, names: tuple[str, ...], holders: Sequence[PlannedQuestion] | None = None
) -> float:
    """Return the fewest respondents, unrounded, for a booklet that determines every cell; inf if none is enough.

    holders : the planned questions of that booklet.
    """
    ways = plan.ways(names) if holders is None else [list(holders)]
    return min((_reports_for_table(group, names) / _fraction(group) for group in ways), default=math.inf)


def _reports_for_table(holders: Sequence[PlannedQuestion], names: tuple[str, ...]) -> float:
    """Return the fewest reports of a booklet that determine every cell of the table; inf if no number does."""
    parts = [
        (Channel(holder.channel.matrix), holder.shares, holder.members(*names_in(holder, names))) for holder in holders
    ]
    moments = contrast_moments(*parts[0]) if len(parts) == 1 else contrast_moments(*zip(*parts, strict=True))
    return float(reports_to_estimate(*moments).max())


def _fraction(holders: Sequence[PlannedQuestion]) -> float:
    """Return the share of respondents who answer all these questions."""
    return float(math.prod(question.probability for question in holders if question.probability < 1))


def names_in(holder: PlannedQuestion, names: tuple[str, ...]) -> list[str]:
    """Return those of the names that the reports of a planned question are about."""
    return [name for name in names if name in {part.name for part in holder.answers}]


def joint_channel(holders: list[PlannedQuestion], names: tuple[str, ...]) -> tuple[Channel, Array, Array]:
    """Return the joint channel of planned questions, their pilot, and the cells of `names`."""
    matrix: Array = np.ones((1, 1))
    pilot: Array = np.ones(1)
    contrasts: Array = np.ones((1, 1))
    for holder in holders:
        own_names = names_in(holder, names)
        matrix = np.asarray(np.kron(matrix, holder.channel.matrix))
        pilot = np.outer(pilot, holder.shares).ravel()
        contrasts = np.asarray(np.kron(contrasts, holder.members(*own_names)))
    return Channel(matrix), pilot, np.asarray(contrasts, dtype=np.float64)


def target_key(name: str) -> str:
    """Return the key in `expected` for the target half-width of one of several questions."""
    return f"half_width of {name}"


def target_of(plan: Plan, name: str) -> float | None:
    """Return the target half-width of a question, or None if the plan has none.

    For a mean it is in the units of the answers.
    """
    for holder in plan.answers[name]:
        expected = holder.expected or {}
        if (width := expected.get(target_key(name) if holder.parts else "half_width")) is not None:
            return width
    return None


def precision_of(plan: Plan, name: str, n: float) -> ReportedPrecision:
    """Return the precision of a question with n respondents."""
    return ReportedPrecision((name,), half_width_of_one(plan, name, n) / math.sqrt(n), n)


def half_width_of_one(plan: Plan, name: str, n: float = math.inf) -> float:
    """Return the half-width of the widest 95 % interval of one respondent.

    It is in the units of the answers for a mean.

    n : the respondents who must make its shares estimable; the result is inf if they do not.
    """
    part = plan.part(name)
    return float(part.ends[1] - part.ends[0]) * two_sided(0.95) * math.sqrt(float(variances(plan, (name,), n).max()))


def tables_of(plan: Plan, n: float) -> tuple[ReportedPrecision, ...]:
    """Return the precision of each table of two questions that share a report.

    The precision is that with n respondents.
    """
    pairs = dict.fromkeys(
        pair
        for question in plan.questions
        for pair in combinations([part.name for part in question.answers if part.measure == "shares"], 2)
        if len({getattr(plan.part(name), "option_of", None) or name for name in pair}) > 1
    )
    return tuple(
        ReportedPrecision(pair, two_sided(0.95) * math.sqrt(float(variances(plan, pair, n).max()) / n), n)
        for pair in list(pairs)[:MAX_TABLES]
    )
