"""The truncated geometric mechanism: for ordered answers, with reports that are likelier the nearer they are."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import positive_epsilon, positive_integer
from ldpopt.labels import Label, distinct_labels
from ldpopt.rounding import toward_privacy


def truncated_geometric(k: int, epsilon: float, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Two-sided geometric noise on ordered answers 0..k-1; reports outside are moved to the nearer end [Geometric].

    k >= 2; `epsilon`, in nats, is that of the whole channel; between neighbouring answers it is epsilon/(k-1). Returns
    a (k, k) channel. With q = exp(-epsilon/(k-1)), Q[x, y] is q^|x-y| / (1+q) if y is one of the two ends, and
    (1-q)/(1+q) q^|x-y| otherwise. Its eta, the largest total variation distance between two rows, is
    1 - q^((k-1)/2) for odd k and 1 - 2 q^(k/2)/(1+q) for even k.
    Raises `InvalidInput` for k < 2 or epsilon out of range.

    >>> truncated_geometric(3, 2.0).matrix.round(4)
    array([[0.7311, 0.17  , 0.0989],
           [0.2689, 0.4621, 0.2689],
           [0.0989, 0.17  , 0.7311]])
    """
    k = positive_integer(k, "k", 2)
    step = toward_privacy(positive_epsilon(epsilon)) / (k - 1)
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    weight = np.full(k, math.tanh(step / 2))
    weight[[0, -1]] = 1 / (1 + math.exp(-step))
    labels = distinct_labels(inputs, k, "inputs")
    return Channel(np.exp(-step * distance) * weight, labels, labels)
