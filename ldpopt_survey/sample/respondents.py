"""Respondents with their reports and public columns, and analyses that need several columns together."""

from __future__ import annotations

import functools
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
from ldpopt_survey.collect.manifest import refuse_twice
from ldpopt_survey.estimate.counts import factor
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.groups import Difference, Source, difference, estimate_booklets
from ldpopt_survey.estimate.tables import ThreeWayTable, TwoWayTable, two_way
from ldpopt_survey.hypothesis_tests import TestResult, two_sample, wald_result
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import non_answers
from ldpopt_survey.plan.reported_precision import is_table_estimable
from ldpopt_survey.regress.formula import parse_formula
from ldpopt_survey.regress.logit import logit_regression
from ldpopt_survey.regress.moments import moment_regression, separate_regression
from ldpopt_survey.regress.regressors import (
    in_order,
    numbers_first,
    numbers_of,
)
from ldpopt_survey.regress.result import Regression, Sample, Subsample
from ldpopt_survey.sample.analysis import Analysis, Selection, alone, untold
from ldpopt_survey.sample.spec import MISSING, Condition, groups_of

MAX_GROUPS = 100
"""The most groups, or values of a public column in a table."""

MAX_CELLS = 1000
"""The most cells of a table of three."""

Differences = dict[tuple[str, str, str], Difference]


