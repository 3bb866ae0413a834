"""The package's side of the benchmarks: each task sets up and gives the work that is timed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt import Divergence, LocalDP, TotalVariation, k_fold, optimal_channel
from ldpopt.channel import Channel
from ldpopt.composition import compose
from ldpopt.design import Exchange, ExpectedLoss, MergedPartition, Partition, PatternLP
from ldpopt.divergences import KL
from ldpopt.exact import round_exact
from ldpopt.mechanisms import optimized_local_hashing, optimized_unary_encoding, randomized_response, subset_selection
from ldpopt.privacy import hockey_stick, local_dp, renyi, total_variation
from ldpopt_survey import MaximumLikelihood, estimate
from ldpopt_survey.collect.coding import Sampler
from ldpopt_survey.collect.words import CHUNK_WORDS, Keystream, SecretKey
from ldpopt_survey.estimate.sampled import as_table

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
        stream, words = Keystream(SecretKey(bytes(32)), 0, 0), np.empty(CHUNK_WORDS, np.uint64)
        for _ in range(N // CHUNK_WORDS):
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


def count_rr(k: int) -> Work:
    channel, reports = randomized_response(k, 1.0), rng().integers(k, size=N)
    return lambda: as_table(reports, channel)


def read_answers(k: int) -> Work:
    """The floor of counting positions: they are read once."""
    reports = rng().integers(k, size=N)
    return lambda: reports.sum()


def count_oue(k: int) -> Work:
    oracle = optimized_unary_encoding(k, 1.0)
    reports = oracle.sample(rng().integers(k, size=oracle_size(k)), rng())
    return lambda: oracle.support_counts(reports)


def read_reports(k: int) -> Work:
    """The floor of counting bits: the reports are read once."""
    reports = optimized_unary_encoding(k, 1.0).sample(rng().integers(k, size=oracle_size(k)), rng())
    return lambda: reports.sum(dtype=np.int64)


def compose_k_fold(count: int) -> Work:
    return lambda: float(k_fold(0.1, eta=ETA, count=count).epsilon_at(1e-6))


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


def plain_expected_loss(k: int) -> Work:
    """The program for the least expected loss over all matrices, in cvxpy."""
    import cvxpy as cp

    def work() -> float:
        q = cp.Variable((k, k), nonneg=True)
        limits = [cp.sum(q, axis=1) == 1]
        limits += [q[x] <= math.e * q[y] for x in range(k) for y in range(k) if x != y]
        return float(cp.Problem(cp.Minimize(1 - cp.trace(q) / k), limits).solve(solver=cp.HIGHS))

    return work


def design(method: Any, certify: bool) -> Callable[[int], Work]:
    def task(k: int) -> Work:
        utility = problem(k)
        return lambda: optimal_channel(utility, LocalDP(1.0), method=method, certify=certify).value

    return task


def capped(k: int) -> Any:
    return optimal_channel(problem(k), [LocalDP(1.0), TotalVariation(0.1)])


def capped_certified(k: int) -> Work:
    return lambda: capped(k).value


def capped_gap(k: int) -> Work:
    return lambda: f"relative gap {capped(k).relative_gap:.2g}"


def capped_proof(k: int) -> Work:
    certificate = capped(k).certificate
    return lambda: certificate.bound


def bracket(k: int) -> Work:
    utility = problem(k)

    def work() -> str:
        made = optimal_channel(utility, LocalDP(1.0), method=MergedPartition())
        return f"relative gap {made.upper_bound / made.value - 1:.2g}"

    return work


def measured(measure: Callable[[Channel], Any]) -> Callable[[int], Work]:
    def task(k: int) -> Work:
        channel = Channel(random_matrix(k))
        return lambda: measure(channel)

    return task


def plain_ratio(k: int) -> Work:
    q = random_matrix(k)
    return lambda: float(np.log(q.max(axis=0) / q.min(axis=0)).max())


def plain_distance(k: int) -> Work:
    q = random_matrix(k)
    return lambda: max(float(np.abs(q - row).sum(axis=1).max()) for row in q) / 2


def plain_hockey_stick(k: int) -> Work:
    q, e = random_matrix(k), math.exp(0.5)
    return lambda: max(float(np.maximum(row - e * q, 0).sum(axis=1).max()) for row in q)


def plain_renyi(k: int) -> Work:
    q = random_matrix(k)
    return lambda: float(np.log((q**2) @ (1 / q).T).max())


def random_matrix(k: int) -> Any:
    return rng().dirichlet(np.ones(k), k)


def read_matrix(k: int) -> Work:
    """The floor of a measure: the matrix is read once."""
    q = random_matrix(k)
    return lambda: float(q.sum())


def estimate_likelihood(k: int) -> Work:
    channel = randomized_response(k, 1.0)
    counts = rng().multinomial(10_000, np.full(k, 1 / k))
    return lambda: estimate(counts, channel, MaximumLikelihood())


def plain_em(k: int) -> Work:
    matrix, counts = randomized_response(k, 1.0).matrix, rng().multinomial(10_000, np.full(k, 1 / k))

    def work() -> None:
        p = np.full(k, 1 / k)
        for _ in range(10_000):
            new = p * (matrix @ (counts / (p @ matrix))) / counts.sum()
            if np.abs(new - p).sum() < 1e-10:
                break
            p = new

    return work


def exact(k: int) -> Work:
    matrix = randomized_response(k, 1.0).matrix
    return lambda: round_exact(matrix)


def estimated(k: int) -> Work:
    channel = randomized_response(k, 1.0)
    counts = rng().multinomial(10_000, np.full(k, 1 / k))
    return lambda: estimate(counts, channel).standard_errors


def plain_estimate(k: int) -> Work:
    matrix, counts = randomized_response(k, 1.0).matrix, rng().multinomial(10_000, np.full(k, 1 / k))
    return lambda: np.linalg.solve(matrix.T, counts / counts.sum())


TASKS: dict[str, Callable[[int], Work]] = {
    name: globals()[name]
    for name in (
        "simulate_rr", "simulate_n", "uniform_numbers", "random_bytes", "privatize_rr", "keystream", "sample_oue",
        "sample_olh", "count_olh", "sample_subset", "compose_k_fold", "compose_rr", "least_loss", "plain_lp", "bracket",
        "exact", "plain_estimate", "count_rr", "read_answers", "count_oue", "read_reports", "plain_ratio",
        "plain_distance", "plain_hockey_stick", "plain_renyi", "read_matrix", "estimate_likelihood", "plain_em",
        "plain_expected_loss", "capped_certified", "capped_gap", "capped_proof",
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

PER_ANSWER = {
    "simulate_rr",
    "uniform_numbers",
    "privatize_rr",
    "keystream",
    "sample_subset",
    "count_rr",
    "read_answers",
}


def units(task: str, argument: int) -> int:
    """How many units (answers, reports) one run of a task handles."""
    if task in PER_ANSWER:
        return N
    if task in ("sample_oue", "sample_olh", "count_olh", "random_bytes", "count_oue", "read_reports"):
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
        said = answer if isinstance(answer, str) else f"answers {answer:.11g}" if isinstance(answer, float) else ""
        if times[-1] > 5:
            break
    return min(times[1:] or times) / units(task, argument), said
