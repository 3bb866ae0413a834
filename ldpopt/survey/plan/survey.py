"""From a survey's description to its plan: split the budget, design and round every channel, predict the precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.deadline import Deadline, Progress, watched
from ldpopt.design import Design
from ldpopt.distribution import positive_integer
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.exact_rounding import round_exact
from ldpopt.results import ByValue, Pictured
from ldpopt.survey.collect.aggregate import Counts, aggregate, read_rows
from ldpopt.survey.collect.batch import privatize_frame
from ldpopt.survey.collect.manifest import in_table
from ldpopt.survey.collect.randomness import Randomness
from ldpopt.survey.estimate.booklets import estimate_booklets
from ldpopt.survey.estimate.counts import CountTable, positions, report_column
from ldpopt.survey.estimate.counts import column as as_column
from ldpopt.survey.estimate.estimate import Estimate, estimate
from ldpopt.survey.estimate.groups import estimate_waves
from ldpopt.survey.estimate.linear import Estimator
from ldpopt.survey.estimate.sampled import SampledReports
from ldpopt.survey.plan.booklets import MAX_LENGTH, Booklet, BookletPlanner, Questionnaire, least_respondents, units_of
from ldpopt.survey.plan.budget import EPSILONS, Budget, Needed, invited, split_within
from ldpopt.survey.plan.plan import (
    BOOKLET,
    Plan,
    PlannedQuestion,
    cells_of,
    composed_epsilon,
    plan_of,
    planned_question,
)
from ldpopt.survey.plan.spec import SurveySpec
from ldpopt.survey.sample.analysis import Analysis, Findings, alone, estimate_counts, sources_of
from ldpopt.survey.sample.design import SampleDesign
from ldpopt.survey.sample.spec import SampleSpec

if TYPE_CHECKING:
    import pyarrow as pa

LEVEL = 0.95

SPLITTING = 0.3
"""The share of the progress that the split of the budget is."""


@dataclass(frozen=True, eq=False)
class PlannedSurvey(Pictured):
    """A plan, the design behind each of its channels, and the respondents that it and others need.

    designs : by question, or by booklet; none for a channel that is known without a search.
    respondents : of a simple random sample, who meet every target with this plan.
    split : if everybody is asked everything and epsilon is split; inf if that is too little for each question.
    one_question : if each respondent is asked one of the questions that share the budget.
    least : no epsilon-LDP survey of fewer people, interactive or not, meets the targets at the pilot, by unbiased
        estimates. Without a pilot answers are taken as even, which for yes/no questions is the least favourable case.
    """

    plan: Plan
    designs: dict[str, Design]
    delta: float = 0.0
    respondents: int = 0
    split: float = math.inf
    one_question: float = math.inf
    least: int = 0

    _picture, _heads = "budget_split", 1

    def _drawn(self) -> tuple[Any, ...]:
        return (self.plan,)

    def _columns(self) -> dict[str, list[Any]]:
        return self.plan._columns()

    def _title(self) -> str:
        return f"Planned survey {self.plan.name}"

    def to_dict(self) -> dict[str, Any]:
        """The numbers of respondents, and the booklets with their questions, as JSON-ready values."""
        booklets = [
            {"questions": [one.name for one in q.answers], "probability": str(q.probability), "epsilon": q.epsilon}
            for q in self.plan.questions
        ]
        numbers = {"split": self.split, "one_question": self.one_question}
        counts = {name: int(value) if math.isfinite(value) else None for name, value in numbers.items()}
        promised = {"epsilon": self.plan.epsilon, "eta": self.plan.eta, "booklets": booklets}
        counts |= {"respondents": self.respondents, "least": self.least}
        return {"name": self.plan.name, "checksum": self.plan.checksum, **counts, **promised}

    def __repr__(self) -> str:
        lines = [f"Plan {self.plan.name!r}: epsilon {self.plan.epsilon:.6g}, eta {self.plan.eta:.6g} in all"]
        if self.delta > 0:
            lines.append(f"  composed, epsilon {composed_epsilon(self.plan, self.delta):.6g} at delta {self.delta:g}")
        if self.plan.booklets:
            others = [("split over the questions", self.split), ("one question each", self.one_question)]
            known = "; ".join(f"{name} {value:,.0f}" for name, value in others if math.isfinite(value))
            lines.append(
                f"  {self.respondents:,} respondents, each asked one booklet ({known}; any survey needs {self.least:,})"
            )
        for q in self.plan.questions:
            expected = "; ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in (q.expected or {}).items())
            k, m = q.channel.shape
            asked = f", asked {q.probability} of respondents" if q.probability < 1 else ""
            said = f"{k} answers -> {m} reports, epsilon {q.epsilon:.4g}, eta {q.eta:.4g}{asked}"
            lines.append(f"  {q.name}: {said}" + (f"; {expected}" if expected else ""))
        return "\n".join(lines)


def plan_survey(
    spec: SurveySpec, n: int | None = None, *, time_limit: float | None = None, progress: Progress = False
) -> PlannedSurvey:
    """Design the survey that `spec` describes and make the plan.

    n : the number of available people, if known; the plan then says the half-width to expect, too.
    time_limit : seconds for all questions together; progress : both as for `optimal_channel`.

    A question with an epsilon of its own is asked of everybody. The others share what is left of the budget: by
    booklets, of which each respondent is asked one with all of it, or split (`SurveySpec.design`). Either way the
    fewest respondents meet every target half-width (0.05 if there is none). Without a pilot all shares are taken as
    equal, which for yes/no questions is the least favourable pilot.

    Raises `InvalidInput` when a question has neither an epsilon nor a budget to draw on, `SolverError` when the time is
    over before a question has a channel.

    >>> from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), half_width=0.05),), epsilon=1.0)
    >>> plan_survey(spec, n=2000).plan.question("vote").expected["respondents"]
    1799.0
    >>> several = SurveySpec("demo", tuple(QuestionSpec(name, ("no", "yes")) for name in "abcdefghij"), epsilon=1.0)
    >>> planned = plan_survey(several)
    >>> planned.respondents, planned.split, planned.one_question, planned.least
    (17989, 153915, 17989, 17989)
    """
    with watched(time_limit, progress) as deadline:
        people = None if n is None else positive_integer(n, "n")
        planning = _Planning(spec, people, deadline)
        planned = planning.planned()
        if planning.better_split:
            split = _Planning(replace(spec, design="split"), people, deadline).planned()
            return replace(split, one_question=planned.one_question)
        return planned


def respondents_needed(
    spec: SurveySpec,
    epsilons: Sequence[float] = EPSILONS,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> list[Needed]:
    """The respondents that all questions together need, for several budgets.

    epsilons : budgets in nats, each used as `plan_survey` uses it, but without a search for channels of several
        questions, which may need fewer people. Epsilons that the description fixes for single questions are ignored.
    time_limit : seconds for all budgets together; progress : both as for `optimal_channel`. When the time is over, more
        people than the fewest may be said.

    Budgets at which no number of respondents meets the targets are left out. `InvalidInput` for epsilons that are not
    positive.

    >>> from ldpopt.survey import QuestionSpec
    >>> respondents_needed(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), [1.0])
    [Needed(epsilon=1.0, respondents=1799, invited=1799)]
    """
    asked = tuple(replace(question, epsilon=None) for question in spec.questions)
    needed = []
    with watched(time_limit, progress) as deadline:
        for at, epsilon in enumerate(epsilons):
            given = replace(spec, epsilon=epsilon, questions=asked)
            try:
                planning = _Planning(given, None, deadline.turn(at, len(epsilons)), searched=False)
                people = int(planning.split) if planning.better_split else planning.respondents
            except InvalidInput:
                continue
            needed.append(Needed(epsilon, people, invited(given, people)))
    return needed


class _Planning:
    """The steps from a description to its planned survey."""

    def __init__(self, spec: SurveySpec, people: int | None, deadline: Deadline, searched: bool = True) -> None:
        self.spec, self.people, self.deadline, self.searched = spec, people, deadline, searched
        self.units = units_of(spec.questions)
        self.fixed = [unit for unit in self.units if unit.questions[0].epsilon is not None]
        shared = {question.name for question in spec.shared}
        self.shared = [unit for unit in self.units if unit not in self.fixed and unit.name in shared]
        self.everyone = [unit for unit in self.units if unit not in self.fixed and unit not in self.shared]
        self.spent = [(unit.epsilon, math.tanh(unit.epsilon / 2)) for unit in self.fixed]
        if spec.together and not self.shared:
            raise invalid(
                "[budget] together", 'questions that share the budget, with design = "booklets"', Phrase("none")
            )

    @cached_property
    def epsilons(self) -> tuple[dict[str, float], float]:
        """The epsilon of every unit that everybody is asked, and that of the booklets."""
        return self._epsilons(self.deadline.part(0.0, SPLITTING))

    @cached_property
    def eta(self) -> float | None:
        """The cap of the whole survey where it is that of every report alone."""
        return self.spec.eta if len(self.units) == 1 or len(self.shared) == len(self.units) else None

    @cached_property
    def everybody(self) -> dict[str, Questionnaire]:
        """The design of what everybody is asked, by unit."""
        whole = [unit for unit in self.units if unit not in self.shared]
        parts = self.deadline.part(SPLITTING, 1.0)
        return {
            unit.name: BookletPlanner([unit], self.epsilons[0][unit.name], self.eta).plan(
                1, 0.0, parts.turn(at, len(whole) + bool(self.shared))
            )
            for at, unit in enumerate(whole)
        }

    @cached_property
    def drawn(self) -> Questionnaire | None:
        """The booklets of the questions that share the budget."""
        if not self.shared:
            return None
        block, whole = self.epsilons[1], len(self.everybody)
        longest = 1 if self.spec.design == "one question" else MAX_LENGTH
        turn = self.deadline.part(SPLITTING, 1.0).turn(whole, whole + 1)
        planner = BookletPlanner(self.shared, block, self.eta, self.spec.together, self.searched)
        return planner.plan(longest, least_respondents(self.shared, block), turn)

    @property
    def respondents(self) -> int:
        """Of a simple random sample, who meet every target."""
        found = [*self.everybody.values(), *([self.drawn] if self.drawn else [])]
        return _whole(max(one.respondents for one in found))

    @property
    def better_split(self) -> bool:
        """Whether the budget is to be split although nobody said so: at large epsilons many answers can have a part."""
        return self.spec.design is None and not self.spec.together and self.split < self.respondents

    def planned(self) -> PlannedSurvey:
        """The plan with its numbers of respondents."""
        spec, designs = self.spec, dict[str, Design]()
        questions = [
            self._question(found.booklets[0], Fraction(1), self.epsilons[0][name], designs)
            for name, found in self.everybody.items()
        ]
        if self.drawn is not None:
            for booklet, share in zip(self.drawn.booklets, self.drawn.probabilities, strict=True):
                questions.append(self._question(booklet, share, self.epsilons[1], designs))
        order = {question.name: at for at, question in enumerate(spec.questions)}
        plan = plan_of(spec, sorted(questions, key=lambda question: [order[one.name] for one in question.answers]))
        alone = self.split
        if self.drawn is not None:
            alone = _whole(max(self.drawn.one_question, *(one.respondents for one in self.everybody.values()), 0.0))
        least = least_respondents(self.units, None if spec.delta else spec.epsilon or plan.epsilon)
        least = min(self.respondents, math.ceil(least * (1 - 1e-9)))
        return PlannedSurvey(plan, designs, spec.delta, self.respondents, self.split, alone, least)

    def _question(
        self, booklet: Booklet, share: Fraction, epsilon: float, designs: dict[str, Design]
    ) -> PlannedQuestion:
        """The planned question of a booklet, with the precision that is expected of it."""
        name = " + ".join(part.name for part in booklet.parts)
        if booklet.design is not None:
            designs[name] = booklet.design
        if len(booklet.parts) > 1:
            exact = round_exact(booklet.channel.matrix, epsilon=epsilon, inputs=cells_of(booklet.parts))
            planned = PlannedQuestion(name, "", exact, parts=booklet.parts, pilot=booklet.pilot, probability=share)
            return replace(planned, expected={"cells": float(len(exact.inputs))})
        (question,) = booklet.units[0].questions
        exact = round_exact(booklet.channel.matrix, epsilon=epsilon, eta=question.eta, inputs=question.categories)
        answering = (1 - self.spec.nonresponse) / self.spec.design_effect
        people = None if self.people is None else self.people * float(share) * answering
        expected = question.expected(Channel(exact.matrix), people)
        if answering < 1:
            most = max(expected.get("respondents", 0.0), expected.get("respondents_for_power", 0.0))
            expected["invited"] = float(invited(self.spec, most))
        if self.people is not None:
            expected["respondents_at_hand"] = float(self.people)
        return replace(planned_question(question, exact, share), expected=expected)

    def _epsilons(self, deadline: Deadline) -> tuple[dict[str, float], float]:
        spec = self.spec
        fixed = {unit.name: unit.epsilon for unit in self.fixed}
        if not (free := [*self.everyone, *self.shared]):
            return fixed, 0.0
        if spec.epsilon is None:
            raise InvalidInput(f"question {free[0].name!r}: expected an epsilon, or a budget to draw on, got neither")
        budget = Budget(spec.epsilon, spec.delta, 1.0 if spec.eta is None else spec.eta)
        left = spec.epsilon - sum(fixed.values())
        if self.spent and (not budget.allows(self.spent) or (left <= 0 and not spec.delta)):
            raise InvalidInput(f"budget epsilon: expected more than the fixed questions use, got {spec.epsilon!r}")
        if len(self.everyone) + bool(self.shared) == 1 and not spec.delta:
            share = left if not fixed else left * (1 - 1e-12)
            return {**fixed, **dict.fromkeys([unit.name for unit in self.everyone], share)}, share
        asked = {unit.name: unit.needs for unit in self.everyone}
        drawn = {unit.name: unit.needs for unit in self.shared}
        epsilons = dict(split_within(asked, budget, self.spent, deadline.turn(0, 2), drawn=drawn).epsilons)
        block = epsilons.pop(BOOKLET, 0.0)
        return {**fixed, **epsilons}, block

    @cached_property
    def split(self) -> float:
        """The respondents if the budget is split over all questions; inf where that is out of reach."""
        spec = self.spec
        if not self.shared:
            return _whole(max(one.respondents for one in self.everybody.values()))
        asked = {unit.name: unit.needs for unit in (*self.everyone, *self.shared)}
        budget = Budget(spec.epsilon or 0.0, spec.delta, 1.0 if spec.eta is None else spec.eta)
        try:
            return split_within(asked, budget, self.spent, self.deadline.turn(0, 2), designed=0).respondents
        except (InvalidInput, SolverError):
            return math.inf


def _whole(respondents: float) -> int:
    return math.ceil(respondents * (1 - 1e-12))


@dataclass(frozen=True, eq=False)
class Survey(ByValue):
    """A planned survey in Python: privatize data frames, count reports, estimate.

    >>> survey = Survey.from_toml('''
    ... [survey]
    ... name = "demo"
    ... [budget]
    ... epsilon = 2.0
    ... [[questions]]
    ... name = "vote"
    ... categories = ["no", "yes"]
    ... ''')
    >>> survey.plan.question("vote").reports
    ('0', '1')
    """

    plan: Plan

    @classmethod
    def from_toml(cls, content: str | bytes, n: int | None = None) -> Survey:
        """Plan the survey that TOML text describes."""
        return cls(plan_survey(SurveySpec.from_toml(content), n).plan)

    @classmethod
    def from_file(cls, path: str | Path) -> Survey:
        """The survey of a plan file."""
        return cls(Plan.from_json(Path(path).read_bytes()))

    def privatize(self, frame: Any, randomness: Randomness | None = None) -> pa.Table:
        """A pyarrow table of reports for a pandas, Polars or pyarrow frame of answers."""
        return privatize_frame(self.plan, frame, randomness)[0]

    def estimates(self, counts: Counts) -> dict[str, Estimate]:
        """The `Estimate` of every question, by name, from counts of the plan's reports; `InvalidInput` for others."""
        if counts.plan != self.plan.checksum:
            raise InvalidInput(f"counts: expected those of the plan {self.plan.name!r}, got those of another plan")
        found = {question.name: counts[question.name] for question in self.plan.questions}
        return {name: estimate_counts(self.plan, name, found) for name in self.plan.answers}

    def findings(
        self, reports: Counts | str | Path | list[Path], analysis: Analysis | None = None, unlabelled: bool = False
    ) -> tuple[dict[str, Findings], Counts]:
        """The `Findings` (estimates with intervals) of every question, and the counts that they come from.

        reports : files that `privatize` wrote, or counts, which suffice if the analysis needs no public column.
        analysis : groups, conditions and the design of the sample; by default the design that the plan declares.
        unlabelled : as in `aggregate`.

        `InvalidInput` for counts if columns are needed.
        """
        asked = Analysis(self.plan.sample or SampleSpec()) if analysis is None else analysis
        if isinstance(reports, Counts):
            if not asked.of_counts:
                expected = f"reports, whose public columns {', '.join(asked.columns)} are needed (--simple leaves the "
                raise invalid("estimates", expected + "design of the plan out)", Phrase("counts"))
            return {name: Findings(one, {}) for name, one in self.estimates(reports).items()}, reports
        if asked.of_counts:
            return self.findings(aggregate(self.plan, reports, unlabelled=unlabelled), asked)
        rows = read_rows(self.plan, reports, asked.columns, unlabelled)
        return asked.estimates(self.plan, rows), rows.counts

    def with_wave(self, counts: Counts, earlier: Survey, before: Counts) -> dict[str, Estimate]:
        """The `Estimate` of every question from two waves of different respondents, each with its own plan.

        `InvalidInput` unless the earlier plan asked the questions with the same categories, in another round.
        """
        if earlier.plan.round == self.plan.round:
            raise invalid("waves", "plans of different rounds", Phrase(f"round {self.plan.round} twice"))
        mine, theirs = self.estimates(counts), earlier.estimates(before)
        made = {}
        for name, one in mine.items():
            if name not in theirs:
                raise invalid("waves", f"the question {name!r} in both plans", sorted(theirs))
            if not alone(self.plan, name) or not alone(earlier.plan, name):
                sources = [
                    source
                    for plan, tables in ((earlier.plan, before), (self.plan, counts))
                    for source in sources_of(plan, (name,), {q.name: tables[q.name] for q in plan.questions})
                ]
                made[name] = estimate_booklets(sources, self.plan.part(name).categories, counted=True)
                continue
            both = [(found.table, found.channel) for found in (theirs[name], one)]
            made[name] = estimate_waves(both)
        return made

    def estimate(self, question: str, reports: Any, estimator: Estimator | None = None) -> Estimate:
        """The `Estimate` of a question from its counts, or from reports: a column, a data frame, or a path.

        A frame may be the result of `privatize`, or its file read by pandas, Polars or pyarrow. A path leads to files
        of reports, which `aggregate` checks and counts. Reports whose manifest names another plan are `InvalidInput`; a
        frame without a manifest, such as one of pandas, is accepted without this check. If the plan declares how the
        sample was drawn, this is used for files and frames, which must have its columns. Counts and single columns are
        treated as a simple sample.
        """
        sample, shared = (
            self.plan.sample or SampleSpec(),
            question in self.plan.answers and not alone(self.plan, question),
        )
        planned = self.plan.answers[question][0] if shared else self.plan.question(question)
        if isinstance(reports, (str, Path)):
            if sample.trivial and shared:
                return self.estimates(aggregate(self.plan, reports))[question]
            if sample.trivial:
                return _from_counts(planned, aggregate(self.plan, reports)[question], estimator)
            whole = Analysis(sample)
            return whole.estimates(self.plan, read_rows(self.plan, reports, whole.columns), estimator)[question].whole
        if (schema := getattr(reports, "schema", None)) is not None and hasattr(schema, "metadata"):
            said = in_table(schema, "the table")
            if said is not None:
                said.require(self.plan, "the table")
        if hasattr(reports, "column_names") or hasattr(reports, "columns"):
            if shared:
                found = {one.name: _at(reports, one) for one in self.plan.answers[question]}
                asked = sources_of(self.plan, (question,), found)
                design = None if sample.trivial else _design(reports, sample)
                return estimate_booklets(asked, self.plan.part(question).categories, design)
            column = report_column(reports, planned)
            if not sample.trivial:
                at = _at(reports, planned)
                drawn = SampledReports(np.maximum(at, 0), planned.report_channel, _design(reports, sample)).where(
                    at >= 0
                )
                return estimate(drawn, planned.report_channel, estimator)
            column = _answered(column) if planned.may_be_empty else column
            reports = CountTable.from_reports(column, planned.report_channel)
        return estimate(reports, planned.report_channel, estimator)


