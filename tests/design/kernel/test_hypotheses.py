"""Tests of `ldpopt.design.kernel.hypotheses`: order and domination, against fractions.

Rays at logarithms of ratios, and the logarithms that inputs have.
"""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from design_problems import random_pair

from ldpopt.design.kernel.hypotheses import Rays, _is_ratio_sorted, dominates, likelihood_ratio_order, log_ratios
from ldpopt.design.problems.reduction import dominating_pair
from ldpopt.design.utilities.laws import LawPair
from ldpopt.numbers.enclosures import EXACT, FLOAT


def truly_dominates(own, other):
    """The definition, in fractions, at every kink of either [Blackwell]."""
    laws = []
    for p0, p1 in (own, other):
        zero, one = (sum(map(Fraction, p.tolist())) for p in (p0, p1))
        rows = [(Fraction(x) / zero, Fraction(y) / one) for x, y in zip(p0.tolist(), p1.tolist(), strict=True)]
        laws.append([(x, y) for x, y in rows if x or y])
    kinks = {x / (x + y) for x, y in laws[0] + laws[1]}
    first, second = ([sum(max(s * y - (1 - s) * x, 0) for x, y in rows) for s in kinks] for rows in laws)
    return all(a >= b for a, b in zip(first, second, strict=True))


@pytest.mark.full(but=2)
@pytest.mark.parametrize("kind", ["random", "equal", "an ulp apart", "spread", "near hypotheses", "garbled"])
def test_domination_is_exact(kind):
    """What is said to dominate does, to the last digit; what was made to dominate is said to."""
    rng = np.random.default_rng(1)
    for _ in range(25):
        k = int(rng.integers(2, 7))
        other = rng.dirichlet(np.ones(k), 2)
        if kind == "near hypotheses":
            other[1] = other[0] * (1 + 1e-9 * rng.standard_normal(k))
            other[1] /= other[1].sum()
        posterior = np.unique(other[0] / other.sum(axis=0))
        own = {
            "random": lambda k=k: rng.dirichlet(np.ones(k), 2),
            "equal": lambda other=other: other.copy(),
            "an ulp apart": lambda other=other, k=k: other * (1 + 2e-16 * rng.standard_normal((2, k))),
            "spread": lambda other=other, s=posterior: np.array(dominating_pair(*other, s)),
            "near hypotheses": lambda other=other, s=posterior: np.array(dominating_pair(*other, s)),
            "garbled": lambda other=other, k=k: other @ rng.dirichlet(np.ones(k), k),
        }[kind]()
        said, true = dominates(*own, *other), truly_dominates(own, other)
        assert true or not said
        assert said or kind not in ("equal", "spread", "near hypotheses")


def test_a_pair_dominates_its_garblings_and_not_the_reverse():
    """Blackwell's order: a garbled pair tells less, in exact arithmetic."""
    p0, p1 = random_pair(6, 8)
    garble = np.zeros((6, 3))
    garble[np.arange(6), [0, 0, 1, 1, 2, 2]] = 1.0
    assert not dominates(p0 @ garble, p1 @ garble, p0, p1)
    assert dominates(p0, p1, p0[::-1], p1[::-1])


def test_order_by_ratio_is_exact():
    """Ratios that floats cannot tell apart, beyond their range, and zeros are sorted by exact cross products."""
    rng, sizes = np.random.default_rng(2), [0.0, 1e-300, 1e-160, 0.1, 0.3, 1.0, 1e299]
    for _ in range(300):
        k = int(rng.integers(2, 8))
        p0 = rng.choice([*sizes, 0.3 + 2**-54], k) * rng.choice([1.0, 1 + 2**-52, 3.0], k)
        p1 = rng.choice([*sizes, 0.3 - 2**-54], k) * rng.choice([1.0, 1 + 2**-52, 3.0], k)
        order = likelihood_ratio_order(p0, p1).tolist()
        assert sorted(order) == np.flatnonzero((p0 > 0) | (p1 > 0)).tolist()
        for x, y in itertools.pairwise(order):
            assert Fraction(p0[x]) * Fraction(p1[y]) <= Fraction(p0[y]) * Fraction(p1[x])


