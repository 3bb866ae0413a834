"""Mechanisms as events of dp_accounting, which its accountants compose.

This needs the package ``dp-accounting`` (0.4 to 0.6), an optional extra. Events exist only for named mechanisms. So a
channel becomes the event of a mechanism that dominates it, and the accountant's guarantees hold for the channel, too.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from ldpopt.channel import Channel, as_channel
from ldpopt.composition.ledger import Ledger
from ldpopt.errors import Phrase, invalid
from ldpopt.extras import missing
from ldpopt.mechanisms.gaussian import Gaussian, GaussianPair
from ldpopt.mechanisms.laplace import Laplace, LaplacePair
from ldpopt.privacy.claims import ZCDP, Claim, PureDP
from ldpopt.privacy.local_dp import local_dp
from ldpopt.rounding import down

MOST = 10**6
"""The largest number of uses in a ledger; every use becomes an event."""

SLACK = 1e-9
"""How much, relatively, epsilon is raised before a test whether the channel post-processes randomized response."""


def to_dp_event(mechanism: Any) -> Any:
    """An event of `dp_accounting` that stands for a mechanism and reveals no less than the mechanism does.

    mechanism : a channel, or an object that has one; `Laplace` or `Gaussian` noise; a `PureDP` or `ZCDP` claim; or a
        `Ledger`, whose uses are listed one by one, since `dp_accounting` loses repetitions of randomized response up to
        version 0.6.0.

    A channel with k inputs becomes k-ary randomized response if it is a post-processing of it. Otherwise it becomes
    randomized response on two answers, which dominates every channel of its epsilon [KOV15]. The accountant must
    compare two answers of one person: ``NeighboringRelation.REPLACE_ONE``. For `Laplace` and `Gaussian` noise,
    `RdpAccountant` accepts every relation; the sensitivity is that of the noise object.

    Raises `InvalidInput` for mechanisms without an event, such as those with a positive delta, and `MissingExtra` if
    dp_accounting is not installed.

    >>> to_dp_event([[0.75, 0.25], [0.25, 0.75]]).num_buckets
    2
    >>> round(to_dp_event(Laplace(0.5)).noise_multiplier, 6)
    2.0
    """
    return _event(_module(), mechanism)


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
    if _after_response(channel, epsilon * (1 + SLACK)):
        return _response(events, epsilon * (1 + SLACK), channel.shape[0])
    return _response(events, epsilon, 2)


def _of_ledger(events: Any, ledger: Ledger) -> Any:
    total = sum(entry.count for entry in ledger)
    if total > MOST:
        raise invalid("ledger", f"at most {MOST} uses", total)
    listed: list[Any] = []
    for entry in ledger:
        made = entry.mechanism
        own = _pure(made.pair.local_dp().value, entry.name) if made.own is None else made.own
        listed += [_event(events, own)] * entry.count
    return events.ComposedDpEvent(listed)


def _pure(epsilon: float, name: str) -> PureDP:
    if not math.isfinite(epsilon):
        raise invalid("ledger", "mechanisms with a finite epsilon, whose delta is 0", Phrase(name))
    return PureDP(epsilon)


def _after_response(channel: Channel, epsilon: float) -> bool:
    """Whether the channel Q is a post-processing of k-ary randomized response R of epsilon.

    R has a on its diagonal and b elsewhere: R = (a - b) I + b J. Then Q = R W for W = (Q - b 1 1^T Q) / (a - b), and W
    is a channel if no entry is negative.
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


def _module() -> Any:
    try:
        return import_module("dp_accounting.dp_event")
    except ImportError:
        raise missing("dp_accounting") from None
