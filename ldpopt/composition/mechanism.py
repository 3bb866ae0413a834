"""A mechanism as the pair that dominates it, and the best adaptive strategy against several of them.

The adversary chooses, after each report, the next channel and its two inputs. The reports so far matter only through
their likelihood ratio t. The best attainable power is convex in t, so it is the test power of some pair W. W is
computed backwards. With no channel left it is trivial. Otherwise it is the tightest pair that dominates, for every next
channel and two of its rows, their product with the W of the remaining channels. This gives the exact curve for every
epsilon at once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ldpopt.channel import Channel, as_channel
from ldpopt.composition.exact_measures import (
    INFINITE,
    ClaimMeasures,
    ExactMeasures,
    GaussianMeasures,
    LaplaceMeasures,
    Loss,
    MatrixMeasures,
    as_fractions,
    ball,
    certainly_at_most,
    divergence_ends,
    loss_ends,
)
from ldpopt.composition.parametric import ParametricPair, rare_error
from ldpopt.errors import invalid
from ldpopt.mechanisms.continuous_pair import ContinuousPair
from ldpopt.mechanisms.noise import Gaussian, GaussianPair, LaplacePair, Staircase
from ldpopt.mechanisms.oracles import FrequencyOracle, HadamardResponse, LocalHashing, UnaryEncoding
from ldpopt.mechanisms.workload import MatrixMechanism
from ldpopt.privacy.approximate_dp import hockey_stick, total_variation
from ldpopt.privacy.claims import MCDP, TV, ApproximateDP, Claim, PureDP, as_claim
from ldpopt.privacy.concentrated import mcdp, zcdp
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.least_pair import checked
from ldpopt.privacy.loss import PrivacyLoss, privacy_loss
from ldpopt.privacy.pairs import blocks, ordered_pairs
from ldpopt.privacy.renyi import renyi
from ldpopt.values.distribution import Array
from ldpopt.values.results import ByValue

Interval = tuple[float, float]

MAX_ORDERS = 4096
"""Of so many orders, a mechanism keeps its divergences."""


@dataclass(frozen=True, eq=False)
class Mechanism(ByValue):
    """A mechanism as built by `as_mechanism`.

    - `pair` : the tightest pair that dominates it, in both directions.
    - `source` : the channel or continuous pair itself; None if only its parameters are known.
    - `rows` : a channel's different ordered pairs of rows.
    - `stated` : exact measures that do not follow from `source` alone.
    """

    name: str
    pair: FinitePair
    source: Channel | ContinuousPair | None = None
    rows: tuple[FinitePair, ...] = ()
    stated: ExactMeasures | None = None

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal mechanisms."""
        return (self.pair if self.source is None else self.source), self.stated

    @cached_property
    def exact(self) -> ExactMeasures | None:
        """The measures in ball arithmetic, which sums are compared with a budget by; None for other densities."""
        if self.stated is not None:
            return self.stated
        if isinstance(self.source, Channel):
            return MatrixMeasures(self.source.matrix)
        if isinstance(self.source, LaplacePair):
            return LaplaceMeasures(self.source.epsilon)
        if isinstance(self.source, GaussianPair):
            return GaussianMeasures(Fraction(self.source.mu) ** 2)
        return None

    @property
    def rank(self) -> bytes:
        """A sort key for mechanisms that makes results independent of their order."""
        source = self.source.matrix.tobytes() if isinstance(self.source, Channel) else repr(self.source).encode()
        parameters = (
            repr((self.pair.epsilon, self.pair.not_erased)).encode() if isinstance(self.pair, ParametricPair) else b""
        )
        parameters += b"" if isinstance(self.stated, MatrixMeasures) else repr(self.stated).encode()
        return bytes(self.pair.p.tobytes() + self.pair.q.tobytes()) + source + parameters

    @cached_property
    def _losses(self) -> list[PrivacyLoss]:
        if not isinstance(self.source, Channel):
            return [privacy_loss(self.pair.p[None], self.pair.q[None])]
        q = self.source.matrix
        return [privacy_loss(q[i], q[j]) for i, j in blocks(self.source)]

    def renyi(self, s: float) -> Interval:
        """Bound the Rényi divergence of order 1 + s for the worst pair of inputs; s in [0, inf]."""
        if s not in self._divergences:  # filters and ledgers ask for the same orders again and again
            if len(self._divergences) >= MAX_ORDERS:
                self._divergences.clear()
            self._divergences[s] = self._renyi(s)
        return self._divergences[s]

    @cached_property
    def _divergences(self) -> dict[float, Interval]:
        return {}

    def renyi_at(self, s: Array) -> tuple[Array, Array]:
        """Bound the divergence as `renyi` at many s, (n,) each."""
        # Finite s are computed together.
        if isinstance(self.source, ContinuousPair) or not np.isfinite(s).all():
            low, high = np.array([self.renyi(single) for single in s.tolist()]).T
            return low, high
        low, high = np.zeros(len(s)), np.zeros(len(s))
        for loss in self._losses:
            sides = zip(*((low.max(axis=1), high.max(axis=1)) for low, high in loss.renyi_at(s)), strict=True)
            low, high = (
                np.maximum(bound, np.concatenate(ends)) for bound, ends in zip((low, high), sides, strict=True)
            )
        return np.maximum(low - self._rare, 0.0), high + self._rare

    def _renyi(self, s: float) -> Interval:
        if isinstance(self.source, ContinuousPair):
            guarantee = self.source.renyi(1 + s)
            return guarantee.lower, guarantee.value
        bounds = [loss.renyi(s) for loss in self._losses]
        low, high = (max([0.0, *(float(ends.max()) for ends in side)]) for side in zip(*bounds, strict=True))
        return max(0.0, low - self._rare), high + self._rare

    @cached_property
    def _rare(self) -> float:
        """A bound on the error that subnormal masses may cause in a divergence."""
        return 2 * max(rare_error(pair) for pair in self.rows or (self.pair,))

    @cached_property
    def largest_loss(self) -> Loss:
        """The pure epsilon; for densities whose epsilon is only stated, that number."""
        if self.exact is not None:
            return self.exact.largest_loss
        largest = self.source.epsilon if isinstance(self.source, ContinuousPair) else self.renyi(math.inf)[1]
        return INFINITE if math.isinf(largest) else Loss(rational=Fraction(largest))

    @cached_property
    def pure(self) -> Interval:
        """Floats around the largest loss; a stated epsilon is an upper bound."""
        low, high = loss_ends([(self.largest_loss, 1)])
        return low if self.exact is not None else min(low, self.renyi(math.inf)[0]), high

    def divergence(self, order: float) -> Interval:
        """Return the tightest floats around the Rényi divergence of an order in [1, inf)."""
        ends = None if self.exact is None else divergence_ends(self.exact, order)
        low, high = self.renyi(order - 1)
        if ends is not None:
            return max(low, ends[0]), min(high, ends[1])
        if isinstance(self.source, Channel):
            guarantee = renyi(self.source, order)
            return max(low, guarantee.lower), min(high, guarantee.value)
        return low, high

    def variation(self) -> Any:
        """Compute a ball that is not below the total variation distance, at the set precision."""
        exact = None if self.exact is None else self.exact.total_variation()
        if exact is not None:
            return exact
        source = self.source or self.pair
        return ball((total_variation(source) if isinstance(source, Channel) else source.total_variation()).value)

    def rho(self, xi: float = 0.0) -> Any:
        """Compute a ball not below the smallest rho with (xi, rho)-zCDP; None without closed form."""
        exact = None if self.exact is None or xi != 0 else self.exact.rho()
        if exact is not None or self.source is None:
            return exact
        if xi not in self._rhos:
            self._rhos[xi] = (zcdp(self.source, xi) if isinstance(self.source, Channel) else self.source.zcdp(xi)).value
        return ball(self._rhos[xi])

    @cached_property
    def _rhos(self) -> dict[float, float]:
        return {}

    def meets(self, epsilon: float, delta: float) -> bool:
        """Return True if one use is proved to be (epsilon, delta)-DP, by its own measure."""
        exact = self.exact
        if exact is not None and exact.hockey_stick(epsilon) is not None:
            return certainly_at_most(lambda: exact.hockey_stick(epsilon), delta)
        source = self.source or self.pair
        guarantee = hockey_stick(source, epsilon) if isinstance(source, Channel) else source.hockey_stick(epsilon)
        return guarantee.value <= delta

    @property
    def gaussian(self) -> float:
        """rho, rounded up, if the divergence of every order is rho times the order, as for Gaussian noise; else 0."""
        return self.source.zcdp().value if isinstance(self.source, GaussianPair) else 0.0

    @cached_property
    def conditioned(self) -> Mechanism:
        """The dominating pair conditioned on a finite loss; the mechanism itself if Rényi divergences are finite."""
        if math.isfinite(self.renyi(1.0)[1]):
            return self
        finite = (self.pair.p > 0) & (self.pair.q > 0)
        p, q = (self.pair.p[finite], self.pair.q[finite]) if finite.any() else (np.ones(1), np.ones(1))
        return Mechanism(self.name, FinitePair(p / p.sum(), q / q.sum()))

    @cached_property
    def mcdp(self) -> MCDP:
        """The (mu, tau) of the mechanism; for one given by parameters, a bound for every mechanism with this epsilon.

        Post-processing can raise the tau of a dominating pair [BS, App A]; but losses within epsilon are
        epsilon-subgaussian [DR, Lemma 3.6], and post-processing never raises the mean.
        """
        if self.source is None:
            return MCDP(self.renyi(0.0)[1], self.renyi(math.inf)[1])
        guarantee = self.source.mcdp() if isinstance(self.source, ContinuousPair) else mcdp(self.source)
        return MCDP(guarantee.mu.value, guarantee.tau.value)


