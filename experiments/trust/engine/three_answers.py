"""Prove, for one epsilon at a time, that three answers under (epsilon, delta) follow the envelope of three points.

    python experiments/trust/engine/three_answers.py [--quick]    # writes three_answers.csv beside itself, two minutes
    python experiments/trust/engine/three_answers.py 5/3 17/4     # these values of E = e^epsilon alone, and no file

Let E be rational, and let mu be any convex homogeneous function on the plane. A channel has columns c of 21 kinds
(docs/explanation/open-problems/approximate-ldp.md, (a)), each
worth mu(c_1 w_1 + c_2 w_2 + c_3 w_3) with w_x = (P0(x), P1(x)) in the
order of the likelihood ratio. What is claimed does not depend on the basis of the plane; in that of w_1 and w_3 the
middle one is w_2 = (p, q) with p, q >= 0. Up to a linear function mu is a mixture of (u . v)_+, which is (z . c)_+ on
the columns, where z = (u_1, p u_1 + q u_2, u_2).

The upper bound is proved by prices lambda_x and nu_xy >= 0 such that lambda . c + sum nu_xy (c_x - E c_y)_+ >= mu(c)
for all 21 columns, with lambda . 1 + delta sum nu equal to the envelope. Prices are looked for that are *linear in mu*:
nine times 21 numbers. There are seven cases: the coin is at least as good as the two-step mechanism and one of three
partitions is best; or the two-step mechanism is, and delta is below its own, with one of three partitions the best, or
above it. In each case all 27 inequalities have to be sums of the hypotheses of the case, with multipliers >= 0, and of
something that is >= 0 at every z. As it is linear between the planes z . c = 0, finitely many z are enough, for all
(p, q) with p/q in an interval at once: [0, 1/E] and [1/E, 1]. Beyond 1 the mirror image applies.

A linear program finds such numbers. They are then made rational: what the program has at 0 is set to 0, what it has
tight is solved exactly, and *every equation and inequality is checked in rational numbers*. So a line "proved" of the
table is a proof for all P0, P1, f and delta at this E.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from flint import fmpq, fmpq_mat
from scipy.optimize import linprog

Vector = Sequence[Fraction]
Row = tuple[Mapping[int, Fraction], Fraction]
"""The coefficients of a linear equation or inequality, by unknown, and its right side."""

ZERO, ONE = Fraction(0), Fraction(1)
LEVELS = [
    levels
    for levels in itertools.product((-1, 0, 1, 2), repeat=3)
    if (levels.count(-1) == 2 and max(levels) == 0) or (levels.count(-1) < 2 and {0, 1} <= set(levels))
]
"""The levels of the 21 columns: E to the level, and 0 for -1."""

PAIRS = list(itertools.permutations(range(3), 2))
PRICES = 3 + len(PAIRS)
INFEASIBLE = 2
"""The status of a linear program without a solution."""

PARTITIONS = {
    "1|2|3": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "1|23": ((1, 0, 0), (0, 1, 1)),
    "12|3": ((1, 1, 0), (0, 0, 1)),
}
GRID = ("3/2", "5/3", "2", "3", "10")


def dot(a, b):
    """Return the inner product of two vectors of fractions."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), ZERO)


def columns(e):
    """Return the 21 columns, divided by their largest entry."""
    return [[e ** (level - max(levels)) if level >= 0 else ZERO for level in levels] for levels in LEVELS]


def worth(e, weights):
    """Return the functional of mu that adds up what columns of some levels keep: one number for each of `columns`."""
    functional = [ZERO] * len(LEVELS)
    for levels, weight in weights.items():
        functional[LEVELS.index(levels)] += weight * e ** max(levels)
    return functional


