"""What commands give: text and tables on standard output, progress on standard error, and files, whole or not at all.

Bad paths are refused before the work begins; writing comes after all work succeeded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ldpopt.deadline import bar
from ldpopt.errors import Phrase, invalid
from ldpopt.files import write_bytes_atomically

if TYPE_CHECKING:
    from rich.console import Console

    from ldpopt.privacy import Guarantee
    from ldpopt.reports.tables import ResultTable


progress = bar
"""The bar of every command, on standard error."""


def output() -> Console:
    """Standard output. Lines are not wrapped unless it is a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 160))


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


_RESULTS = "Results"

FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="text, csv, xlsx, html, md or json; by default from the name of --out, or text.",
        rich_help_panel=_RESULTS,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Write to this file instead of standard output.",
        rich_help_panel=_RESULTS,
        show_default=False,
    ),
]


def chosen(format: str | None, out: Path | None, force: bool) -> str:
    """The chosen format. An unknown format, or one that cannot be printed, is refused before the work begins."""
    from ldpopt.errors import Phrase, invalid
    from ldpopt.reports.tables import FORMATS

    if out is not None:
        claim([out], force)
    by_name = "" if out is None else out.suffix.removeprefix(".").lower()
    made = format or {"txt": "text", "": "text", "htm": "html", "markdown": "md"}.get(by_name, by_name)
    if made not in FORMATS:
        raise invalid("--format", f"one of {', '.join(FORMATS)}", Phrase(made))
    if made == "xlsx" and out is None:
        raise invalid("--format xlsx", "a file to write to (--out results.xlsx)", Phrase("none"))
    return made


def show(table: ResultTable, format: str, out: Path | None, force: bool) -> None:
    """Write the table to `out`, or print it."""
    made = table.in_format(format)
    if out is None:
        sys.stdout.write(made.decode())
        return
    write_all({out: made}, force)
    output().print(f"wrote {out}", markup=False)
