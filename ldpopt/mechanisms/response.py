"""Channels in closed form for a finite set of answers: from epsilon (and eta, delta or a law) to a `Channel`.

Entries that differ by the factor e^epsilon alone make a staircase matrix [KOV16]. Most mechanisms here are such.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ERASED, Channel
from ldpopt.divergences import FDivergence
from ldpopt.errors import invalid
from ldpopt.mechanisms.oracles import check_size
from ldpopt.numbers.rounding import toward_privacy
from ldpopt.numbers.tolerances import RATIO_RTOL
from ldpopt.values.distribution import (
    Array,
    Checked,
    at_least_two,
    distribution,
    positive_epsilon,
    positive_integer,
    unit_interval,
)
from ldpopt.values.labels import Label, aligned, distinct_labels

Mask = npt.NDArray[np.bool_]


def staircase_matrix(is_preferred: Mask, epsilon: float) -> Array:
    """Build the matrix proportional to e^epsilon where `is_preferred` (k, m), else to 1.

    It uses a slightly smaller epsilon. Every row of `is_preferred` must have the same number of true entries.
    """
    ratio = math.exp(toward_privacy(epsilon))
    members = int(is_preferred[0].sum())
    total = members * ratio + (is_preferred.shape[1] - members)
    return np.asarray(np.where(is_preferred, ratio / total, 1.0 / total), dtype=np.float64)


def randomized_response(k: int, epsilon: float, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Build k-ary randomized response [KOV14].

    It reports the answer with probability e/(e + k - 1), each other one with 1/(e + k - 1), e = exp(epsilon). Its eta,
    the total variation distance between two rows, is (e - 1)/(e + k - 1).

    Parameters
    ----------
    k : The number of answers, at least 2.
    epsilon : In nats.
    inputs : Labels of the answers; None for 0 to k - 1.

    Returns
    -------
    Channel
        A (k, k) channel whose outputs carry the labels of the inputs.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> randomized_response(3, 1.0).matrix[0].round(4)
    array([0.5761, 0.2119, 0.2119])
    """
    k = at_least_two(k)
    matrix = staircase_matrix(np.eye(k, dtype=bool), positive_epsilon(epsilon))
    labels = distinct_labels(inputs, k, "inputs")
    return Channel(matrix, labels, labels)


