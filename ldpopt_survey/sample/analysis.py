"""Settings of an analysis (design, conditions, groups, confidence level) and reports -> estimates of every question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.results import ByValue, Pictured
from ldpopt_survey.collect.aggregate import ReportRows
from ldpopt_survey.estimate.counts import CountTable
from ldpopt_survey.estimate.estimate import Estimate, estimate
from ldpopt_survey.estimate.groups import Source, estimate_booklets
from ldpopt_survey.estimate.intervals import check_level
from ldpopt_survey.estimate.linear import Estimator
from ldpopt_survey.estimate.numbers import among_answered, mean
from ldpopt_survey.estimate.sampled import SampledReports, Table
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import PlannedQuestion, non_answers
from ldpopt_survey.plan.reported_precision import is_table_estimable
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


@dataclass(frozen=True, eq=False)
class Findings(Pictured):
    """The estimates of one question: for all respondents of the analysis, and for every group by name.

    >>> Findings(estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]]), {}).whole.n
    100
    """

    whole: Estimate
    groups: Mapping[str, Estimate]

    _picture, _heads = "shares", 2

    def _drawn(self) -> tuple[Any, ...]:
        return self.whole._drawn()

    def _columns(self) -> dict[str, list[Any]]:
        """The table for all respondents, followed by the table for every group."""
        parts = [(name, estimate._columns()) for name, estimate in [("all", self.whole), *self.groups.items()]]
        heads = list(parts[0][1])
        groups = [name for name, columns in parts for _ in columns[heads[0]]]
        return {"group": groups} | {head: [value for _, columns in parts for value in columns[head]] for head in heads}


@dataclass(frozen=True, eq=False)
class Analysis(ByValue):
    """How the reports of a survey are analysed: design of the sample, groups, conditions and confidence level.

    sample : the public columns that hold the design; a simple sample by default.
    by : public columns whose values form the groups.
    where : conditions; the analysis is about the respondents who fulfil all of them.
    level : confidence of the intervals, in (0, 1). anytime : whether they are to hold whenever one looks.
    answered : whether it is about those who answered: without the categories of `unanswered`.

    >>> Analysis(by=("sex",), where=(Condition.parse("age >= 30"),)).columns
    ('sex', 'age')
    """

    sample: SampleSpec = key(
        default=SampleSpec(), load=lambda data, _: SampleSpec.from_dict(data), dump=SampleSpec.to_dict
    )
    by: tuple[str, ...] = key(default=(), load=listed(text))
    where: tuple[Condition, ...] = key(
        default=(), load=lambda data, what: tuple(map(Condition.parse, listed(text)(data, what))),
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
        """The public columns that are needed, each once."""
        named = [*self.sample.columns, *self.by, *(condition.column for condition in self.where)]
        return tuple(dict.fromkeys(named))

    @property
    def of_counts(self) -> bool:
        """Whether counts are enough, so that single respondents are not needed."""
        return not self.columns

    @property
    def plain(self) -> bool:
        """Whether it is the analysis of all respondents of a simple sample, at 95 %, once."""
        return self.of_counts and self.level == 0.95 and not self.anytime and not self.answered

    def estimates(self, plan: Plan, rows: ReportRows, estimator: Estimator | None = None) -> dict[str, Findings]:
        """The `Findings` of every question; `InvalidInput` for another plan's rows, and for an empty selection."""
        if rows.counts.plan != plan.checksum:
            raise invalid("reports", f"those of the plan {plan.name!r}", Phrase("another plan's"))
        chosen = Selection(plan, rows, self)
        groups = groups_of(rows.columns, self.by) if self.by else np.zeros(rows.n)
        names = sorted(set(groups[chosen.meant])) if self.by else []
        if len(names) > MAX_GROUPS:
            raise invalid("groups", f"at most {MAX_GROUPS} of them", len(names))
        findings = {}
        for question in plan.answers:
            answered = chosen.answered(question)
            inside = {name: groups == name for name in names if (answered & (groups == name)).any()}
            parts = {name: chosen.estimate(question, who, estimator) for name, who in inside.items()}
            findings[question] = Findings(chosen.estimate(question, None, estimator), parts)
        return findings

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; `from_dict` gives the analysis back."""
        return dump(self)

    @classmethod
    def from_dict(cls, data: Any) -> Analysis:
        """The analysis that `to_dict` described; else `InvalidInput`."""
        newer = {"anytime", "answered"}
        if set(mapping(data, "analysis")) - newer != {field.name for field in fields(cls)} - newer:
            raise invalid("analysis", "an object with sample, by, where and level", Phrase("another"))
        return load(cls, data, "analysis")

    def __str__(self) -> str:
        """The settings that differ from the default, in words; empty for the default."""
        s = self.sample
        named = (("weights", s.weights), ("strata", s.strata), ("clusters", s.clusters), ("finite population", s.fpc))
        said = [f"{what} {column}" for what, column in named if column is not None]
        said += [f"known margins of {', '.join(s.margins)}"] if s.margins else []
        said += [f"weights from {s.bounds[0]:g} to {s.bounds[1]:g} times their first values"] if s.bounds else []
        said += [f"weights trimmed at {s.largest_weight:g}"] if s.largest_weight is not None else []
        said += [f"variance by {s.method.name if not s.replicate_weights else 'given replicates'}"] if said else []
        said += [f"only {' and '.join(map(str, self.where))}"] if self.where else []
        said += [AMONG] if self.answered else []
        said += [ANYTIME.format(100 * self.level)] if self.anytime else []
        said += [BOUNDED] if self.anytime and (s.weights or s.clusters) else []
        return "; ".join(said)


@dataclass(frozen=True, eq=False)
class Selection(ByValue):
    """The reports and public columns of single respondents, and the settings of an analysis of them."""

    plan: Plan
    rows: ReportRows
    asked: Analysis

    @cached_property
    def design(self) -> SampleDesign | None:
        """The design of the sample of all respondents; None for a simple one."""
        return self.asked.sample.design(self.rows.columns) if self.asked.sample.columns else None

    @cached_property
    def meant(self) -> npt.NDArray[np.bool_]:
        """(n,) mask of the respondents with a weight who fulfil every condition. `InvalidInput` if nobody does."""
        mask = np.ones(self.rows.n, dtype=bool) if self.design is None else self.design.weighted.copy()
        for condition in self.asked.where:
            mask &= condition.holds(self.rows.columns)
        if not mask.any():
            said = " and ".join(map(str, self.asked.where))
            raise invalid("condition", "somebody who meets it", Phrase(f"nobody ({said})"))
        return mask

    def answered(self, *questions: str) -> npt.NDArray[np.bool_]:
        """(n,) mask of those of them whose reports of these questions are not empty. `InvalidInput` if nobody's are."""
        reports, asked = self.rows.reports, self.plan.answers
        planned = [asked.get(name) or (self.plan.question(name),) for name in questions]
        given = [np.logical_or.reduce([reports[question.name] >= 0 for question in several]) for several in planned]
        answered = np.logical_and.reduce([self.meant, *given])
        if not answered.any():
            raise invalid(f"reports of {', '.join(questions)}", "at least one that is not empty", Phrase("none"))
        return np.asarray(answered)

    @property
    def n(self) -> int:
        """The number of respondents who fulfil every condition."""
        return int(self.meant.sum())

    def estimate(self, question: str, mask: Any = None, estimator: Estimator | None = None) -> Estimate:
        """The shares of a question among those who fulfil the conditions, in `mask` (n,) if given, with reports not
        empty.

        Without a design, those who remain are taken as a simple sample.
        """
        who = self.answered(question) if mask is None else self.answered(question) & mask
        if not alone(self.plan, question):
            sources = self.sources((question,), who)
            return self.among(
                question, estimated(self.plan, question, sources, self.design, anytime=self.asked.anytime)
            )
        channel = self.plan.question(question).report_channel
        y = np.maximum(self.rows.reports[question], 0)
        if self.design is None:
            counts = np.bincount(y[who], minlength=channel.shape[1])
            table: Table = CountTable.from_counts(counts, channel.outputs)
        else:
            table = SampledReports(y, channel, self.design).where(who)
        return self.among(question, estimate(table, channel, estimator, self.asked.anytime))

    def among(self, question: str, whole: Estimate) -> Estimate:
        """The estimate of a question, among those who answered if the analysis is about them."""
        return among_those(self.plan, question, whole) if self.asked.answered else whole

    def sources(self, questions: tuple[str, ...], who: npt.NDArray[np.bool_], what: str = "table") -> list[Source]:
        """What the respondents in a mask (n,) were asked of these questions together, by booklet.

        `InvalidInput`, which names `what` needs it, if the reports of no booklet tell of all their answers together.
        """
        asked = {name: np.where(who, places, -1) for name, places in self.rows.reports.items()}
        booklets = sources_of(self.plan, questions, asked)
        if len(questions) > 1:
            ways = zip(self.plan.ways(questions), booklets, strict=True)
            people = float(self.rows.n)  # of a group, too: the report tells as much of its members
            booklets = [source for several, source in ways if is_table_estimable(self.plan, questions, people, several)]
        if not booklets:
            raise untold(what, questions, self.plan)
        return booklets


