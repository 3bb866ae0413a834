"""Plan a survey: split the budget, design and round every channel, predict the precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design import Design, RespondentsBound
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.exact import round_exact
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.values.deadline import UNLIMITED, Deadline, Progress, watched
from ldpopt.values.distribution import positive_integer
from ldpopt.values.results import Pictured
from ldpopt_survey.estimate.linear import contrast_moments, reports_to_estimate
from ldpopt_survey.plan.booklet import Booklet
from ldpopt_survey.plan.booklet_rules import joint_ratio
from ldpopt_survey.plan.booklets import MIN_SPENT_SHARE, SHARING_QUESTIONS, BookletPlanner, Questionnaire, needs_of
from ldpopt_survey.plan.budget import (
    TABULATED_EPSILONS,
    Budget,
    BudgetRequirement,
    Needs,
    people_to_invite,
    split_within,
)
from ldpopt_survey.plan.plan import BOOKLET, Plan, composed_epsilon, plan_of
from ldpopt_survey.plan.planned_question import (
    PlannedQuestion,
    asks_some,
    cells_of,
    planned_question,
)
from ldpopt_survey.plan.reported_precision import (
    ReportedPrecision,
    precision_of,
    respondents_for_table,
    respondents_to_estimate,
    tables_of,
    target_key,
)
from ldpopt_survey.plan.spec import SurveySpec
from ldpopt_survey.plan.table_targets import Table
from ldpopt_survey.plan.target_precision import (
    TargetPrecision,
    respondents_for_targets,
    tables_of_targets,
    target_precisions,
)
from ldpopt_survey.plan.too_many import MAX_RESPONDENTS, TooManyRespondents, too_many
from ldpopt_survey.plan.units import Unit, joint_design, proof_of, respondents_bound, symmetric_proof, units_of

MAX_BOOKLET_EPSILON = 2.0
"""Up to this epsilon a split needs more respondents than one question each, for any number of questions."""

SPLIT_PROGRESS, PLAN_PROGRESS = 0.3, 0.2
"""The share of the progress that the split of the budget is; and that the plan is, where a proof follows it."""

RARE_REPORTS = 25
"""About how many reports of a kind an interval rests on at least (`estimate.linear.MAX_LYAPUNOV_RATIO`)."""

MIN_REPORTS_OF_AN_ANSWER = 4 * RARE_REPORTS
"""The fewest respondents expected to give an answer with which no interval can rest on too few rare reports."""

PROOF_SECONDS = (3.0, 30.0)
"""Seconds of the first searches for a proof, whose bounds are known before that of the last search, which ends itself.
"""


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


def plan_survey(
    spec: SurveySpec,
    n: int | None = None,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
    prove: bool = False,
) -> PlannedSurvey:
    """Design the survey that `spec` describes and make the plan.

    Parameters
    ----------
    n : number of available people, if known. The plan then states the expected half-width, too.
    time_limit : seconds for all questions together, as for `optimal_channel`.
    progress : as for `optimal_channel`.
    prove : True to search for a proof that the best joint channel needs so many respondents. The search takes up to
        minutes. Otherwise `proof` is the closed-form bound.

    A question with a separate epsilon is asked of everybody. The others share the remaining budget. Either each
    respondent is asked one booklet with all of it, or it is split (`SurveySpec.design`). Either way the fewest
    respondents meet every target half-width (0.05 if there is none). Without a pilot all shares are taken as equal,
    which for yes/no questions is the least favorable pilot.

    Raises `InvalidInput` when a question has neither an epsilon nor a budget to draw on, `SolverError` when the time is
    over before a question has a channel.

    >>> from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), half_width=0.05),), epsilon=1.0)
    >>> plan_survey(spec, n=2000).plan.question("vote").expected["respondents"]
    1799.0
    >>> several = SurveySpec("demo", tuple(QuestionSpec(name, ("no", "yes")) for name in "abcdefghij"), epsilon=1.0)
    >>> planned = plan_survey(several)
    >>> planned.respondents, planned.split, planned.one_question, planned.least
    (17989, 153915, 17989, 17989)
    """
    with watched(time_limit, progress) as deadline:
        respondents = None if n is None else positive_integer(n, "n")
        design_deadline = deadline.part(0.0, PLAN_PROGRESS) if prove else deadline
        planning = _Planning(spec, respondents, design_deadline)
        planned = None
        try:
            if spec.design is None and planning.one_question < planning.respondents and planning.alone is not None:
                planning = planning.alone
            if planning.better_split:
                split = _Planning(replace(spec, design="split"), respondents, design_deadline).planned()
                if split.respondents < planning.respondents:
                    planned = replace(split, one_question=planning.one_question)
                else:
                    planned = replace(planning.planned(), split=float(split.respondents))
            planned = planned or planning.planned()
        except TooManyRespondents as error:
            planned = _with_other_design(spec, respondents, design_deadline, error)
        for improved in _closer_bounds(planned, spec, deadline.part(PLAN_PROGRESS, 1.0)) if prove else ():
            planned = improved
        return planned


def _with_other_design(
    spec: SurveySpec, respondents: int | None, deadline: Deadline, error: TooManyRespondents
) -> PlannedSurvey:
    """Return the plan of a split budget if no design was requested; raise `error` with a design that serves.

    The error is unchanged if no design serves.
    """
    for design in ("split", "booklets", "one question"):
        if design == spec.design or (spec.design is None and design == "booklets"):
            continue
        try:
            planned = _Planning(replace(spec, design=design), respondents, deadline).planned()
        except (InvalidInput, SolverError):
            continue
        if spec.design is None:
            return planned
        message = f'{error}; design = "{design}" in [budget] needs {planned.respondents:,} respondents'
        raise TooManyRespondents(message) from None
    raise error


def closer_bounds(
    planned: PlannedSurvey, spec: SurveySpec, *, time_limit: float | None = None, progress: Progress = False
) -> Iterator[PlannedSurvey]:
    """Yield the plan with larger and larger proved numbers that any survey needs.

    The last plan is that of ``plan_survey(spec, prove=True)``. A caller that stops earlier has the best bound so far.
    time_limit, progress : as for `optimal_channel`.
    """
    with watched(time_limit, progress, "proving") as deadline:
        yield from _closer_bounds(planned, spec, deadline)


def _closer_bounds(planned: PlannedSurvey, spec: SurveySpec, deadline: Deadline) -> Iterator[PlannedSurvey]:
    """Yield the plan with one closer bound after another, from longer and longer searches."""
    epsilon, units = _epsilon_of_bound(spec, planned.plan), units_of(spec.questions)
    if epsilon is None or planned.proof is None or planned.respondents <= planned.least:
        return
    targeted_units = tuple(unit for unit in units if unit.targets)
    if (symmetric_dual := symmetric_proof(targeted_units, epsilon, deadline.inner)) is not None:
        bound = respondents_bound(units, epsilon, symmetric_dual)
        if bound.kernel is not None:
            yield planned.bounded_by(bound)
            return
    searches = (*PROOF_SECONDS, math.inf)
    for number, seconds in enumerate(searches):
        left = math.inf if deadline.left is None else deadline.left
        limit = None if math.isinf(min(seconds, left)) else min(seconds, left)
        part = deadline.part(number / len(searches), (number + 1) / len(searches))
        design = joint_design(targeted_units, epsilon, limit, part.tell)
        bound = respondents_bound(units, epsilon, proof_of(design, targeted_units))
        if bound.least > planned.least:
            planned = planned.bounded_by(bound)
            yield planned
        if (design is not None and design.certified) or left <= seconds:
            return


def _epsilon_of_bound(spec: SurveySpec, plan: Plan) -> float | None:
    """Return the epsilon of every report; None under a delta, where only the sampling variance is a bound."""
    return None if spec.delta else spec.epsilon or plan.epsilon


def respondents_needed(
    spec: SurveySpec,
    epsilons: Sequence[float] = TABULATED_EPSILONS,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> list[BudgetRequirement]:
    """List the respondents that all questions together need, for several budgets.

    epsilons : budgets in nats, each used as `plan_survey` uses it, but without a search for channels of several
        questions, which may need fewer people. Epsilons that the description fixes for single questions are ignored.
    time_limit : seconds for all budgets together; progress : both as for `optimal_channel`. When the time is over, more
        people than the fewest may be said.

    Budgets that no number of respondents suffices for are left out. `InvalidInput` for epsilons that are not
    positive.

    >>> from ldpopt_survey import QuestionSpec
    >>> respondents_needed(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), [1.0])
    [BudgetRequirement(epsilon=1.0, respondents=1799, invited=1799)]
    """
    questions = tuple(replace(question, epsilon=None) for question in spec.questions)
    requirements, starts, units = [], dict[tuple[Unit, ...], Channel](), None
    with watched(time_limit, progress) as deadline:
        for number, epsilon in enumerate(epsilons):
            variant = replace(spec, epsilon=epsilon, questions=questions)
            try:
                planning = _Planning(variant, None, deadline.turn(number, len(epsilons)), False, units, starts)
                units = planning.units
                is_split = epsilon > MAX_BOOKLET_EPSILON and planning.better_split
                respondents = int(planning.split) if is_split else planning.respondents
                if is_split and planning.respondents > planning.for_targets:  # also the split may rest on rare reports
                    split = _Planning(replace(variant, design="split"), None, deadline.inner, search_joint=False)
                    respondents = min(planning.respondents, split.respondents)
            except InvalidInput:
                continue
            requirements.append(BudgetRequirement(epsilon, respondents, people_to_invite(variant, respondents)))
    return requirements


class _Planning:
    """Steps from a description to its planned survey."""

    def __init__(
        self, spec: SurveySpec, respondents: int | None, deadline: Deadline, search_joint: bool = True,
        units: tuple[Unit, ...] | None = None, starts: dict[tuple[Unit, ...], Channel] | None = None,
        design: str | None = None,
    ) -> None:  # fmt: skip
        self.design = design or spec.design or "booklets"
        self.spec, self.available, self.deadline, self.search_joint = spec, respondents, deadline, search_joint
        self.units = units or tuple(self._with_groups(unit) for unit in units_of(spec.questions))
        self.starts = starts
        self.fixed_units = [unit for unit in self.units if unit.questions[0].epsilon is not None]
        shared = {question.name for question in spec.shared}
        self.shared_units = [unit for unit in self.units if unit not in self.fixed_units and unit.name in shared]
        self.common_units = [
            unit for unit in self.units if unit not in self.fixed_units and unit not in self.shared_units
        ]
        self.fixed_claims = [
            (unit.epsilon, min(math.tanh(unit.epsilon / 2), *_caps(unit))) for unit in self.fixed_units
        ]
        if spec.together and not self.shared_units:
            fixed = {question.name for question in spec.questions if question.epsilon is not None}
            names = [name for pair in spec.together for name in pair]
            unsuitable = next((name for name in names if name in {*fixed, *spec.everyone}), names[0])
            problem = Phrase("no [budget] epsilon") if spec.epsilon is None else unsuitable
            raise invalid("[budget] together", SHARING_QUESTIONS, problem)

    def _with_groups(self, unit: Unit) -> Unit:
        """Return the unit with its targets for groups of public columns."""
        names = {name for question in unit.questions for name in (question.name, question.option_of)}
        groups = [(target, self.spec.groups_of(target)) for target in self.spec.targets]
        chosen = tuple(
            (target, min(shares.values()))
            for target, shares in groups
            if shares is not None and (not target.questions or names & set(target.questions))
        )
        return replace(unit, group_targets=chosen) if chosen else unit

    @cached_property
    def budgets(self) -> dict[str, tuple[float, float | None]]:
        """The (epsilon, eta) of every common unit, and of the booklets under `BOOKLET`; eta None means no cap."""
        spec = self.spec
        fixed: dict[str, tuple[float, float | None]] = {unit.name: (unit.epsilon, None) for unit in self.fixed_units}
        if not self.fixed_units and len(self.units) == 1 and spec.epsilon is not None:
            name = BOOKLET if self.shared_units else self.units[0].name
            return {name: (spec.epsilon, spec.eta)}
        if len(self.fixed_units) == len(self.units) == 1:
            return {self.units[0].name: (self.units[0].epsilon, spec.eta)}
        if not (sharing_units := [*self.common_units, *self.shared_units]):
            return fixed
        if spec.epsilon is None:
            raise InvalidInput(
                f"question {sharing_units[0].name!r}: expected an epsilon, or a budget to draw on, got neither"
            )
        remaining = spec.epsilon - sum(epsilon for epsilon, _ in fixed.values())
        if self.fixed_claims and (not self.budget.allows(self.fixed_claims) or (remaining <= 0 and not spec.delta)):
            spent = math.fsum(epsilon for epsilon, _ in self.fixed_claims)
            if spec.eta is not None and spent < spec.epsilon:
                names = " and ".join(repr(unit.name) for unit in self.fixed_units)
                expected = f"more than the fixed questions may use, or a smaller eta of {names} in [[questions]]"
                raise invalid("budget eta", expected, spec.eta)
            raise InvalidInput(f"budget epsilon: expected more than the fixed questions use, got {spec.epsilon!r}")
        if len(self.common_units) + bool(self.shared_units) == 1:
            name = BOOKLET if self.shared_units else self.common_units[0].name
            if not fixed:
                return {name: (spec.epsilon, spec.eta)}
            log_spent = math.fsum(math.log1p(-eta) for _, eta in self.fixed_claims)
            eta = None if spec.eta is None else -math.expm1(math.log1p(-spec.eta) - log_spent) if spec.eta < 1 else 1.0
            eta = None if eta is None else eta * (1 - 1e-12)
            return {**fixed, name: (self.budget.largest_epsilon(self.fixed_claims, eta), eta)}
        turn = self.deadline.part(0.0, SPLIT_PROGRESS).turn(0, 2)
        split = split_within(
            _needs(self.common_units), self.budget, self.fixed_claims, turn, booklet_needs=_needs(self.shared_units)
        )
        return fixed | {name: (epsilon, split.etas.get(name)) for name, epsilon in split.epsilons.items()}

    @property
    def budget(self) -> Budget:
        """The budget of one respondent, which the description has."""
        return Budget(self.spec.epsilon or 0.0, self.spec.delta, 1.0 if self.spec.eta is None else self.spec.eta)

    @cached_property
    def common_questionnaires(self) -> dict[str, Questionnaire]:
        """The design of every common unit, by name."""
        common_units = [unit for unit in self.units if unit not in self.shared_units]
        deadline = self.deadline.part(SPLIT_PROGRESS, 1.0)
        return {
            unit.name: BookletPlanner([unit], *self.budgets[unit.name], tables=self._tables([unit])).plan(
                "one question", deadline.turn(number, len(common_units) + bool(self.shared_units))
            )
            for number, unit in enumerate(common_units)
        }

    def _tables(self, units: Sequence[Unit]) -> list[Table]:
        """Return the targets of tables and regressions that need only these units."""
        names = {question.name for unit in units for question in unit.questions}
        return [table for table in tables_of_targets(self.spec) if set(table.names) <= names]

    @cached_property
    def booklet_questionnaire(self) -> Questionnaire | None:
        """The booklets of the questions that share the budget."""
        if not self.shared_units:
            return None
        designs_before, (epsilon, eta) = len(self.common_questionnaires), self.budgets[BOOKLET]
        turn = self.deadline.part(SPLIT_PROGRESS, 1.0).turn(designs_before, designs_before + 1)
        tables = self._tables(self.shared_units)
        table_pairs, search_joint = self.spec.together, self.search_joint
        planner = BookletPlanner(
            self.shared_units, epsilon, eta, table_pairs, search_joint, search_joint, tables, self.starts
        )
        return planner.plan(self.design, turn)

    @property
    def one_question(self) -> float:
        """The respondents if each of the questions that share the budget is asked alone; inf if that is too many."""
        if (questionnaire := self.booklet_questionnaire) is None:
            return self.split
        try:
            if questionnaire.respondents == questionnaire.one_question:
                return self.respondents
            if self.alone is not None:
                return self.alone.respondents
        except (InvalidInput, SolverError):
            return math.inf
        others = [part.respondents for part in self.common_questionnaires.values()]
        return _rounded_up(max(questionnaire.one_question, questionnaire.one_question_to_estimate, *others, 0.0))

    @cached_property
    def alone(self) -> _Planning | None:
        """The plan of the same questions asked alone; None if its respondents are known without its channels.

        They are unless tables, groups or rare reports need more respondents than the targets of single questions.
        """
        questionnaire = self.booklet_questionnaire
        if questionnaire is None or questionnaire.respondents == questionnaire.one_question:
            return None
        if not self.spec.targets and self.respondents <= self.for_targets:
            return None
        return _Planning(self.spec, self.available, self.deadline, self.search_joint, self.units, None, "one question")

    @cached_property
    def respondents(self) -> int:
        """The respondents of a simple random sample who meet every target, with intervals that can be trusted.

        `TooManyRespondents` if they are more than `MAX_RESPONDENTS`.
        """
        self._require_few(required := max(self.for_targets, self._to_estimate))
        return math.ceil(required)

    def _require_few(self, required: float) -> None:
        """Raise `TooManyRespondents` if so many respondents are needed."""
        if not required <= MAX_RESPONDENTS:
            raise too_many(self.units, required, max(question.epsilon for question in self._plan.questions))

    @cached_property
    def for_targets(self) -> int:
        """The respondents who meet every target, if no interval rests on reports that are too rare."""
        self._require_few(self._for_designs)
        if not self.spec.targets:
            return self._for_designs
        # The exact channels, also those of questions in separate reports, determine the precision of tables.
        return math.ceil(respondents_for_targets(self._plan, self.spec, self._for_designs) * (1 - 1e-9))

    @property
    def _to_estimate(self) -> float:
        """The fewest respondents, unrounded, who make every share with a target and every requested table estimable.

        It is inf if none do.
        """
        required = 1.0
        for question in (question for unit in self.units for question in unit.questions):
            if question.width is None and question.relative is None:
                continue
            required = max(required, respondents_to_estimate(self._plan, question.name))
        options = {question.name: [part.name for part in question.answers] for question in self.spec.questions}
        for first, second in self.spec.together:
            for names in product(options[first], options[second]):
                required = max(required, respondents_for_table(self._plan, names))
        return required

    @property
    def _for_designs(self) -> int:
        """The respondents who meet the design targets of the booklets."""
        everything = [
            *self.common_questionnaires.values(),
            *([self.booklet_questionnaire] if self.booklet_questionnaire else []),
        ]
        return _rounded_up(max(questionnaire.respondents for questionnaire in everything))

    @property
    def better_split(self) -> bool:
        """True if splitting the budget, which nobody requested, needs fewer respondents, as at large epsilons."""
        if any(self.spec.groups_of(target) is None for target in self.spec.targets):
            return False
        return self.spec.design is None and not self.spec.together and self.split < self.respondents

    @cached_property
    def _designs(self) -> dict[str, Design]:
        """The designs behind the plan's channels, by question or booklet; `_plan` fills them in."""
        return {}

    @cached_property
    def _plan(self) -> Plan:
        """The plan, with the respondents who meet the design targets of its booklets."""
        shares = [
            (*part, *self.budgets[name])
            for name, questionnaire in self.common_questionnaires.items()
            for part in questionnaire.shares
        ]
        if self.booklet_questionnaire is not None:
            shares += [(*part, *self.budgets[BOOKLET]) for part in self.booklet_questionnaire.shares]
        questions = [self._question(*part, self._designs) for part in shares]
        order = {
            part.name: place
            for place, question_spec in enumerate(self.spec.questions)
            for part in question_spec.answers
        }
        return plan_of(self.spec, sorted(questions, key=lambda question: [order[p.name] for p in question.answers]))

    def planned(self) -> PlannedSurvey:
        """Return the plan with its numbers of respondents."""
        spec, plan = self.spec, self._plan
        if self.respondents > self._for_designs:
            expected_by_name = {
                q.name: {**(q.expected or {}), "respondents": float(self.respondents)} for q in plan.questions
            }
            questions = [replace(q, expected=expected_by_name[q.name]) if q.parts else q for q in plan.questions]
            plan = replace(plan, questions=tuple(questions))
        if self.available is not None:
            plan = self._with_widths_at_hand(plan)
        planned = PlannedSurvey(
            plan, self._designs, spec.delta, self.respondents, self.split, self.one_question, None,
            people_to_invite(spec, self.respondents), self.joint, self.answering or 0.0,
            target_precisions(plan, spec, self.answering or self.respondents), self.for_targets,
        )  # fmt: skip
        # The bound does not count targets of groups, since the choice of questions may depend on a public group.
        ungrouped = [replace(unit, group_targets=()) for unit in self.units]
        return planned.bounded_by(respondents_bound(ungrouped, _epsilon_of_bound(spec, plan)))

    @property
    def joint(self) -> float:
        """About how many respondents a report on all answers that share the budget needs; nan if that is not known."""
        if (
            self.booklet_questionnaire is None
            or self.common_questionnaires
            or self.budgets[BOOKLET][1] is not None
            or self.spec.targets
            or self.respondents > self.for_targets
            or self._leaves_budget
        ):
            return math.nan
        free_units = BookletPlanner(self.shared_units, *self.budgets[BOOKLET]).free
        if len(free_units) < len(self.shared_units):
            return math.nan
        return self.booklet_questionnaire.one_question * joint_ratio(free_units, self.budgets[BOOKLET][0])

    @property
    def _leaves_budget(self) -> bool:
        """True if a channel has a smaller epsilon than it may, so that no interval rests on too few rare reports."""
        capped = any(question.eta is not None for unit in self.units for question in unit.questions)
        if capped or self.spec.eta is not None or self.spec.delta or self.spec.epsilon is None:
            return False
        return any(
            question.epsilon < MIN_SPENT_SHARE * self.budgets[BOOKLET if question.probability < 1 else unit.name][0]
            for unit in self.units
            for question in self._plan.answers[unit.questions[0].name]
            if (BOOKLET if question.probability < 1 else unit.name) in self.budgets
        )

    @property
    def answering(self) -> float | None:
        """The people at hand who will answer, counted as in a simple random sample."""
        return (
            None if self.available is None else self.available * (1 - self.spec.nonresponse) / self.spec.design_effect
        )

    def _with_widths_at_hand(self, plan: Plan) -> Plan:
        """Return the plan with half-widths for the available respondents, from all booklets with a question."""
        questions = []
        for question in plan.questions:
            expected = dict(question.expected or {})
            if not question.parts and "half_width_at_hand" in expected:
                width = precision_of(plan, question.name, self.answering or 1.0).half_width
                expected["half_width_at_hand"] = width if math.isfinite(width) else expected["half_width_at_hand"]
            questions.append(replace(question, expected=expected))
        return replace(plan, questions=tuple(questions))

    def _question(
        self, booklet: Booklet, share: Fraction, epsilon: float, eta: float | None, designs: dict[str, Design]
    ) -> PlannedQuestion:
        """Return the planned question of a booklet, with its expected precision."""
        name = " + ".join(dict.fromkeys(part.option_of or part.name for part in booklet.parts))
        if booklet.design is not None:
            designs[name] = booklet.design
        if len(booklet.parts) > 1:
            exact = round_exact(booklet.channel.matrix, epsilon=epsilon, eta=eta, inputs=cells_of(booklet.parts))
            cap = _smallest_cap(eta, *(question.eta for unit in booklet.units for question in unit.questions))
            planned = PlannedQuestion(
                name, "", exact, parts=booklet.parts, pilot=booklet.pilot, probability=share, eta_cap=cap
            )
            expected = {"cells": float(len(exact.inputs)), "respondents": float(self._for_designs)}
            questions = [question for unit in booklet.units for question in unit.questions]
            expected |= {
                target_key(question.name): question.span * question.width.width
                for question in questions
                if question.width
            }
            return replace(planned, expected=expected)
        (question,) = booklet.units[0].questions
        cap = _smallest_cap(eta, question.eta)
        exact = round_exact(booklet.channel.matrix, epsilon=epsilon, eta=cap, inputs=question.categories)
        answering = (1 - self.spec.nonresponse) / self.spec.design_effect
        respondents = None if self.answering is None else self.answering * float(share)
        expected = question.expected(Channel(exact.matrix), respondents)
        planned = planned_question(question, exact, share, cap)
        if question.width is not None or question.relative is not None:
            moments = contrast_moments(Channel(exact.matrix), planned.shares, planned.members(planned.name))
            needed = float(reports_to_estimate(*moments).max())
            if expected["respondents"] < needed < math.inf:
                expected["respondents"] = float(math.ceil(needed))
        if answering < 1:
            largest = max(expected.get("respondents", 0.0), expected.get("respondents_for_power", 0.0))
            expected["invited"] = float(people_to_invite(self.spec, largest))
        if self.available is not None:
            expected["respondents_at_hand"] = float(self.available)
        return replace(planned, expected=expected)

    @cached_property
    def split(self) -> float:
        """The respondents if the budget is split over all questions; inf where that is out of reach."""
        if not self.shared_units:
            return self.respondents
        if any(self.spec.groups_of(target) is None for target in self.spec.targets):
            return math.inf  # a split plan would have to be designed to know it
        known_designs = (
            {}
            if self.booklet_questionnaire is None
            else {
                name: (*self.budgets[BOOKLET], respondents)
                for name, respondents in self.booklet_questionnaire.single_requirements.items()
                if math.isfinite(respondents)
            }
        )
        units = (*self.common_units, *self.shared_units)
        needs = {unit.name: needs_of(unit, known_designs.get(unit.name)) for unit in units}
        try:
            split = split_within(needs, self.budget, self.fixed_claims, UNLIMITED, corrections=1)
            rare = [unit for unit in units if float(unit.pilot.min()) * split.respondents < MIN_REPORTS_OF_AN_ANSWER]
            if rare:  # such questions are far from the curves at even shares that the first split begins with
                split = split_within(needs, self.budget, self.fixed_claims, UNLIMITED)
            respondents = split.respondents
            for unit in rare:
                planner = BookletPlanner([unit], split.epsilons[unit.name], split.etas.get(unit.name), certify=False)
                required = planner.plan("one question", UNLIMITED).one_question_to_estimate
                respondents = max(respondents, _rounded_up(required))
            return respondents
        except (InvalidInput, SolverError):
            return math.inf


def _caps(unit: Unit) -> list[float]:
    """Return the caps on the total variation of a unit's report, and 1."""
    return [1.0, *(question.eta for question in unit.questions if question.eta is not None)]


def _smallest_cap(*caps: float | None) -> float | None:
    return min((cap for cap in caps if cap is not None), default=None)


def _needs(units: Sequence[Unit]) -> Mapping[str, Needs]:
    return {unit.name: needs_of(unit) for unit in units}


def _rounded_up(respondents: float) -> int:
    return math.ceil(respondents * (1 - 1e-12))
