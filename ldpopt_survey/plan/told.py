"""From a plan to what its reports tell: the precision of every share, and of the tables of questions in one report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ldpopt.channel import Channel
from ldpopt.values.distribution import Array
from ldpopt.values.results import Result
from ldpopt_survey.estimate.intervals import two_sided
from ldpopt_survey.estimate.linear import contrast_moments, estimable, is_told
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion

MAX_TABLES = 45
"""The most tables of two questions whose precision is computed."""


@dataclass(frozen=True, eq=False)
class Precise(Result):
    """What n respondents tell of one question, or of the cells of the table of two.

    questions : its name, or both names. half_width : of the widest 95 % interval of its shares, or of the mean in the
        units of the answers; inf where not every share, or cell, is estimable with so many.
    respondents : n, of a simple random sample.
    """

    questions: tuple[str, ...]
    half_width: float
    respondents: float

    @property
    def estimable(self) -> bool:
        """Whether every share, or cell, is."""
        return self.half_width < math.inf


def variances(plan: Plan, names: tuple[str, ...], n: float) -> Array:
    """Compute (r,) the variance, for one respondent, of the shares of a question, or of the cells of several.

    The estimates from all booklets are combined, in proportion to their precision. The variance is inf where the
    combined estimate from n respondents is not estimable, and for cells where no booklet tells all of them.
    """
    precisions, third_moments = [], []
    for several in plan.ways(names):
        channel, pilot, contrasts = together(several, names)
        asked = float(math.prod(question.probability for question in several if question.probability < 1))
        identified, variance, third = contrast_moments(channel, pilot, contrasts)
        if len(names) > 1:
            identified = np.full(len(identified), is_told(identified, variance, third, max(n * asked, 1.0)).all())
        precision = np.where(identified, asked / np.maximum(variance, 1e-300), 0.0)
        precisions.append(precision)
        third_moments.append(precision**3 * third / asked**2)
    if not precisions:
        return np.full(1, np.inf)
    total = np.sum(precisions, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        combined, third = 1 / total, np.sum(third_moments, axis=0) / total**3
        is_estimable = is_told(total > 0, combined, third, n) if len(names) == 1 else total > 0
    return np.where(is_estimable, combined, np.inf)


def planned_reports(several: Sequence[PlannedQuestion]) -> float:
    """The respondents who are to answer all of these, where the plan says for how many it was made; else 0."""
    people = max([(question.expected or {}).get("respondents", 0.0) for question in several])
    return people * float(math.prod(question.probability for question in several if question.parts))


def tells(
    plan: Plan, names: tuple[str, ...], reports: float = 0.0, only: Sequence[PlannedQuestion] | None = None
) -> bool:
    """Whether every cell of the table of these questions is estimable, by the reports of some booklet.

    reports : of all respondents; the plan's own number counts where it is larger. only : the planned questions of that
        booklet.
    """
    for several in plan.ways(names) if only is None else [list(only)]:
        asked = float(math.prod(question.probability for question in several if question.probability < 1))
        n = max(planned_reports(several), reports * asked, 1.0)
        parts = [
            (Channel(holder.channel.matrix), holder.shares, holder.members(*_of(holder, names))) for holder in several
        ]
        channels, pilots, contrasts = zip(*parts, strict=True)
        alone = len(parts) == 1
        known = (
            estimable(channels[0], pilots[0], contrasts[0], n) if alone else estimable(channels, pilots, contrasts, n)
        )
        if known.all():
            return True
    return False


def _of(holder: PlannedQuestion, names: tuple[str, ...]) -> list[str]:
    """Those of the names that a planned question's report is about."""
    return [name for name in names if name in {part.name for part in holder.answers}]


def together(several: list[PlannedQuestion], names: tuple[str, ...]) -> tuple[Channel, Array, Array]:
    """The channel of the reports of several planned questions, their pilot, and the cells of the questions named."""
    matrix: Array = np.ones((1, 1))
    pilot: Array = np.ones(1)
    contrasts: Array = np.ones((1, 1))
    for holder in several:
        mine = _of(holder, names)
        matrix = np.asarray(np.kron(matrix, holder.channel.matrix))
        pilot = np.outer(pilot, holder.shares).ravel()
        contrasts = np.asarray(np.kron(contrasts, holder.members(*mine)))
    return Channel(matrix), pilot, np.asarray(contrasts, dtype=np.float64)


def target_key(name: str) -> str:
    """Under which a planned question for several has the target half-width of one of them, in `expected`."""
    return f"half_width of {name}"


def target_of(plan: Plan, name: str) -> float | None:
    """The target half-width of a question, in the units of the answers for a mean; None where the plan has none."""
    for holder in plan.answers[name]:
        expected = holder.expected or {}
        if (width := expected.get(target_key(name) if holder.parts else "half_width")) is not None:
            return width
    return None


def precision_of(plan: Plan, name: str, n: float) -> Precise:
    """What n respondents tell of a question."""
    return Precise((name,), half_width_of_one(plan, name, n) / math.sqrt(n), n)


def half_width_of_one(plan: Plan, name: str, n: float = math.inf) -> float:
    """The half-width of the widest 95 % interval of one respondent, in units of the answers for a mean.

    n : the respondents by whom its shares have to be estimable; inf where they are not.
    """
    part = plan.part(name)
    span = float(np.ptp(np.array(part.measured, dtype=np.float64))) if part.measure == "mean" else 1.0
    return span * two_sided(0.95) * math.sqrt(float(variances(plan, (name,), n).max()))


def tables_of(plan: Plan, n: float) -> tuple[Precise, ...]:
    """What n respondents tell of each table of two questions that share a report."""
    pairs = dict.fromkeys(
        pair
        for question in plan.questions
        for pair in combinations([part.name for part in question.answers], 2)
        if len({getattr(plan.part(name), "option_of", None) or name for name in pair}) > 1
    )
    return tuple(
        Precise(pair, two_sided(0.95) * math.sqrt(float(variances(plan, pair, n).max()) / n), n)
        for pair in list(pairs)[:MAX_TABLES]
    )
