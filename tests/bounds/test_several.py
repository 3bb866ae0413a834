"""Several populations told apart at once: no channel is faster than `upper`, and the one returned reaches `lower`."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

from ldpopt import Divergence
from ldpopt.bounds import chernoff, chernoff_of_several
from ldpopt.bounds.several import _Columns, _kappa, _proved, _solve_box
from ldpopt.divergences import alpha
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import FLOAT


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
    assert found.lower <= found.upper <= found.lower * (1 + 1e-4)
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
    """For two hypotheses the bracket and that of `chernoff` meet."""
    pair = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    found, exact = chernoff_of_several(pair, 2.0, 0.5), chernoff(*pair, 2.0, 0.5, tolerance=1e-3)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper <= exact.upper


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


def test_bad_hypotheses_and_tolerances_are_refused():
    """One hypothesis, distributions of different sizes and zero tolerances are refused."""
    with pytest.raises(InvalidInput, match="at least two"):
        chernoff_of_several([[0.5, 0.5]], 1.0)
    with pytest.raises(InvalidInput):
        chernoff_of_several([[0.5, 0.5], [0.2, 0.3, 0.5]], 1.0)
    with pytest.raises(InvalidInput, match="tolerance"):
        chernoff_of_several([[0.5, 0.5], [0.2, 0.8]], 1.0, tolerance=0.0)


@pytest.mark.parametrize(
    ("seed", "count", "k", "epsilon", "share"),
    [(0, 3, 3, 2.0, None), (1, 3, 3, 3.0, None), (2, 4, 4, 1.0, 0.5), (3, 4, 6, 2.0, None), (4, 3, 5, 0.01, 0.3)],
)
def test_the_bracket_is_as_narrow_as_the_tolerance(seed, count, k, epsilon, share):
    """Up to four hypotheses and six answers: a relative width of 1e-4, and no game with fixed orders beats it."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(k), count)
    eta = None if share is None else share * math.tanh(epsilon / 2)
    found = chernoff_of_several(laws, epsilon, eta)
    assert found.lower <= found.upper <= found.lower * (1 + 1e-4)
    assert found.guarantees[0].value <= epsilon
    assert found.guarantees[1].value <= (1.0 if eta is None else eta)
    for _ in range(6):
        orders = np.clip(0.5 + 0.05 * rng.standard_normal(count * (count - 1) // 2), 0.1, 0.9)
        assert game(laws, epsilon, eta, orders) <= -math.expm1(-found.upper) * (1 + 1e-9)


def game(laws, epsilon, eta, orders):
    """The value of the linear game at fixed orders, by a program of its own over all staircase columns."""
    k, growth = laws.shape[1], math.exp(epsilon)
    sets = np.array(list(itertools.product((0, 1), repeat=k)))[:-1]
    columns = 1 + (growth - 1) * sets
    worth = []
    for (p, q), s in zip(itertools.combinations(laws, 2), orders, strict=True):
        b, x = columns @ q, np.log1p((columns @ (p - q)) / (columns @ q))
        worth.append(b * (s * np.expm1(x) - np.expm1(s * x)))
    scale = np.max(worth)
    above = [np.append(-row / scale, 1.0) for row in worth]
    caps = [np.append(np.maximum(columns[:, x] - columns[:, y], 0.0), 0.0)
            for x, y in itertools.permutations(range(k), 2)]  # fmt: skip
    solved = linprog(
        np.append(np.zeros(len(sets)), -1.0), [*above, *caps], [0.0] * len(above) + [eta or 1.0] * len(caps),
        np.hstack([columns.T, np.zeros((k, 1))]), np.ones(k), [(0, None)] * len(sets) + [(None, None)],
    )  # fmt: skip
    return -solved.fun * scale * (1 - 1e-6)


def test_any_multipliers_prove_a_bound():
    """Wrong multipliers give a worse bound, never one below what a channel reaches; without weights none is proved."""
    rng = np.random.default_rng(8)
    parts = [Divergence(alpha(0.5), *pair) for pair in itertools.combinations(rng.dirichlet(np.ones(3), 3), 2)]
    columns = _Columns(parts, 1.5, 0.4)
    box = tuple(columns.range(pair) for pair in range(3))
    solved = _solve_box(columns, box)
    reached = float(columns.reached(solved.weights)[0].min())
    assert reached <= solved.bound
    heights = [columns.worth(pair, end) for pair in range(3) for end in box[pair]]
    widths = [w for low, high in box for w in (high - low, low - high)]
    worths = FLOAT.concatenate([(h + w * slope)[None] for (h, slope), w in zip(heights, widths, strict=True)])
    turns = FLOAT.concatenate([(slope if n % 2 == 0 else -slope)[None] for n, (_, slope) in enumerate(heights)])
    for _ in range(200):
        size = 10.0 ** rng.uniform(-9, 3)
        numbers = (rng.gamma(0.3, size=6), rng.gamma(0.3, size=6) * size, rng.standard_normal(3) * size)
        assert _proved(columns, worths, turns, *numbers, rng.gamma(0.3, size=6) * size) >= reached
    assert _proved(columns, worths, turns, np.zeros(6), np.zeros(6), np.ones(3), np.zeros(6)) == math.inf


@pytest.mark.parametrize(("epsilon", "eta"), [(1e-9, None), (1e-5, None), (1e-3, 1e-5), (30.0, None), (700.0, 0.3)])
def test_the_bracket_is_narrow_at_extreme_limits(epsilon, eta):
    """From epsilon = 1e-9 to 700, and for a pair a thousand times closer than the others, the bracket stays narrow."""
    rng = np.random.default_rng(1)
    laws = rng.dirichlet(np.ones(3), 3)
    for close in (False, True):
        laws[1] = laws[0] + (laws[1] - laws[0]) * (1e-3 if close else 1.0)
        found = chernoff_of_several(laws, epsilon, eta)
        assert 0 < found.lower <= found.upper <= found.lower * (1 + 1e-4)
        assert found.guarantees[0].value <= epsilon


def test_beyond_listed_answers_the_bracket_is_within_kappa():
    """Twelve answers: averages of channels, within about kappa of each other."""
    laws = np.random.default_rng(2).dirichlet(np.ones(12), 3)
    found = chernoff_of_several(laws, 1.0)
    assert found.lower <= found.upper <= found.lower * 1.01
