"""Few sets of given orbits that have the same rows and distances as all sets of the orbits together.

*Without a cap* only the rows count: all answers of a group have to be in equally many sets. The rotations of one set
within each group do that, and rotations of several groups may go together. As u runs from 0 to 1, each group i is
rotated by floor(u k_i). That makes at most sum k_i sets of an orbit.

*Under a cap* no two answers may be farther apart than the cap. Some groups, of k_i answers, are rotated by one step at
the same time, which makes lcm k_i sets of one. Under these rotations pairs of answers fall into classes. Sets are drawn
at random from the orbits, and a small linear program finds weights such that every class meets the cap. It has a
solution if enough sets are drawn, because the mean over all sets is one.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.kernel.sets import Members
from ldpopt.errors import SolverError
from ldpopt.values.distribution import Array, Index

MAX_CLASSES = 500
"""Classes of pairs, and rows, in the program that weighs sets."""
SETS_PER_CLASS = 3
"""Sets that are drawn for each class at first; each further draw has twice as many."""
MAX_DRAWS = 4
WEIGHT_LOSS_ATOL = 2.0**-40
"""A loss of weights that does not count when sets are weighed."""


def coupled_rotations(sizes: Index, held_counts: Index) -> tuple[Members, Array]:
    """Build (m, k) sets of one orbit by rotations that go together, and weights (m,).

    There are m <= sum sizes sets, and the weights sum to one.

    - `sizes` : (c,) of the groups, whose answers follow each other.
    - `held_counts` : (c,) the numbers of answers of each group in a set.
    """
    partial_groups = [i for i in range(len(sizes)) if 0 < held_counts[i] < sizes[i]]
    common_order = math.lcm(*(int(sizes[i]) for i in partial_groups))
    # In units of 1/whole the steps are integers, so that their weights are exact.
    starts = sorted(
        {step * (common_order // int(sizes[i])) for i in partial_groups for step in range(int(sizes[i]))} or {0}
    )
    weights = np.array([(b - a) / common_order for a, b in itertools.pairwise([*starts, common_order])])
    parts = []
    for size, count in zip(sizes.tolist(), held_counts.tolist(), strict=True):
        turn = (
            np.array([start * size // common_order for start in starts]) if 0 < count < size else np.zeros(len(starts))
        )
        parts.append((np.arange(size)[None, :] - turn[:, None]) % size < count)
    return np.hstack(parts), weights


@dataclass(frozen=True, eq=False)
class Turning:
    """Groups of answers that follow each other; some are rotated at the same time.

    - `sizes` : (c,) the numbers of their answers.
    - `turned` : the numbers of the groups that are rotated.
    """

    sizes: Index
    turned: tuple[int, ...]

    @property
    def order(self) -> int:
        """The number of rotations."""
        return math.lcm(*(int(self.sizes[i]) for i in self.turned))

    @property
    def places(self) -> Index:
        """The source of each answer in the rotated set, (order, k)."""
        steps, start, parts = np.arange(self.order), 0, []
        for i, size in enumerate(self.sizes.tolist()):
            turn = steps[:, None] if i in self.turned else 0 * steps[:, None]
            parts.append(start + (np.arange(size)[None, :] + turn) % size)
            start += size
        return np.hstack(parts).astype(np.intp)

    @property
    def constraints(self) -> int:
        """The number of classes of pairs, plus that of answers that are not rotated."""
        sizes = [int(size) for size in self.sizes]
        unturned_sizes = [size for i, size in enumerate(sizes) if i not in self.turned]
        unturned_count, turned_sizes = sum(unturned_sizes), [sizes[i] for i in self.turned]
        pair_classes = sum(size // 2 for size in turned_sizes) + sum(
            itertools.starmap(math.gcd, itertools.combinations(turned_sizes, 2))
        )
        return (
            pair_classes
            + unturned_count * len(turned_sizes)
            + unturned_count * (unturned_count - 1) // 2
            + unturned_count
        )

    def classes(self) -> tuple[Index, Index]:
        """Return (n,), (n,) two answers of each class of pairs."""
        k, places = int(self.sizes.sum()), self.places
        left, right = np.triu_indices(k, 1)
        class_numbers = np.full(len(left), k * k)
        for place in places:
            left_place, right_place = place[left], place[right]
            class_numbers = np.minimum(
                class_numbers, np.minimum(left_place, right_place) * k + np.maximum(left_place, right_place)
            )
        _, first = np.unique(class_numbers, return_index=True)
        return left[first], right[first]

    def alone(self, sets: Members) -> Array:
        """Compute (k, m) the fraction of the rotations of m sets that hold each answer."""
        return np.asarray(sum(sets[:, place].T.astype(np.float64) for place in self.places) / self.order)

    def together(self, sets: Members, left: Index, right: Index) -> Array:
        """Compute (n, m) the fraction of the rotations of m sets that hold both of n pairs."""
        joint_counts = np.zeros((len(left), len(sets)))
        for place in self.places:
            joint_counts += (sets[:, place[left]] & sets[:, place[right]]).T
        return joint_counts / self.order


def best_turning(sizes: Index, max_sets: int) -> Turning | None:
    """Choose the groups to rotate for the fewest sets, at most about `max_sets`.

    It is None if all ways need more.
    """
    numbers = range(len(sizes))
    ways = (
        Turning(sizes, turned_groups)
        for n in range(len(sizes) + 1)
        for turned_groups in itertools.combinations(numbers, n)
    )
    feasible = [way for way in ways if way.constraints <= MAX_CLASSES and way.order * way.constraints <= max_sets]
    return min(feasible, key=lambda way: way.order * way.constraints, default=None)


def weigh_spread_sets(
    turning: Turning, orbits: Index, weights: Array, cap: float, rng: np.random.Generator
) -> tuple[Members, Array]:
    """Draw (m, k) sets of the orbits, and weigh them (m,) within the cap.

    No two answers are separated by more than the cap.

    - `orbits` : (c, n).
    - `weights` : (n,) of the orbits. The sets of each orbit have its weight, or a common fraction of it that is as
      large as the drawn sets allow.
    """
    left, right = turning.classes()
    count = SETS_PER_CLASS * (len(left) + turning.constraints // 4 + 8)
    for _ in range(MAX_DRAWS):
        sets, orbit_numbers = _draw_sets(turning.sizes, orbits, count, rng)
        common_share, set_weights = _weigh_sets(turning, sets, orbit_numbers, orbits, weights, cap, left, right)
        if common_share >= 1 - WEIGHT_LOSS_ATOL:
            break
        count *= 2
    if not common_share > 0:
        raise SolverError("orbits of sets: no sets with weights that keep the cap were found")
    is_used = set_weights > 0
    rotated_sets = sets[is_used][:, turning.places].reshape(-1, sets.shape[1])
    return _merge_equal_sets(rotated_sets, np.repeat(set_weights[is_used] / turning.order, turning.order))


def _merge_equal_sets(sets: Members, weights: Array) -> tuple[Members, Array]:
    distinct, positions = np.unique(np.packbits(sets, axis=1), axis=0, return_inverse=True)
    total = np.bincount(positions.reshape(-1), weights, len(distinct)).astype(np.float64)
    distinct_sets: Members = np.unpackbits(distinct, axis=1, count=sets.shape[1]).astype(np.bool_)
    return distinct_sets, total


def _draw_sets(sizes: Index, orbits: Index, count: int, rng: np.random.Generator) -> tuple[Members, Index]:
    """Draw (m, k) distinct sets of the orbits, and return (m,) the orbit of each."""
    sets, orbit_numbers = [], []
    draws_per_orbit = -(-count // orbits.shape[1])
    for number, held_counts in enumerate(orbits.T.tolist()):
        parts = [
            rng.permuted(np.tile(np.arange(size) < held_count, (draws_per_orbit, 1)), axis=1)
            for size, held_count in zip(sizes.tolist(), held_counts, strict=True)
        ]
        drawn_sets = np.unique(np.hstack(parts), axis=0)
        sets.append(drawn_sets)
        orbit_numbers.append(np.full(len(drawn_sets), number))
    return np.vstack(sets), np.concatenate(orbit_numbers).astype(np.intp)


def _weigh_sets(
    turning: Turning,
    sets: Members,
    orbit_numbers: Index,
    orbits: Index,
    weights: Array,
    cap: float,
    left: Index,
    right: Index,
) -> tuple[float, Array]:
    """Maximize the common fraction of the orbits' weights that the cap allows these sets.

    Returns the fraction and the sets' weights.
    """
    from scipy.optimize import linprog

    group = np.repeat(np.arange(len(turning.sizes)), turning.sizes)
    size, m = float(weights.sum()), len(sets)
    rows = (orbits / turning.sizes[:, None]) @ weights / size
    joint = turning.together(sets, left, right)
    # An answer of the group i is in sets of the weight rows_i, the same for all i: the rest is without the other one.
    limit = np.hstack([-joint, rows[group[left]][:, None]])
    unturned_groups = np.array([i for i in range(len(group)) if group[i] not in turning.turned], dtype=np.intp)
    equalities = [
        np.hstack([1.0 * (orbit_numbers[None, :] == np.arange(len(weights))[:, None]), -(weights / size)[:, None]])
    ]
    equalities.append(
        np.hstack([sets[:, unturned_groups].T.astype(np.float64), -rows[group[unturned_groups]][:, None]])
    )
    objective, matrix = np.append(np.zeros(m), -1.0), np.vstack(equalities)
    solution = linprog(
        objective, limit, np.full(len(left), cap / size), matrix, np.zeros(len(matrix)),
        bounds=[(0, None)] * m + [(0, 1)], method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if solution.status != 0:
        return 0.0, np.zeros(m)
    phi = np.maximum(solution.x[:-1], 0.0) * size
    # A solver meets caps only nearly; smaller weights of all sets meet them.
    marginals = turning.alone(sets) @ phi
    distance = float((np.maximum(marginals[left], marginals[right]) - joint @ phi).max(initial=0.0))
    return float(solution.x[-1]) * min(1.0, cap / distance), phi * min(1.0, cap / distance)
