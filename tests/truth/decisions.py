"""Losses, private sampling, the least divergence of two sets, and the error of estimates, in high precision.

Each class has `value`, in the sense of the package: what is kept (minus a loss or a risk), or an error for `Estimate`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf
from scipy.optimize import linprog, minimize, minimize_scalar

from truth.utilities import DIGITS, EXCESS, Generator, Kept, Row, digits, divergence, divergence_utility, dot, law


@dataclass(frozen=True)
class Loss:
    """Minus the largest expected loss over some priors (n, k); loss (k, m)."""

    priors: np.ndarray
    loss: np.ndarray
    error = False

    def digits(self) -> int:
        return DIGITS

    def value(self, rows: list[Row]) -> mpf:
        each = [
            mpmath.fsum(mpf(v) * w for v, w in zip(loss, row, strict=True))
            for loss, row in zip(self.loss.tolist(), rows, strict=True)
        ]
        return -max(dot(law(prior), each) for prior in self.priors.tolist())

    def best(self, epsilon: float, eta: float) -> np.ndarray | None:
        """Nearly the best channel under epsilon-LDP and eta-TV, by one linear program.

        Q[x, y] = q m_y + (1 - q) b[x, y] with 0 <= b[x, y] <= m_y, q = exp(-epsilon), and sum_y b[x, y] = d for all x.
        """
        k, m = self.loss.shape
        q, r = math.exp(-epsilon), -math.expm1(-epsilon)
        pairs = list(itertools.permutations(range(k), 2))
        use_tv = eta < r / (1 + q)
        # Variables: m (m), b (k m), d, t, and the positive parts of differences.
        n = m + k * m + 2 + (len(pairs) * m if use_tv else 0)
        above, caps, equal, sums = [], [], [], []

        def b(x: int, y: int) -> int:
            return m + x * m + y

        for x in range(k):
            for y in range(m):
                row = np.zeros(n)
                row[b(x, y)], row[y] = 1, -1
                above.append(row)
                caps.append(0.0)
            row = np.zeros(n)
            row[m + x * m : m + (x + 1) * m] = 1
            row[m + k * m] = -1
            equal.append(row)
            sums.append(0.0)
        row = np.zeros(n)
        row[:m], row[m + k * m] = q, r
        equal.append(row)
        sums.append(1.0)
        scale = float(np.abs(self.loss).max()) or 1.0
        for prior in self.priors:
            row = np.zeros(n)
            row[:m] = q * prior @ self.loss / scale
            row[m : m + k * m] = (r * prior[:, None] * self.loss / scale).ravel()
            row[m + k * m + 1] = -1
            above.append(row)
            caps.append(0.0)
        if use_tv:
            for at, (x, z) in enumerate(pairs):
                first = m + k * m + 2 + at * m
                for y in range(m):
                    row = np.zeros(n)
                    row[b(x, y)], row[b(z, y)], row[first + y] = 1, -1, -1
                    above.append(row)
                    caps.append(0.0)
                row = np.zeros(n)
                row[first : first + m] = 1
                above.append(row)
                caps.append(eta / r)
        cost = np.zeros(n)
        cost[m + k * m + 1] = 1
        limits = [(0, None)] * (m + k * m) + [(0, None), (None, None)] + [(0, None)] * (n - m - k * m - 2)
        found = linprog(cost, np.array(above), caps, np.array(equal), sums, limits, method="highs")
        if found.status != 0:
            return None
        low, high = found.x[:m], found.x[m : m + k * m].reshape(k, m)
        made = np.maximum(q * low + r * np.minimum(high, low), 0.0)
        return made / made.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Sampling:
    """Minus the largest divergence from a held distribution (n, k) to its row."""

    f: Generator
    distributions: np.ndarray
    error = False

    def digits(self) -> int:
        return digits(*self.distributions.ravel().tolist())

    def value(self, rows: list[Row]) -> mpf:
        return -max(divergence(self.f, law(p), row) for p, row in zip(self.distributions.tolist(), rows, strict=True))


@dataclass(frozen=True)
class Against:
    """The least divergence over the hulls of two sets of distributions, (n0, k) and (n1, k)."""

    f: Generator
    first: np.ndarray
    second: np.ndarray
    error = False

    def digits(self) -> int:
        return digits(*self.first.ravel().tolist(), *self.second.ravel().tolist())

    def pairs(self) -> list[Kept]:
        """Every pair of vertices: no channel keeps more of the set than of one pair."""
        return [divergence_utility(self.f, p, q) for p in self.first.tolist() for q in self.second.tolist()]

    def value(self, rows: list[Row]) -> mpf:
        """A lower bound on the least divergence, near it: tangents at the least pair, at the vertices of the hulls."""
        a = np.array([[float(dot(law(p), list(c))) for c in zip(*rows, strict=True)] for p in self.first.tolist()])
        b = np.array([[float(dot(law(p), list(c))) for c in zip(*rows, strict=True)] for p in self.second.tolist()])
        n0, n1 = len(a), len(b)

        def mixed(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            u, v = np.abs(z[:n0]) + 1e-12, np.abs(z[n0:]) + 1e-12
            return u / u.sum() @ a, v / v.sum() @ b

        def least(z: np.ndarray) -> float:
            m0, m1 = mixed(z)
            return float(divergence(self.f, [mpf(v) for v in m0], [mpf(v) for v in m1]))

        start = np.ones(n0 + n1)
        found = start
        if n0 == 1 and n1 == 2:
            with mpmath.workdps(20):
                share = minimize_scalar(lambda w: least(np.array([1.0, w, 1 - w])), bounds=(0, 1), method="bounded").x
            found = np.array([1.0, share, 1 - share])
        elif n0 + n1 > 2:
            with mpmath.workdps(30):
                found = minimize(least, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14}).x
        m0, m1 = mixed(found)
        # mu is homogeneous, so its tangent plane at (m0, m1) is its gradient; differences of it give one from below.
        total = mpf(0)
        slopes = [_tangent(self.f, mpf(x), mpf(y)) for x, y in zip(m0, m1, strict=True)]
        columns = [list(c) for c in zip(*rows, strict=True)]
        for vertices, side in ((self.first, 0), (self.second, 1)):
            total += min(
                mpmath.fsum(s[side] * dot(law(p), c) for s, c in zip(slopes, columns, strict=True))
                for p in vertices.tolist()
            )
        return max(total, mpf(0))


def _tangent(f: Generator, a: mpf, b: mpf) -> tuple[mpf, mpf]:
    """The gradient of mu(a, b) - f'(1) (a - b)."""
    if a <= 0 or b <= 0:
        return mpf(0), mpf(0)
    h = mpf(10) ** (-mpmath.mp.dps // 3)
    fn = EXCESS[f[0]]
    on_a = (fn(a * (1 + h), b, *f[1:]) - fn(a * (1 - h), b, *f[1:])) / (2 * h * a)
    return on_a, (fn(a, b, *f[1:]) - a * on_a) / b


@dataclass(frozen=True)
class Estimate:
    """An error of the estimate of `prior` (k,): criterion "a" (weights or None), "c" (a contrast), "d" or "mv"."""

    prior: np.ndarray
    criterion: str
    numbers: tuple[float, ...] | None = None
    error = True

    def digits(self) -> int:
        return digits(*self.prior.tolist())

    def value(self, rows: list[Row]) -> mpf:
        """inf where the channel does not tell the distribution (a contrast alone may still be told: nan then)."""
        k = len(rows)
        p = law(self.prior.tolist())
        information = mpmath.zeros(k)
        for column in zip(*rows, strict=True):
            mean = dot(p, list(column))
            if mean > 0:
                for x, y in itertools.product(range(k), repeat=2):
                    information[x, y] += column[x] * column[y] / mean
        try:
            inverse = information**-1
        except ZeroDivisionError:
            return mpmath.inf if self.criterion in "da mv" and self.numbers is None else mpmath.nan
        c = [[inverse[x, y] - p[x] * p[y] for y in range(k)] for x in range(k)]
        if self.criterion == "a":
            weights = [mpf(1)] * k if self.numbers is None else [mpf(w) for w in self.numbers]
            return mpmath.fsum(w * c[x][x] for x, w in enumerate(weights))
        if self.criterion == "c":
            a = [mpf(w) for w in self.numbers or ()]
            return mpmath.fsum(a[x] * a[y] * c[x][y] for x, y in itertools.product(range(k), repeat=2))
        if self.criterion == "mv":
            return max(c[x][x] for x in range(k))
        size = mpmath.det(mpmath.matrix([row[:-1] for row in c[:-1]]))
        return mpmath.log(size) if size > 0 else mpmath.inf

    def best(self, epsilon: float, eta: float) -> np.ndarray | None:
        """Nearly the best channel of staircase patterns, by sequential quadratic programs; for up to 4 inputs."""
        k = len(self.prior)
        q, r = math.exp(-epsilon), -math.expm1(-epsilon)
        sets = np.array([a for a in itertools.product((0, 1), repeat=k) if sum(a) < k], dtype=float)
        columns = q + r * sets
        columns[0] = 1.0
        p = self.prior
        parts = np.einsum("ax,ay->axy", columns, columns) / (columns @ p)[:, None, None]

        def error(theta: np.ndarray) -> float:
            try:
                c = np.linalg.inv(np.einsum("a,axy->xy", np.maximum(theta, 0), parts)) - np.outer(p, p)
            except np.linalg.LinAlgError:
                return 1e30
            if self.criterion == "a":
                return float(np.diag(c) @ (np.ones(k) if self.numbers is None else np.array(self.numbers)))
            if self.criterion == "c":
                return float(np.array(self.numbers) @ c @ np.array(self.numbers))
            if self.criterion == "mv":
                return float(np.diag(c).max())
            sign, size = np.linalg.slogdet(c[:-1, :-1])
            return float(size) if sign > 0 else 1e30

        single = np.array([1.0 if a.sum() == 1 else 0.0 for a in sets])
        start = 0.9 * single / (1 + (k - 1) * q)
        others = np.where(sets.sum(axis=1) > 0, 1.0, 0.0)
        start = start + 0.1 * others / (columns.T @ others)[0]
        unit = max(abs(error(start)), 1e-300)
        limits = [{"type": "eq", "fun": lambda t: columns.T @ t - 1}]
        if eta < r / (1 + q):
            across = np.array([r * a[x] * (1 - a[y]) for a in sets for x, y in itertools.permutations(range(k), 2)])
            across = across.reshape(len(sets), -1)
            start = start * min(1.0, eta / (across.T @ start).max())
            start[0] += 1 - (columns.T @ start)[0]
            limits.append({"type": "ineq", "fun": lambda t: eta - across.T @ t})
        with np.errstate(all="ignore"):
            found = minimize(
                lambda t: error(t) / unit, start, method="SLSQP", bounds=[(0, None)] * len(sets), constraints=limits,
                options={"maxiter": 300, "ftol": 1e-15},
            ).x  # fmt: skip
        if not np.isfinite(found).all():
            return None
        made = np.maximum(found, 0.0)[:, None] * columns
        made = made[made.max(axis=1) > 0].T
        return np.asarray(made / made.sum(axis=1, keepdims=True))
