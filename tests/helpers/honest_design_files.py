"""Honest design files, made by a dynamic program in 60 digits that shares nothing with the package or its checker."""

import math
from itertools import combinations

import mpmath
from mpmath import mpf

DIGITS = 60

# f and f'(1) of each named divergence; the families take their parameter.
GENERATORS = {
    "kl": (lambda t: t * mpmath.log(t) if t else mpf(0), 1),
    "reverse-kl": (lambda t: -mpmath.log(t), -1),
    "jeffreys": (lambda t: (t - 1) * mpmath.log(t), 0),
    "total-variation": (lambda t: abs(t - 1) / 2, 0),
    "chi-squared": (lambda t: (t - 1) ** 2, 0),
    "neyman-chi-squared": (lambda t: (t - 1) ** 2 / t, 0),
    "squared-hellinger": (lambda t: (mpmath.sqrt(t) - 1) ** 2, 0),
    "jensen-shannon": (lambda t: ((t * mpmath.log(t) if t else 0) - (1 + t) * mpmath.log((1 + t) / 2)) / 2, 0),
    "le-cam": (lambda t: (t - 1) ** 2 / (t + 1), 0),
}


def generator(f):
    """f and f'(1) of a file's `f` other than a hockey stick, in mpmath."""
    if f["name"] == "alpha":
        order = mpf(f["parameter"])
        if order in (0, 1):
            return GENERATORS["kl" if order else "reverse-kl"]
        return (lambda t: (t**order - 1) / (order * (order - 1))), 1 / (order - 1)
    return GENERATORS[f["name"]]


def excess(f, a, b):
    """b f(a/b) - f'(1) (a - b) for a >= 0, b > 0."""
    if f["name"] == "hockey-stick":  # Zero must be zero.
        c = mpf(f["parameter"])
        return abs(a - b) / 2 if c == 1 else max(a - c * b, mpf(0)) if c > 1 else max(c * b - a, mpf(0))
    function, slope = generator(f)
    return b * function(a / b) - slope * (a - b)


def normalised(masses):
    """The law in proportion to floats."""
    total = mpmath.fsum(map(mpf, masses))
    return [mpf(x) / total for x in masses]


def below(x):
    """A float below a number of many digits; 0 stays 0."""
    return math.nextafter(float(x), -math.inf) if x else 0.0


class Problem:
    """The blocks of a small problem: the best partitions, and potentials for any level."""

    def __init__(self, f, p0, p1, epsilon):
        self.f, self.t, self.k = f, 1 / mpmath.expm1(mpf(epsilon)), len(p0)
        law0, law1 = normalised(p0), normalised(p1)
        self.order = sorted((x for x in range(self.k) if p0[x] or p1[x]), key=lambda x: law0[x] / (law0[x] + law1[x]))
        self.n = len(self.order)
        sums = [[mpf(0)], [mpf(0)]]
        for x in self.order:
            sums[0].append(sums[0][-1] + law0[x])
            sums[1].append(sums[1][-1] + law1[x])
        self.w = {
            (i, j): excess(f, self.t + (sums[0][j] - sums[0][i]), self.t + (sums[1][j] - sums[1][i]))
            for i, j in combinations(range(self.n + 1), 2)
        }
        # best[m][j]: the most that m blocks of the first j sorted inputs are worth, and where the last one begins.
        self.best = [{0: (mpf(0), 0)}]
        for m in range(1, self.n + 1):
            self.best.append(
                {
                    j: max((self.best[m - 1][i][0] + self.w[i, j], i) for i in range(j) if i in self.best[m - 1])
                    for j in range(m, self.n + 1)
                }
            )
        self.points = [
            (1 / (1 + self.t * m), self.best[m][self.n][0] / (1 + self.t * m), m) for m in range(1, self.n + 1)
        ]

    def blocks(self, m):
        """The best partition into m blocks, as lists of inputs."""
        found, j = [], self.n
        for left in range(m, 0, -1):
            i = self.best[left][j][1]
            found.append(self.order[i:j])
            j = i
        return found

    def potentials(self, level):
        """u_j = max over i < j of u_i + w(i, j) - t A."""
        u = [mpf(0)]
        for j in range(1, self.n + 1):
            u.append(max(u[i] + self.w[i, j] - self.t * level for i in range(j)))
        return u

    def bound(self, level, eta):
        """A + eta (U - A)_+."""
        return level + eta * max(0, self.potentials(level)[-1] - level)

    def level(self, eta):
        """The level of the least bound, which is convex and piecewise linear in it: one of its kinks."""
        kinks = [mpf(0)] + [y for _, y, _ in self.points]
        v = [self.best[m][self.n][0] for m in range(1, self.n + 1)]
        kinks += [(v[b] - v[a]) / (self.t * (b - a)) for a, b in combinations(range(self.n), 2)]
        return min((kink for kink in kinks if kink >= 0), key=lambda level: self.bound(level, eta))

    def weights(self, eta):
        """The optimum, and the weights of the partitions in it: at most two, and what is left erases."""
        found = [(min(1, eta / x) * y, {m: min(1, eta / x)}) for x, y, m in self.points]
        for (x, y, m), (z, v, o) in combinations(self.points, 2):
            if z < eta < x:
                c = (eta - z) / (x - z)
                found.append((c * y + (1 - c) * v, {m: c, o: 1 - c}))
        return max(found, key=lambda pair: pair[0])


