"""Mutual information for any number of inputs: sets of nearly the best mass that together cover all inputs equally."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_information, needs_patterns, proof_by, refusal
from ldpopt.design.information.program import Shares, SharesProgram, cut_caps, weigh_sets
from ldpopt.design.information.proof import InformationDual
from ldpopt.design.kernel.sets import Members, Orbit, best_mass, information_of, level_of, orbits, subsets_near
from ldpopt.design.patterns.method import add_erasure_weight, pattern_matrix
from ldpopt.design.problems.problem import Problem
from ldpopt.design.solve import SIMPLEX
from ldpopt.design.symmetric.method import SymmetricSets
from ldpopt.numbers.tolerances import BALANCED_GAP
from ldpopt.values.deadline import Deadline
from ldpopt.values.distribution import Array, Index

MAX_INPUTS_EXACT = 20  # Up to this many inputs, all of them are indivisible: the program is exact.
MAX_INDIVISIBLE_INPUTS = 16  # Indivisible inputs among more.
# Relative to the best mass. Smaller inputs count as divisible, because sets of them have nearly any mass.
MIN_RELATIVE_MASS = 2.0**-6
GROUP_COUNT_RANGE = (45, 200)  # Fewest and most groups of inputs, if there are enough inputs.
GROUPS_PER_SET = 6  # A set has about this many groups, or more.
POOL_SIZE = 60_000  # Sets in the pool of candidates for the program.
INITIAL_SETS = 3000  # Sets in the first program.
MAX_SETS_PER_ROUND = 500
MAX_SET_ROUNDS = 8
# The same under a cap on total variation, where programs are larger by all pairs of inputs.
CAPPED_MAX_INPUTS_EXACT, CAPPED_MAX_INDIVISIBLE, CAPPED_ROUNDS = 14, 9, 2
MAX_PAIRED_INPUTS = 36  # Up to this many inputs, the program has all pairs.
ERASURE_MARGIN = 2.0**-38  # The fraction of the weights that is left to erasure under a cap.
MAX_ORBITS_TRIED = 24  # Orbits (families of sets, `kernel.sets`) that are evaluated.
MAX_ANSWERS = 2000  # A channel may need as many reports, which takes a gigabyte.


@dataclass(frozen=True)
class BalancedSets(
    Method, reference="[KOV14]", needs=(needs_information, needs_patterns), preference=190, by_cvxpy=True
):
    """The channel for mutual information that favors sets of nearly the best probability, and all answers equally
    [KOV14].

    A pattern's information depends on the probability of its set alone. Answers of large probability are indivisible,
    and the rest is treated as divisible. That makes a small linear program, whose dual values prove the bound. Then the
    method searches sets of the rest that have the fractions in the solution, where small answers are put into groups.
    Where all answers are equally likely, `SymmetricSets` is used.

    >>> from ldpopt.design import LocalDP, MutualInformation, optimal_channel
    >>> prior = [(x + 1) / 20100 for x in range(200)]
    >>> design = optimal_channel(MutualInformation(prior), LocalDP(1.0), method=BalancedSets())
    >>> round(design.value, 6), design.certified
    (0.123302, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs mutual information under LocalDP.
        """
        if problem.utility.size > MAX_ANSWERS:
            return Limit(f"{problem.utility.size} answers make channels too large to hold (at most {MAX_ANSWERS})")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel whose reports favor the selected sets."""
        if not refusal(symmetric := SymmetricSets(), problem):
            return symmetric.find(problem, ask)
        prior = np.asarray(problem.utility.prior)
        prior = prior / prior.sum()
        task = _Task.from_prior(prior, problem)
        solution = task.program.solve(problem.deadline.part(0.0, 0.5))
        classes, masses, sets, phi = task.best(solution)
        if problem.cap is not None:
            phi = phi * (1 - ERASURE_MARGIN)  # So the cap holds when measured, without a repair.
        members = np.zeros((len(prior), len(phi)), dtype=bool)
        members[task.used] = sets[:, classes].T
        members[prior == 0] = members[task.used[0]]
        matrix = pattern_matrix(problem, members, add_erasure_weight(task.program.level, members, phi))

        description = f"{np.count_nonzero(phi)} balanced sets of {len(masses)} groups of answers"
        indivisible = task.used[: len(solution.rows) - 1]
        return Candidate(matrix, description, proof_by(InformationDual, indivisible, solution.rows, solution.pairs))


@dataclass(frozen=True, eq=False)
class _Task:
    """The inputs that occur, `used`, by falling probability, and the program of a problem.

    The first inputs are indivisible. rest : the masses of the others.
    """

    used: Index
    rest: Array
    program: SharesProgram
    deadline: Deadline

    @classmethod
    def from_prior(cls, prior: Array, problem: Problem) -> _Task:
        order = np.argsort(-prior, kind="stable")
        used_inputs = order[prior[order] > 0]
        p = prior[used_inputs]
        n = len(p)
        has_cap = problem.cap is not None
        if n > (CAPPED_MAX_INPUTS_EXACT if has_cap else MAX_INPUTS_EXACT):
            n = min(
                CAPPED_MAX_INDIVISIBLE if has_cap else MAX_INDIVISIBLE_INPUTS,
                int((p > MIN_RELATIVE_MASS * best_mass(problem.epsilon)).sum()),
            )
        rest = p[n:]
        mass = float(rest.sum())
        spread = 1 - float(((rest / mass) ** 2).sum()) if mass > 0 else 1.0
        return cls(
            used_inputs,
            rest,
            SharesProgram(p[:n], mass, spread, level_of(problem.epsilon), problem.cap),
            problem.deadline,
        )

    def best(self, solution: Shares) -> tuple[Index, Array, Members, Array]:
        """Build the sets that attain the solution, or an orbit.

        Without a cap, it is a program over sets; under a cap, an orbit or, for few inputs, the better of both.
        """
        if self.program.cap is None:
            return self.realised(solution)
        candidates = [self.orbit()] + ([self.realised(solution)] if len(self.used) <= MAX_PAIRED_INPUTS else [])
        return max(
            candidates, key=lambda choice: float(choice[3] @ _information(choice[2], choice[1], self.program.level))
        )

    def orbit(self) -> tuple[Index, Array, Members, Array]:
        """Build a 2-design that attains the solution, where all pairs use the cap equally.

        Its points are groups of nearly equal probability.
        """
        program, k = self.program, len(self.used)
        level, eta = program.level, program.cap or 0.0
        p = np.concatenate([program.indivisible, self.rest])

        def weight(family: Orbit) -> float:
            g, size = family.points, family.size
            return min(1 / (level + size / g), eta * g * (g - 1) / (size * (g - size)))

        families = sorted(orbits(max(k + k // 4, 5)), key=lambda family: family.length)
        fractions = np.array([family.size / family.points for family in families])
        estimates = information_of(fractions, 1 - fractions, level) * np.array([weight(family) for family in families])
        first: dict[tuple[int, int], Orbit] = {}
        for number in np.argsort(-estimates, kind="stable"):
            first.setdefault((families[number].points, families[number].size), families[number])
        best, best_information = None, -math.inf
        for family in list(first.values())[:MAX_ORBITS_TRIED]:
            groups, sets = _balanced_groups(p, family.points), family.sets()
            masses = np.asarray(np.bincount(groups, p, family.points), dtype=np.float64)
            information = weight(family) * float(_information(sets, masses, level).mean())
            if information > best_information:
                best, best_information = (
                    (groups, masses, sets, np.full(len(sets), weight(family) / len(sets))),
                    information,
                )
            if self.deadline.over():
                break
        assert best is not None
        return best

    def realised(self, solution: Shares) -> tuple[Index, Array, Members, Array]:
        """Build sets of groups that attain the solution.

        Returns the group of each used input, the groups' masses, sets of groups (m, groups), and their weights.
        """
        program, n = self.program, len(self.program.indivisible)
        level = program.level
        if not len(self.rest):
            phi = program.weighed(solution.sets, solution.shares, SIMPLEX).phi
            return np.arange(n), program.indivisible, solution.sets[phi > 0] > 0.5, phi[phi > 0]
        rng = np.random.default_rng(len(self.used))
        groups = self.grouped(solution, rng)
        sums = np.asarray(np.bincount(groups, self.rest), dtype=np.float64)
        masses = np.concatenate([program.indivisible, sums])
        pool = self.pool(solution, sums, rng)
        values = _information(pool, masses, level)
        mean = level + pool @ masses
        rows = np.concatenate([solution.rows[:n], solution.rows[n] * sums / program.rest])
        gains = (values - level * math.fsum(rows) - pool @ rows) / mean
        singles = np.eye(len(masses), dtype=bool)
        basic = np.vstack([singles, ~singles])
        sample = rng.choice(len(pool), min(INITIAL_SETS // 2, len(pool)), replace=False)
        set_numbers = np.union1d(np.argsort(-gains, kind="stable")[: INITIAL_SETS // 2], sample)
        caps = cut_caps(len(masses), program.cap)
        for _ in self.deadline.part(0.5, 1.0).rounds(range(MAX_SET_ROUNDS if program.cap is None else CAPPED_ROUNDS)):
            sets = np.vstack([basic, pool[set_numbers]])
            pool_values = np.concatenate([_information(basic, masses, level), values[set_numbers]])
            weighted_sets = weigh_sets(sets.T.astype(np.float64), pool_values, level, caps)
            value, pairs = float(pool_values @ weighted_sets.weights), weighted_sets.pairs()
            if solution.bound <= value * (1 + BALANCED_GAP):
                break
            cut_prices = ((pool @ pairs) * ~pool).sum(axis=1) if pairs.any() else 0.0
            gains = (values - level * math.fsum(weighted_sets.rows) - pool @ weighted_sets.rows - cut_prices) / mean
            gains[set_numbers] = 0.0
            gaining = np.argsort(-gains)[:MAX_SETS_PER_ROUND]
            gaining = gaining[gains[gaining] > 0]
            if not len(gaining):
                break
            set_numbers = np.concatenate([set_numbers, gaining])
        single_weight = 1 / (1 + len(self.used) * level)
        p = np.concatenate([program.indivisible, self.rest])
        if program.cap is None and single_weight * float(information_of(p, 1 - p, level).sum()) > value:
            k = len(p)
            return np.arange(k), p, np.eye(k, dtype=bool), np.full(k, single_weight)
        is_used = weighted_sets.weights > 0
        return np.concatenate([np.arange(n), n + groups]), masses, sets[is_used], weighted_sets.weights[is_used]

    def grouped(self, solution: Shares, rng: np.random.Generator) -> Index:
        """Group the rest into groups of different masses.

        The groups are so small that patterns have about `GROUPS_PER_SET` of them or more.
        """
        program = self.program
        mean_share = float(solution.shares @ solution.phi) / max(float(solution.phi.sum()), 1e-300)
        fewest, largest = GROUP_COUNT_RANGE
        target_count = min(GROUPS_PER_SET / max(mean_share, 1e-9), largest)
        count = int(max(target_count, fewest - len(program.indivisible)))
        if len(self.rest) <= count:
            return np.arange(len(self.rest))
        remaining_mass = rng.uniform(0.5, 1.5, count)
        remaining_mass *= program.rest / remaining_mass.sum()
        groups = np.zeros(len(self.rest), dtype=np.intp)
        for x, mass in enumerate(self.rest):
            groups[x] = np.argmax(remaining_mass)
            remaining_mass[groups[x]] -= mass
        return np.unique(groups, return_inverse=True)[1].reshape(-1)

    def pool(self, solution: Shares, sums: Array, rng: np.random.Generator) -> Members:
        """Build the pool of sets.

        Their part among the indivisible inputs nearly gains, with their fraction of the rest.
        """
        program = self.program
        sets_per_pattern = min(400, 2 ** len(sums)) if len(sums) < 60 else 400
        max_patterns = POOL_SIZE // sets_per_pattern
        all_sets = program.all_sets
        shares, gain = program.price(all_sets, solution.rows, solution.pairs)
        gain = gain / (program.level + all_sets @ program.indivisible + program.rest * shares)
        # The sets that the program uses cover all inputs equally; others that nearly gain are often too many.
        active = np.argsort(-solution.phi)[: max_patterns // 2]
        active = active[solution.phi[active] > 0]
        nearly_gaining = np.argsort(-gain)[: max(max_patterns - len(active), 1)]
        indivisible_parts = np.vstack([solution.sets[active], all_sets[nearly_gaining]]) > 0.5
        targets = program.rest * np.concatenate([solution.shares[active], shares[nearly_gaining]])
        sets_per_pattern = max(sets_per_pattern, min(POOL_SIZE // len(indivisible_parts), 5000))
        parts = [subsets_near(sums, target, sets_per_pattern, rng) for target in targets]
        repeated_parts = np.repeat(indivisible_parts, [len(part) for part in parts], axis=0)
        return np.unique(np.hstack([repeated_parts, np.vstack(parts)]), axis=0)


def _information(sets: Members, masses: Array, level: float) -> Array:
    return information_of(sets @ masses, ~sets @ masses, level)


def _balanced_groups(masses: Array, count: int) -> Index:
    """Assign each mass to one of `count` groups, such that their sums are nearly equal."""
    groups, sums = np.zeros(len(masses), dtype=np.intp), np.zeros(count)
    for x in np.argsort(-masses, kind="stable"):
        groups[x] = np.argmin(sums)
        sums[groups[x]] += masses[x]
    return groups
