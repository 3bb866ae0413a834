"""The sample that a regression is of: nothing for a simple one, else its design, or a part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.errors import Phrase, invalid
from ldpopt.results import ByValue
from ldpopt.survey.sample.design import SampleDesign
from ldpopt.survey.sample.strata import SamplingVariance


@dataclass(frozen=True, eq=False)
class Subsample(ByValue):
    """Some of the respondents of a design, who are meant alone.

    design : of all. inside : (n,) who is meant, a mask. Those outside stay in the design with no share in a total: that
    is what makes the variance of a subgroup right [SSW, section 5.8].

    >>> from ldpopt.survey import SampleDesign
    >>> Subsample(SampleDesign(weights=[1.0, 3.0, 2.0]), np.array([True, False, True])).n
    2
    """

    design: SampleDesign
    inside: npt.NDArray[np.bool_]

    @property
    def n(self) -> int:
        """How many are meant."""
        return int(self.inside.sum())

    @property
    def weights(self) -> Array:
        """Their weights."""
        return np.asarray(self.design.weights[self.inside])

    def total_variance(self, scores: Array) -> SamplingVariance:
        """The covariance of their weighted total of scores, one row for each who is meant."""
        every = np.zeros((self.design.n, scores.shape[1]))
        every[self.inside] = scores
        return self.design.total_variance(every)


Sample = SampleDesign | Subsample


def sampled(weights: Any, strata: Any, clusters: Any, sample: Sample | None, n: int) -> Sample | None:
    """The sample of n respondents that the arguments describe; None for a simple one."""
    given = any(one is not None for one in (weights, strata, clusters))
    if sample is not None and given:
        raise invalid("sample", "a design, or weights, strata and clusters", Phrase("both"))
    made = SampleDesign(weights, strata, clusters, size=n) if given else sample
    if made is not None and made.n != n:
        raise invalid("sample", f"{n} respondents", made.n)
    return made
