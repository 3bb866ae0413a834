"""How fast the measures are: run with `pytest experiments/benchmarks --benchmark-only`."""

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.privacy import (
    RestrictedKL,
    RestrictedRenyi,
    approximate_dp,
    audit,
    capacity_bounded,
    hockey_stick,
    local_dp,
    mcdp,
    renyi,
    total_variation,
    trade_off,
    zcdp,
)


def random_channel(k, m, seed=0):
    q = np.random.default_rng(seed).dirichlet(np.ones(m), k) + 1e-4
    return Channel(q / q.sum(axis=1, keepdims=True))


LARGE = {
    "local_dp": local_dp,
    "total_variation": total_variation,
    "hockey_stick": lambda q: hockey_stick(q, 0.5),
    "renyi": lambda q: renyi(q, 2.0),
    "kl": lambda q: renyi(q, 1.0),
    "approximate_dp": lambda q: approximate_dp(q, 0.1),
}
SMALL = {
    "audit": audit,
    "trade_off": trade_off,
    "zcdp": zcdp,
    "mcdp": mcdp,
    "restricted_kl": lambda q: capacity_bounded(q, np.arange(24), RestrictedKL()),
    "restricted_renyi": lambda q: capacity_bounded(q, np.arange(24), RestrictedRenyi(4.0)),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_channel_of_1000_by_1000(benchmark, name):
    found = benchmark.pedantic(LARGE[name], args=(random_channel(1000, 1000),), rounds=2, iterations=1)
    assert found.value > 0


@pytest.mark.parametrize("name", SMALL)
def test_a_channel_of_24_by_24(benchmark, name):
    assert benchmark.pedantic(SMALL[name], args=(random_channel(24, 24),), rounds=2, iterations=1)
