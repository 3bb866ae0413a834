"""The contract that every privacy measure keeps, whatever it measures."""

import math
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.privacy import (
    Polynomial,
    RestrictedAlpha,
    RestrictedKL,
    RestrictedRenyi,
    RestrictedTotalVariation,
    approximate_dp,
    approximate_zcdp,
    audit,
    capacity_bounded,
    chi_squared_contraction,
    doeblin,
    hockey_stick,
    hockey_stick_contraction,
    local_dp,
    maximal_leakage,
    mcdp,
    mutual_information,
    renyi,
    total_variation,
    trade_off,
    zcdp,
)

MEASURES = {
    "local_dp": local_dp,
    "total_variation": total_variation,
    "hockey_stick": lambda q, graph=None: hockey_stick(q, 0.3, graph),
    "approximate_dp": lambda q, graph=None: approximate_dp(q, 0.03, graph),
    "renyi 1": lambda q, graph=None: renyi(q, 1, graph),
    "renyi 1.5": lambda q, graph=None: renyi(q, 1.5, graph),
    "renyi 2": lambda q, graph=None: renyi(q, 2, graph),
    "renyi 64": lambda q, graph=None: renyi(q, 64, graph),
    "renyi inf": lambda q, graph=None: renyi(q, math.inf, graph),
    "zcdp": lambda q, graph=None: zcdp(q, graph=graph),
    "zcdp xi": lambda q, graph=None: zcdp(q, 0.02, graph=graph),
    "zcdp bounded": lambda q, graph=None: zcdp(q, max_order=3.0, graph=graph),
    "approximate_zcdp": lambda q, graph=None: approximate_zcdp(q, 0.03, graph=graph),
    "mcdp mu": lambda q, graph=None: mcdp(q, graph).mu,
    "mcdp tau": lambda q, graph=None: mcdp(q, graph).tau,
    "trade_off": lambda q, graph=None: trade_off(q, graph).to_approximate_dp(0.3),
    "maximal_leakage": maximal_leakage,
    "chi_squared_contraction": chi_squared_contraction,
    "hockey_stick_contraction": lambda q, graph=None: hockey_stick_contraction(q, 1.3, graph),
}
CONVEX = {
    "total_variation",
    "hockey_stick",
    "renyi 1",
    "mcdp mu",
    "chi_squared_contraction",
    "hockey_stick_contraction",
}
PAIRWISE = sorted(set(MEASURES) - {"maximal_leakage", "trade_off"})
DIVERGENCES = [
    RestrictedKL(),
    RestrictedRenyi(1.5),
    RestrictedRenyi(3.0),
    RestrictedAlpha(2.0),
    RestrictedTotalVariation(),
]

every = pytest.mark.parametrize("name", sorted(MEASURES))


def random_channels(count, k=4, m=5, seed=11):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(m, 2.0), k) for _ in range(count)], rng


def close(a, b, tolerance=2e-10):
    """Two guarantees whose brackets agree."""
    return (
        a.lower <= b.value + 1e-15
        and b.lower <= a.value + 1e-15
        and (a.value == b.value or abs(a.value - b.value) <= tolerance * max(abs(a.value), 1e-3))
    )


@every
def test_a_constant_channel_leaks_nothing(name):
    """A channel whose rows agree has the value zero under every notion, exactly."""
    row = np.random.default_rng(0).dirichlet(np.ones(6))
    for q in (np.tile(row, (4, 1)), [[1.0]], [[0.5, 0.5]]):
        found = MEASURES[name](q)
        assert found.lower == 0 or name == "trade_off"
        assert found.value <= (1e-13 if name == "trade_off" else 0.0)


@pytest.mark.parametrize("name", sorted(set(MEASURES) - {"mcdp tau"}))
def test_post_processing_never_raises_a_measure(name):
    """Sending the report through another channel never raises the value (mCDP's tau aside: BS, Appendix A)."""
    channels, rng = random_channels(2)
    for q in channels:
        after = Channel(q).then(rng.dirichlet(np.full(3, 0.3), q.shape[1]))
        merged = Channel(q).merge([[0, 3], [1, 4]])
        for processed in (after, merged):
            assert MEASURES[name](processed).lower <= MEASURES[name](q).value


@every
def test_relabelling_changes_nothing(name):
    """Permuting outputs or inputs, naming them, and splitting an output by a coin leave the value as it is."""
    channels, rng = random_channels(1)
    for q in channels:
        found = MEASURES[name](q)
        assert close(MEASURES[name](q[:, rng.permutation(q.shape[1])]), found)
        assert close(MEASURES[name](q[rng.permutation(len(q))]), found)
        named = Channel(q, inputs=["a", "b", "c", "d"], outputs=[(0, y) for y in range(q.shape[1])])
        assert MEASURES[name](named).value == found.value
        split = np.hstack([q[:, :1] * 0.25, q[:, :1] * 0.75, q[:, 1:]])
        assert close(MEASURES[name](split), found)


