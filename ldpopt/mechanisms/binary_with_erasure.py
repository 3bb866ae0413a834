"""The binary mechanism with erasure: under limits epsilon and eta, it keeps the most total variation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ldpopt.channel import ERASED, Channel
from ldpopt.distribution import positive_epsilon, unit_interval
from ldpopt.labels import Label, distinct_labels
from ldpopt.mechanisms.binary import favoured
from ldpopt.rounding import toward_privacy


def binary_with_erasure(
    p0: Any, p1: Any, epsilon: float, eta: float, *, inputs: Iterable[Label] | None = None
) -> Channel:
    """The binary mechanism, its report erased just often enough to be eta-TV [GI, eq. 26-28].

    p0, p1 : distributions of shape (k,). epsilon : in nats. eta : in [0, 1].

    Returns a (k, 3) channel with outputs 0, 1 and ``'erased'``. eta-TV means that the total variation distance between
    two rows is at most eta. The report is erased, whatever the answer is, with probability 1 - eta / tanh(epsilon/2),
    or 0 if eta is tanh(epsilon/2) or more. Up to there, the channel keeps the total variation eta TV(P0, P1); no
    epsilon-LDP and eta-TV channel keeps more [GI, Thm 5].
    Raises `InvalidInput` as `binary` does, and for eta outside [0, 1].

    >>> binary_with_erasure([0.9, 0.1], [0.1, 0.9], 1.0, 0.2).matrix.round(4)
    array([[0.3164, 0.1164, 0.5672],
           [0.1164, 0.3164, 0.5672]])
    """
    reduced = toward_privacy(positive_epsilon(epsilon))
    tanh = math.tanh(reduced / 2)
    # The difference of the rows is set first: it is what eta bounds, and it may be far smaller than the entries.
    difference = min(toward_privacy(unit_interval(eta, "eta")), tanh)
    low = difference / math.expm1(reduced)
    matrix = np.where(favoured(p0, p1), low + difference, low)
    erased = 1.0 - (2 * low + difference) if difference < tanh else 0.0
    matrix = np.hstack([matrix, np.full((len(matrix), 1), erased)])
    return Channel(matrix, distinct_labels(inputs, len(matrix), "inputs"), (0, 1, ERASED))
