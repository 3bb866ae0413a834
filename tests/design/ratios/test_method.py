"""Exchange over ratio intervals, against the other exact routes, brute force and local searches."""

import json
import math
from itertools import combinations, pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt.design import (
    ApproximateLDP,
    Contraction,
    Divergence,
    Dominated,
    Exchange,
    LevelLP,
    LocalDP,
    MergedExchange,
    MutualInformation,
    Partition,
    PatternLP,
    RenyiLDP,
    TotalVariation,
    optimal_channel,
)
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.ratios.method import run_starts
from ldpopt.divergences import CHI_SQUARED, KL, NAMED, SQUARED_HELLINGER, hockey_stick
from ldpopt.errors import InvalidInput

ORACLES = json.loads((Path(__file__).parents[2] / "data" / "optimal_channels.json").read_text())["instances"]


def divergence(name):
    return hockey_stick(1.5) if name == "hockey_stick_1_5" else NAMED[name.replace("_", "-")]


def pair(k, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("instance", ORACLES[::15], ids=range(0, len(ORACLES), 15))
def test_exchange_and_patterns_agree_with_brute_force(instance):
    """Exchange and the pattern program agree with brute force to 1e-7, with and without a TV cap."""
    for name in ("kl", "total_variation", "hockey_stick_1_5", "squared_hellinger"):
        utility = Divergence(divergence(name), instance["p0"], instance["p1"])
        epsilon = instance["epsilon"]
        for key, caps in (
            ("optimum", [LocalDP(epsilon), TotalVariation(instance["eta"])]),
            ("optimum_without_eta", [LocalDP(epsilon)]),
        ):
            found = optimal_channel(utility, caps, method=Exchange())
            exact = max(instance[key][name], 0.0)
            assert found.value == pytest.approx(exact, rel=1e-7, abs=1e-12)
            assert found.upper_bound == pytest.approx(exact, rel=1e-7, abs=1e-12)
            assert found.certificate.verify()
            assert optimal_channel(utility, caps, method=PatternLP()).value == pytest.approx(exact, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("k", [30, 60])
def test_exchange_meets_the_partition(k):
    """Without a TV cap, exchange and sort-partition-randomize find the same optimum."""
    utility = Divergence(KL, *pair(k, k))
    found = optimal_channel(utility, LocalDP(1.5), method=Exchange())
    assert found.value == pytest.approx(optimal_channel(utility, LocalDP(1.5)).value, rel=1e-7)
    assert found.certified


def test_exchange_meets_the_partition_under_a_cap():
    """With a TV cap too, for 20 inputs, and its own multipliers prove it."""
    utility = Divergence(SQUARED_HELLINGER, *np.random.default_rng(0).dirichlet(np.ones(20), 2))
    caps = [LocalDP(1.5), TotalVariation(0.3)]
    found = optimal_channel(utility, caps, method=Exchange())
    other = optimal_channel(utility, caps, method=Partition(), certify=False)
    assert found.value == pytest.approx(other.value, rel=1e-9)
    assert found.upper_bound == pytest.approx(found.value, rel=1e-7)
    assert found.certificate.verify()


def test_approximate_ldp_at_the_ends():
    """delta = 0 is pure LDP, epsilon = 0 is total variation, and the optimum is continuous at delta = 0."""
    utility = Divergence(CHI_SQUARED, *pair(5, 3))
    pure = optimal_channel(utility, LocalDP(1.0)).value
    assert optimal_channel(utility, ApproximateLDP(1.0, 0.0), method=Exchange()).value == pytest.approx(pure, rel=1e-7)
    assert optimal_channel(utility, ApproximateLDP(1.0, 1e-9)).value == pytest.approx(pure, rel=1e-6)
    capped = optimal_channel(utility, TotalVariation(0.3)).value
    assert optimal_channel(utility, ApproximateLDP(0.0, 0.3)).value == pytest.approx(capped, rel=1e-7)


@pytest.mark.full
def test_renyi_at_the_ends():
    """Order inf is pure LDP, and optima fall as the order grows."""
    utility = Divergence(KL, *pair(3, 5))
    values = [optimal_channel(utility, RenyiLDP(order, 0.5)).value for order in (1, 2, math.inf)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(optimal_channel(utility, LocalDP(0.5)).value, rel=1e-7)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("k", "constraint"), [(5, ApproximateLDP(0.8, 0.05)), (3, RenyiLDP(2.0, 0.4))], ids=str)
def test_no_local_search_does_better(k, constraint):
    """The certified optimum is at least the best of 20 random channels mixed until they are private."""
    rng = np.random.default_rng(k)
    utility = Divergence(KL, *pair(k, 10 + k))
    design = optimal_channel(utility, constraint)
    assert design.relative_gap <= 1e-5
    assert design.certificate.verify()
    from ldpopt.channel import Channel

    for _ in range(20):
        raw = rng.dirichlet(np.full(3, 0.3), k)
        mean = raw.mean(axis=0)
        low, high = 0.0, 1.0
        for _ in range(25):
            middle = (low + high) / 2
            kept = constraint.measure(Channel(middle * raw + (1 - middle) * mean)).value <= constraint.bound
            low, high = (middle, high) if kept else (low, middle)
        assert utility.value(low * raw + (1 - low) * mean) <= design.upper_bound


def brute_force(f, p0, p1, left, right, ratio):
    """max sum theta mu over the extreme rays of {q >= 0 : q[left] <= ratio q[right]}, by enumeration."""
    import cvxpy as cp

    k = len(p0)
    rows = [np.eye(k)[i] for i in range(k)]
    for a, b in zip(left, right, strict=True):
        row = np.zeros(k)
        row[a], row[b] = -1.0, ratio
        rows.append(row)
    rows = np.array(rows)
    rays = set()
    for tight in combinations(range(len(rows)), k - 1):
        _, s, v = np.linalg.svd(rows[list(tight)])
        if s[-1] < 1e-9:
            continue
        for ray in (v[-1], -v[-1]):
            if (rows @ ray >= -1e-9).all():
                rays.add(tuple(np.round(np.maximum(ray, 0) / np.abs(ray).max(), 10)))
    columns = np.array(sorted(rays)).T
    theta = cp.Variable(columns.shape[1], nonneg=True)
    utility = np.nan_to_num(f.excess(p0 @ columns, p1 @ columns))
    problem = cp.Problem(cp.Maximize(utility @ theta), [columns @ theta == 1])
    problem.solve(solver="HIGHS")
    return problem.value


@pytest.mark.parametrize("k", [3, 4, 5])
def test_the_optimum_of_a_path_graph_agrees_with_vertex_enumeration(k):
    """Under a path policy the optimum is the linear program over the extreme rays of the cone of columns."""
    p0, p1 = pair(k, 40 + k)
    graph = nx.path_graph(k)
    design = optimal_channel(Divergence(SQUARED_HELLINGER, p0, p1), LocalDP(0.7, graph))
    left = [*range(k - 1), *range(1, k)]
    right = [*range(1, k), *range(k - 1)]
    assert design.value == pytest.approx(brute_force(SQUARED_HELLINGER, p0, p1, left, right, math.exp(0.7)), rel=1e-7)
    assert design.certified
    assert design.certificate.verify()


def test_complete_graph_is_plain_ldp():
    """A policy in which every two inputs are adjacent is local differential privacy."""
    utility = Divergence(KL, *pair(5, 8))
    graph = optimal_channel(utility, LocalDP(1.2, nx.complete_graph(5)))
    assert graph.value == pytest.approx(optimal_channel(utility, LocalDP(1.2)).value, rel=1e-7)


def test_metric_privacy_follows_the_shortest_path():
    """An edge that a path implies changes nothing, and weights scale epsilon."""
    utility = Divergence(KL, *pair(3, 9))
    path = nx.Graph()
    path.add_weighted_edges_from([(0, 1, 1.0), (1, 2, 0.5)])
    shortcut = path.copy()
    shortcut.add_edge(0, 2, weight=1.5)
    a, b = (optimal_channel(utility, LocalDP(0.6, graph)) for graph in (path, shortcut))
    assert a.value == pytest.approx(b.value, rel=1e-9)
    q = a.channel.matrix
    assert np.log(q[1] / q[2]).max() <= 0.3 * (1 + 1e-9)


def test_graphs_name_inputs_by_their_labels():
    """Graphs name inputs by their labels; a node that is no input is refused."""
    utility = Divergence(KL, *pair(3, 2), inputs=["a", "b", "c"])
    design = optimal_channel(utility, LocalDP(1.0, nx.path_graph(["a", "b", "c"])))
    assert design.guarantees[0].value <= 1.0
    with pytest.raises(InvalidInput, match="policy graph"):
        optimal_channel(utility, LocalDP(1.0, nx.path_graph(3)))


def test_infinite_utilities_are_refused():
    """A divergence that a leak of probability delta makes infinite cannot be designed for."""
    utility = Divergence(KL, [0.5, 0.5, 0.0], [0.0, 0.5, 0.5])
    with pytest.raises(InvalidInput, match="infinite"):
        optimal_channel(utility, ApproximateLDP(1.0, 0.1))


@pytest.mark.parametrize("bad", [dict(rounds=0), dict(accuracy=0.0), dict(rounds=1.5)])
def test_exchange_takes_sensible_settings(bad):
    """Rounds are a positive integer, accuracy is positive."""
    with pytest.raises(InvalidInput):
        Exchange(**bad)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("f", [KL, CHI_SQUARED, SQUARED_HELLINGER])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.1, 1e-6), (8.0, 0.2)])
