"""Adversaries whose functions of one number are sums of ReLU units: restricted divergences between two proved ends.

The class H holds the functions c phi + b + sum_j a_j (phi - t_j)_+ with a_j >= 0, which are the convex functions of
phi, and their negatives. A measure r on the outputs majorizes p if it has the mass and the mean of p and at least its
sum of (phi - t)_+ for every output's t (Hardy, Littlewood, Polya): then E_p h <= E_r h for every convex h, and

    KL_H(p, q) <= KL(r || q),    ||p||_H,A <= (sum q |r/q|^alpha)^(1/alpha)

with equality for the best r. For concave h it is the other way round: p majorizes r. A projected Newton method finds h
and r = q e^h, or q sign(h) |h|^(A-1). Then r, in fractions, is given the mass and the mean of p at two outputs, and
mixed with the measure that majorizes all (of the two ends), or is majorized by all (of the two outputs around the
mean), just enough that every comparison holds exactly. What is claimed is the divergence of that r, in balls of 256
bits. Functions with values in [0, 1] are mixtures of constants, falling hinges (1 - (phi - phi_1)/(s - phi_1))_+ and
rising ones to their right, s an output's: the total variation is the largest of their sums, in fractions.
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

_STEPS = 120
_DECREASE = 1e-16


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
        """Bounds on the restricted Rényi divergence of `order` >= 1, in nats, of rows p, q (m,); order 1 is KL."""
        phi, first, second = self._by_level(p, q)
        if any(a > 0 and b == 0 for a, b in zip((first[0], first[-1]), (second[0], second[-1]), strict=True)):
            return 0.0, math.inf
        if len(phi) == 1 or first == second:
            return 0.0, 0.0
        ends = [_bracket(phi, first, second, order, sign) for sign in (1, -1)]
        return max(low for low, _ in ends), max(high for _, high in ends)

    def total_variation(self, p: Array, q: Array) -> tuple[float, float]:
        """Bounds on the largest E_p h - E_q h over h of the class with values in [0, 1] on the outputs."""
        phi, first, second = self._by_level(p, q)
        apart = [a - b for a, b in zip(first, second, strict=True)]
        most = max(_hinges(phi, apart), _hinges(phi, [-d for d in apart]))
        return float_down(most), float_up(most)

    def _by_level(self, p: Array, q: Array) -> tuple[Numbers, Numbers, Numbers]:
        """The numbers phi that occur, rising, and the two laws of phi."""
        levels, place = np.unique(self.features, return_inverse=True)
        laws = [[Fraction(0)] * len(levels) for _ in range(2)]
        for law, row in zip(laws, (p, q), strict=True):
            for at, mass in zip(place.tolist(), row.tolist(), strict=True):
                law[at] += Fraction(mass)
        whole = [sum(law) for law in laws]
        used = [at for at in range(len(levels)) if laws[0][at] or laws[1][at]]
        phi = [Fraction(levels[at]) for at in used]
        first, second = ([law[at] / total for at in used] for law, total in zip(laws, whole, strict=True))
        return phi, first, second


def _hinges(phi: Numbers, apart: Numbers) -> Fraction:
    """The largest sum of `apart` times a convex function with values in [0, 1]."""
    left = _one_sided(phi, apart)
    right = _one_sided([-x for x in reversed(phi)], apart[::-1])[::-1]
    # The falling hinge is zero from output j on, the rising one up to output j.
    falls = list(accumulate(left, max))
    rises = list(accumulate(reversed(right), max))[::-1]
    # A single line that falls or rises all the way is the hinge at the last output.
    return max((a + b for a, b in zip(falls, rises, strict=True)), default=Fraction(0))


def _one_sided(phi: Numbers, apart: Numbers) -> Numbers:
    """For each output s, what the hinge that falls from 1 at the first output to 0 at s is worth, or 0 for none."""
    worth, mass, moment = [Fraction(0)], Fraction(0), Fraction(0)
    for at in range(1, len(phi)):
        mass += apart[at - 1]
        moment += apart[at - 1] * (phi[at - 1] - phi[0])
        worth.append(max(mass - moment / (phi[at] - phi[0]), Fraction(0)))
    return worth


def _bracket(phi: Numbers, p: Numbers, q: Numbers, order: float, sign: int) -> tuple[float, float]:
    """Bounds for the convex functions (sign 1) or the concave ones (sign -1)."""
    h, r = _solved(phi, p, q, order, sign)
    measure = _majorizing(phi, p, [Fraction(x) for x in r.tolist()], order == 1, sign)
    high = _of_measure(measure, q, order)
    low = _of_function(phi, p, q, h, order, sign)
    return max(min(low, high), 0.0), high


def _solved(phi: Numbers, p: Numbers, q: Numbers, order: float, sign: int) -> tuple[Array, Array]:
    """The weights (b, c, a) of the best function in the scaled number, a >= 0 times the sign, and its measure r.

    Where floats do not suffice, of the last function that they hold; both are proved to bound afterwards.
    """
    from scipy.optimize import lsq_linear

    first, second = (np.array([float(x) for x in law]) for law in (p, q))
    basis = _basis(phi, sign)
    bounds = (np.r_[-np.inf, -np.inf, np.zeros(basis.shape[1] - 2)], np.full(basis.shape[1], np.inf))
    dual = 0.0 if order == 1 else order / (order - 1)

    def loss(x: Array) -> tuple[float, Array, Array]:
        """The convex loss, the measure r, and the curvature of each output."""
        h = basis @ x
        if order == 1:
            r = second * np.exp(h)
            return float(r.sum() - first @ h), r, r
        r = second * np.sign(h) * np.abs(h) ** (dual - 1)
        # Below dual = 2 the quadratic with curvature |h|^(dual-2) lies above the loss everywhere: each step gains.
        size = np.maximum(np.abs(h), 1e-9 * float(np.abs(h).max())) ** (dual - 2)
        return float(np.abs(h) @ np.abs(r) / dual - first @ h), r, second * max(dual - 1, 1.0) * size

    x = np.zeros(basis.shape[1])
    x[0] = 0.0 if order == 1 else 1.0
    with np.errstate(all="ignore"), suppress(ValueError, np.linalg.LinAlgError):
        value, r, curved = loss(x)
        for _ in range(_STEPS):
            root = np.sqrt(curved)
            # The quadratic model, as least squares with bounds: | root B (x' - x) - (p - r) / root |.
            target = root * (basis @ x) + (first - r) / np.maximum(root, 1e-150)
            method = "bvls" if len(x) < 100 else "trf"
            step = lsq_linear(root[:, None] * basis, target, bounds, method=method).x - x
            gain, size = float((r - first) @ (basis @ step)), 1.0
            while size > 1e-10 and not loss(x + size * step)[0] <= value + 1e-4 * size * gain:
                size /= 2
            after = loss(x + size * step)
            if size <= 1e-10 or not all(np.isfinite(part).all() for part in after):
                break
            before, x = value, x + size * step
            value, r, curved = after
            if before - value <= _DECREASE * (1 + abs(value)):
                break
    return x, loss(x)[1]


def _basis(phi: Numbers, sign: int) -> Array:
    """(outputs, 2 + inner): the constant, the scaled number, and the ReLU units at the inner outputs times the sign."""
    x = np.array([float((2 * one - phi[0] - phi[-1]) / (phi[-1] - phi[0])) for one in phi])
    return np.column_stack([np.ones(len(x)), x, *(sign * np.maximum(x - t, 0.0) for t in x[1:-1])])


def _majorizing(phi: Numbers, p: Numbers, r: Numbers, positive: bool, sign: int) -> Numbers:
    """A measure near r that majorizes p (sign 1) or that p majorizes (sign -1), exactly; with positive masses."""
    mean = sum((a * x for a, x in zip(p, phi, strict=True)), Fraction(0))
    spread = _between(phi, mean, 0, len(phi) - 1)
    inner = max(at for at in range(len(phi) - 1) if phi[at] <= mean)
    narrow = _between(phi, mean, inner, inner + 1)
    extreme = spread if sign > 0 else narrow
    # The mass and the mean of p, by the two ends of the extreme measure.
    off, first = 1 - sum(r), mean - sum(a * x for a, x in zip(r, phi, strict=True))
    low, high = (0, len(phi) - 1) if sign > 0 else (inner, inner + 1)
    share = (first - off * phi[low]) / (phi[high] - phi[low])
    r = [a + (off - share if at == low else 0) + (share if at == high else 0) for at, a in enumerate(r)]
    mixed = Fraction(0)
    for at in range(1, len(phi) - 1):
        short = sign * (_above(phi, p, at) - _above(phi, r, at))
        room = sign * (_above(phi, extreme, at) - _above(phi, p, at))
        if short > 0:
            mixed = max(mixed, short / (short + room) if room > 0 else Fraction(1))
    if positive:
        for a, other in zip(r, extreme, strict=True):
            if a < 0:
                mixed = max(mixed, -a / (other - a) if other > 0 else Fraction(1))
    return [(1 - mixed) * a + mixed * other for a, other in zip(r, extreme, strict=True)]


def _between(phi: Numbers, mean: Fraction, low: int, high: int) -> Numbers:
    """The law on two outputs with this mean."""
    share = (mean - phi[low]) / (phi[high] - phi[low])
    return [(1 - share if at == low else Fraction(0)) + (share if at == high else 0) for at in range(len(phi))]


def _above(phi: Numbers, law: Numbers, at: int) -> Fraction:
    """The sum of (phi - t)_+ at the output's t."""
    return sum(((x - phi[at]) * a for x, a in zip(phi[at:], law[at:], strict=True)), Fraction(0))