def as_mechanism(mechanism: Any) -> Mechanism:
    """Convert a channel, pair, named mechanism, claim or (epsilon, delta, eta) to a `Mechanism`.

    An object with a channel counts as that channel. A unary encoding is represented by the two bits that differ, and
    other frequency oracles by epsilon and eta or their channel. A matrix mechanism is represented by its epsilon, and
    additive noise by its pair. Raises `InvalidInput` for anything else.
    """
    if isinstance(mechanism, Mechanism):
        return mechanism
    if isinstance(mechanism, Guarantee):
        mechanism = as_claim(mechanism)
    if isinstance(mechanism, Claim):
        mechanism = _parameters_of(mechanism)
    if isinstance(mechanism, UnaryEncoding):
        return replace(_of_channel(repr(mechanism), _two_bits(mechanism).channel), stated=_exact_bits(mechanism))
    if isinstance(mechanism, (LocalHashing, HadamardResponse)):
        mechanism = (mechanism.epsilon, 0.0, mechanism.eta)
    elif isinstance(mechanism, FrequencyOracle):
        return _of_channel(repr(mechanism), mechanism.channel())
    elif isinstance(mechanism, MatrixMechanism):
        mechanism = (mechanism.epsilon,)
    if _is_parameters(mechanism):
        return _of_parameters(mechanism if isinstance(mechanism, tuple) else (mechanism,))
    name, stated_measures = repr(mechanism), _stated(mechanism)
    mechanism = getattr(mechanism, "pair", mechanism)
    if isinstance(mechanism, ContinuousPair):
        return Mechanism(name, mechanism.finite_pair(), mechanism, stated=stated_measures)
    if isinstance(mechanism, FinitePair):
        return replace(_of_channel(name, mechanism.channel), stated=stated_measures)
    channel = as_channel(mechanism, "mechanism")
    return _of_channel(repr(channel) if isinstance(mechanism, (list, tuple, np.ndarray)) else name, channel)


