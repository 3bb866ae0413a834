"""All proportions of a questionnaire at a uniform pilot -> its best channel, nearly in closed form, by symmetry.

No answer of a question differs from another. So a column is used with all its images: its questions' answers in any
order, and questions of one size and weight in any order. A column's information about the questions of a kind i is

    A_i = sum_j sum_x (E[q | x_j = x] / E q - 1)^2 / k_j^2,

and for fractions w_y of the images of columns y

    value = min over w of sum_i (n_i g_i)^2 / sum_y w_y A_{y,i} = max over z of (sum_i n_i g_i sqrt(z_i))^2,
    g_i = sqrt(weight) (k_i - 1)/k_i,       subject to   sum_i z_i A_{y,i} <= 1 for every column y,

with the number n_i of questions of the kind. This has as few unknowns as there are kinds of questions. The number of
respondents who give every proportion of kind i the variance 1/weight is, with all variances limited instead of their
sum,

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
from ldpopt.design.cones import ConeProgram
from ldpopt.design.constraints.repair import stochastic
from ldpopt.design.estimation.method_thresholds import tolerance_for
from ldpopt.design.estimation.policy import columns_for
from ldpopt.design.estimation.program_mixture import log_scale, new_rows, refuses_thresholds
from ldpopt.design.estimation.proof import EquivalenceDual
from ldpopt.design.estimation.scores import SymmetricScores
from ldpopt.design.estimation.thresholds import Members, climb
from ldpopt.design.generate import GeneratedColumns, WithoutBounds, generate
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.solve import solve_cones
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.marginals import Marginals
from ldpopt.numbers.tolerances import FREE_LOSS, JOINING_GAIN, LEVEL_ROOM, RARE_SHARES
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index, positive, positive_epsilon

# Inputs, and answers of one question: its column has as many images as there are sets of half of the answers.
MAX_INPUTS, MAX_ANSWERS = 1024, 16
MAX_IMAGES = 13_000  # Columns with more images are not used.
MAX_PRICING_ROUNDS = 40
RANDOM_STARTS = 300  # Random directions that a round searches columns from.


@dataclass(frozen=True)
class SymmetricMarginals(Method, reference="[KW]", solves=FisherInformation, preference=114):
    """The channel of least error for all proportions of a questionnaire at a uniform pilot, under `LocalDP` alone [KW].

    It takes `Marginals` with one weight per question, and up to 1024 cells, at the uniform pilot.

    >>> from ldpopt.design import FisherInformation, LocalDP, Marginals, optimal_channel
    >>> marginals = Marginals((2,) * 8)
    >>> design = optimal_channel(FisherInformation(marginals.pilot(), marginals), LocalDP(1.0))
    >>> round(design.value, 4), design.certified  # one of the eight questions at random
    (149.8462, True)
    """

    def refuses(self, problem: Problem) -> str:
        """Return the reason to refuse the problem.

        The method needs all proportions at the uniform pilot, with one weight per question.
        """
        if reason := refuses_thresholds(problem):
            return reason
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
        """Find the channel of the best images of columns, and its multipliers."""
        utility, epsilon = problem.utility, columns_for(problem.utility, problem.constraints)[0].epsilon
        symmetric = _SymmetricProgram(utility.criterion, math.exp(epsilon))
        sets, kappas, level = symmetric.generated(problem.deadline)
        columns_in_use = sets
        while True:
            weights = symmetric.weighed(columns_in_use)[1]
            column_images = [
                symmetric.images(s) if share > 0 else columns_in_use[:0]
                for s, share in zip(columns_in_use, weights, strict=True)
            ]
            if not (is_large := np.array([len(images) > MAX_IMAGES for images in column_images])).any():
                break
            columns_in_use = columns_in_use[~is_large]
        ratio = math.exp(epsilon * log_scale(epsilon))
        parts = [
            np.where(images, ratio, 1.0).T * (share / len(images) / np.where(images[0], ratio, 1.0).mean())
            for images, share in zip(column_images, weights, strict=True) if len(images)
        ]  # fmt: skip
        kernel = symmetric.kernel(kappas)

        def prove(reduced_problem: Problem, channel: Channel) -> Iterator[Certificate]:
            k = utility.size
            fields = (
                utility,
                reduced_problem.constraints,
                channel,
                utility.prior,
                kernel,
                np.zeros(k),
                np.zeros((k, k)),
            )
            yield EquivalenceDual(*fields, SymmetricScores(level, utility.criterion.shape))

        description = f"thresholds of scores with all their images, {len(parts)} of {len(sets)} generated"
        return Candidate(stochastic(np.hstack(parts)), description, prove, tolerance_for(utility.size))


def respondents_kernel(
    shape: tuple[int, ...], variances: Sequence[float], epsilon: float, deadline: Deadline = UNLIMITED
) -> tuple[Array, SymmetricScores]:
    """Compute the numbers that prove the best bound on the respondents of a questionnaire.

    The bound is the one at a uniform pilot [KW].

    Parameters
    ----------
    shape : The number of answers of each question.
    variances : For each question, the variance that the estimate of each of its proportions may have.
    epsilon : In nats.
    deadline : The time when the search for columns ends.

    Returns
    -------
    tuple[Array, SymmetricScores]
        K, shape (answers of all questions, cells), and the proof of an upper bound on |K u_y|^2 for a column u_y, as
        `EquivalenceDual` takes them.

    Raises
    ------
    InvalidInput
        If a value is out of range.
    SolverError
        If no solver succeeds.

    Examples
    --------
    >>> kernel, scores = respondents_kernel((2, 2), [1e-4, 1e-4], 1.0)
    >>> kernel.shape
    (4, 4)
    """
    weights, ratio = (
        [1 / positive(variance, "variances") for variance in variances],
        math.exp(positive_epsilon(epsilon)),
    )
    symmetric = _SymmetricProgram(Marginals(shape, weights), ratio, limited=True)
    _, kappas, level = symmetric.generated(deadline)
    rows = [
        (np.eye(k)[answers].T - 1 / k) * kappas[kind]
        for k, answers, kind in zip(shape, symmetric.cells, symmetric.kinds, strict=True)
    ]  # fmt: skip
    return np.vstack(rows) / symmetric.cells.shape[1], SymmetricScores(level, shape)


class _Solved(NamedTuple):
    """The columns of a pool, (kinds,) kappas that leave none of them above 1, and the number of the round."""

    pool: Members
    kappas: Array
    number: int


@dataclass(frozen=True)
class _SymmetricProgram(WithoutBounds):
    """The problem for a criterion at the uniform pilot, with the ratio e^epsilon.

    limited : True if every variance is limited, not their sum.
    """

    criterion: Marginals
    ratio: float
    limited: bool = False

    def generated(self, deadline: Deadline) -> tuple[Members, Array, float]:
        """Generate columns.

        Also returns (kinds,) kappas that leave none above 1, and a level just above all of them.
        """
        columns: GeneratedColumns[Members, _Solved, None]
        columns = generate(self, self, self.first(), MAX_PRICING_ROUNDS, deadline=deadline)
        sets, kappas = columns.pool, columns.solution.kappas
        return sets, kappas, float((self.information(sets) @ kappas**2).max() * (1 + LEVEL_ROOM))

    def solve(self, pool: Members, number: int) -> _Solved:
        """Solve for the best weights of the columns of `pool`."""
        return _Solved(pool, self.weighed(pool)[0], number)

    def price(self, solution: _Solved) -> Members:
        """Find new columns that gain, largest gain first; none if the largest is too small."""
        candidates = new_rows(
            self.search(solution.kappas, solution.pool, np.random.default_rng(solution.number)), solution.pool
        )
        gains = self.information(candidates) @ solution.kappas**2 - 1
        joining = np.argsort(-gains, kind="stable")[:20]
        return candidates[joining] if gains.max(initial=0.0) > JOINING_GAIN else candidates[:0]

    @cached_property
    def weights(self) -> Array:
        """The weight of each question, (questions,)."""
        return np.array(self.criterion.question_weights, dtype=np.float64)

    @cached_property
    def kinds(self) -> Index:
        """The number of each question's kind, (questions,): its answers and its weight."""
        kinds = list(zip(self.criterion.shape, self.weights.tolist(), strict=True))
        return np.array([list(dict.fromkeys(kinds)).index(kind) for kind in kinds])

    @cached_property
    def cells(self) -> Array:
        """The answer of every cell to each question, (questions, K)."""
        shape = self.criterion.shape
        return np.stack(np.unravel_index(np.arange(math.prod(shape)), shape))

    @cached_property
    def contrast_weights(self) -> Array:
        """The g_j, (questions,)."""
        return np.asarray(np.sqrt(self.weights) * (1 - 1 / np.array(self.criterion.shape)))

    @cached_property
    def gains(self) -> Array:
        """The n_i g_i, (kinds,)."""
        return np.bincount(self.kinds, self.contrast_weights).astype(np.float64)

    @cached_property
    def limits(self) -> Array:
        """The n_i g_i^2 / k_i, (kinds,)."""
        return np.bincount(self.kinds, self.contrast_weights**2 / self.criterion.shape).astype(np.float64)

    def information(self, sets: Members) -> Array:
        """Compute (n, kinds) the information of columns about the questions of each kind."""
        columns = np.where(sets, self.ratio, 1.0).reshape(-1, *self.criterion.shape)
        columns = columns / columns.mean(axis=tuple(range(1, columns.ndim)), keepdims=True)
        information = np.zeros((len(sets), len(self.gains)))
        for j, k in enumerate(self.criterion.shape):
            others = tuple(axis for axis in range(1, columns.ndim) if axis != j + 1)
            information[:, self.kinds[j]] += ((columns.mean(axis=others) - 1) ** 2).sum(axis=1) / k**2
        return information

    def kernel(self, kappas: Array) -> Array:
        """Build (d, K) the kernel from one kappa for each kind (kinds,)."""
        scale = np.repeat(kappas[self.kinds] / np.sqrt(self.weights), np.array(self.criterion.shape) - 1)
        return np.asarray(self.criterion.directions.T * scale[:, None] / self.cells.shape[1])

    def first(self) -> Members:
        """List (n, K) sets of answers to one question, or to several of any kinds.

        There is one number of questions for each kind.
        """
        sizes = []
        for kind, number in enumerate(np.bincount(self.kinds)):
            answers = self.criterion.shape[int(np.argmax(self.kinds == kind))]
            sizes.append([(0, 0), *product(range(1, number + 1), range(1, answers))])
        sets = []
        for combination in product(*sizes):
            is_member = np.ones(self.cells.shape[1], dtype=bool)
            for kind, (number, answers) in enumerate(combination):
                is_member &= (self.cells[np.flatnonzero(self.kinds == kind)[:number]] < answers).all(axis=0)
            sets.append(is_member)
        return np.unique(np.array([members for members in sets if not members.all()]), axis=0)

    def weighed(self, sets: Members) -> tuple[Array, Array]:
        """Solve for (kinds,) the roots of the best z, and (n,) the fractions of the columns."""
        information = self.information(sets)
        largest = information.max(axis=0)
        # Only columns that tell as much as some other one of everything can be used.
        useful = np.flatnonzero((information / largest).max(axis=1) > 1e-6)
        relative, kinds = information[useful] / largest, len(largest)
        program = ConeProgram()
        z, root, loss = program.variables(kinds), program.variables(kinds), program.variables(1)
        program.put("nonnegative", np.zeros(kinds), (z, np.eye(kinds)))
        limits = program.put("nonnegative", np.ones(len(useful)), (z, -relative))
        # root^2 <= z is a cone of the second order: |((z - 1) / 2, root)| <= (z + 1) / 2.
        halves, roots = np.kron(np.eye(kinds), [[0.5], [0.5], [0.0]]), np.kron(np.eye(kinds), [[0.0], [0.0], [1.0]])
        program.put("second order", np.tile([0.5, -0.5, 0.0], kinds), (z, halves), (root, roots))
        coefficients, of_coefficients = (
            (self.limits / largest, z) if self.limited else (self.gains / np.sqrt(largest), root)
        )
        program.put(
            "zero", np.zeros(1), (loss, np.ones((1, 1))), (of_coefficients, coefficients[None] / coefficients.max())
        )
        values, duals = solve_cones(program, loss, "symmetric marginals")
        multipliers = np.maximum(duals[limits], 0.0)
        shares = np.zeros(len(sets))
        shares[useful] = np.where(multipliers > 1e-7 * multipliers.max(), multipliers, 0.0)
        return np.sqrt(np.maximum(values[z], 0.0) / largest), self._without_rare(shares / shares.sum(), information)

    def _without_rare(self, shares: Array, information: Array) -> Array:
        """Drop rare columns, as many as possible without a loss: traces of the solver."""
        for threshold in RARE_SHARES:
            frequent = np.where(shares > threshold, shares, 0.0)
            if frequent.any() and self._errors(frequent / frequent.sum(), information) <= self._errors(
                shares, information
            ) * (1 + FREE_LOSS):
                return np.asarray(frequent / frequent.sum())
        return shares

    def _errors(self, shares: Array, column_information: Array) -> float:
        """Compute the sum of variances, up to a factor, of a channel that uses columns with these fractions."""
        information = shares @ column_information
        return float((self.gains**2 / information).sum()) if information.min() > 0 else math.inf

    def search(self, kappas: Array, sets: Members, rng: np.random.Generator) -> Members:
        """Find (n, K) the end sets of climbs from the best of `sets` and from random directions."""
        kernel = self.kernel(kappas)
        best = sets[np.argsort(-(self.information(sets) @ kappas**2), kind="stable")[:100]]
        columns = np.where(best, self.ratio, 1.0)
        starts = columns @ kernel.T / columns.mean(axis=1)[:, None]
        random_starts = rng.normal(size=(RANDOM_STARTS, len(kernel))) * rng.exponential(
            size=(RANDOM_STARTS, len(kernel))
        )
        random_starts /= np.linalg.norm(random_starts, axis=1, keepdims=True)
        uniform = np.full(kernel.shape[1], 1 / kernel.shape[1])
        end_sets, _ = climb(kernel, 0 * uniform, uniform, self.ratio, np.vstack([starts, random_starts]))
        return np.unique(end_sets, axis=0)

    def images(self, members: Array) -> Members:
        """List (n, K) the images of a set, up to `MAX_IMAGES`.

        Its answers, and the questions of one kind, come in any order.
        """
        shape = self.criterion.shape
        permutations = []
        for j, k in enumerate(shape):
            for answer in range(k - 1):
                order = np.arange(k)
                order[[answer, answer + 1]] = answer + 1, answer
                cells = self.cells.copy()
                cells[j] = order[cells[j]]
                permutations.append(np.ravel_multi_index(tuple(cells), shape))
            previous = np.flatnonzero(self.kinds[:j] == self.kinds[j])
            if len(previous):
                cells = self.cells.copy()
                cells[[j, previous[-1]]] = cells[[previous[-1], j]]
                permutations.append(np.ravel_multi_index(tuple(cells), shape))
        image_keys = {members.tobytes()}
        new_images = members[None]
        while len(new_images) and len(image_keys) <= MAX_IMAGES:
            candidates = np.unique(np.vstack([new_images[:, turn] for turn in permutations]), axis=0)
            new_images = np.array([image for image in candidates if image.tobytes() not in image_keys]).reshape(
                -1, len(members)
            )
            image_keys |= {image.tobytes() for image in new_images}
        return np.frombuffer(b"".join(sorted(image_keys)), dtype=bool).reshape(-1, len(members))
