"""Which inputs a policy graph compares."""

import networkx as nx
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.privacy.pairs import ordered_pairs

CHANNEL = Channel([[1.0], [1.0], [1.0]], ("a", "b", "c"))


def pairs(graph=None):
    i, j = ordered_pairs(CHANNEL, graph)
    return list(zip(i.tolist(), j.tolist(), strict=True))


def test_without_a_graph_every_ordered_pair_is_compared():
    """Both orders of every two inputs, and no input with itself."""
    assert pairs() == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


def test_an_edge_stands_for_both_orders_unless_it_is_directed():
    """Edges are between labels; loops are dropped."""
    assert pairs(nx.Graph([("c", "a"), ("b", "b")])) == [(0, 2), (2, 0)]
    assert pairs(nx.DiGraph([("c", "a"), ("b", "b")])) == [(2, 0)]
    assert pairs(nx.DiGraph([("c", "a"), ("a", "c")])) == [(0, 2), (2, 0)]


def test_a_graph_without_edges_compares_nothing():
    """No pairs, as two arrays of positions."""
    i, j = ordered_pairs(CHANNEL, nx.empty_graph(["a", "b"]))
    assert i.shape == j.shape == (0,)
    assert i.dtype.kind == "i"


@pytest.mark.parametrize("graph", [[("a", "b")], nx.Graph([("a", "d")]), "abc"])
def test_what_is_no_graph_over_the_inputs_is_refused(graph):
    """Lists of edges, texts and nodes that are no inputs."""
    with pytest.raises(InvalidInput, match="policy graph"):
        ordered_pairs(CHANNEL, graph)