def untold(what: str, questions: Sequence[str], plan: Plan) -> InvalidInput:
    """The error where no report tells of the answers to several questions together, with the plan that would serve.

    A survey.toml names a question of which several may be chosen, and not its options; two options of one question are
    planned together as questions of their own.
    """
    wanted = f"{', '.join(questions[:-1])} and {questions[-1]}"
    names = list(dict.fromkeys(getattr(plan.part(name), "option_of", None) or name for name in questions))
    pair = f"together = [{json.dumps(names, ensure_ascii=False)}]"
    everyone = f"everyone = {json.dumps(names, ensure_ascii=False)}"
    served = f"{pair if len(names) == 2 else everyone} in [budget] of survey.toml, then ldpopt survey plan"
    if len(names) == 1:
        served = f"ask the options of {names[0]} as questions of two answers, named in `together`: ldpopt survey plan"
    expected = f"a booklet whose reports tell of {wanted} together ({served} survey.toml)"
    return invalid(what, expected, Phrase("none, with so many respondents"))


def among_those(plan: Plan, question: str, whole: Estimate) -> Estimate:
    """The shares of a question among those who answered it; `whole` itself if it has no category for others."""
    none = non_answers(plan.part(question))
    return among_answered(whole, *none) if none else whole


def alone(plan: Plan, question: str) -> bool:
    """Whether its shares are estimated from a report of its own: one planned question asks it, and nothing else."""
    asked = plan.answers.get(question)
    return asked is None or (len(asked) == 1 and not asked[0].parts and asked[0].measure == "shares")


