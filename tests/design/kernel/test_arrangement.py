"""Tests of `ldpopt.design.kernel.listed`: each list of columns holds exactly the rays that it says it holds."""

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from truth.rays import compared, faces, rays, scaled, unit, vertices

from ldpopt import LocalDP, MutualInformation, TotalVariation
from ldpopt.design import Outputs
from ldpopt.design.estimation.policy import PolicyColumns
from ldpopt.design.estimation.staircase import StaircaseColumns, staircase_arrangement
from ldpopt.design.kernel.listed import Arrangement
from ldpopt.design.kernel.sets import members
from ldpopt.design.outputs.proof import Chambers
from ldpopt.design.patterns.policy import TooManyColumns, policy_limits
from ldpopt.design.patterns.proof_levels import integer_arrangement, integer_columns, level_arrangement, level_columns
from ldpopt.numbers.enclosures import FLOAT
from ldpopt_check import proofs

RATIOS = (Fraction(2), Fraction(3, 2), Fraction(7))


class Unlimited:
    """In the place of the second checker's design: it spends without end."""

    @staticmethod
    def spend(work):
        """Nothing is refused."""


def of_levels(k, e, flat):
    """The columns of `level_columns` in rationals."""
    return [tuple(e ** int(x) if x >= 0 else Fraction(0) for x in row) for row in level_columns(k, flat)]


def are_same_rays(listed, expected):
    """Whether a list of columns is a set of rays, each once."""
    found = [scaled(column) for column in listed]
    return len(found) == len(set(found)) and set(found) == expected


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("e", RATIOS, ids=str)
def test_listed_patterns_are_complete(k, e):
    """The staircase patterns of `PatternDual`, of estimation and of the second checker are all rays, each once."""
    expected = rays(k, *faces(staircase_arrangement(k), e))
    sets = members(np.arange(max(2**k - 1, 1), dtype=np.int64), k)
    low = 1 / (e - 1)
    assert are_same_rays([tuple(low + int(x) for x in row) for row in sets], expected)
    assert are_same_rays([tuple(t + x for x in rise) for t, rise in proofs.staircases(k, e)], expected)
    listed = StaircaseColumns(k, 1.0)
    assert listed.arrangement == staircase_arrangement(k)
    if k > 1:
        assert are_same_rays([tuple(e ** int(x) for x in row) for row in listed.start()], expected)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("e", RATIOS, ids=str)
def test_listed_levels_are_complete(k, e, flat):
    """Columns of levels, without a cap on total variation and with one, of both programs."""
    expected = rays(k, *faces(level_arrangement(k, flat), e))
    assert are_same_rays(of_levels(k, e, flat), expected)
    assert are_same_rays(proofs.levels(k, e, flat), expected)
    assert ((Fraction(1),) * k in expected) == (flat or k == 1)


def test_a_list_that_lacks_a_ray_or_has_another_is_noticed():
    """The comparison fails for each column that is left out, and for one too many."""
    expected = rays(3, *faces(level_arrangement(3, True), Fraction(2)))
    listed = of_levels(3, Fraction(2), True)
    assert not any(are_same_rays(listed[:at] + listed[at + 1 :], expected) for at in range(len(listed)))
    assert not are_same_rays([*listed, (Fraction(1), Fraction(4), Fraction(8))], expected)
    assert not are_same_rays([*listed, listed[0]], expected)


