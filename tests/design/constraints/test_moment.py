"""Concentrated privacy as a design constraint."""

import math

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import (
    ConcentratedLDP,
    Divergence,
    ExpectedLoss,
    LocalDP,
    Outputs,
    RenyiLDP,
    TangentExchange,
    optimal_channel,
)
from ldpopt.divergences import JENSEN_SHANNON, KL, LE_CAM
from ldpopt.errors import InvalidInput
from ldpopt.privacy import renyi, zcdp


def pair(k, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))


def test_two_answers_by_brute_force():
    """For two answers and two reports the best channel is found on a fine grid of both levels."""
    rho, p0, p1 = 0.5, np.array([0.8, 0.2]), np.array([0.3, 0.7])
    design = optimal_channel(Divergence(KL, p0, p1), ConcentratedLDP(rho))
    best = 0.0
    for a in np.linspace(0.5, 0.999, 6):
        low, high = 0.0, a
        for _ in range(14):
            b = (low + high) / 2
            kept = float(zcdp([[a, 1 - a], [b, 1 - b]])) <= rho
            low, high = (low, b) if kept else (b, high)
        for q in ([[a, 1 - a], [high, 1 - high]], [[high, 1 - high], [a, 1 - a]]):
            best = max(best, Divergence(KL, p0, p1).value(q))
    assert best <= design.upper_bound * (1 + 1e-9)
    assert design.value >= best * (1 - 1e-6)
    assert design.guarantees[0].value <= rho
    assert design.relative_gap <= 1e-5
    assert design.certificate.verify()


@pytest.mark.full
def test_every_order_holds():
    """The design's divergence of each order is within the order times rho, and the bound is below each order's own."""
    utility = Divergence(JENSEN_SHANNON, *pair(4, 4))
    design = optimal_channel(utility, ConcentratedLDP(0.3))
    for order in (1, 1.5, 2, 4, 16, 64):
        assert float(renyi(design.channel, order)) <= 0.3 * order * (1 + 1e-9)
    assert float(zcdp(design.channel)) <= 0.3
    for order in (2, 4):
        own = optimal_channel(utility, RenyiLDP(float(order), 0.3 * order))
        assert design.value <= own.upper_bound * (1 + 1e-9)
    assert design.relative_gap <= 1e-4
    assert design.certificate.verify()


def test_interior_orders_are_found():
    """A channel that meets the posed orders and exceeds another gives that order to the next program."""
    rare = np.array([[0.95, 0.05], [0.999, 0.001]])
    constraint = ConcentratedLDP(float(zcdp(rare)) * 0.999)
    tighter = constraint.tightened(rare)
    assert tighter is not None
    assert len(tighter.orders) == 2
    added = max(tighter.orders)
    assert added > 1
    assert float(renyi(rare, added)) / added > constraint.rho
    assert ConcentratedLDP(float(zcdp(rare))).tightened(rare) is None


@pytest.mark.parametrize("inputs", [2, 5, 12])
def test_the_added_order_is_the_worst(inputs):
    """The added order is the one that is exceeded most: it reaches the supremum over all orders to a share of 1e-8."""
    rng = np.random.default_rng(inputs)
    for _ in range(5):
        matrix = 0.9 * rng.dirichlet(np.full(6, 0.7), inputs) + 0.1 / 6
        worst = zcdp(matrix)
        tighter = ConcentratedLDP(0.9 * float(worst), (12.0,)).tightened(matrix)
        assert tighter is not None
        (order,) = set(tighter.orders) - {12.0}
        assert float(renyi(matrix, order)) / order >= worst.lower * (1 - 1e-8)


@pytest.mark.full
def test_designs_of_many_orders_are_sharp():
    """Where several orders bind at once, the program has each of them to enough digits that the design is certified."""
    design = optimal_channel(Divergence(KL, *pair(4, 0)), ConcentratedLDP(1.0))
    assert len(design.method.split("orders")[1].split(",")) >= 3
    assert design.certified
    assert design.relative_gap <= 2e-7


@pytest.mark.full
def test_pure_privacy_is_concentrated():
    """epsilon-LDP channels are (epsilon tanh(epsilon/2))-zCDP, so that the zCDP optimum is not smaller [GI; BS]."""
    utility = Divergence(KL, *pair(2, 9))
    epsilon = 0.8
    rho = epsilon * math.tanh(epsilon / 2)
    pure = optimal_channel(utility, LocalDP(epsilon))
    assert float(zcdp(pure.channel)) <= rho * (1 + 1e-9)
    assert optimal_channel(utility, ConcentratedLDP(rho)).upper_bound >= pure.value * (1 - 1e-9)
    both = optimal_channel(utility, [LocalDP(epsilon), ConcentratedLDP(rho * 0.5)], certify=False)
    assert both.value < optimal_channel(utility, LocalDP(epsilon)).value
    assert [g.value <= c.bound for g, c in zip(both.guarantees, both.constraints, strict=True)] == [True, True]


