"""The sample that a regression is of: nothing for a simple one, else its design."""

from __future__ import annotations

from typing import Any

from ldpopt.errors import Phrase, invalid
from ldpopt.survey.sample.design import SampleDesign


def sampled(weights: Any, strata: Any, clusters: Any, sample: SampleDesign | None, n: int) -> SampleDesign | None:
    """The design of n respondents that the arguments describe; None for a simple sample."""
    given = any(one is not None for one in (weights, strata, clusters))
    if sample is not None and given:
        raise invalid("sample", "a design, or weights, strata and clusters", Phrase("both"))
    made = SampleDesign(weights, strata, clusters, size=n) if given else sample
    if made is not None and made.n != n:
        raise invalid("sample", f"{n} respondents", made.n)
    return made
