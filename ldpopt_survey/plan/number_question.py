"""Plan a question for a number: its possible answers, the channel for their mean, and its precision [KW]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design import COptimal, Design, FisherInformation, optimal_channel
from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.rounding import up
from ldpopt.values.deadline import Deadline
from ldpopt.values.distribution import Array, number
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.numbers_and_sets import GRID_SIZES, rounding_probabilities
from ldpopt_survey.plan.precision import HalfWidth, limits
from ldpopt_survey.plan.spec import DEFAULT_WIDTH, QuestionSpec
from ldpopt_survey.plan.targets import variance_for
from ldpopt_survey.records import check, key, within

MAX_NUMBERS = 1001
"""The most numbers that may be answered; the plan has a row of integers for each."""

MAX_SIZE = 1e9
"""The largest number that may be answered, in absolute value, so that all programs write it alike."""

SMALLEST_STEP = Decimal("0.0001")


@dataclass(frozen=True, eq=False)
class NumberSpec(QuestionSpec, type="number"):
    """A question whose answer is a number, and whose mean is estimated: ``type = "number"`` in a file.

    low : the smallest number that may be answered.
    high : the largest one.
    step : between neighbouring answers; 1 by default. There are at most 1,001 answers.
    half_width : of the interval of the mean, in the units of the answers; by default a twentieth of the range.

    A number is moved at random to one of nine points around it, so that the mean is unchanged, and the points go
    through the optimal channel for their mean. Both are one channel of integers with a row for each number, so that a
    single random word decides, and the guarantee is that of the numbers themselves. With `asked_if` the mean is that of
    the respondents who are asked, and the half-width and the pilot are about them.

    >>> NumberSpec("hours", low=0, high=80, step=0.5).categories[:4]
    (0, 0.5, 1, 1.5)
    """

    categories: tuple[Label, ...] = key(default=(), name="answers", aliases=("categories", "options"))
    half_width: float | None = key(within(0, math.inf, "()"), default=None)
    low: float | None = key(number, default=None)
    high: float | None = key(number, default=None)
    step: float = key(within(0, math.inf, "()"), default=1.0)

    measure: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        place = f"question {self.name!r}"
        check(self, place)
        if self.categories and self.categories != self._numbers(place):
            raise invalid(f"{place}: categories", "none beside low, high and step", Phrase("some"))
        if self.alternative is not None or self.power is not None:
            raise invalid(place, "a number without a power (its mean has a half_width)", Phrase("a power"))
        object.__setattr__(self, "categories", self._numbers(place))
        super().__post_init__()
        if self.width is not None and not self.width.width < 1:
            raise invalid(f"{place}: half_width", "less than the range", self.half_width)
        if self.coefficient_of_variation is not None:
            variance_for(None, self.coefficient_of_variation, self._mean, place, self.span)

    def _numbers(self, place: str) -> tuple[Label, ...]:
        ends = self.low, self.high
        if None in ends or not max(map(abs, filter(None, ends)), default=0.0) <= MAX_SIZE:
            raise invalid(f"{place}: low and high", f"numbers within {MAX_SIZE:g}", ends)
        low, high, step = (Decimal(repr(float(value or 0.0))) for value in (*ends, self.step))
        is_grid = low < high and (high - low) / step <= MAX_NUMBERS - 1 and (high - low) % step == 0
        if not (is_grid and low % SMALLEST_STEP == step % SMALLEST_STEP == 0):
            expected = (
                f"low below high, whole steps between, at most {MAX_NUMBERS:,} numbers and 4 digits behind a point"
            )
            raise invalid(f"{place}: low, high and step", expected, (*ends, self.step))
        values = [low + count * step for count in range(int((high - low) / step) + 1)]
        return tuple(int(value) if value == int(value) else float(value) for value in values)

    @property
    def scores(self) -> Array:
        """The answers on a scale from 0 to 1, shape (k,)."""
        return np.linspace(0.0, 1.0, len(self.categories))

    @property
    def width(self) -> HalfWidth | None:
        """The target half-width on that scale; None if a coefficient of variation alone is wanted."""
        if self.half_width is None and self.coefficient_of_variation is not None:
            return None
        return HalfWidth(DEFAULT_WIDTH if self.half_width is None else self.half_width / self.span)

    @property
    def lowest(self) -> float:
        """The smallest number."""
        return float(self.low or 0.0)

    @property
    def span(self) -> float:
        """The largest number less the least one."""
        return float(self.high or 0.0) - self.lowest

    @property
    def _mean(self) -> float:
        """The expected mean."""
        return self.lowest + self.span * float(self.shares @ self.scores)

    @property
    def _moves(self) -> Array:
        """The probabilities (k, points) that numbers move to points."""
        return rounding_probabilities(self.scores, np.linspace(0.0, 1.0, min(len(self.categories), GRID_SIZES[-1])))

    def design(self, epsilon: float, eta: float | None, deadline: Deadline, certify: bool = True) -> Design:
        """Design the optimal channel between the points for their mean, within epsilon and eta.

        certify : False to leave out the proof.
        """
        point_shares = self.shares @ self._moves
        utility = FisherInformation(
            point_shares / point_shares.sum(), COptimal(np.linspace(0.0, 1.0, len(point_shares)))
        )
        return optimal_channel(utility, limits(epsilon, eta), certify=certify, **deadline.passed)

    def channel_of(self, design: Design) -> Array:
        """Return the channel of numbers (k, m): first to a point, then through the design."""
        matrix = self._moves @ design.channel.matrix
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))

    def expected(self, channel: Channel, respondents: float | None) -> dict[str, float]:
        """Return the expected precision of the mean at `shares`, in the units of the answers."""
        variance = float(contrast_variances(channel, self.shares, self.scores[None])[0])
        spread = float(self.shares @ self.scores**2 - (self.shares @ self.scores) ** 2)
        expected, required = {"design_effect": variance / spread}, 0
        if self.width is not None:
            expected["half_width"] = self.span * self.width.width
            required = self.width.respondents_for(variance)
        if (relative := self.coefficient_of_variation) is not None:
            allowed = variance_for(None, relative, self._mean, self.name, self.span)
            expected["coefficient_of_variation"] = relative
            required = max(required, math.ceil(up(variance / allowed, 16)))
        expected["respondents"] = float(required)
        if respondents is not None:
            width = self.width or HalfWidth(DEFAULT_WIDTH)
            expected["half_width_at_hand"] = self.span * width.width_for(variance, respondents)
        return expected