@dataclass(frozen=True, eq=False)
class Respondents(Selection):
    """The reports and public columns (`rows`) of single respondents, and the settings of an analysis of them (`asked`).

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
        asked: Analysis | None = None,
        names: Sequence[str] = (),
        unlabelled: bool = False,
    ) -> Respondents:
        """Read reports with public columns: those among `names`, and those that the analysis needs."""
        asked = Analysis() if asked is None else asked
        public = [name for name in names if name not in plan.answers]
        return cls(plan, read_rows(plan, reports, [*asked.columns, *public], unlabelled), asked)

    def two_way(self, row: str, column: str) -> TwoWayTable:
        """The table of two questions, or of one and a public column, about those whose reports are not empty."""
        table = self._two_way(row, column)
        sides = table.row_channel, table.column_channel
        inside = [
            np.array([label not in none for label in side.inputs])
            for side, none in zip(sides, map(self._without, (row, column)), strict=True)
        ]
        if all(mask.all() for mask in inside):
            return table
        cells = np.eye(len(table.joint.values))[np.outer(*inside).ravel()]
        names = tuple(label for label, kept in zip(table.joint.labels, np.outer(*inside).ravel(), strict=True) if kept)
        joint = table.joint.ratio(cells, cells.sum(axis=0), names, "among those who answered")
        first, second = (
            Channel(np.eye(mask.sum()), tuple(label for label, kept in zip(side.inputs, mask, strict=True) if kept))
            for side, mask in zip(sides, inside, strict=True)
        )
        return TwoWayTable(joint, first, second)

    def three_way(self, row: str, column: str, layer: str) -> ThreeWayTable:
        """The table of three questions or public columns, one question at least, by the layers of the last.

        It is about those whose reports are not empty. `InvalidInput` for names that are not different, more than
        `MAX_CELLS` cells, and questions that no booklet asks together.
        """
        names = (row, column, layer)
        if len(set(names)) < 3:
            raise invalid("table", "three different questions or columns", ", ".join(names))
        self._require_shares("table", names)
        questions = [name for name in names if name in self.plan.answers]
        if not questions:
            raise invalid("table", f"at least one question among {', '.join(self.plan.answers)}", Phrase("none"))
        sides = [self._categories(name) for name in names]
        if (cells := math.prod(map(len, sides))) > MAX_CELLS:
            raise invalid("table", f"at most {MAX_CELLS} cells", cells)
        joint = self._joint(names, questions)
        inside = [np.array([label not in self._without(name) for label in side])
                  for name, side in zip(names, sides, strict=True)]  # fmt: skip
        if not all(mask.all() for mask in inside):
            kept = functools.reduce(np.logical_and.outer, inside).ravel()
            chosen = np.eye(len(kept))[kept]
            labels = tuple(label for label, some in zip(joint.labels, kept, strict=True) if some)
            joint = joint.ratio(chosen, chosen.sum(axis=0), labels, "among those who answered")
            sides = [tuple(label for label, some in zip(side, mask, strict=True) if some)
                     for side, mask in zip(sides, inside, strict=True)]  # fmt: skip
        first, second, third = (Channel(np.eye(len(side)), side) for side in sides)
        return ThreeWayTable(joint, first, second, third)

    def independence_by(self, row: str, column: str, layer: str) -> dict[Label, TestResult | str]:
        """For each value of a public column, the test that two answers are independent there, or why there is none.

        Nothing for a private `layer`, of which nobody is known to be in a layer.
        """
        if layer in self.plan.answers:
            return {}
        tests: dict[Label, TestResult | str] = {}
        for label in self._side(layer)[1].inputs:
            here = Condition(layer, "=", "" if label == MISSING else str(label))
            people = replace(self, asked=replace(self.asked, where=(*self.asked.where, here)))
            try:
                tests[label] = people.two_way(row, column).independence()
            except InvalidInput as error:
                tests[label] = str(error)
        return tests

    def _without(self, name: str) -> tuple[Label, ...]:
        """The categories of a question that are left out, since the analysis is about those who answered."""
        return non_answers(self.plan.part(name)) if self.asked.answered and name in self.plan.answers else ()

    def _two_way(self, row: str, column: str) -> TwoWayTable:
        """The table of all categories."""
        if row == column:
            raise invalid("table", "two different questions or columns", row)
        self._require_shares("table", (row, column))
        questions = [name for name in (row, column) if name in self.plan.answers]
        if not questions:
            expected = f"at least one question among {', '.join(self.plan.answers)}"
            raise invalid("table", expected, Phrase(f"{row}, {column}"))
        drawn = [question for name in questions for question in self.plan.answers[name] if question.probability < 1]
        if not all(alone(self.plan, name) for name in questions) or len(set(drawn)) > 1:
            return self._from_booklets(row, column, questions)
        (a, first), (b, second) = (self._side(name) for name in (row, column))
        who = self.answered(*questions)
        if len(questions) == 2 and not is_table_estimable(self.plan, (row, column), float(self.rows.n)):
            raise untold("table", questions, self.plan)
        return two_way(a, b, first, second, sample=self.design, inside=None if who.all() else who)

    def _from_booklets(self, row: str, column: str, questions: list[str]) -> TwoWayTable:
        """The table from the booklets that ask both questions, or one of them beside a public column."""
        joint = self._joint((row, column), questions)
        first, second = (Channel(np.eye(len(side)), side) for side in map(self._categories, (row, column)))
        return TwoWayTable(joint, first, second)

    def _joint(self, names: tuple[str, ...], questions: list[str]) -> Estimate:
        """The shares of all combinations of answers and public values, from the booklets that ask the questions."""
        sources = self.sources(tuple(questions), self.meant)
        order = [*questions, *(name for name in names if name not in questions)]
        for name in order[len(questions) :]:
            codes, side = self._side(name)
            labels, public = side.inputs, np.eye(len(side.inputs))
            sources = [
                replace(
                    source,
                    channel=source.channel.product(Channel(public, labels)),
                    at=np.where(source.at >= 0, source.at * len(labels) + codes, -1),
                    contrasts=np.asarray(np.kron(source.contrasts, public), dtype=np.float64),
                    pilot=np.kron(source.pilot, np.full(len(labels), 1 / len(labels))),
                )
                for source in sources
            ]
        sides = {name: self._categories(name) for name in names}
        cells = np.arange(math.prod(map(len, sides.values()))).reshape([len(sides[name]) for name in order])
        turned = cells.transpose([order.index(name) for name in names]).ravel()
        sources = [replace(source, contrasts=source.contrasts[turned]) for source in sources]
        return estimate_booklets(sources, tuple(product(*sides.values())), self.design)

    def _require_shares(self, what: str, names: Sequence[str]) -> None:
        """`InvalidInput` for a question whose mean is estimated, where the shares of answers are needed."""
        for name in names:
            if name in self.plan.answers and self.plan.part(name).measure == "mean":
                expected = "questions whose shares are estimated (a mean: --by, or the outcome of regress --linear)"
                raise invalid(what, expected, name)

    def _categories(self, name: str) -> tuple[Label, ...]:
        if name not in self.plan.answers:
            return self._side(name)[1].inputs
        return self.plan.part(name).measured

    def _side(self, name: str) -> tuple[npt.NDArray[np.intp], Channel]:
        """The positions of the reports and the channel of a question, or of a public column."""
        if name in self.rows.reports:
            channel = self.plan.question(name).report_channel
            return np.maximum(self.rows.reports[name], 0), Channel(channel.matrix, channel.inputs)
        if name not in self.rows.columns:
            raise invalid("column", f"a question or one of {', '.join(self.rows.columns) or 'no public columns'}", name)
        texts = groups_of(self.rows.columns, [name])  # a missing value counts as a value of its own
        codes, labels = in_order(*factor(texts, len(texts), f"column {name!r}"))
        if not 2 <= len(labels) <= MAX_GROUPS:
            raise invalid(f"column {name!r}", f"2 to {MAX_GROUPS} different values", len(labels))
        return codes, Channel(np.eye(len(labels)), labels)

    def compare(
        self, by: str, questions: Sequence[str] = (), against: str | None = None
    ) -> tuple[Differences, dict[str, TestResult]]:
        """The differences of the groups of a public column from one of them, and a test that all agree, by question.

        against : the group with which the others are compared; the first by default. The test is for independence of
            answer and group, and is left out where there is none. `InvalidInput` for fewer than two groups, or an
            unknown group.
        """
        if by in self.plan.answers:
            raise invalid("groups", "a public column (two questions make a table)", by)
        groups = groups_of(self.rows.columns, [by])
        names = sorted(set(groups[self.meant].tolist()), key=numbers_first)
        if not 2 <= len(names) <= MAX_GROUPS:
            raise invalid(f"column {by!r}", f"2 to {MAX_GROUPS} groups", len(names))
        base = names[0] if against is None else against
        if base not in names:
            raise invalid("group", f"one of {', '.join(names[:8])}", base)
        differences: Differences = {}
        tests = {}
        shares = [name for name in self.plan.answers if self.plan.part(name).measure == "shares"]
        self._require_shares("groups", questions)
        for question in [self.plan.part(name).name for name in questions] or shares:
            estimates = {name: self.estimate(question, groups == name) for name in names}
            base_estimate = estimates.pop(base)
            differences |= {(question, name, base): difference(own, base_estimate) for name, own in estimates.items()}
            with suppress(InvalidInput):  # too few units for a test, or reports that do not vary
                tests[question] = self.two_way(question, by).independence()
        return differences, tests

    def logit(self, formula: str, reference: Label = None) -> Regression:
        """Logistic or multinomial regression for the respondents of the analysis.

        It is by moments (`logit_by_moments`), which are right for any law of the outcome. Where no finite coefficients
        solve their equations it is `logit_by_likelihood`, and `Regression.method` says so. If no booklet asks the
        questions together, `InvalidInput` says what plan would serve.
        """
        try:
            return self.logit_by_moments(formula, reference)
        except SolverError:
            if self._separate(formula) is None or self._is_narrowed(formula, logit=True):
                raise
            return self.logit_by_likelihood(formula, reference)

    def logit_by_moments(self, formula: str, reference: Label = None) -> Regression:
        """The regression by the function `logit_by_moments`, or by `moment_regression` over all booklets."""
        outcome = self._regressed(formula)
        return self._by_moments(formula, True, reference=reference).without(outcome)

    def logit_by_likelihood(self, formula: str, reference: Label = None) -> Regression:
        """The regression by `logit_regression`: shorter intervals, which hold where the formula is the law.

        Else the coefficients depend on the channels. `InvalidInput` for questions that share a report.
        """
        outcome = self._regressed(formula)
        if lacking := [name for name in self._asked_in(formula)[:-1] if self._without(name)]:
            own = "predictors without a category of missing answers (by moments they may have one)"
            raise invalid("likelihood", own, lacking[0])
        if (separate := self._separate(formula)) is None:
            self._shared(formula)  # which says so if nobody is asked these questions together
            own = "questions with a report each (by moments they may share one)"
            raise invalid("likelihood", own, Phrase("others"))
        data, channels, sample = separate
        return logit_regression(formula, data, channels, reference, sample).without(outcome)

    def against_moments(self, fit: Regression) -> list[str]:
        """How far a fit by the likelihood is from the one by moments, in words; nothing for others."""
        if fit.method == "moments":
            return []
        try:
            away, of = fit.compared(self.logit_by_moments(fit.formula, fit.reference))
        except SolverError:
            return ["By moments no finite coefficients were found, so that nothing checks the formula."]
        return [f"By moments the coefficients differ by at most {away:.2f} of these standard errors ({of})."]

    def _regressed(self, formula: str) -> tuple[Label, ...]:
        """The categories of a logit's outcome that are left out; `InvalidInput` for questions that it cannot have.

        The odds of one answer against another are the same among those who gave one of them.
        """
        parsed = parse_formula(formula)
        self._require_shares("formula", self._asked_in(formula))
        return self._without(parsed.outcome)

    def linear(self, formula: str, scores: Any = None) -> Regression:
        """Linear regression for the respondents of the analysis, by `linear_regression`, else as in `logit`."""
        self._require_shares("formula", parse_formula(formula).columns)
        return self._by_moments(formula, False, scores=scores)

    def _is_narrowed(self, formula: str, logit: bool) -> bool:
        """Return True if the regression is about those who answered questions whose reports do not say who did.

        A logit's outcome is not among them: its equations of other answers are left out.
        """
        parsed = parse_formula(formula)
        return any(self._without(name) for name in (*parsed.columns, *(() if logit else (parsed.outcome,))))

    def _by_moments(self, formula: str, logit: bool, reference: Label = None, scores: Any = None) -> Regression:
        if not self._is_narrowed(formula, logit) and (separate := self._separate(formula)) is not None:
            data, channels, sample = separate
            return separate_regression(formula, data, channels, logit, reference, scores, sample)
        data, answers, sources, sample = self._shared(formula)
        return moment_regression(formula, data, answers, sources, logit, reference, scores, sample)

    def _separate(self, formula: str) -> tuple[dict[str, Any], dict[str, Channel], Sample | None] | None:
        """Columns and channels for a formula, for those whose reports are not empty, and their sample.

        None unless its questions have a report each and are asked of the same people.
        """
        named = self._asked_in(formula)
        drawn = {planned.name for name in named for planned in self.plan.answers[name] if planned.probability < 1}
        if len(drawn) > 1 or not all(alone(self.plan, name) for name in named):
            return None
        who = self.answered(*named)
        data = self._public(who) | {name: self.rows.reports[name][who] for name in named}
        return data, {name: _numbered(self._side(name)[1]) for name in named}, self._sample(who)

    def _shared(self, formula: str) -> tuple[dict[str, Any], dict[str, tuple[Label, ...]], list[Source], Sample | None]:
        """Public columns, the answers of the formula's questions, their reports together, and the sample."""
        named = self._asked_in(formula)
        sources = self.sources(named, self.meant, "formula")
        who = np.logical_or.reduce([source.at >= 0 for source in sources])
        if not who.any():
            raise invalid(f"reports of {', '.join(named)}", "at least one that is not empty", Phrase("none"))
        sources = [replace(source, at=source.at[who]) for source in sources]
        sides = [self._categories(name) for name in named]
        masks = [
            np.array([label not in self._without(name) for label in side])
            for name, side in zip(named, sides, strict=True)
        ]
        # The equations are sums over combinations of answers: those of people who did not answer are left out.
        cells = functools.reduce(np.logical_and.outer, masks).ravel() if masks else np.ones(1, dtype=bool)
        sources = [replace(source, contrasts=source.contrasts[cells]) for source in sources]
        answers = {
            name: tuple(_as_numbers([label for label, is_kept in zip(side, mask, strict=True) if is_kept]))
            for name, side, mask in zip(named, sides, masks, strict=True)
        }
        return self._public(who), answers, sources, self._sample(who)

    def _asked_in(self, formula: str) -> tuple[str, ...]:
        """The questions that a formula names: its predictors in order, and then the outcome."""
        asked = parse_formula(formula)
        return tuple(name for name in (*asked.columns, asked.outcome) if name in self.plan.answers)

    def _public(self, who: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """The public columns of some respondents; files hold numbers as text, so text of numbers alone is numbers."""
        columns = ((name, column[who]) for name, column in self.rows.columns.items())
        return {name: np.array(_as_numbers(column.tolist()), dtype=object) for name, column in columns}

    def _sample(self, who: npt.NDArray[np.bool_]) -> Sample | None:
        return self.design if self.design is None or who.all() else Subsample(self.design, who)


def against_wave(
    first: Respondents, second: Respondents, questions: Sequence[str] = ()
) -> tuple[Differences, dict[str, TestResult]]:
    """The second wave minus the first, by question, and tests of no change; by default for all that both waves have.

    The channels may differ. `InvalidInput` unless both waves ask the `questions` with the same answers.
    """
    theirs, ours = ({name: people._categories(name) for name in people.plan.answers} for people in (second, first))
    shares = [name for name in ours if first.plan.part(name).measure == "shares"]
    shared = [name for name in shares if theirs.get(name) == ours[name] and second.plan.part(name).measure == "shares"]
    names = list(questions) or shared
    if unknown := [name for name in names if name not in shared]:
        expected = f"one that both waves ask with the same answers ({', '.join(shared) or 'none'})"
        raise invalid("question", expected, unknown[0])
    refuse_twice(first.rows.counts.sources, second.rows.counts.sources)
    if not names:
        raise invalid("waves", "a question that both ask with the same answers", Phrase("none"))
    differences: Differences = {}
    tests = {}
    for name in names:
        before, after = first.estimate(name), second.estimate(name)
        differences[name, "second wave", "first wave"] = difference(after, before)
        if alone(first.plan, name) and alone(second.plan, name) and not first._without(name):
            tests[name] = two_sample(after.table, before.table, after.channel, before.channel)
        else:
            change = differences[name, "second wave", "first wave"]
            free = slice(0, -1)
            tests[name] = wald_result("two samples", change.values[free], change.covariance[free, free], change.degrees)
    return differences, tests


def _as_numbers(values: Sequence[Any]) -> Sequence[Any]:
    """Texts as numbers if every one of them is a number; else the texts."""
    kinds = list(dict.fromkeys(values))
    if (numbers := numbers_of(kinds)) is None:
        return values
    known = dict(zip(kinds, numbers.tolist(), strict=True))
    return [known[value] for value in values]


def _numbered(channel: Channel) -> Channel:
    """The channel with numbers as answers if all of them are numbers."""
    return Channel(channel.matrix, tuple(_as_numbers(channel.inputs)), channel.outputs)
