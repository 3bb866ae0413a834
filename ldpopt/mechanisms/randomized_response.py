"""k-ary randomized response: the true answer is e^epsilon times as likely to be reported as each other answer."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import positive_epsilon, positive_integer
from ldpopt.labels import Label, distinct_labels
from ldpopt.mechanisms.staircase_matrix import staircase_matrix


def randomized_response(k: int, epsilon: float, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Report the answer with probability e/(e + k - 1), each other one with 1/(e + k - 1), e = exp(epsilon) [KOV14].

    k >= 2; epsilon in nats; returns a (k, k) channel whose outputs carry the labels of the inputs. Its eta, the total
    variation distance between two rows, is (e - 1)/(e + k - 1). Raises `InvalidInput` for values out of range.

    >>> randomized_response(3, 1.0).matrix[0].round(4)
    array([0.5761, 0.2119, 0.2119])
    """
    k = positive_integer(k, "k", 2)
    matrix = staircase_matrix(np.eye(k, dtype=bool), positive_epsilon(epsilon))
    labels = distinct_labels(inputs, k, "inputs")
    return Channel(matrix, labels, labels)
