"""The optimal channel at a uniform prior or pilot: sets of at most two sizes that treat all pairs of answers equally.

The sizes follow from the envelope of `symmetric.proof`. All sets of a size are too many, and not needed. A family of
sets where every answer is in equally many sets has the information of the size. One where every pair of answers is
separated by equally many sets has its total variation and its errors of estimates, too.

*Rotations.* The k rotations of one set hold every answer equally often. They separate all pairs equally if the power
spectrum of the set is flat; a mixture of rotations of several sets does if the mean of the spectra is flat.

*Orbits.* On a prime number g of points, the orbit of a union of cosets under x -> a x + b separates all pairs equally
(`kernel.sets`). With g >= k points, k of them are the answers. With g < k points, each point is a group of answers.
That preserves the information, but answers of one group are at a distance of zero, and others at a larger one by about
1/g.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_patterns, needs_uniform_prior, proof_by
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.estimation.program_mixture import log_scale, no_estimate
from ldpopt.design.estimation.staircase import MAX_INPUTS_ALL_STARTED
from ldpopt.design.kernel.sets import Members, Orbit, information_of, level_of
from ldpopt.design.problems.problem import Problem
from ldpopt.design.symmetric.proof import SymmetricEnvelope, even_inputs, points
from ldpopt.errors import SolverError
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.numbers.tolerances import COARSE_GAP
from ldpopt.values.distribution import Array

MAX_FLAT = 200
"""Up to this many inputs, mixtures of rotations have a flat spectrum, with up to half as many sets."""
MAX_ENTRIES, MAX_SCORES = 2**21, 2**21
"""Entries of a channel for mutual information, and for estimation, whose error takes longer to compute."""
MAX_GROUPS = 1500
"""Groups of inputs."""
PRIMES_TRIED = 12
"""Primes, from the number of inputs on, that are tried as numbers of points."""
CAP_MARGIN = 2.0**-38
"""The fraction of the weights that is left to erasure under a cap, so that the cap holds when measured."""
DRAWS_PER_FREQUENCY, MAX_DRAWS = 4, 4
"""Sets that are drawn for each frequency, and draws, each twice as large as the one before."""
FLAT_RTOL = 1e-9
"""A spectrum is flat if it is off by no more than this fraction of its norm."""


@dataclass(frozen=True)
class SetFamily:
    """Sets of one size on some points, equal for all points and all pairs: rotations, or the orbit `orbit`.

    spread, worth : (eta_w, u_w) of the family's channel.
    """

    points: int
    size: int
    spread: float
    worth: float
    orbit: Orbit | None = None
    pairs_alike: bool = True

    def sets(self) -> tuple[Members, Array]:
        """List (m, points) the sets, and weights (m,) that sum to one."""
        if self.orbit is not None:
            sets = self.orbit.sets()
            return sets, np.full(len(sets), 1 / len(sets))
        sets, weights = (
            flat_sets(self.points, self.size)
            if self.pairs_alike
            else (np.arange(self.points)[None, :] < self.size, np.ones(1))
        )
        rotations = (np.arange(self.points)[None, :] - np.arange(self.points)[:, None]) % self.points
        weights = np.repeat(weights / weights.sum() / self.points, self.points)
        return sets[:, rotations].reshape(-1, self.points), weights


@dataclass(frozen=True)
class SymmetricSets(Method, reference="[KOV14; YB]", needs=(needs_uniform_prior, needs_patterns), preference=120):
    """The exact design for a uniform prior or pilot: each report favors a set of one of at most two sizes [YB].

    It takes mutual information at a uniform prior. At a uniform pilot it takes every criterion that treats all
    categories equally (`AOptimal()`, `DOptimal()`, `MVOptimal()`). It works under `LocalDP`, with or without
    `TotalVariation`. The bound is the envelope of all sizes of sets (`SymmetricEnvelope`), in closed form for any
    number of answers.

    The channel is optimal up to 200 answers. For more, families of sets are taken that need few reports, so that the
    value is a little below the bound; the design states the gap. Estimation takes up to about 1,400 categories, because
    a channel for it needs as many reports; mutual information takes any number.

    >>> from ldpopt.design import FisherInformation, LocalDP, TotalVariation, optimal_channel
    >>> design = optimal_channel(FisherInformation([0.1] * 10), [LocalDP(1.0), TotalVariation(0.2)])
    >>> round(design.value, 3), design.certified
    (33.952, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs a uniform prior, a utility that treats all answers equally, and LocalDP between all inputs.
        """
        utility = problem.utility
        if not utility.information and (reason := no_estimate(problem)):
            return reason if utility.error else f"{utility.name} depends on more than the sizes of sets"
        if not (n := even_inputs(utility)):
            return "the prior is not even, or its criterion does not treat all answers alike"
        if not n > MAX_INPUTS_ALL_STARTED:
            return f"it takes {MAX_INPUTS_ALL_STARTED + 1} answers or more that occur, and here are {n}"
        if problem.eta <= 0:
            return "a channel of eta 0 says nothing"
        task = _Task.from_problem(problem)
        if not task.chosen:
            bound = SymmetricEnvelope(utility, problem.constraints, None, task.slope).bound
            return Limit(
                f"no channel has an error below {bound:.6g}, but one for {n} answers is too large for a matrix"
            )
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of the best families of sets, and the slope of the envelope."""
        task = _Task.from_problem(problem)
        matrix = task.matrix()
        sizes = " and ".join(f"{family.size} of {family.points}" for family, _ in task.chosen)
        proof = proof_by(SymmetricEnvelope, task.slope)
        if task.exact:
            return Candidate(matrix, f"subset selection by rotations of balanced sets, {sizes}", proof)
        shortfall = f"no few sets of the best size that separate all pairs of {task.inputs} answers alike are known"
        description = f"subset selection by families of few balanced sets, {sizes}"
        return Candidate(matrix, description, proof, COARSE_GAP, note=shortfall, shortfall=shortfall)


@dataclass(frozen=True, eq=False)
class _Task:
    """The inputs that occur, n of them at the positions `used`, t, the cap on total variation or None, and epsilon."""

    problem: Problem
    inputs: int
    level: float
    cap: float | None

    @classmethod
    def from_problem(cls, problem: Problem) -> _Task:
        return cls(problem, even_inputs(problem.utility), level_of(problem.epsilon), problem.cap)

    @cached_property
    def informs(self) -> bool:
        """True if the utility is mutual information."""
        return bool(self.problem.utility.information)

    @cached_property
    def ideal(self) -> list[SetFamily]:
        """The families of all sets of one size, for each size."""
        ends = points(self.problem.utility, self.inputs, FLOAT.of(self.level))
        separations, values = (np.asarray(enclosure.midpoint) for enclosure in ends)
        is_balanced = not self.informs or self.cap is not None
        families = zip(range(1, self.inputs), separations.tolist(), values.tolist(), strict=True)
        return [SetFamily(self.inputs, size, eta, value, None, is_balanced) for size, eta, value in families]

    @cached_property
    def _best(self) -> tuple[list[tuple[SetFamily, float]], float]:
        return envelope(self.ideal, self.cap)

    @property
    def slope(self) -> float:
        """The slope of the envelope at the cap."""
        return self._best[1]

    @cached_property
    def exact(self) -> bool:
        """True if the families of the ideal sizes can be built."""
        if self.informs and self.cap is None:
            return self.inputs * len(self.problem.utility.prior) <= MAX_ENTRIES
        return self.inputs <= MAX_FLAT

    @cached_property
    def chosen(self) -> list[tuple[SetFamily, float]]:
        """The selected families with the probabilities of their reports; the rest is erasure.

        It is empty if none is small enough.
        """
        return self._best[0] if self.exact else envelope(list(self.families()), self.cap)[0]

    def families(self) -> Iterator[SetFamily]:
        """Generate families of few sets.

        They are rotations where pairs do not matter, else orbits on a prime number of points.
        """
        n, rows = self.inputs, len(self.problem.utility.prior)
        max_sets = (MAX_ENTRIES if self.informs else MAX_SCORES) // rows // (1 if self.cap is None else 2)
        if self.informs and self.cap is None:
            groups = max((g for g in range(2, min(max_sets, MAX_GROUPS) + 1) if n % g == 0), default=2)
            groups = groups if 10 * groups > min(max_sets, MAX_GROUPS) else min(max_sets, MAX_GROUPS)
            yield from (self._family(groups, size, None) for size in range(1, groups))
            return
        for g in _primes(max(n, 3), n + 40 * PRIMES_TRIED)[:PRIMES_TRIED] + (
            _primes(5, min(n, MAX_GROUPS)) if self.informs else []
        ):
            for parts in (e for e in range(1, min(g - 1, max_sets // g) + 1) if (g - 1) % e == 0):
                for cosets in range(parts + 1):
                    for zero in (0, 1):
                        orbit = Orbit(g, (g - 1) // parts, cosets, zero)
                        if 0 < orbit.size < g:
                            yield self._family(g, orbit.size, orbit)

    def _family(self, g: int, size: int, orbit: Orbit | None) -> SetFamily:
        fraction = size / g
        separation = size * (g - size) / ((g - 1) * (g * self.level + size))
        if self.informs:
            information = float(information_of(np.array([fraction]), np.array([1 - fraction]), self.level)[0])
            value = information / (self.level + fraction)
        else:
            value = self.inputs * fraction * (1 - fraction) / (self.level + fraction) ** 2
        return SetFamily(g, size, separation, value, orbit, orbit is not None)

    def matrix(self) -> Array:
        """Build the channel (k, m), reports of erasure last."""
        prior, epsilon = np.asarray(self.problem.utility.prior), self.problem.epsilon
        support = np.flatnonzero(prior > 0)
        ratio = math.exp(epsilon * log_scale(epsilon))
        parts, remaining_share = [], 1.0
        for family, share in self.chosen:
            share = share * (1 - CAP_MARGIN) if self.cap is not None else share
            sets, weights = family.sets()
            group = np.zeros(len(prior), dtype=np.intp)
            group[support] = np.arange(len(support)) % family.points
            members = sets[:, group].T
            # Columns share 1 + (E - 1) 1_A over their mean on all points, without overflow for large epsilon.
            mean = 1 / ratio + (1 - 1 / ratio) * family.size / family.points
            parts.append(np.where(members, 1.0, 1 / ratio) * (share * weights / mean))
            remaining_share -= share
        if self.cap is not None and remaining_share > 0:
            parts.append(np.full((len(prior), 1), remaining_share))
        return stochastic(np.hstack(parts))


def envelope(families: list[SetFamily], cap: float | None) -> tuple[list[tuple[SetFamily, float]], float]:
    """Mix the families optimally at a cap.

    Returns the families with probabilities, and the slope of the envelope there.
    """
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
            fraction = (cap - before[0]) / (after[0] - before[0])
            mixture = [(before[2], 1 - fraction), (after[2], fraction)]
            return [(family, part) for family, part in mixture if family is not None and part > 0], _rise(before, after)
    last = hull[-1][2]
    return ([] if last is None else [(last, 1.0)]), 0.0


def _rise(before: tuple[float, float, SetFamily | None], after: tuple[float, float, SetFamily | None]) -> float:
    return (after[1] - before[1]) / (after[0] - before[0]) if after[0] > before[0] else math.inf


def flat_sets(k: int, size: int) -> tuple[Members, Array]:
    """Draw (n, k) sets of one size, and weights that make their power spectra flat.

    The spectra are those of all rotations of the sets.
    """
    if size in (1, k - 1):
        return np.arange(k)[None, :] < size, np.ones(1)
    from scipy.optimize import nnls

    rng = np.random.default_rng([k, size])
    target_spectrum = np.full(k // 2, size * (k - size) / (k - 1))
    count = DRAWS_PER_FREQUENCY * (k // 2)
    for _ in range(MAX_DRAWS):
        sets = rng.permuted(np.tile(np.arange(k) < size, (count, 1)), axis=1)
        power = np.abs(np.fft.rfft(sets, axis=1)[:, 1:]) ** 2
        weights, residual = nnls(power.T, target_spectrum)
        if residual <= FLAT_RTOL * float(np.linalg.norm(target_spectrum)):
            return sets[weights > 0], weights[weights > 0]
        count *= 2
    raise SolverError("symmetric sets: no rotations that treat all pairs alike were found")


def _primes(low: int, high: int) -> list[int]:
    return [g for g in range(max(low, 5), high + 1) if all(g % p for p in range(2, math.isqrt(g) + 1))]
