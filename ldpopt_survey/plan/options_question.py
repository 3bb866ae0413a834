"""A question of which any number of options may be chosen -> a yes/no question for each, answered in one report."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ldpopt.channel import Label
from ldpopt.errors import Phrase, invalid
from ldpopt_survey.plan.spec import QuestionSpec
from ldpopt_survey.records import check, key, listed, text

NO, YES = "no", "yes"

MAX_OPTIONS = 8
"""The most options; the plan has a row of integers for each set of them."""


@dataclass(frozen=True, eq=False)
class AnyOfSpec(QuestionSpec, type="any of"):
    """A question of which any number of options may be chosen: ``type = "any of"`` in a file.

    options : 2 to 8 texts. columns : the columns of answers in files, one for each option; by default those called like
        ``"paid: cash"``, the question with the option. Their entries are yes or no in any common spelling (1 or 0, TRUE
        or FALSE, checked or unchecked), or those of `codes`.
    separator : where the options chosen are a list in one column, `column`, the sign between them.
    missing : "no" if an empty cell means that an option was not chosen, as in files of boxes that were ticked.
    half_width : of the interval of each option's share.

    All options are answered in one report, with all of epsilon. The share of each option is estimated, under the names
    of the columns.

    >>> [one.name for one in AnyOfSpec("paid", options=("cash", "card")).answers]
    ['paid: cash', 'paid: card']
    """

    categories: tuple[Label, ...] = key(default=())
    options: tuple[str, ...] = key(listed(text), default=())
    columns: tuple[str, ...] = key(listed(text), default=())

    def __post_init__(self) -> None:
        what = f"question {self.name!r}"
        check(self, what)
        if not 2 <= len(self.options) <= MAX_OPTIONS or len(set(self.options)) != len(self.options):
            raise invalid(f"{what}: options", f"2 to {MAX_OPTIONS} that are distinct", len(self.options))
        if self.columns and not len(set(self.columns)) == len(self.columns) == len(self.options):
            raise invalid(f"{what}: columns", f"{len(self.options)} distinct ones, as many as options", self.columns)
        separator = self.reading.separator
        if (self.column not in ("", self.name) and not separator) or (self.columns and separator):
            raise invalid(what, "columns, or a column and its separator", Phrase("others"))
        if self.categories and self.categories != (NO, YES):
            raise invalid(what, "options and columns, and no categories", Phrase("one of these"))
        if self.alternative is not None or self.pilot is not None or self.reading.left_out:
            raise invalid(what, "no pilot, no alternative, and no answers left out", Phrase("one of these"))
        object.__setattr__(self, "categories", (NO, YES))
        super().__post_init__()

    @property
    def answers(self) -> tuple[QuestionSpec, ...]:
        """A yes/no question for each option."""
        questions = []
        columns = (
            [self.column] * len(self.options) if self.reading.separator else self.columns or [""] * len(self.options)
        )
        for option, column in zip(self.options, columns, strict=True):
            reading = self.reading
            if reading.separator:
                given = dict(reading.codes)
                codes = tuple((other, YES if other == option else NO) for other in self.options if other not in given)
                reading = replace(reading, codes=(*reading.codes, *codes))
            question = QuestionSpec(
                f"{self.name}: {option}", (NO, YES), column, self.unknown, self.missing, epsilon=self.epsilon,
                eta=self.eta, half_width=self.half_width, asked_if=self.asked_if, reading=reading,
            )  # fmt: skip
            object.__setattr__(question, "option_of", self.name)
            questions.append(question)
        return tuple(questions)