def _of_measure(r: Numbers, q: Numbers, order: float) -> float:
    """The divergence of a measure of mass 1 from q, rounded up."""
    if any(a != 0 and b == 0 for a, b in zip(r, q, strict=True)):
        return math.inf
    used = [at for at, a in enumerate(r) if a != 0]
    masses, law = _balls([abs(r[at]) for at in used]), _balls([q[at] for at in used])
    log = (masses / law).log()
    if order == 1:
        return max(float(np.asarray((masses * log).sum().upper)), 0.0)
    power = EXACT.of(Fraction(order) - 1)
    found = (masses * (log * power).exp()).sum().log() / power
    return max(float(np.asarray(found.upper)), 0.0)


def _of_function(phi: Numbers, p: Numbers, q: Numbers, x: Array, order: float, sign: int) -> float:
    """What the function finds, rounded down."""
    scale = [(2 * one - phi[0] - phi[-1]) / (phi[-1] - phi[0]) for one in phi]
    b, c, *a = (Fraction(one) for one in x.tolist())
    units = [(t, sign * max(w, Fraction(0))) for t, w in zip(scale[1:-1], a, strict=True)]
    h = [b + c * s + sum((w * (s - t) for t, w in units if s > t), Fraction(0)) for s in scale]
    gain = sum((m * one for m, one in zip(p, h, strict=True)), Fraction(0))
    held = [at for at, m in enumerate(q) if m > 0 and (order == 1 or h[at] != 0)]
    if not held or (order > 1 and gain <= 0):
        return 0.0
    law, values = _balls([q[at] for at in held]), _balls([h[at] if order == 1 else abs(h[at]) for at in held])
    if order == 1:
        found: Enclosure = EXACT.of(gain) - (law * values.exp()).sum().log()
    else:
        dual = EXACT.of(Fraction(order) / (Fraction(order) - 1))
        found = EXACT.of(gain).log() * dual - (law * (values.log() * dual).exp()).sum().log()
    return float(np.asarray(found.lower))


def _balls(values: Sequence[Fraction]) -> Enclosure:
    return EXACT.of(np.array(list(values), dtype=object))
