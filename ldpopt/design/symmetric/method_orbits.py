"""The optimal channel at a prior of up to four different probabilities: a program over orbits of sets of answers.

The program (`symmetric.program_orbits`) is exact, and its multipliers prove it (`symmetric.proof_orbits`). An orbit
holds too many sets. A few sets with the same rows and distances are enough (`symmetric.families`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_information, needs_patterns, proof_by
from ldpopt.design.kernel.sets import Members, level_of
from ldpopt.design.patterns.method import add_erasure_weight, pattern_matrix
from ldpopt.design.problems.problem import Problem
from ldpopt.design.symmetric.families import best_turning, coupled_rotations, weigh_spread_sets
from ldpopt.design.symmetric.program_orbits import orbit_program
from ldpopt.design.symmetric.proof_orbits import MAX_GROUPS, MAX_ORBITS, Groups, OrbitDual
from ldpopt.numbers.tolerances import COARSE_GAP
from ldpopt.values.distribution import Array, Index

MAX_ENTRIES = 2**22
"""Entries of a channel."""
CAP_MARGIN, REPORT_MARGIN = 2.0**-38, 2.0**-50
"""The fraction of the weights that is left to erasure under a cap, so that the cap holds when measured. The second
fraction is for each report, because the rounding adds up."""


@dataclass(frozen=True)
class OrbitProgram(
    Method, reference="[KOV14, Thm 4; YB]", needs=(needs_information, needs_patterns), preference=185, by_cvxpy=True
):
    """The exact design for mutual information at a prior of up to four different probabilities [KOV14, Thm 4; YB].

    Answers of equal probability are treated equally. Only the numbers of answers of each probability that a report
    favors count: a linear program over up to a million of them, under `LocalDP`, with or without `TotalVariation`.

    >>> from ldpopt.design import LocalDP, MutualInformation, TotalVariation, optimal_channel
    >>> prior = [0.04] * 10 + [0.02] * 30
    >>> design = optimal_channel(MutualInformation(prior), [LocalDP(1.0), TotalVariation(0.2)], method=OrbitProgram())
    >>> round(design.value, 6), design.certified
    (0.10443, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs few groups of equal probability, with a number of orbits that can be enumerated.
        """
        prior = np.asarray(problem.utility.prior)
        groups = Groups.from_prior(prior)
        if len(groups.values) > MAX_GROUPS:
            return f"it takes up to {MAX_GROUPS} different probabilities of answers, and here are {len(groups.values)}"
        if groups.count > MAX_ORBITS:
            return Limit(f"the prior has {groups.count} orbits of sets of answers, and it takes at most {MAX_ORBITS}")
        if problem.eta <= 0:
            return "a channel of eta 0 says nothing"
        max_reports = MAX_ENTRIES // len(prior)
        if problem.cap is None:
            has_room = int(groups.sizes.sum()) * (len(groups.values) + 1) <= max_reports
        else:
            has_room = best_turning(groups.sizes, max_reports) is not None
        if not has_room:
            sizes = ", ".join(map(str, groups.sizes.tolist()))
            return Limit(f"groups of {sizes} answers of equal probability need more reports than a matrix can hold")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the channel of few sets of the best orbits, and the multipliers of the orbits."""
        prior = np.asarray(problem.utility.prior)
        groups, level = Groups.from_prior(prior), level_of(problem.epsilon)
        orbits, best = orbit_program(groups, level, problem.cap, problem.deadline)
        is_used = best.weights > 0
        orbits, weights = orbits[:, is_used], best.weights[is_used]
        sets, phi, lost_weight = _sets(problem, groups, orbits, weights)
        order = np.argsort(groups.which, kind="stable")
        order = order[groups.which[order] >= 0]
        members = np.zeros((len(prior), len(phi)), dtype=bool)
        members[order] = sets.T
        members[groups.which < 0] = members[order[0]]
        matrix = pattern_matrix(problem, members, add_erasure_weight(level, members, phi))
        description = (
            f"orbit program over {groups.count} orbits of sets, {orbits.shape[1]} of them realized by {len(phi)} sets"
        )
        proof = proof_by(OrbitDual, groups.values, best.rows, best.pairs())
        if not lost_weight > 0:
            return Candidate(matrix, description, proof)
        shortfall = "no few sets of the best orbits that separate all pairs of answers as evenly are known"
        return Candidate(matrix, description, proof, COARSE_GAP, note=shortfall, shortfall=shortfall)


def _sets(problem: Problem, groups: Groups, orbits: Index, weights: Array) -> tuple[Members, Array, float]:
    """Find (m, k) sets of the used answers, group by group, and their weights (m,).

    Also returns the lost fraction of the weights.
    """
    sizes = groups.sizes
    if not len(weights):
        return np.zeros((0, int(sizes.sum())), dtype=bool), np.zeros(0), 0.0
    if problem.cap is None:
        parts = [coupled_rotations(sizes, counts) for counts in orbits.T]
        phi = np.concatenate([weight * set_weights for weight, (_, set_weights) in zip(weights, parts, strict=True)])
        return np.vstack([sets for sets, _ in parts]), phi, 0.0
    turning = best_turning(sizes, MAX_ENTRIES // len(groups.which))
    assert turning is not None
    rng = np.random.default_rng(sizes.tolist())
    sets, phi = weigh_spread_sets(turning, orbits, weights, problem.cap, rng)
    total = math.fsum(weights)
    margin = CAP_MARGIN + REPORT_MARGIN * len(phi)
    return sets, phi * (1 - margin), max(0.0, 1 - math.fsum(phi) / total - 1e-9)
