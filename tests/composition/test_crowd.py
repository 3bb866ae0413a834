"""One report among many of one law: the bounds against exact enumeration of histograms, in fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.composition.crowd import Crowd


def exact_delta(p, q, w, n, growth):
    """E (L_1 + ... + L_n)_+ / n over all histograms of n draws; what others keep is a report that p and q lack."""
    p, q, w = ([Fraction(float(x)) for x in law] for law in (p, q, w))
    kept = 1 - sum(w)
    scores = [(a - growth * b) / c for a, b, c in zip(p, q, w, strict=True) if c > 0] + [Fraction(0)]
    masses = [c for c in w if c > 0] + [kept]
    total = Fraction(0)
    for counts in itertools.product(range(n + 1), repeat=len(scores)):
        if sum(counts) != n:
            continue
        value = sum(c * s for c, s in zip(counts, scores, strict=True))
        if value > 0:
            ways = math.factorial(n)
            for c in counts:
                ways //= math.factorial(c)
            total += value * ways * math.prod(m**c for m, c in zip(masses, counts, strict=True))
    return total / n + sum((max(a - growth * b, 0) for a, b, c in zip(p, q, w, strict=True) if c == 0), Fraction(0))


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
def test_both_bounds_enclose_the_enumeration(n, epsilon):
    """`upper` is never below and `lower` never above the exact value, and both meet it to 10^-3."""
    rng = np.random.default_rng(n)
    growth = Fraction(math.exp(epsilon))
    for trial in range(12):
        p, q, w = rng.dirichlet(np.ones(3), 3)
        if trial % 3 == 1:
            w = np.array([0.0, w[1], 1 - w[1]])
        share = rng.random() if trial % 2 else 1.0
        value = float(exact_delta(p, q, w * share, n, growth))
        upper = Crowd.from_distributions(p, q, w * share, n).upper(epsilon)
        assert value * (1 - 1e-12) <= upper <= min(1.0, value * (1 + 1e-3) + 1e-12)
        if share == 1.0:
            lower = Crowd.from_distributions(p, q, w, n).lower(epsilon)
            assert lower <= value * (1 + 1e-12)
            assert n == 1 or lower >= value * (1 - 1e-3) - 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5, 4.0])
def test_a_sure_verdict_is_never_above_delta(epsilon):
    """Without a tilt nothing is sure, and without a score above 0 that others send, what they never send decides."""
    rng, sure = np.random.default_rng(1), 0
    for trial in range(12):
        p, q, w = rng.dirichlet(np.ones(3), 3)
        if trial % 3 == 1:  # of the report that others never send, p has more, and less of the others
            p, q, w = np.sort(p)[::-1], np.sort(q), np.array([0.0, w[1], 1 - w[1]])
        value = float(exact_delta(p, q, w, 4, Fraction(math.exp(epsilon))))
        crowd = Crowd.from_distributions(p, q, w, 4)
        assert not value or not crowd.surely_at_most(epsilon, value * (1 - 1e-9))
        sure += crowd.surely_at_most(epsilon, 0.5 + value / 2)
    assert sure or epsilon == 0


def test_reports_with_the_same_ratios_are_one():
    """Reports that tell the same are put together: 100 of them become 3."""
    p, q, w = np.full(100, 0.5 / 99), np.full(100, 0.5 / 99), np.full(100, 0.01)
    p[0] = q[1] = 0.5
    crowd = Crowd.from_distributions(p, q, w, 50)
    assert len(crowd.p) == 3
    assert crowd.p.sum() == pytest.approx(1.0)


def test_upper_of_a_million_agrees_with_the_test_from_below():
    """For exact laws the two bounds, found in different ways, meet to a thousandth at n = 10^6."""
    e = math.e
    p, q, w = (np.array(law) / (e + 9) for law in ([e, 1, 1, 7], [1, e, 1, 7], [1, 1, e, 7]))
    crowd = Crowd.from_distributions(p, q, w, 10**6)
    for epsilon in (0.0, 1e-4, 1.8e-3):
        upper, lower = crowd.upper(epsilon), crowd.lower(epsilon)
        assert lower <= upper <= lower * 1.001
        assert math.exp(crowd.estimate(epsilon)) == pytest.approx(upper, rel=0.05)


def test_extremes_are_bounded():
    """Epsilons of 700, masses of 1e-300 and laws that are equal give bounds, not errors."""
    tiny = Crowd.from_distributions(np.array([1.0, 1e-300]), np.array([1e-300, 1.0]), np.array([0.5, 1e-300]), 1000)
    for epsilon in (0.0, 1.0, 700.0):
        assert 0 <= tiny.upper(epsilon) <= 1
    same = Crowd.from_distributions(*[np.array([0.5, 0.5])] * 3, 10)
    assert same.upper(0.0) < 1e-9
    assert same.lower(0.0) == 0
