"""Column generation: a master program over a few columns, and an oracle that prices all columns and proves a bound.

    repeat:  solve the master over the pool;  price every column at its dual values;  prove a bound from these;
             end where the bound is near the value or no column gains;  else columns that gain join the pool.

Columns that are *listed* are complete: their oracle prices each of them, and its bound holds for every channel. Other
oracles search, and what they prove is what a relaxation shows.

Loops of their own have these, each for one reason: `ratios.method` and `ratios.method_tangents` cut intervals and drop
them again, so that the pool does not grow; `estimation.program_mixture.newton` and `estimation.method_thresholds` solve
early rounds coarsely, as fine as their columns gain, and begin each round where the one before ended;
`hypothesis_sets.method` generates rows (pairs of hypotheses), and its master is a game.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ldpopt.errors import SolverError
from ldpopt.values.deadline import UNLIMITED, Deadline

Rows = npt.NDArray[Any]
Pool = TypeVar("Pool")
Solved = TypeVar("Solved")
Columns = TypeVar("Columns")
Multipliers = TypeVar("Multipliers")
Met = TypeVar("Met", contravariant=True)
Ended = TypeVar("Ended", contravariant=True)
Proved = TypeVar("Proved", covariant=True)


class Master(Protocol[Pool, Solved, Met]):
    """A program over the columns of a pool."""

    def solve(self, pool: Pool, number: int) -> Solved:
        """Solve it over the pool in the round of this number, from 0. Raises `SolverError` where no solver can."""

    def value(self, solved: Solved) -> float:
        """Return the value of a solution, which is to be made large."""

    def join(self, pool: Pool, columns: Met) -> Pool | None:
        """Return the pool with the columns that gain the most; None where none is new."""


class Oracle(Protocol[Ended, Columns, Proved]):
    """What prices columns at the dual values of a solution, and proves bounds from them."""

    def price(self, solved: Ended) -> Columns:
        """Find columns that may gain."""

    def prove(self, solved: Ended, columns: Columns, least: float) -> tuple[float, Proved | None, Columns]:
        """Prove a bound: the bound, its multipliers, and the columns with those that the proof met.

        columns : those of `price`. least : the least bound until now. A bound of inf, without multipliers, where a
        proof is not worth its time.
        """


class Unbounding:
    """The part of a search without bounds, whose pools and columns are arrays of one column in each row."""

    def value(self, solved: Any) -> float:
        """Return nothing: only gains end this search."""
        return 0.0

    def prove(self, solved: Any, columns: Rows, least: float) -> tuple[float, None, Rows]:
        """Prove nothing: all columns are priced after the search."""
        return math.inf, None, columns

    def join(self, pool: Rows, columns: Rows) -> Rows | None:
        """Return the pool with the columns below it."""
        return np.vstack([pool, columns]) if len(columns) else None


@dataclass(frozen=True, eq=False)
class Generated(Generic[Pool, Solved, Multipliers]):
    """The last pool and solution, the least bound with its multipliers (None where nothing was proved), the rounds."""

    pool: Pool
    solved: Solved
    bound: float
    multipliers: Multipliers | None
    rounds: int


def generate(
    master: Master[Pool, Solved, Columns],
    oracle: Oracle[Solved, Columns, Multipliers],
    pool: Pool,
    rounds: int,
    *,
    gap: float | None = None,
    progress: tuple[int, float] | None = None,
    deadline: Deadline = UNLIMITED,
) -> Generated[Pool, Solved, Multipliers]:
    """Generate columns until the bound is near the value, none gains, or the rounds or the time are over.

    pool : the first columns. gap : the relative gap at which generation ends; None goes on while columns gain.
    progress : after how many rounds without progress it ends, and the relative progress that counts.

    Raises `SolverError` where the master has no solution in the first round; a later failure ends the generation.
    """
    solved: Solved | None = None
    best: Multipliers | None = None
    least, reached, idle, number = math.inf, 0.0, 0, 0
    for number in deadline.rounds(range(rounds)):
        try:
            solved = master.solve(pool, number)
        except SolverError:
            if solved is None:
                raise
            break
        value, columns = master.value(solved), oracle.price(solved)
        bound, multipliers, columns = oracle.prove(solved, columns, least)
        if progress is not None:
            moved = bound < least * (1 - progress[1]) or value > reached * (1 + progress[1])
            idle, reached = 1 if moved else idle + 1, max(reached, value)
        if multipliers is not None and (best is None or bound < least):
            least, best = bound, multipliers
        if gap is not None and least <= value + gap * abs(value):
            break
        joined = master.join(pool, columns)
        if joined is None or (progress is not None and idle > progress[0]):
            break
        pool = joined
    assert solved is not None
    return Generated(pool, solved, least, best, number + 1)
