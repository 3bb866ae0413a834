"""From a column of raw answers to category positions, under the question's stated policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import invalid
from ldpopt.labels import as_text
from ldpopt.survey.collect.answers import values_hidden
from ldpopt.survey.collect.rowset import NO_ROWS, total
from ldpopt.survey.collect.sampler import Codes
from ldpopt.survey.plan.plan import Plan, PlannedQuestion


@dataclass
class Tally:
    """What privatizing did to the rows: for the holder of the answers, since these counts are not private.

    rows : reports written; duplicates : rows left out, because an earlier row has their respondent.
    row_set : the fingerprint of the rows, as in the manifest of their reports.
    unknown, missing : by question, answers that were mapped to the category of its policy.
    """

    rows: int = 0
    duplicates: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    row_set: str = NO_ROWS

    def __add__(self, other: Tally) -> Tally:
        rows = total([self.row_set, other.row_set])
        made = Tally(self.rows + other.rows, self.duplicates + other.duplicates, row_set=rows)
        for name in ("unknown", "missing"):
            mine, theirs = getattr(self, name), getattr(other, name)
            getattr(made, name).update({key: mine.get(key, 0) + theirs.get(key, 0) for key in {**mine, **theirs}})
        return made

    @classmethod
    def total(cls, tallies: Iterable[Tally], plan: Plan) -> Tally:
        """The sum, with a zero for every question of the plan that needed no policy."""
        zeros = {question.name: 0 for question in plan.questions}
        return sum(tallies, cls(unknown=dict(zeros), missing=dict(zeros)))


class Coder:
    """Positions of the answers to one question among its categories."""

    def __init__(self, question: PlannedQuestion) -> None:
        import pyarrow as pa

        written = [as_text(label) for label in question.categories]
        self._question = question
        self._kind = np.min_scalar_type(len(written))
        self._text = pa.array(written, pa.string())
        # A column of numbers is compared as numbers: 7, 7.0 and the text "7" are one answer.
        whole = [text if text.removeprefix("-").isdecimal() and str(int(text)) == text else None for text in written]
        self._whole = pa.array([int(t) if t is not None and len(t) < 18 else None for t in whole], pa.int64())
        self._codes = {"unknown": self._position(question.unknown), "missing": self._position(question.missing)}

    def codes(self, column: Any, tally: Tally, row: Callable[[int], int]) -> Codes:
        """Unsigned positions for a pyarrow array of answers, counting in `tally` what policies mapped.

        row : the number of the data row at a place of the column, for the message when a policy refuses.
        """
        import pyarrow.compute as pc

        found = values_hidden(f"column {self._question.column!r}", self._lookup, column)
        absent = _to_numpy(pc.is_null(column, nan_is_null=True)) if column.null_count or _floating(column) else None
        codes = _to_numpy(pc.fill_null(found, -1))
        made = codes.astype(self._kind)
        if absent is not None:
            self._apply("missing", made, absent, tally, row)
        if found.null_count:
            unknown = codes < 0
            self._apply("unknown", made, unknown if absent is None else unknown & ~absent, tally, row)
        return made

    def _apply(
        self, policy: str, made: Codes, where: npt.NDArray[np.bool_], tally: Tally, row: Callable[[int], int]
    ) -> None:
        count = int(np.count_nonzero(where))
        if not count:
            return
        code = self._codes[policy]
        if code is None:
            name, listed = self._question.name, f"one of its {len(self._question.categories)} categories"
            got = "no answer" if policy == "missing" else "an answer outside them"
            at = f"row {row(int(np.argmax(where)))}, column {self._question.column!r}"
            raise invalid(f"question {name!r}", f"{listed} (or a policy for {policy} answers)", got, at)
        made[where] = code
        counts = getattr(tally, policy)
        counts[self._question.name] = counts.get(self._question.name, 0) + count

    def _position(self, label: Any) -> int | None:
        if label is None:
            return None
        same = [type(one) is type(label) and one == label for one in self._question.categories]
        return same.index(True)

    def _lookup(self, column: Any) -> Any:
        """An int32 array of positions, null where the answer is no category."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_dictionary(column.type):
            return self._lookup(column.dictionary).take(column.indices)
        if pa.types.is_floating(column.type):
            number = pc.cast(column, pa.float64())
            whole = pc.and_(pc.equal(pc.floor(number), number), pc.less(pc.abs(number), 2.0**53))
            column = pc.cast(pc.if_else(whole, number, None), pa.int64())
        if pa.types.is_integer(column.type):
            if pa.types.is_uint64(column.type):
                column = pc.if_else(pc.less(column, pa.scalar(1 << 63, pa.uint64())), column, None)
            found = pc.index_in(pc.cast(column, pa.int64()), self._whole)
            return pc.if_else(pc.is_valid(column), found, None)  # a null is no category, even beside null categories
        return pc.index_in(pc.cast(column, pa.string()), self._text)


def _floating(column: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(column.type))


def _to_numpy(array: Any) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))
