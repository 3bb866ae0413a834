"""What constraints imply: total variation, ratios of a column, moments, and one another."""

import math

import mpmath
import networkx as nx
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import ApproximateLDP, ConcentratedLDP, LocalDP, RenyiLDP, TotalVariation, TradeOff
from ldpopt.design.constraints.base import implied, symmetric, variation_cap
from ldpopt.numbers.enclosures import EXACT, FLOAT
from ldpopt.privacy import TradeOffCurve, total_variation

CONSTRAINTS = [
    LocalDP(0.8),
    ApproximateLDP(0.5, 0.1),
    ApproximateLDP(0.5, 0.0),
    TotalVariation(0.3),
    RenyiLDP(1.0, 0.2),
    RenyiLDP(3.0, 0.2),
    RenyiLDP(math.inf, 0.6),
    ConcentratedLDP(0.1),
    TradeOff(TradeOffCurve.of_pair([0.1, 0.5, 0.3, 0.1], [0.0, 0.3, 0.5, 0.2])),
    LocalDP(0.4, nx.path_graph(3)),
    LocalDP(0.4, nx.Graph([(0, 1)])),
]


def random_edge_channel(constraint, seed):
    """A random channel on the edge of the constraint."""
    raw = np.random.default_rng(seed).dirichlet(np.full(4, 0.4), 3)
    mean, low, high = raw.mean(axis=0), 0.0, 1.0
    for _ in range(25):
        middle = (low + high) / 2
        kept = constraint.measure(Channel(middle * raw + (1 - middle) * mean)).value <= constraint.bound
        low, high = (middle, high) if kept else (low, middle)
    return low * raw + (1 - low) * mean


@pytest.mark.parametrize("number", range(len(CONSTRAINTS)))
def test_channels_within_a_constraint_meet_the_implied_caps(number):
    """Total variation, log-ratios of columns and moments of channels on the edge are below the caps."""
    constraint = CONSTRAINTS[number]
    variation = min(variation_cap([constraint], arithmetic).upper for arithmetic in (FLOAT, EXACT))
    spread = constraint.spread(range(3), EXACT)
    for seed in range(3):
        matrix = random_edge_channel(constraint, seed)
        assert total_variation(Channel(matrix)).lower <= variation
        if spread is not None:
            assert np.log(matrix.max(axis=0) / matrix.min(axis=0)).max() <= spread.upper * (1 + 1e-12)
        for order in (1.0, 1.5, 2.0, 3.0, 8.0):
            cap = constraint.moment(order, EXACT)
            if cap is not None:
                for a in matrix:
                    for b in matrix:
                        moment = np.sum(a * np.log(a / b)) if order == 1 else np.sum(a**order * b ** (1 - order)) - 1
                        assert moment <= cap.upper * (1 + 1e-9)


def test_implied_total_variation_agrees_with_formulas():
    """tanh(epsilon/2) [GI, Prop 2], delta + (1 - delta) tanh(epsilon/2) [GI, eq. 7], Pinsker; in 40 digits."""
    with mpmath.workdps(40):
        half = mpmath.tanh(mpmath.mpf(0.8) / 2)
        exact = {
            LocalDP(0.8): half,
            RenyiLDP(math.inf, 0.8): half,
            ApproximateLDP(0.8, 0.25): mpmath.mpf("0.25") + mpmath.mpf("0.75") * half,
            TotalVariation(0.25): mpmath.mpf("0.25"),
            RenyiLDP(2.0, 0.5): mpmath.mpf("0.5"),
            ConcentratedLDP(0.5): mpmath.mpf("0.5"),
        }
        for constraint, expected in exact.items():
            for arithmetic in (FLOAT, EXACT):
                found = constraint.variation(arithmetic)
                assert found.lower <= expected <= found.upper
                assert found.upper - found.lower < 1e-14


def test_the_spread_is_epsilon_times_the_diameter_of_the_graph():
    """A column's ratios along a path multiply: the spread is epsilon times the weighted diameter, None where cut."""
    weighted = nx.Graph()
    weighted.add_weighted_edges_from([(0, 1, 0.1), (1, 2, 0.2), (0, 2, 5.0)])
    assert LocalDP(2.0, weighted).spread(range(3), EXACT).upper == pytest.approx(0.6, rel=1e-12)
    assert LocalDP(2.0, weighted).spread(range(3), EXACT).lower >= 0.6 * (1 - 1e-15)
    assert LocalDP(2.0, weighted).spread(range(4), EXACT) is None
    assert LocalDP(1.0, nx.DiGraph([(0, 1), (1, 2)])).spread(range(3), FLOAT) is None
    assert LocalDP(1.0, nx.DiGraph([(0, 1), (1, 2), (2, 0)])).spread(range(3), FLOAT).upper == pytest.approx(2.0)


def test_which_constraint_says_as_much():
    """A constraint implies itself, zCDP every order of its own, a Rényi divergence the lower orders."""
    for constraint in CONSTRAINTS:
        assert implied((LocalDP(3.0), constraint), constraint)
    assert implied((ConcentratedLDP(0.1),), ConcentratedLDP(0.1, (1.0, 2.5)))
    assert implied((ConcentratedLDP(0.1),), ConcentratedLDP(0.2))
    assert not implied((ConcentratedLDP(0.1),), ConcentratedLDP(np.nextafter(0.1, 0)))
    assert implied((ConcentratedLDP(0.25),), RenyiLDP(2.0, 0.5))
    assert not implied((ConcentratedLDP(0.25),), RenyiLDP(2.0, np.nextafter(0.5, 0)))
    assert not implied((ConcentratedLDP(0.25),), RenyiLDP(math.inf, 100.0))
    assert implied((RenyiLDP(3.0, 0.2),), RenyiLDP(2.0, 0.2))
    assert not implied((RenyiLDP(2.0, 0.2),), RenyiLDP(3.0, 0.2))
    assert not implied((LocalDP(1.0, nx.path_graph(3)),), LocalDP(1.0))
    assert not implied((), LocalDP(1.0))


def test_a_users_constraint_is_not_taken_for_symmetric():
    """Inputs are not merged under a constraint that does not declare its symmetry."""

    class Own:
        bound = 1.0

    assert symmetric([LocalDP(1.0), TotalVariation(0.1)])
    assert not symmetric([LocalDP(1.0), Own()])
    assert not symmetric([LocalDP(1.0, nx.path_graph(2))])
