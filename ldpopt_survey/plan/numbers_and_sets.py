"""From a range of numbers, or options to choose from, to ways of asking, each with its respondents [KW; DJW]."""

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

FINE = 257
"""Points of the pilot when none is given: evenly spread numbers."""

POINTS = (2, 3, 5, 9)
"""Numbers of grid points that are tried."""


@dataclass(frozen=True, eq=False)
class NumericRow(Result):
    """One mechanism: its name, the variance of the mean for one respondent, and the respondents for the target."""

    name: str
    variance: float
    respondents: int


@dataclass(frozen=True, eq=False, repr=False)
class NumericQuestion(Rows[NumericRow]):
    """A number between `low` and `high`, reported through a grid; made by `numeric_question`.

    grid : the points that numbers are moved to. design : the channel between grid points, with its certificate.
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
        """Numbers moved at random to one of the two grid points around them, so that the mean is unchanged.

        Numbers outside the range are moved to its ends. The channel that follows gives the protection, so this step may
        be public.
        """
        x = np.clip(np.asarray(numbers, dtype=np.float64), self.low, self.high)
        if not np.isfinite(x).all():
            raise invalid("numbers", "finite ones", "others")
        below, share = _around(x, self.grid)
        return np.asarray(self.grid[below + (rng.random(x.shape) < share)])

    def mean(self, reports: Any) -> Estimate:
        """The mean of the numbers from reports of the channel, unbiased [Rao]."""
        return estimate_contrasts(reports, self.channel, self.grid, ("mean",))

    def __repr__(self) -> str:
        promised = f"epsilon {ceil_digits(self.epsilon)}"
        lines = [f"NumericQuestion({self.low:g} to {self.high:g}, {promised}; grid of {len(self.grid)})"]
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
    """The grid and the channel that need the fewest respondents for a mean, compared with other mechanisms [KW; PM].

    low, high : the range that answers are cut to.
    epsilon : in nats. level : confidence of the interval, in (0, 1).
    half_width : half the width of the mean's confidence interval, in the units of the answers.
    pilot : numbers like the expected answers, shape (n,); without them, evenly spread numbers.

    Numbers are moved at random to one of the two grid points around them. The channel over the grid is optimal for the
    mean at the pilot. With more points numbers move less, but points are harder to tell apart; so all sizes in `POINTS`
    are tried. time_limit : in seconds, for all of them together. progress : as for `optimal_channel`. Raises
    `InvalidInput` for an empty range, or a half-width beyond it.

    >>> made = numeric_question(0, 100, 1.0, 2.0)
    >>> [row.name for row in made.rows if "optimal" not in row.name]
    ['piecewise mechanism', 'Laplace noise', 'without privacy']
    >>> len(made.grid), round(made.rows[0].variance / made.rows[-1].variance)
    (9, 13)
    """
    low, high, epsilon = number(low, "low", "a number"), number(high, "high", "a number"), positive_epsilon(epsilon)
    if not low < high:
        raise invalid("range", "low below high", (low, high))
    width = number(half_width, "half_width", "a positive number")
    if not 0 < width < high - low:
        raise invalid("half_width", f"a number between 0 and {high - low:g}", width)
    fine = np.linspace(low, high, FINE) if pilot is None else np.clip(np.asarray(pilot, dtype=np.float64), low, high)
    if fine.ndim != 1 or len(fine) < 2 or not np.isfinite(fine).all():
        raise invalid("pilot", "at least two numbers", f"shape {fine.shape}")
    z = two_sided(level)

    def row(name: str, variance: float) -> NumericRow:
        return NumericRow(name, variance, math.ceil(z**2 * variance / width**2))

    tried = []
    with watched(time_limit, progress) as deadline:
        for turn_number, points in enumerate(POINTS):
            grid, turn = np.linspace(low, high, points), deadline.turn(turn_number, len(POINTS))
            wanted = FisherInformation(_shares(fine, grid), COptimal(grid))
            design = optimal_channel(wanted, LocalDP(epsilon), **turn.passed)
            tried.append((row(f"optimal channel on {points} points", float(design.value)), grid, design))
    best = min(tried, key=lambda way: way[0].variance)
    half = (high - low) / 2
    scaled = (fine - (low + high) / 2) / half
    spread = float(np.var(fine))
    others = [row("Laplace noise", spread + 2 * ((high - low) / epsilon) ** 2), row("without privacy", spread)]
    if epsilon <= 20:
        others.append(
            row("piecewise mechanism", spread + half**2 * float(np.mean(piecewise(epsilon).variance(scaled))))
        )
    rows = sorted([way for way, *_ in tried] + others, key=lambda way: way.variance)
    rows.sort(key=lambda way: way.name == "without privacy")
    return NumericQuestion(low, high, epsilon, best[1], best[2], tuple(rows))


def _shares(numbers: Array, grid: Array) -> Array:
    """The shares of the grid points after numbers were moved to them at random."""
    moved = moved_to(numbers, grid).sum(axis=0)
    return distribution(np.maximum(moved, 1e-9) / np.maximum(moved, 1e-9).sum(), "pilot")


def moved_to(numbers: Array, grid: Array) -> Array:
    """(n, points) the probabilities with which numbers are moved to the grid points around them, their mean kept."""
    below, share = _around(numbers, grid)
    moves, rows = np.zeros((len(numbers), len(grid))), np.arange(len(numbers))
    moves[rows, below] = 1 - share
    moves[rows, below + 1] += share
    return moves


def _around(numbers: Array, grid: Array) -> tuple[Any, Array]:
    """The position of the grid point at or below each number, and how far the number is on the way to the next one."""
    step = grid[1] - grid[0]
    below = np.clip(((numbers - grid[0]) / step).astype(int), 0, len(grid) - 2)
    return below, (numbers - grid[below]) / step


MAX_OPTIONS = 10
"""The most options of a question. The sets of more options are too many to list with their reports."""

MAX_SEARCHED = 3
"""Up to this many options, the best of all channels over the sets is found, with a certificate."""


@dataclass(frozen=True, eq=False)
class SetDesign(Result):
    """One way to ask: a `channel` over the sets, and the largest `variance` of an option's share for one respondent.

    why : what the channel does, in words. respondents : the number needed for the half-width.
    """

    name: str
    channel: Channel
    variance: float
    respondents: int
    why: str


@dataclass(frozen=True, eq=False, repr=False)
class MultiSelect(Rows[SetDesign]):
    """A question of which any number of J options may be chosen; made by `multi_select`.

    options : the J options. epsilon : in nats, for the whole answer.
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
        """The share of each option from reports of a design's channel, the best one by default [Rao]."""
        used = self.best if design is None else design
        return estimate_contrasts(reports, used.channel, _members(len(self.options)).T, self.options)

    def __repr__(self) -> str:
        lines = [f"MultiSelect({len(self.options)} options, epsilon {ceil_digits(self.epsilon)})"]
        lines += [f"  {way.name}: {way.respondents:,} respondents; {way.why}" for way in self.designs]
        return "\n".join(lines)


