"""Find a channel with a given number of outputs for a column utility by local search over tangents [CCP].

The module also detects impossible constraints on outputs, and constraints that the unrestricted optimum satisfies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_columns, proof_by, too_large
from ldpopt.design.constraints.base import meets_constraints, outputs_of
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.outputs.program import AlphabetProgram
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import columns_of, gradients_of
from ldpopt.design.utilities.divergence import tangents_from_difference
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import CLIMB_GAIN
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Rng, generator, optional, positive_integer, random

DEFAULT_STARTS = 20  # The number of starts by default
MAX_CLIMB_STEPS = 60
MAX_SEARCH_INPUTS = 200  # With more inputs, one start takes minutes
# Outputs times inputs and constrained pairs of inputs: a start solves dozens of programs of that size.
MAX_PROGRAM_ENTRIES = 100_000
# Entries of a channel: the gains are parameters, and the memory of the program grows with their square.
MAX_CHANNEL_ENTRIES = 10_000


@dataclass(frozen=True)
class LocalSearch(
    Method,
    starts=positive_integer,
    rng=random,
    outputs=optional(positive_integer),
    reference="[CCP]",
    needs=(needs_columns,),
    preference=240,
    by_cvxpy=True,
):
    """Local search from many starts, for every convex constraint and any alphabet: a channel, but no proof [CCP].

    It takes up to 200 inputs, channels of up to 10,000 entries, and programs of up to 100,000 entries. The entries of a
    program are the outputs, times the inputs and the constrained pairs of inputs. Near these limits it takes very long.

    - `starts` : how many random vertices of the constraint set to climb from, at least 1.
    - `rng` : a numpy Generator or a seed; by default 0, so that designs can be repeated.
    - `outputs` : the number of outputs, for constraints that leave it free; by default one more than inputs.

    >>> from ldpopt.design import ApproximateLDP, Divergence, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> found = optimal_channel(u, ApproximateLDP(1.0, 0.05), method=LocalSearch(5), certify=False)
    >>> round(found.value, 6), found.method
    (0.05027, 'local search from 5 starts')
    """

    starts: int = DEFAULT_STARTS
    rng: Rng = field(default=None, compare=False)
    outputs: int | None = None

    @classmethod
    def default(cls) -> LocalSearch:
        """Return a search from 8 starts."""
        return cls(8)

    def refuses(self, problem: Problem) -> str:
        """Return why it does not apply: it needs a column utility, and programs that are not too large."""
        k = len(problem.inputs)
        if k > MAX_SEARCH_INPUTS:
            return Limit(f"{k} inputs make programs too large to search with (at most {MAX_SEARCH_INPUTS})")
        m = outputs_of(problem.output_constraints, k) if problem.output_constraints else self.outputs or k + 1
        if reason := too_large_to_climb(problem, m):
            return Limit(
                reason
                if problem.output_constraints or self.outputs
                else f"{reason}; LocalSearch(starts, outputs=...) has fewer"
            )
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find the best channel of all starts."""
        climb = Climb.from_problem(problem, self.outputs)
        k, m = climb.program.shape
        # Reports beyond the number of inputs start as copies, which the first program merges or changes.
        initial_matrices = (np.eye(k)[:, np.arange(m) % k] + 0.1,) if k <= m else ()
        matrix, _ = climb.best(self.starts - len(initial_matrices), generator(self.rng, 0), initial_matrices)
        return Candidate(matrix, f"local search from {self.starts} starts")


def too_large_to_climb(problem: Problem, outputs: int) -> str:
    """Return why channels with so many outputs cannot be searched; empty if they can."""
    k = len(problem.inputs)
    if k * outputs > MAX_CHANNEL_ENTRIES:
        return Limit(f"its channels would have {k * outputs} entries, and it takes at most {MAX_CHANNEL_ENTRIES}")
    return too_large(problem, k, outputs, MAX_PROGRAM_ENTRIES)


