"""The variance of a total of influences, one vector a respondent, from a simple or a complex sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ldpopt.distribution import Array, finite_array
from ldpopt.errors import Phrase, invalid
from ldpopt.survey.estimate.encode import factor
from ldpopt.survey.estimate.linearization import SamplingVariance


class Sample(Protocol):
    """How the respondents were drawn: their weights, and the variance of a weighted total."""

    @property
    def weights(self) -> Array:
        """(n,) positive."""
        ...

    def total_variance(self, scores: Any) -> SamplingVariance:
        """The covariance of sum_i w_i s_i, for scores (n, c)."""
        ...


@dataclass(frozen=True, eq=False)
class _Columns:
    """Weights with strata and clusters, drawn with replacement."""

    weights: Array
    strata: Any
    clusters: Any

    def total_variance(self, scores: Any) -> SamplingVariance:
        """Linearised, over primary units."""
        return SamplingVariance(*total_variance(scores * self.weights[:, None], self.strata, self.clusters))


def sampled(weights: Any, strata: Any, clusters: Any, sample: Sample | None, n: int) -> Sample | None:
    """The sample of n respondents that the arguments describe; None for a simple one."""
    if sample is not None:
        if any(given is not None for given in (weights, strata, clusters)):
            raise invalid("sample", "a sample, or weights, strata and clusters", Phrase("both"))
        if len(sample.weights) != n:
            raise invalid("sample", f"{n} respondents", len(sample.weights))
        return sample
    if weights is None and strata is None and clusters is None:
        return None
    found = checked_weights(weights, n)
    return _Columns(np.ones(n) if found is None else found, strata, clusters)


def total_variance(influences: Array, strata: Any = None, clusters: Any = None) -> tuple[Array, float]:
    """Covariance (c, c) of the sum of influences (n, c), and its degrees of freedom: units less strata [SSW].

    Within each stratum n_h / (n_h - 1) times the scatter of the totals of its primary units, which are clusters, or
    respondents where there are none. A stratum with a single unit is `InvalidInput`.

    >>> total_variance(np.array([[1.0], [-1.0]]))
    (array([[4.]]), 1.0)
    """
    n = len(influences)
    stratum, names = factor(strata, n, "strata")
    units, of = influences, stratum
    if clusters is not None:
        cluster, kinds = factor(clusters, n, "clusters")
        both, unit = np.unique(stratum * len(kinds) + cluster, return_inverse=True)
        unit = unit.reshape(-1)
        units = np.stack([np.bincount(unit, weights=column, minlength=len(both)) for column in influences.T], axis=1)
        of = both // len(kinds)
    size = np.bincount(of, minlength=len(names))
    if (size == 1).any():
        odd = names[int(np.argmax(size == 1))]
        raise invalid(
            "strata", "at least two clusters or respondents in each (merge a stratum that has one)", repr(odd)
        )
    means = np.stack([np.bincount(of, weights=column, minlength=len(names)) for column in units.T], axis=1)
    centred = (units - (means / size[:, None])[of]) * np.sqrt(size / np.maximum(size - 1, 1))[of][:, None]
    return np.asarray(centred.T @ centred), float(len(units) - len(names))


def checked_weights(weights: Any, n: int) -> Array | None:
    """Positive weights (n,), or None; else `InvalidInput`."""
    if weights is None:
        return None
    made = finite_array(weights, "weights", 1)
    if len(made) != n or (n and not made.min() > 0):
        raise invalid("weights", f"{n} positive numbers", f"{len(made)} from {made.min() if len(made) else math.nan}")
    return made
