"""Tests of `ldpopt.design.estimation.relaxation`: no eigenvalue, and no column's gain, is beyond the bound."""

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from ldpopt.design import FisherInformation, LocalDP, TotalVariation, optimal_channel
from ldpopt.design.estimation.policy import SearchedColumns
from ldpopt.design.estimation.prices import Charges, Prices
from ldpopt.design.estimation.program import relax_patterns, relax_policy
from ldpopt.design.estimation.relaxation import PolicyRelaxation, Relaxation, eigenvalue_lower_bound
from ldpopt.design.patterns.policy import Grid, extreme_steps, policy_limits
from ldpopt.numbers.enclosures import EXACT, FLOAT


def extreme_columns(limits, ordered=False):
    """Logarithms (n, k) of the extreme columns, in nats."""
    grid = Grid.round_up(limits)
    return extreme_steps(grid, ordered) * grid.unit


def is_semidefinite(matrix, shift):
    """Whether matrix + shift is positive definite, by elimination in fractions."""
    a = [[Fraction(x) for x in row] for row in matrix.tolist()]
    n = len(a)
    for i in range(n):
        a[i][i] += Fraction(shift)
    for i in range(n):
        if a[i][i] <= 0:
            return False
        for j in range(i + 1, n):
            share = a[j][i] / a[i][i]
            for c in range(i, n):
                a[j][c] -= share * a[i][c]
    return True


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_no_eigenvalue_is_below(seed, scale):
    """Elimination in fractions proves what the factorisation in floats claims, to its own size of rounding."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(8, 5 + seed % 4)) * 10.0 ** rng.uniform(-6, 0, 8)[:, None]
    matrix = (root @ root.T) * scale - (seed % 2) * scale * 1e-3 * np.eye(8)
    matrix = (matrix + matrix.T) / 2
    found = eigenvalue_lower_bound(FLOAT.of(matrix))
    assert -math.inf < found <= 0
    assert is_semidefinite(matrix, -found)
    near = min(float(np.linalg.eigvalsh(matrix)[0]), 0.0)
    assert found >= near - 1e-12 * np.trace(np.abs(matrix))


def test_the_bound_covers_the_uncertainty_of_entries():
    """Every matrix between the ends is above the bound, also of balls."""
    matrix = np.diag([1.0, 2.0, 3.0])
    wide = FLOAT.between(matrix - 0.25, matrix + 0.25)
    assert eigenvalue_lower_bound(wide) <= -0.75
    corner = matrix + 0.25 * np.array([[-1, -1, 1], [-1, -1, 1], [1, 1, -1.0]])
    assert np.linalg.eigvalsh(corner)[0] >= eigenvalue_lower_bound(wide)
    assert eigenvalue_lower_bound(EXACT.of(matrix)) >= -1e-13


def test_entries_that_are_not_numbers_have_no_bound():
    """NaN, inf and entries without ends prove nothing; zeros are zero."""
    for bad in (math.nan, math.inf, -math.inf):
        assert eigenvalue_lower_bound(FLOAT.of(np.array([[1.0, bad], [bad, 1.0]]))) == -math.inf
    assert eigenvalue_lower_bound(FLOAT.of(np.zeros((3, 3)))) == 0
    assert eigenvalue_lower_bound(FLOAT.of(np.array([[0.0, 1.0], [1.0, 0.0]]))) <= -1


def some_kernel(k, seed):
    rng = np.random.default_rng(seed)
    kernel, p = rng.normal(size=(3, k)), rng.dirichlet(np.ones(k))
    return kernel - np.outer(kernel.sum(axis=1), p), p


@pytest.mark.parametrize("eta", [None, 0.2])
def test_the_relaxation_covers_every_pattern(eta):
    """With relaxed multipliers no pattern is priced above the bound that is charged, which is next to nothing."""
    kernel, prior = some_kernel(8, 4)
    gram, ratio = kernel.T @ kernel, math.exp(1.2)
    rows, pairs, relaxed = relax_patterns(gram, prior, ratio, eta)
    assert pairs.any() == (eta is not None)
    most, _ = Prices(gram, prior, rows, pairs, ratio).best(0, math.inf)
    charges = Charges.from_kernel(FLOAT.of(kernel), prior, rows, pairs)
    charged = relaxed.gain_bound(charges, FLOAT.of(1.2))
    assert most <= charged <= 1e-4 * rows.sum()


@pytest.mark.parametrize("seed", range(5))
def test_any_numbers_give_a_sound_violation(seed):
    """Whatever the numbers of the classes are, no pattern's price is above the violation that they prove."""
    rng = np.random.default_rng(seed)
    kernel, prior = some_kernel(6, seed)
    rows, pairs = rng.normal(size=6), np.triu(rng.random((6, 6)), 1)
    most, _ = Prices(kernel.T @ kernel, prior, rows, pairs, math.exp(0.8)).best(0, math.inf)
    guessed = Relaxation(rng.normal(size=(3, 6)), np.abs(rng.normal(size=3)))
    for arithmetic in (FLOAT, EXACT):
        charges = Charges.from_kernel(arithmetic.of(kernel), prior, rows, pairs)
        assert most <= guessed.gain_bound(charges, arithmetic.of(0.8)) < math.inf


