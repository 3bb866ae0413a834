"""The frequency oracle: a mechanism for estimating how frequent each answer is, with too many reports for a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.distribution import Array, finite_array, positive_epsilon, positive_integer, unit_interval
from ldpopt.errors import invalid

Answers = npt.NDArray[np.intp]
Reports = npt.NDArray[Any]

MAXIMUM_ENTRIES = 2**24


@dataclass(frozen=True)
class FrequencyOracle(ABC):
    """A mechanism on answers 0..k-1, in which every report *supports* some of the answers.

    A respondent's report supports their own answer with probability `support[0]`, and any other answer with probability
    `support[1]`. The expected number of supporting reports is therefore linear in an answer's frequency, and `estimate`
    solves this equation; the estimate is unbiased [LH].

    k : at least 2. epsilon : in nats.

    Subclasses define how reports are drawn and read, and give the exact `eta`.

    >>> from ldpopt.mechanisms import hadamard_response
    >>> round(hadamard_response(3, 1.0).variance(0.0, 100), 6)
    0.072014
    """

    k: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive_integer(self.k, "k", 2))
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon))

    @property
    @abstractmethod
    def eta(self) -> float:
        """The largest total variation distance between the reports of two answers, rounded up."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The probabilities that a report supports its own answer, and that it supports another one."""

    @abstractmethod
    def sample(self, x: Any, rng: np.random.Generator) -> Reports:
        """Simulated reports for an array of answers 0..k-1, one row for each report."""

    @abstractmethod
    def support_counts(self, reports: Any) -> Array:
        """How many of the reports support each answer, shape (k,)."""

    @abstractmethod
    def channel(self) -> Channel:
        """The whole channel, for small parameters. Raises `InvalidInput` if it has more than 2**24 entries."""

    def estimate(self, support_counts: Any, n: int) -> Array:
        """Unbiased estimates of the frequencies, shape (k,), from the support counts of n reports.

        They may lie outside [0, 1].
        """
        counts = finite_array(support_counts, "support counts", 1)
        if len(counts) != self.k:
            raise invalid("support counts", f"{self.k} entries", len(counts))
        own, other = self.support
        return np.asarray((counts / positive_integer(n, "n") - other) / (own - other))

    def variance(self, frequency: float, n: int) -> float:
        """The variance of the estimate of one frequency from n independent respondents [LH].

        With own, other = `support` and s = f own + (1 - f) other for the frequency f, the variance is
        s (1 - s)/(n (own - other)^2).
        """
        f, (own, other) = unit_interval(frequency, "frequency"), self.support
        s = f * own + (1 - f) * other
        return s * (1 - s) / (positive_integer(n, "n") * (own - other) ** 2)

    def _answers(self, x: Any, rng: Any) -> Answers:
        if not isinstance(rng, np.random.Generator):
            raise invalid("rng", "a numpy.random.Generator", type(rng).__name__)
        made = np.atleast_1d(np.asarray(x))
        if made.ndim != 1 or made.dtype.kind not in "iu" or (made.size and not 0 <= made.min() <= made.max() < self.k):
            raise invalid("answers", f"integers 0 to {self.k - 1} in one dimension", x)
        return made.astype(np.intp)


def check_size(rows: int, columns: int) -> None:
    """Refuse to tabulate a matrix of more than `MAXIMUM_ENTRIES` entries."""
    if rows * columns > MAXIMUM_ENTRIES:
        raise invalid("channel", f"a matrix of at most {MAXIMUM_ENTRIES} entries", f"{rows} x {columns:.3g}")


def check_reports(reports: Any, columns: int | None, limits: int | tuple[int, ...]) -> Reports:
    """`reports` as an integer array of `columns` columns (one dimension when None), entries from 0 below `limits`."""
    made = np.asarray(reports)
    shape_fits = made.ndim == 1 if columns is None else made.ndim == 2 and made.shape[1] == columns
    if not shape_fits or made.dtype.kind not in "iub":
        expected = "a one-dimensional array" if columns is None else f"{columns} columns"
        raise invalid("reports", f"integers, {expected}", f"{made.dtype} of shape {made.shape}")
    if made.size and (np.any(made < 0) or np.any(made >= np.asarray(limits))):
        raise invalid("reports", f"entries from 0 to below {limits}", "others")
    return made
