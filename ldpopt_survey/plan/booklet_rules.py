"""How long booklets are, and what they save, by rules for even shares; and which of their channels are known [KW]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from ldpopt.design import FisherInformation, Marginals, optimal_channel
from ldpopt_survey.plan.precision import limits
from ldpopt_survey.plan.units import MAX_JOINT_CELLS, Unit, rule

MAX_CELLS, MAX_CAPPED_CELLS = 36, 12
"""The most cells of a booklet whose channel is searched for, without and with a cap on eta."""

MAX_LENGTH, MAX_SEARCHED = 12, 3
"""The most yes/no questions of one booklet, whose channel is known, with a row for each of their 2^c answers; and the
most questions of others.
"""

ALONE = 1.0
"""Up to this epsilon one question at random was the best wherever that could be certified."""


def is_known(units: Sequence[Unit]) -> bool:
    """Whether the best channel of a booklet is randomized response: of even yes/no questions."""
    return len(units) <= MAX_LENGTH and all(unit.even and unit.plain and len(unit.cells) == 2 for unit in units)


def length(epsilon: float, eta: float | None = None) -> int:
    """The number of yes/no questions at random of which one report tells the most, answered together [KW].

    It is the c with the largest c t min(t, eta), where t = (e^eps - 1) / (2^c + e^eps - 1) is the total variation of
    randomized response among 2^c answers: without eta 1 below an epsilon of 1.34, 2 up to 2.69, then 3 and more.

    >>> [length(epsilon) for epsilon in (1.3, 1.4, 2.6, 2.7, 5.0)], length(2.0, 0.4)
    ([1, 2, 2, 3, 5], 3)
    """
    fall, rise = math.exp(-epsilon), -math.expm1(-epsilon)
    told = {c: rise / (2.0**c * fall + rise) for c in range(1, MAX_LENGTH + 1)}
    return max(told, key=lambda c: c * told[c] * min(told[c], 1.0 if eta is None else eta))


def gain_at_even(sizes: Sequence[int], epsilon: float, eta: float | None = None) -> float:
    """Which share of the respondents one report on questions of so many answers saves against one question each.

    It is for even shares, equal targets for the sums of variances, and reports that name a set of answers to each
    question; there the sizes of the sets decide.

    >>> round(gain_at_even((2, 2), 2.0), 3), round(gain_at_even((2, 3), 2.0), 3), gain_at_even((3, 3), 2.0) < 0
    (0.233, 0.032, True)
    """

    def total(answers: Sequence[int]) -> float:
        k = np.array(answers, dtype=np.float64)
        sets = np.array(list(product(*(range(1, count) for count in answers))), dtype=np.float64)
        alpha = (sets / k).prod(axis=1)
        reach = -math.expm1(-epsilon) / (math.exp(-epsilon) - math.expm1(-epsilon) * alpha)
        information = (alpha * reach)[:, None] ** 2 * (k / sets - 1)
        if eta is not None:
            both = (sets * (sets - 1) / (k * (k - 1))).prod(axis=1)
            information *= np.minimum(1.0, eta / (reach * (alpha - both)))[:, None]
        return float(((k - 1) ** 2 / (k * information)).sum(axis=1).min())

    if math.prod(sizes) > MAX_CELLS and set(sizes) != {2}:
        return -math.inf
    alone = sum(math.sqrt(total((count,))) for count in sizes) ** 2
    return 1 - total(tuple(sizes)) / alone


def joint_ratio(units: Sequence[Unit], epsilon: float) -> float:
    """How many times the respondents of one question each the best report on all answers needs, at even shares.

    An estimate for other shares: the two ratios differed by at most 3 % where both were found. nan where all have more
    than `MAX_JOINT_CELLS` answers together, or are not shares of single questions; 1 up to an epsilon of `ALONE`.
    """
    shape = tuple(len(unit.cells) for unit in units)
    if len(units) < 2 or math.prod(shape) > MAX_JOINT_CELLS or not all(unit.plain and unit.targets for unit in units):
        return math.nan
    if epsilon <= ALONE:
        return 1.0
    weights = [(units[0].targets[0].variance / unit.targets[0].variance) ** 2 for unit in units]
    if set(shape) == {2} and len(set(weights)) == 1:
        return rule(1, epsilon) / rule(len(units), epsilon)

    def total(shape: Sequence[int], weights: Sequence[float]) -> float:
        cells = math.prod(shape)
        wanted = FisherInformation(np.full(cells, 1 / cells), Marginals(tuple(shape), list(weights)))
        return float(optimal_channel(wanted, limits(epsilon, None), certify=False).value)

    alone = sum(math.sqrt(total([k], [weight])) for k, weight in zip(shape, weights, strict=True)) ** 2
    return min(1.0, total(shape, weights) / alone)
