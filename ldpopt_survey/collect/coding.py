"""A column of raw answers -> positions among the categories -> reports of an exact channel, by integers and not floats.

The question's policies decide about odd answers; a report follows from comparing a random word with integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid
from ldpopt.exact import ExactChannel
from ldpopt.extras import pa, pc
from ldpopt.values.labels import as_text
from ldpopt_survey.collect.manifest import NO_ROWS, add_fingerprints, row_set
from ldpopt_survey.collect.words import CHUNK_WORDS, WordArray, Words
from ldpopt_survey.datafiles.columns import is_one_of, to_numbers
from ldpopt_survey.datafiles.pieces import values_hidden
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE, Part, PlannedQuestion
from ldpopt_survey.plan.reading import spellings_of, truth_value
from ldpopt_survey.plan.spec import QuestionSpec
from ldpopt_survey.records import key, listed, mapped, whole

__all__ = ["Sampler"]

Codes = npt.NDArray[np.unsignedinteger[Any]]

_GUIDE_BITS = 12
_GUIDE_CELLS = 1 << 18
_STRIDE = 32 * CHUNK_WORDS  # after so many answers, the words in cut cells are searched together


class Sampler:
    """Reports of an exact channel, one 64-bit word each.

    The report for answer x and word w is the number of cumulative weights of row x that are at most the top `bits` bits
    of w. So exactly weights[x, y] of the 2**bits values give output y. A guide table, indexed by the first bits of the
    word, decides nearly every report by one look-up. If a threshold cuts the cell of the table, the word is compared
    with the thresholds themselves. A report takes O(1) steps, or O(log m) in a cut cell.

    >>> from ldpopt_survey.collect.words import ListedWords
    >>> every = np.arange(4, dtype=np.uint64) << np.uint64(62)
    >>> Sampler(ExactChannel([[3, 1], [1, 3]], bits=2)).reports(np.zeros(4, np.uint8), ListedWords(every))
    array([0, 0, 0, 1], dtype=uint8)
    """

    def __init__(self, channel: ExactChannel) -> None:
        k, m = channel.shape
        self.inputs = k
        self._bits = channel.bits
        self._steps = np.cumsum(channel.weights, axis=1)  # (k, m), ending with 2**bits
        self._guide_bits = min(_GUIDE_BITS, self._bits, max(4, (_GUIDE_CELLS // k).bit_length() - 1))
        self._kind: np.dtype[np.unsignedinteger[Any]] = np.min_scalar_type(m)
        self._cut = m  # not an output: it marks a cell that a threshold cuts
        width = 1 << (self._bits - self._guide_bits)
        starts = np.arange(1 << self._guide_bits, dtype=np.int64) * width
        first = np.stack([np.searchsorted(row, starts, side="right") for row in self._steps])
        last = np.stack([np.searchsorted(row, starts + (width - 1), side="right") for row in self._steps])
        self._guide = np.where(first == last, first, self._cut).astype(self._kind).ravel()
        self._first, self._last = first.astype(self._kind).ravel(), last.astype(self._kind).ravel()

    def reports(self, answers: Codes, words: Words) -> Codes:
        """Return the positions of the reports for answers at positions 0..k-1, shape (n,).

        It uses the next n words.
        """
        if answers.size and (answers.dtype.kind != "u" or answers.max() >= self.inputs):
            raise invalid("answers", f"unsigned positions below {self.inputs}", "others")
        reports = np.empty(len(answers), self._kind)
        word, cell, row = (np.empty(min(CHUNK_WORDS, len(answers)), np.uint64) for _ in range(3))
        for begin in range(0, len(answers), _STRIDE):
            end = min(begin + _STRIDE, len(answers))
            cut_places, cut_words, cut_cells = [], [], []
            for start in range(begin, end, CHUNK_WORDS):
                stop = min(start + CHUNK_WORDS, end)
                w, c, r = word[: stop - start], cell[: stop - start], row[: stop - start]
                y = reports[start:stop]
                words.fill(w)
                np.right_shift(w, np.uint64(64 - self._guide_bits), out=c)
                r[:] = answers[start:stop]
                r <<= np.uint64(self._guide_bits)
                c |= r
                # All cells are in range, so mode="clip" changes nothing but spares numpy a check of every index.
                np.take(self._guide, c.view(np.int64), out=y, mode="clip")
                cut_positions = np.flatnonzero(y == self._cut)
                cut_places.append(cut_positions + start)
                cut_words.append(w[cut_positions])
                cut_cells.append(c[cut_positions])
            places = np.concatenate(cut_places)
            reports[places] = self._search(np.concatenate(cut_cells), np.concatenate(cut_words))
        return reports

    def _search(self, cells: WordArray, words: WordArray) -> npt.NDArray[np.intp]:
        """The number of steps that are at most the word's top bits, by bisection among the steps that cut its cell."""
        value = (words >> np.uint64(64 - self._bits)).astype(np.int64)
        x = (cells >> np.uint64(self._guide_bits)).astype(np.intp)
        low, high = self._first[cells].astype(np.intp), self._last[cells].astype(np.intp)
        while (low < high).any():
            middle = (low + high) >> 1
            is_above = (low < high) & (self._steps[x, middle] <= value)
            low, high = np.where(is_above, middle + 1, low), np.where(is_above, high, middle)
        return low


