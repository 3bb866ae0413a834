"""Convert target precision of tables, groups and regressions to contrasts of cells, with variances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Label
from ldpopt.errors import Phrase, invalid
from ldpopt.values.distribution import Array, distribution
from ldpopt.values.labels import as_text
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.intervals import two_sided
from ldpopt_survey.records import check, choice, key, listed, mapped, text, within

CELLS, ASSOCIATION = "cells", "association"

MAX_CELLS = 256
"""The most cells of a table of which a precision is planned."""

MIN_STANDARD_ERROR = 1e-6
"""The least standard error that is planned, as a part of the range of the answers: for 10^12 respondents."""

CONSTANT_ROW_RTOL = 1e-12
"""The least range of a row among possible answers, against its largest entry."""

MARGIN_ATOL = 1e-6
"""How far the margins of a table's pilot may be from the pilots of its questions."""


@dataclass(frozen=True, eq=False)
class Contrast(ByValue):
    """Linear function of the shares of the cells, with the largest allowed variance of its estimate.

    For other quantities, such as a share within a group, `row` is the derivative at the expected shares.

    name : for messages.
    row : (cells,).
    value : the expected value.
    variance : the largest one of an estimate.
    """

    name: str
    row: Array
    value: float
    variance: float


@dataclass(frozen=True, eq=False)
class Sides:
    """Cells that some answers exclude, in a table of two or more questions.

    possible : (cells,) whether anybody can give these answers.
    applicable : (cells,) 1 where the second question is asked.
    excluded_groups : the answers to the first question that define no group, such as "not applicable".
    """

    possible: npt.NDArray[np.bool_]
    applicable: Array
    excluded_groups: tuple[Label, ...]