def _two_bits(oracle: UnaryEncoding) -> FinitePair:
    """The distribution of two answers' bits that differ; it is measured, not taken from epsilon."""
    true_bit, false_bit = oracle.support
    p = np.array(
        [
            true_bit * (1 - false_bit),
            true_bit * false_bit + (1 - true_bit) * (1 - false_bit),
            false_bit * (1 - true_bit),
        ]
    )
    return FinitePair(p, p[::-1])


def _exact_bits(oracle: UnaryEncoding) -> MatrixMeasures:
    true_bit, false_bit = (Fraction(probability) for probability in oracle.support)
    p = [
        true_bit * (1 - false_bit),
        true_bit * false_bit + (1 - true_bit) * (1 - false_bit),
        false_bit * (1 - true_bit),
    ]
    return MatrixMeasures(as_fractions(p, p[::-1]))


def _stated(mechanism: Any) -> ExactMeasures | None:
    """The measures by the parameters of noise, where its pair holds rounded or enlarged ones."""
    if isinstance(mechanism, Gaussian):
        return GaussianMeasures((Fraction(mechanism.sensitivity) / Fraction(mechanism.sigma)) ** 2)
    return ClaimMeasures(mechanism.epsilon, 0.0, mechanism.eta) if isinstance(mechanism, Staircase) else None


def _of_channel(name: str, channel: Channel) -> Mechanism:
    i, j = ordered_pairs(channel, None)
    q = channel.matrix
    rows = tuple(dict.fromkeys(FinitePair(q[a], q[b]).ordered for a, b in zip(i, j, strict=True)))
    rows = rows or (FinitePair(np.ones(1), np.ones(1)),)
    return Mechanism(name, FinitePair.tightest_dominating(rows), channel, rows)