def multi_select(
    options: Sequence[Label], epsilon: float, half_width: float = 0.05, level: float = 0.95
) -> MultiSelect:
    """Compare ways to ask a question of which any number of options may be chosen, within one `epsilon` for all [DJW].

    options : 2 to 10 of them. epsilon : in nats. half_width, level : of the interval of an option's share.

    It compares four ways: the best of all channels over the 2^J sets, with its certificate (up to three options); a
    report of a whole set, likely if it differs from the answer in few options; a coin with epsilon/J for each option;
    and one option, drawn at random, with all of epsilon. The numbers of respondents hold if all sets are equally
    likely. `InvalidInput` for other values.

    >>> made = multi_select(["cash", "card", "phone"], 1.0)
    >>> made.best.name, made.best.respondents, made.designs[1].why
    ('one option each, drawn at random', 5397, 'no channel over the sets needs fewer')
    """
    named = distinct_labels(options, len(options), "options")
    epsilon, j = positive_epsilon(epsilon), len(named)
    if not 2 <= j <= MAX_OPTIONS:
        raise invalid("options", f"2 to {MAX_OPTIONS}", j)
    if not 0 < half_width < 1:
        raise invalid("half_width", "a number between 0 and 1", half_width)
    z = two_sided(level)

    def made(name: str, channel: Channel, variance: float, why: str) -> SetDesign:
        return SetDesign(name, channel, variance, math.ceil(z**2 * variance / half_width**2), why)

    slopes = [_slope(j, epsilon, radius) for radius in range(j)]
    radius = int(np.argmax(slopes))
    near = "the answer itself" if radius == 0 else f"the sets that differ from the answer in at most {radius}"
    split, whole = math.tanh(epsilon / j / 2), math.tanh(epsilon / 2)
    designs = [
        made("a whole set", _ball(named, epsilon, radius), 0.25 / slopes[radius] ** 2, f"likely reports are {near}"),
        made("the budget split", _coins(named, epsilon / j), 0.25 / split**2, f"every coin has only epsilon/{j}"),
        made("one option each, drawn at random", _drawn(named, epsilon), 0.25 * j / whole**2,
             f"a full coin, but of 1 in {j} respondents for each option"),
    ]  # fmt: skip
    if j <= MAX_SEARCHED:
        sets = 2**j
        members = _members(j)
        wanted = FisherInformation(np.full(sets, 1 / sets), AOptimal(members @ members.T), inputs=_names(named))
        searched = optimal_channel(wanted, LocalDP(epsilon))
        proof = "no channel over the sets needs fewer" if searched.certified else "not certified"
        designs.append(made("best channel over the sets", searched.channel, searched.value / j, proof))
    # Ways that need the same number within the tolerance of a certificate: the one from the search is not put first.
    designs.sort(key=lambda way: (round(math.log(way.variance), 6), way.name == "best channel over the sets"))
    return MultiSelect(named, epsilon, tuple(designs))


