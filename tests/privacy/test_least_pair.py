"""The parameters of a class of mechanisms, checked, and the mass that its dominating pair keeps [GI, Thm 2].

The hull of test curves loses nothing to rounding: compared with exact rational powers.
"""

import math
import sys
from fractions import Fraction
from itertools import accumulate

import mpmath
import numpy as np
import pytest
import truth
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from ldpopt.composition import compose, compose_same_input
from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.numbers.tolerances import MAXIMUM_EPSILON
from ldpopt.privacy import FinitePair, antipodal_pair, local_dp
from ldpopt.privacy.least_pair import (
    checked,
    kept_mass,
    largest_eta,
    least_pair,
    nonnegative_epsilon,
    pair_through,
)
from ldpopt.values.distribution import nonnegative


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
    assert nonnegative(math.inf, "epsilon", infinite=True) == math.inf
    assert nonnegative(0, "epsilon", infinite=True) == 0.0
    assert nonnegative(1e9, "epsilon", infinite=True) == 1e9
    for wrong in (-1e-300, -math.inf, math.nan, "inf"):
        with pytest.raises(InvalidInput):
            nonnegative(wrong, "epsilon", infinite=True)


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
def test_the_remaining_mass_is_rounded_up_by_few_ulps(epsilon, delta, share):
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


def test_levels_at_the_ends_leave_all_or_no_mass():
    """Without eta all is kept, unless epsilon is zero; an eta below delta is the delta, and keeps nothing."""
    assert kept_mass(1.0, 0.1, None) == (0.1, 1.0)
    assert kept_mass(1.0, 0.1, 1.0) == (0.1, 1.0)
    assert kept_mass(0.0, 0.1, None) == (0.1, 0.0)
    assert kept_mass(1.0, 0.5, 0.2) == (0.2, 0.0)
    assert kept_mass(1.0, 0.2, 0.2) == (0.2, 0.0)
    assert kept_mass(0.0, 0.1, 0.5) == (0.1, 0.0)
    assert kept_mass(1.0, 1.0, 1.0) == (1.0, 0.0)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.floats(0.01, 4.0))
