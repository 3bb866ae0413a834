"""A batch of rows -> its reports. The rest of this folder moves the input and the output of this step.

Rows whose respondent has an earlier row are found in constant memory, by keyed pseudonyms spilled to disk.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.extras import pa, pc
from ldpopt.files.table import lacking_column
from ldpopt_survey.collect.answers import values_hidden
from ldpopt_survey.collect.coding import JointCoder, Sampler, Tally
from ldpopt_survey.collect.leaks import MAX_SAMPLED_ROWS, find_leaks, refuse_leaks
from ldpopt_survey.collect.manifest import SIMULATED, Manifest, add_fingerprints, with_manifest
from ldpopt_survey.collect.randomness import Randomness, WordSource, default_randomness
from ldpopt_survey.collect.words import SecretKey
from ldpopt_survey.plan.plan import BOOKLET, Plan

BUCKET_ROWS = 1 << 19
_RECORD = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<i8")])


def duplicate_rows(identities: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Find the sorted row numbers of all but the first row of every identity.

    identities : (n, 2) 128-bit pseudonyms.

    rows : (n,) their row numbers, increasing.

    >>> duplicate_rows(np.array([[1, 2], [1, 3], [1, 2]], np.uint64), np.array([10, 11, 12]))
    array([12])
    """
    order = np.argsort(identities[:, 0])
    sorted_words = identities[order, 0]
    tied_positions = np.flatnonzero(sorted_words[1:] == sorted_words[:-1])
    if len(tied_positions) == 0:
        return np.empty(0, np.int64)
    # Only rows that share their first word are compared in full.
    suspects = np.unique(order[np.union1d(tied_positions, tied_positions + 1)])
    by_identity = suspects[np.lexsort((suspects, identities[suspects, 1], identities[suspects, 0]))]
    sorted_identities = identities[by_identity]
    repeated_positions = np.flatnonzero((sorted_identities[1:] == sorted_identities[:-1]).all(axis=1)) + 1
    return np.sort(rows[by_identity[repeated_positions]])


