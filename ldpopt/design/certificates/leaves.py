"""Multipliers of a linear utility of given outputs, and the bound that they prove by weak duality.

For a matrix Q of shape (k, m) with rows that sum to one, row multipliers lambda, and prices u_i of the constraints with
u_i . Q <= charge_i for all matrices within them,

    sum_y c_y . Q[:, y]  <=  sum lambda + charges + max over Q of sum_y (c_y - lambda - sum_i u_i)_y . Q[:, y] .

The last maximum is bounded in two ways, and the better bound counts: each row puts its whole mass on its best output;
or, under pure LDP, the columns have entries in [a, e^epsilon a], for some a that sum to at most one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.design.certificates.base import Unproved
from ldpopt.design.certificates.chords import least_spread
from ldpopt.design.certificates.intervals import TermMultiplier
from ldpopt.design.certificates.numbers import (
    expect,
    expect_each,
    nonnegative_array,
    position,
    positions,
    real_array,
)
from ldpopt.design.constraints.alphabet import AlphabetConstraint
from ldpopt.design.constraints.base import ColumnConstraint, Constraint
from ldpopt.design.constraints.parts import outputs_of, parts
from ldpopt.design.constraints.terms import Malformed, Ratio, Term
from ldpopt.distribution import Array
from ldpopt.enclosures import Arithmetic, Enclosure
from ldpopt.results import ByValue


@dataclass(frozen=True, eq=False)
class Leaf(ByValue):
    """The multipliers of one box.

    rows : (k,) of the row sums. terms : of the column terms. fixed : one for each constraint on the outputs. sides :
    (2, m) non-negative prices of the lower and the upper sides of the box. weights : (criteria,) of several utilities,
    the least of which counts.
    """

    rows: Array
    terms: tuple[TermMultiplier, ...]
    fixed: tuple[Any, ...]
    sides: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Limits:
    """Constraints in the form that multipliers are for. Users' own expressions are left out: the bound still holds.

    spread : a cap D on the log-ratio of two entries of a column, None where there is none. outputs : the number m.
    """

    terms: tuple[Term | Ratio, ...]
    fixed: tuple[AlphabetConstraint, ...]
    spread: Enclosure | None
    outputs: int

    @classmethod
    def of(cls, constraints: Sequence[Constraint], inputs: Sequence[Label], arithmetic: Arithmetic) -> Limits:
        """The limits on channels with these inputs. Raises `Unproved` where no constraint fixes the outputs."""
        terms, fixed, _ = parts(constraints, inputs)
        if not fixed:
            raise Unproved("no constraint says what the outputs are")
        spread = least_spread([c for c in constraints if isinstance(c, ColumnConstraint)], inputs, arithmetic)
        return cls(terms, fixed, spread, outputs_of(fixed, len(inputs)))

    def allowed(self, inputs: int) -> Array:
        """(m, k) booleans: whether an output may occur at all under an input."""
        shape = (inputs, self.outputs)
        allowed = np.ones(shape[::-1], dtype=bool)
        for constraint in self.fixed:
            allowed &= constraint.allowed(shape).T
        if not allowed.any(axis=0).all():
            raise Unproved("the constraints leave an input without any output")
        return np.asarray(allowed)


def leaf_bound(
    leaf: Leaf, gains: Enclosure, limits: Limits, sides: Enclosure | None, arithmetic: Arithmetic
) -> Enclosure:
    """An upper bound on the utility `gains` (criteria, m, k) of every matrix that meets the constraints.

    sides : (2, m, k) linear functions that are non-negative on the columns of the box; None without a box. Raises
    `Unproved` for malformed multipliers.
    """
    _, m, k = gains.shape
    leaf = expect(leaf, Leaf, "the multipliers of a box")
    fixed = expect(leaf.fixed, tuple, "the multipliers of the constraints on the outputs")
    if len(fixed) != len(limits.fixed):
        raise Unproved(f"{len(limits.fixed)} constraints are on the outputs, and {len(fixed)} have multipliers")
    rows = arithmetic.of(real_array(leaf.rows, (k,), "rows"))
    reduced = _mixed(gains, leaf.weights, arithmetic) - rows
    bound = rows.sum()
    try:
        for multiplier in expect_each(leaf.terms, TermMultiplier, "the multipliers of the constraints"):
            kept = _term(multiplier, limits.terms)
            reduced = reduced - kept.enclosed_support(multiplier.values, m, k, arithmetic)[0]
            bound = bound + kept.enclosed_charge(multiplier.values, m, arithmetic)
    except Malformed as error:
        raise Unproved(str(error)) from None
    for constraint, one in zip(limits.fixed, fixed, strict=True):
        reduced = reduced - constraint.enclosed_support(one, (k, m), arithmetic)
        bound = bound + constraint.enclosed_charge(one, (k, m), arithmetic)
    if sides is not None:
        paid = nonnegative_array(leaf.sides, (2, m), "prices of the box's sides")
        for price, side in zip(paid, sides, strict=True):
            if price.any():
                reduced = reduced + price[:, None] * side
    return bound + _residual(reduced, limits, arithmetic)


def _mixed(gains: Enclosure, given: Array, arithmetic: Arithmetic) -> Enclosure:
    """The mixture of the criteria by the given weights, which is at least the least of them."""
    criteria = len(gains)
    weights = nonnegative_array(given, (criteria,), "the weights of the criteria")
    if not weights.any():
        raise Unproved("the weights of the criteria are all zero")
    if criteria == 1:
        return gains[0]
    shares = arithmetic.of(weights) / arithmetic.of(weights).sum()
    return (gains * shares[:, None, None]).sum(axis=0)


def _term(multiplier: TermMultiplier, terms: Sequence[Term | Ratio]) -> Any:
    """The pairs of a term that a multiplier is for."""
    term = terms[position(multiplier.term, len(terms), "the term of a multiplier")]
    if isinstance(term, Ratio):
        raise Unproved("pure LDP between all inputs has no multipliers")
    pairs = positions(multiplier.pairs, -1, len(term), "the pairs of a multiplier")
    if len(np.unique(pairs)) != len(pairs):
        raise Unproved("a multiplier names a pair twice")
    return term.take(pairs)


def _residual(reduced: Enclosure, limits: Limits, arithmetic: Arithmetic) -> Enclosure:
    """An upper bound on sum_y reduced_y . Q[:, y] over the matrices with rows that sum to one."""
    allowed = limits.allowed(reduced.shape[1])
    best = arithmetic.where(allowed, reduced, -np.inf).max(axis=0).sum()
    if limits.spread is None:
        return best
    # Where ratios are capped, an output that is impossible for one input never occurs.
    common = allowed.all(axis=1)
    if not common.any():
        raise Unproved("the constraints leave no output that every input allows, and ratios are capped")
    left = reduced[common]
    # A column in [a, e^D a] is worth at most a (sum of all + (e^D - 1) sum of the gains), and all a of a channel sum to
    # at most one.
    gain = left.sum(axis=1) + limits.spread.expm1() * left.positive().sum(axis=1)
    return best.minimum(gain.max().positive())
