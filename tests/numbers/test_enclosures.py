"""Every operation encloses its true result, in both arithmetics; what is undefined encloses every number."""

import math
import sys
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ldpopt.errors import CertificateError, InvalidInput
from ldpopt.numbers.enclosures import EXACT, FLOAT, Exact, arithmetic, floats
from ldpopt.numbers.rounding import float_down

INF = math.inf
BOTH = pytest.mark.parametrize("of", [FLOAT, EXACT], ids=["float", "exact"])
NASTY = [0.0, 5e-324, 1e-320, 2.0**-1022, 1e-300, 1e-160, 1e-17, 2.0**-53, 0.1, 0.5, 1 - 2.0**-53, 1.0, 1 + 2.0**-52,
         3.0, 1e5, 1e17, 1e154, 1e160, 1e300, sys.float_info.max]  # fmt: skip
SIGNED = np.array([*NASTY, *(-x for x in NASTY[1:])])


def holds(enclosure, exact):
    """Whether the exact number, a Fraction or an mpf, lies between the ends of one enclosure."""
    lower, upper = enclosure.lower, enclosure.upper
    assert not math.isnan(lower)
    assert not math.isnan(upper)
    if isinstance(exact, Fraction):
        return (lower == -INF or Fraction(lower) <= exact) and (upper == INF or exact <= Fraction(upper))
    return lower <= exact <= upper  # mpmath compares floats exactly


def everything(enclosure):
    return bool(np.all(np.asarray(enclosure.lower) == -INF) and np.all(np.asarray(enclosure.upper) == INF))


@BOTH
@pytest.mark.parametrize("sign", "+-*/")
def test_operations_enclose_the_exact_result(of, sign):
    """The four operations on every pair of nasty numbers enclose the exact result, within two ulps if normal."""
    x, y = (part.ravel() for part in np.meshgrid(SIGNED, SIGNED))
    one, two = of.of(x), of.of(y)
    found = {"+": one + two, "-": one - two, "*": one * two, "/": one / two}[sign]
    for i in range(len(x)):
        a, b = Fraction(x[i]), Fraction(y[i])
        if sign == "/" and b == 0:
            assert everything(found[i])
            continue
        exact = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0}[sign]
        assert holds(found[i], exact)
        if exact == 0 and (sign in "*/" or of.exact):
            assert found[i].lower == found[i].upper == 0
        if 2.0**-1000 < abs(exact) < 2.0**1000:
            assert found[i].upper - found[i].lower <= 2.0**-51 * abs(exact)
        if exact > 0:
            assert found[i].lower >= 0
        if exact < 0:
            assert found[i].upper <= 0


@BOTH
def test_operations_on_intervals_hold_every_pair_of_members(of):
    """Of random intervals around every sign, the result holds the result of the ends, middles and zeros in them."""
    rng = np.random.default_rng(1)
    ends = np.sort(rng.choice(SIGNED[np.abs(SIGNED) < 1e100], (120, 2, 2)), axis=2)
    one, two = (of.between(ends[:, i, 0], ends[:, i, 1]) for i in (0, 1))
    results = {"+": one + two, "-": one - two, "*": one * two, "/": one / two, "max": one.maximum(two),
               "min": one.minimum(two), "square": one.square(), "abs": one.abs(),
               "positive": one.positive()}  # fmt: skip
    for i in range(len(ends)):
        for a in members(*ends[i, 0]):
            for b in members(*ends[i, 1]):
                exact = {"+": a + b, "-": a - b, "*": a * b, "max": max(a, b), "min": min(a, b), "square": a * a,
                         "abs": abs(a), "positive": max(a, 0)}  # fmt: skip
                if b != 0:
                    exact["/"] = a / b
                for name, value in exact.items():
                    assert holds(results[name][i], value), (name, ends[i])


def members(low, high):
    low, high = Fraction(low), Fraction(high)
    return {low, high, (low + high) / 2, min(max(Fraction(0), low), high)}


