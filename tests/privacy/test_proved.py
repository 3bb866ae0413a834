"""Guarantees of exact channels."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from ldpopt.exact import ExactChannel
from ldpopt.privacy import proved


@pytest.mark.parametrize("seed", range(20))
def test_proved_guarantees_cover_the_rational_truth(seed):
    """Epsilon and eta of an exact channel lie between the true values of its integers and two ulps above."""
    rng = np.random.default_rng(seed)
    k, m = (int(n) for n in rng.integers(2, 6, 2))
    weights = rng.multinomial(2**40, rng.dirichlet(np.ones(m)), size=k) + 1
    weights[:, 0] += 2**41 - weights.sum(axis=1)
    rows = [[int(w) for w in row] for row in weights]
    epsilon, eta = proved(ExactChannel(weights, bits=41))
    ratio = max(Fraction(a, b) for column in zip(*rows, strict=True) for a in column for b in column)
    distance = max(sum(max(a - b, 0) for a, b in zip(p, q, strict=True)) for p in rows for q in rows)
    with mpmath.workdps(50):
        truth = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert epsilon.lower <= truth <= epsilon.value <= truth * (1 + 2.0**-51)
    assert Fraction(eta.lower) <= Fraction(distance, 2**41) <= Fraction(eta.value)
    (x, other), (y,) = epsilon.witness.inputs, epsilon.witness.outputs
    assert Fraction(rows[x][y], rows[other][y]) == ratio
    p, q = eta.witness.inputs
    assert sum(rows[p][y] - rows[q][y] for y in eta.witness.outputs) == distance


def test_constant_and_separating_channels():
    """Equal rows prove zero without a witness, disjoint rows an infinite epsilon and eta one."""
    assert [(float(g), g.witness) for g in proved(ExactChannel([[1, 3], [1, 3]], bits=2))] == [(0.0, None), (0.0, None)]
    assert [float(g) for g in proved(ExactChannel([[4, 0], [0, 4]], bits=2))] == [math.inf, 1.0]
