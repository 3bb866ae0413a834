"""The rows of a frontier as CSV, as a data frame and as HTML."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from html import escape
from typing import Any


class Table(ABC):
    """What the frontiers share: columns by name."""

    @abstractmethod
    def _columns(self) -> dict[str, list[Any]]:
        """The columns, all of one length."""

    def to_csv(self) -> str:
        """The table as CSV text."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        columns = self._columns()
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return out.getvalue()

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def _repr_html_(self) -> str:
        columns = self._columns()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        rows = zip(*columns.values(), strict=True)
        body = "".join("<tr>" + "".join(f"<td>{escape(shown(v))}</td>" for v in row) + "</tr>" for row in rows)
        return f"<table><tr>{head}</tr>{body}</table>"


def shown(value: Any) -> str:
    """A value of the table as people read it."""
    if isinstance(value, tuple):
        return ", ".join(f"{part:g}" for part in value)
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
