"""Sets of inputs where staircase patterns are large: from bit masks, with sums near a target, balanced, in orbits.

*Balanced sets.* Let a channel have the information J, and draw its columns S in proportion to their probabilities. Then
S has the mean t 1 and the second moments t^2 J, where t = S.p. Near the target of `estimation.program_dual`, all
columns have nearly the same d.S = |d| t*, t* = 2 E / (E + 1), E = e^epsilon. Random sets with the mean and the
covariance that follow from this are good columns where all 2^k patterns are too many. They are drawn by thresholds of a
Gaussian vector, and changed by single inputs until d.S is within half an input of its target.

*Orbits.* The orbit of a set of points of a prime field holds its images under all maps x -> a x + b. The maps take any
two points to any other two. So every two points are together in equally many sets of an orbit: it is a 2-design, where
sum 1_A(x) (1 - 1_A(x')) is the same for all pairs. On g points, the orbit of a union of cosets of a subgroup of f
elements, with 0 or without, has at most g (g - 1)/f sets.

*Information.* On S_A = t + 1_A, t = 1/(e^epsilon - 1), the mutual information is h(a), a = P(A). Its derivative is
h'(a) = h'(0) - log(1 + a/t), with h'(0) = (t + 1) epsilon - 1. These are floats for searches; `information.proof`
proves numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.divergences import KL
from ldpopt.values.distribution import Array

Masks = npt.NDArray[np.int64]
Members = npt.NDArray[np.bool_]


def members(masks: Masks, k: int) -> npt.NDArray[np.bool_]:
    """Return (patterns, k) the membership of input x in the pattern whose bit mask has bit x."""
    return np.asarray((masks[:, None] >> np.arange(k)) & 1 == 1)


def distinct_rows(sets: Members) -> Members:
    """Return the distinct rows, in lexicographic order."""
    order = np.lexsort(np.packbits(sets, axis=1).T[::-1])
    sorted_sets = sets[order]
    return np.asarray(sorted_sets[np.append(True, (sorted_sets[1:] != sorted_sets[:-1]).any(axis=1))])


MAX_MASSES_ENUMERATED = 12  # Up to this many masses, all subsets are enumerated.
HALF_SAMPLE_SIZE = 4096  # Subsets of one half of the masses, to combine with subsets of the other half.


def subsets_near(masses: Array, target: float, count: int, rng: np.random.Generator) -> Members:
    """Find up to `count` distinct subsets (n, len(masses)) with sums near `target`.

    All masses occur about equally often. For few masses, these are the subsets with the nearest sums. For many, random
    subsets of one random half are each combined with one of the best few from a sample of subsets of the other half.
    """
    n = len(masses)
    if n <= MAX_MASSES_ENUMERATED:
        all_subsets = members(np.arange(2**n, dtype=np.int64), n)
        return all_subsets[np.argsort(np.abs(all_subsets @ masses - target), kind="stable")[:count]]
    inclusion_probability = min(max(target / masses.sum(), 0.0), 1.0)
    subsets = []
    for _ in range(4):
        order = rng.permutation(n)
        left_positions, right_positions = order[: n // 2], order[n // 2 :]
        left_subsets, right_subsets = (
            rng.random((size, len(half))) < inclusion_probability
            for size, half in ((count, left_positions), (HALF_SAMPLE_SIZE, right_positions))
        )
        right_sums = right_subsets @ masses[right_positions]
        sum_order = np.argsort(right_sums)
        remaining_target = target - left_subsets @ masses[left_positions]
        # One of the nearest few, so that it is not always the same.
        position = np.clip(
            np.searchsorted(right_sums[sum_order], remaining_target) + rng.integers(-2, 2, count),
            0,
            HALF_SAMPLE_SIZE - 1,
        )
        round_subsets = np.zeros((count, n), dtype=bool)
        round_subsets[:, left_positions], round_subsets[:, right_positions] = (
            left_subsets,
            right_subsets[sum_order[position]],
        )
        subsets.append(round_subsets)
    candidates = rng.permutation(distinct_rows(np.vstack(subsets)))  # no preference among equally near ones
    return candidates[np.argsort(np.abs(candidates @ masses - target), kind="stable")[:count]]


THRESHOLD_TRIALS = 2  # Trials that move the thresholds, so that the mean is right after rounding to sets.
SETS_PER_TRIAL = 4000


def balanced_sets(
    prior: Array,
    squares: Array,
    target: Array,
    ratio: float,
    count: int,
    rng: np.random.Generator,
    eta: float | None = None,
) -> Members:
    """Draw at most `count` distinct sets (n, k), neither empty nor full.

    - `prior` : p (k,).
    - `squares` : d (k,).
    - `target` : J (k, k).
    - `ratio` : E.
    - `eta` : a cap on total variation, which may make the sets smaller (`_target_size`). The covariance is scaled to
      their size.
    """
    from scipy.special import ndtri

    k, gain = len(prior), ratio - 1
    set_fraction = _target_size(k, gain, eta)
    target_sum, optimal_fraction = 1 + gain * set_fraction, 1 / (ratio + 1)
    weights = squares / squares.sum()
    covariance = (
        (target - 1.0)
        * (set_fraction * (1 - set_fraction) / target_sum**2)
        / (optimal_fraction * (1 - optimal_fraction) * ((ratio + 1) / (2 * ratio)) ** 2)
    )
    mean_shift = covariance @ weights
    mean = target_sum * (1 - mean_shift + weights @ mean_shift)
    centering = np.eye(k) - weights[None, :]
    scaled_covariance = target_sum**2 * centering @ covariance @ centering.T / gain**2
    marginals = np.clip((mean - 1) / gain, 0.003, 0.997)
    thresholds = np.asarray(ndtri(marginals))
    densities = np.exp(-(thresholds**2) / 2) / np.sqrt(2 * np.pi)
    latent_correlation = np.clip(scaled_covariance / np.outer(densities, densities), -0.98, 0.98)
    np.fill_diagonal(latent_correlation, 1.0)
    eigenvalues, eigenvectors = np.linalg.eigh(latent_correlation)
    mixing = eigenvectors * np.sqrt(np.maximum(eigenvalues, 1e-6))
    mixing = mixing / np.sqrt((mixing * mixing).sum(axis=1))[:, None]

    def draw_sets(n: int) -> Members:
        sets = rng.standard_normal((n, k)) @ mixing.T < thresholds
        return _adjust_sums(sets, weights, (target_sum - 1) / gain, rng)

    for _ in range(THRESHOLD_TRIALS):
        columns = 1 + gain * draw_sets(SETS_PER_TRIAL)
        mean_error = (columns / (columns @ prior)[:, None]).mean(axis=0) - 1
        densities = np.exp(-(thresholds**2) / 2) / np.sqrt(2 * np.pi)
        thresholds = thresholds - np.clip(mean_error * target_sum / (gain * np.maximum(densities, 0.02)), -0.5, 0.5)
    sets = np.unique(draw_sets(count), axis=0)
    return np.asarray(sets[sets.any(axis=1) & ~sets.all(axis=1)])


def _target_size(k: int, gain: float, eta: float | None) -> float:
    """Compute the fraction of the inputs in a set.

    It is that of the best sets, or the one that lets sets of equal size reach the cap. Let each set hold a fraction s
    of k inputs, and every input be in as many sets. Then the rows of the channel are at a total variation of gain s (1
    - s) k / (k - 1) / (1 + gain s).
    """
    optimal_fraction = 1 / (gain + 2)
    if eta is None:
        return optimal_fraction
    pair_factor = k / (k - 1)
    discriminant = (pair_factor - eta) ** 2 - 4 * pair_factor * eta / gain
    return (
        optimal_fraction
        if discriminant <= 0
        else min(optimal_fraction, max(1 / k, ((pair_factor - eta) - discriminant**0.5) / (2 * pair_factor)))
    )


def _adjust_sums(sets: Members, weights: Array, target_sum: float, rng: np.random.Generator) -> Members:
    """Add or remove inputs at random until each weighted sum is close to `target_sum`.

    The sum is then within half an average input.
    """
    sum_errors = sets @ weights - target_sum
    for _ in range(40):
        unbalanced_indices = np.flatnonzero(np.abs(sum_errors) > 0.5 / len(weights))
        if len(unbalanced_indices) == 0:
            break
        is_candidate = sets[unbalanced_indices] == (sum_errors[unbalanced_indices] > 0)[:, None]
        inputs = np.where(is_candidate, rng.random(is_candidate.shape), -1.0).argmax(axis=1)
        sets[unbalanced_indices, inputs] ^= True
        sum_errors = sets @ weights - target_sum
    return sets


MAX_ORBIT_POINTS = 400
MAX_ORBIT_SETS = 3000


@dataclass(frozen=True)
class Orbit:
    """The orbit of a set of g points, g a prime: `cosets` cosets of a subgroup of `order` elements, and 0 if `zero`."""

    points: int
    order: int
    cosets: int
    zero: int

    @property
    def size(self) -> int:
        """The number of points in each set."""
        return self.order * self.cosets + self.zero

    @property
    def length(self) -> int:
        """An upper bound on the number of sets."""
        return self.points * (self.points - 1) // self.order

    def sets(self) -> npt.NDArray[np.bool_]:
        """List the sets (n, points), each once."""
        g, coset_count = self.points, (self.points - 1) // self.order
        root = primitive_root(g)
        powers = np.array([pow(root, i, g) for i in range(g - 1)])
        chosen_cosets = np.random.default_rng([g, self.order, self.cosets]).permutation(coset_count)[: self.cosets]
        members = np.concatenate(
            [np.zeros(self.zero, dtype=np.int64), *(powers[c::coset_count] for c in chosen_cosets)]
        )
        images = (powers[:coset_count, None, None] * members + np.arange(g)[None, :, None]) % g
        sets = np.zeros((coset_count * g, g), dtype=bool)
        sets[np.arange(coset_count * g)[:, None], images.reshape(coset_count * g, -1)] = True
        return np.unique(sets, axis=0)


def orbits(max_points: int) -> Iterator[Orbit]:
    """Generate orbits of at most `MAX_ORBIT_SETS` sets on 5 to `max_points` points."""
    for g in range(5, min(max_points, MAX_ORBIT_POINTS) + 1):
        if any(g % p == 0 for p in range(2, int(g**0.5) + 1)):
            continue
        for order in range(1, (g - 1) // 2 + 1):
            if (g - 1) % order == 0:
                for cosets in range(1, (g - 1) // order):
                    for zero in (0, 1):
                        orbit = Orbit(g, order, cosets, zero)
                        if orbit.length <= MAX_ORBIT_SETS:
                            yield orbit
        yield Orbit(g, g - 1, 0, 1)  # Each point alone.


def primitive_root(g: int) -> int:
    """Return the smallest primitive root of a prime: its powers are all nonzero residues."""
    return next(root for root in range(1, g) if len({pow(root, i, g) for i in range(g - 1)}) == g - 1)


BISECTION_STEPS = 60


def level_of(epsilon: float) -> float:
    """Compute t = 1/(e^epsilon - 1), without overflow."""
    return max(math.exp(-epsilon) / -math.expm1(-epsilon), 1e-306)


def best_mass(epsilon: float) -> float:
    """Compute the mass of the pattern with most information.

    It is (t - 1)/(e^epsilon - 1), where t = epsilon/(1 - e^-epsilon).
    """
    series = epsilon / 2 + epsilon**2 / 12  # t - 1, less epsilon^4/720
    return (series if epsilon < 1e-3 else epsilon / -math.expm1(-epsilon) - 1) * level_of(epsilon)


def information_of(mass: Array, complement: Array, level: float) -> Array:
    """Compute h(a) for masses a, and complement = 1 - a, of any shape; level : t."""
    mean = level + mass
    return np.asarray(mass * KL.excess_of(complement, mean) + complement * KL.excess_of(-mass, mean))


def best_share(mass: Array, added_mass: float, level: float, penalty: float, slope: Array) -> Array:
    """Maximize h(mass + added_mass rho) - penalty rho (1 - rho) - slope rho over rho.

    Returns (n,) the rho in [0, 1]. The search is limited to the rho where this function is concave.
    """
    if not added_mass > 0:
        return np.zeros(len(mass))
    max_slope = float(KL.excess_of(1.0, level))

    def mass_at(log_rise: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.clip(level * np.expm1(np.minimum(log_rise, 709.0)), mass, mass + added_mass)

    if not penalty > 0:
        optimal_mass = mass_at(max_slope - slope / added_mass)
    else:
        # The search is in log(1 + a/t), which keeps digits whether a is near t or far from it.
        low, high = np.log1p(mass / level), np.log1p((mass + added_mass) / level)
        log_concavity_end = (
            math.log(added_mass) * 2 - math.log(2 * penalty) - math.log(level)
        )  # log of (t + a)/t where concavity ends
        high = np.maximum(np.minimum(high, log_concavity_end - 1e-12), low)
        for _ in range(BISECTION_STEPS):
            middle = (low + high) / 2
            rho = (level * np.expm1(middle) - mass) / added_mass
            is_rising = (max_slope - middle) * added_mass - penalty * (1 - 2 * rho) - slope > 0
            low, high = np.where(is_rising, middle, low), np.where(is_rising, high, middle)
        optimal_mass = mass_at(low)
    return np.nan_to_num(np.clip((optimal_mass - mass) / added_mass, 0.0, 1.0))
