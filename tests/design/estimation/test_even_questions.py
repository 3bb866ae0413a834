"""How much one report tells of yes/no questions: the table is enumerated, and the bounds beyond hold for real sets."""

import itertools
import math

import numpy as np
import pytest
from flint import arb
from scipy.special import ndtri

from ldpopt.design.estimation import proof as respondents
from ldpopt.design.estimation.proof import even_limit
from ldpopt.numbers.enclosures import EXACT, FLOAT


def regular_sets(m):
    """(sums, sizes) of the sets that hold with each vector of +-1 all that exceed it in every partial sum.

    Exchanging a vector for a larger one never lowers the sum in sorted order, so that some best set is one of these. A
    set is two halves, by the first answer, a inside b, and the second quarter of a inside the first of b.
    """
    masks, sums, sizes = np.array([0, 1], dtype=np.uint64), np.zeros((2, 0)), np.array([0, 1])
    for n in range(m):
        quarter = np.uint64(2**n // 2)
        high, low = masks >> quarter, masks & np.uint64((1 << int(quarter)) - 1)
        fits = (masks[:, None] & ~masks) == 0
        if n:
            fits &= (high[:, None] & ~low) == 0
        a, b = np.nonzero(fits)
        sums = np.hstack([(sizes[b] - sizes[a])[:, None], sums[a] + sums[b]])
        sizes = sizes[a] + sizes[b]
        masks = (masks[b] << np.uint64(min(2**n, 63))) | masks[a] if n < 6 else masks[:0]
    return sums, sizes


@pytest.mark.full
def test_the_table_of_eight_questions():
    """All pairs of the 44,315 regular sets of seven questions: the largest |s|^2 of n vectors, for n up to 128."""
    sums, sizes = regular_sets(7)
    assert len(sizes) == 44315
    kept = np.flatnonzero(sizes <= 128)
    kept = kept[np.argsort(sizes[kept], kind="stable")]
    s, n = sums[kept].astype(np.float32), sizes[kept]
    values, starts = np.unique(n, return_index=True)
    square, found = (s**2).sum(axis=1), np.zeros(257)
    for at in range(0, len(n), 256):
        mine = slice(at, at + 256)
        stop = int(np.searchsorted(n, 129 - n[at]))  # both halves together have at most 128
        together = 2 * s[mine] @ s[:stop].T + square[:stop]
        used = starts < stop
        best = np.maximum.reduceat(together, starts[used], axis=1) + square[mine, None]
        best += (values[used] - n[mine, None]) ** 2
        np.maximum.at(found, n[mine, None] + values[used], best)
    assert found[:129].astype(int).tolist() == list(respondents._LARGEST)


def test_eight_questions_follow_the_rule_but_for_a_window():
    """The largest score of eight is the rule's but between 4.697 and 5.241, where a ball of 9 vectors wins."""
    size = np.arange(1, 129)
    largest = np.array(respondents._LARGEST[1:], dtype=float)
    for epsilon in [*np.linspace(0.05, 12, 120), 1.342]:
        x = math.expm1(epsilon)
        rule = max(c * (x / (2**c + x)) ** 2 for c in range(1, 9))
        scores = x**2 * largest / (256 + x * size) ** 2
        assert float(even_limit(FLOAT.of(epsilon), 8).upper) == pytest.approx(scores.max(), rel=1e-12)
        if 4.697 < epsilon < 5.241:
            assert rule < scores.max() < 1.015 * rule
            assert scores.argmax() == 8  # one vector and its eight neighbours: |s|^2 = 8 (8 - 1)^2
        else:
            assert scores.max() == pytest.approx(rule, rel=1e-12)


def test_no_set_of_five_beats_the_halves_or_the_size():
    """|s|^2 of every regular set of five questions is within the recursion and within 2 n^2 log(2^m/n) [Talagrand]."""
    sums, sizes = regular_sets(5)
    squares = (sums**2).sum(axis=1)
    small = (sizes > 0) & (sizes <= 16)
    assert (squares[small] <= 2 * sizes[small] ** 2 * np.log(32 / sizes[small]) + 1e-9).all()
    below = {n: 0.0 for n in range(17)}
    for s, n in zip(*regular_sets(4), strict=True):
        below[int(n)] = max(below[int(n)], float((s**2).sum()))
    for square, n in zip(squares, sizes, strict=True):
        halves = [(b - a) ** 2 + (math.sqrt(below[a]) + math.sqrt(below[b])) ** 2
                  for a, b in itertools.product(range(17), repeat=2) if a + b == n]  # fmt: skip
        assert square <= max(halves) + 1e-9


@pytest.mark.parametrize("m", [9, 12, 15, 200])
def test_beyond_eight_the_limit_is_never_below_a_set(m):
    """Randomized response about c answers, and Hamming balls, have scores within the limit; it is close to the best."""
    for epsilon in (0.2, 1.3, 3.0, 6.0, 30.0):
        x, limit = math.expm1(epsilon), even_limit(FLOAT.of(epsilon), m)
        rule = max(c * (x / (2.0**c + x)) ** 2 for c in range(1, min(m, 60) + 1))
        assert rule <= limit.upper * (1 + 1e-12)
        if m <= 14:
            assert limit.upper <= rule * 1.1
            for radius in range(m // 2):  # vectors with at most `radius` noes
                n = sum(math.comb(m, r) for r in range(radius + 1))
                s = sum(math.comb(m, r) * (m - 2 * r) for r in range(radius + 1)) / m
                assert x**2 * m * s**2 / (2.0**m + x * n) ** 2 <= limit.upper * (1 + 1e-12)
    assert float(even_limit(EXACT.of(2.0), m).upper) <= float(even_limit(FLOAT.of(2.0), m).upper) * (1 + 1e-9)


A, B = respondents._A, respondents._B


def density(x):
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def profile(a):
    """f(a) = B phi(Phi^-1(a/A)) for a <= 1/2, and f(1 - a)."""
    return B * density(ndtri(np.minimum(a, 1 - a) / A))


ROOT, UNIT = arb(2).sqrt(), 1 / (2 * arb.pi()).sqrt()


def ball(low, high):
    """The ball that holds the interval between two floats."""
    return arb((arb(low) + arb(high)) / 2, (arb(high) - arb(low)) / 2 + arb(2) ** -60)


def normal(x):
    """(density, distribution function) of the normal law on a ball."""
    return (-x * x / 2).exp() * UNIT, (-x / ROOT).erfc() / 2


def difference(x, y, g):
    """F and its slopes in x and in y on balls: F = g phi(z)^2 - ((Y - X)/2)^2 - g ((phi(x) + phi(y))/2)^2.

    X and Y are the distribution function at x and y, and z is where it is (X + Y)/2.
    """
    (dx, px), (dy, py) = normal(x), normal(y)
    z = -ROOT * (px + py).erfcinv()
    dz, half, mean = normal(z)[0], (py - px) / 2, (dx + dy) / 2
    value = g * dz * dz - half * half - g * mean * mean
    return value, dx * (g * x * mean + half - g * z * dz), dy * (g * y * mean - half - g * z * dz)


def proved_cells(g, end, max_cells=10_000):
    """The number of cells that prove F > 0 for -1 <= y <= end and y - x >= 0.35, all of it in balls; 0 if none do.

    Up to y - x = 5, cells of (y, y - x) are halved until F at the middle is above what its slopes on the cell can take
    away. Beyond, phi(z) is at least what it is at X = 0, and phi(x) is at most phi(-5).
    """
    cells, count = [(-1.0, end, 0.35, 5.0)], 0
    while cells:
        low, high, near, far = cells.pop()
        count += 1
        middle, width = arb((low + high) / 2), arb((near + far) / 2)
        y = ball(low, high)
        _, in_x, in_y = difference(y - ball(near, far), y, g)
        room = abs(in_x + in_y) * (high - low) / 2 + abs(in_x) * (far - near) / 2
        if difference(middle - width, middle, g)[0] > room:
            continue
        if count > max_cells:
            return 0
        if high - low > far - near:
            cells += [(low, (low + high) / 2, near, far), ((low + high) / 2, high, near, far)]
        else:
            cells += [(low, high, near, (near + far) / 2), (low, high, (near + far) / 2, far)]
    for start in np.arange(-1.0, end, 1e-3):
        dy, py = normal(ball(start, start + 1e-3))
        dz = normal(-ROOT * py.erfcinv())[0]
        if not g * dz * dz - (py / 2) ** 2 - g * ((normal(arb(-5))[0] + dy) / 2) ** 2 > 0:
            return 0
        count += 1
    return count


def test_the_profile_satisfies_the_inequality_of_two_halves():
    """f((a+b)/2)^2 >= ((b-a)/2)^2 + ((f(a) + f(b))/2)^2 for a < b <= 1/2, with x = Phi^-1(a/A), y = Phi^-1(b/A).

    Where y <= -1 the density is convex between x and y, so that the trapezoid rule is above the integral. Where y > -1,
    y - x <= 0.35, its error is at most (y-x)^3/12 times the largest -phi''. The cells are the rest. All in balls.
    """
    a, b = arb(str(A)), arb(str(B))
    g, last = (b / a) ** 2, -ROOT * (1 / a).erfcinv()
    assert b * normal(last)[0] >= arb("0.5")  # no set of a half has a longer sum, and f(1/2)^2 is not below 1/4
    assert g * last**2 >= g - 1  # so that f(1/2 - u)^2 + u^2 is convex
    bend = (1 - last**2) * normal(last)[0]
    assert bend * arb("0.35") ** 2 / 12 <= (g - 1) * normal(arb("-1.35"))[0]
    end = float(last.upper())
    assert proved_cells(g, end) > 1000
    assert proved_cells(arb("1.002"), end) == 0  # with a smaller ratio B/A the inequality is false in some cell


def test_the_slopes_by_hand():
    """Neither slope of F exceeds 0.15 for -1 <= y <= -0.28 and y - x >= 0.35, in balls; 0.0027 is reached."""
    g = (arb(str(B)) / arb(str(A))) ** 2
    for low in np.arange(-1.0, -0.28, 0.02):
        for near in np.arange(0.35, 6.0, 0.05):
            y = ball(low, min(low + 0.02, -0.28))
            assert all(abs(slope) <= 0.15 for slope in difference(y - ball(near, near + 0.05), y, g)[1:])
    assert abs(difference(arb("-2.46"), arb("-0.28"), g)[2]) > 0.0027


def test_the_inequality_of_two_halves_at_random():
    """The whole inequality, b on either side of 1/2: near and far, small and large shares."""
    rng = np.random.default_rng(5)
    a, b = np.sort(np.hstack([rng.random((2, 200_000)), 10 ** rng.uniform(-12, -0.3, (2, 200_000))]), axis=0)
    b = np.where(rng.random(b.size) < 0.2, np.minimum(a * (1 + 10 ** rng.uniform(-5, 0, b.size)), 1), b)
    a, b = np.where(rng.random(b.size) < 0.2, (1 - b, 1 - a), (a, b))
    a, b = np.where(rng.random(b.size) < 0.1, (0 * a, b), (a, b))
    left = profile((a + b) / 2) ** 2
    right = ((b - a) / 2) ** 2 + ((profile(a) + profile(b)) / 2) ** 2
    assert (left >= right * (1 - 1e-9) - 1e-16).all()


def test_no_set_is_above_the_profile():
    """The tables of eight questions and those by halves up to eleven lie below it; so do the best sets of five."""
    for m in (8, 9, 10, 11):
        share = np.arange(1, 2 ** (m - 1) + 1) / 2**m
        assert (respondents._roots(m)[1:] <= 2**m * profile(share)).all()
    for s, n in zip(*regular_sets(5), strict=True):
        assert math.sqrt((s**2).sum()) <= 32 * profile(n / 32) + 1e-12


@pytest.mark.parametrize("epsilon", [1.2, 2.0, 3.0, 6.0, 20.0, 300.0])
def test_the_tangent_is_above_the_profile(epsilon):
    """What the tangent bounds is the largest f(a)/(a + 1/(E-1)) over shares of at least 2^-m, and hardly more."""
    for m in (15, 20, 60):
        share = np.geomspace(2.0**-m, 0.5, 20001)
        scores = profile(share) * -math.expm1(-epsilon) / (math.exp(-epsilon) - share * math.expm1(-epsilon))
        for arithmetic in (FLOAT, EXACT):
            proved = float(respondents._stretched(arithmetic.of(epsilon), m).upper)
            assert scores.max() * (1 - 1e-12) <= proved <= scores.max() * (1 + 1e-6)
