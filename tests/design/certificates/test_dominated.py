"""Tests of `ldpopt.design.certificates.dominated`: bounds of points that dominate, and of none that do not."""

import math
from dataclasses import replace

import numpy as np
import pytest
from design_problems import random_pair

from ldpopt import Divergence, LocalDP, optimal_channel
from ldpopt.design import ApproximateLDP, Dominated, LevelLP, LevelShapes
from ldpopt.divergences import CHI_SQUARED, KL

CAPS = ApproximateLDP(1.0, 0.05)


@pytest.fixture(scope="module")
def design():
    return optimal_channel(Divergence(KL, *random_pair(6, 4)), CAPS, method=LevelShapes(points=4))


def test_the_bound_is_above_the_exact_optimum(design):
    """What dominates keeps no less, under any symmetric constraint."""
    exact = optimal_channel(design.utility, CAPS, method=LevelLP())
    assert isinstance(design.certificate, Dominated)
    assert exact.value * (1 - 1e-9) <= design.certificate.bound < math.inf


def test_no_forgery_proves_less(design):
    """Points that do not dominate, negative, NaN, too few, or with numbers for others: nothing below the optimum."""
    exact, made = optimal_channel(design.utility, CAPS, method=LevelLP()).value * (1 - 1e-8), design.certificate
    good = made.points
    shrunk = 0.5 * good + 0.25 * good.sum(axis=1, keepdims=True)
    for bad in (shrunk, -good, good * math.nan, good[:-1], good[::-1] * [1.0, 2.0], good[:, :1], None, "x", good * 0):
        with np.errstate(all="ignore"):
            assert not replace(made, points=bad).bound < exact
    for inner in (None, "x", replace(made.of_points, rows=made.of_points.rows * 0.5), made):
        assert not replace(made, of_points=inner).bound < exact
    wider = optimal_channel(design.utility, LocalDP(3.0)).value
    assert replace(made, constraints=(LocalDP(3.0),)).bound >= wider * (1 - 1e-9)
    assert replace(made, constraints=()).bound == math.inf
    other = Divergence(CHI_SQUARED, *random_pair(6, 4))
    truth = optimal_channel(other, CAPS, method=LevelLP()).value
    assert not replace(made, utility=other).bound < truth * (1 - 1e-8)
