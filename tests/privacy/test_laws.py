"""A row is read as the law that it is proportional to, in every measure, at any epsilon, order and size of entry."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import truth
from mpmath import mpf

from ldpopt.privacy import (
    approximate_dp,
    chi_squared_contraction,
    doeblin,
    hockey_stick,
    hockey_stick_contraction,
    local_dp,
    maximal_leakage,
    mcdp,
    mutual_information,
    pairs,
    renyi,
    total_variation,
    zcdp,
)
from ldpopt.privacy.loss import MAX_SINGLE, centred, defects, scaled, shift

OFF = np.array([[0.3, 0.7], [0.6, 0.4]]) * [[1 + 9e-10], [1 - 9e-10]]
ULP = 2.0**-52


def laws(q):
    """The rows as rationals divided by their sums."""
    rows = [[Fraction(float(x)) for x in row] for row in q]
    return [[x / sum(row) for x in row] for row in rows]


def encloses(found, exact):
    return mpf(found.lower) <= exact <= mpf(found.value)


def test_defects_are_correctly_rounded():
    """What rows sum to, less one, is the float next to the rational sum, also where all rows but a 1e-300 cancel."""
    rng = np.random.default_rng(0)
    q = np.vstack([rng.dirichlet(np.ones(7), 20), [[1.0, 1e-300, 0, 0, 0, 0, 0]], OFF[:1, [0, 1, 0, 1, 0, 1, 0]] / 4])
    for rows in (q, np.tile(q, (6, 1))):  # few and many entries are summed in different ways
        for row, found in zip(rows, defects(rows), strict=True):
            assert found == float(sum(Fraction(float(x)) for x in row) - 1)


def test_defects_are_correctly_rounded_for_all_entries():
    """Entries of all sizes, half an ulp from a tie, above two, and none: the float next to the rational sum."""
    rng = np.random.default_rng(1)
    wide = rng.random((30, 40)) * 2.0 ** rng.integers(-1074, 1, (30, 40))
    ties = np.array([[0.5, 0.5, 2.0**-53, 2.0**-106, 0.0], [0.5, 0.5, 3 * 2.0**-30, 2.0**-83, 2.0**-137]])
    large = np.array([[1e300, 3.0, 1e-300, 1.0, 0.0], [1.5, 2.5, 2.0**-60, 0.0, 0.0]])
    even = np.full((2, 1000), 1 / 1000)
    many = (wide, np.tile(ties, (60, 1)), np.tile(large, (60, 1)), even)
    assert all(rows.size > MAX_SINGLE for rows in many)
    for rows in (*many, wide[:5], ties, large, even[:, :200]):
        for row, found in zip(rows, defects(rows), strict=True):
            assert found == float(sum(Fraction(float(x)) for x in row) - 1)
    assert defects(np.zeros((2, 0))).tolist() == [-1.0, -1.0]


def test_the_shift_is_the_log_ratio_of_the_sums():
    """c = log(P/Q) within its stated error, which is some ulps of the two sums' distances from one."""
    p, q = OFF[:1], OFF[1:]
    by = shift(p, q)
    with mpmath.workdps(60):
        exact = mpmath.log(mpmath.fsum(map(mpf, map(float, p[0]))) / mpmath.fsum(map(mpf, map(float, q[0]))))
        assert abs(mpf(float(by.value[0])) - exact) <= mpf(float(by.error[0]))
    assert by.error[0] <= 1e-22


@pytest.mark.parametrize("exponent", [-760.0, -1.0, 0.0, 0.3, 700.0, 709.9, 745.0, 1400.0, 5000.0])
def test_scaling_keeps_its_digits(exponent):
    """e^x q to (4 + 2|x|) ulps and a subnormal, for subnormal q and factors beyond the range of floats too."""
    q = np.array([[5e-324, 1e-320, 1e-300, 0.25, 1.0, 0.0]])
    with mpmath.workdps(60):
        for x, found in zip(q[0], scaled(q, np.array([exponent]))[0], strict=True):
            exact = mpmath.exp(mpf(exponent)) * mpf(float(x))
            if exact < mpf(1.79e308):
                assert abs(mpf(float(found)) - exact) <= exact * (4 + 2 * abs(exponent)) * ULP + mpf(5e-324)
            else:
                assert found == math.inf


def test_centered_rows_keep_their_difference():
    """reference + away is the distribution of every row, to the stated error: eight digits of a difference of 1e-24."""
    rng = np.random.default_rng(1)
    q = np.full((3, 5), 0.2) * (1 + 1e-15 * rng.random((3, 5)))
    reference, away, error = centred(q)
    for law, part, bound in zip(laws(q), away, error, strict=True):
        made = [Fraction(float(r)) + Fraction(float(a)) for r, a in zip(reference, part, strict=True)]
        off = sum(abs(x - y) for x, y in zip(law, made, strict=True))
        assert off <= Fraction(float(bound)) <= Fraction(1e-29)


