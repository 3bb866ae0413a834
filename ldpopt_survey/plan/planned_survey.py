"""A planned survey: its plan, designs and numbers of respondents, in words and as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ldpopt.design import Design, RespondentsBound
from ldpopt.errors import SolverError
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.values.results import Pictured
from ldpopt_survey.plan.plan import Plan, composed_epsilon
from ldpopt_survey.plan.planned_question import (
    asks_some,
)
from ldpopt_survey.plan.reported_precision import (
    ReportedPrecision,
    precision_of,
    tables_of,
)
from ldpopt_survey.plan.target_precision import (
    TargetPrecision,
)

RARE_REPORTS = 25
"""About how many reports of a kind an interval rests on at least (`estimate.linear.MAX_LYAPUNOV_RATIO`)."""


@dataclass(frozen=True, eq=False)
class PlannedSurvey(Pictured):
    """Plan with the design of each channel and the numbers of respondents for it and for alternatives.

    designs : the design of each question or booklet, except for channels known without a search, and those of several
        questions.
    respondents : the respondents of a simple random sample who meet every target with this plan.
    split : the respondents if everybody is asked everything and epsilon is split. It is inf if each question then has
        too little, or if tables or regressions have targets. Unless it is the number of this plan, it is approximate,
        interpolated between designs.
    one_question : the respondents if each is asked one of the questions that share the budget.
    invited : the number of people to invite for the respondents, by nonresponse and design effect.
    proof : that no epsilon-LDP survey of fewer people than `least`, interactive or not, meets the targets by unbiased
        estimates if the shares are those of the pilot and the answers to different questions are independent. So no
        survey that meets the targets at every joint distribution of the answers needs fewer; at a dependent one another
        survey may. Without a pilot answers are taken as even, which for yes/no questions is the least favorable case.
        `proof.verify()` recomputes it.
    joint : an estimate of the respondents that a report on all answers together needs, by its ratio to one question
        each at uniform shares. It is nan if it is unknown.
    at_hand : the available respondents, counted as in a simple random sample, whose precision is stated; 0 if unknown.
    targets : the precision of tables, groups and regressions with these respondents.
    for_targets : the number of respondents that makes all standard errors small enough for the targets.
        `respondents` is larger if so few would send too few rare reports, and some interval rests on these.
    """

    plan: Plan
    designs: dict[str, Design]
    delta: float = 0.0
    respondents: int = 0
    split: float = math.inf
    one_question: float = math.inf
    proof: RespondentsBound | None = None
    invited: int = 0
    joint: float = math.nan
    at_hand: float = 0.0
    targets: tuple[TargetPrecision, ...] = ()
    for_targets: int = 0

    _picture, _heads = "budget_split", 1

    @property
    def least(self) -> int:
        """The proved number of people whom any survey of independent answers needs; 0 where nothing is proved."""
        return 0 if self.proof is None else self.proof.least

    def bounded_by(self, proof: RespondentsBound) -> PlannedSurvey:
        """Return the plan with this proof; raise `SolverError` if the proof contradicts it.

        The proof contradicts a plan with fewer respondents than its bound.
        """
        if self.respondents < (bound := proof.least):
            problem = f"a plan for {self.respondents:,}, which is a mistake of the planner: please report it"
            expected = f"at least {bound:,} respondents, as any survey of independent answers needs"
            raise SolverError(f"plan: expected {expected}, got {problem}")
        return replace(self, proof=proof)

    def _plot_arguments(self) -> tuple[Any, ...]:
        return (self.plan,)

    def _columns(self) -> dict[str, list[Any]]:
        return self.plan._columns()

    def _title(self) -> str:
        return f"Planned survey {self.plan.name}"

    @cached_property
    def precision(self) -> tuple[ReportedPrecision, ...]:
        """The precision of each question, with the available respondents, or with as many as the plan needs."""
        return tuple(precision_of(self.plan, name, self.at_hand or self.respondents) for name in self.plan.answers)

    @cached_property
    def tables(self) -> tuple[ReportedPrecision, ...]:
        """The precision of each table of two questions that share a report, with as many respondents."""
        return tables_of(self.plan, self.at_hand or self.respondents)

    def to_dict(self) -> dict[str, Any]:
        """Convert respondents, booklets and precision to JSON-ready values."""
        booklets = [
            {"questions": [part.name for part in q.answers], "probability": str(q.probability), "epsilon": q.epsilon}
            for q in self.plan.questions
        ]
        numbers = {"split": self.split, "one_question": self.one_question, "joint_about": self.joint}
        numbers_by_key: dict[str, Any] = {
            name: int(value) if math.isfinite(value) else None for name, value in numbers.items()
        }
        guarantees = {"epsilon": self.plan.epsilon, "eta": self.plan.eta, "booklets": booklets}
        bound = {"least": self.least, "least_is": self._bound, "least_assumes": "independent answers to the questions"}
        numbers_by_key |= {"respondents": self.respondents, **bound, "invited": self.invited}
        precision = {
            name: [
                {
                    "questions": list(precise.questions),
                    "half_width": precise.half_width if precise.estimable else None,
                    "respondents": precise.respondents,
                }
                for precise in getattr(self, name)
            ]
            for name in ("precision", "tables")
        }
        targets = [
            {
                "target": target.target, "estimate": target.estimate, "measure": target.measure, "limit": target.limit,
                "value": target.value if target.estimable else None, "respondents": target.respondents,
            }
            for target in self.targets
        ]  # fmt: skip
        precision |= {"targets": targets}
        return {"name": self.plan.name, "checksum": self.plan.checksum, **numbers_by_key, **guarantees, **precision}

    @property
    def _bound(self) -> str:
        """The origin of the lower bound on the respondents."""
        if self.proof is None or not self.least:
            return "not known"
        return "closed-form bound" if self.proof.kernel is None else "proved for all channels"

    def __repr__(self) -> str:
        guarantee = f"epsilon {ceil_digits(self.plan.epsilon)}, eta {ceil_digits(self.plan.eta)}"
        lines = [f"Plan {self.plan.name!r}: {guarantee} in all"]
        if self.delta > 0:
            composed = ceil_digits(composed_epsilon(self.plan, self.delta))
            lines.append(f"  composed, epsilon {composed} at delta {ceil_digits(self.delta)}")
        has_booklets = bool(self.plan.booklets) or any(q.parts for q in self.plan.questions)
        if has_booklets:
            qualifier = "" if self.split == self.respondents else "about "
            alternatives = [
                (f"split over the questions {qualifier}", self.split),
                ("one question each ", self.one_question),
            ]
            comparison = "; ".join(f"{name}{value:,.0f}" for name, value in alternatives if math.isfinite(value))
            who_is_asked = "asked one booklet" if self.plan.booklets else "asked everything"
            lines.append(f"  {self.respondents:,} respondents, each {who_is_asked} ({comparison})")
            lines += [f"  {line}" for line in (self._joint_in_words, self._least_in_words) if line]
        if 0 < self.for_targets < self.respondents:
            standard_errors = f"with {self.for_targets:,} standard errors would be small enough for the targets"
            lines.append(f"  {standard_errors}, but some intervals would rest on too few rare reports:")
            lines.append(f"  {self.respondents:,} send about {RARE_REPORTS} of each such report")
        if self.invited > self.respondents:
            lines.append(f"  {self.invited:,} people to invite, for nonresponse and the design of the sample")
        if (rounds := self.plan.rounds or 1) > 1:
            epsilon, eta = self.plan.over_rounds(rounds)
            lines.append(f"  over {rounds} rounds: epsilon {ceil_digits(epsilon)}, eta {ceil_digits(eta)} in all")
        for q in self.plan.questions:
            numbers = {} if q.parts else q.expected or {}
            expected = "; ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in numbers.items())
            k, m = q.channel.shape
            who_is_asked = f", asked {q.probability} of respondents" if q.probability < 1 else ""
            limits = f"epsilon {ceil_digits(q.epsilon, 4)}, eta {ceil_digits(q.eta, 4)}"
            description = f"{k} answers -> {m} reports, {limits}{who_is_asked}"
            lines.append(f"  {q.name}: {description}" + (f"; {expected}" if expected else ""))
        if any(q.parts for q in self.plan.questions):
            respondents = f"{self.at_hand or self.respondents:,.0f} respondents"
            lines.append(f"  half-widths of 95 % intervals with {respondents}:")
            lines += [f"    {_precise_in_words(self.plan, precision)}" for precision in (*self.precision, *self.tables)]
        if self.targets:
            lines.append(f"  targets of tables and groups with {self.at_hand or self.respondents:,.0f} respondents:")
            lines += [f"    {_target_in_words(precision)}" for precision in self.targets]
        return "\n".join(lines)

    @property
    def _joint_in_words(self) -> str:
        """The saving of one report on all answers; empty if it is unknown, or if it is this plan."""
        if math.isnan(self.joint) or max(len(q.parts) for q in self.plan.questions) == len(self.plan.answers):
            return ""
        if (saving := 1 - self.joint / self.respondents) < 5e-3:
            return 'design = "joint" would save nothing (estimated at even shares)'
        return f'design = "joint" would save about {100 * saving:.0f} % of them (estimated at even shares)'

    @property
    def _least_in_words(self) -> str:
        """The bound on the respondents that other surveys need, with its assumptions."""
        if not self.least:
            return "nothing is proved of the respondents that other surveys need"
        statement = f"if the answers are independent, any survey needs {self.least:,}"
        if self.least == self.respondents or (self.proof is not None and self.proof.kernel is not None):
            return f"{statement}, proved"
        return f"{statement} by a quick closed-form bound, which is not the least (--prove looks for that)"


def _precise_in_words(plan: Plan, precise: ReportedPrecision) -> str:
    name, is_single = " x ".join(precise.questions), len(precise.questions) == 1
    is_mean = is_single and plan.part(name).measure == "mean"
    if is_single and asks_some(plan.part(name)):
        name = f"{name}, among those who are asked"
    if not precise.estimable:
        return f"{name}: not estimable"
    width = f"{precise.half_width:.4g}" if is_mean else f"{100 * precise.half_width:.3g} points"
    return f"{name}: at most ±{width}" + ("" if len(precise.questions) == 1 else " for each cell")


def _target_in_words(target: TargetPrecision) -> str:
    measure = target.measure.replace("_", " ")
    value = f"{measure} {target.value:.4g}" if target.estimable else "not estimable"
    return f"{target.target}: {value} (limit {target.limit:g}), largest for {target.estimate}"
