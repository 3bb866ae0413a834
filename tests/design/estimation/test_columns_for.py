import itertools
import math

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    Box,
    COptimal,
    DOptimal,
    FisherInformation,
    LocalDP,
    MutualInformation,
    TotalVariation,
    optimal_channel,
)
from ldpopt.design.estimation.policy import PolicyColumns, columns_for
from ldpopt.design.estimation.staircase import StaircaseColumns
from ldpopt.design.patterns.policy import policy_limits
from ldpopt.errors import InvalidInput

PRIOR = np.array([0.4, 0.25, 0.2, 0.1, 0.05])


def path_columns(k, epsilon):
    """The vertices of a path's cone: every step up or down by epsilon."""
    steps = np.array(list(itertools.product([-epsilon, epsilon], repeat=k - 1)))
    return np.exp(np.hstack([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)]))


def least_sum_of_variances(columns, p):
    """min tr(J^-1) - 1 p.p by a program of its own: weights theta, J = sum theta S S^T / (S.p)."""
    k = len(p)
    theta = cp.Variable(len(columns), nonneg=True)
    information = columns.T @ cp.diag(cp.multiply(1 / (columns @ p), theta)) @ columns
    cost = cp.sum([cp.matrix_frac(one, information) for one in np.eye(k)])
    cp.Problem(cp.Minimize(cost), [columns.T @ theta == 1]).solve(solver="CLARABEL")
    return float(cost.value) - float(p @ p)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.7, 1.5])
def test_a_path_graph_is_designed_to_the_optimum_over_all_its_vertices(k, epsilon):
    """The design for neighbours that must be indistinguishable is the optimum over the cone's 2^(k-1) vertices."""
    p = PRIOR[:k] / PRIOR[:k].sum()
    constraint = LocalDP(epsilon, nx.path_graph(k))
    design = optimal_channel(FisherInformation(p), constraint)
    assert design.value == pytest.approx(least_sum_of_variances(path_columns(k, epsilon), p), rel=1e-6)
    assert design.certified is True
    assert type(design.lower_bound) is float
    assert design.certificate.verify()
    assert constraint.measure(design.channel).value <= epsilon
    if k > 2:
        assert design.value < optimal_channel(FisherInformation(p), LocalDP(epsilon)).value


@pytest.mark.parametrize("criterion", [AOptimal(), COptimal([1, 0, 0, 0]), DOptimal()], ids=repr)
@pytest.mark.parametrize("eta", [1.0, 0.25])
def test_the_complete_graph_is_plain_local_dp(criterion, eta, monkeypatch):
    """Between all inputs the graph changes nothing, be it seen as plain or by its listed extreme columns."""
    p = np.array([0.4, 0.3, 0.2, 0.1])
    utility = FisherInformation(p, criterion)
    plain = optimal_channel(utility, [LocalDP(1.0), TotalVariation(eta)])
    graph = nx.complete_graph(4)
    assert isinstance(columns_for(utility, [LocalDP(1.0, graph)])[0], StaircaseColumns)
    made = optimal_channel(utility, [LocalDP(1.0, graph), TotalVariation(eta)])
    assert made.value == pytest.approx(plain.value, rel=1e-8)
    monkeypatch.setattr(
        "ldpopt.design.estimation.policy.StaircaseColumns",
        lambda k, epsilon, *_: PolicyColumns(np.where(np.eye(k) > 0, 0.0, epsilon), has_order_cuts=True),
    )
    listed = optimal_channel(utility, [LocalDP(1.0, graph), TotalVariation(eta)])
    assert listed.value == pytest.approx(plain.value, rel=1e-6)
    assert plain.certified
    assert listed.certified


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    "graph",
    [
        nx.cycle_graph(5),
        nx.star_graph(4),
        nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 4)]),
        nx.Graph([(0, 1), (2, 3), (3, 4)]),
    ],
    ids=["cycle", "star", "one way", "two parts"],
)
def test_no_random_channel_within_the_policy_beats_the_bound(graph):
    """Mixtures of random channels within a policy graph, with total variation capped, stay above the proved bound."""
    rng = np.random.default_rng(8)
    constraints = [LocalDP(0.9, graph), TotalVariation(0.35)]
    utility = FisherInformation(PRIOR)
    design = optimal_channel(utility, constraints)
    assert design.certified
    assert design.certificate.verify()
    assert all(c.measure(design.channel).value <= c.bound for c in constraints)
    heights = columns_for(utility, constraints)[0].start()
    for _ in range(15):
        theta = cp.Variable(len(heights), nonneg=True)
        rows = np.exp(heights).T @ theta == 1
        cp.Problem(cp.Minimize(rng.random(len(heights)) @ theta), [rows]).solve(solver="HIGHS")
        channel = np.exp(heights).T * np.maximum(theta.value, 0)
        channel = Channel(channel / channel.sum(axis=1, keepdims=True))
        reach = float(TotalVariation(1.0).measure(channel))
        channel = channel.erase(max(0.0, 1 - 0.35 / reach)) if reach > 0 else channel
        assert utility.value(channel) >= design.lower_bound


def test_graphs_use_the_input_labels():
    """Graphs speak of the input labels, and minimax designs keep to them."""
    labels = ("low", "middle", "high")
    graph = nx.path_graph(3)
    graph = nx.relabel_nodes(graph, dict(enumerate(labels)))
    utility = FisherInformation([0.5, 0.3, 0.2], neighbourhood=Box(0.1), inputs=labels)
    design = optimal_channel(utility, LocalDP(1.0, graph))
    assert design.certified
    assert design.channel.inputs == labels
    assert LocalDP(1.0, graph).measure(design.channel).value <= 1.0


