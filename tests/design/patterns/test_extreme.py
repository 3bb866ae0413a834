"""Tests of `ldpopt.design.patterns.policy`: the columns listed are the rays of the cone, against brute force."""

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from ldpopt.design.constraints.local_dp import direct_limits, shortest_paths
from ldpopt.design.estimation.staircase import StaircaseColumns
from ldpopt.design.patterns import policy as extreme
from ldpopt.design.patterns.policy import (
    UNIT_ENLARGEMENT,
    Grid,
    TooManyColumns,
    common_unit,
    equality_slack,
    extreme_labelings,
    extreme_steps,
)
from ldpopt.errors import InvalidInput


def extreme_columns(limits, ordered=False):
    """Logarithms (n, k) of the extreme columns, in nats."""
    grid = Grid.round_up(limits)
    return extreme_steps(grid, ordered) * grid.unit


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
def test_extreme_columns_are_those_of_the_plain_search(ordered, monkeypatch):
    """The same columns in the same order, with weights and directions, with orders of the entries and without."""
    for graph in graphs(25):
        limits = 0.7 * limits_of(graph)
        grid = Grid.round_up(limits)
        found = extreme_labelings(grid.limits, grid.direct, ordered, 10**5)
        assert found is not None
        with monkeypatch.context() as patched:
            patched.setattr(extreme, "extreme_labelings", lambda *_: None)
            one_by_one = extreme.extreme_steps(grid, ordered)
        assert np.array_equal(found, one_by_one)


@pytest.mark.parametrize("ordered", [False, True])
def test_extreme_columns_are_the_labelings_of_full_rank(ordered):
    """All labelings whose equalities leave one free number: brute force over all labels, by the rank of a matrix."""
    for graph in (nx.cycle_graph(5), nx.complete_bipartite_graph(2, 3), nx.path_graph(4), nx.complete_graph(4)):
        limits = limits_of(graph)
        k, direct = len(limits), direct_limits(limits, equality_slack(limits))
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


def test_policies_without_a_unit_have_no_list_of_columns(monkeypatch):
    """Weights without a common measure, inputs without a path, limits sixty times another: none; too many: an error."""
    path = limits_of(nx.path_graph(4))
    assert common_unit(path * 2**30) == 2**30
    for other in (np.where(path == 3, np.inf, path), path * np.sqrt(2) * 2.0**40, path * 60 - (path == 1) * 59):
        assert common_unit(other) is None
        assert extreme_labelings(other, direct_limits(path, equality_slack(path)), False, 100) is None
    assert common_unit(np.zeros((1, 1))) is None
    with pytest.raises(TooManyColumns, match="at most 7 extreme columns"):
        extreme_labelings(path, direct_limits(path, equality_slack(path)), False, 7)
    monkeypatch.setattr(extreme, "MAX_PARTIAL_LABELINGS", 300)
    with pytest.raises(TooManyColumns, match="at most 300 extreme columns"):
        extreme_columns(limits_of(nx.path_graph(40)))


NONE = math.inf
PATH4 = [[0, 1, NONE, NONE], [1, 0, 1, NONE], [NONE, 1, 0, 1], [NONE, NONE, 1, 0]]
WEIGHTED_CYCLE = [[0, 1, NONE, 0.4], [1, 0, 0.7, NONE], [NONE, 0.7, 0, 1.5], [0.4, NONE, 1.5, 0]]
ONE_WAY = [[0, 1, NONE], [NONE, 0, 1], [NONE, NONE, 0]]
TIES = [[0, 0.1, 0.1 + 0.2, NONE], [0.1, 0, 0.2, NONE], [0.3, 0.2, 0, 0.7], [NONE, NONE, 0.7, 0]]
THIRDS = [[0, 1 / 3, NONE, 1], [1 / 3, 0, 1 / 3, NONE], [NONE, 1 / 3, 0, 1 / 3], [1, NONE, 1 / 3, 0]]
TWO_PARTS = [[0, 1, NONE, NONE], [1, 0, NONE, NONE], [NONE, NONE, 0, 2], [NONE, NONE, 1, 0]]


def brute_rays(limits, ordered):
    """Rays of the cone (in every order of the entries): feasible null vectors of k - 1 of its equalities."""
    k = len(limits)
    edges = [(x, y) for x in range(k) for y in range(k) if x != y and math.isfinite(limits[x][y])]
    faces = []
    for x, y in edges:
        face = np.zeros(k)
        face[x], face[y] = 1, -math.exp(limits[x][y])
        faces.append(face)
    limit = np.array(faces)
    faces += list(np.eye(k))
    if ordered:
        faces += [np.eye(k)[x] - np.eye(k)[y] for x, y in itertools.combinations(range(k), 2)]
    rays = set()
    for chosen in itertools.combinations(faces, k - 1):
        _, sizes, basis = np.linalg.svd(np.array(chosen).reshape(k - 1, k))
        if sizes.min() < 1e-9:
            continue
        ray = basis[-1] * np.sign(basis[-1][np.abs(basis[-1]).argmax()])
        if ray.min() > -1e-9 and (limit @ ray).max(initial=-1) < 1e-9:
            rays.add(tuple((np.maximum(ray, 0) / ray.max()).round(7) + 0.0))
    return rays