def test_merged_answers_lose_little_and_the_bound_holds(f, epsilon, delta):
    """On six answers in five runs: within the caps, below the exact optimum, and the bound is not below it."""
    utility, caps = Divergence(f, *pair(6, 2)), ApproximateLDP(epsilon, delta)
    exact = optimal_channel(utility, caps, method=LevelLP())
    merged = optimal_channel(utility, caps, method=MergedExchange(5, points=5))
    assert isinstance(merged.certificate, Dominated if epsilon < 8 else Contraction)  # which is tighter
    assert merged.verify()
    assert merged.certificate.verify(exact=True)
    assert 0.9 * exact.value <= merged.value <= exact.value * (1 + 1e-7)
    assert exact.value * (1 - 1e-9) <= merged.upper_bound <= 1.5 * exact.value
    assert float(merged.guarantees[0]) <= delta


@pytest.mark.full
def test_many_answers_are_merged_by_default():
    """300 answers are too many to exchange at every ratio; one channel and a bound above it come back in seconds."""
    design = optimal_channel(Divergence(KL, *pair(300, 1)), ApproximateLDP(1.0, 0.05))
    assert design.method == "exchange on 20 merged inputs"
    assert design.verify()
    assert design.value < design.upper_bound < 1.1 * design.value
    assert not design.certified
    assert "merged" in design.note


