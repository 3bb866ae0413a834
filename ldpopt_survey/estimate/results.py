"""Estimated quantities as results: intervals in tables, text and plots, and distributions made from estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ldpopt.channel import Label
from ldpopt.errors import invalid
from ldpopt.values.distribution import Array, finite_array
from ldpopt.values.results import Pictured, Result


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(Pictured):
    """Confidence limits `lower` and `upper`, shape (r,), for the quantities named by `labels`.

    >>> from ldpopt_survey import estimate
    >>> made = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    >>> made.intervals().contains([0.3, 0.7])
    array([ True,  True])
    """

    labels: tuple[Label, ...]
    lower: Array
    upper: Array
    level: float
    method: str

    @property
    def width(self) -> Array:
        """upper - lower."""
        return self.upper - self.lower

    @property
    def interval(self) -> str:
        """The name of one of the intervals."""
        return self.method if self.method.endswith("sequence") else f"{self.method} interval"

    def as_text(self, digits: int = 6) -> list[str]:
        """Format every interval as text, such as "[0.100000, 0.200000]"."""
        return [f"[{low:.{digits}f}, {high:.{digits}f}]" for low, high in zip(self.lower, self.upper, strict=True)]

    def contains(self, values: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return True for each of `values` that lies inside its interval."""
        candidates = np.asarray(values, dtype=np.float64)
        return np.asarray((self.lower <= candidates) & (candidates <= self.upper))

    def clip(self, low: float = 0.0, high: float = 1.0) -> Intervals:
        """Clip the intervals to [low, high]; this loses no coverage for quantities within.

        An interval completely outside becomes the nearer end alone.
        """
        ends = np.clip(self.lower, low, high), np.clip(self.upper, low, high)
        return Intervals(self.labels, *ends, self.level, f"{self.method}, clipped")

    _picture, _heads = "coefficients", 1

    def _plot_arguments(self) -> tuple[Any, ...]:
        return self.labels, (self.lower + self.upper) / 2, self.lower, self.upper

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the intervals on matplotlib axes, new ones without `ax`, and return them."""
        return super().plot(ax, **{"axis_label": f"{100 * self.level:g} % {self.method} interval"} | options)

    def _columns(self) -> dict[str, list[Any]]:
        return {"label": list(self.labels), "lower": self.lower.tolist(), "upper": self.upper.tolist()}

    def _title(self) -> str:
        return f"{100 * self.level:g} % {self.method} intervals"

    def __repr__(self) -> str:
        rows = zip(self.labels, self.lower, self.upper, strict=True)
        body = "".join(f"\n  {label!s:<16} [{low:9.6f}, {high:9.6f}]" for label, low, high in rows)
        return f"{self._title()}{body}"


class Estimated(Pictured):
    """A base of results with several estimated quantities: errors, a plot, and a table with intervals."""

    _picture, _heads = "shares", 1
    _label = "category"
    """The heading of the labels."""

    def _estimates(self) -> dict[str, tuple[str, Any]]:
        """The columns of the table by heading, each with the format of its values in text."""
        raise NotImplementedError

    def _columns(self: Any) -> dict[str, list[Any]]:
        values = {head: column for head, (_, column) in self._estimates().items()}
        return dict(self._table(values, self.intervals()))

    @property
    def standard_errors(self: Any) -> Array:
        """Square roots of the diagonal of `covariance`."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def _plot_arguments(self: Any) -> tuple[Any, ...]:
        limits = self.intervals()
        return self.labels, self.values, limits.lower, limits.upper

    def _table(self: Any, columns: Mapping[str, Any], limits: Intervals) -> dict[str, list[Any]]:
        """The columns of a table: the labels, `columns` by heading, and the limits."""
        all_columns = {**columns, "lower": limits.lower, "upper": limits.upper}
        return {self._label: list(self.labels)} | {
            head: np.ravel(column).tolist() for head, column in all_columns.items()
        }


def text_table(
    labels: Sequence[Label], columns: Mapping[str, tuple[str, Any]], limits: Intervals, head: str, digits: int = 6
) -> list[str]:
    """Format the lines of a table of estimates, with the limits under `head`.

    columns : by heading the format and the values of each column.
    """
    names = [str(label) for label in labels]
    label_width = max(8, *map(len, names))
    cells = [[value_format.format(value) for value in values] for value_format, values in columns.values()]
    heads = (f"{name:>{len(column[0])}}" for name, column in zip(columns, cells, strict=True))
    rows = zip(names, *cells, limits.as_text(digits), strict=True)
    return [
        "  ".join([" " * label_width, *heads, head]),
        *("  ".join([f"{row[0]:{label_width}}", *row[1:]]) for row in rows),
    ]


