"""From a survey's description to its plan: split the budget, design and round every channel, predict the precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design import Design, RespondentsBound
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.exact import round_exact
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.values.deadline import UNLIMITED, Deadline, Progress, watched
from ldpopt.values.distribution import positive_integer
from ldpopt.values.results import Pictured
from ldpopt_survey.plan.booklet import Booklet
from ldpopt_survey.plan.booklet_rules import joint_ratio
from ldpopt_survey.plan.booklets import BookletPlanner, Questionnaire, needs_of
from ldpopt_survey.plan.budget import EPSILONS, Budget, Needed, Needs, invited, split_within
from ldpopt_survey.plan.plan import BOOKLET, Plan, composed_epsilon, plan_of
from ldpopt_survey.plan.planned_question import PlannedQuestion, cells_of, planned_question
from ldpopt_survey.plan.spec import SurveySpec
from ldpopt_survey.plan.table_targets import Table
from ldpopt_survey.plan.target_precision import (
    TargetPrecision,
    respondents_for_targets,
    tables_of_targets,
    target_precisions,
)
from ldpopt_survey.plan.told import Precise, precision_of, tables_of, target_key
from ldpopt_survey.plan.units import Unit, joint_design, proof_of, respondents_bound, symmetric_proof, units_of

SPLIT_PAYS = 2.0
"""Up to this epsilon a split needs more respondents than one question each, for any number of questions."""

SPLITTING, PLANNING = 0.3, 0.2
"""The share of the progress that the split of the budget is; and that the plan is, where a proof follows it."""

PROVING = (3.0, 30.0)
"""Seconds of the first searches for a proof, whose bounds are known before that of the last search, which ends itself.
"""


@dataclass(frozen=True, eq=False)
class PlannedSurvey(Pictured):
    """A plan, the design behind each of its channels, and the respondents that it and others need.

    designs : by question, or by booklet; none for a channel that is known without a search, or that is of several
        questions.
    respondents : of a simple random sample, who meet every target with this plan.
    split : if everybody is asked everything and epsilon is split; inf if that is too little for each question, or if a
        precision of tables or regressions is wanted. It is interpolated between designs, and about right, unless it is
        the plan's own number.
    one_question : if each respondent is asked one of the questions that share the budget.
    invited : how many people to invite for the respondents, by the description's nonresponse and design effect.
    proof : that no epsilon-LDP survey of fewer people than `least`, interactive or not, meets the targets by unbiased
        estimates if the shares are those of the pilot and the answers to different questions are independent. So no
        survey that meets the targets at every joint distribution of the answers needs fewer; at a dependent one another
        survey may. Without a pilot answers are taken as even, which for yes/no questions is the least favorable case.
        `proof.verify()` recomputes it.
    joint : about how many a report on all answers together needs, by its ratio to one question each at even shares; nan
        where that is not known.
    at_hand : the respondents at hand, counted as in a simple random sample, for whom precision is told; 0 if not known.
    targets : the precision of tables, groups and regressions with these respondents.
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

    _picture, _heads = "budget_split", 1

    @property
    def least(self) -> int:
        """The proved number of people whom any survey of independent answers needs; 0 where nothing is proved."""
        return 0 if self.proof is None else self.proof.least

    def bounded_by(self, proof: RespondentsBound) -> PlannedSurvey:
        """The same with this proof. Raises `SolverError` where the plan has fewer respondents than it shows to need."""
        if self.respondents < (least := proof.least):
            got = f"a plan for {self.respondents:,}, which is a mistake of the planner: please report it"
            raise SolverError(
                f"plan: expected at least {least:,} respondents, as any survey of independent answers needs, got {got}"
            )
        return replace(self, proof=proof)

    def _drawn(self) -> tuple[Any, ...]:
        return (self.plan,)

    def _columns(self) -> dict[str, list[Any]]:
        return self.plan._columns()

    def _title(self) -> str:
        return f"Planned survey {self.plan.name}"

    @cached_property
    def precision(self) -> tuple[Precise, ...]:
        """Of each question, with the respondents at hand, or with as many as the plan needs."""
        return tuple(precision_of(self.plan, name, self.at_hand or self.respondents) for name in self.plan.answers)

    @cached_property
    def tables(self) -> tuple[Precise, ...]:
        """Of the table of each two questions that share a report, with as many respondents."""
        return tables_of(self.plan, self.at_hand or self.respondents)

    def to_dict(self) -> dict[str, Any]:
        """The numbers of respondents, the booklets with their questions and the precision, as JSON-ready values."""
        booklets = [
            {"questions": [part.name for part in q.answers], "probability": str(q.probability), "epsilon": q.epsilon}
            for q in self.plan.questions
        ]
        numbers = {"split": self.split, "one_question": self.one_question, "joint_about": self.joint}
        counts: dict[str, Any] = {name: int(value) if math.isfinite(value) else None for name, value in numbers.items()}
        promised = {"epsilon": self.plan.epsilon, "eta": self.plan.eta, "booklets": booklets}
        least = {"least": self.least, "least_is": self._bound, "least_assumes": "independent answers to the questions"}
        counts |= {"respondents": self.respondents, **least, "invited": self.invited}
        told = {
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
                "target": one.target, "estimate": one.estimate, "measure": one.measure, "limit": one.limit,
                "value": one.value if one.estimable else None, "respondents": one.respondents,
            }
            for one in self.targets
        ]  # fmt: skip
        told |= {"targets": targets}
        return {"name": self.plan.name, "checksum": self.plan.checksum, **counts, **promised, **told}

    @property
    def _bound(self) -> str:
        """How the least number of respondents is known."""
        if self.proof is None or not self.least:
            return "not known"
        return "closed-form bound" if self.proof.kernel is None else "proved for all channels"

    def __repr__(self) -> str:
        promised = f"epsilon {ceil_digits(self.plan.epsilon)}, eta {ceil_digits(self.plan.eta)}"
        lines = [f"Plan {self.plan.name!r}: {promised} in all"]
        if self.delta > 0:
            composed = ceil_digits(composed_epsilon(self.plan, self.delta))
            lines.append(f"  composed, epsilon {composed} at delta {ceil_digits(self.delta)}")
        shared = bool(self.plan.booklets) or any(q.parts for q in self.plan.questions)
        if shared:
            about = "" if self.split == self.respondents else "about "
            others = [(f"split over the questions {about}", self.split), ("one question each ", self.one_question)]
            known = "; ".join(f"{name}{value:,.0f}" for name, value in others if math.isfinite(value))
            asked = "asked one booklet" if self.plan.booklets else "asked everything"
            lines.append(f"  {self.respondents:,} respondents, each {asked} ({known})")
            lines += [f"  {line}" for line in (self._joint_in_words, self._least_in_words) if line]
        if self.invited > self.respondents:
            lines.append(f"  {self.invited:,} people to invite, for nonresponse and the design of the sample")
        if (rounds := self.plan.rounds or 1) > 1:
            epsilon, eta = self.plan.over_rounds(rounds)
            lines.append(f"  over {rounds} rounds: epsilon {ceil_digits(epsilon)}, eta {ceil_digits(eta)} in all")
        for q in self.plan.questions:
            numbers = {} if q.parts else q.expected or {}
            expected = "; ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in numbers.items())
            k, m = q.channel.shape
            asked = f", asked {q.probability} of respondents" if q.probability < 1 else ""
            limits = f"epsilon {ceil_digits(q.epsilon, 4)}, eta {ceil_digits(q.eta, 4)}"
            said = f"{k} answers -> {m} reports, {limits}{asked}"
            lines.append(f"  {q.name}: {said}" + (f"; {expected}" if expected else ""))
        if any(q.parts for q in self.plan.questions):
            people = f"{self.at_hand or self.respondents:,.0f} respondents"
            lines.append(f"  half-widths of 95 % intervals with {people}:")
            lines += [f"    {_precise_in_words(self.plan, one)}" for one in (*self.precision, *self.tables)]
        if self.targets:
            lines.append(f"  targets of tables and groups with {self.at_hand or self.respondents:,.0f} respondents:")
            lines += [f"    {_target_in_words(one)}" for one in self.targets]
        return "\n".join(lines)

    @property
    def _joint_in_words(self) -> str:
        """What one report on all answers would save; empty where that is not known, or it is this plan."""
        if math.isnan(self.joint) or max(len(q.parts) for q in self.plan.questions) == len(self.plan.answers):
            return ""
        if (saves := 1 - self.joint / self.respondents) < 5e-3:
            return 'design = "joint" would save nothing (estimated at even shares)'
        return f'design = "joint" would save about {100 * saves:.0f} % of them (estimated at even shares)'

    @property
    def _least_in_words(self) -> str:
        """What is known of the respondents that other surveys need, with what it assumes."""
        if not self.least:
            return "nothing is proved of the respondents that other surveys need"
        needs = f"if the answers are independent, any survey needs {self.least:,}"
        if self.least == self.respondents or (self.proof is not None and self.proof.kernel is not None):
            return f"{needs}, proved"
        return f"{needs} by a quick closed-form bound, which is not the least (--prove looks for that)"


