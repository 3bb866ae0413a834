import math
from fractions import Fraction

import pytest

from ldpopt.composition import k_fold, largest_count, largest_epsilon
from ldpopt.errors import InvalidInput
from ldpopt.privacy import ApproximateDP, PureDP


@pytest.mark.parametrize(
    ("total", "delta", "count", "erasure"), [(1.0, 1e-6, 100, 0.0), (3.0, 1e-5, 1000, 0.3), (0.5, 0.0, 7, 0.0)]
)
def test_largest_epsilon_errs_to_the_private_side(total, delta, count, erasure):
    """The composition of the result meets the target by Theorem 2, and a slightly larger epsilon does not."""
    found = largest_epsilon(ApproximateDP(total, delta), count, erasure).epsilon
    eta = (1 - erasure) * math.tanh(found / 2)
    assert k_fold(found, 0.0, eta, count).epsilon_at(delta * (1 + 1e-9)) <= total * (1 + 1e-12)
    more = found * (1 + 1e-5)
    assert k_fold(more, 0.0, (1 - erasure) * math.tanh(more / 2), count).epsilon_at(delta) > total


def test_pure_target_is_the_even_share():
    """Without delta the largest epsilon is the total over the count, rounded down."""
    found = largest_epsilon(ApproximateDP(0.7, 0.0), 7).epsilon
    assert found <= 0.1
    assert found == pytest.approx(0.1, rel=1e-8)


def test_largest_count_is_the_last_that_fits():
    """The count meets the target and one more does not."""
    target = ApproximateDP(2.0, 1e-6)
    count = largest_count((0.1, 0.0, 0.03), target)
    assert k_fold(0.1, 0.0, 0.03, count).delta_at(2.0) <= 1e-6 < k_fold(0.1, 0.0, 0.03, count + 1).delta_at(2.0)
    assert largest_count((3.0,), target) == 0
    assert largest_count((0.1, 0.0, 0.0), target, limit=50) == 50


def test_impossible_and_bad_targets():
    """A target that nothing meets, or that is no (epsilon, delta), is refused."""
    with pytest.raises(InvalidInput, match="meet"):
        largest_epsilon(ApproximateDP(0.0, 0.0), 3)
    for call in (
        lambda: largest_epsilon(PureDP(1.0), 3),
        lambda: largest_epsilon(ApproximateDP(1.0, 0.1), 0),
        lambda: largest_epsilon(ApproximateDP(1.0, 0.1), 3, 1.5),
        lambda: largest_count((0.1,), ApproximateDP(1.0, 0.1), 0),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize(("epsilon", "total", "count"), [(0.5, 1.0, 2), (0.25, 1.0, 4), (0.1, 0.3, 2), (0.125, 12, 96)])
def test_a_pure_budget_is_used_up(epsilon, total, count):
    """With delta 0 the count is that of the rational quotient: two of 0.5 fit into 1, three of 0.1 exceed 0.3."""
    assert largest_count((epsilon,), ApproximateDP(total, 0.0)) == count == int(Fraction(total) / Fraction(epsilon))
