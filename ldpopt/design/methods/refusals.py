"""Conditions that several methods share: too large programs, or other constraints than pure LDP, refused in words."""

from __future__ import annotations

import math

from ldpopt.design.candidate import Limit
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import ColumnUtility

INPUTS = 1000  # With more inputs than this, pairs are not listed to be counted: the list would take all memory
# The most inputs, and the most constrained pairs, at every likelihood ratio; near these a design takes very long.
LABELLED, PAIRS = 200, 5000


def only(problem: Problem, *kinds: type) -> bool:
    """Whether every constraint is of one of these kinds."""
    return all(isinstance(constraint, kinds) for constraint in problem.constraints)


def pairs_of(problem: Problem, inputs: int) -> int:
    """The number of constrained pairs of inputs; `LocalDP` between all inputs needs none.

    With more than `INPUTS` inputs, all ordered pairs are taken to be constrained.
    """
    free = problem.free
    if free is None or (only(free, LocalDP) and free.symmetric):
        return 0
    return inputs * (inputs - 1) if inputs > INPUTS else sum(len(term) for term in problem.terms)


def too_many_pairs(problem: Problem, inputs: int) -> str:
    """Why a method whose programs have all constrained pairs at every ratio refuses; empty if it does not."""
    if inputs > LABELLED:
        return Limit(f"{inputs} inputs are too many for its programs (at most {LABELLED})")
    count = pairs_of(problem, inputs)
    if count > PAIRS:
        return Limit(f"its programs would constrain {count} pairs of inputs, and it takes at most {PAIRS}")
    return ""


def too_large(problem: Problem, inputs: int, outputs: int, most: int) -> str:
    """Why a method for programs of up to `most` entries refuses; empty if it does not.

    Entries are the outputs, times the inputs and the constrained pairs of inputs.
    """
    entries = outputs * (inputs + pairs_of(problem, inputs))
    return Limit(f"its programs would have {entries} entries, and it takes at most {most}") if entries > most else ""


def needs_columns(problem: Problem) -> str:
    """Why a method for sums over outputs refuses; empty if it does not."""
    if isinstance(problem.utility, ColumnUtility):
        return ""
    return f"{problem.utility.name} is no sum over outputs of functions of the column"


def needs_ratios(problem: Problem) -> str:
    """Why a method that chooses outputs by the likelihood ratio of two hypotheses refuses; empty if it does not."""
    if problem.utility.pair is None:
        return f"it goes by the likelihood ratio of two hypotheses, and {problem.utility.name} has none, or several"
    fixed = problem.given or problem.placed
    return "constraints fix the outputs, which it chooses by likelihood ratio" if fixed else ""


def needs_pure_ldp(problem: Problem) -> str:
    """Why a method for two hypotheses under `LocalDP`, with `TotalVariation` or without, refuses; empty if not."""
    if problem.utility.pair is None:
        return needs_ratios(problem)
    if not problem.plain:
        return "it takes LocalDP and TotalVariation between all inputs, and there are other constraints"
    if math.isinf(problem.epsilon):
        return "it needs a LocalDP constraint; Erasure solves a cap on total variation alone"
    return ""


def needs_patterns(problem: Problem) -> str:
    """Why a method whose columns are staircase patterns refuses; empty if not."""
    if problem.plain and math.isfinite(problem.epsilon):
        return ""
    return "staircase patterns are optimal under LocalDP between all inputs, with TotalVariation or without"
