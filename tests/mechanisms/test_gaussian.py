import math

import numpy as np
import pytest
from scipy.stats import norm

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import GaussianPair, gaussian


@pytest.mark.parametrize(("sigma", "sensitivity"), [(1.0, 1.0), (4.0, 2.0), (0.2, 1.0)])
def test_guarantees(sigma, sensitivity):
    """(2 Phi(mu/2) - 1)-TV [GI, eq. 17] and mu^2/2-zCDP for mu = sensitivity/sigma; no finite epsilon."""
    m = gaussian(sigma, sensitivity)
    mu = sensitivity / sigma
    assert m.pair == GaussianPair(mu)
    assert m.eta == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-12)
    assert m.pair.zcdp().value == pytest.approx(mu**2 / 2, rel=1e-12)
    assert m.epsilon == math.inf
    assert m.variance == sigma**2


def test_trade_off_is_gaussian_dp():
    """The curve is Phi(Phi^-1(1 - rate) - mu) [DRS], from 1 down to 0."""
    rates = np.linspace(0.001, 0.999, 25)
    np.testing.assert_allclose(
        gaussian(0.7).pair.trade_off_at(rates), norm.cdf(norm.ppf(1 - rates) - 1 / 0.7), rtol=1e-10
    )
    assert gaussian(0.7).pair.trade_off_at([0.0, 1.0]).tolist() == pytest.approx([1.0, 0.0], abs=1e-11)


def test_restricted_kl_is_all_of_it():
    """Affine features reach the whole KL divergence of the Gaussian mechanism [CIM, Thm 10]."""
    m = gaussian(2.5, 2.0)
    assert m.restricted_kl().value == pytest.approx(m.pair.renyi(1).value, rel=1e-12)


def test_sample():
    """Noise has the stated variance (seed 1, 5 standard errors)."""
    noise = gaussian(2.0).sample(np.zeros(20_000), np.random.default_rng(1))
    assert np.var(noise) == pytest.approx(4.0, rel=5 * math.sqrt(2 / 20_000))


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, "1"])
def test_bad_sigma_is_refused(sigma):
    """sigma is a positive finite number."""
    with pytest.raises(InvalidInput, match="sigma: expected a positive finite number"):
        gaussian(sigma)
