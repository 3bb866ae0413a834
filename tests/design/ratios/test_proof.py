"""Interval and loss certificates: dual values that were tampered with prove less, and do not verify.

The certificate of an expected loss.
"""

import functools
import itertools
import math
from dataclasses import replace
from itertools import islice

import mpmath
import networkx as nx
import numpy as np
import pytest
from design_problems import utility
from scipy.optimize import linprog

from ldpopt import Channel, optimal_channel
from ldpopt.design import (
    ApproximateLDP,
    ConcentratedLDP,
    Divergence,
    Exchange,
    ExpectedLoss,
    IntervalDual,
    LocalDP,
    LossDual,
    RenyiLDP,
    TotalVariation,
)
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.ratios.program import chord_gains
from ldpopt.divergences import CHI_SQUARED, KL, REVERSE_KL
from ldpopt.numbers.enclosures import EXACT
from tests.design.kernel.forging import NO_RECORD, fails_in_words

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
LOSS = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))

DESIGNS = {
    "approximate": lambda: optimal_channel(utility(5, 3), ApproximateLDP(0.8, 0.05), method=Exchange()),
    "Renyi": lambda: optimal_channel(utility(4, 3), RenyiLDP(2.0, 0.4)),
    "total variation": lambda: optimal_channel(
        utility(5, 3), [LocalDP(1.0), TotalVariation(0.2), ApproximateLDP(0.6, 0.05)]
    ),
    "loss": lambda: optimal_channel(ExpectedLoss(PRIOR, LOSS), [LocalDP(1.0), TotalVariation(0.3)]),
}
_MADE = {}


def made(name):
    if name not in _MADE:
        _MADE[name] = DESIGNS[name]()
    return _MADE[name]


def changed(certificate, factor):
    """The certificate with all its multipliers times `factor`."""
    terms = [t for c in certificate.constraints for t in c.columns(range(len(certificate.rows)))]
    multipliers = tuple(replace(m, values=terms[m.term].scaled(m.values, factor)) for m in certificate.multipliers)
    return replace(certificate, rows=factor * certificate.rows, multipliers=multipliers)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", DESIGNS)
def test_the_certificates_are_these(name):
    """Every design here carries an interval or a loss certificate, and verifies."""
    design = made(name)
    assert isinstance(design.certificate, LossDual if name == "loss" else IntervalDual)
    assert design.certificate.verify()
    assert design.verify()


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("how", ["rows", "all smaller", "all larger", "negated", "noise", "NaN"])
def test_corrupted_multipliers_do_not_verify(name, how):
    """Weak duality: changed multipliers never bound below the value, and no longer prove what the design says."""
    design = made(name)
    dual = design.certificate
    rng = np.random.default_rng(0)
    size = float(np.abs(dual.rows).max())
    corrupted = {
        "rows": lambda: replace(dual, rows=0.9 * dual.rows),
        "all smaller": lambda: changed(dual, 0.99),
        "all larger": lambda: changed(dual, 1.01),
        "negated": lambda: changed(dual, -1.0),
        "noise": lambda: replace(dual, rows=dual.rows + 0.01 * size * rng.normal(size=len(dual.rows))),
        "NaN": lambda: replace(dual, rows=np.full(len(dual.rows), np.nan)),
    }[how]()
    assert not corrupted.upper_bound < design.value
    assert not replace(design, certificate=corrupted).verify()


@pytest.mark.parametrize("name", ["approximate", "Renyi"])
def test_intervals_and_classes_are_checked(name):
    """Intervals that leave ratios out or are out of order, and classes of unequal ratios, prove nothing."""
    dual = made(name).certificate
    k = len(dual.utility.p0)
    for wrong in (
        replace(dual, knots=dual.knots[1:]),
        replace(dual, knots=dual.knots[:-1]),
        replace(dual, knots=dual.knots[::-1]),
        replace(dual, knots=np.append(dual.knots, 1.5)),
        replace(dual, classes=np.zeros(k, dtype=int)),
        replace(dual, classes=np.append(np.arange(k - 1), k - 2)),
        replace(dual, classes=np.arange(k) + 1),
        replace(dual, classes=np.arange(k) / 1.0),
        replace(dual, classes=np.arange(k) - 1),
        replace(dual, classes=np.arange(k)[None]),
    ):
        assert wrong.upper_bound == np.inf
        assert not replace(made(name), certificate=wrong).verify()


