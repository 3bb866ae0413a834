"""Restricted divergences for adversaries with sums of ReLU units of one number, between two proved bounds.

The class H holds the functions c phi + b + sum_j a_j (phi - t_j)_+ with a_j >= 0, which are the convex functions of
phi, and their negatives. A measure r on the outputs majorizes p if it has the mass and the mean of p, and for every
output's t its sum of (phi - t)_+ is at least that of p (Hardy, Littlewood, Polya). Then E_p h <= E_r h for every convex
h, and

    KL_H(p, q) <= KL(r || q),    ||p||_H,A <= (sum q |r/q|^alpha)^(1/alpha)

with equality for the best r. For concave h the roles are exchanged: p majorizes r. A projected Newton method finds h
and r = q e^h, or q sign(h) |h|^(A-1). Then r, in fractions, receives the mass and the mean of p at two outputs. It is
mixed with the measure that majorizes all (of the two ends), or that all majorize (of the two outputs around the mean).
The mixture is just large enough that every comparison holds exactly. The claim is the divergence of that r, in 256-bit
ball arithmetic. Functions with values in [0, 1] are mixtures of constants, falling hinges (1 - (phi - phi_1)/(s -
phi_1))_+ and rising ones to their right, s an output's. So the total variation is the largest of their sums, in
fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import EXACT, Enclosure
from ldpopt.numbers.rounding import float_down, float_up
from ldpopt.privacy.shapes import line
from ldpopt.values.distribution import Array, Checked
from ldpopt.values.results import ByValue

Numbers = list[Fraction]

_MAX_NEWTON_STEPS = 120
_MIN_DECREASE_RTOL = 1e-16


@dataclass(frozen=True, eq=False)
class ReLU(Checked, ByValue, features=line):
    """Affine functions of one number plus ReLU units (phi(y) - t)_+ with weights of one sign, for any t.

    features : array (m,), the number phi of each output of the channel. These functions are all that are convex in phi
    on the outputs, and all that are concave.

    >>> from ldpopt.privacy import RestrictedTotalVariation, capacity_bounded
    >>> q = [[0.5, 0.2, 0.3], [0.3, 0.5, 0.2]]
    >>> round(float(capacity_bounded(q, ReLU([0, 1, 2]), RestrictedTotalVariation())), 6)
    0.3
    """

    features: Any

    def check(self, outputs: int) -> None:
        """Raise `InvalidInput` unless there is one number for each of the outputs."""
        if len(self.features) != outputs:
            raise invalid("features", f"one number for each of the {outputs} outputs", len(self.features))

    def renyi(self, p: Array, q: Array, order: float) -> tuple[float, float]:
        """Bound the restricted Rényi divergence of `order` >= 1 (nats) of rows p, q (m,); order 1 is KL."""
        phi, p_masses, q_masses = self._by_level(p, q)
        if any(a > 0 and b == 0 for a, b in zip((p_masses[0], p_masses[-1]), (q_masses[0], q_masses[-1]), strict=True)):
            return 0.0, math.inf
        if len(phi) == 1 or p_masses == q_masses:
            return 0.0, 0.0
        sign_bounds = [_bracket(phi, p_masses, q_masses, order, sign) for sign in (1, -1)]
        return max(low for low, _ in sign_bounds), max(high for _, high in sign_bounds)

    def total_variation(self, p: Array, q: Array) -> tuple[float, float]:
        """Bound the largest E_p h - E_q h over h of the class with values in [0, 1]."""
        phi, p_masses, q_masses = self._by_level(p, q)
        difference = [a - b for a, b in zip(p_masses, q_masses, strict=True)]
        distance = max(_hinges(phi, difference), _hinges(phi, [-d for d in difference]))
        return float_down(distance), float_up(distance)

    def _by_level(self, p: Array, q: Array) -> tuple[Numbers, Numbers, Numbers]:
        """The numbers phi that occur, rising, and the two distributions of phi."""
        levels, level_indices = np.unique(self.features, return_inverse=True)
        distributions = [[Fraction(0)] * len(levels) for _ in range(2)]
        for distribution, row in zip(distributions, (p, q), strict=True):
            for index, mass in zip(level_indices.tolist(), row.tolist(), strict=True):
                distribution[index] += Fraction(mass)
        totals = [sum(distribution) for distribution in distributions]
        occurring_indices = [
            index for index in range(len(levels)) if distributions[0][index] or distributions[1][index]
        ]
        phi = [Fraction(levels[index]) for index in occurring_indices]
        p_masses, q_masses = (
            [distribution[index] / total for index in occurring_indices]
            for distribution, total in zip(distributions, totals, strict=True)
        )
        return phi, p_masses, q_masses


def _hinges(phi: Numbers, difference: Numbers) -> Fraction:
    """The largest sum of `difference` times a convex function with values in [0, 1]."""
    falling_objectives = _one_sided(phi, difference)
    rising_objectives = _one_sided([-x for x in reversed(phi)], difference[::-1])[::-1]
    # The falling hinge is zero from output j on, the rising one up to output j.
    best_falling = list(accumulate(falling_objectives, max))
    best_rising = list(accumulate(reversed(rising_objectives), max))[::-1]
    # A single line that falls or rises all the way is the hinge at the last output.
    return max((a + b for a, b in zip(best_falling, best_rising, strict=True)), default=Fraction(0))


def _one_sided(phi: Numbers, difference: Numbers) -> Numbers:
    """The objective of the falling hinge from 1 at the first output to 0 at s, for each s; 0 for no hinge."""
    objectives, mass, moment = [Fraction(0)], Fraction(0), Fraction(0)
    for index in range(1, len(phi)):
        mass += difference[index - 1]
        moment += difference[index - 1] * (phi[index - 1] - phi[0])
        objectives.append(max(mass - moment / (phi[index] - phi[0]), Fraction(0)))
    return objectives


def _bracket(phi: Numbers, p: Numbers, q: Numbers, order: float, sign: int) -> tuple[float, float]:
    """Bounds for the convex functions (sign 1) or the concave ones (sign -1)."""
    h, r = _best_function(phi, p, q, order, sign)
    measure = _majorizing(phi, p, [Fraction(x) for x in r.tolist()], order == 1, sign)
    high = _divergence_of_measure(measure, q, order)
    low = _bound_of_function(phi, p, q, h, order, sign)
    return max(min(low, high), 0.0), high


def _best_function(phi: Numbers, p: Numbers, q: Numbers, order: float, sign: int) -> tuple[Array, Array]:
    """The weights (b, c, a) of the best function in the scaled number, a >= 0 times the sign, and its measure r.

    Where floats do not suffice, they are those of the last function that floats can hold. Both are proved to bound
    afterwards.
    """
    from scipy.optimize import lsq_linear

    p_masses, q_masses = (np.array([float(x) for x in law]) for law in (p, q))
    basis = _basis(phi, sign)
    bounds = (np.r_[-np.inf, -np.inf, np.zeros(basis.shape[1] - 2)], np.full(basis.shape[1], np.inf))
    dual_order = 0.0 if order == 1 else order / (order - 1)

    def loss(x: Array) -> tuple[float, Array, Array]:
        """Compute the convex loss, the measure r, and the curvature of each output."""
        h = basis @ x
        if order == 1:
            r = q_masses * np.exp(h)
            return float(r.sum() - p_masses @ h), r, r
        r = q_masses * np.sign(h) * np.abs(h) ** (dual_order - 1)
        # Below dual = 2 the quadratic with curvature |h|^(dual-2) lies above the loss everywhere: each step gains.
        size = np.maximum(np.abs(h), 1e-9 * float(np.abs(h).max())) ** (dual_order - 2)
        return float(np.abs(h) @ np.abs(r) / dual_order - p_masses @ h), r, q_masses * max(dual_order - 1, 1.0) * size

    x = np.zeros(basis.shape[1])
    x[0] = 0.0 if order == 1 else 1.0
    with np.errstate(all="ignore"), suppress(ValueError, np.linalg.LinAlgError):
        value, r, curvature = loss(x)
        for _ in range(_MAX_NEWTON_STEPS):
            root = np.sqrt(curvature)
            # The quadratic model, as least squares with bounds: | root B (x' - x) - (p - r) / root |.
            target = root * (basis @ x) + (p_masses - r) / np.maximum(root, 1e-150)
            method = "bvls" if len(x) < 100 else "trf"
            step = lsq_linear(root[:, None] * basis, target, bounds, method=method).x - x
            gain, size = float((r - p_masses) @ (basis @ step)), 1.0
            while size > 1e-10 and not loss(x + size * step)[0] <= value + 1e-4 * size * gain:
                size /= 2
            next_loss = loss(x + size * step)
            if size <= 1e-10 or not all(np.isfinite(array).all() for array in next_loss):
                break
            previous_value, x = value, x + size * step
            value, r, curvature = next_loss
            if previous_value - value <= _MIN_DECREASE_RTOL * (1 + abs(value)):
                break
    return x, loss(x)[1]


def _basis(phi: Numbers, sign: int) -> Array:
    """The basis (outputs, 2 + inner): the constant, the scaled number, and the ReLU units at inner outputs times the
    sign.
    """
    x = np.array([float((2 * value - phi[0] - phi[-1]) / (phi[-1] - phi[0])) for value in phi])
    return np.column_stack([np.ones(len(x)), x, *(sign * np.maximum(x - t, 0.0) for t in x[1:-1])])


def _majorizing(phi: Numbers, p: Numbers, r: Numbers, is_positive: bool, sign: int) -> Numbers:
    """A measure near r that majorizes p (sign 1) or that p majorizes (sign -1), exactly; with positive masses."""
    mean = sum((a * x for a, x in zip(p, phi, strict=True)), Fraction(0))
    widest_measure = _between(phi, mean, 0, len(phi) - 1)
    index_at_mean = max(index for index in range(len(phi) - 1) if phi[index] <= mean)
    narrowest_measure = _between(phi, mean, index_at_mean, index_at_mean + 1)
    extreme_measure = widest_measure if sign > 0 else narrowest_measure
    # The mass and the mean of p, by the two ends of the extreme measure.
    missing_mass, missing_moment = 1 - sum(r), mean - sum(a * x for a, x in zip(r, phi, strict=True))
    low, high = (0, len(phi) - 1) if sign > 0 else (index_at_mean, index_at_mean + 1)
    high_mass = (missing_moment - missing_mass * phi[low]) / (phi[high] - phi[low])
    r = [
        a + (missing_mass - high_mass if index == low else 0) + (high_mass if index == high else 0)
        for index, a in enumerate(r)
    ]
    mix_fraction = Fraction(0)
    for index in range(1, len(phi) - 1):
        shortfall = sign * (_tail_moment(phi, p, index) - _tail_moment(phi, r, index))
        excess = sign * (_tail_moment(phi, extreme_measure, index) - _tail_moment(phi, p, index))
        if shortfall > 0:
            mix_fraction = max(mix_fraction, shortfall / (shortfall + excess) if excess > 0 else Fraction(1))
    if is_positive:
        for a, other in zip(r, extreme_measure, strict=True):
            if a < 0:
                mix_fraction = max(mix_fraction, -a / (other - a) if other > 0 else Fraction(1))
    return [(1 - mix_fraction) * a + mix_fraction * other for a, other in zip(r, extreme_measure, strict=True)]


def _between(phi: Numbers, mean: Fraction, low: int, high: int) -> Numbers:
    """The distribution on two outputs with this mean."""
    high_mass = (mean - phi[low]) / (phi[high] - phi[low])
    return [
        (1 - high_mass if index == low else Fraction(0)) + (high_mass if index == high else 0)
        for index in range(len(phi))
    ]


def _tail_moment(phi: Numbers, distribution: Numbers, index: int) -> Fraction:
    """The sum of (phi - t)_+ at the output's t."""
    return sum(((x - phi[index]) * a for x, a in zip(phi[index:], distribution[index:], strict=True)), Fraction(0))


