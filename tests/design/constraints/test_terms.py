"""Column terms: what a multiplier supports and costs, against their definition in many digits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from ldpopt.design.constraints.hockey_stick import HockeyStick, approximate, every_pair
from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import Ratio, all_pairs, scatter
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.numbers.enclosures import EXACT, FLOAT

ARITHMETICS = [FLOAT, EXACT]


def exactly(value):
    return mpmath.mpf(Fraction(value).numerator) / Fraction(value).denominator


def psi(order, a, b):
    """The moment's summand, b > 0."""
    o = exactly(order)
    if order == 1:
        return (a * mpmath.log(a / b) if a else mpmath.mpf(0)) - a + b
    return (a**o * b ** (1 - o) if a else mpmath.mpf(0)) - o * a + (o - 1) * b


def sticks(rng, labels):
    left, right = all_pairs(4)
    term = HockeyStick.from_pairs(left, right, 0.7, 0.01, rng.random(12) + 0.5)
    return term, rng.random((labels, 12)) * (rng.random((labels, 12)) < 0.5)


def moments(rng, labels, order):
    term = Moment(*all_pairs(4), order, Fraction(3, 10))
    cuts = 40
    t = np.exp(rng.normal(scale=2.0, size=cuts))
    return term, np.stack([rng.integers(0, 12, cuts), rng.integers(0, labels, cuts), t, rng.random(cuts)])


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=["float", "exact"])
@pytest.mark.parametrize("order", [None, 1.0, 1.0001, 2.0, 7.5])
def test_supports_lie_below_and_charges_above(arithmetic, order):
    """u.q <= sum_c nu_c phi_c(q) for every column q >= 0, and the charge is sum_c cap_c nu_c, in 50 digits."""
    rng, labels = np.random.default_rng(3), 3
    term, values = sticks(rng, labels) if order is None else moments(rng, labels, order)
    support, sums = term.enclosed_support(values, labels, 4, arithmetic)
    charge = term.enclosed_charge(values, labels, arithmetic)
    with mpmath.workdps(50):
        weight = np.zeros((labels, len(term)), dtype=object)
        if order is None:
            weight[:] = [[exactly(z) for z in row] for row in values]
            factors = [mpmath.exp(exactly(term.epsilon) * exactly(w)) for w in term.weight.tolist()]
            cost = sum(exactly(cap) * max(weight[:, c]) for c, cap in enumerate(term.caps.tolist()))
        else:
            for pair, label, _, z in values.T.tolist():
                weight[int(label), int(pair)] += exactly(z)
            cap = exactly(term.epsilon)
            cap = cap if order == 1 else mpmath.expm1((exactly(order) - 1) * cap)
            cost = cap * sum(max(weight[:, c]) for c in range(len(term)))
        assert charge.lower <= cost * (1 + mpmath.mpf(10) ** -45)
        assert charge.upper >= cost * (1 - mpmath.mpf(10) ** -45)
        assert charge.upper - charge.lower <= 1e-13 * charge.upper
        for _ in range(40):
            q = np.exp(rng.normal(scale=3.0, size=4)) * (rng.random(4) < 0.8)
            q[rng.integers(4)] = 1.0
            column = [exactly(x) for x in q.tolist()]
            for label in range(labels):
                below = sum(exactly(u) * x for u, x in zip(support.lower[label].tolist(), column, strict=True))
                phi = mpmath.mpf(0)
                for c, (x, z) in enumerate(zip(term.left.tolist(), term.right.tolist(), strict=True)):
                    a, b = column[x], column[z]
                    if order is None:
                        phi += weight[label, c] * max(a - factors[c] * b, mpmath.mpf(0))
                    elif weight[label, c]:
                        phi += weight[label, c] * (psi(order, a, b) if b else mpmath.inf if a else 0)
                assert below <= phi + mpmath.mpf(10) ** -40
    assert (sums.lower <= support.upper.sum(axis=1) + 1e-9).all()
    assert (sums.upper >= support.lower.sum(axis=1) - 1e-9).all()


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=["float", "exact"])
def test_sums_over_inputs_do_not_cancel(arithmetic):
    """At epsilon = 1e-9 the sum of a support is -z (e^epsilon - 1), to full precision."""
    term = HockeyStick.from_pairs(np.array([0]), np.array([1]), 1e-9, 0.0)
    _, sums = term.enclosed_support(np.array([[0.3]]), 1, 2, arithmetic)
    assert sums.lower[0] <= sums.upper[0]
    assert sums.midpoint[0] == pytest.approx(-0.3 * math.expm1(1e-9), rel=1e-14)


