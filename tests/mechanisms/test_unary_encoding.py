import math

import numpy as np
import pytest

from ldpopt.mechanisms import optimized_unary_encoding, unary_encoding


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 40.0])
def test_total_variation_in_closed_form(epsilon):
    """Symmetric unary encoding is tanh(epsilon/4)-TV, the optimised one tanh(epsilon/2)/2-TV, whatever k."""
    for k in (2, 100):
        assert unary_encoding(k, epsilon).eta == pytest.approx(math.tanh(epsilon / 4), abs=1e-13)
        assert optimized_unary_encoding(k, epsilon).eta == pytest.approx(math.tanh(epsilon / 2) / 2, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0, 30.0])
def test_bits_have_their_probabilities(epsilon):
    """Own and other bits are set as often as they should be, to five standard deviations, and bits are uncorrelated."""
    oracle = optimized_unary_encoding(20, epsilon)
    n = 100_000
    bits = oracle.sample(np.full(n, 3), np.random.default_rng(8))
    rates = bits.mean(axis=0)
    for v in range(20):
        chance = oracle.own if v == 3 else oracle.other
        assert abs(rates[v] - chance) <= 5 * math.sqrt(chance * (1 - chance) / n)
    others = np.delete(bits, 3, axis=1)
    together = (others[:, :-1] & others[:, 1:]).mean()
    assert abs(together - oracle.other**2) <= 5 * oracle.other / math.sqrt(18 * n) + 1e-12