def test_constraints_on_the_same_inputs_add_up():
    """Of several limits between two inputs the least counts, along paths, too."""
    graph = nx.path_graph(3)
    limits = policy_limits([LocalDP(1.5), LocalDP(0.5, graph), TotalVariation(0.5)], range(3))
    assert limits[0, 2] == pytest.approx(1.0)
    assert limits[0, 1] == pytest.approx(0.5)


def test_shares_of_zero_need_paths():
    """A category that nobody may have, told apart from the others for sure, has no finite information."""
    apart = LocalDP(1.0, nx.Graph([(0, 1), (2, 3)]))
    for utility in (FisherInformation([0.5, 0.5, 0, 0]), FisherInformation([0.25] * 4, neighbourhood=Box(0.1))):
        with pytest.raises(InvalidInput, match="policy graph: expected a path"):
            optimal_channel(utility, apart)


def test_a_cap_on_total_variation_that_cannot_bind_under_a_policy():
    """The note names the least eta that no channel within the graph can exceed."""
    design = optimal_channel(FisherInformation([0.5, 0.3, 0.2]), [LocalDP(0.5, nx.path_graph(3)), TotalVariation(0.8)])
    assert f"at least {math.tanh(0.5):.6g}" in design.note


@pytest.mark.parametrize(
    ("graph", "gap"), [(nx.path_graph(10), 1e-4), (nx.cycle_graph(8), 0.03)], ids=["path", "cycle"]
)
def test_searched_columns_come_to_the_design_of_the_listed_ones(graph, gap, monkeypatch):
    """Where the extreme columns can be listed, local search reaches the same optimum, and its bound is below it."""
    p = 1 / np.arange(1, len(graph) + 1)
    utility = FisherInformation(p / p.sum())
    listed = optimal_channel(utility, LocalDP(1.0, graph))
    monkeypatch.setattr("ldpopt.design.estimation.policy.too_many", lambda *_: True)
    searched = optimal_channel(utility, LocalDP(1.0, graph))
    assert listed.certified
    assert searched.value == pytest.approx(listed.value, rel=1e-6)
    assert searched.lower_bound <= listed.value
    assert searched.relative_gap <= gap
    assert searched.certificate.verify()


@pytest.mark.full
def test_a_path_over_20_incomes_is_designed():
    """A path with 2^19 extreme columns, too many to list, has a design and a bound within 1e-3 of it."""
    graph = nx.path_graph(20)
    p = 1 / np.arange(1, 21)
    design = optimal_channel(FisherInformation(p / p.sum(), COptimal(np.arange(20.0))), LocalDP(2.0, graph))
    assert LocalDP(2.0, graph).measure(design.channel).value <= 2.0
    assert design.relative_gap <= design.tolerance == 1e-3
    assert design.certificate.verify()
    assert "relaxation of the columns of the policy graph" in design.certificate.argument


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("criterion", "eta"),
    [(AOptimal(), None), (AOptimal(np.arange(1.0, 13.0)), 0.1), (DOptimal(), None), (DOptimal(), 0.1)],
    ids=repr,
)
def test_listed_columns_are_weighed_by_newton_as_by_a_cone_program(criterion, eta, monkeypatch):
    """Of thousands of columns the optimum is that of the other program, and certified."""
    graph = nx.path_graph(8) if eta else nx.random_regular_graph(4, 10, seed=1)
    k = len(graph)
    if isinstance(criterion, AOptimal) and criterion.weights is not None:
        criterion = AOptimal(np.arange(1.0, k + 1))
    p = np.random.default_rng(k).dirichlet(np.ones(k))
    constraints = [LocalDP(1.0, graph), *([TotalVariation(eta)] if eta else [])]
    utility = FisherInformation(p, criterion)
    design = optimal_channel(utility, constraints)
    assert design.certified
    assert "extreme columns" in design.method
    monkeypatch.setattr("ldpopt.design.estimation.program_mixture.by_newton", lambda *_: False)
    assert design.value == pytest.approx(optimal_channel(utility, constraints).value, rel=1e-5)


def test_a_graph_without_edges_leaves_the_answers_free():
    """Where nothing must be indistinguishable the design discloses all; under a cap on total variation, less."""
    p = np.array([0.5, 0.3, 0.2])
    utility, free = FisherInformation(p), LocalDP(1.0, nx.empty_graph(3))
    design = optimal_channel(utility, free)
    assert design.value == pytest.approx(utility.value_without_privacy, rel=1e-7)
    assert design.certified
    capped = optimal_channel(utility, [free, TotalVariation(0.4)])
    assert capped.certified
    assert utility.value_without_privacy < capped.lower_bound
    assert capped.value <= utility.value(Channel(np.eye(3)).erase(0.6)) * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 30.0, 200.0])
def test_graphs_are_solved_at_extreme_epsilons(epsilon):
    """Entries from e^(-1400) to 1, which floats tell from 0 or not, and columns that differ by a thousandth."""
    p = np.random.default_rng(8).dirichlet(np.ones(8))
    constraint = LocalDP(epsilon, nx.path_graph(8))
    for utility in (FisherInformation(p), MutualInformation(p)):
        design = optimal_channel(utility, constraint)
        assert design.certified
        assert design.verify()
    assert design.value <= utility.value_without_privacy
