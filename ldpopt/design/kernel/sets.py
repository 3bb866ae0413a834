"""Sets of inputs, on which staircase patterns are large: from bit masks, with sums near a target, balanced, in orbits.

*Balanced sets.* Let a channel have the information J, and draw its columns S in proportion to their probabilities. Then
S has the mean t 1 and the second moments t^2 J, where t = S.p. Near the target of `estimation.program_dual`, all
columns have nearly the same d.S = |d| t*, t* = 2 E / (E + 1), E = e^epsilon. Random sets with the mean and the
covariance that follow from this are good columns where all 2^k patterns are too many. They are drawn by thresholds of
a Gaussian vector, and changed by single inputs until d.S is within half an input of its aim.

*Orbits.* The orbit of a set of points of a prime field holds its images under all maps x -> a x + b. As the maps take
any two points to any other two, every two points are together in equally many sets of an orbit: it is a 2-design, in
which sum 1_A(x) (1 - 1_A(x')) is the same for all pairs. On g points, the orbit of a union of cosets of a subgroup of f
elements, with 0 or without, has at most g (g - 1)/f sets.

*Information.* On S_A = t + 1_A the mutual information is h(a), a = P(A), with h'(a) = h'(0) - log(1 + a/t) and h'(0) =
(t + 1) epsilon - 1, t = 1/(e^epsilon - 1). These are floats for searches; `information.proof` proves numbers.
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
    """(patterns, k) membership of input x in the pattern whose bit mask has bit x."""
    return np.asarray((masks[:, None] >> np.arange(k)) & 1 == 1)


def different(sets: Members) -> Members:
    """The different rows, in lexicographic order."""
    order = np.lexsort(np.packbits(sets, axis=1).T[::-1])
    ordered = sets[order]
    return np.asarray(ordered[np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))])


LISTED = 12  # Up to this many masses, all subsets are listed.
HALF = 4096  # The number of subsets of one half of the masses with which subsets of the other half are combined.


def subsets_near(masses: Array, target: float, count: int, rng: np.random.Generator) -> Members:
    """(n, len(masses)) up to `count` different subsets with sums near `target`; all masses occur about equally often.
    For few masses, the subsets with the nearest sums. For many, random subsets of one random half, each combined with
    one of the few best from a sample of subsets of the other half.
    """
    n = len(masses)
    if n <= LISTED:
        every = members(np.arange(2**n, dtype=np.int64), n)
        return every[np.argsort(np.abs(every @ masses - target), kind="stable")[:count]]
    share = min(max(target / masses.sum(), 0.0), 1.0)
    subsets = []
    for _ in range(4):
        order = rng.permutation(n)
        left, right = order[: n // 2], order[n // 2 :]
        first, second = (rng.random((size, len(part))) < share for size, part in ((count, left), (HALF, right)))
        sums = second @ masses[right]
        by = np.argsort(sums)
        wanted = target - first @ masses[left]
        # One of the nearest few, so that it is not always the same.
        place = np.clip(np.searchsorted(sums[by], wanted) + rng.integers(-2, 2, count), 0, HALF - 1)
        subset = np.zeros((count, n), dtype=bool)
        subset[:, left], subset[:, right] = first, second[by[place]]
        subsets.append(subset)
    both = rng.permutation(different(np.vstack(subsets)))  # no preference among equally near ones
    return both[np.argsort(np.abs(both @ masses - target), kind="stable")[:count]]


ADAPTED = 2  # The number of trials by which the thresholds are moved, so that the mean is right after rounding to sets.
TRIAL = 4000  # The number of sets in a trial.


def balanced_sets(
    prior: Array,
    squares: Array,
    target: Array,
    ratio: float,
    count: int,
    rng: np.random.Generator,
    eta: float | None = None,
) -> Members:
    """(n, k) at most `count` different sets, neither empty nor full, for d = `squares` (k,) and J = `target` (k, k).
    prior : p (k,). ratio : E. eta : a cap on total variation, for which sets may be made smaller (`_size`); the
    covariance is scaled to their size.
    """
    from scipy.special import ndtri

    k, gain = len(prior), ratio - 1
    size = _size(k, gain, eta)
    aim, best = 1 + gain * size, 1 / (ratio + 1)
    share = squares / squares.sum()
    apart = (target - 1.0) * (size * (1 - size) / aim**2) / (best * (1 - best) * ((ratio + 1) / (2 * ratio)) ** 2)
    pulled = apart @ share
    mean = aim * (1 - pulled + share @ pulled)
    away = np.eye(k) - share[None, :]
    spread = aim**2 * away @ apart @ away.T / gain**2
    chance = np.clip((mean - 1) / gain, 0.003, 0.997)
    threshold = np.asarray(ndtri(chance))
    density = np.exp(-(threshold**2) / 2) / np.sqrt(2 * np.pi)
    latent = np.clip(spread / np.outer(density, density), -0.98, 0.98)
    np.fill_diagonal(latent, 1.0)
    values, vectors = np.linalg.eigh(latent)
    mixing = vectors * np.sqrt(np.maximum(values, 1e-6))
    mixing = mixing / np.sqrt((mixing * mixing).sum(axis=1))[:, None]

    def drawn(n: int) -> Members:
        sets = rng.standard_normal((n, k)) @ mixing.T < threshold
        return _level(sets, share, (aim - 1) / gain, rng)

    for _ in range(ADAPTED):
        columns = 1 + gain * drawn(TRIAL)
        off = (columns / (columns @ prior)[:, None]).mean(axis=0) - 1
        density = np.exp(-(threshold**2) / 2) / np.sqrt(2 * np.pi)
        threshold = threshold - np.clip(off * aim / (gain * np.maximum(density, 0.02)), -0.5, 0.5)
    sets = np.unique(drawn(count), axis=0)
    return np.asarray(sets[sets.any(axis=1) & ~sets.all(axis=1)])


def _size(k: int, gain: float, eta: float | None) -> float:
    """The share of the inputs in a set: that of the best sets, or the one at which sets of equal size reach the cap.
    With a share s of k inputs in each set, and every input in as many, the rows of the channel are at a total variation
    of gain s (1 - s) k / (k - 1) / (1 + gain s).
    """
    best = 1 / (gain + 2)
    if eta is None:
        return best
    among = k / (k - 1)
    root = (among - eta) ** 2 - 4 * among * eta / gain
    return best if root <= 0 else min(best, max(1 / k, ((among - eta) - root**0.5) / (2 * among)))


def _level(sets: Members, share: Array, aim: float, rng: np.random.Generator) -> Members:
    """The sets, with inputs added or removed at random until their share is within half an average input of `aim`."""
    off = sets @ share - aim
    for _ in range(40):
        open_ = np.flatnonzero(np.abs(off) > 0.5 / len(share))
        if len(open_) == 0:
            break
        wanted = sets[open_] == (off[open_] > 0)[:, None]
        changed = np.where(wanted, rng.random(wanted.shape), -1.0).argmax(axis=1)
        sets[open_, changed] ^= True
        off = sets @ share - aim
    return sets


MAX_POINTS = 400  # The most points.
SETS = 3000  # The most sets of an orbit.


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
        """The number of sets, at most."""
        return self.points * (self.points - 1) // self.order

    def sets(self) -> npt.NDArray[np.bool_]:
        """(n, points) the sets, each once."""
        g, parts = self.points, (self.points - 1) // self.order
        root = generator(g)
        power = np.array([pow(root, i, g) for i in range(g - 1)])
        picked = np.random.default_rng([g, self.order, self.cosets]).permutation(parts)[: self.cosets]
        members = np.concatenate([np.zeros(self.zero, dtype=np.int64), *(power[c::parts] for c in picked)])
        moved = (power[:parts, None, None] * members + np.arange(g)[None, :, None]) % g
        sets = np.zeros((parts * g, g), dtype=bool)
        sets[np.arange(parts * g)[:, None], moved.reshape(parts * g, -1)] = True
        return np.unique(sets, axis=0)


def orbits(most: int) -> Iterator[Orbit]:
    """Orbits of at most `SETS` sets on at least 5 and at most `most` points."""
    for g in range(5, min(most, MAX_POINTS) + 1):
        if any(g % p == 0 for p in range(2, int(g**0.5) + 1)):
            continue
        for order in range(1, (g - 1) // 2 + 1):
            if (g - 1) % order == 0:
                for cosets in range(1, (g - 1) // order):
                    for zero in (0, 1):
                        orbit = Orbit(g, order, cosets, zero)
                        if orbit.length <= SETS:
                            yield orbit
        yield Orbit(g, g - 1, 0, 1)  # each point alone


def generator(g: int) -> int:
    """The least primitive root of a prime: its powers are all numbers modulo g except 0."""
    return next(root for root in range(1, g) if len({pow(root, i, g) for i in range(g - 1)}) == g - 1)


STEPS = 60  # The number of halvings of an interval.


def level_of(epsilon: float) -> float:
    """t = 1/(e^epsilon - 1), without overflow."""
    return max(math.exp(-epsilon) / -math.expm1(-epsilon), 1e-306)


def best_mass(epsilon: float) -> float:
    """(t - 1)/(e^epsilon - 1), t = epsilon/(1 - e^-epsilon): the mass at which a pattern has most information."""
    series = epsilon / 2 + epsilon**2 / 12  # t - 1, less epsilon^4/720
    return (series if epsilon < 1e-3 else epsilon / -math.expm1(-epsilon) - 1) * level_of(epsilon)


def information_of(mass: Array, away: Array, level: float) -> Array:
    """h(a) for masses a, and away = 1 - a, of any shape; level : t."""
    mean = level + mass
    return np.asarray(mass * KL.excess_of(away, mean) + away * KL.excess_of(-mass, mean))


def best_share(own: Array, rest: float, level: float, within: float, slope: Array) -> Array:
    """(n,) the rho in [0, 1] at which h(own + rest rho) - within rho (1 - rho) - slope rho is largest. Only rho are
    looked at up to which this function is concave.
    """
    if not rest > 0:
        return np.zeros(len(own))
    steepest = float(KL.excess_of(1.0, level))

    def mass_at(log_rise: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.clip(level * np.expm1(np.minimum(log_rise, 709.0)), own, own + rest)

    if not within > 0:
        best = mass_at(steepest - slope / rest)
    else:
        # The search is in log(1 + a/t), which keeps digits whether a is near t or far from it.
        low, high = np.log1p(own / level), np.log1p((own + rest) / level)
        bent = math.log(rest) * 2 - math.log(2 * within) - math.log(level)  # log of (t + a)/t where concavity ends
        high = np.maximum(np.minimum(high, bent - 1e-12), low)
        for _ in range(STEPS):
            middle = (low + high) / 2
            share = (level * np.expm1(middle) - own) / rest
            rising = (steepest - middle) * rest - within * (1 - 2 * share) - slope > 0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        best = mass_at(low)
    return np.nan_to_num(np.clip((best - own) / rest, 0.0, 1.0))
