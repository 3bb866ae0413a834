"""Which inputs a policy graph compares.

The worst pair of inputs, with a screen and without, in blocks of any size.
"""

import networkx as nx
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.privacy import pairs as pairs_privacy
from ldpopt.privacy.pairs import MAX_TIED, blocks, larger, normalised, ordered_pairs, worst_pair

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
def test_values_that_are_not_graphs_over_inputs_are_refused(graph):
    """Lists of edges, texts and graphs over other nodes are refused."""
    with pytest.raises(InvalidInput, match="policy graph"):
        ordered_pairs(CHANNEL, graph)


def random_channel(k=9, m=5, seed=0):
    return Channel(np.random.default_rng(seed).dirichlet(np.ones(m), k))


def far(p, q):
    """The total variation, between two ends."""
    exact = np.abs(p - q).sum(axis=1) / 2
    return exact * 0.99, exact * 1.01


def brute(channel):
    """The largest total variation, and its pair."""
    found = {
        (x, y): np.abs(a - b).sum() / 2 for x, a in enumerate(channel.matrix) for y, b in enumerate(channel.matrix)
    }
    worst = max(found, key=found.get)
    return found[worst], worst


def test_the_worst_pair_is_found_and_named():
    """Value, lower end, witness and event are those of the pair with the largest upper end."""
    channel = random_channel()
    value, (x, y) = brute(channel)
    found = worst_pair("test", channel, None, far, "here", event=larger, parameters={"order": 2.0})
    assert found.value == pytest.approx(value * 1.01)
    assert found.lower == pytest.approx(value * 0.99)
    assert set(found.witness.inputs) == {x, y}
    a, b = (channel.matrix[one] for one in found.witness.inputs)
    assert found.witness.outputs == tuple(np.flatnonzero(a > b))
    assert found.exact
    assert dict(found.parameters) == {"order": 2.0}
    assert worst_pair("test", channel, None, far, "here", exact=False).exact is False


