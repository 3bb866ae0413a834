"""Populations for the page: from a chosen file, from pasted lines, or from the data that come with the package."""

from __future__ import annotations

import base64
import binascii
import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ldpopt.datasets import load_anes96
from ldpopt.errors import InvalidInput, LdpoptError, Phrase, invalid
from ldpopt.files.delimited import PLAIN, sniff
from ldpopt.files.table import is_number
from ldpopt.io import Populations, read_microdata, read_pair, seen_once
from ldpopt_studio.fields import FieldError, State, field, flag, items, numbers, raw_text, take, text, within, wrong
from ldpopt_studio.pasted import with_commas
from ldpopt_survey.datafiles.pieces import DELIMITED, SUFFIXES, names_of

ARGUMENTS = "bins=6, or bins=[1000, 2000] for edges"
_KNOWN = {*SUFFIXES, *DELIMITED, ".json"}
_TABLES = {*SUFFIXES} - {*DELIMITED}
"""Files of columns alone, such as workbooks."""


def state_of(pair: Populations) -> dict[str, Any]:
    """The part of a state that holds the populations."""
    return {
        "p0": pair.p0.tolist(),
        "p1": pair.p1.tolist(),
        "labels": [str(label) for label in pair.labels],
        "names": [str(name) for name in pair.names],
        "counts": None if pair.counts is None else pair.counts.sum(axis=1).tolist(),
        "once": [str(label) for label in seen_once(pair)],
    }


def view(state: State) -> dict[str, Any]:
    """Populations from a file's content, or a ``problem``, a sentence, with the ``columns`` to choose among.

    name, content : the file's name, and its bytes in base64. pasted : text, instead of a file.
    answer, group, bins : of a file with a line for each respondent. columns, counts : of a table of probabilities.
    """
    pasted = take(state, "pasted", raw_text, None)
    where = "content" if pasted is None else "pasted"
    name, content = (take(state, "name", text), take(state, "content", _bytes)) if pasted is None else _pasted(pasted)
    suffix = Path(name).suffix.lower()
    with TemporaryDirectory() as folder:
        path = Path(folder, "file" + (suffix if suffix in _KNOWN else ".csv"))
        path.write_bytes(content)
        try:
            return _read(path, state)
        except LdpoptError as error:
            said = str(error).replace(str(path), name or "the text")
            if isinstance(error, FieldError):
                raise FieldError(error.field, said) from None
            names = _names(path) if where == "content" else []
            if not names:
                raise FieldError(where, said) from None
            return {
                "problem": said.replace(ARGUMENTS, "6, or 1000,2000 for edges, in the field of bins"),
                "columns": names,
            }


def examples(state: State) -> dict[str, Any]:
    """The questions of the survey that comes with the package, with the answers of two parties' voters."""
    table = load_anes96()
    questions = []
    for column in ("party", "income", "education"):
        (p0, p1), labels = table.conditional(column, "vote"), table.labels(column)
        title, names = f"ANES 1996: {column} ({len(labels)})", [f"{name} voters" for name in table.labels("vote")]
        counts = table.counts(column, "vote").sum(axis=1)
        questions.append({"title": title, "p0": p0, "p1": p1, "labels": labels, "names": names, "counts": counts})
    return {"examples": questions}


def _read(path: Path, state: State) -> dict[str, Any]:
    counts = take(state, "counts", flag, False)
    answer, group = take(state, "answer", text, None), take(state, "group", text, None)
    if answer or group:
        if not (answer and group):
            raise FieldError("group" if answer else "answer", "answer and group: expected both columns, got one")
        with field("answer"):
            return state_of(read_microdata(path, answer, group, take(state, "bins", _bins, None)))
    if path.suffix in _TABLES:
        wanted = "columns of answers and of groups, a line for each respondent (shares of populations: CSV or JSON)"
        raise InvalidInput(f"{path}: expected {wanted}, got neither")
    pair = take(state, "columns", items, None)
    if pair is None:
        return state_of(read_pair(path, counts=counts))
    if len(pair) != 2:
        raise wrong("columns", "two names", Phrase(len(pair)))
    with field("columns"):
        return state_of(read_pair(path, (text(pair[0], "columns"), text(pair[1], "columns")), counts=counts))


def _names(path: Path) -> list[str]:
    """The columns of a file that the user can choose among; empty if there are none."""
    if path.suffix == ".json":
        return []
    try:
        return names_of(path, sniff(path) if path.suffix in DELIMITED else PLAIN)
    except (LdpoptError, OSError):
        return []


def _pasted(given: str) -> tuple[str, bytes]:
    """Pasted lines as a table, split by tabs, semicolons or commas. Names are added if the first line has none."""
    if len(given) > 1_000_000:
        raise wrong("pasted", "at most 1000000 characters", len(given))
    if given.lstrip()[:1] == "{":
        return "text.json", given.encode("utf-8", "replace")
    if not given.strip():
        raise wrong("pasted", "a line for each answer", Phrase("nothing"))
    table = with_commas(given.strip())
    first = next(csv.reader(table.splitlines()))
    if len(first) == 3 and is_number(first[1]) and is_number(first[2]):
        table = f"answer,p0,p1\n{table}"
    return "text.csv", table.encode("utf-8", "replace")


def _bytes(value: Any, what: str) -> bytes:
    try:
        return base64.b64decode(raw_text(value, what), validate=True)
    except (binascii.Error, ValueError):
        raise invalid(what, "the file's bytes in base64", Phrase("other text")) from None


def _bins(value: Any, what: str) -> Any:
    """How many bins, or their edges; in a text these are separated by commas."""
    if isinstance(value, str):
        try:
            edges = [float(part) for part in value.split(",")]
        except ValueError:
            raise invalid(what, "how many bins, or edges separated by commas", value) from None
        value = edges[0] if len(edges) == 1 and edges[0].is_integer() else edges
    if isinstance(value, list):
        return numbers(value, what)
    return within(2, 1000, "2 to 1000 bins", integer=True)(value, what)
