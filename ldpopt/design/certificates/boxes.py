"""Certificates for channels with given outputs: a tree of boxes of posteriors, or a relaxation's certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.intervals import TermMultiplier, nearly_dominates, residual
from ldpopt.design.constraints.alphabet import AlphabetConstraint
from ldpopt.design.constraints.base import Constraint
from ldpopt.design.constraints.parts import outputs_of, parts
from ldpopt.design.constraints.terms import Ratio, Term
from ldpopt.distribution import Array, Index
from ldpopt.divergences import FDivergence
from ldpopt.enclosures import Arithmetic, Enclosure


@dataclass(frozen=True)
class Split:
    """A node of the tree: output number `output` has its posterior below `cut` (node `left`) or above (`right`)."""

    output: int
    cut: float
    left: int
    right: int


@dataclass(frozen=True, eq=False, repr=False)
class BranchDual(Certificate):
    """Multipliers for every box of a tree that covers all posteriors of m outputs [FS].

    In a box of intervals, one an output, the divergence lies below the chords, which are linear in the columns, and
    weak duality bounds them whatever the multipliers are. points : (n, 2) masses (P0, P1) of the inputs, or of those
    of equal ratio merged. nodes : the tree from its root, number 0.
    """

    points: Array
    nodes: tuple[Split | Leaf, ...]

    @property
    def argument(self) -> str:
        """Why the bound holds."""
        leaves = sum(isinstance(node, Leaf) for node in self.nodes)
        return f"weak duality on {leaves} boxes of the outputs' likelihood ratios"

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """The largest bound of a box; inf when the numbers do not fit the problem."""
        return arithmetic.of(self._bound())

    def _bound(self) -> float:
        """The bound in floats."""
        p0, p1 = self.points.T
        n = len(self.points)
        merged = all(getattr(constraint, "symmetric", False) for constraint in self.constraints)
        if merged:
            stands = nearly_dominates(p0, p1, self.utility.p0, self.utility.p1)
        else:
            stands = np.array_equal(self.points, np.column_stack([self.utility.p0, self.utility.p1]))
        if not stands:
            return math.inf
        inputs = range(n) if merged and n != self.channel.shape[0] else self.channel.inputs
        boxes = Boxes.of(self.utility.f, p0, p1, self.constraints, inputs)
        worst, open_nodes = -math.inf, [(0, boxes.root)]
        visited = 0
        while open_nodes:
            at, box = open_nodes.pop()
            node = self.nodes[at]
            visited += 1
            if visited > len(self.nodes):
                return math.inf  # not a tree
            if isinstance(node, Split):
                low, high = boxes.halves(box, node.output, node.cut)
                open_nodes += [(node.left, low), (node.right, high)]
            else:
                worst = max(worst, boxes.bound(node, box))
        return worst


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of posteriors of m outputs, and the bounds of the divergence on them."""

    f: FDivergence
    p0: Array
    p1: Array
    terms: tuple[Any, ...]
    fixed: tuple[Any, ...]
    root: Array
    groups: tuple[Index, ...]

    @classmethod
    def of(
        cls, f: FDivergence, p0: Array, p1: Array, constraints: tuple[Constraint, ...], inputs: Sequence[Any]
    ) -> Boxes:
        """The boxes of a problem; the root holds every posterior that an output can have."""
        terms, fixed, _ = parts(constraints, inputs)
        m = outputs_of(fixed, len(p0))
        total = p0 + p1
        posterior = p0[total > 0] / total[total > 0]
        low, high = float(posterior.min()), float(posterior.max())
        ratio = min((term.ratio for term in terms if isinstance(term, Ratio)), default=math.inf)
        if math.isfinite(ratio):
            low, high = max(low, 1 / (1 + ratio) * (1 - 1e-12)), min(high, 1 - 1 / (1 + ratio) * (1 - 1e-12))
        kinds = np.unique(np.stack([one.kinds(m) for one in fixed]), axis=1, return_inverse=True)[1].reshape(-1)
        groups = tuple(at for kind in range(m) if len(at := np.flatnonzero(kinds == kind)) > 1)
        return cls(f, p0, p1, constraints, terms, fixed, np.array([[low] * m, [high] * m]), groups)

    def halves(self, box: Array, output: int, cut: float) -> tuple[Array, Array]:
        """The parts of `box` with the posterior of `output` below and above `cut`."""
        low, high = box.copy(), box.copy()
        low[1, output], high[0, output] = min(cut, box[1, output]), max(cut, box[0, output])
        return self._tight(low), self._tight(high)

    def _tight(self, box: Array) -> Array:
        """Interchangeable outputs are taken in order of their posteriors."""
        for at in self.groups:
            box[0, at] = np.maximum.accumulate(box[0, at])
            box[1, at] = np.minimum.accumulate(box[1, at][::-1])[::-1]
        return box

    def empty(self, box: Array) -> bool:
        """Whether no channel has its outputs in the box: an interval is empty, or all outputs favour one hypothesis."""
        return bool((box[0] > box[1]).any() or (box[0] > 0.5).all() or (box[1] < 0.5).all())

    def chords(self, box: Array) -> Array:
        """(1, m, k) linear functions above the divergence of the columns of the box."""
        low, high = box
        below, above = self.f.excess(low, 1 - low), self.f.excess(high, 1 - high)
        width = high - low
        wide = width > 1e-14
        safe = np.where(wide, width, 1.0)
        on_p0 = np.where(wide, (above * (1 - low) - below * (1 - high)) / safe, below)
        on_p1 = np.where(wide, (high * below - low * above) / safe, below)
        return np.asarray(on_p0[:, None] * self.p0 + on_p1[:, None] * self.p1)[None]

    def bound(self, leaf: Leaf, box: Array) -> float:
        """The bound that the numbers of `leaf` prove on the box."""
        if self.empty(box):
            return -math.inf
        sides = box_sides(box[0], box[1], self.p0, self.p1)
        return leaf_bound(leaf, self.chords(box), self.terms, self.fixed, sides)


