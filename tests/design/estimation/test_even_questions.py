"""How much one report tells of yes/no questions: the table is enumerated, and the bounds beyond hold for real sets."""

import itertools
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from flint import arb
from scipy.optimize import brentq
from scipy.special import ndtri

from ldpopt.design.estimation import proof as respondents
from ldpopt.design.estimation.proof import yes_no_limit
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
def test_the_table_of_eight_questions_agrees_with_a_search():
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
    assert found[:129].astype(int).tolist() == list(respondents._SQUARED_LARGEST_SUMS)


def test_eight_questions_follow_the_rule_but_for_a_window():
    """The largest score of eight is the rule's but between 4.697 and 5.241, where a ball of 9 vectors wins."""
    size = np.arange(1, 129)
    largest = np.array(respondents._SQUARED_LARGEST_SUMS[1:], dtype=float)
    for epsilon in [*np.linspace(0.05, 12, 120), 1.342]:
        x = math.expm1(epsilon)
        rule = max(c * (x / (2**c + x)) ** 2 for c in range(1, 9))
        scores = x**2 * largest / (256 + x * size) ** 2
        assert float(yes_no_limit(FLOAT.of(epsilon), 8).upper) == pytest.approx(scores.max(), rel=1e-12)
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
        x, limit = math.expm1(epsilon), yes_no_limit(FLOAT.of(epsilon), m)
        rule = max(c * (x / (2.0**c + x)) ** 2 for c in range(1, min(m, 60) + 1))
        assert rule <= limit.upper * (1 + 1e-12)
        if m <= 14:
            assert limit.upper <= rule * 1.1
            for radius in range(m // 2):  # vectors with at most `radius` noes
                n = sum(math.comb(m, r) for r in range(radius + 1))
                s = sum(math.comb(m, r) * (m - 2 * r) for r in range(radius + 1)) / m
                assert x**2 * m * s**2 / (2.0**m + x * n) ** 2 <= limit.upper * (1 + 1e-12)
    assert float(yes_no_limit(EXACT.of(2.0), m).upper) <= float(yes_no_limit(FLOAT.of(2.0), m).upper) * (1 + 1e-9)


HALVING = runpy.run_path(str(Path(__file__).parents[3] / "docs/papers/halving.py"))


def profile(a):
    """f(a), the least of two arcs B phi(Phi^-1((a + S)/A)), for a <= 1/2, and f(1 - a)."""
    a = np.minimum(a, 1 - a)
    arcs = [
        b * np.exp(-(ndtri((a + s) / scale) ** 2) / 2) / math.sqrt(2 * math.pi)
        for scale, b, s in respondents._ARC_PARAMETERS
    ]
    return np.minimum(*arcs)


def test_the_profile_satisfies_the_inequality_of_two_halves():
    """The numbers that the proof by hand uses, in balls, for the constants of the library, and the cells beyond."""
    balls = [HALVING[name] for name in ("A1", "B1", "A2", "B2", "S")]
    constants = [*respondents._ARC_PARAMETERS[0][:2], *respondents._ARC_PARAMETERS[1]]
    assert all(ball.contains(arb(constant)) for ball, constant in zip(balls, constants, strict=True))
    assert all(HALVING["hand"]().values())
    assert HALVING["strips"]() > 500
    assert HALVING["cells"](near=1.5) > 1000


@pytest.mark.full
def test_balls_prove_all_cells_of_the_profile_with_the_proof_by_hand():
    """The whole region in balls; close to the diagonal they cannot do without the proof by hand."""
    assert HALVING["cells"]() > 100_000
    assert HALVING["cells"](limit=20_000, near=0.0) == 0


def test_slopes_of_the_difference_agree_with_finite_differences():
    """The slopes that the cells use are those of D, by finite differences."""
    difference = HALVING["difference"]
    for x, y in ((-3.0, -0.9), (-1.4, -0.5), (-2.0, -0.4), (-0.9, -0.32)):
        value, in_x, in_y = difference(arb(x), arb(y))
        step = arb(2) ** -20
        assert abs(float((difference(arb(x) + step, arb(y))[0] - value) / step) - float(in_x)) < 1e-5
        assert abs(float((difference(arb(x), arb(y) + step)[0] - value) / step) - float(in_y)) < 1e-5


def test_no_profile_of_halves_is_below_the_arc():
    """G with G G'' = -1, 0 at 0 and 1/2 at 1/2, is below any f with the inequality; halves from nothing climb to it."""
    scale = brentq(lambda a: a * math.exp(-(ndtri(0.5 / a) ** 2) / 2) / math.sqrt(2 * math.pi) - 0.5, 1.2, 1.5)
    n = 64
    share = np.arange(n + 1) / n
    least = scale * np.exp(-(ndtri(np.minimum(share, 1 - share) / scale) ** 2) / 2) / math.sqrt(2 * math.pi)
    assert ((least <= profile(share)) & (profile(share) <= 1.003 * least + 1e-12))[1:-1].all()
    centre, half = np.array([(c, h) for c in range(1, n) for h in range(1, min(c, n - c) + 1)]).T
    starts, f = np.flatnonzero(np.diff(centre, prepend=0)), np.zeros(n + 1)
    for _ in range(1500):
        halves = np.maximum.reduceat((half / n) ** 2 + ((f[centre - half] + f[centre + half]) / 2) ** 2, starts)
        f[1:-1] = np.maximum(f[1:-1], np.sqrt(halves))
    assert (f <= profile(share) + 1e-12).all()
    middle = (share >= 0.2) & (share <= 0.8)  # a grid has no steps smaller than its own, which shows at small shares
    assert (f >= least * 0.999)[middle].all()
    assert f[n // 4] > 1.009 * math.sqrt(2) / 4  # the subcube of share 1/4 is not reached


def test_the_inequality_of_two_halves_holds_at_random():
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
        assert (respondents._largest_sums(m)[1:] <= 2**m * profile(share)).all()
    for s, n in zip(*regular_sets(5), strict=True):
        assert math.sqrt((s**2).sum()) <= 32 * profile(n / 32) + 1e-12


@pytest.mark.parametrize("epsilon", [1.2, 2.0, 3.0, 6.0, 20.0, 300.0])
def test_the_tangent_is_above_the_profile(epsilon):
    """What the tangent bounds is the largest f(a)/(a + 1/(E-1)) over shares of at least 2^-m, and hardly more."""
    for m in (15, 20, 60):
        share = np.geomspace(2.0**-m, 0.5, 20001)
        scores = profile(share) * -math.expm1(-epsilon) / (math.exp(-epsilon) - share * math.expm1(-epsilon))
        for arithmetic in (FLOAT, EXACT):
            proved = float(respondents._arc_bound(arithmetic.of(epsilon), m).upper)
            assert scores.max() * (1 - 1e-12) <= proved <= scores.max() * (1 + 1e-4)
