"""Standard streams of commands: a path ``-`` is standard input or standard output.

Both pass through a private temporary file, whose name no message shows. Reports drawn for standard output wait in a
file next to their plan instead, so that none is lost without a reader.
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
    """The destination of the program's messages, and the names that they show for temporary files."""

    quiet: bool = False
    aside: bool = False
    names: dict[str, str] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """Replace the paths of standard streams in a text by "standard input" and "standard output"."""
        for path, name in self.names.items():
            text = text.replace(path, name)
        return text


MESSAGES = Messages()


def refuse_stream(path: Path, expected: str) -> None:
    """Raise `InvalidInput` for a path that represents a standard stream."""
    # `expected` is usable instead.
    if name := MESSAGES.names.get(str(path)):
        raise invalid("-", expected, Phrase(name))


@contextmanager
def standard_streams(arguments: dict[str, Any], defaults: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Replace each ``-`` in the arguments of a command by a temporary file.

    defaults : the default values of the parameters; the suffix of an output's default is that of standard output.
    """
    outputs = [name for name in OUTPUTS if str(arguments.get(name)) == "-"]
    inputs = [name for name, value in arguments.items() if name not in OUTPUTS and _is_dash(value)]
    if not outputs and not inputs:
        yield arguments
        return
    if len(outputs) > 1 or len(inputs) > 1 or (outputs and arguments.get("json")):
        raise InvalidInput("-: expected one input and one output on the standard streams, got several")
    with TemporaryDirectory(prefix="ldpopt-") as folder:
        replaced_arguments = dict(arguments)
        for name in inputs:
            path, value = _read(Path(folder)), arguments[name]
            single = not isinstance(value, list)
            files = [type(option)(path) if _is_dash(option) else option for option in ([value] if single else value)]
            replaced_arguments[name] = files[0] if single else files
        for name in outputs:
            replaced_arguments[name] = _output(Path(folder), name, arguments, defaults[name])
        MESSAGES.aside = bool(outputs)
        try:
            yield replaced_arguments
        finally:
            MESSAGES.aside = False
        for name in outputs:
            if replaced_arguments[name] is not None:
                _copy_out(replaced_arguments[name])


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


def _output(folder: Path, name: str, arguments: dict[str, Any], default: Any) -> Path | None:
    """The file that is copied to standard output; None for tables, which go there by themselves."""
    if "format" in arguments:
        return None
    if default is Parameter.empty:
        path = Path(f"{arguments['plan']}{REPORTS}")
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
    MESSAGES.names[f"{path.name}.manifest.json"] = "a separate file (Parquet from a pipe includes it, CSV does not)"
    return path