@pytest.mark.parametrize("name", DESIGNS)
def test_a_channel_that_breaks_the_constraints_does_not_verify(name):
    """A certificate with a channel that leaks names the measure that fails."""
    dual = made(name).certificate
    result = replace(dual, channel=Channel(np.eye(len(dual.rows)), dual.channel.inputs)).verify()
    assert not result
    assert any(" is " in failure for failure in result.failures)


def test_verification_calls_no_solver(monkeypatch):
    """Verifying needs arithmetic only: with every solver disabled it gives the same answer."""
    import cvxpy as cp

    designs = [made(name) for name in DESIGNS]

    def refused(*arguments, **options):
        raise AssertionError("a solver was called")

    monkeypatch.setattr(cp.Problem, "solve", refused)
    assert all(design.verify() for design in designs)


def test_chords_lie_above():
    """On every interval the chord is at least the divergence of any column with that ratio."""
    rng = np.random.default_rng(2)
    p0, p1 = rng.dirichlet(np.ones(4), 2)
    knots = np.linspace(0.05, 0.95, 10)
    linear = chord_gains(KL, Pair.from_distributions(p0, p1), knots).entries
    columns = rng.random((2000, 4))
    a, b = columns @ p0, columns @ p1
    at = np.clip(np.searchsorted(knots, a / (a + b)) - 1, 0, 8)
    assert ((linear[at] * columns).sum(axis=1) >= KL.excess(a, b) - 1e-15).all()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s[::-1],  # in no increasing order
        lambda s: np.insert(s, 1, s[0]),  # an interval of no width
        lambda s: np.delete(s, 0),  # the smallest ratios on no interval
        lambda s: np.delete(s, -1),
        lambda s: np.append(-0.1, s),
        lambda s: np.append(s, 1.1),
    ],
)
def test_knots_that_do_not_cut_the_ratios_prove_nothing(spoil):
    """Intervals must be in order, have a width, and hold every ratio; else the bound is infinite."""
    design = made("approximate")
    worse = replace(design.certificate, knots=spoil(design.certificate.knots))
    assert worse.upper_bound == np.inf
    assert not replace(design, certificate=worse).verify()


def extreme_columns(k, epsilon):
    """The extreme columns of (epsilon, delta)-LDP: unit vectors, and e^level with levels that fill 0..h, h >= 1."""
    columns = list(np.eye(k))
    for levels in itertools.product(range(-1, k), repeat=k):
        used = sorted({level for level in levels if level >= 0})
        if sum(level >= 0 for level in levels) >= 2 and len(used) >= 2 and used == list(range(len(used))):
            columns.append([math.exp(epsilon * level) if level >= 0 else 0.0 for level in levels])
    return np.array([*columns, np.ones(k)])


def optimum(f, p0, p1, epsilon, delta):
    """The optimum under (epsilon, delta)-LDP by a linear program over all extreme columns."""
    columns = extreme_columns(len(p0), epsilon)
    if delta == 0:
        columns = np.array([c for c in columns if c.min() > 0 and c.max() <= math.exp(epsilon) * c.min() * (1 + 1e-9)])
    gains = f.excess(columns @ p0, columns @ p1)
    pairs = [(x, z) for x in range(len(p0)) for z in range(len(p0)) if x != z]
    over = np.array([np.maximum(columns[:, x] - math.exp(epsilon) * columns[:, z], 0.0) for x, z in pairs])
    limits = dict(A_ub=over, b_ub=np.full(len(pairs), delta)) if delta > 0 else {}
    return -linprog(-gains, A_eq=columns.T, b_eq=np.ones(len(p0)), **limits).fun


