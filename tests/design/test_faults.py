"""A solver that fails or lies: the certificate or the repair catches it, and nothing false is returned."""

import dataclasses
import math

import cvxpy as cp
import numpy as np
import pytest

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import PatternLP
from ldpopt.divergences import KL
from ldpopt.errors import LdpoptError, SolverError
from ldpopt.privacy import local_dp, total_variation

UTILITY = Divergence(KL, [0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4])
EPSILON, ETA = 1.0, 0.3
CONSTRAINTS = [LocalDP(EPSILON), TotalVariation(ETA)]
OPTIMUM = optimal_channel(UTILITY, CONSTRAINTS).value
HONEST = cp.Problem.solve


def corrupted(monkeypatch, change):
    """Every solver says "optimal", with its variables and multipliers changed by `change(values)`."""

    def solve(problem, *arguments, **options):
        value = HONEST(problem, *arguments, **options)
        for variable in problem.variables():
            variable.save_value(change(np.asarray(variable.value, dtype=float)))
        for constraint in problem.constraints:
            for dual in constraint.dual_variables:
                if dual.value is not None:
                    dual.save_value(change(np.asarray(dual.value, dtype=float)))
        return value

    monkeypatch.setattr(cp.Problem, "solve", solve)


def noise(scale, seed=0):
    rng = np.random.default_rng(seed)
    return lambda values: values + scale * rng.standard_normal(values.shape)


LIES = {
    "noise 1e-9": noise(1e-9),
    "noise 1e-6": noise(1e-6),
    "noise 1e-4": noise(1e-4),
    "noise 1e-2": noise(1e-2),
    "noise 1": noise(1.0),
    "scaled up": lambda values: values * 1.001,
    "scaled down": lambda values: values * 0.999,
    "zero": lambda values: values * 0.0,
    "negated": lambda values: -values,
    "reversed": lambda values: values.ravel()[::-1].reshape(values.shape),
    "one entry doubled": lambda values: values * (1 + (np.arange(values.size).reshape(values.shape) == 0)),
    "NaN": lambda values: values * np.nan,
    "infinite": lambda values: values + np.inf,
}


@pytest.mark.parametrize("method", [None, PatternLP()], ids=["chosen", "pattern LP"])
@pytest.mark.parametrize("lie", LIES)
def test_a_lying_solver_yields_no_false_claim(monkeypatch, lie, method):
    """A corrupted answer is refused, or the channel returned meets its constraints and the bound is a bound."""
    corrupted(monkeypatch, LIES[lie])
    try:
        design = optimal_channel(UTILITY, CONSTRAINTS, method=method)
    except LdpoptError:
        return
    assert local_dp(design.channel).value <= EPSILON
    assert total_variation(design.channel).value <= ETA
    m0, m1 = design.channel.push(UTILITY.p0), design.channel.push(UTILITY.p1)
    assert design.value == pytest.approx(float(KL(m0, m1)), rel=1e-9, abs=1e-15)
    assert design.value <= OPTIMUM * (1 + 1e-9)
    if design.upper_bound is not None:
        assert design.upper_bound >= OPTIMUM * (1 - 1e-9)
    if design.certified:
        assert design.value >= OPTIMUM * (1 - 2e-6)


@pytest.mark.parametrize(
    "status", ["infeasible", "unbounded", "optimal_inaccurate", "user_limit", "infeasible_inaccurate"]
)
def test_a_failing_solver_is_named_with_a_remedy(monkeypatch, status):
    """Statuses other than optimal never become a design by the pattern LP; the error names solver and remedy."""

    def solve(problem, *arguments, **options):
        HONEST(problem, *arguments, **options)
        problem._status = status

    monkeypatch.setattr(cp.Problem, "solve", solve)
    with pytest.raises(SolverError, match=rf"HIGHS said {status}[;:] "):
        optimal_channel(UTILITY, CONSTRAINTS, method=PatternLP())


def test_a_crashing_solver_is_a_solver_error(monkeypatch):
    """A solver that raises is reported, not let through."""

    def solve(problem, *arguments, **options):
        raise cp.error.SolverError("time-out")

    monkeypatch.setattr(cp.Problem, "solve", solve)
    with pytest.raises(SolverError, match="solver_error"):
        optimal_channel(UTILITY, CONSTRAINTS, method=PatternLP())


def test_a_changed_certificate_does_not_verify_a_smaller_optimum():
    """Whatever a certificate is changed to, its recomputed bound stays above the optimum or it fails."""
    certificate = optimal_channel(UTILITY, CONSTRAINTS).certificate
    rng = np.random.default_rng(1)
    arrays = [f.name for f in dataclasses.fields(certificate) if isinstance(getattr(certificate, f.name), np.ndarray)]
    assert arrays
    for name in arrays:
        for scale in (1e-6, 1e-2, 1.0):
            values = getattr(certificate, name)
            changed = dataclasses.replace(certificate, **{name: values + scale * rng.standard_normal(values.shape)})
            checked = changed.verify()
            assert not checked or checked.upper_bound >= OPTIMUM * (1 - 1e-9)
            assert math.isnan(checked.upper_bound) or checked.upper_bound >= OPTIMUM * (1 - 1e-9)
