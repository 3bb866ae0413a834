"""Tests of `ldpopt.design.patterns.proof_levels`: bounds that hold whatever the numbers."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from design_problems import DIVERGENCES, random_pair

from ldpopt import Channel, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import (
    ApproximateLDP,
    FisherInformation,
    LevelDual,
    LevelLP,
    LevelVariationDual,
    MutualInformation,
    WeightedSum,
    WorstOf,
)
from ldpopt.design.patterns.method import level_program
from ldpopt.design.patterns.proof_levels import LeveledColumns, excesses, level_columns
from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.numbers.enclosures import EXACT, FLOAT, arithmetic


def dual(utility, epsilon, delta):
    _, found = level_program(utility, epsilon, delta)
    channel = Channel(np.ones((utility.size, 1)))
    return LevelDual(utility, (ApproximateLDP(epsilon, delta),), channel, found.rows, found.pairs(), found.criteria)


@pytest.mark.parametrize("ground", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("epsilon", [1e-9, 0.7, 30.0])
def test_the_enclosed_columns_agree_with_exact_exponentials(epsilon, ground):
    """base + rise encloses e^(level epsilon) over the largest, and the excess its own difference, in fractions of e."""
    import mpmath

    levels = level_columns(3)
    made = LeveledColumns.at_epsilon(levels, ground.of(epsilon))
    excess = excesses(ground.of(epsilon), 2)
    with mpmath.workdps(60):
        e = mpmath.exp(mpmath.mpf(epsilon))
        true = [[mpmath.mpf(0) if one < 0 else e ** int(one - max(row)) for one in row] for row in levels]
        for n, column in enumerate(true):
            for x in range(3):
                entry = made.base[n] + made.rise[x, n]
                assert entry.lower <= column[x] <= entry.upper
                assert entry.upper - entry.lower <= 1e-13 * float(column[x])
            for x, y in itertools.permutations(range(3), 2):
                over, found = column[x] - e * column[y], excess[made.height[n], levels[n, x], levels[n, y]]
                over = over if over > mpmath.mpf(10) ** -50 else mpmath.mpf(0)  # neighbouring levels cancel
                assert found.lower <= over <= found.upper
                assert found.upper - found.lower <= 1e-13 * float(over)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", ["kl", "chi_squared", "total_variation", "hockey_stick_1_5"])
def test_bounds_are_right_for_any_multipliers(name):
    """Weak duality: random multipliers of any scale give a bound above a channel within the constraint."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        utility = Divergence(DIVERGENCES[name], *random_pair(4, seed))
        reached = optimal_channel(utility, ApproximateLDP(1.0, 0.05)).value
        for scale in (0.0, 1e-300, 0.1 * reached, reached, 1e3):
            rows, pairs = scale * rng.normal(size=4), scale * rng.random((4, 4))
            channel = Channel(np.ones((4, 1)))
            made = LevelDual(utility, (ApproximateLDP(1.0, 0.05),), channel, rows, pairs, np.ones(1))
            assert made.bound >= reached * (1 - 1e-12)


def forged(made):
    """Every number of the certificate spoiled in turn."""
    rng = np.random.default_rng(3)
    for field in ("rows", "pairs", "weights"):
        good = getattr(made, field)
        nan, inf, order = np.array(good), np.array(good), rng.permutation(len(good))
        nan.flat[1 if field == "pairs" else -1] = math.nan
        inf.flat[1 if field == "pairs" else -1] = math.inf
        for bad in (nan, inf, -inf, -good, 0 * good, 0.5 * good, 2 * good, 1e-200 * good, 1e200 * good, good[order],
                    good[:-1], np.append(good.ravel(), 0.0), good[None], None, "x", [[]], 1.0):  # fmt: skip
            yield replace(made, **{field: bad})
    yield replace(made, pairs=made.pairs - 1e-3 * np.triu(np.ones(made.pairs.shape), 1))
    yield replace(made, rows=made.rows - made.rows.max())


