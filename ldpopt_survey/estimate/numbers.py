"""Estimated proportions -> means, quantiles, totals, and proportions among people who answered."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array, finite_array, number
from ldpopt.values.results import Result
from ldpopt_survey.estimate.conditional_mean import ConditionalMean
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.intervals import Binomial, IntervalMethod, check_level
from ldpopt_survey.estimate.results import Intervals

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BIN = re.compile(rf"\s*[\[(]?\s*({_NUMBER})\s*(?:,|;|–|—|-|to under|to|bis|\.\.)\s*({_NUMBER})\s*[\])]?\s*")
_ONE = re.compile(rf"\s*({_NUMBER})\s*")
_BELOW = re.compile(rf"\s*(?:under|below|less than|<)\s*({_NUMBER})\s*")
_ABOVE = re.compile(rf"\s*(?:(?:≥|>=)\s*({_NUMBER})|({_NUMBER})\s*(?:\+|(?:and|or)\s+(?:more|older|over|above)))\s*")

POINTS_PER_BIN = 64
"""Points within a bin at which the ends of a quantile's interval are searched."""


def bin_edges(labels: Sequence[Label]) -> Array:
    """Parse the lower and upper ends (k, 2) of labels such as 7, "10-19", "[10, 20)".

    A number is both ends. The first bin may be open below ("under 20"), and the last one above ("80 and more", "80+"):
    that end is infinite. Bins of integers with a gap of 1 (10-19, 20-29) are extended to meet half-way, so that nothing
    lies between them. `InvalidInput` for other labels, for bins that overlap, and for bins that are not in increasing
    order.
    """
    edges = np.array([_ends(label) for label in labels])
    is_bin = edges[:, 1] > edges[:, 0]
    if is_bin.any() and not is_bin.all():
        raise InvalidInput("categories: numbers cannot be combined with bins; use numbers only, or bins only")
    first_closed = int(edges[0, 0] == -math.inf)  # where the bins begin that are closed below
    gaps = edges[first_closed + 1 :, 0] - edges[first_closed:-1, 1]
    if is_bin.all() and len(gaps) and (gaps == 1).all():
        edges[first_closed:] += [-0.5, 0.5]
        edges[:first_closed, 1] -= 0.5
    if (edges[:, 1] < edges[:, 0]).any() or (edges[1:, 0] < edges[:-1, 1]).any() or (np.diff(edges[:, 0]) <= 0).any():
        raise InvalidInput("categories: the bins must be in increasing order and must not overlap")
    return edges


def _ends(label: Label) -> tuple[float, float]:
    """The lower and the upper end of one label."""
    text = "" if isinstance(label, (bool, tuple)) else str(label)
    if open_below := _BELOW.fullmatch(text):
        return -math.inf, float(open_below.group(1))
    if closed := _ONE.fullmatch(text) or _BIN.fullmatch(text):
        return float(closed.group(1)), float(closed.group(closed.lastindex or 1))
    if open_above := _ABOVE.fullmatch(text):
        return float(open_above.group(1) or open_above.group(2)), math.inf
    raise invalid("categories", "numbers, or bins such as 10-19, [10, 20), under 20 or 80 and more", label)


def scores_of(labels: Sequence[Label]) -> Array:
    """Compute the score of each category in a mean, shape (k,): its number or bin midpoint.

    `InvalidInput` where a bin is open at one end, and for labels that `bin_edges` cannot parse.
    """
    edges = bin_edges(labels)
    if (unbounded := np.flatnonzero(~np.isfinite(edges).all(axis=1))).size:
        raise invalid(
            "scores", "a number for every category, as a bin without an end has no middle", labels[unbounded[0]]
        )
    return np.asarray(edges.mean(axis=1))


def mean(estimate: Estimate, scores: ArrayLike | None = None, label: str = "mean") -> Estimate:
    """Estimate the mean of the answers from their estimated proportions [Rao, chapter 4].

    scores : (k,) the number for each category; by default its own number, or the middle of its bin.

    Raises `InvalidInput` for another number of scores.

    >>> from ldpopt_survey import estimate
    >>> mean(estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]]))
    mean  0.666667 (0.081650), 95 % [0.499553, 0.823963]
    """
    values = scores_of(estimate.labels) if scores is None else finite_array(scores, "scores", 1)
    if len(values) != len(estimate.labels):
        raise invalid("scores", f"{len(estimate.labels)} numbers, one a category", len(values))
    return estimate.contrast(values, (label,))


def population_total(estimate: Estimate, size: float) -> Estimate:
    """Estimate the number of people with each answer in a population of `size` [SSW].

    For an estimate by `mean` the result is the total. For a mean among those who are asked it is their total, in a
    population that counts all people. The intervals take the size as known. Raises `InvalidInput`
    unless it is positive.

    >>> from ldpopt_survey import estimate
    >>> population_total(estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]]), 9000).values.round()
    array([3000., 6000.])
    """
    size = number(size, "population size", "a positive number")
    if not size > 0:
        raise invalid("population size", "a positive number", size)
    if isinstance(estimate, ConditionalMean):
        return estimate.total(size)
    return estimate.contrast(size * np.eye(len(estimate.values)), estimate.labels)