def honest(f, p0, p1, epsilon=None, eta=None, points=None):
    """A file whose claims are all true: the optimal channel, slightly shrunk, with padded potentials."""
    with mpmath.workdps(DIGITS):
        cap = mpf(epsilon) if epsilon is not None else mpf(60)
        tight = mpmath.tanh(cap / 2) if eta is None else min(mpf(eta), mpmath.tanh(cap / 2))
        problem = Problem(f, p0, p1, cap)
        # The channel: caps within reach of doubles.
        shrunk, limit = cap * (1 - mpf(10) ** -12) - mpf(10) ** -15, tight * (1 - mpf(10) ** -12) - mpf(10) ** -15
        matrix, e = [[] for _ in p0], mpmath.exp(shrunk)
        if epsilon is None:  # full disclosure and erasure
            matrix = [[float(limit) * (x == y) for y in range(len(p0))] + [1 - float(limit)] for x in range(len(p0))]
        else:
            _, weights = problem.weights(limit)
            for m, weight in weights.items():
                for block in problem.blocks(m):
                    for x, row in enumerate(matrix):
                        row.append(float(weight * (e if x in block else 1) / (e + m - 1)))
            # An input without mass takes the row of the first one that has some.
            matrix = [row if x in problem.order else list(matrix[problem.order[0]]) for x, row in enumerate(matrix)]
            rest = 1 - sum(weights.values())
            for row in matrix:
                row.append(float(rest))
        rows = [normalised(row) for row in matrix]
        marginals = [
            [mpmath.fsum(p * row[y] for p, row in zip(law, rows, strict=True)) for y in range(len(rows[0]))]
            for law in (normalised(p0), normalised(p1))
        ]
        value = mpmath.fsum(excess(f, a, b) for a, b in zip(*marginals, strict=True) if b)
        certificate = {"kind": "Contraction"}
        if epsilon is None:
            laws = zip(normalised(p0), normalised(p1), strict=True)
            bound = tight * mpmath.fsum(excess(f, a, b) for a, b in laws if a + b)
        if epsilon is not None:
            masses = ([a for a, _ in points], [b for _, b in points]) if points is not None else (p0, p1)
            proof = Problem(f, *masses, cap)
            level = float(proof.level(tight))
            worth = proof.best[proof.n][proof.n][0] + max(proof.w.values())
            u = proof.potentials(mpf(level))
            u = [float(x + j * mpf(2) ** -45 * worth / proof.n) for j, x in enumerate(u)]
            bound = level + tight * max(0, mpf(u[-1]) - mpf(u[0]) - level)
            certificate = {"kind": "EnvelopeDual", "level": level, "potentials": u, "points": points}
        ratios = [max(column) / min(column) for column in zip(*rows, strict=True) if min(column) > 0]
        tv = max((sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2 for p, q in combinations(rows, 2)))
        constraints, guarantees = [], []
        if epsilon is not None:
            constraints.append({"kind": "LocalDP", "epsilon": epsilon})
            own = math.nextafter(float(mpmath.log(max(ratios))), math.inf)
            guarantees.append({"notion": "local_dp", "value": own})
        if eta is not None:
            constraints.append({"kind": "TotalVariation", "eta": eta})
            guarantees.append({"notion": "total_variation", "value": math.nextafter(float(tv), math.inf)})
        tolerance, upper = 1e-6, float(bound * (1 + mpf(10) ** -9))
        return {
            "schema": "ldpopt-design",
            "version": 1,
            "utility": {"kind": "Divergence", "f": f, "p0": p0, "p1": p1, "inputs": None},
            "constraints": constraints,
            "channel": {"inputs": list(range(len(p0))), "outputs": list(range(len(matrix[0]))), "matrix": matrix},
            "value": below(value),
            "lower_bound": below(value),
            "upper_bound": upper,
            "certified": bool((mpf(upper) - value) <= tolerance * value * mpf("0.999")),
            "tolerance": tolerance,
            "guarantees": guarantees,
            "method": "blocks",
            "reference": "",
            "note": "",
            "edges": None,
            "certificate": certificate,
        }
