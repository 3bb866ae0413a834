"""A divergence of one's own: checked once, completed numerically, frozen."""

import math
import re

import numpy as np
import pytest

from ldpopt.divergences import (
    CHI_SQUARED,
    JEFFREYS,
    JENSEN_SHANNON,
    KL,
    LE_CAM,
    NEYMAN_CHI_SQUARED,
    REVERSE_KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    FDivergence,
)
from ldpopt.errors import InvalidInput

TWINS = {
    KL: lambda t: t * np.log(t),
    REVERSE_KL: lambda t: -np.log(t),
    JEFFREYS: lambda t: (t - 1) * np.log(t),
    TOTAL_VARIATION: lambda t: abs(t - 1) / 2,
    CHI_SQUARED: lambda t: (t - 1) ** 2,
    NEYMAN_CHI_SQUARED: lambda t: (t - 1) ** 2 / t,
    SQUARED_HELLINGER: lambda t: (np.sqrt(t) - 1) ** 2,
    JENSEN_SHANNON: lambda t: (t * np.log(2 * t / (1 + t)) + np.log(2 / (1 + t))) / 2,
    LE_CAM: lambda t: (t - 1) ** 2 / (t + 1),
}
EVERY = pytest.mark.parametrize("named", TWINS, ids=lambda f: f.name)


def says(text):
    return pytest.raises(InvalidInput, match=re.escape(text))


@EVERY
def test_the_generator_alone_gives_everything(named):
    """From f alone come the limits, derivative, conjugate and divergence of the named twin."""
    mine = FDivergence(TWINS[named], name="mine")
    assert mine.at_zero == pytest.approx(named.at_zero, abs=1e-6)
    assert mine.slope_at_infinity == pytest.approx(named.slope_at_infinity, abs=1e-6)
    t = np.array([0.05, 0.5, 0.9, 1.2, 2.0, 30.0])
    np.testing.assert_allclose(mine.generator(t), named.generator(t), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(mine.derivative(t), named.derivative(t), rtol=1e-6, atol=1e-8)
    for s in named.derivative(t):
        if s < named.slope_at_infinity - 1e-3:
            assert mine.conjugate(s) == pytest.approx(named.conjugate(s), rel=1e-7, abs=1e-7)
    rng = np.random.default_rng(9)
    for _ in range(10):
        p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        assert mine(p, q) == pytest.approx(named(p, q), rel=1e-7, abs=1e-12)
    assert mine([1, 0], [0, 1]) == pytest.approx(named([1, 0], [0, 1]), rel=1e-5)
    assert mine([0.5, 0.5, 0], [0.2, 0.8, 0]) == pytest.approx(named([0.5, 0.5], [0.2, 0.8]), rel=1e-7)


def test_user_supplied_derivatives_and_limits_are_used():
    """A user's derivative, limits and conjugate are used instead of their numerical stand-ins."""
    mine = FDivergence(
        TWINS[CHI_SQUARED], derivative=lambda t: 2 * (t - 1), at_zero=1.0, slope_at_infinity=math.inf,
        conjugate=CHI_SQUARED.conjugate,
    )  # fmt: skip
    assert (mine.at_zero, mine.slope_at_infinity) == (1.0, math.inf)
    assert mine.derivative(3.0) == 4.0
    assert mine.conjugate(2.0) == 3.0
    assert mine.conjugate(np.array([2.0, 4.0])).tolist() == [3.0, 8.0]


def test_scalar_functions_are_vectorised():
    """A generator written with math functions for one number works on arrays."""
    mine = FDivergence(lambda t: t * math.log(t), derivative=lambda t: math.log(t) + 1)
    p, q = [0.2, 0.3, 0.5], [0.5, 0.25, 0.25]
    assert mine(p, q) == pytest.approx(KL(p, q), rel=1e-12)
    assert mine.conjugate(np.array([0.0, 1.0])) == pytest.approx([math.exp(-1), 1.0], rel=1e-9)


def test_the_linear_part_of_f_does_not_matter():
    """f(t) + c(t - 1) is the same divergence on distributions."""
    mine = FDivergence(lambda t: t * np.log(t) + 5 * (t - 1))
    p, q = [0.2, 0.8], [0.5, 0.5]
    assert mine(p, q) == pytest.approx(KL(p, q), rel=1e-8)


def test_kinked_generators_are_divergences():
    """A generator with a kink at 1 and elsewhere is accepted, with a subgradient between the one-sided slopes."""
    mine = FDivergence(lambda t: np.maximum(t - 1.5, 0) + abs(t - 1))
    assert mine([0.9, 0.1], [0.5, 0.5]) == pytest.approx(0.5 * (0.3 + 0.8) + 0.5 * 0.8)
    assert -1 <= mine.derivative(1.0) <= 1


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda t: -((t - 1) ** 2), "generator f: expected a convex function, got f above its chord at t = "),
        (np.log, "generator f: expected a convex function, got f above its chord at t = "),
        (lambda t: np.sin(t) - np.sin(1), "generator f: expected a convex function"),
        (lambda t: (t - 1) ** 2 - 0.01 * (abs(t - 0.7) < 0.01), "generator f: expected a convex function"),
        (lambda t: t**2, "generator f: expected f(1) = 0, got 1.0"),
        (lambda t: (t - 1) ** 2 + 1e-6, "generator f: expected f(1) = 0, got 1e-06"),
        (lambda t: np.where(t < 1, np.nan, t - 1), "generator f: expected finite values on (0, inf), got nan at t = 1"),
        (lambda t: np.where(t > 5, np.inf, (t - 1) ** 2), "generator f: expected finite values on (0, inf), got inf"),
        (lambda t: math.exp(t) - math.e, "a real number for every t in (0, inf), got OverflowError"),
        (lambda t: "x", "generator f: expected a real number for every t in (0, inf), got ValueError"),
        (lambda t: None, "generator f: expected f(1) = 0, got nan"),
        (lambda t: t.nothing, "generator f: expected a function of a positive number, got AttributeError"),
        (lambda: 0, "generator f: expected a function of a positive number, got TypeError"),
        (3, "generator f: expected a function of a positive number, got TypeError"),
        (None, "generator f: expected a function of a positive number, got TypeError"),
    ],
)  # fmt: skip
def test_bad_generators_are_refused(f, message):
    """Concave, shifted, non-finite, failing and non-callable generators are refused with a reason."""
    with says(message):
        FDivergence(f)


