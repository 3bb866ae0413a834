"""Compute the precision that a plan reaches for tables, groups and regressions, from its exact channels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.values.distribution import Array
from ldpopt.values.results import Result
from ldpopt_survey.estimate.intervals import two_sided
from ldpopt_survey.estimate.linear import contrast_variances, estimable
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, PlannedQuestion
from ldpopt_survey.plan.reported_precision import is_table_estimable, joint_channel
from ldpopt_survey.plan.spec import SurveySpec
from ldpopt_survey.plan.table_targets import Table
from ldpopt_survey.plan.targets import Contrast, TargetSpec
from ldpopt_survey.plan.too_many import LESS_PRECISE, MAX_RESPONDENTS, TooManyRespondents, count_needed

COEFFICIENT_SCALE = 1e-9
"""The factor of coefficients. They have no range, so no interval of a coefficient is too wide to be estimable."""


@dataclass(frozen=True, eq=False)
class TargetPrecision(Result):
    """Precision of a target with n respondents, for the estimate that is farthest from its limit.

    target : the target in words.
    estimate : the name of that estimate.
    measure : "half_width" or "coefficient_of_variation".
    limit : the target value.
    value : the value with n respondents, or inf if the reports do not determine the estimate.
    respondents : n, of a simple random sample.

    >>> TargetPrecision("cells of drug x smokes", "yes x no", "half_width", 0.05, 0.04, 1500.0).estimable
    True
    """

    target: str
    estimate: str
    measure: str
    limit: float
    value: float
    respondents: float

    @property
    def estimable(self) -> bool:
        """True if the reports determine every estimate of the target."""
        return self.value < math.inf


@dataclass(frozen=True, eq=False)
class _Goal:
    """Estimates of questions that share a booklet, as `contrasts` of the cells of their answers.

    ratio : (cells,) the pilot of the cells divided by the product of the questions' pilots; None if they are equal.
    share : the share of respondents in the group.
    scale : the size of one unit of the estimate.
    """

    target: TargetSpec
    title: str
    names: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    ratio: Array | None = None
    share: float = 1.0
    scale: float = 1.0

    def variances(self, plan: Plan, n: float) -> Array:
        """Return the variances (r,) for one respondent of the survey, inf if n respondents determine no estimate."""
        rows, information = np.array([contrast.row for contrast in self.contrasts]), []
        for holders in plan.ways(self.names):
            channel, pilot, cells = _cells(holders, self.names)
            if self.ratio is not None:
                pilot = pilot * (self.ratio @ cells)
                pilot = pilot / pilot.sum()
            fraction = self.share * math.prod(float(q.probability) for q in holders)
            on_cells = rows @ cells
            scale = 1.0 if self.target.regression is None else COEFFICIENT_SCALE
            is_determined = estimable(channel, pilot, scale * on_cells, max(n * fraction, 1.0)) | (n == math.inf)
            report_variances = contrast_variances(channel, pilot, on_cells)
            information.append(
                np.where(is_determined & np.isfinite(report_variances), fraction / report_variances, 0.0)
            )
        with np.errstate(divide="ignore"):
            return np.asarray(1 / np.sum(information, axis=0)) if information else np.full(len(rows), np.inf)

    def determined(self, plan: Plan, n: float) -> bool:
        """Return True if n respondents determine every estimate and all cells of the table."""
        all_cells = len(self.names) < 2 or is_table_estimable(plan, self.names, n)
        return all_cells and bool(np.isfinite(self.variances(plan, n)).all())

    def precision(self, plan: Plan, n: float) -> TargetPrecision:
        """Return the precision with n respondents."""
        variances = self.variances(plan, n)
        excess = variances / np.array([contrast.variance for contrast in self.contrasts])
        place = int(excess.argmax())
        contrast, error = self.contrasts[place], math.sqrt(float(variances[place]) / n)
        if (limit := self.target.half_width) is not None:
            reached = two_sided(0.95) * error * self.scale
            return TargetPrecision(self.title, contrast.name, "half_width", limit, reached, n)
        relative = self.target.coefficient_of_variation or 0.0
        reached = error * self.scale / abs(contrast.value)
        return TargetPrecision(self.title, contrast.name, "coefficient_of_variation", relative, reached, n)


def target_precisions(plan: Plan, spec: SurveySpec, n: float) -> tuple[TargetPrecision, ...]:
    """Return the precision of every target of `spec.targets` with n respondents."""
    return tuple(goal.precision(plan, n) for goal in _goals(plan, spec))


def respondents_for_targets(plan: Plan, spec: SurveySpec, minimum: float = 1.0) -> float:
    """Return the respondents, at least `minimum`, that the plan needs for every target.

    `InvalidInput` if no number is enough, since no reports determine an estimate.
    """
    required = max(minimum, 1.0)
    for goal in _goals(plan, spec):
        variances = goal.variances(plan, math.inf)
        limits = np.array([contrast.variance for contrast in goal.contrasts])
        required = max(required, float((variances / limits).max()))
        if MAX_RESPONDENTS < required < math.inf:
            estimate = goal.contrasts[int((variances / limits).argmax())].name
            problem = f"{goal.title}, {estimate}: expected {LESS_PRECISE}, got one for which {count_needed(required)}"
            raise TooManyRespondents(f"[[targets]] {problem}")
        if not required < MAX_RESPONDENTS:
            names = " and ".join(goal.names)
            expected = (
                f'expected reports that tell of {names} together (design = "booklets" in [budget], both questions'
            )
            raise InvalidInput(f"[[targets]] {goal.title}: {expected} without an epsilon of their own), got none")
        # An estimate that rests on rare reports needs more of these before an interval can be trusted, and before
        # `table` and `regress` take it.
        while not goal.determined(plan, math.ceil(required)) and required < MAX_RESPONDENTS:
            required *= 1.05
    return required


def tables_of_targets(spec: SurveySpec) -> Iterator[Table]:
    """Yield the questions that must share a booklet, with their target."""
    options = {question.name: [part.name for part in question.answers] for question in spec.questions}
    for target in spec.targets:
        if spec.groups_of(target) is not None:
            continue
        first, *others = spec.asked_together(target)
        if target.by is None:
            yield Table(target, (first, *others))
            continue
        yield from (Table(target, (first, name)) for other in others for name in options.get(other, [other]))


def _goals(plan: Plan, spec: SurveySpec) -> Iterator[_Goal]:
    """Yield the estimates of every target, in the order of `spec.targets`."""
    tables = list(tables_of_targets(spec))
    for target in spec.targets:
        groups = spec.groups_of(target)
        for table in (contrast for contrast in tables if contrast.target is target):
            holders_of_table = plan.ways(table.names)
            if not holders_of_table:
                yield _Goal(target, target.title, table.names, (Contrast("", np.ones(1), 1.0, 1.0),))
                continue
            _, pilot, cells = _cells(holders_of_table[0], table.names)
            parts = [plan.part(name) for name in table.names]
            ratio, contrasts = table.on_cells(cells @ pilot, parts, cells.sum(axis=1))
            title = target.title if target.by is None else f"{table.names[1]} by {target.by}"
            yield _Goal(target, title, table.names, tuple(contrasts), ratio)
        if groups is None:
            continue
        smallest = min(groups, key=groups.__getitem__)
        for question in spec.questions:
            for part in question.answers:
                if target.questions and not {question.name, part.name} & set(target.questions):
                    continue
                title = f"{part.name} by {target.by}, {smallest} ({100 * groups[smallest]:.3g} %)"
                contrasts = list(
                    _single_contrasts(plan, part.name, partial(_contrast, target, title, part.lowest, part.span))
                )
                yield _Goal(target, title, (part.name,), tuple(contrasts), None, groups[smallest], part.span)


def _contrast(
    target: TargetSpec, title: str, lowest: float, span: float, name: str, row: Array, score: float
) -> Contrast:
    value = lowest + span * score
    return Contrast(name, row, value, target.variance(value, title, span))


def _single_contrasts(plan: Plan, name: str, make: partial[Contrast]) -> Iterator[Contrast]:
    """Yield the contrasts of one question: the shares among respondents who are asked it, or its mean."""
    part = plan.part(name)
    _, pilot, cells = _cells(plan.ways((name,))[0], (name,))
    cell_shares = cells @ pilot
    if part.measure == "mean":
        mean = float(cell_shares[1] / cell_shares[:2].sum())
        yield make("mean", np.array([-mean, 1 - mean, 0.0][: len(cell_shares)]) / cell_shares[:2].sum() + mean, mean)
        return
    is_asked = np.array([label != NOT_APPLICABLE or not getattr(part, "asked_if", ()) for label in part.categories])
    for label, member in zip(part.categories, np.eye(len(cell_shares)), strict=True):
        if is_asked[list(part.categories).index(label)]:
            value = float(member @ cell_shares) / float(is_asked @ cell_shares)
            yield make(str(label), (member - value * is_asked) / float(is_asked @ cell_shares) + value, value)


def _cells(holders: list[PlannedQuestion], names: tuple[str, ...]) -> tuple[Channel, Array, Array]:
    """Return the result of `joint_channel` with the cells in the order of `names`."""
    channel, pilot, cells = joint_channel(holders, names)
    order = [name for holder in holders for name in names if name in {part.name for part in holder.answers}]
    if order == list(names):
        return channel, pilot, cells
    parts = {part.name: part for holder in holders for part in holder.answers}
    sizes = [len(parts[name].categories) for name in order]
    positions = np.arange(len(cells)).reshape(sizes).transpose([order.index(name) for name in names])
    return channel, pilot, cells[positions.ravel()]
