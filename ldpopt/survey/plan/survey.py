"""From a survey's description to its plan: split the budget, design and round every channel, predict the precision."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.deadline import Deadline, Progress, watched
from ldpopt.design import Design
from ldpopt.distribution import positive_integer
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.results import ByValue, Pictured
from ldpopt.survey.collect.aggregate import Counts, aggregate, read_rows
from ldpopt.survey.collect.batch import privatize_frame
from ldpopt.survey.collect.manifest import in_table
from ldpopt.survey.collect.randomness import Randomness
from ldpopt.survey.estimate.counts import CountTable, positions, report_column
from ldpopt.survey.estimate.counts import column as as_column
from ldpopt.survey.estimate.estimate import Estimate, estimate
from ldpopt.survey.estimate.groups import estimate_waves
from ldpopt.survey.estimate.linear import Estimator
from ldpopt.survey.estimate.sampled import SampledReports
from ldpopt.survey.plan.budget import Budget, invited, split_within
from ldpopt.survey.plan.plan import Plan, PlannedQuestion, composed_epsilon, make_plan
from ldpopt.survey.plan.spec import SurveySpec
from ldpopt.survey.sample.analysis import Analysis, Findings
from ldpopt.survey.sample.spec import SampleSpec

if TYPE_CHECKING:
    import pyarrow as pa

LEVEL = 0.95

SPLITTING = 0.3
"""The share of the progress that the split of the budget is."""


@dataclass(frozen=True, eq=False)
class PlannedSurvey(Pictured):
    """A plan, and the design behind each of its channels, by question."""

    plan: Plan
    designs: dict[str, Design]
    delta: float = 0.0

    _picture, _heads = "budget_split", 1

    def _drawn(self) -> tuple[Any, ...]:
        return (self.plan,)

    def _columns(self) -> dict[str, list[Any]]:
        return self.plan._columns()

    def _title(self) -> str:
        return f"Planned survey {self.plan.name}"

    def __repr__(self) -> str:
        lines = [f"Plan {self.plan.name!r}: epsilon {self.plan.epsilon:.6g}, eta {self.plan.eta:.6g} in all"]
        if self.delta > 0:
            lines.append(f"  composed, epsilon {composed_epsilon(self.plan, self.delta):.6g} at delta {self.delta:g}")
        for q in self.plan.questions:
            expected = "; ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in (q.expected or {}).items())
            k, m = q.channel.shape
            lines.append(
                f"  {q.name}: {k} answers -> {m} reports, epsilon {q.epsilon:.4g}, eta {q.eta:.4g}; {expected}"
            )
        return "\n".join(lines)


def plan_survey(
    spec: SurveySpec, n: int | None = None, *, time_limit: float | None = None, progress: Progress = False
) -> PlannedSurvey:
    """Design the optimal channel of every question of `spec` and make the plan.

    n : the number of available people, if known; the plan then says the half-width to expect, too.
    time_limit : seconds for all questions together; progress : both as for `optimal_channel`.

    A question uses its own epsilon, or a part of the budget. The budget that fixed epsilons leave is split so that the
    fewest respondents meet every target half-width (0.05 if there is none). Without a pilot all shares are taken as
    equal.

    Raises `InvalidInput` when a question has neither an epsilon nor a budget to draw on, `SolverError` when the time is
    over before a question has a channel.

    >>> from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), half_width=0.05),), epsilon=1.0)
    >>> plan_survey(spec, n=2000).plan.question("vote").expected["respondents"]
    1799.0
    """
    with watched(time_limit, progress) as deadline:
        designs = _designs(spec, deadline)
        made = make_plan(spec, {name: design.channel for name, design in designs.items()})
        answering = (1 - spec.nonresponse) / spec.design_effect
        questions = []
        for planned, asked in zip(made.questions, spec.questions, strict=True):
            people = None if n is None else positive_integer(n, "n")
            expected = asked.expected(Channel(planned.channel.matrix), None if people is None else people * answering)
            if answering < 1:
                most = max(expected.get("respondents", 0.0), expected.get("respondents_for_power", 0.0))
                expected["invited"] = float(invited(spec, most))
            if people is not None:
                expected["respondents_at_hand"] = float(people)
            questions.append(replace(planned, expected=expected))
        return PlannedSurvey(replace(made, questions=tuple(questions)), designs, spec.delta)


def _designs(spec: SurveySpec, deadline: Deadline) -> dict[str, Design]:
    epsilons = _epsilons(spec, deadline.part(0.0, SPLITTING))
    designs: dict[str, Design] = {}
    for at, question in enumerate(spec.questions):
        caps = [cap for cap in (question.eta, spec.eta if len(spec.questions) == 1 else None) if cap is not None]
        turn = deadline.part(SPLITTING, 1.0).turn(at, len(spec.questions))
        designs[question.name] = question.design(epsilons[question.name], min(caps, default=None), turn)
    return designs


def _epsilons(spec: SurveySpec, deadline: Deadline) -> dict[str, float]:
    fixed = {question.name: question.epsilon for question in spec.questions if question.epsilon is not None}
    free = [question for question in spec.questions if question.epsilon is None]
    if not free:
        return fixed
    if spec.epsilon is None:
        raise InvalidInput(f"question {free[0].name!r}: expected an epsilon, or a budget to draw on, got neither")
    spent = [(epsilon, math.tanh(epsilon / 2)) for epsilon in fixed.values()]
    budget = Budget(spec.epsilon, spec.delta, 1.0 if spec.eta is None else spec.eta)
    left = spec.epsilon - sum(fixed.values())
    if spent and (not budget.allows(spent) or (left <= 0 and not spec.delta)):
        raise InvalidInput(f"budget epsilon: expected more than the fixed questions use, got {spec.epsilon!r}")
    if len(free) == 1 and not spec.delta:
        return {**fixed, free[0].name: left * (1 - 1e-12)}
    asked = {question.name: (question.shares, question.target) for question in free}
    return {**fixed, **split_within(asked, budget, spent, deadline.turn(0, 2)).epsilons}


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
        return {question.name: _from_counts(question, counts[question.name]) for question in self.plan.questions}

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
        planned, sample = self.plan.question(question), self.plan.sample or SampleSpec()
        if isinstance(reports, (str, Path)):
            if sample.trivial:
                return _from_counts(planned, aggregate(self.plan, reports)[question], estimator)
            asked = Analysis(sample)
            return asked.estimates(self.plan, read_rows(self.plan, reports, asked.columns), estimator)[question].whole
        if (schema := getattr(reports, "schema", None)) is not None and hasattr(schema, "metadata"):
            said = in_table(schema, "the table")
            if said is not None:
                said.require(self.plan, "the table")
        if hasattr(reports, "column_names") or hasattr(reports, "columns"):
            column = report_column(reports, planned)
            if not sample.trivial:
                return estimate(_designed(column, planned, reports, sample), planned.report_channel, estimator)
            column = _answered(column) if planned.reading.left_out else column
            reports = CountTable.from_reports(column, planned.report_channel)
        return estimate(reports, planned.report_channel, estimator)


def _designed(column: Any, question: PlannedQuestion, frame: Any, sample: SampleSpec) -> SampledReports:
    """The reports of a frame with the design in its columns. Empty reports, if allowed, are outside the group."""
    channel = question.report_channel
    names = list(getattr(frame, "column_names", None) or frame.columns)
    public = {name: as_column(frame[name], name) for name in sample.columns if name in names}
    found = as_column(column, "reports")
    empty = [question.reading.left_out and (value is None or value != value) for value in found.tolist()]
    answered = ~np.array(empty, dtype=bool)
    at = np.zeros(len(found), dtype=np.intp)
    at[answered] = positions(found[answered], channel.outputs)
    return SampledReports(at, channel, sample.design(public)).where(answered)


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
