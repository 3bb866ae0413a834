"""The bound on mutual information that holds for every prior and any number of inputs under epsilon-LDP."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.chords import least_spread
from ldpopt.design.certificates.plain import Caps
from ldpopt.design.constraints.alphabet import AlphabetConstraint
from ldpopt.design.constraints.base import ColumnConstraint, plain_caps, tanh_of_half
from ldpopt.design.utilities.base import ColumnUtility
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.errors import InvalidInput
from ldpopt.rounding import ULP


@dataclass(frozen=True, eq=False, repr=False)
class InformationCapacity(Certificate):
    """No epsilon-LDP channel keeps more mutual information than x - 1 - log x, x = epsilon/(1 - e^-epsilon).

    On a staircase pattern S_A, E = e^epsilon on A and 1 elsewhere, the information is h(a) = E epsilon a - m log m at
    a = P(A), with m = 1 + (E - 1) a the column's mean. Let c be the largest h(a)/m. Then the row multipliers c P_x
    pay c m >= h(a) on every pattern, and prove c for every prior P [KOV14, Thm 4]. The bound is nearly reached where
    there are sets of nearly any probability, as with many answers of small probability.

    With at most two outputs, let lo and hi be the least and the largest entry of the first column. Information is
    convex, so that it does not fall when every entry is moved to hi, on some set A, or to lo, off it, and then (lo, hi)
    to a corner of the region that epsilon leaves. The corners are two constant channels and randomized response, with
    lo = 1/(E + 1) = 1 - hi. So randomized response about "is the answer in A?" is optimal. Its information depends on
    P(A) alone, and is the larger the nearer P(A) is to one half.

    Along a policy graph epsilon is that of the two answers farthest apart.
    """

    proves = ColumnUtility

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        if self._two():
            return "with two outputs, randomized response about a set of probability nearest to one half keeps most"
        return "row multipliers in proportion to the prior pay for every staircase pattern"

    @property
    def tight(self) -> bool:
        """Whether at most two outputs are allowed: then the bound is the optimum itself."""
        return self._two() and math.isfinite(plain_caps(self.constraints)[0])

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """x - 1 - log x = y - log(1 + y), y = x - 1."""
        if not self.utility.information:
            raise Unproved(f"{self.utility.name} is no mutual information")
        epsilon = self._epsilon(arithmetic)
        bound = information_capacity(epsilon)
        if not self._two():
            return bound
        return bound.minimum(binary_information(epsilon, *nearest_half(np.asarray(self.utility.prior))[1:]))

    def _epsilon(self, arithmetic: Arithmetic) -> Enclosure:
        """That between all inputs: the one asked for, or what a policy graph leaves to the two farthest apart."""
        if math.isinf(plain_caps(self.constraints)[0]):
            known = [c for c in self.constraints if isinstance(c, ColumnConstraint)]
            inputs = tuple(self.utility.inputs or range(self.utility.size))
            spread = least_spread(known, inputs, arithmetic)
            if spread is None:
                raise Unproved("no constraint asks for LocalDP between all inputs")
            return spread
        # t = 1/(e^epsilon - 1), so that epsilon = log(1 + 1/t).
        return (1 / Caps.of(self.constraints, arithmetic).level).log1p()

    def _two(self) -> bool:
        """Whether the constraints leave at most two outputs."""
        with suppress(InvalidInput):
            fixed = [c for c in self.constraints if isinstance(c, AlphabetConstraint)]
            return any(one.outputs(self.utility.size) <= 2 for one in fixed)
        return False


def nearest_half(prior: Array) -> tuple[npt.NDArray[np.bool_], float, float]:
    """The set A (k,) whose probability is nearest to one half, |2 P(A) - 1|, and how far rounding may move that.

    With more than `LISTED` answers that occur, the empty set and 0, which is a lower bound for every set.
    """
    used = np.flatnonzero(prior > 0)
    chosen = np.zeros(len(prior), dtype=bool)
    if len(used) > LISTED:
        return chosen, 0.0, 0.0
    sums = np.zeros(1)
    for share in prior[used] / prior.sum():
        sums = np.concatenate([sums, sums + share])
    off = np.abs(2 * sums - 1)
    best = int(off.argmin())
    chosen[used] = (best >> np.arange(len(used))) & 1 == 1
    # Each of the k sums, and each of the k + 1 roundings before them, may be off by half an ulp of one.
    return chosen, float(off[best]), (2 * len(prior) + 8) * ULP


def binary_information(epsilon: Enclosure, off: float, rounding: float) -> Enclosure:
    """The information of randomized response about a set A, in nats; off : |2 P(A) - 1|, right up to `rounding`.

    It is d(t) - d(t off) for t = tanh(epsilon/2) and d(x) = ((1 + x) log(1 + x) + (1 - x) log(1 - x))/2.
    """
    t = tanh_of_half(epsilon)
    least = t * max(off - rounding, 0.0)
    return _about_half(t) - _about_half(least)


def _about_half(x: Enclosure) -> Enclosure:
    """d(x) = x^2/2 + x^4/12 + x^6/30 + ..., of which x^2/2 + x^4/12 is less by at most x^6/(30 (1 - x^2))."""
    of = x.arithmetic
    if float(x.upper) < CLOSE:
        square = x.square()
        low = square / 2 + square.square() / 12
        return of.between(low.lower, (low + square.square() * square / 29).upper)
    if not float(x.upper) < 1 - 2.0**-40:
        # It grows up to log 2 at 1.
        return of.between(_about_half(of.of(1 - 2.0**-39)).lower if float(x.lower) > 1 - 2.0**-39 else 0.0,
                          of.of(2.0).log().upper)  # fmt: skip
    return ((1 + x) * x.log1p() + (1 - x) * (-x).log1p()) / 2


def information_capacity(epsilon: Enclosure) -> Enclosure:
    """The most nats of mutual information that epsilon-LDP leaves, enclosed."""
    of = epsilon.arithmetic
    if epsilon.upper < SMALL:
        # x = 1 + epsilon/2 + epsilon^2/12 - epsilon^4/720 + ..., and y - log(1 + y) alternates in y: both lie between
        # neighbouring partial sums.
        high = epsilon / 2 + epsilon.square() / 12
        low = high - epsilon.square().square() / 720
        first = [of.of(0.5) - y / 3 + y.square() / 4 for y in (low, high)]
        at_least = low.square() * (first[0] - low * low.square() / 5)
        return of.between(at_least.lower, (high.square() * first[1]).upper)
    y = epsilon / -(-epsilon).expm1() - 1
    return y - y.log1p()


LISTED = 20
"""All sets of up to this many answers are listed."""

CLOSE = 1e-2
"""Below this the terms of d cancel, and its expansion is used instead."""

SMALL = 3e-3
"""Below this epsilon the terms of the closed form cancel, and its expansion is used instead."""
