"""Kernels that treat the answers of each question alike, at an even law -> the most that any staircase pattern gains.

Inputs are cells of a product of questions, all with one probability. Up to a turn, which |K q| does not see, the rows
of K are blocks, kappa_j times an orthonormal basis of the differences of question j's answers: K_x . K_x' is the sum of
kappa_j^2 (1{x_j = x'_j} - 1/k_j) p_x p_x'. For a unit direction v the score T(x) = v.K_x/p_x is a sum of
kappa_j u_j(x_j), with u_j of sum 0 and sum_j |u_j|^2 = 1, and E T = 0. |K u_q| is at most rho for every pattern q if

    (e^epsilon - 1) E(T - rho)_+  <=  rho      for every such T.

The order of a question's answers does not matter, so that u_j may fall; nor does that of questions of one size and one
kappa. Sequences that fall are sums, with weights of at least 0, of the indicators of the first answers, less their
means. So all directions lie in one cone with as many rays as dimensions.

E(T - rho)_+ is convex in T. On a cone with unit rays w_i, unit vectors are sums a_i w_i with 1 <= sum a_i <= h. Inputs
that are above rho at all w_i, or below rho at all h w_i, stay so in between; a convex function o of the others that is
0 at 0 is below sum a_i o(h w_i)/h. The whole is then below a linear function, whose maximum over unit vectors is its
length: exact once no inputs are open. Cones are halved until it is small enough; their rays
are whole numbers of the first rays, so that the halves fill them.

The best pattern at such a score holds, with a cell, all cells of lower answers. Where few sets are like that, all of
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

MAX_WORK = 1e10  # The most cones times rays times inputs that are looked at: about half a minute.
MAX_DIRECTIONS = 10  # The most dimensions of cones that are looked at.
MAX_SETS = 300_000  # The most sets that are compared one by one.
CHUNK = 2**22  # The same for cones that are looked at together: what memory holds.
LARGEST_RAY = 2.0**40  # Rays beyond that have been halved too often to be whole numbers.
STEPS = 4  # Steps in which rays that a vector does not need leave it.
Members = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SymmetricScores(ByValue):
    """level : no column gains more, a positive number, which is checked. shape : the answers of each question. The
    kernel has a row for each of their differences, or for each answer.
    """

    level: float
    shape: tuple[int, ...]
    words: ClassVar[str] = "the directions up to symmetry of"

    def most(self, charges: Charges, epsilon: Enclosure) -> float:
        """The level, and what kernel and law differ from symmetric ones; inf where the search does not show it."""
        level, shape = self.level, self.shape
        sound = isinstance(level, float) and 0 < level < math.inf and isinstance(shape, tuple) and len(shape) > 0
        sound = sound and all(isinstance(k, int) and k >= 2 for k in shape) and not bool(np.any(charges.pairs))
        kernel, p = FLOAT.of(charges.kernel), FLOAT.of(charges.prior)
        fits = sound and kernel.shape[1] == math.prod(shape) and sum(shape) - len(kernel) in (0, len(shape))
        if not fits or not float(np.min(p.lower)) > 0:
            return math.inf
        inputs, kappas = kernel.shape[1], list[float]()
        middle = np.asarray(kernel.midpoint).reshape(-1, *shape)
        for j, k in enumerate(shape):
            of_answers = middle.sum(axis=tuple(i for i in range(1, middle.ndim) if i != j + 1))
            apart = np.linalg.norm(of_answers - of_answers.mean(axis=1, keepdims=True))
            kappas.append(float(apart) * k / math.sqrt(k - 1))
            same = [i for i in range(j) if shape[i] == k and abs(kappas[i] - kappas[j]) <= SAME_KAPPA * kappas[j]]
            kappas[j] = kappas[same[0]] if same else kappas[j]
        if not 0 < max(kappas) < math.inf:
            return math.inf
        # |K q|^2 is at most |K' q|^2 and the largest entry of K^T K - K'^T K', times the square of the sum of q.
        alike = FLOAT.zeros((inputs, inputs))
        for kappa, own, k in zip(kappas, np.unravel_index(np.arange(inputs), shape), shape, strict=True):
            alike = (
                alike + (FLOAT.of(1.0 * (own[:, None] == own)) - 1 / FLOAT.of(k)) * (FLOAT.of(kappa) / inputs).square()
            )
        off = (kernel.T @ kernel - alike).abs().max() * float(inputs) ** 2
        rho = math.sqrt(level) * (1 - 2 * ULP)
        ratio, sets = float(FLOAT.of(epsilon.exp()).upper), _falling(shape)
        if not (
            _Scores.of(shape, kappas).are_below(ratio, rho) if sets is None else _are_below(sets, kappas, ratio, rho)
        ):
            return math.inf
        paid = FLOAT.of(charges.rows) / p
        return float(((off + level) / (p * inputs).min().square() - paid.min()).upper)


def _falling(shape: tuple[int, ...]) -> Members | None:
    """(n, *shape) all sets that hold, with a cell, every cell of lower answers; None beyond `MAX_SETS` of them."""
    sets = np.array([[False], [True]])
    for k in shape[::-1]:
        # A set is a sequence of sets of the other questions, one for each answer, each within the one before.
        within = ~(sets[None] & ~sets[:, None]).any(axis=2) if len(sets) <= 1000 else None
        if within is None:
            return None
        chains = np.arange(len(sets))[:, None]
        for _ in range(k - 1):
            allowed = within[chains[:, -1]]
            if allowed.sum() > MAX_SETS:
                return None
            last, following = np.nonzero(allowed)
            chains = np.hstack([chains[last], following[:, None]])
        sets = sets[chains].reshape(len(chains), -1)
    return sets.reshape(-1, *shape)


def _are_below(sets: Members, kappas: list[float], ratio: float, rho: float) -> bool:
    """Whether |K u_q| <= rho for the patterns of all the sets."""
    columns, square = np.where(sets, ratio, 1.0), np.zeros(len(sets))
    columns = columns / columns.mean(axis=tuple(range(1, columns.ndim)), keepdims=True)
    for j, kappa in enumerate(kappas):
        share = columns.mean(axis=tuple(axis for axis in range(1, columns.ndim) if axis != j + 1))
        off = np.abs(share - 1) + (4 * columns[0].size + 16) * ULP * share
        square += (kappa / share.shape[1]) ** 2 * (off**2).sum(axis=1)
    return bool((square <= rho**2 * (1 - (8 * len(kappas) + 32 + columns[0].size) * ULP)).all())


@dataclass(frozen=True, eq=False)
class _Scores:
    """values : (d, k) the scores of the first rays' directions. gram : (d, d) the inner products of these, no entry
    below 0. rays : (d, d) the cone to begin with. ordered : (n, d) numbers that are above 0 for none of the directions
    up to symmetry.
    """

    values: Array
    gram: Array
    rays: Array
    ordered: Array

    @classmethod
    def of(cls, shape: tuple[int, ...], kappas: list[float]) -> _Scores:
        """The scores of questions with these numbers of answers and kappas."""
        cells = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape))
        starts = np.cumsum([0, *(k - 1 for k in shape)])
        gram, values, rays, ordered = np.zeros((starts[-1], starts[-1])), [], np.eye(starts[-1]), []
        last: dict[tuple[int, float], int] = {}
        for j, (k, kappa) in enumerate(zip(shape, kappas, strict=True)):
            first, own = np.arange(1, k), slice(starts[j], starts[j + 1])
            gram[own, own] = np.minimum.outer(first, first) * (k - np.maximum.outer(first, first)) / k
            values.append(kappa * ((cells[j] < first[:, None]) - first[:, None] / k))
            before = last.get((k, kappa))
            last[k, kappa] = j
            if before is None:
                continue
            if k == 2:  # the rays of weights that fall are 1, ..., 1, 0, ..., 0
                rays[starts[j]] += rays[starts[before]]
            else:
                above = np.zeros(starts[-1])
                above[own], above[starts[before] : starts[before + 1]] = k - first, first - k
                ordered.append(above)
        return cls(np.vstack(values), gram, rays, np.array(ordered).reshape(-1, starts[-1]))

    def are_below(self, ratio: float, rho: float) -> bool:
        """Whether (ratio - 1) E(T - rho)_+ <= rho for all unit directions, shown within `MAX_WORK`."""
        d, inputs = self.values.shape
        if d > MAX_DIRECTIONS:
            return False
        chunk, work, waiting = max(1, CHUNK // (d * inputs)), 0.0, [self.rays[None]]
        first, second = np.triu_indices(d, 1)
        while waiting:
            rays = waiting.pop()
            if len(rays) > chunk:
                waiting.append(rays[chunk:])
                rays = rays[:chunk]
            work += float(rays.size) * inputs
            if work > MAX_WORK or rays.max() > LARGEST_RAY:
                return False
            turned: Array = np.asarray(rays @ self.ordered.T)
            doubled = (turned >= 0).all(axis=1) & (turned > 0).any(axis=1)
            rays = rays[~np.asarray(doubled).any(axis=1)]
            if not len(rays):
                continue
            bound, reached, lengths, products = self._bounds(rays, rho)
            still = ~((ratio - 1) * bound <= rho * (1 - 8 * ULP))
            if (ratio - 1) * reached > rho:
                return False
            if not still.any():
                continue
            if d == 1:
                return False
            rays, lengths, products = rays[still], lengths[still], products[still]
            each, edge = np.arange(len(rays)), products[:, first, second].argmin(axis=1)
            first_ray, second_ray = rays[each, first[edge]], rays[each, second[edge]]
            scale = np.exp2(np.round(np.log2(lengths[each, first[edge]] / lengths[each, second[edge]])))[:, None]
            middle = first_ray * np.maximum(1 / scale, 1) + second_ray * np.maximum(scale, 1)
            left, right = rays.copy(), rays.copy()
            left[each, first[edge]], right[each, second[edge]] = middle, middle
            waiting.append(np.concatenate([left, right]))
        return True

    def _bounds(self, rays: Array, rho: float) -> tuple[Array, float, Array, Array]:
        """(n,) above E(T - rho)_+ on cones (n, d, d), one ray in each row; the most at a ray; lengths and products."""
        d, inputs = self.values.shape
        small = (8 * d + 64) * ULP
        lengths = np.sqrt(((rays @ self.gram) * rays).sum(axis=2))
        unit = rays / lengths[..., None]
        products = unit @ self.gram @ unit.transpose(0, 2, 1)
        scores = unit @ self.values
        wrong = small * (unit @ np.abs(self.values)).max(axis=(1, 2))  # above the rounding of any score
        h = _length(products, np.ones(rays.shape[:2]))
        low, high = scores.min(axis=1) - wrong[:, None], scores.max(axis=1) + wrong[:, None]
        inside, outside = low >= rho, h[:, None] * high <= rho * (1 - 8 * ULP)
        above = np.maximum(scores + (wrong + 4 * ULP * rho - rho / h)[:, None, None], 0.0)
        slopes = (above * ~(inside | outside)[:, None]).sum(axis=2)
        slopes += ((scores + wrong[:, None, None]) * inside[:, None]).sum(axis=2)
        slopes = slopes / inputs * (1 + 2 * inputs * ULP) + 2 * inputs * ULP * wrong[:, None]
        length = np.minimum(_length(products, slopes), np.where(slopes.max(axis=1) > 0, h, 0.0) * slopes.max(axis=1))
        bound = length - rho * inside.sum(axis=1) / inputs * (1 - 4 * ULP)
        reached = float(np.maximum(scores - rho, 0.0).sum(axis=2).max()) / inputs
        return bound + 8 * ULP * length, reached, lengths, products


def _length(products: Array, wanted: Array) -> Array:
    """(n,) above the least length of a vector whose products with unit rays are at least `wanted` (n, d), positive.

    products : (n, d, d) of the rays, none below 0. The vector is a sum of rays with weights of at least 0, so that
    nothing cancels; what it misses of `wanted` makes it longer.
    """
    d = products.shape[1]
    diagonal = np.arange(d)
    wanted = np.maximum(wanted, 1e-7 * wanted.max(axis=1, keepdims=True))
    used = np.ones(wanted.shape, dtype=bool)
    best = np.full(len(wanted), np.inf)
    for step in range(STEPS + 1):
        if step:
            own = products * (used[:, :, None] & used[:, None])
            own[:, diagonal, diagonal] = np.where(used, own[:, diagonal, diagonal], 1.0)
            try:
                weights = np.linalg.solve(own, (wanted * used)[..., None])[..., 0]
            except np.linalg.LinAlgError:
                break
            used &= weights > 0
            weights = np.maximum(weights, 0.0) * used
        else:
            weights = np.ones(wanted.shape)
        with np.errstate(all="ignore"):
            met = (products @ weights[..., None])[..., 0]
            grown = (wanted / met).max(axis=1) * np.sqrt((met * weights).sum(axis=1))
        best = np.where(grown < best, grown, best)
    return np.asarray(best * (1 + (8 * d + 64) * ULP))