@pytest.mark.parametrize("entries", [1, 5, 10, 11, 1000])
def test_blocks_hold_every_pair_once(entries, monkeypatch):
    """Whatever is held at once, each ordered pair is in one block of at most that size, or alone."""
    monkeypatch.setattr(pairs_privacy, "MAX_BLOCK_ENTRIES", entries)
    for seed in range(8):
        channel = random_channel(4, seed=seed)
        value, _ = brute(channel)
        assert worst_pair("test", channel, None, far, "here").value == pytest.approx(value * 1.01)
    made = list(blocks(channel))
    assert sorted((x, y) for i, j in made for x, y in zip(i.tolist(), j.tolist(), strict=True)) == [
        (x, y) for x in range(4) for y in range(4) if x != y
    ]
    assert all(len(i) <= max(1, entries // 5) for i, _ in made)
    assert len(made) == -(-12 // max(1, entries // 5))


def test_without_pairs_or_differences_there_is_no_witness():
    """Equal rows, one input and a graph without edges are worth zero."""
    for channel, graph in (
        (Channel([[0.5, 0.5]] * 3), None),
        (Channel([[1.0]]), None),
        (random_channel(3), nx.empty_graph(3)),
    ):
        found = worst_pair("test", channel, graph, far, "here")
        assert (found.value, found.lower, found.witness) == (0.0, 0.0, None)
        assert found.exact


def screen_of(low, high):
    """A screen that knows every pair up to two factors."""

    def screen(matrix):
        exact = np.abs(matrix[:, None] - matrix[None]).sum(axis=2) / 2
        return exact * low, exact * high

    return screen


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (0.9, 1.1), (0.0, 3.0)])
@pytest.mark.parametrize("seed", range(4))
def test_a_screen_hides_no_pair(low, high, seed):
    """With a screen the value is the largest over all pairs, or a bound on it; exact only if it is attained."""
    channel = random_channel(40, 3, seed)
    value, _ = brute(channel)
    asked = []

    def measure(p, q):
        asked.append(len(p))
        exact = np.abs(p - q).sum(axis=1) / 2
        return exact, exact

    found = worst_pair("test", channel, None, measure, "here", screen=screen_of(low, high), limit=3)
    assert found.lower <= value * (1 + 1e-12)
    assert found.value >= value * (1 - 1e-12)
    assert not found.exact or found.lower == pytest.approx(value)
    assert sum(asked) <= 64 + MAX_TIED
    if low == high:
        assert found.exact
        assert found.value == pytest.approx(value)
    if low == 0.0:
        assert found.value > value
        assert not found.exact


def test_pairs_that_a_screen_cannot_bound_are_measured():
    """Pairs with an infinite bound above are measured, beyond the limit, unless some pair is infinite anyway."""
    channel = random_channel(40, 3)
    value, _ = brute(channel)
    asked = []

    def measure(p, q):
        asked.append(len(p))
        exact = np.abs(p - q).sum(axis=1) / 2
        return exact, exact

    def blind(matrix):
        return np.zeros((40, 40)), np.full((40, 40), np.inf)

    found = worst_pair("test", channel, None, measure, "here", screen=blind, limit=3)
    assert found.value == pytest.approx(value)
    assert sum(asked) == 40 * 39
    asked.clear()

    def infinite(matrix):
        return np.full((40, 40), np.inf), np.full((40, 40), np.inf)

    worst_pair("test", channel, None, measure, "here", screen=infinite, limit=3)
    assert 64 <= sum(asked) <= 64 + MAX_TIED


def test_a_screen_is_for_large_channels_without_a_graph():
    """A channel of few pairs, and one with a policy graph, is measured pair by pair."""

    def never(matrix):
        raise AssertionError

    small = random_channel(8, 5)
    assert worst_pair("test", small, None, far, "here", screen=never, limit=5 * 8 * 7).exact
    wide = random_channel(40, 3)
    assert worst_pair("test", wide, nx.path_graph(40), far, "here", screen=never, limit=3).exact
    with pytest.raises(AssertionError):
        worst_pair("test", wide, None, far, "here", screen=never, limit=3)


def test_rows_are_divided_by_their_sums():
    """Each row becomes a law."""
    rows = normalised(np.array([[1.0, 3.0], [0.2, 0.2]]))
    assert rows.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert larger(np.array([0.2, 0.3, 0.3]), np.array([0.1, 0.3, 0.4])).tolist() == [True, False, False]


def test_pairs_that_differ_by_the_names_of_outputs_are_measured_once():
    """Of a channel with few different entries, one ordered pair of every kind is kept: brute force."""
    rng = np.random.default_rng(4)
    for values in ([0.1, 0.3], [0.0, 0.2, 0.5], [0.25, 0.25]):
        matrix = rng.choice(values, (7, 4))
        kept = pairs_privacy.distinct_pairs(matrix)
        kinds = {(i, j): sorted(zip(matrix[i], matrix[j], strict=True)) for i in range(7) for j in range(7) if i != j}
        found = [kinds[int(one) // 7, int(one) % 7] for one in kept]
        assert all(kind in found for kind in kinds.values())
        assert all(found.count(kind) == 1 for kind in found)
    assert pairs_privacy.distinct_pairs(rng.random((4, 9))) is None


def test_kinds_of_pairs_change_no_value(monkeypatch):
    """A large channel of two entries has the same worst value by kinds as over all pairs."""
    monkeypatch.setattr(pairs_privacy, "MAX_ENTRIES", 64)
    nothing = np.zeros((12, 12)), np.ones((12, 12))  # a screen that knows nothing
    turned = np.array([np.roll([0.3] * 2 + [0.1] * 2 + [0.025] * 8, 5 * x) for x in range(12)])
    for matrix in (turned, np.where(np.eye(12) > 0, 0.45, 0.05)):
        found = worst_pair("test", Channel(matrix), None, far, "here", screen=lambda q: nothing)
        assert found.value == pytest.approx(worst_pair("test", Channel(matrix), None, far, "here").value, rel=1e-12)
        assert found.witness is not None
