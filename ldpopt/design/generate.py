"""Column generation: a master program over a few columns, and an oracle that prices all columns and proves a bound.

    repeat:
        solve the master over the pool
        price every column at its dual values
        prove a bound from these
        end if the bound is near the value or no column gains
        else add columns that gain to the pool

Columns that are *listed* are complete: their oracle prices each of them, and its bound holds for every channel. Other
oracles search, and prove the bound of a relaxation.

Three searches have separate loops, each for one reason. `ratios.method` and `ratios.method_tangents` cut intervals and
drop them again, so that the pool does not grow. `estimation.program_mixture.newton` and `estimation.method_thresholds`
solve early rounds only as precisely as their columns gain, and start each round from the previous solution.
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
        """Solve the program over the pool in the round of this number, from 0.

        Raises `SolverError` if no solver can.
        """

    def value(self, solution: Solved) -> float:
        """Return the value of a solution, which is maximized."""

    def join(self, pool: Pool, columns: Met) -> Pool | None:
        """Return the pool with the columns that gain the most; None if none is new."""


class Oracle(Protocol[Ended, Columns, Proved]):
    """A search that prices columns at the dual values of a solution, and proves bounds from them."""

    def price(self, solution: Ended) -> Columns:
        """Find columns that may gain."""

    def prove(self, solution: Ended, columns: Columns, best_bound: float) -> tuple[float, Proved | None, Columns]:
        """Prove a bound and return it, its multipliers, and the columns with those found by the proof.

        columns : those of `price`. best_bound : the least bound so far. The bound is inf, without multipliers, if a
        proof is not worth its time.
        """


class WithoutBounds:
    """Methods of a search without bounds, whose pools and columns are arrays with one column per row."""

    def value(self, solution: Any) -> float:
        """Return zero: only gains end this search."""
        return 0.0

    def prove(self, solution: Any, columns: Rows, best_bound: float) -> tuple[float, None, Rows]:
        """Prove nothing: all columns are priced after the search."""
        return math.inf, None, columns

    def join(self, pool: Rows, columns: Rows) -> Rows | None:
        """Return the pool with the columns appended."""
        return np.vstack([pool, columns]) if len(columns) else None


@dataclass(frozen=True, eq=False)
class GeneratedColumns(Generic[Pool, Solved, Multipliers]):
    """The last pool and solution, the least bound and its multipliers (None without a proof), and the rounds."""

    pool: Pool
    solution: Solved
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
) -> GeneratedColumns[Pool, Solved, Multipliers]:
    """Generate columns until the bound is near the value, none gains, or the rounds or the time are over.

    - `pool` : the first columns.
    - `gap` : the relative gap that ends the generation; None continues while columns gain.
    - `progress` : the number of rounds without progress after which it ends, and the relative progress that counts.

    Raises `SolverError` if the master has no solution in the first round; a later failure ends the generation.
    """
    solution: Solved | None = None
    best_multipliers: Multipliers | None = None
    best_bound, best_value, idle_rounds, number = math.inf, 0.0, 0, 0
    for number in deadline.rounds(range(rounds)):
        try:
            solution = master.solve(pool, number)
        except SolverError:
            if solution is None:
                raise
            break
        value, columns = master.value(solution), oracle.price(solution)
        bound, multipliers, columns = oracle.prove(solution, columns, best_bound)
        if progress is not None:
            has_progressed = bound < best_bound * (1 - progress[1]) or value > best_value * (1 + progress[1])
            idle_rounds, best_value = 1 if has_progressed else idle_rounds + 1, max(best_value, value)
        if multipliers is not None and (best_multipliers is None or bound < best_bound):
            best_bound, best_multipliers = bound, multipliers
        if gap is not None and best_bound <= value + gap * abs(value):
            break
        larger_pool = master.join(pool, columns)
        if larger_pool is None or (progress is not None and idle_rounds > progress[0]):
            break
        pool = larger_pool
    assert solution is not None
    return GeneratedColumns(pool, solution, best_bound, best_multipliers, number + 1)