def _at(frame: Any, question: PlannedQuestion) -> npt.NDArray[np.intp]:
    """(n,) the reports of a question in a frame, as positions among its outputs; -1 for empty ones, if allowed."""
    found = as_column(report_column(frame, question), "reports")
    empty = [question.may_be_empty and (value is None or value != value) for value in found.tolist()]
    at = np.full(len(found), -1, dtype=np.intp)
    answered = ~np.array(empty, dtype=bool)
    at[answered] = positions(found[answered], question.report_channel.outputs)
    return at


def _design(frame: Any, sample: SampleSpec) -> SampleDesign:
    """The design of the sample in a frame's columns."""
    names = list(getattr(frame, "column_names", None) or frame.columns)
    return sample.design({name: as_column(frame[name], name) for name in sample.columns if name in names})


def _from_counts(question: PlannedQuestion, counts: Any, estimator: Estimator | None = None) -> Estimate:
    """The estimate from an array of counts, marked as counts, since an array alone could also be reports."""
    channel = question.report_channel
    return estimate(CountTable.from_counts(counts, channel.outputs), channel, estimator)


def _answered(column: Any) -> Any:
    """The reports of a pandas, Polars or arrow column that are not empty."""
    for name in ("dropna", "drop_nulls", "drop_null"):
        if hasattr(column, name):
            return getattr(column, name)()
    return column