@pytest.mark.full(but=1)
@pytest.mark.parametrize("epsilon", [1e-9, 40.0, 700.0])
def test_merged_answers_at_the_ends_of_epsilon(epsilon):
    """No epsilon is too large or too small to pose, and what is returned is within it."""
    design = optimal_channel(Divergence(KL, *pair(80, 0)), ApproximateLDP(epsilon, 0.01))
    assert design.method == "exchange on 20 merged inputs"
    assert design.verify()
    assert 0 < design.value <= design.upper_bound


def test_few_answers_are_not_merged():
    """With a run for each answer it is the exchange itself, with its proof."""
    utility, caps = Divergence(KL, *pair(4, 3)), ApproximateLDP(1.0, 0.05)
    merged, plain = (optimal_channel(utility, caps, method=method) for method in (MergedExchange(4), Exchange()))
    assert (merged.value, merged.upper_bound) == (plain.value, plain.upper_bound)
    assert merged.certified


def test_runs_are_the_cuts_that_keep_the_most():
    """Two runs are cut where the divergence of the merged pair is largest; more runs refine them, and keep more."""
    p0, p1 = pair(12, 5)
    order = np.argsort(p0 / p1)
    laws = Pair.from_distributions(p0[order], p1[order])

    def kept(starts):
        merged = laws.merge(starts)
        return KL(merged.p0, merged.p1)

    two = run_starts(KL, laws, 2)
    assert kept(two) == pytest.approx(max(kept(np.array([0, cut])) for cut in range(1, 12)), rel=1e-12)
    finer = [run_starts(KL, laws, count) for count in range(2, 13)]
    assert [len(starts) for starts in finer] == list(range(2, 13))
    assert all(set(few) <= set(more) for few, more in pairwise(finer))
    assert kept(finer[-1]) == pytest.approx(KL(p0, p1), rel=1e-12)
    assert run_starts(KL, laws, 100).tolist() == list(range(12))