def bucket_count(rows: int) -> int:
    """Return the number of buckets of about `BUCKET_ROWS` rows; a power of two, at most 2**16."""
    return min(1 << max(0, (rows // BUCKET_ROWS).bit_length()), 1 << 16)


def pack_identities(identities: npt.NDArray[np.uint64], first_row: int, buckets: int) -> bytes:
    """Return a partition's identities and row numbers as file contents, grouped by bucket."""
    bucket = (identities[:, 0] & np.uint64(buckets - 1)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    records = np.empty(len(identities), _RECORD)
    records["high"], records["low"] = identities[order, 0], identities[order, 1]
    records["row"] = order + first_row
    ends = np.zeros(buckets + 1, "<i8")
    ends[1:] = np.cumsum(np.bincount(bucket, minlength=buckets))
    return ends.tobytes() + records.tobytes()


def duplicates_in_bucket(paths: Sequence[Path], bucket: int, buckets: int) -> npt.NDArray[np.int64]:
    """Return the duplicate rows among all spilled identities of one bucket."""
    parts: list[npt.NDArray[Any]] = []
    for path in paths:
        with open(path, "rb") as file:
            file.seek(8 * bucket)
            start, stop = np.fromfile(file, "<i8", 2)
            file.seek(8 * (buckets + 1) + _RECORD.itemsize * int(start))
            parts.append(np.fromfile(file, _RECORD, int(stop - start)))
    records = np.concatenate(parts)
    identities = np.stack([records["high"], records["low"]], axis=1)
    return duplicate_rows(identities, np.asarray(records["row"], np.int64))


Rows = npt.NDArray[np.int64]


def columns_of(plan: Plan) -> list[str]:
    """Return the columns of the answers that a plan needs."""
    question_columns = [part.column for question in plan.questions for part in question.answers] + list(plan.carry)
    return list(dict.fromkeys(question_columns + ([plan.respondent] if plan.respondent else [])))


def ids_of(column: Any, name: str, first_row: int = 1) -> Any:
    """Normalize respondent ids as text.

    5, "5.0", "00005" and " 5" are one person, and "1e+05" is 100000."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):  # as spreadsheets and pandas keep whole numbers
        column = values_hidden(f"{name}, whole numbers", pc.cast, column, pa.int64())
    texts = (pa.string(), pa.large_string(), pa.string_view())
    if not (column.type in texts or pa.types.is_integer(column.type)):
        raise invalid(name, "text or integers", str(column.type))
    column = values_hidden(name, pc.cast, column, pa.large_string())
    if pc.any(pc.match_substring_regex(column, r"^[+0\s]|\s$|\.0*$|[eE]\+[0-9]{2}|[^\x00-\x7f]")).as_py():
        column = pc.replace_substring_regex(column, r"\p{Cf}", "")  # invisible characters, such as a byte-order mark
        column = pc.utf8_trim_whitespace(pc.utf8_normalize(column, "NFKC"))
        is_irregular = pc.fill_null(
            pc.match_substring_regex(column, r"^[0-9](\.[0-9]+)?[eE]\+[0-9]{2}$|[^\x00-\x7f]"), False
        )
        normalized = pa.array(map(_normalize_id, pc.filter(column, is_irregular).to_pylist()), pa.large_string())
        column = pc.replace_with_mask(column, is_irregular, normalized)
        column = pc.replace_substring_regex(column, r"^\+?0*([0-9]+)(?:\.0*)?$", r"\1")
    is_empty = pc.fill_null(pc.equal(pc.binary_length(column), 0), True)
    if pc.any(is_empty).as_py():
        raise InvalidInput(f"{name}: row {first_row + pc.index(is_empty, True).as_py()} has no id")
    return column


_POWER = re.compile(r"[0-9](\.[0-9]+)?[eE]\+[0-9]{2}")
"""How R and spreadsheets write large whole numbers."""


def _normalize_id(id_text: str) -> str:
    """An id with the digits 0 to 9 for those of other scripts, and a whole number for its power of ten."""
    digits = "".join(str(unicodedata.decimal(digit, digit)) for digit in id_text)
    is_integer_power = _POWER.fullmatch(digits) and (number := Decimal(digits)) == number.to_integral_value()
    return f"{number:f}" if is_integer_power else digits


def drop_rows(batch: Any, first_row: int, dropped_rows: Rows) -> tuple[Any, Rows]:
    """Select the rows of a record batch that are not dropped, and their numbers.

    first_row : the number of the first row of the batch.
    """
    numbers = np.arange(first_row, first_row + batch.num_rows)
    excluded_numbers = dropped_rows[
        np.searchsorted(dropped_rows, first_row) : np.searchsorted(dropped_rows, first_row + batch.num_rows)
    ]
    if len(excluded_numbers):
        numbers = np.delete(numbers, excluded_numbers - first_row)
        batch = batch.take(pa.array(numbers - first_row))
    return batch, numbers


class Privatizer:
    """A plan made ready to privatize partitions of rows."""

    def __init__(self, plan: Plan, mode: str, key: SecretKey) -> None:
        self.plan, self.mode, self.columns = plan, mode, columns_of(plan)
        self.source = WordSource(plan, mode, key)
        self._coders = [JointCoder(question) for question in plan.questions]
        self._samplers = [Sampler(question.channel) for question in plan.questions]
        self._labels = [pa.array(question.reports, pa.string()) for question in plan.questions]

    def ids(self, batch: Any, first_row: int) -> Any:
        """Return the respondent ids of a record batch as normalized text."""
        return ids_of(batch.column(self.plan.respondent), f"respondent column {self.plan.respondent!r}", first_row)

    def partition(self, batches: Iterable[Any], index: int, first_row: int, dropped_rows: Rows) -> tuple[Any, Tally]:
        """Privatize partition `index`.

        Returns a pyarrow table of reports with its manifest, and the tally of the policies.

        batches : pyarrow record batches of the partition's rows, the first being row `first_row`.

        dropped_rows : sorted numbers of the rows to leave out.
        """
        streams, tally, report_batches = self.source.streams(index), Tally(), []
        if streams is not None:
            tally.row_set = self.source.row_set(None, index)
        for batch in batches:
            retained_rows, numbers = drop_rows(batch, first_row, dropped_rows)
            report_batches.append(self._reports(retained_rows, numbers, streams, tally))
            tally.rows += len(numbers)
            tally.duplicates += batch.num_rows - len(numbers)
            first_row += batch.num_rows
        manifest = Manifest.from_plan(self.plan, self.mode, tally.rows, [tally.row_set])
        return with_manifest(values_hidden("carried columns", _one_table, report_batches), manifest), tally

    def _reports(self, batch: Any, numbers: Rows, streams: Any, tally: Tally) -> Any:
        respondents = None
        if streams is None:
            respondents = self.source.respondents(self.ids(batch, int(numbers[0]) if len(numbers) else 0))
            tally.row_set = add_fingerprints([tally.row_set, self.source.row_set(respondents, 0)])
        columns = {}
        if booklets := self.plan.booklets:
            booklet_positions = self.source.booklets(streams, respondents, len(numbers))
            booklet_names = [question.name for question in booklets]
            columns[BOOKLET] = pa.DictionaryArray.from_arrays(
                pa.array(booklet_positions, pa.int32()), pa.array(booklet_names, pa.string())
            )
        for q, question in enumerate(self.plan.questions):
            if question.probability == 1:
                columns[question.name] = self._column(q, batch, numbers, streams, respondents, tally)
                continue
            places = np.flatnonzero(booklet_positions == booklet_names.index(question.name))
            booklet_respondents = None if respondents is None else respondents.take(places)
            reports = self._column(
                q, batch.take(pa.array(places)), numbers[places], streams, booklet_respondents, tally
            )
            report_indices = np.full(len(numbers), -1)
            report_indices[places] = np.arange(len(places))
            columns[question.name] = reports.take(pa.array(report_indices, mask=report_indices < 0))
        for name in self.plan.carry:
            columns[name] = batch.column(name)
        return pa.record_batch(columns)

    def _column(self, q: int, batch: Any, numbers: Rows, streams: Any, respondents: Any, tally: Tally) -> Any:
        """The reports of question number q, as an arrow dictionary array."""
        answers, empty = self._coders[q].read(batch, tally, lambda place: int(numbers[place]))
        reports = self._samplers[q].reports(answers, self.source.words(q, streams, respondents, answers))
        signed_positions = (
            reports.view(f"i{reports.itemsize}") if len(self._labels[q]) < 1 << 7 else reports.astype(np.int32)
        )
        return pa.DictionaryArray.from_arrays(pa.array(signed_positions, mask=empty), self._labels[q])


def privatize_frame(plan: Plan, answers: Any, randomness: Randomness | None = None) -> tuple[Any, Tally]:
    """Privatize a data frame in memory: (pyarrow table of reports, tally).

    Parameters
    ----------
    plan : The plan.
    answers : A pandas, Polars or pyarrow table with the plan's columns, one row per respondent. Any other object with
    the
        Arrow stream interface or the older data frame interchange protocol is accepted, too.
    randomness : As in `privatize`.

    Returns
    -------
    (pyarrow.Table, Tally)
        One report for each question and respondent, in the order of the rows, with the plan's carried columns; and the
        counts of the plan's policies.

    Raises
    ------
    InvalidInput
        For answers that the plan refuses.

    >>> import numpy as np, pyarrow as pa
    >>> from ldpopt_survey.plan.plan import make_plan
    >>> from ldpopt_survey.collect.randomness import Simulated
    >>> from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes")),))
    >>> plan = make_plan(spec, {"vote": [[0.75, 0.25], [0.25, 0.75]]})
    >>> reports, tally = privatize_frame(plan, pa.table({"vote": ["no", "yes"]}), Simulated(np.random.default_rng(0)))
    >>> reports.num_rows, tally.unknown
    (2, {'vote': 0})
    """
    randomness = default_randomness(plan, randomness)
    privatizer = Privatizer(plan, randomness.mode, randomness.key())
    table = _table(answers, privatizer.columns)
    table = table.select(privatizer.columns).combine_chunks()
    if randomness.mode != SIMULATED and table.num_rows:
        refuse_leaks(find_leaks(plan, table.slice(0, MAX_SAMPLED_ROWS)), plan.revealed)
    batches = table.to_batches(1 << 16)
    dropped_rows: Rows = np.empty(0, np.int64)
    if plan.respondent is not None:
        identities, row = [], 1
        for batch in batches:
            identities.append(privatizer.source.identities(privatizer.ids(batch, row)))
            row += batch.num_rows
        pseudonyms = np.concatenate([np.empty((0, 2), np.uint64), *identities])
        dropped_rows = duplicate_rows(pseudonyms, np.arange(1, len(pseudonyms) + 1))
        refuse_duplicates(plan, dropped_rows)
    if not batches:
        raise InvalidInput("answers: the input has no rows; expected at least one")
    reports, tally = privatizer.partition(batches, 0, 1, dropped_rows)
    return reports, Tally.total([tally], plan)


def _one_table(record_batches: list[Any]) -> Any:
    """Record batches as one table. A carried column may have related types in different files; they become one type."""
    if all(batch.schema == record_batches[0].schema for batch in record_batches):
        return pa.Table.from_batches(record_batches)
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in record_batches], promote_options="permissive")


def _table(answers: Any, columns: list[str]) -> Any:
    """The needed columns of any library's data frame as a pyarrow table."""
    if not hasattr(answers, "__arrow_c_stream__") and not hasattr(answers, "__dataframe__"):
        raise invalid("answers", "a data frame with the Arrow stream interface", Phrase(type(answers).__name__))
    names = None if hasattr(answers, "column_names") else getattr(answers, "columns", None)
    if names is None:
        table = values_hidden("the data frame", _converted, answers)
        _require_once(columns, table.column_names)
        return table
    # pandas and Polars: only the columns that are needed are converted.
    _require_once(columns, list(names))
    for name in columns:
        values_hidden(f"column {name!r} of the data frame", _converted, answers[[name]])
    return values_hidden("the data frame", _converted, answers[columns])


def _converted(answers: Any) -> Any:
    from pyarrow.interchange import from_dataframe

    return pa.table(answers) if hasattr(answers, "__arrow_c_stream__") else from_dataframe(answers)


def _require_once(columns: list[str], names: list[str]) -> None:
    require_columns(columns, names, "the data frame")
    for name in columns:
        if names.count(name) > 1:
            raise invalid("answers", f"one column {name!r}", Phrase("two"), "the data frame")


def require_columns(required_names: list[str], names: list[str], where: str) -> None:
    """Raise `InvalidInput` unless every needed column is there."""
    missing_columns = [name for name in required_names if name not in names]
    if missing_columns:
        raise lacking_column("answers", missing_columns[0], names, where)


def refuse_duplicates(plan: Plan, dropped_rows: Rows) -> None:
    """Raise `InvalidInput` for a respondent's second row, unless the plan keeps only the first."""
    if len(dropped_rows) and not plan.first_of_duplicates:
        name = f"respondent column {plan.respondent!r}"
        raise InvalidInput(f"{name}: row {int(dropped_rows.min())} is the second row of its respondent")
