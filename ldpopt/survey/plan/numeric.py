"""Questions whose answer is a number: a grid and a channel for the mean, compared with mechanisms of the literature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.deadline import Progress, watched
from ldpopt.design import COptimal, Design, FisherInformation, LocalDP, optimal_channel
from ldpopt.distribution import Array, distribution, number, positive_epsilon
from ldpopt.errors import invalid
from ldpopt.mechanisms import piecewise
from ldpopt.results import Result
from ldpopt.survey.estimate.estimate import Estimate, estimate_contrasts
from ldpopt.survey.estimate.intervals import two_sided

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
class NumericQuestion(Result):
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

    def _columns(self) -> dict[str, list[Any]]:
        return {name: [getattr(row, name) for row in self.rows] for name in ("name", "respondents")}

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
        step = self.grid[1] - self.grid[0]
        at = np.clip(((x - self.low) / step).astype(int), 0, len(self.grid) - 2)
        up = rng.random(x.shape) < (x - self.grid[at]) / step
        return np.asarray(self.grid[at + up])

    def mean(self, reports: Any) -> Estimate:
        """The mean of the numbers from reports of the channel, unbiased [Rao]."""
        return estimate_contrasts(reports, self.channel, self.grid, ("mean",))

    def __repr__(self) -> str:
        lines = [f"NumericQuestion({self.low:g} to {self.high:g}, epsilon {self.epsilon:g}; grid of {len(self.grid)})"]
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

    found = []
    with watched(time_limit, progress) as deadline:
        for at, points in enumerate(POINTS):
            grid, turn = np.linspace(low, high, points), deadline.turn(at, len(POINTS))
            wanted = FisherInformation(_shares(fine, grid), COptimal(grid))
            design = optimal_channel(wanted, LocalDP(epsilon), **turn.passed)
            found.append((row(f"optimal channel on {points} points", float(design.value)), grid, design))
    best = min(found, key=lambda one: one[0].variance)
    half = (high - low) / 2
    scaled = (fine - (low + high) / 2) / half
    spread = float(np.var(fine))
    others = [
        row("Laplace noise", spread + 2 * ((high - low) / epsilon) ** 2),
        row("without privacy", spread),
    ]
    if epsilon <= 20:
        others.append(
            row("piecewise mechanism", spread + half**2 * float(np.mean(piecewise(epsilon).variance(scaled))))
        )
    rows = sorted([one for one, *_ in found] + others, key=lambda one: one.variance)
    rows.sort(key=lambda one: one.name == "without privacy")
    return NumericQuestion(low, high, epsilon, best[1], best[2], tuple(rows))


def _shares(numbers: Array, grid: Array) -> Array:
    """The shares of the grid points after numbers were moved to them at random."""
    step = grid[1] - grid[0]
    at = np.clip(((numbers - grid[0]) / step).astype(int), 0, len(grid) - 2)
    up = (numbers - grid[at]) / step
    made = np.bincount(at, 1 - up, len(grid)) + np.bincount(at + 1, up, len(grid))
    return distribution(np.maximum(made, 1e-9) / np.maximum(made, 1e-9).sum(), "pilot")
