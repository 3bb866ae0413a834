"""The binary mechanism: one bit says which of two distributions the answer favours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import distribution, positive_epsilon
from ldpopt.frames import together
from ldpopt.labels import Label, distinct_labels
from ldpopt.mechanisms.staircase_matrix import Mask, staircase_matrix


def binary(p0: Any, p1: Any, epsilon: float, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Report 0 with odds e^epsilon when P0(x) >= P1(x), else report 1 with the same odds [GI, eq. 23-24].

    p0, p1 : distributions of shape (k,). epsilon : in nats.

    Returns a (k, 2) channel. Among all epsilon-LDP channels it keeps the most total variation between the two
    distributions of the report: tanh(epsilon/2) TV(P0, P1). Its eta, the largest total variation distance between two
    rows, is tanh(epsilon/2).
    Raises `InvalidInput` for values that are not distributions, unequal lengths or epsilon out of range.

    >>> binary([0.7, 0.2, 0.1], [0.1, 0.2, 0.7], 1.0).matrix.round(4)
    array([[0.7311, 0.2689],
           [0.7311, 0.2689],
           [0.2689, 0.7311]])
    """
    epsilon = positive_epsilon(epsilon)
    (p0, p1), inputs = together([("p0", p0), ("p1", p1)], inputs)
    matrix = staircase_matrix(favoured(p0, p1), epsilon)
    return Channel(matrix, distinct_labels(inputs, len(matrix), "inputs"), (0, 1))


def favoured(p0: Any, p1: Any) -> Mask:
    """A (k, 2) mask: column 0 where P0 >= P1, column 1 elsewhere."""
    p0 = distribution(p0, "p0")
    p1 = distribution(p1, "p1", size=len(p0))
    first = p0 >= p1
    return np.stack([first, ~first], axis=1)
