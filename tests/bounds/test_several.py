"""Several populations told apart at once: no channel is faster than `upper`, and the one returned reaches `lower`."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ldpopt.bounds import chernoff, chernoff_of_several
from ldpopt.bounds.decisions import _kappa
from ldpopt.errors import InvalidInput


def slowest(laws, q):
    """The least Chernoff information of two laws of the report, by a search of its own."""

    def information(a, b):
        both = (a > 0) & (b > 0)
        value = minimize_scalar(
            lambda s: math.log(np.sum(a[both] ** s * b[both] ** (1 - s))), bounds=(1e-6, 1 - 1e-6), method="bounded"
        )
        return -value.fun

    return min(information(p @ q, r @ q) for p, r in itertools.combinations(laws, 2))


@pytest.mark.parametrize(("seed", "eta"), [(0, None), (1, 0.2)])
def test_no_channel_is_faster_and_the_one_returned_is_as_fast(seed, eta):
    """Random channels within the limits stay below `upper`; the returned one has `lower` and keeps the limits."""
    rng = np.random.default_rng(seed)
    k, epsilon = 4, (1.0, 2.0)[seed]
    laws = rng.dirichlet(np.ones(k), 3)
    found = chernoff_of_several(laws, epsilon, eta)
    assert found.lower <= found.upper <= found.lower * 1.03
    assert slowest(laws, found.channel.matrix) == pytest.approx(found.lower, rel=1e-5)
    assert found.guarantees[0].value <= epsilon
    assert found.guarantees[1].value <= (eta or 1.0)
    for _ in range(60):
        sets = rng.integers(0, 2, (3, k)).astype(bool)
        columns = np.vstack([np.where(sets, math.exp(epsilon), 1.0), np.where(~sets, math.exp(epsilon), 1.0)])
        q = (columns / columns.sum(axis=0)).T
        share = min(1.0, (eta or 1.0) / max(abs(q[a] - q[b]).sum() / 2 for a, b in itertools.combinations(range(k), 2)))
        q = np.hstack([share * q, np.full((k, 1), 1 - share)])
        assert slowest(laws, q) <= found.upper * (1 + 1e-9)


def test_two_hypotheses_are_a_pair():
    """For two hypotheses the bracket holds that of `chernoff`, which is narrower."""
    pair = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    found, exact = chernoff_of_several(pair, 2.0, 0.5), chernoff(*pair, 2.0, 0.5, tolerance=1e-3)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper <= exact.upper * 1.03


def test_every_order_is_within_kappa_of_one_half():
    """1 - sum M^s N^(1-s) <= kappa (1 - sum sqrt(M N)) for random laws with ratios up to e^epsilon, and is attained."""
    rng = np.random.default_rng(5)
    for epsilon in (1e-4, 0.3, 1.0, 4.0, 30.0):
        s, least = rng.random(2000), rng.dirichlet(np.ones(3), 2000)
        m, n = (least * np.exp(epsilon * rng.integers(0, 2, (2000, 3))) for _ in range(2))
        # Blend until sums agree: the last entry takes what is missing, and the ratio stays within the limit.
        m, n = m / m.sum(axis=1, keepdims=True), n / n.sum(axis=1, keepdims=True)
        fits = np.abs(np.log(m / n)).max(axis=1) <= epsilon
        m, n, s = m[fits], n[fits], s[fits, None]
        lost = (s * m + (1 - s) * n - m**s * n ** (1 - s)).sum(axis=1)
        half = ((np.sqrt(m) - np.sqrt(n)) ** 2).sum(axis=1) / 2
        assert fits.sum() > 100
        assert (lost <= _kappa(epsilon) * half + 1e-15).all()
    t = math.e
    assert _kappa(1.0) == pytest.approx(
        max((s * t + 1 - s - t**s) / ((math.sqrt(t) - 1) ** 2 / 2) for s in np.linspace(0, 1, 4001)), rel=1e-6
    )


def test_what_is_refused():
    """One hypothesis, laws of different sizes and tolerances of nothing are refused."""
    with pytest.raises(InvalidInput, match="at least two"):
        chernoff_of_several([[0.5, 0.5]], 1.0)
    with pytest.raises(InvalidInput):
        chernoff_of_several([[0.5, 0.5], [0.2, 0.3, 0.5]], 1.0)
    with pytest.raises(InvalidInput, match="tolerance"):
        chernoff_of_several([[0.5, 0.5], [0.2, 0.8]], 1.0, tolerance=0.0)
