"""The sample of a regression: None for a simple sample, else its design, or a subgroup of a design."""

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
    """A subgroup of the respondents of a design.

    design : the design of all n respondents. inside : (n,) mask of the subgroup. The others stay in the design, with no
        share in a total. This makes the variance of a subgroup right [SSW, section 5.8].

    >>> from ldpopt.survey import SampleDesign
    >>> Subsample(SampleDesign(weights=[1.0, 3.0, 2.0]), np.array([True, False, True])).n
    2
    """

    design: SampleDesign
    inside: npt.NDArray[np.bool_]

    @property
    def n(self) -> int:
        """The number of respondents in the subgroup."""
        return int(self.inside.sum())

    @property
    def weights(self) -> Array:
        """The weights of the subgroup."""
        return np.asarray(self.design.weights[self.inside])

    def total_variance(self, scores: Array) -> SamplingVariance:
        """The covariance of the weighted total of scores, which have one row for each respondent of the subgroup."""
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
