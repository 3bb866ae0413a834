"""Which outcomes are so rare that their losses have lost digits."""

import numpy as np
import pytest

from ldpopt.composition.parametric import RARE, ParametricPair, rare, rare_error
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.tolerances import ROW_SUM

LEAST = 2.0**-1000


def test_masses_below_a_power_of_two_are_rare_in_either_law():
    """A mass below 2^-1000 is rare, that power itself and zero are not."""
    p = np.array([0.5, LEAST, np.nextafter(LEAST, 0), 0.0, 0.5])
    q = np.array([LEAST / 2, 0.5, 0.5, 5e-324, 0.0])
    assert rare(FinitePair(p, q)).tolist() == [True, False, True, False, False]


def test_the_error_covers_what_division_by_the_sum_of_a_row_changes():
    """A law within `ROW_SUM` of one is divided by its sum, twice for two laws: four tolerances cover both ends."""
    assert rare_error(FinitePair([1.0, 0.0], [1.0, 5e-324])) == 0.0
    assert rare_error(FinitePair([1.0, 1e-310], [1.0, 5e-310])) == RARE
    assert pytest.approx(4 * ROW_SUM, rel=1e-15) == RARE


def test_known_losses_are_never_rare():
    """A pair of parameters knows its losses, however rare its outcomes are."""
    pair = ParametricPair.of(700.0)
    assert pair.p.min() < 2.0**-1000
    assert not rare(pair).any()
    assert rare(pair).shape == pair.p.shape
    assert rare_error(pair) == 0.0