def test_the_split_is_antipodal_and_kl_never_falls(seed, size, spread):
    """DR Lemma 3.9: all losses are -eps, 0 or eps, the split merges back, and no divergence falls."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(size) * 3)
    p = q * np.exp(rng.uniform(-spread, spread, size))
    p /= p.sum()
    epsilon = float(np.abs(np.log(p / q)).max())
    m, m_prime = antipodal_pair(p, q)
    assert (m >= 0).all()
    assert m.sum() == pytest.approx(1.0)
    assert m[:size] + m[size:] == pytest.approx(p)
    assert m_prime[:size] + m_prime[size:] == pytest.approx(q)
    used = (m > 1e-300) & (m_prime > 1e-300)
    losses = np.log(m[used] / m_prime[used])
    assert np.minimum(np.abs(losses), np.abs(np.abs(losses) - epsilon)).max() < 1e-9
    assert np.abs(losses).max() == pytest.approx(epsilon)
    for divergence in (KL, CHI_SQUARED, TOTAL_VARIATION):
        assert divergence(m, m_prime) >= divergence(p, q) * (1 - 1e-9) - 1e-14


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_both_directions_agree_and_bound_the_mean(seed):
    """DR Lemmas 3.10 and 3.8: KL is the same both ways on the split, and at most eps (e^eps - 1)/2."""
    p, q = np.random.default_rng(seed).dirichlet(np.ones(4) * 2, 2)
    m, m_prime = antipodal_pair(p, q)
    epsilon = float(np.abs(np.log(p / q)).max())
    assert KL(m, m_prime) == pytest.approx(KL(m_prime, m), rel=1e-7)
    assert KL(m, m_prime) <= epsilon * math.tanh(epsilon / 2) * (1 + 1e-9) <= epsilon * math.expm1(epsilon) / 2


def test_equal_distributions():
    """Nothing is split when nothing differs."""
    m, m_prime = antipodal_pair([0.5, 0.5, 0.0], [0.5, 0.5, 0.0])
    assert np.array_equal(m, m_prime)
    assert m.tolist() == [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]


def test_infinite_ratios_and_unequal_lengths_are_refused():
    """An infinite ratio has no antipodal split; lengths must agree."""
    with pytest.raises(InvalidInput, match="support"):
        antipodal_pair([0.5, 0.5], [1.0, 0.0])
    with pytest.raises(InvalidInput):
        antipodal_pair([0.5, 0.5], [1.0])


def test_a_refused_pair_names_the_outcome_that_only_one_gives():
    """The first outcome that is impossible under one law alone; one impossible under both is no matter."""
    for p, q in (([0.0, 0.5, 0.5, 0.0], [0.0, 0.5, 0.3, 0.2]), ([0.0, 0.5, 0.3, 0.2], [0.0, 0.5, 0.5, 0.0])):
        with pytest.raises(InvalidInput, match="outcome 3"):
            antipodal_pair(p, q)
    split, other = antipodal_pair([0.0, 0.4, 0.6], [0.0, 0.6, 0.4])
    assert split[[0, 3]].tolist() == other[[0, 3]].tolist() == [0.0, 0.0]


def powers(p, q):
    """The corners (size, power) of the best tests, in rational arithmetic: outcomes by falling ratio."""
    masses = [(Fraction(b), Fraction(a)) for a, b in zip(p, q, strict=True) if a or b]
    masses.sort(key=lambda mass: mass[1] / sum(mass), reverse=True)
    return list(zip(accumulate(b for b, _ in masses), accumulate(a for _, a in masses), strict=True))


def power_at(corners, size):
    """The power of the best test of a given size, from the corners of the concave curve."""
    x0, y0 = Fraction(0), Fraction(0)
    for x, y in corners:
        if x >= size:
            return y0 + (y - y0) * (size - x0) / (x - x0) if x > x0 else y
        x0, y0 = x, y
    return y0


def random_pair(rng, family, m):
    q = rng.dirichlet(np.ones(m))
    if family == "slow":  # ratios that differ by a few ulps, one after another
        q = np.full(m, 1 / m)
        p = q * (1 + (np.arange(m)[::-1] - m / 2) * rng.choice([4e-16, 1e-15, 4e-15]))
    elif family == "rare":
        q = q * np.where(rng.random(m) < 0.5, 1.0, 10.0 ** rng.uniform(-323, -290, m))
        p = rng.dirichlet(np.ones(m)) * 10.0 ** rng.uniform(-8, 0, m)
    else:
        p = rng.dirichlet(np.ones(m))
    return FinitePair(p / p.sum(), q / q.sum()).ordered


@pytest.mark.parametrize("family", ["slow", "rare", "plain"])
@pytest.mark.parametrize("seed", range(6))
def test_every_power_is_reached(family, seed):
    """At every size up to the largest gain, the hull's test is as powerful as those of the pairs under it."""
    rng = np.random.default_rng(seed)
    pairs = [random_pair(rng, family, 60) for _ in range(3)]
    made = powers(*least_pair([(pair.p, pair.q) for pair in pairs]))
    for pair in pairs:
        corners = [(x, y) for (x, y), p, q in zip(powers(pair.p, pair.q), pair.p, pair.q, strict=True) if p > q]
        assert corners
        assert all(power_at(made, x) >= y for x, y in corners)


def test_nearly_equal_slopes_do_not_wear_down():
    """Two thousand ratios, each within a few ulps of the next, keep the largest one: 4e-12, not half of it."""
    q = np.full(2000, 1 / 2000)
    rows = np.stack([q * (1 + (np.arange(2000) - 1000) * 4e-15), q])
    assert compose([rows]).local_dp().value >= local_dp(rows).lower > 3.9e-12


def test_a_corner_whose_products_underflow_still_counts():
    """A report of probability 1e-320 under one answer tells as much in the dominating pair as in the channel."""
    rows = np.array([[1e-5, 0.5e-5, 1 - 1.5e-5], [1e-320, 1.9e-319, 1.0]])
    assert compose([rows]).local_dp().value >= local_dp(rows).lower > 725


