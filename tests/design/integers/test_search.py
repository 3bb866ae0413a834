"""Moves between columns of integers: the best ones are found without a look at all."""

import numpy as np
import pytest

from ldpopt import Denominator, LocalDP
from ldpopt.design import FisherInformation
from ldpopt.design.integers.search import Moves
from ldpopt.design.integers.task import Task
from ldpopt.design.integers.worth import MOVES_PER_BATCH, worth_of
from ldpopt.design.problems.problem import Problem


def moves_and_weights(seed):
    """The search for a random pilot, and weights that some random moves lead to."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(4, 8))
    within = [LocalDP(2.0), Denominator(60)]
    task = Task.from_problem(Problem.build(FisherInformation(rng.dirichlet(np.ones(k)) * 0.9 + 0.1 / k), within))
    moves, weights = Moves(task, worth_of(task)), np.full((k, k), 60 // (2 * k) + 1)
    weights[np.diag_indices(k)] += 60 - weights.sum(axis=1)
    least = 3 * moves.worth_of_weights(weights)  # The error is less than three times as large.
    for _ in range(12):
        changed = moves._random(moves._neighbours(weights), rng)
        weights = changed if moves.worth_of_weights(changed) > least else weights
    return moves, weights


def worths_of_all(moves, near):
    return np.array([moves.worth_of_weights(near.moved(near.columns, int(move))) for move in near.moves])


@pytest.mark.parametrize("seed", range(4))
def test_every_move_that_helps_is_found_good_ones_first(seed):
    """Bounds leave moves out, of which none helps; the worth of the others is that of their columns."""
    moves, weights = moves_and_weights(seed)
    near = moves._neighbours(weights)
    every, value = worths_of_all(moves, near), moves.worth_of_weights(weights)
    (first, first_worths), (others, other_worths) = moves.worth.after(near, moves.worth_of_weights(near.columns))
    found, worths = np.concatenate([first, others]), np.concatenate([first_worths, other_worths])
    assert len(set(found)) == len(found) < len(near.moves)
    helps = every > value + 1e-9 * abs(value)
    assert set(near.moves[helps]) <= set(found)
    is_helpful = np.isin(found, near.moves[helps])
    np.testing.assert_allclose(worths[is_helpful], every[np.searchsorted(near.moves, found[is_helpful])], rtol=1e-9)
    assert (worths[~is_helpful] <= value + 1e-6 * abs(value)).all()
    assert len(first) <= MOVES_PER_BATCH
    assert first_worths.max() > value


@pytest.mark.parametrize("seed", range(4))
def test_a_climb_ends_where_no_move_helps(seed):
    moves, weights = moves_and_weights(seed)
    end = moves.climb(weights)
    value = moves.worth_of_weights(end)
    assert moves.task.allows(end)
    assert (end.sum(axis=1) == moves.task.total).all()
    assert moves.worth_of_weights(weights) < value
    assert worths_of_all(moves, moves._neighbours(end)).max() <= value + 1e-9 * abs(value)


def test_columns_of_too_low_a_rank_have_no_move_that_helps():
    """Where two columns more cannot tell all answers apart, no move is tried; where they can, all are."""
    moves, weights = moves_and_weights(0)
    k = len(weights)
    constant = np.full((k, 1), 60)
    ((numbers, _),) = moves.worth.after(moves._neighbours(constant), -np.inf)
    assert not len(numbers)
    few = np.hstack([weights[:, : k - 2], weights[:, k - 2 :].sum(axis=1, keepdims=True)])
    near = moves._neighbours(few)
    ((numbers, _),) = moves.worth.after(near, moves.worth_of_weights(near.columns))
    assert len(numbers) == len(near.moves) > 0
