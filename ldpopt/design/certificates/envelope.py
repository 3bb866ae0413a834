"""The proof by potentials for two hypotheses under epsilon-LDP and a cap on total variation: the envelope theorem.

Sort the inputs by likelihood ratio. With t = 1/(e^epsilon - 1), a block of inputs i..j-1 of the sorted list is worth

    w(i, j) = mu(t + P0(i..j), t + P1(i..j)) - f'(1) (P0 - P1)(i..j),

and the optimum for every eta is the envelope of the worths of partitions into blocks (docs/concepts/envelope.md, and
docs/concepts/certificates.md for the proof by potentials). Potentials u_0 .. u_n and a level A with

    w(i, j) <= kappa (t A + u_j - u_i)    for all i < j

show, by adding up a partition's blocks, that a partition into m of them is worth at most kappa (u_n - u_0 + m t A).
Therefore no channel keeps more than kappa (A + eta (u_n - u_0 - A)_+). The check takes O(n^2) evaluations of w, and
needs no search and no solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.hypotheses import by_ratio, dominating
from ldpopt.design.certificates.listed import Caps, factor, shortfall
from ldpopt.design.certificates.numbers import count, increasing, nonnegative, real_array, require
from ldpopt.design.problems.reduction import Cells
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.laws import Laws
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_excess, excess_above
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.rounding import ULP

MAX_POINTS = 20_000  # The most points; more would take minutes, because all pairs of them are looked at.


@dataclass(frozen=True, eq=False, repr=False)
class EnvelopeDual(Certificate):
    """Potentials of the blocks of the sorted inputs [SPR, and the envelope theorem].

    A block is a set of inputs that are neighbours in the order of likelihood ratios. Potentials are numbers between
    the inputs, whose differences bound what the blocks are worth.

    level, potentials : the number A >= 0 and the (n + 1,) numbers u of the module's docstring. points : (n, 2) masses
    (P0, P1) that dominate the hypotheses in Blackwell's order, so that their optimum is not smaller; None for the
    inputs themselves. cuts : where the answers are real numbers, increasing cut points of the intervals that the points
    dominate, which may be finer than the channel's.
    """

    proves = Divergence
    level: float
    potentials: Array
    points: Array | None
    cuts: Array | None = None

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        coarser = f", for {count(self.points)} points that dominate the hypotheses" if self.points is not None else ""
        trusted = ", with probabilities and densities trusted from scipy.stats" if self.cuts is not None else ""
        return "potentials of the blocks of the sorted inputs, by the envelope theorem" + coarser + trusted

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """kappa (A + eta (U - A)_+) with U = u_n - u_0."""
        caps = Caps.of(self.constraints, arithmetic)
        p0, p1 = self._masses()
        order = by_ratio(p0, p1)
        require(not len(order) > MAX_POINTS, f"{len(order)} points are more than {MAX_POINTS}")
        level = arithmetic.of(nonnegative(self.level, "the level"))
        potentials = arithmetic.of(real_array(self.potentials, (len(order) + 1,), "potentials"))
        laws = Laws.of(p0, p1, arithmetic).take(order)
        short = _exactly_short if arithmetic.exact else _short
        kappa = short(self.utility.f, laws, caps.level, caps.level * level, potentials)
        require(kappa < math.inf, "a block is worth more than its potentials pay, whatever the factor")
        rise = potentials[-1] - potentials[0]
        return (level + caps.eta * (rise - level).positive()) * kappa

    def _masses(self) -> tuple[Array, Array]:
        """The masses that the potentials are for, checked to dominate the hypotheses."""
        if self.cells is None:
            p0, p1 = self.utility.pair
            return (np.asarray(p0), np.asarray(p1)) if self.points is None else dominating(self.points, p0, p1)
        if self.cuts is None or self.points is None:
            raise Unproved("the answers are real numbers, and no points are given that dominate them")
        finer = Cells(self.cells.p0, self.cells.p1, increasing(self.cuts, "cut points"))
        return dominating(self.points, *finer.endpoints())


def _exactly_short(f: FDivergence, laws: Laws, base: Enclosure, price: Enclosure, potentials: Enclosure) -> float:
    """The factor kappa by which the potentials fall short of the worths of the blocks, in any arithmetic."""
    kappa = 1.0
    for i in range(len(laws.p0)):
        first, second = (base + law[i:].cumsum() for law in (laws.p0, laws.p1))
        worth = enclosed_excess(f, laws.apart[i:].cumsum(), second, first)
        kappa = max(kappa, factor(worth, price + (potentials[i + 1 :] - potentials[i])))
    return kappa


def _short(f: FDivergence, laws: Laws, base: Enclosure, price: Enclosure, potentials: Enclosure) -> float:
    """The same in float64, with plain arrays instead of enclosures: only the ends that matter, widened by hand. A
    running sum of n floats is off by at most n u/(1 - n u) times the sum of their sizes, for the unit u of rounding.
    The margin 2 (n + 16) u covers that and the rounding of all that is computed from the sum.
    """
    (p0, p1), t = (np.asarray(law.lower) for law in (laws.p0, laws.p1)), float(base.lower)
    low, high = np.asarray(laws.apart.lower), np.asarray(laws.apart.upper)
    size, u, paid = np.maximum(np.abs(low), np.abs(high)), np.asarray(potentials.lower), float(price.lower)
    margins = (np.arange(len(p0)) + 16) * 2 * ULP
    kappa = 1.0
    for i in range(len(p0)):
        margin = margins[: len(p0) - i]
        spread = size[i:].cumsum() * margin
        b = (t + p1[i:].cumsum() * (1 - margin)) * (1 - 4 * ULP)
        a = (t + p0[i:].cumsum() * (1 - margin)) * (1 - 4 * ULP)
        worth = excess_above(f, low[i:].cumsum() - spread, high[i:].cumsum() + spread, b, a)
        rise = u[i + 1 :] - u[i]
        kappa = max(kappa, shortfall(worth, rise + paid - ULP * (np.abs(rise) + paid)))
    return kappa
