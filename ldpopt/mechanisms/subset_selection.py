"""Subset selection: report a random subset of the possible answers that probably holds the true one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import positive_epsilon, positive_integer
from ldpopt.errors import invalid
from ldpopt.labels import Label, distinct_labels
from ldpopt.mechanisms.staircase_matrix import staircase_matrix

MAXIMUM_ENTRIES = 2**24


def subset_selection(k: int, epsilon: float, size: int, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Report a subset of `size` answers; each that holds the true one is e^epsilon times as likely as the others [YB].

    k >= 2; 1 <= size < k; epsilon in nats; returns a (k, C(k, size)) channel whose outputs are tuples of input
    labels. With e = exp(epsilon), d = size and c = d (k - d)/(k - 1), its eta, the total variation distance between
    two rows, is (e - 1) c/(d e + k - d). With d near k/(e + 1) it is optimal for estimating a distribution near the
    uniform one. Raises `InvalidInput` for values out of range and for matrices of more than 2**24 entries.

    >>> subset_selection(3, 1.0, 2).outputs
    ((0, 1), (0, 2), (1, 2))
    """
    k = positive_integer(k, "k", 2)
    size = positive_integer(size, "size")
    epsilon = positive_epsilon(epsilon)
    if size >= k:
        raise invalid("size", f"an integer below k = {k}", size)
    labels = distinct_labels(inputs, k, "inputs")
    count = math.comb(k, size)
    if count * k > MAXIMUM_ENTRIES:
        raise invalid("subset selection", f"a matrix of at most {MAXIMUM_ENTRIES} entries", f"{k} x {count:.3g}")
    subsets = np.array(list(combinations(range(k), size)))
    holds = np.zeros((k, count), dtype=bool)
    holds[subsets.T, np.arange(count)] = True
    return Channel(staircase_matrix(holds, epsilon), labels, tuple(combinations(labels, size)))