@pytest.mark.parametrize(
    "limits",
    [PATH4, WEIGHTED_CYCLE, ONE_WAY, TWO_PARTS, TIES, THIRDS],
    ids=["path", "cycle", "one way", "two", "ties", "thirds"],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_extreme_columns_are_the_rays_of_the_cone(limits, ordered):
    """The listed columns are the extreme rays that brute force over all sets of equalities finds, each once."""
    found = np.exp(extreme_columns(np.array(limits, dtype=float), ordered))
    assert len({tuple(row.round(7) + 0.0) for row in found}) == len(found)
    assert {tuple(row.round(7) + 0.0) for row in found} == brute_rays(limits, ordered)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_extreme_columns_between_all_inputs_are_the_staircase_patterns(k):
    """At one limit for every two inputs the extreme columns are the staircase patterns, and the constant."""
    patterns = StaircaseColumns(k, 1.3).start()
    patterns = {tuple(row - row.max()) for row in patterns}
    found = {tuple(row) for row in extreme_columns(np.full((k, k), 1.3), ordered=True)}
    assert found == patterns
    assert {tuple(row) for row in extreme_columns(np.full((k, k), 1.3))} == patterns - {(0.0,) * k}


def test_a_path_has_a_column_for_every_choice_of_signs():
    """On a path every step is up or down: 2^(k-1) extreme columns, and with orders or level, 3^(k-1)."""
    k = 9
    limits = np.full((k, k), NONE)
    limits[np.arange(k - 1), np.arange(1, k)] = limits[np.arange(1, k), np.arange(k - 1)] = 0.5
    found = extreme_columns(limits)
    assert len(found) == 2 ** (k - 1)
    assert np.abs(np.diff(found, axis=1)) == pytest.approx(0.5)
    assert len(extreme_columns(limits[:6, :6], ordered=True)) == 3**5


@pytest.mark.parametrize("limits", [PATH4, WEIGHTED_CYCLE, TIES, THIRDS], ids=["path", "cycle", "ties", "thirds"])
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 2.0**-0.5, 7.7])
def test_the_cone_of_the_list_contains_the_true_one(limits, epsilon):
    """In fractions, the limits of the grid, in outward units, are nowhere below the true ones, and hardly above."""
    weights = [[None if math.isinf(w) else Fraction(float(w)) * Fraction(epsilon) for w in row] for row in limits]
    grid = Grid.round_up(np.array(limits, dtype=float) * epsilon)
    unit = Fraction(grid.unit) * (1 + Fraction(UNIT_ENLARGEMENT))
    k = len(weights)
    for y, x, z in itertools.product(range(k), repeat=3):
        if weights[x][y] is not None and weights[y][z] is not None:
            through = weights[x][y] + weights[y][z]
            weights[x][z] = through if weights[x][z] is None else min(weights[x][z], through)
    for x, z in itertools.permutations(range(k), 2):
        limit = Fraction(int(grid.limits[x, z])) * unit
        assert weights[x][z] <= limit <= weights[x][z] * (1 + Fraction(2) ** -30)


def test_limits_follow_paths():
    """What two steps allow, the limit of their ends allows at most."""
    assert shortest_paths(np.array(WEIGHTED_CYCLE))[1, 3] == pytest.approx(1.4)
    assert shortest_paths(np.array(ONE_WAY))[2, 0] == NONE


def test_too_many_columns_are_refused(monkeypatch):
    """A graph with more extreme columns than can be listed is bad input, not endless work."""
    k = 10
    limits = np.full((k, k), NONE)
    uneven = 1 + np.sqrt(np.arange(k - 1.0))  # no multiples of one unit
    limits[np.arange(k - 1), np.arange(1, k)] = limits[np.arange(1, k), np.arange(k - 1)] = uneven
    alone = np.where(np.eye(k, dtype=bool), 0.0, NONE)
    monkeypatch.setattr("ldpopt.design.patterns.policy.MAX_SEARCH_STEPS", 300)
    with pytest.raises(InvalidInput, match="extreme columns, got more"):
        extreme_columns(limits)
    monkeypatch.undo()
    monkeypatch.setattr("ldpopt.design.patterns.policy.MAX_COLUMNS", 300)
    for wide in (limits, alone):
        with pytest.raises(InvalidInput, match="at most 300 extreme columns"):
            extreme_columns(wide)
