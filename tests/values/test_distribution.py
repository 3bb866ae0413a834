"""Probability vectors and parameters are checked once, with errors that say what and where."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpopt.errors import InvalidInput
from ldpopt.values.distribution import (
    distribution,
    finite_array,
    from_counts,
    number,
    positive_epsilon,
    positive_integer,
    unit_interval,
)


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


WEIGHTS = hnp.arrays(float, st.integers(1, 8), elements=st.floats(0, 1e6)).filter(lambda w: w.sum() > 0)


@given(WEIGHTS)
def test_counts_become_a_distribution(weights):
    """from_counts gives the weights over their sum, read-only, summing to one."""
    p = from_counts(weights)
    exact = [float(Fraction(w) / sum(map(Fraction, weights.tolist()))) for w in weights.tolist()]
    np.testing.assert_allclose(p, exact, rtol=1e-14, atol=0)
    assert abs(math.fsum(p) - 1) < 1e-15
    assert not p.flags.writeable


@given(WEIGHTS)
def test_a_distribution_is_a_checked_copy(weights):
    """distribution keeps the values to rounding, copies them and freezes the copy."""
    given_ = weights / weights.sum()
    p = distribution(given_)
    np.testing.assert_allclose(p, given_, rtol=1e-15)
    given_[0] = 7
    assert p[0] <= 1
    with pytest.raises(ValueError, match="read-only"):
        p[0] = 0.5


def test_the_tolerance_is_one_part_in_a_billion():
    """A sum off by less than 1e-9 is divided out, one off by more is refused."""
    p = distribution([0.5, 0.5 + 9e-10])
    assert math.fsum(p) == pytest.approx(1, abs=2e-16)
    with says(
        "distribution: expected entries that sum to 1 within 1e-09 (divide counts by their sum), got 1.000000002"
    ):
        distribution([0.5, 0.500000002])
    with says("got 0.999999998"):
        distribution([0.5, 0.499999998])


def test_counts_are_divided_with_one_rounding():
    """Shares of whole numbers are the doubles nearest to them, whatever their size: ten of a hundred are 0.1."""
    for scale in (1, 3, 10**6):
        assert from_counts([10 * scale, 90 * scale]).tolist() == [0.1, 0.9]
    assert from_counts([1, 2, 7]).tolist() == [0.1, 0.2, 0.7]


def test_huge_counts_do_not_overflow():
    """Counts near the largest double give their distribution."""
    assert from_counts([1e308, 1e308]).tolist() == [0.5, 0.5]
    assert from_counts(np.array([3, 1], dtype=np.uint8)).tolist() == [0.75, 0.25]


@pytest.mark.parametrize(
    "values", [[1, 0], (1, 0), np.array([1, 0]), np.array([True, False]), [Fraction(1), 0], [Decimal(1), Decimal(0)],
               np.array([1, 0], dtype=np.float16), np.array([1, 0], dtype=object)],
)  # fmt: skip
def test_every_kind_of_number_is_taken(values):
    """Lists, tuples, integers, booleans, fractions and decimals make the same distribution."""
    p = distribution(values)
    assert p.dtype == np.float64
    assert p.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, math.nan], "p0: expected finite numbers, got nan at entry 1"),
        ([math.inf, 0], "p0: expected finite numbers, got inf at entry 0"),
        ([-0.5, 1.5], "p0: expected non-negative entries, got -0.5 at entry 0"),
        ([], "p0: expected at least one entry, got an empty array"),
        ([0.5, 0.4], "p0: expected entries that sum to 1 within 1e-09 (divide counts by their sum), got 0.9"),
        ([0, 0], "p0: expected entries that sum to 1 within 1e-09 (divide counts by their sum), got 0.0"),
        ([[0.5, 0.5]], "p0: expected 1 dimension, got shape (1, 2)"),
        (1.0, "p0: expected 1 dimension, got shape ()"),
        ("abc", "p0: expected an array of numbers, got 'abc'"),
        (["a", "b"], "p0: expected an array of numbers, got ['a', 'b']"),
        (["0.5", "0.5"], "p0: expected an array of numbers, got ['0.5', '0.5']"),
        ([0.5, None], "p0: expected finite numbers, got nan at entry 1"),
        (None, "p0: expected"),
        ([1j, 1], "p0: expected an array of numbers, got [1j, 1]"),
        ([[1], [1, 2]], "p0: expected an array of numbers, got [[1], [1, 2]]"),
        ({"a": 1}, "p0: expected an array of numbers (a pandas Series keeps its labels), got {'a': 1}"),
        ([10**400, 1], "p0: expected an array of numbers, got [1000"),
        (np.array(["2024-01-01"], dtype="datetime64[D]"), "p0: expected an array of numbers"),
    ],
)
def test_values_that_are_not_distributions_are_refused(values, message):
    """A value that is not a probability vector is an error with the argument, the value and the entry."""
    with says(message):
        distribution(values, "p0")


def test_the_size_is_checked_first():
    """A vector of the wrong length is reported as such."""
    with says("q: expected 3 entries, got 2"):
        distribution([0.5, 0.5], "q", size=3)


@pytest.mark.parametrize("counts", [[], [0, 0], [-1, 2]])
def test_bad_counts_are_refused(counts):
    """Empty, all-zero and negative counts are refused."""
    with says("counts: expected non-negative counts with a positive sum, got "):
        from_counts(counts)


def test_counts_must_be_numbers():
    """Counts that are not finite numbers are errors with the entry."""
    with says("ages: expected finite numbers, got nan at entry 1"):
        from_counts([1, math.nan], "ages")


def test_matrices_say_row_and_column():
    """A bad entry of a matrix is located by row and column."""
    with says("m: expected finite numbers, got inf at (1, 0)".replace("at (", "at entry (")):
        finite_array([[0, 1], [math.inf, 1]], "m", 2)
    with says("m: expected 2 dimensions, got shape (2,)"):
        finite_array([0, 1], "m", 2)


@pytest.mark.parametrize("value", [1e-9, 0.5, 1, np.float32(2), np.int64(3), Fraction(1, 2), 700])
def test_epsilons_that_are_taken(value):
    """Positive numbers of every kind up to 700 nats are epsilons."""
    assert positive_epsilon(value) == float(value)


@pytest.mark.parametrize("value", [0, -1, 9e-10, 701, 1e300])
def test_epsilons_out_of_range_are_refused(value):
    """Zero, negative, tiny and huge epsilons are errors that state the range."""
    with says(f"epsilon: expected a number of nats between 1e-09 and 700, got {float(value)}"):
        positive_epsilon(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", b"1", None, True, [1], 1j, 10**400])
def test_values_that_are_not_numbers_are_refused(value):
    """Text, booleans, lists, complex numbers, infinities and NaN are refused in every scalar argument."""
    with says("epsilon: expected a positive finite number of nats, got "):
        positive_epsilon(value)
    with says("eta: expected a number in [0, 1], got "):
        unit_interval(value, "eta")
    with says("weight: expected a finite number, got "):
        number(value, "weight")


@pytest.mark.parametrize("value", [-1e-300, 1.0000001, 2, -1])
def test_numbers_outside_the_unit_interval_are_refused(value):
    """Numbers outside [0, 1] are refused."""
    with says(f"eta: expected a number in [0, 1], got {float(value)}"):
        unit_interval(value, "eta")


def test_the_unit_interval_is_closed():
    """Zero and one belong to the unit interval."""
    assert (unit_interval(0, "eta"), unit_interval(1, "eta")) == (0.0, 1.0)


@pytest.mark.parametrize("value", [0, -3, 1.0, 2.5, True, "2", None, math.nan])
def test_values_that_are_not_positive_integers_are_refused(value):
    """Only integers from the minimum up are counts; floats and booleans are not."""
    with says("k: expected an integer of at least 1, got "):
        positive_integer(value, "k")


def test_positive_integers_are_accepted_from_the_minimum():
    """Python and numpy integers are taken, down to the stated minimum."""
    assert positive_integer(np.int32(4), "k") == 4
    assert type(positive_integer(np.int32(4), "k")) is int
    assert positive_integer(0, "k", minimum=0) == 0
    with says("k: expected an integer of at least 2, got 1"):
        positive_integer(1, "k", minimum=2)