def subset_selection(k: int, epsilon: float, size: int, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Build subset selection: report a subset of `size` answers [YB].

    A subset with the true answer is e^epsilon times as likely as another one. With e = exp(epsilon), d = size and c = d
    (k - d)/(k - 1), its eta is (e - 1) c/(d e + k - d). With d near k/(e + 1) it is optimal for estimating a
    distribution near the uniform one.

    Parameters
    ----------
    k : The number of answers, at least 2.
    epsilon : In nats.
    size : The number of answers in a subset, 1 <= size < k.
    inputs : Labels of the answers; None for 0 to k - 1.

    Returns
    -------
    Channel
        A (k, C(k, size)) channel whose outputs are tuples of input labels.

    Raises
    ------
    InvalidInput
        If a value is out of range, or the matrix would have more than 2**24 entries.

    Examples
    --------
    >>> subset_selection(3, 1.0, 2).outputs
    ((0, 1), (0, 2), (1, 2))
    """
    k = at_least_two(k)
    size = positive_integer(size, "size")
    epsilon = positive_epsilon(epsilon)
    if size >= k:
        raise invalid("size", f"an integer below k = {k}", size)
    labels = distinct_labels(inputs, k, "inputs")
    count = math.comb(k, size)
    check_size(k, count, "subset selection")
    subsets = np.array(list(combinations(range(k), size)))
    holds = np.zeros((k, count), dtype=bool)
    holds[subsets.T, np.arange(count)] = True
    return Channel(staircase_matrix(holds, epsilon), labels, tuple(combinations(labels, size)))


def binary(p0: Any, p1: Any, epsilon: float, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Build the binary mechanism [GI, eq. 23-24].

    It reports 0 with odds e^epsilon when P0(x) >= P1(x), else 1 with the same odds. Among all epsilon-LDP channels it
    preserves the largest total variation between the two distributions of the report, tanh(epsilon/2) TV(P0, P1). Its
    eta is tanh(epsilon/2).

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.
    inputs : Labels of the answers; None for 0 to k - 1.

    Returns
    -------
    Channel
        A (k, 2) channel with outputs 0 and 1.

    Raises
    ------
    InvalidInput
        If the arrays are not distributions of equal length, or epsilon is out of range.

    Examples
    --------
    >>> binary([0.7, 0.2, 0.1], [0.1, 0.2, 0.7], 1.0).matrix.round(4)
    array([[0.7311, 0.2689],
           [0.7311, 0.2689],
           [0.2689, 0.7311]])
    """
    epsilon = positive_epsilon(epsilon)
    p0, p1, labels = _hypotheses(p0, p1, inputs)
    return Channel(staircase_matrix(np.stack([p0 >= p1, p0 < p1], axis=1), epsilon), labels, (0, 1))


def _hypotheses(p0: Any, p1: Any, inputs: Iterable[Label] | None) -> tuple[Array, Array, tuple[Label, ...]]:
    """Both distributions, in the order of one set of labels, and these labels."""
    (p0, p1), inputs = aligned([("p0", p0), ("p1", p1)], inputs)
    p0 = distribution(p0, "p0")
    return p0, distribution(p1, "p1", size=len(p0)), distinct_labels(inputs, len(p0), "inputs")


def binary_with_erasure(
    p0: Any, p1: Any, epsilon: float, eta: float, *, inputs: Iterable[Label] | None = None
) -> Channel:
    """Build the binary mechanism with erasure that is eta-TV [GI, eq. 26-28].

    The report is erased, independently of the answer, with probability 1 - eta / tanh(epsilon/2), at least 0. For eta
    up to tanh(epsilon/2), the channel preserves the total variation eta TV(P0, P1). No epsilon-LDP and eta-TV channel
    preserves more [GI, Thm 5].

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.
    eta : Cap on the total variation distance between two rows, in [0, 1].
    inputs : Labels of the answers; None for 0 to k - 1.

    Returns
    -------
    Channel
        A (k, 3) channel with outputs 0, 1 and ``'erased'``.

    Raises
    ------
    InvalidInput
        If the arrays are not distributions of equal length, or epsilon or eta is out of range.

    Examples
    --------
    >>> binary_with_erasure([0.9, 0.1], [0.1, 0.9], 1.0, 0.2).matrix.round(4)
    array([[0.3164, 0.1164, 0.5672],
           [0.1164, 0.3164, 0.5672]])
    """
    lowered_epsilon = toward_privacy(positive_epsilon(epsilon))
    tanh = math.tanh(lowered_epsilon / 2)
    # The difference of the rows is set first: eta bounds it, and it may be far smaller than the entries.
    difference = min(toward_privacy(unit_interval(eta, "eta")), tanh)
    low = difference / math.expm1(lowered_epsilon)
    p0, p1, labels = _hypotheses(p0, p1, inputs)
    matrix = np.where(np.stack([p0 >= p1, p0 < p1], axis=1), low + difference, low)
    erasure_probability = 1.0 - (2 * low + difference) if difference < tanh else 0.0
    matrix = np.hstack([matrix, np.full((len(matrix), 1), erasure_probability)])
    return Channel(matrix, labels, (0, 1, ERASED))


OUTPUTS: tuple[Label, ...] = ("first", "not last", "middle to first", "middle to last", "not first", "last")


def two_step(epsilon: float, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Build a channel of six reports on three answers that is (epsilon, delta)-LDP.

    Two reports have probabilities that differ by the factor e^(2 epsilon). With e = exp(epsilon), N = 2 (e^2 + e + 1)
    and delta = (e^2 - e)/N, the columns of the (3, 6) channel are

        delta (1,0,0), (e+1)/N (e,1,1), (e,e^2,1)/N, (1,e^2,e)/N, (e+1)/N (1,1,e) and delta (0,0,1).

    It is (epsilon, delta)-LDP [GI, Def 1], and with no smaller delta.

    For a strictly convex f it improves on a public coin between full disclosure and the best epsilon-LDP channel. The
    condition is that this channel is strictly better with three blocks of answers than with fewer. See
    docs/explanation/open-problems/approximate-ldp.md.

    Parameters
    ----------
    epsilon : In nats, above 0.
    inputs : Labels of the three answers, sorted by the likelihood ratio P0(x)/P1(x) of the two hypotheses.

    Returns
    -------
    Channel
        The (3, 6) channel.

    Raises
    ------
    InvalidInput
        If epsilon is not above 0, or there are not three labels.

    Examples
    --------
    >>> (14 * two_step(math.log(2.0)).matrix).round(9)
    array([[2., 6., 2., 1., 3., 0.],
           [0., 3., 4., 4., 3., 0.],
           [0., 3., 1., 2., 6., 2.]])
    """
    q = math.exp(-positive_epsilon(epsilon))
    half = 2 * (1 + q + q * q)
    rest = -math.expm1(-epsilon) / half  # delta
    large, small = (1 + q) / half, (q + q * q) / half
    matrix = np.array(
        [
            [rest, large, q / half, q * q / half, small, 0.0],
            [0.0, small, 1 / half, 1 / half, small, 0.0],
            [0.0, small, q * q / half, q / half, large, rest],
        ]
    )
    return Channel(matrix, distinct_labels(inputs, 3, "inputs"), OUTPUTS)


def truncated_geometric(k: int, epsilon: float, *, inputs: Iterable[Label] | None = None) -> Channel:
    """Build the truncated geometric mechanism on ordered answers 0..k-1 [Geometric].

    It adds two-sided geometric noise; reports outside are moved to the nearer end. With q = exp(-epsilon/(k-1)), Q[x,
    y] is q^|x-y| / (1+q) if y is one of the two ends, and (1-q)/(1+q) q^|x-y| otherwise. Its eta is 1 - q^((k-1)/2) for
    odd k and 1 - 2 q^(k/2)/(1+q) for even k.

    Parameters
    ----------
    k : The number of answers, at least 2.
    epsilon : In nats, that of the (k, k) channel; between neighboring answers it is epsilon/(k-1).
    inputs : Labels of the answers; None for 0 to k - 1.

    Returns
    -------
    Channel
        A (k, k) channel.

    Raises
    ------
    InvalidInput
        If a value is out of range.

    Examples
    --------
    >>> truncated_geometric(3, 2.0).matrix.round(4)
    array([[0.7311, 0.17  , 0.0989],
           [0.2689, 0.4621, 0.2689],
           [0.0989, 0.17  , 0.7311]])
    """
    k = at_least_two(k)
    step = toward_privacy(positive_epsilon(epsilon)) / (k - 1)
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    weight = np.full(k, math.tanh(step / 2))
    weight[[0, -1]] = 1 / (1 + math.exp(-step))
    labels = distinct_labels(inputs, k, "inputs")
    return Channel(np.exp(-step * distance) * weight, labels, labels)


def sort_partition_randomize(
    p0: Any, p1: Any, epsilon: float, blocks: Sequence[Sequence[int]], *, inputs: Iterable[Label] | None = None
) -> Channel:
    """Build randomized response on blocks of the inputs sorted by likelihood ratio [SPR].

    It reports the answer's block with odds e^epsilon against each of the other m - 1 blocks. With e = exp(epsilon), its
    eta is (e - 1)/(e + m - 1). For every f-divergence, some choice of blocks is optimal under epsilon-LDP [SPR].

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions to distinguish.
    epsilon : In nats.
    blocks : M lists of input positions 0..k-1, every input in one. They are intervals of the inputs sorted by the
        likelihood ratio P0/P1. Inputs with equal ratios may be in neighboring blocks, and inputs with P0 = P1 = 0 in
        any block.
    inputs : Labels of the answers; None for 0 to k - 1.

    Returns
    -------
    Channel
        A (k, m) channel with output j for block j.

    Raises
    ------
    InvalidInput
        If the blocks are not such intervals, or another value is out of range.

    Examples
    --------
    >>> sort_partition_randomize([0.6, 0.3, 0.1], [0.1, 0.3, 0.6], 1.0, [[0], [1], [2]]).shape
    (3, 3)
    """
    p0, p1, labels = _hypotheses(p0, p1, inputs)
    block = _block_of(blocks, len(p0))
    _check_contiguous(block, p0, p1)
    is_preferred = block[:, None] == np.arange(block.max() + 1)
    matrix = staircase_matrix(is_preferred, positive_epsilon(epsilon))
    return Channel(matrix, labels, tuple(range(len(blocks))))


def _block_of(blocks: Any, k: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The block of every input, after checking that `blocks` is a partition of 0..k-1 into non-empty lists."""
    if isinstance(blocks, (str, bytes)) or not isinstance(blocks, (Sequence, np.ndarray)) or len(blocks) == 0:
        raise invalid("blocks", "a sequence of lists of input positions", blocks)
    block = np.full(k, -1, dtype=np.intp)
    for number, members in enumerate(blocks):
        positions = np.asarray(members)
        if positions.ndim != 1 or positions.size == 0 or positions.dtype.kind not in "iu":
            raise invalid("blocks", "non-empty lists of input positions", members, f"block {number}")
        for x in positions.tolist():
            if not 0 <= x < k or block[x] >= 0:
                raise invalid("blocks", f"each position 0 to {k - 1} once", x, f"block {number}")
            block[x] = number
    if block.min() < 0:
        raise invalid("blocks", "every input in a block", f"input {int(block.argmin())} in none")
    return block


def _check_contiguous(block: np.ndarray[Any, np.dtype[np.intp]], p0: Array, p1: Array) -> None:
    possible = np.flatnonzero((p0 > 0) | (p1 > 0))
    with np.errstate(divide="ignore", over="ignore"):
        ratio = p0[possible] / p1[possible]
    order = np.lexsort((ratio, block[possible]))
    block_numbers, ratio, possible = block[possible][order], ratio[order], possible[order]
    first = np.flatnonzero(np.diff(block_numbers, prepend=-1))
    last = np.append(first[1:], len(block_numbers)) - 1
    # By lowest, then highest ratio: a block of one ratio comes before a wider one that begins there.
    order = np.lexsort((ratio[last], ratio[first]))
    top, bottom = last[order[:-1]], first[order[1:]]
    overlap = np.flatnonzero(ratio[top] > ratio[bottom] * (1 + RATIO_RTOL))
    if overlap.size:
        a, b = int(top[overlap[0]]), int(bottom[overlap[0]])
        blocks = f"blocks {block_numbers[a]} and {block_numbers[b]}"
        got = f"{blocks} overlapping: ratio {ratio[a]:.6g} of input {possible[a]} lies above"
        raise invalid("blocks", "intervals of the sorted ratio P0/P1", f"{got} {ratio[b]:.6g} of input {possible[b]}")


@dataclass(frozen=True)
class PrivateSampler(Checked, k=at_least_two, epsilon=positive_epsilon):
    """The minimax sampler from distributions on k answers: raise small probabilities, shrink the others [PAL].

    The holder of a secret distribution P releases one draw from Q_P = max(P / r, 1/(e + k - 1)). Here e = exp(epsilon),
    and r makes Q_P sum to one. The probabilities of Q_P lie between 1/(e + k - 1) and e/(e + k - 1), so the draw is
    epsilon-LDP. For every f-divergence, no epsilon-LDP sampler has a smaller largest D_f(P || Q_P). k >= 2; epsilon in
    nats; raises `InvalidInput` for values out of range.

    >>> PrivateSampler(3, 1.0).row([1.0, 0.0, 0.0]).round(6)
    array([0.576117, 0.211942, 0.211942])
    """

    k: int
    epsilon: float

    def row(self, p: Any) -> Array:
        """Compute Q_P, shape (k,), for a distribution P of shape (k,)."""
        p = distribution(p, "p", size=self.k)
        floor = 1 / (math.exp(toward_privacy(self.epsilon)) + self.k - 1)
        descending = np.sort(p)[::-1]
        count_above = np.arange(1, self.k + 1)
        # If the n largest probabilities stay above the floor, r is their sum over the mass that the floors of the
        # others leave. The right n is the first one whose next probability falls below the floor.
        r = np.cumsum(descending) / (1 - (self.k - count_above) * floor)
        falls_below = np.append(descending[1:], 0.0) <= floor * r
        row = np.maximum(p / r[int(np.argmax(falls_below))], floor)
        return np.asarray(row / row.sum())

    def channel(self, distributions: Any, *, inputs: Iterable[Label] | None = None) -> Channel:
        """Build the (n, k) channel whose n inputs are possible secret distributions (n, k)."""
        rows = np.atleast_2d(np.asarray(distributions, dtype=np.float64))
        return Channel(np.stack([self.row(p) for p in rows]), inputs)

    def risk(self, f: FDivergence) -> float:
        """Compute the largest D_f(P || Q_P) over all P, the smallest of any sampler.

        It is e/(e+k-1) f((e+k-1)/e) + (k-1)/(e+k-1) f(0).

        >>> from ldpopt.divergences import KL
        >>> round(PrivateSampler(3, 1.0).risk(KL), 9)
        0.551444714
        """
        floor = 1 / (math.exp(self.epsilon) + self.k - 1)
        likely = math.exp(self.epsilon) * floor
        return float(f.excess(1.0, likely) + (self.k - 1) * f.excess(0.0, floor))
