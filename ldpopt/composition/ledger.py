"""The ledger: an immutable list of mechanisms with counts, and their total privacy loss under every notion.

Calibration inverts it: the largest epsilon or count that still meets a target, rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.composition.compose import ComposedPair, composition
from ldpopt.composition.exact_measures import PRECISION_BITS, float_ends, loss_ends, total_of
from ldpopt.composition.mechanism import Mechanism, as_mechanism, as_pair, summed
from ldpopt.composition.parametric import MAX_USES, ParametricPair, largest_integer, tally, total, total_down, union
from ldpopt.composition.sums import compose_mcdp
from ldpopt.composition.unread import Noticing, unread
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures.exact import precision
from ldpopt.numbers.rounding import bisected, down, float_down, toward_privacy, up
from ldpopt.numbers.tolerances import MAXIMUM_EPSILON, MINIMUM_EPSILON
from ldpopt.privacy.capacity import (
    FunctionClass,
    Restricted,
    RestrictedKL,
    RestrictedRenyi,
    brackets,
    capacity_bounded,
    feature_map,
)
from ldpopt.privacy.claims import MCDP, ApproximateDP, PureDP, need
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.renyi import renyi_order
from ldpopt.privacy.supremum import largest_slope
from ldpopt.privacy.trade_off import TradeOffCurve
from ldpopt.values.distribution import Array, number, positive_integer, unit_interval
from ldpopt.values.results import Result, Rows

Parts = list[tuple[Mechanism, int]]


@dataclass(frozen=True, eq=False)
class Entry(Result):
    """`count` uses of a mechanism, and the features of a report that an adversary of bounded capacity can compute."""

    name: str
    count: int
    mechanism: Mechanism
    features: FunctionClass | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Ledger(Noticing, Rows[Entry]):
    """An account of the releases of one person: mechanisms with counts, composed adaptively.

    `add` returns a new ledger. For (epsilon, delta) privacy, the pairs of distributions that dominate the mechanisms
    are composed. For Rényi privacy, the divergences of the worst pairs of inputs are added. So the totals hold for
    every adaptive choice of inputs, and of the order of the mechanisms. Only `capacity_bounded` needs mechanisms that
    are fixed in advance. If the list itself depends on the reports, use a `PrivacyFilter`.

    >>> ledger = Ledger().add([[0.75, 0.25], [0.25, 0.75]], count=3).add((0.2, 0.0, 0.05), count=100)
    >>> round(float(ledger.approximate_dp(1e-6)), 6), round(float(ledger.local_dp()), 6)
    (10.246035, 23.295837)
    """

    entries: tuple[Entry, ...] = ()

    _records, _named = "entries", ("name", "count")

    def add(self, mechanism: Any, count: int = 1, name: str = "", features: Any = None) -> Ledger:
        """Return a new ledger with `count` more uses of `mechanism`; this one is unchanged.

        Adding a mechanism with a count equals adding it that many times. A statement that drops the result raises the
        warning `DroppedResult`.

        - `mechanism` : a channel, matrix or survey design; a `FinitePair` or `ContinuousPair`; additive noise; a
          frequency oracle or matrix mechanism. A tuple (epsilon, delta, eta), or a `PureDP`, `ApproximateDP` or `TV`
          claim also counts.
        - `name` : label in tables.
        - `features` : for a channel or a finite pair, those that `capacity_bounded` uses.
        """
        return unread(self.after(mechanism, count, name, features))

    def after(self, mechanism: Any, count: int = 1, name: str = "", features: Any = None) -> Ledger:
        """Return the result of `add` without its warning, for other immutable accounts."""
        count, added_mechanism = positive_integer(count, "count", maximum=MAX_USES), as_mechanism(mechanism)
        if features is not None:
            features = feature_map(features)
            if not isinstance(added_mechanism.source, Channel):
                raise invalid("features", "none, but for a channel or a finite pair", added_mechanism.name)
            brackets(features, added_mechanism.source.shape[1], RestrictedKL())
        return Ledger((*self.entries, Entry(name or added_mechanism.name, count, added_mechanism, features)))

    def __add__(self, other: Ledger) -> Ledger:
        if not isinstance(other, Ledger):
            return NotImplemented
        return Ledger(self.entries + other.entries)

    @cached_property
    def composed(self) -> ComposedPair:
        """The composition of all entries, as `compose` gives it."""
        if not self.entries:
            return ComposedPair.from_pairs([(FinitePair(np.ones(1), np.ones(1)), 1)])
        return composition(self.parts)

    @cached_property
    def parts(self) -> Parts:
        """Mechanisms with counts, equal ones together, in an order that does not depend on that of the entries."""
        first = {entry.mechanism.key: entry.mechanism for entry in reversed(self.entries)}
        counts = tally((entry.mechanism.key, entry.count) for entry in self.entries)
        return sorted(((first[key], n) for key, n in counts.items()), key=lambda part: part[0].rank)

    def local_dp(self) -> Guarantee:
        """Compute the pure epsilon of all entries together, in nats; inf for unbounded losses."""
        lower, value = loss_ends([(mechanism.largest_loss, n) for mechanism, n in self.parts])
        if any(mechanism.exact is None for mechanism, _ in self.parts):  # a stated epsilon is an upper bound
            lower = min(lower, total_down((mechanism.pure[0], n) for mechanism, n in self.parts))
        return Guarantee("local_dp", value, lower, None, True, "[GI, Def 6]")

    def total_variation(self) -> Guarantee:
        """Compute the total variation of all reports together."""
        return self.composed.total_variation()

    def hockey_stick(self, epsilon: float) -> Guarantee:
        """Compute the delta at `epsilon` >= 0, in nats."""
        return self.composed.hockey_stick(epsilon)

    def approximate_dp(self, delta: float) -> Guarantee:
        """Compute the epsilon, in nats, at `delta` in [0, 1]."""
        return self.composed.approximate_dp(delta)

    def trade_off(self) -> TradeOffCurve:
        """Build a trade-off curve that is nowhere above that of all mechanisms together."""
        return self.composed.trade_off()

    def renyi(self, order: Any) -> Any:
        """Compute the sum of the Rényi divergences of `order` in [1, inf], in nats [M, Prop 1]."""
        if np.ndim(order) == 1:
            return tuple(self.renyi(own_order) for own_order in order)
        order = renyi_order(order)
        if math.isinf(order):
            pure = self.local_dp()
            low, high = pure.lower, pure.value
        else:
            ends = [(*mechanism.divergence(order), n) for mechanism, n in self.parts]
            low, high = total_down((low, n) for low, _, n in ends), total((high, n) for _, high, n in ends)
        return Guarantee("renyi", high, low, None, True, "[M, Prop 1]", {"order": order})

    def zcdp(self, xi: float = 0.0) -> Guarantee:
        """Compute the smallest rho with (xi, rho)-zCDP [BS, Lemma 2.3]."""
        # sup over orders a of (D_a - xi)/a, where D_a is the sum of the divergences.
        xi = number(xi, "xi")
        low, high = _zcdp(self.parts, xi)
        total_rho = rho_total(self.parts, xi)
        if total_rho is not None:
            with precision(PRECISION_BITS[0]):
                high = min(high, float_ends(total_rho())[1])
        return Guarantee("zcdp", high, min(low, high), None, True, "[BS, Lemma 2.3]", {"xi": xi})

    def approximate_zcdp(self, xi: float = 0.0) -> Guarantee:
        """Compute the rho of delta-approximate (xi, rho)-zCDP.

        delta is the probability of infinite losses; see `parameters` of the result. A mechanism with infinite losses is
        replaced by its dominating pair, conditioned on a finite loss [BS, Cor 8.7]. The divergences add up, and the
        factors 1 - delta multiply [BS, Lemma 8.2].
        """
        xi = number(xi, "xi")
        conditioned_parts = [(mechanism.conditioned, n) for mechanism, n in self.parts]
        unbounded_parts = [
            part
            for part, (conditioned_mechanism, _) in zip(self.parts, conditioned_parts, strict=True)
            if conditioned_mechanism is not part[0]
        ]
        delta = union((max(m.pair.infinite, m.pair.swapped.infinite), n) for m, n in unbounded_parts)
        value = 0.0 if delta == 1 else _zcdp(conditioned_parts, xi)[1]
        parameters = {"delta": delta, "xi": xi}
        return Guarantee("approximate_zcdp", value, 0.0, None, False, "[BS, Lemma 8.2]", parameters)

    def mcdp(self, *, adaptive: bool = True) -> MCDP:
        """Compute (sum mu, tau)-mCDP by `compose_mcdp`.

        tau covers every order, and choices that depend on earlier reports. With ``adaptive=False`` all is fixed in
        advance, and tau^2 is the sum of the tau_i^2 [DR, Thm 3.4]. An entry given by its parameters has tau = epsilon,
        because post-processing can raise tau [BS, App A].
        """
        if not self.entries:
            return MCDP(0.0, 0.0)
        return compose_mcdp([(mechanism.mcdp, n) for mechanism, n in self.parts], adaptive=adaptive)

    def capacity_bounded(self, divergence: Restricted) -> Guarantee:
        """Sum the restricted divergences of all reports [CIM, Thm 4]. NON-ADAPTIVE ONLY.

        The mechanisms must be fixed before any report is seen. The adversary computes a sum of functions of one report
        each, of the class that an entry's `features` define, or any functions.
        """
        if not isinstance(divergence, (RestrictedKL, RestrictedRenyi)):
            raise invalid("divergence", "RestrictedKL() or RestrictedRenyi(order)", divergence)
        bounds = [(*_restricted(entry, divergence), entry.count) for entry in self.entries]
        value, lower = total((high, n) for _, high, n in bounds), total((low, n) for low, _, n in bounds)
        return Guarantee(divergence.notion, value, down(lower), None, False, "[CIM, Thm 4]", divergence.parameters)

    def __repr__(self) -> str:
        lines = [f"  {entry.count} x {entry.name}" for entry in self.entries]
        return "\n".join([f"Ledger({len(self.entries)} entries)", *lines])


def _restricted(entry: Entry, divergence: RestrictedKL | RestrictedRenyi) -> tuple[float, float]:
    if entry.features is None or not isinstance(entry.mechanism.source, Channel):
        return entry.mechanism.renyi(divergence.order - 1 if isinstance(divergence, RestrictedRenyi) else 0.0)
    guarantee = capacity_bounded(entry.mechanism.source, entry.features, divergence)
    return guarantee.lower, guarantee.value


def rho_total(parts: Parts, xi: float) -> Callable[[], Any] | None:
    """Sum the rhos of the mechanisms, a bound on that of all; None if it is unknown.

    At another xi than 0, only a single mechanism has a bound. For n uses of it, sup (n D_a - xi)/a = n sup (D_a -
    xi/n)/a over the orders a.
    """
    if xi != 0:
        if len(parts) != 1:
            return None
        ((mechanism, n),) = parts
        xi_per_use = float_down(Fraction(xi) / n)
        return None if mechanism.source is None else lambda: total_of([(mechanism.rho(xi_per_use), n)])
    if any(mechanism.rho() is None for mechanism, _ in parts):
        return None
    return lambda: total_of((mechanism.rho(), n) for mechanism, n in parts)


def _zcdp(parts: Parts, xi: float) -> tuple[float, float]:
    """Bounds on sup over orders of (sum of divergences - xi)/order; Gaussian ones, linear in it, add their rho."""
    linear = sum(n * mechanism.gaussian for mechanism, n in parts)
    low, high = concentrated(partial(summed, [part for part in parts if part[0].gaussian == 0]), xi)
    return down(linear + low, 64), up(linear + high, 64)


def concentrated(divergence: Callable[[Array], tuple[Array, Array]], xi: float) -> tuple[float, float]:
    """Bound sup over s > 0 of (D - xi)/(1 + s), where D = `divergence(s)` and s D is convex."""
    mean, (_, largest) = zip(*(side.tolist() for side in divergence(np.array([0.0, math.inf]))), strict=True)
    if math.isinf(largest):
        return max(mean[0] - xi, 0.0), math.inf

    def cumulant(_: Any, s: Array) -> tuple[Array, Array]:
        low, high = divergence(s)
        return np.maximum(s * (low - mean[1]), 0.0), np.maximum(s * (high - mean[0]), 0.0)

    means = np.array(mean[:1]), np.array(mean[1:])
    low, high = largest_slope(cumulant, means, np.array([largest]), xi, math.inf)
    return float(low[0]), float(high[0])


def largest_epsilon(target: ApproximateDP, count: int, erasure: float = 0.0) -> PureDP:
    """Find the largest epsilon (nats) such that `count` epsilon-DP mechanisms meet `target`.

    Parameters
    ----------
    target : The `ApproximateDP` claim to meet; epsilon is in nats.
    count : The number of mechanisms.
    erasure : In [0, 1]; the total variation of each mechanism is (1 - erasure) tanh(epsilon/2), so 0 adds no limit.

    Returns
    -------
    PureDP
        The largest epsilon up to a relative 1e-9; its composition was computed and meets the target.

    Raises
    ------
    InvalidInput
        If no epsilon meets the target.

    Examples
    --------
    >>> round(largest_epsilon(ApproximateDP(1.0, 1e-6), 100).epsilon, 6)
    0.024011
    """
    target, count = need(ApproximateDP, target, "target"), positive_integer(count, "count", maximum=MAX_USES)
    erasure = unit_interval(erasure, "erasure")

    def meets(epsilon: float) -> bool:
        eta = (1 - erasure) * math.tanh(epsilon / 2) if erasure > 0 else None
        return _meets(ParametricPair.from_parameters(epsilon, 0.0, eta), count, target)

    low, high = MINIMUM_EPSILON, MAXIMUM_EPSILON
    if not meets(low):
        raise invalid("target", f"one that {count} mechanisms of epsilon {low:g} meet", target)
    if meets(high):
        return PureDP(high, tight=False, reference="[GI, Thm 2]", budget=True)
    while high > 4 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if meets(middle) else (low, middle)
    low, high = bisected(meets, low, high, 1e-9)
    return PureDP(toward_privacy(low), tight=True, reference="[GI, Thm 2]", budget=True)


def largest_count(mechanism: Any, target: ApproximateDP, limit: int = 10**6) -> int:
    """Find the largest number of uses of a mechanism, up to `limit`, that meet `target`.

    Parameters
    ----------
    mechanism : One mechanism, as `compose` takes it.
    target : The `ApproximateDP` claim to meet; epsilon is in nats.
    limit : The largest number that is tried.

    Returns
    -------
    int
        The number of uses; 0 if one use does not meet the target.

    Examples
    --------
    >>> largest_count((0.1,), ApproximateDP(1.0, 1e-6))
    10
    """
    target, limit = need(ApproximateDP, target, "target"), positive_integer(limit, "limit")
    pair = as_pair(mechanism)
    return largest_integer(lambda count: _meets(pair, count, target), limit)


def _meets(pair: FinitePair, count: int, target: ApproximateDP) -> bool:
    return ComposedPair.from_pairs([(pair, count)]).delta_at(target.epsilon) <= target.delta
