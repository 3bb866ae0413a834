import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import Gaussian, GaussianPair, LaplacePair, gaussian, laplace


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_laplace_guarantees_are_closed_forms(epsilon):
    """epsilon-DP and (1 - e^(-epsilon/2))-TV, whatever the sensitivity; variance 2 (sensitivity/epsilon)^2."""
    m = laplace(epsilon, 3.0)
    assert m.pair == LaplacePair(epsilon)
    assert m.eta >= -math.expm1(-epsilon / 2)
    assert m.eta == pytest.approx(-math.expm1(-epsilon / 2), rel=1e-13)
    assert m.variance == pytest.approx(2 * (3 / epsilon) ** 2, rel=1e-15)


@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 1.0, 10.0])
def test_restricted_kl_of_laplace_is_its_supremum(epsilon):
    """The formula of [CIM, Thm 9] is the supremum of a - log E exp(a Y) = a + log(1 - a^2/epsilon^2) over a."""
    guarantee = laplace(epsilon, 2.0).restricted_kl()
    if epsilon > 1e-3:
        root = math.sqrt(1 + epsilon**2)
        printed = math.log(1 - ((1 - root) / epsilon) ** 2) + root - 1
        assert guarantee.value == pytest.approx(printed, rel=1e-9)
        found = minimize_scalar(
            lambda a: -a - math.log1p(-((a / epsilon) ** 2)),
            bounds=(0, epsilon * (1 - 1e-12)),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert guarantee.value == pytest.approx(-found.fun, rel=1e-8)
    else:
        assert guarantee.value == pytest.approx(epsilon**2 / 4, rel=1e-9)
    assert guarantee.value < laplace(epsilon).pair.renyi(1).value


@pytest.mark.parametrize("epsilon", [8.5, 20.0, 600.0, 700.0])
def test_the_cumulant_of_a_large_epsilon_is_enclosed_of_laplace(epsilon):
    """Also at small negative s, where exp(s Z) is far from one: the closed form in sixty digits lies inside."""
    pair = LaplacePair(epsilon)
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        for s in map(mpmath.mpf, (-0.2499, -0.2, -0.1, -2.1 / epsilon)):
            w = e * (1 + 2 * s)
            moment = mpmath.exp(s * e) * (1 + e * (1 - mpmath.exp(-w)) / w + mpmath.exp(-w)) / 2
            low, high = pair.cumulant(float(s))
            assert low <= mpmath.log(moment) - s * (e - 1 + mpmath.exp(-e)) <= high
    tau = pair.mcdp().tau
    assert tau.lower <= tau.value <= tau.lower * (1 + 1e-9) <= epsilon


def test_the_moment_generating_function_of_laplace_agrees_with_quadrature():
    """E exp(a Y) = 1/(1 - a^2/epsilon^2): the step of [CIM, Thm 9] that the closed form rests on."""
    a, epsilon = 0.4, 1.0
    value = 2 * quad(lambda y: epsilon / 2 * math.exp(-epsilon * y) * math.cosh(a * y), 0, 100)[0]
    assert value == pytest.approx(1 / (1 - (a / epsilon) ** 2), rel=1e-10)


def test_laplace_samples_have_the_stated_scale():
    """Noise has the stated scale (seed 1, 5 standard errors), shape and type."""
    m, rng = laplace(0.5), np.random.default_rng(1)
    noise = m.sample(np.zeros(20_000), rng)
    assert np.mean(np.abs(noise)) == pytest.approx(2.0, abs=5 * 2 / math.sqrt(20_000))
    assert isinstance(m.sample(3, rng), float)
    assert m.sample([[1, 2]], rng).shape == (1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: laplace(-1.0), "epsilon"),
        (lambda: laplace(1.0, 0.0), "sensitivity: expected a positive finite number"),
        (lambda: laplace(1.0, math.inf), "sensitivity"),
        (lambda: laplace(1.0).sample([1.0], "3"), "rng"),
        (lambda: laplace(1.0).sample([math.nan], np.random.default_rng()), "answers"),
        (lambda: laplace(1.0).sample(["a"], np.random.default_rng()), "answers"),
        (lambda: laplace(1.0).restricted_renyi(1.0), "order: expected a finite number of at least 1.01"),
    ],
)
def test_bad_input_is_refused_of_laplace(call, message):
    """Parameters, answers and generators are checked."""
    with pytest.raises(InvalidInput, match=message):
        call()


@pytest.mark.parametrize(("sigma", "sensitivity"), [(1.0, 1.0), (4.0, 2.0), (0.2, 1.0)])
def test_gaussian_guarantees_are_closed_forms(sigma, sensitivity):
    """(2 Phi(mu/2) - 1)-TV [GI, eq. 17] and mu^2/2-zCDP for mu = sensitivity/sigma; no finite epsilon."""
    m = gaussian(sigma, sensitivity)
    mu = sensitivity / sigma
    assert m.pair == GaussianPair(mu)
    assert m.eta == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-12)
    assert m.pair.zcdp().value == pytest.approx(mu**2 / 2, rel=1e-12)
    assert m.epsilon == math.inf
    assert m.variance == sigma**2


