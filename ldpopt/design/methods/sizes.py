"""How large the programs of a problem would be, told before they are posed: what cannot be held is refused in words."""

from __future__ import annotations

from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.problems.problem import Problem

INPUTS = 1000
"""Of more inputs, pairs are not even counted: a list of all of them would take all memory."""


LABELLED, PAIRS = 200, 5000
"""The most inputs, and constrained pairs of them, at every likelihood ratio: near these a design takes very long."""


def pairs_of(problem: Problem, inputs: int) -> int:
    """How many pairs of inputs the constraints are about; `LocalDP` between all inputs is a box and has none.

    Only up to `INPUTS` inputs are they listed; of more, all ordered pairs are taken to count.
    """
    free = problem.free
    if free is None or all(isinstance(c, LocalDP) and c.symmetric for c in free.constraints):
        return 0
    return inputs * (inputs - 1) if inputs > INPUTS else sum(len(term) for term in problem.terms)


def too_many_pairs(problem: Problem, inputs: int) -> str:
    """Why a method refuses whose programs have all constrained pairs at every likelihood ratio; empty if not."""
    if inputs > LABELLED:
        return f"{inputs} inputs are too many for its programs (at most {LABELLED})"
    count = pairs_of(problem, inputs)
    if count > PAIRS:
        return f"its programs would constrain {count} pairs of inputs, and it takes at most {PAIRS}"
    return ""


def too_large(problem: Problem, inputs: int, outputs: int, most: int) -> str:
    """Why a method for programs of up to `most` entries, outputs times inputs and pairs of them, refuses; or empty."""
    entries = outputs * (inputs + pairs_of(problem, inputs))
    return f"its programs would have {entries} entries, and it takes at most {most}" if entries > most else ""
