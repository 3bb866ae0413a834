"""Total variation of any channel: the Dobrushin coefficient, never understated."""

import itertools
import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpopt.channel import Channel
from ldpopt.divergences import TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import local_dp, total_variation

ORACLE = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text("utf-8"))


@st.composite
def matrices(draw, k=None):
    k, m = k or draw(st.integers(1, 5)), draw(st.integers(1, 6))
    raw = draw(hnp.arrays(float, (k, m), elements=st.floats(0, 1)))
    raw[:, 0] += raw.sum(axis=1) == 0
    return raw / raw.sum(axis=1, keepdims=True)


def laws(q):
    """The rows as rationals, divided by their sums."""
    rows = [[Fraction(v) for v in row] for row in np.asarray(q).tolist()]
    return [[v / sum(row) for v in row] for row in rows]


def exact(q, pairs=None):
    """max over pairs of rows and events of Q(S|x) - Q(S|x'), in rational arithmetic, of the laws of the rows."""
    rows = laws(q)
    pairs = list(itertools.permutations(range(len(rows)), 2)) if pairs is None else pairs
    return max(
        (sum(max(a - b, Fraction(0)) for a, b in zip(rows[i], rows[j], strict=True)) for i, j in pairs), default=0
    )


def brackets(guarantee, truth):
    """Whether the truth lies in [lower, value], and value is tight to 1e-13."""
    return Fraction(guarantee.lower) <= truth <= Fraction(guarantee.value) or guarantee.value == 1 <= truth


@given(matrices())
def test_eta_is_the_largest_distance_between_rows(q):
    """[GI, Def 7] value and lower bracket the largest one-sided distance of two rows, in exact arithmetic."""
    found = total_variation(q)
    assert brackets(found, exact(q))
    assert found.value <= float(exact(q)) * (1 + 1e-13)


@given(matrices(k=3))
def test_eta_is_the_largest_difference_over_events(q):
    """[GI, Def 7] eta is the largest |Q(S|x) - Q(S|x')| over all events S, by trying every S."""
    best = 0.0
    for size in range(q.shape[1] + 1):
        for event in itertools.combinations(range(q.shape[1]), size):
            mass = q[:, event].sum(axis=1)
            best = max(best, mass.max() - mass.min())
    assert total_variation(q).value == pytest.approx(best, rel=1e-12, abs=1e-15)


def test_rows_that_do_not_quite_sum_to_one():
    """Within the tolerance of row sums, the value covers the distance of the laws that rows are proportional to."""
    q = np.array([
        [0.5 - 4e-10, 0.5 - 4e-10, 0.0], [0.0, 0.5 + 4e-10, 0.5 + 4e-10],
        [0.5 - 2e-10, 0.5 + 2e-10, 0.0], [0.25, 0.25, 0.5],
    ])  # fmt: skip
    assert brackets(total_variation(q), exact(q))
    close = np.array([[0.5, 0.5], [0.5 + 1e-16, 0.5], [0.5, 0.5 + 9e-10]])
    assert brackets(total_variation(close), exact(close))


@given(st.floats(1e-15, 1e-3))
def test_nearly_equal_rows(gap):
    """Rows that agree to 15 digits still give eta with full relative accuracy."""
    q = np.array([[0.5 + gap, 0.5 - gap], [0.5, 0.5], [0.5, 0.5]])
    assert brackets(total_variation(q), exact(q))


@given(matrices())
def test_the_witness_attains_the_value(q):
    """The witness names two inputs and an event whose probabilities differ by eta."""
    k, m = q.shape
    channel = Channel(q, [f"x{i}" for i in range(k)], [f"y{i}" for i in range(m)])
    found = total_variation(channel)
    if found.witness is None:
        assert found.value == 0
        return
    x, other = (channel.inputs.index(label) for label in found.witness.inputs)
    event = [channel.outputs.index(label) for label in found.witness.outputs]
    rows = laws(q)
    assert Fraction(found.lower) <= sum(rows[x][y] - rows[other][y] for y in event) <= Fraction(found.value)


@given(matrices(k=4), st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))), st.booleans())
def test_a_policy_compares_adjacent_inputs_only(q, edges, directed):
    """With a graph, eta is the largest distance over its edges; the direction makes no difference."""
    graph = (nx.DiGraph if directed else nx.Graph)(list(edges))
    pairs = [(i, j) for i, j in edges if i != j]
    found = total_variation(q, graph)
    assert brackets(found, exact(q, pairs + [(j, i) for i, j in pairs]))


