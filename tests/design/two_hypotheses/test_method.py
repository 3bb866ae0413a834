"""Two hypotheses: problems where floats are stretched, and erasure under total variation alone."""

import json
import math

import mpmath
import networkx as nx
import numpy as np
import pytest
from honest_design_files import excess, normalised

import ldpopt_check
from ldpopt import (
    ApproximateLDP,
    ExpectedLoss,
    LocalDP,
    MutualInformation,
    PrivateSampling,
    RenyiLDP,
    TotalVariation,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.design import Divergence
from ldpopt.design.files import design_text
from ldpopt.divergences import KL, NAMED, REVERSE_KL, TOTAL_VARIATION, FDivergence, alpha, piecewise_linear

ZERO = ([0.5, 0.3, 0.2], [0.2, 0.8, 0.0])
BOTH = ([0.0, 0.3, 0.3, 0.4], [0.5, 0.3, 0.2, 0.0])


def plain_design(f, pair, epsilon, eta=None):
    """The optimal design of a plain problem."""
    caps = [LocalDP(epsilon)] if eta is None else [LocalDP(epsilon), TotalVariation(eta)]
    return optimal_channel(Divergence(f, *pair), caps)


def kept(design):
    """D_f of the marginals of the very channel, in 60 digits, for hypotheses and rows divided by their sums."""
    with mpmath.workdps(60):
        p0, p1 = map(normalised, design.utility.pair)
        rows = [normalised(row) for row in design.channel.matrix.tolist()]
        laws = [[mpmath.fsum(p * row[y] for p, row in zip(law, rows, strict=True)) for y in range(len(rows[0]))]
                for law in (p0, p1)]  # fmt: skip
        f = dict(zip(("name", "parameter"), design.utility.f.recipe, strict=False))
        return mpmath.fsum(excess(f, a, b) for a, b in zip(*laws, strict=True))


@pytest.mark.parametrize("eta", [None, 0.3, 1e-3])
@pytest.mark.parametrize("pair", [ZERO, BOTH])
@pytest.mark.parametrize("f", NAMED.values(), ids=list(NAMED))
def test_large_epsilon_loses_nothing(f, pair, eta):
    """Entries as small as e^-epsilon are neither raised by the repair nor lost in sums: certified, and to 1e-11.

    Where an input has mass under one hypothesis alone, the optimum grows with epsilon for most divergences, and a share
    of 1e-16 of the mean row in the channel cost a third of it.
    """
    for epsilon in (30.0, 100.0, 400.0, 700.0):
        with np.errstate(all="raise", under="ignore"):
            design = plain_design(f, pair, epsilon, eta)
        assert design.certified
        assert design.relative_gap <= 1e-11
        true = kept(design)
        assert true * (1 - mpmath.mpf(4e-12)) <= design.value <= true


def test_the_value_under_a_cap_is_that_of_the_envelope():
    """With P0 = (.5, .3, .2), P1 = (.2, .8, 0) and epsilon = 700, a cap of 0.3 leaves 0.3 times the optimum without it.

    Every partition's total variation is 1 to 300 digits there, so that the envelope is a line [theory of certificates].
    """
    whole, part = (plain_design(NAMED["kl"], ZERO, 700.0, eta).value for eta in (None, 0.3))
    assert part == pytest.approx(0.3 * whole, rel=1e-12)


def test_subnormal_entries_keep_epsilon():
    """eta e^-epsilon = 1e-316 is a float of few digits: it is rounded up, and the rows are not mixed for it."""
    design = plain_design(NAMED["kl"], ZERO, 700.0, 1e-12)
    assert design.certified
    assert all(g.value <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))
    assert design.value == pytest.approx(1e-12 * plain_design(NAMED["kl"], ZERO, 700.0).value, rel=1e-6)


@pytest.mark.parametrize("f", NAMED.values(), ids=list(NAMED))
def test_a_tiny_epsilon_is_valued_to_all_digits(f):
    """At epsilon = 1e-8, where rows differ in their last eight digits, the value is that of the channel to 4e-12."""
    for eta in (None, 1e-9):
        design = plain_design(f, ZERO, 1e-8, eta)
        assert design.certified
        true = kept(design)
        assert true * (1 - mpmath.mpf(4e-12)) <= design.value <= true


def test_a_tiny_epsilon_is_total_variation_times_tanh():
    """Total variation under epsilon = 1e-8 is tanh(epsilon/2) times that of the hypotheses, 0.5 [KOV14, Thm 3]."""
    value = plain_design(TOTAL_VARIATION, ZERO, 1e-8).value
    assert value == pytest.approx(0.5 * math.tanh(0.5e-8), rel=2e-8)


def test_blocks_without_mass_under_one_hypothesis_are_worth_something_finite():
    """mu(t, t + b) = (t + b) log((t + b)/t) - b is finite for t = 1/(e^400 - 1), far below the rounding of b."""
    p0, p1 = [0.0, 1.0], [0.5, 0.5]
    t = mpmath.mpf(1) / (mpmath.exp(400) - 1)
    blocks = mpmath.mpf(0.5) + t, 1 + t
    true = (blocks[0] * mpmath.log(blocks[0] / t) - 0.5) + (blocks[0] * mpmath.log(blocks[0] / blocks[1]) + 0.5)
    assert plain_design(REVERSE_KL, (p0, p1), 400.0).upper_bound == pytest.approx(float(true / (1 + 2 * t)), rel=1e-11)


