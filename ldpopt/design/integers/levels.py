"""First channels of integers whose columns have two entries a and b, near a channel that is not one of integers.

The ratio of two integers is near e^epsilon for some a only: 7/1 for epsilon 2, but 3/2, 8/5 and 11/7 for epsilon 0.5. A
greater a leaves fewer columns. With m columns, each row has b in n of them where a m + (b - a) n = D. The given channel
says which rows a column prefers, and on average how large n / m is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

from ldpopt.design.integers.search import MAX_SOME_INPUTS
from ldpopt.design.integers.task import Task
from ldpopt.design.integers.worth import ColumnWorth, VarianceWorth, worth_of_weights
from ldpopt.design.patterns.proof_levels import Integers
from ldpopt.values.distribution import Array

# Numbers of columns for each pair of entries: without a rest in each row, with one, and how many are tried for each
COUNTS_PER_LEVEL, COUNTS_WITH_REST, MAX_COUNTS_TRIED = 2, 1, 10
MAX_COLUMNS, MAX_LOW = 100, 200  # The most columns, and the largest lower entry: fine denominators need neither.
NEGLIGIBLE_WEIGHT = 1e-9  # Columns with a smaller fraction of the weight of all are left out.


def level_starts(task: Task, worth: ColumnWorth | VarianceWorth, channel: Array) -> Iterator[Integers]:
    """Generate integers (k, m) with two entries in each column, which meet the ratio and the cap.

    channel : (k, columns), such as the optimum without a denominator; nothing is generated if it has zeros, or if the
    task has no ratio.
    """
    least_entries = channel.min(axis=0)
    used = least_entries > NEGLIGIBLE_WEIGHT * least_entries.sum()
    if task.ratio is None or not used.any():
        return
    chances = least_entries[used] / least_entries[used].sum()
    preferences = channel[:, used] / least_entries[used] - 1
    if not (largest := float(preferences.max())) > 0:
        return
    preferences, rng = preferences / largest, np.random.default_rng(0)
    mean_share = float((preferences @ chances).mean())
    for low, high in _levels(task):
        mean_count = task.total / (low + mean_share * (high - low))
        if mean_count > MAX_COLUMNS:
            continue
        counts = [m for m in range(2, task.total // low + 1) if 0 < _members(task, low, high, m) <= m]
        counts.sort(key=lambda m: (abs(m - mean_count), m))
        has_rest = [(task.total - low * m) % (high - low) > 0 for m in counts]
        for rest, kept_starts in ((False, COUNTS_PER_LEVEL), (True, COUNTS_WITH_REST)):
            tried = [m for m, other in zip(counts, has_rest, strict=True) if other == rest][:MAX_COUNTS_TRIED]
            starts = (_start(task, worth, low, high, m, chances, preferences, rng) for m in tried)
            yield from islice((weights for weights in starts if weights is not None), kept_starts)


def _start(
    task: Task,
    worth: ColumnWorth | VarianceWorth,
    low: int,
    high: int,
    m: int,
    chances: Array,
    preferences: Array,
    rng: np.random.Generator,
) -> Integers | None:
    """Draw m columns with these chances; None if the draws break the cap, or leave some quantity undetermined.

    For many inputs it is the best of several draws, as the moves from there are many.
    """
    best, best_worth, has_many_inputs = None, -math.inf, task.inputs > MAX_SOME_INPUTS
    is_any_allowed = False
    for noise in NOISE_WEIGHTS * (DRAWS_MANY_INPUTS if has_many_inputs else 1):
        weights = _draw(task, low, high, preferences[:, _systematic_sample(chances, m, rng)], noise, rng)
        if task.allows(weights):
            is_any_allowed = True
            if (value := worth_of_weights(worth, weights)) > best_worth:
                best, best_worth = weights, value
        if (best is not None and not has_many_inputs) or (not is_any_allowed and noise == NOISE_WEIGHTS[-1]):
            break
    return best


def _levels(task: Task) -> Iterator[tuple[int, int]]:
    """Generate the pairs of a column's entries, from the smallest on, each with a greater ratio than those before."""
    assert task.ratio is not None
    greatest = 1.0
    for low in range(1, min(task.total // task.inputs, MAX_LOW) + 1):
        high = math.floor(low * task.ratio)
        if high / low > greatest:
            greatest = high / low
            yield low, high


def _members(task: Task, low: int, high: int, m: int) -> int:
    """Return in how many of m columns each row has the higher entry."""
    return (task.total - low * m) // (high - low)


def _systematic_sample(chances: Array, m: int, rng: np.random.Generator) -> Integers:
    """Draw m places with these chances, each about as often as it is expected."""
    points = (rng.random() + np.arange(m)) / m
    return np.searchsorted(np.cumsum(chances), points).clip(max=len(chances) - 1)


def _draw(task: Task, low: int, high: int, preferences: Array, noise: float, rng: np.random.Generator) -> Integers:
    """Give each row its higher entries in the columns that prefer it most (k, m); then in those with fewer so far."""
    k, m = preferences.shape
    members = _members(task, low, high, m)
    weights = np.full((k, m), low)
    loads, expected_loads = np.zeros(m), preferences.sum(axis=0)
    for row in rng.permutation(k):
        order = np.argsort(-(preferences[row] - LOAD_WEIGHT * (loads - expected_loads) / k + noise * rng.random(m)))
        weights[row, order[:members]] = high
        loads[order[:members]] += 1
        if members < m:
            weights[row, order[members]] += task.total - low * m - (high - low) * members
    return weights


LOAD_WEIGHT = 1e-2  # Weight of a column's load relative to its preferences, which are from 0 to 1
NOISE_WEIGHTS = (1e-3, 0.03, 0.3)  # Weights of chance in preferences
DRAWS_MANY_INPUTS = 8  # Draws for each weight, of many inputs
