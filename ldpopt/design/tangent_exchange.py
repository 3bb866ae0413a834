"""Exchange over single likelihood ratios, for divergences between rows: small programs and exact pricing.

For a few labels s the tangents of the divergence are linear utilities, and the best channel with one output a label
is a small cone program with row multipliers lambda and one multiplier nu a pair of inputs. They price every other
ratio: on an interval with chord c the best column solves

    max  (c - lambda) . q - sum over pairs nu psi(q_x, q_x')      over  q >= 0, sum q = 1,

a smooth concave problem in k numbers, solved for all intervals at once by Newton steps along a barrier. Where its value
is positive, the ratio becomes a label; and the tangent planes of psi at the solutions are the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.alphabet_program import AlphabetProgram
from ldpopt.design.certificate import Certificate
from ldpopt.design.constraints import ZCDP, ColumnConstraint
from ldpopt.design.interval_dual import IntervalDual, Multiplier, chords
from ldpopt.design.labels import Exchange, Labels
from ldpopt.design.local_search import Climb
from ldpopt.design.methods import Found
from ldpopt.design.outputs import cleanest, merge, tangents, tangents_at
from ldpopt.design.problem import Problem
from ldpopt.design.program import label_program
from ldpopt.design.terms import Index, Moment
from ldpopt.distribution import Array, positive_integer
from ldpopt.errors import SolverError, invalid

ROUNDS = 25
ACCURACY = 2e-7
BARRIER = 1e-9
SPREAD = 60
KEPT = 16
NEW = 5
SMALL = 6
"""Up to this many inputs the programs over all intervals are tried where the single ratios do not settle."""

RATIOS = (1e-100, 1e100)


@dataclass(frozen=True)
class TangentExchange:
    """Exchange over single ratios, for `RenyiLDP` of order 1 and `ZCDP`, whose orders it finds [BS, Def 1.1].

    rounds : the most programs to solve for each set of orders. accuracy : the relative gap at which to stop. Beside
    other constraints the programs are those of `Exchange`, repeated for the orders that their channels exceed.

    >>> from ldpopt.design import Divergence, ZCDP, optimal_channel
    >>> from ldpopt.divergences import KL
    >>> design = optimal_channel(Divergence(KL, [0.8, 0.2], [0.3, 0.7]), ZCDP(0.5), method=TangentExchange())
    >>> design.guarantees[0].value <= 0.5, design.relative_gap < 1e-5
    (True, True)
    """

    rounds: int = ROUNDS
    accuracy: float = ACCURACY

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", positive_integer(self.rounds, "rounds"))
        if not self.accuracy > 0:
            raise invalid("accuracy", "a positive number", self.accuracy)

    def find(self, problem: Problem) -> Found:
        """The best channel of the programs, after the orders that it exceeds have joined."""
        count, matrix = 0, None
        while True:
            found: Found | None = None
            if applies(problem):
                exchange = _Exchange(problem, Labels.of(problem), self.accuracy)
                with suppress(SolverError):
                    proof, matrix, rounds = exchange.run(exchange.start() if matrix is None else matrix, self.rounds)
                    count += rounds
                    found = Found(matrix, f"exchange over single ratios in {count} rounds", _proof(proof))
                    if len(exchange.p0) <= SMALL and proof.upper_bound > exchange.value(matrix) * (1 + 1e-5):
                        other = Exchange().find(problem)
                        better = other.prove(problem, proof.channel) if other.prove else None
                        if better is not None and better.upper_bound < proof.upper_bound:
                            found = other
            if found is None:
                found = Exchange().find(problem)
            matrix = found.matrix
            tighter = tuple((c.tightened(matrix) or c) if isinstance(c, ZCDP) else c for c in problem.constraints)
            if tighter == problem.constraints:
                break
            problem = replace(problem, constraints=tighter)
        orders = [f"{a:.4g}" for c in problem.constraints if isinstance(c, ZCDP) for a in c.orders]
        how = found.method + (f", orders {', '.join(orders)}" if orders else "")
        own, constraints = found.prove, problem.constraints

        def prove(problem: Problem, channel: Channel) -> Certificate | None:
            return own(replace(problem, constraints=constraints), channel) if own else None

        return Found(cleanest(problem, matrix, Labels.of(problem).ascend), how, prove)


def _proof(certificate: IntervalDual) -> Callable[[Problem, Channel], Certificate | None]:
    return lambda problem, channel: replace(certificate, channel=channel)


def applies(problem: Problem) -> bool:
    """Whether every constraint is a divergence of finite order between all pairs of rows."""
    if not all(isinstance(c, ColumnConstraint) for c in problem.constraints):
        return False
    terms = [term for c in problem.constraints for term in c.columns(range(len(problem.reduction.pair)))]  # type: ignore[attr-defined]
    return all(isinstance(term, Moment) for term in terms)


class _Exchange:
    def __init__(self, problem: Problem, labels: Labels, accuracy: float) -> None:
        self.problem, self.labels, self.accuracy = problem, labels, accuracy
        self.f, self.p0, self.p1 = labels.f, labels.p0, labels.p1
        self.terms: tuple[Moment, ...] = labels.terms  # type: ignore[assignment]

    def start(self) -> Array:
        """A good channel with two outputs, from a local search."""
        k = len(self.p0)
        climb = Climb(
            AlphabetProgram((k, 2), self.terms, ()), self.value, lambda q: tangents(self.f, self.p0, self.p1, q)[None]
        )
        order = np.argsort(self.p0 / np.maximum(self.p0 + self.p1, 1e-300))
        starts = []
        for cut in np.unique(np.linspace(1, k - 1, 4).astype(int)):
            first = np.full(k, 0.6)
            first[order[cut:]] = 0.4
            starts.append(np.column_stack([first, 1 - first]))
        return climb.best(0, np.random.default_rng(0), starts)[0]

    def value(self, matrix: Array) -> float:
        return float(self.f.excess(self.p0 @ matrix, self.p1 @ matrix).sum())

    def run(self, matrix: Array, rounds: int) -> tuple[IntervalDual, Array, int]:
        """The best certificate, the best channel, and the number of programs."""
        champion, value = matrix, self.value(matrix)
        extra = np.zeros(0)
        if any((term.excess(matrix) > 1e-6 * term.cap).any() for term in self.terms):
            # A channel for fewer orders: only its ratios are of use.
            gains = tangents(self.f, self.p0, self.p1, matrix)
            champion = np.maximum(label_program(gains / np.abs(gains).max(), self.terms).matrix, 0.0)
        champion = self.labels.ascend(merge(champion, self.p0, self.p1, 1e-4))
        value = self.value(champion)
        active = [_few(term, champion) for term in self.terms]
        best: IntervalDual | None = None
        least, stale, number = np.inf, 0, 0
        while number < rounds and stale < 5:
            number += 1
            labels = _distinct(np.concatenate([self._posterior(champion), extra]))
            scale = value if value > 0 else 1.0
            gains = tangents_at(self.f, self.p0, self.p1, labels, 1 - labels) / scale
            try:
                q, rows, prices, active = self._solve(gains, active)
            except SolverError:
                extra, stale = extra[::2], stale + 1
                continue
            better = merge(q, self.p0, self.p1, 1e-3)
            feasible = all((term.excess(better) <= 1e-6 * term.cap).all() for term in self.terms)
            if feasible and self.value(better) > value:
                champion = self.labels.ascend(better)
                value = self.value(champion)
            knots = self._knots(champion)
            gains = chords(self.f, self.p0, self.p1, knots) / scale
            kept = [term.take(pairs) for term, pairs in zip(self.terms, active, strict=True)]
            columns = _best_columns(gains - rows, kept, prices)
            certificate = self._certificate(champion, knots, rows * scale, prices, active, columns, scale)
            bound = certificate.upper_bound
            stale = 0 if bound < least * (1 - 1e-8) else stale + 1
            if bound < least:
                best, least = certificate, bound
            if least - value <= self.accuracy * least:
                break
            slope = gains - rows
            for term, price in zip(kept, prices, strict=True):
                slope = slope - _gradient(term, price, columns[:, term.left] / columns[:, term.right], len(rows))
            rate = slope.max(axis=1)
            order = np.argsort(-rate)
            found = (columns @ self.p0 / (columns @ (self.p0 + self.p1)))[order[rate[order] > 1e-9]]
            used = labels[q.max(axis=0) > 1e-6]
            extra = np.concatenate([used[:KEPT], extra, _apart(found, np.concatenate([labels, extra]))[:NEW]])[-KEPT:]
        if best is None:
            raise SolverError("label program: no cone program was solved; pass method=Exchange()")
        return best, champion, number

    def _solve(self, gains: Array, active: list[Index]) -> tuple[Array, Array, list[Array], list[Index]]:
        """The program with the pairs that bind, found round by round: matrix, rows, a price a pair."""
        for _ in range(8):
            kept = [term.take(pairs) for term, pairs in zip(self.terms, active, strict=True)]
            solved = label_program(gains, kept)
            q = np.maximum(solved.matrix, 0.0)
            excess = [term.excess(q) for term in self.terms]
            new = [
                np.setdiff1d(np.flatnonzero(e > 1e-7 * term.cap), pairs)
                for e, term, pairs in zip(excess, self.terms, active, strict=True)
            ]
            if not any(len(one) for one in new):
                break
            active = [
                np.union1d(pairs, one[np.argsort(-e[one])[: 2 * len(self.p0)]]).astype(np.intp)
                for pairs, one, e in zip(active, new, excess, strict=True)
            ]
        mass = q.max(axis=0)
        used = np.flatnonzero(mass > 0.05 * mass.max())
        prices = []
        for multiplier, pairs in zip(solved.multipliers, active, strict=True):
            table = np.zeros((len(gains), len(pairs)))
            if len(pairs):
                pair, label = multiplier[:2].astype(np.intp)
                table[label, pair] = np.maximum(multiplier[3], 0.0)
            prices.append(np.median(table[used], axis=0) if len(pairs) else np.zeros(0))
        return q, solved.rows, prices, active

    def _posterior(self, matrix: Array) -> Array:
        a, b = self.p0 @ matrix, self.p1 @ matrix
        return np.asarray((a / (a + b))[a + b > 1e-7])

    def _knots(self, matrix: Array) -> Array:
        """Even in log-ratio, and around the ratios of the channel at distances that grow from 1e-5 of the range."""
        low, high = self.labels.low, self.labels.high
        at = self._posterior(matrix)
        step = (high - low) * np.geomspace(1e-5, 0.2, 30)
        graded = (at[:, None] + np.concatenate([[0.0], step, -step])).ravel()
        ends = [np.log(max(s, 1e-9)) - np.log(max(1 - s, 1e-9)) for s in (low, high)]
        even = 1 / (1 + np.exp(-np.linspace(ends[0], ends[1], SPREAD)[1:-1]))
        inside = np.concatenate([graded, even])
        inside = np.unique(inside[(inside > low) & (inside < high)])
        knots = np.concatenate([[low], inside, [high]])
        return np.asarray(knots[np.concatenate([[True], np.diff(knots) > 1e-9])])

    def _certificate(
        self, matrix: Array, knots: Array, rows: Array, prices: list[Array], active: list[Index],
        columns: Array, scale: float,
    ) -> IntervalDual:  # fmt: skip
        multipliers = []
        n = len(columns)
        for number, (pairs, price) in enumerate(zip(active, prices, strict=True)):
            if not len(pairs):
                continue
            kept = self.terms[number].take(pairs)
            pair, label = np.tile(np.arange(len(pairs)), n), np.repeat(np.arange(n), len(pairs))
            t = columns[:, kept.left] / columns[:, kept.right]
            made = np.stack([pair, label, np.clip(t.ravel(), *RATIOS), np.tile(price * scale, n)])
            multipliers.append(Multiplier(number, pairs, made))
        problem = self.problem
        channel = Channel(matrix) if len(matrix) != len(problem.utility.p0) else Channel(matrix, problem.utility.inputs)
        return IntervalDual(
            problem.utility, channel, problem.epsilon, problem.eta,
            problem.constraints, rows, tuple(multipliers), np.column_stack([self.p0, self.p1]), knots,  # type: ignore[arg-type]
        )  # fmt: skip


def _gradient(term: Moment, weight: Array, t: Array, k: int) -> Array:
    """(n, k) gradients of sum weight psi where the ratios are t (n, pairs)."""
    on_left, on_right = term.slopes(np.clip(t, *RATIOS))
    total = np.zeros((k, len(t)))
    np.add.at(total, term.left, (weight * on_left).T)
    np.add.at(total, term.right, (weight * on_right).T)
    return np.asarray(total.T)


def _best_columns(linear: Array, terms: Sequence[Moment], weights: list[Array]) -> Array:
    """(n, k) maximisers of linear . q - sum weight psi(q) + barrier sum log q over sum q = 1, by Newton's method."""
    n, k = linear.shape
    size = np.abs(linear).max() or 1.0
    q = np.full((n, k), 1 / k)
    for barrier in size * np.geomspace(1e-1, BARRIER, 17):
        for _ in range(4):
            slope = linear + barrier / q
            curve = np.zeros((n, k, k))
            at = np.arange(k)
            curve[:, at, at] += barrier / q**2
            for term, weight in zip(terms, weights, strict=True):
                t = q[:, term.left] / q[:, term.right]
                slope = slope - _gradient(term, weight, t, k)
                if term.order == 1:
                    bend = weight / q[:, term.left]
                else:
                    bend = weight * term.order * (term.order - 1) * t ** (term.order - 2) / q[:, term.right]
                flat = curve.reshape(n, k * k).T
                np.add.at(flat, term.left * k + term.left, bend.T)
                np.add.at(flat, term.left * k + term.right, -(bend * t).T)
                np.add.at(flat, term.right * k + term.left, -(bend * t).T)
                np.add.at(flat, term.right * k + term.right, (bend * t * t).T)
            # In units of q, where the barrier is round.
            scaled = curve * q[:, :, None] * q[:, None, :] / barrier
            scaled[:, at, at] *= 1 + 1e-14
            right = np.stack([slope * q / barrier, q / barrier], axis=2)
            solved = np.linalg.solve(scaled, right)
            step, toward = solved[:, :, 0] * q, solved[:, :, 1] * q
            step = step - (step.sum(axis=1) / toward.sum(axis=1))[:, None] * toward
            # Never more than nine tenths of the way to the boundary.
            reach = np.max(-step / q, axis=1)
            q = q + np.minimum(1.0, 0.9 / np.maximum(reach, 1e-300))[:, None] * step
            q = q / q.sum(axis=1, keepdims=True)
    return q


def _few(term: Moment, matrix: Array) -> Index:
    """Of the pairs that `matrix` binds, one for every input on either side: many bind at once, and say the same."""
    order = np.argsort(-term.excess(matrix), kind="stable")
    order = order[term.excess(matrix)[order] > -0.02 * term.cap]
    kept: list[int] = []
    left, right = set(), set()
    for pair in order.tolist():
        x, z = int(term.left[pair]), int(term.right[pair])
        if x not in left or z not in right:
            kept.append(pair)
            left.add(x)
            right.add(z)
    return np.array(sorted(kept), dtype=np.intp)


def _distinct(values: Array, apart: float = 1e-9) -> Array:
    values = np.sort(values)
    return np.asarray(values[np.concatenate([[True], np.diff(values) > apart])])


def _apart(found: Array, known: Array, apart: float = 1e-4) -> Array:
    """Those of `found`, in their order, that are further than `apart` from all before them."""
    kept: list[float] = []
    for one in found.tolist():
        if np.abs(known - one).min(initial=1.0) > apart and all(abs(one - other) > apart for other in kept):
            kept.append(one)
    return np.array(kept)
