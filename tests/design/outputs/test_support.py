"""Fewer reports with the same information."""

import numpy as np
import pytest

from ldpopt.design.estimation.program import reduce_columns, reduce_weights


@pytest.mark.parametrize("count", [5, 20, 21, 41, 300, 2001])
def test_moments_stay_and_as_many_weights_as_moments_are_left(count):
    """At most 10 of any number of columns give the 10 products of 4 entries, and no weight is negative."""
    rng = np.random.default_rng(count)
    columns, weights = rng.uniform(1, 3, (count, 4)), rng.exponential(size=count)
    weights[::7] = 0.0
    fewer = reduce_columns(columns, weights)
    assert fewer.min() >= 0
    assert (fewer > 0).sum() <= min(10, (weights > 0).sum())
    assert (fewer[weights == 0] == 0).all()
    kept, given = ((columns * w[:, None]).T @ columns for w in (fewer, weights))
    assert kept == pytest.approx(given, rel=1e-10)


def test_columns_that_are_the_same_become_one():
    """Of a hundred equal columns one carries the weight of all."""
    fewer = reduce_weights(np.ones((100, 3)), np.arange(100.0))
    assert (fewer > 0).sum() == 1
    assert fewer.sum() == pytest.approx(4950)
