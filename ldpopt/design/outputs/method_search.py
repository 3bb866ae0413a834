"""A column utility and a number of outputs -> a channel by local search over tangents [CCP].

For constraints on the outputs: which are impossible, and when the optimum without them meets them anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ldpopt.design.candidate import Ask, Candidate, Limit, Method, needs_columns, proved_by, too_large
from ldpopt.design.constraints.base import outputs_of, within
from ldpopt.design.kernel.proof import Relaxed
from ldpopt.design.outputs.program import AlphabetProgram
from ldpopt.design.problems.problem import Problem
from ldpopt.design.utilities.base import columns_of, gradients_of
from ldpopt.design.utilities.divergence import tangents_apart
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import CLIMB_GAIN
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Rng, generator, optional, positive_integer, random

STARTS = 20  # The number of starts by default
STEPS = 60
INPUTS = 200  # The most inputs; with more, one start takes minutes
# The most outputs times inputs and constrained pairs of inputs: a start solves dozens of programs of that size.
ENTRIES = 100_000
# The most entries of a channel: the program is posed for any gains, and its memory grows with their square.
CELLS = 10_000


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

    It takes up to 200 inputs, channels of up to 10,000 entries, and programs of up to 100,000 entries: outputs, times
    the inputs and the pairs of inputs that are constrained. Near these limits it takes very long.

    starts : how many random vertices of the constraint set to climb from, at least 1. rng : a numpy Generator or
    a seed; by default 0, so that designs can be repeated. outputs : the number of outputs, for constraints that
    leave it free; by default one more than inputs.

    >>> from ldpopt.design import ApproximateLDP, Divergence, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> found = optimal_channel(u, ApproximateLDP(1.0, 0.05), method=LocalSearch(5), certify=False)
    >>> round(found.value, 6), found.method
    (0.05027, 'local search from 5 starts')
    """

    starts: int = STARTS
    rng: Rng = field(default=None, compare=False)
    outputs: int | None = None

    @classmethod
    def usual(cls) -> LocalSearch:
        """From 8 starts."""
        return cls(8)

    def refuses(self, problem: Problem) -> str:
        """It needs a column utility, and programs that are not too large."""
        k = len(problem.inputs)
        if k > INPUTS:
            return Limit(f"{k} inputs make programs too large to search with (at most {INPUTS})")
        m = outputs_of(problem.given, k) if problem.given else self.outputs or k + 1
        if why := too_large_to_climb(problem, m):
            return Limit(why if problem.given or self.outputs else f"{why}; LocalSearch(starts, outputs=...) has fewer")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The best channel of all starts."""
        climb = Climb.of(problem, self.outputs)
        k, m = climb.program.shape
        # Reports beyond the number of inputs begin as copies, which the first program merges or changes.
        given = (np.eye(k)[:, np.arange(m) % k] + 0.1,) if k <= m else ()
        matrix, _ = climb.best(self.starts - len(given), generator(self.rng, 0), given)
        return Candidate(matrix, f"local search from {self.starts} starts")


def too_large_to_climb(problem: Problem, outputs: int) -> str:
    """Why channels with so many outputs cannot be searched; empty if they can."""
    k = len(problem.inputs)
    if k * outputs > CELLS:
        return Limit(f"its channels would have {k * outputs} entries, and it takes at most {CELLS}")
    return too_large(problem, k, outputs, ENTRIES)


@dataclass(frozen=True, eq=False)
class Climb:
    """The search: a program, and functions of a matrix (k, m): utility, gradients (criteria, m, k) and repair."""

    program: AlphabetProgram
    value: Callable[[Array], float]
    gradients: Callable[[Array], Array]
    raised: Callable[[Array], Array] = np.asarray
    deadline: Deadline = UNLIMITED

    @classmethod
    def of(cls, problem: Problem, outputs: int | None = None) -> Climb:
        """The search for a problem of a column utility, on its reduced inputs where it has two hypotheses."""
        utility, k, deadline = problem.utility, len(problem.inputs), problem.deadline
        m = outputs_of(problem.given, k) if problem.given else outputs or k + 1
        criteria = 1 if utility.pair is not None else len(columns_of(utility, np.ones((k, 1))))
        program = AlphabetProgram((k, m), problem.terms, problem.given, problem.others, criteria)
        if utility.pair is None:

            def value(q: Array) -> float:
                return float(columns_of(utility, q).sum(axis=1).min())

            return cls(program, value, partial(gradients_of, utility), deadline=deadline)
        pair, f, least = problem.reduction.pair, utility.f, math.exp(-problem.epsilon)

        def raised(q: Array) -> Array:
            """The matrix with ratios within epsilon and rows that sum to one, about as the repair will make it."""
            rows = np.maximum(q, least * q.max(axis=0))
            return np.asarray(rows / rows.sum(axis=1, keepdims=True))

        return cls(
            program,
            lambda q: float(f.excess_of(pair.difference @ raised(q), pair.p1 @ raised(q)).sum()),
            lambda q: tangents_apart(f, pair.difference, pair.p1, raised(q))[None],
            raised,
            deadline,
        )

    def best(self, starts: int, rng: np.random.Generator, given: Sequence[Array] = ()) -> tuple[Array, float]:
        """The best matrix from the `given` ones and `starts` random vertices, and its value."""
        k, m = self.program.shape
        champion, most = None, -np.inf
        failure = SolverError("local search: no start led to a channel")
        for number in self.deadline.rounds(range(len(given) + starts)):
            toward = rng.normal(size=(m, k)) if number >= len(given) else np.zeros((m, k))
            toward = np.broadcast_to(toward, (self.program.criteria, m, k))
            try:
                q, value = self.climb(given[number] if number < len(given) else self.program.solve(toward)[0])
            except SolverError as error:
                failure = error
                continue
            if value > most:
                champion, most = q, value
        if champion is None:
            raise failure
        return champion, most

    def climb(self, q: Array) -> tuple[Array, float]:
        """A local maximum reached from `q`, (k, m) with any non-negative entries, and its value."""
        champion, most = q, -np.inf
        for _ in self.deadline.inner.rounds(range(STEPS)):
            q = self.program.solve(self.gradients(champion))[0]
            value, before = self.value(q), most
            if most == -np.inf or value > most:
                champion, most = q, value
            if not most - before > CLIMB_GAIN * max(abs(most), 1e-12):
                break
        return champion, most


SMALL = 16  # The most inputs for which the optimum without given outputs is tried under other than plain constraints


def without_budget(problem: Problem, ask: Ask) -> Candidate | None:
    """The optimum without constraints on the outputs if it meets them; else None. It is tried where it is found fast.

    Under other constraints than pure LDP and total variation it is not tried for one or two outputs, which are rarely
    enough, nor for more than `SMALL` inputs. Raises `InvalidInput` where no channel meets all under pure LDP.
    """
    k, outputs = problem.utility.size, outputs_of(problem.given, problem.utility.size)
    allowed = np.logical_and.reduce([constraint.allowed((k, outputs)) for constraint in problem.given])
    if problem.epsilon < np.inf and not allowed.all(axis=0).any():
        raise InvalidInput(
            "constraints: expected an output that every input allows, because pure LDP makes what is impossible under "
            "one input impossible under all [GI, Def 6], got a mask without one"
        )
    free = problem.free
    if free is None or problem.placed:
        return None
    hard = outputs < 3 or len(problem.inputs) > SMALL or problem.others or problem.utility.pair is None
    if not free.plain and hard:
        return None
    with suppress(SolverError, InvalidInput):
        design = ask(problem.whole, free.constraints)
        if within(design.channel, problem.given):
            matrix, proof = design.channel.matrix, design.certificate
            if problem.utility.pair is not None and problem.symmetric:
                matrix = matrix[np.unique(problem.reduction.classes, return_index=True)[1]]
            prove = None if proof is None else proved_by(Relaxed, proof)
            return Candidate(matrix, design.method, prove, reference=design.reference)
    return None
