"""Settings of an analysis (design, conditions, groups, confidence level); reports -> estimates of every question."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.results import ByValue, Pictured
from ldpopt_survey.collect.aggregate import ReportRows
from ldpopt_survey.estimate.conditional_mean import conditional_mean
from ldpopt_survey.estimate.counts import CountTable
from ldpopt_survey.estimate.estimate import Estimate, estimate
from ldpopt_survey.estimate.groups import Source, estimate_booklets
from ldpopt_survey.estimate.intervals import check_level
from ldpopt_survey.estimate.linear import Estimator
from ldpopt_survey.estimate.numbers import among_answered, mean
from ldpopt_survey.estimate.sampled import SampledReports, Table
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion, asks_some, non_answers
from ldpopt_survey.plan.reported_precision import is_table_estimable, respondents_for_table
from ldpopt_survey.records import dump, key, listed, load, mapping, text
from ldpopt_survey.sample.design import SampleDesign
from ldpopt_survey.sample.spec import Condition, SampleSpec, groups_of

MAX_GROUPS = 200

ANYTIME = (
    "confidence sequences: at {:g} % each holds at all looks together, whenever one looks or stops, if those who "
    "answer later are like those before"
)
AMONG = "among those who answered, and of whom a question is asked"
BOUNDED = "no weight, and no cluster, is larger than the largest here"
NO_REPORT = "no report of the question"
"""The reason why a group, or all respondents of an analysis, have no estimate of a question."""
NO_WEIGHT = "no respondent of a positive weight"
"""The reason why a group has no estimate of any question."""


@dataclass(frozen=True, eq=False)
class Findings(Pictured):
    """The estimates of one question: `whole` for all respondents of the analysis, and `groups` by the group's name.

    groups_left_out : the groups of the analysis without an estimate, each with the reason, such as `NO_REPORT`.

    >>> Findings(estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]]), {}).whole.n
    100
    """

    whole: Estimate
    groups: Mapping[str, Estimate]
    groups_left_out: Mapping[str, str] = field(default_factory=dict)

    _picture, _heads = "shares", 2

    def _plot_arguments(self) -> tuple[Any, ...]:
        return self.whole._plot_arguments()

    def _columns(self) -> dict[str, list[Any]]:
        """The table for all respondents, followed by the table for every group."""
        parts = [(name, estimate._columns()) for name, estimate in [("all", self.whole), *self.groups.items()]]
        heads = list(parts[0][1])
        groups = [name for name, columns in parts for _ in columns[heads[0]]]
        return {"group": groups} | {head: [value for _, columns in parts for value in columns[head]] for head in heads}


@dataclass(frozen=True, eq=False)
class Analysis(ByValue):
    """The settings of an analysis of a survey's reports: sample design, groups, conditions and confidence level.

    sample : the public columns that hold the design; a simple random sample by default.
    by : public columns whose values form the groups.
    where : conditions; the analysis is about the respondents who fulfill all of them.
    level : confidence level of the intervals, in (0, 1).
    anytime : True if the intervals are confidence sequences, valid under repeated looks.
    answered : True if it is about people who answered: without the categories of `unanswered`.

    >>> Analysis(by=("sex",), where=(Condition.parse("age >= 30"),)).columns
    ('sex', 'age')
    """

    sample: SampleSpec = key(
        default=SampleSpec(), load=lambda data, _: SampleSpec.from_dict(data), dump=SampleSpec.to_dict
    )
    by: tuple[str, ...] = key(default=(), load=listed(text))
    where: tuple[Condition, ...] = key(
        default=(), load=lambda data, name: tuple(map(Condition.parse, listed(text)(data, name))),
        dump=lambda conditions: list(map(str, conditions)),
    )  # fmt: skip
    level: float = 0.95
    anytime: bool = key(default=False, omit=True)
    answered: bool = key(default=False, omit=True)

    def __post_init__(self) -> None:
        check_level(self.level)
        for name in ("anytime", "answered"):
            if type(getattr(self, name)) is not bool:
                raise invalid(f"analysis: {name}", "true or false", getattr(self, name))

    @property
    def columns(self) -> tuple[str, ...]:
        """The required public columns, each once."""
        names = [*self.sample.columns, *self.by, *(condition.column for condition in self.where)]
        return tuple(dict.fromkeys(names))

    @property
    def of_counts(self) -> bool:
        """True if counts suffice, so that single respondents are not needed."""
        return not self.columns

    @property
    def is_default(self) -> bool:
        """True for the analysis of all respondents of a simple random sample, at 95 %, with fixed sample size."""
        return self.of_counts and self.level == 0.95 and not self.anytime and not self.answered

    def estimates(self, plan: Plan, rows: ReportRows, estimator: Estimator | None = None) -> dict[str, Findings]:
        """Estimate every question that has reports.

        Each has `Findings`; `questions_without_reports` names the others. `InvalidInput` for another plan's rows, for
        an empty selection, and if no question has a report.
        """
        if rows.counts.plan != plan.checksum:
            raise invalid("reports", f"those of the plan {plan.name!r}", Phrase("another plan's"))
        selection = Selection(plan, rows, self)
        groups = groups_of(rows.columns, self.by) if self.by else np.zeros(rows.n)
        names = sorted(set(groups[selection.fulfilling])) if self.by else []
        if len(names) > MAX_GROUPS:
            raise invalid("groups", f"at most {MAX_GROUPS} of them", len(names))
        findings = {}
        for question in plan.answers:
            has_report = selection.has_reports(question)
            if not has_report.any():
                continue
            overall, group_estimates, left_out = selection.estimate(question, None, estimator), {}, {}
            for name in names:
                in_group = groups == name
                if not (has_report & in_group).any():
                    left_out[name] = NO_REPORT if (selection.included & in_group).any() else NO_WEIGHT
                    continue
                try:
                    group_estimates[name] = selection.estimate(question, in_group, estimator)
                except InvalidInput as error:  # of this group alone, since the whole has an estimate
                    left_out[name] = str(error)
            findings[question] = Findings(overall, group_estimates, left_out)
        if not findings:
            selection.answered(*plan.answers)  # raises `InvalidInput`
        return findings

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; `from_dict` restores the analysis."""
        return dump(self)

    @classmethod
    def from_dict(cls, data: Any) -> Analysis:
        """Load the analysis that `to_dict` described; else `InvalidInput`."""
        newer = {"anytime", "answered"}
        if set(mapping(data, "analysis")) - newer != {field.name for field in fields(cls)} - newer:
            raise InvalidInput("analysis: must be an object with the keys sample, by, where and level")
        return load(cls, data, "analysis")

    def __str__(self) -> str:
        """The settings that differ from the default, in words; empty for the default."""
        s = self.sample
        columns_by_role = (
            ("weights", s.weights),
            ("strata", s.strata),
            ("clusters", s.clusters),
            ("finite population", s.fpc),
        )
        settings = [f"{role} {column}" for role, column in columns_by_role if column is not None]
        settings += [f"known margins of {', '.join(s.margins)}"] if s.margins else []
        settings += [f"weights from {s.bounds[0]:g} to {s.bounds[1]:g} times their first values"] if s.bounds else []
        settings += [f"weights trimmed at {s.largest_weight:g}"] if s.largest_weight is not None else []
        settings += (
            [f"variance by {s.method.name if not s.replicate_weights else 'given replicates'}"] if settings else []
        )
        settings += [f"only {' and '.join(map(str, self.where))}"] if self.where else []
        settings += [AMONG] if self.answered else []
        settings += [ANYTIME.format(100 * self.level)] if self.anytime else []
        settings += [BOUNDED] if self.anytime and (s.weights or s.clusters) else []
        return "; ".join(settings)