_COUNTS = key(load=lambda data, name: dict(mapped(whole)(data, name))).metadata


@dataclass
class Tally:
    """The counts of one privatization. They are not private, and are for the holder of the answers alone.

    - `rows` : the number of reports written.
    - `duplicates` : the number of rows left out because an earlier row has the same respondent.
    - `row_set` : the fingerprint of the rows (a keyed checksum of their respondents), as in the manifest of the
      reports.
    - `other_rounds` : the number of other rounds with reports of the same answers, according to the ledger.
    - `left_out` : the number of rows of respondents whose consent form does not cover a further round.
    - `rounds` : the number of respondents who have now answered one round of the survey, two, ..., if a ledger knows
      ids.
    - `gone` : the number of respondents of the previous round who are not in this one.
    - `unknown`, `missing` : for each question, the number of unknown and missing answers that its policy handled.
    """

    rows: int = key(load=whole, default=0)
    duplicates: int = key(load=whole, default=0)
    unknown: dict[str, int] = field(default_factory=dict, metadata=_COUNTS)
    missing: dict[str, int] = field(default_factory=dict, metadata=_COUNTS)
    row_set: str = key(load=row_set, default=NO_ROWS)
    other_rounds: int = key(load=whole, default=0)
    left_out: int = key(load=whole, default=0)
    rounds: tuple[int, ...] = key(load=listed(whole), default=())
    gone: int = key(load=whole, default=0)

    def __add__(self, other: Tally) -> Tally:
        rows = add_fingerprints([self.row_set, other.row_set])
        total = Tally(self.rows + other.rows, self.duplicates + other.duplicates, row_set=rows)
        for name in ("unknown", "missing"):
            own_counts, other_counts = getattr(self, name), getattr(other, name)
            getattr(total, name).update(
                {key: own_counts.get(key, 0) + other_counts.get(key, 0) for key in {**own_counts, **other_counts}}
            )
        return total

    @classmethod
    def total(cls, tallies: Iterable[Tally], plan: Plan) -> Tally:
        """Sum tallies, with a zero for every question of the plan whose policies were not needed."""
        zeros = dict.fromkeys(plan.answers, 0)
        return sum(tallies, cls(unknown=dict(zeros), missing=dict(zeros)))


