"""Questions with targets -> the units that are asked together, and the respondents that independent answers need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.design import (
    Design,
    EquivalenceDual,
    FisherInformation,
    LocalDP,
    MVOptimal,
    RespondentsBound,
    ThresholdColumns,
    optimal_channel,
    respondents_kernel,
)
from ldpopt.errors import InvalidInput, Phrase, SolverError, invalid
from ldpopt.values.deadline import Deadline, Progress
from ldpopt.values.distribution import Array
from ldpopt.values.labels import Label
from ldpopt_survey.estimate.intervals import two_sided
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, Part, cells_of
from ldpopt_survey.plan.spec import QuestionSpec
from ldpopt_survey.plan.targets import TargetSpec, variance_for

__all__ = ["rule"]

MAX_JOINT_CELLS = 64
"""The most cells of all questions together whose channel is searched for."""


@dataclass(frozen=True, eq=False)
class Target:
    """What the respondents must suffice for: the variance of `row` @ cells at most `variance`."""

    key: tuple[str, ...]
    row: Array
    variance: float


@dataclass(frozen=True, eq=False)
class Unit:
    """Questions that are only asked together: one, or one with those that its answer decides on.

    group_targets : targets for the groups of a public column, each with the expected share of the smallest group.
    """

    questions: tuple[QuestionSpec, ...]
    group_targets: tuple[tuple[TargetSpec, float], ...] = ()

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The questions as parts of a report; a question that not everybody is asked has one more answer."""
        return tuple(
            Part(
                q.name, q.column, (*q.categories, NOT_APPLICABLE) if q.asked_if else q.categories, q.unknown, q.missing,
                q.reading, None if q.asked_if else q.pilot, q.asked_if, q.option_of or None,
            )
            for q in self.questions
        )  # fmt: skip

    @cached_property
    def cells(self) -> tuple[tuple[Label, ...], ...]:
        """The K possible answers to all of them."""
        return cells_of(self.parts)

    @cached_property
    def pilot(self) -> Array:
        """(K,) the pilot of the cells, with independent answers."""
        laws = [
            dict(zip(part.asked, question.shares, strict=True))
            for part, question in zip(self.parts, self.questions, strict=True)
        ]
        return np.array(
            [math.prod(law.get(label, 1.0) for law, label in zip(laws, cell, strict=True)) for cell in self.cells]
        )

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """A target for every share: among those who are asked, for a question that not everybody is."""
        targets = []
        for place, question in enumerate(self.questions):
            relative, what = question.coefficient_of_variation, f"question {question.name!r}"
            width, span = question.width, question.span
            for label, row, value in self._quantities(place):
                if width is not None:
                    variance = (width.width / two_sided(width.level)) ** 2
                    targets.append(Target((question.name, label), row, variance))
                if relative is not None:
                    variance = variance_for(None, relative, value, what, span)
                    targets.append(Target((question.name, label, "relative"), row, variance))
        return tuple(targets)

    @cached_property
    def finer(self) -> tuple[Target, ...]:
        """Targets for every share within the smallest group of a public column.

        The estimate from a share s of the respondents has the variance of that from all of them, divided by s.
        """
        return tuple(
            Target((question.name, label, f"{number} {wanted.title}"), row, share * wanted.variance(value, name, span))
            for number, (wanted, share) in enumerate(self.group_targets)
            for place, question in enumerate(self.questions)
            if not wanted.questions or {question.name, question.option_of} & set(wanted.questions)
            for span, name in [(question.span, f"[[targets]] {wanted.title}, question {question.name!r}")]
            for label, row, value in self._quantities(place)
        )

    def _quantities(self, place: int) -> list[tuple[str, Array, float]]:
        """Return the name, the row of cells and the expected value of each estimate of a question.

        Values are in the units of the answers, for a mean.
        """
        part, question = self.parts[place], self.questions[place]
        if question.scores is not None:
            return [
                (
                    question.measure,
                    question.scores,
                    question.least + question.span * float(self.pilot @ question.scores),
                )
            ]
        asked = np.array([cell[place] != NOT_APPLICABLE or not part.asked_if for cell in self.cells], dtype=float)
        found = []
        for label, share in zip(part.asked, question.shares, strict=True):
            inside = np.array([float(cell[place] == label) for cell in self.cells])
            row = (inside - share * asked) / float(asked @ self.pilot) + share
            found.append((repr(label), row, float(share)))
        return found

    @property
    def as_one(self) -> bool:
        """True for a single question with a mean or uniform targets, so that its own design serves all."""
        return self.plain and (self.questions[0].scores is not None or self.uniform)

    @cached_property
    def uniform(self) -> bool:
        """True if all shares have the same limit, so that the design of the question serves all targets."""
        return len({target.variance for target in binding((*self.targets, *self.finer))}) <= 1

    @property
    def name(self) -> str:
        """The name of the first question, or of the one of which it is an option."""
        return self.questions[0].option_of or self.questions[0].name

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options where it is one question of which several may be chosen; else none."""
        same = {(q.option_of, q.asked_if) for q in self.questions} == {(self.questions[0].option_of, ())}
        return tuple(q.name for q in self.questions) if same and self.questions[0].option_of else ()

    @property
    def joins(self) -> bool:
        """Whether it may share a report with others: shares are wanted, and no missing answer is left out."""
        return not any(q.reading.left_out or q.scores is not None for q in self.questions)

    @property
    def epsilon(self) -> float:
        """The epsilon that the first question fixes for all of them; 0 if it does not."""
        return self.questions[0].epsilon or 0.0

    @property
    def plain(self) -> bool:
        """Whether it is a single question."""
        return len(self.questions) == 1

    @property
    def even(self) -> bool:
        """Whether all cells of the pilot are equal."""
        return bool(np.ptp(self.pilot) <= 1e-12)

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """Equal for units with the same designs."""
        rows = tuple((target.row.tobytes(), target.variance) for target in (*self.targets, *self.finer))
        tests = tuple((q.test.power, q.test.level, q.test.alternative.tobytes()) for q in self.questions if q.test)
        return self.pilot.tobytes(), rows, tests, tuple((type(q), q.eta) for q in self.questions)

    @cached_property
    def weights(self) -> Array:
        """(targets,) of each target in the bound on the respondents: all of a question's together, or the widest."""
        weights = np.zeros(len(self.targets))
        for part in self.parts:
            mine = [place for place, target in enumerate(self.targets) if target.key[0] == part.name]
            if not mine:
                continue
            rows = np.array([self.targets[place].row - float(self.targets[place].row @ self.pilot) for place in mine])
            wanted = np.array([self.targets[place].variance for place in mine])
            root = float(np.linalg.svd(rows * np.sqrt(self.pilot), compute_uv=False).sum())
            alone = rows**2 @ self.pilot / wanted
            if root**2 / wanted.sum() >= alone.max():
                weights[mine] = (root / wanted.sum()) ** 2
            else:
                weights[mine[int(alone.argmax())]] = alone.max() / wanted[alone.argmax()]
        return weights