def test_bad_numbers_prove_no_bound():
    """Spans below zero, numbers that are missing, too many or not numbers bound nothing."""
    kernel, prior = some_kernel(4, 1)
    charges = Charges.from_kernel(FLOAT.of(kernel), prior, np.ones(4), np.zeros((4, 4)))
    fine = np.zeros((2, 4))
    for squares, spans in [
        (fine, [0.0, -1.0]),
        (fine, [0.0, math.nan]),
        (fine, [0.0]),
        (np.full((2, 4), math.inf), [0.0, 0.0]),
        (fine[:, :3], [0.0, 0.0]),
        ("none", [0.0, 0.0]),
        (np.zeros((9, 4)), np.zeros(9)),
        (np.zeros((0, 4)), np.zeros(0)),
    ]:
        assert Relaxation(squares, spans).gain_bound(charges, FLOAT.of(1.0)) == math.inf
    assert Relaxation(fine, np.zeros(2)).gain_bound(charges, FLOAT.of(1.0)) < math.inf


def test_the_bound_of_many_categories_knows_the_cap(monkeypatch):
    """The relaxed bound under a cap on total variation is below the optimum, and above that without the cap."""
    p = np.random.default_rng(6).dirichlet(np.ones(6))
    utility, cap = FisherInformation(p), [LocalDP(1.0), TotalVariation(0.2)]
    exact, free = optimal_channel(utility, cap), optimal_channel(utility, LocalDP(1.0))
    monkeypatch.setattr("ldpopt.design.estimation.staircase.MAX_INPUTS_ALL_PRICED", 4)
    relaxed = optimal_channel(utility, cap)
    assert relaxed.certificate.verify()
    assert free.value < relaxed.lower_bound <= exact.value * (1 + 1e-9)
    assert relaxed.value <= exact.value * (1 + 1e-3)


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
            charges = Charges.from_kernel(arithmetic.of(kernel), p, moved, caps)
            assert prices.gains(values).max() <= off.gain_bound(charges, limits) < np.inf


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
    bound = rows.sum() + relaxed.gain_bound(Charges.from_kernel(FLOAT.of(kernel), p, rows, pairs), limits)
    assert most <= bound <= 1.2 * most


def test_weights_of_another_graph_prove_no_bound():
    """A certificate whose relaxation does not fit its constraints bounds nothing."""
    p, kernel, limits = priced(GRAPHS[0], 6)
    rows, pairs, relaxed = relax_policy(kernel.T @ kernel, p, limits)
    charges = Charges.from_kernel(FLOAT.of(kernel), p, rows, pairs)
    assert PolicyRelaxation(relaxed.weights[1:]).gain_bound(charges, limits) == np.inf
    assert PolicyRelaxation(-relaxed.weights - 1).gain_bound(charges, limits) == np.inf
    assert PolicyRelaxation(relaxed.weights * np.nan).gain_bound(charges, limits) == np.inf
    assert SearchedColumns(limits).gain_bound(charges, Relaxation(np.zeros((1, 6)), np.zeros(1))) == np.inf
    assert SearchedColumns(limits).gain_bound(charges, None) == np.inf


def test_a_cap_on_total_variation_sharpens_the_bound(monkeypatch):
    """With a cap on total variation the bound is below the optimum, and above the bound of the graph alone."""
    graph = LocalDP(1.0, nx.path_graph(4))
    constraints = [graph, TotalVariation(0.3)]
    utility = FisherInformation([0.4, 0.3, 0.2, 0.1])
    listed = optimal_channel(utility, constraints)
    monkeypatch.setattr("ldpopt.design.estimation.policy.too_many", lambda *_: True)
    searched, alone = optimal_channel(utility, constraints), optimal_channel(utility, graph)
    assert 1.02 * alone.lower_bound <= searched.lower_bound <= listed.lower_bound
    assert searched.value == pytest.approx(listed.value, rel=1e-4)
    assert not searched.certified
    assert "relaxation" in searched.note
