"""Few sets of given orbits that do what all sets of the orbits do together.

*Without a cap* only the rows count: all answers of a group have to be in equally many sets. The rotations of one set
within each group do that, and rotations of several groups may go together: as u runs from 0 to 1, each group i is
rotated by floor(u k_i). That makes at most sum k_i sets of an orbit.

*Under a cap* no two answers may be farther apart than the cap. Some groups, of k_i answers, are rotated by one step at
the same time, which makes lcm k_i sets of one. Under these rotations pairs of answers fall into classes, and a small
linear program finds weights of sets, drawn at random from the orbits, for which every class keeps the cap. It has a
solution if enough sets are drawn, because the mean over all sets is one.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from ldpopt.design.kernel.sets import Members
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array, Index

MAX_CLASSES = 500
"""The most classes of pairs, and rows, in the program that weighs sets."""
DRAWN = 3
"""How many sets are drawn for each class at first; each further draw has twice as many."""
DRAWS = 4
SHORT = 2.0**-40
"""A share of the weights that does not count when sets are weighed."""


def coupled(sizes: Index, inside: Index) -> tuple[Members, Array]:
    """(m, k) sets of one orbit, m <= sum sizes, and weights (m,) that sum to one, by rotations that go together.

    sizes : (c,) of the groups, whose answers follow each other. inside : (c,) how many answers of each group are held.
    """
    turning = [i for i in range(len(sizes)) if 0 < inside[i] < sizes[i]]
    whole = math.lcm(*(int(sizes[i]) for i in turning))
    # In units of 1/whole the steps are whole numbers, so that their weights are exact.
    starts = sorted({step * (whole // int(sizes[i])) for i in turning for step in range(int(sizes[i]))} or {0})
    weights = np.array([(b - a) / whole for a, b in itertools.pairwise([*starts, whole])])
    parts = []
    for size, held in zip(sizes.tolist(), inside.tolist(), strict=True):
        turn = np.array([start * size // whole for start in starts]) if 0 < held < size else np.zeros(len(starts))
        parts.append((np.arange(size)[None, :] - turn[:, None]) % size < held)
    return np.hstack(parts), weights


@dataclass(frozen=True, eq=False)
class Turning:
    """Groups of answers that follow each other, of which some are rotated at the same time.

    sizes : (c,) how many answers they have. turned : the numbers of the groups that are rotated.
    """

    sizes: Index
    turned: tuple[int, ...]

    @property
    def order(self) -> int:
        """The number of rotations."""
        return math.lcm(*(int(self.sizes[i]) for i in self.turned))

    @property
    def places(self) -> Index:
        """(order, k) which answer of the set that is rotated is looked at for each answer."""
        steps, start, parts = np.arange(self.order), 0, []
        for i, size in enumerate(self.sizes.tolist()):
            turn = steps[:, None] if i in self.turned else 0 * steps[:, None]
            parts.append(start + (np.arange(size)[None, :] + turn) % size)
            start += size
        return np.hstack(parts).astype(np.intp)

    @property
    def constraints(self) -> int:
        """How many classes of pairs there are, and answers that are not rotated."""
        own = [int(size) for size in self.sizes]
        fixed = [size for i, size in enumerate(own) if i not in self.turned]
        still, moved = sum(fixed), [own[i] for i in self.turned]
        within = sum(size // 2 for size in moved) + sum(itertools.starmap(math.gcd, itertools.combinations(moved, 2)))
        return within + still * len(moved) + still * (still - 1) // 2 + still

    def classes(self) -> tuple[Index, Index]:
        """(n,), (n,) two answers of each class of pairs."""
        k, places = int(self.sizes.sum()), self.places
        left, right = np.triu_indices(k, 1)
        least = np.full(len(left), k * k)
        for place in places:
            one, other = place[left], place[right]
            least = np.minimum(least, np.minimum(one, other) * k + np.maximum(one, other))
        _, first = np.unique(least, return_index=True)
        return left[first], right[first]

    def alone(self, sets: Members) -> Array:
        """(k, m) in which share of their rotations m sets hold each answer."""
        return np.asarray(sum(sets[:, place].T.astype(np.float64) for place in self.places) / self.order)

    def together(self, sets: Members, left: Index, right: Index) -> Array:
        """(n, m) in which share of their rotations m sets hold both answers of n pairs."""
        found = np.zeros((len(left), len(sets)))
        for place in self.places:
            found += (sets[:, place[left]] & sets[:, place[right]]).T
        return found / self.order


def best_turning(sizes: Index, most: int) -> Turning | None:
    """The groups to rotate for the fewest sets, at most about `most`; None where all ways need more."""
    numbers = range(len(sizes))
    ways = (Turning(sizes, some) for n in range(len(sizes) + 1) for some in itertools.combinations(numbers, n))
    few = [way for way in ways if way.constraints <= MAX_CLASSES and way.order * way.constraints <= most]
    return min(few, key=lambda way: way.order * way.constraints, default=None)


def spread(
    turning: Turning, orbits: Index, weights: Array, cap: float, rng: np.random.Generator
) -> tuple[Members, Array]:
    """(m, k) sets of the orbits, and their weights (m,), such that no two answers are separated by more than the cap.

    orbits : (c, n). weights : (n,) of the orbits. The sets of each orbit have its weight, or a common share of it that
    is as large as the drawn sets allow.
    """
    left, right = turning.classes()
    count = DRAWN * (len(left) + turning.constraints // 4 + 8)
    for _ in range(DRAWS):
        sets, which = _drawn(turning.sizes, orbits, count, rng)
        share, found = _weighed(turning, sets, which, orbits, weights, cap, left, right)
        if share >= 1 - SHORT:
            break
        count *= 2
    if not share > 0:
        raise SolverError("orbits of sets: no sets with weights that keep the cap were found")
    used = found > 0
    turned = sets[used][:, turning.places].reshape(-1, sets.shape[1])
    return _merged(turned, np.repeat(found[used] / turning.order, turning.order))


def _merged(sets: Members, weights: Array) -> tuple[Members, Array]:
    different, where = np.unique(np.packbits(sets, axis=1), axis=0, return_inverse=True)
    total = np.bincount(where.reshape(-1), weights, len(different)).astype(np.float64)
    inside: Members = np.unpackbits(different, axis=1, count=sets.shape[1]).astype(np.bool_)
    return inside, total


def _drawn(sizes: Index, orbits: Index, count: int, rng: np.random.Generator) -> tuple[Members, Index]:
    """(m, k) different sets of the orbits, and (m,) the orbit of each."""
    sets, which = [], []
    each = -(-count // orbits.shape[1])
    for number, inside in enumerate(orbits.T.tolist()):
        parts = [
            rng.permuted(np.tile(np.arange(size) < held, (each, 1)), axis=1)
            for size, held in zip(sizes.tolist(), inside, strict=True)
        ]
        own = np.unique(np.hstack(parts), axis=0)
        sets.append(own)
        which.append(np.full(len(own), number))
    return np.vstack(sets), np.concatenate(which).astype(np.intp)


def _weighed(
    turning: Turning, sets: Members, which: Index, orbits: Index, weights: Array, cap: float, left: Index, right: Index
) -> tuple[float, Array]:  # fmt: skip
    """The largest common share of the orbits' weights that the cap allows these sets, and the sets' weights."""
    group = np.repeat(np.arange(len(turning.sizes)), turning.sizes)
    size, m = float(weights.sum()), len(sets)
    rows = (orbits / turning.sizes[:, None]) @ weights / size
    both = turning.together(sets, left, right)
    # An answer of the group i is in sets of the weight rows_i, the same for all i: the rest is without the other one.
    limit = np.hstack([-both, rows[group[left]][:, None]])
    still = np.array([i for i in range(len(group)) if group[i] not in turning.turned], dtype=np.intp)
    equal = [np.hstack([1.0 * (which[None, :] == np.arange(len(weights))[:, None]), -(weights / size)[:, None]])]
    equal.append(np.hstack([sets[:, still].T.astype(np.float64), -rows[group[still]][:, None]]))
    goal, matrix = np.append(np.zeros(m), -1.0), np.vstack(equal)
    found = linprog(
        goal, limit, np.full(len(left), cap / size), matrix, np.zeros(len(matrix)),
        bounds=[(0, None)] * m + [(0, 1)], method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if found.status != 0:
        return 0.0, np.zeros(m)
    phi = np.maximum(found.x[:-1], 0.0) * size
    # A solver meets caps only nearly; smaller weights of all sets meet them.
    held = turning.alone(sets) @ phi
    distance = float((np.maximum(held[left], held[right]) - both @ phi).max(initial=0.0))
    return float(found.x[-1]) * min(1.0, cap / distance), phi * min(1.0, cap / distance)
