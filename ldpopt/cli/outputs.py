"""What commands give: text and tables on standard output, progress on standard error, and files, whole or not at all.

Bad paths are refused before the work begins; writing comes after all work succeeded.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ldpopt.cli.options import ForceOption, option
from ldpopt.errors import Phrase, invalid
from ldpopt.files import write_bytes_atomically

if TYPE_CHECKING:
    from ldpopt.privacy import Guarantee
    from ldpopt.reports.tables import ResultTable

__all__ = [
    "ResultFlags", "claim", "claim_folder", "free_folder", "kind_of", "progress", "promise", "say", "visible",
    "write_all", "write_folder",
]  # fmt: skip

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Text for a terminal: what would steer it, turn its letters around, or has no letter is written as an escape.

    >>> print(visible("a\x1b[31mred"))
    a\x1b[31mred
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def progress(
    what: str, steps: int | None = None, *, shares: bool = False
) -> AbstractContextManager[Callable[..., None]]:
    """The bar of every command, on standard error; the arguments are those of `ldpopt.deadline.bar`."""
    from ldpopt.deadline import bar  # it loads numpy, which help and errors do without

    return bar(what, steps, shares=shares)


def say(*what: Any) -> None:
    """Print lines, or tables, on standard output. Lines are not wrapped unless it is a terminal."""
    from rich.console import Console
    from rich.segment import Segment, Segments

    console = Console(highlight=False)
    wide = console if console.is_terminal else Console(highlight=False, width=max(console.width, 160))
    for one in what:
        if isinstance(one, str):
            wide.print(visible(one), markup=False)
        else:
            wide.print(
                Segments(Segment(visible(part.text), part.style, part.control) for part in wide.render(one)), end=""
            )


def promise(guarantee: Guarantee) -> str:
    """The indented sentence below a printed guarantee; empty for a notion without a sentence."""
    from ldpopt.reports.words import guarantee_in_words

    sentence = guarantee_in_words(guarantee)
    return "" if sentence == f"{guarantee}." else f"\n  {sentence}"


def claim(paths: list[Path], force: bool) -> None:
    """Refuse paths that could not be written later: taken (unless `force`), in a missing folder, or named twice."""
    for at, path in enumerate(paths):
        if path in paths[:at]:
            raise invalid(str(path), "a path for each output", Phrase("the same one twice"))
        if not path.parent.is_dir():
            raise invalid(str(path), "a path in a folder that exists", Phrase("one in a folder that does not"))
        if os.path.lexists(path) and not force:
            raise invalid(str(path), "a path that does not exist yet (--force overwrites)", Phrase("an existing one"))
        if path.is_dir():
            raise invalid(str(path), "the path of a file", Phrase("a folder"))


def kind_of(path: Path) -> str:
    """The format of a picture by its suffix; refused before anything is drawn."""
    from ldpopt.plots.figure import FORMATS

    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise invalid(str(path), f"a picture named {', '.join('*.' + one for one in FORMATS)}", Phrase(path.name))
    return kind


def write_all(files: Mapping[Path, bytes], force: bool) -> None:
    """Write every file whole. If one of them cannot be written, the new files before it are removed."""
    new = [path for path in files if not os.path.lexists(path)]
    written: list[Path] = []
    try:
        for path, data in files.items():
            write_bytes_atomically(path, data, force)
            written.append(path)
    except BaseException:
        for path in written:
            if path in new:
                path.unlink(missing_ok=True)
        raise


def free_folder(name: str) -> Path:
    """`name`, or the first of ``name-2``, ``name-3``, ... that does not exist yet."""
    path, number = Path(name), 1
    while os.path.lexists(path):
        number += 1
        path = Path(f"{name}-{number}")
    return path


def claim_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that exists (unless `force`), that is not a folder, or that could not be made."""
    if not (force and folder.is_dir()):
        claim([folder], force=False)


def write_folder(folder: Path, files: Mapping[str, bytes], force: bool) -> None:
    """Write a new folder with `files`, whole or not at all. With `force`, write into a folder that exists already."""
    if force and folder.is_dir():
        write_all({folder / name: data for name, data in files.items()}, force)
        return
    try:
        folder.mkdir()
    except OSError as error:
        reason = Phrase((error.strerror or type(error).__name__).lower())
        raise invalid(str(folder), "a folder that can be made", reason) from None
    try:
        write_all({folder / name: data for name, data in files.items()}, force)
    except BaseException:
        folder.rmdir()
        raise


@dataclass(frozen=True)
class ResultFlags:
    """Where a table of results goes, and in which format."""

    format: Annotated[
        str | None,
        option(
            "--format", "-f", "text, csv, xlsx, html, md or json; by default from the name of --out, or text.",
            metavar="FORMAT", panel="Results",
        ),
    ] = None  # fmt: skip
    out: Annotated[
        Path | None,
        option("--out", "-o", "Write to this file instead of standard output.", panel="Results", default=False),
    ] = None
    force: ForceOption = False

    def chosen(self) -> str:
        """The format. An unknown one, or one that cannot be printed, is refused before the work begins."""
        from ldpopt.reports.tables import FORMATS

        if self.out is not None:
            claim([self.out], self.force)
        by_name = "" if self.out is None else self.out.suffix.removeprefix(".").lower()
        kind = self.format or {"txt": "text", "": "text", "htm": "html", "markdown": "md"}.get(by_name, by_name)
        if kind not in FORMATS:
            raise invalid("--format", f"one of {', '.join(FORMATS)}", Phrase(kind))
        if kind == "xlsx" and self.out is None:
            raise invalid("--format xlsx", "a file to write to (--out results.xlsx)", Phrase("none"))
        return kind

    def show(self, table: ResultTable) -> None:
        """Write the table, or print it."""
        content = table.in_format(self.chosen())
        if self.out is None:
            text = content.decode()
            sys.stdout.write(visible(text) if self.chosen() == "text" or sys.stdout.isatty() else text)
        else:
            write_all({self.out: content}, self.force)
