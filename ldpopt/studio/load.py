"""Populations for the page: from a chosen file, from pasted lines, or from the data that come with the package."""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ldpopt.datafiles.delimited import PLAIN, sniff
from ldpopt.datafiles.pieces import DELIMITED, SUFFIXES, names_of
from ldpopt.datasets import load_anes96
from ldpopt.errors import LdpoptError, Phrase, invalid
from ldpopt.io import Populations, read_microdata, read_pair, seen_once
from ldpopt.io.table import is_number
from ldpopt.studio.fields import FieldError, State, field, flag, items, number, take, text, wrong

_KNOWN = {*SUFFIXES, *DELIMITED, ".json"}


def state_of(pair: Populations) -> dict[str, Any]:
    """The part of a state that holds the populations.

    >>> import numpy as np
    >>> state_of(Populations(("no", "yes"), np.array([0.3, 0.7]), np.array([0.6, 0.4])))["labels"]
    ['no', 'yes']
    """
    return {
        "p0": pair.p0.tolist(),
        "p1": pair.p1.tolist(),
        "labels": [str(label) for label in pair.labels],
        "names": [str(name) for name in pair.names],
        "counts": None if pair.counts is None else pair.counts.sum(axis=1).tolist(),
        "once": [str(label) for label in seen_once(pair)],
    }


def view(state: State) -> dict[str, Any]:
    """Populations from a file's content, or the problem that the user must solve first.

    name, content : the file's name, and its bytes in base64. pasted : text, instead of a file.
    answer, group, bins : columns and bins of a file with a line for each respondent.
    columns : the two columns of a table of probabilities. counts : whether they are counts.

    Returns the part of a state, or ``problem``, a sentence, with the ``columns`` to choose among.

    >>> view({"pasted": "no,3,6\\nyes,7,4", "counts": True})["p0"]
    [0.3, 0.7]
    """
    pasted = take(state, "pasted", lambda value, what: value if isinstance(value, str) else text(value, what), None)
    if pasted is not None:
        name, content, where = *_pasted(pasted), "pasted"
    else:
        name = take(state, "name", text)
        content, where = take(state, "content", _bytes), "content"
    suffix = Path(name).suffix.lower()
    with TemporaryDirectory() as folder:
        path = Path(folder, "file" + (suffix if suffix in _KNOWN else ".csv"))
        path.write_bytes(content)
        try:
            return _read(path, state)
        except FieldError:
            raise
        except LdpoptError as error:
            said = str(error).replace(str(path), name or "the text")
            if where == "pasted":
                raise FieldError("pasted", said) from None
            names = _names(path)
            if names and (said or "").strip():
                return {"problem": _without_options(said), "columns": names}
            raise FieldError("content", said) from None


def examples(state: State) -> dict[str, Any]:
    """The questions of the survey that comes with the package, with the answers of two parties' voters.

    >>> [one["title"] for one in examples({})["examples"]]
    ['ANES 1996: party (7)', 'ANES 1996: income (24)', 'ANES 1996: education (7)']
    """
    table = load_anes96()
    made = []
    for column in ("party", "income", "education"):
        p0, p1 = table.conditional(column, "vote")
        labels, names = table.labels(column), table.labels("vote")
        made.append(
            {
                "title": f"ANES 1996: {column} ({len(labels)})",
                "p0": p0,
                "p1": p1,
                "labels": labels,
                "names": [f"{name} voters" for name in names],
                "counts": table.counts(column, "vote").sum(axis=1),
            }
        )
    return {"examples": made}


def _read(path: Path, state: State) -> dict[str, Any]:
    counts = take(state, "counts", flag, False)
    answer, group = take(state, "answer", text, None), take(state, "group", text, None)
    if answer or group:
        if not (answer and group):
            raise FieldError("group" if answer else "answer", "answer and group: expected both columns, got one")
        with field("answer"):
            return state_of(read_microdata(path, answer, group, take(state, "bins", _bins, None)))
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
    lines = [line.strip() for line in given.strip().splitlines() if line.strip()]
    if not lines:
        raise wrong("pasted", "a line for each answer", Phrase("nothing"))
    mark = next((mark for mark in ("\t", ";", ",") if mark in lines[0]), None)
    rows = [[cell.strip() for cell in (re.split(re.escape(mark), line) if mark else line.split())] for line in lines]
    if mark in ("\t", ";"):
        rows = [[cell.replace(",", ".") if is_number(cell.replace(",", ".")) else cell for cell in row] for row in rows]
    if len(rows[0]) == 3 and is_number(rows[0][1]) and is_number(rows[0][2]):
        rows = [["answer", "p0", "p1"], *rows]
    quoted = [",".join('"' + cell.strip('"').replace('"', '""') + '"' for cell in row) for row in rows]
    return "text.csv", "\n".join(quoted).encode("utf-8", "replace")


def _bytes(value: Any, what: str) -> bytes:
    if not isinstance(value, str):
        raise invalid(what, "the file's bytes in base64", Phrase(type(value).__name__))
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(what, "the file's bytes in base64", Phrase("other text")) from None


def _bins(value: Any, what: str) -> Any:
    if isinstance(value, str):
        parts = value.split(",")
        try:
            read = [float(part) for part in parts]
        except ValueError:
            raise invalid(what, "how many bins, or edges separated by commas", value) from None
        value = int(read[0]) if len(read) == 1 and read[0] == int(read[0]) else read
    if isinstance(value, list):
        return [number(one, what) for one in items(value, what)]
    found = number(value, what)
    if not (found == int(found) and 2 <= found <= 1000):
        raise invalid(what, "2 to 1000 bins", value)
    return int(found)


def _without_options(said: str) -> str:
    """The sentence without names of arguments, since a page has fields instead."""
    return said.replace("bins=6, or bins=[1000, 2000] for edges", "6, or 1000,2000 for edges, in the field of bins")
