"""What raises multipliers: the cheaper of two ways for each simplex, and one raise for all of them."""

import numpy as np
import pytest

from ldpopt.design.several_hypotheses.proof import Raise
from ldpopt.numbers.enclosures import EXACT, FLOAT

ETA = 0.25


def three():
    """Three simplices with two pairs each: the first is cheaper by rows, the others by pairs."""
    delta = np.array([0.1, 5.0, 7.0])
    profits = np.array([[4.0, 4.0], [1.0, 0.5], [0.25, 2.0]])
    shares = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 0.5]])
    return Raise(delta, profits, shares)


def test_each_way_has_its_cost():
    """By rows delta, by pairs eta times the sums of profits and shares."""
    by_rows, by_pairs = three().cost(ETA)
    assert by_rows.tolist() == [0.1, 5.0, 7.0]
    assert by_pairs.tolist() == [ETA * 8 * 2, ETA * 1.5 * 3, ETA * 2.25 * 3.5]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_pairs_that_are_no_numbers_cost_infinitely_much(bad):
    """A profit that is not finite is never the cheaper way."""
    broken = Raise(np.array([1.0]), np.array([[bad, 0.0]]), np.array([[1.0, 0.0]]))
    assert broken.cost(ETA)[1].tolist() == [np.inf]
    assert float(broken.total(FLOAT.of(ETA)).upper) == 1.0


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
def test_one_raise_serves_all_simplices(arithmetic):
    """The largest delta of those raised by rows, and eta times the sums of the largest others."""
    total = three().total(arithmetic.of(ETA))
    exact = 0.1 + ETA * (1.0 + 2.0) * (3.0 + 1.0)
    assert float(total.lower) <= exact <= float(total.upper)
    assert float(total.upper) == pytest.approx(exact, rel=1e-12)
    rows = Raise(*(part[:1] for part in vars(three()).values())).total(arithmetic.of(ETA))
    assert float(rows.upper) == pytest.approx(0.1, rel=1e-15)
    nothing = Raise(*(part[:0] for part in vars(three()).values())).total(arithmetic.of(ETA))
    assert float(nothing.upper) == 0.0
