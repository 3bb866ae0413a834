"""Kernels that treat the answers of each question equally, at a uniform distribution -> a bound on the gains.

Inputs are cells of a product of questions, all with one probability. Up to a rotation, which |K q| ignores, the rows of
K are blocks, kappa_j times an orthonormal basis of the differences of question j's answers: K_x . K_x' is the sum of
kappa_j^2 (1{x_j = x'_j} - 1/k_j) p_x p_x'. For a unit direction v the score T(x) = v.K_x/p_x is a sum of kappa_j
u_j(x_j), with u_j of sum 0 and sum_j |u_j|^2 = 1, and E T = 0. So |K u_q| is at most rho for every pattern q if

    (e^epsilon - 1) E(T - rho)_+  <=  rho      for every such T.

The order of a question's answers does not matter, so that u_j may fall; nor does that of questions of one size and one
kappa. Sequences that fall are sums, with nonnegative weights, of the indicators of the first answers, less their means.
So all directions lie in one cone with as many rays as dimensions.

E(T - rho)_+ is convex in T. On a cone with unit rays w_i, unit vectors are sums a_i w_i with 1 <= sum a_i <= h. Inputs
that are above rho at all w_i, or below rho at all h w_i, stay so in between. A convex function o of the others that is
0 at 0 is below sum a_i o(h w_i)/h. The sum is then below a linear function, whose maximum over unit vectors is its
length: exact once no inputs are open. Cones are halved until it is small enough; their rays are integer combinations of
the first rays, so that the halves fill them.

The best pattern at such a score holds, with a cell, all cells of lower answers. If few sets have this property, all of
them are compared instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.design.estimation.prices import Charges
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import SAME_KAPPA
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

MAX_NUMBERS_EXAMINED = 1e10  # Cones times rays times inputs: about half a minute.
MAX_CONE_DIMENSIONS = 10
MAX_SETS_COMPARED = 300_000
NUMBERS_PER_BATCH = 2**22  # Cones that are examined at once, times rays and inputs; limited by memory.
LARGEST_RAY = 2.0**40  # Larger rays have been halved too often to be integers.
MAX_REDUCTION_STEPS = 4  # Steps that remove the rays that a vector does not need.
Members = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SymmetricScores(ByValue):
    """The level of a search over directions up to symmetry.

    - `level` : no column gains more. It is a positive number, which is checked.
    - `shape` : the numbers of answers of the questions.

    The kernel has a row for each of their differences, or for each answer.
    """

    level: float
    shape: tuple[int, ...]
    words: ClassVar[str] = "the directions up to symmetry of"

    def gain_bound(self, charges: Charges, epsilon: Enclosure) -> float:
        """Return the level, plus the deviation of kernel and distribution from symmetric ones.

        It is inf if the search does not prove the level.
        """
        level, shape = self.level, self.shape
        is_valid = isinstance(level, float) and 0 < level < math.inf and isinstance(shape, tuple) and len(shape) > 0
        is_valid = is_valid and all(isinstance(k, int) and k >= 2 for k in shape) and not bool(np.any(charges.pairs))
        kernel, p = FLOAT.of(charges.kernel), FLOAT.of(charges.prior)
        is_fitting = is_valid and kernel.shape[1] == math.prod(shape) and sum(shape) - len(kernel) in (0, len(shape))
        if not is_fitting or not float(np.min(p.lower)) > 0:
            return math.inf
        inputs, kappas = kernel.shape[1], list[float]()
        midpoints = np.asarray(kernel.midpoint).reshape(-1, *shape)
        for j, k in enumerate(shape):
            answer_scores = midpoints.sum(axis=tuple(i for i in range(1, midpoints.ndim) if i != j + 1))
            answer_norm = np.linalg.norm(answer_scores - answer_scores.mean(axis=1, keepdims=True))
            kappas.append(float(answer_norm) * k / math.sqrt(k - 1))
            equal_questions = [
                i for i in range(j) if shape[i] == k and abs(kappas[i] - kappas[j]) <= SAME_KAPPA * kappas[j]
            ]
            kappas[j] = kappas[equal_questions[0]] if equal_questions else kappas[j]
        if not 0 < max(kappas) < math.inf:
            return math.inf
        # |K q|^2 is at most |K' q|^2 and the largest entry of K^T K - K'^T K', times the square of the sum of q.
        symmetric_gram = FLOAT.zeros((inputs, inputs))
        for kappa, answer, k in zip(kappas, np.unravel_index(np.arange(inputs), shape), shape, strict=True):
            symmetric_gram = (
                symmetric_gram
                + (FLOAT.of(1.0 * (answer[:, None] == answer)) - 1 / FLOAT.of(k)) * (FLOAT.of(kappa) / inputs).square()
            )
        gram_error = (kernel.T @ kernel - symmetric_gram).abs().max() * float(inputs) ** 2
        rho = math.sqrt(level) * (1 - 2 * ULP)
        ratio, sets = float(FLOAT.of(epsilon.exp()).upper), _down_sets(shape)
        if not (
            _Scores.from_shape(shape, kappas).are_below(ratio, rho)
            if sets is None
            else _sets_are_below(sets, kappas, ratio, rho)
        ):
            return math.inf
        price = FLOAT.of(charges.rows) / p
        return float(((gram_error + level) / (p * inputs).min().square() - price.min()).upper)


def _down_sets(shape: tuple[int, ...]) -> Members | None:
    """List (n, *shape) all sets that hold, with a cell, every cell of lower answers.

    It is None if there are more than `MAX_SETS_COMPARED`.
    """
    sets = np.array([[False], [True]])
    for k in shape[::-1]:
        # A set is a sequence of sets of the other questions, one for each answer, each within the one before.
        is_subset = ~(sets[None] & ~sets[:, None]).any(axis=2) if len(sets) <= 1000 else None
        if is_subset is None:
            return None
        chains = np.arange(len(sets))[:, None]
        for _ in range(k - 1):
            is_allowed = is_subset[chains[:, -1]]
            if is_allowed.sum() > MAX_SETS_COMPARED:
                return None
            chain_indices, next_sets = np.nonzero(is_allowed)
            chains = np.hstack([chains[chain_indices], next_sets[:, None]])
        sets = sets[chains].reshape(len(chains), -1)
    return sets.reshape(-1, *shape)


def _sets_are_below(sets: Members, kappas: list[float], ratio: float, rho: float) -> bool:
    """Return True if |K u_q| <= rho for the patterns of all the sets."""
    columns, squared_norms = np.where(sets, ratio, 1.0), np.zeros(len(sets))
    columns = columns / columns.mean(axis=tuple(range(1, columns.ndim)), keepdims=True)
    for j, kappa in enumerate(kappas):
        means = columns.mean(axis=tuple(axis for axis in range(1, columns.ndim) if axis != j + 1))
        distances = np.abs(means - 1) + (4 * columns[0].size + 16) * ULP * means
        squared_norms += (kappa / means.shape[1]) ** 2 * (distances**2).sum(axis=1)
    return bool((squared_norms <= rho**2 * (1 - (8 * len(kappas) + 32 + columns[0].size) * ULP)).all())


@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores of directions up to symmetry.

    - `values` : (d, k) the scores of the first rays' directions.
    - `gram` : (d, d) the nonnegative inner products of these.
    - `rays` : (d, d) the first cone.
    - `ordered` : (n, d) numbers that are positive for none of the directions up to symmetry.
    """

    values: Array
    gram: Array
    rays: Array
    ordered: Array

    @classmethod
    def from_shape(cls, shape: tuple[int, ...], kappas: list[float]) -> _Scores:
        """Build the scores of questions with these numbers of answers and kappas."""
        cells = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape))
        starts = np.cumsum([0, *(k - 1 for k in shape)])
        gram, values, rays, ordered_differences = np.zeros((starts[-1], starts[-1])), [], np.eye(starts[-1]), []
        last_question: dict[tuple[int, float], int] = {}
        for j, (k, kappa) in enumerate(zip(shape, kappas, strict=True)):
            thresholds, question_rows = np.arange(1, k), slice(starts[j], starts[j + 1])
            gram[question_rows, question_rows] = (
                np.minimum.outer(thresholds, thresholds) * (k - np.maximum.outer(thresholds, thresholds)) / k
            )
            values.append(kappa * ((cells[j] < thresholds[:, None]) - thresholds[:, None] / k))
            previous_question = last_question.get((k, kappa))
            last_question[k, kappa] = j
            if previous_question is None:
                continue
            if k == 2:  # The rays of falling weights are 1, ..., 1, 0, ..., 0.
                rays[starts[j]] += rays[starts[previous_question]]
            else:
                difference = np.zeros(starts[-1])
                difference[question_rows], difference[starts[previous_question] : starts[previous_question + 1]] = (
                    k - thresholds,
                    thresholds - k,
                )
                ordered_differences.append(difference)
        return cls(np.vstack(values), gram, rays, np.array(ordered_differences).reshape(-1, starts[-1]))

    def are_below(self, ratio: float, rho: float) -> bool:
        """Return True if (ratio - 1) E(T - rho)_+ <= rho is proved for all unit directions.

        The search is limited by `MAX_NUMBERS_EXAMINED`.
        """
        d, inputs = self.values.shape
        if d > MAX_CONE_DIMENSIONS:
            return False
        chunk, work, open_cones = max(1, NUMBERS_PER_BATCH // (d * inputs)), 0.0, [self.rays[None]]
        first_rays, second_rays = np.triu_indices(d, 1)
        while open_cones:
            rays = open_cones.pop()
            if len(rays) > chunk:
                open_cones.append(rays[chunk:])
                rays = rays[:chunk]
            work += float(rays.size) * inputs
            if work > MAX_NUMBERS_EXAMINED or rays.max() > LARGEST_RAY:
                return False
            order_values: Array = np.asarray(rays @ self.ordered.T)
            is_duplicate = (order_values >= 0).all(axis=1) & (order_values > 0).any(axis=1)
            rays = rays[~np.asarray(is_duplicate).any(axis=1)]
            if not len(rays):
                continue
            bound, largest_seen, lengths, products = self._bounds(rays, rho)
            is_open = ~((ratio - 1) * bound <= rho * (1 - 8 * ULP))
            if (ratio - 1) * largest_seen > rho:
                return False
            if not is_open.any():
                continue
            if d == 1:
                return False
            rays, lengths, products = rays[is_open], lengths[is_open], products[is_open]
            cone_numbers, longest_edges = np.arange(len(rays)), products[:, first_rays, second_rays].argmin(axis=1)
            first_ray, second_ray = (
                rays[cone_numbers, first_rays[longest_edges]],
                rays[cone_numbers, second_rays[longest_edges]],
            )
            scale = np.exp2(
                np.round(
                    np.log2(
                        lengths[cone_numbers, first_rays[longest_edges]]
                        / lengths[cone_numbers, second_rays[longest_edges]]
                    )
                )
            )[:, None]
            middle_rays = first_ray * np.maximum(1 / scale, 1) + second_ray * np.maximum(scale, 1)
            left_cones, right_cones = rays.copy(), rays.copy()
            (
                left_cones[cone_numbers, first_rays[longest_edges]],
                right_cones[cone_numbers, second_rays[longest_edges]],
            ) = middle_rays, middle_rays
            open_cones.append(np.concatenate([left_cones, right_cones]))
        return True

    def _bounds(self, rays: Array, rho: float) -> tuple[Array, float, Array, Array]:
        """Bound E(T - rho)_+ on cones (n, d, d), one ray in each row, from above.

        Also returns the largest value at a ray, and lengths and products of the rays.
        """
        d, inputs = self.values.shape
        relative_rounding = (8 * d + 64) * ULP
        lengths = np.sqrt(((rays @ self.gram) * rays).sum(axis=2))
        unit_rays = rays / lengths[..., None]
        products = unit_rays @ self.gram @ unit_rays.transpose(0, 2, 1)
        scores = unit_rays @ self.values
        score_rounding = relative_rounding * (unit_rays @ np.abs(self.values)).max(
            axis=(1, 2)
        )  # Above the rounding of any score.
        h = _shortest_length(products, np.ones(rays.shape[:2]))
        lowest_scores, highest_scores = (
            scores.min(axis=1) - score_rounding[:, None],
            scores.max(axis=1) + score_rounding[:, None],
        )
        is_inside, is_outside = lowest_scores >= rho, h[:, None] * highest_scores <= rho * (1 - 8 * ULP)
        excess = np.maximum(scores + (score_rounding + 4 * ULP * rho - rho / h)[:, None, None], 0.0)
        slopes = (excess * ~(is_inside | is_outside)[:, None]).sum(axis=2)
        slopes += ((scores + score_rounding[:, None, None]) * is_inside[:, None]).sum(axis=2)
        slopes = slopes / inputs * (1 + 2 * inputs * ULP) + 2 * inputs * ULP * score_rounding[:, None]
        length = np.minimum(
            _shortest_length(products, slopes), np.where(slopes.max(axis=1) > 0, h, 0.0) * slopes.max(axis=1)
        )
        bound = length - rho * is_inside.sum(axis=1) / inputs * (1 - 4 * ULP)
        largest_at_ray = float(np.maximum(scores - rho, 0.0).sum(axis=2).max()) / inputs
        return bound + 8 * ULP * length, largest_at_ray, lengths, products


def _shortest_length(products: Array, targets: Array) -> Array:
    """Bound the least length of a vector with prescribed products, (n,), from above.

    Its products with unit rays are at least `targets` (n, d), positive. products : (n, d, d) of the rays, nonnegative.
    The vector is a sum of rays with nonnegative weights, so that nothing cancels; its shortfall from `targets` makes it
    longer.
    """
    d = products.shape[1]
    diagonal = np.arange(d)
    targets = np.maximum(targets, 1e-7 * targets.max(axis=1, keepdims=True))
    is_used = np.ones(targets.shape, dtype=bool)
    best_lengths = np.full(len(targets), np.inf)
    for step in range(MAX_REDUCTION_STEPS + 1):
        if step:
            reduced_products = products * (is_used[:, :, None] & is_used[:, None])
            reduced_products[:, diagonal, diagonal] = np.where(is_used, reduced_products[:, diagonal, diagonal], 1.0)
            try:
                weights = np.linalg.solve(reduced_products, (targets * is_used)[..., None])[..., 0]
            except np.linalg.LinAlgError:
                break
            is_used &= weights > 0
            weights = np.maximum(weights, 0.0) * is_used
        else:
            weights = np.ones(targets.shape)
        with np.errstate(all="ignore"):
            achieved_targets = (products @ weights[..., None])[..., 0]
            lengths = (targets / achieved_targets).max(axis=1) * np.sqrt((achieved_targets * weights).sum(axis=1))
        best_lengths = np.where(lengths < best_lengths, lengths, best_lengths)
    return np.asarray(best_lengths * (1 + (8 * d + 64) * ULP))
