"""Tests of `ldpopt.design.certificate`: bounds that hold whatever the multipliers, and failures that show."""

from dataclasses import replace

import numpy as np
import pytest
from design_problems import constraints, random_pair, utility

from ldpopt import Channel, Divergence, LocalDP, optimal_channel
from ldpopt.design.certificates.hypotheses import dominates
from ldpopt.design.methods.partition import Partition
from ldpopt.divergences import KL


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
