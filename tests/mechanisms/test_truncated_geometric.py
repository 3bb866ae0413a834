import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import binary, truncated_geometric
from ldpopt.privacy import local_dp, total_variation


@pytest.mark.parametrize("k", [2, 3, 6, 7, 40])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 60.0])
def test_guarantees(k, epsilon):
    """epsilon-LDP over all pairs, and the total variation of the two extreme answers in closed form."""
    m = truncated_geometric(k, epsilon)
    assert epsilon - 1e-13 * (1 + epsilon) <= local_dp(m).lower <= float(local_dp(m)) <= epsilon
    q = math.exp(-epsilon / (k - 1))
    eta = 1 - q ** ((k - 1) / 2) if k % 2 else 1 - 2 * q ** (k / 2) / (1 + q)
    assert float(total_variation(m)) == pytest.approx(eta, abs=1e-13)
    np.testing.assert_allclose(m.matrix.sum(axis=1), 1, rtol=0, atol=1e-14)


def test_is_truncated_two_sided_geometric_noise():
    """Row x is the law of x + noise, Pr(noise = d) = (1-q)/(1+q) q^|d|, clipped to 0..k-1."""
    k, epsilon = 5, 2.0
    q = math.exp(-epsilon / (k - 1))
    noise = np.arange(-400, 401)
    weight = (1 - q) / (1 + q) * q ** np.abs(noise)
    for x, row in enumerate(truncated_geometric(k, epsilon).matrix):
        np.testing.assert_allclose(row, np.bincount(np.clip(x + noise, 0, k - 1), weight), rtol=1e-11)


def test_neighbours_are_a_fair_share_apart():
    """Neighbouring answers are epsilon/(k-1) apart: metric privacy on the line."""
    m = truncated_geometric(6, 2.5).matrix
    assert np.abs(np.diff(np.log(m), axis=0)).max() == pytest.approx(0.5, abs=1e-13)


def test_two_answers_are_the_binary_mechanism():
    """With two answers there is nothing between: randomized response."""
    expected = binary([1, 0], [0, 1], 1.0).matrix
    np.testing.assert_allclose(truncated_geometric(2, 1.0).matrix, expected, rtol=0, atol=1e-15)


def test_bad_k_is_refused():
    """k is an integer of at least 2."""
    with pytest.raises(InvalidInput, match="k: expected an integer of at least 2"):
        truncated_geometric(1, 1.0)