def _divergence_of_measure(r: Numbers, q: Numbers, order: float) -> float:
    """The divergence of a measure of mass 1 from q, rounded up."""
    if any(a != 0 and b == 0 for a, b in zip(r, q, strict=True)):
        return math.inf
    support_indices = [index for index, a in enumerate(r) if a != 0]
    masses, q_masses = (
        _balls([abs(r[index]) for index in support_indices]),
        _balls([q[index] for index in support_indices]),
    )
    log_ratios = (masses / q_masses).log()
    if order == 1:
        return max(float(np.asarray((masses * log_ratios).sum().upper)), 0.0)
    power = EXACT.of(Fraction(order) - 1)
    divergence = (masses * (log_ratios * power).exp()).sum().log() / power
    return max(float(np.asarray(divergence.upper)), 0.0)


def _bound_of_function(phi: Numbers, p: Numbers, q: Numbers, x: Array, order: float, sign: int) -> float:
    """The lower bound that the function proves, rounded down."""
    scaled_numbers = [(2 * value - phi[0] - phi[-1]) / (phi[-1] - phi[0]) for value in phi]
    b, c, *a = (Fraction(value) for value in x.tolist())
    units = [(t, sign * max(w, Fraction(0))) for t, w in zip(scaled_numbers[1:-1], a, strict=True)]
    h = [b + c * s + sum((w * (s - t) for t, w in units if s > t), Fraction(0)) for s in scaled_numbers]
    p_mean = sum((m * value for m, value in zip(p, h, strict=True)), Fraction(0))
    support_indices = [index for index, m in enumerate(q) if m > 0 and (order == 1 or h[index] != 0)]
    if not support_indices or (order > 1 and p_mean <= 0):
        return 0.0
    q_masses, function_values = (
        _balls([q[index] for index in support_indices]),
        _balls([h[index] if order == 1 else abs(h[index]) for index in support_indices]),
    )
    if order == 1:
        bound: Enclosure = EXACT.of(p_mean) - (q_masses * function_values.exp()).sum().log()
    else:
        dual_order = EXACT.of(Fraction(order) / (Fraction(order) - 1))
        bound = (
            EXACT.of(p_mean).log() * dual_order - (q_masses * (function_values.log() * dual_order).exp()).sum().log()
        )
    return float(np.asarray(bound.lower))


def _balls(values: Sequence[Fraction]) -> Enclosure:
    return EXACT.of(np.array(list(values), dtype=object))