P0, P1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
FORGED = {
    "pure": (ApproximateLDP(1.0, 0.0), lambda: optimum(KL, P0, P1, 1.0, 0.0)),
    "approximate": (ApproximateLDP(0.7, 0.1), lambda: optimum(KL, P0, P1, 0.7, 0.1)),
    "both": ([ApproximateLDP(0.7, 0.1), ApproximateLDP(1.0, 0.0)], None),
    "Renyi": (RenyiLDP(2.0, 0.4), None),
    "concentrated": (ConcentratedLDP(0.2), None),
}


@functools.cache
def design_and_reached_value(name):
    """A design, and a value that is surely reached: that of a program over all extreme columns, or the design's own."""
    constraint, best = FORGED[name]
    design = optimal_channel(Divergence(KL, P0, P1), constraint, method=None if best is None else Exchange())
    return design, design.value if best is None else best()


@pytest.mark.full(but=3)
@pytest.mark.parametrize("name", FORGED)
def test_the_bound_is_the_optimum(name):
    """The certificate proves the optimum of an independent program, alike in both arithmetics."""
    design, best = design_and_reached_value(name)
    assert design.certificate.verify()
    assert design.value == pytest.approx(best, rel=1e-7)
    assert best * (1 - 1e-9) <= design.certificate.bound <= best * (1 + 1e-6)
    assert design.certificate.verify(exact=True).bound == pytest.approx(design.certificate.bound, rel=1e-9)


WRONG = [math.nan, math.inf, -math.inf, -1.0, -1e-300, 1e300, 5e-324]


def forgeries(dual, rng):
    """Certificates with numbers of every wrong kind in every field."""
    k = len(dual.rows)
    for bad in WRONG:
        rows = dual.rows.copy()
        rows[rng.integers(k)] = bad
        yield replace(dual, rows=rows)
    for rows in (
        dual.rows[::-1],
        np.zeros(k),
        dual.rows[:, None],
        dual.rows[None],
        dual.rows[:-1],
        "no",
        dual.rows / 2,
    ):
        yield replace(dual, rows=rows)
    knots = dual.knots
    for made in (knots[[0, -1]], knots[:1], knots[:0], knots[None], knots * math.nan, knots**2, 1 - knots, knots / 2):
        yield replace(dual, knots=made)
    for number, one in enumerate(dual.multipliers):

        def put(number=number, one=one, **fields):
            changed = list(dual.multipliers)
            changed[number] = replace(one, **fields)
            return replace(dual, multipliers=tuple(changed))

        for term in (-1, 99, 0.5, "0", None):
            yield put(term=term)
        for pairs in (one.pairs - 1, one.pairs + 1, one.pairs[::-1], one.pairs * 0, one.pairs / 1.0, one.pairs[:-1]):
            yield put(pairs=pairs)
        values = one.values
        for made in (
            values * 0,
            values.T,
            values[::-1],
            values[:, ::-1],
            -values,
            values[None],
            values / 2,
            "no",
            None,
        ):
            yield put(values=made)
        for bad in (*WRONG, 0.5, 1e6):
            if values.size:
                for row in range(min(len(values), 5)):
                    changed = values.copy()
                    changed[row, rng.integers(values.shape[1])] = bad
                    yield put(values=changed)
        yield replace(dual, multipliers=dual.multipliers * 2)
    yield replace(dual, multipliers=())
    yield replace(dual, posed=())
    yield replace(dual, posed=(LocalDP(0.1),))
    yield replace(dual, posed=(ApproximateLDP(0.1, 0.01),))
    yield replace(dual, posed=(ConcentratedLDP(0.01),))
    yield replace(dual, constraints=())
    yield replace(dual, classes=np.zeros(k, dtype=int))
    yield replace(dual, classes=rng.permutation(k) + (k - 1))


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", FORGED)
def test_forged_numbers_prove_nothing_that_is_false(name):
    """Weak duality holds for any numbers: no forgery bounds below a value that is reached, in either arithmetic."""
    design, best = design_and_reached_value(name)
    refused = 0
    for number, forged in islice(enumerate(forgeries(design.certificate, np.random.default_rng(0))), 0, None, 3):
        bound = forged.bound
        assert not bound < best * (1 - 1e-12), number
        refused += bound == math.inf
        if number % 27 == 0:
            assert not forged.bound_in(EXACT).value < best * (1 - 1e-12), number
    assert refused > 6


