"""Variances summed over strata, with finite populations and strata that have a single unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ldpopt.channel import Label
from ldpopt.distribution import Array
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.results import Result


class LonelyUnit(Enum):
    """What a stratum with a single primary unit adds to a variance, since one unit shows no spread [SSW, section 3.7].

    REFUSE : `InvalidInput`; merge such a stratum with a neighbour.
    CERTAINTY : nothing, since the unit was certain to be drawn (the variance of its channel still counts).
    CENTRED : the square of its difference from the mean of all units, which is enough if strata are similar.
    AVERAGE : as much as the other strata add on average.

    >>> LonelyUnit.from_word("average")
    <LonelyUnit.AVERAGE: 'average'>
    """

    REFUSE = "refuse"
    CERTAINTY = "certainty"
    CENTRED = "centre"
    AVERAGE = "average"

    @classmethod
    def from_word(cls, word: object) -> LonelyUnit:
        """The member that a file or a flag names; `InvalidInput` for another word."""
        words = {one.value: one for one in cls}
        if not isinstance(word, str) or word not in words:
            raise invalid("lonely", f"one of {', '.join(words)}", word)
        return words[word]


@dataclass(frozen=True, eq=False)
class SamplingVariance(Result):
    """The covariance (r, r) of r linear functions, and its degrees of freedom (inf for a simple sample).

    >>> from ldpopt.survey import SampleDesign
    >>> SampleDesign(weights=[1.0, 3.0, 2.0, 2.0]).total_variance([0, 1, 1, 0])
    SamplingVariance(covariance=array([[9.]]), degrees=3.0)
    """

    covariance: Array
    degrees: float


def refuse_lonely(units: Array, names: Sequence[Label], lonely: LonelyUnit) -> None:
    """`InvalidInput` that names a stratum of a single unit, if such strata are refused."""
    alone = np.flatnonzero(units == 1)
    if len(alone) and lonely is LonelyUnit.REFUSE:
        expected = "at least two clusters or respondents in each (merge a stratum that has one, or say what it counts: "
        raise InvalidInput(f"strata: expected {expected}LonelyUnit, --lonely), got one{_inside(names[int(alone[0])])}")


def _inside(name: Label) -> str:
    return "" if name is None else f" in {name!r}"


def over_strata(
    scatter: Array,
    units: Array,
    names: Sequence[Label],
    fractions: Array | None = None,
    noise: Array | None = None,
    lonely: LonelyUnit = LonelyUnit.REFUSE,
) -> SamplingVariance:
    """sum_h (1 - f_h) n_h / (n_h - 1) S_h + f_h N_h [SSW, sections 3.7 and 4.3].

    scatter : (H, r, r), S_h, the scatter of the n_h unit totals of stratum h around their mean. For a single unit it is
        the square around the mean of all units.
    units : (H,), n_h; strata with n_h = 0 are left out. fractions : (H,), f_h, the share of the population's units that
        was drawn.
    noise : (H, r, r), N_h, the variance due to the channel's randomness alone. Even a census of a stratum, which has no
        sampling error, has this part. Without `noise` the fractions are not used, which is on the safe side.
    """
    refuse_lonely(units, names, lonely)
    alone = units == 1
    shares = np.zeros(len(units)) if fractions is None or noise is None else fractions
    if lonely is LonelyUnit.CERTAINTY and alone.any():
        if noise is None:
            raise invalid("noise", "the channel's own variance where a unit is certain", Phrase("none"))
        shares = np.where(alone, 1.0, shares)
    factor = np.where(alone, 1.0, units / np.maximum(units - 1.0, 1.0))
    left_out = alone if lonely is LonelyUnit.AVERAGE else np.zeros(len(units), dtype=bool)
    kept = (units > 0) & ~left_out
    if left_out.any() and not kept.any():
        raise invalid("strata", "one with at least two units, to take an average of", Phrase("none"))
    covariance = np.einsum("h,hrs->rs", ((1 - shares) * factor)[kept], scatter[kept])
    if noise is not None and shares.any():
        covariance = covariance + np.einsum("h,hrs->rs", shares[kept], noise[kept])
    if left_out.any():
        covariance = covariance * ((kept.sum() + left_out.sum()) / kept.sum())
    return SamplingVariance(covariance, float(units.sum() - (units > 0).sum()))
