"""All shares of a questionnaire at even shares -> its best channel in closed form or nearly so, from symmetric columns.

No answer of a question differs from another, so that a column is used with all its images: its questions' answers in
any order, and questions of one size and weight in any order. A column's information about the questions of a kind i is
A_i = sum_j sum_x (E[q | x_j = x] / E q - 1)^2 / k_j^2, and for shares w_y of the images of columns y

    value = min over w of sum_i (n_i g_i)^2 / sum_y w_y A_{y,i} = max over z of (sum_i n_i g_i sqrt(z_i))^2,
    g_i = sqrt(weight) (k_i - 1)/k_i,       subject to   sum_i z_i A_{y,i} <= 1 for every column y,

with the number n_i of questions of the kind. This has as few unknowns as there are kinds of questions. The respondents
who give every share of kind i the variance 1/weight are, with all variances limited instead of their sum,

    min over w of sum_y w_y  subject to  sum_y w_y A_{y,i} >= n_i g_i^2 / k_i  for every kind,

and in its dual, z has the same limits. Columns that exceed 1 are thresholds of scores, found by climbing
(`estimation.thresholds`); `estimation.scores` proves that none does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.candidate import Ask, Candidate, Limit, Method
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.estimation.method_thresholds import tolerance_for
from ldpopt.design.estimation.policy import columns_for
from ldpopt.design.estimation.program_mixture import inward, refuses_thresholds, unknown
from ldpopt.design.estimation.proof import EquivalenceDual
from ldpopt.design.estimation.scores import SymmetricScores
from ldpopt.design.estimation.thresholds import Members, climb
from ldpopt.design.generate import GeneratedColumns, WithoutBounds, generate
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.solve import CONIC, solve
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.marginals import Marginals
from ldpopt.numbers.tolerances import FREE_LOSS, JOINING_GAIN, LEVEL_ROOM, RARE_SHARES
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index, positive, positive_epsilon

# The most inputs, and the most answers of one question: a column of it has as many images as sets of half of them.
MAX_INPUTS, MAX_ANSWERS = 1024, 16
MAX_IMAGES = 13_000  # Columns with more images are not used.
ROUNDS = 40  # The most rounds of pricing
STARTS = 300  # Random directions from which columns are searched for in a round


@dataclass(frozen=True)
class SymmetricMarginals(Method, reference="[KW]", solves=FisherInformation, preference=114):
    """The channel of least error for all shares of a questionnaire at even shares, under `LocalDP` alone [KW].

    It takes `Marginals` with one weight a question, and up to 1024 cells, at the even pilot.

    >>> from ldpopt.design import FisherInformation, LocalDP, Marginals, optimal_channel
    >>> marginals = Marginals((2,) * 8)
    >>> design = optimal_channel(FisherInformation(marginals.pilot(), marginals), LocalDP(1.0))
    >>> round(design.value, 4), design.certified  # one of the eight questions at random
    (149.8462, True)
    """

    def refuses(self, problem: Problem) -> str:
        """It needs all shares at the even pilot, with one weight a question."""
        if why := refuses_thresholds(problem):
            return why
        criterion = problem.utility.criterion
        if (
            not isinstance(criterion, Marginals)
            or not criterion.has_only_single_questions
            or criterion.question_weights is None
        ):
            return "it takes the shares of single questions, with one weight a question"
        if np.ptp(problem.utility.prior) > 0:
            return "it takes the even pilot"
        if problem.utility.size > MAX_INPUTS or max(criterion.shape) > MAX_ANSWERS:
            return Limit(f"it takes up to {MAX_INPUTS} cells and {MAX_ANSWERS} answers of a question")
        return ""

    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """The channel of the best images of columns, and its multipliers."""
        utility, epsilon = problem.utility, columns_for(problem.utility, problem.constraints)[0].epsilon
        symmetric = _Symmetric(utility.criterion, math.exp(epsilon))
        sets, kappas, level = symmetric.generated(problem.deadline)
        used = sets
        while True:
            weights = symmetric.weighed(used)[1]
            images = [symmetric.images(s) if share > 0 else used[:0] for s, share in zip(used, weights, strict=True)]
            if not (large := np.array([len(own) > MAX_IMAGES for own in images])).any():
                break
            used = used[~large]
        high = math.exp(epsilon * inward(epsilon))
        parts = [
            np.where(own, high, 1.0).T * (share / len(own) / np.where(own[0], high, 1.0).mean())
            for own, share in zip(images, weights, strict=True) if len(own)
        ]  # fmt: skip
        kernel = symmetric.kernel(kappas)

        def prove(posed: Problem, channel: Channel) -> Iterator[Certificate]:
            k = utility.size
            fields = (utility, posed.constraints, channel, utility.prior, kernel, np.zeros(k), np.zeros((k, k)))
            yield EquivalenceDual(*fields, SymmetricScores(level, utility.criterion.shape))

        how = f"thresholds of scores with all their images, {len(parts)} of {len(sets)} generated"
        return Candidate(stochastic(np.hstack(parts)), how, prove, tolerance_for(utility.size))


def respondents_kernel(
    shape: tuple[int, ...], variances: Sequence[float], epsilon: float, deadline: Deadline = UNLIMITED
) -> tuple[Array, SymmetricScores]:
    """Compute the numbers that prove the best bound on the respondents of a questionnaire at a uniform pilot [KW].

    shape : the number of answers of each question. variances : for each question, the variance that the estimate of
    each of its proportions may have. epsilon : in nats. deadline : when the search for columns ends.

    Returns K, shape (answers of all questions, cells), and the proof of the most that |K u_y|^2 can be for a column
    u_y, as `EquivalenceDual` takes them. Raises `InvalidInput` for values out of range, and
    `SolverError` where no solver succeeds.

    >>> kernel, scores = respondents_kernel((2, 2), [1e-4, 1e-4], 1.0)
    >>> kernel.shape
    (4, 4)
    """
    weights, ratio = (
        [1 / positive(variance, "variances") for variance in variances],
        math.exp(positive_epsilon(epsilon)),
    )
    symmetric = _Symmetric(Marginals(shape, weights), ratio, limited=True)
    _, kappas, level = symmetric.generated(deadline)
    rows = [
        (np.eye(k)[own].T - 1 / k) * kappas[kind]
        for k, own, kind in zip(shape, symmetric.cells, symmetric.kinds, strict=True)
    ]  # fmt: skip
    return np.vstack(rows) / symmetric.cells.shape[1], SymmetricScores(level, shape)


class _Solved(NamedTuple):
    """The columns of a pool, (kinds,) kappas at which none of them exceeds 1, and the number of the round."""

    pool: Members
    kappas: Array
    number: int


@dataclass(frozen=True)
class _Symmetric(WithoutBounds):
    """The problem for a criterion at the even pilot, with the ratio e^epsilon. limited : whether every variance is, not
    their sum.
    """

    criterion: Marginals
    ratio: float
    limited: bool = False

    def generated(self, deadline: Deadline) -> tuple[Members, Array, float]:
        """The columns that were found, (kinds,) kappas at which none exceeds 1, and a level just above all of them."""
        found: GeneratedColumns[Members, _Solved, None]
        found = generate(self, self, self.first(), ROUNDS, deadline=deadline)
        sets, kappas = found.pool, found.solution.kappas
        return sets, kappas, float((self.told(sets) @ kappas**2).max() * (1 + LEVEL_ROOM))

    def solve(self, pool: Members, number: int) -> _Solved:
        """The best weights of the columns of `pool`."""
        return _Solved(pool, self.weighed(pool)[0], number)

    def price(self, solved: _Solved) -> Members:
        """The columns that gain, the most first, none of them known; none where the most is too little."""
        new = unknown(self.search(solved.kappas, solved.pool, np.random.default_rng(solved.number)), solved.pool)
        gains = self.told(new) @ solved.kappas**2 - 1
        joining = np.argsort(-gains, kind="stable")[:20]
        return new[joining] if gains.max(initial=0.0) > JOINING_GAIN else new[:0]

    @cached_property
    def weights(self) -> Array:
        """(questions,) the weight of each question."""
        return np.array(self.criterion.question_weights, dtype=np.float64)

    @cached_property
    def kinds(self) -> Index:
        """(questions,) the number of each question's kind: its answers and its weight."""
        kinds = list(zip(self.criterion.shape, self.weights.tolist(), strict=True))
        return np.array([list(dict.fromkeys(kinds)).index(kind) for kind in kinds])

    @cached_property
    def cells(self) -> Array:
        """(questions, K) the answer of every cell to each question."""
        shape = self.criterion.shape
        return np.stack(np.unravel_index(np.arange(math.prod(shape)), shape))

    @cached_property
    def each(self) -> Array:
        """(questions,) g_j."""
        return np.asarray(np.sqrt(self.weights) * (1 - 1 / np.array(self.criterion.shape)))

    @cached_property
    def gains(self) -> Array:
        """(kinds,) n_i g_i."""
        return np.bincount(self.kinds, self.each).astype(np.float64)

    @cached_property
    def limits(self) -> Array:
        """(kinds,) n_i g_i^2 / k_i."""
        return np.bincount(self.kinds, self.each**2 / self.criterion.shape).astype(np.float64)

    def told(self, sets: Members) -> Array:
        """(n, kinds) what columns tell about the questions of each kind."""
        columns = np.where(sets, self.ratio, 1.0).reshape(-1, *self.criterion.shape)
        columns = columns / columns.mean(axis=tuple(range(1, columns.ndim)), keepdims=True)
        told = np.zeros((len(sets), len(self.gains)))
        for j, k in enumerate(self.criterion.shape):
            others = tuple(axis for axis in range(1, columns.ndim) if axis != j + 1)
            told[:, self.kinds[j]] += ((columns.mean(axis=others) - 1) ** 2).sum(axis=1) / k**2
        return told

    def kernel(self, kappas: Array) -> Array:
        """(d, K) the kernel, of one kappa for each kind (kinds,)."""
        scale = np.repeat(kappas[self.kinds] / np.sqrt(self.weights), np.array(self.criterion.shape) - 1)
        return np.asarray(self.criterion.directions.T * scale[:, None] / self.cells.shape[1])

    def first(self) -> Members:
        """(n, K) the sets of answers to one question, or to several of any kinds, of one number for each kind."""
        sizes = []
        for kind, number in enumerate(np.bincount(self.kinds)):
            answers = self.criterion.shape[int(np.argmax(self.kinds == kind))]
            sizes.append([(0, 0), *product(range(1, number + 1), range(1, answers))])
        sets = []
        for chosen in product(*sizes):
            inside = np.ones(self.cells.shape[1], dtype=bool)
            for kind, (number, answers) in enumerate(chosen):
                inside &= (self.cells[np.flatnonzero(self.kinds == kind)[:number]] < answers).all(axis=0)
            sets.append(inside)
        return np.unique(np.array([members for members in sets if not members.all()]), axis=0)

    def weighed(self, sets: Members) -> tuple[Array, Array]:
        """(kinds,) the roots of the best z, and (n,) the shares of the columns of `sets`."""
        import cvxpy as cp

        told = self.told(sets)
        most = told.max(axis=0)
        # Only columns that tell as much as some other one of everything can be used.
        kept = np.flatnonzero((told / most).max(axis=1) > 1e-6)
        each = told[kept] / most
        z = cp.Variable(len(most), nonneg=True)
        limit = each @ z <= 1
        wanted, root = (self.limits / most, z) if self.limited else (self.gains / np.sqrt(most), cp.sqrt(z))
        solve(cp.Problem(cp.Maximize((wanted / wanted.max()) @ root), [limit]), "symmetric marginals", CONIC)
        shares = np.zeros(len(sets))
        shares[kept] = np.where(limit.dual_value > 1e-7 * np.max(limit.dual_value), limit.dual_value, 0.0)
        return np.sqrt(np.maximum(z.value, 0.0) / most), self._without_rare(shares / shares.sum(), told)

    def _without_rare(self, shares: Array, told: Array) -> Array:
        """(n,) the shares without rare columns, as many as can go without a loss: traces that a solver leaves."""
        for least in RARE_SHARES:
            kept = np.where(shares > least, shares, 0.0)
            if kept.any() and self._errors(kept / kept.sum(), told) <= self._errors(shares, told) * (1 + FREE_LOSS):
                return np.asarray(kept / kept.sum())
        return shares

    def _errors(self, shares: Array, told: Array) -> float:
        """The sum of variances, up to a factor, of a channel that uses columns with these shares (n,)."""
        information = shares @ told
        return float((self.gains**2 / information).sum()) if information.min() > 0 else math.inf

    def search(self, kappas: Array, sets: Members, rng: np.random.Generator) -> Members:
        """(n, K) the ends of climbs from the best of `sets` and from random directions."""
        kernel = self.kernel(kappas)
        best = sets[np.argsort(-(self.told(sets) @ kappas**2), kind="stable")[:100]]
        columns = np.where(best, self.ratio, 1.0)
        starts = columns @ kernel.T / columns.mean(axis=1)[:, None]
        drawn = rng.normal(size=(STARTS, len(kernel))) * rng.exponential(size=(STARTS, len(kernel)))
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        even = np.full(kernel.shape[1], 1 / kernel.shape[1])
        ended, _ = climb(kernel, 0 * even, even, self.ratio, np.vstack([starts, drawn]))
        return np.unique(ended, axis=0)

    def images(self, inside: Array) -> Members:
        """(n, K) a set with its answers, and questions of one kind, in any order; cut off beyond `MAX_IMAGES`."""
        shape = self.criterion.shape
        turns = []
        for j, k in enumerate(shape):
            for answer in range(k - 1):
                order = np.arange(k)
                order[[answer, answer + 1]] = answer + 1, answer
                cells = self.cells.copy()
                cells[j] = order[cells[j]]
                turns.append(np.ravel_multi_index(tuple(cells), shape))
            before = np.flatnonzero(self.kinds[:j] == self.kinds[j])
            if len(before):
                cells = self.cells.copy()
                cells[[j, before[-1]]] = cells[[before[-1], j]]
                turns.append(np.ravel_multi_index(tuple(cells), shape))
        known = {inside.tobytes()}
        new = inside[None]
        while len(new) and len(known) <= MAX_IMAGES:
            each = np.unique(np.vstack([new[:, turn] for turn in turns]), axis=0)
            new = np.array([image for image in each if image.tobytes() not in known]).reshape(-1, len(inside))
            known |= {image.tobytes() for image in new}
        return np.frombuffer(b"".join(sorted(known)), dtype=bool).reshape(-1, len(inside))
