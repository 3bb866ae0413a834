"""Exchange with dp_accounting (0.4 to 0.6): mechanisms as its events, compositions as its loss distributions, and back.

Events exist only for named mechanisms, so a channel becomes the event of one that dominates it. Compositions are passed
as probability mass functions, since dp_accounting loses repetitions of its `RandomizedResponseDpEvent`.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from ldpopt.channel import Channel, as_channel
from ldpopt.composition.compose import ComposedPair
from ldpopt.composition.lattice import exact_lattice, finite_part, grid
from ldpopt.composition.laws import LatticeLaw
from ldpopt.composition.ledger import Ledger
from ldpopt.composition.mechanism import as_pair
from ldpopt.errors import Phrase, invalid
from ldpopt.extras import missing
from ldpopt.mechanisms.noise import Gaussian, GaussianPair, Laplace, LaplacePair
from ldpopt.numbers.rounding import down, up
from ldpopt.numbers.tolerances import AFTER_RESPONSE, MASS_LEFT
from ldpopt.privacy.claims import ZCDP, Claim, PureDP
from ldpopt.privacy.finite_pair import FinitePair
from ldpopt.privacy.local_dp import local_dp
from ldpopt.values.distribution import positive_integer

MAX_EVENTS = 10**6
"""The largest number of uses in a ledger; every use becomes an event."""


def to_dp_event(mechanism: Any) -> Any:
    """Convert a mechanism to an event of `dp_accounting` that reveals no less than it.

    A channel with k inputs becomes k-ary randomized response if it is a post-processing of it, else randomized response
    on two answers, which dominates every channel of its epsilon [KOV15]. The accountant must compare two answers of one
    person: ``NeighboringRelation.REPLACE_ONE``.

    Parameters
    ----------
    mechanism : A channel, or an object that has one; `Laplace` or `Gaussian` noise; a `PureDP` or `ZCDP` claim; or a
        `Ledger`, whose uses are listed one by one.

    Returns
    -------
    DpEvent
        The event of dp_accounting.

    Raises
    ------
    InvalidInput
        If the mechanism has no event, such as one with a positive delta.
    MissingExtra
        If dp_accounting is not installed.

    Examples
    --------
    >>> to_dp_event([[0.75, 0.25], [0.25, 0.75]]).num_buckets
    2
    """
    return _event(_module("dp_event"), mechanism)


def _event(events: Any, mechanism: Any) -> Any:
    if isinstance(mechanism, Ledger):
        return _of_ledger(events, mechanism)
    if isinstance(mechanism, Laplace | LaplacePair):
        return events.LaplaceDpEvent(noise_multiplier=down(1 / mechanism.epsilon, 2.0))
    if isinstance(mechanism, Gaussian):
        return events.GaussianDpEvent(noise_multiplier=down(mechanism.sigma / mechanism.sensitivity, 2.0))
    if isinstance(mechanism, GaussianPair):
        return events.GaussianDpEvent(noise_multiplier=down(1 / mechanism.mu, 2.0))
    if isinstance(mechanism, PureDP):
        return _response(events, mechanism.epsilon, 2)
    if isinstance(mechanism, ZCDP):
        return events.ZCDpEvent(rho=mechanism.rho, xi=mechanism.xi)
    if isinstance(mechanism, Claim):
        raise invalid("mechanism", "one with an event of dp_accounting, such as a PureDP or ZCDP claim", mechanism)
    channel = as_channel(mechanism, "mechanism")
    epsilon = local_dp(channel).value
    if _after_response(channel, epsilon * (1 + AFTER_RESPONSE)):
        return _response(events, epsilon * (1 + AFTER_RESPONSE), channel.shape[0])
    return _response(events, epsilon, 2)


def _of_ledger(events: Any, ledger: Ledger) -> Any:
    total = sum(entry.count for entry in ledger)
    if total > MAX_EVENTS:
        raise invalid("ledger", f"at most {MAX_EVENTS} uses", total)
    entries: list[Any] = []
    for entry in ledger:
        mechanism = entry.mechanism
        source = _pure(mechanism.pair.local_dp().value, entry.name) if mechanism.source is None else mechanism.source
        entries += [_event(events, source)] * entry.count
    return events.ComposedDpEvent(entries)


def _pure(epsilon: float, name: str) -> PureDP:
    if not math.isfinite(epsilon):
        raise invalid("ledger", "mechanisms with a finite epsilon, whose delta is 0", Phrase(name))
    return PureDP(epsilon)


def _after_response(channel: Channel, epsilon: float) -> bool:
    """True if the channel Q is a post-processing of k-ary randomized response R = (a - b) I + b J.

    Then Q = R W for W = (Q - b 1 1^T Q) / (a - b), and W is a channel if no entry is negative.
    """
    k = channel.shape[0]
    if k < 2 or not 0 < epsilon < 700:
        return False
    b = 1 / (math.exp(epsilon) + k - 1)
    q = channel.matrix
    if not np.abs(q.sum(axis=1) - 1).max() <= 4 * q.shape[1] * np.finfo(float).eps:
        return False
    return bool((q >= b * q.sum(axis=0) * (1 + 8 * k * np.finfo(float).eps)).all())


def _response(events: Any, epsilon: float, k: int) -> Any:
    """The event of randomized response with k buckets; its noise parameter is rounded down, towards less noise."""
    if math.isinf(epsilon):
        return events.NonPrivateDpEvent()
    if epsilon == 0:
        return events.NoOpDpEvent()
    noise = k * math.exp(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))
    # The exponential is off by an ulp and by epsilon ulps of its argument.
    return events.RandomizedResponseDpEvent(noise_parameter=down(noise, 16.0 + 4 * epsilon), num_buckets=k)


def _module(name: str) -> Any:
    try:
        return import_module(f"dp_accounting.{name}")
    except ImportError:
        raise missing("dp_accounting") from None


def to_dp_accounting(mechanism: Any, cells: int = 10_000) -> Any:
    """Convert to a `dp_accounting` PrivacyLossDistribution that dominates the mechanism.

    The result is exact if the privacy losses are multiples of one number, which becomes the discretization interval.
    Otherwise they are split on a grid, such that the result dominates. Parts too rare to be computed count as infinite
    losses.

    Parameters
    ----------
    mechanism : A channel, pair, tuple or `ComposedPair`.
    cells : The approximate number of grid cells, at least 16.

    Returns
    -------
    PrivacyLossDistribution
        The distribution of dp_accounting.

    Raises
    ------
    InvalidInput
        If the object is not a mechanism.
    MissingExtra
        If dp_accounting is not installed.

    Examples
    --------
    >>> round(float(to_dp_accounting((1.0,)).get_delta_for_epsilon(0.5)), 6)
    0.287649
    """
    module = _module("pld.privacy_loss_distribution")
    cells = positive_integer(cells, "cells", minimum=16)
    parts = mechanism.parts if isinstance(mechanism, ComposedPair) else ((as_pair(mechanism), 1),)
    law = _law(parts, cells)
    forward, infinite = _rounded(law, parts)
    build = module.PrivacyLossDistribution.create_from_rounded_probability
    if all(pair.symmetric for pair, _ in parts):
        return build(forward, infinite, law.spacing)
    swapped_parts = tuple((pair.swapped.ordered, count) for pair, count in parts)
    backward, infinite_back = _rounded(_law(swapped_parts, cells, law.spacing), swapped_parts)
    other = {"rounded_probability_mass_function_add": backward, "infinity_mass_add": infinite_back, "symmetric": False}
    return build(forward, infinite, law.spacing, **other)


def from_dp_accounting(distribution: Any) -> tuple[FinitePair, FinitePair]:
    """Convert a `dp_accounting` PrivacyLossDistribution to pairs (remove, add).

    At every epsilon >= 0, in nats, each pair has the delta of the given distribution.

    Parameters
    ----------
    distribution : A pessimistic estimate of dp_accounting.

    Returns
    -------
    tuple[FinitePair, FinitePair]
        The pairs, which are equal if the distribution is symmetric.

    Raises
    ------
    InvalidInput
        If the distribution is not a pessimistic estimate, because it may understate the loss.

    Examples
    --------
    >>> remove, add = from_dp_accounting(to_dp_accounting((1.0,)))
    >>> remove == add, round(float(remove.local_dp()), 6)
    (True, 1.0)
    """
    module = _module("pld.privacy_loss_distribution")
    if not isinstance(distribution, module.PrivacyLossDistribution):
        raise invalid("distribution", "a dp_accounting PrivacyLossDistribution", type(distribution).__name__)
    remove = _pair(distribution._pmf_remove.to_dense_pmf())
    return remove, remove if distribution._symmetric else _pair(distribution._pmf_add.to_dense_pmf())


def _law(parts: tuple[tuple[FinitePair, int], ...], cells: int, spacing: float | None = None) -> LatticeLaw:
    finite = [(*finite_part(pair), count) for pair, count in parts]
    return exact_lattice(finite) or grid(finite, cells, spacing)[0]


def _rounded(law: LatticeLaw, parts: tuple[tuple[FinitePair, int], ...]) -> tuple[dict[int, float], float]:
    """The masses by position, and the infinite mass, of the composition's losses; exact for a single pair."""
    if len(law.parts) == 1 and law.parts[0][2] == 1:
        first, positions, masses = 0, law.parts[0][0], law.parts[0][1]
    else:
        window = law.window(0.0)
        first, positions = window.first, np.arange(len(window.masses))
        masses = window.masses * math.exp(law.cumulant(0.0)[0])
    positive = masses > 0
    rounded_values: dict[int, float] = {}
    for position, mass in zip((positions[positive] + first).tolist(), masses[positive].tolist(), strict=True):
        rounded_values[position] = rounded_values.get(position, 0.0) + mass
    infinite = -math.expm1(math.fsum(n * math.log1p(-pair.infinite) for pair, n in parts if pair.infinite < 1))
    if any(pair.infinite == 1 for pair, _ in parts):
        return {0: 0.0}, 1.0
    missing_mass = 1 - math.fsum(rounded_values.values())
    return rounded_values, min(1.0, max(up(infinite), missing_mass))


def _pair(pmf: Any) -> FinitePair:
    p = np.asarray(pmf._probs, dtype=np.float64)
    losses = (pmf._lower_loss + np.arange(len(p))) * pmf._discretization
    positive = p > 0
    p, losses = p[positive], losses[positive]
    q = p * np.exp(-losses)
    infinite = float(pmf._infinity_mass)
    rest = 1 - math.fsum(q.tolist())
    is_negative = losses < 0
    if not pmf._pessimistic_estimate or rest < -q[is_negative].sum() / 2 - MASS_LEFT:
        raise invalid("distribution", "a pessimistic estimate", f"masses of {1 - rest} under the second hypothesis")
    if rest < 0:
        # Truncated tails can make q sum to more than one. Raising the negative losses lowers q, which is safe.
        q[is_negative] *= 1 + rest / q[is_negative].sum()
    p, q = np.append(p, [infinite, 0.0]), np.append(q, [0.0, max(rest, 0.0)])
    return FinitePair(p / p.sum(), q / q.sum())
