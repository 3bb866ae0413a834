"""Piecewise linear divergences, given as knots and slopes: exact in value, in proofs and in files."""

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from ldpopt import ApproximateLDP, Divergence, InvalidInput, LocalDP, TotalVariation, load_design, optimal_channel
from ldpopt.design import ConvexProgram
from ldpopt.divergences import TOTAL_VARIATION, hockey_stick, piecewise_linear
from ldpopt.divergences.base import format_divergence, parse_divergence
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.numbers.enclosures import FLOAT, Exact

KNOTS, SLOPES = (0.5, 0.9, 1.0, 1.7), (-3.0, -1.0, 0.0, 0.5, 2.25)
CROOKED = piecewise_linear(KNOTS, SLOPES)
P0, P1 = [0.5, 0.3, 0.2], [0.1, 0.3, 0.6]


def by_hand(p, q):
    """sum_y q f(p/q) in rational arithmetic, f summed from 1 along its pieces."""

    def f(t):
        ends = sorted({Fraction(1), t, *map(Fraction, KNOTS)})
        total = Fraction(0)
        for low, high in pairwise(ends):
            slope = Fraction(SLOPES[sum(knot <= low for knot in map(Fraction, KNOTS))])
            if 1 <= low < t:
                total += slope * (high - low)
            if t <= low < 1:
                total -= slope * (high - low)
        return total

    return float(sum(Fraction(b) * f(Fraction(a) / Fraction(b)) for a, b in zip(p, q, strict=True)))


def test_the_divergence_is_the_sum_along_its_pieces() -> None:
    """Random distributions have the value of f summed piece by piece; the even kink at 1 counts as total variation."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        p, q = np.round(rng.dirichlet(np.ones(4), 2) * 2**20) / 2**20
        p[-1], q[-1] = 1 - p[:-1].sum(), 1 - q[:-1].sum()
        assert CROOKED(p, q) == pytest.approx(by_hand(p, q), rel=1e-13)
        assert piecewise_linear([1.0], [-0.5, 0.5])(p, q) == TOTAL_VARIATION(p, q)
        assert piecewise_linear([1.5], [0.0, 1.0])(p, q) == hockey_stick(1.5)(p, q)


def test_a_constant_added_to_all_slopes_is_ignored() -> None:
    """f is known up to multiples of t - 1."""
    moved = piecewise_linear(KNOTS, np.array(SLOPES) + 7)
    assert moved(P0, P1) == pytest.approx(CROOKED(P0, P1), rel=1e-14)


@pytest.mark.parametrize("arithmetic", [FLOAT, Exact(256)])
def test_enclosures_hold_the_exact_excess(arithmetic) -> None:
    """At points of every size and sign, the enclosure holds the rational sum of sticks."""
    rng = np.random.default_rng(1)
    b = 2.0 ** rng.integers(-40, 3, 200)
    a = b * rng.choice([0.0, 0.25, 0.5, 0.9, 1.0, 1.0 + 2**-40, 1.7, 3.0, 2.0**40], 200)
    d = a - b
    made = enclosed_excess(CROOKED, arithmetic.of(d), arithmetic.of(b))
    for low, high, x, y in zip(np.asarray(made.lower), np.asarray(made.upper), d, b, strict=True):
        x, y, exact = Fraction(x), Fraction(y), Fraction(0)
        for knot, before, after in zip(map(Fraction, KNOTS), SLOPES, SLOPES[1:], strict=False):
            stick = abs(x) / 2 if knot == 1 else max((x - (knot - 1) * y) * (1 if knot > 1 else -1), Fraction(0))
            exact += (Fraction(after) - Fraction(before)) * stick
        assert Fraction(float(low)) <= exact <= Fraction(float(high))


@pytest.mark.parametrize(
    "caps", [[LocalDP(1.0)], [LocalDP(0.7), TotalVariation(0.1)], [ApproximateLDP(1.0, 0.05)], [TotalVariation(0.3)]]
)
def test_designs_are_certified_also_in_balls_and_from_files(caps, tmp_path) -> None:
    """The optimum is proved in both arithmetics, read back from its file, and is that of the plain program."""
    question = Divergence(CROOKED, P0, P1)
    design = optimal_channel(question, caps)
    assert design.certified
    assert design.verify(exact=True)
    design.save(tmp_path / "design.json")
    assert load_design(tmp_path / "design.json").verify()
    if not isinstance(caps[0], TotalVariation):
        assert optimal_channel(question, caps, method=ConvexProgram()).value == pytest.approx(design.value, rel=1e-6)


def test_a_file_with_another_slope_is_not_believed(tmp_path) -> None:
    """Another slope changes the value, a fallen one makes f no convex function, and text is no list."""
    path = tmp_path / "design.json"
    optimal_channel(Divergence(CROOKED, P0, P1), LocalDP(1.0)).save(path)
    for slopes in ([-3.0, -1.0, -0.75, 0.5, 2.25], [-3.0, -1.0, 0.0, 0.5, 0.25], "steep", [[1.0]]):
        data = json.loads(path.read_text())
        data["utility"]["f"]["parameter"][1] = slopes
        (tmp_path / "forged.json").write_text(json.dumps(data))
        try:
            assert not load_design(tmp_path / "forged.json").verify()
        except InvalidInput as refused:
            assert "slopes" in str(refused) or "list" in str(refused) or "number" in str(refused)


def test_the_divergence_is_printed_and_compared_by_its_data() -> None:
    """Commands read it as KNOTS/SLOPES; two of equal data are equal."""
    assert parse_divergence("piecewise-linear:0.5,0.9,1,1.7/-3,-1,0,0.5,2.25") == CROOKED
    assert parse_divergence(format_divergence(CROOKED)) == CROOKED
    assert piecewise_linear([0.5], [0, 1]) != CROOKED


@pytest.mark.parametrize(
    ("knots", "slopes", "what"),
    [
        ([], [1.0], "knots"),
        ([0.0], [0, 1], "knots"),
        ([2.0, 1.0], [0, 1, 2], "knots"),
        ([1.0], [1.0, 1.0], "slopes"),
        ([1.0], [2.0, 1.0], "slopes"),
        ([1.0], [0.0, np.inf], "slopes"),
        ("x", "y", "knots"),
    ],
)
def test_functions_that_are_not_convex_are_refused(knots, slopes, what) -> None:
    """Falling slopes, knots that do not rise or are not positive, and infinities are refused."""
    with pytest.raises(InvalidInput, match=what):
        piecewise_linear(knots, slopes)
    with pytest.raises(InvalidInput):
        parse_divergence("piecewise-linear:1.5")
