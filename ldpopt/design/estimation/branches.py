"""A proved bound on the gain of all 2^k staircase patterns, without pricing each: branch and bound, or sizes of sets.

*Branch and bound*, where the best sets are small. A pattern is t + a for the indicator a of a set, t = 1/(e^epsilon -
1). Without prices of pairs it does not gain where

    f(a) = (t + p.a) (t sum lambda + lambda.a) - |K a|^2 >= 0,        and its gain is -f(a) / (t + p.a)^2.

On indicators d_x (a_x^2 - a_x) adds nothing, and with enough of it f is convex, so that it lies above each of its
tangents: at any z,

    f(a) >= c - z^T Q z + g.a,        g = 2 Q z + h,        f(a) = a^T Q a + h.a + c.

A node is the family of sets with given first members, in an order of the inputs, and any of the inputs after the last
of them. The tangent is linear, so its least value over a node is a sum over the inputs. Where that is below zero, the
node is divided by its next member. Of k inputs the best sets have about k / (e^epsilon + 1), so few nodes occur where
epsilon is large. Beyond the node limit, the possible gains of the open nodes are the bound.

*Sizes of sets*, tight where all inputs are equivalent. The gain of a set of n inputs is

    (|K a|^2 / m - t sum lambda - lambda.a) / m,        m = t + p.a,

where |K a|^2 is at most n times the largest diagonal entry of K^T K plus n (n - 1) times the largest other one. The
mass m lies between t + n min p and t + n max p, and lambda.a is at least n min lambda. So k + 1 numbers bound all
patterns.
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
from ldpopt.design.estimation.relaxation import eigenvalue_lower_bound, finite_array
from ldpopt.design.work import MAX_SEARCH_OPERATIONS
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.values.distribution import Array, Index
from ldpopt.values.results import ByValue

MAX_SEARCH_NODES = 2**22  # Nodes that a search may be allowed, in about half a minute.
DESCENT_STEPS = 6  # Steps toward the minimum over a node, where a first guess leaves it open.
NODES_PER_BATCH = 4096
IGNORED_PRICE_FRACTION = 2.0**-34  # A smaller gain, relative to the price of all columns, is not examined.
Members = npt.NDArray[np.bool_]


def operations_per_node(k: int) -> float:
    """Estimate the operations for a node of k inputs."""
    return 400.0 + 0.2 * float(k) ** 2


@dataclass(frozen=True, eq=False)
class Branches(ByValue):
    """The numbers of a branch and bound search; any numbers give a valid bound.

    - `squares` : d (k,), which makes the form convex.
    - `nodes` : the nodes that the search may examine, if that is more than a proof examines by default.
    """

    squares: Array
    nodes: int = 0
    words: ClassVar[str] = "branch and bound over"

    @classmethod
    def convex(cls, gram: Array, rows: Array, prior: Array, squares: Array) -> Branches:
        """Scale `squares` to a d that just makes the form of K^T K, lambda and p convex."""
        price_form, square_scale = np.outer(prior, rows), 1 / np.sqrt(squares)
        smallest_eigenvalue = float(
            np.linalg.eigvalsh(((price_form + price_form.T) / 2 - gram) * square_scale[:, None] * square_scale)[0]
        )
        return cls(squares * max(-smallest_eigenvalue, 0.0) * (1 + 1e-4))

    def work(self, k: int) -> float:
        """Bound the operations of the search, for k inputs."""
        is_valid = isinstance(self.nodes, int) and 0 < self.nodes <= MAX_SEARCH_NODES
        return max(MAX_SEARCH_OPERATIONS, self.nodes * operations_per_node(k)) if is_valid else MAX_SEARCH_OPERATIONS

    def gain_bound(self, charges: Charges, epsilon: Enclosure) -> float:
        """Bound the gain of every pattern; inf if the numbers prove nothing."""
        search = self.walked(charges, epsilon)
        return math.inf if search is None else search.max_gain

    def walked(self, charges: Charges, epsilon: Enclosure, count: int = 0, max_nodes: int | None = None) -> Walk | None:
        """Search the nodes, with up to `count` sets that gain.

        It is None if the numbers prove nothing. max_nodes : about the largest number of nodes, by default the limit of
        a proof.
        """
        checked_squares = finite_array(self.squares, (len(charges.rows),))
        form = None if checked_squares is None else Form.from_charges(charges, 1 / epsilon.expm1(), checked_squares)
        node_budget = (
            int(self.work(len(charges.rows)) / operations_per_node(len(charges.rows)))
            if max_nodes is None
            else max_nodes
        )
        return None if form is None else walk(form, node_budget, count)


@dataclass(frozen=True, eq=False)
class Form:
    """A form a^T Q a + h.a + c of floats that is not above f on indicators, Q positive semidefinite, inputs in their
    order.

    - `shares` : below p, in that order.
    - `level` : below t.
    - `price_scale` : |sum lambda|.
    - `rounding_error` : a bound on the rounding error of a value.
    - `order` : the input at each place.
    """

    square: Array
    linear: Array
    constant: float
    shares: Array
    level: float
    price_scale: float
    rounding_error: float
    order: Index

    @classmethod
    def from_charges(cls, charges: Charges, level: Enclosure, d: Array) -> Form | None:
        """Build the form of some charges.

        It is None for prices of pairs, or if floats cannot represent it.
        """
        if charges.pairs.any():
            return None
        p, rows = charges.prior, charges.arithmetic.of(charges.rows)
        constant_price = level * charges.total
        price_form = p[:, None] * rows[None, :]
        quadratic = FLOAT.of((price_form + price_form.T) / 2 - charges.kernel.T @ charges.kernel)
        linear, constant = FLOAT.of(p * constant_price + rows * level), FLOAT.of(level * constant_price)
        p, level = FLOAT.of(p), FLOAT.of(level)
        order = np.argsort(-d, kind="stable")
        k, reordering = len(d), np.ix_(order, order)
        # Every coefficient is multiplied by a nonnegative number: lower endpoints are below all the form.
        square = np.asarray(quadratic.lower)[reordering]
        square = np.minimum(square, square.T)
        diagonal_terms = quadratic[np.arange(k), np.arange(k)] + linear
        with np.errstate(all="ignore"):
            square[np.diag_indices(k)] += d[order]
            if not np.isfinite(square).all():
                return None
            shift = -eigenvalue_lower_bound(FLOAT.of(square))
            diagonal = np.diag(square) + shift + 4 * ULP * (np.abs(np.diag(square)) + shift)
            square[np.diag_indices(k)] = np.nextafter(diagonal, np.inf)
            linear_part = np.asarray((diagonal_terms[order] - np.diag(square)).lower)
            size = 3 * float(np.abs(square).sum()) + float(np.abs(linear_part).sum()) + abs(float(constant.lower))
        shares = np.maximum(np.asarray(p.lower), 0.0)[order]
        t = float(level.lower)
        if not (1e-200 < size < 1e200 and t > 1e-100):
            return None
        rounding, size = (8 * k + 64) * ULP * size, abs(float(charges.total.midpoint))
        return cls(square, linear_part, float(constant.lower), shares, t, size, rounding, order)

    def masses(self, members: Array) -> Array:
        """Bound the masses (n,) of the sets (n, k), and of all their supersets, from below."""
        return np.asarray((self.level + members @ self.shares) * (1 - (2 * len(self.order) + 8) * ULP))

    def values(self, members: Array) -> Array:
        """Bound f of each of the sets (n, k) from below, (n,)."""
        return np.asarray(
            self.constant + ((members @ self.square + self.linear) * members).sum(axis=1) - self.rounding_error
        )

    def node_bounds(self, members: Array, last: Index) -> Array:
        """Bound f from below on each node and on its parts, (n, k + 1).

        The first column is for the node, the others for the parts that it is divided into. A node is the family of sets
        with members `members` (n, k), 0 or 1, at places up to `last` (n,), and any after it. Its parts have one member
        more. `last` does not fall. The bounds at places up to `last`, which have no parts, are infinite.
        """
        k = len(self.order)
        touching_points, place_starts = members.copy(), np.searchsorted(last, np.arange(-1, k))
        for place, (first_node, end_node) in enumerate(pairwise(place_starts)):
            if first_node < end_node:
                slope, offset = self.centres[place]
                touching_points[first_node:end_node, place:] = np.clip(
                    np.nan_to_num(members[first_node:end_node, :place] @ slope + offset), 0.0, 1.0
                )
        is_free = np.arange(k) > last[:, None]
        bounds = self._tangents(members, is_free, touching_points)
        uncertain_nodes = np.flatnonzero(~(bounds[:, 0] >= 0))
        if len(uncertain_nodes):
            members, is_free = members[uncertain_nodes], is_free[uncertain_nodes]
            bounds[uncertain_nodes] = np.fmax(
                bounds[uncertain_nodes],
                self._tangents(members, is_free, self._descended(is_free, touching_points[uncertain_nodes])),
            )
        return bounds

    def _tangents(self, members: Array, is_free: Members, z: Array) -> Array:
        """Compute `node_bounds` by the tangents at z (n, k), which may be any floats from 0 to 1."""
        gradient = z @ self.square
        constant = self.constant - (z * gradient).sum(axis=1) - self.rounding_error
        gradient = 2 * gradient + self.linear
        constant = constant + np.where(members > 0, gradient, 0.0).sum(axis=1)
        # The largest decrease by the inputs from each place on.
        later_decreases = np.cumsum(np.where(is_free, np.minimum(gradient, 0.0), 0.0)[:, ::-1], axis=1)[:, ::-1]
        bounds = np.where(is_free, constant[:, None] + gradient, np.inf)
        bounds[:, :-1] += later_decreases[:, 1:]
        return np.column_stack([constant + later_decreases[:, 0], bounds])

    def _descended(self, is_free: Members, z: Array) -> Array:
        """Move points toward the minimum of f, by accelerated projected gradients."""
        current_point, extrapolated_point, momentum = z, z, 1.0
        for _ in range(DESCENT_STEPS):
            next_point = np.where(
                is_free,
                np.clip(
                    extrapolated_point - (2 * extrapolated_point @ self.square + self.linear) / self.bend, 0.0, 1.0
                ),
                z,
            )
            next_momentum = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            extrapolated_point = next_point + (momentum - 1) / next_momentum * (next_point - current_point)
            current_point, momentum = next_point, next_momentum
        return current_point

    @cached_property
    def bend(self) -> float:
        """The largest second derivative."""
        return 2 * float(np.linalg.eigvalsh(self.square)[-1])

    @cached_property
    def centres(self) -> list[tuple[Array, Array]]:
        """The minimizer of f over real numbers from each place on, as a linear function of the members before it."""
        functions: list[tuple[Array, Array]] = []
        for place in range(len(self.order)):
            free_square, coupling = self.square[place:, place:], self.square[:place, place:]
            try:
                solution = np.linalg.solve(free_square, np.column_stack([coupling.T, self.linear[place:] / 2]))
            except np.linalg.LinAlgError:
                solution = np.zeros((len(free_square), place + 1))
            linear: Array = np.asarray(-solution, dtype=np.float64)
            functions.append((linear[:, :-1].T, linear[:, -1]))
        return functions


@dataclass(frozen=True, eq=False)
class Walk:
    """The result of a search.

    - `max_gain` : no set gains more than this.
    - `sets` : (n, k) sets that gain, best first.
    - `complete` : True if no node is open.
    """

    max_gain: float
    sets: Members
    complete: bool


def walk(form: Form, nodes: int, count: int = 0) -> Walk:
    """Search about `nodes` nodes at most, with up to `count` of the sets that gain."""
    k = len(form.order)
    bound, nodes_seen = 0.0, 0
    paying_sets, gains = np.zeros((0, k), dtype=bool), np.zeros(0)
    open_nodes = [(np.zeros((1, k), dtype=bool), np.full(1, -1))]
    while open_nodes:
        sets, last = open_nodes.pop()
        if len(sets) > NODES_PER_BATCH:
            open_nodes.append((sets[NODES_PER_BATCH:], last[NODES_PER_BATCH:]))
            sets, last = sets[:NODES_PER_BATCH], last[:NODES_PER_BATCH]
        last_order = np.argsort(last, kind="stable")
        sets, last = sets[last_order], last[last_order]
        members = sets.astype(np.float64)
        masses = form.masses(members)
        lower_bounds = form.node_bounds(members, last)
        node_prices = _price(lower_bounds[:, 0], masses)
        nodes_seen += len(node_prices)
        is_open = ~(node_prices <= max(bound, IGNORED_PRICE_FRACTION * form.price_scale)) & (nodes_seen <= nodes)
        bound = max(bound, float(node_prices[~is_open].max(initial=0.0)))
        sets, masses = sets[is_open], masses[is_open]
        set_prices = _price(form.values(members[is_open]), masses)
        bound = max(bound, float(set_prices.max(initial=0.0)))
        if count:
            paying_sets, gains = (
                np.vstack([paying_sets, sets[set_prices > 0]]),
                np.append(gains, set_prices[set_prices > 0]),
            )
            best_positions = np.argsort(-gains, kind="stable")[:count]
            paying_sets, gains = paying_sets[best_positions], gains[best_positions]
        # A part that the tangent of the node already decides is dropped.
        part_prices = _price(lower_bounds[is_open, 1:], masses[:, None])
        is_open_part = ~(part_prices <= max(bound, IGNORED_PRICE_FRACTION * form.price_scale))
        bound = max(bound, float(part_prices[~is_open_part].max(initial=0.0)))
        parent_indices, new_members = np.nonzero(is_open_part)
        children = sets[parent_indices]
        children[np.arange(len(children)), new_members] = True
        if len(children):
            open_nodes.append((children, new_members))
    reordered_sets = np.zeros_like(paying_sets)
    reordered_sets[:, form.order] = paying_sets
    return Walk(bound, reordered_sets, nodes_seen <= nodes)


def _price(value: Array, mass: Array) -> Array:
    """Bound the gain of sets whose f is at least `value`, and whose mass is at least `mass`."""
    with np.errstate(all="ignore"):
        price = np.where(value >= 0, 0.0, -value / mass**2 * (1 + 8 * ULP))
    return np.where(np.isnan(price), np.inf, price)


@dataclass(frozen=True, eq=False)
class Sizes(ByValue):
    """A bound on patterns from the sizes of their sets alone; it has no numbers."""

    words: ClassVar[str] = "the sizes of the sets of"

    def gain_bound(self, charges: Charges, epsilon: Enclosure) -> float:
        """Bound the gain of every pattern; inf for prices of pairs."""
        if charges.pairs.any():
            return math.inf
        k, arithmetic = len(charges.rows), charges.arithmetic
        gram = np.asarray(FLOAT.of(charges.kernel.T @ charges.kernel).upper)
        level, total = 1 / epsilon.expm1(), charges.total
        n = np.arange(k)  # The full pattern is a multiple of the empty one.
        largest_off_diagonal = float(gram[~np.eye(k, dtype=bool)].max()) if k > 1 else 0.0
        gain = arithmetic.of(float(np.diag(gram).max())) * n + arithmetic.of(largest_off_diagonal) * (n * (n - 1.0))
        prices = level * total + arithmetic.of(float(charges.rows.min())) * n
        shares = FLOAT.of(charges.prior)
        mass = level + arithmetic.between(float(np.min(shares.lower)), float(np.max(shares.upper))) * n
        bound = float(((gain / mass - prices) / mass).max().upper)
        return bound if bound < math.inf else math.inf
