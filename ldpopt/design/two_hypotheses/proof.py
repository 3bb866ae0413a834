"""The proof by potentials for two hypotheses under epsilon-LDP and a cap on total variation: the envelope theorem.

Sort the inputs by likelihood ratio. With t = 1/(e^epsilon - 1), a block of inputs i..j-1 of the sorted list is worth

    w(i, j) = mu(t + P0(i..j), t + P1(i..j)) - f'(1) (P0 - P1)(i..j),

and the optimum for every eta is the envelope of the worths of partitions into blocks (docs/concepts/envelope.md, and
docs/concepts/certificates.md for the proof by potentials). Potentials u_0 .. u_n and a level A with

    w(i, j) <= kappa (t A + u_j - u_i)    for all i < j

show, by adding up a partition's blocks, that a partition into m of them is worth at most kappa (u_n - u_0 + m t A).
Therefore no channel keeps more than kappa (A + eta (u_n - u_0 - A)_+). The check takes about n log n evaluations of w
(`blocks`), and needs no search and no solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.kernel.hypotheses import by_ratio, dominance, dominating
from ldpopt.design.kernel.listed import Caps, factor
from ldpopt.design.kernel.numbers import Unproved, count, increasing, nonnegative, real_array, require
from ldpopt.design.problems.reduction import Cells
from ldpopt.design.two_hypotheses.proof_blocks import SortedBlocks, looking
from ldpopt.design.utilities.divergence import Divergence
from ldpopt.design.utilities.laws import Laws
from ldpopt.design.work import Work, size
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array

MAX_POINTS = 2**21  # The most points.
ALL = 5_000  # Up to so many blocks are all looked at in balls.
MOST_AGAIN = 20_000  # The most blocks that are looked at in balls, as floats do not settle them.


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

    def work(self) -> Work:
        """The points are sorted and shown to dominate, and their blocks are looked at; some in balls."""
        n = self.answers if self.points is None else size(self.points) // 2
        again = Work.on(min(float(n) ** 2, MOST_AGAIN), 100.0) + Work.on(n, 3.0)
        shown = dominance(n, self.answers) if self.points is not None else Work.on(n, 150.0).in_floats
        return shown + looking(n) + again

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """kappa (A + eta (U - A)_+) with U = u_n - u_0."""
        caps = Caps.of(self.constraints, arithmetic)
        p0, p1 = self._masses()
        order = by_ratio(p0, p1)
        require(not len(order) > MAX_POINTS, f"{len(order)} points are more than {MAX_POINTS}")
        level = arithmetic.of(nonnegative(self.level, "the level"))
        potentials = arithmetic.of(real_array(self.potentials, (len(order) + 1,), "potentials"))
        laws = Laws.of(p0, p1, arithmetic).take(order)
        price = caps.level * level
        masses = (p0[order], p1[order], np.asarray(laws.apart.lower), np.asarray(laws.apart.upper))
        levels = (float(caps.level.lower), float(price.lower))
        blocks = SortedBlocks(self.utility.f, *masses, *levels, np.asarray(potentials.lower))
        exact = arithmetic.exact
        kappa = _exactly_short(blocks, laws, caps.level, price, potentials) if exact else blocks.short()
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


def _exactly_short(blocks: SortedBlocks, laws: Laws, base: Enclosure, price: Enclosure, potentials: Enclosure) -> float:
    """The same factor in balls, of all blocks where they are few; of the others floats settle most."""
    n = len(blocks)
    looked = np.triu_indices(n + 1, 1) if n * (n + 1) // 2 <= ALL else blocks.unsettled(MOST_AGAIN)
    if looked is None:
        return blocks.short()
    i, j = looked
    of = base.arithmetic
    sums = (of.concatenate([of.zeros(1), part.cumsum()]) for part in (laws.apart, laws.p0, laws.p1))
    d, first, second = (part[j] - part[i] for part in sums)
    worth = enclosed_excess(blocks.f, d, base + second, base + first)
    return factor(worth, price + (potentials[j] - potentials[i])) if len(i) else 1.0
