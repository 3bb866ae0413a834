"""The package's side of the benchmarks: each task sets up and gives the work that is timed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt import Divergence, LocalDP, k_fold, optimal_channel
from ldpopt.channel import Channel
from ldpopt.composition import compose
from ldpopt.design import Exchange, ExpectedLoss, MergedPartition, Partition, PatternLP
from ldpopt.divergences import KL
from ldpopt.exact_rounding import round_exact
from ldpopt.mechanisms import optimized_local_hashing, optimized_unary_encoding, randomized_response, subset_selection
from ldpopt.privacy import hockey_stick, local_dp, renyi, total_variation
from ldpopt.survey import estimate
from ldpopt.survey.keystream import CHUNK, Keystream
from ldpopt.survey.sampler import Sampler
from ldpopt.survey.secret import SecretKey

Work = Callable[[], Any]
N = 1_000_000
ETA = 0.7 * math.tanh(0.05)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def problem(k: int) -> Divergence:
    return Divergence(KL, *np.random.default_rng(k).dirichlet(np.ones(k), 2))


def oracle_size(k: int) -> int:
    return max(10_000, min(N, 2 * 10**7 // k))


def simulate_rr(k: int) -> Work:
    channel, x, source = randomized_response(k, 1.0), rng().integers(k, size=N), rng()
    return lambda: channel.sample_indices(x, source)


def simulate_n(n: int) -> Work:
    channel, x, source = randomized_response(32, 1.0), rng().integers(32, size=n), rng()
    return lambda: channel.sample_indices(x, source)


def uniform_numbers(k: int) -> Work:
    source, out = rng(), np.empty(1 << 14)
    return lambda: [source.random(out=out) for _ in range(N >> 14)]


def random_bytes(k: int) -> Work:
    source, size = rng(), oracle_size(k) * k // 8
    return lambda: [source.integers(0, 2**64, size=1 << 13, dtype=np.uint64) for _ in range(max(1, size >> 13))]


def privatize_rr(k: int) -> Work:
    sampler, x = Sampler(randomized_response(k, 1.0).exact()), rng().integers(k, size=N).astype(np.uint8)
    return lambda: sampler.reports(x, Keystream(SecretKey(bytes(32)), 0, 0))


def keystream(k: int) -> Work:
    def work() -> None:
        stream, words = Keystream(SecretKey(bytes(32)), 0, 0), np.empty(CHUNK, np.uint64)
        for _ in range(N // CHUNK):
            stream.fill(words)

    return work


def sample_oue(k: int) -> Work:
    oracle, x, source = optimized_unary_encoding(k, 1.0), rng().integers(k, size=oracle_size(k)), rng()
    return lambda: oracle.sample(x, source)


def sample_olh(k: int) -> Work:
    oracle, x, source = optimized_local_hashing(k, 1.0), rng().integers(k, size=oracle_size(k)), rng()
    return lambda: oracle.sample(x, source)


def count_olh(k: int) -> Work:
    oracle = optimized_local_hashing(k, 1.0)
    reports = oracle.sample(rng().integers(k, size=oracle_size(k)), rng())
    return lambda: oracle.support_counts(reports)


def sample_subset(k: int) -> Work:
    channel = subset_selection(k, 1.0, max(1, round(k / (math.e + 1))))
    x, source = rng().integers(k, size=N), rng()
    return lambda: channel.sample_indices(x, source)


def compose_k_fold(count: int) -> Work:
    return lambda: k_fold(0.1, eta=ETA, count=count).epsilon_at(1e-6)


def compose_rr(count: int) -> Work:
    return lambda: compose([(0.1,)], count).epsilon_at(1e-6)


def least_loss(k: int) -> Work:
    utility = ExpectedLoss(np.full(k, 1 / k), 1 - np.eye(k))
    return lambda: optimal_channel(utility, LocalDP(1.0), certify=False)


def plain_lp(k: int) -> Work:
    """The staircase program as written in [KOV14], every pattern a variable."""
    import cvxpy as cp

    utility = problem(k)

    def work() -> float:
        inside = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
        columns = np.exp(1.0 * inside)
        theta = cp.Variable(2**k, nonneg=True)
        value = utility.f.excess(columns @ utility.p0, columns @ utility.p1)
        return float(cp.Problem(cp.Maximize(value @ theta), [columns.T @ theta == 1]).solve(solver=cp.HIGHS))

    return work


def design(method: Any, certify: bool) -> Callable[[int], Work]:
    def task(k: int) -> Work:
        utility = problem(k)
        return lambda: optimal_channel(utility, LocalDP(1.0), method=method, certify=certify).value

    return task


def bracket(k: int) -> Work:
    utility = problem(k)

    def work() -> str:
        made = optimal_channel(utility, LocalDP(1.0), method=MergedPartition())
        return f"relative gap {made.upper_bound / made.value - 1:.2g}"

    return work


def measured(measure: Callable[[Channel], Any]) -> Callable[[int], Work]:
    def task(k: int) -> Work:
        channel = Channel(rng().dirichlet(np.ones(k), k))
        return lambda: measure(channel)

    return task


def exact(k: int) -> Work:
    matrix = randomized_response(k, 1.0).matrix
    return lambda: round_exact(matrix)


def estimated(k: int) -> Work:
    channel = randomized_response(k, 1.0)
    counts = rng().multinomial(10_000, np.full(k, 1 / k))
    return lambda: estimate(counts, channel)


def plain_estimate(k: int) -> Work:
    matrix, counts = randomized_response(k, 1.0).matrix, rng().multinomial(10_000, np.full(k, 1 / k))
    return lambda: np.linalg.solve(matrix.T, counts / counts.sum())


TASKS: dict[str, Callable[[int], Work]] = {
    name: globals()[name]
    for name in (
        "simulate_rr", "simulate_n", "uniform_numbers", "random_bytes", "privatize_rr", "keystream", "sample_oue",
        "sample_olh", "count_olh", "sample_subset", "compose_k_fold", "compose_rr", "least_loss", "plain_lp", "bracket",
        "exact", "plain_estimate",
    )
} | {
    "partition": design(Partition(), False),
    "partition_certified": design(Partition(), True),
    "pattern_certified": design(PatternLP(), True),
    "exchange": design(Exchange(), False),
    "estimate": estimated,
    "measure_local_dp": measured(local_dp),
    "measure_total_variation": measured(total_variation),
    "measure_hockey_stick": measured(lambda q: hockey_stick(q, 0.5)),
    "measure_renyi": measured(lambda q: renyi(q, 2)),
}  # fmt: skip

PER_ANSWER = {"simulate_rr", "uniform_numbers", "privatize_rr", "keystream", "sample_subset"}


def units(task: str, argument: int) -> int:
    """How many units (answers, reports) one run of a task handles."""
    if task in PER_ANSWER:
        return N
    if task in ("sample_oue", "sample_olh", "count_olh", "random_bytes"):
        return oracle_size(argument)
    return argument if task == "simulate_n" else 1


def measure(task: str, argument: int, repeat: int = 3) -> tuple[float, str]:
    """(least processor time a unit, what the work answered if it is worth telling)."""
    work = TASKS[task](argument)
    times, said = [], ""
    for _ in range(repeat + 1):
        start = time.process_time()
        answer = work()
        times.append(time.process_time() - start)
        said = answer if isinstance(answer, str) else f"answers {answer:.9g}" if isinstance(answer, float) else ""
        if times[-1] > 5:
            break
    return min(times[1:] or times) / units(task, argument), said
