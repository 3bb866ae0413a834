"""Mechanisms as events of dp_accounting, which its accountants compose.

Needs the package ``dp-accounting`` (0.4 to 0.6), an optional extra. Events know named mechanisms only. A channel
becomes one that it is a post-processing of, or that dominates it: what an accountant says of the event holds for it.
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
"""Uses of mechanisms that a ledger may list: every one is an event of its own."""

SLACK = 1e-9
"""Relative rise of a channel's epsilon, so that rounding does not hide of what it is a post-processing."""


def to_dp_event(mechanism: Any) -> Any:
    """An event of `dp_accounting` that stands for a mechanism and reveals no less than the mechanism does.

    mechanism : a channel or what has one; `Laplace` or `Gaussian` noise; a `PureDP` or `ZCDP` claim; a `Ledger`, whose
    uses are listed one by one, since `dp_accounting` loses repetitions of randomized response up to version 0.6.0.

    A channel with k inputs becomes k-ary randomized response where it is a post-processing of that, and else randomized
    response on two answers, which dominates every channel of its epsilon [KOV15]. The accountant must compare the
    two answers of one person: ``NeighboringRelation.REPLACE_ONE``. For the noise of numbers, whose sensitivity is that
    of `Laplace` and `Gaussian` here, `RdpAccountant` takes every relation.

    Raises `InvalidInput` for what has no such event, such as a delta, and `MissingExtra` without dp_accounting.

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
    """Whether the channel is k-ary randomized response of epsilon with something after it.

    With a on its diagonal and b beside it, R = (a - b) I + b J, so that W = R^-1 Q is (Q - b 1 1^T Q) / (a - b): a
    channel where no entry is negative.
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
    """Randomized response with k buckets; its noise parameter is rounded toward less noise."""
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