def test_no_forgery_proves_less_than_the_optimum():
    """NaN, infinities, signs, zeros, shapes, orders and scales: the bound stays above the optimum, or is infinite."""
    rng = np.random.default_rng(1)
    for utility in (
        Divergence(KL, *random_pair(4, 1)),
        MutualInformation(rng.dirichlet(np.ones(4))),
        WorstOf(CHI_SQUARED, rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), 2)),
    ):
        made = dual(utility, 1.1, 0.03)
        optimum = made.bound * (1 - 1e-8)
        for bad in forged(made):
            with np.errstate(all="ignore"):
                assert not bad.bound < optimum


def test_the_constraints_that_count_are_the_designs_own():
    """Larger epsilon or delta are not bounded by numbers for smaller ones; without the constraint nothing is."""
    utility = Divergence(KL, *random_pair(4, 1))
    made = dual(utility, 1.0, 0.02)
    for epsilon, delta in ((1.5, 0.02), (1.0, 0.1)):
        larger = dual(utility, epsilon, delta).bound
        assert replace(made, constraints=(ApproximateLDP(epsilon, delta),)).bound >= larger * (1 - 1e-9)
    for none in ((), (TotalVariation(0.2),), (LocalDP(1.0),)):
        assert replace(made, constraints=none).bound == math.inf
    several = (ApproximateLDP(1.5, 0.02), ApproximateLDP(1.0, 0.02), LocalDP(3.0))
    assert replace(made, constraints=several).bound == made.bound
    assert replace(made, utility=FisherInformation(np.ones(4) / 4)).bound in (-math.inf, math.inf)
    assert replace(made, utility=Divergence(KL, *random_pair(7, 1))).bound == math.inf


def test_an_infinite_divergence_is_not_bounded():
    """An answer that only one hypothesis gives is worth infinitely much in full, and delta gives some of it."""
    made = dual(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), 1.0, 0.1)
    assert replace(made, utility=Divergence(KL, [0.5, 0.3, 0.2], [0.5, 0.5, 0.0])).bound == math.inf


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-7, 1e-9), (1e-7, 0.4), (0.01, 1e-3), (2.0, 1e-9), (80.0, 1e-3)])
def test_proofs_are_tight_at_every_scale_and_in_exact_arithmetic(epsilon, delta):
    """Good multipliers prove the optimum to 1e-6 of what a channel keeps, and 256 bits agree with float64."""
    rng = np.random.default_rng(2)
    parts = [Divergence(KL, *random_pair(4, 5)), MutualInformation(rng.dirichlet(np.ones(4)))]
    for utility in (*parts, WeightedSum([1.0, 2.0], parts)):
        design = optimal_channel(utility, ApproximateLDP(epsilon, delta), method=LevelLP())
        assert isinstance(design.certificate, LevelDual)
        assert design.certified
        sharp = design.certificate.bound_in(arithmetic(True)).value
        assert sharp <= design.upper_bound
        assert design.upper_bound == pytest.approx(sharp, rel=1e-8)


CAPPED = (ApproximateLDP(1.0, 0.05), TotalVariation(0.3))