@pytest.mark.full
def test_no_random_channel_does_better():
    """Random channels mixed until they are concentrated stay below the bound."""
    rng = np.random.default_rng(2)
    utility = Divergence(KL, *pair(3, 12))
    constraint = ConcentratedLDP(0.2)
    design = optimal_channel(utility, constraint)
    for _ in range(5):
        raw = rng.dirichlet(np.full(3, 0.5), 3)
        mean = raw.mean(axis=0)
        low, high = 0.0, 1.0
        for _ in range(10):
            middle = (low + high) / 2
            kept = constraint.measure(Channel(middle * raw + (1 - middle) * mean)).value <= constraint.bound
            low, high = (middle, high) if kept else (low, middle)
        assert utility.value(low * raw + (1 - low) * mean) <= design.upper_bound


@pytest.mark.full
def test_concentrated_privacy_combines_with_budgets_and_losses():
    """Concentrated privacy combines with a budget of outputs and with a linear utility."""
    prior = np.array([0.6, 0.4])
    for utility, caps in (
        (Divergence(KL, *pair(2, 3)), [ConcentratedLDP(0.2), Outputs(1)]),
        (ExpectedLoss(prior, 1 - np.eye(2)), [ConcentratedLDP(1.0)]),
    ):
        design = optimal_channel(utility, caps)
        assert design.guarantees[0].value <= caps[0].rho
        assert design.value <= design.upper_bound


@pytest.mark.full
@pytest.mark.parametrize(
    ("f", "cap", "method", "certified"),
    [(KL, 1e-4, None, True), (KL, 1e-6, TangentExchange(rounds=1), False), (LE_CAM, 1e-4, None, True)],
)
def test_infinite_utilities_have_designs_under_small_caps(f, cap, method, certified):
    """Where answers rule a hypothesis out, the design meets its cap, its proof holds, and it is certified where stated.

    For the other, which a round tells as well as many, the bound that is found today is far above the value.
    """
    design = optimal_channel(Divergence(f, [0.5, 0.5, 0.0], [0.0, 0.2, 0.8]), RenyiLDP(2.0, cap), method=method)
    assert design.guarantees[0].value <= cap
    assert design.verify()
    assert design.value <= design.upper_bound
    assert design.certified or not certified


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan, "1"])
def test_malformed_levels_are_refused(bad):
    """rho is a positive number."""
    with pytest.raises(InvalidInput, match="rho"):
        ConcentratedLDP(bad)


@pytest.mark.parametrize("orders", [(), (0.5,), (math.inf,), (1000.0,)])
def test_malformed_orders_are_refused(orders):
    """Orders are finite, from 1, and small enough for float64."""
    with pytest.raises(InvalidInput, match="order"):
        ConcentratedLDP(1.0, orders)


@pytest.mark.parametrize("bad", [dict(rounds=0), dict(accuracy=0.0), dict(rounds=1.5)])
def test_malformed_methods_are_refused(bad):
    """Rounds are a positive integer, accuracy is positive."""
    with pytest.raises(InvalidInput):
        TangentExchange(**bad)


def test_the_peak_of_a_pair_is_seen_beside_a_higher_one_of_another():
    """Between two orders of the grid, where the largest rate of all pairs has no peak: it was passed over, and the
    channel, which exceeds rho by 5e-6 of itself there, lost as much when it was repaired."""
    q = [
        [0.272051662, 0.004665378, 0.000972288, 0.653757573, 0.031053818, 0.03749928],
        [0.272051662, 0.004665378, 0.000972288, 0.653757573, 0.031053818, 0.03749928],
        [0.035564745, 0.004665378, 0.000972288, 0.888047985, 0.035215846, 0.035533758],
        [0.037319788, 0.001449854, 0.000972288, 0.679087029, 0.244176801, 0.036994239],
        [0.037761251, 0.001093387, 0.000382252, 0.653757573, 0.035215846, 0.271789692],
    ]
    posed = ConcentratedLDP(0.491149505, (1.908452201, 1.922744766, 1.981460298, 2.018729389, 2.093545586, 2.28983971))
    rows = np.array(q) / np.sum(q, axis=1, keepdims=True)
    assert posed.measure(Channel(rows)).value > posed.rho * (1 + 5e-6)
    tighter = posed.tightened(rows)
    (order,) = set(tighter.orders) - set(posed.orders)
    assert renyi(Channel(rows), order).value > order * posed.rho * (1 + 5e-6)