def test_measures_agree_on_rows_that_do_not_quite_sum_to_one():
    """No Rényi divergence exceeds the largest loss; all measures are those of the laws."""
    assert renyi(OFF, 1e18).lower <= local_dp(OFF).value
    rows = laws(OFF)
    with mpmath.workdps(60):
        exact = [[mpf(x.numerator) / x.denominator for x in row] for row in rows]
        assert encloses(local_dp(OFF), truth.worst(exact, truth.local_dp))
        for epsilon in (0.0, 1e-10, 0.3):
            found = truth.worst(exact, lambda p, q, e=epsilon: truth.hockey_stick(p, q, e))
            assert encloses(hockey_stick(OFF, epsilon), found)
        assert encloses(total_variation(OFF), truth.worst(exact, lambda p, q: truth.hockey_stick(p, q, 0)))
        for order in (1 + 1e-7, 2.0, 1e18):
            assert encloses(renyi(OFF, order), truth.worst(exact, lambda p, q, a=order: truth.renyi(p, q, a)))
        assert encloses(doeblin(OFF), sum(map(min, zip(*exact, strict=True))))
        assert encloses(maximal_leakage(OFF), mpmath.log(sum(map(max, zip(*exact, strict=True)))))


def test_rows_of_one_distribution_have_zero_measures():
    """Rows that are multiples of one another have every measure zero, to far less than the tolerance of their sums."""
    q = np.array([[0.25, 0.75], [0.25, 0.75]]) * [[1.0], [1 - 2.0**-31]]
    assert local_dp(q).value <= 1e-23
    assert total_variation(q).value <= 1e-23
    assert hockey_stick(q, 0.0).value <= 1e-23
    assert approximate_dp(q, 0.0).value <= 1e-23
    assert renyi(q, 2.0).value <= 1e-40
    assert mutual_information(q, [0.5, 0.5]).value <= 1e-40
    assert chi_squared_contraction(q).value <= 1e-40


def test_a_hockey_stick_beyond_the_range_of_exp_is_enclosed():
    """At epsilon 710 a ratio of 1e320 still counts: delta is 1/2 - e^710 1e-320 of the laws [GI, Def 1]."""
    q = [[0.5, 0.5], [1e-320, 1]]
    with mpmath.workdps(700):
        exact = truth.rows(np.array(q), proportional=True)
        for epsilon in (709.5, 710.0, 736.0, 736.5, 750.0):
            found = truth.worst(exact, lambda p, r, e=epsilon: truth.hockey_stick(p, r, e))
            assert encloses(hockey_stick(q, epsilon), found)
        assert hockey_stick(q, 710).lower > 0.4999
        gamma = 1.7e308
        value = truth.worst(exact, lambda p, r: truth.hockey_stick(p, r, mpmath.log(mpf(gamma))))
        assert encloses(hockey_stick_contraction(q, gamma), value)
        assert hockey_stick_contraction(q, gamma).lower > 0.4999


@pytest.mark.parametrize("d", [1e-3, 0.1, 0.3, 1e-9, 1 / 3, 0.37])
def test_delta_that_equals_the_lost_mass(d):
    """[[d, 0, 1 - d], [0, d, 1 - d]] is (0, d)-LDP: nothing tells the rest apart; a float less is not enough."""
    q = [[d, 0, 1 - d], [0, d, 1 - d]]
    assert approximate_dp(q, d).value <= 1e-14
    assert approximate_dp(q, math.nextafter(d, 0)).value == math.inf
    assert approximate_dp(q, d * (1 + 1e-12)).value <= 1e-14


def test_the_subgaussian_standard_of_log_uniform_channels_is_finite():
    """tau of binary channels with entries of any size is in a bracket of 1e-9, at most the range of the loss."""
    rng = np.random.default_rng(2)
    tau = mcdp([[3.5e-27, 1], [1.8e-10, 1 - 1.8e-10]]).tau
    assert 5.744017439 <= tau.lower <= tau.value <= 5.744017440
    for _ in range(40):
        share = 10.0 ** rng.uniform(-30, 0, 2)
        q = np.stack([share, 1 - share], axis=1)
        tau = mcdp(q).tau
        losses = np.log(q[0]) - np.log(q[1])
        assert tau.lower <= tau.value <= tau.lower * (1 + 1e-9) + 1e-25
        assert tau.value <= np.ptp(losses) * (1 + 1e-9) + 1e-15


