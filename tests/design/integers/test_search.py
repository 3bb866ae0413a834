"""Moves of single units between columns of integers: the best ones are found without a look at all."""

import numpy as np
import pytest

from ldpopt import Denominator, LocalDP
from ldpopt.design import FisherInformation
from ldpopt.design.integers.search import MOVES_PER_BATCH, Moves, Task, worth_of
from ldpopt.design.problems.problem import Problem


def moves_and_weights(seed):
    """The search for a random pilot, and weights that some random moves lead to."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(4, 8))
    within = [LocalDP(2.0), Denominator(60)]
    task = Task.from_problem(Problem.build(FisherInformation(rng.dirichlet(np.ones(k)) * 0.9 + 0.1 / k), within))
    moves, weights = Moves(task, worth_of(task)), np.full((k, k), 60 // (2 * k) + 1)
    weights[np.diag_indices(k)] += 60 - weights.sum(axis=1)
    for _ in range(12):
        weights = moves._random(weights, rng)
    return moves, weights


@pytest.mark.parametrize("best", [1, 20])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_moves_are_those_of_all(seed, best):
    """Bounds rule moves out; those that are left hold the best ones of a look at every move."""
    moves, weights = moves_and_weights(seed)
    near = moves._neighbours(weights)
    numbers, worths = moves.worth.after(near, best)
    every = np.array([moves.worth_of_weights(near.weights(int(move))) for move in near.moves])
    order = np.argsort(-every, kind="stable")[:best]
    better = order[every[order] > moves.worth_of_weights(weights)]
    assert len(better)
    found = numbers[np.argsort(-worths, kind="stable")[: len(better)]]
    np.testing.assert_allclose(
        [moves.worth_of_weights(near.weights(int(move))) for move in found], every[better], rtol=1e-12
    )
    assert MOVES_PER_BATCH <= len(numbers) < len(near.moves)


def test_columns_of_too_low_a_rank_have_no_move_that_helps():
    """Where two columns more cannot tell all answers apart, no move is tried; where they can, all are."""
    moves, weights = moves_and_weights(0)
    k = len(weights)
    constant = np.full((k, 1), 60)
    numbers, _ = moves.worth.after(moves._neighbours(constant), 1)
    assert not len(numbers)
    few = np.hstack([weights[:, : k - 2], weights[:, k - 2 :].sum(axis=1, keepdims=True)])
    near = moves._neighbours(few)
    numbers, _ = moves.worth.after(near, 1)
    assert len(numbers) == len(near.moves) > 0