def test_inputs_of_equal_ratio_are_merged_only_when_the_ratios_are_equal():
    """Classes prove the bound of the inputs themselves; inputs whose ratios differ in the last digit are refused."""
    p0, p1 = np.array([0.25, 0.125, 0.375, 0.25]), np.array([0.125, 0.0625, 0.3125, 0.5])
    design = optimal_channel(Divergence(KL, p0, p1), ApproximateLDP(0.7, 0.1), method=Exchange())
    dual = design.certificate
    assert dual.classes.tolist() == [2, 2, 1, 0]
    assert dual.bound >= optimum(KL, p0, p1, 0.7, 0.1) * (1 - 1e-9)
    assert dual.verify()
    near = p0.copy()
    near[1], near[2] = np.nextafter(p0[1], 1), np.nextafter(p0[2], 0)
    assert replace(dual, utility=Divergence(KL, near, p1)).bound == math.inf


@pytest.mark.full
def test_multipliers_serve_implied_orders_and_no_tighter_constraint():
    """The multipliers may be posed for orders that the design's constraint implies, and for no tighter constraint."""
    design, _ = design_and_reached_value("concentrated")
    dual = design.certificate
    assert design.constraints == (ConcentratedLDP(0.2),)
    assert dual.posed is not None
    tighter = tuple(replace(c, rho=c.rho * 0.99) for c in dual.posed)
    assert replace(dual, posed=tighter).bound == math.inf
    assert replace(dual, constraints=(ConcentratedLDP(0.1),)).bound < math.inf


ZEROS = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.8, 0.0])
OTHERS = {"path": LocalDP(1.0, nx.path_graph(3)), "pure": ApproximateLDP(1.0, 0.0), "Renyi": RenyiLDP(4.0, 0.5)}


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    ("name", "f"),
    [*((name, f) for name in ("path", "pure") for f in (KL, REVERSE_KL, CHI_SQUARED)), ("Renyi", REVERSE_KL)],
    ids=lambda one: getattr(one, "name", one),
)
def test_hypotheses_with_zeros_have_finite_optima(name, f):
    """Where full disclosure is infinite, ratios within reach or moments between rows still bound what is kept."""
    design = optimal_channel(Divergence(f, *(ZEROS[::-1] if f is REVERSE_KL else ZEROS)), OTHERS[name])
    assert math.isinf(design.utility.value_without_privacy)
    assert design.relative_gap < 1e-3
    assert design.verify()
    assert design.certificate.verify(exact=True).bound == pytest.approx(design.upper_bound, rel=1e-9)


def test_the_rest_above_a_tangent_is_bounded():
    """f(u) - tangent at R <= c R^(p-o)/(o-1) (u^o - o u + o - 1) for u >= R, in 50 digits."""
    with mpmath.workdps(50):
        for f, p, c in ((lambda u: u * mpmath.log(u), 1, 1), (lambda u: (u - 1) ** 2, 2, 1)):
            for o in (1.0625, 1.5, 2.0, 3.0, 24.0):
                if o < p:
                    continue
                for r in map(mpmath.mpf, ("1.001", "2", "100", "1e8")):
                    for v in map(mpmath.mpf, ("1.0001", "1.5", "10", "1e6", "1e30")):
                        u, slope = r * v, mpmath.log(r) + 1 if p == 1 else 2 * (r - 1)
                        rest = f(u) - f(r) - slope * (u - r)
                        o_ = mpmath.mpf(o)
                        paid = c * r ** (p - o_) / (o_ - 1) * (u**o_ - o_ * u + o_ - 1)
                        assert rest <= paid * (1 + mpmath.mpf(10) ** -30)


def is_empty(value):
    """Whether a stand-in is a list without entries."""
    return isinstance(value, tuple | list) and not len(value)