def test_randomized_response():
    """k-ary randomized response is (e^eps - 1)/(e^eps + k - 1)-TV."""
    for k, epsilon in itertools.product((2, 3, 10), (0.1, 1.0, 5.0)):
        growth = math.exp(epsilon)
        q = (np.ones((k, k)) + (growth - 1) * np.eye(k)) / (growth + k - 1)
        assert total_variation(q).value == pytest.approx((growth - 1) / (growth + k - 1), rel=1e-13)


@given(matrices())
def test_epsilon_bounds_eta(q):
    """[GI, Prop 2] eta <= tanh(epsilon/2) for every channel, with equality for binary randomized response."""
    assert total_variation(q).lower <= math.tanh(local_dp(q).value / 2) * (1 + 1e-12)
    keep = math.e / (1 + math.e)
    binary = [[keep, 1 - keep], [1 - keep, keep]]
    assert total_variation(binary).value == pytest.approx(math.tanh(0.5), rel=1e-13)


@given(matrices(k=3), st.integers(0, 2**32))
def test_eta_is_the_contraction_of_total_variation(q, seed):
    """[Dobrushin] TV(P0 Q, P1 Q) <= eta TV(P0, P1), with equality for the witness's point masses."""
    rng = np.random.default_rng(seed)
    found = total_variation(q)
    p0, p1 = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
    assert abs(p0 @ q - p1 @ q).sum() / 2 <= found.value * TOTAL_VARIATION(p0, p1) + 1e-15
    if found.witness is not None:
        x, other = found.witness.inputs
        assert abs(q[x] - q[other]).sum() / 2 == pytest.approx(found.value, rel=1e-9, abs=1e-15)


def test_the_ends():
    """A constant channel has eta zero; disjoint rows have eta exactly one."""
    assert total_variation([[0.3, 0.7]] * 3).value == 0
    assert total_variation([[0.3, 0.7]]).witness is None
    assert total_variation(np.eye(3)).value == 1
    assert total_variation(np.eye(2), nx.Graph()).value == 0


def test_the_oracle():
    """Eta of the oracle's channels, computed independently."""
    for case in ORACLE["cases"]:
        assert total_variation(case["channel"]).value == pytest.approx(case["total_variation"], rel=1e-9)


def test_bad_input():
    """What is no channel and what is no graph over its inputs are errors."""
    with pytest.raises(InvalidInput, match="channel: expected rows that sum to 1"):
        total_variation([[0.5, 0.4]])
    with pytest.raises(InvalidInput, match="policy graph: expected nodes among the inputs"):
        total_variation(np.eye(2), nx.Graph([(0, 2)]))


def test_nearly_equal_rows_are_told_apart_exactly():
    """Among rows that differ by 1e-14, with sums that differ by an ulp, the farthest pair is found, not one near it."""
    q = np.full((4, 5), 0.2240066948388733)
    q[np.arange(4), np.arange(4)] = [0.22400669483889454, 0.22400669483889454, 0.22400669483889454, 0.22400669483889452]
    q[:, 4] = [0.10397322064448553, 0.10397322064448553, 0.10397322064448553, 0.10397322064448551]
    found = total_variation(q)
    assert Fraction(found.lower) <= exact(q) <= Fraction(found.value)
    assert found.value <= float(exact(q)) * (1 + 1e-12)


@pytest.mark.parametrize("k", [5, 900, 1500])
def test_many_equal_rows_have_none(k):
    """A constant channel is exactly 0-TV however many inputs it has, and k-ary randomized response keeps its value."""
    assert total_variation(np.full((k, 7), 1 / 7)).value == 0.0
    q = randomized_response(k, 1.0)
    assert total_variation(q).value == pytest.approx(math.expm1(1.0) / (math.e + k - 1), rel=1e-12)


@pytest.mark.parametrize("entries", [6, 1 << 19])
def test_the_witness_is_the_farthest_pair_of_all_blocks(entries, monkeypatch):
    """Whatever is held at once, the pair that is named is one whose event differs most, with a graph and without."""
    monkeypatch.setattr(sys.modules[total_variation.__module__], "ENTRIES", entries)
    rng = np.random.default_rng(9)
    q = rng.dirichlet(np.ones(3), 6)
    far = np.abs(q[:, None] - q).sum(axis=2) / 2
    beside = np.abs(np.subtract.outer(range(6), range(6))) == 1
    for graph, allowed in ((None, np.ones((6, 6))), (nx.path_graph(6), beside)):
        found = total_variation(q, graph)
        assert found.value == pytest.approx((far * allowed).max(), rel=1e-12)
        x, y = found.witness.inputs
        assert allowed[x, y]
        event = list(found.witness.outputs)
        assert (q[x] - q[y])[event].sum() == pytest.approx(found.value)
        assert found.exact
        assert found.lower == pytest.approx(found.value, rel=1e-12)
