"""Extreme columns as integer labelings, against the search one by one and against the rank of their equalities."""

import itertools

import networkx as nx
import numpy as np
import pytest

from ldpopt.design.columns import extreme
from ldpopt.design.columns.extreme import Grid, direct_limits, extreme_columns
from ldpopt.design.columns.labelings import TooManyColumns, common_unit, extreme_labelings
from ldpopt.design.constraints.local_dp import shortest_paths


def limits_of(graph):
    """Shortest paths (k, k)."""
    k = len(graph)
    made = np.full((k, k), np.inf)
    np.fill_diagonal(made, 0.0)
    for a, b, weight in graph.edges(data="weight", default=1.0):
        made[a, b] = weight
        if not graph.is_directed():
            made[b, a] = weight
    return shortest_paths(made)


def graphs(count):
    """Connected graphs of up to 6 inputs, some with weights, some directed."""
    rng = np.random.default_rng(4)
    while count:
        directed = bool(rng.random() < 0.3)
        graph = nx.gnp_random_graph(int(rng.integers(2, 7)), rng.uniform(0.4, 1), int(rng.integers(10**6)), directed)
        if rng.random() < 0.5:
            nx.set_edge_attributes(graph, {edge: float(rng.integers(1, 4)) / 2 for edge in graph.edges}, "weight")
        if graph.edges and (nx.is_strongly_connected(graph) if directed else nx.is_connected(graph)):
            count -= 1
            yield graph


@pytest.mark.parametrize("ordered", [False, True])
def test_they_are_those_of_the_search_one_by_one(ordered, monkeypatch):
    """The same columns in the same order, with weights and directions, with orders of the entries and without."""
    for graph in graphs(25):
        limits = 0.7 * limits_of(graph)
        grid = Grid.of(limits)
        found = extreme_labelings(grid.limits, grid.direct, ordered, 10**5)
        assert found is not None
        with monkeypatch.context() as patched:
            patched.setattr(extreme, "extreme_labelings", lambda *_: None)
            one_by_one = extreme.extreme_steps(grid, ordered)
        assert np.array_equal(found, one_by_one)


@pytest.mark.parametrize("ordered", [False, True])
def test_they_are_the_labelings_of_full_rank(ordered):
    """All labelings whose equalities leave one free number: brute force over all labels, by the rank of a matrix."""
    for graph in (nx.cycle_graph(5), nx.complete_bipartite_graph(2, 3), nx.path_graph(4), nx.complete_graph(4)):
        limits = limits_of(graph)
        k, direct = len(limits), direct_limits(limits)
        kept = []
        for labels in itertools.product(range(-int(limits.max()), 1), repeat=k):
            h = np.array(labels, dtype=float)
            apart = h[:, None] - h[None, :]
            if max(labels) < 0 or (apart > limits).any():
                continue
            tight = ((apart == limits) & direct) | (ordered & (apart == 0) & ~np.eye(k, dtype=bool))
            x, y = np.nonzero(tight)
            rows = np.zeros((len(x), k))
            rows[np.arange(len(x)), x], rows[np.arange(len(x)), y] = 1.0, -1.0
            if len(x) and np.linalg.matrix_rank(rows) == k - 1:
                kept.append(h)
        assert np.array_equal(extreme_columns(limits, ordered), np.array(sorted(map(tuple, kept))))


def test_known_counts():
    """Paths have 2^(k-1) extreme columns, with orders 3^(k-1); complete graphs 2^k - 2, with orders one more."""
    for k in (3, 6, 9):
        assert len(extreme_columns(limits_of(nx.path_graph(k)))) == 2 ** (k - 1)
        assert len(extreme_columns(limits_of(nx.path_graph(k)), ordered=True)) == 3 ** (k - 1)
        assert len(extreme_columns(limits_of(nx.complete_graph(k)))) == 2**k - 2
        assert len(extreme_columns(limits_of(nx.complete_graph(k)), ordered=True)) == 2**k - 1
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4))
    assert len(extreme_columns(limits_of(grid))) == 2604


def test_what_has_no_unit():
    """Weights without a common measure, inputs without a path, limits sixty times another: none; too many: an error."""
    path = limits_of(nx.path_graph(4))
    assert common_unit(path * 2**30) == 2**30
    for other in (np.where(path == 3, np.inf, path), path * np.sqrt(2) * 2.0**40, path * 60 - (path == 1) * 59):
        assert common_unit(other) is None
        assert extreme_labelings(other, direct_limits(path), False, 100) is None
    assert common_unit(np.zeros((1, 1))) is None
    with pytest.raises(TooManyColumns, match="at most 7 extreme columns"):
        extreme_labelings(path, direct_limits(path), False, 7)
    with pytest.raises(TooManyColumns):
        extreme_columns(limits_of(nx.path_graph(40)))