@pytest.mark.parametrize("name", sorted(set(MEASURES) - {"mcdp tau"}))
def test_a_public_coin_never_does_worse_than_the_worse_channel(name):
    """A publicly tossed coin is quasi-convex under every notion but mCDP, and convex under the linear ones."""
    (a, b, c, d), _ = random_channels(4)
    for first, second, weight in ((a, b, 0.3), (c, d, 0.7)):
        coin = MEASURES[name](Channel(first).coin(second, weight))
        values = MEASURES[name](first).value, MEASURES[name](second).value
        assert coin.lower <= max(values) * (1 + 1e-12) + 1e-13
        if name in CONVEX:
            assert coin.lower <= weight * values[0] + (1 - weight) * values[1] + 1e-13


def test_a_public_coin_can_raise_the_subgaussian_standard():
    """Erasing half of the reports of a strong randomized response raises tau: mCDP is not quasi-convex."""
    strong = Channel([[1 - 1e-8, 1e-8], [1e-8, 1 - 1e-8]])
    assert mcdp(strong.erase(0.5)).tau.lower > 1.4 * mcdp(strong).tau.value


@pytest.mark.parametrize(
    "name", ["local_dp", "renyi 1", "renyi 1.5", "renyi 2", "renyi 64", "mcdp mu", "maximal_leakage"]
)
def test_additive_notions_add_over_a_product(name):
    """Two independent channels side by side have exactly the sum of their values."""
    (a, b), _ = random_channels(2, k=3, m=3)
    total = MEASURES[name](Channel(a).product(b))
    assert total.value == pytest.approx(MEASURES[name](a).value + MEASURES[name](b).value, rel=1e-12)


def test_the_other_notions_compose_over_a_product_as_stated():
    """zCDP and tau^2 add at most, (epsilon, delta) add, eta's complements and Doeblin coefficients multiply."""
    (a, b), _ = random_channels(2, k=3, m=3)
    both = Channel(a).product(b)
    assert zcdp(both).lower <= zcdp(a).value + zcdp(b).value  # [BS, Lem 1.7]
    assert mcdp(both).tau.lower ** 2 <= mcdp(a).tau.value ** 2 + mcdp(b).tau.value ** 2  # [DR, Thm 3.4]
    assert hockey_stick(both, 0.5).lower <= hockey_stick(a, 0.3).value + hockey_stick(b, 0.2).value
    eta = 1 - (1 - total_variation(a).value) * (1 - total_variation(b).value)
    assert total_variation(both).lower <= eta
    assert float(doeblin(both)) == pytest.approx(float(doeblin(a)) * float(doeblin(b)), rel=1e-13)
    delta = 0.02 + 0.01 - 0.02 * 0.01  # [BS, Lem 8.2]
    assert approximate_zcdp(both, delta).lower <= approximate_zcdp(a, 0.02).value + approximate_zcdp(b, 0.01).value
    uniform = np.full(3, 1 / 3)
    assert float(mutual_information(both, np.full(9, 1 / 9))) == pytest.approx(
        float(mutual_information(a, uniform)) + float(mutual_information(b, uniform)), rel=1e-12
    )


def test_each_notion_is_monotone_in_its_parameter():
    """Rényi rises with the order, delta falls with epsilon, rho falls with xi and delta and rises with max_order."""
    channels, _ = random_channels(2)
    for q in channels:
        orders = [1, 1 + 1e-9, 1.001, 1.3, 2, 5, 40, 1e3, 1e9, math.inf]
        rising = renyi(q, orders)
        assert all(a.lower <= b.value for a, b in pairwise(rising))
        assert all(a.value < b.value for a, b in pairwise(rising[2:8]))
        falling = [hockey_stick(q, epsilon).value for epsilon in np.linspace(0, local_dp(q).value, 12)]
        assert all(a > b for a, b in pairwise(falling))
        needed = [approximate_dp(q, delta).value for delta in (0, 0.01, 0.05, 0.2, 1)]
        assert needed == sorted(needed, reverse=True)
        assert needed[-1] == 0
        rho = [zcdp(q, xi).value for xi in (0, 0.01, 0.05, 10)]
        assert rho == sorted(rho, reverse=True)
        assert rho[-1] == 0
        bounded = [zcdp(q, max_order=top).value for top in (1.01, 2.0, 5.0, math.inf)]
        assert all(a <= b * (1 + 1e-10) for a, b in pairwise(bounded))
        cut = [approximate_zcdp(q, delta).value for delta in (0, 0.01, 0.1, 0.999)]
        assert cut == sorted(cut, reverse=True)
        assert cut[-1] == 0


