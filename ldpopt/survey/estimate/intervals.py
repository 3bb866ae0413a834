"""Confidence intervals for linear functions of the report frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ldpopt.channel import Label
from ldpopt.distribution import Array, number
from ldpopt.errors import invalid
from ldpopt.results import Pictured, jsonable
from ldpopt.survey.estimate.moments import Moments


class IntervalMethod(Protocol):
    """A rule that computes confidence limits from moments."""

    @property
    def level(self) -> float:
        """Confidence level in (0, 1): of each interval, or of all together for a simultaneous method."""
        ...

    @property
    def name(self) -> str:
        """The name of the method in tables and reports."""
        ...

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        ...


@dataclass(frozen=True)
class Wald:
    """t +- z sqrt(variance / n). These intervals are too short if an estimate rests on few reports; `Score` is better.

    >>> from ldpopt.survey import estimate
    >>> made = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    >>> made.intervals(method=Wald()).lower.round(3)
    array([0.173, 0.507])
    """

    level: float = 0.95
    name = "Wald"

    def __post_init__(self) -> None:
        check_level(self.level)

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        z = two_sided(self.level, m.degrees) if critical is None else critical
        reach = z * np.sqrt(m.variance / m.size)
        return m.centre - reach, m.centre + reach

    def pivot(self, m: Moments, truth: Array) -> Array:
        """The critical value at which the interval just reaches `truth`, shape (..., r)."""
        return _ratio(m.centre - truth, m.variance / m.size)


@dataclass(frozen=True)
class Score:
    """All t with (t_hat - t)^2 <= z^2 V(t) / n: Wilson's interval for any contrast and any channel [Wilson].

    For every t, take the marginal of the reports that fits them best (by generalised least squares). V(t) is the
    variance of the loadings under it: V(t_hat + d) = v + d s - d^2, where v is the variance and s is the third central
    moment divided by v. For a binary report these marginals are exact, and the result is Wilson's interval, rescaled.

    >>> from ldpopt.survey import estimate
    >>> made = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    >>> made.intervals(method=Score()).lower.round(3)
    array([0.182, 0.503])
    """

    level: float = 0.95
    name = "score"

    def __post_init__(self) -> None:
        check_level(self.level)

    def limits(self, m: Moments, critical: float | None = None) -> tuple[Array, Array]:
        """Lower and upper ends, shape (..., r)."""
        z = two_sided(self.level, m.degrees) if critical is None else critical
        c = z * z / np.maximum(m.size, 1e-300)
        # Without variance the slope is unknown. The farthest loading gives the widest interval, which is safe.
        up = np.where(m.variance > 0, m.slope, m.above)
        down = np.where(m.variance > 0, m.slope, -m.below)
        lower, upper = (
            (c * s + sign * np.sqrt((c * s) ** 2 + 4 * (1 + c) * c * m.variance)) / (2 * (1 + c))
            for s, sign in ((down, -1), (up, 1))
        )
        return m.centre + lower, m.centre + upper

    def pivot(self, m: Moments, truth: Array) -> Array:
        """The critical value at which the interval just reaches `truth`, shape (..., r)."""
        d = truth - m.centre
        slope = np.where(m.variance > 0, m.slope, np.where(d > 0, m.above, -m.below))
        return _ratio(d, (m.variance + d * slope - d * d) / m.size)


def _ratio(distance: Array, variance: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.abs(distance) / np.sqrt(np.maximum(variance, 0.0))
    return np.where(np.abs(distance) <= 1e-12, 0.0, away)


def two_sided(level: float, degrees: float = math.inf) -> float:
    """The two-sided critical value of the normal law, or of Student's with `degrees` of freedom.

    >>> round(two_sided(0.95), 6)
    1.959964
    """
    from scipy.stats import norm, t

    return float(norm.isf((1 - level) / 2) if math.isinf(degrees) else t.isf((1 - level) / 2, degrees))


def check_level(level: Any) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < number(level, "confidence level", "a number between 0 and 1") < 1:
        raise invalid("confidence level", "a number between 0 and 1", level)


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

    def contains(self, values: Any) -> Any:
        """Whether each of `values` lies inside its interval."""
        return (self.lower <= values) & (values <= self.upper)

    def clip(self, low: float = 0.0, high: float = 1.0) -> Intervals:
        """The parts inside [low, high]; for quantities known to lie there this loses no coverage.

        An interval wholly outside becomes the nearer end alone.
        """
        ends = np.clip(self.lower, low, high), np.clip(self.upper, low, high)
        return Intervals(self.labels, *ends, self.level, f"{self.method}, clipped")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "labels": jsonable(self.labels),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "level": self.level,
            "method": self.method,
        }

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
