"""The parameters of a class of mechanisms, checked, and the mass that its dominating pair keeps [GI, Thm 2]."""

import math
import sys
from fractions import Fraction

import mpmath
import pytest
from mpmath import mpf

from ldpopt.errors import InvalidInput
from ldpopt.privacy.least_pair import checked, kept_mass, largest_eta, nonnegative_epsilon, point_at_least_zero
from ldpopt.tolerances import MAXIMUM_EPSILON


@pytest.mark.parametrize("epsilon", [0, 0.0, 1e-300, 3, MAXIMUM_EPSILON])
def test_an_epsilon_of_a_mechanism_is_a_number_of_nats(epsilon):
    """Zero and the largest that mechanisms are built for are taken."""
    assert nonnegative_epsilon(epsilon) == epsilon
    assert checked(epsilon, 0, None) == (epsilon, 0.0, None)


@pytest.mark.parametrize("epsilon", [-1e-300, -1, math.nextafter(MAXIMUM_EPSILON, math.inf), math.inf, math.nan, "1"])
def test_other_epsilons_are_refused(epsilon):
    """Negative numbers, those beyond the largest, infinities and texts are not."""
    with pytest.raises(InvalidInput, match="epsilon"):
        nonnegative_epsilon(epsilon)


def test_a_curve_is_read_at_any_epsilon_from_zero_on():
    """Infinity is a point of a curve, and there is no largest epsilon; negative points are refused."""
    assert point_at_least_zero(math.inf) == math.inf
    assert point_at_least_zero(0) == 0.0
    assert point_at_least_zero(1e9) == 1e9
    for wrong in (-1e-300, -math.inf, math.nan, "inf"):
        with pytest.raises(InvalidInput):
            point_at_least_zero(wrong)


@pytest.mark.parametrize(("delta", "eta"), [(-0.1, None), (1.1, None), (0.0, -0.1), (0.0, 1.1), (math.nan, None)])
def test_delta_and_eta_are_probabilities(delta, eta):
    """Anything outside [0, 1] is refused."""
    with pytest.raises(InvalidInput):
        checked(1.0, delta, eta)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.5, 3.0, 700.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.3, 1.0])
def test_the_largest_eta_is_that_of_the_dominating_pair(epsilon, delta):
    """delta + (1 - delta) (e^epsilon - 1)/(e^epsilon + 1) [GI, Thm 2]."""
    growth = mpmath.exp(mpf(epsilon))
    exact = delta + (1 - mpf(delta)) * (growth - 1) / (growth + 1)
    assert largest_eta(epsilon, delta) == pytest.approx(float(exact), rel=1e-14)
    assert largest_eta(epsilon, delta) <= 1


@pytest.mark.parametrize("epsilon", [1e-12, 0.5, 3.0, 700.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize("share", [1e-320, 1e-9, 0.25, 0.99])
def test_the_kept_mass_is_rounded_up_and_near(epsilon, delta, share):
    """1 - a is at least (eta - delta)(1 + e^eps)/((1 - delta)(e^eps - 1)), and above it by a few ulps [GI, Thm 2]."""
    eta = delta + share * (1 - delta) * math.tanh(epsilon / 2)
    same, kept = kept_mass(epsilon, delta, eta)
    assert same == delta
    if eta == delta:
        assert kept == 0.0
        return
    with mpmath.workdps(60):
        gap = Fraction(eta) - Fraction(delta)
        growth = mpmath.exp(mpf(epsilon))
        exact = mpf(gap.numerator) / gap.denominator * (1 + growth) / ((1 - mpf(delta)) * (growth - 1))
    assert min(exact, mpf(1)) <= kept <= max(float(exact) * (1 + 1e-14), sys.float_info.min)


def test_what_is_no_constraint_and_what_leaves_nothing():
    """Without eta all is kept, unless epsilon is zero; an eta below delta is the delta, and keeps nothing."""
    assert kept_mass(1.0, 0.1, None) == (0.1, 1.0)
    assert kept_mass(1.0, 0.1, 1.0) == (0.1, 1.0)
    assert kept_mass(0.0, 0.1, None) == (0.1, 0.0)
    assert kept_mass(1.0, 0.5, 0.2) == (0.2, 0.0)
    assert kept_mass(1.0, 0.2, 0.2) == (0.2, 0.0)
    assert kept_mass(0.0, 0.1, 0.5) == (0.1, 0.0)
    assert kept_mass(1.0, 1.0, 1.0) == (1.0, 0.0)
