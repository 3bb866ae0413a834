"""Every error found in the sources: the printed form fails, the corrected one holds.

1 [CIM, Thm 13, Table 1, Thm 5]; 2 [CIM, Lemma 3 and Appendix A]; 3 [GI, section VI-C, Appendices J and I-1];
4 [DR, Cor 3.3]; 5 [M, Lemma 1's proof]. The letters part what one item says of several statements.
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad, trapezoid
from scipy.optimize import minimize_scalar

from ldpopt.divergences import alpha
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import dominating_pair, gaussian, laplace, matrix_mechanism, randomized_response, staircase
from ldpopt.privacy import (
    FinitePair,
    RestrictedAlpha,
    capacity_bounded,
    local_dp,
    maximal_leakage,
    total_variation,
)
from ldpopt.privacy.implications import group_gaussian_mcdp


def laplace_density(y):
    return 0.05 * np.exp(-0.1 * np.abs(y))


def gaussian_density(y):
    return np.exp(-(y**2) / 18) / (3 * math.sqrt(2 * math.pi))


def printed_bound(order, epsilon, answers):
    """[CIM, Thm 5]: log(1 + 2^(s (order-1)) epsilon^order) / (order - 1)."""
    return math.log1p(2.0 ** (answers * (order - 1)) * epsilon**order) / (order - 1)


@pytest.mark.parametrize(
    ("mechanism", "density", "order", "exact", "growth", "printed"),
    [
        (laplace(0.1), laplace_density, 3, 0.00739299, 2.0**2 * 0.1**3, 0.00199601),
        (laplace(0.1), laplace_density, 6, 0.0127003, 2.0**5 * 0.1**6, 6.3999e-06),
        (gaussian(3.0), gaussian_density, 6, 0.15372, (2 * math.pi) ** 2.5 / 3.0**6, 0.0254577),
    ],
)
def test_1a_linear_renyi_rows_understate_the_leakage(mechanism, density, order, exact, growth, printed):
    """[CIM, Thm 13] and Table 1 claim less leakage than there is at order > 2 and small epsilon or large sigma.

    `growth` is Table 1's 2^(order-1) epsilon^order, or sqrt(2 pi)^(order-1)/sigma^order. One feature h = y + c out of
    four, integrated on a plain grid, already exceeds the bound.
    """
    claimed = math.log1p(growth) / (order - 1)
    assert claimed == pytest.approx(printed, rel=1e-5)
    guarantee = mechanism.restricted_renyi(order)
    assert guarantee.value == pytest.approx(exact, rel=1e-5)
    assert guarantee.lower > claimed
    width = 40 * math.sqrt(mechanism.variance)
    y = np.linspace(-width, width, 200_001)
    features = []
    for c in mechanism.variance * np.array([0.2, 0.5, 1.0, 2.0]):
        moment = trapezoid(density(y) * np.abs(y + c) ** (order / (order - 1)), y)
        features.append((order * math.log(1 + c) - (order - 1) * math.log(moment)) / (order - 1))
    assert claimed < max(features) <= guarantee.value * (1 + 1e-6)


def test_1b_the_bound_holds_where_the_paper_plots_it():
    """At epsilon = 1 the printed bound is above the exact value."""
    for order in (2, 3, 6):
        assert laplace(1.0).restricted_renyi(order).value <= math.log1p(2.0 ** (order - 1)) / (order - 1)


def test_1c_leading_order_is_that_of_the_variance():
    """For wide noise the value tends to order v^2/(2 Var): the counterexample to the printed bound."""
    for order in (2.0, 3.0, 6.0):
        assert laplace(0.001).restricted_renyi(order).value == pytest.approx(order * 0.001**2 / 4, rel=1e-4)
        assert gaussian(1000.0).restricted_renyi(order).value == pytest.approx(order / 2e6, rel=1e-4)


def test_1d_matrix_mechanism_bound_understates_the_loss():
    """[CIM, Thm 5] understates the loss at small epsilon: with one answer, 6.4e-6 is claimed of 0.0127."""
    m = matrix_mechanism([[1.0]], [[1.0]], 0.1)
    claimed = printed_bound(6, 0.1, 1)
    assert claimed == pytest.approx(6.3999e-06, rel=1e-4)
    assert m.restricted_renyi(6).lower == pytest.approx(0.0127003, rel=1e-5)
    wide = matrix_mechanism(np.eye(2), np.eye(2), 0.01)
    assert wide.restricted_renyi(6).lower > 1000 * printed_bound(6, 0.01, 2)


def test_2a_conjugate_of_the_alpha_divergence_has_a_corrected_power():
    """[CIM, Lemma 3] prints C |s| + ...: the conjugate is C |s|^(a/(a-1)) + 1/(a^2 - a), C = (a-1)^(a/(a-1))/a."""
    order = 3.0
    constant, power = (order - 1) ** 1.5 / order, 1.5
    for s in (0.3, 1.0, 2.5):
        found = minimize_scalar(
            lambda t, s=s: alpha(order).generator(t) - s * t, bounds=(0, 50), method="bounded", options={"xatol": 1e-12}
        )
        corrected = constant * s**power + 1 / (order**2 - order)
        assert alpha(order).conjugate(s) == pytest.approx(corrected, rel=1e-12)
        assert -found.fun == pytest.approx(corrected, rel=1e-8)
        if s != 1:
            assert abs(-found.fun - (constant * s + 1 / (order**2 - order))) > 0.01
        assert abs(-found.fun - (constant * s**power - 1 / (order**2 - order))) > 0.1


def test_2b_restricted_alpha_divergence_needs_the_corrected_conjugate():
    """[CIM, Lemma 3] prints C |s| - 1/(a^2 - a): the program sup_h E_p h - E_q f*(h) is then no divergence.

    On equal rows it is positive at constant h already, while with the corrected conjugate it is 0.
    """
    order, row = 3.0, np.array([0.2, 0.3, 0.5])
    constant, offset = (order - 1) ** 1.5 / order, 1 / (order**2 - order)
    h = np.linspace(-5, 5, 100_001)
    corrected = (h - constant * np.abs(h) ** 1.5 - offset).max()
    printed = (h - (constant * np.abs(h) - offset)).max()
    assert corrected == pytest.approx(0, abs=1e-8)
    assert printed > 0.1  # two equal rows would already leak
    assert capacity_bounded(np.tile(row, (2, 1)), [0, 1, 2], RestrictedAlpha(order)).value == 0


def test_2c_renyi_divergence_of_the_gaussian_mechanism_is_half_the_printed():
    """[CIM, Appendix A] prints order (v/sigma)^2: the divergence is half of that, by quadrature."""
    order, sigma = 3.0, 1.7

    def integrand(x):
        p, q = -(x**2) / 2 / sigma**2, -((x - 1) ** 2) / 2 / sigma**2
        return math.exp(order * p + (1 - order) * q) / math.sqrt(2 * math.pi) / sigma

    divergence = math.log(quad(integrand, -40, 40, points=[0, -2])[0]) / (order - 1)
    assert gaussian(sigma).pair.renyi(order).value == pytest.approx(divergence, rel=1e-9)
    assert order / sigma**2 == pytest.approx(2 * divergence, rel=1e-9)


def test_3a_staircase_gamma_ends_at_one():
    """[GI, VI-C] lets gamma range over [0, inf): above 1 the printed density does not integrate to 1."""
    epsilon = 1.0

    def mass(gamma):
        height = (1 - math.exp(-epsilon)) / (2 * (gamma + math.exp(-epsilon) * (1 - gamma)))
        y = (np.arange(200_000) + 0.5) / 2000
        density = height * np.exp(-epsilon * np.floor(y)) * np.where(y % 1 < gamma, 1, math.exp(-epsilon))
        return 2 * density.sum() / 2000

    for gamma in (0.0, 0.4, 1.0):
        assert mass(gamma) == pytest.approx(1, abs=1e-9)
    assert mass(1.5) < 0.9
    with pytest.raises(InvalidInput, match="gamma"):
        staircase(epsilon, 1.5)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 6.0])
def test_3b_maximal_leakage_of_two_inputs_has_a_corrected_formula(epsilon):
    """[GI, Appendix J] prints log 2 eps/(e^eps + 1) for the maximal leakage: it is log 2 e^eps/(e^eps + 1).

    Every epsilon-LDP channel of two inputs meets the corrected bound and binary randomized response attains it, which
    is above the printed one; e^leakage - 1 is the total variation, hence at most tanh(epsilon/2) [GI, Prop 2].
    """
    corrected = math.log(2 * math.exp(epsilon) / (math.exp(epsilon) + 1))
    printed = math.log(2 * epsilon / (math.exp(epsilon) + 1))
    attained = maximal_leakage(randomized_response(2, epsilon))
    assert attained.value == pytest.approx(corrected, rel=1e-9)
    assert attained.lower > printed + 0.1
    rng = np.random.default_rng(5)
    for _ in range(30):
        pair = dominating_pair(epsilon, 0.0, rng.uniform(0, math.tanh(epsilon / 2)))
        channel = pair.channel.then(rng.dirichlet(np.full(4, 0.5), 5))
        assert local_dp(channel).lower <= epsilon * (1 + 1e-12)
        assert maximal_leakage(channel).lower <= corrected * (1 + 1e-12)
        eta = float(total_variation(channel))
        assert math.expm1(float(maximal_leakage(channel))) == pytest.approx(eta, rel=1e-9)
        assert total_variation(channel).lower <= math.tanh(epsilon / 2) * (1 + 1e-12)


def test_3c_staircase_total_variation_below_one_half_has_a_positive_factor():
    """[GI, Appendix I-1] prints a factor 1 - e^epsilon, negative: it is 1 - e^-epsilon.

    For gamma < 1/2 the total variation is the height times D (e^-epsilon + 2 gamma (1 - e^-epsilon)).
    """
    m = staircase(0.8, 0.2, 1.5)
    drop, q = 1 - math.exp(-0.8), math.exp(-0.8)
    corrected = m.height * (q * 1.5 + 2 * 0.2 * 1.5 * drop)
    printed = m.height * (q * 1.5 + 2 * 0.2 * 1.5 * (1 - math.exp(0.8)))
    y = (np.arange(120_000) + 0.5) / 2000 - 30
    direct = np.maximum(m.density(y) - m.density(y - 1.5), 0).sum() / 2000
    assert m.eta == pytest.approx(corrected, rel=1e-12)
    assert direct == pytest.approx(corrected, rel=1e-6)
    assert printed < 0.5 * direct


def test_4a_group_tau_of_the_gaussian_mechanism_is_divided_by_sigma():
    """[DR, Cor 3.3] prints s D as the second parameter for groups of s: it is s D/sigma, the loss's own deviation."""
    sigma, sensitivity, group = 2.0, 1.0, 3
    mcdp = gaussian(sigma, group * sensitivity).pair.mcdp()
    assert mcdp.mu.value == pytest.approx((group * sensitivity / sigma) ** 2 / 2, rel=1e-12)
    assert mcdp.tau.value == pytest.approx(group * sensitivity / sigma, rel=1e-12)
    shift = group * sensitivity

    def loss(x):
        return (-(x**2) + (x - shift) ** 2) / 2 / sigma**2

    def weighted(x, power):
        return math.exp(-(x**2) / 2 / sigma**2) / math.sqrt(2 * math.pi) / sigma * (loss(x) - mcdp.mu.value) ** power

    deviation = math.sqrt(quad(weighted, -40, 40, args=(2,), points=[0])[0])
    assert deviation == pytest.approx(mcdp.tau.value, rel=1e-9)
    assert abs(deviation - group * sensitivity) > 1