@dataclass(frozen=True, eq=False)
class Selection(ByValue):
    """The reports and public columns of single respondents, and the settings of an analysis of them."""

    plan: Plan
    rows: ReportRows
    analysis: Analysis

    @cached_property
    def design(self) -> SampleDesign | None:
        """The design of the sample of all respondents; None for a simple random sample."""
        return self.analysis.sample.design(self.rows.columns) if self.analysis.sample.columns else None

    @cached_property
    def fulfilling(self) -> npt.NDArray[np.bool_]:
        """Mask (n,) of the respondents who fulfill every condition, with a weight or without."""
        conditions = [condition.holds(self.rows.columns) for condition in self.analysis.where]
        return np.asarray(np.logical_and.reduce([np.ones(self.rows.n, dtype=bool), *conditions]))

    @cached_property
    def included(self) -> npt.NDArray[np.bool_]:
        """Mask (n,) of the respondents with a weight who fulfill every condition. `InvalidInput` if it is empty."""
        mask = self.fulfilling if self.design is None else self.fulfilling & self.design.weighted
        if not mask.any():
            conditions = " and ".join(map(str, self.analysis.where))
            raise invalid("condition", "somebody who meets it", Phrase(f"nobody ({conditions})"))
        return mask

    def answered(self, *questions: str) -> npt.NDArray[np.bool_]:
        """Select the respondents as `has_reports`, and raise `InvalidInput` if there are none."""
        answered = self.has_reports(*questions)
        if not answered.any():
            raise InvalidInput(f"reports of {', '.join(questions)}: all of them are empty")
        return answered

    def has_reports(self, *questions: str) -> npt.NDArray[np.bool_]:
        """Select the included respondents with nonempty reports of all these questions, a mask (n,)."""
        reports, planned_of = self.rows.reports, self.plan.answers
        planned = [planned_of.get(name) or (self.plan.question(name),) for name in questions]
        has_report = [
            np.logical_or.reduce([reports[question.name] >= 0 for question in alternatives]) for alternatives in planned
        ]
        return np.asarray(np.logical_and.reduce([self.included, *has_report]))

    @property
    def with_reports(self) -> tuple[str, ...]:
        """The questions of the plan that an included respondent has a report of."""
        return tuple(name for name in self.plan.answers if self.has_reports(name).any())

    @property
    def n(self) -> int:
        """The number of respondents who fulfill every condition."""
        return int(self.included.sum())

    def is_table_estimable(
        self, questions: tuple[str, ...], respondents: int, holders: Sequence[PlannedQuestion] | None = None
    ) -> bool:
        """Return True if the reports of so many respondents determine every cell of a table of the questions.

        A group is judged by its own number, since its intervals are as wide as those of so many. The allowance for
        nonresponse, `MIN_RESPONSE`, is for an analysis of all respondents.

        holders : the planned questions of one booklet; by default of any.
        """
        if self.included.all():
            return is_table_estimable(self.plan, questions, float(respondents), holders)
        return respondents >= respondents_for_table(self.plan, questions, holders)

    def respondents_of_table(self, questions: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Select the respondents whose number decides on a table of the questions, a mask (n,).

        They are the included ones, without those who left a question out. Respondents who were not asked a question, by
        chance, count: the plan allows for them.
        """
        left_out = [name for name in questions if self.plan.part(name).reading.left_out]
        planned = {name: self.plan.answers[name] for name in left_out}
        asked_of_all = [name for name, holders in planned.items() if holders[0].probability == 1]
        return self.has_reports(*asked_of_all) if asked_of_all else self.included

    def estimate(self, question: str, mask: Any = None, estimator: Estimator | None = None) -> Estimate:
        """Estimate the proportions of a question among included respondents with reports.

        mask : (n,) a further restriction.

        Without a design, the remaining respondents are taken as a simple random sample.
        """
        respondents = self.answered(question) if mask is None else self.answered(question) & mask
        if not has_own_report(self.plan, question):
            sources = self.sources((question,), respondents)
            return self.among(
                question, estimate_question(self.plan, question, sources, self.design, anytime=self.analysis.anytime)
            )
        channel = self.plan.question(question).report_channel
        y = np.maximum(self.rows.reports[question], 0)
        if self.design is None:
            counts = np.bincount(y[respondents], minlength=channel.shape[1])
            table: Table = CountTable.from_counts(counts, channel.outputs)
        else:
            table = SampledReports(y, channel, self.design).where(respondents)
        return self.among(question, estimate(table, channel, estimator, self.analysis.anytime))

    def among(self, question: str, estimate_of_all: Estimate) -> Estimate:
        """Limit an estimate to people who answered, if the analysis is about them."""
        return restrict_to_answered(self.plan, question, estimate_of_all) if self.analysis.answered else estimate_of_all

    def sources(
        self, questions: tuple[str, ...], respondents: npt.NDArray[np.bool_], purpose: str = "table"
    ) -> list[Source]:
        """List the reports of the respondents in a mask (n,) about these questions, by booklet.

        `InvalidInput`, with the `purpose` in its message, if no booklet has reports of all their answers together that
        determine them with so many respondents.
        """
        selected_reports = {name: np.where(respondents, places, -1) for name, places in self.rows.reports.items()}
        booklets = sources_for(self.plan, questions, selected_reports)
        respondent_count = int((self.respondents_of_table(questions) & respondents).sum())
        if len(questions) > 1:
            ways = zip(self.plan.ways(questions), booklets, strict=True)
            booklets = [
                source for holders, source in ways if self.is_table_estimable(questions, respondent_count, holders)
            ]
        if not booklets:
            raise no_joint_report(purpose, questions, self.plan, respondent_count)
        return booklets


def no_joint_report(purpose: str, questions: Sequence[str], plan: Plan, respondents: int = 0) -> InvalidInput:
    """Describe the error of a plan without joint reports of several questions, with a remedy.

    A survey.toml names a multiple-choice question, and not its options; two options of one question are planned
    together as separate questions. Where the reports tell of them together, the remedy is more respondents.
    """
    needed = respondents_for_table(plan, tuple(questions)) if respondents else math.inf
    if needed < math.inf:
        expected = f"at least {math.ceil(needed):,} respondents, as its rarest reports require"
        return invalid(purpose, expected, Phrase(f"{respondents:,}"))
    question_names = f"{', '.join(questions[:-1])} and {questions[-1]}"
    names = list(dict.fromkeys(getattr(plan.part(name), "option_of", None) or name for name in questions))
    pair_setting = f"together = [{json.dumps(names, ensure_ascii=False)}]"
    ask_all = f"everyone = {json.dumps(names, ensure_ascii=False)}"
    remedy = f"{pair_setting if len(names) == 2 else ask_all} in [budget] of survey.toml, then ldpopt survey plan"
    if len(names) == 1:
        remedy = f"ask the options of {names[0]} as questions of two answers, named in `together`: ldpopt survey plan"
    expected = f"a booklet whose reports tell of {question_names} together ({remedy} survey.toml)"
    return invalid(purpose, expected, Phrase("none, with so many respondents"))


def restrict_to_answered(plan: Plan, question: str, estimate_of_all: Estimate) -> Estimate:
    """Estimate the proportions of a question among people who answered it.

    The result is `estimate_of_all` if all its categories are answers.
    """
    categories_without_answer = non_answers(plan.part(question))
    if plan.part(question).measure == "mean":
        return estimate_of_all  # a mean is among those who are asked
    return among_answered(estimate_of_all, *categories_without_answer) if categories_without_answer else estimate_of_all


def has_own_report(plan: Plan, question: str) -> bool:
    """Return True if one planned question asks this question and nothing else.

    Its proportions are then estimated from a separate report.
    """
    planned = plan.answers.get(question)
    return planned is None or (len(planned) == 1 and not planned[0].parts and planned[0].measure == "shares")


def counts_have_reports(plan: Plan, question: str, counts: Any) -> bool:
    """Return True if the counts of the reports (m,), by planned question, have a report of a question of the plan."""
    return any(np.any(counts[holder.name]) for holder in plan.answers[question])


def questions_without_reports(plan: Plan, estimates: Mapping[str, Any]) -> tuple[str, ...]:
    """List the questions that the estimates of a plan leave out, since no respondent has a report of them."""
    return tuple(name for name in plan.answers if name not in estimates)


def estimate_counts(
    plan: Plan, question: str, counts: Any, estimator: Estimator | None = None, anytime: bool = False
) -> Estimate:
    """Estimate a question of a plan from counts of the reports (m,) by planned question.

    `InvalidInput`, with the question's name, if it has no reports, as with few respondents.
    """
    if not counts_have_reports(plan, question, counts):
        expected = "a report of at least one respondent (more respondents, as only some are asked each question)"
        place = f"question {question!r}"
        raise invalid(place, expected, Phrase("no report"))
    if has_own_report(plan, question):
        channel = plan.question(question).report_channel
        return estimate(CountTable.from_counts(counts[question], channel.outputs), channel, estimator, anytime)
    return estimate_question(plan, question, sources_for(plan, (question,), counts), from_counts=True, anytime=anytime)


def estimate_question(plan: Plan, question: str, sources: Sequence[Source], *design: Any, **options: Any) -> Estimate:
    """Estimate the proportions of a question's answers from booklets, or their mean.

    A mean is in the units of the answers, and about the respondents who are asked. The arguments are those of
    `estimate_booklets`.
    """
    part = plan.part(question)
    shares = estimate_booklets(sources, part.measured, *design, **options)
    if part.measure == "shares":
        return shares
    if not asks_some(part):
        return mean(shares)
    return conditional_mean(shares, np.array([*part.ends, 0.0]), np.array([1.0, 1.0, 0.0]), part.ends)


def sources_for(plan: Plan, questions: tuple[str, ...], reports: Any) -> list[Source]:
    """List the reports about questions, for each booklet whose respondents are asked them all.

    reports : by planned question, the reports (n,) as positions. For a single question the counts (m,) are enough.
    """
    return [_source(plan, questions, holders, reports) for holders in plan.ways(questions)]


def _source(plan: Plan, questions: tuple[str, ...], holders: Sequence[PlannedQuestion], reports: Any) -> Source:
    """Reports of several planned questions as one joint report, of respondents who have them all."""
    first, *other_holders = holders
    channel, places, pilot = first.report_channel, np.asarray(reports[first.name]), first.shares
    names_by_holder = [
        [name for name in questions if name in {part.name for part in holder.answers}] for holder in holders
    ]
    contrasts = first.members(*names_by_holder[0])
    for holder, names in zip(other_holders, names_by_holder[1:], strict=True):
        y = np.asarray(reports[holder.name])
        places = np.where((places >= 0) & (y >= 0), places * len(holder.reports) + y, -1)
        channel, pilot = channel.product(holder.report_channel), np.outer(pilot, holder.shares).ravel()
        contrasts = np.asarray(np.kron(contrasts, holder.members(*names)), dtype=np.float64)
    order = [name for names in names_by_holder for name in names]
    if order != list(questions):
        sizes = [len(plan.part(name).measured) for name in order]
        reordered = np.arange(len(contrasts)).reshape(sizes).transpose([order.index(name) for name in questions])
        contrasts = contrasts[reordered.ravel()]
    name = f"{', '.join(holder.name for holder in holders)}, round {plan.round}"
    return Source(name, channel, places, contrasts, pilot)
