"""Optima under pure LDP and a total-variation cap, each between two numbers that are proved in high precision.

The program over all staircase patterns [KOV14, Thm 2], without a scale of its own. With q = exp(-epsilon) and
r = 1 - q, columns are q + r 1_A; the weights are h v_A, h = min(1, eta / r), the rest is an erasure:

    max h sum v_A mu(A)   s.t.   sum over A with x of v_A = d for every x,   h (q sum v + r d) <= 1,
                                 sum over A with x, without x' of v_A <= c = eta / (r h)   for all x, x'.

HiGHS solves it in floats. Its solution and its multipliers are then made feasible in exact steps, and give a lower and
an upper bound whatever the solver did.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf
from scipy.optimize import linprog

from truth.utilities import EXCESS, Kept, Pair, Row, law

OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Bracket:
    """The optimum lies between `lower` and `upper`."""

    lower: mpf
    upper: mpf

    @property
    def width(self) -> float:
        """Relative to the upper end."""
        return float((self.upper - self.lower) / self.upper) if self.upper > 0 else 0.0


def optimum(utility: Kept, epsilon: float, eta: float = 1.0) -> Bracket:
    """The optimum under epsilon-LDP and eta-TV, for up to 8 inputs."""
    with mpmath.workdps(utility.digits(min(epsilon, 1.0))):
        q = mpmath.exp(-mpf(epsilon))
        r = -mpmath.expm1(-mpf(epsilon))
        return _Patterns(utility, q, r, mpf(eta)).bracket() if eta > 0 else Bracket(mpf(0), mpf(0))


class _Patterns:
    def __init__(self, utility: Kept, q: mpf, r: mpf, eta: mpf) -> None:
        k = utility.size
        self.k, self.q, self.r = k, q, r
        self.sets = [a for a in itertools.product((0, 1), repeat=k) if 0 < sum(a) < k]
        self.gains = utility.columns([[q + r * x for x in a] for a in self.sets])
        self.h = min(mpf(1), eta / r)
        self.cap = eta / (r * self.h)
        self.pairs = [(x, y) for x in range(k) for y in range(k) if x != y]
        self.member = np.array(self.sets, dtype=float).T
        self.crossing = np.array([[a[x] * (1 - a[y]) for a in self.sets] for x, y in self.pairs], dtype=float)
        self.scale = min(max(g) for g in self.gains)

    def bracket(self) -> Bracket:
        """Solve, mend and prove."""
        if self.scale == 0:
            return Bracket(mpf(0), mpf(0))
        n, k, j = len(self.sets), self.k, len(self.gains)
        h, q, r = float(self.h), float(self.q), float(self.r)
        gains = np.array([[float(g / self.scale) for g in row] for row in self.gains])
        # Variables: v (n), d, t; t is at most every criterion.
        above = np.vstack([
            np.hstack([np.full(n, h * q), [h * r, 0.0]]),
            np.hstack([self.crossing, np.zeros((len(self.pairs), 2))]),
            np.hstack([-gains, np.zeros((j, 1)), np.ones((j, 1))]),
        ])  # fmt: skip
        caps = np.concatenate([[1.0], np.full(len(self.pairs), float(self.cap)), np.zeros(j)])
        equal = np.hstack([self.member, -np.ones((k, 1)), np.zeros((k, 1))])
        cost = np.append(np.zeros(n + 1), -1.0)
        for method in ("highs-ds", "highs-ipm"):
            found = linprog(cost, above, caps, equal, np.zeros(k), method=method, options=OPTIONS)
            if found.status == 0:
                break
        else:
            return Bracket(mpf(0), self._upper(np.zeros(k), np.zeros(len(self.pairs)), np.ones(j)))
        duals = -found.ineqlin.marginals
        lower = self._lower(found.x[:n])
        upper = self._upper(-found.eqlin.marginals, duals[1 : 1 + len(self.pairs)], duals[1 + len(self.pairs) :])
        return Bracket(lower, upper)

    def _lower(self, v: np.ndarray) -> mpf:
        """Single sets make up what is missing, and all is scaled to what the caps allow."""
        weight = [mpf(float(max(w, 0.0))) for w in v]
        covered = [mpmath.fsum(w for w, a in zip(weight, self.sets, strict=True) if a[x]) for x in range(self.k)]
        most = max(covered)
        for x in range(self.k):
            alone = tuple(int(y == x) for y in range(self.k))
            weight[self.sets.index(alone)] += most - covered[x]
        total = mpmath.fsum(weight)
        across = max(
            mpmath.fsum(w for w, a in zip(weight, self.sets, strict=True) if a[x] > a[y]) for x, y in self.pairs
        )
        if across == 0:
            return mpf(0)
        share = min(1 / (self.h * (self.q * total + self.r * most)), self.cap / across)
        return self.h * share * min(mpmath.fsum(w * g for w, g in zip(weight, row, strict=True)) for row in self.gains)

    def _upper(self, rows: np.ndarray, crossing: np.ndarray, mixture: np.ndarray) -> mpf:
        """sigma + cap sum nu, with lambda, nu and sigma raised until every pattern is paid for."""
        mixture = np.maximum(mixture, 0.0)
        mix = [mpf(float(m)) for m in (mixture if mixture.sum() > 0 else np.ones(len(mixture)))]
        mix = [m / mpmath.fsum(mix) for m in mix]
        lam = [mpf(float(v)) for v in rows]
        nu = [mpf(float(max(v, 0.0))) for v in crossing]
        free = []
        for at, a in enumerate(self.sets):
            paid = mpmath.fsum(v for v, x in zip(lam, a, strict=True) if x)
            paid += mpmath.fsum(v for v, (x, y) in zip(nu, self.pairs, strict=True) if a[x] > a[y])
            gain = mpmath.fsum(m * row[at] for m, row in zip(mix, self.gains, strict=True)) / self.scale
            free.append((gain - paid, sum(a)))
        charge = self.cap * mpmath.fsum(nu)
        total = mpmath.fsum(lam)
        # sigma h q + sum over A of (lambda + v) >= free, and sum of lambda + k v <= sigma h r; any v will do.
        bounds = []
        h, q, r, k = self.h, self.q, self.r, self.k
        slopes = {mpf(0), *((f - max(mpf(0), total) * q / r) / size for f, size in free)}
        for shift in slopes:
            sigma = max([mpf(0), (total + k * shift) / (h * r), *((f - size * shift) / (h * q) for f, size in free)])
            bounds.append(sigma + charge)
        # Or: lambda lowered to what sigma = its value without raise pays, and every pair's multiplier raised.
        for sigma in {mpf(0), max(mpf(0), total / (h * r))}:
            lowered = min(mpf(0), (sigma * h * r - total) / k)
            lack = max(f - size * lowered - sigma * h * q for f, size in free)
            bounds.append(sigma + charge + self.cap * len(nu) * max(lack, mpf(0)))
        return self.h * self.scale * min(bounds)


def envelope(pair: Pair, epsilon: float, eta: float = 1.0) -> mpf:
    """The optimum of one pair by contiguous partitions and a public coin between two of them (the envelope theorem)."""
    utility = Kept((((1.0, pair),),))
    with mpmath.workdps(utility.digits(min(epsilon, 1.0))):
        q, r = mpmath.exp(-mpf(epsilon)), -mpmath.expm1(-mpf(epsilon))
        p0, p1 = law(pair.p0), law(pair.p1)
        used = [x for x in range(len(p0)) if p0[x] + p1[x] > 0]
        used.sort(key=lambda x: p0[x] / (p0[x] + p1[x]))
        below0, below1 = [mpf(0)], [mpf(0)]
        for x in used:
            below0.append(below0[-1] + p0[x])
            below1.append(below1[-1] + p1[x])
        n = len(used)

        def worth(i: int, j: int) -> mpf:
            return EXCESS[pair.f[0]](q + r * (below0[j] - below0[i]), q + r * (below1[j] - below1[i]), *pair.f[1:])

        block = {(i, j): worth(i, j) for i in range(n) for j in range(i + 1, n + 1)}
        best: list[mpf | None] = [mpf(0), *[None] * n]
        points = [(mpf(0), mpf(0))]
        for m in range(1, n + 1):
            best = [
                max((best[i] + block[i, j] for i in range(j) if best[i] is not None), default=None)
                for j in range(n + 1)
            ]
            if m > 1:
                whole = 1 + (m - 1) * q
                points.append((r / whole, best[n] / whole))
        cap = mpf(eta)
        low = [(x, u) for x, u in points if x <= cap]
        high = [(x, u) for x, u in points if x > cap]
        mixed = [u + (cap - x) / (z - x) * (w - u) for x, u in low for z, w in high]
        return max([u for _, u in low] + mixed)


def rows_of(matrix: np.ndarray) -> list[Row]:
    """The rows of a float matrix, each the law that is proportional to its floats."""
    return [law(row) for row in matrix.tolist()]