@dataclass(frozen=True, eq=False)
class Climb:
    """The search: a program, and functions of a matrix (k, m): utility, gradients (criteria, m, k) and repair."""

    program: AlphabetProgram
    value: Callable[[Array], float]
    gradients: Callable[[Array], Array]
    raise_entries: Callable[[Array], Array] = np.asarray
    deadline: Deadline = UNLIMITED

    @classmethod
    def from_problem(cls, problem: Problem, outputs: int | None = None) -> Climb:
        """Build the search for a column utility, on its reduced inputs if it has two hypotheses."""
        utility, k, deadline = problem.utility, len(problem.inputs), problem.deadline
        m = outputs_of(problem.output_constraints, k) if problem.output_constraints else outputs or k + 1
        criteria = 1 if utility.pair is not None else len(columns_of(utility, np.ones((k, 1))))
        program = AlphabetProgram((k, m), problem.terms, problem.output_constraints, problem.user_expressions, criteria)
        if utility.pair is None:

            def value(q: Array) -> float:
                return float(columns_of(utility, q).sum(axis=1).min())

            return cls(program, value, partial(gradients_of, utility), deadline=deadline)
        pair, f, smallest_ratio = problem.reduction.pair, utility.f, math.exp(-problem.epsilon)

        def raise_entries(q: Array) -> Array:
            """Return the matrix with ratios within epsilon and rows that sum to one, close to its later repair."""
            rows = np.maximum(q, smallest_ratio * q.max(axis=0))
            return np.asarray(rows / rows.sum(axis=1, keepdims=True))

        return cls(
            program,
            lambda q: float(f.excess_of(pair.difference @ raise_entries(q), pair.p1 @ raise_entries(q)).sum()),
            lambda q: tangents_from_difference(f, pair.difference, pair.p1, raise_entries(q))[None],
            raise_entries,
            deadline,
        )

    def best(
        self, starts: int, rng: np.random.Generator, initial_matrices: Sequence[Array] = ()
    ) -> tuple[Array, float]:
        """Return the best matrix from the initial ones and `starts` random vertices, and its value."""
        k, m = self.program.shape
        best_matrix, best_value = None, -np.inf
        failure = SolverError("local search: no start led to a channel")
        for number in self.deadline.rounds(range(len(initial_matrices) + starts)):
            toward = rng.normal(size=(m, k)) if number >= len(initial_matrices) else np.zeros((m, k))
            toward = np.broadcast_to(toward, (self.program.criteria, m, k))
            try:
                q, value = self.climb(
                    initial_matrices[number] if number < len(initial_matrices) else self.program.solve(toward)[0]
                )
            except SolverError as error:
                failure = error
                continue
            if value > best_value:
                best_matrix, best_value = q, value
        if best_matrix is None:
            raise failure
        return best_matrix, best_value

    def climb(self, q: Array) -> tuple[Array, float]:
        """Return a local maximum reached from `q`, (k, m) with any non-negative entries, and its value."""
        best_matrix, best_value = q, -np.inf
        for _ in self.deadline.inner.rounds(range(MAX_CLIMB_STEPS)):
            q = self.program.solve(self.gradients(best_matrix))[0]
            value, previous_value = self.value(q), best_value
            if best_value == -np.inf or value > best_value:
                best_matrix, best_value = q, value
            if not best_value - previous_value > CLIMB_GAIN * max(abs(best_value), 1e-12):
                break
        return best_matrix, best_value


MAX_UNBUDGETED_INPUTS = (
    16  # Inputs for the optimum without given outputs, if constraints other than LDP and total variation are present
)


def optimum_within_budget(problem: Problem, ask: Ask) -> Candidate | None:
    """Return the optimum without constraints on the outputs if it meets them; else None.

    It is tried if it is computed quickly. Under constraints other than pure LDP and total variation it is not tried for
    one or two outputs, which are rarely enough, nor for more than `MAX_UNBUDGETED_INPUTS` inputs. Raises `InvalidInput`
    if no channel meets all under pure LDP.
    """
    k, outputs = problem.utility.size, outputs_of(problem.output_constraints, problem.utility.size)
    is_allowed = np.logical_and.reduce([constraint.allowed((k, outputs)) for constraint in problem.output_constraints])
    if problem.epsilon < np.inf and not is_allowed.all(axis=0).any():
        raise InvalidInput(
            "constraints: expected an output that every input allows, because pure LDP makes what is impossible under "
            "one input impossible under all [GI, Def 6], got a mask without one"
        )
    relaxed_problem = problem.without_output_constraints
    if relaxed_problem is None or problem.fixes_output_order:
        return None
    is_hard = (
        outputs < 3
        or len(problem.inputs) > MAX_UNBUDGETED_INPUTS
        or problem.user_expressions
        or problem.utility.pair is None
    )
    if not relaxed_problem.has_only_ldp_and_tv and is_hard:
        return None
    with suppress(SolverError, InvalidInput):
        design = ask(problem.original_utility, relaxed_problem.constraints)
        if meets_constraints(design.channel, problem.output_constraints):
            matrix, proof = design.channel.matrix, design.certificate
            if problem.utility.pair is not None and problem.symmetric:
                matrix = matrix[np.unique(problem.reduction.classes, return_index=True)[1]]
            prove = None if proof is None else proof_by(Relaxed, proof)
            return Candidate(matrix, design.method, prove, reference=design.reference)
    return None