class Coder:
    """Finds the position of each answer to one question among its categories."""

    def __init__(self, question: Part | PlannedQuestion | QuestionSpec) -> None:
        reading = question.reading
        codes = [(code, _place(question, label)) for code, label in reading.codes]
        mapped_codes = {code for code, _ in codes}
        codes += [
            (text, place) for place, text in enumerate(map(as_text, question.categories)) if text not in mapped_codes
        ]
        codes += _truth_spellings(question, {code for code, _ in codes})
        code_texts = [code for code, _ in codes]
        self._question = question
        self._kind = np.min_scalar_type(len(question.categories))
        self._of_code = np.array([*(place for _, place in codes), -1])  # an answer without a category has position -1
        self._text = pa.array(code_texts, pa.string())
        # A column of numbers is compared as numbers: 7, 7.0 and the text "7" are one answer.
        integer_texts = [
            text if text.removeprefix("-").isdecimal() and str(int(text)) == text else None for text in code_texts
        ]
        self._whole = pa.array([int(t) if t is not None and len(t) < 18 else None for t in integer_texts], pa.int64())
        # A missing answer that is left out is drawn like the others, but not written.
        missing = question.categories[0] if reading.left_out else question.missing
        self._codes = {
            policy: None if label is None else _place(question, label)
            for policy, label in (("unknown", question.unknown), ("missing", missing))
        }

    def read(self, column: Any, tally: Tally, row: Callable[[int], int]) -> tuple[Codes, npt.NDArray[np.bool_] | None]:
        """Return unsigned positions for a pyarrow array of answers, and a mask of empty reports.

        Reports stay empty where missing answers are left out; the mask is None if the question does not leave them out.

        tally : counts the answers that the policies mapped.

        row : maps a position in the column to the number of the data row, for the message when a policy refuses.
        """
        codes, is_missing = self.positions(column)
        unsigned_codes = codes.astype(self._kind)
        if is_missing is not None:
            self._apply("missing", unsigned_codes, is_missing, tally, row)
        is_unknown = codes < 0
        if is_unknown.any():
            self._apply(
                "unknown", unsigned_codes, is_unknown if is_missing is None else is_unknown & ~is_missing, tally, row
            )
        return unsigned_codes, is_missing if self._question.reading.left_out else None

    def positions(self, column: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        """Find the positions before any policy, -1 for an answer without a category.

        Also returns a mask of the missing answers; None if there are none.
        """
        column = values_hidden(f"column {self._question.column!r}", self._without_codes, column)
        codes = values_hidden(f"column {self._question.column!r}", self._positions, column)
        may_have_nulls = column.null_count or pa.types.is_floating(column.type)
        return codes, _to_numpy(pc.is_null(column, nan_is_null=True)) if may_have_nulls else None

    def _without_codes(self, column: Any) -> Any:
        """The column with null in place of the codes that stand for "no answer"."""
        reading = self._question.reading
        if not (reading.missing_codes or reading.bins or reading.separator):
            return column
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not reading.missing_codes:
            return column
        return pc.if_else(is_one_of(column, reading.missing_codes), pa.scalar(None, column.type), column)

    def _positions(self, column: Any) -> npt.NDArray[Any]:
        """The position of each answer among the categories, or -1 for an answer that is none of them."""
        if self._question.reading.bins:
            numbers = _to_numpy(pc.fill_null(to_numbers(column), float("nan")))
            places = np.searchsorted(np.asarray(self._question.reading.bins), numbers, side="right")
            return np.where(np.isnan(numbers), -1, places)
        if self._question.reading.separator:
            return self._last_listed(pc.cast(column, pa.large_string()))
        return np.asarray(self._of_code[_to_numpy(pc.fill_null(self._lookup(column), -1))])

    def _last_listed(self, column: Any) -> npt.NDArray[Any]:
        """The last of the categories in each cell's list: the first for an empty list, -1 if an entry is none."""
        lists = pc.split_pattern(pc.fill_null(column, ""), self._question.reading.separator)
        parents, entries = _to_numpy(pc.list_parent_indices(lists)), pc.utf8_trim_whitespace(pc.list_flatten(lists))
        is_filled = _to_numpy(pc.greater(pc.binary_length(entries), 0))
        places = self._of_code[_to_numpy(pc.fill_null(self._lookup(entries), -1))]
        positions = np.zeros(len(column), np.int64)
        np.maximum.at(positions, parents[is_filled], places[is_filled])
        positions[parents[is_filled & (places < 0)]] = -1
        return positions

    def _apply(
        self, policy: str, codes: Codes, is_affected: npt.NDArray[np.bool_], tally: Tally, row: Callable[[int], int]
    ) -> None:
        count = int(np.count_nonzero(is_affected))
        if not count:
            return
        code = self._codes[policy]
        if code is None:
            name, expected = self._question.name, f"one of its {len(self._question.categories)} categories"
            got = "no answer" if policy == "missing" else "an answer outside them"
            place = f"row {row(int(np.argmax(is_affected)))}, column {self._question.column!r}"
            raise invalid(f"question {name!r}", f"{expected} (or a policy for {policy} answers)", Phrase(got), place)
        codes[is_affected] = code
        counts = getattr(tally, policy)
        counts[self._question.name] = counts.get(self._question.name, 0) + count

    def _lookup(self, column: Any) -> Any:
        """An int32 array of positions, null where the answer is not a category."""
        if pa.types.is_dictionary(column.type):
            return self._lookup(column.dictionary).take(column.indices)
        if pa.types.is_floating(column.type):
            number = pc.cast(column, pa.float64())
            is_integer = pc.and_(pc.equal(pc.floor(number), number), pc.less(pc.abs(number), 2.0**53))
            column = pc.cast(pc.if_else(is_integer, number, None), pa.int64())
        if pa.types.is_integer(column.type):
            if pa.types.is_uint64(column.type):
                column = pc.if_else(pc.less(column, pa.scalar(1 << 63, pa.uint64())), column, None)
            places = pc.index_in(pc.cast(column, pa.int64()), self._whole)
            return pc.if_else(pc.is_valid(column), places, None)  # a null is not a category, even among null categories
        return pc.index_in(pc.cast(column, pa.string()), self._text)


class JointCoder:
    """Finds the position, among a question's categories, of each respondent's answers to all of its parts."""

    def __init__(self, question: PlannedQuestion) -> None:
        self._parts = question.answers
        self._coders = [Coder(part) for part in self._parts]
        self._cells = None
        if question.parts:
            self._cells = np.full([len(part.categories) for part in question.parts], len(question.categories))
            self._cells[tuple(question.places.T)] = np.arange(len(question.categories))
        self._kind = np.min_scalar_type(len(question.categories))

    def read(self, batch: Any, tally: Tally, row: Callable[[int], int]) -> tuple[Codes, npt.NDArray[np.bool_] | None]:
        """Return positions of joint answers, as `Coder.read` does, for a record batch.

        A part is not read for respondents who are not asked it because of their earlier answers.
        """
        if self._cells is None:
            return self._coders[0].read(batch.column(self._parts[0].column), tally, row)
        codes: dict[str, npt.NDArray[Any]] = {}
        parts = {part.name: part for part in self._parts}
        is_missing = np.zeros(batch.num_rows, dtype=bool)
        for part, coder in zip(self._parts, self._coders, strict=True):
            column = batch.column(part.column)
            if not isinstance(part, Part) or not part.asked_if:
                codes[part.name], is_empty = coder.read(column, tally, row)
            else:
                asked_rows = np.arange(batch.num_rows)
                for name, labels in part.asked_if:
                    places = [x for x, label in enumerate(parts[name].categories) if label in labels]
                    asked_rows = asked_rows[np.isin(codes[name][asked_rows], places)]

                def row_asked(place: int, asked_rows: npt.NDArray[Any] = asked_rows) -> int:
                    return row(int(asked_rows[place]))

                part_codes, part_empty = coder.read(column.take(asked_rows), tally, row_asked)
                codes[part.name] = np.full(batch.num_rows, len(part.categories) - 1, part_codes.dtype)
                codes[part.name][asked_rows] = part_codes
                is_empty = None if part_empty is None else np.isin(np.arange(batch.num_rows), asked_rows[part_empty])
            is_missing |= False if is_empty is None else is_empty
        cells = self._cells[tuple(codes[part.name] for part in self._parts)]
        left_out = any(part.reading.left_out for part in self._parts)
        return np.where(is_missing, 0, cells).astype(self._kind), is_missing if left_out else None


def _truth_spellings(
    question: Part | PlannedQuestion | QuestionSpec, excluded_texts: set[str]
) -> list[tuple[str, int]]:
    """The common spellings of true and false, with their places, if the answers are such a pair."""
    answers = [label for label in question.categories if label != NOT_APPLICABLE]
    if question.reading.own_category:
        answers = [label for label in answers if label != question.missing]
    if question.reading.separator or question.reading.bins or len(answers) != 2:
        return []
    values = [truth_value(as_text(label)) for label in answers]
    if set(values) != {True, False}:
        return []
    pairs = zip(answers, values, strict=True)
    return [
        (spelling, _place(question, label))
        for label, value in pairs
        for spelling in spellings_of(bool(value))
        if spelling not in excluded_texts
    ]


def _place(question: Part | PlannedQuestion | QuestionSpec, label: Any) -> int:
    return [type(category) is type(label) and category == label for category in question.categories].index(True)


def _to_numpy(array: Any) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))
