"""Gaussian and Laplace noise after Poisson sampling: every measure against formulas and quadrature with 50 digits."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import ContinuousPair, gaussian, laplace
from ldpopt.mechanisms.loss_moments import MAX_POINTS, gaussian_moment
from ldpopt.mechanisms.sampled import SampledPair

RATES, SIGMAS = (1e-6, 1e-3, 0.01, 0.2, 0.5, 0.9, 1 - 1e-9), (0.1, 0.3, 1.0, 5.0, 30.0, 100.0)
ORDERS = (2, 3, 16, 64, 256, 1000, 10_000)


def binomial_renyi(mu, rate, order):
    """The divergence of integer order from the mixture to the noise, a sum of positive terms [MTZ, section 3.3]."""
    r, total, weight = mpf(rate), mpf(0), (1 - mpf(rate)) ** order
    for k in range(order + 1):
        total += weight * mp.expm1(k * (k - 1) * mpf(mu) ** 2 / 2)
        weight *= mpf(order - k) / (k + 1) * r / (1 - r)
    return mp.log1p(total) / (order - 1)


def integral(mu, rate, function):
    """E function(M) under the noise alone, M the mixture's likelihood ratio, by quadrature cut at both modes."""
    mu, r = mpf(mu), mpf(rate)
    cuts = sorted({mode + c for mode in (mpf(0), mu) for c in (-40, -20, -10, -6, -3, -1, 0, 1, 3, 6, 10, 20, 40)})
    return mp.quad(lambda x: function(1 - r + r * mp.exp(mu * x - mu * mu / 2)) * mp.npdf(x), cuts, maxdegree=8)


def test_the_second_mode_is_seen():
    """Order 256 at rate 0.01 and sigma 5 has its mass at 256/5, fifty deviations from the noise: 0.5005."""
    found = gaussian(5.0).pair.subsampled(0.01).renyi(256)
    with mp.workdps(50):
        assert found.lower <= binomial_renyi(0.2, 0.01, 256) <= found.value
    assert found.exact
    assert found.value == pytest.approx(0.5005309, abs=1e-7)


def disagreeing(rates, sigmas, orders):
    wrong = []
    with mp.workdps(60):
        for rate in rates:
            for sigma in sigmas:
                pair = gaussian(sigma).pair.subsampled(rate)
                for order in orders:
                    found, truth = pair.renyi(order), binomial_renyi(gaussian(sigma).mu, rate, order)
                    near = found.value <= truth * (1 + mpf(10) ** -9)
                    if not (found.lower <= truth <= found.value and found.exact and near):
                        wrong.append((rate, sigma, order, found.lower, found.value, mp.nstr(truth, 20)))
    return wrong


def test_renyi_of_integer_orders_is_exact():
    """Settings from rate 1e-6 to nearly 1, sigma 0.1 to 100, orders up to 1000: enclosed, to nine digits, and exact."""
    assert disagreeing((1e-6, 0.01, 0.9), (0.1, 1.0, 100.0), (2, 16, 256, 1000)) == []


@pytest.mark.full
def test_renyi_of_integer_orders_is_exact_over_all_settings():
    """294 settings, orders up to 10,000."""
    assert disagreeing(RATES, SIGMAS, ORDERS) == []


@pytest.mark.full
@pytest.mark.parametrize(("rate", "sigma"), [(1e-6, 1.0), (0.9, 0.3)])
def test_renyi_between_integers_is_enclosed_in_both_directions(rate, sigma):
    """Orders near 1 and between integers; the direction from the noise to the mixture is never larger."""
    pair = gaussian(sigma).pair.subsampled(rate)
    with mp.workdps(50):
        for order in (1 + 1e-6, 1.5, 2.7):
            a, found = mpf(order), pair.renyi(order)
            truth = mp.log1p(integral(pair.base.mu, rate, lambda m, a=a: m**a - 1 - a * (m - 1))) / (a - 1)
            back = mp.log1p(integral(pair.base.mu, rate, lambda m, a=a: m ** (1 - a) - 1 - (1 - a) * (m - 1))) / (a - 1)
            assert found.lower * (1 - 1e-12) <= truth <= found.value * (1 + 1e-12)
            assert back <= found.value * (1 + 1e-12)
            assert found.exact
        found, truth = pair.renyi(1), integral(pair.base.mu, rate, lambda m: m * mp.log(m) - m + 1)
        assert found.lower * (1 - 1e-12) <= truth <= found.value * (1 + 1e-12)


