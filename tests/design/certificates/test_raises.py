"""What raises multipliers: the cheaper of two ways for each interval, and one raise for all of them."""

import numpy as np
import pytest

from ldpopt.design.certificates.raises import Raise
from ldpopt.enclosures import EXACT, FLOAT

ETA = 0.25


def three():
    """Three intervals with two pairs each: the first is cheaper by rows, the others by pairs."""
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


def test_the_better_of_two_is_taken_for_each_interval():
    """What costs less in its own cheaper way, all three of its arrays; the first where both cost the same."""
    other = Raise(np.array([0.2, 0.5, 9.0]), np.full((3, 2), 0.75), np.full((3, 2), 4.0))
    best = three().better(other, ETA)
    # The cheaper ways cost 0.1, 1.125, 1.97 and 0.2, 0.5, 3.
    assert best.delta.tolist() == [0.1, 0.5, 7.0]
    assert best.profits.tolist() == [[4.0, 4.0], [0.75, 0.75], [0.25, 2.0]]
    assert best.shares.tolist() == [[1.0, 1.0], [4.0, 4.0], [3.0, 0.5]]
    same = Raise(three().delta, three().profits * 2, three().shares / 2)
    assert three().better(same, ETA).profits.tolist() == three().profits.tolist()


def test_intervals_are_taken_and_joined():
    """By positions or a mask, and those of two after each other."""
    some = three().take(np.array([2, 0]))
    assert some.delta.tolist() == [7.0, 0.1]
    masked = three().take(np.array([False, True, False]))
    assert masked.profits.tolist() == [[1.0, 0.5]]
    both = some.and_(masked)
    assert both.delta.tolist() == [7.0, 0.1, 5.0]
    assert both.shares.shape == (3, 2)


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
def test_one_raise_serves_all_intervals(arithmetic):
    """The largest delta of those raised by rows, and eta times the sums of the largest others."""
    total = three().total(arithmetic.of(ETA))
    exact = 0.1 + ETA * (1.0 + 2.0) * (3.0 + 1.0)
    assert float(total.lower) <= exact <= float(total.upper)
    assert float(total.upper) == pytest.approx(exact, rel=1e-12)
    rows = three().take(np.array([0])).total(arithmetic.of(ETA))
    assert float(rows.upper) == pytest.approx(0.1, rel=1e-15)
    nothing = three().take(np.zeros(0, dtype=np.intp)).total(arithmetic.of(ETA))
    assert float(nothing.upper) == 0.0
