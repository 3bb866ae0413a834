"""From a survey's description to its plan: split the budget, design and round every channel, predict the precision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from ldpopt.channel import Channel
from ldpopt.design import Design, RespondentsBound
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.exact import round_exact
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import positive_integer
from ldpopt.values.results import Pictured
from ldpopt_survey.plan.booklets import MAX_LENGTH, NEAR_LEAST, Booklet, BookletPlanner, Questionnaire, needs_of
from ldpopt_survey.plan.budget import EPSILONS, Budget, Needed, Needs, invited, split_within
from ldpopt_survey.plan.plan import BOOKLET, Plan, composed_epsilon, plan_of
from ldpopt_survey.plan.planned_question import PlannedQuestion, cells_of, planned_question
from ldpopt_survey.plan.spec import SurveySpec
from ldpopt_survey.plan.units import Unit, proof_of, respondents_bound, symmetric_proof, units_of

SPLITTING = 0.3
"""The share of the progress that the split of the budget is."""


@dataclass(frozen=True, eq=False)
class PlannedSurvey(Pictured):
    """A plan, the design behind each of its channels, and the respondents that it and others need.

    designs : by question, or by booklet; none for a channel that is known without a search.
    respondents : of a simple random sample, who meet every target with this plan.
    split : if everybody is asked everything and epsilon is split; inf if that is too little for each question.
    one_question : if each respondent is asked one of the questions that share the budget.
    invited : how many people to invite for the respondents, by the description's nonresponse and design effect.
    proof : that no epsilon-LDP survey of fewer people than `least`, interactive or not, meets the targets by unbiased
        estimates if the shares are those of the pilot and the answers to different questions are independent. So no
        survey that meets the targets at every joint distribution of the answers needs fewer; at a dependent one another
        survey may. Without a pilot answers are taken as even, which for yes/no questions is the least favorable case.
        `proof.verify()` recomputes it.
    """

    plan: Plan
    designs: dict[str, Design]
    delta: float = 0.0
    respondents: int = 0
    split: float = math.inf
    one_question: float = math.inf
    proof: RespondentsBound | None = None
    invited: int = 0

    _picture, _heads = "budget_split", 1

    @property
    def least(self) -> int:
        """The proved number of people whom any survey of independent answers needs; 0 where nothing is proved."""
        return 0 if self.proof is None else self.proof.least

    def _drawn(self) -> tuple[Any, ...]:
        return (self.plan,)

    def _columns(self) -> dict[str, list[Any]]:
        return self.plan._columns()

    def _title(self) -> str:
        return f"Planned survey {self.plan.name}"

    def to_dict(self) -> dict[str, Any]:
        """The numbers of respondents, and the booklets with their questions, as JSON-ready values."""
        booklets = [
            {"questions": [part.name for part in q.answers], "probability": str(q.probability), "epsilon": q.epsilon}
            for q in self.plan.questions
        ]
        numbers = {"split": self.split, "one_question": self.one_question}
        counts = {name: int(value) if math.isfinite(value) else None for name, value in numbers.items()}
        promised = {"epsilon": self.plan.epsilon, "eta": self.plan.eta, "booklets": booklets}
        counts |= {"respondents": self.respondents, "least": self.least, "invited": self.invited}
        return {"name": self.plan.name, "checksum": self.plan.checksum, **counts, **promised}

    def __repr__(self) -> str:
        promised = f"epsilon {ceil_digits(self.plan.epsilon)}, eta {ceil_digits(self.plan.eta)}"
        lines = [f"Plan {self.plan.name!r}: {promised} in all"]
        if self.delta > 0:
            composed = ceil_digits(composed_epsilon(self.plan, self.delta))
            lines.append(f"  composed, epsilon {composed} at delta {ceil_digits(self.delta)}")
        if self.plan.booklets or any(q.parts for q in self.plan.questions):
            others = [("split over the questions", self.split), ("one question each", self.one_question)]
            known = "; ".join(f"{name} {value:,.0f}" for name, value in others if math.isfinite(value))
            needed = f"any survey needs {self.least:,} if the answers are independent, proved"
            least = needed if self.least else "nothing is proved of others"
            asked = "asked one booklet" if self.plan.booklets else "asked everything"
            lines.append(f"  {self.respondents:,} respondents, each {asked} ({known}; {least})")
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
        planning = _Planning(spec, people, deadline)
        planned = planning.planned()
        if planning.better_split:
            split = _Planning(replace(spec, design="split"), people, deadline).planned()
            return replace(split, one_question=planned.one_question, proof=planned.proof)
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
        spec = self.spec
        fixed = {unit.name: unit.epsilon for unit in self.fixed}
        if not (free := [*self.everyone, *self.shared]):
            return fixed, 0.0
        if spec.epsilon is None:
            raise InvalidInput(f"question {free[0].name!r}: expected an epsilon, or a budget to draw on, got neither")
        left = spec.epsilon - sum(fixed.values())
        if self.spent and (not self.budget.allows(self.spent) or (left <= 0 and not spec.delta)):
            raise InvalidInput(f"budget epsilon: expected more than the fixed questions use, got {spec.epsilon!r}")
        if len(self.everyone) + bool(self.shared) == 1 and not spec.delta:
            share = left if not fixed else left * (1 - 1e-12)
            return {**fixed, **dict.fromkeys([unit.name for unit in self.everyone], share)}, share
        turn = self.deadline.part(0.0, SPLITTING).turn(0, 2)
        split = split_within(_needs(self.everyone), self.budget, self.spent, turn, drawn=_needs(self.shared))
        epsilons = dict(split.epsilons)
        block = epsilons.pop(BOOKLET, 0.0)
        return {**fixed, **epsilons}, block

    @property
    def budget(self) -> Budget:
        """The budget of one respondent, which the description has."""
        return Budget(self.spec.epsilon or 0.0, self.spec.delta, 1.0 if self.spec.eta is None else self.spec.eta)

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
                1, 0.0, parts.turn(number, len(whole) + bool(self.shared))
            )
            for number, unit in enumerate(whole)
        }

    @cached_property
    def drawn(self) -> Questionnaire | None:
        """The booklets of the questions that share the budget."""
        if not self.shared:
            return None
        before, longest = len(self.everybody), 1 if self.spec.design == "one question" else MAX_LENGTH
        turn = self.deadline.part(SPLITTING, 1.0).turn(before, before + 1)
        return self.planner.plan(longest, respondents_bound(self.shared, self.epsilons[1]).proved(FLOAT), turn)

    @cached_property
    def planner(self) -> BookletPlanner:
        """Of the questions that share the budget."""
        return BookletPlanner(self.shared, self.epsilons[1], self.eta, self.spec.together, self.searched)

    def proof(self, epsilon: float | None) -> RespondentsBound:
        """The proof of what any survey of independent answers needs, by the best channel of all where that is known."""
        bound, counted = respondents_bound(self.units, epsilon), tuple(unit for unit in self.units if unit.targets)
        if epsilon is None or self.respondents <= NEAR_LEAST * bound.least:
            return bound
        same = bool(self.shared) and counted == self.planner.free and epsilon == self.epsilons[1]
        planner = self.planner if same else BookletPlanner(counted, epsilon, None)
        if (known := symmetric_proof(counted, epsilon, self.deadline.inner)) is not None:
            closer = respondents_bound(self.units, epsilon, known)
            if closer.kernel is not None:
                return closer
        return respondents_bound(self.units, epsilon, proof_of(planner.joint(self.deadline, counted), counted))

    @property
    def respondents(self) -> int:
        """Of a simple random sample, who meet every target."""
        everything = [*self.everybody.values(), *([self.drawn] if self.drawn else [])]
        return _whole(max(questionnaire.respondents for questionnaire in everything))

    @property
    def better_split(self) -> bool:
        """Whether the budget is to be split although nobody said so: at large epsilons many answers can have a part."""
        return self.spec.design is None and not self.spec.together and self.split < self.respondents

    def planned(self) -> PlannedSurvey:
        """The plan with its numbers of respondents."""
        spec, designs = self.spec, dict[str, Design]()
        shares = [(*part, self.epsilons[0][name]) for name, drawn in self.everybody.items() for part in drawn.shares]
        if self.drawn is not None:
            shares += [(*part, self.epsilons[1]) for part in self.drawn.shares]
        questions = [self._question(*part, designs) for part in shares]
        order = {part.name: number for number, question in enumerate(spec.questions) for part in question.answers}
        plan = plan_of(spec, sorted(questions, key=lambda question: [order[part.name] for part in question.answers]))
        one_question = self.split
        if self.drawn is not None:
            others = [everybody.respondents for everybody in self.everybody.values()]
            one_question = _whole(max(self.drawn.one_question, *others, 0.0))
        proof = self.proof(None if spec.delta else spec.epsilon or plan.epsilon)
        if self.respondents < (least := proof.least):
            got = f"a plan for {self.respondents:,}, which is a mistake of the planner: please report it"
            raise SolverError(
                f"plan: expected at least {least:,} respondents, as any survey of independent answers needs, got {got}"
            )
        people = invited(spec, self.respondents)
        return PlannedSurvey(plan, designs, spec.delta, self.respondents, self.split, one_question, proof, people)

    def _question(
        self, booklet: Booklet, share: Fraction, epsilon: float, designs: dict[str, Design]
    ) -> PlannedQuestion:
        """The planned question of a booklet, with the precision that is expected of it."""
        name = " + ".join(dict.fromkeys(part.option_of or part.name for part in booklet.parts))
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

    @cached_property
    def split(self) -> float:
        """The respondents if the budget is split over all questions; inf where that is out of reach."""
        if not self.shared:
            return _whole(max(questionnaire.respondents for questionnaire in self.everybody.values()))
        needs, turn = _needs([*self.everyone, *self.shared]), self.deadline.turn(0, 2)
        try:
            return split_within(needs, self.budget, self.spent, turn, designed=0).respondents
        except (InvalidInput, SolverError):
            return math.inf


def _needs(units: Sequence[Unit]) -> Mapping[str, Needs]:
    return {unit.name: needs_of(unit) for unit in units}


def _whole(respondents: float) -> int:
    return math.ceil(respondents * (1 - 1e-12))
