"""Describe why a plan needs more respondents than there are people, with the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE
from ldpopt_survey.plan.precision import LARGER_SHARES
from ldpopt_survey.plan.spec import QuestionSpec
from ldpopt_survey.plan.units import Unit

MAX_RESPONDENTS = 10.0**10
"""The largest number of respondents of a plan, more than there are people."""


LESS_PRECISE = "less precise targets, or a larger epsilon"
"""What is expected in place of targets that need more than `MAX_RESPONDENTS`."""


class TooManyRespondents(InvalidInput):
    """Error of a plan that needs more respondents than `MAX_RESPONDENTS`."""


def count_needed(required: float) -> str:
    """Describe the number of respondents of a plan that needs too many.

    >>> count_needed(2e15)
    '2e+15 respondents are needed, 1e+10 are the most'
    """
    if math.isinf(required):
        return "no number of respondents is enough"
    return f"{required:.3g} respondents are needed, {MAX_RESPONDENTS:.0e} are the most"


RARE_SHARE = 0.01
"""Smaller expected shares are named as the cause where a plan needs too many respondents."""


def too_many(units: Sequence[Unit], required: float, epsilon: float) -> TooManyRespondents:
    """Describe the error of a plan that needs so many respondents, by the smallest expected share if it is small."""
    rare_shares = [entry for unit in units for question in unit.questions for entry in _rare(unit, question)]
    if rare_shares:
        # Where an answer decides who is asked, its own share is not the cause.
        share, setting, remedy = min(
            rare_shares, key=lambda entry: (float(f"{entry[0]:.4g}"), "asked_if" not in entry[1])
        )
        remedies, problem = f"{remedy}, {LESS_PRECISE}", f"a share of {share:.3g}"
    else:
        setting, remedies, problem = "budget epsilon", LESS_PRECISE, f"{epsilon:.4g}"
    return TooManyRespondents(str(invalid(setting, remedies, Phrase(f"{problem} ({count_needed(required)})"))))


def _rare(unit: Unit, question: QuestionSpec) -> Iterator[tuple[float, str, str]]:
    """Yield the share of those who are asked a question, and of its rarest answer, if it is small, with the remedy."""
    place = f"question {question.name!r}"
    if question.asked_if:
        position = unit.questions.index(question)
        cells = zip(unit.cells, unit.pilot, strict=True)
        share_asked = math.fsum(share for cell, share in cells if cell[position] != NOT_APPLICABLE)
        filters = " and ".join(repr(name) for name, _ in question.asked_if)
        if share_asked < RARE_SHARE:
            remedy = f"more respondents who are asked (larger shares in the pilot of {filters})"
            yield share_asked, f"{place}: asked_if", remedy
    if (share := float(question.shares.min())) < RARE_SHARE:
        yield share, f"{place}: pilot", LARGER_SHARES