def test_an_optimum_beyond_the_floats_is_not_certified():
    """The alpha-divergence of order 3 reaches e^800 at epsilon = 400: nothing finite is proved, and nothing warns."""
    for eta in (None, 0.3):
        design = plain_design(alpha(3.0), ZERO, 400.0, eta)
        assert not design.certified
        assert design.upper_bound == math.inf


P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.8, 0.0]
NOTHING = [
    [TotalVariation(0.0)],
    [LocalDP(1.0), TotalVariation(0.0)],
    [ApproximateLDP(0.0, 0.0)],
    [LocalDP(1e-8), ApproximateLDP(0.0, 0.0), RenyiLDP(3, 0.006)],
    [RenyiLDP(2, 0.3), TotalVariation(0.0)],
    [LocalDP(1.0, nx.path_graph(3)), TotalVariation(0.0)],
]


@pytest.mark.parametrize("constraints", NOTHING, ids=range(6))
@pytest.mark.parametrize(
    "utility",
    [Divergence(KL, P0, P1), Divergence(TOTAL_VARIATION, P0, P1), MutualInformation(P0)],
    ids=lambda u: u.name,
)
def test_a_cap_of_zero_has_a_proved_optimum_of_zero(utility, constraints):
    """Also where full disclosure is worth infinitely much."""
    design = optimal_channel(utility, constraints)
    assert (design.value, design.upper_bound, design.certified) == (0.0, 0.0, True)
    assert design.verify()
    assert design.verify(exact=True)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("constraints", NOTHING[:-1], ids=range(5))
def test_under_a_cap_of_zero_decisions_are_the_best_that_ignore_the_answer(constraints):
    """Always saying the likeliest answer errs with probability 1 - 0.5; sampling has equal rows as well."""
    loss = optimal_channel(ExpectedLoss(P0, 1 - np.eye(3)), constraints)
    assert loss.value == pytest.approx(-0.5, abs=1e-7)
    assert loss.upper_bound >= -0.5
    sampling = optimal_channel(PrivateSampling(KL, [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), constraints)
    assert np.ptp(np.asarray(sampling.channel.matrix), axis=0).max() == 0
    assert sampling.value <= sampling.upper_bound


def test_under_total_variation_alone_full_disclosure_is_erased():
    """eta times full disclosure [Dobrushin]."""
    design = optimal_channel(Divergence(TOTAL_VARIATION, P0, P1), TotalVariation(0.25))
    assert design.value == pytest.approx(0.25 * 0.5, rel=1e-12)
    assert design.certified


@pytest.mark.parametrize("kind", ["sum", "worst", "without weight", "infinite"])
def test_sums_and_the_worst_contract_as_their_parts_do(kind):
    """Under total variation alone eta times a weighted sum, or the least, of divergences and informations is the best
    there is [Dobrushin]; parts that are infinite, or without weight, count for nothing; both programs prove it."""
    p, q, r = np.random.default_rng(3).dirichlet(np.ones(4), 3)
    utility, least = {
        "sum": (WeightedSum([1.0, 0.5], [Divergence(KL, p, q), MutualInformation(r)]), 1),
        "worst": (WorstOf(KL, p, [q, r]), 2),
        "without weight": (WeightedSum([1.0, 0.0], [Divergence(KL, p, q), Divergence(KL, *BOTH)]), 1),
        "infinite": (WorstOf(KL, p, [BOTH[1], q]), 1),
    }[kind]
    design = optimal_channel(utility, TotalVariation(0.25))
    kept = [Divergence(KL, p, q).value_without_privacy, Divergence(KL, p, r).value_without_privacy][:least]
    whole = kept[0] + 0.5 * MutualInformation(r).value_without_privacy if kind == "sum" else min(kept)
    assert design.value == pytest.approx(0.25 * whole, rel=1e-10)
    assert design.certified
    assert design.verify(exact=True)
    assert not ldpopt_check.check(json.loads(design_text(design))).failures


def test_the_worst_of_many_answers_is_erased():
    """What needs no search takes 400 answers, and states eta times the least divergence."""
    p, q, r = np.random.default_rng(3).dirichlet(np.ones(400), 3)
    design = optimal_channel(WorstOf(KL, p, [q, r]), TotalVariation(0.1))
    assert design.certified
    assert design.value == pytest.approx(0.1 * design.utility.value_without_privacy, rel=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_a_function_with_kinks_is_bounded_as_well_as_its_data(seed):
    """The bound for a callable f with kinks is that of the f given as knots and slopes, but for float margins [SPR]."""
    rng = np.random.default_rng(seed)
    knots, slopes = np.sort(rng.uniform(0.2, 4, 3)), np.sort(rng.normal(size=4))
    p0, p1 = rng.dirichlet(np.ones(4), 2)

    def f(t):
        return slopes[0] * (t - 1) + sum(
            rise * (np.maximum(t - knot, 0) - max(1 - knot, 0))
            for rise, knot in zip(np.diff(slopes), knots, strict=True)
        )

    exact = optimal_channel(Divergence(piecewise_linear(knots, slopes), p0, p1), LocalDP(1.5))
    assert exact.certified or exact.value == 0
    own = optimal_channel(Divergence(FDivergence(f), p0, p1), LocalDP(1.5))
    assert exact.value * (1 - 1e-12) <= own.upper_bound <= exact.upper_bound + 1e-7
    assert own.verify()
