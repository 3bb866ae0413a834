"""Column generation: the pattern program for many inputs, whose patterns are priced instead of listed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.deadline import UNLIMITED, Deadline
from ldpopt.design.candidate import Ask, Candidate, Method
from ldpopt.design.certificates.base import Certificate, Unproved
from ldpopt.design.certificates.hypotheses import Classes
from ldpopt.design.certificates.ratios import RatioDual
from ldpopt.design.methods.partition import too_many
from ldpopt.design.methods.plain import needs_pure_ldp
from ldpopt.design.problems.problem import Problem, check_rounds
from ldpopt.design.programs.kernels import LEAST, PatternProgram
from ldpopt.design.programs.patterns import balanced
from ldpopt.design.programs.ratio_dual import dual_multipliers
from ldpopt.design.solve import INTERIOR, SIMPLEX
from ldpopt.distribution import Array
from ldpopt.errors import SolverError
from ldpopt.rounding import toward_privacy

ROUNDS = 100


ACCURACY = 1e-8


LABELLED = 6
"""The most rounds of multipliers by ratios, where total variation is not capped."""


LIMIT = 200
"""The most inputs: programs and flows grow with the square of their number."""


@dataclass(frozen=True, eq=False)
class RowsAndPairs:
    """Dual values: `rows` (k,), `pairs` (k, k), and the largest gain of a column that pricing found at them."""

    rows: Array
    pairs: Array
    gain: float

    def bound(self, eta: float) -> float:
        """The bound that they prove, if pricing found the largest gain."""
        return float(self.rows.sum() + eta * self.pairs.sum()) + max(0.0, self.gain)


@dataclass(frozen=True)
class ColumnGeneration(Method):
    """The staircase-pattern program [KOV14, Thm 4] by column generation: exact, for up to 200 ratios, with its proof.

    The program is solved over a few patterns; pricing finds patterns that are worth more than they cost at its dual
    values, and these join. At each likelihood ratio the best pattern follows from the signs of linear coefficients
    under epsilon-LDP alone, and from a minimum cut where total variation is capped, too.

    rounds : the most programs to solve. accuracy : the relative gap at which to stop.

    >>> from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> optimal_channel(u, LocalDP(1.0), method=ColumnGeneration()).certified
    True
    """

    rounds: int = ROUNDS
    accuracy: float = ACCURACY
    reference: ClassVar[str] = "[KOV14]"
    preference: ClassVar[int] = 250

    def __post_init__(self) -> None:
        check_rounds(self.rounds, self.accuracy)

    def refuses(self, problem: Problem) -> str:
        """It needs two hypotheses under pure LDP, and not too many inputs."""
        return needs_pure_ldp(problem) or too_many(len(problem.reduction.pair), LIMIT)

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the last program's pattern weights."""
        pair, f = problem.reduction.pair, problem.utility.f
        columns = PatternProgram(f, pair, problem.ratio, problem.cap, 1.0, np.zeros((len(pair), 0), dtype=bool))
        top = float(columns.worth(columns.inside).max())
        if top <= 0 or problem.cap == 0:

            def nothing(posed: Problem, channel: Channel) -> Iterator[Certificate]:
                if posed.cells is None:
                    k = len(pair)
                    yield ratio_dual(posed, channel, np.zeros(k), np.full((k, k), max(top, 0.0)))

            return Candidate(np.ones((len(pair), 1)), "column generation: nothing can be kept", nothing)
        # The unit of utility: first what a pattern of the binary mechanism keeps, then the value of the first program.
        reach = min(problem.eta, math.tanh(problem.epsilon / 2)) / (problem.ratio - 1)
        columns.scale = top * reach
        theta, _, _ = columns.solve(SIMPLEX)
        columns.scale *= float(columns.worth(columns.inside) @ theta)
        deadline = problem.deadline
        best, rounds = _by_labels(columns, theta, self.accuracy, deadline) if problem.cap is None else None, 1
        if best is None:
            best, rounds = generate(columns, -math.inf, self.accuracy, self.rounds, deadline)
        theta = vertex(columns)
        theta = np.where(theta > 1e-12, theta, 0.0)
        erased = 1 - theta.sum() - (problem.ratio - 1) * float((columns.inside @ theta).mean())
        weights = np.append(theta, max(0.0, erased))
        inside = np.column_stack([columns.inside, np.zeros(len(pair), dtype=bool)])[:, weights > 0]
        matrix = np.where(inside, math.exp(toward_privacy(problem.epsilon)), 1.0) * weights[weights > 0]
        pricing = "a sweep of signs" if problem.cap is None else "minimum cuts"
        count = f"{columns.inside.shape[1]} staircase patterns in {rounds} rounds"
        how = f"column generation over {count}, priced by {pricing}"
        scale = columns.scale

        def proof(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            if posed.cells is None:
                yield ratio_dual(posed, channel, best.rows * scale, best.pairs * scale)

        return Candidate(matrix, how, proof)


def ratio_dual(problem: Problem, channel: Channel, rows: Array, pairs: Array) -> RatioDual:
    """The certificate of multipliers of the reduced inputs; they are split among inputs that are only nearly tied."""
    p0, p1 = (np.asarray(p) for p in problem.utility.pair)
    classes = problem.reduction.classes
    try:
        Classes.checked(classes, p0, p1)
    except Unproved:
        mass = p0 + p1
        share = mass / np.bincount(classes, mass)[classes]
        rows = rows[classes] * share
        pairs = pairs[classes][:, classes] * np.outer(share, share) * (classes[:, None] != classes)
        classes = np.arange(len(p0))
    if not math.fsum(rows) >= 0:
        rows = balanced(rows)
    return RatioDual(problem.whole, problem.constraints, channel, rows, pairs, classes)


def _by_labels(columns: PatternProgram, theta: Array, accuracy: float, deadline: Deadline) -> RowsAndPairs | None:
    """Without a cap: the multipliers by exchange over ratios, whose patterns join; None if their bound is loose."""
    f, pair, ratio, scale = columns.f, columns.pair, columns.ratio, columns.scale
    for _ in deadline.inner.rounds(range(LABELLED)):
        used = columns.inside[:, theta > 1e-9 * theta.max()]
        value = float(columns.worth(columns.inside) @ theta)
        try:
            rows = dual_multipliers(f, pair, ratio, value * scale, columns.ratios(used), accuracy / 4) / scale
        except SolverError:
            return None
        none = np.zeros((len(pair), len(pair)))
        gain, found = columns.price(theta, rows, none)
        if rows.sum() + max(gain, 0.0) <= value * (1 + accuracy):
            return RowsAndPairs(rows, none, gain)
        if not columns.add(np.hstack([found, columns.best_sets(rows)])):
            return None
        theta, _, _ = columns.solve(SIMPLEX)
    return None


def generate(
    columns: PatternProgram, goal: float, accuracy: float, most: int = ROUNDS, deadline: Deadline = UNLIMITED
) -> tuple[RowsAndPairs, int]:
    """The multipliers with the smallest bound, and the number of rounds.

    Stops when their bound is within a relative `accuracy` of `goal`, in units of the scale, or when nothing joins the
    program.
    """
    best: RowsAndPairs | None = None
    for number in deadline.rounds(range(1, most + 1)):
        try:
            theta, rows, pairs = columns.solve(INTERIOR)
        except SolverError:
            # The program is too degenerate for the solver: the best multipliers so far stand.
            if best is None:
                raise
            break
        top, found = columns.price(theta, rows, pairs)
        if top <= LEAST:
            # No pattern gains on a grid of ratios: look between them.
            top, found = columns.search(rows, pairs)
        made = RowsAndPairs(rows, pairs, top)
        if best is None or made.bound(columns.caps) < best.bound(columns.caps):
            best = made
        if best.bound(columns.caps) <= goal * (1 + accuracy):
            break
        near = columns.eta is not None and top < 1e-3
        kernels, singles = columns.violated(theta) if near else ([], [])
        short = made.bound(columns.caps) - goal
        if number > 1 and not kernels and not singles and top < 0.02 * short < math.inf:
            break  # further patterns would not close the gap
        added = columns.add(found) + len(kernels)
        for low, high in kernels:
            columns.join(low, high)
        if not kernels:
            columns.singles += singles
            added += len(singles)
        if not added:
            break
    assert best is not None
    return best, number


def vertex(columns: PatternProgram) -> Array:
    """(n,) weights of the patterns at a vertex, few of them positive, of the program with every violated pair's cap."""
    for _ in range(ROUNDS):
        theta, _, _ = columns.solve(SIMPLEX)
        new = columns.violated(theta)[1] if columns.eta is not None else []
        if not new:
            break
        columns.singles += new
    return theta
