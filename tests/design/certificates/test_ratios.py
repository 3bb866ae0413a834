"""Tests of `ldpopt.design.cut_dual`: bounds that hold whatever the multipliers, against enumeration."""

import math
from dataclasses import replace

import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, constraints, utility

from ldpopt import Divergence, optimal_channel
from ldpopt.design import CutDual
from ldpopt.design.certificates.patterns import PatternDual
from ldpopt.design.certificates.ratios import column_gain, largest_violation
from ldpopt.mechanisms import randomized_response


@pytest.mark.parametrize("name", ["kl", "chi_squared", "hockey_stick_1_5"])
def test_bounds_are_right_for_any_multipliers(name):
    """Weak duality: random multipliers give a bound above the oracle's optimum."""
    rng = np.random.default_rng(0)
    for instance in ORACLE[:6]:
        problem = Divergence(DIVERGENCES[name], instance["p0"], instance["p1"])
        k, optimum = len(problem.p0), max(instance["optimum"][name], 0.0)
        channel = randomized_response(k, instance["epsilon"])
        points = np.column_stack([problem.p0, problem.p1])
        for scale in (0.0, 0.1 * optimum, optimum):
            rows, pairs = scale * rng.normal(size=k), scale * rng.normal(size=(k, k))
            dual = CutDual(problem, channel, instance["epsilon"], instance["eta"], points, rows, None, pairs)
            assert dual.upper_bound >= optimum * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_cuts_agree_with_the_enumeration_of_patterns(seed):
    """For the same multipliers the minimum cuts and all 2^k patterns prove the same bound."""
    design = optimal_channel(utility(9, seed), constraints(1.5, 0.25))
    known = design.certificate
    assert isinstance(known, PatternDual)
    fields = (known.utility, known.channel, known.epsilon, known.eta, known.points)
    dual = CutDual(*fields, known.rows, None, known.pairs)
    assert dual.upper_bound == pytest.approx(known.upper_bound, rel=1e-7)
    assert dual.upper_bound >= design.value


def test_the_violation_is_that_of_the_best_column():
    """The bound on the largest gain is attained by a pattern, to the accuracy asked for, and no column gains more."""
    rng = np.random.default_rng(5)
    f, k, ratio = DIVERGENCES["kl"], 8, math.exp(1.2)
    p0, p1 = np.sort(rng.dirichlet(np.ones(k))), rng.dirichlet(np.ones(k))
    order = np.argsort(p0 / p1)
    p0, p1 = p0[order], p1[order]
    rows, pairs = 0.02 * rng.normal(size=k), np.triu(0.01 * rng.random((k, k)), 1)
    bound, found = largest_violation(f, p0, p1, rows, pairs, ratio, 1e-9)
    subsets = ((np.arange(2**k)[:, None] >> np.arange(k)) & 1) == 1
    gains = [column_gain(f, p0, p1, rows, pairs, np.where(side, ratio, 1.0)) for side in subsets]
    assert bound == pytest.approx(max(gains), abs=2e-9)
    assert bound >= max(gains) - 1e-13
    best = max(column_gain(f, p0, p1, rows, pairs, np.where(side, ratio, 1.0)) for side in found.T)
    assert best == pytest.approx(max(gains), abs=1e-9)


def test_few_flows_make_a_larger_bound_not_a_wrong_one():
    """When the flows allowed run out, what is unresolved is bounded all the same."""
    design = optimal_channel(utility(20, 1), constraints(1.0, 0.2))
    dual = design.certificate
    p0, p1 = dual.points.T
    fields = (dual.utility.f, p0, p1, 0.9 * dual.rows, 0.9 * dual.pairs, math.e, 1e-12)
    assert largest_violation(*fields, 5)[0] >= largest_violation(*fields)[0] - 1e-15


def test_corrupted_multipliers_do_not_verify():
    """A design whose multipliers were changed proves less than it says, and does not verify; nor does a foreign one."""
    design = optimal_channel(utility(18, 2), constraints(1.0, 0.2))
    assert design.verify()
    dual = design.certificate
    for changed in (
        replace(dual, rows=0.9 * dual.rows),
        replace(dual, pairs=0.9 * dual.pairs),
        replace(dual, pairs=-dual.pairs),
        replace(dual, points=dual.points[::-1] * 0.5),
        replace(dual, rows=np.full(18, np.nan)),
    ):
        assert not replace(design, certificate=changed).verify()
        assert not changed.upper_bound < design.value
