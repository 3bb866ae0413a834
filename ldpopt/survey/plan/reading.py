"""How the answers to a question are written in a file: codes for categories, bins of numbers, codes for "no answer"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ldpopt.distribution import number
from ldpopt.errors import invalid
from ldpopt.labels import Label, as_text, from_jsonable, to_jsonable

MISSING_ANSWERS = ("refuse", "counted", "category", "left out")
MOST_CODES = 10_000


@dataclass(frozen=True)
class Reading:
    """How an entry of a file becomes a category, and how missing answers are treated.

    codes : the category for each entry, with the entry as text: ``{"1": "yes", "2": "no"}`` or pairs.
    bins : the m - 1 rising edges between m categories of numbers; a number on an edge belongs to the category above it.
    missing_codes : entries that mean "no answer", besides an empty cell, such as -9, 99 or "refused". They are
        recognised before codes and bins.
    missing_answers : how missing answers are treated.

    - ``"refuse"``: the file is refused.
    - ``"counted"``: they count as the category `missing`, as if it had been answered.
    - ``"category"``: the category `missing` stands for them and for nothing else. Whether somebody answered is
    protected like the answer. Shares among the people who answered are estimated, too.
    - ``"left out"``: their report is empty. Everybody sees who did not answer; given answers are protected.

    Anything else is `InvalidInput`.

    >>> Reading(bins=(1000, 2000), missing_codes=(-9,)).missing_codes
    ('-9',)
    """

    codes: tuple[tuple[str, Label], ...] = ()
    bins: tuple[float, ...] = ()
    missing_codes: tuple[str, ...] = ()
    missing_answers: str = "refuse"

    def __post_init__(self) -> None:
        codes = self.codes.items() if isinstance(self.codes, Mapping) else self.codes
        if not isinstance(self.missing_codes, (list, tuple)) or not isinstance(self.bins, (list, tuple)):
            raise invalid("bins and missing_codes", "lists", type(self.bins).__name__)
        try:
            pairs = tuple((_text(code, "codes"), label) for code, label in codes)
        except (TypeError, ValueError) as error:
            raise invalid("codes", 'a table from codes to categories, { "1" = "yes" }', type(error).__name__) from None
        bins = tuple(number(edge, "bins") for edge in self.bins)
        missing = tuple(_text(code, "missing_codes") for code in self.missing_codes)
        if any(not low < high for low, high in pairwise(bins)):
            raise invalid("bins", "rising edges", list(bins)[:8])
        if pairs and bins:
            raise invalid("codes and bins", "one of them", "both")
        for what, found in (("codes", [code for code, _ in pairs]), ("missing_codes", list(missing))):
            if len(set(found)) != len(found) or len(found) > MOST_CODES:
                raise invalid(what, f"distinct ones, at most {MOST_CODES}", f"{len(found)}")
        if self.missing_answers not in MISSING_ANSWERS:
            raise invalid("missing_answers", " or ".join(f'"{one}"' for one in MISSING_ANSWERS), self.missing_answers)
        for name, value in (("codes", pairs), ("bins", bins), ("missing_codes", missing)):
            object.__setattr__(self, name, value)

    @property
    def left_out(self) -> bool:
        """Whether missing answers have empty reports."""
        return self.missing_answers == "left out"

    @property
    def own_category(self) -> bool:
        """Whether missing answers have a category of their own."""
        return self.missing_answers == "category"

    def require(self, categories: tuple[Label, ...], missing: Label | None, what: str) -> None:
        """`InvalidInput` unless this fits a question's categories and its `missing` category."""
        if self.bins and len(self.bins) + 1 != len(categories) - self.own_category:
            counted = f"{len(categories) - self.own_category - 1}, one fewer than the categories of numbers"
            raise invalid(f"{what}: bins", counted, len(self.bins))
        if self.bins and self.own_category and missing != categories[-1]:
            raise invalid(f"{what}: missing", "the last category, after those of the bins", missing)
        for _, label in self.codes:
            if not any(type(label) is type(one) and label == one for one in categories):
                raise invalid(f"{what}: codes", f"codes of the categories {categories[:8]}", label)
        if (missing is None) != (self.missing_answers in ("refuse", "left out")):
            expected = "a category in `missing`" if missing is None else 'no `missing`, or "counted" or "category"'
            raise invalid(f"{what}: missing_answers", expected, self.missing_answers)
        if self.own_category and len(categories) < 3:
            raise invalid(f"{what}: categories", "two besides the one of missing answers", len(categories) - 1)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values."""
        return {
            "codes": [[code, to_jsonable(label)] for code, label in self.codes],
            "bins": list(self.bins),
            "missing_codes": list(self.missing_codes),
            "missing_answers": self.missing_answers,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Reading:
        """The reading that `to_dict` gave; anything else is `InvalidInput`."""
        if not isinstance(data, dict) or set(data) != set(Reading().to_dict()) or not isinstance(data["codes"], list):
            raise invalid("plan question", "a reading of codes, bins, missing_codes and missing_answers", "another")
        if any(not isinstance(pair, list) or len(pair) != 2 for pair in data["codes"]):
            raise invalid("plan question", "codes as pairs", "others")
        codes = tuple((code, from_jsonable([label], "codes")[0]) for code, label in data["codes"])
        return cls(codes, data["bins"], data["missing_codes"], data["missing_answers"])


PLAIN_READING = Reading()


def _text(code: Any, what: str) -> str:
    """A code as text, in the form of data files."""
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    if isinstance(code, bool) or not isinstance(code, (str, int, float)) or code != code:
        raise invalid(what, "texts or numbers", type(code).__name__)
    made = as_text(code)
    if not made.strip() or len(made) > 200:
        raise invalid(what, "texts of 1 to 200 characters", f"{len(made)} characters")
    return made