@pytest.mark.parametrize("low", [0.1, 0.25])
def test_each_end_of_an_interval_counts(low):
    """One kink where the other law tells more is enough, be it the first, the last or one in the middle."""
    for own, other in (
        ([[low, 1 - low], [0.5, 0.5]], [[low / 2, 1 - low / 2], [0.5, 0.5]]),
        ([[0.5, 0.5], [low, 1 - low]], [[0.5, 0.5], [low / 2, 1 - low / 2]]),
        ([[0.6, 0.4, 0.0], [0.2, 0.4, 0.4]], [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]),
    ):
        a, b = np.array(own), np.array(other)
        assert dominates(*a, *b) == truly_dominates(a, b)
        assert dominates(*b, *a) == truly_dominates(b, a)


def test_products_that_nearly_agree_are_compared_exactly():
    """Two ratios a rounding or two apart are in order exactly where fractions say so."""
    rng = np.random.default_rng(7)
    for _ in range(500):
        a, b, c = rng.uniform(0.1, 1.0, 3)
        d = b * c / a
        for _ in range(int(rng.integers(0, 3))):
            d = np.nextafter(d, rng.choice([0.0, 9.0]))
        p0, p1 = np.array([a, b]), np.array([c, d])
        assert _is_ratio_sorted(p0, p1) == (Fraction(a) * Fraction(d) <= Fraction(b) * Fraction(c))


def test_rays_keep_their_digits():
    """(a, b)/(a + b) at log-ratios from 1e-12 to 400 agree with mpmath to fifteen digits."""
    logs = np.array([1e-12, -1e-6, 0.3, 5.0, -40.0, 400.0])
    rays = Rays.from_logs(logs, FLOAT)
    with mpmath.workdps(400):
        for at, log in enumerate(logs.tolist()):
            on_p1 = 1 / (1 + mpmath.exp(log))
            for enclosed, true in ((rays.b, on_p1), (rays.a, 1 - on_p1), (rays.lean, 1 - 2 * on_p1)):
                assert enclosed.lower[at] <= true <= enclosed.upper[at]
                assert enclosed.upper[at] - enclosed.lower[at] <= 1e-14 * abs(true)
    ends = Rays.from_logs(np.array([np.inf, -np.inf]), FLOAT)
    assert ends.b.upper.tolist() == [0.0, 1.0]
    assert ends.lean.lower.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("apart", [0.2, 1e-9, 1e-15])
def test_the_ends_enclose_the_logarithms_of_all_inputs(arithmetic, apart):
    """The least and largest log(P0/P1) in 60 digits lie within the ends, and near; what never occurs is left out."""
    p0, p1 = np.array([0.5 + apart, 0.25, 0.25 - apart, 0.0]), np.array([0.5, 0.25, 0.25, 0.0])
    low, high = log_ratios(LawPair.from_floats(p0, p1, arithmetic))
    with mpmath.workdps(60):
        laws = [[Fraction(x) / sum(map(Fraction, p.tolist())) for x in p.tolist()] for p in (p0, p1)]
        ratios = [a / b for a, b in zip(*laws, strict=True) if a or b]
        logs = [mpmath.log(mpmath.mpf(r.numerator) / r.denominator) for r in ratios]
        assert low <= min(logs)
        assert max(logs) <= high
        assert max(high - max(logs), min(logs) - low) <= 1e-13 * max(high, -low)


def test_an_input_of_one_hypothesis_alone_has_an_infinite_logarithm():
    """Where one mass is zero the end is infinite, on the side of the other."""
    low, high = log_ratios(LawPair.from_floats(np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5]), FLOAT))
    assert (low, high) == (-np.inf, np.inf)
