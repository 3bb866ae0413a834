"""Known margins (totals of groups in the population): weights are changed to meet them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldpopt.distribution import Array, number
from ldpopt.errors import Phrase, invalid
from ldpopt.survey.estimate.encode import factor, places
from ldpopt.survey.sample.design import SampleDesign
from ldpopt.survey.sample.raking import raked


def post_stratify(design: SampleDesign, groups: Any, totals: Mapping[Any, float]) -> SampleDesign:
    """Post-stratification: the design with weights changed so that every group has its known total [SSW, section 7.6].

    groups : (n,) labels. totals : the population of every group, as a number of people or as shares that sum to 1.

    `InvalidInput` for a group without a total, or a total without a respondent (merge the group with another).

    >>> from ldpopt.survey import SampleDesign
    >>> post_stratify(SampleDesign(size=4), ["f", "m", "m", "m"], {"f": 50, "m": 50}).weights.round(3)
    array([50.   , 16.667, 16.667, 16.667])
    """
    return rake(design, [(groups, totals)])


def rake(design: SampleDesign, margins: Sequence[tuple[Any, Mapping[Any, float]]]) -> SampleDesign:
    """Raking: the design with weights that meet the known totals of every margin [DemingStephan].

    margins : pairs of groups, (n,) labels, and their totals, numbers of people or shares.

    The method is iterative proportional fitting. Afterwards variances are those of the residuals from the margins, and
    replicates are raked, too. `SolverError` if no weights meet all margins, for example if two of them have different
    sums.

    >>> from ldpopt.survey import SampleDesign
    >>> sex, age = ["f", "f", "m", "m"], ["old", "young", "old", "young"]
    >>> made = rake(SampleDesign(weights=[1, 2, 1, 1]), [(sex, {"f": 6, "m": 4}), (age, {"old": 5, "young": 5})])
    >>> made.weights.round(3), made.total(np.array(sex) == "f")
    (array([2.589, 3.411, 2.411, 1.589]), array([6.]))
    """
    if not margins:
        raise invalid("margins", "at least one", Phrase("none"))
    made = []
    for groups, totals in margins:
        codes, names = factor(groups, design.n, "margin")
        made.append((codes, _totals(names, totals, float(design.weights.sum()))))
    sums = [float(known.sum()) for _, known in made]
    if not max(sums) - min(sums) <= 1e-6 * max(sums):
        raise invalid("margins", "totals with the same sum", Phrase(f"sums {min(sums):.10g} and {max(sums):.10g}"))
    made = [(codes, known * (sums[0] / total)) for (codes, known), total in zip(made, sums, strict=True)]
    return design.weighted(raked(design.weights, made), tuple(made))


def _totals(names: list[Any], totals: Mapping[Any, float], weight: float) -> Array:
    """The known totals in the order of the groups' names; shares become totals of the weights."""
    given = list(totals)
    at = places(names, tuple(given))
    if len(at) and at.min() < 0:
        raise invalid("margin", "a known total for every group of the sample", names[int(np.argmin(at))])
    if len(set(at.tolist())) != len(given):
        missing = next(label for place, label in enumerate(given) if place not in at)
        raise invalid("margin", "a respondent in every group with a known total", missing)
    known = np.array([number(totals[given[place]], "margin") for place in at])
    if not known.min() > 0:
        raise invalid("margin", "positive totals", float(known.min()))
    return known * (weight if abs(float(known.sum()) - 1) <= 1e-6 else 1.0)
