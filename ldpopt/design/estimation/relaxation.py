"""Numbers of a semidefinite relaxation -> a proved bound on the gain of every column, where they are too many [Shor].

Let lambda and nu be as in `prices`, G = K^T K, t = 1/(E - 1) and E = exp(epsilon).

*Staircase patterns.* Take a pattern t + a, for the indicator a of a set whose mass m = t + p.a lies in [low, high]. Its
gain is not positive when

    N(a) = m (t sum lambda + lambda.a) + low sum nu[x,x'] a_x (1 - a_x') - a^T G a >= 0,

which is quadratic in a. Add d_x (a_x^2 - a_x) = 0, and subtract span (m - low) (high - m) >= 0. For pairs that good
sets do not hold together, also subtract n[x,x'] a_x a_x' >= 0. The result is at least its lowest eigenvalue times
|z|^2, z = (a_x (t + p_x), t). Moreover |z|^2 <= (k + 1) m^2, since m >= t, and m >= t + p_x on the set. The masses,
from t to t E, are cut into classes, each with its own d and span; without nu one class is enough.

*Columns of a policy graph.* A column s within the graph has  a.s = exp(L[x,x']) s_x' - s_x >= 0  for every edge. Its
gain is not positive when (s.p)(lambda.s) - s^T G s >= 0. That holds for all columns when this form, less a combination
of products (a.s)(b.s) >= 0 with weights n >= 0, is positive semidefinite. Under a cap on total variation a column also
has the price nu[x,x'] (s_x - s_x')_+. With d = s_x - s_x', and |d| <= R (s.p) within the graph, this is bounded by

    (d)_+ (s.p) >= (d (s.p) + d^2 / R) / 2.

The form is in z_x = s_x / unit_x, where unit_x is the largest possible s_x for s.p = 1: then |z|^2 <= k (s.p)^2.
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

MAX_SHIFTS = 12  # Shifts that are tried, each sixteen times the one before.


def eigenvalue_lower_bound(form: Enclosure) -> float:
    """Bound the eigenvalues of the symmetric matrix in `form` (n, n) from below.

    It is -inf if no bound is proved. Suppose that the factorization of a float matrix B runs to its end. Then B is
    positive semidefinite up to (n + 1) u / (1 - (2 n + 2) u) times its trace [HIG, Thm 10.3]. The margin here allows
    for any order of the sums. The uncertainty of the entries moves eigenvalues by at most its largest row sum.
    """
    lower_entries, upper_entries = (np.asarray(entries) for entries in (FLOAT.of(form).lower, FLOAT.of(form).upper))
    if not (np.isfinite(lower_entries).all() and np.isfinite(upper_entries).all()):
        return -math.inf
    midpoint = lower_entries / 2 + upper_entries / 2
    # The matrix is symmetric, so that its lower triangle is enough.
    midpoint = np.tril(midpoint) + np.tril(midpoint, -1).T
    radius = np.maximum(upper_entries - midpoint, midpoint - lower_entries) * (1 + 2 * ULP)
    radius = np.maximum(np.tril(radius), np.tril(radius).T)
    row_sum_error = float(radius.sum(axis=1).max()) * (1 + 2 * len(radius) * ULP)
    n, largest_entry = len(midpoint), float(np.abs(midpoint).max())
    if largest_entry == 0:
        return -row_sum_error * (1 + ULP)
    shift = max(0.0, -float(np.linalg.eigvalsh(midpoint)[0])) + n * ULP * largest_entry
    for _ in range(MAX_SHIFTS):
        shifted_matrix = midpoint + shift * np.eye(n)
        with suppress(np.linalg.LinAlgError), np.errstate(all="ignore"):  # An overflow proves nothing.
            if np.isfinite(shifted_matrix).all() and np.isfinite(np.linalg.cholesky(shifted_matrix)).all():
                trace = float(np.diag(shifted_matrix).sum())
                # The shifted diagonal is itself rounded, by half an ulp.
                rounding = (4 * n + 32) * ULP * trace + n * n * 1e-300
                return -(shift + rounding + row_sum_error) * (1 + 8 * ULP)
        shift *= 16
    return -math.inf


MASS_CLASSES = 6  # Classes of masses where total variation is capped.


@dataclass(frozen=True, eq=False)
class Relaxation(ByValue):
    """The numbers of a relaxation of staircase patterns; any numbers give a valid bound.

    - `squares` : d (classes, k).
    - `spans` : (classes,), nonnegative.
    - `products` : n (k, k), nonnegative, or None.
    """

    squares: Array
    spans: Array
    products: Array | None = None
    words: ClassVar[str] = "Shor's relaxation of"

    def gain_bound(self, charges: Charges, epsilon: Enclosure) -> float:
        """Bound the gains of all patterns; inf if the numbers prove none. epsilon : in nats."""
        spans, k = finite_array(self.spans, (-1,)), len(charges.rows)
        class_count = 0 if spans is None else len(spans)
        squares = finite_array(self.squares, (class_count, k))
        if spans is None or squares is None or not 1 <= class_count <= MASS_CLASSES or not (spans >= 0).all():
            return math.inf
        products = np.zeros((k, k)) if self.products is None else finite_array(self.products, (k, k))
        if products is None or not (products >= 0).all():
            return math.inf
        level = 1 / epsilon.expm1()
        class_ends = [level * (epsilon * number / class_count).exp() for number in range(class_count + 1)]
        smallest_eigenvalue = min(
            eigenvalue_lower_bound(
                _scaled_form(charges, level, squares[i], products, float(spans[i]), class_ends[i], class_ends[i + 1])
            )
            for i in range(class_count)
        )
        return form_gain_bound(smallest_eigenvalue, k + 1)


def finite_array(values: Any, shape: tuple[int, ...]) -> Array | None:
    """Return finite float64 values of exactly this shape; None for anything else.

    A length of -1 in the shape stands for any length.
    """
    try:
        return real_array(values, shape, "the numbers of a relaxation")
    except Unproved:
        return None


def form_gain_bound(smallest_eigenvalue: float, size: int) -> float:
    """Compute the largest gain -z^T N z with |z|^2 <= `size`, at least 0.

    It follows from the smallest eigenvalue of N.
    """
    return 0.0 if smallest_eigenvalue >= 0 else float(-smallest_eigenvalue * size * (1 + 2.0**-50))


def _scaled_form(
    charges: Charges,
    level: Enclosure,
    d: Array,
    products: Array,
    span: float,
    smallest_mass: Enclosure,
    largest_mass: Enclosure,
) -> Enclosure:
    """Build N with both changes, as a symmetric form (k + 1, k + 1) in z."""
    p, arithmetic = charges.prior, charges.arithmetic
    rows, pairs = arithmetic.of(charges.rows), arithmetic.of(charges.pairs)
    constant_price = level * charges.total
    price_form = p[:, None] * rows[None, :]
    pair_sums = pairs + pairs.T
    quadratic = (price_form + price_form.T) / 2 - charges.kernel.T @ charges.kernel - pair_sums * smallest_mass / 2
    # (m - smallest_mass)(largest_mass - m) with m = level + p.a
    product_form = arithmetic.of(products)
    quadratic = quadratic + np.diag(d) - (product_form + product_form.T) / 2 + (p[:, None] * p[None, :]) * span
    linear = (
        p * constant_price
        + rows * level
        + pairs.sum(axis=1) * smallest_mass
        - d
        + p * (level * 2 - smallest_mass - largest_mass) * span
    ) / 2
    constant = level * constant_price - (level - smallest_mass) * (largest_mass - level) * span
    first_rows = arithmetic.concatenate([quadratic, linear[:, None]], 1)
    last_row = arithmetic.concatenate([linear[None, :], constant.reshape(1, 1)], 1)
    scale = 1 / arithmetic.concatenate([p + level, level.reshape(1)])
    return arithmetic.concatenate([first_rows, last_row]) * scale[:, None] * scale[None, :]


MAX_PRODUCTS = 6000
"""Products of two constraints; if there are more, those that share inputs come first."""
LIMIT_RTOL = 2.0**-44
"""Relative margin for the rounding of the limits, which are sums along paths of weights times epsilon."""


@dataclass(frozen=True, eq=False)
class PolicyRelaxation(ByValue):
    """The numbers of a relaxation of the columns of a policy graph; any nonnegative numbers are valid.

    weights : n (products,), the weights of the products of constraints.
    """

    weights: Array
    words: ClassVar[str] = "Shor's relaxation of"

    def gain_bound(self, charges: Charges, limits: Array) -> float:
        """Bound the gains of all columns within `limits` (k, k); inf if the weights prove none."""
        cone = PolicyCone.from_limits(limits, charges.prior)
        first_faces, second_faces = cone.products
        weights = finite_array(self.weights, (len(first_faces),))
        if weights is None or not (weights >= 0).all():
            return math.inf
        faces = cone.faces
        products = (faces[first_faces] * weights[:, None]).T @ faces[second_faces]
        shift, square_form = cone.split_squares(charges.pairs)
        square = charges.kernel.T @ charges.kernel - square_form
        form = cone.form(square, charges.arithmetic.of(charges.rows) + shift) - (products + products.T) / 2
        return form_gain_bound(eigenvalue_lower_bound(form), len(limits))


@dataclass(frozen=True, eq=False)
class PolicyCone:
    """The columns within limits (k, k), for a distribution p (k,).

    - `unit` : (k,) the largest possible value of each entry for s.p = 1.
    - `wide` : a little above the limits, and 0 where there is none.
    - `x`, `other` : (n,) the inputs of the limits that no path through other inputs implies.
    """

    limits: Array
    prior: Enclosure
    wide: Enclosure
    unit: Enclosure
    x: Any
    other: Any

    @classmethod
    def from_limits(cls, limits: Array, prior: Enclosure) -> PolicyCone:
        """Build the cone of shortest paths."""
        arithmetic, has_limit = prior.arithmetic, np.isfinite(limits)
        limits_above = arithmetic.of(np.where(has_limit, limits, 0.0)) * (1 + LIMIT_RTOL)
        # s.p >= s_x sum_x' p_x' exp(-L[x,x'])
        lower_ratios = arithmetic.where(has_limit, (-limits_above).exp(), 0.0)
        return cls(
            limits,
            prior,
            limits_above,
            1 / (lower_ratios @ prior),
            *np.nonzero(direct_limits(limits, equality_slack(limits))),
        )

    @property
    def products(self) -> tuple[Any, Any]:
        """The faces, first and second, of every product in use."""
        inputs = np.arange(len(self.limits))
        is_on_face = (self.x[:, None] == inputs) | (self.other[:, None] == inputs)
        return product_pairs(np.vstack([is_on_face, inputs[:, None] == inputs]) if self._open else is_on_face)

    @property
    def _open(self) -> bool:
        """True if some limits are infinite, so that s_x >= 0 are faces, too."""
        return bool(np.isinf(self.limits).any())

    @property
    def faces(self) -> Enclosure:
        """The limits exp(L/2) s_x' - exp(-L/2) s_x >= 0 in z, (faces, k), each divided by some positive number."""
        limit, face_numbers, k = self.wide[self.x, self.other], np.arange(len(self.x)), len(self.limits)
        upper_factor, lower_factor = (limit / 2).exp() * self.unit[self.other], (-limit / 2).exp() * self.unit[self.x]
        # They are divided by the larger coefficient, so that nothing overflows.
        scale = np.maximum(np.asarray(upper_factor.midpoint), np.asarray(lower_factor.midpoint))
        incoming, outgoing = np.zeros((len(self.x), k)), np.zeros((len(self.x), k))
        incoming[face_numbers, self.other] = outgoing[face_numbers, self.x] = 1.0
        faces = (upper_factor / scale)[:, None] * incoming - (lower_factor / scale)[:, None] * outgoing
        return limit.arithmetic.concatenate([faces, limit.arithmetic.of(np.eye(k))]) if self._open else faces

    def form(self, square: Enclosure, rows: Enclosure) -> Enclosure:
        """Build (k, k) the form (s.p)(rows.s) - s^T square s in z."""
        price_form = self.prior[:, None] * rows[None, :]
        return ((price_form + price_form.T) / 2 - square) * self.unit[:, None] * self.unit[None, :]

    def split_squares(self, pairs: Array) -> tuple[Enclosure, Enclosure]:
        """Split sum nu (d (s.p) + d^2 / R) / 2, d = s_x - s_x', into a linear and a square part.

        The first is added to lambda (k,); the second is (k, k).
        """
        arithmetic, has_price = self.wide.arithmetic, pairs > 0
        pair_prices = arithmetic.of(pairs)
        # s_x - s_x' is at most unit_x (1 - exp(-L[x,x'])) for s.p = 1, and so the other way round.
        largest_difference = self.unit[:, None] * arithmetic.where(np.isfinite(self.limits), -(-self.wide).expm1(), 1.0)
        largest_difference = largest_difference.maximum(largest_difference.T)
        square_terms = arithmetic.where(
            has_price, pair_prices / (arithmetic.where(has_price, largest_difference, 1.0) * 2), 0.0
        )
        square_terms = square_terms + square_terms.T
        diagonal_sums = square_terms.sum(axis=1)[:, None] * np.ones((1, len(pairs)))
        diagonal = arithmetic.where(np.eye(len(pairs), dtype=bool), diagonal_sums, 0.0)
        return (pair_prices.sum(axis=1) - pair_prices.sum(axis=0)) / 2, diagonal - square_terms


def product_pairs(has_input: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
    """List the first and the second constraint, (products,) each, of every product in use."""
    first_constraints, second_constraints = np.triu_indices(len(has_input), 1)
    if len(first_constraints) > MAX_PRODUCTS:
        shared_counts = (has_input[first_constraints] & has_input[second_constraints]).sum(axis=1)
        pair_numbers = np.sort(np.argsort(-shared_counts, kind="stable")[:MAX_PRODUCTS])
        first_constraints, second_constraints = first_constraints[pair_numbers], second_constraints[pair_numbers]
    return first_constraints, second_constraints