def test_chi_squared_contraction_of_tiny_entries_keeps_its_digits():
    """Entries of 1e-160, whose squares are no floats, keep their digits: max b (1-b) (p-q)^2/(b p + (1-b) q)."""
    for a in (1e-150, 1e-160, 1e-200, 1e-300):
        found = chi_squared_contraction([[a, 1], [3 * a, 1]])
        # With q = 3p the maximum over b of 4 a b (1-b)/(3-2b) is at b = (3 - sqrt 3)/2.
        with mpmath.workdps(50):
            b = (3 - mpmath.sqrt(3)) / 2
            p, q = mpf(a), mpf(3 * a)
            exact = b * (1 - b) * (p - q) ** 2 / (b * p + (1 - b) * q)
            assert abs(mpf(found.value) - exact) <= mpf(10) ** -12 * exact
            assert abs(mpf(found.lower) - exact) <= mpf(10) ** -12 * exact


@pytest.mark.parametrize("ulps", [1, 2, 5, 1000])
def test_mutual_information_of_rows_an_ulp_apart_is_enclosed(ulps):
    """I is about (p - q)^2/2 of 1e-32, not zero, and its bracket is a relative 1e-6."""
    q = np.array([[0.5, 0.5], [0.5 + ulps * ULP, 0.5 - ulps * ULP]])
    found = mutual_information(q, [0.5, 0.5])
    with mpmath.workdps(90):
        rows = truth.rows(q, proportional=True)
        mixture = [(a + b) / 2 for a, b in zip(*rows, strict=True)]
        exact = mpmath.fsum(truth.kl(row, mixture) for row in rows) / 2
        assert encloses(found, exact)
        assert found.value - found.lower <= 1e-6 * exact


@pytest.mark.parametrize(("k", "epsilon"), [(300, 1e-6), (420, 1e-6), (300, 1e-3), (300, 1e-9)])
@pytest.mark.parametrize("order", [1.0, 2.0, 30.0])
def test_renyi_of_many_nearly_equal_inputs(k, epsilon, order):
    """The screen of all pairs keeps what rows differ by: the value of hundreds of inputs is attained, and exact."""
    rng = np.random.default_rng(k)
    q = np.exp(epsilon * rng.random((k, 30))) / 30
    q /= q.sum(axis=1, keepdims=True)
    found = renyi(q, order)
    assert found.exact
    assert found.lower <= found.value <= found.lower * (1 + 1e-6)
    x, other = found.witness.inputs
    alone = renyi(q[[x, other]], order)
    assert alone.lower <= found.value <= alone.value * (1 + 1e-6)
    two = renyi(q[:40], order)
    assert two.lower <= found.value


def test_values_with_unmeasured_pairs_are_not_called_exact(monkeypatch):
    """Where pairs that were not measured may exceed the rest, the value covers them and says that it is a bound."""
    monkeypatch.setattr(pairs, "MAX_ENTRIES", 64)
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.ones(3), 30)
    low, high = np.zeros((30, 30)), np.ones((30, 30))

    def measure(p, r):
        return np.full(len(p), 0.25), np.full(len(p), 0.25)

    from ldpopt.channel import Channel

    found = pairs.worst_pair("test", Channel(q), None, measure, "[GI, Def 1]", screen=lambda _: (low, high), limit=64)
    assert (found.value, found.lower, found.exact) == (1.0, 0.25, False)


def test_divergences_of_a_huge_order_are_enclosed():
    """At order 1e18 the loss is not known to 1/order: lower stays below the truth, value at most the largest loss."""
    rng = np.random.default_rng(4)
    for n in range(20):
        q = rng.dirichlet(np.ones(4), 2) * (1 + rng.uniform(-9e-10, 9e-10, (2, 1)))
        if n % 2:
            q = q[:1] * (1 + 1e-9 * rng.random((2, 4)))
            q /= q.sum(axis=1, keepdims=True)
        for order in (1e14, 1e16, 1e18):
            found = renyi(q, order)
            with mpmath.workdps(60):
                rows = truth.rows(q, proportional=True)
                assert encloses(found, truth.worst(rows, lambda a, b, o=order: truth.renyi(a, b, o)))
    assert zcdp(OFF).lower <= zcdp(OFF).value


def test_a_subnormal_delta_below_the_lost_mass_is_not_enough():
    """Where the lost mass and delta are subnormal, and their floats are within rounding, rationals decide."""
    row = [0.9999999999668414, 1.5992086244635e-311]
    lost = Fraction(row[1]) / (Fraction(row[0]) + Fraction(row[1]))
    below = 1.5992086245164e-311
    assert Fraction(below) < lost
    assert approximate_dp([row, [0.9999999995832114, 0.0]], below).value == math.inf
    assert approximate_dp([row, [0.9999999995832114, 0.0]], below * (1 + 1e-9)).value < 1e-9
