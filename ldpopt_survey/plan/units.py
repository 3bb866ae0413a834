"""Group questions with targets into units, and bound the respondents that independent answers need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
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
from ldpopt_survey.estimate.conditional_mean import PLANNED_SHARE_ERRORS
from ldpopt_survey.estimate.intervals import two_sided
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, Part, cells_of
from ldpopt_survey.plan.precision import SMOOTHING_WEIGHTS, smoothed
from ldpopt_survey.plan.spec import QuestionSpec
from ldpopt_survey.plan.targets import TargetSpec, variance_for

__all__ = ["respondent_information"]

MAX_NUMBER_CELLS = 2**12
"""The most combinations of answers in a report that includes a number; the plan has a row of integers for each."""

MAX_JOINT_CELLS = 64
"""The most cells of all questions together whose channel is searched for."""


@dataclass(frozen=True, eq=False)
class Target:
    """Limit on the variance of the estimate of `row` @ cells."""

    key: tuple[str, ...]
    row: Array
    variance: float


@dataclass(frozen=True, eq=False)
class Unit:
    """Questions that are only asked together: one, or one with the questions that its answer decides on.

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
                q.reading, None if q.asked_if else q.pilot, q.asked_if, q.option_of or None, q.measure,
            )
            for q in self.questions
        )  # fmt: skip

    @cached_property
    def cells(self) -> tuple[tuple[Label, ...], ...]:
        """The K possible answers to all of them."""
        return cells_of(self.parts)

    @cached_property
    def pilot(self) -> Array:
        """The pilot (K,) of the cells, with independent answers."""
        shares_by_part = [
            dict(zip(part.asked, question.shares, strict=True))
            for part, question in zip(self.parts, self.questions, strict=True)
        ]
        return np.array(
            [
                math.prod(shares.get(label, 1.0) for shares, label in zip(shares_by_part, cell, strict=True))
                for cell in self.cells
            ]
        )

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """A target for every share: among those who are asked, for a question that not everybody is."""
        targets = []
        for position, question in enumerate(self.questions):
            relative, setting = question.coefficient_of_variation, f"question {question.name!r}"
            width, span = question.width, question.span
            for label, row, value in self._quantities(position):
                if width is not None:
                    variance = (width.width / two_sided(width.level)) ** 2
                    targets.append(Target((question.name, label), row, variance))
                if relative is not None:
                    variance = variance_for(None, relative, value, setting, span)
                    targets.append(Target((question.name, label, "relative"), row, variance))
            if question.scores is not None and question.asked_if:
                is_asked = np.array([float(cell[position] != NOT_APPLICABLE) for cell in self.cells])
                limit = float(is_asked @ self.pilot) / PLANNED_SHARE_ERRORS
                targets.append(Target((question.name, "share of the asked"), is_asked, limit**2))
        return tuple(targets)

    @cached_property
    def finer(self) -> tuple[Target, ...]:
        """Targets for every share within the smallest group of a public column.

        The estimate from a share s of the respondents has the variance of that from all of them, divided by s.
        """
        return tuple(
            Target((question.name, label, f"{number} {target.title}"), row, share * target.variance(value, name, span))
            for number, (target, share) in enumerate(self.group_targets)
            for place, question in enumerate(self.questions)
            if not target.questions or {question.name, question.option_of} & set(target.questions)
            for span, name in [(question.span, f"[[targets]] {target.title}, question {question.name!r}")]
            for label, row, value in self._quantities(place)
        )

    def _quantities(self, place: int) -> list[tuple[str, Array, float]]:
        """Return the name, the row of cells and the expected value of each estimate of a question.

        Values are in the units of the answers, for a mean.
        """
        part, question = self.parts[place], self.questions[place]
        is_asked = np.array([cell[place] != NOT_APPLICABLE or not part.asked_if for cell in self.cells], dtype=float)
        if not float(is_asked @ self.pilot) > 0:
            expected = "answers of positive expected shares (in the pilots of these questions)"
            raise invalid(f"question {question.name!r}: asked_if", expected, Phrase("answers that nobody gives"))
        if question.scores is not None:
            mean = float(question.shares @ question.scores)
            score = dict(zip(part.asked, question.scores.tolist(), strict=True))
            deviations = np.array([score.get(cell[place], mean) - mean for cell in self.cells])
            row = deviations * is_asked / float(is_asked @ self.pilot) + mean
            return [(question.measure, row, question.lowest + question.span * mean)]
        quantities = []
        for label, share in zip(part.asked, question.shares, strict=True):
            is_label = np.array([float(cell[place] == label) for cell in self.cells])
            row = (is_label - share * is_asked) / float(is_asked @ self.pilot) + share
            quantities.append((repr(label), row, float(share)))
        return quantities

    @property
    def as_one(self) -> bool:
        """True for a single question with a mean or uniform targets, so that its own design serves all."""
        return self.plain and (self.questions[0].scores is not None or self.uniform)

    @cached_property
    def uniform(self) -> bool:
        """True if all shares have the same limit, so that the design of the question serves all targets."""
        return len({target.variance for target in binding_targets((*self.targets, *self.finer))}) <= 1

    @property
    def name(self) -> str:
        """The name of the first question, or of the question that has it as an option."""
        return self.questions[0].option_of or self.questions[0].name

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options if the unit is one question with several options; else empty."""
        conditions = {(q.option_of, q.asked_if) for q in self.questions} == {(self.questions[0].option_of, ())}
        return tuple(q.name for q in self.questions) if conditions and self.questions[0].option_of else ()

    @property
    def joins(self) -> bool:
        """True if it may share a report with others: shares are estimated, and no missing answer is left out."""
        return not self.has_number and not any(q.reading.left_out for q in self.questions)

    @property
    def epsilon(self) -> float:
        """The epsilon that the first question fixes for all of them; 0 if it does not."""
        return self.questions[0].epsilon or 0.0

    @property
    def plain(self) -> bool:
        """True if it is a single question."""
        return len(self.questions) == 1

    @property
    def has_number(self) -> bool:
        """True if the mean of one of its questions is estimated."""
        return any(question.scores is not None for question in self.questions)

    @property
    def even(self) -> bool:
        """True if all cells of the pilot are equal."""
        return bool(np.ptp(self.pilot) <= 1e-12)

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """Equal for units with the same designs."""
        rows = tuple((target.row.tobytes(), target.variance) for target in (*self.targets, *self.finer))
        tests = tuple((q.test.power, q.test.level, q.test.alternative.tobytes()) for q in self.questions if q.test)
        return self.pilot.tobytes(), rows, tests, tuple((type(q), q.eta) for q in self.questions)

    @cached_property
    def weights(self) -> Array:
        """The weights (targets,) in the bound on the respondents: of all shares of a question, or of the widest."""
        weights = np.zeros(len(self.targets))
        for part in self.parts:
            positions = [place for place, target in enumerate(self.targets) if target.key[0] == part.name]
            if not positions:
                continue
            rows = np.array(
                [self.targets[place].row - float(self.targets[place].row @ self.pilot) for place in positions]
            )
            variances = np.array([self.targets[place].variance for place in positions])
            root = float(np.linalg.svd(rows * np.sqrt(self.pilot), compute_uv=False).sum())
            single_bounds = rows**2 @ self.pilot / variances
            if root**2 / variances.sum() >= single_bounds.max():
                weights[positions] = (root / variances.sum()) ** 2
            else:
                weights[positions[int(single_bounds.argmax())]] = (
                    single_bounds.max() / variances[single_bounds.argmax()]
                )
        return weights


def cap_of(units: Iterable[Unit], eta: float | None) -> float | None:
    """Return the cap on eta of a report on these units: the smallest of theirs and of the budget's, if any."""
    etas = (eta, *(question.eta for unit in units for question in unit.questions))
    return min((cap for cap in etas if cap is not None), default=None)


