"""One of several questions that share a report, and the answers that are possible to all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldpopt.distribution import Array
from ldpopt.errors import Phrase, invalid
from ldpopt.labels import Label, distinct_labels, from_jsonable, to_jsonable
from ldpopt.results import ByValue
from ldpopt.schema import check, key, listed, record, text
from ldpopt.survey.plan.reading import PLAIN_READING, Reading, check_answers, conditions

MAX_CELLS = 2**14
"""The most answers that parts of one report may have together."""

NOT_APPLICABLE = "not applicable"
"""The answer of those whom a question does not concern, by their answer to another one."""


def read_label(value: Any, what: str) -> Label:
    """A label from its form in a file."""
    return from_jsonable([value], what)[0]


@dataclass(frozen=True, eq=False)
class Part(ByValue):
    """One of several questions that share a report: its name, its answers, and how they are written in files.

    asked_if : pairs of another part's name and those of its answers after which this question is asked. After others
        its answer is `NOT_APPLICABLE`, the last of its categories.
    name, column, categories, unknown, missing, reading, pilot : as for `PlannedQuestion`.
    """

    name: str = key(text)
    column: str = key(text)
    categories: tuple[Label, ...] = key(
        load=listed(read_label), dump=lambda labels: [to_jsonable(label) for label in labels]
    )
    unknown: Label | None = key(default=None, load=read_label, dump=to_jsonable)
    missing: Label | None = key(default=None, load=read_label, dump=to_jsonable)
    reading: Reading = key(record(Reading), default=PLAIN_READING)
    pilot: Array | None = key(default=None)
    asked_if: tuple[tuple[str, tuple[Label, ...]], ...] = key(
        conditions, default=(), omit=True,
        dump=lambda pairs: [[name, [to_jsonable(label) for label in labels]] for name, labels in pairs],
    )  # fmt: skip

    def __post_init__(self) -> None:
        what = f"question {self.name!r}"
        check(self, what)
        categories = distinct_labels(self.categories, len(self.categories), f"{what}: categories")
        object.__setattr__(self, "categories", categories)
        if self.asked_if and categories[-1:] != (NOT_APPLICABLE,):
            raise invalid(f"{what}: categories", f"{NOT_APPLICABLE!r} as the last", categories[-1:])
        check_answers(self, what)
        if self.asked_if and self.reading.left_out:
            expected = '"category", "counted" or "refuse" beside asked_if (an empty report tells that it was asked)'
            raise invalid(f"{what}: missing_answers", expected, self.reading.missing_answers)

    @property
    def asked(self) -> tuple[Label, ...]:
        """The categories among which a respondent who is asked chooses."""
        return self.categories[:-1] if self.asked_if else self.categories

    def applies(self, answers: Mapping[str, Label]) -> bool:
        """Whether the question is asked after these answers to the parts before it."""
        return all(answers[name] in labels for name, labels in self.asked_if)


def cells_of(parts: Sequence[Part]) -> tuple[tuple[Label, ...], ...]:
    """The possible answers to several parts together, the last part's fastest.

    `InvalidInput` for parts of one name, for conditions on other than earlier parts, and for too many answers.
    """
    cells: list[tuple[Label, ...]] = [()]
    names: list[str] = []
    for part in parts:
        what = f"question {part.name!r}"
        if part.name in names or any(name not in names for name, _ in part.asked_if):
            raise invalid(what, "a name of its own, and conditions on parts before it", Phrase("others"))
        if len(cells) * len(part.categories) > MAX_CELLS:
            raise invalid(what, f"at most {MAX_CELLS} answers of all parts together", Phrase("more"))
        cells = [
            (*cell, label)
            for cell in cells
            for label in (part.asked if part.applies(dict(zip(names, cell, strict=True))) else [NOT_APPLICABLE])
        ]
        names.append(part.name)
    return tuple(cells)
