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
    """Six reports on three answers, (epsilon, delta)-LDP; two reports have probabilities e^(2 epsilon) apart.

    epsilon : in nats, above 0. inputs : labels of the three answers, sorted by the likelihood ratio P0(x)/P1(x) of the
    two hypotheses that the reports shall tell apart.

    Returns a (3, 6) channel. With e = exp(epsilon), N = 2 (e^2 + e + 1) and

        delta = (e^2 - e)/N,

    its columns are delta (1,0,0), (e+1)/N (e,1,1), (e,e^2,1)/N, (1,e^2,e)/N, (e+1)/N (1,1,e) and delta (0,0,1). It is
    (epsilon, delta)-LDP as in [GI, Def 1], and with no smaller delta. Two reports favour the middle answer; under
    it, each is e^2 times as likely as under one of the two other answers.

    It improves on a public coin, which chooses at random between full disclosure and the best epsilon-LDP channel: it
    keeps more of an f-divergence D_f if f is strictly convex and that channel is strictly better with three blocks of
    answers than with fewer. See docs/research/approximate-ldp.md.
    Raises `InvalidInput` for an epsilon that is not above 0, or if there are not three labels.

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