@pytest.mark.parametrize("name", ["information", "kl", "worst"])
@pytest.mark.parametrize("eta", [0.02, 0.2, 0.5])
def test_a_further_cap_on_total_variation_is_certified(name, eta):
    """Met to 1e-9 at every cap, and random columns, best weighed by a program of their own, keep no more."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(5)
    laws = rng.dirichlet(np.ones(4), 3)
    utility = {
        "information": MutualInformation(laws[0]),
        "kl": Divergence(CHI_SQUARED, laws[0], laws[1]),
        "worst": WorstOf(KL, laws[0], laws[1:]),
    }[name]
    constraints = (ApproximateLDP(1.0, 0.1), TotalVariation(eta))
    design = optimal_channel(utility, constraints, method=LevelLP())
    assert isinstance(design.certificate, LevelVariationDual)
    assert design.relative_gap < 1e-9
    assert design.verify()
    columns = np.hstack([np.exp(rng.uniform(-2, 0, (4, 1500))) * (rng.random((4, 1500)) < 0.8), np.ones((4, 1))])
    columns = np.hstack([columns, np.exp(-rng.integers(0, 3, (4, 800))) * (rng.random((4, 800)) < 0.8)])
    columns = columns[:, columns.max(axis=0) > 0]
    worth = utility.columns(columns) if name != "kl" else utility.f.excess(laws[0] @ columns, laws[1] @ columns)[None]
    ends = [(x, y) for x in range(4) for y in range(4) if x != y]
    over = [np.maximum(columns[x] - e * columns[y], 0) / cap for e, cap in ((math.e, 0.1), (1.0, eta)) for x, y in ends]
    n = columns.shape[1]
    kept = np.block([[-worth, np.ones((len(worth), 1))], [np.array(over), np.zeros((24, 1))]])
    found = linprog(
        np.append(np.zeros(n), -1.0), kept,
        np.concatenate([np.zeros(len(worth)), np.ones(24)]), np.hstack([columns, np.zeros((4, 1))]), np.ones(4),
        [(0, None)] * n + [(None, None)],
    )  # fmt: skip
    assert 0.8 * design.value <= -found.fun <= design.upper_bound * (1 + 1e-9)


def test_no_forgery_of_prices_on_total_variation_proves_less_than_the_optimum():
    """Spreads of every kind, swapped with the pairs, and numbers of one cap without the other."""
    from tests.design.kernel.forging import forged as tampered

    utility = MutualInformation([0.5, 0.3, 0.2])
    design = optimal_channel(utility, CAPPED)
    made = design.certificate
    assert isinstance(made, LevelVariationDual)
    rng, tried, proved = np.random.default_rng(9), 0, 0
    swapped = replace(made, pairs=made.spreads, spreads=made.pairs)
    for other in (swapped, *tampered(made, rng, keep=("utility", "constraints", "channel", "edges"))):
        tried += 1
        assert not other.bound < design.value
        proved += other.bound < np.inf
    assert 0 < proved < tried
    assert made.bound_in(arithmetic(True)).value == pytest.approx(design.upper_bound, rel=1e-12)
    alone = made.rebind(utility, (ApproximateLDP(1.0, 0.05),), design.channel)
    assert alone.bound >= optimal_channel(utility, ApproximateLDP(1.0, 0.05)).value
    assert made.rebind(utility, (TotalVariation(0.3),), design.channel).bound == np.inf


@pytest.mark.parametrize("eta", [0.7, 1.0])
def test_a_cap_on_total_variation_that_cannot_bind_changes_nothing(eta):
    """Constants on some of the inputs are no better than what is there without them."""
    utility, constraint = MutualInformation([0.4, 0.3, 0.2, 0.1]), ApproximateLDP(0.5, 0.05)
    plain = optimal_channel(utility, constraint)
    assert optimal_channel(utility, [constraint, TotalVariation(eta)]).value == pytest.approx(plain.value, rel=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e-7])
def test_small_caps_are_certified(scale):
    """delta and eta as small as epsilon or smaller."""
    constraints = [ApproximateLDP(scale, scale / 100), TotalVariation(scale / 5)]
    design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), constraints)
    assert design.relative_gap < 1e-6
    assert design.verify()


@pytest.mark.parametrize("kind", ["information", "sum", "worst"])
def test_the_proof_of_eight_inputs_is_done_unasked(kind):
    """What `verify` takes is stated below its budget of one, with a price for each pair of eight inputs."""
    p, q, r = np.random.default_rng(0).dirichlet(np.ones(8), 3)
    utility, criteria = {
        "information": (MutualInformation(p), 1),
        "sum": (WeightedSum([1.0, 0.5], [Divergence(KL, p, q), MutualInformation(r)]), 1),
        "worst": (WorstOf(KL, p, [q, r]), 2),
    }[kind]
    numbers = np.ones(8), 1 - np.eye(8), np.ones(criteria)
    assert not LevelDual(utility, (ApproximateLDP(1.0, 0.1),), Channel(np.eye(8)), *numbers).work().refusal(1.0)