def units_of(questions: Sequence[QuestionSpec]) -> tuple[Unit, ...]:
    """The questions with those that they decide on, each group in the order of the description; options one by one."""
    group = {asked.name: question.name for question in questions for asked in question.answers}
    questions = [asked for question in questions for asked in question.answers]
    names = [question.name for question in questions]
    for place, question in enumerate(questions):
        if question.asked_if and question.epsilon is not None:
            raise invalid(
                f"question {question.name!r}: epsilon", "none beside asked_if (the report is shared)", question.epsilon
            )
        for name, labels in question.asked_if:
            if name not in names[:place]:
                raise invalid(f"question {question.name!r}: asked_if", "questions that stand before it", name)
            known = questions[names.index(name)].categories if questions[names.index(name)].scores is None else ()
            if lacking := [label for label in labels if label not in known]:
                raise invalid(f"question {question.name!r}: asked_if", f"answers of {name!r}", lacking[0])
            old, new = group[question.name], group[name]
            group = {asked: new if there == old else there for asked, there in group.items()}
    units = [Unit(tuple(q for q in questions if group[q.name] == root)) for root in dict.fromkeys(group.values())]
    for question in (question for unit in units if not unit.plain for question in unit.questions):
        if question.test is not None:
            expected = "a half_width alone, where asked_if makes questions share a report"
            raise invalid(f"question {question.name!r}: alternative", expected, Phrase("a power, too"))
    return tuple(units)


def rule(m: int, epsilon: float) -> float:
    """max_c c ((e^eps - 1) / (2^c + e^eps - 1))^2: what a report tells of m yes/no questions, c of them at random."""
    fall = math.exp(-epsilon)
    gain = -math.expm1(-epsilon)
    return max(c * (gain / (2.0**c * fall + gain)) ** 2 for c in range(1, min(m, 1000) + 1))