@pytest.mark.full
@pytest.mark.parametrize("name", ["approximate", "loss"])
def test_a_wrong_record_of_multipliers_proves_no_bound(name):
    """Wrong values in place of multipliers, their constraints, classes and knots fail in words."""
    certificate = made(name).certificate
    one = certificate.multipliers[-1]
    for other in NO_RECORD:
        if not is_empty(other) or not isinstance(other, tuple):
            assert fails_in_words(replace(certificate, multipliers=other))
            assert fails_in_words(replace(certificate, multipliers=(one, other)))
        assert fails_in_words(replace(certificate, multipliers=(replace(one, term=other),)))
        assert fails_in_words(replace(certificate, rows=other))
        if not isinstance(other, tuple) and other is not None:
            assert fails_in_words(replace(certificate, posed=other))
        if isinstance(certificate, IntervalDual):
            assert fails_in_words(replace(certificate, knots=other))
            if other is not None:
                assert fails_in_words(replace(certificate, classes=other))
            if not is_empty(other):
                assert fails_in_words(replace(certificate, multipliers=(replace(one, pairs=other),)))
            assert fails_in_words(replace(certificate, multipliers=(replace(one, values=other),)))


LOSSES = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) ** 1.5
LOSS_PRIOR = [0.5, 0.3, 0.2]
LOSS_DESIGNS = {
    "pure": (LOSS_PRIOR, LocalDP(1.0)),
    "minimax": (None, [LocalDP(1.0), TotalVariation(0.3)]),
    "approximate": (LOSS_PRIOR, ApproximateLDP(0.5, 0.05)),
    "Renyi": (LOSS_PRIOR, RenyiLDP(2.0, 0.3)),
}


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", LOSS_DESIGNS)
def test_forged_numbers_of_a_loss_prove_nothing_that_is_false(name):
    """No weights, rows or multipliers prove a loss that is larger than the one reached."""
    prior, constraints = LOSS_DESIGNS[name]
    design = optimal_channel(ExpectedLoss(prior, LOSSES), constraints)
    dual = design.certificate
    assert isinstance(dual, LossDual)
    assert design.verify()
    assert dual.verify(exact=True).bound == pytest.approx(dual.bound, rel=1e-9)
    rng = np.random.default_rng(0)
    for bad in (math.nan, math.inf, -math.inf, -1.0, 0.0, 1e300, 1e-300):
        weights, rows = dual.weights.copy(), dual.rows.copy()
        weights[rng.integers(len(weights))] = bad
        rows[rng.integers(len(rows))] = bad
        for forged in (
            replace(dual, weights=weights),
            replace(dual, rows=rows),
            replace(dual, weights=np.zeros_like(weights)),
        ):
            assert not forged.bound < design.value - 1e-12
            assert not forged.bound_in(EXACT).value < design.value - 1e-12
        for number, one in enumerate(dual.multipliers):
            if one.values.size:
                values = one.values.copy()
                values[rng.integers(len(values)), rng.integers(values.shape[1])] = bad
                changed = list(dual.multipliers)
                changed[number] = replace(one, values=values)
                assert not replace(dual, multipliers=tuple(changed)).bound < design.value - 1e-12
    for weights in (np.ones(9), [[1.0]], "no", None, []):
        assert replace(dual, weights=weights).bound == math.inf


@pytest.mark.parametrize("epsilon", [30.0, 100.0, 700.0])
def test_losses_far_below_the_reach_of_programs(epsilon):
    """Randomised response is optimal for wrong answers under a nearly uniform prior, at a loss of size e^-epsilon."""
    design = optimal_channel(ExpectedLoss([0.5, 0.3, 0.2], 1 - np.eye(3)), LocalDP(epsilon))
    least = -2 * np.exp(-epsilon)  # 2/(e^epsilon + 2), up to a relative e^-epsilon
    assert design.certified
    assert design.value == pytest.approx(least, rel=1e-9)
    assert least * (1 + 1e-9) <= design.upper_bound <= least * (1 - 1e-6)
