import math

import mpmath as mp
import numpy as np
import pytest
import truth

from ldpopt.privacy import approximate_dp, approximate_zcdp, hockey_stick, local_dp, pairs
from ldpopt.privacy.approximate_dp import epsilon_of_pairs


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


def test_the_screen_of_a_large_channel_finds_the_worst_pair(monkeypatch):
    """Where the worst pair of a large channel is found by Newton's method, every other pair needs no more."""
    monkeypatch.setattr(pairs, "BUDGET", 2000 * 12)  # 2000 of the 3540 pairs
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
