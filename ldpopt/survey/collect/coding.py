"""Turning a column of raw answers into category positions, under the question's policies for odd answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.datafiles.numbers import is_one_of, to_numbers
from ldpopt.datafiles.pieces import values_hidden
from ldpopt.errors import invalid
from ldpopt.labels import as_text
from ldpopt.survey.collect.rowset import NO_ROWS, total
from ldpopt.survey.collect.sampler import Codes
from ldpopt.survey.plan.plan import Plan, PlannedQuestion


@dataclass
class Tally:
    """What privatizing did to the rows. These counts are not private: they are for the holder of the answers alone.

    rows : number of reports written. duplicates : number of rows left out because an earlier row has their respondent.
    row_set : the fingerprint of the rows (a keyed checksum of whose rows they are), as in the manifest of the reports.
    unknown, missing : for each question, how many unknown and missing answers its policy handled.
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
        """The sum of tallies, with a zero for every question of the plan whose policies were not needed."""
        zeros = {question.name: 0 for question in plan.questions}
        return sum(tallies, cls(unknown=dict(zeros), missing=dict(zeros)))


class Coder:
    """Finds the position of each answer to one question among its categories."""

    def __init__(self, question: PlannedQuestion) -> None:
        import pyarrow as pa

        reading = question.reading
        codes = [(code, self._place(question, label)) for code, label in reading.codes]
        known = {code for code, _ in codes}
        codes += [(text, at) for at, text in enumerate(map(as_text, question.categories)) if text not in known]
        written = [code for code, _ in codes]
        self._question = question
        self._kind = np.min_scalar_type(len(question.categories))
        self._of_code = np.array([*(at for _, at in codes), -1])  # an answer without a category has position -1
        self._text = pa.array(written, pa.string())
        # A column of numbers is compared as numbers: 7, 7.0 and the text "7" are one answer.
        whole = [text if text.removeprefix("-").isdecimal() and str(int(text)) == text else None for text in written]
        self._whole = pa.array([int(t) if t is not None and len(t) < 18 else None for t in whole], pa.int64())
        self._codes = {"unknown": self._position(question.unknown), "missing": self._position(question.missing)}
        if reading.left_out:
            self._codes["missing"] = 0  # drawn like the others, but not written

    def codes(self, column: Any, tally: Tally, row: Callable[[int], int]) -> Codes:
        """Unsigned positions for a pyarrow array of answers; `tally` counts the answers that the policies mapped.

        row : the number of the data row at a place of the column, for the message when a policy refuses.
        """
        return self.read(column, tally, row)[0]

    def read(self, column: Any, tally: Tally, row: Callable[[int], int]) -> tuple[Codes, npt.NDArray[np.bool_] | None]:
        """`codes`, and a mask of the rows whose report stays empty since missing answers are left out, or None."""
        import pyarrow.compute as pc

        column = values_hidden(f"column {self._question.column!r}", self._without_codes, column)
        codes = values_hidden(f"column {self._question.column!r}", self._positions, column)
        absent = _to_numpy(pc.is_null(column, nan_is_null=True)) if column.null_count or _floating(column) else None
        made = codes.astype(self._kind)
        if absent is not None:
            self._apply("missing", made, absent, tally, row)
        unknown = codes < 0
        if unknown.any():
            self._apply("unknown", made, unknown if absent is None else unknown & ~absent, tally, row)
        return made, absent if self._question.reading.left_out else None

    def _without_codes(self, column: Any) -> Any:
        """The column with null in place of the codes that stand for "no answer"."""
        import pyarrow as pa
        import pyarrow.compute as pc

        reading = self._question.reading
        if not (reading.missing_codes or reading.bins):
            return column
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not reading.missing_codes:
            return column
        return pc.if_else(is_one_of(column, reading.missing_codes), pa.scalar(None, column.type), column)

    def _positions(self, column: Any) -> npt.NDArray[Any]:
        """The position of each answer among the categories, or -1 for an answer that is none of them."""
        import pyarrow.compute as pc

        if self._question.reading.bins:
            numbers = _to_numpy(pc.fill_null(to_numbers(column), float("nan")))
            found = np.searchsorted(np.asarray(self._question.reading.bins), numbers, side="right")
            return np.where(np.isnan(numbers), -1, found)
        return np.asarray(self._of_code[_to_numpy(pc.fill_null(self._lookup(column), -1))])

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
        return None if label is None else self._place(self._question, label)

    @staticmethod
    def _place(question: PlannedQuestion, label: Any) -> int:
        return [type(one) is type(label) and one == label for one in question.categories].index(True)

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
