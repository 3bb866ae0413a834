"""Plan a question with several options as one yes/no question per option, all answered in one report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpopt.channel import Label
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.values.distribution import Array
from ldpopt_survey.plan.spec import QuestionSpec
from ldpopt_survey.records import check, key, listed, text, within

NO, YES = "no", "yes"

MAX_OPTIONS = 8
"""The most options; the plan has a row of integers for each set of them."""


@dataclass(frozen=True, eq=False)
class AnyOfSpec(QuestionSpec, type="any of"):
    """Question with several options, any number of them to be chosen: ``type = "any of"`` in a file.

    categories : the two answers to each option; only "no" and "yes", which is the default.
    options : 2 to 8 texts that can be chosen. In a file the key is ``answers``; ``options`` is accepted in its place.
    columns : the columns of answers in files, one for each option; by default those called like ``"paid: cash"``, the
        question with the option. Their entries are yes or no in any common spelling (1 or 0, TRUE
        or FALSE, checked or unchecked), or those of `codes`.
    separator : where the options chosen are a list in one column, `column`, the sign between them.
    missing : "no" if an empty cell means that an option was not chosen, as in files of boxes that were ticked.
    half_width : of the interval of each option's share.
    pilot : the expected share of each option, in (0, 1), as a list or a table from options; by default a half each.
        Options are taken as chosen independently of one another.

    All options are answered in one report, with all of epsilon. The share of each option is estimated, under the names
    of the columns.

    >>> [one.name for one in AnyOfSpec("paid", options=("cash", "card")).answers]
    ['paid: cash', 'paid: card']
    """

    categories: tuple[Label, ...] = key(default=())
    options: tuple[str, ...] = key(listed(text), default=(), name="answers", aliases=("options",))
    columns: tuple[str, ...] = key(listed(text), default=())

    def __post_init__(self) -> None:
        place = f"question {self.name!r}"
        check(self, place)
        if not 2 <= len(self.options) <= MAX_OPTIONS or len(set(self.options)) != len(self.options):
            raise invalid(f"{place}: options", f"2 to {MAX_OPTIONS} that are distinct", len(self.options))
        if self.columns and not len(set(self.columns)) == len(self.columns) == len(self.options):
            raise invalid(f"{place}: columns", f"{len(self.options)} distinct ones, as many as options", self.columns)
        separator = self.reading.separator
        if (self.column not in ("", self.name) and not separator) or (self.columns and separator):
            raise InvalidInput(f"{place}: give either `columns`, or `column` together with `separator`")
        if self.categories and self.categories != (NO, YES):
            raise invalid(place, "options and columns, and no categories", Phrase("one of these"))
        if self.alternative is not None or self.reading.left_out:
            raise invalid(place, "no alternative, and no answers left out", Phrase("one of these"))
        option_shares = self._chosen(f"{place}: pilot")
        object.__setattr__(self, "categories", (NO, YES))
        object.__setattr__(self, "pilot", None)  # other types of questions check a distribution of the categories
        super().__post_init__()
        object.__setattr__(self, "pilot", option_shares)

    def _chosen(self, place: str) -> Array | None:
        """Return the expected share of each option, shape (options,), if known."""
        if self.pilot is None:
            return None
        pilot: Any = self.pilot
        if isinstance(pilot, Mapping):
            if set(pilot) != set(self.options):
                raise invalid(place, f"a share of each option ({', '.join(self.options)})", Phrase("other names"))
            pilot = [pilot[option] for option in self.options]
        if not isinstance(pilot, (list, tuple, np.ndarray)) or len(pilot) != len(self.options):
            raise invalid(place, f"{len(self.options)} shares, one for each option", Phrase("another form"))
        read_share = within(0, 1, "()")
        return np.array([read_share(share, place) for share in pilot])

    @property
    def shares(self) -> Array:
        """The shares of no and yes of an option without a pilot, shape (2,)."""
        return np.full(2, 0.5)

    @property
    def answers(self) -> tuple[QuestionSpec, ...]:
        """A yes/no question for each option."""
        questions = []
        columns = (
            [self.column] * len(self.options) if self.reading.separator else self.columns or [""] * len(self.options)
        )
        shares = [None] * len(self.options) if self.pilot is None else [(1 - share, share) for share in self.pilot]
        for option, column, pilot in zip(self.options, columns, shares, strict=True):
            reading = self.reading
            if reading.separator:
                codes_of_file = dict(reading.codes)
                codes = tuple(
                    (other, YES if other == option else NO) for other in self.options if other not in codes_of_file
                )
                reading = replace(reading, codes=(*reading.codes, *codes))
            question = QuestionSpec(
                f"{self.name}: {option}", (NO, YES), column, self.unknown, self.missing, pilot, epsilon=self.epsilon,
                eta=self.eta, half_width=self.half_width, asked_if=self.asked_if, reading=reading,
                coefficient_of_variation=self.coefficient_of_variation,
            )  # fmt: skip
            object.__setattr__(question, "option_of", self.name)
            questions.append(question)
        return tuple(questions)
