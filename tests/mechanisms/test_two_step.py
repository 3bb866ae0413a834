"""Tests of `ldpopt.mechanisms.response`: its delta is what it says, exactly, and it beats the coin where it should."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldpopt import InvalidInput
from ldpopt.mechanisms import randomized_response, two_step
from ldpopt.privacy import hockey_stick, local_dp


def columns(e):
    """The columns in fractions, for a rational e."""
    n = 2 * (e * e + e + 1)
    delta = (e * e - e) / n
    return delta, [
        [delta, 0, 0],
        [(e + 1) * e / n, (e + 1) / n, (e + 1) / n],
        [e / n, e * e / n, 1 / n],
        [1 / n, e * e / n, e / n],
        [(e + 1) / n, (e + 1) / n, (e + 1) * e / n],
        [0, 0, delta],
    ]


@pytest.mark.parametrize("e", [Fraction(1001, 1000), Fraction(3, 2), Fraction(2), Fraction(7), Fraction(10**6)])
def test_its_delta_is_exact_in_fractions(e):
    """Rows sum to one, no ordered pair exceeds delta, and every pair with the middle or of the two ends reaches it."""
    delta, made = columns(e)
    assert [sum(column[x] for column in made) for x in range(3)] == [1, 1, 1]
    for x, y in itertools.permutations(range(3), 2):
        assert sum(max(column[x] - e * column[y], 0) for column in made) == delta
    np.testing.assert_allclose(two_step(math.log(e)).matrix.T, np.array(made, dtype=float), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.757, 3.0, 40.0, 700.0])
def test_the_float_channel_measures_the_same(epsilon):
    """The measured hockey stick is (1 - q)/(2 (1 + q + q^2)), q = e^-epsilon, to the rounding of the matrix."""
    q = math.exp(-epsilon)
    made = two_step(epsilon)
    assert float(hockey_stick(made, epsilon)) == pytest.approx(-math.expm1(-epsilon) / 2 / (1 + q + q * q), abs=4e-15)
    assert math.isinf(float(local_dp(made)))


def test_it_beats_the_coin_by_the_promised_share():
    """Three-piece f on three even answers: e(e-1)/((e+1)(2e^2+e-2)) above the coin, 8.355 % at epsilon = 0.757."""
    epsilon = 0.757
    e = math.exp(epsilon)
    gain = e * (e - 1) / ((e + 1) * (2 * e * e + e - 2))
    assert gain == pytest.approx(0.08355, abs=1e-5)
    best = max(g * (g - 1) / ((g + 1) * (2 * g * g + g - 2)) for g in np.exp(np.linspace(0.7, 0.8, 100001)))
    assert best == pytest.approx(gain, rel=1e-5)
    delta = (e * e - e) / (2 * (e * e + e + 1))
    assert delta < 0.5
    # The pure channel it is compared with has three blocks, as this one has.
    assert randomized_response(3, epsilon).shape == (3, 3)


def test_labels_and_refusals():
    """Three labels, and an epsilon above 0."""
    assert two_step(1.0, inputs=["a", "b", "c"]).inputs == ("a", "b", "c")
    with pytest.raises(InvalidInput):
        two_step(1.0, inputs=["a", "b"])
    for bad in (0.0, -1.0, math.nan, math.inf, "1"):
        with pytest.raises(InvalidInput, match="epsilon"):
            two_step(bad)