FUNCTIONS = {
    "exp": mpmath.exp, "expm1": mpmath.expm1, "log": mpmath.log, "log1p": mpmath.log1p, "sqrt": mpmath.sqrt,
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_enclosed_at_all_magnitudes(of, name):
    """exp, expm1, log, log1p and sqrt enclose the value in 200 bits, at all magnitudes and near their zeros."""
    rng = np.random.default_rng(2)
    count = 100 if of.exact else 400
    x = np.concatenate([10.0 ** rng.uniform(-323, 308, count), rng.uniform(0, 750, count), np.array(NASTY),
                        1 + np.append(0, 10.0 ** rng.uniform(-16, 0, count))])  # fmt: skip
    if name in ("exp", "expm1"):
        x = np.concatenate([x, -x, np.linspace(709.7, 709.9, 41), -np.linspace(700, 760, 61)])
    if name in ("log1p", "log"):
        x = np.concatenate(
            [x, [-1 + 2.0**-53, -0.5, -1e-300] if name == "log1p" else 1 - 10.0 ** rng.uniform(-16, 0, count)]
        )
    if name in ("log", "sqrt"):
        x = x[x >= 0]
    found = getattr(of.of(x), name)()
    lower, upper = found.lower, found.upper
    with mpmath.workprec(200):
        for i, value in enumerate(x):
            if value == 0 and name == "log":
                assert lower[i] == -INF
                continue
            # Beyond 800 both exponentials are outside float64 on the same side.
            given = mpmath.mpf(min(max(float(value), -1200.0), 1200.0)) if "exp" in name else mpmath.mpf(float(value))
            exact = FUNCTIONS[name](given)
            assert lower[i] <= exact <= upper[i], value
            if abs(exact) > 1e-300 and abs(exact) < 1e300:
                assert upper[i] - lower[i] <= 2.0**-46 * abs(exact)
            if name in ("exp", "sqrt") and not of.exact:
                assert lower[i] >= 0


@BOTH
def test_functions_of_intervals_reach_both_ends(of):
    """An increasing function of an interval reaches from the value of its lower end to that of its upper."""
    for low, high in ((0.5, 2.0), (1e-300, 1e300), (0.0, 3.0), (1e-9, 1e-9)):
        x = of.between(low, high)
        for name, function in FUNCTIONS.items():
            if name in ("exp", "expm1") and high > 700:
                continue
            found = getattr(x, name)()
            if not (low == 0 and name == "log"):
                assert holds(found, function(mpmath.mpf(low)))
            assert holds(found, function(mpmath.mpf(high)))


@BOTH
def test_functions_are_unbounded_outside_their_domain(of):
    """The logarithm of what may be zero is unbounded below; of what is surely negative, everything; so with roots."""
    assert of.between(0, 1).log().lower == -INF
    assert of.between(-1, 1).log().lower == -INF
    assert everything(of.of(-1.0).log())
    assert everything(of.between(-2, -1).log())
    assert everything(of.of(-1.5).log1p())
    assert everything(of.of(-1.0).sqrt())
    assert of.between(-1, 4).sqrt().upper == pytest.approx(2, rel=1e-8)
    assert of.between(-1, 4).sqrt().lower == pytest.approx(0, abs=1e-8)
    assert everything(1 / of.between(-1, 1))
    assert everything(1 / of.between(0, 1))
    assert everything(of.of(0.0) / of.of(0.0))


@BOTH
def test_undefined_values_enclose_every_number(of):
    """NaN, inf - inf, 0 * inf and inf / inf enclose every number, and so do all results computed from them."""
    for made in (of.of(math.nan), of.between(math.nan, 1.0) + of.between(0, math.nan), of.of(INF) - of.of(INF),
                 of.of(INF) * 0, 0 * of.of(-INF), of.of(INF) / of.of(INF), of.between(1.0, 0.0)):  # fmt: skip
        assert everything(made)
        for after in (made + 1, 2 * made, made - made, made / 3, -made, made.sum(), made * 0, made.log()):
            assert everything(after)
        assert not made.certainly_at_most(1e300)
    rows = of.of([[1.0, math.nan], [1.0, 2.0]]) @ of.of([1.0, 1.0])
    assert everything(rows[0])
    assert holds(rows[1], Fraction(3))
    assert everything(of.of([1.0, math.nan]).sum())
    assert of.of([math.nan, 1.0]).max().upper == INF


@BOTH
def test_an_overflow_is_infinite_on_the_outer_side_only(of):
    """Beyond the largest float, the lower end stays finite and the upper end is infinite."""
    big = of.of(1e300)
    for made in (big * big, big.square() + 1, of.of([1e308] * 20).sum(), of.of([1e200] * 3) @ of.of([1e200] * 3)):
        assert made.upper == INF
        assert made.lower < INF
        assert (-made).lower == -INF < (-made).upper
    assert holds(big * big, Fraction(1e300) ** 2)
    assert holds(of.of(800.0).exp(), mpmath.exp(800))


@BOTH
@pytest.mark.parametrize("scale", [1e-320, 1e-310, 1e-170, 1.0, 1e150])
def test_sums_and_products_of_matrices(of, scale):
    """Sums, running sums and matrix products of numbers that cancel, at every scale, enclose the exact Fractions."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=(4, 7)) * scale * 10.0 ** rng.integers(-12, 3, (4, 7))
    b = rng.normal(size=(7, 3)) * scale
    a[0], b[:, 0], a[1, ::2] = 0.0, 0.0, 0.0
    exact_a, exact_b = ([[Fraction(x) for x in row] for row in m.tolist()] for m in (a, b))
    product, running = of.of(a) @ b, of.of(a).cumsum(axis=1)
    for i in range(4):
        assert holds(of.of(a).sum(axis=1)[i], sum(exact_a[i]))
        for j in range(7):
            assert holds(running[i, j], sum(exact_a[i][: j + 1]))
        for j in range(3):
            exact = sum(x * row[j] for x, row in zip(exact_a[i], exact_b, strict=True))
            assert holds(product[i, j], exact)
            assert holds((a @ of.of(b))[i, j], exact)
            assert holds((of.of(a[i]) @ of.of(b[:, j])), exact)
    assert holds(of.of(a).sum(), sum(sum(row) for row in exact_a))
    assert product.lower[0].tolist() == product.upper[0].tolist() == [0, 0, 0]
    assert product.lower[:, 0].tolist() == product.upper[:, 0].tolist() == [0, 0, 0, 0]
    assert (of.of(np.abs(a)) @ np.abs(b)).lower.min() >= 0
    if scale == 1.0:
        assert (product.upper - product.lower).max() < 1e-11


@BOTH
def test_products_of_interval_matrices_are_enclosed(of):
    """A product of matrices of intervals holds the products of matrices picked from the ends."""
    rng = np.random.default_rng(4)
    low_a, low_b = rng.normal(size=(3, 5)), rng.normal(size=(5, 2))
    high_a, high_b = low_a + rng.exponential(0.1, (3, 5)), low_b + rng.exponential(1e-3, (5, 2))
    found = of.between(low_a, high_a) @ of.between(low_b, high_b)
    for _ in range(50):
        a = np.where(rng.random((3, 5)) < 0.5, low_a, high_a)
        b = np.where(rng.random((5, 2)) < 0.5, low_b, high_b)
        for i in range(3):
            for j in range(2):
                assert holds(found[i, j], sum(Fraction(x) * Fraction(y) for x, y in zip(a[i], b[:, j], strict=True)))
    assert (found.upper - found.lower).max() < 5


NUMBERS = st.one_of(
    st.sampled_from(SIGNED.tolist()), st.floats(-1e3, 1e3), st.floats(allow_nan=False, allow_infinity=False)
)
TREES = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/", "max", "min"]), inner, inner),
        st.tuples(st.sampled_from(["neg", "abs", "square", "positive"]), inner),
    ),
    max_leaves=12,
)


def evaluated(tree, of):
    """The value of an expression: of enclosures for an arithmetic, of Fractions for None; None if undefined."""
    if not isinstance(tree, tuple):
        return Fraction(tree) if of is None else of.of(tree)
    sign, *parts = tree
    values = [evaluated(part, of) for part in parts]
    if any(value is None for value in values):
        return None
    a, b = values[0], values[-1]
    if sign in ("neg", "abs", "square", "positive"):
        if of is None:
            return {"neg": -a, "abs": abs(a), "square": a * a, "positive": max(a, Fraction(0))}[sign]
        return {"neg": lambda: -a, "abs": a.abs, "square": a.square, "positive": a.positive}[sign]()
    if sign == "/":
        return None if of is None and b == 0 else a / b
    if sign in ("max", "min"):
        return {"max": max, "min": min}[sign](a, b) if of is None else {"max": a.maximum, "min": a.minimum}[sign](b)
    return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[sign]()


@given(TREES)
@example(("/", ("-", 1e-320, 5e-324), ("*", 1e-200, 1e-200)))
@example(("-", ("*", 1e300, 1e300), ("*", 1e300, 1e300)))
def test_random_expressions_hold_their_exact_value(tree):
    """An expression tree of exact numbers evaluates to an enclosure of its value in Fractions."""
    exact = evaluated(tree, None)
    for of in (FLOAT, EXACT):
        found = evaluated(tree, of)
        if exact is not None:
            assert holds(found, exact)


@BOTH
@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2, -1.5, 20, 1e-9])
def test_powers_are_enclosed_narrowly(of, exponent):
    """A power of a positive number encloses it in 200 bits, and stays as narrow as exp and log allow."""
    x = np.array([1e-10, 0.3, 1.0, 1 + 2.0**-52, 7.5, 1e10])
    found = of.of(x).power(exponent)
    with mpmath.workprec(200):
        for i, value in enumerate(x):
            exact = mpmath.mpf(float(value)) ** mpmath.mpf(exponent)
            assert holds(found[i], exact)
            assert found[i].upper - found[i].lower <= 1e-11 * exact


@BOTH
def test_the_ends_of_numbers_that_no_float_holds(of):
    """Integers and Fractions that no float64 holds lie between neighbouring floats; exact ones stay exact."""
    for value in (
        Fraction(1, 3),
        Fraction(10) ** 400,
        -(Fraction(10) ** 400),
        Fraction(1, 10**400),
        2**53 + 1,
        -(2**53) - 1,
    ):
        made = of.of(value)
        assert holds(made, Fraction(value))
        assert made.lower < made.upper
        assert made.upper == math.nextafter(made.lower, INF)
    assert of.of(np.array([2**62 + 1, 7])).lower.tolist() == [2**62, 7]
    assert of.of(np.array([2**62 + 1, 7])).upper[1] == 7
    for value in SIGNED:
        assert of.of(float(value)).lower == of.of(float(value)).upper == value
    assert of.of([True, False]).lower.tolist() == [1, 0]
    assert of.of(np.float32(0.1)).lower == of.of(np.float32(0.1)).upper == float(np.float32(0.1))
    assert (of.of([INF, -INF]).lower.tolist(), of.of(INF).upper) == ([INF, -INF], INF)


@given(st.fractions())
@example(Fraction(2) ** -1074 * Fraction(1, 3))
@example(-(Fraction(2) ** 1024) - 1)
@example(Fraction(2) ** 1024)
def test_float_down_is_the_largest_float_below(value):
    """The result is the largest float not above a Fraction, beyond the range of floats too."""
    found = float_down(value)
    assert found == -INF or Fraction(found) <= value
    assert found >= sys.float_info.max or Fraction(float(np.nextafter(found, INF))) > value


@pytest.mark.parametrize("wrong", ["1", None, 1j, [1, "x"], [[1], [2, 3]], object()])
@BOTH
def test_values_that_are_not_numbers_are_refused(of, wrong):
    """Text, None, complex numbers and ragged lists are refused in words."""
    with pytest.raises((InvalidInput, ValueError)):
        of.of(wrong)


@BOTH
def test_enclosures_are_not_compared_by_accident(of):
    """Every comparison, truth value, hash and conversion to an array raises TypeError."""
    x = of.of([1.0, 2.0])
    for compare in (lambda: x < 1, lambda: x <= x, lambda: x == x, lambda: x != 1, lambda: np.ones(2) >= x,
                    lambda: x > x, lambda: bool(x),
                    lambda: hash(x), lambda: np.asarray(x), lambda: np.exp(x), lambda: float(x[0]),
                    lambda: max(x), lambda: len(x[0])):  # fmt: skip
        with pytest.raises(TypeError):
            compare()
    with pytest.raises(AttributeError):
        x.anything = 1


@BOTH
def test_certainly_at_most_is_true_only_where_proved(of):
    """The result is True only where every number is proved to be at most every number of the other side."""
    x = of.between([0.0, 1.0, 3.0], [1.0, 2.0, 4.0])
    assert x.certainly_at_most(2.0 + 1e-6).tolist() == [True, True, False]
    assert x.certainly_at_most(of.between(1.5, 9.0)).tolist() == [True, False, False]
    assert x[0].certainly_at_most(math.nan) is False
    assert of.of(1).certainly_at_most(1) is True
    assert of.of(0.1).certainly_at_most(Fraction(1, 10)) is False


@BOTH
def test_arrays_behave_as_numpys(of):
    """Shapes, indices, masks, transposes, stacks, maxima and broadcasting follow numpy's."""
    m = np.arange(12.0).reshape(3, 4)
    x = of.of(m)
    assert (x.shape, x.ndim, len(x), x.T.shape, x.reshape(4, 3).shape, x.reshape((12,)).shape, x.reshape(-1).shape) == (
        (3, 4), 2, 3, (4, 3), (4, 3), (12,), (12,))  # fmt: skip
    for index in (1, (1, 2), slice(1, None), (slice(None), None, 1), m > 4, ..., np.array([2, 0]), (..., None)):
        assert np.array_equal(x[index].lower, m[index])
    assert np.array_equal(of.where(m > 4, x, -1).upper, np.where(m > 4, m, -1))
    assert np.array_equal(of.concatenate([x, m + 1], axis=1).lower, np.concatenate([m, m + 1], axis=1))
    for axis in (0, 1, 2, -1):
        assert np.array_equal(of.stack([x, m], axis).lower, np.stack([m, m], axis))
    for axis in (None, 0, 1, -1):
        assert np.array_equal(x.max(axis).lower, m.max(axis=axis))
        assert np.array_equal(x.min(axis).upper, m.min(axis=axis))
        assert np.allclose(x.sum(axis).midpoint, m.sum(axis=axis))
    assert [float(row.sum().midpoint) for row in x] == pytest.approx(m.sum(axis=1).tolist())
    assert np.allclose((m[:, :1] + x * m[0] - 1).midpoint, m[:, :1] + m * m[0] - 1)
    assert of.zeros((2, 3)).upper.tolist() == [[0] * 3] * 2
    assert (type(x.sum().lower), type(x[0, 0].midpoint)) == (float, float)
    assert of.zeros(0).sum().lower == of.zeros(0).sum().upper == 0
    assert (of.zeros((2, 0)) @ of.zeros((0, 3))).upper.tolist() == [[0] * 3] * 2
    for wrong in (lambda: of.zeros(0).max(), lambda: x @ x, lambda: x + np.ones(3)):
        with pytest.raises(ValueError):
            wrong()
    assert x.ends[0].certainly_at_most(x.ends[1]).all()
    assert "0." in repr(x)


def test_the_two_arithmetics_are_interchangeable():
    """`arithmetic` gives either; each takes the other's enclosures; the precision can be set and does not leak."""
    assert (arithmetic(False), arithmetic(True)) == (FLOAT, EXACT)
    third, before = EXACT.of(1) / 3, flint.ctx.prec
    assert holds(FLOAT.of(third), Fraction(1, 3))
    assert holds(EXACT.of(FLOAT.of(1) / 3), Fraction(1, 3))
    fine = Exact(2000).of(1) / 3
    assert ((fine * 3 - 1).abs() * 2.0**900 * 2.0**900).upper < 1
    assert ((third * 3 - 1).abs() * 2.0**250).upper < 1
    assert ((third * 3 - 1).abs() * 2.0**300).upper > 1
    assert flint.ctx.prec == before


def test_a_given_array_is_not_held():
    """Changing an array afterwards changes no enclosure, and neither does changing what an enclosure shows."""
    given = np.ones(2)
    x = FLOAT.of(given)
    given[0] = 5
    x.lower[1] = 7
    assert x.lower.tolist() == x.upper.tolist() == [1, 1]


def test_arithmetic_without_subnormal_numbers_is_refused(monkeypatch):
    """Where the processor takes subnormal numbers for zero, no enclosure can be made."""
    monkeypatch.setattr(
        floats, "SMALLEST_NORMAL", 5e-324
    )  # half of it is zero, as half of 2**-1022 is on such a processor
    with pytest.raises(CertificateError, match="takes tiny numbers for zero"):
        FLOAT.of(1.0)


def test_products_of_large_matrices_in_float64_hold_the_exact_ones():
    """Entries of a product of 60 x 200 matrices of all magnitudes lie in the enclosures of the balls."""
    rng = np.random.default_rng(8)
    a = rng.normal(size=(60, 200)) * 10.0 ** rng.integers(-200, 100, (60, 200))
    b = rng.normal(size=(200, 5)) * 10.0 ** rng.integers(-200, 100, (200, 5))
    fast, exact = FLOAT.of(a) @ b, EXACT.of(a) @ b
    assert (fast.lower <= exact.lower).all()
    assert (fast.upper >= exact.upper).all()
    assert (
        exact[3, 2].lower
        <= sum(Fraction(x) * Fraction(y) for x, y in zip(a[3], b[:, 2], strict=True))
        <= exact[3, 2].upper
    )
