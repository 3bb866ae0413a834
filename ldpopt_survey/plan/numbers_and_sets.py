"""Compare ways of asking for a number in a range, or for several options, by the respondents needed [KW; DJW]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel, Label
from ldpopt.design import AOptimal, COptimal, Design, FisherInformation, LocalDP, optimal_channel
from ldpopt.errors import invalid
from ldpopt.mechanisms import piecewise, randomized_response
from ldpopt.numbers.rounding import ceil_digits, toward_privacy
from ldpopt.values.deadline import Progress, watched
from ldpopt.values.distribution import Array, distribution, number, positive_epsilon
from ldpopt.values.labels import distinct_labels
from ldpopt.values.results import Result, Rows
from ldpopt_survey.estimate.estimate import Estimate, estimate_contrasts
from ldpopt_survey.estimate.intervals import two_sided

PILOT_POINTS = 257
"""Points of the pilot when none is given: evenly spread numbers."""

GRID_SIZES = (2, 3, 5, 9)
"""Numbers of grid points that are tried."""


@dataclass(frozen=True, eq=False)
class NumericRow(Result):
    """One mechanism: its name, the variance of the mean for one respondent, and the respondents for the target."""

    name: str
    variance: float
    respondents: int


@dataclass(frozen=True, eq=False, repr=False)
class NumericQuestion(Rows[NumericRow]):
    """Number between `low` and `high`, reported through a grid; returned by `numeric_question`.

    grid : the points that numbers are moved to.
    design : the channel between grid points, with its certificate.
    rows : all mechanisms that were compared, the fewest respondents first.
    """

    low: float
    high: float
    epsilon: float
    grid: Array
    design: Design
    rows: tuple[NumericRow, ...]

    _named = ("name", "respondents")

    @property
    def channel(self) -> Channel:
        """The channel; its inputs are the grid points."""
        q = self.design.channel
        return Channel(q.matrix, [float(x) for x in self.grid], q.outputs)

    def on_grid(self, numbers: Any, rng: np.random.Generator) -> Array:
        """Move numbers at random to one of the two grid points around them.

        The expected value is unchanged.

        Numbers outside the range are moved to its ends. The channel that follows gives the protection, so this step may
        be public.
        """
        x = np.clip(np.asarray(numbers, dtype=np.float64), self.low, self.high)
        if not np.isfinite(x).all():
            raise invalid("numbers", "finite ones", "others")
        lower, fraction = _grid_position(x, self.grid)
        return np.asarray(self.grid[lower + (rng.random(x.shape) < fraction)])

    def mean(self, reports: Any) -> Estimate:
        """Estimate the mean of the numbers from reports of the channel, without bias [Rao]."""
        return estimate_contrasts(reports, self.channel, self.grid, ("mean",))

    def __repr__(self) -> str:
        guarantee = f"epsilon {ceil_digits(self.epsilon)}"
        lines = [f"NumericQuestion({self.low:g} to {self.high:g}, {guarantee}; grid of {len(self.grid)})"]
        lines += [f"  {row.name}: {row.respondents:,} respondents" for row in self.rows]
        return "\n".join(lines)


def numeric_question(
    low: float,
    high: float,
    epsilon: float,
    half_width: float,
    pilot: Any = None,
    level: float = 0.95,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> NumericQuestion:
    """Design the grid and channel for a mean, and compare them with other mechanisms [KW; PM].

    The design needs the fewest respondents. Numbers are moved at random to one of the two grid points around them. The
    channel over the grid is optimal for the mean at the pilot. With more points numbers move less, but points are
    harder to distinguish. So all sizes in `GRID_SIZES` are tried.

    Parameters
    ----------
    low, high : The range of answers; others are clipped to it.
    epsilon : In nats.
    half_width : Half the width of the mean's confidence interval, in the units of the answers.
    level : The confidence level of the interval, in (0, 1).
    pilot : Numbers like the expected answers, shape (n,); without them, evenly spread numbers.
    time_limit : In seconds, for all sizes together.
    progress : As for `optimal_channel`.

    Returns
    -------
    NumericQuestion
        The grid, the channel and the comparison.

    Raises
    ------
    InvalidInput
        For an empty range, or a half-width beyond it.

    >>> question = numeric_question(0, 100, 1.0, 2.0)
    >>> [row.name for row in question.rows if "optimal" not in row.name]
    ['piecewise mechanism', 'Laplace noise', 'without privacy']
    >>> len(question.grid), round(question.rows[0].variance / question.rows[-1].variance)
    (9, 13)
    """
    low, high, epsilon = number(low, "low", "a number"), number(high, "high", "a number"), positive_epsilon(epsilon)
    if not low < high:
        raise invalid("range", "low below high", (low, high))
    width = number(half_width, "half_width", "a positive number")
    if not 0 < width < high - low:
        raise invalid("half_width", f"a number between 0 and {high - low:g}", width)
    sample = (
        np.linspace(low, high, PILOT_POINTS)
        if pilot is None
        else np.clip(np.asarray(pilot, dtype=np.float64), low, high)
    )
    if sample.ndim != 1 or len(sample) < 2 or not np.isfinite(sample).all():
        raise invalid("pilot", "at least two numbers", f"shape {sample.shape}")
    z = two_sided(level)

    def row(name: str, variance: float) -> NumericRow:
        return NumericRow(name, variance, math.ceil(z**2 * variance / width**2))

    designs = []
    with watched(time_limit, progress) as deadline:
        for turn_number, points in enumerate(GRID_SIZES):
            grid, turn = np.linspace(low, high, points), deadline.turn(turn_number, len(GRID_SIZES))
            utility = FisherInformation(_shares(sample, grid), COptimal(grid))
            design = optimal_channel(utility, LocalDP(epsilon), **turn.passed)
            designs.append((row(f"optimal channel on {points} points", float(design.value)), grid, design))
    best = min(designs, key=lambda way: way[0].variance)
    half_range = (high - low) / 2
    scaled_sample = (sample - (low + high) / 2) / half_range
    variance_of_numbers = float(np.var(sample))
    comparisons = [
        row("Laplace noise", variance_of_numbers + 2 * ((high - low) / epsilon) ** 2),
        row("without privacy", variance_of_numbers),
    ]
    if epsilon <= 20:
        comparisons.append(
            row(
                "piecewise mechanism",
                variance_of_numbers + half_range**2 * float(np.mean(piecewise(epsilon).variance(scaled_sample))),
            )
        )
    rows = sorted([way for way, *_ in designs] + comparisons, key=lambda way: way.variance)
    rows.sort(key=lambda way: way.name == "without privacy")
    return NumericQuestion(low, high, epsilon, best[1], best[2], tuple(rows))


def _shares(numbers: Array, grid: Array) -> Array:
    """Return the shares of the grid points after numbers were moved to them at random."""
    weights = rounding_probabilities(numbers, grid).sum(axis=0)
    return distribution(np.maximum(weights, 1e-9) / np.maximum(weights, 1e-9).sum(), "pilot")


def rounding_probabilities(numbers: Array, grid: Array) -> Array:
    """Compute the probabilities (n, points) of moving numbers to grid points.

    Each number moves to one of the two points around it, with unchanged mean.
    """
    lower, fraction = _grid_position(numbers, grid)
    probabilities, rows = np.zeros((len(numbers), len(grid))), np.arange(len(numbers))
    probabilities[rows, lower] = 1 - fraction
    probabilities[rows, lower + 1] += fraction
    return probabilities


def _grid_position(numbers: Array, grid: Array) -> tuple[Any, Array]:
    """Return the position of the grid point at or below each number, and the fraction of the step to the next."""
    step = grid[1] - grid[0]
    lower = np.clip(((numbers - grid[0]) / step).astype(int), 0, len(grid) - 2)
    # Rounding errors would make probabilities negative, by more than a channel's smallest ones at a large epsilon.
    return lower, np.clip((numbers - grid[lower]) / step, 0.0, 1.0)


MAX_OPTIONS = 10
"""The most options of a question. The sets of more options are too many to list with their reports."""

MAX_SEARCHED_OPTIONS = 3
"""Up to this many options, the best of all channels over the sets is found, with a certificate."""


@dataclass(frozen=True, eq=False)
class SetDesign(Result):
    """One way to ask: a `channel` over the sets, and the largest `variance` of an option's share per respondent.

    why : description of the channel.
    respondents : the number needed for the half-width.
    """

    name: str
    channel: Channel
    variance: float
    respondents: int
    why: str


@dataclass(frozen=True, eq=False, repr=False)
class MultiSelect(Rows[SetDesign]):
    """Question with J options, any number of them to be chosen; returned by `multi_select`.

    options : the J options.
    epsilon : in nats, for the whole answer.
    designs : the ways to ask, the fewest respondents first.
    """

    options: tuple[Label, ...]
    epsilon: float
    designs: tuple[SetDesign, ...]

    _records, _named = "designs", ("name", "respondents", "why")

    @property
    def best(self) -> SetDesign:
        """The way that needs the fewest respondents. `make_plan` makes its channel exact."""
        return self.designs[0]

    @property
    def sets(self) -> tuple[str, ...]:
        """The 2^J answers as labels: the chosen options joined by " + ", or "none"."""
        return _names(self.options)

    def estimate(self, reports: Any, design: SetDesign | None = None) -> Estimate:
        """Estimate the share of each option from reports of a design, by default the best [Rao]."""
        selected_design = self.best if design is None else design
        return estimate_contrasts(reports, selected_design.channel, _members(len(self.options)).T, self.options)

    def __repr__(self) -> str:
        lines = [f"MultiSelect({len(self.options)} options, epsilon {ceil_digits(self.epsilon)})"]
        lines += [f"  {way.name}: {way.respondents:,} respondents; {way.why}" for way in self.designs]
        return "\n".join(lines)


def multi_select(
    options: Sequence[Label], epsilon: float, half_width: float = 0.05, level: float = 0.95
) -> MultiSelect:
    """Compare ways to ask for any number of options, within one `epsilon` for all [DJW].

    It compares four ways:

    - the best of all channels over the 2^J sets, with its certificate (up to three options);
    - a report of a whole set, likely if it differs from the answer in few options;
    - a coin with epsilon/J for each option;
    - one option, drawn at random, with all of epsilon.

    The numbers of respondents hold if all sets are equally likely.

    Parameters
    ----------
    options : 2 to 10 options.
    epsilon : The epsilon of the whole answer, in nats.
    half_width, level : Those of the interval of an option's proportion.

    Returns
    -------
    MultiSelect
        The ways, by required respondents.

    Raises
    ------
    InvalidInput
        For other values.

    >>> comparison = multi_select(["cash", "card", "phone"], 1.0)
    >>> comparison.best.name, comparison.best.respondents, comparison.designs[1].why
    ('one option each, drawn at random', 5397, 'no channel over the sets needs fewer')
    """
    labels = distinct_labels(options, len(options), "options")
    epsilon, j = positive_epsilon(epsilon), len(labels)
    if not 2 <= j <= MAX_OPTIONS:
        raise invalid("options", f"2 to {MAX_OPTIONS}", j)
    if not 0 < half_width < 1:
        raise invalid("half_width", "a number between 0 and 1", half_width)
    z = two_sided(level)

    def build_design(name: str, channel: Channel, variance: float, why: str) -> SetDesign:
        return SetDesign(name, channel, variance, math.ceil(z**2 * variance / half_width**2), why)

    slopes = [_slope(j, epsilon, radius) for radius in range(j)]
    radius = int(np.argmax(slopes))
    likely_reports = "the answer itself" if radius == 0 else f"the sets that differ from the answer in at most {radius}"
    part_slope, full_slope = math.tanh(epsilon / j / 2), math.tanh(epsilon / 2)
    of_set, of_coins, of_one = (0.25 / slopes[radius] ** 2, 0.25 / part_slope**2, 0.25 * j / full_slope**2)
    one_in_words = f"a full coin, but of 1 in {j} respondents for each option"
    designs = [
        build_design("a whole set", _ball(labels, epsilon, radius), of_set, f"likely reports are {likely_reports}"),
        build_design("the budget split", _coins(labels, epsilon / j), of_coins, f"every coin has only epsilon/{j}"),
        build_design("one option each, drawn at random", _single_option(labels, epsilon), of_one, one_in_words),
    ]
    if j <= MAX_SEARCHED_OPTIONS:
        sets = 2**j
        members = _members(j)
        utility = FisherInformation(np.full(sets, 1 / sets), AOptimal(members @ members.T), inputs=_names(labels))
        best = optimal_channel(utility, LocalDP(epsilon))
        proof = "no channel over the sets needs fewer" if best.certified else "not certified"
        designs.append(build_design("best channel over the sets", best.channel, best.value / j, proof))
    # Ways that need the same number within the tolerance of a certificate: the one from the search is not put first.
    designs.sort(key=lambda way: (round(math.log(way.variance), 6), way.name == "best channel over the sets"))
    return MultiSelect(labels, epsilon, tuple(designs))


def _ball(options: tuple[Label, ...], epsilon: float, radius: int) -> Channel:
    """Return the channel with reports within `radius` options of the answer e^epsilon times likelier than others."""
    near_probability, far_probability = _probabilities(len(options), epsilon, radius)
    bits = _members(len(options)).astype(np.int8)
    distance = (bits[:, None, :] != bits[None, :, :]).sum(axis=2)
    weights = np.where(distance <= radius, near_probability, far_probability)
    return Channel(weights / weights.sum(axis=1, keepdims=True), _names(options), _names(options))


def _coins(options: tuple[Label, ...], epsilon: float) -> Channel:
    """Return one coin per option; the reports are sets."""
    matrix = np.ones((1, 1))
    for _ in options:  # the first option is the last factor, since sets are ordered so
        matrix = np.asarray(np.kron(matrix, randomized_response(2, epsilon).matrix), dtype=np.float64)
    return Channel(matrix / matrix.sum(axis=1, keepdims=True), _names(options), _names(options))


def _single_option(options: tuple[Label, ...], epsilon: float) -> Channel:
    """Return the channel that draws one option and reports it through a coin, as the option and yes or no."""
    coin, members = randomized_response(2, epsilon).matrix, _members(len(options)).astype(int)
    parts = [coin[members[:, place]] / len(options) for place in range(len(options))]
    labels = [f"{option}: {word}" for option in options for word in ("no", "yes")]
    return Channel(np.hstack(parts), _names(options), labels)


def _probabilities(j: int, epsilon: float, radius: int) -> tuple[float, float]:
    """Return the probabilities of a report inside and outside the ball around the answer."""
    ball_size = sum(math.comb(j, d) for d in range(radius + 1))
    ratio = math.exp(-toward_privacy(epsilon))
    near_probability = 1 / (ball_size + (2**j - ball_size) * ratio)
    return near_probability, near_probability * ratio


def _slope(j: int, epsilon: float, radius: int) -> float:
    """Return Pr(an option's bit is unchanged) - Pr(it is changed); outside the ball the two cancel."""
    near_probability, far_probability = _probabilities(j, epsilon, radius)
    difference = sum(math.comb(j - 1, d) - (math.comb(j - 1, d - 1) if d else 0) for d in range(radius + 1))
    return (near_probability - far_probability) * difference


def _names(options: tuple[Label, ...]) -> tuple[str, ...]:
    rows = _members(len(options)).tolist()
    return tuple(
        " + ".join(str(o) for o, is_chosen in zip(options, row, strict=True) if is_chosen) or "none" for row in rows
    )


def _members(j: int) -> Array:
    """Return the sets as rows of 0 and 1, shape (2^j, j), the empty set first."""
    return np.asarray((np.arange(2**j)[:, None] >> np.arange(j)) & 1, dtype=np.float64)