def smoothed_units(units: Sequence[Unit]) -> Iterator[tuple[Unit, ...]]:
    """Yield the units with pilots near theirs, without tiny shares, nearest first; see `precision.smoothed`."""
    for number in range(len(SMOOTHING_WEIGHTS)):
        yield tuple(
            replace(unit, questions=tuple(q.with_pilot(smoothed(q.shares)[number]) for q in unit.questions))
            for unit in units
        )


def units_of(questions: Sequence[QuestionSpec]) -> tuple[Unit, ...]:
    """Group questions with those that depend on them; each option is a question.

    Groups are in the order of the description.
    """
    group = {part.name: question.name for question in questions for part in question.answers}
    questions = [part for question in questions for part in question.answers]
    names = [question.name for question in questions]
    for place, question in enumerate(questions):
        if question.asked_if and question.epsilon is not None:
            raise invalid(
                f"question {question.name!r}: epsilon", "none beside asked_if (the report is shared)", question.epsilon
            )
        for name, labels in question.asked_if:
            if name not in names[:place]:
                raise invalid(f"question {question.name!r}: asked_if", "questions that stand before it", name)
            categories = questions[names.index(name)].categories if questions[names.index(name)].scores is None else ()
            if unknown_labels := [label for label in labels if label not in categories]:
                raise invalid(f"question {question.name!r}: asked_if", f"answers of {name!r}", unknown_labels[0])
            old, new = group[question.name], group[name]
            group = {part: new if root_of_part == old else root_of_part for part, root_of_part in group.items()}
    units = [Unit(tuple(q for q in questions if group[q.name] == root)) for root in dict.fromkeys(group.values())]
    for joint_unit, question in ((unit, question) for unit in units if not unit.plain for question in unit.questions):
        if question.test is not None:
            expected = "a half_width alone, where asked_if makes questions share a report"
            raise invalid(f"question {question.name!r}: alternative", expected, Phrase("a power, too"))
        if question.scores is not None and (combinations := len(joint_unit.cells)) > MAX_NUMBER_CELLS:
            expected = f"at most {MAX_NUMBER_CELLS:,} combinations of answers in one report (a larger step)"
            raise invalid(f"question {question.name!r}: asked_if", expected, combinations)
    return tuple(units)


