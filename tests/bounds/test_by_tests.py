"""Tests of `ldpopt.bounds.published`: contraction by both limits, and the best channel for every test at once."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.bounds import asoodeh_diaz_calmon, bound_by_tests, contraction, dobrushin
from ldpopt.divergences import CHI_SQUARED, KL, LE_CAM, TOTAL_VARIATION, alpha, hockey_stick
from ldpopt.mechanisms import binary_with_erasure
from ldpopt.privacy import local_dp


def by_integration(curvature, p0, p1, epsilon, eta):
    """`bound_by_tests` in 40 digits, as an integral of f'' times the largest hockey stick of a channel."""
    with mpmath.workdps(40):
        laws = [[mpmath.mpf(x) for x in law] for law in (p0, p1)]
        p, q = ([x / mpmath.fsum(law) for x in law] for law in laws)
        growth = mpmath.expm1(mpmath.mpf(epsilon))
        cap = min(mpmath.mpf(eta), mpmath.tanh(mpmath.mpf(epsilon) / 2))
        sides = ((p, q, curvature), (q, p, lambda t: curvature(1 / t) / t**3))
        return cap * mpmath.fsum(_one_side(*side, growth) for side in sides)


def _one_side(p, q, curvature, growth):
    def kept(g):
        return mpmath.fsum(max(a - g * b, 0) for a, b in zip(p, q, strict=True)) - (g - 1) / growth

    knots = sorted({mpmath.mpf(1), 1 + growth, *(a / b for a, b in zip(p, q, strict=True) if a > b)})
    total = mpmath.mpf(0)
    for low, high in pairwise(knots):
        if kept(low) > 0:
            end = high if kept(high) >= 0 else low + (high - low) * kept(low) / (kept(low) - kept(high))  # linear
            total += mpmath.quad(lambda g: curvature(g) * kept(g), [low, end])
    return total


@pytest.mark.parametrize(
    ("f", "curvature"), [(KL, lambda t: 1 / t), (CHI_SQUARED, lambda t: 2), (alpha(3.0), lambda t: t)]
)
@pytest.mark.parametrize(("epsilon", "eta"), [(0.3, 1.0), (1.0, 0.2), (3.0, 1.0)])
def test_every_test_at_once_is_the_integral_of_hockey_sticks(f, curvature, epsilon, eta):
    """D_f is the integral of f'' times E_gamma; with the best channel for each gamma it is the bound."""
    for p0, p1 in (([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), ([0.6, 0.1, 0.1, 0.2], [0.1, 0.1, 0.5, 0.3])):
        expected = float(by_integration(curvature, p0, p1, epsilon, eta))
        assert bound_by_tests(f, p0, p1, epsilon, eta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("gamma", [1.0, 1.3, 2.0, 0.7])
def test_the_bound_of_a_hockey_stick_is_its_optimum(gamma):
    """For a hockey stick `bound_by_tests` is the optimum, which the linear contraction is never below."""
    rng = np.random.default_rng(4)
    for epsilon in (0.2, 1.0, 5.0):
        p0, p1 = rng.dirichlet(np.ones(4), 2)
        eta = math.tanh(epsilon / 2) * rng.uniform(0.2, 1.2)
        limits = [LocalDP(epsilon), TotalVariation(min(eta, 1.0))]
        design = optimal_channel(Divergence(hockey_stick(gamma), p0, p1), limits)
        exact = bound_by_tests(hockey_stick(gamma), p0, p1, epsilon, min(eta, 1.0))
        assert design.value <= exact
        assert exact == pytest.approx(design.value, rel=1e-7, abs=1e-15)
        assert exact <= asoodeh_diaz_calmon(gamma, p0, p1, epsilon, min(eta, 1.0)) * (1 + 1e-11)
    assert asoodeh_diaz_calmon(gamma, [1, 0], [0, 1], 1.0, 0.2) == pytest.approx(
        bound_by_tests(hockey_stick(gamma), [1, 0], [0, 1], 1.0, 0.2), rel=1e-11
    )


GENERATORS = {
    KL: lambda t: t * mpmath.log(t),
    CHI_SQUARED: lambda t: (t - 1) ** 2,
    LE_CAM: lambda t: (t - 1) ** 2 / (t + 1),
    TOTAL_VARIATION: lambda t: abs(t - 1) / 2,
    alpha(2.5): lambda t: (t ** mpmath.mpf(2.5) - 1) / mpmath.mpf(3.75),
    hockey_stick(1.5): lambda t: max(t - mpmath.mpf(1.5), 0),
}


def left_by(channel, p0, p1, generator):
    """The divergence of the reports' laws in 700 digits, all laws and rows divided by their sums; positive columns."""
    with mpmath.workdps(700):
        rows = [[mpmath.mpf(x) for x in row] for row in channel.matrix.tolist()]
        rows = [[x / mpmath.fsum(row) for x in row] for row in rows]
        laws = [[mpmath.mpf(x) for x in law] for law in (p0, p1)]
        laws = [[x / mpmath.fsum(law) for x in law] for law in laws]
        columns = list(zip(*rows, strict=True))
        m0, m1 = ([mpmath.fdot(law, column) for column in columns] for law in laws)
        return mpmath.fsum(b * generator(a / b) for a, b in zip(m0, m1, strict=True) if b > 0)


HOSTILE = [
    ([0.5, 0.5], [0.5, 0.5]),
    ([0.3, 0.7], [0.3, 0.7 * (1 + 3e-16)]),
    ([1 - 1e-300, 1e-300, 0.0], [0.5, 0.25, 0.25]),
    ([0.0, 0.5, 0.5], [0.5, 0.0, 0.5]),
    ([0.25, 0.25, 0.25, 0.25], [0.1, 0.4, 0.1, 0.4]),
    ([1.0, 0.0], [0.0, 1.0]),
    ([0.5 + 1e-12, 0.5 - 1e-12], [0.5, 0.5]),
]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 40.0, 700.0])
@pytest.mark.parametrize("eta", [0.0, 1e-300, 0.1, 1.0])
def test_hostile_numbers_break_no_bound(epsilon, eta):
    """Ties, zeros, equal and disjoint laws, masses of 1e-300: what binary erasure keeps is below, labels may swap."""
    for p0, p1 in HOSTILE:
        for f in GENERATORS:
            above = [bound_by_tests(f, p0, p1, epsilon, eta), dobrushin(f, p0, p1, min(eta, 1.0))]
            above += [contraction(f, p0, p1, epsilon, eta)] if f.operator_convex else []
            channel = binary_with_erasure(p0, p1, epsilon, eta)
            if local_dp(channel).value <= epsilon:  # e^-700 eta may underflow
                assert all(bound >= left_by(channel, p0, p1, GENERATORS[f]) for bound in above)
            assert above[0] <= above[1] * (1 + 1e-9)
            swapped = bound_by_tests(f, p0[::-1], p1[::-1], epsilon, eta)
            assert swapped == pytest.approx(above[0], rel=1e-9) or swapped == above[0]
            if eta == 0 or p0 == p1:
                assert above[0] == 0
