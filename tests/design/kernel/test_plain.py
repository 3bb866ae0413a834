"""The caps of epsilon-LDP and total variation, and the factor by which multipliers fall short."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.design import LocalDP, TotalVariation, WorstOf
from ldpopt.design.kernel.listed import Caps, Mixed, dual_factor, dual_factor_of_floats
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.divergences import KL
from ldpopt.numbers.enclosures import EXACT, FLOAT


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1.0, 40.0, 700.0])
def test_the_level_is_enclosed(arithmetic, epsilon):
    """1/(e^epsilon - 1) and tanh(epsilon/2) lie between the ends, which are near each other [GI, Prop 2]."""
    caps = Caps.from_constraints([LocalDP(epsilon), LocalDP(min(epsilon + 1, 700.0))], arithmetic)
    with mpmath.workdps(400):
        for found, exact in ((caps.level, 1 / mpmath.expm1(mpf(epsilon))), (caps.eta, mpmath.tanh(mpf(epsilon) / 2))):
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
            assert float(found.upper) <= float(found.lower) * (1 + 1e-12)


def test_the_least_cap_counts():
    """A cap on total variation below what epsilon implies, and epsilon's own otherwise."""
    constraints = [LocalDP(1.0), TotalVariation(0.3), TotalVariation(0.2)]
    assert float(Caps.from_constraints(constraints, FLOAT).eta.upper) == 0.2
    implied = Caps.from_constraints([LocalDP(1.0), TotalVariation(0.9)], FLOAT)
    assert float(implied.eta.upper) == pytest.approx(math.tanh(0.5), rel=1e-14)


def test_without_pure_ldp_there_is_no_level():
    """A cap on total variation alone leaves the columns unbounded."""
    for constraints in ([TotalVariation(0.3)], []):
        with pytest.raises(Unproved, match="LocalDP"):
            Caps.from_constraints(constraints, FLOAT)


def test_payments_that_suffice_need_no_factor():
    """One where nothing falls short, rounded up by an ulp at most; the largest ratio otherwise."""
    assert 1.0 <= dual_factor_of_floats(np.array([1.0, 0.0]), np.array([1.0, 2.0])) <= 1 + 2**-51
    assert 3.0 <= dual_factor_of_floats(np.array([1.0, 6.0]), np.array([1.0, 2.0])) <= 3 + 2**-50
    assert dual_factor_of_floats(np.zeros(0), np.zeros(0)) == pytest.approx(1.0)
    third = dual_factor_of_floats(np.array([1.0]), np.array([3.0]) / 9)
    assert mpf(third) >= 1 / mpf(3.0 / 9)


@pytest.mark.parametrize(
    ("most", "least"),
    [([1.0], [-1e-300]), ([math.inf], [1.0]), ([math.nan], [1.0]), ([1.0], [math.nan]), ([1e-300], [0.0])],
)
def test_unbounded_worths_have_no_factor(most, least):
    """Negative payments, worths that are not finite, and worth without payment have an infinite factor."""
    assert dual_factor_of_floats(np.array(most), np.array(least)) == math.inf


def test_columns_that_pay_nothing_may_be_worth_nothing():
    """They may be worth less than nothing, too."""
    assert dual_factor_of_floats(np.array([0.0, -1.0, 2.0]), np.array([0.0, 0.0, 1.0])) == pytest.approx(2.0)
    assert dual_factor_of_floats(np.array([1e308]), np.array([1e-308])) == math.inf


def test_the_factor_is_for_the_worst_of_the_ends():
    """What is worth counts by its upper end, what is paid by its lower one."""
    worth, paid = FLOAT.between(np.array([1.0]), np.array([4.0])), FLOAT.between(np.array([2.0]), np.array([9.0]))
    assert dual_factor(worth, paid) == pytest.approx(2.0, rel=1e-15)
    assert dual_factor(worth, paid) >= 2.0


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
def test_criteria_are_mixed_by_shares(arithmetic):
    """Weights become shares that sum to one, and the tangent of the mixture is worth its sum."""
    rng = np.random.default_rng(0)
    p0, *others = rng.dirichlet(np.ones(4), 3)
    parts = WorstOf(KL, p0, others)
    mixed = Mixed.from_weights(parts, (1.0, 3.0), arithmetic)
    assert np.asarray(mixed.shares.upper) == pytest.approx([0.25, 0.75], rel=1e-14)
    assert float(mixed.tangent_sum.lower) <= math.fsum(mixed.linear) <= float(mixed.tangent_sum.upper)
    slopes = [Mixed.from_weights(parts, weights, arithmetic).linear for weights in ((1.0, 0.0), (0.0, 1.0))]
    assert mixed.linear == pytest.approx(0.25 * slopes[0] + 0.75 * slopes[1], abs=1e-14)
    with pytest.raises(Unproved, match="all zero"):
        Mixed.from_weights(parts, (0.0, 0.0), arithmetic)
    for wrong in ((1.0,), (1.0, -1.0), (1.0, math.nan), "ab"):
        with pytest.raises(Unproved, match="weights"):
            Mixed.from_weights(parts, wrong, arithmetic)
