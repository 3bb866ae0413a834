"""Simplices of masses: they hold every column, halves lose nothing, and the linear functions lie above the utility."""

import numpy as np
import pytest

from ldpopt.design import WorstOf
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.design.several_hypotheses.proof import LawShares, Simplices
from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION
from ldpopt.numbers.enclosures import FLOAT

LEVEL = 1 / np.expm1(1.0)


def marginals_of(laws, f=KL, level=LEVEL):
    """The masses of a test of the first law against each of the others, all criteria alike."""
    compared = WorstOf(f, laws[0], laws[1:]).compared
    return LawShares.from_comparisons(compared, FLOAT.of(np.full(len(laws) - 1, 1 / (len(laws) - 1))), FLOAT.of(level))


def weights_in(marginals, simplices, masses):
    """(m, n, columns) the weights of corners that make up the masses; all non-negative where a simplex holds them."""
    places = marginals.orders[simplices.orders]
    found = []
    for corners, place in zip(simplices.corners, places, strict=True):
        rays = corners @ marginals.rays
        found.append(np.linalg.solve(rays.T, np.take_along_axis(masses, np.argsort(place)[:, None], axis=0)))
    return np.array(found)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("level", [LEVEL, 1e3, 1e-6])
def test_every_column_is_in_a_simplex_before_and_after_halving(n, level):
    """Columns of entries in [t, t + 1], two-valued ones too, have masses in one of the cones; halves hold as much."""
    rng = np.random.default_rng(n)
    laws = rng.dirichlet(np.full(6, 0.3), n)
    marginals = marginals_of(laws, level=level)
    columns = level + np.hstack([rng.uniform(size=(6, 200)), rng.integers(0, 2, (6, 200))])
    masses = laws / laws.sum(axis=1, keepdims=True) @ columns
    simplices = Simplices.cover(n)
    for _ in range(4):
        inside = (weights_in(marginals, simplices, masses) >= -1e-9).all(axis=1)
        assert inside.any(axis=0).all()
        first = rng.integers(0, n, len(simplices))
        second = (first + 1 + rng.integers(0, n - 1, len(simplices))) % n
        assert simplices.exactly(first, second).all()
        simplices = simplices.halved(first, second)


@pytest.mark.parametrize("f", [KL, CHI_SQUARED, TOTAL_VARIATION], ids=lambda f: f.name)
@pytest.mark.parametrize("slopes", ["their own", "none", "others"])
def test_linear_functions_are_above_the_utility_for_any_slopes(f, slopes):
    """On each simplex, of random mixtures of its corners; with their own slopes they touch it there."""
    rng = np.random.default_rng(1)
    laws = rng.dirichlet(np.ones(5), 3)
    marginals = marginals_of(laws, f)
    simplices = Simplices.cover(3)
    for _ in range(3):
        simplices = simplices.halved(np.zeros(len(simplices), dtype=int), np.full(len(simplices), 2))
    value, mean, apart = marginals.of_corners(simplices)
    own = marginals.slopes(*(np.asarray(part.midpoint) for part in (value, mean, apart)))
    chosen = {"their own": own, "none": 0 * own, "others": rng.normal(size=own.shape)}[slopes]
    level = np.asarray(marginals.planes(value, mean, apart, chosen).upper)
    for _ in range(20):
        mixed = np.einsum("mn,mnr->mr", rng.dirichlet(np.ones(3), len(simplices)), simplices.corners)
        there, size, others = (np.asarray(part.midpoint) for part in marginals.worth(mixed, simplices.orders))
        plane = level * size + (chosen * others).sum(axis=1)
        assert (there <= plane + 1e-12 * np.abs(plane)).all()
    if slopes == "their own":
        plane = level[:, None] * np.asarray(mean.midpoint) + (np.asarray(apart.midpoint) * own[:, None]).sum(axis=2)
        np.testing.assert_allclose(plane, np.asarray(value.midpoint), atol=1e-9)


def test_a_middle_that_rounds_is_no_cut():
    """Weights whose sum is no float are not halved: the halves would not be the whole."""
    corners = np.array([[[1.0, 0.0], [2.0**-60, 1.0]]])
    simplices = Simplices(corners, np.zeros(1, dtype=np.intp))
    assert not simplices.exactly(np.zeros(1, dtype=int), np.ones(1, dtype=int)).any()


def test_more_than_five_distributions_are_refused():
    """The n! simplices of six and more distributions are too many."""
    with pytest.raises(Unproved, match="6 laws"):
        marginals_of(np.random.default_rng(0).dirichlet(np.ones(4), 6))
