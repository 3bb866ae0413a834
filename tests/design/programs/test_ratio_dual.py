"""Tests of `ldpopt.design.exchange`."""

import numpy as np
import pytest
from design_problems import DIVERGENCES, random_pair

from ldpopt.design.methods.blocks import Blocks
from ldpopt.design.problems.reduction import Pair, reduce
from ldpopt.design.programs.ratio_dual import dual_multipliers, ratio_range


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("name", ["kl", "squared_hellinger", "jeffreys"])
def test_multipliers_close_the_gap(name, epsilon):
    """The multipliers are dual feasible to 1e-7 against random columns of the cone, and sum to the optimum."""
    f, pair, ratio = DIVERGENCES[name], reduce(*random_pair(40, 3)).pair, np.exp(epsilon)
    problem = Blocks(f, pair, epsilon)
    cut = problem.coin(None).parts[0][1]
    value = cut.rate(problem.level)
    at = np.array(cut.cuts)
    a, b = pair.prefix
    labels = (1 + (ratio - 1) * np.diff(a[at])) / (1 + (ratio - 1) * np.diff(b[at]))
    rows = dual_multipliers(f, pair, ratio, value, labels, 1e-8)
    assert rows.sum() == pytest.approx(value, rel=1e-6)
    rng = np.random.default_rng(1)
    starts = np.sort(rng.integers(0, 41, size=(4000, 2)), axis=1)
    blocks = (np.arange(40) >= starts[:, :1]) & (np.arange(40) < starts[:, 1:])
    for inside in (blocks, rng.random((4000, 40)) < 0.5):
        columns = np.where(inside, ratio, 1.0)
        excess = f.excess(columns @ pair.p0, columns @ pair.p1) - columns @ rows
        assert excess.max() <= 1e-6 * value


def test_ratio_range():
    """Output ratios lie within the inputs' ratios and within [1/E, E], infinite ratios included."""
    pair = Pair.plain(np.array([0.0, 0.5, 0.5]), np.array([0.3, 0.7, 0.0]))
    assert ratio_range(pair, 2.0) == pytest.approx((0.5, 2.0))
    pair = Pair.plain(np.array([0.4, 0.6]), np.array([0.5, 0.5]))
    assert ratio_range(pair, 2.0) == pytest.approx((0.8, 1.2))
