import math

import mpmath as mp
import networkx as nx
import numpy as np
import pytest

from ldpopt.privacy import doeblin, maximal_leakage, mutual_information, total_variation


def test_doeblin_is_the_largest_erasure():
    """Q = c (1 row) + (1 - c) (another channel) for no c larger, and the Dobrushin coefficient is at most 1 - c."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = rng.dirichlet(np.ones(4), 3)
        c = doeblin(q)
        rest = (q - q.min(axis=0)) / (1 - c.value)
        assert rest.min() >= 0
        assert (rest.min(axis=0) == 0).all()
        assert total_variation(q).lower <= 1 - c.lower


def test_maximal_leakage_is_the_gain_of_a_guess():
    """exp(leakage) is the factor by which a report multiplies the chance to guess a uniform answer, at least."""
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(4), 3)
    guess = q.max(axis=0).sum() / 3
    assert math.exp(maximal_leakage(q).value) == pytest.approx(guess * 3, rel=1e-13)
    assert maximal_leakage(np.eye(5)).value == pytest.approx(math.log(5), rel=1e-14)


def test_a_graph_is_read_by_its_cliques():
    """On a path only adjacent inputs form sets that are compared jointly."""
    rng = np.random.default_rng(2)
    q = rng.dirichlet(np.ones(4), 3)
    path = nx.path_graph(3)
    assert doeblin(q, path).value == min(doeblin(q[:2]).value, doeblin(q[1:]).value)
    assert maximal_leakage(q, path).value == pytest.approx(
        max(maximal_leakage(q[:2]).value, maximal_leakage(q[1:]).value), rel=1e-14
    )
    assert maximal_leakage(q, path).value < maximal_leakage(q).value


def test_mutual_information_encloses_the_truth():
    """The value and lower enclose sum P Q log(Q/PQ) in 60-digit arithmetic; zeros and nearly equal rows included."""
    rng = np.random.default_rng(3)
    with mp.workdps(60):
        for n in range(40):
            q = rng.dirichlet(np.full(4, 0.7), 3)
            if n % 3 == 1:
                q = q[:1] * (1 + 1e-7 * rng.standard_normal((3, 4)))
            if n % 3 == 2:
                q = q * (rng.random((3, 4)) > 0.3) + np.eye(3, 4) * 0.1
            q, prior = q / q.sum(axis=1, keepdims=True), rng.dirichlet(np.ones(3))
            w = [mp.mpf(float(x)) for x in prior]
            w = [x / mp.fsum(w) for x in w]
            rows = [[mp.mpf(float(x)) / mp.fsum(map(mp.mpf, map(float, row))) for x in row] for row in q]
            mix = [mp.fsum(a * row[y] for a, row in zip(w, rows, strict=True)) for y in range(4)]
            truth = mp.fsum(
                a * row[y] * mp.log(row[y] / mix[y])
                for a, row in zip(w, rows, strict=True)
                for y in range(4)
                if row[y] > 0
            )
            found = mutual_information(q, prior)
            assert found.lower <= truth <= found.value
            assert found.value - found.lower <= 1e-13 * found.value + 1e-19
    assert mutual_information(np.eye(3), [0.5, 0.5, 0.0]).value == pytest.approx(math.log(2), rel=1e-14)
    assert mutual_information([[0.5, 0.5], [0.1, 0.9]], [1.0, 0.0]).value == 0


def test_what_is_measured_is_called_exact():
    """Mutual information and leakage are attained by the channel at hand; rows that are equal keep nothing."""
    q = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    for found in (mutual_information(q, [0.3, 0.7]), maximal_leakage(q), doeblin(q)):
        assert found.exact
        assert found.value - found.lower <= 1e-12
