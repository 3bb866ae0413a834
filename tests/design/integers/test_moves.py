"""Moves of units between the columns of integer channels: their worth by updates is that of the new columns."""

import numpy as np
import pytest

from ldpopt import Denominator, LocalDP
from ldpopt.design import AOptimal, FisherInformation, Rounded, optimal_channel
from ldpopt.design.integers.search import Moves
from ldpopt.design.integers.task import Task
from ldpopt.design.integers.worth import VarianceWorth, worth_of_weights
from ldpopt.design.problems.problem import Problem
from ldpopt.errors import InvalidInput


@pytest.mark.parametrize("kept", [True, False])
def test_moves_change_the_worth_by_the_predicted_update(kept):
    """The rank-three update of the variances is that of the new columns."""
    rng = np.random.default_rng(3)
    pilot, factor = rng.dirichlet(np.ones(6)), rng.normal(size=(6, 4))
    problem = Problem.build(FisherInformation(pilot, AOptimal()), [LocalDP(2.0), Denominator(100)])
    worth = VarianceWorth(pilot, factor)
    weights = np.full((6, 6), 9) + 46 * np.eye(6, dtype=np.int64)
    neighbors = Moves(Task.from_problem(problem, False), worth)._neighbours(weights if kept else weights[:, ::-1])
    before = worth.parts(neighbors.columns)
    takers, givers, places = neighbors.changed(neighbors.moves)
    sums = before.sum(axis=0) + worth.parts(takers) + worth.parts(givers) - before[places].sum(axis=1)
    for moves, after in worth.after(neighbors, worth_of_weights(worth, neighbors.columns)):
        assert len(moves)
        assert after == pytest.approx(worth.value(sums)[np.searchsorted(neighbors.moves, moves)], rel=1e-9)


def test_a_search_begins_at_a_given_channel():
    utility, limits = FisherInformation(np.full(3, 1 / 3), AOptimal()), [LocalDP(1.0), Denominator(20)]
    start = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
    made = optimal_channel(utility, limits, method=Rounded(start), certify=False)
    assert made.value <= optimal_channel(utility, limits, method=Rounded(), certify=False).value * 1.05
    with pytest.raises(InvalidInput, match="3 inputs"):
        optimal_channel(utility, limits, method=Rounded(start[:2]), certify=False)
