"""Define public facts about respondents: public questions, and groups of the frame that come with invitations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ldpopt.channel import Label
from ldpopt.errors import invalid
from ldpopt.values.labels import as_text, distinct_labels
from ldpopt.values.results import ByValue
from ldpopt_survey.plan.reading import require_distinct_texts
from ldpopt_survey.records import check, flag, key, text

MAX_ANSWERS = 1000
"""The most answers of a public question."""

MIN_RESPONDENTS_PER_CELL = 20
"""Fewer respondents than this for each combination of public answers are said to be few."""


@dataclass(frozen=True, eq=False)
class PublicQuestion(ByValue):
    """Question whose answer is sent, stored and published unchanged; in a file a table ``[[public]]``.

    name : also the column in files.
    answers : at least two; numbers or texts.
    invited : whether the answer comes with the respondent's invitation, from the frame, and is not asked.

    >>> PublicQuestion("region", ("north", "south")).texts
    ('north', 'south')
    """

    name: str = key(text)
    answers: tuple[Label, ...] = key(aliases=("categories", "options"))
    invited: bool = key(flag, default=False)

    def __post_init__(self) -> None:
        place = f"public question {self.name!r}"
        check(self, place)
        if not isinstance(self.answers, (list, tuple)) or not 2 <= len(self.answers) <= MAX_ANSWERS:
            raise invalid(f"{place}: answers", f"a list of 2 to {MAX_ANSWERS}", type(self.answers).__name__)
        answers = distinct_labels(self.answers, len(self.answers), f"{place}: answers")
        if not all(isinstance(answer, (str, int, float)) and not isinstance(answer, bool) for answer in answers):
            raise invalid(f"{place}: answers", "texts or numbers", "others")
        require_distinct_texts(answers, f"{place}: answers")
        if len({as_text(answer).strip().casefold() for answer in answers}) != len(answers):
            raise invalid(f"{place}: answers", "ones that differ otherwise than by capitals and spaces", "others")
        object.__setattr__(self, "answers", answers)

    @property
    def texts(self) -> tuple[str, ...]:
        """The answers as files have them."""
        return tuple(map(as_text, self.answers))


def combinations_warning(public: Sequence[PublicQuestion], respondents: float) -> str:
    """Return a warning if public answers together may identify individuals, else ""."""
    cells = math.prod(len(question.answers) for question in public)
    if not public or respondents >= MIN_RESPONDENTS_PER_CELL * cells:
        return ""
    return (
        f"Public answers have {cells:,} combinations for {respondents:,.0f} respondents: some people may be the only "
        "ones with theirs, and be recognized. Take fewer answers, so that each combination has "
        f"{MIN_RESPONDENTS_PER_CELL} or more."
    )
