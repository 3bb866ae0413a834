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

ALL = 20  # Up to this many inputs, all of them are taken whole: the program is exact
WHOLE = 16  # The most inputs that are taken whole among more
# Inputs of less than this share of the best mass are not taken whole, because sets of them have nearly any mass.
NOTABLE = 2.0**-6
GROUPS = (45, 200)  # The fewest and the most groups that the inputs are put into, if there are enough inputs
MEMBERS = 6  # A set has about this many groups, or more
POOL = 60_000  # The number of sets in the pool, from which sets join the program
STARTED = 3000  # The number of sets in the first program
JOIN = 500  # The most sets that join in one round
ROUNDS = 8  # The most rounds
# The same under a cap on total variation, where programs are larger by all pairs of inputs.
CAPPED_ALL, CAPPED_WHOLE, CAPPED_ROUNDS = 14, 9, 2
PAIRED = 36  # The most inputs for which the program has all pairs
ROOM = 2.0**-38  # The share of the weights that is left to erasure under a cap
TRIED = 24  # The most orbits (families of sets, `kernel.sets`) that are looked at
MAX_ANSWERS = 2000  # The most answers: a channel may need as many reports, which takes a gigabyte


@dataclass(frozen=True)
class BalancedSets(
    Method, reference="[KOV14]", needs=(needs_information, needs_patterns), preference=190, by_cvxpy=True
):
    """For mutual information: reports favour sets of nearly the best probability, and all answers equally [KOV14].

    A pattern's information depends on the probability of its set alone. Answers of large probability are taken whole,
    and the rest as if it could be divided at will: that makes a small linear program, whose dual values prove the
    bound. Then sets of the rest are looked for that have the shares in the solution, where small answers are put into
    groups. Where all answers are equally likely, `SymmetricSets` is used.

    >>> from ldpopt.design import LocalDP, MutualInformation, optimal_channel
    >>> prior = [(x + 1) / 20100 for x in range(200)]
    >>> design = optimal_channel(MutualInformation(prior), LocalDP(1.0), method=BalancedSets())
    >>> round(design.value, 6), design.certified
    (0.123302, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs mutual information under LocalDP."""
        if problem.utility.size > MAX_ANSWERS:
            return Limit(f"{problem.utility.size} answers make channels too large to hold (at most {MAX_ANSWERS})")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel whose reports favour the sets that were found."""
        if not refusal(symmetric := SymmetricSets(), problem):
            return symmetric.find(problem, ask)
        prior = np.asarray(problem.utility.prior)
        prior = prior / prior.sum()
        posed = _Posed.of(prior, problem)
        solved = posed.program.solve(problem.deadline.part(0.0, 0.5))
        classes, masses, sets, phi = posed.best(solved)
        if problem.cap is not None:
            phi = phi * (1 - ROOM)  # so that the cap holds when measured, without a repair
        inside = np.zeros((len(prior), len(phi)), dtype=bool)
        inside[posed.used] = sets[:, classes].T
        inside[prior == 0] = inside[posed.used[0]]
        matrix = pattern_matrix(problem, inside, add_erasure_weight(posed.program.level, inside, phi))

        how = f"{np.count_nonzero(phi)} balanced sets of {len(masses)} groups of answers"
        whole = posed.used[: len(solved.rows) - 1]
        return Candidate(matrix, how, proof_by(InformationDual, whole, solved.rows, solved.pairs))


@dataclass(frozen=True, eq=False)
class _Posed:
    """used : the inputs that occur, by falling probability; the first are taken whole. rest : the others' masses."""

    used: Index
    rest: Array
    program: SharesProgram
    deadline: Deadline

    @classmethod
    def of(cls, prior: Array, problem: Problem) -> _Posed:
        order = np.argsort(-prior, kind="stable")
        used = order[prior[order] > 0]
        p = prior[used]
        n = len(p)
        capped = problem.cap is not None
        if n > (CAPPED_ALL if capped else ALL):
            n = min(CAPPED_WHOLE if capped else WHOLE, int((p > NOTABLE * best_mass(problem.epsilon)).sum()))
        rest = p[n:]
        mass = float(rest.sum())
        spread = 1 - float(((rest / mass) ** 2).sum()) if mass > 0 else 1.0
        return cls(
            used, rest, SharesProgram(p[:n], mass, spread, level_of(problem.epsilon), problem.cap), problem.deadline
        )

    def best(self, solved: Shares) -> tuple[Index, Array, Members, Array]:
        """Without a cap, by a program over sets; under a cap by an orbit or, for few inputs, the better of both."""
        if self.program.cap is None:
            return self.realised(solved)
        tried = [self.orbit()] + ([self.realised(solved)] if len(self.used) <= PAIRED else [])
        return max(tried, key=lambda choice: float(choice[3] @ _information(choice[2], choice[1], self.program.level)))

    def orbit(self) -> tuple[Index, Array, Members, Array]:
        """Groups of nearly equal probability as the points of a 2-design, in which all pairs use the cap alike."""
        program, k = self.program, len(self.used)
        level, eta = program.level, program.cap or 0.0
        p = np.concatenate([program.own, self.rest])

        def weight(family: Orbit) -> float:
            g, size = family.points, family.size
            return min(1 / (level + size / g), eta * g * (g - 1) / (size * (g - size)))

        listed = sorted(orbits(max(k + k // 4, 5)), key=lambda family: family.length)
        share = np.array([family.size / family.points for family in listed])
        hoped = information_of(share, 1 - share, level) * np.array([weight(family) for family in listed])
        first: dict[tuple[int, int], Orbit] = {}
        for number in np.argsort(-hoped, kind="stable"):
            first.setdefault((listed[number].points, listed[number].size), listed[number])
        best, most = None, -math.inf
        for family in list(first.values())[:TRIED]:
            which, sets = _spread(p, family.points), family.sets()
            masses = np.asarray(np.bincount(which, p, family.points), dtype=np.float64)
            information = weight(family) * float(_information(sets, masses, level).mean())
            if information > most:
                best, most = (which, masses, sets, np.full(len(sets), weight(family) / len(sets))), information
            if self.deadline.over():
                break
        assert best is not None
        return best

    def realised(self, solved: Shares) -> tuple[Index, Array, Members, Array]:
        """The group of each used input, the groups' masses, sets of groups (m, groups), and their weights."""
        program, n = self.program, len(self.program.own)
        level = program.level
        if not len(self.rest):
            phi = program.weighed(solved.sets, solved.shares, SIMPLEX).phi
            return np.arange(n), program.own, solved.sets[phi > 0] > 0.5, phi[phi > 0]
        rng = np.random.default_rng(len(self.used))
        groups = self.grouped(solved, rng)
        sums = np.asarray(np.bincount(groups, self.rest), dtype=np.float64)
        masses = np.concatenate([program.own, sums])
        pool = self.pool(solved, sums, rng)
        worth = _information(pool, masses, level)
        mean = level + pool @ masses
        rows = np.concatenate([solved.rows[:n], solved.rows[n] * sums / program.rest])
        gains = (worth - level * math.fsum(rows) - pool @ rows) / mean
        singles = np.eye(len(masses), dtype=bool)
        basic = np.vstack([singles, ~singles])
        some = rng.choice(len(pool), min(STARTED // 2, len(pool)), replace=False)
        chosen = np.union1d(np.argsort(-gains, kind="stable")[: STARTED // 2], some)
        caps = cut_caps(len(masses), program.cap)
        for _ in self.deadline.part(0.5, 1.0).rounds(range(ROUNDS if program.cap is None else CAPPED_ROUNDS)):
            sets = np.vstack([basic, pool[chosen]])
            of_sets = np.concatenate([_information(basic, masses, level), worth[chosen]])
            weighed = weigh_sets(sets.T.astype(np.float64), of_sets, level, caps)
            value, pairs = float(of_sets @ weighed.weights), weighed.pairs()
            if solved.bound <= value * (1 + BALANCED_GAP):
                break
            cut = ((pool @ pairs) * ~pool).sum(axis=1) if pairs.any() else 0.0
            gains = (worth - level * math.fsum(weighed.rows) - pool @ weighed.rows - cut) / mean
            gains[chosen] = 0.0
            new = np.argsort(-gains)[:JOIN]
            new = new[gains[new] > 0]
            if not len(new):
                break
            chosen = np.concatenate([chosen, new])
        alone = 1 / (1 + len(self.used) * level)
        p = np.concatenate([program.own, self.rest])
        if program.cap is None and alone * float(information_of(p, 1 - p, level).sum()) > value:
            k = len(p)
            return np.arange(k), p, np.eye(k, dtype=bool), np.full(k, alone)
        used = weighed.weights > 0
        return np.concatenate([np.arange(n), n + groups]), masses, sets[used], weighed.weights[used]

    def grouped(self, solved: Shares, rng: np.random.Generator) -> Index:
        """Groups of the rest, with different masses, so small that patterns have about `MEMBERS` of them or more."""
        program = self.program
        share = float(solved.shares @ solved.phi) / max(float(solved.phi.sum()), 1e-300)
        least, most = GROUPS
        wanted = min(MEMBERS / max(share, 1e-9), most)
        count = int(max(wanted, least - len(program.own)))
        if len(self.rest) <= count:
            return np.arange(len(self.rest))
        room = rng.uniform(0.5, 1.5, count)
        room *= program.rest / room.sum()
        which = np.zeros(len(self.rest), dtype=np.intp)
        for x, mass in enumerate(self.rest):
            which[x] = np.argmax(room)
            room[which[x]] -= mass
        return np.unique(which, return_inverse=True)[1].reshape(-1)

    def pool(self, solved: Shares, sums: Array, rng: np.random.Generator) -> Members:
        """The pool of sets: their part among the inputs taken whole, with their share of the rest, nearly gains."""
        program = self.program
        each = min(400, 2 ** len(sums)) if len(sums) < 60 else 400
        most = POOL // each
        every = program.every
        shares, gain = program.price(every, solved.rows, solved.pairs)
        gain = gain / (program.level + every @ program.own + program.rest * shares)
        # The sets that the program uses cover all inputs alike; others that nearly gain are often too many to take.
        used = np.argsort(-solved.phi)[: most // 2]
        used = used[solved.phi[used] > 0]
        near = np.argsort(-gain)[: max(most - len(used), 1)]
        own = np.vstack([solved.sets[used], every[near]]) > 0.5
        targets = program.rest * np.concatenate([solved.shares[used], shares[near]])
        each = max(each, min(POOL // len(own), 5000))
        parts = [subsets_near(sums, target, each, rng) for target in targets]
        repeated = np.repeat(own, [len(part) for part in parts], axis=0)
        return np.unique(np.hstack([repeated, np.vstack(parts)]), axis=0)


def _information(sets: Members, masses: Array, level: float) -> Array:
    return information_of(sets @ masses, ~sets @ masses, level)


def _spread(masses: Array, count: int) -> Index:
    """The group of each mass, such that the sums of `count` groups are nearly equal."""
    which, load = np.zeros(len(masses), dtype=np.intp), np.zeros(count)
    for x in np.argsort(-masses, kind="stable"):
        which[x] = np.argmin(load)
        load[which[x]] += masses[x]
    return which
