import math
from fractions import Fraction

import pytest

from ldpopt.composition.parametric import float_down, float_up, total, union


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(1, 4), Fraction(0), Fraction(10**30), Fraction(1, 10**320)])
def test_neighbouring_floats(exact):
    """The floats around a rational number, itself where it is one."""
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
