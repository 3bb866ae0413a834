"""Reports from paper: codes that were typed into a CSV file are checked and written as a file of reports."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.files.atomic import digest, read_text, replace_text
from ldpopt.files.delimited import PLAIN, sniff
from ldpopt_survey.collect.aggregate import report_columns
from ldpopt_survey.collect.commit import refuse_existing, write_reports
from ldpopt_survey.collect.manifest import Manifest, add_fingerprints, sidecar, with_manifest
from ldpopt_survey.paper.design import SHEET
from ldpopt_survey.plan.plan import BOOKLET, Plan


@dataclass(frozen=True)
class Entered:
    """The result of an entry: the number of `rows` written, and of rows left out because a code was missing."""

    rows: int
    left_out: int


def enter_reports(plan: Plan, codes: str | Path, reports: str | Path, leave_out_incomplete: bool = False) -> Entered:
    r"""Check the codes typed from the interviewers' sheets, and write them as reports of `plan`.

    Parameters
    ----------
    plan : The plan of the sheets.
    codes : A CSV file in UTF-8 or cp1252, cut by commas, semicolons, tabs or bars. Its columns are ``sheet``, one for
        each question by its name, and one for each carried column of the plan. Codes may be in small letters. Every
        sheet number must be there once. An empty box is the empty report of a question that leaves missing answers out.
    reports : A new file, ``*.csv`` or ``*.parquet``, in the form that `privatize` writes and `aggregate` reads.
    leave_out_incomplete : True to leave out and count the rows without a code; by default they are refused.

    Returns
    -------
    Entered
        The numbers of reports and of incomplete rows.

    Raises
    ------
    InvalidInput
        With the row and the column, but not the entry, since it may be an answer.

    >>> from tempfile import TemporaryDirectory
    >>> from ldpopt_survey import QuestionSpec, SurveySpec, aggregate, plan_survey
    >>> from ldpopt_survey.paper.design import paper_survey
    >>> from ldpopt_survey.paper.design import TWO_DICE
    >>> spec = SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))
    >>> plan = paper_survey(plan_survey(spec).plan, TWO_DICE).plan
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "codes.csv").write_text("sheet,vote\n1,A\n2,b\n3,A\n")
    ...     _ = enter_reports(plan, Path(folder, "codes.csv"), Path(folder, "reports.csv"))
    ...     aggregate(plan, Path(folder, "reports.csv")).rows
    3
    """
    import pyarrow as pa

    output = Path(reports)
    output = output.parent.resolve() / output.name
    if output.suffix not in (".csv", ".parquet"):
        raise invalid("reports", "a file named *.csv or *.parquet", Phrase(output.name))
    if not output.parent.is_dir():
        raise invalid("reports", "a folder that exists", str(output.parent))
    refuse_existing(output)
    rows, left_out = _read_rows(plan, Path(codes), leave_out_incomplete)
    if not rows:
        raise InvalidInput(f"{codes}: the codes have no complete row; expected at least one")
    empty = {question.name for question in plan.questions if question.may_be_empty}
    columns = {
        name: pa.array([row[name] or (None if name in empty else "") for row in rows.values()], pa.string())
        for name in [*report_columns(plan), *plan.carry]
    }
    # A fingerprint of each sheet of the plan, so that the same sheet is not counted twice.
    marks = (hashlib.blake2b(f"{plan.checksum}\n{sheet}".encode(), digest_size=16).hexdigest() for sheet in rows)
    manifest = Manifest.from_plan(plan, "by hand", len(rows), [add_fingerprints(marks)])
    write_reports(output, with_manifest(pa.table(columns), manifest))
    if output.suffix == ".csv":
        parts = manifest.parts
        replace_text(sidecar(output), Manifest.from_plan(plan, "by hand", len(rows), parts, digest(output)).to_json())
    return Entered(len(rows), left_out)


def _read_rows(plan: Plan, path: Path, leave_out: bool) -> tuple[dict[str, dict[str, str]], int]:
    """The complete rows by sheet number, with codes written as in the plan, and the number of rows left out."""
    dialect = sniff(path) if path.is_file() else PLAIN
    # Characters outside cp1252 are in no code; their rows are refused.
    text = read_text(path) if dialect == PLAIN else path.read_bytes().decode(dialect.encoding, "replace")
    stream = io.StringIO(text.removeprefix("\ufeff"), newline="")
    reader = csv.reader(stream, delimiter=dialect.delimiter, strict=True)
    left_out = {q.name for q in plan.questions if any(part.reading.left_out for part in q.answers)}
    owner = {code: question.name for question in plan.questions for code in question.reports}
    codes_by_question = {
        question.name: {code.upper(): code for code in question.reports} for question in plan.questions
    }
    expected_columns = [SHEET, *report_columns(plan), *plan.carry]
    rows: dict[str, dict[str, str]] = {}
    numbers: dict[str, int] = {}
    incomplete = 0
    try:
        header = [name.strip() for name in next(reader, [])]
        if sorted(header) != sorted(expected_columns):
            missing = [name for name in expected_columns if name not in header]
            got = f"none called {missing[0]!r}" if missing else "others, or one twice"
            raise invalid("codes", f"the columns {', '.join(expected_columns)}", Phrase(got), str(path))
        for number, cells in enumerate(reader, 1):
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise invalid("codes", f"{len(header)} cells in every row", len(cells), f"row {number}")
            row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
            sheet, where = row[SHEET], f"row {number}, column {SHEET!r}"
            if not sheet:
                raise InvalidInput(f"codes: {where} has no sheet number")
            if sheet in rows:
                got = f"that of row {numbers[sheet]} again"
                raise invalid("codes", "every sheet number once", Phrase(got), where)
            for public in plan.public:  # in small letters or capitals
                written = {text.casefold(): text for text in public.texts}
                if row[public.name].casefold() not in written:
                    where = f"row {number}, column {public.name!r}"
                    raise invalid("codes", f"one of {', '.join(public.texts[:8])}", Phrase("another, or none"), where)
                row[public.name] = written[row[public.name].casefold()]
            required = _required_codes(plan, row, number, codes_by_question)
            to_check = {name: codes for name, codes in required.items() if row[name] or name not in left_out}
            if _codes(row, number, to_check, owner, leave_out):
                rows[sheet], numbers[sheet] = row, number
            else:
                incomplete += 1
    except csv.Error:
        raise InvalidInput(f"{path}: expected a CSV file, got a line that is none (line {reader.line_num})") from None
    return rows, incomplete


def _required_codes(
    plan: Plan, row: Mapping[str, str], number: int, codes_by_question: Mapping[str, Mapping[str, str]]
) -> Mapping[str, Mapping[str, str]]:
    """The codes of the questions that a row has to have: those of everybody, and of its booklet."""
    if not (names := [question.name for question in plan.booklets]):
        return codes_by_question
    if row[BOOKLET] not in names:
        raise InvalidInput(f"codes: row {number} names a booklet that is not one of {', '.join(names[:8])}")
    others = [name for name in names if name != row[BOOKLET]]
    if unexpected := [name for name in others if row[name]]:
        where = f"row {number}, column {unexpected[0]!r}"
        raise invalid("codes", f"a code of the booklet {row[BOOKLET]!r} alone", Phrase("one of another"), where)
    return {name: codes for name, codes in codes_by_question.items() if name not in others}


def _codes(
    row: dict[str, str],
    number: int,
    codes_by_question: Mapping[str, Mapping[str, str]],
    owner: Mapping[str, str],
    leave_out: bool,
) -> bool:
    """Return True if the row has a code for every question. The codes in the row are rewritten as in the plan."""
    for question, codes in codes_by_question.items():
        typed, where = row[question].upper(), f"row {number}, column {question!r}"
        if typed in codes:
            row[question] = codes[typed]
            continue
        if not typed and leave_out:
            return False
        # The entry is not shown: it may be somebody's answer.
        got = "no code" if not typed else "something else"
        if typed in owner:
            got = f"a code of the question {owner[typed]!r}"
        raise invalid("codes", f"one of {', '.join(codes.values())}", Phrase(got), where)
    return True
