"""Tests of `ldpopt.design.estimation.policy`: what a local search finds under a policy graph."""

import networkx as nx
import numpy as np
import pytest

from ldpopt.design import LocalDP
from ldpopt.design.estimation.policy import climb, finite_limits, first_columns
from ldpopt.design.estimation.prices import Prices
from ldpopt.design.patterns.policy import Grid, extreme_steps, policy_limits


def extreme_columns(limits, ordered=False):
    """Logarithms (n, k) of the extreme columns, in nats."""
    grid = Grid.round_up(limits)
    return extreme_steps(grid, ordered) * grid.unit


GRAPHS = [nx.path_graph(8), nx.cycle_graph(7), nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 4)]), nx.star_graph(6)]


@pytest.mark.parametrize("graph", GRAPHS, ids=["path", "cycle", "one way", "star"])
def test_every_column_met_is_within_the_graph_and_the_best_is_the_best_of_all(graph):
    """Columns that the search meets keep to the limits, and none of the listed extreme columns is priced higher."""
    k = len(graph)
    rng = np.random.default_rng(7)
    limits = policy_limits([LocalDP(0.6, graph)], range(k))
    listed = np.exp(extreme_columns(limits))
    kernel, p = rng.normal(size=(k, k)), rng.dirichlet(np.full(k, 3.0))
    prices = Prices(kernel.T @ kernel, p, rng.normal(size=k), np.zeros((k, k)), np.exp(0.6))
    start = first_columns(limits)
    met = climb(limits, prices, start, 50, -np.inf)
    for heights in (start, met):
        apart = heights[:, :, None] - heights[:, None, :]
        assert (apart <= finite_limits(limits) + 1e-9).all()
        assert heights.max(axis=1) == pytest.approx(0.0)
    gains = prices.gains(np.exp(met))
    assert (np.diff(gains) <= 0).all()
    assert gains[0] == pytest.approx(prices.gains(listed).max(), rel=1e-6)


def test_the_first_columns_can_be_mixed_to_a_constant():
    """The flat column, which says nothing, is among them, and so is each input's peak."""
    limits = policy_limits([LocalDP(1.0, nx.path_graph(5))], range(5))
    rows = {tuple(row) for row in first_columns(limits).tolist()}
    assert (0.0,) * 5 in rows
    assert (-2.0, -1.0, 0.0, -1.0, -2.0) in rows
    assert (0.0, -1.0, -2.0, -1.0, 0.0) in rows
