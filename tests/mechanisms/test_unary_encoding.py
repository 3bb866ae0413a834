import math

import pytest

from ldpopt.mechanisms import optimized_unary_encoding, unary_encoding


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 40.0])
def test_total_variation_in_closed_form(epsilon):
    """Symmetric unary encoding is tanh(epsilon/4)-TV, the optimised one tanh(epsilon/2)/2-TV, whatever k."""
    for k in (2, 100):
        assert unary_encoding(k, epsilon).eta == pytest.approx(math.tanh(epsilon / 4), abs=1e-13)
        assert optimized_unary_encoding(k, epsilon).eta == pytest.approx(math.tanh(epsilon / 2) / 2, abs=1e-13)
