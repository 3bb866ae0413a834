""""""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from ldpopt.divergences import alpha as alpha_divergence
from ldpopt.errors import InvalidInput
from ldpopt.privacy import (
    Affine,
    Polynomial,
    RestrictedAlpha,
    RestrictedKL,
    RestrictedRenyi,
    RestrictedTotalVariation,
    capacity_bounded,
    renyi,
    total_variation,
)
from ldpopt.privacy.capacity import feature_map
from ldpopt.privacy.restricted import restricted_kl, restricted_power, restricted_total_variation


def test_the_basis_is_orthonormal_and_spans_the_polynomials():
    """Every monomial up to the degree is a combination of the basis, whose columns are orthonormal."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 2)) * [1.0, 1e6] + [5.0, -3e7]
    basis = Polynomial(x, 3).basis(40)
    assert basis.shape == (40, 10)
    assert np.allclose(basis.T @ basis, np.eye(10), atol=1e-13)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    for a in range(4):
        for b in range(4 - a):
            monomial = scaled[:, 0] ** a * scaled[:, 1] ** b
            assert np.allclose(basis @ (basis.T @ monomial), monomial, atol=1e-10)


def test_high_degrees_stay_well_conditioned():
    """Degree m - 1 on m points spans every function, also where powers would be dependent to rounding."""
    assert Polynomial(np.arange(30), 29).basis(30).shape == (30, 30)
    assert Polynomial(np.arange(30), 60).basis(30).shape == (30, 30)


def test_dependent_features_add_nothing():
    """Repeated, constant and rescaled features leave the class as it is."""
    y = np.arange(6.0)
    assert Affine(np.stack([y, 2 * y + 1, np.ones(6)], axis=1)).basis(6).shape == (6, 2)
    assert Affine(np.zeros(4)).basis(4).shape == (4, 1)
    assert isinstance(feature_map([0, 1]), Affine)


@pytest.mark.parametrize("features", [[], [[]], "abc", [1, None], np.zeros((2, 2, 2)), [0, np.inf]])
def test_bad_features_are_refused(features):
    """Anything but a finite array of one or two dimensions raises InvalidInput."""
    with pytest.raises(InvalidInput, match="features"):
        Affine(features)


CASES = json.loads((Path(__file__).parents[1] / "data" / "channel_measures.json").read_text())["cases"]


@pytest.mark.full(but=3)
@pytest.mark.parametrize("case", CASES)
def test_linear_adversaries_meet_the_oracle(case):
    """The values of the reference computation for h(y) = a y + b, to 1e-7."""
    y = np.arange(len(case["channel"][0]))
    found = capacity_bounded(case["channel"], y, RestrictedKL())
    assert found.value == pytest.approx(case["linear_kl"], rel=1e-7)
    for order, value in case["linear_renyi"].items():
        found = capacity_bounded(case["channel"], y, RestrictedRenyi(float(order)))
        assert found.value == pytest.approx(value, rel=1e-7)
        assert found.value - found.lower <= 1e-10 * found.value


def laws(count, m, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(m, 0.8), 2) for _ in range(count)]


def test_restricted_kl_is_the_one_dimensional_supremum():
    """For one feature, sup_a a E_p y - log E_q exp(a y) by a scalar search [CIM, Lem 1]."""
    y = np.array([0.0, 1.0, 2.0, 5.0, 7.0])
    for p, q in laws(6, 5):
        direct = -minimize_scalar(lambda a, p=p, q=q: -(a * (p @ y) - math.log(q @ np.exp(a * y))), tol=1e-12).fun
        low, high = restricted_kl(p, q, Affine(y).basis(5))
        assert low == pytest.approx(direct, rel=1e-8)
        assert low <= high <= low * (1 + 1e-10) + 1e-13


@pytest.mark.parametrize("order", [1.05, 1.5, 2.0, 3.0, 6.0, 40.0])
def test_restricted_renyi_is_the_ratio_of_norms(order):
    """For h = y + c the ratio (E_p h)^a/(E_q |h|^A)^(a-1), maximised over c by brute force, never passes the value."""
    y = np.array([0.0, 1.0, 2.0, 5.0, 7.0])
    dual = order / (order - 1)
    shifts = np.sinh(np.linspace(-12, 12, 20_001))
    for p, q in laws(5, 5, seed=1):
        h = np.abs(y + shifts[:, None])
        mean = np.abs(p @ (y + shifts[:, None]).T)
        with np.errstate(divide="ignore"):
            grid = dual * (
                np.log(mean) - np.log((h / h.max(axis=1, keepdims=True)) ** dual @ q) / dual - np.log(h.max(axis=1))
            )
        low, high = restricted_power(p, q, Affine(y).basis(5), order)
        assert grid.max() <= high
        assert low == pytest.approx(grid.max(), rel=1e-3, abs=1e-5)
        assert high - low <= 1e-9 * high + 1e-12


def test_order_two_is_the_closed_form():
    """Order 2 with one feature: exp(D) - 1 = (E_p y - E_q y)^2 / Var_q(y) (Chapman, Robbins)."""
    y = np.array([0.0, 1.0, 2.0, 5.0])
    for p, q in laws(6, 4, seed=2):
        variance = q @ y**2 - (q @ y) ** 2
        low, high = restricted_power(p, q, Affine(y).basis(4), 2.0)
        truth = math.log1p(((p - q) @ y) ** 2 / variance)
        assert low <= truth * (1 + 1e-12)
        assert truth <= high * (1 + 1e-12)
        assert high == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("order", [1.5, 2.0, 3.0])
def test_the_alpha_divergence_has_the_corrected_conjugate(order):
    """sup_h E_p h - C E_q|h|^(a/(a-1)) - 1/(a^2-a) is the restricted alpha-divergence; as printed it is not one.

    CIM, Lemma 3 prints f*(s) = C|s| - 1/(a^2-a), without the exponent and with the sign changed; that function is
    not the conjugate of f(t) = (|t|^a - 1)/(a^2-a), and its supremum is not the divergence.
    """
    scale, dual = order**2 - order, order / (order - 1)
    c = (order - 1) ** dual / order
    s = np.linspace(0.05, 3.0, 15)
    t = np.linspace(0, 60, 200_001)
    truth = np.array([np.max(v * t - (t**order - 1) / scale) for v in s])
    assert np.allclose(c * s**dual + 1 / scale, truth, atol=1e-4)
    assert np.allclose(alpha_divergence(order).conjugate(s), truth, atol=1e-4)
    assert not np.allclose(c * s - 1 / scale, truth, atol=0.1)
    y = np.array([0.0, 1.0, 3.0, 4.0])
    for p, q in laws(3, 4, seed=3):

        def loss(x, p=p, q=q):
            h = x[0] * y + x[1]
            return -(p @ h - c * (q @ np.abs(h) ** dual) - 1 / scale)

        direct = -minimize(
            loss,
            [0.1, 1 / (order - 1)],
            method="Nelder-Mead",
            options={"xatol": 1e-11, "fatol": 1e-14, "maxiter": 4000},
        ).fun
        low, high = RestrictedAlpha(order)._bracket(p, q, Affine(y).basis(4))
        assert low == pytest.approx(direct, rel=1e-6, abs=1e-9)
        assert direct <= high * (1 + 1e-9)


def test_restricted_total_variation_is_the_linear_program():
    """The largest E_p h - E_q h over affine h with values in [0, 1]: extreme h are 0 at one end and 1 at the other."""
    y = np.array([0.0, 1.0, 2.0, 5.0])
    for p, q in laws(5, 4, seed=4):
        low, high = restricted_total_variation(p, q, Affine(y).basis(4))
        truth = abs((p - q) @ y) / 5.0
        assert low - 1e-12 <= truth <= high
        assert high == pytest.approx(truth, abs=1e-12)


def test_the_whole_space_of_functions_restricts_nothing():
    """With indicator features, or polynomials of degree m - 1, the values are the unrestricted ones."""
    rng = np.random.default_rng(5)
    q = rng.dirichlet(np.ones(5), 3)
    for features in (np.eye(5), Polynomial(np.arange(5), 4), Polynomial(rng.random((5, 2)), 3)):
        assert capacity_bounded(q, features, RestrictedKL()).value == pytest.approx(renyi(q, 1).value, rel=1e-9)
        for order in (1.3, 2.0, 7.0):
            found = capacity_bounded(q, features, RestrictedRenyi(order))
            assert found.value == pytest.approx(renyi(q, order).value, rel=1e-9)
        tv = capacity_bounded(q, features, RestrictedTotalVariation())
        assert tv.value == pytest.approx(total_variation(q).value, rel=1e-12)


def test_zero_entries_follow_the_definition():
    """A mean outside the hull of what q can give is infinitely far; one inside is not, whatever the supports."""
    disjoint = [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    for divergence in (RestrictedKL(), RestrictedRenyi(1.5), RestrictedRenyi(3.0)):
        assert capacity_bounded(disjoint, [0, 1, 2], divergence).value <= 1e-7  # equal means are all it can see
        assert capacity_bounded(disjoint, [0, 1, 3], divergence).value == math.inf
        assert capacity_bounded(disjoint, [0, 2, 0], divergence).value == math.inf
    outside = restricted_kl(np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.0]), Affine([0, 1, 2]).basis(3))
    assert outside == (math.inf, math.inf)
    boundary = restricted_kl(np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.25, 0.25]), Affine([0, 1, 2]).basis(3))
    assert boundary[1] == pytest.approx(math.log(4), rel=1e-12)  # attained in the limit of a steep h
    assert boundary[0] == pytest.approx(math.log(4), rel=1e-9)


def test_the_pinsker_like_inequality_holds():
    """The restricted total variation is at most 8 sqrt of the restricted KL [CIM, Thm 7]."""
    for p, q in laws(10, 6, seed=6):
        basis = Affine(np.arange(6)).basis(6)
        assert restricted_total_variation(p, q, basis)[0] <= 8 * math.sqrt(restricted_kl(p, q, basis)[1])


@pytest.mark.parametrize("gap", [1e-13, 1e-9, 1e-3])
def test_an_adversary_of_every_function_finds_the_distance_of_nearly_equal_rows(gap):
    """With a feature for every output the bracket holds the total variation of the laws, in rationals."""
    rng = np.random.default_rng(8)
    for _ in range(15):
        q = np.repeat(rng.dirichlet(np.ones(4))[None], 2, 0) * (1 + gap * rng.random((2, 4)))
        q = q / q.sum(axis=1, keepdims=True) * (1 + rng.uniform(-9e-10, 9e-10, (2, 1)))
        one, two = ([Fraction(float(x)) / sum(map(Fraction, map(float, row))) for x in row] for row in q)
        exact = sum(max(a - b, Fraction(0)) for a, b in zip(one, two, strict=True))
        found = capacity_bounded(q, np.eye(4), RestrictedTotalVariation())
        assert Fraction(found.lower) <= exact <= Fraction(found.value)
        assert found.value - found.lower <= 1e-6 * float(exact) + 1e-22
