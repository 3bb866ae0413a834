"""Thresholds and ReLU units of one number: against programs over the functions, and what rounding may not do."""

import itertools
import math
from fractions import Fraction

import cvxpy as cp
import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from ldpopt import Ledger
from ldpopt.design import CapacityBounded
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput
from ldpopt.privacy import (
    Affine,
    ReLU,
    RestrictedAlpha,
    RestrictedKL,
    RestrictedRenyi,
    RestrictedTotalVariation,
    Thresholds,
    capacity_bounded,
    renyi,
    total_variation,
)
from ldpopt.privacy.kinks import _majorizing, _tail_moment


def by_search(p, q, phi, order):
    """The restricted Rényi divergence by a search over rising and falling functions, from below."""
    best = 0.0
    for way in (phi, -phi):
        steps = (way[:, None] >= np.unique(way)[1:]).astype(float)
        basis = np.hstack([np.ones((len(p), 1)), steps])

        def loss(x, basis=basis):
            h = basis @ x
            if order == 1:
                top = h.max()
                return -(p @ h - top - math.log(q @ np.exp(h - top)))
            dual = order / (order - 1)
            gain, size = p @ h, q @ np.abs(h) ** dual
            return -(dual * math.log(gain) - math.log(size)) if gain > 0 else 1e3

        bounds = [(None, None)] + [(0, None)] * steps.shape[1]
        for start in (np.ones(basis.shape[1]), np.linspace(0.1, 1, basis.shape[1])):
            best = max(best, -minimize(loss, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15}).fun)
    return best


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 4.0])
def test_pooled_distributions_are_the_best_monotone_functions(order):
    """No rising or falling function finds more, and a search comes close."""
    rng = np.random.default_rng(int(10 * order))
    for _ in range(12):
        m = int(rng.integers(2, 7))
        p, q = rng.dirichlet(np.ones(m), 2)
        phi = rng.permutation(m).astype(float) if m < 5 else np.round(rng.uniform(0, 4, m))
        found = capacity_bounded([p, q], Thresholds(phi), RestrictedRenyi(order))
        searched = max(by_search(p, q, phi, order), by_search(q, p, phi, order))
        assert searched <= found.value * (1 + 1e-9) + 1e-12
        assert searched == pytest.approx(found.value, rel=2e-3, abs=1e-6)
        assert found.lower == pytest.approx(found.value, rel=1e-12, abs=1e-300)


