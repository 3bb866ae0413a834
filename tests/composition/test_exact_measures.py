"""Budgets are met exactly: what fits is admitted, and what truly exceeds them by an ulp never is."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from ldpopt.composition import FinitePair, Ledger, PrivacyFilter
from ldpopt.composition.exact_measures import MAX_TERMS, MatrixMeasures, as_fractions, certainly_at_most
from ldpopt.composition.mechanism import as_mechanism
from ldpopt.mechanisms import (
    gaussian,
    hadamard_response,
    laplace,
    local_hashing,
    randomized_response,
    staircase,
    subset_selection,
    unary_encoding,
)
from ldpopt.mechanisms.continuous_pair import ContinuousPair
from ldpopt.privacy import (
    TV,
    ZCDP,
    ApproximateDP,
    PureDP,
    RenyiDP,
    approximate_dp,
    hockey_stick,
    local_dp,
    mcdp,
    renyi,
    total_variation,
    zcdp,
)

DIGITS = 120
COUNTS = (1, 3, 10**6)


def number(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def laws(matrix):
    """The exact rows of a float matrix, divided by their sums."""
    rows = [[Fraction(entry) for entry in row] for row in np.asarray(matrix, float).tolist()]
    return [[entry / sum(row) for entry in row] for row in rows]


def pairs(matrix):
    rows = laws(matrix)
    return [(p, q) for i, p in enumerate(rows) for j, q in enumerate(rows) if i != j]


def true_epsilon(matrix):
    return max(mpmath.log(number(a / b)) for p, q in pairs(matrix) for a, b in zip(p, q, strict=True) if a or b)


def true_renyi(matrix, order):
    alpha = mpmath.mpf(order)
    moments = [
        sum(number(a) ** alpha * number(b) ** (1 - alpha) for a, b in zip(p, q, strict=True)) for p, q in pairs(matrix)
    ]
    return mpmath.log(max(moments)) / (alpha - 1)


def true_variation(matrix):
    return number(max(sum((a - b for a, b in zip(p, q, strict=True) if a > b), Fraction(0)) for p, q in pairs(matrix)))


def floats_around(value):
    """The largest float that is not above a number of many digits, and the least that is not below it."""
    nearest = float(value)
    low = nearest if mpmath.mpf(nearest) <= value else math.nextafter(nearest, -math.inf)
    return low, low if mpmath.mpf(low) == value else math.nextafter(low, math.inf)


def random_channel(seed):
    rng = np.random.default_rng(seed)
    k, m = (int(size) for size in rng.integers(2, 5, 2))
    if seed % 5 == 0:
        return rng.dirichlet(np.ones(m), k)
    if seed % 5 == 1:  # losses near 690
        rows = np.maximum(rng.dirichlet(np.full(m, 0.05), k), 1e-300)
        return rows / rows.sum(axis=1, keepdims=True)
    if seed % 5 == 2:  # nearly equal rows
        rows = 1 / m + rng.normal(size=(k, m)) * 1e-12
        return rows / rows.sum(axis=1, keepdims=True)
    if seed % 5 == 3:
        return randomized_response(k, float(rng.choice([1e-3, 1.0, 5.0, 30.0]))).matrix
    rows = rng.integers(1, 5, (k, m)).astype(float)
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.full(but=6)
@pytest.mark.parametrize("seed", range(20))
def test_budgets_an_ulp_around_the_exact_sum_are_decided(seed):
    """The least float above the exact sum admits so many uses, and the next float below it does not."""
    matrix = random_channel(seed)
    with mpmath.workdps(DIGITS):
        for n in COUNTS:
            sums = [
                (PureDP, n * true_epsilon(matrix)),
                (TV, 1 - (1 - true_variation(matrix)) ** n),
                (lambda epsilon: RenyiDP(1.5, epsilon), n * true_renyi(matrix, 1.5)),
                (lambda epsilon: RenyiDP(30.0, epsilon), n * true_renyi(matrix, 30.0)),
            ]
            for budget, exact in sums:
                low, high = floats_around(exact)
                assert PrivacyFilter(budget(high)).admits(matrix, n)
                if 0 <= low < high:
                    assert not PrivacyFilter(budget(low)).admits(matrix, n)


@pytest.mark.full(but=5)
@pytest.mark.parametrize("seed", range(15))
def test_a_mechanism_fits_a_budget_of_its_own_measured_value(seed):
    """Under every notion, the value that a measure tells is a budget that admits the channel once."""
    matrix = random_channel(seed)
    budgets = [
        PureDP(local_dp(matrix).value),
        TV(total_variation(matrix).value),
        *(RenyiDP(order, renyi(matrix, order).value) for order in (1.0, 1.01, 2.5, 100.0, math.inf)),
        ZCDP(0.0, zcdp(matrix).value),
        ZCDP(0.01, zcdp(matrix, 0.01).value),
        ZCDP(-1e-3, zcdp(matrix, -1e-3).value),
        ApproximateDP(0.5, hockey_stick(matrix, 0.5).value),
        ApproximateDP(approximate_dp(matrix, 0.01).value, 0.01),
    ]
    assert [budget for budget in budgets if not PrivacyFilter(budget).admits(matrix)] == []
    ledger = Ledger().add(matrix)
    assert ledger.local_dp().value <= local_dp(matrix).value
    assert ledger.renyi(2.5).value <= renyi(matrix, 2.5).value
    assert ledger.zcdp().value <= zcdp(matrix).value
    assert ledger.mcdp().tau <= mcdp(matrix).tau.value
    assert all(total.lower <= total.value for total in (ledger.local_dp(), ledger.renyi(2.5), ledger.zcdp()))


def test_noise_is_counted_by_its_parameters():
    """Sums of stated numbers are exact, however many: Laplace, Gaussian, staircase noise, claims and oracles."""
    assert PrivacyFilter(PureDP(2.0)).admits(randomized_response(2, 2.0))
    assert PrivacyFilter(PureDP(2.0)).room(laplace(1.0)) == 2
    assert PrivacyFilter(PureDP(math.nextafter(2.0, 0.0))).room(laplace(1.0)) == 1
    assert PrivacyFilter(PureDP(1400.0)).room(laplace(700.0)) == 2
    for step, total in ((0.1, 0.3), (1e-306, 1e-300), (5e-324, 5e-324), (1e-3, 1e3), (0.7, 700.0)):
        count = min(10**6, math.floor(Fraction(total) / Fraction(step)))
        assert PrivacyFilter(PureDP(total)).room((step,)) == count
        assert Ledger().add((step,), max(count, 1)).local_dp().value == pytest.approx(step * count, rel=1e-15)
    for sigma in (2.0, math.sqrt(5.0), 0.3, 7.0):
        rho = 1 / (2 * Fraction(sigma) ** 2)
        for budget in (0.5, 1.0, 10.0):
            count = math.floor(Fraction(budget) / rho)
            assert PrivacyFilter(ZCDP(0.0, budget)).room(gaussian(sigma)) == count
            assert PrivacyFilter(ZCDP(-0.25, budget + 0.25)).room(gaussian(sigma)) == count
            assert PrivacyFilter(RenyiDP(3.0, 3 * budget)).room(gaussian(sigma)) == count
    for mechanism in (staircase(1.0, 0.3), unary_encoding(5, 1.0), local_hashing(9, 1.0), hadamard_response(8, 1.0)):
        assert PrivacyFilter(PureDP(1.0)).room(mechanism) == 1
        assert PrivacyFilter(TV(mechanism.eta)).room(mechanism) == 1
    assert PrivacyFilter(TV(0.75)).room((0.0, 0.5)) == 2
    assert PrivacyFilter(TV(math.nextafter(0.75, 0.0))).room((0.0, 0.5)) == 1
    assert PrivacyFilter(TV(0.1)).admits((1.0, 0.0, 0.1))
    assert PrivacyFilter(TV(1.0)).room(laplace(1.0)) == 10**6


def test_mixed_mechanisms_are_summed_exactly():
    """A channel, Laplace noise and a claim together: an ulp decides."""
    matrix = [[0.75, 0.25], [0.25, 0.75]]
    with mpmath.workdps(DIGITS):
        exact = 3 * mpmath.log(3) + 2 * mpmath.mpf(0.7) + 5 * mpmath.mpf(0.1)
        low, high = floats_around(exact)
    ledger = Ledger().add(matrix, 3).add(laplace(0.7), 2).add((0.1,), 4)
    assert PrivacyFilter(PureDP(high), ledger).admits(PureDP(0.1))
    assert not PrivacyFilter(PureDP(low), ledger).admits(PureDP(0.1))
    assert (ledger.add((0.1,)).local_dp().lower, ledger.add((0.1,)).local_dp().value) == (low, high)
    assert not PrivacyFilter(PureDP(700.0)).admits(gaussian(1.0))
    assert PrivacyFilter(PureDP(math.inf)).admits(gaussian(1.0))
    assert not PrivacyFilter(RenyiDP(2.0, 1e300)).admits([[1.0, 0.0], [0.0, 1.0]])


def test_one_use_meets_an_approximate_budget_by_its_own_curve():
    """A first mechanism needs no theorem on composition; nothing that costs is admitted after it by that rule."""
    noise = gaussian.for_approximate_dp(1.0, 1e-6)
    filter_ = PrivacyFilter(ApproximateDP(1.0, 1e-6))
    assert filter_.room(noise) == 1
    assert not filter_.add(noise).admits((1e-9,))
    assert filter_.add(noise).admits([[0.5, 0.5], [0.5, 0.5]]) in (True, False)
    assert not PrivacyFilter(ApproximateDP(1.0, 0.99e-6)).admits(noise)
    assert not PrivacyFilter(ApproximateDP(1.0, 0.0)).admits(noise)
    assert not filter_.admits((1.0, 1e-7))


def test_large_channels_are_measured_in_floats():
    """Beyond the limit of terms the measured values decide, and the pure epsilon is exact all the same."""
    channel = subset_selection(11, 1.0, 3)
    mechanism = as_mechanism(channel)
    k, m = channel.matrix.shape
    assert k * (k - 1) * m > MAX_TERMS
    assert mechanism.exact.renyi(2.0) is None
    assert PrivacyFilter(RenyiDP(2.0, renyi(channel, 2.0).value)).admits(mechanism)
    assert PrivacyFilter(TV(total_variation(channel).value)).admits(mechanism)
    assert PrivacyFilter(ApproximateDP(0.5, hockey_stick(channel, 0.5).value)).admits(mechanism)
    with mpmath.workdps(40):
        q = channel.matrix
        rows = laws(q)
        exact = max(mpmath.log(number(max(column) / min(column))) for column in zip(*rows, strict=True))
        low, high = floats_around(exact)
    assert PrivacyFilter(PureDP(high)).admits(mechanism)
    assert not PrivacyFilter(PureDP(low)).admits(mechanism)


@pytest.mark.full
def test_a_stated_epsilon_of_densities_is_an_upper_bound():
    """Densities with a stated epsilon count by it, above their measured lower bound."""

    def logistic(x):
        return -x - 2 * np.logaddexp(0, -x)

    pair = ContinuousPair(logistic, lambda x: logistic(x - 1), (-np.inf, 0.5, np.inf), epsilon=1.0)
    total = Ledger().add(pair, 2).local_dp()
    assert total.value == 2.0
    assert total.lower <= 2.0
    assert PrivacyFilter(PureDP(2.0)).room(pair) == 2


def test_fractions_are_exact_and_zeros_have_infinite_losses():
    """Laws of fractions are taken as such, a zero against a mass is an infinite loss, and 0 is met by equal rows."""
    third = MatrixMeasures(as_fractions([Fraction(1, 3), Fraction(2, 3)], [Fraction(2, 3), Fraction(1, 3)]))
    assert third.largest_loss.ratio == 2
    assert third == MatrixMeasures(as_fractions([Fraction(1, 3), Fraction(2, 3)], [Fraction(2, 3), Fraction(1, 3)]))
    assert not PrivacyFilter(PureDP(1e300)).admits(FinitePair([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]))
    assert PrivacyFilter(PureDP(0.0)).room([[0.3, 0.7], [0.3, 0.7]], 5) == 5
    assert PrivacyFilter(PureDP(0.0)).room([[0.3, 0.7], [math.nextafter(0.3, 1.0), 0.7]], 5) == 0
    assert not certainly_at_most(lambda: pytest.importorskip("flint").arb("0.5 +/- 0.1"), 0.5)
