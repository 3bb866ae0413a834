"""Linear utilities above a divergence, in exact arithmetic and at every scale.

What multipliers leave unpaid, against linear programs over all columns.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt.design.constraints import ApproximateLDP, ConcentratedLDP, LocalDP, RenyiLDP
from ldpopt.design.kernel.hypotheses import likelihood_ratio_order
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.design.ratios.proof_chords import enclosed_chords, enclosed_residual, posterior_range, rays, tail_curve
from ldpopt.design.utilities.laws import LawPair
from ldpopt.divergences import CHI_SQUARED, JEFFREYS, KL, REVERSE_KL, alpha
from ldpopt.numbers.enclosures import EXACT, FLOAT


def near(scale):
    return np.array([0.5 + 0.3 * scale, 0.3, 0.2 - 0.3 * scale]), np.array([0.5, 0.3 - 0.2 * scale, 0.2 + 0.2 * scale])


def marginals(p, q):
    """M = P.q of the law proportional to p, a fraction."""
    weights = [Fraction(x) for x in p.tolist()]
    return sum((w * Fraction(x) for w, x in zip(weights, q.tolist(), strict=True)), Fraction(0)) / sum(weights)


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("scale", [0.6, 1e-3, 1e-9])
@pytest.mark.parametrize("spread", [None, 1.0, 1e-8, 40.0])
def test_chords_lie_above_every_column_of_their_interval(arithmetic, scale, spread):
    """c_i.q >= chi-squared of the marginals, in fractions, for every column whose posterior is in interval i."""
    p0, p1 = near(scale)
    laws, order = LawPair.from_floats(p0, p1, arithmetic), likelihood_ratio_order(p0, p1).tolist()
    given = None if spread is None else arithmetic.of(spread)
    ends = rays(laws, order, np.array([0.0, 1.0]), given, arithmetic).a.midpoint
    knots = np.unique(np.linspace(*ends, 7))
    if len(knots) < 3:
        knots = np.array(ends)
    cut = rays(laws, order, knots, given, arithmetic)
    (gains,) = enclosed_chords(CHI_SQUARED, laws, cut, knots, ())
    rng = np.random.default_rng(1)
    for _ in range(60):
        rise = rng.random(3) if rng.random() < 0.5 else rng.integers(0, 2, 3).astype(float)
        q = rise if spread is None else 1 + rise * math.expm1(spread) * (1 - 1e-9)
        a, b = marginals(p0, q), marginals(p1, q)
        if not a + b:
            continue
        inner = [Fraction(s) for s in knots[1:-1].tolist()]
        label = sum(a / (a + b) > s for s in inner)
        linear = sum((Fraction(c) * Fraction(x) for c, x in
                      zip(gains.values.upper[label].tolist(), q.tolist(), strict=True)), Fraction(0))  # fmt: skip
        assert linear >= ((a - b) ** 2 / b if b else 0)
    assert (gains.sums.lower <= gains.values.upper.sum(axis=1) + 1e-12).all()


def test_the_reach_of_ratios():
    """Pure LDP, alone or implied, bounds the posteriors; a moment lets them go anywhere and still bounds KL."""
    p0, p1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.8, 0.0])
    inputs = range(3)
    assert posterior_range(KL, p0, p1, (LocalDP(1.0),), inputs)[1] == pytest.approx(1 / (1 + math.exp(-1)))
    assert posterior_range(KL, p0, p1, (ApproximateLDP(1.0, 0.0),), inputs)[1] == pytest.approx(1 / (1 + math.exp(-1)))
    assert posterior_range(KL, p0, p1, (ApproximateLDP(1.0, 0.1),), inputs) is None
    assert posterior_range(KL, p0, p1, (RenyiLDP(2.0, 0.1),), inputs)[1] == 1.0
    assert posterior_range(CHI_SQUARED, p0, p1, (RenyiLDP(1.5, 0.1),), inputs) is None
    assert posterior_range(CHI_SQUARED, p0, p1, (ConcentratedLDP(0.1),), inputs)[1] == 1.0
    assert posterior_range(KL, p1, p0, (ApproximateLDP(1.0, 0.1),), inputs) == pytest.approx((0.0, 0.8 / 1.1))
    assert posterior_range(JEFFREYS, p0, p1, (RenyiLDP(2.0, 0.1),), inputs) is None


def test_which_divergences_have_a_tail():
    """Power divergences that are infinite at the end, on the side where they are."""
    assert tail_curve(KL, False) == (1, 1.0)
    assert tail_curve(KL, True) is None
    assert tail_curve(REVERSE_KL, True) == (1, 1.0)
    assert tail_curve(alpha(3.0), False) == (3, 1.0)
    assert tail_curve(alpha(-1.5), True) == (2.5, 1.0)
    assert tail_curve(alpha(0.5), False) is None


@pytest.mark.parametrize("order", [1.5, 3.0])
def test_the_alpha_divergence_has_the_printed_constant(order):
    """alpha(o) = ((u^o - o u + o - 1))/(o (o - 1)): the constant c of its tail is 1/o."""
    u = np.array([1.5, 10.0, 1e4])
    expected = (u**order - order * u + order - 1) / (order - 1) / order
    assert alpha(order).excess(u, np.ones(3)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("knots", [[0.2], [], [0.0, 0.5, 0.5, 1.0], [0.0, 0.9999, 1.0], [0.0, math.nan, 1.0]])
def test_knots_that_do_not_cut(knots):
    """Too few knots, ties, cuts outside of what outputs can have, and NaN are refused."""
    p0, p1 = near(0.6)
    laws = LawPair.from_floats(p0, p1, FLOAT)
    with pytest.raises(Unproved):
        enclosed_chords(
            KL, laws, rays(laws, likelihood_ratio_order(p0, p1).tolist(), np.array(knots), None, FLOAT), knots, ()
        )


def largest_gain(reduced, spread):
    """The largest sum_i reduced_i . q_i over channels, by a program over the extreme columns of the box."""
    k = reduced.shape[1]
    if spread is None:
        return float(np.maximum(reduced.max(axis=0), 0.0).sum())
    level = 1 / math.expm1(spread)
    columns = level + np.array(list(itertools.product((0.0, 1.0), repeat=k)))
    gains = (reduced @ columns.T).max(axis=0)
    return -linprog(-gains, A_eq=columns.T, b_eq=np.ones(k)).fun


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("spread", [None, 1e-3, 0.5, 3.0, 40.0])
def test_no_channel_gains_more_than_the_residual(arithmetic, spread):
    """The residual is at least what the best channel gains, and 0 where all labels are paid for."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        reduced = rng.normal(size=(3, 4)) * 10 ** rng.uniform(-3, 3)
        given = None if spread is None else arithmetic.of(spread)
        enclosed = arithmetic.of(reduced)
        found = enclosed_residual(enclosed, enclosed.sum(axis=1), given)
        assert found >= largest_gain(reduced, spread) * (1 - 1e-9)
        paid = arithmetic.of(-np.abs(reduced))
        assert enclosed_residual(paid, paid.sum(axis=1), given) == 0.0


