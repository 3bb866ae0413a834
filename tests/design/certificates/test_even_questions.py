"""How much one report tells of yes/no questions: the table is enumerated, and the bounds beyond hold for real sets."""

import itertools
import math

import numpy as np
import pytest

from ldpopt.design.certificates import respondents
from ldpopt.design.certificates.respondents import even_limit
from ldpopt.enclosures import EXACT, FLOAT


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