def test_the_notions_agree_where_they_meet():
    """Order inf is pure LDP, delta at epsilon 0 is eta, epsilon at delta 0 is pure LDP, order 1 is mCDP's mu."""
    channels, _ = random_channels(3)
    for q in channels:
        assert renyi(q, math.inf).value == local_dp(q).value
        assert renyi(q, 1e12).value == pytest.approx(local_dp(q).value, rel=1e-11)
        assert close(hockey_stick(q, 0.0), total_variation(q))
        assert close(approximate_dp(q, 0.0), local_dp(q))
        assert close(renyi(q, 1), mcdp(q).mu)
        assert close(approximate_zcdp(q, 0.0), zcdp(q))
        assert close(hockey_stick_contraction(q, 1.0), total_variation(q))
        for epsilon in (0.0, 0.2, 0.6, 1.5):
            assert close(trade_off(q).to_approximate_dp(epsilon), hockey_stick(q, epsilon))
            delta = hockey_stick(q, epsilon).value
            if delta > 0:
                assert approximate_dp(q, delta).lower <= epsilon


@every
def test_the_complete_graph_is_no_graph(name):
    """A policy graph with every edge gives the value without a graph; one with none gives zero."""
    (q,), _ = random_channels(1)
    assert close(MEASURES[name](q, graph=nx.complete_graph(4)), MEASURES[name](q), 1e-12)
    empty = nx.empty_graph(4)
    assert MEASURES[name](q, graph=empty).value <= (1e-13 if name == "trade_off" else 0.0)


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_policy_graph_compares_its_edges_only(name):
    """The value under a graph is the largest over its edges, each measured as a channel of two rows."""
    (q,), _ = random_channels(1)
    found = MEASURES[name](q, graph=nx.path_graph(4))
    edges = [MEASURES[name](q[[x, x + 1]]) for x in range(3)]
    assert close(found, max(edges, key=lambda guarantee: guarantee.value), 1e-12)
    one = MEASURES[name](q[:2], graph=nx.DiGraph([(0, 1)])), MEASURES[name](q[:2], graph=nx.DiGraph([(1, 0)]))
    assert close(max(one, key=lambda guarantee: guarantee.value), edges[0], 1e-12)


@pytest.mark.parametrize("name", PAIRWISE)
def test_the_witness_attains_the_value(name):
    """Measured on the two rows of the witness alone, the value is the same."""
    channels, _ = random_channels(2)
    for q in channels:
        found = MEASURES[name](q)
        assert close(MEASURES[name](q[list(found.witness.inputs)]), found, 1e-12)


@every
def test_arrays_and_channels_are_measured_alike(name):
    """A list, an array and a Channel give one result, which is a frozen, hashable value that prints."""
    q = [[0.5, 0.25, 0.25], [0.125, 0.5, 0.375]]
    found = MEASURES[name](Channel(q))
    assert MEASURES[name](q) == MEASURES[name](np.array(q)) == found
    assert str(found)
    assert hash(found) == hash(MEASURES[name](q))
    with pytest.raises(AttributeError):
        found.value = 0.0


