"""The ledger: an immutable list of (mechanism, count) whose totals under every notion are one call."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.channel import as_channel
from ldpopt.composition.compose import ComposedPair, as_pair, is_parameters
from ldpopt.composition.pair import FinitePair
from ldpopt.composition.sums import compose_mcdp, union
from ldpopt.distribution import Array, number, positive_integer
from ldpopt.errors import invalid
from ldpopt.privacy.claims import MCDP, TV, ApproximateDP, Claim, PureDP, as_claim
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import down, up

Mechanism = Any
"""A channel or matrix, a `FinitePair`, a tuple (epsilon, delta, eta), or a `PureDP`, `ApproximateDP` or `TV` claim."""


@dataclass(frozen=True)
class Entry:
    """`count` uses of a mechanism: the pair that dominates it, and the pairs of inputs it stands for."""

    name: str
    count: int
    pair: FinitePair
    rows: tuple[FinitePair, ...]


@dataclass(frozen=True, repr=False)
class Ledger:
    """What has been spent: adaptively composed mechanisms with counts.

    `add` returns a new ledger. Each mechanism counts through the least pair that dominates it (one composition for
    hockey-stick notions) and through every pair of its rows (sums for Rényi notions), so the totals hold for
    every adaptive choice of inputs and mechanisms.

    >>> ledger = Ledger().add([[0.75, 0.25], [0.25, 0.75]], count=3).add((0.2, 0.0, 0.05), count=100)
    >>> round(float(ledger.approximate_dp(1e-6)), 6), round(float(ledger.local_dp()), 6)
    (10.246035, 23.295837)
    """

    entries: tuple[Entry, ...] = ()

    def add(self, mechanism: Mechanism, count: int = 1, name: str = "") -> Ledger:
        """The ledger with `count` more uses of `mechanism`; adding it that many times once each is the same."""
        count = positive_integer(count, "count")
        made = _entry(mechanism, count, name)
        return Ledger((*self.entries, made))

    def __add__(self, other: Ledger) -> Ledger:
        if not isinstance(other, Ledger):
            return NotImplemented
        return Ledger(self.entries + other.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    @cached_property
    def composed(self) -> ComposedPair:
        """The composition of all dominating pairs."""
        if not self.entries:
            return ComposedPair.of([(FinitePair(np.ones(1), np.ones(1)), 1)])
        return ComposedPair.of((entry.pair, entry.count) for entry in self.entries)

    @cached_property
    def _merged(self) -> tuple[tuple[tuple[FinitePair, ...], int], ...]:
        """(pairs of rows, count) with equal mechanisms together, in an order that does not depend on the entries'."""
        counts: dict[frozenset[FinitePair], int] = {}
        for entry in self.entries:
            key = frozenset(entry.rows)
            counts[key] = counts.get(key, 0) + entry.count
        parts = ((tuple(key), n) for key, n in counts.items())
        return tuple(sorted(parts, key=lambda part: min(p.p.tobytes() + p.q.tobytes() for p in part[0])))

    def local_dp(self) -> Guarantee:
        """Pure epsilon, in nats: the sum."""
        return self.composed.local_dp()

    def total_variation(self) -> Guarantee:
        """Total variation of everything together."""
        return self.composed.total_variation()

    def hockey_stick(self, epsilon: float) -> Guarantee:
        """The delta at `epsilon`."""
        return self.composed.hockey_stick(epsilon)

    def approximate_dp(self, delta: float) -> Guarantee:
        """The epsilon at `delta`."""
        return self.composed.approximate_dp(delta)

    def renyi(self, order: float) -> Guarantee:
        """The Rényi divergence of `order` >= 1: orders add [M, Prop 1]."""
        value = float(self._curve(np.array([float(order)]))[0])
        parameters = {"order": float(order)}
        return Guarantee("renyi", _outward(value), down(value, 512), None, True, "[M, Prop 1]", parameters)

    def zcdp(self, xi: float = 0.0) -> Guarantee:
        """The least rho with (xi, rho)-zCDP: sup over orders of (D_a - xi)/a of the summed curve [BS, Lemma 2.3].

        Smaller than the sum of the entries' own rho when they peak at different orders.
        """
        xi = number(xi, "xi")
        lower, value = _supremum(self._curve, xi)
        return Guarantee("zcdp", value, lower, None, False, "[BS, Lemma 2.3]", {"xi": xi})

    def approximate_zcdp(self, xi: float = 0.0) -> Guarantee:
        """rho of delta-approximate (xi, rho)-zCDP, delta the mass of infinite losses, given in `parameters`.

        Each dominating pair is conditioned on having a finite loss [BS, Cor 8.7]; rho add, 1 - delta multiply
        [BS, Lemma 8.2].
        """
        xi = number(xi, "xi")
        delta = union([(max(pair.infinite, pair.swapped.infinite), n) for pair, n in self.composed.parts])
        conditioned = [(_conditioned(pair), n) for pair, n in self.composed.parts]

        def curve(orders: Any) -> Any:
            return np.asarray(sum(n * np.maximum(p.renyi(orders), p.swapped.renyi(orders)) for p, n in conditioned))

        value = 0.0 if delta == 1 else _supremum(curve, xi)[1]
        parameters = {"delta": delta, "xi": xi}
        return Guarantee("approximate_zcdp", value, 0.0, None, False, "[BS, Lemma 8.2]", parameters)

    def mcdp(self) -> MCDP:
        """(sum mu, sqrt(sum tau^2)): mu is exact, tau is half the range of each loss (Hoeffding) [DR, Thm 3.4].

        tau is that of the mechanisms themselves only for channels and pairs: for entries given by parameters it is
        epsilon, since mCDP is not closed under post-processing [BS, App A].
        """
        if not self.entries:
            return MCDP(0.0, 0.0)
        items = []
        for rows, n in self._merged:
            mean = max(float(pair.renyi(1.0)[0]) for pair in rows)
            reach = max(float(pair.losses[0] - pair.losses[-1]) / 2 for pair in rows)
            items.append((MCDP(_outward(mean), up(reach, 16)), n))
        return compose_mcdp(items)

    def _curve(self, orders: Any) -> Any:
        total = np.zeros(len(orders))
        for rows, n in self._merged:
            total = total + n * np.max([pair.renyi(orders) for pair in rows], axis=0)
        return total

    def __repr__(self) -> str:
        lines = [f"  {entry.count} x {entry.name}" for entry in self.entries]
        return "\n".join([f"Ledger({len(self.entries)} entries)", *lines])


