"""Which outcomes are so rare that their losses have lost digits."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.composition import FinitePair, Ledger
from ldpopt.composition.parametric import RARE, ParametricPair, rare, rare_error, total, union
from ldpopt.numbers.rounding import float_down, float_up
from ldpopt.numbers.tolerances import ROW_SUM


@pytest.mark.parametrize(
    "parameters",
    [(1.0,), (1.0, 0.1), (1.0, 0.1, 0.2), (0.0,), (0.0, 0.1), (1.0, 0.0, 0.0), (1.0, 1.0), (700.0,), (3.0, 0.2, 0.1)],
)
def test_the_pair_is_that_of_its_parameters(parameters):
    """The distribution is that of `FinitePair.of_parameters`, with the expected losses."""
    pair, same = ParametricPair.from_parameters(*parameters), FinitePair.of_parameters(*parameters).ordered
    np.testing.assert_allclose(pair.p, same.p, rtol=1e-14)
    np.testing.assert_allclose(pair.losses, same.losses, rtol=1e-12, atol=1e-14)
    assert pair.symmetric
    assert pair.ordered is pair.swapped is pair


@pytest.mark.parametrize("epsilon", [1e-300, 1e-17, 1e-16, 3e-16, 1e-9])
def test_losses_are_exact_and_never_vanish(epsilon):
    """However small epsilon is, the losses are it, the pairs of two differ, and divergences are not below the truth."""
    pair = ParametricPair.from_parameters(epsilon)
    assert pair.losses.tolist() == [epsilon, -epsilon]
    assert pair != ParametricPair.from_parameters(np.nextafter(epsilon, 1.0))
    assert pair.p[0] > pair.p[1]
    ledger = Ledger().add((epsilon,)).add((2 * epsilon,))
    assert ledger.local_dp().value >= 3 * epsilon
    assert ledger.renyi(2.0).value >= epsilon * math.tanh(epsilon / 2)
    assert ledger.total_variation().value >= math.tanh(epsilon)


LEAST = 2.0**-1000


def test_masses_below_a_power_of_two_are_rare_in_either_distribution():
    """A mass below 2^-1000 is rare, that power itself and zero are not."""
    p = np.array([0.5, LEAST, np.nextafter(LEAST, 0), 0.0, 0.5])
    q = np.array([LEAST / 2, 0.5, 0.5, 5e-324, 0.0])
    assert rare(FinitePair(p, q)).tolist() == [True, False, True, False, False]


def test_the_error_covers_the_division_by_row_sums():
    """A distribution within `ROW_SUM` of one is divided by its sum, twice for two: four tolerances cover both ends."""
    assert rare_error(FinitePair([1.0, 0.0], [1.0, 5e-324])) == 0.0
    assert rare_error(FinitePair([1.0, 1e-310], [1.0, 5e-310])) == RARE
    assert pytest.approx(4 * ROW_SUM, rel=1e-15) == RARE


def test_known_losses_are_never_rare():
    """A pair of parameters knows its losses, however rare its outcomes are."""
    pair = ParametricPair.from_parameters(700.0)
    assert pair.p.min() < 2.0**-1000
    assert not rare(pair).any()
    assert rare(pair).shape == pair.p.shape
    assert rare_error(pair) == 0.0


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(1, 4), Fraction(0), Fraction(10**30), Fraction(1, 10**320)])
def test_neighboring_floats_enclose_a_rational_number(exact):
    """The two floats are those around a rational number, or the number where it is a float."""
    low, high = float_down(exact), float_up(exact)
    assert Fraction(low) <= exact <= Fraction(high)
    assert high == low or math.nextafter(low, math.inf) == high
    assert (low == high) == (Fraction(high) == exact)


def test_sums_and_unions_round_once():
    """A count is that many items; unions of few are the float next above the truth, of many a few units above."""
    assert total([(0.1, 3)]) == total([(0.1, 1)] * 3) == math.nextafter(0.3, 1)
    assert total([(math.inf, 1), (1.0, 2)]) == total([(1e308, 10)]) == math.inf
    for count in (1, 3, 64, 65, 10**6):
        found, exact = union([(1e-6, count)]), 1 - (1 - Fraction(1e-6)) ** min(count, 65)
        if count <= 65:
            assert exact <= Fraction(found) <= exact * (1 + Fraction(1, 10**14))
        assert found == pytest.approx(-math.expm1(count * math.log1p(-1e-6)), rel=1e-13)
    assert union([(1e-6, 1)]) == 1e-6
    assert union([]) == 0.0
    assert union([(1.0, 5), (0.5, 1)]) == union([(1.0, 100)]) == 1.0
