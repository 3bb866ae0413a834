"""The certificate by extreme columns of a policy graph, against channels of other programs and forgeries."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt import Channel, LocalDP, TotalVariation
from ldpopt.design import Divergence, MutualInformation, PolicyDual, PolicyLP, WeightedSum, WorstOf, optimal_channel
from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.numbers.enclosures import arithmetic
from tests.design.kernel.forging import forged

RNG = np.random.default_rng(8)
LAWS = RNG.dirichlet(np.ones(4), 3)
WEIGHTED = nx.Graph()
WEIGHTED.add_edge(0, 1, weight=0.5)
WEIGHTED.add_edge(1, 2, weight=1.0)
WEIGHTED.add_edge(2, 3, weight=2.0)
GRAPHS = {
    "path": nx.path_graph(4), "cycle": nx.cycle_graph(4), "star": nx.star_graph(3), "weighted": WEIGHTED,
    "apart": nx.Graph([(0, 1), (2, 3)]),
}  # fmt: skip
UTILITIES = {
    "information": MutualInformation(LAWS[0]),
    "worst": WorstOf(KL, LAWS[0], LAWS[1:]),
    "sum": WeightedSum([1.0, 2.0], [MutualInformation(LAWS[0]), Divergence(CHI_SQUARED, LAWS[1], LAWS[2])]),
}


def sampled(utility, graph, count=4000):
    """The most that mixtures of random columns within the graph's limits keep: never above the optimum."""
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    k = utility.size
    limits = np.array([[lengths.get(x, {}).get(y, np.inf) for y in range(k)] for x in range(k)])
    rng = np.random.default_rng(0)
    starts = np.where(rng.random((count, k)) < 0.4, rng.uniform(-3, 0, (count, k)), np.inf)
    starts[np.isinf(starts).all(axis=1), 0] = 0.0
    logs = (starts[:, None, :] + limits[None]).min(axis=2)
    columns = np.vstack([np.exp(np.where(np.isinf(logs), -np.inf, logs)), np.ones((1, k))])
    worth = utility.columns(columns.T)
    n = len(columns)
    found = linprog(
        np.append(np.zeros(n), -1.0), np.column_stack([-worth, np.ones(len(worth))]), np.zeros(len(worth)),
        np.column_stack([columns.T, np.zeros(k)]), np.ones(k), [(0, None)] * n + [(None, None)],
    )  # fmt: skip
    return -found.fun


@pytest.mark.full(but=2)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("utility", UTILITIES)
def test_designs_along_graphs_are_certified_and_no_random_columns_do_better(utility, graph):
    """The bound is met to 1e-9 and is above what thousands of random columns, best weighed, keep."""
    one = UTILITIES[utility]
    if graph == "apart" and utility != "information":
        pytest.skip("full disclosure between the parts")
    design = optimal_channel(one, LocalDP(1.0, graph=GRAPHS[graph]))
    assert isinstance(design.certificate, PolicyDual)
    assert design.relative_gap < 1e-9
    assert design.verify()
    other = sampled(one, GRAPHS[graph])
    assert 0.7 * design.value <= other <= design.upper_bound * (1 + 1e-9)


@pytest.mark.parametrize("eta", [0.05, 0.3, 1.0])
def test_designs_of_a_policy_are_certified_at_every_cap(eta):
    """Certified at every cap; the optimum is concave in eta and never above eta times the entropy."""
    utility, graph = UTILITIES["information"], GRAPHS["path"]
    design = optimal_channel(utility, [LocalDP(1.0, graph=graph), TotalVariation(eta)])
    assert design.relative_gap < 1e-9
    assert design.upper_bound <= eta * utility.value_without_privacy * (1 + 1e-12)
    half = optimal_channel(utility, [LocalDP(1.0, graph=graph), TotalVariation(eta / 2)])
    assert half.value >= design.value / 2 * (1 - 1e-9)


def test_a_complete_graph_is_plain_ldp():
    """All edges of weight one: the optimum of LocalDP between all inputs."""
    utility = UTILITIES["information"]
    plain = optimal_channel(utility, LocalDP(1.0))
    graph = optimal_channel(utility, LocalDP(1.0, graph=nx.complete_graph(4)), method=PolicyLP())
    assert graph.value == pytest.approx(plain.value, rel=1e-9)