def test_supports_in_floats_are_those_of_the_proof():
    """Those who look for multipliers see what the proof will see, up to rounding."""
    rng = np.random.default_rng(4)
    for term, values in (sticks(rng, 3), moments(rng, 3, 1.0), moments(rng, 3, 3.0)):
        enclosed, _ = term.enclosed_support(values, 3, 4, FLOAT)
        size = np.abs(enclosed.midpoint).max()
        assert np.abs(term.support(values, 3, 4) - enclosed.midpoint).max() <= 1e-12 * size
        assert term.charge(values) == pytest.approx(term.enclosed_charge(values, 3, FLOAT).midpoint, rel=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0])
@pytest.mark.parametrize("row", range(4))
def test_malformed_multipliers_of_moments_are_refused(bad, row):
    """Pairs and labels are in range, ratios positive, weights not negative, all finite."""
    term, values = moments(np.random.default_rng(5), 3, 2.0)
    values[row, 7] = bad
    with pytest.raises(Unproved):
        term.enclosed_support(values, 3, 4, FLOAT)
    with pytest.raises(Unproved):
        term.enclosed_charge(values, 3, FLOAT)


@pytest.mark.parametrize(("row", "bad"), [(0, 12.0), (0, 0.5), (1, 3.0), (1, 1.5), (2, 0.0)])
def test_positions_of_moments_are_whole_and_in_range(row, bad):
    """A pair or label that is not there is no multiplier, nor is a ratio of 0."""
    term, values = moments(np.random.default_rng(5), 3, 2.0)
    values[row, 7] = bad
    with pytest.raises(Unproved):
        term.enclosed_support(values, 3, 4, FLOAT)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1e-300])
def test_malformed_multipliers_of_hockey_sticks_are_refused(bad):
    """Finite and not negative, of one shape."""
    term, values = sticks(np.random.default_rng(6), 3)
    for wrong in (values.T, values[:2], values[:, :3], values.ravel(), "no", None):
        with pytest.raises(Unproved):
            term.enclosed_support(wrong, 3, 4, FLOAT)
    values[1, 2] = bad
    with pytest.raises(Unproved):
        term.enclosed_support(values, 3, 4, FLOAT)
    with pytest.raises(Unproved):
        term.enclosed_charge(values, 3, FLOAT)


def test_delta_zero_is_pure():
    """Without delta an approximate constraint is a ratio, unless epsilon is zero too."""
    assert isinstance(approximate(3, 1.0, 0.0), Ratio)
    assert isinstance(approximate(3, 1.0, 1e-300), HockeyStick)
    assert isinstance(approximate(3, 0.0, 0.0), HockeyStick)
    assert len(every_pair(3, 0.0, 0.2)) == 3


def test_excess_is_of_the_definition():
    """The excess of every pair over its cap, from the definition."""
    matrix = np.random.default_rng(7).dirichlet(np.ones(5), 3)
    stick, power = every_pair(3, 0.4, 0.1), Moment(*all_pairs(3), 2.0, 0.3)
    for c, (x, z) in enumerate(zip(stick.left, stick.right, strict=True)):
        a, b = matrix[x], matrix[z]
        assert stick.excess(matrix)[c] == pytest.approx(np.maximum(a - math.exp(0.4) * b, 0).sum() - 0.1, abs=1e-12)
        assert power.excess(matrix)[c] == pytest.approx(((a - b) ** 2 / b).sum() - math.expm1(0.3), abs=1e-12)


@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=["float", "exact"])
def test_scatter_adds_by_group(arithmetic):
    """Sums by group enclose the exact ones, groups may be empty or all of it."""
    rng = np.random.default_rng(8)
    for size, count in ((5, 17), (1, 9), (4, 0), (3, 1)):
        values, at = rng.normal(size=count), rng.integers(0, size, count)
        found = scatter(arithmetic.of(values), at, size)
        for group in range(size):
            exact = sum((Fraction(v) for v in values[at == group].tolist()), Fraction(0))
            assert Fraction(found.lower[group]) <= exact <= Fraction(found.upper[group])


@pytest.mark.parametrize("values", [[10**400], "1", None, [[1.0], [1.0, 2.0]], np.array([[True]]), [1j]])
def test_values_that_are_no_numbers_are_no_multiplier(values):
    """Whole numbers beyond the floats, text and ragged lists are refused with `Unproved`, by sticks and moments."""
    for term in (HockeyStick.from_pairs(*all_pairs(2), 0.5, 0.1), Moment(*all_pairs(2), 2.0, Fraction(1, 2))):
        with pytest.raises(Unproved, match="not numbers"):
            term.enclosed_support(values, 1, 2, FLOAT)
        with pytest.raises(Unproved, match="not numbers"):
            term.enclosed_charge(values, 1, FLOAT)
