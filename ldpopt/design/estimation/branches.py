"""A proved bound on the gain of all 2^k staircase patterns, without pricing each: branch and bound, or sizes of sets.

*Branch and bound*, where the best sets are small. A pattern is t + a for the indicator a of a set,
t = 1/(e^epsilon - 1). Without prices of pairs it does not pay where

    f(a) = (t + p.a) (t sum lambda + lambda.a) - |K a|^2 >= 0,        and is priced -f(a) / (t + p.a)^2.

On indicators d_x (a_x^2 - a_x) adds nothing, and with enough of it f is convex, so that it lies above each of its
tangents: at any z,

    f(a) >= c - z^T Q z + g.a,        g = 2 Q z + h,        f(a) = a^T Q a + h.a + c.

A node is the sets that have given first members, in an order of the inputs, and any of the inputs after the last of
them. The tangent is linear, so its least value over a node is a sum over the inputs. Where that is below zero, the node
is taken apart by its next member. Of k inputs the best sets have about k / (e^epsilon + 1), so few nodes are met where
epsilon is large; beyond those afforded what the open ones may pay is the bound.

*Sizes of sets*, tight where all inputs are alike. The gain of a set of n inputs is

    (|K a|^2 / m - t sum lambda - lambda.a) / m,        m = t + p.a,

where |K a|^2 is at most n times the largest diagonal entry of K^T K and n (n - 1) times the largest other one, m lies
between t + n min p and t + n max p, and lambda.a is at least n min lambda: k + 1 numbers bound all patterns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.design.estimation.prices import Charges
from ldpopt.design.estimation.relaxation import finite, least_eigenvalue
from ldpopt.design.work import MAX_SEARCH_OPERATIONS
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array, Index
from ldpopt.values.results import ByValue

NODES = 2**22  # Nodes that a search may be asked to look at, in about half a minute.
DESCENT = 6  # Steps towards the least value over a node, where a first guess leaves it open.
CHUNK = 4096  # Nodes that are bounded at a time.
SETTLED = 2.0**-34  # A price below this share of what all columns pay is not looked into.
Members = npt.NDArray[np.bool_]


def cost_of(k: int) -> float:
    """The operations for a node of k inputs, about."""
    return 400.0 + 0.2 * float(k) ** 2


@dataclass(frozen=True, eq=False)
class Branches(ByValue):
    """d (k,): what makes the form convex. nodes : how many the search may take, where that is more than a proof takes
    without being asked. Sound whatever the numbers are.
    """

    squares: Array
    nodes: int = 0
    words: ClassVar[str] = "branch and bound over"

    @classmethod
    def convex(cls, gram: Array, rows: Array, prior: Array, squares: Array) -> Branches:
        """d in the proportions of `squares`, just enough to make the form of K^T K, lambda and p convex."""
        paid, unit = np.outer(prior, rows), 1 / np.sqrt(squares)
        least = float(np.linalg.eigvalsh(((paid + paid.T) / 2 - gram) * unit[:, None] * unit)[0])
        return cls(squares * max(-least, 0.0) * (1 + 1e-4))

    def work(self, k: int) -> float:
        """The operations of the search, for k inputs."""
        asked = isinstance(self.nodes, int) and 0 < self.nodes <= NODES
        return max(MAX_SEARCH_OPERATIONS, self.nodes * cost_of(k)) if asked else MAX_SEARCH_OPERATIONS

    def most(self, charges: Charges, epsilon: Enclosure) -> float:
        """No pattern is priced above this; inf where the numbers prove nothing."""
        walked = self.walked(charges, epsilon)
        return math.inf if walked is None else walked.most

    def walked(self, charges: Charges, epsilon: Enclosure, count: int = 0, nodes: int | None = None) -> Walk | None:
        """The search, with up to `count` sets that pay; None where the numbers prove nothing. nodes : about the most
        that are looked at, by default what a proof may take.
        """
        d = finite(self.squares, (len(charges.rows),))
        form = None if d is None else Form.of(charges, 1 / epsilon.expm1(), d)
        afforded = int(self.work(len(charges.rows)) / cost_of(len(charges.rows))) if nodes is None else nodes
        return None if form is None else walk(form, afforded, count)


@dataclass(frozen=True, eq=False)
class Form:
    """a^T Q a + h.a + c, floats that are not above f on indicators, Q positive semidefinite, inputs in their order.
    shares : below p, in that order. level : below t. paid : |sum lambda|. wrong : what rounding may add to a value.
    order : the input that stands at each place.
    """

    square: Array
    linear: Array
    constant: float
    shares: Array
    level: float
    paid: float
    wrong: float
    order: Index

    @classmethod
    def of(cls, charges: Charges, level: Enclosure, d: Array) -> Form | None:
        """The form of some charges; None where floats cannot hold it, or for prices of pairs."""
        if charges.pairs.any():
            return None
        p, rows = charges.prior, charges.arithmetic.of(charges.rows)
        total = level * charges.total
        paid = p[:, None] * rows[None, :]
        quadratic = FLOAT.of((paid + paid.T) / 2 - charges.kernel.T @ charges.kernel)
        linear, constant = FLOAT.of(p * total + rows * level), FLOAT.of(level * total)
        p, level = FLOAT.of(p), FLOAT.of(level)
        order = np.argsort(-d, kind="stable")
        k, place = len(d), np.ix_(order, order)
        # Every coefficient is multiplied by what is not below zero: lower ends are below all the form.
        square = np.asarray(quadratic.lower)[place]
        square = np.minimum(square, square.T)
        own = quadratic[np.arange(k), np.arange(k)] + linear
        with np.errstate(all="ignore"):
            square[np.diag_indices(k)] += d[order]
            if not np.isfinite(square).all():
                return None
            lift = -least_eigenvalue(FLOAT.of(square))
            raised = np.diag(square) + lift + 4 * ULP * (np.abs(np.diag(square)) + lift)
            square[np.diag_indices(k)] = np.nextafter(raised, np.inf)
            h = np.asarray((own[order] - np.diag(square)).lower)
            size = 3 * float(np.abs(square).sum()) + float(np.abs(h).sum()) + abs(float(constant.lower))
        shares = np.maximum(np.asarray(p.lower), 0.0)[order]
        t = float(level.lower)
        if not (1e-200 < size < 1e200 and t > 1e-100):
            return None
        wrong, size = (8 * k + 64) * ULP * size, abs(float(charges.total.midpoint))
        return cls(square, h, float(constant.lower), shares, t, size, wrong, order)

    def masses(self, inside: Array) -> Array:
        """(n,) below the mass of each of the sets (n, k) and of all that hold them."""
        return np.asarray((self.level + inside @ self.shares) * (1 - (2 * len(self.order) + 8) * ULP))

    def values(self, inside: Array) -> Array:
        """(n,) below f of each of the sets (n, k)."""
        return np.asarray(self.constant + ((inside @ self.square + self.linear) * inside).sum(axis=1) - self.wrong)

    def least(self, inside: Array, last: Index) -> Array:
        """(n, k + 1) below f on each node and, to the right, on each of the nodes that it is taken apart into. A node
        is the sets with members `inside` (n, k), 0 or 1, at places up to `last` (n,), and any after it; its parts have
        one member more. `last` does not fall. Parts at places up to `last` are none, and count as infinite.
        """
        k = len(self.order)
        z, starts = inside.copy(), np.searchsorted(last, np.arange(-1, k))
        for place, (first, end) in enumerate(pairwise(starts)):
            if first < end:
                turned, moved = self.centres[place]
                z[first:end, place:] = np.clip(np.nan_to_num(inside[first:end, :place] @ turned + moved), 0.0, 1.0)
        free = np.arange(k) > last[:, None]
        bounds = self._tangents(inside, free, z)
        below = np.flatnonzero(~(bounds[:, 0] >= 0))
        if len(below):
            inside, free = inside[below], free[below]
            bounds[below] = np.fmax(bounds[below], self._tangents(inside, free, self._descended(free, z[below])))
        return bounds

    def _tangents(self, inside: Array, free: Members, z: Array) -> Array:
        """`least` by the tangents at z (n, k), which may be any floats from 0 to 1."""
        sloped = z @ self.square
        fixed = self.constant - (z * sloped).sum(axis=1) - self.wrong
        sloped = 2 * sloped + self.linear
        fixed = fixed + np.where(inside > 0, sloped, 0.0).sum(axis=1)
        # What the inputs from each place on may take off.
        after = np.cumsum(np.where(free, np.minimum(sloped, 0.0), 0.0)[:, ::-1], axis=1)[:, ::-1]
        parts = np.where(free, fixed[:, None] + sloped, np.inf)
        parts[:, :-1] += after[:, 1:]
        return np.column_stack([fixed + after[:, 0], parts])

    def _descended(self, free: Members, z: Array) -> Array:
        """Points nearer to where f is least, by accelerated projected gradients."""
        now, ahead, pace = z, z, 1.0
        for _ in range(DESCENT):
            moved = np.where(free, np.clip(ahead - (2 * ahead @ self.square + self.linear) / self.bend, 0.0, 1.0), z)
            faster = (1 + math.sqrt(1 + 4 * pace**2)) / 2
            ahead = moved + (pace - 1) / faster * (moved - now)
            now, pace = moved, faster
        return now

    @cached_property
    def bend(self) -> float:
        """The largest second derivative."""
        return 2 * float(np.linalg.eigvalsh(self.square)[-1])

    @cached_property
    def centres(self) -> list[tuple[Array, Array]]:
        """Where f is least over real numbers from each place on, at given members before it: as a linear function."""
        functions: list[tuple[Array, Array]] = []
        for place in range(len(self.order)):
            free, given = self.square[place:, place:], self.square[:place, place:]
            try:
                turned = np.linalg.solve(free, np.column_stack([given.T, self.linear[place:] / 2]))
            except np.linalg.LinAlgError:
                turned = np.zeros((len(free), place + 1))
            linear: Array = np.asarray(-turned, dtype=np.float64)
            functions.append((linear[:, :-1].T, linear[:, -1]))
        return functions


@dataclass(frozen=True, eq=False)
class Walk:
    """No set is priced above `most`; `sets` (n, k) pay, best first; `complete` if no node was left open."""

    most: float
    sets: Members
    complete: bool


def walk(form: Form, nodes: int, count: int = 0) -> Walk:
    """Of about `nodes` nodes at the most, with up to `count` of the sets that pay."""
    k = len(form.order)
    most, spent = 0.0, 0
    paying, worth = np.zeros((0, k), dtype=bool), np.zeros(0)
    waiting = [(np.zeros((1, k), dtype=bool), np.full(1, -1))]
    while waiting:
        sets, last = waiting.pop()
        if len(sets) > CHUNK:
            waiting.append((sets[CHUNK:], last[CHUNK:]))
            sets, last = sets[:CHUNK], last[:CHUNK]
        sorted_ = np.argsort(last, kind="stable")
        sets, last = sets[sorted_], last[sorted_]
        inside = sets.astype(np.float64)
        masses = form.masses(inside)
        least = form.least(inside, last)
        price = _price(least[:, 0], masses)
        spent += len(price)
        open_ = ~(price <= max(most, SETTLED * form.paid)) & (spent <= nodes)
        most = max(most, float(price[~open_].max(initial=0.0)))
        sets, masses = sets[open_], masses[open_]
        own = _price(form.values(inside[open_]), masses)
        most = max(most, float(own.max(initial=0.0)))
        if count:
            paying, worth = np.vstack([paying, sets[own > 0]]), np.append(worth, own[own > 0])
            best = np.argsort(-worth, kind="stable")[:count]
            paying, worth = paying[best], worth[best]
        # A part that the tangent of the whole already settles is none.
        parts = _price(least[open_, 1:], masses[:, None])
        goes_on = ~(parts <= max(most, SETTLED * form.paid))
        most = max(most, float(parts[~goes_on].max(initial=0.0)))
        parent, added = np.nonzero(goes_on)
        children = sets[parent]
        children[np.arange(len(children)), added] = True
        if len(children):
            waiting.append((children, added))
    reordered = np.zeros_like(paying)
    reordered[:, form.order] = paying
    return Walk(most, reordered, spent <= nodes)


def _price(value: Array, mass: Array) -> Array:
    """What sets are priced at most whose f is not below `value`, and whose mass is not below `mass`."""
    with np.errstate(all="ignore"):
        price = np.where(value >= 0, 0.0, -value / mass**2 * (1 + 8 * ULP))
    return np.where(np.isnan(price), np.inf, price)


@dataclass(frozen=True, eq=False)
class Sizes(ByValue):
    """Patterns go by the sizes of their sets alone; there are no numbers to it."""

    words: ClassVar[str] = "the sizes of the sets of"

    def most(self, charges: Charges, epsilon: Enclosure) -> float:
        """No pattern is priced above this; inf for prices of pairs."""
        if charges.pairs.any():
            return math.inf
        k, arithmetic = len(charges.rows), charges.arithmetic
        gram = np.asarray(FLOAT.of(charges.kernel.T @ charges.kernel).upper)
        level, total = 1 / epsilon.expm1(), charges.total
        n = np.arange(k)  # the full pattern is the empty one again
        other = float(gram[~np.eye(k, dtype=bool)].max()) if k > 1 else 0.0
        earned = arithmetic.of(float(np.diag(gram).max())) * n + arithmetic.of(other) * (n * (n - 1.0))
        paid = level * total + arithmetic.of(float(charges.rows.min())) * n
        shares = FLOAT.of(charges.prior)
        mass = level + arithmetic.between(float(np.min(shares.lower)), float(np.max(shares.upper))) * n
        bound = float(((earned / mass - paid) / mass).max().upper)
        return bound if bound < math.inf else math.inf