def as_pair(mechanism: Any) -> FinitePair:
    """Return the pair that dominates a mechanism; a `FinitePair` is unchanged, in its direction."""
    return mechanism.ordered if isinstance(mechanism, FinitePair) else as_mechanism(mechanism).pair


def _is_parameters(mechanism: Any) -> bool:
    """True if the argument is epsilon or a tuple (epsilon, delta, eta), and not a matrix written as tuples."""
    if isinstance(mechanism, tuple):
        return bool(mechanism) and not isinstance(mechanism[0], (list, tuple, np.ndarray))
    return isinstance(mechanism, (int, float, np.floating, np.integer)) and not isinstance(mechanism, bool)


def _of_parameters(parameters: tuple[Any, ...]) -> Mechanism:
    if len(parameters) > 3:
        raise invalid("mechanism", "(epsilon,), (epsilon, delta) or (epsilon, delta, eta)", parameters)
    pair, name = (
        ParametricPair.from_parameters(*parameters),
        f"({', '.join(f'{value:g}' for value in parameters if value is not None)})",
    )
    checked_parameters = checked(*parameters, *(0.0, None)[len(parameters) - 1 :])
    return Mechanism(name, pair, stated=ClaimMeasures(*checked_parameters))


def _parameters_of(claim: Claim) -> tuple[float, ...]:
    if isinstance(claim, PureDP):
        return (claim.epsilon,)
    if isinstance(claim, ApproximateDP):
        return claim.epsilon, claim.delta
    if isinstance(claim, TV):
        return 0.0, claim.eta
    raise invalid("mechanism", "a channel, a pair, or a PureDP, ApproximateDP or TV claim", type(claim).__name__)


def summed(parts: list[tuple[Mechanism, int]], s: Array) -> tuple[Array, Array]:
    """Bound the sum of count times the Rényi divergence of orders 1 + s, (n,) [M, Prop 1]."""
    low, high = sum((n * np.array(mechanism.renyi_at(s)) for mechanism, n in parts), np.zeros((2, len(s))))
    return low, high


Rows = tuple[FinitePair, ...]

MAX_PRODUCT_OUTCOMES = 200_000
"""Largest number of computed outcomes of products."""


def best_pair(mechanisms: Sequence[tuple[Rows, int]]) -> FinitePair | None:
    """Compute the pair W of the best strategy with (rows, count) in any order."""
    # None above `MAX_PRODUCT_OUTCOMES` outcomes.
    rows = [pairs for pairs, _ in mechanisms]
    best_pairs: dict[tuple[int, ...], FinitePair] = {(0,) * len(rows): _NOTHING}
    spent = 0

    def best(left: tuple[int, ...]) -> FinitePair | None:
        nonlocal spent
        if left in best_pairs:
            return best_pairs[left]
        products = []
        for index, count in enumerate(left):
            if count == 0:
                continue
            after = best((*left[:index], count - 1, *left[index + 1 :]))
            if after is None:
                return None
            spent += _size(rows[index], after)
            if spent > MAX_PRODUCT_OUTCOMES:
                return None
            products += _products(rows[index], after)
        best_pairs[left] = FinitePair.tightest_dominating(products)
        return best_pairs[left]

    counts = tuple(count for _, count in mechanisms)
    return best(counts) if sum(counts) <= 64 else None


def best_in_order(mechanisms: Sequence[tuple[Rows, int]]) -> FinitePair | None:
    """Compute the pair W of the best strategy if the mechanisms are used in the given order."""
    after, pair_work = _NOTHING, 0
    if sum(count for _, count in mechanisms) > 64:
        return None
    for pairs, count in reversed(mechanisms):
        for _ in range(count):
            pair_work += _size(pairs, after)
            if pair_work > MAX_PRODUCT_OUTCOMES:
                return None
            after = FinitePair.tightest_dominating(_products(pairs, after))
    return after


_NOTHING = FinitePair(np.ones(1), np.ones(1))


def _size(rows: Rows, after: FinitePair) -> int:
    return sum(len(pair.p) for pair in rows) * len(after.p)


def _products(rows: Rows, after: FinitePair) -> list[FinitePair]:
    return [FinitePair(np.outer(pair.p, after.p).ravel(), np.outer(pair.q, after.q).ravel()).ordered for pair in rows]
