"""Tests of `ldpopt.design.utilities.against_set`: which sets are apart."""

import numpy as np
import pytest

from ldpopt import AgainstSet, InvalidInput
from ldpopt.design import Around, Box, Contamination, Hull, TotalVariationBall
from ldpopt.design.utilities.against_set import _are_surely_separated, _distance
from ldpopt.divergences import KL
from ldpopt.numbers.tolerances import MEETING_DISTANCE


def random_set(rng, k):
    """A set of one of the four kinds."""
    pilot, radius = rng.dirichlet(np.ones(k)), float(rng.choice([0.01, 0.05, 0.2]))
    kinds = [Contamination(radius), Box(radius), TotalVariationBall(radius), None]
    kind = kinds[rng.integers(4)]
    return Hull(rng.dirichlet(np.ones(k), int(rng.integers(1, 5)))) if kind is None else Around(pilot, kind)


def test_sets_are_called_apart_only_where_a_program_says_so():
    """What Gilbert's algorithm separates, the linear program of the least distance separates too; it misses little."""
    rng, found, apart = np.random.default_rng(5), 0, 0
    for _ in range(80):
        k = int(rng.integers(2, 7))
        first, second = random_set(rng, k), random_set(rng, k)
        distance = _distance(first, second)
        if _are_surely_separated(first, second):
            found += 1
            assert distance > MEETING_DISTANCE
        apart += distance > MEETING_DISTANCE
    assert 40 < 0.95 * apart <= found


@pytest.mark.parametrize("shift", [0.0, 1e-10])
def test_sets_that_meet_are_refused(shift):
    """A common distribution, or two of them a rounding error apart, is nothing to tell apart."""
    with pytest.raises(InvalidInput, match="do not meet"):
        AgainstSet(KL, Hull([[0.5, 0.5], [0.2, 0.8]]), [0.3 - shift, 0.7 + shift])


def test_near_sets_are_accepted():
    """A distance of 1e-6 is enough."""
    assert AgainstSet(KL, [0.5, 0.5], [0.5 - 1e-6, 0.5 + 1e-6]).size == 2
