"""Tests of `ldpopt.design.two_hypotheses.program`: block partitions, and coins between two, against brute force."""

import itertools

import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, random_pair
from scipy.optimize import linprog

from ldpopt.design.problems.reduction import reduce_pair
from ldpopt.design.two_hypotheses.program import Blocks, Cut, merge_starts, optimal_coin
from ldpopt.divergences import KL
from ldpopt.mechanisms import sort_partition_randomize
from ldpopt.privacy import total_variation


def partitions(seed):
    """Erasure and a few partitions of random worth, some of one number of blocks, some worth nothing."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 12, size=rng.integers(0, 8))
    return [Cut((0, 12), 0.0)] + [
        Cut((*range(m), 12), float(rng.choice([0.0, rng.random(), np.sqrt(m)]))) for m in sizes
    ]


@pytest.mark.parametrize("seed", range(60))
def test_the_coin_agrees_with_a_linear_program(seed):
    """The coin keeps what the best mixture of the partitions does whose total variation is at most eta."""
    known, rng = partitions(seed), np.random.default_rng([seed, 1])
    level, eta = float(np.exp(rng.normal(0, 2))), float(rng.choice([rng.random(), 1e-9, 1.0]))
    coin = optimal_coin(known, eta, level)
    rates, variations = [c.rate(level) for c in known], [c.variation(level) for c in known]
    mixed = linprog(-np.array(rates), [variations], [eta], [np.ones(len(known))], [1.0], method="highs")
    assert sum(w for w, _ in coin.parts) == pytest.approx(1.0, rel=1e-15)
    assert all(weight >= 0 for weight, _ in coin.parts)
    assert len(coin.parts) <= 2
    assert sum(w * c.variation(level) for w, c in coin.parts) <= eta * (1 + 1e-12)
    assert sum(w * c.rate(level) for w, c in coin.parts) == pytest.approx(-mixed.fun, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_the_line_proves_the_coin(seed):
    """No partition known lies above the line; both sides of the coin lie on it, and it bounds what the coin keeps."""
    known, rng = partitions(seed), np.random.default_rng([seed, 1])
    level, eta = float(np.exp(rng.normal(0, 2))), float(rng.random())
    coin = optimal_coin(known, eta, level)
    assert coin.price >= 0
    assert all(cut.total - coin.price * cut.blocks <= coin.constant + 1e-14 * abs(cut.total) for cut in known)
    kept = sum(weight * cut.rate(level) for weight, cut in coin.parts)
    height = coin.price / level
    assert height + eta * max(coin.constant - height, 0) == pytest.approx(kept, rel=1e-9, abs=1e-12)


def test_a_cap_at_a_kink_is_met_by_one_partition():
    """Where eta is the very total variation of a partition on the hull, that one has all the weight."""
    known = [Cut((0, 4), 0.0), Cut((0, 2, 4), 1.0), Cut((0, 1, 2, 4), 1.8), Cut((0, 1, 2, 3, 4), 2.3)]
    for cut, level in itertools.product(known[1:], (0.1, 1.0, 5.0)):
        coin = optimal_coin(known, cut.variation(level), level)
        best = max((one for one in known if one.variation(level) <= cut.variation(level)), key=lambda c: c.rate(level))
        assert [(w, c) for w, c in coin.parts if w > 1e-12] == [(pytest.approx(1.0), best)]


def blocks_of(k, seed, epsilon, f=KL):
    return Blocks(f, reduce_pair(*random_pair(k, seed)).pair, epsilon)


def all_cuts(k):
    for size in range(k):
        for inner in itertools.combinations(range(1, k), size):
            yield [0, *inner, k]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("name", DIVERGENCES)
def test_the_dynamic_program_finds_the_best_partition(name, epsilon):
    """Dinkelbach with the dynamic program finds the best of all 2^(k-1) contiguous partitions."""
    problem = blocks_of(9, 1, epsilon, DIVERGENCES[name])
    rates = [problem.cut(cuts).rate(problem.level) for cuts in all_cuts(9)]
    assert problem.coin(None).parts[0][1].rate(problem.level) == pytest.approx(max(rates), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("penalty", [0.0, 0.01, 0.3])
def test_the_penalized_partition_is_the_best_of_all(penalty):
    """One pass maximises V minus the penalty times the number of blocks."""
    problem = blocks_of(9, 2, 2.0)
    best = max(problem.cut(cuts).total - penalty * (len(cuts) - 1) for cuts in all_cuts(9))
    found = problem.best(penalty)
    assert found.total - penalty * found.blocks == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("eta", [0.02, 0.2, 0.35, 0.5, 0.7])
def test_the_coin_attains_the_envelope_of_all_partitions(eta):
    """The coin between two partitions attains the concave envelope of the points (variation, rate) and the origin."""
    problem = blocks_of(8, 3, 2.0)
    cuts = [problem.cut(c) for c in all_cuts(8)]
    points = [(0.0, 0.0)] + [(c.variation(problem.level), c.rate(problem.level)) for c in cuts if c.blocks > 1]
    best = max(u for t, u in points if t <= eta)
    for (t, u), (s, v) in itertools.product(points, points):
        if t <= eta < s:
            best = max(best, u + (v - u) * (eta - t) / (s - t))
    coin = problem.coin(eta).parts
    assert sum(weight for weight, _ in coin) == pytest.approx(1.0)
    assert sum(weight * c.variation(problem.level) for weight, c in coin) <= eta + 1e-12
    assert sum(weight * c.rate(problem.level) for weight, c in coin) == pytest.approx(best, rel=1e-12)


def test_rate_and_variation_are_those_of_the_channel():
    """V / (1 + t m) and 1 / (1 + t m), t = 1/(E - 1), are utility and total variation of the named mechanism."""
    p0, p1 = random_pair(7, 4)
    made = reduce_pair(p0, p1)
    problem = Blocks(KL, made.pair, 1.5)
    cut = problem.cut([0, 2, 5, 7])
    groups = [[x for x in range(7) if low <= made.classes[x] < high] for low, high in itertools.pairwise(cut.cuts)]
    channel = sort_partition_randomize(p0, p1, 1.5, groups)
    assert cut.rate(problem.level) == pytest.approx(KL(channel.push(p0), channel.push(p1)), rel=1e-11)
    assert cut.variation(problem.level) == pytest.approx(float(total_variation(channel)), rel=1e-12)


@pytest.mark.parametrize("eta", [None, 0.3, 0.75, 0.86])
def test_warm_start_does_not_change_the_optimum(eta, monkeypatch):
    """At 1200 inputs the coarse start and the moved boundaries lead to the optimum that a cold start finds."""
    problem = blocks_of(1200, 5, 3.0)
    warm = problem.coin(eta)
    monkeypatch.setattr("ldpopt.design.two_hypotheses.program.COARSE_INPUTS", 1200)
    cold = blocks_of(1200, 5, 3.0).coin(eta)
    kept = [sum(weight * cut.rate(problem.level) for weight, cut in coin.parts) for coin in (warm, cold)]
    assert kept[0] == pytest.approx(kept[1], rel=1e-13)
    assert warm.price == pytest.approx(cold.price, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("epsilon", [1.0, 30.0])
def test_values_of_blocks_are_exact_one_by_one(epsilon):
    """What a pass of the dynamic program reads for each block [i, j) is its value, also where prefix sums lose it."""
    problem = blocks_of(150, 8, epsilon)
    rows = dict(problem._values())
    assert sorted(rows) == list(range(1, 151))
    for j in (1, 2, 63, 64, 65, 128, 150):
        assert rows[j] == pytest.approx(problem.value(np.arange(j), np.full(j, j)), rel=1e-11)


def test_the_optimum_is_linear_in_eta_up_to_the_unpenalized_partition():
    """OPT is linear in eta up to (E-1)/(E+m*-1), with m* the best number of blocks without penalty."""
    problem = blocks_of(8, 6, 2.0)
    edge = problem.best(0.0).variation(problem.level)
    value = [sum(w * c.rate(problem.level) for w, c in problem.coin(share * edge).parts) for share in (0.25, 0.5, 1.0)]
    assert value[0] * 4 == pytest.approx(value[2], rel=1e-12)
    assert value[1] * 2 == pytest.approx(value[2], rel=1e-12)


def test_merged_runs_cover_the_inputs_in_order():
    """Merging keeps both masses, starts at the first input, and makes at most the number of runs asked for."""
    pair = reduce_pair(*random_pair(1000, 7)).pair
    starts = merge_starts(pair, 50)
    merged = pair.merge(starts)
    assert starts[0] == 0
    assert len(starts) <= 50
    assert merged.p0.sum() == pytest.approx(1.0)
    assert (np.diff(merged.posterior) > 0).all()


def test_the_envelope_agrees_with_the_oracle():
    """The envelope's value equals the oracle before any channel is built."""
    for instance in ORACLE[:10]:
        problem = Blocks(KL, reduce_pair(np.array(instance["p0"]), np.array(instance["p1"])).pair, instance["epsilon"])
        value = sum(weight * cut.rate(problem.level) for weight, cut in problem.coin(instance["eta"]).parts)
        assert value == pytest.approx(instance["optimum"]["kl"], rel=1e-9)