def test_trade_off_is_gaussian_dp_of_gaussian():
    """The curve is Phi(Phi^-1(1 - rate) - mu) [DRS], from 1 down to 0."""
    rates = np.linspace(0.001, 0.999, 25)
    np.testing.assert_allclose(
        gaussian(0.7).pair.trade_off_at(rates), norm.cdf(norm.ppf(1 - rates) - 1 / 0.7), rtol=1e-10
    )
    assert gaussian(0.7).pair.trade_off_at([0.0, 1.0]).tolist() == pytest.approx([1.0, 0.0], abs=1e-11)


def test_restricted_kl_of_gaussian_is_its_whole_kl():
    """Affine features reach the whole KL divergence of the Gaussian mechanism [CIM, Thm 10]."""
    m = gaussian(2.5, 2.0)
    assert m.restricted_kl().value == pytest.approx(m.pair.renyi(1).value, rel=1e-12)


def test_gaussian_samples_have_the_stated_variance():
    """Noise has the stated variance (seed 1, 5 standard errors)."""
    noise = gaussian(2.0).sample(np.zeros(20_000), np.random.default_rng(1))
    assert np.var(noise) == pytest.approx(4.0, rel=5 * math.sqrt(2 / 20_000))


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, "1"])
def test_bad_sigma_is_refused_of_gaussian(sigma):
    """sigma is a positive finite number."""
    with pytest.raises(InvalidInput, match="sigma: expected a positive finite number"):
        gaussian(sigma)


def exact_delta(mu, epsilon):
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), in the digits at hand [BW, Thm 5]."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)

    def phi(x):
        return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

    return phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", [37.0, 38.0, 39.5, 50.0, 1e6])
def test_a_hockey_stick_below_the_smallest_float_is_not_zero_of_gaussian(epsilon):
    """At epsilon 50 it is 1e-536: the value is the smallest float or so, the lower end zero, as everywhere below."""
    found = gaussian(1, 1).pair.hockey_stick(epsilon)
    with mpmath.workdps(60):
        exact = exact_delta(1, epsilon) if epsilon < 1e5 else mpmath.mpf(10) ** -1000
        assert mpmath.mpf(found.lower) <= exact <= mpmath.mpf(found.value)
    assert found.value > 0


@pytest.mark.parametrize("mu", [1e-200, 1e-5, 0.3, 7.0, 1e200])
def test_extreme_noise_is_measured_of_gaussian(mu):
    """Noise far larger or smaller than the answers gives brackets, not NaN."""
    for epsilon in (0.0, 1e-9, 3.0, 700.0):
        found = GaussianPair(mu).hockey_stick(epsilon)
        assert 0 <= found.lower <= found.value <= 1
    assert GaussianPair(mu).approximate_dp(1e-5).value >= 0


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 6.0])
@pytest.mark.parametrize("delta", [0.3, 1e-6, 1e-30, 1e-290])
def test_epsilon_at_delta_inverts_the_curve_of_gaussian(mu, delta):
    """approximate_dp is the epsilon at which the closed form reaches delta, in a bracket of 1e-9, in 400 digits."""
    found = GaussianPair(mu).approximate_dp(delta)
    with mpmath.workdps(400):
        assert exact_delta(mu, found.value) <= mpmath.mpf(delta)
        assert found.lower == 0 or exact_delta(mu, found.lower) >= mpmath.mpf(delta)
    assert found.value - found.lower <= 1e-9 * found.value
    assert GaussianPair(1.0).approximate_dp(1e-30).value == pytest.approx(11.74388, abs=1e-4)
    assert GaussianPair(1.0).approximate_dp(0.0).value == math.inf


LEVELS, RARE, SENSITIVITIES = [0.0, 1e-9, 0.1, 1.0, 10.0, 300.0], [0.9, 1e-3, 1e-10, 1e-250], [1.0, 1e-30, 12345.678]


@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"),
    [(LEVELS[i], RARE[j], SENSITIVITIES[(i + j) % 3]) for i in range(6) for j in range(4)],
)
def test_calibrated_noise_is_private_and_least_of_gaussian(epsilon, delta, sensitivity):
    """The analytic Gaussian is (epsilon, delta)-DP of its sigma as it is, and 1e-9 less noise is not [BW, Alg 1]."""
    made = Gaussian.for_approximate_dp(epsilon, delta, sensitivity)
    with mpmath.workdps(400):
        mu = mpmath.mpf(sensitivity) / mpmath.mpf(made.sigma)
        assert exact_delta(mu, epsilon) <= mpmath.mpf(delta)
        assert exact_delta(mu * (1 + mpmath.mpf(10) ** -8), epsilon) > mpmath.mpf(delta)


def test_classical_noise_is_more_of_gaussian():
    """sqrt(2 log(1.25/delta))/epsilon, for epsilon below one, is more noise than is needed [BW]."""
    assert Gaussian.for_approximate_dp(0.5, 1e-5).sigma < math.sqrt(2 * math.log(1.25e5)) / 0.5


def test_impossible_gaussian_calibrations_are_refused():
    """A delta of 0 or 1, a negative epsilon and bad sensitivities are refused."""
    for bad in ((1.0, 0.0), (1.0, 1.0), (-1.0, 0.1), (math.nan, 0.1), (1.0, 0.1, 0.0)):
        with pytest.raises(InvalidInput):
            Gaussian.for_approximate_dp(*bad)