@dataclass(frozen=True, eq=False)
class TargetSpec(ByValue):
    """Precision that a table, groups or a regression must reach; in a file a table ``[[targets]]``.

    questions : the two questions of a table. With `by`, the questions to estimate in each group; by default all others.
    quantity : "cells" for every share of the table. "association" for the differences between shares: of each column
        answer, its share among respondents with a row answer minus its share among the others.
    by : the column that defines the groups: a public question, a carried column, or a private question.
    groups : the expected share of respondents in each group of a public column, ``{ north = 0.3, south = 0.7 }``. The
        pilot of a private question has its shares.
    regression : a formula of questions, ``"drug ~ smokes"``. The target holds for every coefficient of the logistic
        regression except the intercept.
    pilot : the expected shares of the cells, one list for each answer to the first question. Its margins equal the
        pilots of the questions. By default the answers are independent.
    half_width : the half-width of each 95 % interval, in (0, 1) for shares, in the units of the answers for a mean.
    coefficient_of_variation : the largest ratio of a standard error to its estimate.

    >>> TargetSpec(("drug", "smokes"), half_width=0.04).names
    ('drug', 'smokes')
    """

    questions: tuple[str, ...] = key(listed(text), default=())
    quantity: str = key(choice(CELLS, ASSOCIATION), default=CELLS)
    by: str | None = key(text, default=None)
    groups: Mapping[str, float] | None = key(mapped(within(0, 1, "()")), default=None)
    regression: str | None = key(text, default=None)
    pilot: Any = key(default=None)
    half_width: float | None = key(within(0, math.inf, "()"), default=None)
    coefficient_of_variation: float | None = key(within(0, math.inf, "()"), default=None)

    def __post_init__(self) -> None:
        place = "[[targets]]"
        check(self, place)
        if (self.half_width is None) == (self.coefficient_of_variation is None):
            got_words = "neither" if self.half_width is None else "both"
            raise invalid(place, "half_width or coefficient_of_variation", Phrase(got_words))
        if len(set(self.questions)) != len(self.questions):
            raise invalid(f"{place}: questions", "distinct ones", list(self.questions))
        if self.regression is not None:
            if self.questions or self.by is not None or self.quantity != CELLS:
                raise invalid(f"{place}: regression", "a formula without questions, quantity or by", self.regression)
            if self.formula.outcome in self.formula.columns or not self.formula.columns:
                raise invalid(f"{place}: regression", "an outcome and other questions that predict it", self.regression)
            if self.half_width is None:
                expected = "half_width with a regression (coefficients may be 0)"
                raise invalid(place, expected, Phrase("a coefficient of variation"))
            return
        if self.by is None and len(self.questions) != 2:
            expected = "two for a table, or `by` for groups (one alone has a half_width in [[questions]])"
            raise invalid(f"{place}: questions", expected, len(self.questions))
        if self.groups is not None and self.by is None:
            raise invalid(f"{place}: groups", "a column in `by` for the groups", Phrase("no column"))
        if self.quantity == ASSOCIATION and (self.by is not None or self.half_width is None):
            expected = 'a half_width and no `by` with quantity = "association" (a difference may be 0)'
            raise invalid(place, expected, Phrase("another target"))
        if self.pilot is not None and self.by is not None and len(self.questions) != 1:
            expected = "one question beside by and pilot (a table [[targets]] for each pilot)"
            raise invalid(f"{place}: questions", expected, len(self.questions))
        if self.by in self.questions:
            raise invalid(f"{place}: by", "a column that is none of the questions", self.by)
        if self.groups is not None:
            _require_shares(self.groups, f"{place}: groups")
        if self.half_width is not None and self.by is None and not self.half_width < 1:
            raise invalid(f"{place}: half_width", "a number in (0, 1)", self.half_width)

    @property
    def formula(self) -> Any:
        """The formula that was read; None where no regression is wanted."""
        if self.regression is None:
            return None
        from ldpopt_survey.regress.formula import parse_formula

        return parse_formula(self.regression)

    @property
    def names(self) -> tuple[str, ...]:
        """The questions that must be asked together for it: of a table, or the outcome and predictors."""
        if self.regression is not None:
            return tuple(dict.fromkeys((self.formula.outcome, *self.formula.columns)))
        return self.questions

    @property
    def title(self) -> str:
        """A few words that name the table, groups or regression."""
        if self.regression is not None:
            return self.regression
        if self.by is not None:
            return f"{', '.join(self.questions) or 'all questions'} by {self.by}"
        return f"{self.quantity} of {' x '.join(self.questions)}"

    def variance(self, value: float, place: str, scale: float = 1.0) -> float:
        """Return the largest variance of an estimate with the expected value `value`, as `variance_for` does."""
        if self.regression is None and self.half_width is not None and not self.half_width < scale:
            raise invalid(f"{place}: half_width", f"less than the range, {scale:g}", self.half_width)
        return variance_for(self.half_width, self.coefficient_of_variation, value, place, scale)

    def contrasts(
        self, names: tuple[str, ...], labels: Sequence[Sequence[Label]], cell_shares: Array, sides: Sides
    ) -> list[Contrast]:
        """Return the contrasts of the cells of questions that share a booklet.

        names : the questions; with `by`, the question that defines the groups is the first.
        labels : the answers to
        each question. law : (cells,) the expected shares.
        """
        if self.regression is not None:
            return self._coefficients(names, labels, cell_shares)
        quantities = [
            (name, row, value)
            for name, row, value in self._quantities(labels, cell_shares, sides)
            if np.ptp(row[sides.possible]) > CONSTANT_ROW_RTOL * np.abs(row).max()  # otherwise constant
        ]
        return [
            Contrast(name, row, value, self.variance(value, f"[[targets]] {self.title}, {name}"))
            for name, row, value in quantities
        ]

    def _quantities(
        self, labels: Sequence[Sequence[Label]], cell_shares: Array, sides: Sides
    ) -> Iterator[tuple[str, Array, float]]:
        """Yield the name, row and expected value of every quantity of a table or of groups."""
        cells = list(product(*labels))
        if self.by is None and self.quantity == CELLS:
            for row, cell in zip(np.eye(len(cells)), cells, strict=True):
                yield ", ".join(map(as_text, cell)), row, float(row @ cell_shares)
            return
        first, second = (
            np.array([[cell[place] == label for cell in cells] for label in labels[place]], dtype=np.float64)
            for place in (0, 1)
        )
        for group, members in zip(labels[0], first, strict=True):
            if self.by is not None and group in sides.excluded_groups:
                continue
            if self.by is not None:
                members = members * sides.applicable
            share = float(members @ cell_shares)
            if not 0 < share < 1:
                if not members[sides.possible].any() and self.by is None:
                    continue
                raise invalid(f"[[targets]] {self.title}", f"a pilot with a share above 0 of {group!r}", share)
            for label, is_column_answer in zip(labels[1], second, strict=True):
                value = float(members * is_column_answer @ cell_shares) / share
                row, name = members * (is_column_answer - value) / share, f"{as_text(group)}: {as_text(label)}"
                if self.by is not None:
                    yield name, row, value
                    continue
                other_value = float((1 - members) * is_column_answer @ cell_shares) / (1 - share)
                yield name, row - (1 - members) * (is_column_answer - other_value) / (1 - share), value - other_value

    def _coefficients(
        self, names: tuple[str, ...], labels: Sequence[Sequence[Label]], cell_shares: Array
    ) -> list[Contrast]:
        """Return the derivatives of logistic coefficients at the shares `cell_shares`."""
        from ldpopt_survey.regress.regressors import regressors

        place = f"[[targets]] {self.title}"
        if len(labels[0]) != 2:
            raise invalid(place, f"an outcome of two answers (join those of {names[0]!r})", len(labels[0]))
        self.formula.require_categories()
        design = regressors(self.formula, {}, dict(zip(names[1:], labels[1:], strict=True)), 1)
        x, shares = design.values[0], cell_shares.reshape(2, -1)
        outcomes, people = shares[1], shares.sum(axis=0)
        if np.linalg.matrix_rank(x * np.sqrt(people)[:, None]) < x.shape[1]:
            raise invalid(place, "predictors that differ at the pilot", Phrase("coefficients that no answers tell"))
        beta = np.zeros(x.shape[1])
        for _ in range(100):
            mean = 1 / (1 + np.exp(-np.clip(x @ beta, -500, 500)))
            information = (x * (people * mean * (1 - mean))[:, None]).T @ x
            step = np.linalg.lstsq(information, x.T @ (outcomes - people * mean), rcond=None)[0]
            beta = beta + step
            if np.abs(step).max() < 1e-10:
                break
        else:
            raise invalid(
                place, "a pilot at which coefficients are finite (shares above 0)", Phrase("separate answers")
            )
        inverse = np.linalg.inv(information)
        rows = np.concatenate([(inverse @ (x * (y - mean)[:, None]).T) for y in (0, 1)], axis=1)
        return [
            Contrast(name, row, float(value), self.variance(float(value), name))
            for name, row, value in zip(design.names, rows, beta, strict=True)
            if name != "Intercept"
        ]

    def joint(self, pilots: Sequence[Array], names: Sequence[str]) -> Array | None:
        """Return the pilot of the table, shape (cells,), or None for independent answers.

        pilots : the pilot of each question. `InvalidInput` unless the pilot has their sizes and margins.
        """
        if self.pilot is None:
            return None
        setting, shape = f"[[targets]] {self.title}: pilot", tuple(map(len, pilots))
        try:
            table = np.array(self.pilot, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros(())
        if table.shape != shape:
            sizes = " x ".join(map(str, shape))
            raise invalid(
                setting, f"lists of {sizes} shares, a list for each answer of {names[0]!r}", Phrase("another shape")
            )
        cell_shares = distribution(table.ravel(), setting, table.size)
        if cell_shares.min() <= 0:
            raise invalid(
                setting, "shares above 0 (channels are planned for answers that occur)", float(cell_shares.min())
            )
        for position, (name, margin_pilot) in enumerate(zip(names, pilots, strict=True)):
            margin = cell_shares.reshape(shape).sum(axis=tuple(axis for axis in range(len(shape)) if axis != position))
            if np.abs(margin - margin_pilot).max() > MARGIN_ATOL:
                shares = ", ".join(f"{share:.6g}" for share in margin)
                raise invalid(
                    setting, f"margins like the pilots (or pilot = [{shares}] of {name!r})", Phrase("other margins")
                )
        return cell_shares

    def with_margins(self, pilots: Sequence[Array]) -> TargetSpec:
        """Return the target with a pilot that has these margins and the same odds ratios.

        A pilot of another size is left as it is.
        """
        if self.pilot is None or np.shape(table := np.array(self.pilot, dtype=np.float64)) != tuple(map(len, pilots)):
            return self
        for _ in range(1000):
            for place, pilot in enumerate(pilots):
                other_axes = tuple(axis for axis in range(table.ndim) if axis != place)
                margin = table.sum(axis=other_axes, keepdims=True)
                table = table * pilot.reshape(margin.shape) / margin
        return replace(self, pilot=table.tolist())

    def within_group(self, texts: Sequence[str] | None) -> dict[str, float]:
        """Return the expected shares of the groups of a public column.

        texts : its groups, where they are known. `InvalidInput` unless each has a share.
        """
        place = f"[[targets]] {self.title}: groups"
        example = ", ".join(f'"{name}" = {1 / len(texts):.3g}' for name in texts[:8]) if texts else "north = 0.4, ..."
        if self.groups is None or (texts is not None and set(texts) != set(self.groups)):
            got = "none" if self.groups is None else f"{', '.join(list(self.groups)[:8])}"
            raise invalid(place, f"the expected share of each group, such as {{ {example} }}", Phrase(got))
        return dict(self.groups)


def variance_for(
    half_width: float | None, relative: float | None, value: float, place: str, scale: float = 1.0
) -> float:
    """Return the largest variance of an estimate of `value` that meets its target.

    The target is a half-width or a coefficient of variation.

    place : the name of the estimate in messages.
    scale : the size of one unit of the estimate, in the units of the answers. The half-width and the value are in the
        units of the answers.

    >>> round(variance_for(None, 0.1, 0.2, "vote"), 8)
    0.0004
    """
    if half_width is not None:
        error = half_width / scale / two_sided(0.95)
    else:
        assert relative is not None
        if not abs(value) > 0:
            expected = "an expected value other than 0 for a coefficient of variation (or a half_width)"
            raise invalid(f"{place}: coefficient_of_variation", expected, value)
        error = abs(relative * value / scale)
    if not MIN_STANDARD_ERROR <= error <= 1 / MIN_STANDARD_ERROR:
        name = "coefficient_of_variation" if half_width is None else "half_width"
        raise invalid(f"{place}: {name}", f"a standard error of at least {MIN_STANDARD_ERROR:g} of the range", error)
    return error**2


def _require_shares(groups: Mapping[str, float], place: str) -> None:
    if len(groups) < 2 or not abs(math.fsum(groups.values()) - 1) <= MARGIN_ATOL:
        got = Phrase(f"{len(groups)} with the sum {math.fsum(groups.values()):g}")
        raise invalid(place, "shares of at least two groups, with the sum 1", got)
