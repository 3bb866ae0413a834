"""Estimated quantities with their intervals, as the results of an analysis: tables, text and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from ldpopt.channel import Label
from ldpopt.distribution import Array
from ldpopt.results import Pictured


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(Pictured):
    """Confidence limits `lower` and `upper`, shape (r,), for the quantities named by `labels`.

    >>> from ldpopt.survey import estimate
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

    def as_text(self, digits: int = 6) -> list[str]:
        """Every interval as text, such as "[0.100000, 0.200000]"."""
        return [f"[{low:.{digits}f}, {high:.{digits}f}]" for low, high in zip(self.lower, self.upper, strict=True)]

    def contains(self, values: ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each of `values` lies inside its interval."""
        given = np.asarray(values, dtype=np.float64)
        return np.asarray((self.lower <= given) & (given <= self.upper))

    def clip(self, low: float = 0.0, high: float = 1.0) -> Intervals:
        """The parts inside [low, high]; for quantities known to lie there this loses no coverage.

        An interval wholly outside becomes the nearer end alone.
        """
        ends = np.clip(self.lower, low, high), np.clip(self.upper, low, high)
        return Intervals(self.labels, *ends, self.level, f"{self.method}, clipped")

    _picture, _heads = "coefficients", 1

    def _drawn(self) -> tuple[Any, ...]:
        return self.labels, (self.lower + self.upper) / 2, self.lower, self.upper

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the intervals on matplotlib axes, new ones without `ax`, and return them."""
        return super().plot(ax, **{"what": f"{100 * self.level:g} % {self.method} interval"} | options)

    def _columns(self) -> dict[str, list[Any]]:
        return {"label": list(self.labels), "lower": self.lower.tolist(), "upper": self.upper.tolist()}

    def _title(self) -> str:
        return f"{100 * self.level:g} % {self.method} intervals"

    def __repr__(self) -> str:
        rows = zip(self.labels, self.lower, self.upper, strict=True)
        body = "".join(f"\n  {label!s:<16} [{low:9.6f}, {high:9.6f}]" for label, low, high in rows)
        return f"{self._title()}{body}"


class Estimated(Pictured):
    """What results with several estimated quantities share: errors, a picture, and a table with intervals."""

    _picture, _heads = "shares", 1

    @property
    def standard_errors(self: Any) -> Array:
        """Square roots of the diagonal of `covariance`."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def _drawn(self: Any) -> tuple[Any, ...]:
        made = self.intervals()
        return self.labels, self.values, made.lower, made.upper

    def _table(self: Any, heads: Sequence[str], columns: Sequence[Any], limits: Intervals) -> dict[str, list[Any]]:
        """The columns of a table: the labels, `columns` under `heads` (the first for the labels), and the limits."""
        named = zip((*heads[1:], "lower", "upper"), (*columns, limits.lower, limits.upper), strict=True)
        return {heads[0]: list(self.labels)} | {head: np.ravel(column).tolist() for head, column in named}


def text_table(
    labels: Sequence[Label], columns: Mapping[str, tuple[str, Any]], limits: Intervals, head: str, digits: int = 6
) -> list[str]:
    """The lines of a table of estimates: the format and the values of every column, and the limits under `head`."""
    names = [str(label) for label in labels]
    wide = max(8, *map(len, names))
    cells = [[form.format(value) for value in values] for form, values in columns.values()]
    heads = (f"{name:>{len(column[0])}}" for name, column in zip(columns, cells, strict=True))
    rows = zip(names, *cells, limits.as_text(digits), strict=True)
    return ["  ".join([" " * wide, *heads, head]), *("  ".join([f"{row[0]:{wide}}", *row[1:]]) for row in rows)]


def quotient(above: Array, below: Array) -> Array:
    """`above` / `below`; zero where `below` is not positive."""
    return np.divide(above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=below > 0)


def p_values_of(statistics: Array, degrees: float) -> Array:
    """Two-sided p-values of standardised statistics: normal, or Student's with `degrees` of freedom."""
    from scipy.stats import norm, t

    size = np.abs(statistics)
    return np.asarray(2 * (norm.sf(size) if math.isinf(degrees) else t.sf(size, degrees)))
