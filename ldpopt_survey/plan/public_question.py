"""What is known of respondents in the open: public questions, and groups of the frame that come with an invitation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ldpopt.channel import Label
from ldpopt.errors import invalid
from ldpopt.values.labels import as_text, distinct_labels
from ldpopt.values.results import ByValue
from ldpopt_survey.plan.reading import distinct_as_text
from ldpopt_survey.records import check, flag, key, text

MAX_ANSWERS = 1000
"""The most answers of a public question."""

FEW_PEOPLE = 20
"""Fewer respondents than this for each combination of public answers are said to be few."""


@dataclass(frozen=True, eq=False)
class PublicQuestion(ByValue):
    """A question whose answer is sent, kept and published as it is; in a file a table ``[[public]]``.

    name : also the column in files. answers : at least two; numbers or texts.
    invited : whether the answer comes with the respondent's invitation, from the frame, and is not asked.

    >>> PublicQuestion("region", ("north", "south")).texts
    ('north', 'south')
    """

    name: str = key(text)
    answers: tuple[Label, ...] = key()
    invited: bool = key(flag, default=False)

    def __post_init__(self) -> None:
        what = f"public question {self.name!r}"
        check(self, what)
        if not isinstance(self.answers, (list, tuple)) or not 2 <= len(self.answers) <= MAX_ANSWERS:
            raise invalid(f"{what}: answers", f"a list of 2 to {MAX_ANSWERS}", type(self.answers).__name__)
        answers = distinct_labels(self.answers, len(self.answers), f"{what}: answers")
        if not all(isinstance(answer, (str, int, float)) and not isinstance(answer, bool) for answer in answers):
            raise invalid(f"{what}: answers", "texts or numbers", "others")
        distinct_as_text(answers, f"{what}: answers")
        if len({as_text(answer).strip().casefold() for answer in answers}) != len(answers):
            raise invalid(f"{what}: answers", "ones that differ otherwise than by capitals and spaces", "others")
        object.__setattr__(self, "answers", answers)

    @property
    def texts(self) -> tuple[str, ...]:
        """The answers as files have them."""
        return tuple(map(as_text, self.answers))


def many_combinations(public: Sequence[PublicQuestion], respondents: float) -> str:
    """A warning that public answers together may single people out; empty where respondents are many for each."""
    cells = math.prod(len(question.answers) for question in public)
    if not public or respondents >= FEW_PEOPLE * cells:
        return ""
    return (
        f"Public answers have {cells:,} combinations for {respondents:,.0f} respondents: some people may be the only "
        f"ones with theirs, and be recognised. Take fewer answers, so that each combination has {FEW_PEOPLE} or more."
    )
