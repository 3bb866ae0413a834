"""Pure local differential privacy of any channel: exact, never understated."""

import json
import math
from pathlib import Path

import mpmath
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.privacy import local_dp
from ldpopt.privacy.loss import log_ratios

ORACLE = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text("utf-8"))


@st.composite
def matrices(draw, entries=None, k=None):
    k, m = k or draw(st.integers(1, 5)), draw(st.integers(1, 5))
    raw = draw(hnp.arrays(float, (k, m), elements=st.floats(0, 1) if entries is None else entries))
    raw[:, 0] += raw.sum(axis=1) == 0
    return raw / raw.sum(axis=1, keepdims=True)


def exact(q, pairs=None, outputs=None):
    """max over pairs and outputs of log q/q' of the laws of the rows, by brute force in 400 digits."""
    with mpmath.workdps(400):
        best = mpmath.mpf(0)
        sums = [mpmath.fsum(row.tolist()) for row in q]
        for i, j in pairs or [(i, j) for i in range(len(q)) for j in range(len(q))]:
            for a, b in zip(q[i, outputs or slice(None)].tolist(), q[j, outputs or slice(None)].tolist(), strict=True):
                if a > 0 and b == 0:
                    return mpmath.inf
                if a > 0:
                    best = max(best, mpmath.log(mpmath.mpf(a) / mpmath.mpf(b) * sums[j] / sums[i]))
        return best


def brackets(guarantee, truth):
    """Whether the truth lies in [lower, value], and value is tight to 1e-14."""
    if truth == mpmath.inf:
        return guarantee.value == guarantee.lower == math.inf
    return guarantee.lower <= truth <= guarantee.value and guarantee.value <= float(truth) * (1 + 1e-14) + 1e-322


@given(matrices())
def test_epsilon_is_the_largest_log_ratio(q):
    """[GI, Def 6] value and lower bracket max log Q[x, y]/Q[x', y] of the float matrix, in 50 digits."""
    assert brackets(local_dp(q), exact(q))


@given(matrices(entries=st.sampled_from([0.0, 5e-324, 1e-320, 1e-310, 1e-300, 1e-17, 0.5, 1.0])))
def test_extreme_entries_have_the_exact_epsilon(q):
    """Subnormal and zero entries give the exact value, however large the ratio."""
    assert brackets(local_dp(q), exact(q))


def test_an_overflowing_ratio_does_not_hide_a_larger_one():
    """A ratio too large for a double is still compared: with a zero elsewhere epsilon is infinite."""
    assert local_dp([[0.5, 0.5, 0], [1e-310, 0.5, 0.5]]).value == math.inf
    q = [[0.4, 0.4, 0.2], [1e-310, 5e-324, 1.0]]
    assert brackets(local_dp(q), exact(np.array(q)))
    assert local_dp(q).witness.outputs == (1,)


@given(st.floats(1e-15, 1e-3), st.integers(2, 6))
def test_nearly_equal_rows(gap, k):
    """Rows that agree to 15 digits still give epsilon with full relative accuracy."""
    q = np.full((k, 2), 0.5)
    q[0] = [0.5 * (1 + gap), 0.5 * (1 - gap)]
    assert brackets(local_dp(q), exact(q))


@given(matrices(), st.data())
def test_the_witness_attains_the_value(q, data):
    """The witness names two inputs and one output whose log ratio lies in [lower, value]."""
    k, m = q.shape
    channel = Channel(q, [f"x{i}" for i in range(k)], [f"y{i}" for i in range(m)])
    found = local_dp(channel)
    if found.witness is None:
        assert found.value == 0
        return
    x, other = (channel.inputs.index(label) for label in found.witness.inputs)
    (y,) = (channel.outputs.index(label) for label in found.witness.outputs)
    truth = exact(q, [(x, other)]) if found.value == math.inf else exact(q, [(x, other)], [y])
    assert truth == math.inf == found.value or found.lower <= truth <= found.value


@given(matrices(k=4), st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))), st.booleans())
def test_a_policy_compares_adjacent_inputs_only(q, edges, directed):
    """With a graph, epsilon is the largest log ratio over its edges, in both directions unless directed."""
    graph = (nx.DiGraph if directed else nx.Graph)(list(edges))
    pairs = [(i, j) for i, j in edges if i != j]
    pairs += [] if directed else [(j, i) for i, j in pairs]
    truth = exact(q, pairs) if pairs else mpmath.mpf(0)
    assert brackets(local_dp(q, graph), truth)


def test_a_complete_graph_is_no_graph():
    """The complete graph over the labels gives the value without a graph."""
    rng = np.random.default_rng(0)
    q = Channel(rng.dirichlet(np.ones(4), size=3), ["a", "b", "c"])
    assert local_dp(q, nx.complete_graph(["a", "b", "c"])).value == local_dp(q).value


def test_a_directed_edge_never_gives_a_negative_epsilon():
    """One row may lie below the other everywhere, within the tolerance of sums: their laws are what is compared."""
    q = np.array([[0.5, 0.5], [0.5, 0.5 + 8e-10]])
    forward, back = (local_dp(q, nx.DiGraph([edge])) for edge in ((0, 1), (1, 0)))
    assert forward.value == pytest.approx(8e-10, rel=1e-6)  # of the laws of the rows
    assert back.value == pytest.approx(8e-10, rel=1e-6)


def test_constant_channels_leak_nothing():
    """A constant channel, a single input and an output that never occurs give zero."""
    for q in ([[0.3, 0.7]] * 3, [[0.3, 0.7]], [[0.0, 1.0], [0.0, 1.0]]):
        found = local_dp(q)
        assert (found.value, found.lower, found.witness) == (0.0, 0.0, None)


def test_epsilon_agrees_with_the_oracle():
    """Epsilon of the oracle's channels, computed independently."""
    for case in ORACLE["cases"]:
        assert local_dp(case["channel"]).value == pytest.approx(case["epsilon"], rel=1e-9)


@pytest.mark.parametrize("p", [1.0, 0.3, 1e-300, 1e-310])
@pytest.mark.parametrize("ratio", [1 + 2**-52, 1 + 1e-9, 1.9, 2.1, 1e5, 1e200])
def test_log_ratios_are_accurate_to_four_units(p, ratio):
    """log(p/q) is right to four units in the last place for every p > q > 0."""
    q = p / ratio
    if 0 < q < p:
        with mpmath.workdps(50):
            truth = mpmath.log(mpmath.mpf(p) / mpmath.mpf(q))
            assert (
                abs(mpmath.mpf(float(log_ratios(np.array(p), np.array(q)))) - truth) <= 4 * mpmath.mpf(2) ** -52 * truth
            )


def test_bad_channels_and_policy_graphs_are_refused():
    """A matrix that is not a channel and a graph over other inputs are refused."""
    with pytest.raises(InvalidInput, match="channel: expected rows that sum to 1"):
        local_dp([[0.5, 0.4]])
    with pytest.raises(InvalidInput, match="policy graph: expected a networkx graph over the inputs, got 'list'"):
        local_dp(np.eye(2), [(0, 1)])
    with pytest.raises(InvalidInput, match=r"policy graph: expected nodes among the inputs \(0, 1\), got 2"):
        local_dp(np.eye(2), nx.Graph([(0, 2)]))
