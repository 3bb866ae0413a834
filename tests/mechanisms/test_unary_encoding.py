import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.exact import log_up
from ldpopt.mechanisms import UnaryEncoding, optimized_unary_encoding, unary_encoding
from ldpopt.privacy import local_dp


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


def test_an_epsilon_below_what_the_bits_give_is_refused():
    """A ledger would believe it: own 0.9 and other 0.1 are log 81 apart, and at that epsilon they are accepted."""
    true = math.log(81)
    with pytest.raises(InvalidInput, match=r"epsilon: expected at least 4\.394"):
        UnaryEncoding(10, 0.1, 0.9, 0.1)
    with pytest.raises(InvalidInput, match="epsilon"):
        replace(unary_encoding(10, 1.0), epsilon=0.5)
    made = UnaryEncoding(10, true * (1 + 1e-12), 0.9, 0.1)
    assert float(local_dp(UnaryEncoding(3, true * (1 + 1e-12), 0.9, 0.1).channel())) <= made.epsilon
    for own, other in ((1.0, 0.5), (0.5, 0.0), (0.5, 0.5), (0.1, 0.9), (math.nan, 0.1)):
        with pytest.raises(InvalidInput):
            UnaryEncoding(10, 600.0, own, other)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 37.0, 700.0])
def test_the_made_ones_prove_their_epsilon(epsilon):
    """The probabilities of both encodings give at most epsilon, in rationals."""
    for made in (unary_encoding(5, epsilon), optimized_unary_encoding(5, epsilon)):
        own, other = Fraction(made.own), Fraction(made.other)
        assert log_up(own * (1 - other) / (other * (1 - own))) <= epsilon