def _entry(mechanism: Mechanism, count: int, name: str) -> Entry:
    if isinstance(mechanism, Guarantee):
        mechanism = as_claim(mechanism)
    if isinstance(mechanism, PureDP):
        mechanism = (mechanism.epsilon,)
    elif isinstance(mechanism, ApproximateDP):
        mechanism = (mechanism.epsilon, mechanism.delta)
    elif isinstance(mechanism, TV):
        mechanism = (0.0, mechanism.eta)
    elif isinstance(mechanism, Claim):
        raise invalid(
            "mechanism", "a channel, a pair, or a PureDP, ApproximateDP or TV claim", type(mechanism).__name__
        )
    if isinstance(mechanism, FinitePair):
        return Entry(name or repr(mechanism), count, mechanism.both_ways(), (mechanism, mechanism.swapped))
    pair = as_pair(mechanism)
    if is_parameters(mechanism):
        shown = mechanism if isinstance(mechanism, tuple) else (mechanism,)
        numbers = ", ".join(f"{value:g}" for value in shown if value is not None)
        return Entry(name or f"({numbers})", count, pair, (pair,))
    channel = as_channel(mechanism)
    rows = tuple(dict.fromkeys(row for _, _, row in FinitePair.of_rows(channel)))
    return Entry(name or repr(channel), count, pair, rows or (pair,))


def _conditioned(pair: FinitePair) -> FinitePair:
    finite = (pair.p > 0) & (pair.q > 0)
    if not finite.any():
        return FinitePair(np.ones(1), np.ones(1))
    p, q = pair.p[finite], pair.q[finite]
    return FinitePair(p / p.sum(), q / q.sum())


def _outward(value: float) -> float:
    return up(value, 512)


def _supremum(curve: Any, xi: float) -> tuple[float, float]:
    """(a value reached, an upper bound) of sup over a > 1 of (D_a - xi)/a.

    (a - 1) D_a is convex in a, so between two orders it lies below its chord, which bounds the quotient in closed
    form; the intervals whose bound exceeds the best value found are halved until both meet.
    """
    edges = np.concatenate([[1.0], 1 + np.geomspace(1e-6, 1e6, 160)])
    values = curve(edges)
    if np.isinf(values[1]):
        return math.inf, math.inf
    beyond = max(0.0, float(curve(np.array([np.inf]))[0]) - xi) / edges[-1]
    while True:
        best = float(max(0.0, ((values - xi) / edges).max()))
        bounds = _chord_bounds(edges, values, xi)
        wide = np.flatnonzero((bounds > best * (1 + 1e-9)) & (edges[1:] - edges[:-1] > 1e-9 * edges[1:]))
        if len(wide) == 0 or len(edges) > 2000:
            break
        middle = 1 + np.sqrt(np.maximum(edges[wide] - 1, (edges[wide + 1] - 1) * 1e-3) * (edges[wide + 1] - 1))
        edges, values = np.insert(edges, wide + 1, middle), np.insert(values, wide + 1, curve(middle))
    return down(best, 512), _outward(max(float(bounds.max()), best, beyond))


def _chord_bounds(edges: Array, values: Array, xi: float) -> Array:
    """The largest (K/u - xi)/(1 + u) on each interval for K, u = a - 1, on its chord c + m u, with c <= 0."""
    u = edges - 1
    k = u * values
    slope = np.diff(k) / np.diff(u)
    intercept = np.minimum(k[:-1] - slope * u[:-1], 0.0)
    rise = slope - xi
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = (-intercept + np.sqrt(intercept**2 - rise * intercept)) / rise
        at = np.clip(np.where(rise > 0, peak, u[1:]), u[:-1], u[1:])
        found = (np.where(at > 0, intercept / at, 0.0) + rise) / (1 + at)
    return np.asarray(np.maximum(found, 0.0), dtype=np.float64)