@pytest.mark.parametrize("spread", [1e-12, 1e-8, 1e-4, 1.0, 30.0, 500.0])
def test_small_shortfalls_cost_little(spread):
    """Prices that a column reaches exactly, short of 1e-12 of themselves, cost about as much, at every epsilon."""
    level = math.exp(-spread) / -math.expm1(-spread)
    reduced = np.array([[0.7, -1.0, -1.0]])
    # The column t + (1, 0, 0) gains t times the sum, and 0.7.
    sums = np.array([-0.7 / level]) * (1 - 1e-12)
    found = enclosed_residual(FLOAT.of(reduced), FLOAT.of(sums), FLOAT.of(spread))
    assert 0 < found <= 4e-12 * 3 * 0.7 / (3 * level + 1)


def test_unknown_gains_have_an_infinite_residual():
    """Reduced gains that may be infinite leave an infinite residual."""
    for bad in (math.inf, math.nan):
        enclosed = FLOAT.of(np.array([[bad, -1.0]]))
        assert enclosed_residual(enclosed, enclosed.sum(axis=1), FLOAT.of(1.0)) == math.inf
        assert enclosed_residual(enclosed, enclosed.sum(axis=1), None) == math.inf
    ones = FLOAT.of(np.ones((1, 2)))
    assert enclosed_residual(ones, FLOAT.of([math.nan]), FLOAT.of(1.0)) >= 2.0
    assert enclosed_residual(ones, ones.sum(axis=1), FLOAT.of(0.0)) >= 2.0


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("cap", [1e-9, 1e-3, 0.2, 1.0])
def test_rows_that_hardly_differ_gain_little(arithmetic, cap):
    """With a cap on the variation the residual is at least what the best channel gains, by a program over channels."""
    rng = np.random.default_rng(3)
    labels, k = 3, 3
    for _ in range(5):
        reduced = rng.normal(size=(labels, k))
        reduced -= reduced.mean(axis=1, keepdims=True) + 0.1 * cap
        # Variables: q (labels, k), and the excess of each row over each other.
        pairs = [(x, y) for x in range(k) for y in range(k) if x != y]
        size = labels * k + labels * len(pairs)
        above, limits, bounds = [], [], []
        for number, (x, y) in enumerate(pairs):
            total = np.zeros(size)
            for i in range(labels):
                row = np.zeros(size)
                at = labels * k + i * len(pairs) + number
                row[i * k + x], row[i * k + y], row[at] = 1.0, -1.0, -1.0
                total[at] = 1.0 / cap
                above.append(row)
                bounds.append(0.0)
            limits.append(total)
        sums = np.zeros((k, size))
        for x in range(k):
            sums[x, [i * k + x for i in range(labels)]] = 1.0
        gains = np.concatenate([reduced.ravel(), np.zeros(labels * len(pairs))])
        best = -linprog(
            -gains, A_ub=np.array(above + limits), b_ub=np.concatenate([bounds, np.ones(len(limits))]), A_eq=sums,
            b_eq=np.ones(k),
        ).fun  # fmt: skip
        enclosed = arithmetic.of(reduced)
        found = enclosed_residual(enclosed, enclosed.sum(axis=1), None, arithmetic.of(cap))
        assert (
            best * (1 - 1e-6) - 1e-8 * cap
            <= found
            <= 2 * cap * float(np.maximum(reduced.max(axis=0), 0).sum()) * (1 + 1e-9)
        )
