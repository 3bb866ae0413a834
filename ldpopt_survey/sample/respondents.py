"""Respondents with their reports and public columns, and analyses of several columns together."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, Label
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt_survey.collect.aggregate import read_rows
from ldpopt_survey.collect.manifest import refuse_repeated_reports
from ldpopt_survey.estimate.conditional_mean import ConditionalMean
from ldpopt_survey.estimate.counts import factor
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.groups import Difference, Source, difference, estimate_booklets
from ldpopt_survey.estimate.tables import ThreeWayTable, TwoWayTable, two_way
from ldpopt_survey.hypothesis_tests import TestResult, two_sample, wald_result
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import non_answers
from ldpopt_survey.plan.reported_precision import respondents_for_table
from ldpopt_survey.regress.formula import parse_formula
from ldpopt_survey.regress.logit import logit_regression
from ldpopt_survey.regress.moments import moment_regression, separate_regression
from ldpopt_survey.regress.regressors import (
    numbers_first,
    numbers_of,
    sort_codes,
)
from ldpopt_survey.regress.result import Regression, Sample, Subsample
from ldpopt_survey.sample.analysis import Analysis, Selection, has_own_report, no_joint_report
from ldpopt_survey.sample.spec import MISSING, Condition, groups_of

MAX_GROUPS = 100
"""The largest number of groups, or of values of a public column in a table."""

MAX_CELLS = 1000
"""The largest number of cells of a three-way table."""

Differences = dict[tuple[str, str, str], Difference]


@dataclass(frozen=True, eq=False)
class Respondents(Selection):
    """The reports and public columns (`rows`) of single respondents, and the settings of an `analysis` of them.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt_survey import QuestionSpec, Simulated, SurveySpec, make_plan
    >>> from ldpopt_survey.collect.privatize import privatize
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),), carry=("sex",))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "answers.csv").write_text("vote,sex\\n" + "no,f\\nyes,m\\nno,m\\nyes,f\\n" * 500)
    ...     _ = privatize(plan, Path(folder, "answers.csv"), Path(folder, "out"), Simulated(np.random.default_rng(1)))
    ...     people = Respondents.read(plan, Path(folder, "out"), names=["sex"])
    >>> people.logit("vote ~ sex").names, people.two_way("vote", "sex").shape
    (('Intercept', 'sex[m]'), (2, 2))
    """

    @classmethod
    def read(
        cls,
        plan: Plan,
        reports: str | Path | Sequence[str | Path],
        analysis: Analysis | None = None,
        names: Sequence[str] = (),
        unlabelled: bool = False,
    ) -> Respondents:
        """Read reports with public columns: those among `names`, and those of the analysis."""
        analysis = Analysis() if analysis is None else analysis
        public = [name for name in names if name not in plan.answers]
        return cls(plan, read_rows(plan, reports, [*analysis.columns, *public], unlabelled), analysis)

    def two_way(self, row: str, column: str) -> TwoWayTable:
        """Estimate the table of two questions, or of one and a public column.

        It is about respondents whose reports are not empty.
        """
        table = self._two_way(row, column)
        sides = table.row_channel, table.column_channel
        has_answer = [
            np.array([label not in omitted for label in side.inputs])
            for side, omitted in zip(sides, map(self._omitted_categories, (row, column)), strict=True)
        ]
        if all(mask.all() for mask in has_answer):
            return table
        cells = np.eye(len(table.joint.values))[np.outer(*has_answer).ravel()]
        names = tuple(
            label for label, is_kept in zip(table.joint.labels, np.outer(*has_answer).ravel(), strict=True) if is_kept
        )
        joint = table.joint.ratio(cells, cells.sum(axis=0), names, "among those who answered")
        first, second = (
            Channel(
                np.eye(mask.sum()), tuple(label for label, is_kept in zip(side.inputs, mask, strict=True) if is_kept)
            )
            for side, mask in zip(sides, has_answer, strict=True)
        )
        return TwoWayTable(joint, first, second)

    def three_way(self, row: str, column: str, layer: str) -> ThreeWayTable:
        """Estimate the table of three questions or public columns, by layers of the last.

        At least one is a question. The table is about respondents whose reports are not empty. Beside two questions,
        the cells of a public value are left out if its respondents alone do not determine the table of the questions.
        `InvalidInput` for names that are not different, more than `MAX_CELLS` cells, and questions that no booklet asks
        together.
        """
        names = (row, column, layer)
        if len(set(names)) < 3:
            raise invalid("table", "three different questions or columns", ", ".join(names))
        self._require_shares("table", names)
        questions = [name for name in names if name in self.plan.answers]
        if not questions:
            raise InvalidInput(f"table: no question given; name at least one of {', '.join(self.plan.answers)}")
        sides = [self._categories(name) for name in names]
        if (cells := math.prod(map(len, sides))) > MAX_CELLS:
            raise invalid("table", f"at most {MAX_CELLS} cells", cells)
        joint = self._joint(names, questions)
        has_answer = [np.array([label not in self._omitted_categories(name) for label in side])
                  for name, side in zip(names, sides, strict=True)]  # fmt: skip
        if not all(mask.all() for mask in has_answer):
            is_kept = functools.reduce(np.logical_and.outer, has_answer).ravel()
            cells_kept = np.eye(len(is_kept))[is_kept]
            labels = tuple(label for label, is_chosen in zip(joint.labels, is_kept, strict=True) if is_chosen)
            joint = joint.ratio(cells_kept, cells_kept.sum(axis=0), labels, "among those who answered")
            sides = [tuple(label for label, is_chosen in zip(side, mask, strict=True) if is_chosen)
                     for side, mask in zip(sides, has_answer, strict=True)]  # fmt: skip
        first, second, third = (Channel(np.eye(len(side)), side) for side in sides)
        left_out = self._cells_left_out(names, questions, tuple(product(*sides)))
        return ThreeWayTable(joint, first, second, third, left_out)

    def _cells_left_out(
        self, names: tuple[str, ...], questions: list[str], cells: Sequence[tuple[Label, ...]]
    ) -> dict[Label, str]:
        """The cells whose public value has too few respondents for a table of two questions, with the reason."""
        if len(questions) != 2:
            return {}
        place, name = next((place, name) for place, name in enumerate(names) if name not in questions)
        codes, side = self._side(name)
        respondents = codes[self.respondents_of_table(questions)]
        counts = dict(zip(side.inputs, np.bincount(respondents, minlength=len(side.inputs)), strict=True))
        needed = respondents_for_table(self.plan, tuple(questions))
        reasons = {
            count: str(no_joint_report("table", questions, self.plan, int(count)))
            for count in counts.values()
            if 0 < count < needed
        }
        return {cell: reasons[counts[cell[place]]] for cell in cells if counts[cell[place]] in reasons}

    def independence_by(self, row: str, column: str, layer: str) -> dict[Label, TestResult | str]:
        """Test in each layer of a public column that two answers are independent.

        A layer without a test has the reason as text. The result is empty for a private `layer`, whose values are
        unknown.
        """
        if layer in self.plan.answers:
            return {}
        tests: dict[Label, TestResult | str] = {}
        for label in self._side(layer)[1].inputs:
            layer_condition = Condition(layer, "=", "" if label == MISSING else str(label))
            layer_respondents = replace(
                self, analysis=replace(self.analysis, where=(*self.analysis.where, layer_condition))
            )
            try:
                tests[label] = layer_respondents.two_way(row, column).independence()
            except InvalidInput as error:
                tests[label] = str(error)
        return tests

    def _omitted_categories(self, name: str) -> tuple[Label, ...]:
        """The categories of a question that are left out.

        An analysis may be about people who answered; a mean is always about those who are asked.
        """
        if name not in self.plan.answers:
            return ()
        part = self.plan.part(name)
        return non_answers(part) if self.analysis.answered or part.measure == "mean" else ()

    def _two_way(self, row: str, column: str) -> TwoWayTable:
        """The table of all categories."""
        if row == column:
            raise invalid("table", "two different questions or columns", row)
        self._require_shares("table", (row, column))
        questions = [name for name in (row, column) if name in self.plan.answers]
        if not questions:
            expected = f"at least one question among {', '.join(self.plan.answers)}"
            raise invalid("table", expected, Phrase(f"{row}, {column}"))
        subsampled = [
            question for name in questions for question in self.plan.answers[name] if question.probability < 1
        ]
        if not all(has_own_report(self.plan, name) for name in questions) or len(set(subsampled)) > 1:
            return self._from_booklets(row, column, questions)
        (a, first), (b, second) = (self._side(name) for name in (row, column))
        respondents = self.answered(*questions)
        respondent_count = int(self.respondents_of_table(questions).sum())
        if len(questions) == 2 and not self.is_table_estimable((row, column), respondent_count):
            raise no_joint_report("table", questions, self.plan, respondent_count)
        return two_way(a, b, first, second, sample=self.design, in_group=None if respondents.all() else respondents)

    def _from_booklets(self, row: str, column: str, questions: list[str]) -> TwoWayTable:
        """The table from the booklets that ask both questions, or one of them with a public column."""
        joint = self._joint((row, column), questions)
        first, second = (Channel(np.eye(len(side)), side) for side in map(self._categories, (row, column)))
        return TwoWayTable(joint, first, second)

    def _joint(self, names: tuple[str, ...], questions: list[str]) -> Estimate:
        """The proportions of all combinations of answers and public values, from booklets with the questions."""
        sources = self.sources(tuple(questions), self.included)
        order = [*questions, *(name for name in names if name not in questions)]
        for name in order[len(questions) :]:
            codes, side = self._side(name)
            labels, public = side.inputs, np.eye(len(side.inputs))
            sources = [
                replace(
                    source,
                    channel=source.channel.product(Channel(public, labels)),
                    positions=np.where(source.positions >= 0, source.positions * len(labels) + codes, -1),
                    contrasts=np.asarray(np.kron(source.contrasts, public), dtype=np.float64),
                    pilot=np.kron(source.pilot, np.full(len(labels), 1 / len(labels))),
                )
                for source in sources
            ]
        sides = {name: self._categories(name) for name in names}
        cells = np.arange(math.prod(map(len, sides.values()))).reshape([len(sides[name]) for name in order])
        cell_order = cells.transpose([order.index(name) for name in names]).ravel()
        sources = [replace(source, contrasts=source.contrasts[cell_order]) for source in sources]
        return estimate_booklets(sources, tuple(product(*sides.values())), self.design)

    def _require_shares(self, purpose: str, names: Sequence[str]) -> None:
        """Raise `InvalidInput` for a question whose mean is estimated, where proportions of answers are needed."""
        for name in names:
            if name in self.plan.answers and self.plan.part(name).measure == "mean":
                expected = "questions whose shares are estimated (a mean: --by, or the outcome of regress --linear)"
                raise invalid(purpose, expected, name)

    def _categories(self, name: str) -> tuple[Label, ...]:
        if name not in self.plan.answers:
            return self._side(name)[1].inputs
        return self.plan.part(name).measured

    def _side(self, name: str) -> tuple[npt.NDArray[np.intp], Channel]:
        """The positions of the reports, and the channel, of a question or a public column."""
        if name in self.rows.reports:
            channel = self.plan.question(name).report_channel
            return np.maximum(self.rows.reports[name], 0), Channel(channel.matrix, channel.inputs)
        if name not in self.rows.columns:
            raise invalid("column", f"a question or one of {', '.join(self.rows.columns) or 'no public columns'}", name)
        texts = groups_of(self.rows.columns, [name])  # a missing value counts as a separate value
        codes, labels = sort_codes(*factor(texts, len(texts), f"column {name!r}"))
        if not 2 <= len(labels) <= MAX_GROUPS:
            raise invalid(f"column {name!r}", f"2 to {MAX_GROUPS} different values", len(labels))
        return codes, Channel(np.eye(len(labels)), labels)

    def compare(
        self, by: str, questions: Sequence[str] = (), against: str | None = None
    ) -> tuple[Differences, dict[str, TestResult]]:
        """Compare the groups of a public column with one of them, and test that all are equal.

        by : the public column.
        questions : by default all with proportions and a report.
        against : the group with which the others are compared; the first by default.

        The result has the differences, and for each question a test of independence of answer and group, where there is
        one. `InvalidInput` for fewer than two groups, or an unknown group.
        """
        if by in self.plan.answers:
            raise invalid("groups", "a public column (two questions make a table)", by)
        groups = groups_of(self.rows.columns, [by])
        names = sorted(set(groups[self.included].tolist()), key=numbers_first)
        if not 2 <= len(names) <= MAX_GROUPS:
            raise invalid(f"column {by!r}", f"2 to {MAX_GROUPS} groups", len(names))
        base = names[0] if against is None else against
        if base not in names:
            raise invalid("group", f"one of {', '.join(names[:8])}", base)
        differences: Differences = {}
        tests = {}
        self._require_shares("groups", questions)
        for question in [self.plan.part(name).name for name in questions] or self._shares_with_reports():
            answered = self.answered(question)
            if without := [name for name in names if not (answered & (groups == name)).any()]:
                condition = json.dumps(f"{by} != {without[0]}", ensure_ascii=False)
                raise InvalidInput(
                    f"groups of {by!r}: the group {without[0]!r} has no report of {question!r}. Leave the group out "
                    f"with --where {condition}, or name the questions to compare"
                )
            estimates = {name: self.estimate(question, groups == name) for name in names}
            base_estimate = estimates.pop(base)
            differences |= {
                (question, name, base): difference(group_estimate, base_estimate)
                for name, group_estimate in estimates.items()
            }
            with suppress(InvalidInput):  # too few units for a test, or reports that do not vary
                tests[question] = self.two_way(question, by).independence()
        return differences, tests

    def _shares_with_reports(self) -> list[str]:
        """List the questions whose proportions are estimated; `InvalidInput` if none has a report."""
        names = [name for name in self.with_reports if self.plan.part(name).measure == "shares"]
        if not names:
            raise InvalidInput("reports: no question with proportions has a report")
        return names

    def logit(self, formula: str, reference: Label = None) -> Regression:
        """Fit a logistic or multinomial regression for the respondents of the analysis.

        The fit is by moments (`logit_by_moments`), which are consistent for any distribution of the outcome. Where no
        finite coefficients solve their equations it is `logit_by_likelihood`, as `Regression.method` states. If no
        booklet asks the questions together, `InvalidInput` names a plan that would.
        """
        try:
            return self.logit_by_moments(formula, reference)
        except SolverError:
            if self._separate_data(formula) is None or self._is_narrowed(formula, logit=True):
                raise
            return self.logit_by_likelihood(formula, reference)

    def logit_by_moments(self, formula: str, reference: Label = None) -> Regression:
        """Fit by the function `logit_by_moments`, or by `moment_regression` over all booklets."""
        outcome = self._checked_outcome(formula)
        return self._by_moments(formula, True, reference=reference).without_equations(outcome)

    def logit_by_likelihood(self, formula: str, reference: Label = None) -> Regression:
        """Fit by `logit_regression`: shorter intervals, valid if the formula is correct.

        The formula is correct if it is the true distribution of the outcome. Otherwise the coefficients depend on the
        channels. `InvalidInput` for questions that share a report.
        """
        outcome = self._checked_outcome(formula)
        if lacking := [name for name in self._private_columns(formula)[:-1] if self._omitted_categories(name)]:
            expected = "predictors without a category of missing answers (by moments they may have one)"
            raise invalid("likelihood", expected, lacking[0])
        if (separate := self._separate_data(formula)) is None:
            self._joint_data(formula)  # raises `InvalidInput` if no booklet asks these questions together
            expected = "questions with a report each (by moments they may share one)"
            raise invalid("likelihood", expected, Phrase("questions that share one"))
        data, channels, sample = separate
        return logit_regression(formula, data, channels, reference, sample).without_equations(outcome)

    def against_moments(self, fit: Regression) -> list[str]:
        """Describe the distance of a likelihood fit from the moment fit, in words.

        The list is empty for other fits.
        """
        if fit.method == "moments":
            return []
        try:
            distance, name = fit.difference_from(self.logit_by_moments(fit.formula, fit.reference))
        except SolverError:
            return ["By moments no finite coefficients were found, so that nothing checks the formula."]
        return [f"By moments the coefficients differ by at most {distance:.2f} of these standard errors ({name})."]

    def _checked_outcome(self, formula: str) -> tuple[Label, ...]:
        """The categories of a logit's outcome that are left out; `InvalidInput` for questions that it cannot have.

        The odds of one answer against another are the same among respondents who gave one of them.
        """
        parsed_formula = parse_formula(formula)
        self._require_shares("formula", self._private_columns(formula))
        return self._omitted_categories(parsed_formula.outcome)

    def linear(self, formula: str, scores: Any = None) -> Regression:
        """Fit a linear regression for the respondents of the analysis.

        It is by `linear_regression`, else as in `logit`.
        """
        parsed = parse_formula(formula)
        self._require_shares("formula", parsed.columns)
        if parsed.outcome in self.plan.answers and self.plan.part(parsed.outcome).measure == "mean":
            self._require_mean(parsed.outcome, parsed.transform is not None, scores)
        return self._by_moments(formula, False, scores=scores)

    def fits_linear(self, formula: str) -> bool:
        """Return True if the outcome of a formula is a number of more than two values, and `linear` fits it.

        A message of a logit then recommends the linear regression.
        """
        name = parse_formula(formula).outcome
        try:
            labels = [label for label in self._categories(name) if label not in self._omitted_categories(name)]
        except InvalidInput:  # a public column of too many values
            labels = list(dict.fromkeys(self.rows.columns.get(name, ())))
        if len(labels) <= 2 or numbers_of(labels) is None:
            return False
        try:
            self.linear(formula)
        except (InvalidInput, SolverError):
            return False
        return True

    def _require_mean(self, name: str, is_transformed: bool, scores: Any) -> None:
        """Raise `InvalidInput` unless the regression of a mean is of the number itself, among enough who are asked."""
        if is_transformed or scores is not None:
            expected = f"{name!r} itself: its reports tell of its mean, and of no function of the number"
            raise invalid("formula", expected, Phrase("a function or scores of it"))
        mean = self.estimate(name)
        if isinstance(mean, ConditionalMean) and not mean.estimable:
            raise InvalidInput(f"formula: {name!r}: {mean.caveat}")

    def _is_narrowed(self, formula: str, logit: bool) -> bool:
        """Return True if the regression is about people who answered, and the reports do not show who did.

        A logit's outcome is not among these questions: its equations of other answers are left out.
        """
        parsed = parse_formula(formula)
        return any(self._omitted_categories(name) for name in (*parsed.columns, *(() if logit else (parsed.outcome,))))

    def _by_moments(self, formula: str, logit: bool, reference: Label = None, scores: Any = None) -> Regression:
        if not self._is_narrowed(formula, logit) and (separate := self._separate_data(formula)) is not None:
            data, channels, sample = separate
            return separate_regression(formula, data, channels, logit, reference, scores, sample)
        data, answers, sources, sample = self._joint_data(formula)
        return moment_regression(formula, data, answers, sources, logit, reference, scores, sample)

    def _separate_data(self, formula: str) -> tuple[dict[str, Any], dict[str, Channel], Sample | None] | None:
        """Columns and channels for a formula, for respondents with nonempty reports, and their sample.

        None unless its questions have a report each and are asked of the same people.
        """
        questions = self._private_columns(formula)
        subsampled = {
            planned.name for name in questions for planned in self.plan.answers[name] if planned.probability < 1
        }
        if len(subsampled) > 1 or not all(has_own_report(self.plan, name) for name in questions):
            return None
        respondents = self.answered(*questions)
        data = self._public(respondents) | {name: self.rows.reports[name][respondents] for name in questions}
        return data, {name: _numbered(self._side(name)[1]) for name in questions}, self._sample(respondents)

    def _joint_data(
        self, formula: str
    ) -> tuple[dict[str, Any], dict[str, tuple[Label, ...]], list[Source], Sample | None]:
        """Public columns, the answers of the formula's questions, their reports together, and the sample."""
        questions = self._private_columns(formula)
        sources = self.sources(questions, self.included, "formula")
        respondents = np.logical_or.reduce([source.positions >= 0 for source in sources])
        if not respondents.any():
            raise InvalidInput(f"reports of {', '.join(questions)}: all of them are empty")
        sources = [replace(source, positions=source.positions[respondents]) for source in sources]
        sides = [self._categories(name) for name in questions]
        masks = [
            np.array([label not in self._omitted_categories(name) for label in side])
            for name, side in zip(questions, sides, strict=True)
        ]
        # The equations are sums over combinations of answers: those of people who did not answer are left out.
        cells = functools.reduce(np.logical_and.outer, masks).ravel() if masks else np.ones(1, dtype=bool)
        sources = [replace(source, contrasts=source.contrasts[cells]) for source in sources]
        answers = {
            name: tuple(_as_numbers([label for label, is_kept in zip(side, mask, strict=True) if is_kept]))
            for name, side, mask in zip(questions, sides, masks, strict=True)
        }
        return self._public(respondents), answers, sources, self._sample(respondents)

    def _private_columns(self, formula: str) -> tuple[str, ...]:
        """The questions that a formula names: its predictors in order, and then the outcome."""
        parsed = parse_formula(formula)
        return tuple(name for name in (*parsed.columns, parsed.outcome) if name in self.plan.answers)

    def _public(self, respondents: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """The public columns of some respondents. Files hold numbers as text, so a column of numeric texts becomes
        numbers.
        """
        columns = ((name, column[respondents]) for name, column in self.rows.columns.items())
        return {name: np.array(_as_numbers(column.tolist()), dtype=object) for name, column in columns}

    def _sample(self, respondents: npt.NDArray[np.bool_]) -> Sample | None:
        return self.design if self.design is None or respondents.all() else Subsample(self.design, respondents)


def against_wave(
    first: Respondents, second: Respondents, questions: Sequence[str] = ()
) -> tuple[Differences, dict[str, TestResult]]:
    """Compare two waves: the second minus the first, by question, with tests of no change.

    questions : by default all that both waves have with reports.

    The channels may differ. `InvalidInput` unless both waves ask the `questions` with the same answers.
    """
    second_categories, first_categories = (
        {name: wave._categories(name) for name in wave.plan.answers} for wave in (second, first)
    )
    shares = [name for name in first_categories if first.plan.part(name).measure == "shares"]
    shared = [
        name
        for name in shares
        if second_categories.get(name) == first_categories[name] and second.plan.part(name).measure == "shares"
    ]
    reported = {*first.with_reports} & {*second.with_reports}
    names = list(questions) or [name for name in shared if name in reported]
    if unknown := [name for name in names if name not in shared]:
        expected = f"one that both waves ask with the same answers ({', '.join(shared) or 'none'})"
        raise invalid("question", expected, unknown[0])
    refuse_repeated_reports(first.rows.counts.sources, second.rows.counts.sources)
    if not names:
        raise InvalidInput("waves: the two waves have no question with the same answers and reports of both")
    differences: Differences = {}
    tests = {}
    for name in names:
        before, after = first.estimate(name), second.estimate(name)
        differences[name, "second wave", "first wave"] = difference(after, before)
        if (
            has_own_report(first.plan, name)
            and has_own_report(second.plan, name)
            and not first._omitted_categories(name)
        ):
            tests[name] = two_sample(after.table, before.table, after.channel, before.channel)
        else:
            change = differences[name, "second wave", "first wave"]
            covariance, fractions = change.covariance[:-1, :-1], change.unit_fractions
            free_fractions = None if fractions is None else fractions[:-1]
            tests[name] = wald_result("two samples", change.values[:-1], covariance, change.degrees, free_fractions)
    return differences, tests


def _as_numbers(values: Sequence[Any]) -> Sequence[Any]:
    """Texts as numbers if every one of them is a number; else the texts."""
    distinct = list(dict.fromkeys(values))
    if (numbers := numbers_of(distinct)) is None:
        return values
    number_of = dict(zip(distinct, numbers.tolist(), strict=True))
    return [number_of[value] for value in values]


def _numbered(channel: Channel) -> Channel:
    """The channel with numbers as answers if all of them are numbers."""
    return Channel(channel.matrix, tuple(_as_numbers(channel.inputs)), channel.outputs)