@dataclass(frozen=True, eq=False)
class Quantile(Result):
    """The number below which a proportion `share` of the answers lies, with an interval.

    >>> from ldpopt_survey import estimate
    >>> quantile(estimate({0: 400, 1: 600}, [[0.8, 0.2], [0.2, 0.8]]), 0.5)
    0.5 quantile  1, 95 % [1, 1]
    """

    share: float
    value: float
    lower: float
    upper: float
    level: float

    def intervals(self) -> Intervals:
        """Return the interval as `Intervals`, as for estimates."""
        ends = np.array([self.lower]), np.array([self.upper])
        return Intervals((f"{self.share:g} quantile",), *ends, self.level, "Woodruff")

    def __repr__(self) -> str:
        limits = f"[{self.lower:g}, {self.upper:g}]"
        return f"{self.share:g} quantile  {self.value:g}, {100 * self.level:g} % {limits}"


def quantile(
    estimate: Estimate, share: float, edges: ArrayLike | None = None, method: IntervalMethod | None = None
) -> Quantile:
    """Estimate a quantile of the answers, with its interval by Woodruff's method [Woodruff].

    share : the proportion of answers below the quantile, in (0, 1).
    edges : (k, 2) lower and upper ends of the categories' bins, equal for single numbers; from the labels by default.

    Answers are taken as uniform within a bin; a quantile in a bin without an end is infinite. Let F(t) be the
    proportion of answers up to t. The interval of the quantile holds every t for which the interval of F(t) contains
    `share`, so both cover the truth equally often. Raises `InvalidInput` for a share outside (0, 1), and for bins that
    do not fit.

    >>> from ldpopt_survey import estimate
    >>> quantile(estimate([300, 300, 400], np.eye(3)), 0.5, [[0, 10], [10, 20], [20, 40]])
    0.5 quantile  16.6667, 95 % [15.7931, 17.5897]
    """
    share = check_level(share, "share")
    method = Binomial() if method is None else method
    ends = bin_edges(estimate.labels) if edges is None else np.asarray(edges, dtype=float)
    k = len(estimate.labels)
    if ends.shape != (k, 2) or not (ends[:, 1] >= ends[:, 0]).all() or not (ends[1:, 0] >= ends[:-1, 1]).all():
        raise invalid("edges", f"lower and upper ends of {k} bins in order, shape ({k}, 2)", f"shape {ends.shape}")
    points = ends[:, 0]
    are_numbers = bool((points == ends[:, 1]).all())
    rows = np.tril(np.ones((k, k)))[:-1]  # F is 1 at the last number
    if not are_numbers:
        parts = np.linspace(0.0, 1.0, POINTS_PER_BIN + 1)
        rows = (np.tril(np.ones((k, k)), -1)[:, None] + parts[:, None] * np.eye(k)[:, None]).reshape(-1, k)
        low, high = ends[:, :1], ends[:, 1:]
        with np.errstate(invalid="ignore"):  # all of a bin without an end lies at that end, but for the other one
            points = np.where(np.isfinite(high - low), low + parts * (high - low), low + high)
        points[:, 0], points[:, -1] = ends.T
        points = points.ravel()
    if not len(rows):
        return Quantile(share, only := float(points[0]), only, only, method.level)
    curve = estimate.contrast(rows, tuple(range(len(rows))))
    limits = curve.intervals(method)
    if are_numbers:
        value, lower = (float(points[_first(f >= share)]) for f in (curve.values + 1e-12, limits.upper))
        upper = float(points[len(rows) - _first(limits.lower[::-1] < share)])
    else:
        value, lower = _crossing(points, curve.values, share), _crossing(points, limits.upper, share)
        upper = -_crossing(-points[::-1], -limits.lower[::-1], -share)  # the last crossing, seen from the other end
    return Quantile(share, value, min(lower, value), max(upper, value), method.level)


def _first(reached: npt.NDArray[np.bool_]) -> int:
    """The first index of a true value; the number of values if there is none."""
    return int(np.argmax(np.append(reached, True)))


def _crossing(points: Array, curve: Array, share: float) -> float:
    """The number where a curve first reaches a proportion, by interpolation, or an end of the range otherwise."""
    first = _first(curve >= share)
    if first in (0, len(points)) or curve[first] == curve[first - 1]:
        return float(points[min(first, len(points) - 1)])
    if not np.isfinite(points[first - 1 : first + 1]).all():
        return float(points[first - 1] if points[first - 1] == -math.inf and curve[first] > share else points[first])
    part = (share - curve[first - 1]) / (curve[first] - curve[first - 1])
    return float(points[first - 1] + part * (points[first] - points[first - 1]))


def among_answered(estimate: Estimate, *missing: Label) -> Estimate:
    """Estimate the proportions p_x / (1 - p_missing) of the other categories.

    missing : the labels of the categories for "no answer" or "not applicable".

    The ratio is linearized at the estimate [SSW, section 5.6]. Raises `InvalidInput` if a label is not among the
    categories, if fewer than two others remain, or if the estimated proportion of people who answered is not positive.

    >>> from ldpopt_survey import estimate
    >>> channel = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> made = among_answered(estimate([31, 38, 31], channel), 2)
    >>> made.labels, made.values.round(4)
    ((0, 1), array([0.4286, 0.5714]))
    """
    labels = tuple(label for label in estimate.labels if label not in missing)
    if not set(missing) <= set(estimate.labels) or len(labels) < 2:
        expected = f"some of the categories {estimate.labels[:8]}, all but two at the most"
        raise invalid("missing", expected, Phrase(", ".join(map(str, missing))))
    selectors = np.eye(len(estimate.labels))[[estimate.labels.index(label) for label in labels]]
    return estimate.ratio(selectors, selectors.sum(axis=0), labels, "among those who answered")