def test_noise_alone_at_the_ends_of_the_range():
    """Gaussian noise so strong or weak that mu^2 leaves the range of floats: an upper bound above zero, no overflow."""
    for sigma in (1e-200, 1e-100, 1.0, 1e100, 1e200):
        pair = gaussian(sigma).pair
        with mp.workdps(50):
            truth = mpf(pair.mu) ** 2 / 2
            for order in (1.0, 2.0, 1e300):
                found = pair.renyi(order)
                assert mpf(found.lower) <= order * truth
                assert math.isinf(found.value) or order * truth <= mpf(found.value)
            assert math.isinf(pair.zcdp().value) or truth <= mpf(pair.zcdp().value)


def test_no_setting_overflows():
    """Orders up to 1e300, sigma from 0.1 to 1e6: a bound in every case, between the noise and a single term."""
    for rate in (1e-6, 0.3):
        for sigma in (0.1, 1.0, 1e6):
            pair = gaussian(sigma).pair.subsampled(rate)
            for order in (1 + 1e-6, 9999.5, 1e6, 1e12, 1e300):
                found = pair.renyi(order)
                assert 0 <= found.lower <= found.value <= pair.base.renyi(order).value
                assert found.value >= (order * math.log(rate) / (order - 1) + order * pair.base.mu**2 / 2) * (1 - 1e-12)


def test_plain_normals_do_not_overflow_far_in_the_tail():
    """Two normal densities of a caller at order 50: an estimate near 25, not called exact, and no overflow."""
    pair = gaussian(1.0).pair
    plain = ContinuousPair(pair.log_p, pair.log_q, pair.edges)
    for order in (50.0, 1000.0):
        found = plain.renyi(order)
        assert found.value == pytest.approx(order / 2, rel=1e-9)
        assert not found.exact
    mixed = plain.subsampled(0.01)
    assert mixed.renyi(50).value == pytest.approx(pair.subsampled(0.01).renyi(50).value, rel=1e-8)


@pytest.mark.parametrize("rate", [1e-6, 0.2, 0.9])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
def test_delta_is_enclosed_in_each_direction(rate, sigma):
    """Both closed forms at losses of both signs; far tails stay above zero where the truth is."""
    pair = gaussian(sigma).pair.subsampled(rate)
    mu, r = mpf(pair.base.mu), mpf(rate)

    def normal(e):  # of the noise alone, at a ratio e > 0
        x = mp.log(e)
        return mp.ncdf(mu / 2 - x / mu) - e * mp.ncdf(-mu / 2 - x / mu)

    with mp.workdps(300):
        for epsilon in (-3.0, -1e-3, 0.0, 1e-4, 0.3, 2.0, 8.0):
            e = mp.exp(mpf(epsilon))
            inner, share = 1 + (e - 1) / r, 1 - e * (1 - r)
            forward = r * normal(inner) if inner > 0 else 1 - e
            backward = share * normal(e * r / share) if share > 0 else mpf(0)
            for truth, reverse in ((forward, False), (backward, True)):
                low, high = pair._one_way(epsilon, reverse)
                assert low <= truth + mpf(10) ** -320
                assert truth <= high
                assert high <= truth * (1 + mpf(10) ** -6) + mpf(10) ** -290
            found = pair.hockey_stick(epsilon)
            assert found.value >= max(forward, backward)


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("rate", "epsilon"), [(1e-6, 0.01), (0.2, 1.0), (0.9, 20.0)])
def test_measures_of_sampled_laplace_agree_with_sums_and_quadrature(rate, epsilon):
    """Integer orders by the binomial sum over [M, Table II], and the other measures between quadrature's ends."""
    pair = laplace(epsilon).pair.subsampled(rate)
    with mp.workdps(60):
        r, e = mpf(rate), mpf(epsilon)
        for order in (2, 16, 128):
            total, weight = mpf(0), (1 - r) ** order
            for k in map(mpf, range(order + 1)):
                total += weight * ((k * mp.exp((k - 1) * e) + (k - 1) * mp.exp(-k * e)) / (2 * k - 1) - 1)
                weight *= (order - k) / (k + 1) * r / (1 - r)
            found, truth = pair.renyi(order), mp.log1p(total) / (order - 1)
            assert found.lower <= truth <= found.value
            assert found.exact
    largest = math.log1p(rate * math.expm1(epsilon))
    assert pair.renyi(math.inf).value == pytest.approx(largest, rel=1e-12)
    both = pair.mcdp()
    assert both.mu.exact
    assert both.tau.lower <= both.tau.value <= largest - math.log1p(rate * math.expm1(-epsilon))
    rho = pair.zcdp()
    assert rho.lower >= both.mu.lower * (1 - 1e-9)
    assert rho.value <= laplace(epsilon).pair.zcdp().value * (1 + 1e-9)


