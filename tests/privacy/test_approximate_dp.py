"""Total variation of any channel: the Dobrushin coefficient, never understated."""

import itertools
import json
import math
import sys
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path

import mpmath as mp
import networkx as nx
import numpy as np
import pytest
import truth
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ldpopt.channel import Channel
from ldpopt.divergences import TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import approximate_dp, approximate_zcdp, hockey_stick, local_dp, pairs, total_variation
from ldpopt.privacy.approximate_dp import epsilon_of_pairs, hockey_stick_of_pairs

CASES = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES)
def test_hockey_stick_meets_the_oracle(case):
    """The values of the reference computation, to 1e-7."""
    for epsilon, delta in case["hockey_stick"].items():
        assert hockey_stick(case["channel"], float(epsilon)).value == pytest.approx(delta, rel=1e-7)


def test_delta_is_the_largest_gain_over_events():
    """delta = max over pairs and sets S of Q[x, S] - e^epsilon Q[x', S], over every set; the witness attains it."""
    rng = np.random.default_rng(1)
    for epsilon in (0.0, 0.4, 1.1):
        q = rng.dirichlet(np.full(5, 0.6), 3)
        sets = [list(s) for s in chain.from_iterable(combinations(range(5), n) for n in range(6))]
        gain = {
            (x, y, tuple(s)): q[x, s].sum() - math.exp(epsilon) * q[y, s].sum()
            for s in sets
            for x in range(3)
            for y in range(3)
        }
        found = hockey_stick(q, epsilon)
        assert found.value == pytest.approx(max(gain.values()), rel=1e-12)
        assert gain[(*found.witness.inputs, found.witness.outputs)] == pytest.approx(found.value, rel=1e-12)


def test_tiny_deltas_keep_their_relative_accuracy():
    """A delta of 1e-40 from one rare output is measured to rounding, and exactly zero past epsilon."""
    q = [[1 - 2.0**-130, 2.0**-130], [1.0, 0.0]]
    assert hockey_stick(q, 3.0).value == pytest.approx(2.0**-130, rel=1e-14)
    assert Fraction(hockey_stick(q, 3.0).lower) <= Fraction(1, 2**130) <= Fraction(hockey_stick(q, 3.0).value)
    assert hockey_stick([[0.6, 0.4], [0.5, 0.5]], 2.0).value == 0


def test_the_screen_of_a_large_channel_finds_the_worst_pair(monkeypatch):
    """Where all pairs are screened by their city-block distances, the value is that of measuring every pair."""
    monkeypatch.setattr(pairs, "MAX_ENTRIES", 2000 * 12)  # 2000 of the 3540 pairs
    rng = np.random.default_rng(2)
    i, j = np.nonzero(~np.eye(60, dtype=bool))
    nearly_equal = 1 + 1e-15 * rng.random((60, 12))
    for q in (
        rng.dirichlet(np.ones(12), 60), np.exp(-rng.uniform(0, 60, (60, 12))), np.ones((60, 60)) + np.eye(60),
        nearly_equal, np.vstack([np.eye(12), nearly_equal[12:]]),
    ):  # fmt: skip
        q = q / q.sum(axis=1, keepdims=True)
        for epsilon in (0.0, 0.3, 5.0, 800.0):
            lower, upper = hockey_stick_of_pairs(q[i], q[j], epsilon)
            found = hockey_stick(q, epsilon)
            assert lower.max() <= found.value <= upper.max() + 1e-12
            assert found.lower <= upper.max()


def test_the_witness_of_impossible_outputs_survives_any_epsilon():
    """Past the range of exp, delta is the mass of outputs impossible under the other input, which witness it."""
    found = hockey_stick([[0.7, 0.3, 0.0], [0.7, 0.0, 0.3]], 800.0)
    assert found.value == pytest.approx(0.3, rel=1e-12)
    assert found.witness.outputs == (1,)


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


def test_randomized_response_has_its_closed_form_total_variation():
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


def test_total_variation_agrees_with_the_oracle():
    """Eta of the oracle's channels, computed independently."""
    for case in ORACLE["cases"]:
        assert total_variation(case["channel"]).value == pytest.approx(case["total_variation"], rel=1e-9)


def test_bad_channels_and_policy_graphs_are_refused():
    """A matrix that is not a channel and a graph over other inputs are refused."""
    with pytest.raises(InvalidInput, match="channel: expected rows that sum to 1"):
        total_variation([[0.5, 0.4]])
    with pytest.raises(InvalidInput, match="policy graph: expected nodes among the inputs"):
        total_variation(np.eye(2), nx.Graph([(0, 2)]))


def test_nearly_equal_rows_are_distinguished_exactly():
    """Among rows that differ by 1e-14, with sums that differ by an ulp, the farthest pair is found, not one near it."""
    q = np.full((4, 5), 0.2240066948388733)
    q[np.arange(4), np.arange(4)] = [0.22400669483889454, 0.22400669483889454, 0.22400669483889454, 0.22400669483889452]
    q[:, 4] = [0.10397322064448553, 0.10397322064448553, 0.10397322064448553, 0.10397322064448551]
    found = total_variation(q)
    assert Fraction(found.lower) <= exact(q) <= Fraction(found.value)
    assert found.value <= float(exact(q)) * (1 + 1e-12)


