"""Privatizing in memory against the keystream alone, in one run.

    pytest experiments/benchmarks/bench_privatize.py --benchmark-only --benchmark-group-by=group

Promised: at least 15 million answers a second on one core at k = 24, and at most four times the keystream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ldpopt.exact import round_exact
from ldpopt_survey.collect.coding import Sampler
from ldpopt_survey.collect.words import CHUNK_WORDS, Keystream, Respondents, SecretKey, tag

N, K = 1 << 22, 24
KEY = SecretKey(bytes(32))
RNG = np.random.default_rng(0)
ANSWERS = RNG.integers(0, K, N).astype(np.uint8)
CHANNELS = {
    "randomized response": (np.ones((K, K)) + 1.7 * np.eye(K)) / (K + 1.7),
    "dense random rows": RNG.dirichlet(np.ones(K), K),
}


def keystream() -> None:
    stream, words = Keystream(KEY, 0, 0), np.empty(CHUNK_WORDS, np.uint64)
    for _ in range(N // CHUNK_WORDS):
        stream.fill(words)


@pytest.mark.benchmark(group=f"{N} answers, k = {K}")
def test_keystream_alone(benchmark: Any) -> None:
    benchmark(keystream)


@pytest.mark.benchmark(group=f"{N} answers, k = {K}")
@pytest.mark.parametrize("name", list(CHANNELS))
def test_privatize(benchmark: Any, name: str) -> None:
    sampler = Sampler(round_exact(CHANNELS[name]))
    benchmark(lambda: sampler.reports(ANSWERS, Keystream(KEY, 0, 0)))
    if benchmark.stats is not None:  # none are taken where benchmarks are run but not timed
        benchmark.extra_info["million answers a second"] = round(N / benchmark.stats.stats.min / 1e6)


@pytest.mark.benchmark(group=f"{N} answers, k = {K}")
def test_privatize_memoised(benchmark: Any) -> None:
    sampler = Sampler(round_exact(CHANNELS["randomized response"]))
    ids = Respondents(KEY, pa.array(np.arange(N)).cast(pa.large_string()))
    benchmark(lambda: sampler.reports(ANSWERS, ids.words([tag("question")])))


@pytest.mark.benchmark(group=f"{N} respondent ids")
def test_respondent_ids(benchmark: Any) -> None:
    ids = pa.array(np.arange(N)).cast(pa.large_string())
    benchmark(lambda: Respondents(KEY, ids))


@pytest.mark.benchmark(group=f"{N} answers, k = {K}")
def test_numpy_floats_for_comparison(benchmark: Any) -> None:
    """What the library does not do: floats from a simulation generator decide."""
    steps = np.cumsum(CHANNELS["randomized response"], axis=1)
    table = (steps + np.arange(K)[:, None]).ravel()
    benchmark(lambda: np.searchsorted(table, ANSWERS + np.random.default_rng(0).random(N)))