def _ball(options: tuple[Label, ...], epsilon: float, radius: int) -> Channel:
    """The channel whose reports within `radius` options of the answer are e^epsilon times likelier than the others."""
    likely, rare = _probabilities(len(options), epsilon, radius)
    bits = _members(len(options)).astype(np.int8)
    distance = (bits[:, None, :] != bits[None, :, :]).sum(axis=2)
    raw = np.where(distance <= radius, likely, rare)
    return Channel(raw / raw.sum(axis=1, keepdims=True), _names(options), _names(options))


def _coins(options: tuple[Label, ...], epsilon: float) -> Channel:
    """A coin for each option; the reports are sets."""
    matrix = np.ones((1, 1))
    for _ in options:  # the first option is the last factor, since sets are ordered so
        matrix = np.asarray(np.kron(matrix, randomized_response(2, epsilon).matrix), dtype=np.float64)
    return Channel(matrix / matrix.sum(axis=1, keepdims=True), _names(options), _names(options))


def _drawn(options: tuple[Label, ...], epsilon: float) -> Channel:
    """One option, drawn at random, through a coin: a report is the option and yes or no."""
    coin, members = randomized_response(2, epsilon).matrix, _members(len(options)).astype(int)
    parts = [coin[members[:, place]] / len(options) for place in range(len(options))]
    labels = [f"{option}: {word}" for option in options for word in ("no", "yes")]
    return Channel(np.hstack(parts), _names(options), labels)


def _probabilities(j: int, epsilon: float, radius: int) -> tuple[float, float]:
    """The probabilities of a report inside and outside the ball around the answer."""
    inside = sum(math.comb(j, d) for d in range(radius + 1))
    ratio = math.exp(-toward_privacy(epsilon))
    likely = 1 / (inside + (2**j - inside) * ratio)
    return likely, likely * ratio


def _slope(j: int, epsilon: float, radius: int) -> float:
    """Pr(an option's bit is kept) - Pr(it is changed). Only reports inside the ball count; outside the two cancel."""
    likely, rare = _probabilities(j, epsilon, radius)
    kept = sum(math.comb(j - 1, d) - (math.comb(j - 1, d - 1) if d else 0) for d in range(radius + 1))
    return (likely - rare) * kept


def _names(options: tuple[Label, ...]) -> tuple[str, ...]:
    rows = _members(len(options)).tolist()
    return tuple(" + ".join(str(o) for o, chosen in zip(options, row, strict=True) if chosen) or "none" for row in rows)


def _members(j: int) -> Array:
    """(2^j, j) the sets as rows of 0 and 1, the empty one first."""
    return np.asarray((np.arange(2**j)[:, None] >> np.arange(j)) & 1, dtype=np.float64)