@pytest.mark.parametrize("k", [5, 900])
def test_many_equal_rows_have_none(k):
    """A constant channel is exactly 0-TV however many inputs it has, and k-ary randomized response keeps its value."""
    assert total_variation(np.full((k, 7), 1 / 7)).value == 0.0
    q = randomized_response(k, 1.0)
    assert total_variation(q).value == pytest.approx(math.expm1(1.0) / (math.e + k - 1), rel=1e-12)


@pytest.mark.parametrize("entries", [6, 1 << 19])
def test_the_witness_is_the_farthest_pair_of_all_blocks(entries, monkeypatch):
    """Whatever is held at once, the pair that is named is one whose event differs most, with a graph and without."""
    monkeypatch.setattr(sys.modules[total_variation.__module__], "_MAX_EXACT_ENTRIES", entries)
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


def delta_of(q, epsilon):
    e = mp.exp(mp.mpf(epsilon))
    rows = [[mp.mpf(float(x)) for x in row] for row in q]
    return max(mp.fsum(max(a - e * b, 0) for a, b in zip(p, r, strict=True)) for p in rows for r in rows if p is not r)


def test_the_epsilon_is_the_least_that_reaches_delta():
    """At the value the exact delta is within the target; just below `lower` it is not: rounding to the private side."""
    rng = np.random.default_rng(5)
    with mp.workdps(60):
        for n in range(60):
            q = rng.dirichlet(np.full(4, 0.7), 3) if n % 2 else np.exp(-rng.uniform(0, 300, (3, 4)))
            q = q / q.sum(axis=1, keepdims=True)
            for delta in (0.0, 1e-12, 1e-3, 0.1, 0.6):
                found = approximate_dp(q, delta)
                assert delta_of(q, found.value) <= delta
                if found.lower > 0:
                    assert delta_of(q, found.lower * (1 - 1e-15)) > delta
                assert found.value - found.lower <= 1e-12 * (1 + found.value) / min(1, max(delta, 1e-3))


def test_known_answers():
    """The dominating pair of (epsilon, delta, eta) needs exactly epsilon at delta, and infinity below it."""
    epsilon, delta = 1.0, 0.05
    e = math.exp(epsilon)
    p = np.array([delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0])
    assert approximate_dp([p, p[::-1]], delta + 1e-12).value == pytest.approx(epsilon, rel=1e-9)
    assert approximate_dp([p, p[::-1]], delta - 1e-9).value == math.inf
    assert approximate_dp([p, p[::-1]], 1.0).value == 0


def test_the_screen_of_a_large_channel_finds_the_worst_pair_of_approximate_dp(monkeypatch):
    """Where the worst pair of a large channel is found by Newton's method, every other pair needs no more."""
    monkeypatch.setattr(pairs, "MAX_ENTRIES", 2000 * 12)  # 2000 of the 3540 pairs
    rng = np.random.default_rng(6)
    i, j = np.nonzero(~np.eye(60, dtype=bool))
    for q in (rng.dirichlet(np.ones(12), 60), np.ones((60, 60)) + 9 * np.eye(60), rng.random((60, 5)) > 0.3):
        q = q + 1e-3 if q.dtype != bool else q + np.eye(60, 5)
        q = q / q.sum(axis=1, keepdims=True)
        for delta in (0.0, 1e-3, 0.05, 0.4):
            lower, upper = epsilon_of_pairs(q[i], q[j], delta)
            found = approximate_dp(q, delta)
            assert lower.max() <= found.value
            assert found.value == pytest.approx(upper.max(), rel=1e-8)
            if math.isfinite(found.value):
                assert hockey_stick(q, found.value).lower <= delta


def test_impossible_outputs_come_before_nearly_impossible_ones():
    """Ratios beyond the range of floats keep their order: 0.3 of the reports are impossible, so 0.1 is in vain."""
    rows = [[0.5, 0.3, 0.2], [1e-320, 0.0, 1.0]]
    assert approximate_dp(rows, 0.1).value == math.inf
    assert approximate_zcdp(rows, 0.1).value == math.inf
    assert approximate_dp(rows, 0.4).value == pytest.approx(math.log(0.4) - math.log(1e-320), rel=1e-12)
    rows = [[0.3, 0.5, 0.2], [1e-318, 1e-320, 1.0]]
    assert approximate_dp(rows, 0.0).value >= local_dp(rows).lower
    epsilon = approximate_dp(rows, 0.35).value
    with mp.workdps(400):
        p, q = truth.rows(np.array(rows))
        assert truth.hockey_stick(p, q, epsilon) <= 0.35
        assert truth.hockey_stick(p, q, epsilon * (1 - 1e-12)) > 0.35
