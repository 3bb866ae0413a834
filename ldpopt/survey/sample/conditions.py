"""Conditions on public columns, in the form written after ``--where``, and groups of their values."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid

_FORM = re.compile(r"\s*(?P<column>.+?)\s*(?P<sign><=|>=|!=|==|=|<|>)\s*(?P<value>.*?)\s*")
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MISSING = "missing"
"""The name of the group of respondents without a value."""


@dataclass(frozen=True)
class Condition:
    """A comparison of a public column: ``sex = f``, ``region != north``, ``age >= 30``.

    = and != compare numbers if both sides are numbers, else text; the other signs compare numbers. A missing value
    fulfils only the condition ``column = ``, with nothing after the sign.

    >>> Condition.parse("age >= 30").holds({"age": ["29", "30", None]})
    array([False,  True, False])
    """

    column: str
    sign: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The condition that is written in a text; `InvalidInput` for another form."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise invalid("condition", "column = value (or !=, <, <=, >, >=)", text)
        sign, value = found["sign"].replace("==", "="), found["value"]
        if sign in _ORDERS and math.isnan(_number(value)):
            raise invalid("condition", f"a number after {sign}", value)
        return cls(found["column"], sign, value)

    def holds(self, table: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """(n,) mask of the respondents who fulfil it."""
        column = list(table[self.column])
        return np.fromiter((self._holds(value) for value in column), dtype=bool, count=len(column))

    def _holds(self, value: Any) -> bool:
        if _missing(value):
            return self.sign == "=" and self.value == ""
        if self.sign in _ORDERS:
            given = _number(value)
            if math.isnan(given):
                raise invalid(f"column {self.column!r}", f"numbers, to compare by {self.sign}", Phrase("others"))
            return bool(_ORDERS[self.sign](given, _number(self.value)))
        same = str(value) == self.value or _number(value) == _number(self.value)
        return same == (self.sign == "=")

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.value}"


def groups_of(table: Mapping[str, Any], columns: Sequence[str]) -> npt.NDArray[Any]:
    """(n,) the values of public columns as text. Values of several columns are joined by ×.

    >>> groups_of({"sex": ["f", "m"], "age": [1, None]}, ["sex", "age"]).tolist()
    ['f × 1', 'm × missing']
    """
    parts = [[MISSING if _missing(value) else str(value) for value in table[name]] for name in columns]
    made = np.empty(len(parts[0]), dtype=object)
    made[:] = [" × ".join(row) for row in zip(*parts, strict=True)]
    return made


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
