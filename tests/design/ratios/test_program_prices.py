"""What columns gain beyond prices: one concave program a label."""

import numpy as np
import pytest

from ldpopt.design.constraints.hockey_stick import approximate
from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import Ratio, all_pairs
from ldpopt.design.ratios.program_smooth import best_columns, smooth_program

MASS = np.array([0.1, 0.3, 0.2, 0.4])


def net(term, weights, columns):
    """What columns (n, k) pay for the pairs of a term, by its own definition."""
    paid = np.zeros(len(columns))
    for row, q in enumerate(columns):
        for at, weight in enumerate(weights):
            paid[row] += weight * (term.take(np.array([at])).excess(q[:, None])[0] + np.atleast_1d(term.cap)[0])
    return paid


@pytest.mark.parametrize(("order", "epsilon"), [(1.0, 0.5), (2.0, 0.5), (2.0, 1e-4), (6.0, 3.0)])
def test_no_column_gains_more(order, epsilon):
    """Theta is reached by the columns that come back, and no random column gains more a unit of mass."""
    rng = np.random.default_rng(2)
    term = Moment(*all_pairs(4), order, epsilon)
    weights = rng.exponential(size=len(term)) / term.cap
    profits = rng.normal(size=(6, 4)) / term.tv_bound
    found = best_columns(profits, (term,), (weights,), MASS, 1e-9)
    gained = (profits * found.columns).sum(axis=1) - net(term, weights, found.columns)
    assert np.allclose(found.columns @ MASS, 1, atol=1e-6)
    assert np.allclose(gained, found.theta, rtol=1e-6, atol=1e-6)
    tried = 1 + term.tv_bound * rng.uniform(-1, 4, size=(300, 4)).clip(-0.9)
    tried = tried / (tried @ MASS)[:, None]
    most = (profits[:, None] * tried).sum(axis=2) - net(term, weights, tried)
    assert (most <= found.theta[:, None] + 1e-7).all()


@pytest.mark.parametrize(
    "terms",
    [
        (Moment(*all_pairs(4), 2.0, 0.5), approximate(4, 0.0, 0.2)),
        (Moment(*all_pairs(4), 2.0, 0.5), approximate(4, 0.3, 0.1), Ratio(1.0)),
    ],
    ids=["variation", "ratio"],
)
def test_the_prices_of_an_optimum_leave_nothing(terms):
    """At the prices of a solved program its own labels gain nothing beyond them: the best of all is zero."""
    gains = np.random.default_rng(4).normal(size=(3, 4))
    solved = smooth_program(gains, terms)
    found = best_columns(gains - solved.rows, terms, solved.weights, MASS, 1e-10)
    assert found.theta.max() == pytest.approx(0, abs=1e-7)
    sticks = next(at for at, one in enumerate(terms) if hasattr(one, "caps"))
    assert (found.excess >= 0).all()
    assert (found.excess <= solved.weights[sticks] * (1 + 1e-12)).all()
