""""""

import math

import mpmath
import mpmath as mp
import networkx as nx
import numpy as np
import pytest

from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.divergences import hockey_stick as e_gamma
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import (
    chi_squared_contraction,
    doeblin,
    hockey_stick_contraction,
    local_dp,
    maximal_leakage,
    mutual_information,
    total_variation,
)
from ldpopt.privacy.leakage import chi_squared_of_pairs


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


def test_measured_values_are_called_exact():
    """Mutual information and leakage are attained by the channel at hand; rows that are equal keep nothing."""
    q = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    for found in (mutual_information(q, [0.3, 0.7]), maximal_leakage(q), doeblin(q)):
        assert found.exact
        assert found.value - found.lower <= 1e-12


def test_chi_squared_contraction_is_the_worst_ratio():
    """No two input laws keep a larger share of their chi-squared or KL; a fine search on two inputs attains it."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = rng.dirichlet(np.full(4, 0.7), 3)
        found = chi_squared_contraction(q)
        best = 0.0
        for _ in range(300):
            p0, p1 = rng.dirichlet(np.full(3, 0.5), 2)
            for divergence in (CHI_SQUARED, KL):
                before, after = divergence(p0, p1), divergence(p0 @ q, p1 @ q)
                assert after <= found.value * before * (1 + 1e-9)
        x, y = found.witness.inputs
        for b in np.linspace(0.001, 0.999, 999):
            mix = b * q[x] + (1 - b) * q[y]
            best = max(best, b * (1 - b) * np.sum((q[x] - q[y]) ** 2 / mix))
        assert best <= found.value
        assert found.value == pytest.approx(best, rel=1e-5)
        assert found.value - found.lower <= 1e-12
        assert found.lower <= total_variation(q).value  # no f-divergence contracts less than total variation
        assert found.lower <= math.tanh(local_dp(q).value / 2) ** 2  # [AZ]


def test_the_binary_symmetric_and_erasure_channels_are_known():
    """(1-2p)^2 for a binary symmetric channel, 1 - erasure for an erasure channel, 1 for a noiseless one."""
    for p in (0.1, 0.3, 0.4999):
        assert chi_squared_contraction([[1 - p, p], [p, 1 - p]]).value == pytest.approx((1 - 2 * p) ** 2, rel=1e-9)
    erasure = [[0.7, 0.0, 0.3], [0.0, 0.7, 0.3]]
    assert chi_squared_contraction(erasure).value == pytest.approx(0.7, rel=1e-12)
    assert chi_squared_contraction(np.eye(3)).value == 1
    z = chi_squared_contraction([[1.0, 0.0], [0.4, 0.6]])  # the optimum lies at the end of the interval
    assert z.lower <= 0.6 <= z.value
    assert z.value == pytest.approx(0.6, rel=1e-9)


def test_hockey_stick_contraction_is_the_worst_ratio():
    """No two input laws keep a larger share of E_gamma than the worst two rows [ADC, Thm 2]."""
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.full(4, 0.7), 3)
    for gamma in (1.0, 1.5, 3.0):
        found = hockey_stick_contraction(q, gamma)
        for _ in range(300):
            p0, p1 = rng.dirichlet(np.full(3, 0.3), 2)
            before, after = e_gamma(gamma)(p0, p1), e_gamma(gamma)(p0 @ q, p1 @ q)
            assert after <= found.value * before + 1e-13
    assert hockey_stick_contraction(q, math.exp(local_dp(q).value) * (1 + 1e-12)).value <= 1e-15


@pytest.mark.parametrize(
    "rows",
    [
        [[1.055445607721799e-308, 1.0], [1.896140847e-315, 1.0]],
        [[2.28026e-318, 1.0], [2.532110351394119e-307, 1.0]],
        [[1e-300, 1.0], [1e-310, 1.0]],
        [[5e-324, 1.0], [1e-322, 1.0]],
    ],
)
def test_mixtures_of_subnormal_entries_are_enclosed(rows):
    """What rounding leaves of a mixture below 1e-308 counts: the bounds hold the value in 60 digits [OP, Thm 1]."""
    with mpmath.workdps(60):
        p, q = ([mpmath.mpf(x) / mpmath.fsum(map(mpmath.mpf, row)) for x in row] for row in rows)

        def at(log_odds):
            b = 1 / (1 + mpmath.exp(-log_odds))
            return b * (1 - b) * mpmath.fsum((x - y) ** 2 / (b * x + (1 - b) * y) for x, y in zip(p, q, strict=True))

        low, high = mpmath.mpf(-40), mpmath.mpf(40)
        for _ in range(250):
            first, second = low + (high - low) / 3, high - (high - low) / 3
            low, high = (first, high) if at(first) < at(second) else (low, second)
        found = chi_squared_contraction(rows)
        assert found.lower <= at(low) <= found.value


def test_the_screen_of_chi_squared_leaves_out_no_worst_pair():
    """More pairs than are measured at once: the value is the largest over all pairs, with the first pair as witness."""
    rng = np.random.default_rng(12)
    for rows in (rng.dirichlet(np.ones(40) * 3, 40), 1 + 1e-9 * rng.random((40, 40)), np.eye(40) + 0.2):
        q = rows / rows.sum(axis=1, keepdims=True)
        i, j = np.triu_indices(40, 1)
        lower, upper = chi_squared_of_pairs(q[i], q[j])
        found = chi_squared_contraction(q)
        assert found.lower <= lower.max() * (1 + 1e-12)
        assert upper.max() * (1 - 1e-12) <= found.value <= upper.max() * (1 + 1e-12)
        assert found.exact
    assert chi_squared_contraction(randomized_response(400, 1.0)).witness.inputs == (0, 1)