def respondent_information(m: int, epsilon: float) -> float:
    """Compute max_c c ((e^eps - 1) / (2^c + e^eps - 1))^2, the information of one report.

    The report is about c of m yes/no questions at random.
    """
    fall = math.exp(-epsilon)
    gain = -math.expm1(-epsilon)
    return max(c * (gain / (2.0**c * fall + gain)) ** 2 for c in range(1, min(m, 1000) + 1))


def respondents_bound(
    units: Sequence[Unit], epsilon: float | None, joint: EquivalenceDual | None = None
) -> RespondentsBound:
    """Prove a lower bound on the respondents of any epsilon-LDP survey [Scarf].

    The survey, interactive or not, must meet every target by unbiased estimates.

    epsilon : in nats; None for another privacy definition; the bound is then that of the sampling variance.
    joint : the proof for the best channel of the units with targets, if it is known.
    """
    targeted_units = [unit for unit in units if unit.targets]
    return RespondentsBound.from_targets(
        math.inf if epsilon is None else epsilon,
        tuple(unit.pilot for unit in targeted_units),
        tuple(np.array([target.row for target in unit.targets]) for unit in targeted_units),
        tuple(np.array([target.variance for target in unit.targets]) for unit in targeted_units),
        tuple(unit.weights for unit in targeted_units),
        joint,
    )


def unit_bound(unit: Unit, epsilon: float) -> float:
    """Return a number of respondents, unrounded, below which no epsilon-LDP report on a unit meets its targets.

    Let shares move from answer b to answer a. As |Q(y|a) - Q(y|b)| <= (e^epsilon - 1) m(y) for the probability m(y) of
    report y, the information on this move is at most (e^epsilon - 1)^2. So an estimate of c . p has a variance of at
    least (c_a - c_b)^2 / (e^epsilon - 1)^2 [Cramer, Rao]. Where few are asked a question, this is far above the
    variance of the sample alone, which counts as well.

    epsilon : in nats.
    """
    if not unit.targets or unit.has_number:
        return 0.0
    rows, is_possible = np.array([target.row for target in unit.targets]), unit.pilot > 0
    limits = np.array([target.variance for target in unit.targets])
    sampling_variances = (rows - (rows @ unit.pilot)[:, None]) ** 2 @ unit.pilot
    spread = np.ptp(rows[:, is_possible], axis=1) * math.exp(-epsilon) / -math.expm1(-epsilon)
    return float((np.maximum(sampling_variances, spread**2) / limits).max())