def test_forged_numbers_prove_nothing_below_the_optimum():
    """Whatever stands in the place of a number: a bound that is proved is one that holds."""
    constraints = (LocalDP(1.0, graph=GRAPHS["path"]), TotalVariation(0.3))
    design = optimal_channel(UTILITIES["worst"], constraints)
    tried = proved = 0
    for other in forged(design.certificate, RNG, keep=("utility", "constraints", "channel", "edges")):
        tried += 1
        assert not other.bound < design.value
        proved += other.bound < np.inf
    assert 0 < proved < tried
    assert design.certificate.bound_in(arithmetic(True)).value == pytest.approx(design.upper_bound, rel=1e-12)


def test_unsupported_policies_prove_no_bound():
    """A problem without LocalDP and a dense graph of many inputs have no proof, and the reason is stated."""
    numbers = (np.ones(12), np.zeros((12, 12)), np.ones(1))
    utility, channel = MutualInformation(np.full(12, 1 / 12)), Channel(np.full((12, 2), 0.5))
    graph = nx.random_regular_graph(4, 12, seed=1)
    nx.set_edge_attributes(graph, {edge: 1 + 0.1 * at**0.5 for at, edge in enumerate(graph.edges)}, "weight")
    dense = LocalDP(1.0, graph=graph)
    for constraint, words in ((TotalVariation(0.1), "LocalDP"), (dense, "too many")):
        made = PolicyDual(utility, (constraint,), channel, *numbers)
        assert made.bound == np.inf
        assert any(words in failure for failure in made.verify().failures)


DENSE = {
    "regular": nx.random_regular_graph(4, 12, seed=1),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4)),
    "bipartite": nx.complete_bipartite_graph(5, 6),
    "path": nx.path_graph(9),
}


@pytest.mark.parametrize("graph", ["regular", "grid", "bipartite"])
def test_dense_graphs_are_certified(graph):
    """Thousands of extreme columns, listed at once: the bound is met, and random columns keep no more."""
    k = len(DENSE[graph])
    utility = MutualInformation(np.random.default_rng(k).dirichlet(np.ones(k)))
    design = optimal_channel(utility, LocalDP(1.0, graph=DENSE[graph]))
    assert isinstance(design.certificate, PolicyDual)
    assert design.relative_gap < 1e-9
    assert sampled(utility, DENSE[graph], 2000) <= design.upper_bound * (1 + 1e-9)


def test_a_long_path_under_a_cap_on_total_variation_is_certified():
    """All 3^8 labelings of a path of 9 are columns then; they join the program as they pay."""
    constraints = [LocalDP(1.0, graph=DENSE["path"]), TotalVariation(0.2)]
    utility = MutualInformation(np.random.default_rng(9).dirichlet(np.ones(9)))
    design = optimal_channel(utility, constraints)
    assert "6561 extreme columns" in design.method
    assert design.relative_gap < 1e-9
    assert design.value <= optimal_channel(utility, constraints[0]).value
    assert design.value <= 0.2 * utility.value_without_privacy


def test_both_arithmetics_refuse_the_same():
    """What floats settle is not looked at again in balls: a column that pays less than nothing is never settled."""
    constraints = (LocalDP(1.0, graph=GRAPHS["path"]),)
    design = optimal_channel(UTILITIES["information"], constraints)
    made = design.certificate
    for rows in (made.rows * 0.9, made.rows * 1.1, made.rows - 0.5, -made.rows, made.rows[::-1], 0 * made.rows):
        other = replace(made, rows=rows)
        floats, balls = (other.bound_in(arithmetic(exact)).value for exact in (False, True))
        assert balls == pytest.approx(floats, rel=1e-9)
        assert not balls < design.value


@pytest.mark.parametrize("weights", [(1.0, 3.0), (3.0, 1.0), (1.0, 1.0)])
@pytest.mark.parametrize("directed", [False, True])
def test_of_parallel_edges_the_least_weight_is_the_limit(weights, directed):
    """In whatever order they are given, parallel edges ask for what the tightest of them asks for, with its proof."""
    many = nx.MultiDiGraph() if directed else nx.MultiGraph()
    many.add_nodes_from(range(3))
    ends = [(0, 1), (1, 0), (1, 2), (2, 1)] if directed else [(0, 1), (1, 2)]
    for a, b in ends:
        for weight in weights if {a, b} == {0, 1} else (1.0,):
            many.add_edge(a, b, weight=weight)
    utility = Divergence(KL, [0.7, 0.2, 0.1], [0.1, 0.3, 0.6])
    simple, found = (optimal_channel(utility, LocalDP(1.0, graph=one)) for one in (nx.path_graph(3), many))
    assert found.certified
    assert found.value == pytest.approx(simple.value, rel=1e-9)
    assert found.guarantees[0].value <= 1.0
