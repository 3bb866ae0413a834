"""Channels and populations on which every bound is tried: random ones, and the structured ones that come close."""

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.privacy import local_dp, total_variation


def binary(p0, p1, epsilon):
    """The binary mechanism, written out from its definition [GI, eq 23-24]."""
    high, low = np.exp(epsilon) / (1 + np.exp(epsilon)), 1 / (1 + np.exp(epsilon))
    first = np.where(np.asarray(p0) >= np.asarray(p1), high, low)
    return Channel(np.stack([first, 1 - first], axis=1))


def randomized_response(k, epsilon):
    """k-ary randomized response, written out from its definition."""
    return Channel((np.ones((k, k)) + np.expm1(epsilon) * np.eye(k)) / (np.exp(epsilon) + k - 1))


def instances(count=150, seed=20240607):
    """(p0, p1, channel, epsilon, eta) with the channel's own epsilon and eta."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        k = int(rng.integers(2, 7))
        sharp = float(rng.choice([0.1, 1.0, 5.0]))
        p0, p1 = rng.dirichlet(np.full(k, sharp)), rng.dirichlet(np.full(k, sharp))
        target = float(rng.choice([0.05, 0.5, 1.0, 3.0, 6.0]))
        if i % 4 == 0:
            channel = binary(p0, p1, target)
        elif i % 4 == 1:
            channel = randomized_response(k, target)
        elif i % 4 == 2:
            channel = binary(p0, p1, target).coin(randomized_response(k, target / 2), rng.random())
        else:
            raw = np.exp(rng.uniform(0, target, (k, int(rng.integers(2, 6)))))
            channel = Channel(raw / raw.sum(axis=1, keepdims=True))
        if i % 3 == 0:
            channel = channel.erase(rng.random())
        yield p0, p1, channel, local_dp(channel).value, total_variation(channel).value


@pytest.fixture(scope="session")
def trials():
    return list(instances())
