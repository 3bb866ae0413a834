"""Real survey data that come with the package, ready to be split into two groups of respondents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.values.distribution import Array, from_counts
from ldpopt.values.results import Result

__all__ = ["Column", "SurveyTable", "load_anes96"]


@dataclass(frozen=True, eq=False, repr=False)
class Column(Result):
    """The answers of n respondents to one question: `codes`, shape (n,), are read-only positions in `labels`.

    >>> load_anes96()["vote"].labels
    ('Clinton', 'Dole')
    """

    question: str
    labels: tuple[str, ...]
    codes: npt.NDArray[np.intp]

    def __post_init__(self) -> None:
        codes = np.array(self.codes, dtype=np.intp)
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)

    def __repr__(self) -> str:
        return f"Column({self.question!r}, {len(self.labels)} categories, {len(self.codes)} answers)"


@dataclass(frozen=True, eq=False, repr=False)
class SurveyTable(Result):
    """Answers of the same respondents to several questions: `columns` by name. `provenance` tells the source.

    >>> len(load_anes96()["vote"].codes)
    944
    """

    name: str
    provenance: str
    columns: Mapping[str, Column]

    def _columns(self) -> dict[str, list[Any]]:
        columns = self.columns.items()
        return {name: [column.labels[code] for code in column.codes.tolist()] for name, column in columns}

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).codes)

    def __getitem__(self, column: str) -> Column:
        """The column of that name. For any other name, raises `InvalidInput`, which lists the columns."""
        if column not in self.columns:
            raise invalid("column", f"one of {', '.join(self.columns)}", column)
        return self.columns[column]

    def labels(self, column: str) -> tuple[str, ...]:
        """List the names of the column's categories, in order."""
        return self[column].labels

    def counts(self, column: str, by: str | None = None) -> npt.NDArray[np.intp]:
        """Count the respondents in each of the k categories of a column, shape (k,).

        With `by`, the name of a second column with g categories, the counts are split by it, shape (g, k).

        >>> load_anes96().counts("party", by="vote")[:, [0, 6]]
        array([[197,   8],
               [  3, 167]])
        """
        if by is None:
            return np.bincount(self[column].codes, minlength=len(self[column].labels))
        rows, k = self[by], len(self[column].labels)
        joint = np.bincount(rows.codes * k + self[column].codes, minlength=len(rows.labels) * k)
        return joint.reshape(len(rows.labels), k)

    def conditional(self, column: str, given: str) -> Array:
        """Compute P(column | given), shape (g, k): a distribution for each category of `given`.

        >>> p0, p1 = load_anes96().conditional("income", given="vote")
        >>> p0.shape, round(float(abs(p0 - p1).sum() / 2), 6)
        ((24,), 0.188323)
        """
        counts = self.counts(column, given)
        rows = zip(self.labels(given), counts, strict=True)
        table = np.stack([from_counts(row, f"{column} given {given} = {label}") for label, row in rows])
        table.setflags(write=False)
        return table

    def to_pandas(self) -> Any:
        """Convert to a pandas data frame of ordered categoricals with the labels; needs pandas."""
        import pandas

        return pandas.DataFrame(
            {
                name: pandas.Categorical.from_codes(column.codes, categories=list(column.labels), ordered=True)
                for name, column in self.columns.items()
            }
        )

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name} ({len(column.labels)})" for name, column in self.columns.items())
        return f"SurveyTable({self.name}: {len(self)} respondents; {kinds})"


_PARTIES = (
    "strong Democrat", "weak Democrat", "independent, leans Democrat", "independent",
    "independent, leans Republican", "weak Republican", "strong Republican",
)  # fmt: skip

_INCOMES = (
    "under $3,000", "$3,000-4,999", "$5,000-6,999", "$7,000-8,999", "$9,000-9,999", "$10,000-10,999",
    "$11,000-11,999", "$12,000-12,999", "$13,000-13,999", "$14,000-14,999", "$15,000-16,999", "$17,000-19,999",
    "$20,000-21,999", "$22,000-24,999", "$25,000-29,999", "$30,000-34,999", "$35,000-39,999", "$40,000-44,999",
    "$45,000-49,999", "$50,000-59,999", "$60,000-74,999", "$75,000-89,999", "$90,000-104,999", "$105,000 and over",
)  # fmt: skip

_EDUCATION = (
    "8 grades or less", "some high school", "high school diploma", "some college",
    "community college degree", "Bachelor's degree", "advanced degree",
)  # fmt: skip

_VOTES = ("Clinton", "Dole")


@cache
def load_anes96() -> SurveyTable:
    """Load 944 voters of the 1996 American National Election Study.

    The columns are party (7 categories), income (24), education (7) and vote (2). The data are in the public domain;
    `provenance` states the source of this extract and how it was made.

    >>> load_anes96()
    SurveyTable(anes96: 944 respondents; party (7), income (24), education (7), vote (2))
    >>> load_anes96().labels("vote")
    ('Clinton', 'Dole')
    """
    data = files("ldpopt") / "data"
    with (data / "anes96.csv").open("rb") as file:
        codes = np.loadtxt(file, dtype=np.intp, delimiter=",", skiprows=1)
    questions = {  # question, labels, code of the first label: in the order of the file's columns
        "party": ("party identification", _PARTIES, 0),
        "income": ("household income", _INCOMES, 1),
        "education": ("highest level of education", _EDUCATION, 1),
        "vote": ("expected vote", _VOTES, 0),
    }
    columns = {
        name: Column(question, labels, codes[:, position] - first)
        for position, (name, (question, labels, first)) in enumerate(questions.items())
    }
    return SurveyTable("anes96", (data / "anes96.txt").read_text("utf-8"), columns)