def respondents_bound(
    units: Sequence[Unit], epsilon: float | None, joint: EquivalenceDual | None = None
) -> RespondentsBound:
    """The proof that no epsilon-LDP survey of fewer people, interactive or not, meets every target [Scarf].

    epsilon : in nats; None for a promise that is no epsilon-LDP, of which only the sample's own variance is known.
    joint : the proof for the best channel of the units with targets, if it is known.
    """
    counted = [unit for unit in units if unit.targets]
    return RespondentsBound.of(
        math.inf if epsilon is None else epsilon,
        tuple(unit.pilot for unit in counted),
        tuple(np.array([target.row for target in unit.targets]) for unit in counted),
        tuple(np.array([target.variance for target in unit.targets]) for unit in counted),
        tuple(unit.weights for unit in counted),
        joint,
    )


def proof_of(design: Design | None, units: Sequence[Unit]) -> EquivalenceDual | None:
    """The proof of `joint_design`, with a row of the kernel for each target of the units; None where it has none."""
    known: Any = None if design is None else design.certificate
    if not isinstance(known, EquivalenceDual):
        return None
    wanted, different = _wanted(units)
    kernel = np.zeros_like(wanted)
    kernel[different] = known.kernel
    return replace(known, kernel=kernel)


def symmetric_proof(units: Sequence[Unit], epsilon: float, deadline: Deadline) -> EquivalenceDual | None:
    """The proof for the best channel on all answers together, at even shares of single questions; None for others."""
    cells = math.prod(len(unit.cells) for unit in units)
    shares = all(unit.even and unit.plain and len(unit.targets) == len(unit.cells) for unit in units)
    if cells > RespondentsBound.MAX_CELLS or not units or not shares:
        return None
    shape, variances = tuple(len(unit.cells) for unit in units), [unit.targets[0].variance for unit in units]
    with suppress(SolverError):
        kernel, relaxed = respondents_kernel(shape, variances, epsilon, deadline)
        utility: Any = FisherInformation(product_of(units)[0], MVOptimal(_wanted(units)[0].T))
        numbers = utility.prior, kernel, np.zeros(cells), np.zeros((cells, cells)), relaxed
        return EquivalenceDual(utility, (LocalDP(epsilon),), None, *numbers)
    return None


def binding(targets: Sequence[Target]) -> list[Target]:
    """Return for each row the target with the smallest variance."""
    least: dict[bytes, Target] = {}
    for target in targets:
        known = least.setdefault(target.row.tobytes(), target)
        if target.variance < known.variance:
            least[target.row.tobytes()] = target
    return list(least.values())


def _wanted(units: Sequence[Unit]) -> tuple[Array, list[int]]:
    """(targets, K) the targets of all units on their cells, centred, and divided by the standard errors wanted; and the
    positions of those that differ by more than a sign, as the two shares of a yes/no question do not.
    """
    pilot, targets = product_of(units)
    wanted = np.array([(t.row - t.row @ pilot) / math.sqrt(t.variance) for t in targets])
    near = np.abs(wanted[:, None] - wanted).max(axis=2), np.abs(wanted[:, None] + wanted).max(axis=2)
    same = np.tril(np.minimum(*near) <= 1e-9 * np.abs(wanted).max(), -1).any(axis=1)
    return wanted, list(np.flatnonzero(~same))


def joint_design(
    units: Sequence[Unit], epsilon: float, time_limit: float | None, progress: Progress = False
) -> Design | None:
    """The channel on all answers together that needs the fewest respondents; None where it is out of reach."""
    cells = math.prod(len(unit.cells) for unit in units)
    if cells > MAX_JOINT_CELLS or not units or not all(unit.targets and unit.pilot.min() > 0 for unit in units):
        return None
    pilot, (wanted, different) = product_of(units)[0], _wanted(units)
    with suppress(InvalidInput, SolverError):
        utility = FisherInformation(pilot, MVOptimal(wanted[different].T))
        return optimal_channel(
            utility, LocalDP(epsilon), method=ThresholdColumns(), time_limit=time_limit, progress=progress
        )
    return None


def product_of(units: Sequence[Unit], more: Sequence[Target] = ()) -> tuple[Array, list[Target]]:
    """(K,) the pilot of units that are asked together, and the targets on their cells."""
    sizes = [len(unit.cells) for unit in units]
    pilot = np.ones(1)
    for unit in units:
        pilot = np.outer(pilot, unit.pilot).ravel()
    targets = []
    for place, unit in enumerate(units):
        before, after = math.prod(sizes[:place]), math.prod(sizes[place + 1 :])
        both = (*unit.targets, *unit.finer)
        targets += [Target(t.key, np.tile(np.repeat(t.row, after), before), t.variance) for t in both]
    return pilot, [*targets, *more]
