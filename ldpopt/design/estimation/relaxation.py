"""Numbers of a semidefinite relaxation -> a proved bound on the gain of every column, where they are too many [Shor].

Let lambda and nu be as in `prices`, G = K^T K, t = 1/(E - 1) and E = exp(epsilon).

*Staircase patterns.* Take a pattern t + a, for the indicator a of a set whose mass m = t + p.a lies in [low, high]. Its
gain is not positive when

    N(a) = m (t sum lambda + lambda.a) + low sum nu[x,x'] a_x (1 - a_x') - a^T G a >= 0,

which is quadratic in a. Add d_x (a_x^2 - a_x) = 0, and subtract span (m - low) (high - m) >= 0 and, for pairs that
good sets do not hold together, n[x,x'] a_x a_x' >= 0. The result is at least its lowest eigenvalue times |z|^2,
z = (a_x (t + p_x), t), and |z|^2 <= (k + 1) m^2, since m >= t, and m >= t + p_x on the set. The masses, from t to t E,
are cut into classes, each with its own d and span; without nu one class is enough.

*Columns of a policy graph.* A column s within the graph has  a.s = exp(L[x,x']) s_x' - s_x >= 0  for every edge. Its
gain is not positive when (s.p)(lambda.s) - s^T G s >= 0. That holds for all columns when this form, less a combination
of products (a.s)(b.s) >= 0 with weights n >= 0, is positive semidefinite. Under a cap on total variation a column also
pays nu[x,x'] (s_x - s_x')_+. With d = s_x - s_x', and |d| <= R (s.p) within the graph, this is bounded by

    (d)_+ (s.p) >= (d (s.p) + d^2 / R) / 2.

The form is in z_x = s_x / unit_x, where unit_x is the most that s_x can be for s.p = 1: then |z|^2 <= k (s.p)^2.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.design.constraints.local_dp import direct_limits
from ldpopt.design.estimation.prices import Charges
from ldpopt.design.kernel.numbers import Unproved, real_array
from ldpopt.design.patterns.policy import equality_slack
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

TRIES = 12  # The number of shifts that are tried, each sixteen times the one before.


def least_eigenvalue(form: Enclosure) -> float:
    """A lower bound on the eigenvalues of the symmetric matrix in `form` (n, n); -inf where none is found. If the
    factorisation of a float matrix B runs to its end, B is positive semidefinite up to (n + 1) u / (1 - (2 n + 2) u)
    times its trace [HIG, Thm 10.3], here with room for any order of the sums. The uncertainty of the entries moves
    eigenvalues by at most its largest row sum.
    """
    lower, upper = (np.asarray(end) for end in (FLOAT.of(form).lower, FLOAT.of(form).upper))
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return -math.inf
    middle = lower / 2 + upper / 2
    # The matrix is symmetric, so that its lower triangle is enough.
    middle = np.tril(middle) + np.tril(middle, -1).T
    radius = np.maximum(upper - middle, middle - lower) * (1 + 2 * ULP)
    radius = np.maximum(np.tril(radius), np.tril(radius).T)
    off = float(radius.sum(axis=1).max()) * (1 + 2 * len(radius) * ULP)
    n, size = len(middle), float(np.abs(middle).max())
    if size == 0:
        return -off * (1 + ULP)
    shift = max(0.0, -float(np.linalg.eigvalsh(middle)[0])) + n * ULP * size
    for _ in range(TRIES):
        shifted = middle + shift * np.eye(n)
        with suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):  # what overflows proves nothing
            if np.isfinite(shifted).all() and np.isfinite(np.linalg.cholesky(shifted)).all():
                trace = float(np.diag(shifted).sum())
                # The shifted diagonal is itself rounded, by half an ulp.
                lost = (4 * n + 32) * ULP * trace + n * n * 1e-300
                return -(shift + lost + off) * (1 + 8 * ULP)
        shift *= 16
    return -math.inf


CLASSES = 6  # The number of classes of masses where total variation is capped.


@dataclass(frozen=True, eq=False)
class Relaxation(ByValue):
    """squares : d (classes, k). spans : (classes,), none below zero. products : n (k, k), none below zero, or None.

    Any such numbers give a valid bound.
    """

    squares: Array
    spans: Array
    products: Array | None = None
    words: ClassVar[str] = "Shor's relaxation of"

    def most(self, charges: Charges, epsilon: Enclosure) -> float:
        """An upper bound on the gains of all patterns; inf where the numbers prove none. epsilon : in nats."""
        spans, k = finite(self.spans, (-1,)), len(charges.rows)
        classes = 0 if spans is None else len(spans)
        squares = finite(self.squares, (classes, k))
        if spans is None or squares is None or not 1 <= classes <= CLASSES or not (spans >= 0).all():
            return math.inf
        products = np.zeros((k, k)) if self.products is None else finite(self.products, (k, k))
        if products is None or not (products >= 0).all():
            return math.inf
        level = 1 / epsilon.expm1()
        ends = [level * (epsilon * number / classes).exp() for number in range(classes + 1)]
        least = min(
            least_eigenvalue(_scaled(charges, level, squares[i], products, float(spans[i]), ends[i], ends[i + 1]))
            for i in range(classes)
        )
        return most_of_form(least, k + 1)


def finite(values: Any, shape: tuple[int, ...]) -> Array | None:
    """Finite float64 of exactly this shape, in which -1 stands for any length; None for anything else."""
    try:
        return real_array(values, shape, "the numbers of a relaxation")
    except Unproved:
        return None


def most_of_form(least: float, size: int) -> float:
    """The largest gain -z^T N z with |z|^2 <= `size`, from the least eigenvalue of N; at least 0."""
    return 0.0 if least >= 0 else float(-least * size * (1 + 2.0**-50))


def _scaled(
    charges: Charges, level: Enclosure, d: Array, products: Array, span: float, low: Enclosure, high: Enclosure
) -> Enclosure:
    """N with both changes, as a symmetric form (k + 1, k + 1) in z."""
    p, arithmetic = charges.prior, charges.arithmetic
    rows, pairs = arithmetic.of(charges.rows), arithmetic.of(charges.pairs)
    total = level * charges.total
    paid = p[:, None] * rows[None, :]
    both = pairs + pairs.T
    top = (paid + paid.T) / 2 - charges.kernel.T @ charges.kernel - both * low / 2
    # (m - low)(high - m) with m = level + p.a
    together = arithmetic.of(products)
    top = top + np.diag(d) - (together + together.T) / 2 + (p[:, None] * p[None, :]) * span
    edge = (p * total + rows * level + pairs.sum(axis=1) * low - d + p * (level * 2 - low - high) * span) / 2
    corner = level * total - (level - low) * (high - level) * span
    first = arithmetic.concatenate([top, edge[:, None]], 1)
    last = arithmetic.concatenate([edge[None, :], corner.reshape(1, 1)], 1)
    unit = 1 / arithmetic.concatenate([p + level, level.reshape(1)])
    return arithmetic.concatenate([first, last]) * unit[:, None] * unit[None, :]


PRODUCTS = 6000
"""The most products of two constraints that are used; where there are more, those that share inputs come first."""
ROUNDING = 2.0**-44
"""Relative room for the rounding of the limits, which are sums along paths of weights times epsilon."""


@dataclass(frozen=True, eq=False)
class PolicyRelaxation(ByValue):
    """weights : n (products,), the weights of the products of constraints, none below zero. Any of them are valid."""

    weights: Array
    words: ClassVar[str] = "Shor's relaxation of"

    def most(self, charges: Charges, limits: Array) -> float:
        """An upper bound on the gains of all columns within `limits` (k, k); inf where the weights prove none."""
        cone = PolicyCone.of(limits, charges.prior)
        first, second = cone.products
        weights = finite(self.weights, (len(first),))
        if weights is None or not (weights >= 0).all():
            return math.inf
        faces = cone.faces
        products = (faces[first] * weights[:, None]).T @ faces[second]
        shift, bent = cone.apart(charges.pairs)
        square = charges.kernel.T @ charges.kernel - bent
        form = cone.form(square, charges.arithmetic.of(charges.rows) + shift) - (products + products.T) / 2
        return most_of_form(least_eigenvalue(form), len(limits))


@dataclass(frozen=True, eq=False)
class PolicyCone:
    """The columns within limits (k, k), for a law p (k,); unit (k,) the most that each entry can be for s.p = 1. wide :
    a little above the limits, and 0 for none. x, other : (n,) the inputs of the limits that no path through other
    inputs implies.
    """

    limits: Array
    prior: Enclosure
    wide: Enclosure
    unit: Enclosure
    x: Any
    other: Any

    @classmethod
    def of(cls, limits: Array, prior: Enclosure) -> PolicyCone:
        """The cone of shortest paths."""
        arithmetic, near = prior.arithmetic, np.isfinite(limits)
        wide = arithmetic.of(np.where(near, limits, 0.0)) * (1 + ROUNDING)
        # s.p >= s_x sum_x' p_x' exp(-L[x,x'])
        shrunk = arithmetic.where(near, (-wide).exp(), 0.0)
        return cls(
            limits, prior, wide, 1 / (shrunk @ prior), *np.nonzero(direct_limits(limits, equality_slack(limits)))
        )

    @property
    def products(self) -> tuple[Any, Any]:
        """The faces, first and second, of every product that is used."""
        inputs = np.arange(len(self.limits))
        on_faces = (self.x[:, None] == inputs) | (self.other[:, None] == inputs)
        return product_pairs(np.vstack([on_faces, inputs[:, None] == inputs]) if self._open else on_faces)

    @property
    def _open(self) -> bool:
        """Whether some limits are infinite, so that s_x >= 0 are faces, too."""
        return bool(np.isinf(self.limits).any())

    @property
    def faces(self) -> Enclosure:
        """(faces, k) the limits exp(L/2) s_x' - exp(-L/2) s_x >= 0 in z, each divided by some positive number."""
        wide, row, k = self.wide[self.x, self.other], np.arange(len(self.x)), len(self.limits)
        up, down = (wide / 2).exp() * self.unit[self.other], (-wide / 2).exp() * self.unit[self.x]
        # They are divided by the larger coefficient, so that nothing overflows.
        scale = np.maximum(np.asarray(up.midpoint), np.asarray(down.midpoint))
        into, out = np.zeros((len(self.x), k)), np.zeros((len(self.x), k))
        into[row, self.other] = out[row, self.x] = 1.0
        faces = (up / scale)[:, None] * into - (down / scale)[:, None] * out
        return wide.arithmetic.concatenate([faces, wide.arithmetic.of(np.eye(k))]) if self._open else faces

    def form(self, square: Enclosure, rows: Enclosure) -> Enclosure:
        """(k, k) the form (s.p)(rows.s) - s^T square s in z."""
        paid = self.prior[:, None] * rows[None, :]
        return ((paid + paid.T) / 2 - square) * self.unit[:, None] * self.unit[None, :]

    def apart(self, pairs: Array) -> tuple[Enclosure, Enclosure]:
        """For sum nu (d (s.p) + d^2 / R) / 2, d = s_x - s_x': what it adds to lambda (k,), and its square (k, k)."""
        arithmetic, priced = self.wide.arithmetic, pairs > 0
        paid = arithmetic.of(pairs)
        # s_x - s_x' is at most unit_x (1 - exp(-L[x,x'])) for s.p = 1, and so the other way round.
        reach = self.unit[:, None] * arithmetic.where(np.isfinite(self.limits), -(-self.wide).expm1(), 1.0)
        reach = reach.maximum(reach.T)
        bent = arithmetic.where(priced, paid / (arithmetic.where(priced, reach, 1.0) * 2), 0.0)
        bent = bent + bent.T
        every = bent.sum(axis=1)[:, None] * np.ones((1, len(pairs)))
        diagonal = arithmetic.where(np.eye(len(pairs), dtype=bool), every, 0.0)
        return (paid.sum(axis=1) - paid.sum(axis=0)) / 2, diagonal - bent


def product_pairs(support: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
    """The first and the second constraint, (products,) each, of every product that is used."""
    first, second = np.triu_indices(len(support), 1)
    if len(first) > PRODUCTS:
        shared = (support[first] & support[second]).sum(axis=1)
        kept = np.sort(np.argsort(-shared, kind="stable")[:PRODUCTS])
        first, second = first[kept], second[kept]
    return first, second