def graphs(count, seed):
    """Graphs of 2 to 4 inputs: with directions and weights, and disconnected ones."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        k, directed = int(rng.choice([2, 3, 4], p=[0.2, 0.4, 0.4])), bool(rng.random() < 0.5)
        graph = nx.DiGraph() if directed else nx.Graph()
        graph.add_nodes_from(range(k))
        weights = [1, rng.choice([2, 3, 5])]  # multiples of the least one, which the grid keeps as they are
        for x, y in itertools.permutations(range(k), 2):
            if (directed or x < y) and rng.random() < rng.choice([0.3, 0.6, 0.9]):
                graph.add_edge(x, y, weight=float(rng.choice(weights)))
        if graph.edges:
            yield graph


def policy_case(graph, ordered):
    """What is listed along a graph, in the exponents of its unit, in both programs, and the rays that should be."""
    k = len(graph)
    limits = policy_limits([LocalDP(1.0, graph=graph)], tuple(range(k)))
    columns = PolicyColumns(limits, ordered)
    arrangement = columns.arrangement
    # Exponents in the grid's unit are whole multiples of that of a weight of one.
    one = math.gcd(*(w for _, _, w in arrangement.limits))
    smaller = Arrangement(k, tuple((x, y, w // one) for x, y, w in arrangement.limits), arrangement.cuts)
    e = Fraction(2)
    expected = rays(k, *faces(smaller, e))
    mine = [tuple(Fraction(0) if math.isinf(h) else e ** round(h / one) for h in row) for row in columns.steps]
    ratios = [[None] * k for _ in range(k)]
    for x, y, w in smaller.limits:
        ratios[x][y] = e**w
    return mine, proofs.linked(Unlimited, ratios, ordered and Fraction(1)), expected


@pytest.mark.full
@pytest.mark.parametrize("ordered", [False, True])
def test_columns_along_graphs_are_complete(ordered):
    """The columns along graphs, with directions, weights, and parts without a path between them."""
    for graph in graphs(40, 1):
        mine, other, expected = policy_case(graph, ordered)
        assert are_same_rays(mine, expected)
        assert are_same_rays(other, expected)


@pytest.mark.full
@pytest.mark.parametrize("ordered", [False, True])
def test_columns_along_hundreds_of_graphs_are_complete(ordered):
    """The same for hundreds of graphs."""
    for graph in graphs(600, 2):
        mine, other, expected = policy_case(graph, ordered)
        assert are_same_rays(mine, expected)
        assert are_same_rays(other, expected)


def test_the_limits_of_a_graph_are_those_of_its_columns():
    """The arrangement states the shortest paths of the graph, in its own unit."""
    columns = PolicyColumns(policy_limits([LocalDP(0.7, graph=nx.path_graph(3))], (0, 1, 2)), True)
    limits = {(x, y): w * columns.unit for x, y, w in columns.arrangement.limits}
    assert limits == pytest.approx({(x, y): 0.7 * abs(x - y) for x, y in itertools.permutations(range(3), 2)})
    assert set(columns.arrangement.cuts) == {(0, 1, 0), (0, 2, 0), (1, 2, 0)}
    with pytest.raises(TooManyColumns):
        PolicyColumns(np.array([[0.0, 1e9], [1e-9, 0.0]]), False)


def irreducible(k, ratio, total):
    """The columns of integers up to `total` that are no sum of two others from one piece of the arrangement."""
    inside, cuts = faces(integer_arrangement(k), ratio or Fraction(total + 1))
    if ratio is None:
        inside = [unit(k, x) for x in range(k)]
    every = [
        column
        for column in itertools.product(range(total + 1), repeat=k)
        if any(column) and all(sum(a * b for a, b in zip(face, column, strict=True)) >= 0 for face in inside)
    ]
    sides = {c: [sum(a * b for a, b in zip(face, c, strict=True)) for face in cuts] for c in every}

    def together(c, d):
        return all(a * b >= 0 for a, b in zip(sides[c], sides[d], strict=True))

    known, kept = set(every), set()
    for column in every:
        smaller = (c for c in every if c != column and all(a <= b for a, b in zip(c, column, strict=True)))
        rest = ((c, tuple(b - a for a, b in zip(c, column, strict=True))) for c in smaller)
        if not any(d in known and together(c, d) for c, d in rest):
            kept.add(column)
    return kept


@pytest.mark.parametrize(
    ("k", "ratio", "total"),
    [(2, Fraction(2), 9), (2, Fraction(27, 10), 12), (2, None, 6), (3, Fraction(3, 2), 6), (3, Fraction(5, 2), 6),
     (3, None, 4), (4, Fraction(2), 4), (4, Fraction(1), 3), (2, Fraction(1), 3)],
)  # fmt: skip
def test_listed_integers_are_irreducible(k, ratio, total):
    """The columns of integers that are no sums of others with their entries in one order."""
    columns, complete = integer_columns(k, ratio, total)
    listed = [tuple(column) for column in columns.T.tolist()]
    assert complete
    assert len(listed) == len(set(listed))
    assert set(listed) == irreducible(k, ratio, total)


def boxes(count, seed):
    """Boxes of the entries of a column, and caps on their differences and ratios, in dyadic rationals."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        k = int(rng.choice([2, 3]))
        ends = np.sort(rng.integers(0, 17, (2, k)) / 16, axis=0)
        yield ends, Fraction(int(rng.integers(1, 9)), 8), [None, Fraction(2), Fraction(4)][rng.integers(3)]


def box_case(ends, eta, ratio):
    """The columns that `ChamberDual` looks at in a box, and the vertices of the box in each order of the entries."""
    k = ends.shape[1]
    caps = [TotalVariation(float(eta))] + ([] if ratio is None else [LocalDP(math.log(ratio))])
    chambers = Chambers.from_constraints(
        MutualInformation(np.full(k, 1 / k)), [*caps, Outputs(2)], tuple(range(k)), 10**7, FLOAT
    )
    chambers.eta, chambers.ratio = float(eta), math.inf if ratio is None else float(ratio)
    found = {tuple(row) for row in chambers._vertices(*ends)[0].tolist()}
    inside = []
    for x in range(k):
        low, high = (Fraction(float(end)) for end in ends[:, x])
        inside += [(unit(k, x), low), (tuple(-v for v in unit(k, x)), -high)]
    for x, y in itertools.permutations(range(k), 2):
        inside.append((compared(k, x, y, Fraction(1)), -eta))
        if ratio is not None:
            inside.append((compared(k, x, y, ratio), Fraction(0)))
    cuts = [(compared(k, x, y, Fraction(1)), Fraction(0)) for x, y in itertools.combinations(range(k), 2)]
    return found, vertices(k, inside, cuts)


def misses(found, expected):
    """The vertices that no column is near."""
    near = np.array(sorted(found)) if found else np.zeros((0, 1))
    return [
        vertex
        for vertex in expected
        if not len(near) or np.abs(near - np.array([float(x) for x in vertex])).max(axis=1).min() > 1e-12
    ]


@pytest.mark.full
def test_columns_of_boxes_contain_every_vertex():
    """In a box, every vertex of every order of the entries is among the columns; without one of them it is missed."""
    some = 0
    for box in boxes(30, 3):
        found, expected = box_case(*box)
        assert misses(found, expected) == []
        some += len(expected)
        for vertex in expected:
            place = np.array([float(x) for x in vertex])
            assert misses({c for c in found if np.abs(np.array(c) - place).max() > 1e-12}, expected) == [vertex]
    assert some > 100


@pytest.mark.full
def test_columns_of_hundreds_of_boxes_contain_every_vertex():
    """The same for hundreds of boxes."""
    for box in boxes(400, 4):
        found, expected = box_case(*box)
        assert misses(found, expected) == []
