"""Tests of `ldpopt.design.two_hypotheses.proof`: potentials prove, whatever they are, and prove enough."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, constraints, random_pair, utility

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import EnvelopeDual, MergedPartition
from ldpopt.design.two_hypotheses.proof import SortedBlocks
from ldpopt.divergences import KL, NAMED
from ldpopt.numbers.enclosures import EXACT, FLOAT


def dual(design, **changes):
    return replace(design.certificate, **changes)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", DIVERGENCES)
def test_any_numbers_prove_something_true(name):
    """Random, scaled and shuffled potentials give a bound above the oracle's optimum, or none."""
    rng = np.random.default_rng(0)
    instance = ORACLE[0]
    problem = Divergence(DIVERGENCES[name], instance["p0"], instance["p1"])
    for eta, key in ((None, "optimum_without_eta"), (instance["eta"], "optimum")):
        design = optimal_channel(problem, constraints(instance["epsilon"], eta))
        truth = instance[key][name]
        assert isinstance(design.certificate, EnvelopeDual)
        u = design.certificate.potentials
        forged = [
            {"potentials": u * 0.9}, {"potentials": u * 0.0}, {"potentials": -u}, {"potentials": u[::-1].copy()},
            {"potentials": rng.permutation(u)}, {"potentials": u + rng.normal(size=len(u)) * 0.1 * abs(u).max()},
            {"potentials": np.sort(np.abs(u))}, {"level": 0.0}, {"level": 1e-300}, {"level": design.value / 2},
            {"level": 0.0, "potentials": np.linspace(0, 2 * truth, len(u))},
        ]  # fmt: skip
        for change in forged:
            assert dual(design, **change).bound >= truth * (1 - 1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"level": -1.0}, {"level": math.nan}, {"level": math.inf}, {"level": "1"}, {"level": None},
        {"potentials": None}, {"potentials": np.zeros(3)}, {"potentials": np.full(6, np.nan)},
        {"potentials": np.array([0, 1, 2, 3, 4, np.inf])}, {"points": np.zeros((5, 2))},
        {"points": np.full((5, 2), np.nan)}, {"points": np.array([[1.0, 1.0]] * 5)}, {"points": -np.ones((5, 2))},
    ],
)  # fmt: skip
def test_bad_numbers_prove_no_bound(change):
    """Numbers that are missing, not finite, negative, or of another shape give no bound and do not verify."""
    forged = dual(optimal_channel(utility(5, 1), constraints(1.0, 0.2)), **change)
    assert forged.bound == math.inf
    assert not forged.verify()
    assert not forged.verify(exact=True)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("f", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("epsilon", [1e-8, 1.0, 400.0])
def test_bounds_keep_their_digits_at_every_scale(f, epsilon):
    """From epsilon 1e-8 to 400, for hypotheses apart or 1e-9 near: both arithmetics agree, and the gap is small."""
    base = np.array([0.4, 0.3, 0.2, 0.1])
    for p1 in ([0.1, 0.2, 0.3, 0.4], base * (1 + 1e-9 * np.array([1, -1, 2, -3.0]))):
        design = optimal_channel(Divergence(f, base, p1), LocalDP(epsilon))
        fast, exact = (design.certificate.bound_in(each).value for each in (FLOAT, EXACT))
        assert exact <= fast <= exact * (1 + 1e-10)
        assert design.value <= exact
        assert design.verify(exact=True)


def test_the_bound_holds_for_the_exact_epsilon():
    """For two answers the optimum is known: no bound lies below it, at any small epsilon [KOV14]."""
    for epsilon in (1e-8, 1e-7, 1e-6, 1e-3, 1.0):
        design = optimal_channel(Divergence(KL, [0.5, 0.5], [0.25, 0.75]), LocalDP(epsilon))
        with mpmath.workdps(50):
            m1 = mpmath.mpf(1) / 2 - mpmath.tanh(mpmath.mpf(epsilon) / 2) / 4
            truth = float(-(mpmath.log(2 * m1) + mpmath.log(2 - 2 * m1)) / 2)
        assert design.upper_bound >= truth * (1 - 1e-12)
        assert design.upper_bound == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("eta", [1e-12, 1e-6, 0.2])
def test_one_certificate_proves_designs_for_several_caps(eta):
    """On one piece of the envelope a single certificate proves designs for other caps."""
    problem = utility(9, 2)
    first = optimal_channel(problem, constraints(1.0, 0.1))
    other = optimal_channel(problem, constraints(1.0, eta))
    moved = first.certificate.rebind(problem, other.constraints, other.channel)
    assert moved.bound == pytest.approx(other.upper_bound, rel=1e-8)
    assert moved.verify()


def test_points_that_do_not_dominate_prove_nothing():
    """Points less informative than the inputs give no bound; those of the design do, and are near the truth."""
    problem = utility(60, 1)
    design = optimal_channel(problem, LocalDP(1.0))
    own = np.column_stack(problem.pair)
    order = design.certificate.potentials
    same = dual(design, points=own)
    assert same.bound == pytest.approx(design.upper_bound, rel=1e-9)
    flat = np.column_stack([own.sum(axis=1) / 2] * 2)
    assert dual(design, points=flat).bound == math.inf
    closer = 0.999 * own + 0.001 * flat
    assert dual(design, points=closer).bound == math.inf
    assert len(order) == 61


@pytest.mark.full
def test_large_alphabets_are_proved_themselves_or_bracketed(monkeypatch):
    """Of 6,000 inputs under a cap on total variation the optimum is proved to 1e-9 in either arithmetic. Of more than
    may be looked at, points that dominate prove it to 1e-6.
    """
    problem = Divergence(KL, *random_pair(6_000, 5)), [LocalDP(1.0), TotalVariation(0.2)]
    design = optimal_channel(*problem)
    assert design.certificate.points is None
    assert design.relative_gap < 1e-9
    assert all(design.certificate.bound_in(each).value <= design.upper_bound for each in (FLOAT, EXACT))
    monkeypatch.setattr("ldpopt.design.two_hypotheses.method.MAX_PARTITION_INPUTS", 3_000)
    bracket = optimal_channel(*problem, method=MergedPartition())
    assert bracket.certificate.points is not None
    assert bracket.relative_gap < 1e-6
    assert bracket.certified


def test_an_exact_check_of_few_blocks_uses_no_floats(monkeypatch):
    """Up to 99 inputs all blocks are looked at in balls; of more, only those that float64 leaves open."""
    asked = []
    settle = SortedBlocks.unsettled
    monkeypatch.setattr(SortedBlocks, "unsettled", lambda own, most: asked.append(len(own)) or settle(own, most))
    for k in (60, 120):
        design = optimal_channel(Divergence(KL, *random_pair(k, 0)), LocalDP(1.0))
        assert design.certificate.verify(exact=True)
    assert [n > 99 for n in asked] == [True]
