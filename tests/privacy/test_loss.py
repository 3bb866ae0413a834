"""The rounding promise: value >= truth >= lower, against high-precision arithmetic, on near-degenerate channels too."""

import math

import mpmath as mp
import numpy as np
import pytest

from ldpopt.privacy import hockey_stick, local_dp, mcdp, renyi, total_variation, zcdp
from ldpopt.privacy.loss import excess, log_ratios

ORDERS = (1.0, 1.0001, 1.5, 2.0, 7.3, 64.0, 5000.0)


@pytest.fixture(autouse=True)
def _precision():
    """Rows that are nearly point masses differ by 1e-250, and their sums must cancel to less."""
    with mp.workdps(400):
        yield


def channels(count, seed=20261):
    """Two- and three-row channels: plain, nearly constant, with tiny entries, extreme ratios and zeros."""
    rng = np.random.default_rng(seed)
    for n in range(count):
        k, m = int(rng.integers(2, 4)), int(rng.integers(2, 7))
        kind = n % 6
        if kind == 0:
            q = rng.dirichlet(np.ones(m), k)
        elif kind == 1:
            base = rng.dirichlet(np.ones(m))
            q = base * (1 + 10.0 ** rng.uniform(-9, -2) * rng.standard_normal((k, m)))
        elif kind == 2:
            q = np.exp(-rng.uniform(0, 700, (k, m)))
        elif kind == 3:
            q = rng.dirichlet(np.ones(m), k)
            q[:, 0] = 10.0 ** rng.uniform(-305, -250, k)
        elif kind == 4:
            q = rng.dirichlet(np.ones(m), k)
            q[0, 0] = 1e-300
        else:
            q = rng.dirichlet(np.ones(m), k) * (rng.random((k, m)) > 0.2)
            q[:, 0] += 0.1
        yield q / q.sum(axis=1, keepdims=True)


def exact_rows(q):
    rows = [[mp.mpf(float(x)) for x in row] for row in q]
    return [[x / mp.fsum(row) for x in row] for row in rows]


def over_pairs(value, rows):
    return max(value(p, q) for a, p in enumerate(rows) for b, q in enumerate(rows) if a != b)


def divergence(p, q, order):
    if any(a > 0 and b == 0 for a, b in zip(p, q, strict=True)):
        return mp.inf
    both = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    if order == 1:
        return mp.fsum(a * mp.log(a / b) for a, b in both)
    alpha = mp.mpf(order)
    return mp.log(mp.fsum(a**alpha * b ** (1 - alpha) for a, b in both)) / (alpha - 1)


def encloses(guarantee, truth):
    return guarantee.lower <= truth <= guarantee.value


def test_local_dp_total_variation_and_hockey_stick_enclose_the_truth():
    """Local DP, total variation and hockey-stick values are never below the entries' exact value, nor lower above."""
    for q in channels(90):
        rows = exact_rows(q)
        pure = over_pairs(
            lambda p, r: max(
                mp.mpf(0) if a == b == 0 else (mp.inf if b == 0 else (mp.log(a / b) if a else -mp.inf))
                for a, b in zip(p, r, strict=True)
            ),
            rows,
        )
        assert encloses(local_dp(q), pure)
        assert (
            encloses(
                total_variation(q),
                over_pairs(lambda p, r: mp.fsum(max(a - b, 0) for a, b in zip(p, r, strict=True)), rows),
            )
            or total_variation(q).value == 1
        )
        for epsilon in (0.0, 0.01, 1.0, 30.0):
            e = mp.exp(mp.mpf(epsilon))
            truth = over_pairs(lambda p, r, e=e: mp.fsum(max(a - e * b, 0) for a, b in zip(p, r, strict=True)), rows)
            found = hockey_stick(q, epsilon)
            assert found.lower <= truth
            assert truth <= found.value or found.value == 1
            assert found.value - found.lower <= 1e-13


@pytest.mark.parametrize("order", ORDERS)
def test_renyi_encloses_the_truth(order):
    """The Rényi divergence of the laws the rows stand for lies between lower and value, which nearly meet."""
    for q in channels(24):
        truth = over_pairs(lambda p, r: divergence(p, r, order), exact_rows(q))
        found = renyi(q, order)
        assert encloses(found, truth)
        if math.isfinite(found.value):
            assert found.value - found.lower <= 1e-12 * found.value + 1e-14


def test_zcdp_brackets_every_order():
    """No order, however close to 1 or large, has (D_alpha - xi)/alpha above zcdp's value."""
    orders = [1 + 10.0**n for n in np.linspace(-6, 4, 11)]
    for q in channels(12, seed=5):
        for xi in (0.0, 0.3):
            found = zcdp(q, xi)
            rows = exact_rows(q)
            best = max(
                over_pairs(lambda p, r, a=a, xi=xi: (divergence(p, r, a) - xi) / mp.mpf(a), rows) for a in orders
            )
            assert found.value >= best
            if math.isfinite(found.value):
                assert found.value - found.lower <= 1e-10 * found.value + 1e-13


def test_mcdp_brackets_every_moment():
    """No s has 2 K(s)/s^2 above the square of mcdp's tau, and mu is the KL divergence."""
    grid = [sign * mp.mpf(10) ** (mp.mpf(n) / 4) for n in range(-8, 9) for sign in (1, -1)]

    def tau(p, r):
        if any(a > 0 and b == 0 for a, b in zip(p, r, strict=True)):
            return mp.inf
        loss = [(a, mp.log(a / b)) for a, b in zip(p, r, strict=True) if a > 0]
        mean = mp.fsum(a * z for a, z in loss)
        return mp.sqrt(max(2 * mp.log(mp.fsum(a * mp.exp(s * (z - mean)) for a, z in loss)) / s**2 for s in grid))

    for q in channels(12, seed=6):
        found, rows = mcdp(q), exact_rows(q)
        assert encloses(found.mu, over_pairs(lambda p, r: divergence(p, r, 1), rows))
        assert found.tau.value >= over_pairs(tau, rows)
        if math.isfinite(found.tau.value):
            assert found.tau.value - found.tau.lower <= 1e-10 * found.tau.value + 1e-13


def test_excess_and_log_ratios_keep_their_digits():
    """exp(x) - 1 - x and log(p/q) are right to a few units, near zero and at the ends of the range."""
    x = np.concatenate([10.0 ** np.linspace(-150, 2.7, 60), -(10.0 ** np.linspace(-150, 2.7, 60)), [0.5, -0.5, 0.0]])
    for value, found in zip(x, excess(x), strict=True):
        truth = mp.exp(mp.mpf(value)) - 1 - mp.mpf(value) if value else mp.mpf(0)
        assert abs(found - truth) <= 3e-15 * abs(truth)
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.random(100), 10.0 ** rng.uniform(-320, 0, 100)])
    q = np.concatenate([p[:100] * (1 + 1e-9 * rng.standard_normal(100)), 10.0 ** rng.uniform(-320, 0, 100)])
    for a, b, found in zip(p, q, log_ratios(p, q), strict=True):
        truth = mp.log(mp.mpf(a) / mp.mpf(b))
        assert abs(found - truth) <= 1e-15 * abs(truth)
