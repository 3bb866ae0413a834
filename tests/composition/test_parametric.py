import math

import numpy as np
import pytest

from ldpopt.composition import FinitePair, Ledger
from ldpopt.composition.parametric import ParametricPair


@pytest.mark.parametrize(
    "parameters",
    [(1.0,), (1.0, 0.1), (1.0, 0.1, 0.2), (0.0,), (0.0, 0.1), (1.0, 0.0, 0.0), (1.0, 1.0), (700.0,), (3.0, 0.2, 0.1)],
)
def test_it_is_the_pair_of_the_parameters(parameters):
    """Its law is that of `FinitePair.of_parameters`, with the losses it should have."""
    pair, same = ParametricPair.of(*parameters), FinitePair.of_parameters(*parameters).ordered
    np.testing.assert_allclose(pair.p, same.p, rtol=1e-14)
    np.testing.assert_allclose(pair.losses, same.losses, rtol=1e-12, atol=1e-14)
    assert pair.symmetric
    assert pair.ordered is pair.swapped is pair


@pytest.mark.parametrize("epsilon", [1e-300, 1e-17, 1e-16, 3e-16, 1e-9])
def test_losses_are_exact_and_never_vanish(epsilon):
    """However small epsilon is, the losses are it, the pairs of two differ, and divergences are not below the truth."""
    pair = ParametricPair.of(epsilon)
    assert pair.losses.tolist() == [epsilon, -epsilon]
    assert pair != ParametricPair.of(np.nextafter(epsilon, 1.0))
    assert pair.p[0] > pair.p[1]
    ledger = Ledger().add((epsilon,)).add((2 * epsilon,))
    assert ledger.local_dp().value >= 3 * epsilon
    assert ledger.renyi(2.0).value >= epsilon * math.tanh(epsilon / 2)
    assert ledger.total_variation().value >= math.tanh(epsilon)
