"""Choose the length of booklets and estimate their saving, by rules for uniform shares; tell known channels [KW]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from ldpopt.design import FisherInformation, Marginals, optimal_channel
from ldpopt_survey.plan.precision import limits
from ldpopt_survey.plan.units import MAX_JOINT_CELLS, Unit, respondent_information

MAX_CELLS, MAX_CAPPED_CELLS = 36, 12
"""The most cells of a booklet whose channel is searched for, without and with a cap on eta."""

MAX_YES_NO_QUESTIONS, MAX_SEARCHED_QUESTIONS = 12, 3
"""The most yes/no questions of one booklet, whose channel is known, with a row for each of their 2^c answers; and the
most questions of others.
"""

MAX_SINGLE_QUESTION_EPSILON = 1.0
"""Up to this epsilon one question at random was the best wherever that could be certified."""


def is_known(units: Sequence[Unit]) -> bool:
    """Return True if the best channel is randomized response: for uniform yes/no questions."""
    return len(units) <= MAX_YES_NO_QUESTIONS and all(
        unit.even and unit.plain and len(unit.cells) == 2 for unit in units
    )


def questions_per_booklet(epsilon: float, eta: float | None = None) -> int:
    """Return the number of yes/no questions whose joint report is most informative [KW].

    It is the c with the largest c t min(t, eta), where t is the total variation of randomized response among 2^c
    answers::

        t = (e^eps - 1) / (2^c + e^eps - 1)

    Without eta it is 1 below an epsilon of 1.34, 2 up to 2.69, then 3 and more.

    >>> [questions_per_booklet(epsilon) for epsilon in (1.3, 1.4, 2.6, 2.7, 5.0)], questions_per_booklet(2.0, 0.4)
    ([1, 2, 2, 3, 5], 3)
    """
    fall, rise = math.exp(-epsilon), -math.expm1(-epsilon)
    variations = {c: rise / (2.0**c * fall + rise) for c in range(1, MAX_YES_NO_QUESTIONS + 1)}
    return max(variations, key=lambda c: c * variations[c] * min(variations[c], 1.0 if eta is None else eta))


def saving_at_uniform(sizes: Sequence[int], epsilon: float, eta: float | None = None) -> float:
    """Return the fraction of respondents that a joint report saves against one question each.

    It is for even shares, equal targets for the sums of variances, and reports that name a set of answers to each
    question; there the sizes of the sets decide.

    >>> round(saving_at_uniform((2, 2), 2.0), 3), round(saving_at_uniform((2, 3), 2.0), 3)
    (0.233, 0.032)
    >>> saving_at_uniform((3, 3), 2.0) < 0
    True
    """

    def variance_sum(answers: Sequence[int]) -> float:
        k = np.array(answers, dtype=np.float64)
        sets = np.array(list(product(*(range(1, count) for count in answers))), dtype=np.float64)
        alpha = (sets / k).prod(axis=1)
        reach = -math.expm1(-epsilon) / (math.exp(-epsilon) - math.expm1(-epsilon) * alpha)
        information = (alpha * reach)[:, None] ** 2 * (k / sets - 1)
        if eta is not None:
            pair_probability = (sets * (sets - 1) / (k * (k - 1))).prod(axis=1)
            information *= np.minimum(1.0, eta / (reach * (alpha - pair_probability)))[:, None]
        return float(((k - 1) ** 2 / (k * information)).sum(axis=1).min())

    if math.prod(sizes) > MAX_CELLS and set(sizes) != {2}:
        return -math.inf
    separate_sum = sum(math.sqrt(variance_sum((count,))) for count in sizes) ** 2
    return 1 - variance_sum(tuple(sizes)) / separate_sum


def joint_ratio(units: Sequence[Unit], epsilon: float) -> float:
    """Return the ratio of respondents for a joint report to those for one question each.

    The shares are taken as uniform. For other shares it is an estimate: the two ratios differed by at most 3 % where
    both were computed. The ratio is 1 up to an epsilon of `MAX_SINGLE_QUESTION_EPSILON`. It is nan if all questions
    have more than `MAX_JOINT_CELLS` answers together, or if a target is not about shares of single questions.
    """
    shape = tuple(len(unit.cells) for unit in units)
    if len(units) < 2 or math.prod(shape) > MAX_JOINT_CELLS or not all(unit.plain and unit.targets for unit in units):
        return math.nan
    if epsilon <= MAX_SINGLE_QUESTION_EPSILON:
        return 1.0
    weights = [(units[0].targets[0].variance / unit.targets[0].variance) ** 2 for unit in units]
    if set(shape) == {2} and len(set(weights)) == 1:
        return respondent_information(1, epsilon) / respondent_information(len(units), epsilon)

    def variance_sum(shape: Sequence[int], weights: Sequence[float]) -> float:
        cells = math.prod(shape)
        utility = FisherInformation(np.full(cells, 1 / cells), Marginals(tuple(shape), list(weights)))
        return float(optimal_channel(utility, limits(epsilon, None), certify=False).value)

    separate_sum = sum(math.sqrt(variance_sum([k], [weight])) for k, weight in zip(shape, weights, strict=True)) ** 2
    return min(1.0, variance_sum(shape, weights) / separate_sum)