@dataclass(frozen=True, eq=False)
class Leaf:
    """Multipliers: rows (k,), of the column terms, of the alphabet constraints, of the two sides of the box (2, m),
    and weights (criteria,) of several utilities.
    """

    rows: Array
    terms: tuple[TermMultiplier, ...]
    fixed: tuple[Any, ...]
    sides: Array
    weights: Array


def leaf_bound(
    leaf: Leaf, gains: Array, terms: Sequence[Term | Ratio], fixed: Sequence[AlphabetConstraint], sides: Array | None
) -> float:
    """An upper bound on the utility `gains` (criteria, m, k) of every matrix that meets the constraints.

    sides : (2, m, k) linear functions that are non-negative on the columns of the box; None without a box.
    """
    weights = np.maximum(leaf.weights, 0.0)
    reduced = np.tensordot(weights / weights.sum(), gains, 1) - leaf.rows
    m, k = reduced.shape
    bound, ratio = float(leaf.rows.sum()), np.inf
    for term in terms:
        if isinstance(term, Ratio):
            ratio = min(ratio, term.ratio)
    for multiplier in leaf.terms:
        kept = terms[multiplier.term].take(multiplier.pairs)  # type: ignore[union-attr]
        reduced = reduced - kept.support(multiplier.values, m, k)
        bound += kept.charge(multiplier.values)
    for constraint, one in zip(fixed, leaf.fixed, strict=True):
        reduced = reduced - constraint.support(one, (k, m))
        bound += constraint.charge(one)
    if sides is not None:
        reduced = reduced + np.einsum("sm,smk->mk", np.maximum(leaf.sides, 0.0), sides)
    # Rows sum to one exactly, so what is left over may also lower the bound.
    exact = float(reduced.max(axis=0).sum())
    return bound + min(exact, residual(reduced, ratio))


def box_sides(low: Array, high: Array, p0: Array, p1: Array) -> Array:
    """(2, m, k) functions (1-l) P0 - l P1 and u P1 - (1-u) P0, non-negative where the posterior is in [l, u]."""
    below = (1 - low)[:, None] * p0 - low[:, None] * p1
    above = high[:, None] * p1 - (1 - high)[:, None] * p0
    return np.stack([below, above])
