import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import FinitePair, dominating_pair
from ldpopt.privacy import local_dp, total_variation


def renyi(p, q, order):
    """Independent of the package: the definition, on the common support."""
    p, q = p[p > 0], q[p > 0]
    if order == 1:
        return float(np.sum(p * np.log(p / q)))
    return float(np.log(np.sum(p**order * q ** (1 - order))) / (order - 1))


@pytest.mark.parametrize(
    ("epsilon", "delta", "eta"), [(1.0, 0.0, 0.3), (0.3, 0.05, 0.1), (2.0, 0.2, 0.2), (1.0, 0.0, math.tanh(0.5))]
)
def test_entries_are_those_of_equation_7(epsilon, delta, eta):
    """The five points, with alpha = 1 - (eta - delta)(1 + e)/((1 - delta)(e - 1)), and p reversed."""
    e = math.exp(epsilon)
    alpha = 1 - (eta - delta) * (1 + e) / ((1 - delta) * (e - 1))
    rest = (1 - delta) * (1 - alpha)
    pair = dominating_pair(epsilon, delta, eta)
    expected = [delta, rest * e / (1 + e), alpha * (1 - delta), rest / (1 + e), 0]
    np.testing.assert_allclose(pair.p, expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(pair.q, pair.p[::-1])


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("share", [1e-6, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.2])
def test_floats_dominate(epsilon, share, delta):
    """The float64 pair is no more private than it says: at 0 and epsilon its hockey sticks reach eta and delta."""
    eta = delta + (1 - delta) * share * math.tanh(epsilon / 2)
    pair = dominating_pair(epsilon, delta, eta)
    p, q = pair.p, pair.q
    assert eta * (1 - 1e-15) <= np.maximum(p - q, 0).sum() <= eta + 5e-13
    reached = np.maximum(p - math.exp(epsilon) * q, 0).sum()
    assert delta - 1e-16 <= reached <= delta + 1e-12 * (1 + math.exp(epsilon))
    if delta == 0:
        assert epsilon <= float(local_dp(pair.channel)) <= epsilon + 1e-13 * (1 + epsilon)
        assert local_dp(pair.channel).lower >= epsilon


def test_kl_is_epsilon_times_eta():
    """With delta = 0 the KL divergence of the pair is exactly epsilon eta."""
    for epsilon, eta in ((1.0, 0.3), (0.2, 0.05), (4.0, 0.9)):
        pair = dominating_pair(epsilon, 0, eta)
        assert renyi(pair.p, pair.q, 1) == pytest.approx(epsilon * eta, rel=1e-12)


@pytest.mark.parametrize(
    ("erasure", "rho", "interior"), [(0.3, 0.323482, False), (0.9, 0.082192, True), (0.0, 0.462117, False)]
)
def test_zero_concentration_of_epsilon_and_eta_together(erasure, rho, interior):
    """sup of D/order is epsilon eta while little is erased, and more, at an interior order, when much is."""
    eta = (1 - erasure) * math.tanh(0.5)
    pair = dominating_pair(1.0, 0.0, eta)
    found = minimize_scalar(lambda a: -renyi(pair.p, pair.q, a) / a, bounds=(1 + 1e-9, 60), method="bounded")
    value = max(-found.fun, renyi(pair.p, pair.q, 1))
    assert value == pytest.approx(rho, abs=1e-6)
    assert (value > eta + 1e-3) == interior


def test_what_does_not_bind_is_ignored():
    """eta above its largest value for (epsilon, delta) changes nothing; delta above eta is eta."""
    np.testing.assert_allclose(
        dominating_pair(1.0, 0.1, 0.99).p, dominating_pair(1.0, 0.1, 0.1 + 0.9 * math.tanh(0.5)).p, rtol=0, atol=1e-13
    )
    pair = dominating_pair(1.0, 0.3, 0.2)
    np.testing.assert_allclose(pair.p, [0.2, 0, 0.8, 0, 0], rtol=0, atol=1e-13)
    assert dominating_pair(1.0, 1.0, 1.0).p.tolist() == [1, 0, 0, 0, 0]
    assert float(total_variation(dominating_pair(1.0, 0.0, 0.0).channel)) <= 1e-14


def test_value_semantics():
    """Pairs compare and hash by their distributions, and are frozen."""
    pair = FinitePair([0.5, 0.5], [0.25, 0.75])
    assert pair == FinitePair(np.array([0.5, 0.5]), [0.25, 0.75])
    assert hash(pair) == hash(FinitePair([0.5, 0.5], [0.25, 0.75]))
    assert pair != FinitePair([0.5, 0.5], [0.75, 0.25])
    with pytest.raises(AttributeError):
        pair.p = pair.q


def test_bad_input_is_refused():
    """Distributions of one length; epsilon positive; delta and eta in [0, 1]."""
    with pytest.raises(InvalidInput, match="q: expected 2 entries"):
        FinitePair([0.5, 0.5], [1.0])
    with pytest.raises(InvalidInput, match="epsilon"):
        dominating_pair(0.0)
    with pytest.raises(InvalidInput, match="delta"):
        dominating_pair(1.0, -0.1)
    with pytest.raises(InvalidInput, match="eta"):
        dominating_pair(1.0, 0.1, 1.5)