def quotient(numerator: Array, denominator: Array) -> Array:
    """Compute `numerator` / `denominator`; zero where `denominator` is not positive."""
    return np.divide(
        numerator,
        denominator,
        out=np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape)),
        where=denominator > 0,
    )


LEAST_UNIT_FRACTION = 1e-6
"""The least part of the sampling variance that counts as shown by the primary units, so that no size is infinite."""


def p_values_of(statistics: Array, degrees: float, unit_fractions: Array | None = None) -> Array:
    """Compute two-sided p-values of standardized statistics.

    They are normal, or Student's with `degrees` of freedom; 1 with none.

    unit_fractions : the variance that the primary units show, as a fraction of the one that standardized each
        statistic (`SamplingVariance.unit_fractions`); 1 by default. Where it is below 1, the latter is the channel's
        noise, which is known. The p-value is then the larger one of Student's with the variance of the units, valid by
        itself, and the normal one with the noise.
    """
    from scipy.special import ndtr, stdtr

    size = np.abs(statistics)
    if degrees <= 0:
        return np.ones_like(size)
    fractions = np.ones_like(size) if unit_fractions is None else unit_fractions.reshape(size.shape)
    unit_size = size / np.sqrt(np.maximum(fractions, LEAST_UNIT_FRACTION))
    by_units = 2 * (ndtr(-unit_size) if math.isinf(degrees) else stdtr(degrees, -unit_size))
    return np.asarray(np.where(fractions < 1, np.maximum(by_units, 2 * ndtr(-size)), by_units))


def simplex_projection(p: ArrayLike) -> Array:
    """Project `p` on the nearest distribution in Euclidean distance [DSSC].

    Parameters
    ----------
    p : (k,), or (..., k) row by row.

    Returns
    -------
    array
        max(p - tau, 0), with the tau that makes the sum 1, in the shape of `p`.

    >>> simplex_projection([0.7, 0.5, -0.2])
    array([0.6, 0.4, 0. ])
    """
    rows = _rows(p)
    descending = -np.sort(-rows, axis=-1)
    k = rows.shape[-1]
    excess = (np.cumsum(descending, axis=-1) - 1) / np.arange(1, k + 1)
    last_index = np.sum(descending > excess, axis=-1, keepdims=True) - 1  # the first entry always qualifies
    return _normalized(np.maximum(rows - np.take_along_axis(excess, last_index, axis=-1), 0.0))


def norm_sub(p: ArrayLike) -> Array:
    """Set negative entries to 0 and shift the positive ones equally (norm-sub) [Consistency].

    This is repeated until the entries are a distribution. If a row sums to 1 or more, the result is the simplex
    projection. For a smaller sum the simplex projection would lift all entries.

    Parameters
    ----------
    p : (k,), or (..., k) row by row.

    Returns
    -------
    array
        The distributions, with the shape of `p`.

    Raises
    ------
    InvalidInput
        If a row has no positive entry.

    >>> norm_sub([0.7, 0.5, -0.2]), norm_sub([0.4, 0.5, -0.2])
    (array([0.6, 0.4, 0. ]), array([0.45, 0.55, 0.  ]))
    """
    rows = _rows(p)
    if np.any(rows.max(axis=-1) <= 0):
        raise invalid("estimate", "a positive entry", float(rows.max()))
    is_positive = rows > 0
    while True:
        count = is_positive.sum(axis=-1, keepdims=True)
        shift = (1 - np.where(is_positive, rows, 0.0).sum(axis=-1, keepdims=True)) / count
        remains_positive = is_positive & (rows + shift > 0)
        if np.array_equal(remains_positive, is_positive):
            return _normalized(np.where(is_positive, rows + shift, 0.0))
        is_positive = remains_positive


@dataclass(frozen=True, eq=False)
class Projection(Result):
    """A distribution made from an unbiased estimate by a named step. It is not unbiased, and has no intervals.

    >>> from ldpopt_survey import estimate, simplex_projection
    >>> estimate({0: 10, 1: 90}, [[0.8, 0.2], [0.2, 0.8]]).project(simplex_projection).values
    array([0., 1.])
    """

    values: Array
    labels: tuple[Label, ...]
    step: str
    estimator: str


def _rows(p: ArrayLike) -> Array:
    array = finite_array(p, "estimate", np.ndim(p) or 1)
    if array.shape[-1] == 0:
        raise invalid("estimate", "at least one entry", "none")
    return array


def _normalized(rows: Array) -> Array:
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))