def test_total_variation_is_the_kolmogorov_distance():
    """A linear program over rising functions in [0, 1], and the largest difference of two tails in fractions."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        m = int(rng.integers(2, 9))
        p, q = rng.dirichlet(np.ones(m), 2)
        phi = np.round(rng.uniform(0, 5, m))
        found = capacity_bounded([p, q], Thresholds(phi), RestrictedTotalVariation())
        above = [(a, b) for a, b in itertools.permutations(range(m), 2) if phi[a] <= phi[b]]
        rows = np.zeros((len(above), m))
        for row, (a, b) in zip(rows, above, strict=True):
            row[a], row[b] = 1.0, -1.0
        best = max(-linprog(sign * (q - p), rows, np.zeros(len(rows)), bounds=(0, 1)).fun for sign in (1, -1))
        assert found.value == pytest.approx(best, rel=1e-9, abs=1e-12)
        a, b = ([Fraction(x) for x in law] for law in (p.tolist(), q.tolist()))
        tails = [abs(sum(x for x, t in zip(a, phi, strict=True) if t >= s) / sum(a)
                     - sum(x for x, t in zip(b, phi, strict=True) if t >= s) / sum(b)) for s in phi]  # fmt: skip
        assert Fraction(found.lower) <= max(tails) <= Fraction(found.value)
        assert found.value - found.lower <= 2.0**-52


def test_thresholds_lie_between_affine_and_all_functions():
    """Affine functions of one number rise or fall, so thresholds find at least as much; nobody more than everybody."""
    rng = np.random.default_rng(6)
    for _ in range(10):
        q = rng.dirichlet(np.ones(5), 3)
        for divergence, whole in ((RestrictedKL(), renyi(q, 1)), (RestrictedTotalVariation(), total_variation(q))):
            found = capacity_bounded(q, Thresholds(np.arange(5)), divergence).value
            assert capacity_bounded(q, Affine(np.arange(5)), divergence).lower <= found * (1 + 1e-12)
            assert found <= whole.value * (1 + 1e-12)
    rising = [[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]]  # its ratios rise: nothing is pooled
    assert capacity_bounded(rising, Thresholds(np.arange(4)), RestrictedKL()).value == pytest.approx(
        max(KL(*rising), KL(*rising[::-1])), rel=1e-14
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e-3])
def test_tiny_masses_ties_and_exact_bounds(scale):
    """Masses down to 1e-300 and tied ratios: the bound is above the value in 400 digits, by a rounding."""
    p, q = [scale, 0.5, 0.5 - scale, 0.0], [0.25, 0.25, 0.25, 0.25]
    for order in (1.0, 1 + 1e-12, 3.0, 50.0):
        found = capacity_bounded([p, q], Thresholds([0, 1, 2, 3]), RestrictedRenyi(order))
        with mpmath.workdps(400):
            truth = mpmath.mpf(0)
            for a, b in ((p, q), (q, p)):
                for at in itertools.product(
                    (0, 1), repeat=3
                ):  # every partition into intervals whose ratios rise or fall
                    cuts = [0, *(i + 1 for i, cut in enumerate(at) if cut), 4]
                    blocks = [(mpmath.fsum(map(mpmath.mpf, a[i:j])), mpmath.fsum(map(mpmath.mpf, b[i:j])))
                              for i, j in itertools.pairwise(cuts)]  # fmt: skip
                    ratios = [x / y if y else mpmath.inf for x, y in blocks]
                    if ratios in (sorted(ratios), sorted(ratios, reverse=True)):
                        truth = max(truth, exact_renyi(blocks, order))
            assert found.value >= truth * (1 - mpmath.mpf(10) ** -350)
            assert found.value <= truth * (1 + mpmath.mpf(10) ** -14) or (
                mpmath.isinf(truth) and math.isinf(found.value)
            )


def exact_renyi(blocks, order):
    whole = [mpmath.fsum(side) for side in zip(*blocks, strict=True)]
    laws = [(a / whole[0], b / whole[1]) for a, b in blocks if a > 0]
    if any(b == 0 for _, b in laws):
        return mpmath.inf
    if order == 1:
        return mpmath.fsum(a * mpmath.log(a / b) for a, b in laws)
    power = mpmath.mpf(order) - 1
    return mpmath.log(mpmath.fsum(a * (a / b) ** power for a, b in laws)) / power


def test_relabelled_outputs_and_equal_rows():
    """The order of the outputs does not matter, nor the unit of phi; equal rows keep nothing."""
    q, phi = np.random.default_rng(1).dirichlet(np.ones(5), 3), np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    order = np.random.default_rng(2).permutation(5)
    for divergence in (RestrictedKL(), RestrictedAlpha(2.0), RestrictedTotalVariation()):
        found = capacity_bounded(q, Thresholds(phi), divergence).value
        assert capacity_bounded(q[:, order], Thresholds(phi[order] * 1e-300), divergence).value == found
        assert capacity_bounded(q, Thresholds(-phi), divergence).value == found
        assert capacity_bounded(q[[0, 0]], Thresholds(phi), divergence).value == 0
        assert capacity_bounded(q, Thresholds(np.zeros(5)), divergence).value == 0


def test_ledgers_add_them_upward():
    """Uses add up, rounded up, and never exceed what all functions find."""
    q = [[0.5, 0.2, 0.3], [0.3, 0.5, 0.2]]
    ledger = Ledger().add(q, count=7, features=Thresholds([0, 1, 2]))
    one = capacity_bounded(q, Thresholds([0, 1, 2]), RestrictedKL()).value
    assert Fraction(ledger.capacity_bounded(RestrictedKL()).value) >= 7 * Fraction(one)
    assert ledger.capacity_bounded(RestrictedKL()).value <= 7 * renyi(q, 1).value


def test_bad_features_and_designs_are_refused():
    """Numbers for another count of outputs, more than one number an output, and designs, which pose linear classes."""
    with pytest.raises(InvalidInput, match="one number for each of the 2 outputs"):
        capacity_bounded(np.eye(2), Thresholds([0, 1, 2]), RestrictedKL())
    for features in ([], [[0, 1]], [0, np.inf], "ab"):
        with pytest.raises(InvalidInput, match="features"):
            Thresholds(features)
    with pytest.raises(InvalidInput, match="features: expected an array, Affine or Polynomial"):
        CapacityBounded(Thresholds([0, 1]), RestrictedKL(), 0.5)
    with pytest.raises(InvalidInput, match="one number for each of the 2 outputs"):
        Ledger().add(np.eye(2), features=Thresholds([0, 1, 2]))


def convex_by_program(p, q, phi, order):
    """The restricted divergence by a conic program over convex and concave functions, posed from the definition."""
    best = 0.0
    steps = np.diff(phi)
    for sign in (1, -1):
        h = cp.Variable(len(p))
        bends = cp.multiply(1 / steps[1:], cp.diff(h)[1:]) - cp.multiply(1 / steps[:-1], cp.diff(h)[:-1])
        shape = [sign * bends >= 0] if len(p) > 2 else []
        if order == 1:
            problem = cp.Problem(cp.Maximize(p @ h - cp.log_sum_exp(h + np.log(q))), shape)
            best = max(best, problem.solve(solver=cp.CLARABEL))
        else:
            dual = order / (order - 1)
            root = cp.multiply(q ** (1 / dual), h)
            problem = cp.Problem(cp.Maximize(p @ h), [*shape, cp.pnorm(root, dual) <= 1])
            best = max(best, dual * math.log(max(problem.solve(solver=cp.CLARABEL), 1.0)))
    return best


@pytest.mark.full(but=1)
@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 3.0])
def test_relu_units_agree_with_conic_programs(order):
    """The bracket of the best convex or concave function holds what another program finds, and is narrow."""
    rng = np.random.default_rng(int(10 * order))
    for _ in range(8):
        m = int(rng.integers(2, 8))
        p, q = rng.dirichlet(np.ones(m), 2)
        phi = np.cumsum(rng.uniform(0.2, 2.0, m))
        found = capacity_bounded([p, q], ReLU(phi), RestrictedRenyi(order))
        searched = max(convex_by_program(p, q, phi, order), convex_by_program(q, p, phi, order))
        assert searched <= found.value * (1 + 1e-5) + 1e-7
        assert found.lower <= searched * (1 + 1e-5) + 1e-7
        assert found.value - found.lower <= 1e-3 * found.value


def test_relu_total_variation_agrees_with_a_linear_program():
    """Convex functions with values in [0, 1]: the largest sum of two hinges, exactly, is the value of the program."""
    rng = np.random.default_rng(14)
    for _ in range(30):
        m = int(rng.integers(2, 9))
        p, q = rng.dirichlet(np.ones(m), 2)
        phi = np.cumsum(rng.uniform(0.2, 2.0, m))
        found = capacity_bounded([p, q], ReLU(phi), RestrictedTotalVariation())
        bends = np.zeros((max(m - 2, 0), m))
        for row, at in zip(bends, range(1, m - 1), strict=True):
            left, right = 1 / (phi[at] - phi[at - 1]), 1 / (phi[at + 1] - phi[at])
            row[at - 1 : at + 2] = -left, left + right, -right
        best = max(-linprog(s * (q - p), bends, np.zeros(len(bends)), bounds=(0, 1)).fun for s in (1, -1))
        assert found.value == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert found.lower == pytest.approx(found.value, rel=1e-14, abs=1e-300)


def test_relu_lies_between_affine_and_all_functions():
    """Affine functions are of the class; hostile masses, scales and orders give a bracket, however wide, that holds."""
    rng = np.random.default_rng(15)
    for turn in range(40):
        m = int(rng.integers(1, 7))
        rows = rng.dirichlet(np.full(m, 10.0 ** rng.uniform(-1, 1)), 2) if m > 1 else np.ones((2, 1))
        rows[0] = np.where(rng.random(m) < 0.2, 1e-300, rows[0])
        rows /= rows.sum(axis=1, keepdims=True)
        phi = rng.standard_normal(m) * 10.0 ** rng.integers(-300, 300) if turn % 3 else np.round(rng.uniform(0, 3, m))
        order = float(rng.choice([1.0, 1.01, 2.0, 50.0, 1e6]))
        found = capacity_bounded(rows, ReLU(phi), RestrictedRenyi(order))
        assert 0 <= found.lower <= found.value <= renyi(rows, order).value * (1 + 1e-12)
        linear = capacity_bounded(rows, Affine(phi), RestrictedRenyi(order)).lower
        assert linear <= found.value * (1 + 1e-9) + 1e-12 or not math.isfinite(linear)


def test_majorizing_measures_are_exact():
    """Whatever measure the search ends with, the repaired one majorizes p, or is majorized by it, in fractions."""
    rng = np.random.default_rng(16)
    for sign in (1, -1):
        for _ in range(30):
            m = int(rng.integers(2, 8))
            phi = [Fraction(x) for x in np.cumsum(rng.uniform(0.1, 1, m)).tolist()]
            p = [Fraction(x) for x in rng.dirichlet(np.ones(m)).tolist()]
            p = [x / sum(p) for x in p]
            rough = [Fraction(x) for x in (rng.dirichlet(np.ones(m)) + rng.normal(0, 0.3, m)).tolist()]
            r = _majorizing(phi, p, rough, True, sign)
            assert sum(r) == 1
            assert sum(a * x for a, x in zip(r, phi, strict=True)) == sum(a * x for a, x in zip(p, phi, strict=True))
            assert all(sign * (_tail_moment(phi, r, at) - _tail_moment(phi, p, at)) >= 0 for at in range(m))
            assert min(r) >= 0