def estimate_counts(
    plan: Plan, question: str, counts: Any, estimator: Estimator | None = None, anytime: bool = False
) -> Estimate:
    """The estimate of a question of a plan from counts of the reports (m,) by planned question."""
    if alone(plan, question):
        channel = plan.question(question).report_channel
        return estimate(CountTable.from_counts(counts[question], channel.outputs), channel, estimator, anytime)
    return estimated(plan, question, sources_of(plan, (question,), counts), counted=True, anytime=anytime)


def estimated(plan: Plan, question: str, sources: Sequence[Source], *design: Any, **more: Any) -> Estimate:
    """What `estimate_booklets` finds of a question: the shares of its answers, or their mean in their own units."""
    part = plan.part(question)
    shares = estimate_booklets(sources, part.measured, *design, **more)
    return shares if part.measure == "shares" else mean(shares)


def sources_of(plan: Plan, questions: tuple[str, ...], reports: Any) -> list[Source]:
    """What reports tell of questions together, for each booklet whose respondents are asked them all.

    reports : by planned question, the reports (n,) as positions; for a single question their counts (m,) will do.
    """
    return [_source(plan, questions, several, reports) for several in plan.ways(questions)]


def _source(plan: Plan, questions: tuple[str, ...], several: Sequence[PlannedQuestion], reports: Any) -> Source:
    """Reports of several planned questions as one, of those who have them all."""
    first, *rest = several
    channel, places, pilot = first.report_channel, np.asarray(reports[first.name]), first.shares
    own = [[name for name in questions if name in {part.name for part in holder.answers}] for holder in several]
    contrasts = first.members(*own[0])
    for holder, names in zip(rest, own[1:], strict=True):
        y = np.asarray(reports[holder.name])
        places = np.where((places >= 0) & (y >= 0), places * len(holder.reports) + y, -1)
        channel, pilot = channel.product(holder.report_channel), np.outer(pilot, holder.shares).ravel()
        contrasts = np.asarray(np.kron(contrasts, holder.members(*names)), dtype=np.float64)
    order = [name for names in own for name in names]
    if order != list(questions):
        sizes = [len(plan.part(name).categories) for name in order]
        turned = np.arange(len(contrasts)).reshape(sizes).transpose([order.index(name) for name in questions])
        contrasts = contrasts[turned.ravel()]
    name = f"{', '.join(holder.name for holder in several)}, round {plan.round}"
    return Source(name, channel, places, contrasts, pilot)
