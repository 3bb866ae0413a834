"""An estimate of few contrasts, such as all shares of a questionnaire -> its best channel, from threshold columns [KW].

    max  2 tr(K F) - sum lambda   subject to   |K u_y|^2 <= lambda . u_y   for every column y,   u_y = S_y / (S_y . p)

is the dual of the design problem for tr(F^T C F). Few rows of K, one for each of the d directions of F, make it a
small cone program over the columns at hand; its multipliers are their weights. Columns that gain at (K, lambda) are
thresholds of a score, found by climbing from one to the next (`columns.thresholds`), and join. The proof is a search
over the directions, of which there are as few.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.certificates.base import Certificate
from ldpopt.design.certificates.equivalence import EquivalenceDual
from ldpopt.design.columns.policy import columns_for
from ldpopt.design.columns.thresholds import Members, Scarf, Thresholds, climb
from ldpopt.design.constraints import LocalDP
from ldpopt.design.constraints.repair import repair, stochastic
from ldpopt.design.methods.estimation_columns import Mixture, inward, no_estimate, unknown
from ldpopt.design.problems.problem import Problem
from ldpopt.design.programs.fisher import FisherSolution
from ldpopt.design.solve import ALMOST, CONIC, solve
from ldpopt.design.utilities.criteria import LinearCriterion
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.marginals import Marginals
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.tolerances import CERTIFIED_GAP, COARSE_GAP

# The most inputs, and the most directions of the contrasts, for which the cone program is posed.
MAX_INPUTS, MAX_DIRECTIONS = 256, 40
# The most directions that are searched for a proof; with more of them only the bound by second moments is left.
SEARCHED_DIRECTIONS = 8
FINE_INPUTS = 64  # Up to this many inputs the design is found, and proved, to `CERTIFIED_GAP`; beyond, to `COARSE_GAP`
MAX_ROUNDS = 60  # The most rounds of pricing
JOINING = 150  # The most columns that join in a round
STARTS = 400  # Random directions from which a round's search for columns starts, besides those of the columns in use
# What the squares of kernel and prices cost, in units of the criterion, so that the least of optimal ones is found. The
# last weights are found at less cost, which moves them less.
LEAST, LAST = 1e-5, 1e-8
# Beyond so many columns, those that gain less than this share of the criterion below zero leave.
MANY_COLUMNS, KEPT = 500, 0.05
LISTED_ANSWERS = 6  # All patterns of a question of up to this many answers are there from the start


@dataclass(frozen=True)
class ThresholdColumns(Method, reference="[KW]", preference=115, by_cvxpy=True):
    """The channel of least error for few contrasts of many inputs, from thresholds of scores, with its proof [KW].

    It takes a sum of variances under `LocalDP` alone: `Marginals`, or `AOptimal` with weights of low rank. Up to 64
    inputs are aimed at to one part in a million, and up to 256 to one in a thousand, at any pilot without empty cells;
    the proof searches up to 8 directions (eight yes/no questions, or four of three answers). With more, the bound is
    that of second moments [Scarf]. One question at random is among the designs it chooses from. Even pilots have a
    method of their own, `SymmetricMarginals`.

    >>> from ldpopt.design import FisherInformation, LocalDP, Marginals, optimal_channel
    >>> marginals = Marginals((2, 2, 2, 2))
    >>> pilot = marginals.pilot([0.4, 0.6], [0.4, 0.6], [0.5, 0.5], [0.5, 0.5])
    >>> design = optimal_channel(FisherInformation(pilot, marginals), LocalDP(1.0))
    >>> round(design.value, 6), design.certified
    (37.301383, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs a sum of variances of few contrasts, under LocalDP between all inputs alone."""
        if why := refuses_thresholds(problem):
            return why
        utility = problem.utility
        k, d = utility.size, utility.criterion.kernel_rows(utility.size)
        if not isinstance(utility.criterion, Marginals) and (d < 2 or d >= k // 2):
            return f"it takes few contrasts of many inputs, and here are {d} of {k}"
        if k > MAX_INPUTS or d > MAX_DIRECTIONS:
            return Limit(f"it takes up to {MAX_INPUTS} inputs in {MAX_DIRECTIONS} directions, and here are {k} in {d}")
        return "" if utility.prior.min() > 0 else "it takes a pilot without empty cells"

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best mixture of columns, and its multipliers."""
        utility: FisherInformation = problem.utility
        criterion: Any = utility.criterion
        columns, _ = columns_for(utility, problem.constraints)
        ratio, k = math.exp(columns.epsilon), utility.size
        tolerance = tolerance_for(k)
        factor = criterion.factor(k)
        program = _Program(utility.prior, factor - utility.prior @ factor, ratio)
        sets = _starting(utility, columns.epsilon, ask)
        rng, found = np.random.default_rng(k), None
        mixtures: list[tuple[Members, FisherSolution]] = []
        for _ in problem.deadline.rounds(range(MAX_ROUNDS)):
            try:
                solved = program.evened(program.solve(sets, LEAST), criterion)
            except SolverError:
                if found is None:
                    raise
                break  # the columns are too nearly equal for the solver: the result of the round before stands
            found, known = solved, sets
            mixtures = [*mixtures[:1], (known, found)]  # the first is at most one question at random
            new, gains = program.search(found, known, rng)
            size = float(found.rows.sum())
            if not len(new) or gains[0] <= 0.03 * tolerance * size:
                break
            if len(known) > MANY_COLUMNS:
                sets = known[program.gains(found, known) > -KEPT * size]
            sets = np.vstack([sets, new])
        assert found is not None
        with suppress(SolverError):
            mixtures.append((known, replace(found, theta=program.solve(known, LAST).theta)))
        shrunk = inward(columns.epsilon)
        each = [Mixture(np.where(s, columns.epsilon, 0.0), one).matrix(columns, shrunk) for s, one in mixtures]
        # As it will be repaired, for rare columns may be all that tells some contrasts apart.
        matrix = min(each, key=lambda one: utility.value(_repaired(problem, one)))

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            fields = (utility, posed.constraints, channel, utility.prior)
            if len(found.kernel) <= SEARCHED_DIRECTIONS:
                level = max(float(gains.max(initial=0.0)), 0.0) + 0.1 * tolerance * float(found.rows.sum())
                yield EquivalenceDual(*fields, found.kernel, found.rows, found.pairs, Thresholds(level))
            # Scores of one second moment in all directions, and prices in proportion to the law.
            yield EquivalenceDual(*fields, program.whitened(), utility.prior, found.pairs, Scarf())

        how = f"thresholds of scores in {len(found.kernel)} directions, {len(known)} generated"
        shortfall = "the bound is rigorous but not within the tolerance"
        if len(found.kernel) > SEARCHED_DIRECTIONS:
            shortfall = f"with {len(found.kernel)} directions the bound is that of second moments, rigorous but coarse"
        return Candidate(matrix, how, prove, tolerance, shortfall=shortfall)


def _repaired(problem: Problem, matrix: Array) -> Channel:
    """The channel that a matrix becomes."""
    return Channel(repair(stochastic(matrix), problem.constraints, problem.labels)).merge()


def refuses_thresholds(problem: Problem) -> str:
    """Why a problem is no sum of variances at one pilot under LocalDP alone; empty where it is one."""
    utility = problem.utility
    if why := no_estimate(problem):
        return why
    if not isinstance(utility.criterion, LinearCriterion) or utility.neighbourhood is not None:
        return "it takes a sum of variances at one pilot"
    if not problem.symmetric:
        return "it takes LocalDP between all inputs alone"
    try:
        columns, eta = columns_for(utility, problem.constraints)
    except InvalidInput as error:
        return str(error)
    if eta is not None or not 1e-6 <= columns.epsilon <= 20:
        return "it takes LocalDP alone, with an epsilon from 1e-6 to 20"
    return ""


def tolerance_for(inputs: int) -> float:
    """The relative gap at which a design for that many inputs is certified."""
    return CERTIFIED_GAP if inputs <= FINE_INPUTS else COARSE_GAP


def _starting(utility: FisherInformation, epsilon: float, ask: Ask) -> Members:
    """Sets (n, k): the empty one, those that ask one question alone, and single cells where they are few."""
    k, criterion = utility.size, utility.criterion
    sets = [np.zeros((1, k), dtype=bool)]
    if not isinstance(criterion, Marginals):
        return np.vstack([*sets, np.eye(k, dtype=bool)])
    cells = np.stack(np.unravel_index(np.arange(k), criterion.shape), axis=1)
    for j, answers in enumerate(criterion.shape):
        if answers <= LISTED_ANSWERS:
            own = np.array(list(product((False, True), repeat=answers)))[1:-1]
        else:
            pilot = np.bincount(cells[:, j], utility.prior)
            own = ask(FisherInformation(pilot / pilot.sum()), LocalDP(epsilon), certify=False).channel.matrix.T
            own = np.unique(own > np.sqrt(own.min(axis=1) * own.max(axis=1))[:, None], axis=0)
        sets.append(own[:, cells[:, j]])
    return np.unique(np.vstack(sets), axis=0)


@dataclass(frozen=True, eq=False)
class _Program:
    """The cone program for a pilot (k,), contrasts F (k, d) centred at it, and the ratio e^epsilon."""

    prior: Array
    factor: Array
    ratio: float

    def units(self, sets: Members) -> Array:
        """(n, k) the columns, divided by their probabilities."""
        columns = np.where(sets, self.ratio, 1.0)
        return np.asarray(columns / (columns @ self.prior)[:, None])

    def gains(self, found: FisherSolution, sets: Members) -> Array:
        """(n,) what the columns of `sets` gain."""
        units = self.units(sets)
        return np.asarray(((units @ found.kernel.T) ** 2).sum(axis=1) - units @ found.rows)

    def search(self, found: FisherSolution, known: Members, rng: np.random.Generator) -> tuple[Members, Array]:
        """Sets that gain, best first and none of the `known` ones, and their gains."""
        directions = self.units(known) @ found.kernel.T
        far = np.linalg.norm(directions, axis=1).max()
        drawn = rng.normal(size=(STARTS, len(found.kernel)))
        drawn *= far / np.linalg.norm(drawn, axis=1, keepdims=True)
        sets, _ = climb(found.kernel, found.rows, self.prior, self.ratio, np.vstack([directions, drawn]))
        sets = unknown(np.unique(sets, axis=0), known)
        gains = self.gains(found, sets)
        order = np.argsort(-gains, kind="stable")[:JOINING]
        order = order[gains[order] > 0]
        return sets[order], gains[order]

    def whitened(self) -> Array:
        """K (d, k) whose scores K_x / p_x have mean 0 and uncorrelated unit variances, turned towards F."""
        root = np.sqrt(self.prior)
        left, _, right = np.linalg.svd(root[:, None] * self.factor, full_matrices=False)
        return np.asarray((root[:, None] * (left @ right)).T)

    def evened(self, found: FisherSolution, criterion: LinearCriterion) -> FisherSolution:
        """The same, with a kernel that is odd in every yes/no question whose answers the pilot does not tell apart.

        The mean of a kernel and of its mirror image is as good, and its proof needs half of the directions.
        """
        shape = getattr(criterion, "shape", ())
        if math.prod(shape) != len(self.prior) or len(found.kernel) != sum(shape) - len(shape):
            return found
        kernel, rows, row = found.kernel.reshape(-1, *shape), found.rows.reshape(shape), 0
        for j, answers in enumerate(shape):
            cells = self.prior.reshape(shape)
            if answers == 2 and np.array_equal(cells, np.flip(cells, j)):
                sign = np.where(np.arange(len(kernel)) == row, -1.0, 1.0).reshape(-1, *[1] * len(shape))
                kernel, rows = (kernel + sign * np.flip(kernel, j + 1)) / 2, (rows + np.flip(rows, j)) / 2
            row += answers - 1
        return replace(found, kernel=kernel.reshape(len(found.kernel), -1), rows=rows.ravel())

    def solve(self, sets: Members, least: float) -> FisherSolution:
        """The best weights of the columns of `sets`, and the centred kernel and prices at which none of them gains."""
        import cvxpy as cp

        units, root = self.units(sets), np.sqrt(self.prior)
        # In the span of the columns, and in units in which the optimum, prices and scores are all about 1.
        _, size, basis = np.linalg.svd(units * root, full_matrices=False)
        basis = basis[size > 1e-10 * size[0]]
        spread = np.linalg.svd(root[:, None] * self.factor, compute_uv=False).sum()
        scale = float(spread / np.tanh(np.log(self.ratio) / 2))
        scores = cp.Variable((self.factor.shape[1], len(basis)))
        prices = cp.Variable(len(basis))
        paid = (units * root) @ basis.T @ prices
        earned = scores @ (basis @ (root * (units - 1)).T)
        cone = cp.SOC(1 + paid, cp.vstack([2 * earned, cp.reshape(paid - 1, (1, len(sets)), order="C")]), axis=0)
        gain = 2 * cp.trace(scores @ (basis @ (root[:, None] * self.factor))) / scale - (basis @ root) @ prices
        # Of many optimal kernels and prices the least: at symmetric pilots these are symmetric, and few columns gain.
        size_of_both = cp.sum_squares(scores) + cp.sum_squares(prices)
        solve(cp.Problem(cp.Maximize(gain - least * size_of_both), [cone]), "design for estimation", (ALMOST, *CONIC))
        heights, sides = cone.dual_value
        weights = np.maximum(np.asarray(heights) + np.asarray(sides)[-1], 0.0)
        kernel = scale * np.asarray(scores.value) @ basis * root
        kernel = kernel - kernel.sum(axis=1)[:, None] * self.prior
        rows = scale**2 * np.asarray(prices.value) @ basis * root
        theta = weights / (np.where(sets, self.ratio, 1.0) @ self.prior)
        return FisherSolution(theta, rows, np.zeros((len(root), len(root))), kernel, np.ones(1))
