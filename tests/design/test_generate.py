"""Column generation: columns join while they gain, and the best bound stays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt.design.generate import generate
from ldpopt.errors import SolverError

RNG = np.random.default_rng(3)
COLUMNS = RNG.random((4, 60))
WORTH = RNG.random(60)
LIMITS = np.ones(4)
WHOLE = -linprog(-WORTH, COLUMNS, LIMITS).fun
"""max WORTH.x subject to COLUMNS x <= 1, x >= 0, over all sixty columns."""


class Knapsack:
    """Master and oracle of this program: a round prices all columns, and one joins."""

    def __init__(self, failing=(), proving=True):
        self.failing, self.proving, self.solves = failing, proving, 0

    def solve(self, pool, number):
        self.solves += 1
        if number in self.failing:
            raise SolverError("no answer")
        solved = linprog(-WORTH[pool], COLUMNS[:, pool], LIMITS)
        return -solved.fun, -solved.ineqlin.marginals, pool

    def value(self, solved):
        return solved[0]

    def price(self, solved):
        gains = WORTH - solved[1] @ COLUMNS
        gains[solved[2]] = 0.0
        return np.array([gains.argmax()]) if gains.max() > 1e-9 else np.array([], dtype=int)

    def prove(self, solved, columns, least):
        prices = solved[1]
        if not self.proving:
            return np.inf, None, columns
        scaled = prices * max(1.0, float((WORTH / (prices @ COLUMNS)).max()))
        return float(scaled @ LIMITS), scaled, columns

    def join(self, pool, columns):
        return np.append(pool, columns) if len(columns) else None


def test_generation_reaches_the_optimum_and_proves_it():
    """Value and bound meet at the optimum over all columns, of which only few have joined."""
    program = Knapsack()
    found = generate(program, program, np.arange(4), 100)
    assert program.value(found.solution) == pytest.approx(WHOLE)
    assert found.bound == pytest.approx(WHOLE)
    assert (found.multipliers @ COLUMNS + 1e-12 >= WORTH).all()
    assert len(found.pool) < 40
    assert found.rounds == program.solves


def test_a_gap_ends_generation_early():
    """With a wide gap the bound is within it, and fewer columns join."""
    program, whole = Knapsack(), Knapsack()
    found = generate(program, program, np.arange(4), 100, gap=0.2)
    assert program.value(found.solution) * 1.2 >= found.bound >= WHOLE
    assert found.rounds < generate(whole, whole, np.arange(4), 100).rounds


def test_a_failure_ends_generation_after_the_first_round_only():
    """What was solved and proved before a failure stays; a first round that fails raises."""
    program = Knapsack(failing=(2,))
    found = generate(program, program, np.arange(4), 100)
    assert found.bound >= WHOLE
    assert len(found.solution[2]) == 5
    with pytest.raises(SolverError):
        generate(Knapsack(failing=(0,)), program, np.arange(4), 100)


def test_an_oracle_without_proof_leaves_an_infinite_bound():
    """An oracle that proves nothing leaves a bound of infinity and no multipliers."""
    program = Knapsack(proving=False)
    found = generate(program, program, np.arange(4), 100)
    assert (found.bound, found.multipliers) == (np.inf, None)
    assert program.value(found.solution) == pytest.approx(WHOLE)


def test_generation_ends_without_progress():
    """Columns that join without moving value or bound end it after the rounds that are allowed."""

    class Idle(Knapsack):
        def solve(self, pool, number):
            self.solves += 1
            return 1.0, np.ones(4), pool

        def prove(self, solved, columns, least):
            return 2.0, solved[1], columns

        def price(self, solved):
            return np.array([0])

    program = Idle()
    assert generate(program, program, np.arange(4), 100, progress=(3, 1e-6)).rounds == 4
