"""Compute the figures and the numbers of docs/papers/questionnaires.tex.

python experiments/articles/questionnaires.py     about fifteen seconds
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

from sheet import BLUE, FOLDER, GREEN, GREY, ORANGE, Sheet, write_numbers, write_rows  # noqa: E402

from ldpopt import LocalDP, optimal_channel  # noqa: E402
from ldpopt.design import FisherInformation, Marginals  # noqa: E402

ARCS = ((1.319, 1.3197, 0.0), (1.3038, 1.309, 0.00076))
MOST_HALVED = 14


def density(x):
    """Return the normal density."""
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def profile(share):
    """Return the profile f of the theorem at shares up to 1/2."""
    return np.min([b * density(ndtri((share + s) / a)) for a, b, s in ARCS], axis=0)


SCALE = brentq(lambda a: a * density(ndtri(0.5 / a)) - 0.5, 1.2, 1.5)


def least_profile(share):
    """Return G, with G G'' = -1, 0 at 0 and 1/2 at 1/2, which no profile of halves is below."""
    return SCALE * density(ndtri(share / SCALE))


def rule(epsilon):
    """Return the largest rho_c^2 of c questions that are answered together by randomized response."""
    c, x = np.arange(1, 60), math.expm1(epsilon)
    return float((c * (x / (2.0**c + x)) ** 2).max())


def regular_sets(m):
    """Return (sums, sizes) of the sets of m answers that contain with each vector all that are larger.

    A vector is larger if no partial sum is smaller. A set is two halves, by the first answer, a inside b, and the
    second quarter of a inside the first of b. The masks of the sets are kept as integers up to six answers.
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


def largest_of(sums, sizes, m):
    """Return the largest squared length of the sum of n vectors, for n = 0..2^(m-1)."""
    table = np.zeros(2**m + 1)
    np.maximum.at(table, sizes, (sums**2).sum(axis=1))
    return table[: 2 ** (m - 1) + 1]


def largest_of_eight(sums, sizes):
    """Return the same for eight answers, from all pairs of regular sets of seven."""
    order = np.argsort(sizes, kind="stable")
    s, n = sums[order].astype(np.float32), sizes[order]
    square, best = (s**2).sum(axis=1), np.zeros(129)
    for i in range(len(n)):
        stop = int(np.searchsorted(n, 129 - n[i]))
        if stop <= i:
            continue
        values = square[i] + square[i:stop] + 2 * s[i:stop] @ s[i] + (n[i:stop] - n[i]) ** 2
        np.maximum.at(best, n[i] + n[i:stop], values)
    return best


def margin_of_the_rule(m, largest):
    """Return the least relative margin of the rule over sets that are no subcubes; negative if a set is better.

    sqrt(M)/(2^m + x n) <= max_c sqrt(c)/(2^c + x) for all x = e^epsilon - 1 > 0. The reciprocals are a line and the
    least of m lines, whose difference is least at a break point of the latter, at x = 0 or for large x.
    """
    c = np.arange(1, m + 1)
    crossing = [
        ((2.0**j / math.sqrt(j)) - 2.0**i / math.sqrt(i)) / (1 / math.sqrt(i) - 1 / math.sqrt(j))
        for i in c
        for j in c
        if i < j
    ]
    x = np.array([0.0, *crossing, 1e12])[:, None]
    least = np.min((2.0**c + x) / np.sqrt(c), axis=1)
    n = np.arange(1, len(largest))
    cubes = {2 ** (m - int(j)): int(j) * 4 ** (m - int(j)) for j in c}
    n = np.array([one for one in n if cubes.get(int(one)) != largest[one]], dtype=np.int64)
    line = (2.0**m + x * n) / np.sqrt(largest[n])
    return float((line / least[:, None] - 1).min())


def halved(table, m):
    """Return the bounds on M_(m+1) that halves give from bounds on M_m, as square roots."""
    whole, squares = np.append(table, table[-2::-1]), np.zeros(2**m + 1)
    for fewer in range(len(table)):
        other = np.arange(fewer, 2**m - fewer + 1)
        squares[2 * fewer :] = np.maximum(
            squares[2 * fewer :], (other - fewer) ** 2 + (whole[fewer] + whole[other]) ** 2
        )
    return np.sqrt(squares)


def excess(root, share, epsilon):
    """Return by how many percent the bound from a profile exceeds what the rule attains."""
    x = math.expm1(epsilon)
    return 100 * (float((x * root / (1 + x * share)).max()) ** 2 / rule(epsilon) - 1)


