"""Where a command says ``-``: its input is standard input, or its output goes to standard output.

Both pass through a private temporary file, whose name no message shows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ldpopt.errors import InvalidInput

OUTPUTS = ("out", "picture", "save_design", "proof")
"""Parameters that name files to be written; every other path is read."""

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
            files = [type(one)(path) if _is_dash(one) else one for one in ([value] if single else value)]
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
                sys.stdout.buffer.write(replaced[name].read_bytes())
                sys.stdout.flush()


def _output(folder: Path, name: str, given: dict[str, Any], default: Any) -> Path | None:
    """The file that is copied to standard output; None for tables, which go there by themselves."""
    if "format" in given:
        return None
    suffix = {"picture": ".png"}.get(name, ".json") if default is None else getattr(default, "suffix", "")
    if not suffix:
        raise InvalidInput(f"--{name}: expected a path, since several files are written, got standard output")
    path = folder / f"output{suffix}"
    MESSAGES.names[str(path)] = "standard output"
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
    return path
