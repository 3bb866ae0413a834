"""The optimal channel at an even prior or pilot: sets of at most two sizes that treat all pairs of answers alike.

The sizes follow from the envelope of `symmetric.proof`. All sets of a size are too many, and not needed: a
family of sets in which every answer is in equally many sets has the information of the size, and one in which every
pair of answers is separated by equally many sets has its total variation and its errors of estimates, too.

*Rotations.* The k rotations of one set hold every answer equally often. They separate all pairs alike if the power
spectrum of the set is flat; a mixture of rotations of several sets does if the mean of the spectra is.

*Orbits.* On a prime number g of points, the orbit of a union of cosets under x -> a x + b separates all pairs alike
(`kernel.sets`). With g >= k points, k of them are the answers. With g < k points, each point is a group of answers:
that keeps the information, but answers of one group are at a distance of zero, and others at a larger one by about 1/g.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.optimize import nnls

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_patterns, needs_uniform_prior, proof_by
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.estimation.program_mixture import inward, no_estimate
from ldpopt.design.estimation.staircase import FULL
from ldpopt.design.kernel.sets import Members, Orbit, information_of, level_of
from ldpopt.design.problems.problem import Problem
from ldpopt.design.symmetric.proof import SymmetricEnvelope, even_inputs, points
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import COARSE_GAP
from ldpopt.values.distribution import Array

MAX_FLAT = 200
"""The most inputs for which mixtures of rotations with a flat spectrum are made, of up to half as many sets."""
MAX_ENTRIES, MAX_SCORES = 2**21, 2**21
"""The most entries of a channel for mutual information, and for estimation, whose error takes longer to compute."""
MAX_GROUPS = 1500
"""The most groups of inputs."""
PRIMES_TRIED = 12
"""How many primes from the number of inputs on are tried as numbers of points."""
CAP_MARGIN = 2.0**-38
"""The fraction of the weights that is left to erasure under a cap, so that the cap holds when measured."""
DRAWS_PER_FREQUENCY, MAX_DRAWS = 4, 4
"""Sets that are drawn for each frequency, and draws, each twice as large as the one before."""
FLAT_RTOL = 1e-9
"""A spectrum is flat if it is off by no more than this fraction of its norm."""


@dataclass(frozen=True)
class SetFamily:
    """Sets of one size on some points, all points and all pairs alike: rotations, or the orbit `orbit`.

    spread, worth : (eta_w, u_w) of the family's channel.
    """

    points: int
    size: int
    spread: float
    worth: float
    orbit: Orbit | None = None
    pairs_alike: bool = True

    def sets(self) -> tuple[Members, Array]:
        """(m, points) the sets, and weights (m,) that sum to one."""
        if self.orbit is not None:
            sets = self.orbit.sets()
            return sets, np.full(len(sets), 1 / len(sets))
        sets, weights = (
            flat_sets(self.points, self.size)
            if self.pairs_alike
            else (np.arange(self.points)[None, :] < self.size, np.ones(1))
        )
        turned = (np.arange(self.points)[None, :] - np.arange(self.points)[:, None]) % self.points
        weights = np.repeat(weights / weights.sum() / self.points, self.points)
        return sets[:, turned].reshape(-1, self.points), weights


@dataclass(frozen=True)
class SymmetricSets(Method, reference="[KOV14; YB]", needs=(needs_uniform_prior, needs_patterns), preference=120):
    """The exact design for an even prior or pilot: each report favors a set of one of at most two sizes [YB].

    It takes mutual information at an even prior, and at an even pilot every criterion that treats all categories alike
    (`AOptimal()`, `DOptimal()`, `MVOptimal()`), under `LocalDP`, with `TotalVariation` or without. The bound is the
    envelope of all sizes of sets (`SymmetricEnvelope`), in closed form for any number of answers.

    The channel is optimal up to 200 answers. For more, families of sets are taken that need few reports, so that the
    value is a little below the bound; the design states the gap. Estimation takes up to about 1,400 categories, because
    a channel for it needs as many reports; mutual information takes any number.

    >>> from ldpopt.design import FisherInformation, LocalDP, TotalVariation, optimal_channel
    >>> design = optimal_channel(FisherInformation([0.1] * 10), [LocalDP(1.0), TotalVariation(0.2)])
    >>> round(design.value, 3), design.certified
    (33.952, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs an even prior, a utility that treats all answers alike, and LocalDP between all inputs."""
        utility = problem.utility
        if not utility.information and (why := no_estimate(problem)):
            return why if utility.error else f"{utility.name} depends on more than the sizes of sets"
        if not (n := even_inputs(utility)):
            return "the prior is not even, or its criterion does not treat all answers alike"
        if not n > FULL:
            return f"it takes {FULL + 1} answers or more that occur, and here are {n}"
        if problem.eta <= 0:
            return "a channel of eta 0 says nothing"
        task = _Task.of(problem)
        if not task.chosen:
            bound = SymmetricEnvelope(utility, problem.constraints, None, task.slope).bound
            return Limit(
                f"no channel has an error below {bound:.6g}, but one for {n} answers is too large for a matrix"
            )
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best families of sets, and the slope of the envelope."""
        task = _Task.of(problem)
        matrix = task.matrix()
        sizes = " and ".join(f"{family.size} of {family.points}" for family, _ in task.chosen)
        proof = proof_by(SymmetricEnvelope, task.slope)
        if task.exact:
            return Candidate(matrix, f"subset selection by rotations of balanced sets, {sizes}", proof)
        shortfall = f"no few sets of the best size that separate all pairs of {task.inputs} answers alike are known"
        how = f"subset selection by families of few balanced sets, {sizes}"
        return Candidate(matrix, how, proof, COARSE_GAP, note=shortfall, shortfall=shortfall)


@dataclass(frozen=True, eq=False)
class _Task:
    """The inputs that occur, n of them at the positions `used`, t, the cap on total variation or None, and epsilon."""

    problem: Problem
    inputs: int
    level: float
    cap: float | None

    @classmethod
    def of(cls, problem: Problem) -> _Task:
        return cls(problem, even_inputs(problem.utility), level_of(problem.epsilon), problem.cap)

    @cached_property
    def informs(self) -> bool:
        """Whether the utility is mutual information."""
        return bool(self.problem.utility.information)

    @cached_property
    def ideal(self) -> list[SetFamily]:
        """One family for each size of sets, all sets of it."""
        ends = points(self.problem.utility, self.inputs, FLOAT.of(self.level))
        spread, worth = (np.asarray(each.midpoint) for each in ends)
        alike = not self.informs or self.cap is not None
        listed = zip(range(1, self.inputs), spread.tolist(), worth.tolist(), strict=True)
        return [SetFamily(self.inputs, size, eta, value, None, alike) for size, eta, value in listed]

    @cached_property
    def _best(self) -> tuple[list[tuple[SetFamily, float]], float]:
        return envelope(self.ideal, self.cap)

    @property
    def slope(self) -> float:
        """The slope of the envelope at the cap."""
        return self._best[1]

    @cached_property
    def exact(self) -> bool:
        """Whether the families of the ideal sizes can be made."""
        if self.informs and self.cap is None:
            return self.inputs * len(self.problem.utility.prior) <= MAX_ENTRIES
        return self.inputs <= MAX_FLAT

    @cached_property
    def chosen(self) -> list[tuple[SetFamily, float]]:
        """Families with the probabilities of their reports; the rest is erasure. Empty where none is small enough."""
        return self._best[0] if self.exact else envelope(list(self.families()), self.cap)[0]

    def families(self) -> Iterator[SetFamily]:
        """Families of few sets: rotations where pairs do not matter, else orbits on a prime number of points."""
        n, rows = self.inputs, len(self.problem.utility.prior)
        most = (MAX_ENTRIES if self.informs else MAX_SCORES) // rows // (1 if self.cap is None else 2)
        if self.informs and self.cap is None:
            groups = max((g for g in range(2, min(most, MAX_GROUPS) + 1) if n % g == 0), default=2)
            groups = groups if 10 * groups > min(most, MAX_GROUPS) else min(most, MAX_GROUPS)
            yield from (self._family(groups, size, None) for size in range(1, groups))
            return
        for g in _primes(max(n, 3), n + 40 * PRIMES_TRIED)[:PRIMES_TRIED] + (
            _primes(5, min(n, MAX_GROUPS)) if self.informs else []
        ):
            for parts in (e for e in range(1, min(g - 1, most // g) + 1) if (g - 1) % e == 0):
                for cosets in range(parts + 1):
                    for zero in (0, 1):
                        orbit = Orbit(g, (g - 1) // parts, cosets, zero)
                        if 0 < orbit.size < g:
                            yield self._family(g, orbit.size, orbit)

    def _family(self, g: int, size: int, orbit: Orbit | None) -> SetFamily:
        share = size / g
        spread = size * (g - size) / ((g - 1) * (g * self.level + size))
        if self.informs:
            information = float(information_of(np.array([share]), np.array([1 - share]), self.level)[0])
            worth = information / (self.level + share)
        else:
            worth = self.inputs * share * (1 - share) / (self.level + share) ** 2
        return SetFamily(g, size, spread, worth, orbit, orbit is not None)

    def matrix(self) -> Array:
        """The channel (k, m), reports of erasure last."""
        prior, epsilon = np.asarray(self.problem.utility.prior), self.problem.epsilon
        used = np.flatnonzero(prior > 0)
        high = math.exp(epsilon * inward(epsilon))
        parts, left = [], 1.0
        for family, share in self.chosen:
            share = share * (1 - CAP_MARGIN) if self.cap is not None else share
            sets, weights = family.sets()
            place = np.zeros(len(prior), dtype=np.intp)
            place[used] = np.arange(len(used)) % family.points
            inside = sets[:, place].T
            # Columns share 1 + (E - 1) 1_A over their mean on all points, without overflow for large epsilon.
            mean = 1 / high + (1 - 1 / high) * family.size / family.points
            parts.append(np.where(inside, 1.0, 1 / high) * (share * weights / mean))
            left -= share
        if self.cap is not None and left > 0:
            parts.append(np.full((len(prior), 1), left))
        return stochastic(np.hstack(parts))


def envelope(families: list[SetFamily], cap: float | None) -> tuple[list[tuple[SetFamily, float]], float]:
    """The best mixture of families at a cap, with probabilities, and the slope of the envelope there."""
    if not families:
        return [], 0.0
    if cap is None:
        return [(max(families, key=lambda family: family.worth), 1.0)], 0.0
    hull: list[tuple[float, float, SetFamily | None]] = [(0.0, 0.0, None)]
    for family in sorted(families, key=lambda family: (family.spread, -family.worth)):
        if family.worth <= hull[-1][1]:
            continue
        while len(hull) > 1 and _rise(hull[-2], hull[-1]) <= _rise(hull[-2], (family.spread, family.worth, family)):
            hull.pop()
        hull.append((family.spread, family.worth, family))
    for before, after in pairwise(hull):
        if cap < after[0]:
            share = (cap - before[0]) / (after[0] - before[0])
            mixed = [(before[2], 1 - share), (after[2], share)]
            return [(family, part) for family, part in mixed if family is not None and part > 0], _rise(before, after)
    last = hull[-1][2]
    return ([] if last is None else [(last, 1.0)]), 0.0


def _rise(before: tuple[float, float, SetFamily | None], after: tuple[float, float, SetFamily | None]) -> float:
    return (after[1] - before[1]) / (after[0] - before[0]) if after[0] > before[0] else math.inf


def flat_sets(k: int, size: int) -> tuple[Members, Array]:
    """(n, k) sets of one size, and weights with which the power spectra of all their rotations are flat."""
    rng = np.random.default_rng([k, size])
    aim = np.full(k // 2, size * (k - size) / (k - 1))
    if size in (1, k - 1):
        return np.arange(k)[None, :] < size, np.ones(1)
    count = DRAWS_PER_FREQUENCY * (k // 2)
    for _ in range(MAX_DRAWS):
        sets = rng.permuted(np.tile(np.arange(k) < size, (count, 1)), axis=1)
        power = np.abs(np.fft.rfft(sets, axis=1)[:, 1:]) ** 2
        weights, off = nnls(power.T, aim)
        if off <= FLAT_RTOL * float(np.linalg.norm(aim)):
            return sets[weights > 0], weights[weights > 0]
        count *= 2
    raise SolverError("symmetric sets: no rotations that treat all pairs alike were found")


def _primes(low: int, high: int) -> list[int]:
    return [g for g in range(max(low, 5), high + 1) if all(g % p for p in range(2, math.isqrt(g) + 1))]