def test_a_wrong_derivative_is_found():
    """A derivative that is no subgradient is an error with the place."""
    with says("derivative: expected a subgradient of f, got "):
        FDivergence(TWINS[KL], derivative=lambda t: np.log(t))
    with says("derivative: expected a subgradient of f, got "):
        FDivergence(TWINS[CHI_SQUARED], derivative=lambda t: -2 * (t - 1))


def test_a_limit_below_the_chords_is_found():
    """A stated limit that convexity rules out, and one that is no number, is an error."""
    for wrong in (0.5, -math.inf, math.nan):
        with says("at_zero: expected the limit of a convex f, at least 1"):
            FDivergence(TWINS[CHI_SQUARED], at_zero=wrong)
    with says("slope_at_infinity: expected the limit of a convex f, at least "):
        FDivergence(TWINS[TOTAL_VARIATION], slope_at_infinity=0.4)


def test_a_divergence_is_frozen():
    """Neither a new nor an old attribute can be set or deleted."""
    for divergence in (KL, FDivergence(TWINS[KL])):
        with pytest.raises(AttributeError, match="FDivergence is frozen; cannot set at_zero"):
            divergence.at_zero = 1.0
        with pytest.raises(AttributeError, match="FDivergence is frozen; cannot delete name"):
            del divergence.name
        with pytest.raises(AttributeError):
            divergence.other = 1


def test_the_distributions_are_checked():
    """Evaluation refuses what is no pair of distributions of one length, and names the argument."""
    with says("p: expected entries that sum to 1"):
        KL([1, 1], [0.5, 0.5])
    with says("q: expected 2 entries, got 3"):
        KL([0.5, 0.5], [0.5, 0.25, 0.25])
    with says("q: expected non-negative entries, got -0.5 at entry 1"):
        KL([0.5, 0.5], [1.5, -0.5])
    with says("p: expected finite numbers, got nan at entry 0"):
        KL([math.nan, 1], [0.5, 0.5])


def test_the_repr_is_the_name():
    """A divergence shows its name."""
    assert repr(KL) == "<KL divergence>"
    assert repr(FDivergence(TWINS[KL], name="mine")) == "<mine>"
