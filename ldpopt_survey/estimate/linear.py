"""Frequencies of reports -> linear estimates of proportions.

Every unbiased linear estimate is a left inverse of the channel [Rao].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.numbers.tolerances import MAX_CONDITION
from ldpopt.values.distribution import Array, distribution, finite_array, positive_integer
from ldpopt.values.results import ByValue
from ldpopt_survey.estimate.results import simplex_projection

__all__ = [
    "GeneralizedLeastSquares", "LeastSquares", "LeftInverse", "NotIdentifiable", "asymptotic_covariance",
    "contrast_variances", "efficient_loadings", "estimable", "estimable_contrasts", "fisher_information",
]  # fmt: skip


class NotIdentifiable(InvalidInput):
    """The reports do not determine the requested quantity; `contrasts` are weighted sums that they do determine.

    >>> from ldpopt_survey import estimate
    >>> estimate([45, 55], [[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]])
    Traceback (most recent call last):
    ldpopt_survey.estimate.linear.NotIdentifiable: ...
    """

    contrasts: Array

    def __init__(self, message: str, contrasts: Array) -> None:
        super().__init__(message)
        self.contrasts = contrasts


class Estimator(Protocol):
    """A rule that `estimate` can use: it returns values, and the loadings (weights) of the outputs in them."""

    @property
    def name(self) -> str:
        """The name of the estimator in results and printed reports."""
        ...

    def fit(self, frequencies: Array, channel: Channel, n: float = math.inf) -> tuple[Array, Array]:
        """Fit the proportions (k,) to n reports, and return the left inverse of Q^T (k, m).

        The left inverse describes the error of the proportions.
        """
        ...


def fisher_information(channel: ChannelLike, p: ArrayLike) -> Array:
    """Compute J = sum_y q_y q_y^T / (q_y . p), the information of a report [Rao, chapter 5].

    Parameters
    ----------
    channel : The channel (k, m), with columns q_y.
    p : A distribution, shape (k,). Outputs that never occur under p are left out.

    Returns
    -------
    array
        (k, k).

    >>> fisher_information([[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5])
    array([[1.36, 0.64],
           [0.64, 1.36]])
    """
    channel = as_channel(channel)
    q, m = channel.matrix, channel.push(distribution(p, "p", size=channel.shape[0], labels=channel.inputs))
    is_possible = m > 0
    return np.asarray((q[:, is_possible] / m[is_possible]) @ q[:, is_possible].T)


def asymptotic_covariance(channel: ChannelLike, p: ArrayLike, n: int = 1) -> Array:
    """Compute (J^-1 - p p^T) / n, the covariance of the efficient estimate [Rao, chapter 5].

    Parameters
    ----------
    channel : The channel (k, m).
    p : A distribution, shape (k,).
    n : The number of reports.

    Returns
    -------
    array
        (k, k). For a square channel it is the exact covariance of the unbiased estimate, for every p.

    >>> warner = [[0.8, 0.2], [0.2, 0.8]]
    >>> round(float(asymptotic_covariance(warner, [0.3, 0.7], 100)[0, 0]), 10)  # (.3*.7 + .8*.2/.6**2)/100
    0.0065444444
    """
    channel = as_channel(channel)
    p = distribution(p, "p", size=channel.shape[0], labels=channel.inputs)
    return report_covariance(efficient_loadings(channel, p), channel.push(p)) / positive_integer(n, "n")


def centered(loadings: Array, frequencies: Array) -> Array:
    """Subtract the means under `frequencies` (m,) from the loadings (r, m).

    The result is the influence of one report on each estimate.
    """
    return np.asarray(loadings - (loadings @ frequencies)[:, None])


def report_covariance(loadings: Array, frequencies: Array) -> Array:
    """Compute l diag(f) l^T - t t^T, t = l f, of one report, (r, r).

    The means are subtracted first, so no digits cancel.
    """
    deviations = centered(loadings, frequencies)
    return np.asarray((deviations * frequencies) @ deviations.T)


def estimable_contrasts(channel: ChannelLike) -> Array:
    """Find a basis of the contrasts a . p that the reports determine [Rao, chapter 4].

    A contrast is a weighted sum of proportions. It is a linear function of the distribution of the reports exactly if
    Q v = a for some v.

    Parameters
    ----------
    channel : The channel Q, shape (k, m).

    Returns
    -------
    array
        (rank, k), one contrast per row. The basis comes from elimination, so many entries are zero.

    >>> estimable_contrasts([[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]])
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """
    q = as_channel(channel).matrix
    s, threshold = _singular(q)
    rows, row = np.array(np.linalg.svd(q, full_matrices=False)[0][:, s > threshold].T), 0
    for column in range(rows.shape[1]):
        pivot = row + int(np.argmax(np.abs(rows[row:, column])))
        if abs(rows[pivot, column]) < 1e-9:
            continue
        rows[[row, pivot]] = rows[[pivot, row]]
        rows[row] /= rows[row, column]
        other_rows = np.arange(len(rows)) != row
        rows[other_rows] -= rows[other_rows, column][:, None] * rows[row]
        row += 1
        if row == len(rows):
            break
    nearest = np.round(rows)
    return np.asarray(np.where(np.abs(rows - nearest) < 1e-9, nearest, rows) + 0.0)


def require_identifiable(channel: Channel) -> Array | None:
    """Raise `NotIdentifiable` unless Q has rank k.

    The result is the inverse of a square Q that is clearly regular, else None.
    """
    q = channel.matrix
    if q.shape[0] == q.shape[1] and channel.inverse is not None:
        return channel.inverse
    if q.shape[0] < q.shape[1]:
        # The condition of a triangular factor is cheap, and decides for all channels that are not nearly singular.
        triangle = np.linalg.qr(q.T, mode="r")
        with suppress(np.linalg.LinAlgError):
            inverse = np.linalg.inv(triangle)
            if np.abs(triangle).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max() < MAX_CONDITION:
                return None
    s, threshold = _singular(q)
    rank = int(np.sum(s > threshold))
    if rank == len(q):
        return None
    contrasts, description = _estimable_contrasts_text(channel)
    raise NotIdentifiable(
        f"channel: expected rank {len(q)}, so that every proportion is identifiable, got rank {rank}; "
        f"what can be estimated: {description} (see estimate_contrasts)",
        contrasts,
    )


def _estimable_contrasts_text(channel: Channel) -> tuple[Array, str]:
    """The contrasts that the reports determine, and the first of them in words."""
    contrasts = estimable_contrasts(channel)
    description = "; ".join(contrast_name(row, channel.inputs) for row in contrasts[:6])
    return contrasts, description + (f"; and {len(contrasts) - 6} more" if len(contrasts) > 6 else "")


def contrast_name(row: Array, labels: tuple[Any, ...]) -> str:
    """Write a contrast in words, such as 'p(a) - 0.5 p(c)'."""
    text = ""
    for weight, label in zip(row, labels, strict=True):
        if weight:
            sign = ("-" if weight < 0 else "") if not text else (" - " if weight < 0 else " + ")
            size = "" if abs(weight) == 1 else f"{abs(weight):.6g} "
            text += f"{sign}{size}p({label})"
    return text or "0"


def contrast_loadings(channel: Channel, contrasts: Array) -> Array:
    """Find loadings b, shape (r, m), of smallest norm with Q b = a for every contrast a.

    They are unbiased for every p. `NotIdentifiable` if there are none.
    """
    s, threshold = _singular(channel.matrix)
    inverse = np.linalg.pinv(channel.matrix, rcond=threshold / s[0])
    loadings, identified = _identified(channel, np.asarray((inverse @ contrasts.T).T), contrasts, 1e-9)
    if not identified.all():
        known_contrasts, description = _estimable_contrasts_text(channel)
        name = contrast_name(contrasts[int(np.argmin(identified))], channel.inputs)
        raise NotIdentifiable(
            f"contrast: expected a combination of {description}, got {name}, which no function of the reports "
            "estimates without bias", known_contrasts,
        )  # fmt: skip
    return loadings


def efficient_contrasts(channel: Channel, p: Array, contrasts: Array) -> tuple[Array, Array]:
    """Find loadings (r, m) that estimate contrasts (r, k) of all distributions without bias.

    They have the least variance at p. The second result is the mask (r,) of the contrasts that the channel identifies;
    the loadings of others have no meaning.
    """
    q = channel.matrix
    m = np.maximum(p @ q, 1e-9 * q.mean(axis=0))
    root = np.sqrt(np.where(m > 0, m, 1.0))
    return _identified(channel, contrasts @ np.linalg.pinv((q / root).T, rcond=1e-11) / root, contrasts, 1e-8)


def _identified(channel: Channel, loadings: Array, contrasts: Array, tolerance: float) -> tuple[Array, Array]:
    """The loadings (r, m), and the mask (r,) of those that are unbiased for their contrasts."""
    error = np.abs(loadings @ channel.matrix.T - contrasts).max(axis=1)
    return loadings, error <= tolerance * (1 + np.abs(contrasts).max(axis=1))


def contrast_variances(channel: Channel, p: Array, contrasts: Array) -> Array:
    """Compute the variance (r,), per report at p, of the efficient estimate of each contrast.

    It is inf for a contrast that is not identified.
    """
    loadings, identified = efficient_contrasts(channel, p, contrasts)
    report_distribution = channel.push(p)
    return np.where(identified, loadings**2 @ report_distribution - (loadings @ report_distribution) ** 2, np.inf)


_NORMAL_95 = 1.959963984540054
NEEDED_RTOL = 1e-12
"""By how much the numbers of reports that are needed are rounded up: the rounding errors of their moments."""

MAX_LOADINGS = 10**8
"""The largest number of loadings that are computed to decide whether a table is estimable."""

MAX_HALF_WIDTH = 0.5
"""The half-width of a 95 % interval beyond which a proportion counts as not estimable: it would exclude very little."""

MAX_LYAPUNOV_RATIO = 0.2
"""The largest Lyapunov ratio E|influence|^3 / (variance^1.5 sqrt(n)) of a contrast that counts as estimable.

For a contrast that rests on a report of probability q the ratio is about 1/sqrt(n q), so that it needs 25 of them. With
fewer, that report may not occur, and the printed error would be that of other reports. At 0.31 the coverage of 95 %
intervals was 91 % (experiments/surveys/coverage/tables.py)."""


def estimable(
    channel: Channel | Sequence[Channel], p: Array | Sequence[Array], contrasts: Array | Sequence[Array], n: float
) -> npt.NDArray[np.bool_]:
    """Return True for each contrast (r, k) of which n reports give a useful interval: see `are_estimable`.

    The answers have the distribution p. For several channels with a report each, whose answers are taken as
    independent, the contrasts are all products.

    >>> traces = Channel(np.array([[0.6, 0.4 - 1e-9, 1e-9], [0.4, 0.6, 0.0], [0.4 - 1e-9, 0.6, 1e-9]]))
    >>> estimable(traces, np.full(3, 1 / 3), np.eye(3)[1:], 1e4)
    array([False, False])
    """
    return are_estimable(*contrast_moments(channel, p, contrasts), n)


def contrast_moments(
    channel: Channel | Sequence[Channel], p: Array | Sequence[Array], contrasts: Array | Sequence[Array]
) -> tuple[npt.NDArray[np.bool_], Array, Array]:
    """Compute which contrasts the reports identify, and two moments of their estimates.

    The three arrays (r,) are: identified; the variance of the estimate from one report; its third absolute central
    moment. Arguments as for `estimable`.
    """
    questions = [(channel, p, contrasts)] if isinstance(channel, Channel) else zip(channel, p, contrasts, strict=True)
    is_identified, report_distribution, loadings = np.ones(1, dtype=bool), np.ones(1), np.ones((1, 1))
    for question_channel, pilot, rows in questions:
        question_loadings, identified = efficient_contrasts(question_channel, np.asarray(pilot), np.asarray(rows))
        is_identified = np.outer(is_identified, identified).ravel()
        if len(question_loadings) * len(loadings) * question_loadings.shape[1] * loadings.shape[1] > MAX_LOADINGS:
            raise invalid("table", "fewer answers and reports of the questions together", Phrase("too many"))
        report_distribution = np.outer(report_distribution, question_channel.push(np.asarray(pilot))).ravel()
        loadings = np.asarray(np.kron(loadings, question_loadings))
    deviations = np.abs(centered(loadings, report_distribution))
    variances, third_moments = deviations**2 @ report_distribution, deviations**3 @ report_distribution
    return np.asarray(is_identified > 0, dtype=np.bool_), np.asarray(variances), np.asarray(third_moments)


def are_estimable(
    identified: npt.NDArray[np.bool_], variances: Array, third_moments: Array, n: float
) -> npt.NDArray[np.bool_]:
    """Return True for each estimate that n reports determine, by its variance and not by a rank.

    The reports must identify it, and its 95 % interval must have a half-width of at most `MAX_HALF_WIDTH`. The normal
    approximation of the interval must be accurate, so it must not rest on very rare reports (`MAX_LYAPUNOV_RATIO`)
    [Lyapunov's ratio].
    """
    return np.asarray(reports_to_estimate(identified, variances, third_moments) <= n, dtype=np.bool_)


def reports_to_estimate(identified: npt.NDArray[np.bool_], variances: Array, third_moments: Array) -> Array:
    """Return (r,) the fewest reports of which each estimate is estimable (`are_estimable`), unrounded; inf if none are.

    >>> q = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> moments = contrast_moments(Channel(q), np.array([0.99, 0.01]), np.eye(2))
    >>> needed = reports_to_estimate(*moments).max()
    >>> [bool(are_estimable(*moments, n).all()) for n in (math.floor(needed), math.ceil(needed))]
    [False, True]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(third_moments > 0, third_moments / variances / np.sqrt(variances), 0.0)
        needed = np.maximum((ratios / MAX_LYAPUNOV_RATIO) ** 2, (_NORMAL_95 / MAX_HALF_WIDTH) ** 2 * variances)
    return np.where(identified & ~np.isnan(needed), needed * (1 + NEEDED_RTOL), np.inf)


def efficient_loadings(channel: Channel, p: Array) -> Array:
    """Compute the generalized-least-squares left inverse L = J^-1 Q D^-1, shape (k, m).

    D = diag(p Q). L Q^T = I, so L f is unbiased for every p, with the least variance at p. Outputs of probability 0
    count as having a small one.
    """
    q = channel.matrix
    if len(q) == q.shape[1]:
        return np.asarray(np.linalg.inv(q).T)
    m = np.maximum(p @ q, 1e-9 * q.mean(axis=0))
    is_possible = m > 0
    loadings = np.zeros(q.shape)
    root = np.sqrt(m[is_possible])
    # J^-1 Q D^-1 from a QR factorisation, which does not square the condition number.
    basis, triangle = np.linalg.qr((q[:, is_possible] / root).T)
    loadings[:, is_possible] = np.linalg.solve(triangle, basis.T) / root
    return loadings


def _singular(q: Array) -> tuple[Array, float]:
    """The singular values, and the threshold below which they count as zero."""
    s = np.asarray(np.linalg.svd(q, compute_uv=False), dtype=np.float64)
    return s, float(s[0] * max(q.shape) * np.finfo(np.float64).eps * 8)


def pilot_of(loadings: Array, frequencies: Array, n: float) -> Array:
    """Estimate a pilot by loadings (k, m) of n reports: projected, and mixed with the uniform.

    The mixture is that of k more respondents in each of k categories, as precise as these reports, and at least a
    hundredth. Without it the loadings would follow the scatter of few reports, with bias and understated errors.
    """
    first, k = loadings @ frequencies, len(loadings)
    total_variance = float((loadings**2 @ frequencies - first**2).sum())
    equivalent_n = n * min(1.0, (1 - 1 / k) / total_variance) if total_variance > 0 else n
    uniform_weight = max(0.01, k * k / (equivalent_n + k * k)) if math.isfinite(n) else 0.01
    return np.asarray((1 - uniform_weight) * simplex_projection(first) + uniform_weight / k)


@dataclass(frozen=True)
class GeneralizedLeastSquares:
    """The unbiased linear estimate that has the least variance at a pilot, a guess of the true distribution.

    pilot : shape (k,). Without one, a first estimate uses the uniform distribution as its pilot. A second estimate uses
        the first one, projected and mixed with the uniform distribution as if each of the k categories had k more
        respondents. The result is asymptotically efficient and unbiased up to O(1/n). For a square channel the pilot
        does not matter.

    Estimates may be negative. Projection is a separate step (`simplex_projection`, `norm_sub`).

    >>> from ldpopt_survey import estimate
    >>> estimate({0: 10, 1: 90}, [[0.8, 0.2], [0.2, 0.8]], GeneralizedLeastSquares()).values.round(4)
    array([-0.1667,  1.1667])
    """

    pilot: tuple[float, ...] | None = None
    name = "generalized least squares"

    def __post_init__(self) -> None:
        if self.pilot is not None:
            object.__setattr__(self, "pilot", tuple(distribution(self.pilot, "pilot").tolist()))

    def fit(self, frequencies: Array, channel: Channel, n: float = math.inf) -> tuple[Array, Array]:
        """Fit the proportions (k,), and return the left inverse used (k, m)."""
        inverse = require_identifiable(channel)
        if inverse is not None:
            if self.pilot is not None:
                distribution(self.pilot, "pilot", size=len(inverse))
            return inverse.T @ frequencies, inverse.T
        k = channel.shape[0]
        p = np.full(k, 1 / k) if self.pilot is None else distribution(self.pilot, "pilot", size=k)
        loadings = efficient_loadings(channel, p)
        if self.pilot is None and k != channel.shape[1]:
            loadings = efficient_loadings(channel, pilot_of(loadings, frequencies, n))
        return loadings @ frequencies, loadings


@dataclass(frozen=True)
class LeastSquares:
    """The unbiased linear estimate of ordinary least squares: the pseudo-inverse of Q^T.

    >>> from ldpopt_survey import estimate
    >>> estimate({0: 10, 1: 90}, [[0.8, 0.2], [0.2, 0.8]], LeastSquares()).values.round(4)
    array([-0.1667,  1.1667])
    """

    name = "least squares"

    def fit(self, frequencies: Array, channel: Channel, n: float = math.inf) -> tuple[Array, Array]:
        """Fit the proportions (k,), and return the pseudo-inverse (k, m)."""
        require_identifiable(channel)
        loadings = np.asarray(np.linalg.pinv(channel.matrix.T))
        return loadings @ frequencies, loadings


@dataclass(frozen=True, eq=False)
class LeftInverse(ByValue):
    """The unbiased linear estimate from a given left inverse L, shape (k, m), with L Q^T = I within 1e-9.

    >>> from ldpopt_survey import estimate
    >>> q = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> estimate({0: 40, 1: 60}, q, LeftInverse(np.linalg.inv(q.T))).values.round(4)
    array([0.3333, 0.6667])
    """

    matrix: Any
    name = "left inverse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", finite_array(self.matrix, "left inverse", 2))

    def fit(self, frequencies: Array, channel: Channel, n: float = math.inf) -> tuple[Array, Array]:
        """Fit the proportions (k,), and return the given matrix (k, m)."""
        if self.matrix.shape != channel.shape:
            raise invalid("left inverse", f"shape {channel.shape}", f"shape {self.matrix.shape}")
        error = float(np.abs(self.matrix @ channel.matrix.T - np.eye(channel.shape[0])).max())
        if error > 1e-9 * (1 + float(np.abs(self.matrix).max())):
            raise invalid("left inverse", "L Q^T = I within 1e-09", f"off by {error:.3g}")
        return self.matrix @ frequencies, self.matrix