def proof_of(design: Design | None, units: Sequence[Unit]) -> EquivalenceDual | None:
    """Return the proof of `joint_design`, with a kernel row for each target, or None."""
    certificate: Any = None if design is None else design.certificate
    if not isinstance(certificate, EquivalenceDual):
        return None
    rows, positions = _scaled_rows(units)
    kernel = np.zeros_like(rows)
    kernel[positions] = certificate.kernel
    return replace(certificate, kernel=kernel)


def symmetric_proof(units: Sequence[Unit], epsilon: float, deadline: Deadline) -> EquivalenceDual | None:
    """Prove the best joint channel at equal shares of single questions; None for others."""
    cells = math.prod(len(unit.cells) for unit in units)
    is_symmetric = all(unit.even and unit.plain and len(unit.targets) == len(unit.cells) for unit in units)
    if cells > RespondentsBound.MAX_CELLS or not units or not is_symmetric:
        return None
    shape, variances = tuple(len(unit.cells) for unit in units), [unit.targets[0].variance for unit in units]
    with suppress(SolverError):
        kernel, relaxation = respondents_kernel(shape, variances, epsilon, deadline)
        utility: Any = FisherInformation(product_of(units)[0], MVOptimal(_scaled_rows(units)[0].T))
        numbers = utility.prior, kernel, np.zeros(cells), np.zeros((cells, cells)), relaxation
        return EquivalenceDual(utility, (LocalDP(epsilon),), None, *numbers)
    return None


def binding_targets(targets: Sequence[Target]) -> list[Target]:
    """Return for each row the target with the smallest variance."""
    smallest: dict[bytes, Target] = {}
    for target in targets:
        current = smallest.setdefault(target.row.tobytes(), target)
        if target.variance < current.variance:
            smallest[target.row.tobytes()] = target
    return list(smallest.values())


def _scaled_rows(units: Sequence[Unit]) -> tuple[Array, list[int]]:
    """Return the targets (targets, K) on the cells, centered and in standard errors, and positions of distinct rows.

    Two rows are distinct if they differ by more than a sign, unlike the two shares of a yes/no question.
    """
    pilot, targets = product_of(units)
    rows = np.array([(t.row - t.row @ pilot) / math.sqrt(t.variance) for t in targets])
    distances = np.abs(rows[:, None] - rows).max(axis=2), np.abs(rows[:, None] + rows).max(axis=2)
    is_repeated = np.tril(np.minimum(*distances) <= 1e-9 * np.abs(rows).max(), -1).any(axis=1)
    return rows, list(np.flatnonzero(~is_repeated))


def joint_design(
    units: Sequence[Unit], epsilon: float, time_limit: float | None, progress: Progress = False
) -> Design | None:
    """Design the joint channel that needs the fewest respondents; None if out of reach."""
    cells = math.prod(len(unit.cells) for unit in units)
    if cells > MAX_JOINT_CELLS or not units or not all(unit.targets and unit.pilot.min() > 0 for unit in units):
        return None
    pilot, (rows, positions) = product_of(units)[0], _scaled_rows(units)
    with suppress(InvalidInput, SolverError):
        utility = FisherInformation(pilot, MVOptimal(rows[positions].T))
        return optimal_channel(
            utility, LocalDP(epsilon), method=ThresholdColumns(), time_limit=time_limit, progress=progress
        )
    return None


def product_of(units: Sequence[Unit], further_targets: Sequence[Target] = ()) -> tuple[Array, list[Target]]:
    """Return the pilot (K,) of units asked together, and the targets on their cells."""
    sizes = [len(unit.cells) for unit in units]
    pilot = np.ones(1)
    for unit in units:
        pilot = np.outer(pilot, unit.pilot).ravel()
    targets = []
    for place, unit in enumerate(units):
        cells_before, cells_after = math.prod(sizes[:place]), math.prod(sizes[place + 1 :])
        targets_of_unit = (*unit.targets, *unit.finer)
        targets += [
            Target(t.key, np.tile(np.repeat(t.row, cells_after), cells_before), t.variance) for t in targets_of_unit
        ]
    return pilot, [*targets, *further_targets]