def test_4b_group_loss_of_the_gaussian_exceeds_the_printed_tau():
    """DR Cor 3.3 prints tau = s Delta; the loss of a group is N(t^2/2, t^2) with t = s Delta/sigma."""
    sensitivity, sigma, size = 1.0, 0.25, 3
    shift = size * sensitivity / sigma
    x = np.random.default_rng(0).normal(0.0, 1.0, 200_000)
    loss = shift**2 / 2 + shift * x  # log density ratio of N(s Delta, sigma^2) and N(0, sigma^2), in units of sigma
    printed, found = size * sensitivity, group_gaussian_mcdp(sensitivity, sigma, size)
    assert loss.std() == pytest.approx(found.tau, rel=0.01)
    assert loss.std() > 3 * printed  # a subgaussian parameter is at least the standard deviation
    assert found.mu == pytest.approx(shift**2 / 2)
    assert group_gaussian_mcdp(sensitivity, 1.0, size).tau == pytest.approx(printed)


def test_5_distance_of_pure_private_pairs_is_at_most_2_epsilon():
    """||P - Q||_1 <= min(2, e^eps - 1) <= 2 eps^2 fails for small eps; <= 2 eps holds (M, proof of Lemma 1)."""
    for epsilon in (0.01, 0.1, 0.4, 1.0, 3.0):
        pair = FinitePair.of_parameters(epsilon)
        distance = np.abs(pair.p - pair.q).sum()
        assert distance <= min(2, math.expm1(epsilon)) <= 2 * epsilon
        assert all(
            float(found) <= 2 * found.parameters["order"] * epsilon**2
            for found in pair.renyi([1.0, 1.5, 2.0, 8.0, 100.0])
        )  # the lemma itself survives
    epsilon = 0.1
    pair = FinitePair.of_parameters(epsilon)
    assert min(2, math.expm1(epsilon)) > 2 * epsilon**2
    assert np.abs(pair.p - pair.q).sum() > 2 * epsilon**2
