"""The two-step mechanism: three answers under (epsilon, delta)-LDP, better than a coin between two simpler channels."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ldpopt.channel import Channel
from ldpopt.distribution import positive_epsilon
from ldpopt.labels import Label, distinct_labels

OUTPUTS: tuple[Label, ...] = ("first", "not last", "middle to first", "middle to last", "not first", "last")


def two_step(epsilon: float, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Six reports on three answers whose probabilities go up to e^(2 epsilon) apart, at the least delta for that.

    epsilon in nats, above 0; `inputs` : labels of the three answers, in order of their likelihood ratio. Returns a
    (3, 6) channel. With e = exp(epsilon), N = 2 (e^2 + e + 1) and

        delta = (e^2 - e)/N,

    its columns are delta (1,0,0), (e+1)/N (e,1,1), (e,e^2,1)/N, (1,e^2,e)/N, (e+1)/N (1,1,e) and delta (0,0,1). It is
    (epsilon, delta)-LDP, exactly: between the middle and either end, and between the two ends, the excess is delta.
    The report on the middle answer is split into two, each with odds e^2 against one of the ends. Where three blocks
    are strictly the best epsilon-LDP channel and f is strictly convex, it keeps more of D_f than a public coin
    between that channel and full disclosure; see docs/research/approximate-ldp.md. (epsilon, delta) as in [GI, Def 1].
    Raises `InvalidInput` for an epsilon that is not above 0 and for other than three labels.

    >>> from ldpopt.privacy import hockey_stick
    >>> made = two_step(math.log(2.0))
    >>> (14 * made.matrix).round(9)
    array([[2., 6., 2., 1., 3., 0.],
           [0., 3., 4., 4., 3., 0.],
           [0., 3., 1., 2., 6., 2.]])
    >>> round(float(hockey_stick(made, math.log(2.0))) * 14, 9)
    2.0
    """
    q = math.exp(-positive_epsilon(epsilon))
    half = 2 * (1 + q + q * q)
    rest = -math.expm1(-epsilon) / half  # delta
    near, far = (1 + q) / half, (q + q * q) / half
    matrix = np.array(
        [
            [rest, near, q / half, q * q / half, far, 0.0],
            [0.0, far, 1 / half, 1 / half, far, 0.0],
            [0.0, far, q * q / half, q / half, near, rest],
        ]
    )
    return Channel(matrix, distinct_labels(inputs, 3, "inputs"), OUTPUTS)