def cases(e):
    """Return {case: (functionals that are >= 0, (delta, functional of the envelope there) at both ends)}."""
    n = 2 * (e * e + e + 1)
    corner = (e * e - e) / n
    units = [(0, -1, -1), (-1, 0, -1), (-1, -1, 0)]
    made = {units[0]: corner, units[2]: corner, (1, 2, 0): 1 / n, (0, 2, 1): 1 / n}
    steps = worth(e, made | {(1, 0, 0): (e + 1) / n, (0, 0, 1): (e + 1) / n})
    full = worth(e, dict.fromkeys(units, ONE))
    pure = {name: worth(e, dict.fromkeys(blocks, 1 / (e + len(blocks) - 1))) for name, blocks in PARTITIONS.items()}
    over_coin = {
        name: [s - (1 - corner) * v - corner * d for s, v, d in zip(steps, kept, full, strict=True)]
        for name, kept in pure.items()
    }
    posed = {"two-step, large delta": (list(over_coin.values()), [(corner, steps), (ONE, full)])}
    for name, kept in pure.items():
        best = [[v - w for v, w in zip(kept, other, strict=True)] for key, other in pure.items() if key != name]
        posed[f"two-step, small delta, {name}"] = ([over_coin[name], *best], [(ZERO, kept), (corner, steps)])
        posed[f"coin, {name}"] = ([[-v for v in over_coin[name]], *best], [(ZERO, kept), (ONE, full)])
    return posed


def directions(made, low, high):
    """Return what all columns are worth, (z . c)_+, at each z in which two planes meet, for low <= p/q <= high."""
    found = {}
    for a, b in itertools.combinations([*made, [low, ZERO, ONE], [high, ZERO, ONE]], 2):
        z = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
        signs = [slope * z[0] + z[2] for slope in (low, high)]
        if (z[1] > 0 and max(signs) < 0) or (z[1] < 0 and min(signs) > 0):
            continue  # the sign of z_2 is that of (p/q) z_1 + z_3; limits of such z are kept
        for sign in (1, -1):
            kept = [max(sign * dot(z, column), ZERO) for column in made]
            if (size := max(kept)) > 0:
                found[tuple(one / size for one in kept)] = None
    return list(found)


@dataclass(frozen=True)
class Program:
    """Equations, inequalities (left >= right), and the unknowns from `free` on, which are >= 0."""

    unknowns: int
    free: int
    equal: list[Row]
    at_least: list[Row]

    def holds(self, x):
        """Return True if x solves everything exactly."""
        left = [sum((v * x[j] for j, v in row.items() if x[j]), ZERO) for row, _ in [*self.equal, *self.at_least]]
        equal = all(one == right for one, (_, right) in zip(left, self.equal, strict=False))
        above = all(one >= right for one, (_, right) in zip(left[len(self.equal) :], self.at_least, strict=True))
        return equal and above and min(x[self.free :]) >= 0


def program(e, low, high, hypotheses, ends):
    """Return the program for prices that are linear in mu, in one case."""
    made = columns(e)
    kept = directions(made, low, high)
    size, assumed = len(LEVELS), len(hypotheses)
    free = PRICES * size
    goals = [([ZERO] * 3 + [Fraction(int(k == i)) for i in range(len(PAIRS))], None) for k in range(len(PAIRS))]
    goals += [([*c, *(max(c[x] - e * c[y], ZERO) for x, y in PAIRS)], i) for i, c in enumerate(made)]

    def priced(prices, at):
        """The prices' sum at one z, in terms of the unknowns."""
        return {k * size + j: p * v for k, p in enumerate(prices) if p for j, v in enumerate(at) if v}

    at_least = []
    for place, (prices, column) in enumerate(goals):
        first = free + place * assumed
        for at in kept:
            multipliers = {first + t: -v for t, one in enumerate(hypotheses) if (v := dot(one, at))}
            at_least.append((priced(prices, at) | multipliers, ZERO if column is None else at[column]))
    # A linear mu has the prices lambda = mu and nu = 0.
    equal = [
        ({k * size + j: c[x] for j, c in enumerate(made) if c[x]}, Fraction(int(k == x)))
        for k in range(PRICES)
        for x in range(3)
    ]
    for delta, envelope in ends:
        equal += [(priced([ONE] * 3 + [delta] * len(PAIRS), at), dot(envelope, at)) for at in kept]
    return Program(free + len(goals) * assumed, free, equal, at_least)