def test_merging_refuses_in_sentences():
    """What it does not take it refuses in words."""
    for utility, caps, words in (
        (MutualInformation([0.5, 0.5]), ApproximateLDP(1.0, 0.1), "likelihood ratio of two hypotheses"),
        (Divergence(KL, *pair(3, 1)), LocalDP(1.0), "ApproximateLDP alone"),
        (Divergence(KL, [0.5, 0.3, 0.2], [0.5, 0.5, 0.0]), ApproximateLDP(1.0, 0.1), "is infinite"),
    ):
        with pytest.raises(InvalidInput, match=words):
            optimal_channel(utility, caps, method=MergedExchange())


HOCKEY = [
    (1.2, [0.21, 0.79], [0.54, 0.46], [(0.2, 0.004), (0.3, 0.0)]),
    (1.7, [0.21, 0.79], [0.54, 0.46], [(0.05, 1e-6), (0.1, 0.0)]),
    (1.0, [0.21, 0.79], [0.54, 0.46], [(0.2, 0.004), (0.3, 0.0)]),
    (2.5, [0.1, 0.9], [0.6, 0.4], [(1.0, 0.05), (2.0, 0.0)]),
    (1.2, [0.1, 0.3, 0.6], [0.3, 0.4, 0.3], [(0.05, 0.004), (0.1, 0.0)]),
    (2.5, [0.1, 0.3, 0.6], [0.3, 0.4, 0.3], [(0.5, 0.05)]),
]


@pytest.mark.parametrize(("factor", "p0", "p1", "limits"), HOCKEY)
def test_hockey_sticks_that_may_keep_nothing_are_solved(factor, p0, p1, limits):
    """The optimum of (t - factor)_+ is that of a linear program with two reports, also where it is zero."""
    k = len(p0)
    pairs = [(x, z) for x in range(k) for z in range(k) if x != z]
    size = 2 * k + 2 * len(pairs) * len(limits)  # the entries, and an excess for each report, pair and limit
    above, most, free = [], [], 2 * k
    for epsilon, delta in limits:
        for x, z in pairs:
            total = np.zeros(size)
            for y in range(2):
                row = np.zeros(size)
                row[[2 * x + y, 2 * z + y, free]] = 1.0, -math.exp(epsilon), -1.0
                total[free] = 1.0
                above, most, free = [*above, row], [*most, 0.0], free + 1
            above, most = [*above, total], [*most, delta]
    gains, rows = np.zeros(size), np.zeros((k, size))
    gains[0 : 2 * k : 2] = np.array(p0) - factor * np.array(p1)
    for x in range(k):
        rows[x, 2 * x : 2 * x + 2] = 1.0
    optimum = max(0.0, -linprog(-gains, above, most, rows, np.ones(k)).fun)
    constraints = [ApproximateLDP(*limit) if limit[1] else LocalDP(limit[0]) for limit in limits]
    design = optimal_channel(Divergence(hockey_stick(factor), p0, p1), constraints)
    assert design.certified
    assert design.verify()
    assert design.value == pytest.approx(optimum, rel=2e-6, abs=1e-13)
    assert design.upper_bound >= optimum - 1e-13
