"""Sets of hypotheses: their corners, their members, their inequalities."""

import cvxpy as cp
import numpy as np
import pytest

from ldpopt.design import Around, Box, Contamination, Hull, TotalVariationBall
from ldpopt.design.utilities.sets import as_set
from ldpopt.errors import InvalidInput

PILOT = [0.1, 0.2, 0.3, 0.4]
SETS = [
    Hull(np.random.default_rng(1).dirichlet(np.ones(4), 5)),
    Hull([PILOT]),
    Around(PILOT, Box(0.15)),
    Around(PILOT, Contamination(0.2)),
    Around(PILOT, TotalVariationBall(0.25)),
]


def contains(given, p):
    """Whether p is in the set, up to rounding: its nearest member is p itself."""
    return np.abs(given.member(p) - p).max() <= 1e-12


@pytest.mark.parametrize("given", SETS, ids=lambda s: type(getattr(s, "neighbourhood", s)).__name__)
def test_the_corner_is_the_linear_program(given):
    """The largest linear function over the set is that of its inequalities, and is attained in the set."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        gradient = rng.normal(size=4)
        p = cp.Variable(4, nonneg=True)
        problem = cp.Problem(cp.Maximize(gradient @ p), [cp.sum(p) == 1, *given.expression(p)])
        problem.solve(solver="HIGHS")
        corner = given.highest(gradient)
        assert gradient @ corner == pytest.approx(problem.value, abs=1e-9)
        assert contains(given, corner)
        assert corner.min() >= 0
        assert corner.sum() == pytest.approx(1.0, abs=1e-12)
        outside = corner + 1e-6 * (corner - given.centre)
        if np.abs(corner - given.centre).max() > 1e-9:
            assert not contains(given, outside)
        assert contains(given, given.member(np.maximum(outside, 0.0)))
        assert np.abs(given.member(corner) - corner).max() <= 1e-9
    assert contains(given, given.centre)
    assert given.size == 4


def test_bad_sets_are_refused():
    """Vertices are distributions of one size, neighbourhoods are known, radii positive."""
    with pytest.raises(InvalidInput, match="vertex 1"):
        Hull([[0.5, 0.5], [0.5, 0.6]])
    with pytest.raises(InvalidInput, match="neighbourhood"):
        Around([0.5, 0.5], 0.1)
    with pytest.raises(InvalidInput, match="pilot"):
        Around([0.5, 0.6], Box(0.1))
    with pytest.raises(InvalidInput, match="radius"):
        TotalVariationBall(0.0)
    with pytest.raises(InvalidInput, match="p0"):
        as_set([0.5, 0.6], "p0")
