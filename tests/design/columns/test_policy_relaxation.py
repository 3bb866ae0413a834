import networkx as nx
import numpy as np
import pytest

from ldpopt.design import FisherInformation, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.columns.charges import Charges
from ldpopt.design.columns.choose import policy_limits
from ldpopt.design.columns.extreme import extreme_columns
from ldpopt.design.columns.policy import SearchedColumns
from ldpopt.design.columns.policy_relaxation import PolicyRelaxation
from ldpopt.design.columns.prices import Prices
from ldpopt.design.columns.relaxation import Relaxation
from ldpopt.design.programs.policy_relaxation import relax_policy
from ldpopt.enclosures import EXACT, FLOAT

GRAPHS = [nx.path_graph(6), nx.cycle_graph(6), nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])]


def priced(graph, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(6, 2.0))
    kernel = rng.normal(size=(5, 6))
    kernel -= np.outer(kernel.sum(axis=1), p)
    return p, kernel, policy_limits([LocalDP(0.8, graph)], range(6))


@pytest.mark.parametrize("graph", GRAPHS, ids=["path", "cycle", "one way"])
def test_no_column_pays_more_than_the_relaxation_says(graph):
    """At any multipliers and weights, the price of every extreme column is at most the violation."""
    p, kernel, limits = priced(graph, 3)
    gram = kernel.T @ kernel
    values = np.exp(extreme_columns(limits, ordered=True))
    rows, pairs, relaxed = relax_policy(gram, p, limits, 0.2)
    rng = np.random.default_rng(4)
    for wrong in (0.0, 0.3, 3.0):
        off = PolicyRelaxation(np.maximum(relaxed.weights + wrong * rng.normal(size=relaxed.weights.shape), 0.0))
        moved = rows + wrong * rng.normal(size=6)
        caps = np.triu(pairs + wrong * rng.random((6, 6)), 1)
        prices = Prices(gram, p, moved, caps, np.exp(0.8))
        for arithmetic in (FLOAT, EXACT):
            charges = Charges.of(arithmetic.of(kernel), p, moved, caps)
            assert prices.gains(values).max() <= off.most(charges, limits) < np.inf


@pytest.mark.parametrize("graph", GRAPHS, ids=["path", "cycle", "one way"])
def test_the_relaxed_bound_is_never_below_the_listed_one(graph):
    """What sum_y w_y |K u_y|^2 can be, by the relaxation, is at least its optimum over the listed columns."""
    import cvxpy as cp

    p, kernel, limits = priced(graph, 5)
    gram = kernel.T @ kernel
    values = np.exp(extreme_columns(limits))
    theta = cp.Variable(len(values), nonneg=True)
    earned = np.einsum("nx,nx->n", values @ gram, values) / (values @ p)
    most = cp.Problem(cp.Maximize(earned @ theta), [values.T @ theta == 1]).solve(solver="HIGHS")
    rows, pairs, relaxed = relax_policy(gram, p, limits)
    bound = rows.sum() + relaxed.most(Charges.of(FLOAT.of(kernel), p, rows, pairs), limits)
    assert most <= bound <= 1.2 * most


def test_weights_of_another_graph_prove_nothing():
    """A certificate whose relaxation does not fit its constraints bounds nothing."""
    p, kernel, limits = priced(GRAPHS[0], 6)
    rows, pairs, relaxed = relax_policy(kernel.T @ kernel, p, limits)
    charges = Charges.of(FLOAT.of(kernel), p, rows, pairs)
    assert PolicyRelaxation(relaxed.weights[1:]).most(charges, limits) == np.inf
    assert PolicyRelaxation(-relaxed.weights - 1).most(charges, limits) == np.inf
    assert PolicyRelaxation(relaxed.weights * np.nan).most(charges, limits) == np.inf
    assert SearchedColumns(limits).most(charges, Relaxation(np.zeros((1, 6)), np.zeros(1))) == np.inf
    assert SearchedColumns(limits).most(charges, None) == np.inf


def test_a_cap_on_total_variation_sharpens_the_bound(monkeypatch):
    """With a cap on total variation the bound is below the optimum, and above the bound of the graph alone."""
    graph = LocalDP(1.0, nx.path_graph(4))
    constraints = [graph, TotalVariation(0.3)]
    utility = FisherInformation([0.4, 0.3, 0.2, 0.1])
    listed = optimal_channel(utility, constraints)
    monkeypatch.setattr("ldpopt.design.columns.choose._too_many", lambda *_: True)
    searched, alone = optimal_channel(utility, constraints), optimal_channel(utility, graph)
    assert 1.02 * alone.lower_bound <= searched.lower_bound <= listed.lower_bound
    assert searched.value == pytest.approx(listed.value, rel=1e-4)
    assert not searched.certified
    assert "relaxation" in searched.note
