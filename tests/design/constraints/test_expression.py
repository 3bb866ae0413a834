"""A function of the channel's matrix is a constraint: posed, measured of the design, and left out of its bound."""

import cvxpy as cp
import numpy as np
import pytest

from ldpopt import Divergence, InvalidInput, LocalDP, optimal_channel
from ldpopt.channel import Channel
from ldpopt.design import BranchAndBound, ExpectedLoss, Outputs
from ldpopt.design.problems.problem import ExpressionConstraint
from ldpopt.divergences import KL
from ldpopt.errors import SolverError

QUESTION = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])


def first(q):
    """The first output has at most a tenth of all probability."""
    return cp.sum(q[:, 0]) <= 0.3


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("others", "method"), [([LocalDP(1.0)], None), ([LocalDP(1.0), Outputs(2)], BranchAndBound(nodes=50))]
)
def test_a_function_of_the_matrix_holds_for_the_very_outputs_that_it_names(others, method) -> None:
    """Outputs are neither merged nor sorted, so that the first one of the design is the first one of the function."""
    design = optimal_channel(QUESTION, [*others, first], method=method)
    assert design.channel.matrix[:, 0].sum() <= 0.3 + 1e-7
    assert all(g.value <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))
    assert 0 < design.value <= design.upper_bound


def test_the_bound_ignores_the_users_function() -> None:
    """What a function asks is unknown to proofs: the bound is the optimum of the other constraints."""
    free = optimal_channel(QUESTION, LocalDP(1.0))
    design = optimal_channel(QUESTION, [LocalDP(1.0), first])
    assert design.upper_bound == pytest.approx(free.upper_bound, rel=1e-9)
    assert design.verify()
    binding = optimal_channel(QUESTION, [LocalDP(1.0), lambda q: [cp.abs(q[0, y] - q[2, y]) <= 0.05 for y in range(4)]])
    assert binding.value < 0.5 * free.value
    assert not binding.certified


def test_a_loss_under_a_function_is_the_optimum_by_hand() -> None:
    """Guess one of two answers with decision 0 at most .3 in sum: Q = (.3 t, .3 (1-t)) with t/(1-t) = e."""
    design = optimal_channel(ExpectedLoss([0.5, 0.5], 1 - np.eye(2)), [LocalDP(1.0), first])
    high = 0.3 * np.e / (1 + np.e)
    assert design.value == pytest.approx(-0.5 * (1 - high + 0.3 - high), abs=1e-7)


def test_the_measure_is_the_largest_violation() -> None:
    """Of several constraints, the worst counts, in either direction; none is violated at 0."""
    both = ExpressionConstraint(lambda q: [cp.sum(q[:, 0]) <= 0.3, q[0, 1] >= 0.95])
    assert both.measure(Channel([[0.1, 0.9], [0.4, 0.6]])).value == pytest.approx(0.2)
    assert ExpressionConstraint(first).measure(Channel([[0.1, 0.9], [0.1, 0.9]])).value == 0


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda q: q[:, 9] <= 0, "IndexError"),
        (lambda q: 3, "got 'int'"),
        (lambda q: cp.sqrt(q[0, 0]) <= 0.3, "as cvxpy's rules see them"),
    ],
)
def test_a_wrong_function_is_refused_in_words(function, why) -> None:
    """What fails, gives no constraint, or is not convex is said, with what was expected."""
    with pytest.raises(InvalidInput, match=why):
        optimal_channel(QUESTION, [LocalDP(1.0), function])


def test_an_infeasible_expression_is_refused() -> None:
    """A function that no channel satisfies ends in the solver's reason."""
    with pytest.raises(SolverError, match="no channel meets all constraints"):
        optimal_channel(QUESTION, [LocalDP(1.0), lambda q: cp.sum(q) <= -1])