@every
def test_zero_entries_give_infinity_or_a_number_never_nan(name):
    """Zeros follow the definitions: where supports differ the Rényi-type notions are infinite, and nothing is NaN."""
    for q in ([[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], [[1, 0, 0], [0.5, 0.5, 0]], np.eye(3)):
        found = MEASURES[name](q)
        assert found.lower <= found.value
        if name.startswith(("renyi", "zcdp", "mcdp", "local")):
            assert found.value == found.lower == math.inf
    unused = MEASURES[name]([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    assert close(unused, MEASURES[name]([[0.5, 0.5], [0.25, 0.75]]), 1e-12)


BAD = [
    (lambda q: hockey_stick(q, -float("inf")), "epsilon"),
    (lambda q: hockey_stick(q, float("nan")), "epsilon"),
    (lambda q: hockey_stick(q, "1"), "epsilon"),
    (lambda q: approximate_dp(q, -0.1), "delta"),
    (lambda q: approximate_dp(q, 1.1), "delta"),
    (lambda q: approximate_zcdp(q, 2), "delta"),
    (lambda q: approximate_zcdp(q, 0.1, "xi"), "xi"),
    (lambda q: renyi(q, 0.5), "order"),
    (lambda q: renyi(q, [2, 0.99]), "order"),
    (lambda q: renyi(q, float("nan")), "order"),
    (lambda q: renyi(q, "two"), "order"),
    (lambda q: zcdp(q, max_order=1), "max_order"),
    (lambda q: zcdp(q, xi=math.inf), "xi"),
    (lambda q: hockey_stick_contraction(q, 0.9), "gamma"),
    (lambda q: mutual_information(q, [0.5, 0.6]), "prior"),
    (lambda q: mutual_information(q, [1.0]), "prior"),
    (lambda q: capacity_bounded(q, [0, 1], RestrictedKL()), "features"),
    (lambda q: capacity_bounded(q, [0, 1, math.nan], RestrictedKL()), "features"),
    (lambda q: capacity_bounded(q, [0, 1, 2], "kl"), "divergence"),
    (lambda q: Polynomial([0, 1, 2], 0), "degree"),
    (lambda q: RestrictedRenyi(0.9), "order"),
    (lambda q: RestrictedRenyi(math.inf), "order"),
    (lambda q: RestrictedAlpha(0.5), "order"),
]


@pytest.mark.parametrize(("call", "what"), BAD)
def test_bad_parameters_are_refused(call, what):
    """A parameter outside its range raises InvalidInput that names it."""
    with pytest.raises(InvalidInput, match=what):
        call([[0.5, 0.25, 0.25], [0.125, 0.5, 0.375]])


@pytest.mark.parametrize("measure", [*MEASURES.values(), audit])
def test_bad_channels_and_graphs_are_refused(measure):
    """A matrix that is no channel, a graph with an unknown node and a graph that is none raise InvalidInput."""
    with pytest.raises(InvalidInput, match="sum to 1"):
        measure([[0.5, 0.4], [0.5, 0.5]])
    with pytest.raises(InvalidInput, match="policy graph"):
        measure(np.eye(2), graph=nx.Graph([(0, 7)]))
    with pytest.raises(InvalidInput, match="policy graph"):
        measure(np.eye(2), graph=[(0, 1)])


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_capacity_bounded_measures_keep_the_contract_inside_their_class(divergence):
    """Bounded adversaries: never above the unrestricted value, zero on constants, convex, and closed inside H."""
    channels, rng = random_channels(2, m=6)
    y = rng.standard_normal(6)
    full = np.eye(6)
    for q in channels[:1]:
        found = capacity_bounded(q, y, divergence)
        everyone = capacity_bounded(q, full, divergence)
        assert 0 < found.lower <= found.value
        assert found.lower <= capacity_bounded(q, Polynomial(y, 2), divergence).value
        assert found.lower <= everyone.value
        assert close(everyone, capacity_bounded(q, Polynomial(y, 5), divergence), 1e-9)
        # [CIM, Thm 1]: merging outputs and keeping the feature of the merged ones composes inside H
        groups = [[0, 1], [2, 3], [4, 5]]
        step = np.repeat([0.0, 1.0, 5.0], 2)
        merged = np.stack([q[:, g].sum(axis=1) for g in groups], axis=1)
        assert close(capacity_bounded(merged, [0.0, 1.0, 5.0], divergence), capacity_bounded(q, step, divergence), 1e-9)
        assert close(capacity_bounded(q, 3 * y - 7, divergence), found, 1e-9)
        order = rng.permutation(6)
        assert close(capacity_bounded(q[:, order], y[order], divergence), found, 1e-9)
        assert close(capacity_bounded(q, y, divergence, nx.complete_graph(4)), found, 1e-9)
    assert capacity_bounded(np.tile(channels[0][0], (3, 1)), y, divergence).value == 0
    a, b = channels[0], channels[1]
    mixed = capacity_bounded(0.4 * a + 0.6 * b, y, divergence).lower
    values = capacity_bounded(a, y, divergence).value, capacity_bounded(b, y, divergence).value
    assert mixed <= max(values)  # [CIM, Thm 2]
    if not isinstance(divergence, RestrictedRenyi):
        assert mixed <= 0.4 * values[0] + 0.6 * values[1] + 1e-12


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_post_processing_outside_the_class_can_raise_a_capacity_bounded_value(divergence):
    """Two laws with equal means are alike to affine adversaries, until the report is squared [CIM, section 4]."""
    q = [[0.5, 0.0, 0.5], [0.25, 0.5, 0.25]]
    assert capacity_bounded(q, [-1, 0, 1], divergence).value <= 1e-7
    assert capacity_bounded(q, np.square([-1, 0, 1]), divergence).lower > 0.1
