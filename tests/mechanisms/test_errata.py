"""Where a source misprints a formula about mechanisms: the printed form fails, the corrected one holds."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from ldpopt.divergences import alpha
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import gaussian, staircase


def test_conjugate_of_the_alpha_divergence():
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


def test_renyi_divergence_of_the_gaussian_mechanism():
    """[CIM, Appendix A] prints order (v/sigma)^2: the divergence is half of that, by quadrature."""
    order, sigma = 3.0, 1.7

    def integrand(x):
        p, q = -(x**2) / 2 / sigma**2, -((x - 1) ** 2) / 2 / sigma**2
        return math.exp(order * p + (1 - order) * q) / math.sqrt(2 * math.pi) / sigma

    divergence = math.log(quad(integrand, -40, 40, points=[0, -2])[0]) / (order - 1)
    assert gaussian(sigma).pair.renyi(order).value == pytest.approx(divergence, rel=1e-9)
    assert order / sigma**2 == pytest.approx(2 * divergence, rel=1e-9)


def test_staircase_gamma_ends_at_one():
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


def test_staircase_total_variation_below_one_half():
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


def test_group_privacy_of_the_gaussian_mechanism():
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