def matrix(rows, unknowns):
    """Return rows of fractions as a sparse matrix of floats, and the right sides."""
    entries = [(i, j, float(v)) for i, (row, _) in enumerate(rows) for j, v in row.items()]
    i, j, v = zip(*entries, strict=True)
    return sp.csr_matrix((v, (i, j)), (len(rows), unknowns)), np.array([float(right) for _, right in rows])


def solved(posed, rough, slack, zero):
    """Return an exact solution near a rough one: entries below `zero` become 0, slacks below it are closed."""
    used = [j for j in range(posed.unknowns) if j < posed.free or rough[j] > zero]
    place = {j: i for i, j in enumerate(used)}
    tight = [row for row, room in zip(posed.at_least, slack, strict=True) if room < zero]
    rows = dict.fromkeys(
        (tuple((place[j], v) for j, v in row.items() if j in place), right) for row, right in posed.equal + tight
    )
    system = fmpq_mat(len(rows), len(used) + 1)
    for i, (row, right) in enumerate(rows):
        for j, v in (*row, (len(used), right)):
            system[i, j] = fmpq(v.numerator, v.denominator)
    reduced, rank = system.rref()
    pivots = [next(j for j in range(len(used) + 1) if reduced[i, j] != 0) for i in range(rank)]
    if pivots and pivots[-1] == len(used):
        return None
    chosen = {j: Fraction(float(rough[used[j]])).limit_denominator(10**6) for j in set(range(len(used))) - set(pivots)}
    x = [ZERO] * posed.unknowns
    for j, v in chosen.items():
        x[used[j]] = v
    for i, pivot in enumerate(pivots):
        v = reduced[i, len(used)]
        for j, w in chosen.items():
            if reduced[i, j] != 0:
                v -= reduced[i, j] * fmpq(w.numerator, w.denominator)
        x[used[pivot]] = Fraction(int(v.p), int(v.q))
    return x


def proved(posed):
    """Return True if rational prices satisfy everything exactly."""
    left, right = matrix(posed.at_least, posed.unknowns)
    equal, equal_to = matrix(posed.equal, posed.unknowns)
    bounds = [(None, None)] * posed.free + [(0.0, None)] * (posed.unknowns - posed.free)
    weights = np.concatenate([np.zeros(posed.free), np.ones(posed.unknowns - posed.free)])
    rng = np.random.default_rng(1)
    for cost in (weights, 0 * weights, *(weights * rng.random(posed.unknowns) for _ in range(4))):
        found = linprog(cost, -left, -right, equal, equal_to, bounds, method="highs")
        if found.status == INFEASIBLE:
            return False
        if found.status:
            continue
        for zero in (1e-7, 1e-8, 1e-9, 1e-6, 1e-10):
            x = solved(posed, found.x, left @ found.x - right, zero)
            if x is not None and posed.holds(x):
                return True
    return False


def main():
    """Prove all cases at each E and write the table; exit code 1 if one is not proved."""
    chosen = ("2",) if "--quick" in sys.argv else tuple(sys.argv[1:])
    lines, missing = ["E,p/q,case,result"], 0
    for e in map(Fraction, chosen or GRID):
        for interval, low, high in (("0 to 1/E", ZERO, 1 / e), ("1/E to 1", 1 / e, ONE)):
            for case, (hypotheses, ends) in cases(e).items():
                result = proved(program(e, low, high, hypotheses, ends))
                missing += not result
                lines.append(f'{e},{interval},"{case}",{"proved" if result else "not proved"}')
    if not chosen:
        Path(__file__).with_suffix(".csv").write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{len(lines) - 1} cases, {missing} not proved")
    return missing


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