@pytest.mark.full(but=5)
@pytest.mark.parametrize("seed", range(20))
def test_losses_of_subnormal_masses_are_covered(seed):
    """The composed loss covers that of the laws which the rows stand for, though dividing by their sums is inexact."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(4), 2)
    at = rng.integers(1, 4)
    rows[rng.integers(2, size=at), np.arange(at)] = 5e-324 * 2.0 ** rng.integers(0, 54, at)
    rows = rows / rows.sum(axis=1, keepdims=True) * (1 + rng.uniform(-9e-10, 9e-10, (2, 1)))
    with mpmath.workdps(400):
        p, q = truth.rows(rows, proportional=True)
        exact = max(truth.local_dp(p, q), truth.local_dp(q, p))
        (same,) = compose_same_input([rows], count=3).values()
        for found in (same, compose([rows], count=3), compose([FinitePair(*rows)], count=3)):
            assert found.local_dp().lower <= 3 * exact <= found.local_dp().value
            order = float(rng.uniform(1.5, 40))
            divergence = 3 * max(truth.renyi(p, q, order), truth.renyi(q, p, order))
            assert found.renyi(order).value >= divergence
            epsilon = float(exact * rng.uniform(0.1, 2.5))
            left, right = truth.product(p, q, 3)
            delta = max(truth.hockey_stick(left, right, epsilon), truth.hockey_stick(right, left, epsilon))
            assert found.hockey_stick(epsilon).value >= delta
            if found.parts == same.parts:  # a hull of both directions may be larger
                assert found.renyi(order).lower <= divergence
                assert found.hockey_stick(epsilon).lower <= delta


@pytest.mark.full(but=5)
@pytest.mark.parametrize("seed", range(30))
def test_rows_that_differ_by_an_ulp_have_a_hull(seed):
    """Rows that agree but for their last digits compose, and no guarantee is below theirs."""
    rng = np.random.default_rng(seed)
    row = rng.dirichlet(np.ones(2 + seed % 3))
    rows = row * (1 + 2.0**-52 * rng.integers(-2, 3, (2 + seed % 2, len(row))))
    with mpmath.workdps(60):
        laws = truth.rows(rows, proportional=True)
        assert compose([rows], 2).local_dp().value >= 2 * truth.worst(laws, truth.local_dp)
        assert compose([rows]).delta_at(0.0) >= truth.worst(laws, lambda p, q: truth.hockey_stick(p, q, 0))
    assert compose([[[0.6651119210103664, 0.3348880789896337], [0.6651119210103663, 0.33488807898963363]]]).delta_at(0)


@pytest.mark.parametrize("mass", [1e-311, 3e-323, 1.4e-312])
def test_impossible_outcomes_of_subnormal_mass_have_infinite_epsilon(mass):
    """A delta that rounding alone puts at or above the mass of impossible outcomes meets no finite epsilon."""
    rows = [[0.25, 0.75, mass], [0.5, 0.5, 0.0]]
    composed = compose([FinitePair(*rows)], 2)
    assert composed.delta_at(5.0) > 2 * mass
    assert composed.epsilon_at(2 * mass) == np.inf


def test_the_pair_of_a_curve_lies_on_its_hull():
    """Of bounds that are not convex in e^epsilon, the pair has the lower hull: points above it are passed under."""

    t = np.array([1.0, 2.0, 3.0, 5.0, 9.0])
    curve = np.array([0.5, 0.4, 0.26, 0.22, 0.1])  # the hull leaves out the second and the fourth
    p, q = pair_through(np.log(t), curve)
    found = [np.maximum(p - each * q, 0.0).sum() for each in t]
    assert found == pytest.approx([0.5, 0.38, 0.26, 0.26 - 0.16 / 3, 0.1], abs=1e-12)


@pytest.mark.parametrize("small", [2.2e-13, 1e-9, 1e-15])
def test_a_gain_below_rounding_counts_beside_a_small_one(small):
    """What a common outcome adds to the total variation is not lost, though it is less than an ulp of its mass."""
    p, q = np.array([small, 0.5, 0.5 - small]), np.array([0.0, 0.5 - 2.0**-54, 0.5 + 2.0**-54])
    hull = FinitePair.tightest_dominating([FinitePair(p, q), FinitePair(q, p)])
    with mpmath.workdps(60):
        one, other = truth.rows(np.stack([p, q]), proportional=True)
        exact = truth.hockey_stick(one, other, 0)
        assert float(hull.total_variation()) >= exact
        assert compose([np.stack([p, q])], 3).delta_at(0.0) >= exact
    assert float(hull.total_variation()) <= small + 2e-14
