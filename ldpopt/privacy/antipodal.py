"""The antipodal reduction: a pair of distributions is refined so that every log-ratio is -epsilon, 0 or epsilon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.distribution import Array, distribution
from ldpopt.errors import invalid


def antipodal_pair(p: Any, q: Any) -> tuple[Array, Array]:
    """Split every outcome in two, so that every log ratio is -epsilon, 0 or epsilon, shape (2k,) each [DR, Lemma 3.9].

    p, q : distributions of shape (k,).

    epsilon is the largest |log p/q|, in nats. Outcome x with ratio r = p/q is split into x, with masses
    q w e^(+-epsilon) and q w for w = (r - 1)/(e^(+-epsilon) - 1), and k + x, with q (1 - w) in both. Merging x and
    k + x gives the pair back, so no divergence falls. Raises `InvalidInput` for an infinite ratio.

    >>> split_p, split_q = antipodal_pair([0.2, 0.5, 0.3], [0.3, 0.4, 0.3])
    >>> used = split_q > 0
    >>> np.unique(np.log(split_p[used] / split_q[used]).round(6))
    array([-0.405465,  0.      ,  0.405465])
    """
    p = distribution(p, "p")
    q = distribution(q, "q", size=len(p))
    if ((p > 0) != (q > 0)).any():
        at = int(np.argmax((p > 0) != (q > 0)))
        raise invalid("pair", "distributions with the same support", f"p = {p[at]}, q = {q[at]}", f"outcome {at}")
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(p > 0, np.log1p((p - q) / q), 0.0)
    epsilon = float(np.abs(loss).max())
    if epsilon == 0:
        return np.append(p, np.zeros(len(p))), np.append(q, np.zeros(len(q)))
    gap = math.expm1(epsilon)
    # p - q = q w (e^(+-epsilon) - 1); for the lower sign 1 - e^-epsilon = gap e^-epsilon.
    telling_q = np.where(p >= q, (p - q) / gap, (q - p) / -math.expm1(-epsilon))
    telling_q = np.minimum(telling_q, q)
    telling_p = telling_q * np.exp(np.where(p >= q, epsilon, -epsilon))
    rest = np.maximum(q - telling_q, 0.0)
    return np.append(telling_p, rest), np.append(telling_q, rest)
