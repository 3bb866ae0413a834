"""A description of a survey -> the budgets, questionnaires and respondents of its plan, computed when needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product

from ldpopt.channel import Channel
from ldpopt.design import Design
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.exact import round_exact
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt_survey.estimate.linear import contrast_moments, reports_to_estimate
from ldpopt_survey.plan.booklet import Booklet
from ldpopt_survey.plan.booklet_channels import DesignedChannels
from ldpopt_survey.plan.booklet_rules import joint_ratio
from ldpopt_survey.plan.booklets import MIN_SPENT_SHARE, SHARING_QUESTIONS, BookletPlanner, Questionnaire, needs_of
from ldpopt_survey.plan.budget import (
    MAX_QUICK_CELLS,
    Budget,
    KnownCurves,
    people_to_invite,
    split_within,
)
from ldpopt_survey.plan.plan import BOOKLET, Plan, plan_of
from ldpopt_survey.plan.planned_question import (
    PlannedQuestion,
    cells_of,
    planned_question,
)
from ldpopt_survey.plan.planned_survey import PlannedSurvey
from ldpopt_survey.plan.reported_precision import (
    precision_of,
    respondents_for_table,
    respondents_to_estimate,
    target_key,
)
from ldpopt_survey.plan.spec import SurveySpec
from ldpopt_survey.plan.table_targets import Table
from ldpopt_survey.plan.target_precision import (
    respondents_for_targets,
    tables_of_targets,
    target_precisions,
)
from ldpopt_survey.plan.too_many import MAX_RESPONDENTS, too_many
from ldpopt_survey.plan.units import Unit, cap_of, respondents_bound, unit_bound, units_of

SPLIT_PROGRESS = 0.3
"""The share of the progress that the split of the budget is."""

CLOSE_SPLIT = 1.05
"""A split that needs fewer than so many times the respondents of the booklets is compared more exactly."""

FAR_SPLIT = 2.5
"""A split that needs more than so many times the respondents is compared without designs of over `MAX_QUICK_CELLS`.

Their respondents are then those of the channels for the whole budget, scaled as at even shares: of 44 random plans all
were within -26 and +75 % of the split by designs.
"""

WORTH_SPLITTING = 0.99
"""A split of the budget is designed if about so few of the respondents of the booklets are enough."""


class Planning:
    """Steps from a description to its planned survey."""

    def __init__(
        self, spec: SurveySpec, respondents: int | None, deadline: Deadline, search_joint: bool = True,
        units: tuple[Unit, ...] | None = None, channels: DesignedChannels | None = None,
        design: str | None = None, curves: KnownCurves | None = None,
    ) -> None:  # fmt: skip
        self.curves: KnownCurves = {} if curves is None else curves
        self.design = design or spec.design or "booklets"
        self.spec, self.available, self.deadline, self.search_joint = spec, respondents, deadline, search_joint
        self.units = units or tuple(self._with_groups(unit) for unit in units_of(spec.questions))
        self.channels = channels or DesignedChannels()
        self.fixed_units = [unit for unit in self.units if unit.questions[0].epsilon is not None]
        shared = {question.name for question in spec.shared}
        self.shared_units = [unit for unit in self.units if unit not in self.fixed_units and unit.name in shared]
        self.common_units = [
            unit for unit in self.units if unit not in self.fixed_units and unit not in self.shared_units
        ]
        self.fixed_claims = [
            (unit.epsilon, min(math.tanh(unit.epsilon / 2), *_caps(unit))) for unit in self.fixed_units
        ]
        for unit in self.units:  # Before any channel is designed in vain
            epsilon = unit.epsilon or spec.epsilon
            if epsilon is not None and (required := unit_bound(unit, epsilon)) > MAX_RESPONDENTS:
                raise too_many(self.units, required, epsilon)
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
        needs, booklet_needs = (
            {unit.name: needs_of(unit, channels=self.channels, coarse=True) for unit in units}
            for units in (self.common_units, self.shared_units)
        )
        split = split_within(
            needs, self.budget, self.fixed_claims, turn, booklet_needs=booklet_needs, known_curves=self.curves
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
            unit.name: BookletPlanner(
                [unit], *self.budgets[unit.name], tables=self._tables([unit]), channels=self.channels
            ).plan("one question", deadline.turn(number, len(common_units) + bool(self.shared_units)))
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
            self.shared_units, epsilon, eta, table_pairs, search_joint, search_joint, tables, self.channels
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
    def alone(self) -> Planning | None:
        """The plan of the same questions asked alone; None if its respondents are known without its channels.

        They are unless tables, groups or rare reports need more respondents than the targets of single questions.
        """
        questionnaire = self.booklet_questionnaire
        if questionnaire is None or questionnaire.respondents == questionnaire.one_question:
            return None
        if not self.spec.targets and self.respondents <= self.for_targets:
            return None
        return Planning(
            self.spec, self.available, self.deadline, self.search_joint, self.units, self.channels, "one question"
        )

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
        return self.spec.design is None and not self.spec.together and self.split < WORTH_SPLITTING * self.respondents

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
        return planned.bounded_by(respondents_bound(ungrouped, epsilon_of_bound(spec, plan)))

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
        cap = cap_of(booklet.units, eta)
        if len(booklet.parts) > 1:
            exact = round_exact(booklet.channel.matrix, epsilon=epsilon, eta=cap, inputs=cells_of(booklet.parts))
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
        if not self.shared_units or len(self.shared_units) + len(self.common_units) == 1:
            return self.respondents  # Nothing is there to split.
        if any(self.spec.groups_of(target) is None for target in self.spec.targets):
            return math.inf  # a split plan would have to be designed to know it
        known_designs = (
            {}
            if self.booklet_questionnaire is None
            else {
                name: (epsilon, self.budgets[BOOKLET][1], respondents)
                for name, (epsilon, respondents) in self.booklet_questionnaire.single_requirements.items()
            }
        )
        units = (*self.common_units, *self.shared_units)
        needs = {unit.name: needs_of(unit, known_designs.get(unit.name), self.channels, coarse=True) for unit in units}
        slow = {unit.name for unit in units if len(unit.cells) > MAX_QUICK_CELLS and unit.name in known_designs}
        try:
            split_again = partial(
                split_within, needs, self.budget, self.fixed_claims, UNLIMITED, known_curves=self.curves
            )
            if slow and split_again(corrections=0).respondents < FAR_SPLIT * self.respondents:
                slow = set()
            split = split_again(corrections=1, uncorrected=slow)
            if split.respondents < CLOSE_SPLIT * self.respondents:
                split = split_again(corrections=1)
            return split.respondents
        except (InvalidInput, SolverError):
            return math.inf


def _caps(unit: Unit) -> list[float]:
    """Return the caps on the total variation of a unit's report, and 1."""
    return [1.0, *(question.eta for question in unit.questions if question.eta is not None)]


def _rounded_up(respondents: float) -> int:
    return math.ceil(respondents * (1 - 1e-12))


def epsilon_of_bound(spec: SurveySpec, plan: Plan) -> float | None:
    """Return the epsilon of every report; None under a delta, where only the sampling variance is a bound."""
    return None if spec.delta else spec.epsilon or plan.epsilon
