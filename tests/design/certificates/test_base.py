"""Tests of `ldpopt.design.certificate`: bounds that hold whatever the multipliers, and failures that show."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, constraints, random_pair, utility

from ldpopt import Channel, Divergence, LocalDP, optimal_channel
from ldpopt.design.certificates.base import dominates
from ldpopt.design.certificates.patterns import PatternDual
from ldpopt.design.certificates.ratios import LabelDual, _largest_violation
from ldpopt.design.methods.partition import Partition
from ldpopt.divergences import KL
from ldpopt.mechanisms import randomized_response


@pytest.mark.parametrize("name", ["kl", "chi_squared", "le_cam", "total_variation"])
def test_bounds_are_right_for_any_multipliers(name):
    """Weak duality: random multipliers give a bound above the oracle's optimum, for both kinds of certificate."""
    rng = np.random.default_rng(0)
    for instance in ORACLE[:6]:
        problem = Divergence(DIVERGENCES[name], instance["p0"], instance["p1"])
        k, epsilon = len(problem.p0), instance["epsilon"]
        channel = randomized_response(k, epsilon)
        points = np.column_stack([problem.p0, problem.p1])
        pure, capped = instance["optimum_without_eta"][name], instance["optimum"][name]
        for scale in (0.0, 0.1 * pure, pure):
            rows = scale * rng.normal(size=k)
            pairs = scale * np.abs(rng.normal(size=(k, k)))
            label = LabelDual(problem, channel, epsilon, 1.0, points, rows, None)
            pattern = PatternDual(problem, channel, epsilon, instance["eta"], points, rows, None, pairs)
            assert label.upper_bound >= pure * (1 - 1e-12)
            assert pattern.upper_bound >= capped * (1 - 1e-12)


def test_label_and_pattern_bounds_agree():
    """For one set of multipliers the interval argument and the enumeration of patterns prove the same bound."""
    design = optimal_channel(utility(9, 3), LocalDP(2.0))
    pattern = design.certificate
    zeros = np.zeros_like(pattern.pairs)
    label = LabelDual(pattern.utility, design.channel, 2.0, 1.0, pattern.points, pattern.rows, None)
    plain = replace(pattern, pairs=zeros)
    assert label.upper_bound == pytest.approx(plain.upper_bound, rel=1e-7)


def test_corrupted_multipliers_loosen_the_bound_but_never_break_it():
    """Multipliers changed after the fact give a valid, larger bound; verify still passes because the bound holds."""
    design = optimal_channel(utility(9, 3), constraints(1.0, 0.2))
    spoiled = replace(design.certificate, rows=design.certificate.rows * 0.9)
    assert spoiled.upper_bound > design.upper_bound
    assert spoiled.verify()


def test_verify_catches_a_channel_that_is_not_private():
    """A certificate whose channel breaks epsilon or eta fails, and says by how much."""
    design = optimal_channel(utility(5, 1), constraints(1.0, 0.2))
    leaky = replace(design.certificate, channel=Channel(np.eye(5)))
    result = leaky.verify()
    assert not result
    assert any("inf-LDP" in failure for failure in result.failures)
    assert any("-TV" in failure for failure in result.failures)
    assert any("above the bound" in failure for failure in result.failures)
    assert "FAILED" in repr(result)


def test_points_that_do_not_dominate_prove_nothing():
    """Points less informative than the inputs give an infinite bound."""
    design = optimal_channel(utility(300, 1), LocalDP(1.0))
    flat = np.column_stack([design.certificate.points.sum(axis=1) / 2] * 2)
    assert replace(design.certificate, points=flat).upper_bound == np.inf


def test_dominance_is_blackwells():
    """A pair dominates its own garblings, and a garbling does not dominate it."""
    p0, p1 = random_pair(6, 8)
    garble = np.random.default_rng(9).dirichlet(np.ones(4), size=6)
    assert dominates(p0, p1, p0 @ garble, p1 @ garble)
    assert not dominates(p0 @ garble, p1 @ garble, p0, p1)
    assert dominates(p0, p1, p0[::-1], p1[::-1])


def test_verification_shares_nothing_with_the_solver(monkeypatch):
    """A solver that returns a wrong but plausible partition is caught: its gap shows in the bound."""
    honest = optimal_channel(utility(12, 2), LocalDP(2.0))
    monkeypatch.setattr("ldpopt.design.methods.blocks.Blocks.optimum", lambda self: self.cut([0, 6, len(self.pair)]))
    wrong = optimal_channel(utility(12, 2), LocalDP(2.0), method=Partition())
    assert wrong.value < honest.value
    assert wrong.upper_bound == pytest.approx(honest.upper_bound, rel=1e-7)
    assert not wrong.certified
    repaired = optimal_channel(utility(12, 2), LocalDP(2.0))
    assert repaired.certified
    assert "pattern LP" in repaired.method


def test_verification_repr_names_the_figures():
    """A verification shows value, bound and the channel's own epsilon and total variation."""
    verification = optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)).certificate.verify()
    assert "verified: value" in repr(verification)
    assert verification.epsilon <= 1.0


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["kl", "chi_squared", "le_cam", "total_variation"])
def test_the_largest_violation_against_every_corner(name, seed):
    """A convex function of the column is largest at a corner of [1, E]^n: the bound is that, to its accuracy."""
    rng = np.random.default_rng(seed)
    n, ratio, f = 5, float(np.exp(rng.uniform(0.1, 4))), DIVERGENCES[name]
    p0, p1 = rng.dirichlet(np.ones(n), 2)
    corners = np.where((np.arange(2**n)[:, None] >> np.arange(n)) & 1, ratio, 1.0)
    worth = f.excess(corners @ p0, corners @ p1)
    rows = float(worth.max()) * rng.uniform(0, 1.5) * (p1 + rng.normal(scale=0.3, size=n) / n) / ratio
    exact = max(0.0, float((worth - corners @ rows).max()))
    accuracy = 1e-7 * float(worth.max())
    found = _largest_violation(f, p0, p1, rows, ratio, accuracy)
    assert exact * (1 - 1e-12) <= found <= exact + 2 * accuracy


def test_an_exhausted_search_still_bounds():
    """A search that stops before any interval is settled counts what is left: no column gains more."""
    problem = utility(5, 3)
    rows = 0.9 * (problem.p0 + problem.p1) / 100
    columns = np.array(list(itertools.product([1.0, np.e], repeat=5)))
    gain = (KL.excess(columns @ problem.p0, columns @ problem.p1) - columns @ rows).max()
    bound = _largest_violation(KL, problem.p0, problem.p1, rows, np.e, -np.inf)
    assert 0 < gain <= bound <= 1.01 * gain
