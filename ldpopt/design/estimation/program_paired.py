"""Few contrasts of many inputs under epsilon-LDP -> a bound without pricing, from products of the limits of two inputs.

A column S has entries 1 and E = exp(epsilon), so that with u = 1

    (S_x - u) (S_x - E u) = 0,        (S_x - u) (S_x' - u) >= 0.

For all numbers lambda, d and n >= 0 the form  Z = (lambda.S)(p.S) + sum d_x (S_x - u)(S_x - E u)
- sum n_xx' (S_x - u)(S_x' - u)  is therefore at most (lambda.S)(p.S) at every column. If it is at least |K S|^2 for all
real S and u, no column earns more than its price. Let M be the Schur complement of Z, with u left out, and N = F^T M F.
The best such K is N^(-1/2) F^T M, and every channel has

    tr(F^T J^-1 F) >= (tr N^(1/2))^2 / sum lambda.

The best lambda, d and n are found by Newton's method, with a barrier log det Z + sum log d + sum log n. All terms of Z
are products l.w m.w of two linear functions of w = (S, u), so that derivatives are products of few numbers. Pairs that
would raise the bound join in rounds. Of yes/no questions the pairs with no answer in common are there from the start:
one question at random never has both in a set, and up to epsilon of about 1 these pairs were enough for a tight bound.
`estimation.relaxation` proves what is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from ldpopt.design.estimation.relaxation import Relaxation
from ldpopt.numbers.tolerances import PAIRED_GAIN, PAIRED_GAP
from ldpopt.values.deadline import UNLIMITED, Deadline
from ldpopt.values.distribution import Array, Index

ROUNDS = 8  # The most rounds in which pairs join.
STEPS = 100  # The most Newton steps of a round.
WORK = 4e10  # The operations after which no further round begins: about a minute.
JOINING = 2  # The most pairs that join in a round, for each input.
CLOSER = 0.15  # The weight of the barrier, relative to the one before.
REACH = 0.8  # The share of the way to where a number becomes zero that a step goes at most.
Pairs = tuple[Index, Index]


@dataclass(frozen=True, eq=False)
class PairedDual:
    """K (d, k), lambda (k,), what proves them, and the bound on tr(F^T J^-1 F), here in floats."""

    kernel: Array
    rows: Array
    relaxed: Relaxation
    least: float


def paired_dual(
    prior: Array, ratio: float, factor: Array, accuracy: float, shape: Sequence[int] = (), enough: float = np.inf,
    deadline: Deadline = UNLIMITED,
) -> PairedDual | None:  # fmt: skip
    """The best bound that was found for positive p (k,), entries from 1 to `ratio` and centred F (k, d) of any rank.

    accuracy : the relative gap of the search. shape : the answers of each question, of which the inputs are cells.
    enough : the search ends at such a bound. None where it finds no numbers.
    """
    k, best, spent = len(prior), None, 0.0
    left, sizes, right = np.linalg.svd(factor, full_matrices=False)
    kept = sizes > 1e-10 * sizes[0]
    # The pairs of cells of yes/no questions that have no answer in common.
    first = np.arange(k // 2 if set(shape) == {2} and 2 ** len(shape) == k else 0)
    program = _Program(prior, (left * sizes)[:, kept], ratio, first, k - 1 - first, deadline.inner)
    path = program.path(PAIRED_GAP, program.start())
    for _ in deadline.inner.rounds(range(ROUNDS)):
        spent += STEPS / 4 * program.cost
        if not path:
            break
        joining = program.joining(path[-1], JOINING * k)
        if best is None or path[-1].least > best.least or not len(joining[0]):
            dual = program.dual((program.path(accuracy, path[-1]) or path)[-1])
            best = dual if best is None or dual.least > best.least else best
        if best.least >= enough or not len(joining[0]) or spent > WORK:
            break
        weights = path[-1].numbers[2 * k :]
        program = program.joined(weights > 1e-4 * weights.max(initial=0.0), *joining)
        path = program.path(PAIRED_GAP, program.start())
    return None if best is None else replace(best, kernel=right[kept].T @ best.kernel)


@dataclass(frozen=True, eq=False)
class _At:
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
    def least(self) -> float:
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
        """The operations of a step, about."""
        k, v = len(self.prior), 2 * len(self.prior) + len(self.first)
        return v**3 / 3 + 20.0 * k**3 + 10.0 * k * v**2 / 10

    @cached_property
    def products(self) -> tuple[Any, Any, Index]:
        """(k + 1, numbers) l of each number, as columns, the different m, and (numbers,) which of them each has."""
        k, n = len(self.prior), len(self.first)
        x, u, every = np.arange(k), np.full(k, k), np.arange(n) + 2 * k
        last = np.full(n, k)
        left = (
            np.concatenate([x, u, x, self.first, last]),
            np.concatenate([x, x, k + x, every, every]),
            np.concatenate([np.ones(k), -np.ones(k), np.ones(k), -np.ones(n), np.ones(n)]),
        )
        own = np.arange(n) + k + 1
        right = (
            np.concatenate([x, u, x, self.second, last]),
            np.concatenate([x, x, u, own, own]),
            np.concatenate([np.ones(k), np.full(k, -self.ratio), self.prior, np.ones(n), -np.ones(n)]),
        )
        every_left, every_right = (
            scipy.sparse.csc_matrix((value, (i, j)), shape=(k + 1, size))
            for (i, j, value), size in ((left, 2 * k + n), (right, k + 1 + n))
        )
        return every_left, every_right, np.concatenate([x, u, own])

    def form(self, numbers: Array) -> Array:
        """Z (k + 1, k + 1)."""
        k = len(self.prior)
        d, rows, weights = numbers[:k], numbers[k : 2 * k], numbers[2 * k :]
        together = self.together(weights)
        paid = np.outer(rows, self.prior)
        form = np.zeros((k + 1, k + 1))
        form[:k, :k] = (paid + paid.T) / 2 + np.diag(d) - together
        form[:k, k] = form[k, :k] = together.sum(axis=1) - (1 + self.ratio) / 2 * d
        form[k, k] = self.ratio * d.sum() - weights.sum()
        return form

    def together(self, weights: Array) -> Array:
        """n as a symmetric matrix (k, k) of halves."""
        halves = np.zeros((len(self.prior),) * 2)
        halves[self.first, self.second] = weights
        return (halves + halves.T) / 2

    def at(self, numbers: Array, barrier: float) -> _At | None:
        """The point, or None where it is outside."""
        k = len(self.prior)
        if not (np.isfinite(numbers).all() and min(numbers[:k].min(), numbers[2 * k :].min(initial=1.0)) > 0):
            return None
        form = self.form(numbers)
        try:
            root = np.linalg.cholesky(form)
        except np.linalg.LinAlgError:
            return None
        moved = np.vstack([self.factor, -(form[k, :k] @ self.factor)[None] / form[k, k]])
        inner = moved.T @ form @ moved
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        if not values[0] > 0:
            return None
        log_det = 2 * float(np.log(np.diag(root)).sum())
        return _At(numbers, form, log_det, moved @ vectors, values, float(numbers[k : 2 * k].sum()), barrier)

    def height(self, point: _At) -> float:
        """The objective with the barrier."""
        k, x = len(self.prior), point.numbers
        barrier = point.log_det + float(np.log(x[:k]).sum() + np.log(x[2 * k :]).sum())
        return 2 * float(np.sqrt(point.values).sum()) - point.prices + point.barrier * barrier

    def start(self) -> _At | None:
        """Simple numbers, scaled so that the objective is the bound."""
        k, p = len(self.prior), self.prior
        bend, weight = (self.ratio + 1) ** 2 / (4 * self.ratio), float(p.max())
        point = None
        while point is None and weight > 1e-12 * p.min():
            weight /= 4
            point = self.at(np.concatenate([p, 2 * bend * p, np.full(len(self.first), weight)]), 0.0)
        if point is None:
            return None
        numbers = point.numbers * (float(np.sqrt(point.values).sum()) / (2 * bend)) ** 2
        numbers[2 * k :] /= 4
        point = self.at(numbers, 0.0)
        return None if point is None else self.at(numbers, 5 * float(np.sqrt(point.values).sum()) / k)

    def path(self, accuracy: float, point: _At | None) -> list[_At]:
        """Central points, up to one at which the bound is the best up to `accuracy` or rounding is in the way."""
        central: list[_At] = []
        for _ in self.deadline.rounds(range(STEPS)):
            moved, length, promised = None, 0.0, 0.0
            with suppress(np.linalg.LinAlgError, ValueError):  # too far from regular for floats
                if point is not None:
                    moved, length, promised = self.moved(point)
                    moved = None if moved is None else self.levelled(moved)
            if moved is None:
                break
            point = moved
            if length > 0.5 and promised < point.barrier:
                central.append(point)
                if self.gap(point) < accuracy:
                    break
                point = self.at(point.numbers, CLOSER * point.barrier)
        return central

    def levelled(self, point: _At) -> _At:
        """The point with the best multiple of p in lambda, on which N does not depend: there p.Z^-1 p is 1/barrier."""
        k = len(self.prior)
        law = np.append(self.prior, 0.0)
        numbers = point.numbers.copy()
        numbers[k : 2 * k] += (point.barrier - 1 / float(law @ np.linalg.solve(point.form, law))) * self.prior
        return self.at(numbers, point.barrier) or point

    def gap(self, point: _At) -> float:
        """How far the bound is at most from the best one, relatively, at a central point."""
        return point.barrier * (2 * len(self.prior) + 1 + len(self.first)) / point.least

    def joined(self, kept: npt.NDArray[np.bool_], first: Index, second: Index) -> _Program:
        """The program for the pairs that are `kept` and for new ones."""
        return replace(self, first=np.append(self.first[kept], first), second=np.append(self.second[kept], second))

    def moved(self, point: _At) -> tuple[_At | None, float, float]:
        """The point after a step, its length, and what it promised; None where no step gains."""
        k, x = len(self.prior), point.numbers
        slope, curve = self.slopes(point)
        scale = 1 / np.sqrt(np.diag(curve))
        scaled, ridge = curve * scale[:, None] * scale, 1e-13
        while ridge < 1:
            with suppress(np.linalg.LinAlgError):
                factors = scipy.linalg.cho_factor(scaled + ridge * np.eye(len(x)))
                break
            ridge *= 10
        else:
            return None, 0.0, 0.0
        step = scipy.linalg.cho_solve(factors, slope * scale) * scale
        promised = float(slope @ step)
        root = np.linalg.cholesky(point.form)
        half = scipy.linalg.solve_triangular(root, self.form(step), lower=True)
        half = scipy.linalg.solve_triangular(root, half.T, lower=True)
        ends = np.delete(step / x, np.s_[k : 2 * k])
        fall = max(-float(np.linalg.eigvalsh((half + half.T) / 2)[0]), -float(ends.min()), 1e-9)
        length, best, height = min(1.0, REACH / fall), None, self.height(point) - 1e-13 * abs(self.height(point))
        while length > 1e-8:  # the best of halved steps: far from where a number becomes zero
            new = self.at(x + length * step, point.barrier)
            if new is not None and self.height(new) > height:
                best, height = new, self.height(new)
            elif best is not None:
                return best, 2 * length, promised
            length /= 2
        return best, length, promised

    def slopes(self, point: _At) -> tuple[Array, Array]:
        """The gradient, and minus the Hessian."""
        k, (left, right, which) = len(self.prior), self.products
        inverse = np.linalg.inv(point.form)
        with_left, with_right = inverse @ left, inverse @ right
        both = (left.T @ with_right)[:, which]
        on_left, on_right = left.T @ point.turned, (right.T @ point.turned)[which]
        roots = np.sqrt(point.values)
        own = point.barrier / point.numbers
        own[k : 2 * k] = 0.0
        slope = (on_left * on_right / roots).sum(axis=1) + point.barrier * np.diag(both) + own
        slope[k : 2 * k] -= 1
        curve = point.barrier / 2 * ((left.T @ with_left) * (right.T @ with_right)[which][:, which] + both * both.T)
        curve[np.diag_indices(len(slope))] += own**2 / point.barrier
        i, j = np.triu_indices(len(roots))
        weight = np.where(i == j, 1.0, 2.0) / (roots[i] * roots[j] * (roots[i] + roots[j]))
        moves = (on_left[:, i] * on_right[:, j] + on_left[:, j] * on_right[:, i]) * (np.sqrt(weight) / 2)
        bent = (on_left * right[k].toarray()[0, which, None] + on_right * left[k].toarray().T) / (2 * np.sqrt(roots))
        return slope, curve + moves @ moves.T + 2 / point.form[k, k] * bent @ bent.T

    def joining(self, point: _At, count: int) -> Pairs:
        """Up to `count` new pairs that would raise the bound the most."""
        k = len(self.prior)
        slope = (point.turned / np.sqrt(point.values)) @ point.turned.T
        gain = slope[:k, k:] + slope[k:, :k] - slope[:k, :k] - slope[k, k]
        gain[self.first, self.second] = gain[self.second, self.first] = -np.inf
        first, second = np.triu_indices(k, 1)
        gain = gain[first, second]
        order = np.argsort(-gain, kind="stable")[:count]
        order = order[gain[order] > PAIRED_GAIN * slope[k, k]]
        return first[order], second[order]

    def dual(self, point: _At) -> PairedDual:
        """The numbers at a point, with a centred kernel."""
        k = len(self.prior)
        d, rows, weights = point.numbers[:k], point.numbers[k : 2 * k], point.numbers[2 * k :]
        away = point.form[:k, k]
        outer = point.form[:k, :k] - np.outer(away, away) / point.form[k, k]
        inner = self.factor.T @ outer @ self.factor
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        kernel = (vectors / np.sqrt(values)) @ vectors.T @ self.factor.T @ outer
        total = kernel.sum(axis=1)
        rows = rows - 2 * total @ kernel + float(total @ total) * self.prior
        kernel = kernel - total[:, None] * self.prior
        relaxed = Relaxation(d[None], np.zeros(1), self.together(weights))
        return PairedDual(kernel, rows, relaxed, point.least)
