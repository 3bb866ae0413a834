"""Tests of `ldpopt.design.interval_dual`: dual values that were tampered with prove less, and do not verify."""

from dataclasses import replace

import numpy as np
import pytest
from design_problems import utility

from ldpopt import Channel, optimal_channel
from ldpopt.design import (
    ApproximateLDP,
    Exchange,
    ExpectedLoss,
    IntervalDual,
    LocalDP,
    LossDual,
    RenyiLDP,
    TotalVariation,
)
from ldpopt.design.certificates.intervals import chords
from ldpopt.design.programs.labels import scaled
from ldpopt.divergences import KL

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
LOSS = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))

DESIGNS = {
    "approximate": lambda: optimal_channel(utility(5, 3), ApproximateLDP(0.8, 0.05)),
    "Renyi": lambda: optimal_channel(utility(4, 3), RenyiLDP(2.0, 0.4)),
    "total variation": lambda: optimal_channel(utility(5, 3), [LocalDP(1.0), TotalVariation(0.2)], method=Exchange()),
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
    multipliers = tuple(replace(m, values=scaled(terms[m.term], m.values, factor)) for m in certificate.multipliers)
    return replace(certificate, rows=factor * certificate.rows, multipliers=multipliers)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_certificates_are_these(name):
    """Every design here carries an interval or a loss certificate, and verifies."""
    design = made(name)
    assert isinstance(design.certificate, LossDual if name == "loss" else IntervalDual)
    assert design.certificate.verify()
    assert design.verify()


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
def test_intervals_and_points_are_checked(name):
    """Intervals that leave ratios out or are out of order, and points that do not dominate, prove nothing."""
    dual = made(name).certificate
    for wrong in (
        replace(dual, knots=dual.knots[1:]),
        replace(dual, knots=dual.knots[:-1]),
        replace(dual, knots=dual.knots[::-1]),
        replace(dual, knots=np.append(dual.knots, 1.5)),
        replace(dual, points=np.column_stack([dual.points.sum(axis=1) / 2] * 2)),
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
    linear = chords(KL, p0, p1, knots)
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
