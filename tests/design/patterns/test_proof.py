"""Tests of `ldpopt.design.kernel.listed`: bounds that hold whatever the numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, random_pair

from ldpopt import Channel, Divergence
from ldpopt.design import (
    ApproximateLDP,
    FisherInformation,
    LocalDP,
    MutualInformation,
    PatternDual,
    PatternLP,
    TotalVariation,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.patterns.method import pattern_program
from ldpopt.divergences import CHI_SQUARED, KL, hockey_stick
from ldpopt.numbers.enclosures import arithmetic


def dual(utility, epsilon, eta=1.0):
    *_, found = pattern_program(utility, epsilon, eta)
    constraints = (LocalDP(epsilon), TotalVariation(eta))
    return PatternDual(
        utility, constraints, Channel(np.ones((utility.size, 1))), found.rows, found.pairs(), found.criteria
    )


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", ["kl", "chi_squared", "le_cam", "total_variation", "hockey_stick_1_5"])
def test_bounds_are_right_for_any_multipliers(name):
    """Weak duality: random multipliers of any scale give a bound above the oracle's optimum [KOV14, Thm 4]."""
    rng = np.random.default_rng(0)
    for instance in ORACLE[:6]:
        utility = Divergence(DIVERGENCES[name], instance["p0"], instance["p1"])
        k, optimum = utility.size, max(instance["optimum"][name], 0.0)
        constraints = (LocalDP(instance["epsilon"]), TotalVariation(instance["eta"]))
        for scale in (0.0, 1e-300, 0.1 * optimum, optimum, 1e3):
            rows, pairs = scale * rng.normal(size=k), scale * rng.random((k, k))
            made = PatternDual(utility, constraints, Channel(np.ones((k, 1))), rows, pairs, np.ones(1))
            assert made.bound >= optimum * (1 - 1e-12)


def forged(made):
    """Every number of the certificate spoiled in turn."""
    k = made.utility.size
    rng = np.random.default_rng(3)
    for field in ("rows", "pairs", "weights"):
        good = getattr(made, field)
        nan, inf, order = np.array(good), np.array(good), rng.permutation(len(good))
        nan.flat[-1], inf.flat[-1] = math.nan, math.inf
        for bad in (nan, inf, -inf, -good, 0 * good, 0.5 * good, 2 * good, 1e-200 * good, 1e200 * good, good[order],
                    good[:-1], np.append(good.ravel(), 0.0), good[None], None, "x", [[]], 1.0):  # fmt: skip
            yield replace(made, **{field: bad})
    yield replace(made, pairs=made.pairs - 1e-3 * np.triu(np.ones((k, k)), 1))
    yield replace(made, rows=made.rows - made.rows.max())


@pytest.mark.parametrize("eta", [1.0, 0.25])
def test_no_forgery_proves_less_than_the_optimum(eta):
    """NaN, infinities, signs, zeros, shapes, orders and scales: the bound stays above the optimum, or is infinite."""
    rng = np.random.default_rng(1)
    for utility in (
        Divergence(KL, *random_pair(5, 1)),
        MutualInformation(rng.dirichlet(np.ones(4))),
        WorstOf(CHI_SQUARED, rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), 2)),
    ):
        made = dual(utility, 1.1, eta)
        optimum = made.bound * (1 - 1e-8)
        for bad in forged(made):
            with np.errstate(all="ignore"):
                assert not bad.bound < optimum


def test_the_constraints_that_count_are_the_designs_own():
    """Without pure LDP there is no bound; for a larger epsilon the same numbers do not prove the smaller bound."""
    utility = Divergence(KL, *random_pair(5, 1))
    made = dual(utility, 1.0)
    larger = dual(utility, 1.5).bound
    assert replace(made, constraints=(LocalDP(1.5),)).bound >= larger * (1 - 1e-9)
    for none in ((), (TotalVariation(0.2),), (ApproximateLDP(1.0, 0.01),)):
        assert replace(made, constraints=none).bound == math.inf
    assert replace(made, utility=FisherInformation(np.ones(5) / 5)).bound in (-math.inf, math.inf)
    assert replace(made, utility=Divergence(KL, *random_pair(21, 1))).bound == math.inf


def test_a_pattern_that_pays_less_than_nothing_proves_nothing():
    """A pattern worth nothing with a negative charge is not overlooked."""
    utility = Divergence(hockey_stick(1.7), [0.5, 0.3, 0.2], [0.1, 0.2, 0.7])
    design = optimal_channel(utility, [LocalDP(8.0), TotalVariation(0.999 * math.tanh(4))], method=PatternLP())
    assert design.certified
    assert design.value <= design.upper_bound <= design.value * (1 + 1e-9)
    made = PatternDual(
        utility, (LocalDP(8.0),), design.channel, np.array([-1.0, 0.5, 0.6]), np.zeros((3, 3)), np.ones(1)
    )
    assert made.bound >= design.value


@pytest.mark.full(but=2)
@pytest.mark.parametrize("epsilon", [1e-7, 0.01, 2.0, 80.0, 400.0])
@pytest.mark.parametrize("share", [2.0, 0.4, 1e-9])
def test_proofs_are_tight_at_every_scale_and_in_exact_arithmetic(epsilon, share):
    """Good multipliers prove the optimum to 1e-8 of itself, and 256 bits agree with float64 rounded outward."""
    rng = np.random.default_rng(2)
    eta = min(1.0, share * math.tanh(epsilon / 2))
    parts = [Divergence(KL, *random_pair(4, 5)), MutualInformation(rng.dirichlet(np.ones(4)))]
    for utility in (*parts, WeightedSum([1.0, 2.0], parts)):
        made = dual(utility, epsilon, eta)
        *_, found = pattern_program(utility, epsilon, eta)
        sharp = made.bound_in(arithmetic(True)).value
        assert made.bound == pytest.approx(sharp, rel=1e-9)
        assert sharp == pytest.approx(found.rows.sum() + eta * found.prices.sum(), rel=1e-8)
        assert sharp <= made.bound


def test_the_bound_holds_for_the_exact_epsilon():
    """The bound for the exact epsilon of the constraint exceeds the value of every channel within it."""
    design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), LocalDP(1e-6), method=PatternLP())
    # Two sets of mass a and 1 - a: to first order epsilon^2/2 a (1 - a), and a = 1/2 is reached.
    assert design.upper_bound >= 1e-12 / 8 * (1 - 1e-9)
    assert design.verify(exact=True)
