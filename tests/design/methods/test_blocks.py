"""Tests of `ldpopt.design.methods.blocks`."""

import itertools

import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, random_pair

from ldpopt.design.methods.blocks import Blocks, merge_starts
from ldpopt.design.problems.reduction import reduce
from ldpopt.divergences import KL
from ldpopt.mechanisms import sort_partition_randomize
from ldpopt.privacy import total_variation


def blocks_of(k, seed, epsilon, f=KL):
    return Blocks(f, reduce(*random_pair(k, seed)).pair, epsilon)


def all_cuts(k):
    for size in range(k):
        for inner in itertools.combinations(range(1, k), size):
            yield [0, *inner, k]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("name", DIVERGENCES)
def test_dynamic_program_against_every_partition(name, epsilon):
    """Dinkelbach with the dynamic program finds the best of all 2^(k-1) contiguous partitions."""
    problem = blocks_of(9, 1, epsilon, DIVERGENCES[name])
    rates = [problem.rate(problem.cut(cuts)) for cuts in all_cuts(9)]
    assert problem.rate(problem.optimum()) == pytest.approx(max(rates), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("penalty", [0.0, 0.01, 0.3])
def test_penalised_partition_against_every_partition(penalty):
    """One pass maximises V minus the penalty times the number of blocks."""
    problem = blocks_of(9, 2, 2.0)
    best = max(problem.cut(cuts).total - penalty * (len(cuts) - 1) for cuts in all_cuts(9))
    found = problem.best(penalty)
    assert found.total - penalty * found.blocks == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("eta", [0.02, 0.2, 0.35, 0.5, 0.7])
def test_envelope_against_all_pairs_of_partitions(eta):
    """The coin between two partitions attains the concave envelope of the points (variation, rate) and the origin."""
    problem = blocks_of(8, 3, 2.0)
    cuts = [problem.cut(c) for c in all_cuts(8)]
    points = [(0.0, 0.0)] + [(problem.variation(c), problem.rate(c)) for c in cuts if c.blocks > 1]
    best = max(u for t, u in points if t <= eta)
    for (t, u), (s, v) in itertools.product(points, points):
        if t <= eta < s:
            best = max(best, u + (v - u) * (eta - t) / (s - t))
    coin = problem.envelope(eta)
    assert sum(weight for weight, _ in coin) == pytest.approx(1.0)
    assert sum(weight * problem.variation(c) for weight, c in coin) <= eta + 1e-12
    assert sum(weight * problem.rate(c) for weight, c in coin) == pytest.approx(best, rel=1e-12)


def test_rate_and_variation_are_those_of_the_channel():
    """V / (1 + t m) and 1 / (1 + t m), t = 1/(E - 1), are utility and total variation of the named mechanism."""
    p0, p1 = random_pair(7, 4)
    made = reduce(p0, p1)
    problem = Blocks(KL, made.pair, 1.5)
    cut = problem.cut([0, 2, 5, 7])
    groups = [[x for x in range(7) if low <= made.classes[x] < high] for low, high in itertools.pairwise(cut.cuts)]
    channel = sort_partition_randomize(p0, p1, 1.5, groups)
    assert problem.rate(cut) == pytest.approx(KL(channel.push(p0), channel.push(p1)), rel=1e-11)
    assert problem.variation(cut) == pytest.approx(float(total_variation(channel)), rel=1e-12)


def test_warm_start_does_not_change_the_optimum():
    """At 1200 inputs the coarse start and the moved boundaries lead to the optimum that a cold start finds."""
    problem = blocks_of(1200, 5, 3.0)
    cold = problem.cut([0, 1200])
    while problem.rate(better := problem.best(max(problem.rate(cold), 0.0) * problem.level)) > problem.rate(cold) * (
        1 + 1e-14
    ):
        cold = better
    assert problem.rate(problem.optimum()) == pytest.approx(problem.rate(cold), rel=1e-13)


def test_linear_in_eta_up_to_the_unpenalised_partition():
    """OPT is linear in eta up to (E-1)/(E+m*-1), with m* the best number of blocks without penalty."""
    problem = blocks_of(8, 6, 2.0)
    edge = problem.variation(problem.best(0.0))
    value = [sum(w * problem.rate(c) for w, c in problem.envelope(share * edge)) for share in (0.25, 0.5, 1.0)]
    assert value[0] * 4 == pytest.approx(value[2], rel=1e-12)
    assert value[1] * 2 == pytest.approx(value[2], rel=1e-12)


def test_merged_runs_cover_the_inputs_in_order():
    """Merging keeps both masses, starts at the first input, and makes at most the number of runs asked for."""
    pair = reduce(*random_pair(1000, 7)).pair
    starts = merge_starts(pair, 50)
    merged = pair.merge(starts)
    assert starts[0] == 0
    assert len(starts) <= 50
    assert merged.p0.sum() == pytest.approx(1.0)
    assert (np.diff(merged.posterior) > 0).all()


def test_oracle_by_the_formulas_alone():
    """The envelope's value equals the oracle before any channel is built."""
    for instance in ORACLE[:10]:
        problem = Blocks(KL, reduce(np.array(instance["p0"]), np.array(instance["p1"])).pair, instance["epsilon"])
        value = sum(weight * problem.rate(cut) for weight, cut in problem.envelope(instance["eta"]))
        assert value == pytest.approx(instance["optimum"]["kl"], rel=1e-9)