def test_cumulants_of_small_arguments_keep_their_digits():
    """log E exp(s (Z - E Z)) is s^2/2 times the variance for tiny s, of both signs and in both directions."""
    pair = laplace(1.0).pair.subsampled(0.2)
    for reverse in (False, True):
        variance = sum(pair._variance(reverse)) / 2
        for s in (1e-12, -1e-9):
            low, high = pair.cumulant(s, reverse=reverse)
            assert low <= high <= low * (1 + 1e-10)
            assert high == pytest.approx(s * s / 2 * variance, rel=1e-6)


def test_concentration_of_a_sampled_gaussian_agrees_with_a_scan():
    """rho is that of the noise, which large orders come near; over bounded orders it is the largest of a scan."""
    pair = gaussian(1.0).pair.subsampled(0.2)
    assert pair.zcdp().value == pytest.approx(0.5, rel=1e-12)
    assert pair.zcdp().exact
    orders = np.linspace(1.0001, 8, 200)
    scan = max((pair.renyi(float(order)).lower - 0.01) / order for order in orders)
    found = pair.zcdp(0.01, 8.0)
    assert scan <= found.value
    assert found.lower >= scan * (1 - 1e-3)
    assert found.value <= found.lower * (1 + 1e-6)
    assert (pair.mcdp().tau.value, pair.mcdp().tau.exact) == (math.inf, False)


def test_sampling_twice_multiplies_the_rates():
    """Rates multiply, rounded up; rate 1 changes nothing; others are refused."""
    pair = gaussian(1.0).pair
    assert pair.subsampled(0.5).subsampled(0.25) == SampledPair(pair, 0.125)
    assert pair.subsampled(1) is pair
    assert pair.subsampled(0.3).subsampled(1) == pair.subsampled(0.3)
    assert hash(pair.subsampled(0.3)) == hash(SampledPair(pair, 0.3))
    for rate in (0.0, 1.5, -0.1, math.nan, "x"):
        with pytest.raises(InvalidInput, match="rate"):
            pair.subsampled(rate)
    with pytest.raises(InvalidInput, match="rate"):
        SampledPair(pair, 1.0)


def test_finite_pairs_lie_on_both_sides():
    """The finite pair dominates and the merged pair is dominated, in each direction, closely."""
    pair = gaussian(0.7).pair.subsampled(0.3)
    above, below = pair.finite_pair(), pair.merged_pair()
    assert not above.symmetric
    for epsilon in (0.0, 0.05, 0.4, 1.5, 5.0):
        for reverse in (False, True):
            low, high = pair._one_way(epsilon, reverse)
            found = [each.swapped if reverse else each for each in (above, below)]
            top, bottom = (float(np.maximum(x.p - math.exp(epsilon) * x.q, 0).sum()) for x in found)
            assert top >= low * (1 - 1e-9)
            assert bottom <= high * (1 + 1e-6) + 1e-15
            assert top <= high * (1 + 2e-3) + 1e-12
            assert bottom >= low * (1 - 5e-3) - 1e-12


def test_sums_that_would_be_too_long_are_not_formed():
    """Beyond `MAX_POINTS` there is no sum, and the bounds in closed form are stated."""
    from flint import arb

    assert gaussian_moment(1e-3, 0.5, arb(1e12), 0, 64) is None
    found = gaussian(1000.0).pair.subsampled(0.5).renyi(1e12)
    assert 0 < found.lower < found.value
    assert MAX_POINTS > 1000
