"""Where a command says ``-``: its input is standard input, or its output goes to standard output.

Both pass through a private temporary file, whose name no message shows. Reports that are drawn for standard output wait
in a file beside their plan instead, so that none is lost if nobody reads them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import Parameter
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

from ldpopt.errors import InvalidInput, Phrase, invalid

OUTPUTS = ("out", "picture", "save_design", "proof")
"""Parameters that name files to be written; every other path is read."""

REPORTS = ".reports.parquet"
"""Ends the name of reports on their way to standard output, after the name of their plan."""

FOLDER = "the path of a folder, since several files are written"

_KINDS = {b"{": ".json", b"[": ".json", b"PAR1": ".parquet", b"PK\x03\x04": ".xlsx"}


@dataclass
class Messages:
    """Whether the program's messages are left out, or go to standard error, and what they call temporary files."""

    quiet: bool = False
    aside: bool = False
    names: dict[str, str] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """The text with "standard input" and "standard output" in the place of the files that stand for them."""
        for path, name in self.names.items():
            text = text.replace(path, name)
        return text


MESSAGES = Messages()


def refuse_stream(path: Path, expected: str) -> None:
    """`InvalidInput` for a path that stands for a standard stream, where one cannot be used."""
    if name := MESSAGES.names.get(str(path)):
        raise invalid("-", expected, Phrase(name))


@contextmanager
def standard_streams(given: dict[str, Any], defaults: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments `given` to a command, with a file in the place of each ``-``.

    defaults : the parameters' own values; the ending of an output's is that of what standard output gets.
    """
    outputs = [name for name in OUTPUTS if str(given.get(name)) == "-"]
    inputs = [name for name, value in given.items() if name not in OUTPUTS and _is_dash(value)]
    if not outputs and not inputs:
        yield given
        return
    if len(outputs) > 1 or len(inputs) > 1 or (outputs and given.get("json")):
        raise InvalidInput("-: expected one input and one output on the standard streams, got several")
    with TemporaryDirectory(prefix="ldpopt-") as folder:
        replaced = dict(given)
        for name in inputs:
            path, value = _read(Path(folder)), given[name]
            single = not isinstance(value, list)
            files = [type(option)(path) if _is_dash(option) else option for option in ([value] if single else value)]
            replaced[name] = files[0] if single else files
        for name in outputs:
            replaced[name] = _output(Path(folder), name, given, defaults[name])
        MESSAGES.aside = bool(outputs)
        try:
            yield replaced
        finally:
            MESSAGES.aside = False
        for name in outputs:
            if replaced[name] is not None:
                _copy_out(replaced[name])


def _copy_out(path: Path) -> None:
    """Copy a file to standard output, and remove it."""
    try:
        with path.open("rb") as file:
            copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()
    except OSError:
        if path.name.endswith(REPORTS):
            print(f"ldpopt: not all was read; the reports are in {path}", file=sys.stderr)
        raise
    path.unlink()


def _output(folder: Path, name: str, given: dict[str, Any], default: Any) -> Path | None:
    """The file that is copied to standard output; None for tables, which go there by themselves."""
    if "format" in given:
        return None
    if default is Parameter.empty:
        path = Path(f"{given['plan']}{REPORTS}")
        if path.exists():
            raise invalid(str(path), "no reports that an earlier pipe did not take", Phrase("some"))
    else:
        suffix = {"picture": ".png"}.get(name, ".json") if default is None else getattr(default, "suffix", "")
        # Only Parquet has room for the manifest of reports.
        path = folder / f"output{'.parquet' if default == Path('reports.csv') else suffix}"
    MESSAGES.names[str(path)] = "standard output"
    if path.suffix == ".parquet" and sys.stdout.isatty():
        raise invalid(f"--{name}", "a file or a pipe, since reports go out as Parquet", Phrase("a terminal"))
    if not path.suffix:
        refuse_stream(path, FOLDER)
    return path


def _is_dash(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_dash, value))
    return isinstance(value, (str, Path)) and str(value) == "-"


def _read(folder: Path) -> Path:
    """Standard input in a file, whose ending is that of its kind."""
    content = sys.stdin.buffer.read()
    start = content.lstrip()[:4]
    suffix = next((suffix for mark, suffix in _KINDS.items() if start.startswith(mark)), ".csv")
    path = folder / f"input{suffix}"
    path.write_bytes(content)
    MESSAGES.names[str(path)] = "standard input"
    MESSAGES.names[f"{path.name}.manifest.json beside it"] = "which CSV from a pipe has not, and Parquet has"
    return path
