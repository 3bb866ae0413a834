"""Claims are rounded outward, never the other way."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ldpopt.numbers.rounding import SUBNORMAL, ULP, ceil_digits, down, exact_sum, toward_privacy, up

POSITIVE = st.floats(0, 1e300, exclude_min=True)


@given(POSITIVE, st.floats(0, 1000))
@example(5e-324, 4.0)
@example(1.0, 4.0)
@example(2.5, 2.5)
def test_up_covers_the_stated_error(value, ulps):
    """up(v, u) >= v (1 + u 2^-52) exactly, and at most 2 units more."""
    bound = Fraction(value) * (1 + Fraction(ulps) * Fraction(ULP))
    assert Fraction(up(value, ulps)) >= bound
    assert up(value, ulps) <= value * (1 + (ulps + 4) * ULP) + 1e-323


@given(POSITIVE, st.floats(0, 1000))
@example(5e-324, 4.0)
@example(2.5, 2.5)
def test_down_covers_the_stated_error(value, ulps):
    """down(v, u) <= v (1 - u 2^-52) exactly, not negative, and at most 2 units less."""
    bound = Fraction(value) * (1 - Fraction(ulps) * Fraction(ULP))
    assert 0 <= Fraction(down(value, ulps)) <= bound
    assert down(value, ulps) >= value * (1 - (ulps + 4) * ULP) - 1e-323


@pytest.mark.parametrize("value", [0.0, math.inf])
def test_zero_and_infinity_are_exact(value):
    """Zero and infinity need no rounding."""
    assert up(value) == down(value) == value


@given(st.floats(1e-9, 500))
def test_toward_privacy_leaves_room(epsilon):
    """toward_privacy is smaller by at least the rounding of a few entries, and by at most half."""
    smaller = toward_privacy(epsilon)
    assert epsilon / 2 <= smaller < epsilon
    if epsilon > 1e-12 * 2**10:
        assert epsilon - smaller >= min(epsilon / 2, 8 * ULP * max(epsilon, 1)) * 0.9


@given(st.floats(1e-4, 30), st.integers(2, 1000))
def test_a_matrix_of_the_rounded_growth_stays_within_epsilon(epsilon, k):
    """The log of the ratio of two float entries of k-ary randomized response never exceeds epsilon."""
    growth = math.exp(toward_privacy(epsilon))
    high, low = growth / (growth + k - 1), 1 / (growth + k - 1)
    with mpmath.workdps(50):
        assert mpmath.log(mpmath.mpf(high) / mpmath.mpf(low)) <= mpmath.mpf(epsilon)


@given(st.floats(5e-324, 1e300), st.integers(1, 15))
@example(0.1, 1)
@example(1.0, 6)
@example(0.9999999999, 6)
@example(5e-324, 6)
def test_a_printed_guarantee_is_never_below_the_stored_one(value, digits):
    """ceil_digits(v) read back is at least v, and less than one digit more."""
    printed = ceil_digits(value, digits)
    assert float(printed) >= value
    assert Decimal(printed) <= Decimal(value) * (1 + Decimal(10) ** (1 - digits))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.40346601, 6, "0.403467"), (1.0, 6, "1"), (0.0, 6, "0"), (math.inf, 6, "inf"), (1.00000001, 6, "1.00001"),
     (123456.1, 6, "123457"), (1.0986122886681098, 3, "1.1"), (1e-7, 6, "1e-07"), (1234567.0, 3, "1.24e+06"),
     (0.1, 6, "0.1"), (0.5 + 2**-53, 6, "0.5000000001"), (0.5 - 2**-54, 6, "0.5"), (-1.9999999, 6, "-1.99999")],
)  # fmt: skip
def test_printed_numbers_are_short_and_rounded_up(value, digits, text):
    """The text is short and rounded up."""
    assert ceil_digits(value, digits) == text


def test_the_units_of_rounding_are_those_of_floats():
    """Every bound on rounding counts in these: the spacing of floats at one, and the smallest positive float."""
    assert np.nextafter(1.0, 2.0) - 1.0 == ULP
    assert np.nextafter(0.0, 1.0) == SUBNORMAL > 0


@pytest.mark.parametrize("count", [0, 1, 64, 65, 3000])
@pytest.mark.parametrize("spread", [0.0, 3.0, 300.0])
def test_a_sum_of_many_floats_is_that_of_fractions(count, spread):
    """Whatever their signs and sizes, few or many, floats are added up as rational numbers are."""
    rng = np.random.default_rng(count)
    values = rng.normal(size=count) * 10.0 ** rng.uniform(-spread, spread, count)
    values[: count // 50] = 5e-324
    assert exact_sum(values) == sum(map(Fraction, values.tolist()), Fraction(0))
    assert exact_sum(np.full(70_000, -np.finfo(float).max)) == -70_000 * Fraction(float(np.finfo(float).max))