def profiles(tables, eight):
    """Draw |v|^2 of the best sets over that of subcubes, and the excess of the bounds over the rule."""
    sheet = Sheet(2, 2.6)
    left, right = sheet.axes
    share = np.geomspace(2.0**-8, 0.5, 400)
    bits = -np.log2(share)
    left.plot(bits, profile(share) ** 2 / (share**2 * bits), color=BLUE, label="$f$")
    left.plot(bits, least_profile(share) ** 2 / (share**2 * bits), "--", color=ORANGE, label="$G$")
    n = np.arange(1, 129) / 256
    left.plot(
        -np.log2(n), eight[1:] / 65536 / (n**2 * -np.log2(n)), ".", color=GREY, ms=3, label="all sets of 8 answers"
    )
    left.set(xlabel=r"$\log_2(1/a)$", ylabel=r"$|v|^2 / (a^2 \log_2(1/a))$")
    left.legend()
    epsilon = np.linspace(1.2, 6, 97)
    right.plot(
        epsilon,
        [excess(profile(share_all), share_all, e) for e in epsilon],
        color=BLUE,
        label="every number of questions",
    )
    right.plot(
        epsilon,
        [excess(least_profile(share_all), share_all, e) for e in epsilon],
        "--",
        color=ORANGE,
        label="limit of the method",
    )
    for m, style in ((14, "-."), (9, ":")):
        root, n = tables[m][1:] / 2.0**m, np.arange(1, 2 ** (m - 1) + 1) / 2.0**m
        right.plot(epsilon, [excess(root, n, e) for e in epsilon], style, color=GREEN, label=f"{m} questions")
    right.set(xlabel=r"$\varepsilon$", ylabel="bound above the rule (%)", xlim=(1.2, 6), ylim=(0, 16))
    right.legend(loc="upper left")
    sheet.save("questionnaires-profile")


share_all = np.geomspace(2.0**-40, 0.5, 200_001)


def variances(m=10):
    """Write the table of the variance of a share times the number of respondents, for ways to ask m questions."""
    rows: list[list[str]] = []
    grid = (0.5, 1.0, 2.0, 3.0)

    def row(name, values):
        rows.append([name, *(f"{value:.2f}" for value in values)])

    row(r"everything, $\varepsilon/m$ each", [1 / (4 * math.tanh(e / 2 / m) ** 2) for e in grid])
    row("one question at random", [m / (4 * math.tanh(e / 2) ** 2) for e in grid])
    row("the rule", [m / (4 * rule(e)) for e in grid])
    return rows, grid


def tables_up_to(most):
    """Return {m: square roots of bounds on M_m} from the exact table of eight questions, and exact tables below."""
    exact = {m: largest_of(*regular_sets(m), m) for m in range(1, 8)}
    eight = largest_of_eight(*regular_sets(7))
    tables = {8: np.sqrt(eight)}
    for m in range(8, most):
        tables[m + 1] = halved(tables[m], m)
    return exact, eight, tables


def dependent():
    """Return the optimal variance of a share where four answers are dependent: nine of ten people answer all alike."""
    law = np.full(16, 0.1 / 16)
    law[[0, 15]] += 0.45
    design = optimal_channel(FisherInformation(law, Marginals((2,) * 4)), LocalDP(3.0))
    assert design.certified
    return design.value / 8, design.channel.shape[1]  # a sum over both answers of four questions


if __name__ == "__main__":
    exact, eight, tables = tables_up_to(MOST_HALVED)
    margins = [margin_of_the_rule(m, table) for m, table in exact.items() if m > 2]
    assert min(margins) > 1e-9, margins
    profiles(tables, eight)
    rows, grid = variances()
    share10 = np.arange(1, 2**9 + 1) / 2**10
    bound = [rule(e) * (1 + excess(tables[10][1:] / 2**10, share10, e) / 100) for e in grid]
    least = [
        rows[-1][1 + i] if e <= math.log(3) else f"{math.floor(1000 / (4 * b)) / 100:.2f}"
        for i, (e, b) in enumerate(zip(grid, bound, strict=True))
    ]
    rows.append(["no protocol is below", *least])
    write_rows("questionnaires-variances", rows)
    at = (2.0, 3.0, 4.0, 5.0)
    table_rows = []
    for m in (9, 10, 12, 14):
        n = np.arange(1, 2 ** (m - 1) + 1) / 2.0**m
        table_rows.append(
            [f"$m = {m}$", *(f"{math.ceil(100 * excess(tables[m][1:] / 2.0**m, n, e)) / 100:.2f}" for e in at)]
        )
    table_rows.append(
        [
            r"every $m$ (Theorem~\ref{thm:profile})",
            *(f"{math.ceil(100 * excess(profile(share_all), share_all, e)) / 100:.2f}" for e in at),
        ]
    )
    table_rows.append(
        [
            r"limit of the method (Theorem~\ref{thm:limit})",
            *(f"{math.floor(100 * excess(least_profile(share_all), share_all, e)) / 100:.2f}" for e in at),
        ]
    )
    write_rows("questionnaires-excess", table_rows)
    variance, reports = dependent()
    tau = (0.05 / 1.96) ** 2
    least = math.ceil(4 / (4 * rule(3.0)) / tau)
    write_numbers(
        "questionnaires",
        {
            "regularsets": f"{len(regular_sets(7)[1]):,}",
            "rulemargin": f"{100 * min(margins):.2f}",
            "dependentvariance": f"{variance:.5f}",
            "dependentreports": str(reports),
            "dependentpeople": f"{math.ceil(variance / tau):,}",
            "independentpeople": f"{least:,}",
            "leastscale": f"{SCALE:.4f}",
            "profileoverleast": f"{100 * float((profile(share_all) / least_profile(share_all)).max() - 1):.2f}",
        },
    )
    print((FOLDER / "questionnaires-numbers.tex").read_text("utf-8"))
