"""Few contrasts of many inputs under epsilon-LDP -> a bound without pricing, from products of the limits of two inputs.

A column S has entries 1 and E = exp(epsilon), so that with u = 1

    (S_x - u) (S_x - E u) = 0,        (S_x - u) (S_x' - u) >= 0.

For all numbers lambda, d and n >= 0 the form  Z = (lambda.S)(p.S) + sum d_x (S_x - u)(S_x - E u)
- sum n_xx' (S_x - u)(S_x' - u)  is therefore at most (lambda.S)(p.S) at every column. If it is at least |K S|^2 for all
real S and u, no column earns more than its price. Let M be the Schur complement of Z, with u left out, and N = F^T M
F. The best such K is N^(-1/2) F^T M, and every channel has

    tr(F^T J^-1 F) >= (tr N^(1/2))^2 / sum lambda.

The best lambda, d and n are found by Newton's method, with a barrier log det Z + sum log d + sum log n. All terms of Z
are products l.w m.w of two linear functions of w = (S, u), so that derivatives are products of few numbers. Pairs that
would raise the bound join in rounds. For yes/no questions the pairs with no answer in common are included from the
start. One question at random never has both in a set, and up to epsilon of about 1 these pairs were enough for a tight
bound. `estimation.relaxation` proves the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from ldpopt.design.estimation.relaxation import Relaxation
from ldpopt.numbers.tolerances import PAIRED_GAIN, PAIRED_GAP
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

MAX_PAIR_ROUNDS = 8
MAX_NEWTON_STEPS = 100  # Of a round.
MAX_OPERATIONS = 4e10  # Then no further round begins: about a minute.
PAIRS_PER_INPUT = 2  # New pairs in a round, for each input.
BARRIER_FACTOR = 0.15  # The weight of the barrier, relative to the one before.
STEP_FRACTION = 0.8  # The largest fraction of the way to where a number becomes zero.
Pairs = tuple[Index, Index]


@dataclass(frozen=True, eq=False)
class PairedDual:
    """The kernel K (d, k), lambda (k,), the relaxation that proves them, and the bound on tr(F^T J^-1 F), in floats."""

    kernel: Array
    rows: Array
    relaxed: Relaxation
    bound: float


def paired_dual(
    prior: Array, ratio: float, factor: Array, accuracy: float, shape: Sequence[int] = (), enough_bound: float = np.inf,
    deadline: Deadline = UNLIMITED,
) -> PairedDual | None:  # fmt: skip
    """Compute the best bound for positive p (k,) and centered F (k, d) of any rank.

    The columns have entries from 1 to `ratio`. It is None if no numbers exist.

    - `accuracy` : the relative gap of the search.
    - `shape` : the answers of each question; the inputs are the cells of all questions.
    - `enough_bound` : the search ends at such a bound.
    """
    k, best, operations = len(prior), None, 0.0
    left_vectors, sizes, right_vectors = np.linalg.svd(factor, full_matrices=False)
    is_nonzero = sizes > 1e-10 * sizes[0]
    # The pairs of cells of yes/no questions that have no answer in common.
    first = np.arange(k // 2 if set(shape) == {2} and 2 ** len(shape) == k else 0)
    program = _Program(prior, (left_vectors * sizes)[:, is_nonzero], ratio, first, k - 1 - first, deadline.inner)
    path = program.path(PAIRED_GAP, program.start())
    for _ in deadline.inner.rounds(range(MAX_PAIR_ROUNDS)):
        operations += MAX_NEWTON_STEPS / 4 * program.cost
        if not path:
            break
        new_pairs = program.joining(path[-1], PAIRS_PER_INPUT * k)
        if best is None or path[-1].bound > best.bound or not len(new_pairs[0]):
            dual = program.dual((program.path(accuracy, path[-1]) or path)[-1])
            best = dual if best is None or dual.bound > best.bound else best
        if best.bound >= enough_bound or not len(new_pairs[0]) or operations > MAX_OPERATIONS:
            break
        weights = path[-1].numbers[2 * k :]
        program = program.with_pairs(weights > 1e-4 * weights.max(initial=0.0), *new_pairs)
        path = program.path(PAIRED_GAP, program.start())
    return None if best is None else replace(best, kernel=right_vectors[is_nonzero].T @ best.kernel)


@dataclass(frozen=True, eq=False)
class _PairedPoint:
    """Numbers (lambda behind d, then n), log det Z, Z, its entry for u, F's directions V with T F V, and N's values.

    barrier : the weight of the barrier.
    """

    numbers: Array
    form: Array
    log_det: float
    turned: Array
    values: Array
    prices: float
    barrier: float = 0.0

    @property
    def bound(self) -> float:
        """The bound."""
        return float(np.sqrt(self.values).sum() ** 2 / self.prices)


@dataclass(frozen=True, eq=False)
class _Program:
    """The program for given pairs of inputs."""

    prior: Array
    factor: Array
    ratio: float
    first: Index
    second: Index
    deadline: Deadline

    @property
    def cost(self) -> float:
        """The operations of a step, approximately."""
        k, v = len(self.prior), 2 * len(self.prior) + len(self.first)
        return v**3 / 3 + 20.0 * k**3 + 10.0 * k * v**2 / 10

    @cached_property
    def products(self) -> tuple[Any, Any, Index]:
        """The linear functions of each number's product.

        They are (k + 1, numbers) l of each number, as columns, the different m, and (numbers,) the index of each
        number's m.
        """
        k, n = len(self.prior), len(self.first)
        x, u, pair_numbers = np.arange(k), np.full(k, k), np.arange(n) + 2 * k
        last_index = np.full(n, k)
        left = (
            np.concatenate([x, u, x, self.first, last_index]),
            np.concatenate([x, x, k + x, pair_numbers, pair_numbers]),
            np.concatenate([np.ones(k), -np.ones(k), np.ones(k), -np.ones(n), np.ones(n)]),
        )
        pair_columns = np.arange(n) + k + 1
        right = (
            np.concatenate([x, u, x, self.second, last_index]),
            np.concatenate([x, x, u, pair_columns, pair_columns]),
            np.concatenate([np.ones(k), np.full(k, -self.ratio), self.prior, np.ones(n), -np.ones(n)]),
        )
        every_left, every_right = (
            scipy.sparse.csc_matrix((value, (i, j)), shape=(k + 1, size))
            for (i, j, value), size in ((left, 2 * k + n), (right, k + 1 + n))
        )
        return every_left, every_right, np.concatenate([x, u, pair_columns])

    def form(self, numbers: Array) -> Array:
        """Compute Z (k + 1, k + 1)."""
        k = len(self.prior)
        d, rows, weights = numbers[:k], numbers[k : 2 * k], numbers[2 * k :]
        pair_form = self.together(weights)
        price_form = np.outer(rows, self.prior)
        form = np.zeros((k + 1, k + 1))
        form[:k, :k] = (price_form + price_form.T) / 2 + np.diag(d) - pair_form
        form[:k, k] = form[k, :k] = pair_form.sum(axis=1) - (1 + self.ratio) / 2 * d
        form[k, k] = self.ratio * d.sum() - weights.sum()
        return form

    def together(self, weights: Array) -> Array:
        """Build n as a symmetric matrix (k, k) of halves."""
        halves = np.zeros((len(self.prior),) * 2)
        halves[self.first, self.second] = weights
        return (halves + halves.T) / 2

    def evaluate(self, numbers: Array, barrier: float) -> _PairedPoint | None:
        """Compute the point; None if it is outside."""
        k = len(self.prior)
        if not (np.isfinite(numbers).all() and min(numbers[:k].min(), numbers[2 * k :].min(initial=1.0)) > 0):
            return None
        form = self.form(numbers)
        try:
            root = np.linalg.cholesky(form)
        except np.linalg.LinAlgError:
            return None
        directions = np.vstack([self.factor, -(form[k, :k] @ self.factor)[None] / form[k, k]])
        inner = directions.T @ form @ directions
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        if not values[0] > 0:
            return None
        log_det = 2 * float(np.log(np.diag(root)).sum())
        return _PairedPoint(
            numbers, form, log_det, directions @ vectors, values, float(numbers[k : 2 * k].sum()), barrier
        )

    def height(self, point: _PairedPoint) -> float:
        """Compute the objective with the barrier."""
        k, x = len(self.prior), point.numbers
        barrier = point.log_det + float(np.log(x[:k]).sum() + np.log(x[2 * k :]).sum())
        return 2 * float(np.sqrt(point.values).sum()) - point.prices + point.barrier * barrier

    def start(self) -> _PairedPoint | None:
        """Build simple numbers, scaled so that the objective is the bound."""
        k, p = len(self.prior), self.prior
        curvature, weight = (self.ratio + 1) ** 2 / (4 * self.ratio), float(p.max())
        point = None
        while point is None and weight > 1e-12 * p.min():
            weight /= 4
            point = self.evaluate(np.concatenate([p, 2 * curvature * p, np.full(len(self.first), weight)]), 0.0)
        if point is None:
            return None
        numbers = point.numbers * (float(np.sqrt(point.values).sum()) / (2 * curvature)) ** 2
        numbers[2 * k :] /= 4
        point = self.evaluate(numbers, 0.0)
        return None if point is None else self.evaluate(numbers, 5 * float(np.sqrt(point.values).sum()) / k)

    def path(self, accuracy: float, point: _PairedPoint | None) -> list[_PairedPoint]:
        """List central points.

        The last one is best up to `accuracy`, or rounding prevents progress.
        """
        central_points: list[_PairedPoint] = []
        for _ in self.deadline.rounds(range(MAX_NEWTON_STEPS)):
            next_point, length, expected_gain = None, 0.0, 0.0
            with suppress(np.linalg.LinAlgError, ValueError):  # too far from regular for floats
                if point is not None:
                    next_point, length, expected_gain = self.moved(point)
                    next_point = None if next_point is None else self.levelled(next_point)
            if next_point is None:
                break
            point = next_point
            if length > 0.5 and expected_gain < point.barrier:
                central_points.append(point)
                if self.gap(point) < accuracy:
                    break
                point = self.evaluate(point.numbers, BARRIER_FACTOR * point.barrier)
        return central_points

    def levelled(self, point: _PairedPoint) -> _PairedPoint:
        """Set the multiple of p in lambda, which N ignores, to its optimum: there p.Z^-1 p is 1/barrier."""
        k = len(self.prior)
        law = np.append(self.prior, 0.0)
        numbers = point.numbers.copy()
        numbers[k : 2 * k] += (point.barrier - 1 / float(law @ np.linalg.solve(point.form, law))) * self.prior
        return self.evaluate(numbers, point.barrier) or point

    def gap(self, point: _PairedPoint) -> float:
        """Bound the relative distance from the best bound, at a central point."""
        return point.barrier * (2 * len(self.prior) + 1 + len(self.first)) / point.bound

    def with_pairs(self, is_selected: npt.NDArray[np.bool_], first: Index, second: Index) -> _Program:
        """Build the program for selected pairs and new ones."""
        return replace(
            self, first=np.append(self.first[is_selected], first), second=np.append(self.second[is_selected], second)
        )

    def moved(self, point: _PairedPoint) -> tuple[_PairedPoint | None, float, float]:
        """Try a step; return the point, the length and the expected gain.

        The point is None if no step gains.
        """
        k, x = len(self.prior), point.numbers
        slope, curvature = self.slopes(point)
        scale = 1 / np.sqrt(np.diag(curvature))
        scaled_curvature, ridge = curvature * scale[:, None] * scale, 1e-13
        while ridge < 1:
            with suppress(np.linalg.LinAlgError):
                factors = scipy.linalg.cho_factor(scaled_curvature + ridge * np.eye(len(x)))
                break
            ridge *= 10
        else:
            return None, 0.0, 0.0
        step = scipy.linalg.cho_solve(factors, slope * scale) * scale
        expected_gain = float(slope @ step)
        root = np.linalg.cholesky(point.form)
        half = scipy.linalg.solve_triangular(root, self.form(step), lower=True)
        half = scipy.linalg.solve_triangular(root, half.T, lower=True)
        relative_steps = np.delete(step / x, np.s_[k : 2 * k])
        decrease = max(-float(np.linalg.eigvalsh((half + half.T) / 2)[0]), -float(relative_steps.min()), 1e-9)
        length, best, height = (
            min(1.0, STEP_FRACTION / decrease),
            None,
            self.height(point) - 1e-13 * abs(self.height(point)),
        )
        while length > 1e-8:  # the best of halved steps: far from where a number becomes zero
            candidate = self.evaluate(x + length * step, point.barrier)
            if candidate is not None and self.height(candidate) > height:
                best, height = candidate, self.height(candidate)
            elif best is not None:
                return best, 2 * length, expected_gain
            length /= 2
        return best, length, expected_gain

    def slopes(self, point: _PairedPoint) -> tuple[Array, Array]:
        """Compute the gradient, and minus the Hessian."""
        k, (left, right, right_index) = len(self.prior), self.products
        inverse = np.linalg.inv(point.form)
        with_left, with_right = inverse @ left, inverse @ right
        inverse_products = (left.T @ with_right)[:, right_index]
        left_values, right_values = left.T @ point.turned, (right.T @ point.turned)[right_index]
        roots = np.sqrt(point.values)
        barrier_slopes = point.barrier / point.numbers
        barrier_slopes[k : 2 * k] = 0.0
        slope = (
            (left_values * right_values / roots).sum(axis=1)
            + point.barrier * np.diag(inverse_products)
            + barrier_slopes
        )
        slope[k : 2 * k] -= 1
        curvature = (
            point.barrier
            / 2
            * (
                (left.T @ with_left) * (right.T @ with_right)[right_index][:, right_index]
                + inverse_products * inverse_products.T
            )
        )
        curvature[np.diag_indices(len(slope))] += barrier_slopes**2 / point.barrier
        i, j = np.triu_indices(len(roots))
        weight = np.where(i == j, 1.0, 2.0) / (roots[i] * roots[j] * (roots[i] + roots[j]))
        direction_products = (left_values[:, i] * right_values[:, j] + left_values[:, j] * right_values[:, i]) * (
            np.sqrt(weight) / 2
        )
        square_terms = (left_values * right[k].toarray()[0, right_index, None] + right_values * left[k].toarray().T) / (
            2 * np.sqrt(roots)
        )
        return slope, curvature + direction_products @ direction_products.T + 2 / point.form[
            k, k
        ] * square_terms @ square_terms.T

    def joining(self, point: _PairedPoint, count: int) -> Pairs:
        """Find up to `count` new pairs that would raise the bound the most."""
        k = len(self.prior)
        slope = (point.turned / np.sqrt(point.values)) @ point.turned.T
        gain = slope[:k, k:] + slope[k:, :k] - slope[:k, :k] - slope[k, k]
        gain[self.first, self.second] = gain[self.second, self.first] = -np.inf
        first, second = np.triu_indices(k, 1)
        gain = gain[first, second]
        order = np.argsort(-gain, kind="stable")[:count]
        order = order[gain[order] > PAIRED_GAIN * slope[k, k]]
        return first[order], second[order]

    def dual(self, point: _PairedPoint) -> PairedDual:
        """Build the numbers at a point, with a centered kernel."""
        k = len(self.prior)
        d, rows, weights = point.numbers[:k], point.numbers[k : 2 * k], point.numbers[2 * k :]
        last_column = point.form[:k, k]
        schur_complement = point.form[:k, :k] - np.outer(last_column, last_column) / point.form[k, k]
        inner = self.factor.T @ schur_complement @ self.factor
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        roots = np.sqrt(np.maximum(values, 1e-12 * values.max()))  # some contrasts may hardly count
        kernel = (vectors / roots) @ vectors.T @ self.factor.T @ schur_complement
        total = kernel.sum(axis=1)
        rows = rows - 2 * total @ kernel + float(total @ total) * self.prior
        kernel = kernel - total[:, None] * self.prior
        relaxation = Relaxation(d[None], np.zeros(1), self.together(weights))
        return PairedDual(kernel, rows, relaxation, point.bound)
