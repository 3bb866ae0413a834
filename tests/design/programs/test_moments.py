"""The interior-point method for divergences between rows."""

import numpy as np
import pytest

from ldpopt.design import Divergence, RenyiLDP, optimal_channel
from ldpopt.design.constraints.moment import moment
from ldpopt.design.programs.labels import label_program
from ldpopt.design.programs.moments import moment_program
from ldpopt.divergences import KL


@pytest.mark.parametrize("order", [1.0, 1.0001, 1.2, 2.0, 8.0])
def test_the_optimum_is_that_of_the_cone_program(order):
    """Values agree with a cone solver's, the matrix is feasible, and the multipliers prove the value."""
    rng = np.random.default_rng(5)
    gains = rng.normal(size=(4, 3))
    term = moment(3, order, 0.4)
    solved = moment_program(gains, (term,))
    value = float((gains * solved.columns).sum())
    # Near order 1 cones lose the digits; order 1 itself is as near.
    cone = label_program(gains, (moment(3, 1.0 if order == 1.0001 else order, 0.4),)).value
    assert value == pytest.approx(cone, rel=3e-4 if order == 1.0001 else 1e-5)
    assert np.allclose(solved.columns.sum(axis=0), 1, atol=1e-8)
    assert term.excess(solved.columns.T).max() <= 1e-7 * term.cap
    t = solved.columns[:, term.left] / solved.columns[:, term.right]
    pair, label = np.tile(np.arange(6), 4), np.repeat(np.arange(4), 6)
    planes = np.stack([pair, label, t.ravel(), np.tile(solved.weights[0], 4)])
    reduced = gains - solved.rows - term.support(planes, 4, 3)
    assert reduced.max() <= 1e-7
    assert solved.rows.sum() + term.charge(planes) == pytest.approx(value, abs=1e-7)


def test_many_binding_pairs_do_no_harm():
    """At eight inputs, where most pairs bind at once, order 1.1 is certified."""
    rng = np.random.default_rng(1)
    utility = Divergence(KL, rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8)))
    design = optimal_channel(utility, RenyiLDP(1.1, 0.5))
    assert design.guarantees[0].value <= 0.5
    assert design.relative_gap <= 1e-5
    assert design.certificate.verify()