def _precise_in_words(plan: Plan, precise: Precise) -> str:
    name = " x ".join(precise.questions)
    if not precise.estimable:
        return f"{name}: not estimable"
    mean = len(precise.questions) == 1 and plan.part(name).measure == "mean"
    width = f"{precise.half_width:.4g}" if mean else f"{100 * precise.half_width:.3g} points"
    return f"{name}: at most ±{width}" + ("" if len(precise.questions) == 1 else " for each cell")


def _target_in_words(one: TargetPrecision) -> str:
    measure = one.measure.replace("_", " ")
    reached = f"{measure} {one.value:.4g}" if one.estimable else "not estimable"
    return f"{one.target}: {reached} (limit {one.limit:g}), largest for {one.estimate}"


def plan_survey(
    spec: SurveySpec,
    n: int | None = None,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
    prove: bool = False,
) -> PlannedSurvey:
    """Design the survey that `spec` describes and make the plan.

    n : the number of available people, if known; the plan then says the half-width to expect, too.
    time_limit : seconds for all questions together; progress : both as for `optimal_channel`.

    prove : whether to look for the proof that the best channel of all questions together needs so many respondents.
        That takes up to minutes; otherwise `proof` is the closed-form bound.

    A question with an epsilon of its own is asked of everybody. The others share what is left of the budget: by
    booklets, of which each respondent is asked one with all of it, or split (`SurveySpec.design`). Either way the
    fewest respondents meet every target half-width (0.05 if there is none). Without a pilot all shares are taken as
    equal, which for yes/no questions is the least favourable pilot.

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
        people = None if n is None else positive_integer(n, "n")
        designing = deadline.part(0.0, PLANNING) if prove else deadline
        planning = _Planning(spec, people, designing)
        planned = None
        if planning.better_split:
            split = _Planning(replace(spec, design="split"), people, designing).planned()
            if split.respondents < planning.respondents:
                planned = replace(split, one_question=planning.one_question)
        planned = planned or planning.planned()
        for closer in _closer(planned, spec, deadline.part(PLANNING, 1.0)) if prove else ():
            planned = closer
        return planned


def closer_bounds(
    planned: PlannedSurvey, spec: SurveySpec, *, time_limit: float | None = None, progress: Progress = False
) -> Iterator[PlannedSurvey]:
    """The plan of `spec` again and again, each time with a larger proved number of respondents that any survey needs.

    The last is that of ``plan_survey(spec, prove=True)``; whoever stops earlier has the best one so far. time_limit,
    progress : as for `optimal_channel`.
    """
    with watched(time_limit, progress, "proving") as deadline:
        yield from _closer(planned, spec, deadline)


def _closer(planned: PlannedSurvey, spec: SurveySpec, deadline: Deadline) -> Iterator[PlannedSurvey]:
    """The plan with one closer bound after another, of searches that take longer and longer."""
    epsilon, units = _epsilon_of_bound(spec, planned.plan), units_of(spec.questions)
    if epsilon is None or planned.proof is None or planned.respondents <= planned.least:
        return
    counted = tuple(unit for unit in units if unit.targets)
    if (known := symmetric_proof(counted, epsilon, deadline.inner)) is not None:
        closer = respondents_bound(units, epsilon, known)
        if closer.kernel is not None:
            yield planned.bounded_by(closer)
            return
    searches = (*PROVING, math.inf)
    for number, seconds in enumerate(searches):
        left = math.inf if deadline.left is None else deadline.left
        limit = None if math.isinf(min(seconds, left)) else min(seconds, left)
        part = deadline.part(number / len(searches), (number + 1) / len(searches))
        design = joint_design(counted, epsilon, limit, part.tell)
        closer = respondents_bound(units, epsilon, proof_of(design, counted))
        if closer.least > planned.least:
            planned = planned.bounded_by(closer)
            yield planned
        if (design is not None and design.certified) or left <= seconds:
            return


def _epsilon_of_bound(spec: SurveySpec, plan: Plan) -> float | None:
    """The epsilon that every report keeps to; None under a delta, where nothing beyond the sample's own is known."""
    return None if spec.delta else spec.epsilon or plan.epsilon


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

    >>> from ldpopt_survey import QuestionSpec
    >>> respondents_needed(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),)), [1.0])
    [Needed(epsilon=1.0, respondents=1799, invited=1799)]
    """
    asked = tuple(replace(question, epsilon=None) for question in spec.questions)
    needed = []
    with watched(time_limit, progress) as deadline:
        for number, epsilon in enumerate(epsilons):
            given = replace(spec, epsilon=epsilon, questions=asked)
            try:
                planning = _Planning(given, None, deadline.turn(number, len(epsilons)), searched=False)
                split = epsilon > SPLIT_PAYS and planning.better_split
                people = int(planning.split) if split else planning.respondents
            except InvalidInput:
                continue
            needed.append(Needed(epsilon, people, invited(given, people)))
    return needed


class _Planning:
    """The steps from a description to its planned survey."""

    def __init__(self, spec: SurveySpec, people: int | None, deadline: Deadline, searched: bool = True) -> None:
        self.spec, self.people, self.deadline, self.searched = spec, people, deadline, searched
        self.units = tuple(self._with_groups(unit) for unit in units_of(spec.questions))
        self.fixed = [unit for unit in self.units if unit.questions[0].epsilon is not None]
        shared = {question.name for question in spec.shared}
        self.shared = [unit for unit in self.units if unit not in self.fixed and unit.name in shared]
        self.everyone = [unit for unit in self.units if unit not in self.fixed and unit not in self.shared]
        self.spent = [(unit.epsilon, min(math.tanh(unit.epsilon / 2), *_caps(unit))) for unit in self.fixed]
        if spec.together and not self.shared:
            raise invalid(
                "[budget] together", 'questions that share the budget, with design = "booklets"', Phrase("none")
            )

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
        """(epsilon, eta) of every unit that everybody is asked, and under `BOOKLET` that of the booklets; eta None
        where it is not capped.
        """
        spec = self.spec
        fixed: dict[str, tuple[float, float | None]] = {unit.name: (unit.epsilon, None) for unit in self.fixed}
        if not self.fixed and len(self.units) == 1 and spec.epsilon is not None and not spec.delta:
            name = BOOKLET if self.shared else self.units[0].name
            return {name: (spec.epsilon, spec.eta)}
        if len(self.fixed) == len(self.units) == 1:
            return {self.units[0].name: (self.units[0].epsilon, spec.eta)}
        if not (free := [*self.everyone, *self.shared]):
            return fixed
        if spec.epsilon is None:
            raise InvalidInput(f"question {free[0].name!r}: expected an epsilon, or a budget to draw on, got neither")
        left = spec.epsilon - sum(epsilon for epsilon, _ in fixed.values())
        if self.spent and (not self.budget.allows(self.spent) or (left <= 0 and not spec.delta)):
            raise InvalidInput(f"budget epsilon: expected more than the fixed questions use, got {spec.epsilon!r}")
        if len(self.everyone) + bool(self.shared) == 1 and not spec.delta:
            name = BOOKLET if self.shared else self.everyone[0].name
            share = left if not fixed else left * (1 - 1e-12)
            spent = math.fsum(math.log1p(-eta) for _, eta in self.spent)
            eta = None if spec.eta is None else -math.expm1(math.log1p(-spec.eta) - spent) if spec.eta < 1 else 1.0
            return {**fixed, name: (share, eta if eta is None or not fixed else eta * (1 - 1e-12))}
        turn = self.deadline.part(0.0, SPLITTING).turn(0, 2)
        split = split_within(_needs(self.everyone), self.budget, self.spent, turn, drawn=_needs(self.shared))
        return fixed | {name: (epsilon, split.etas.get(name)) for name, epsilon in split.epsilons.items()}

    @property
    def budget(self) -> Budget:
        """The budget of one respondent, which the description has."""
        return Budget(self.spec.epsilon or 0.0, self.spec.delta, 1.0 if self.spec.eta is None else self.spec.eta)

    @cached_property
    def everybody(self) -> dict[str, Questionnaire]:
        """The design of what everybody is asked, by unit."""
        whole = [unit for unit in self.units if unit not in self.shared]
        parts = self.deadline.part(SPLITTING, 1.0)
        return {
            unit.name: BookletPlanner([unit], *self.budgets[unit.name], tables=self._tables([unit])).plan(
                "one question", parts.turn(number, len(whole) + bool(self.shared))
            )
            for number, unit in enumerate(whole)
        }

    def _tables(self, units: Sequence[Unit]) -> list[Table]:
        """Return the targets of tables and regressions that need only these units."""
        names = {question.name for unit in units for question in unit.questions}
        return [table for table in tables_of_targets(self.spec) if set(table.names) <= names]

    @cached_property
    def drawn(self) -> Questionnaire | None:
        """The booklets of the questions that share the budget."""
        if not self.shared:
            return None
        before, (epsilon, eta) = len(self.everybody), self.budgets[BOOKLET]
        turn = self.deadline.part(SPLITTING, 1.0).turn(before, before + 1)
        tables = self._tables(self.shared)
        together, searched = self.spec.together, self.searched
        planner = BookletPlanner(self.shared, epsilon, eta, together, searched, searched, tables)
        return planner.plan(self.spec.design or "booklets", turn)

    @property
    def one_question(self) -> float:
        """The respondents if each of the questions that share the budget is asked alone."""
        if self.drawn is None:
            return self.split
        return _whole(max(self.drawn.one_question, *(whole.respondents for whole in self.everybody.values()), 0.0))

    @cached_property
    def respondents(self) -> int:
        """Of a simple random sample, who meet every target."""
        if not self.spec.targets:
            return self._for_designs
        # The exact channels, also those of questions in separate reports, determine the precision of tables.
        return math.ceil(respondents_for_targets(self._plan, self.spec, self._for_designs) * (1 - 1e-9))

    @property
    def _for_designs(self) -> int:
        """The respondents who meet the targets for which booklets are designed."""
        everything = [*self.everybody.values(), *([self.drawn] if self.drawn else [])]
        return _whole(max(questionnaire.respondents for questionnaire in everything))

    @property
    def better_split(self) -> bool:
        """Whether the budget is to be split although nobody said so: at large epsilons many answers can have a part."""
        if any(self.spec.groups_of(target) is None for target in self.spec.targets):
            return False
        return self.spec.design is None and not self.spec.together and self.split < self.respondents

    @cached_property
    def _designs(self) -> dict[str, Design]:
        """The designs behind the plan's channels, by question or booklet; `_plan` fills them in."""
        return {}

    @cached_property
    def _plan(self) -> Plan:
        """The plan, with the respondents who meet the targets for which booklets are designed."""
        shares = [(*part, *self.budgets[name]) for name, drawn in self.everybody.items() for part in drawn.shares]
        if self.drawn is not None:
            shares += [(*part, *self.budgets[BOOKLET]) for part in self.drawn.shares]
        questions = [self._question(*part, self._designs) for part in shares]
        order = {part.name: place for place, asked in enumerate(self.spec.questions) for part in asked.answers}
        return plan_of(self.spec, sorted(questions, key=lambda question: [order[p.name] for p in question.answers]))

    def planned(self) -> PlannedSurvey:
        """The plan with its numbers of respondents."""
        spec, plan = self.spec, self._plan
        if spec.targets:
            told = {q.name: {**(q.expected or {}), "respondents": float(self.respondents)} for q in plan.questions}
            both = [replace(q, expected=told[q.name]) if q.parts else q for q in plan.questions]
            plan = replace(plan, questions=tuple(both))
        if self.people is not None:
            plan = self._with_widths_at_hand(plan)
        planned = PlannedSurvey(
            plan, self._designs, spec.delta, self.respondents, self.split, self.one_question, None,
            invited(spec, self.respondents), self.joint, self.answering or 0.0,
            target_precisions(plan, spec, self.answering or self.respondents),
        )  # fmt: skip
        # The bound does not count targets of groups, since the choice of questions may depend on a public group.
        ungrouped = [replace(unit, group_targets=()) for unit in self.units]
        return planned.bounded_by(respondents_bound(ungrouped, _epsilon_of_bound(spec, plan)))

    @property
    def joint(self) -> float:
        """About how many respondents a report on all answers that share the budget needs; nan if that is not known."""
        if self.drawn is None or self.everybody or self.budgets[BOOKLET][1] is not None or self.spec.targets:
            return math.nan
        free = BookletPlanner(self.shared, *self.budgets[BOOKLET]).free
        if len(free) < len(self.shared):
            return math.nan
        return self.drawn.one_question * joint_ratio(free, self.budgets[BOOKLET][0])

    @property
    def answering(self) -> float | None:
        """The people at hand who will answer, counted as in a simple random sample."""
        return None if self.people is None else self.people * (1 - self.spec.nonresponse) / self.spec.design_effect

    def _with_widths_at_hand(self, plan: Plan) -> Plan:
        """The plan with the half-widths that the people at hand reach, by all booklets that ask a question."""
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
        """The planned question of a booklet, with the precision that is expected of it."""
        name = " + ".join(dict.fromkeys(part.option_of or part.name for part in booklet.parts))
        if booklet.design is not None:
            designs[name] = booklet.design
        if len(booklet.parts) > 1:
            exact = round_exact(booklet.channel.matrix, epsilon=epsilon, eta=eta, inputs=cells_of(booklet.parts))
            planned = PlannedQuestion(name, "", exact, parts=booklet.parts, pilot=booklet.pilot, probability=share)
            expected = {"cells": float(len(exact.inputs)), "respondents": float(self._for_designs)}
            asked = [question for unit in booklet.units for question in unit.questions]
            expected |= {target_key(question.name): question.width.width for question in asked if question.width}
            return replace(planned, expected=expected)
        (question,) = booklet.units[0].questions
        exact = round_exact(
            booklet.channel.matrix, epsilon=epsilon, eta=_least_of(eta, question.eta), inputs=question.categories
        )
        answering = (1 - self.spec.nonresponse) / self.spec.design_effect
        people = None if self.answering is None else self.answering * float(share)
        expected = question.expected(Channel(exact.matrix), people)
        if answering < 1:
            most = max(expected.get("respondents", 0.0), expected.get("respondents_for_power", 0.0))
            expected["invited"] = float(invited(self.spec, most))
        if self.people is not None:
            expected["respondents_at_hand"] = float(self.people)
        return replace(planned_question(question, exact, share), expected=expected)

    @cached_property
    def split(self) -> float:
        """The respondents if the budget is split over all questions; inf where that is out of reach."""
        if not self.shared:
            return self.respondents
        if any(self.spec.groups_of(target) is None for target in self.spec.targets):
            return math.inf  # a split plan would have to be designed to know it
        known = (
            {}
            if self.drawn is None
            else {
                name: (*self.budgets[BOOKLET], people)
                for name, people in self.drawn.alone.items()
                if math.isfinite(people)
            }
        )
        needs = {unit.name: needs_of(unit, known.get(unit.name)) for unit in (*self.everyone, *self.shared)}
        try:
            return split_within(needs, self.budget, self.spent, UNLIMITED, corrections=1).respondents
        except (InvalidInput, SolverError):
            return math.inf


def _caps(unit: Unit) -> list[float]:
    """The caps on the total variation of a unit's report, and 1."""
    return [1.0, *(question.eta for question in unit.questions if question.eta is not None)]


def _least_of(*caps: float | None) -> float | None:
    """The least of the caps that there are."""
    return min((cap for cap in caps if cap is not None), default=None)


def _needs(units: Sequence[Unit]) -> Mapping[str, Needs]:
    return {unit.name: needs_of(unit) for unit in units}


def _whole(respondents: float) -> int:
    return math.ceil(respondents * (1 - 1e-12))
