"""Tests of `ldpopt.design.certificates.ratios`: bounds that hold whatever the numbers, against patterns."""

import math
from dataclasses import replace

import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, constraints, random_pair, utility

from ldpopt import Channel, Divergence, optimal_channel
from ldpopt.design import ColumnGeneration, LocalDP, MutualInformation, PatternDual, RatioDual, TotalVariation
from ldpopt.design.programs.patterns import pattern_program
from ldpopt.divergences import KL
from ldpopt.enclosures import arithmetic


def duals(problem, epsilon, eta=1.0):
    """Both certificates with the multipliers of the pattern program."""
    found, k = pattern_program(problem, epsilon, eta), problem.size
    fields = (problem, (LocalDP(epsilon), TotalVariation(eta)), Channel(np.ones((k, 1))), found.rows, found.pairs)
    return RatioDual(*fields, np.arange(k)), PatternDual(*fields, found.weights)


@pytest.mark.parametrize("name", ["kl", "chi_squared", "hockey_stick_1_5", "total_variation"])
def test_bounds_are_right_for_any_multipliers(name):
    """Weak duality: random multipliers give a bound above the oracle's optimum, with a cap or without."""
    rng = np.random.default_rng(0)
    for instance in ORACLE[:6]:
        problem = Divergence(DIVERGENCES[name], instance["p0"], instance["p1"])
        k = problem.size
        asked = (LocalDP(instance["epsilon"]), TotalVariation(instance["eta"]))
        for optima, given in (("optimum", asked), ("optimum_without_eta", asked[:1])):
            optimum = max(instance[optima][name], 0.0)
            for scale in (0.0, 0.1 * optimum, optimum):
                rows, pairs = scale * rng.normal(size=k), scale * rng.random((k, k))
                rows += max(0.0, -rows.sum()) + 1e-12
                made = RatioDual(problem, given, Channel(np.ones((k, 1))), rows, pairs, np.arange(k))
                assert made.bound >= optimum * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [1e-8, 0.01, 1.5, 30.0, 300.0])
@pytest.mark.parametrize("share", [2.0, 0.3, 1e-9])
def test_flows_agree_with_the_enumeration_of_patterns(epsilon, share):
    """For the same multipliers flows on intervals prove what all 2^k patterns prove, at every scale."""
    for seed, name in enumerate(("kl", "jensen_shannon", "total_variation")):
        eta = min(1.0, share * math.tanh(epsilon / 2))
        ratio, pattern = duals(utility(7, seed, DIVERGENCES[name]), epsilon, eta)
        assert ratio.bound == pytest.approx(pattern.bound, rel=2e-8, abs=0)


@pytest.mark.parametrize("eta", [1.0, 0.2])
def test_exact_arithmetic_agrees(eta):
    """256 bits prove the same as float64 rounded outward, and never less than the patterns allow."""
    ratio, pattern = duals(utility(5, 3), 1.0, eta)
    sharp = ratio.bound_in(arithmetic(True)).value
    assert sharp == pytest.approx(ratio.bound, rel=1e-8)
    assert sharp >= pattern.bound_in(arithmetic(True)).value * (1 - 1e-12)


def test_inputs_of_one_ratio_are_one_input():
    """Classes of exactly tied inputs, and of those that never occur, prove the optimum; others are refused."""
    p0, p1 = np.array([0.25, 0.125, 0.0, 0.25, 0.375]), np.array([0.125, 0.0625, 0.0, 0.5, 0.3125])
    problem = Divergence(KL, p0, p1)
    merged = Divergence(KL, [0.375, 0.25, 0.375], [0.1875, 0.5, 0.3125])
    for eta in (1.0, 0.2):
        small, pattern = duals(merged, 1.0, eta)
        fields = (problem, small.constraints, Channel(np.ones((5, 1))), small.rows, small.pairs)
        assert RatioDual(*fields, np.array([0, 0, 1, 1, 2])).bound == pytest.approx(pattern.bound, rel=1e-8)
        for wrong in ([0, 1, 1, 1, 2], [0, 0, 0, 1, 1], [0, 0, 1, 1, 3], [0, 0, -1, 1, 2], [0, 0, 1, 1],
                      [0.0, 0, 1, 1, 2], None, [[0, 0, 1, 1, 2]]):  # fmt: skip
            assert RatioDual(*fields, np.array(wrong)).bound == math.inf
    nearly = Divergence(KL, p0, np.array([0.125, np.nextafter(0.0625, 1), 0.0, 0.5, 0.3125]))
    assert RatioDual(nearly, *fields[1:], np.array([0, 0, 1, 1, 2])).bound == math.inf


@pytest.mark.parametrize("eta", [1.0, 0.25])
def test_no_forgery_proves_less_than_the_optimum(eta):
    """NaN, infinities, signs, zeros, shapes, orders and scales: the bound stays above the optimum, or is infinite."""
    made, pattern = duals(utility(5, 1), 1.1, eta)
    optimum = pattern.bound * (1 - 1e-8)
    rng = np.random.default_rng(3)
    for field in ("rows", "pairs"):
        good = getattr(made, field)
        nan, inf = np.array(good), np.array(good)
        nan.flat[-1], inf.flat[-1] = math.nan, math.inf
        for bad in (nan, inf, -inf, -good, 0 * good, 0.5 * good, 2 * good, 1e-200 * good, 1e200 * good,
                    good[rng.permutation(5)], good[:-1], good[None], None, "x", [[]], 1.0):  # fmt: skip
            with np.errstate(all="ignore"):
                assert not replace(made, **{field: bad}).bound < optimum
    assert replace(made, classes=np.array([1, 0, 2, 3, 4])).bound >= optimum
    assert replace(made, constraints=()).bound == math.inf
    assert replace(made, constraints=(TotalVariation(0.2),)).bound == math.inf
    assert replace(made, utility=MutualInformation(np.ones(5) / 5)).bound == math.inf
    assert replace(made, utility=utility(6, 1)).bound == math.inf
    assert replace(made, constraints=(LocalDP(2.0),)).bound >= duals(utility(5, 1), 2.0)[1].bound * (1 - 1e-9)


@pytest.mark.parametrize("eta", [None, 0.2])
def test_a_second_proof_of_the_partition_method(eta):
    """Column generation and its own certificate agree with the envelope of partitions [SPR, KOV14]."""
    problem = utility(40, 3)
    design = optimal_channel(problem, constraints(1.0, eta), method=ColumnGeneration())
    best = optimal_channel(problem, constraints(1.0, eta))
    assert isinstance(design.certificate, RatioDual)
    assert design.certified
    assert design.verify()
    assert design.value == pytest.approx(best.value, rel=1e-8)
    assert best.value <= design.upper_bound


def test_nearly_tied_inputs_are_proved_one_by_one():
    """Inputs whose ratios agree to 1e-15 are designed as one, and the certificate splits their multipliers."""
    p0, p1 = random_pair(6, 2)
    p0, p1 = np.append(p0 / 2, p0 / 2), np.append(p1 / 2, np.nextafter(p1 / 2, 1))
    design = optimal_channel(Divergence(KL, p0, p1), constraints(1.0, 0.2), method=ColumnGeneration())
    assert isinstance(design.certificate, RatioDual)
    assert len(design.certificate.rows) == 12
    assert design.certified
