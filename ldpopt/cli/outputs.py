"""Outputs of commands: text and tables on standard output, progress on standard error, and files, written atomically.

Bad paths are rejected before the work begins, and files are written after all work has succeeded. Only the groups of
commands turn an error into a line on standard error and an exit code.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ldpopt.cli.streams import FOLDER, MESSAGES, refuse_stream
from ldpopt.errors import InvalidInput, LdpoptError, Phrase, invalid
from ldpopt.extras import EXTRAS, missing, uninstalled
from ldpopt.files.atomic import UNFINISHED, folder_aside, write_bytes_atomically
from ldpopt.files.escapes import for_terminal

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ldpopt.privacy import Guarantee


def visible(text: str) -> str:
    """Replace the names of standard streams, and escape text for a terminal."""
    return for_terminal(MESSAGES.named(text))


def progress(
    label: str, steps: int | None = None, *, shares: bool = False
) -> AbstractContextManager[Callable[..., None]]:
    """Print the progress bar of a command on standard error."""
    # The arguments are those of `ldpopt.values.deadline.bar`.
    if MESSAGES.quiet:
        return nullcontext(lambda *_: None)
    from ldpopt.values.deadline import bar  # it loads numpy, which help and errors do without

    return bar(label, steps, shares=shares)


def say(*lines: Any) -> None:
    """Print lines, or tables, on standard output, or on standard error where that is asked for a file.

    Lines are not wrapped unless it is a terminal.
    """
    if MESSAGES.quiet:
        return
    stream = sys.stderr if MESSAGES.aside else sys.stdout
    printed_lines = [
        text for text in lines if not (MESSAGES.aside and isinstance(text, str) and text.startswith("wrote "))
    ]
    if not stream.isatty() and all(isinstance(text, str) for text in printed_lines):
        stream.writelines(f"{visible(text)}\n" for text in printed_lines)  # without Rich, which takes long to load
        return
    from rich.console import Console
    from rich.segment import Segment, Segments

    console = Console(highlight=False, stderr=MESSAGES.aside)
    width = None if console.is_terminal else max(console.width, 160)
    printer = Console(highlight=False, stderr=MESSAGES.aside, width=width)
    for text in printed_lines:
        if isinstance(text, str):
            printer.print(visible(text), markup=False)
        else:
            parts = (Segment(visible(part.text), part.style, part.control) for part in printer.render(text))
            printer.print(Segments(parts), end="")


def note(line: str) -> None:
    """Print a line about work that goes on, on standard error and at once."""
    if not MESSAGES.quiet:
        print(visible(line), file=sys.stderr, flush=True)


def promise(guarantee: Guarantee) -> str:
    """Format the indented sentence below a printed guarantee; empty without a sentence."""
    from ldpopt.words import guarantee_in_words

    sentence = guarantee_in_words(guarantee)
    return "" if sentence == f"{guarantee}." else f"\n  {sentence}"


def claim(paths: list[Path], force: bool | None) -> None:
    """Refuse paths that could not be written later: taken (unless `force`), in a missing folder, or named twice.

    force : None where the command has no ``--force``.
    """
    for number, path in enumerate(paths):
        if path in paths[:number]:
            raise invalid(str(path), "a path for each output", Phrase("the same one twice"))
        if not path.parent.is_dir():
            raise invalid(str(path), "a path in a folder that exists", Phrase("one in a folder that does not"))
        if os.path.lexists(path) and not force:
            hint = "" if force is None else " (--force overwrites)"
            raise invalid(str(path), f"a path that does not exist yet{hint}", Phrase("an existing one"))
        if path.is_dir():
            raise invalid(str(path), "the path of a file", Phrase("a folder"))


def kind_of(path: Path) -> str:
    """Return the format of a figure by its suffix, or raise `InvalidInput` before any work."""
    from ldpopt.plots.figure import FORMATS, require_latex

    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise invalid(str(path), f"a picture named {', '.join('*.' + suffix for suffix in FORMATS)}", Phrase(path.name))
    require_latex(kind)
    return kind


def write_all(files: Mapping[Path, bytes], force: bool) -> None:
    """Write every file whole. If one of them cannot be written, the new files before it are removed."""
    new = [path for path in files if not os.path.lexists(path)]
    written_paths: list[Path] = []
    try:
        for path, data in files.items():
            write_bytes_atomically(path, data, force)
            written_paths.append(path)
    except BaseException:
        for path in written_paths:
            if path in new:
                path.unlink(missing_ok=True)
        raise


def free_folder(name: str) -> Path:
    """Find `name`, or the first of ``name-2``, ``name-3``, ... that does not exist yet."""
    path, number = Path(name), 1
    while os.path.lexists(path):
        number += 1
        path = Path(f"{name}-{number}")
    return path


def claim_folder(folder: Path, force: bool) -> None:
    """Refuse a folder that exists (unless `force`), that is not a folder, or that could not be made."""
    refuse_stream(folder, FOLDER)
    if not (force and folder.is_dir()):
        claim([folder], force=False)


def write_folder(folder: Path, files: Mapping[str, bytes], force: bool) -> None:
    """Write a new folder with `files`, whole or not at all. With `force`, write into a folder that exists already."""
    if force and folder.is_dir():
        write_all({folder / name: data for name, data in files.items()}, force)
        return
    try:
        with folder_aside(folder) as temporary:
            for name, data in files.items():
                write_bytes_atomically(temporary / name, data, force=False)
    except OSError as error:
        reason = Phrase((error.strerror or type(error).__name__).lower())
        raise invalid(str(folder), "a folder that can be made", reason) from None


USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""The error that typer raises for bad arguments. It has no public name."""


def from_arrow(error: Exception) -> bool:
    """Return True if an error comes from pyarrow, which is not imported here."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(error, arrow.ArrowException)


class ShortHelp:
    """Commands whose help shows no type for flags without a value."""

    def get_params(self, context: Any) -> list[Any]:
        """List all parameters, `--help` among them."""
        params: list[Any] = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_bool_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class Command(ShortHelp, TyperCommand):
    """One command."""


class _Reported:
    """Commands that turn every expected error into one line on standard error and an exit code."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run, and exit with the code, or return the code if not `standalone_mode`."""
        try:
            code = super().main(args, *rest, **extra | {"standalone_mode": False})  # type: ignore[misc]
        except typer.Abort:
            code = 130
        except BrokenPipeError:
            raise  # the reader of the output went away, which `ldpopt.cli.main` handles
        except Exception as error:
            line_and_code = _line_and_code(error)
            if line_and_code is None:
                raise
            message, code = line_and_code
            if message:
                print(f"ldpopt: error: {visible(' '.join(message.split()))}", file=sys.stderr, flush=True)
        code = code if isinstance(code, int) else 0
        if standalone_mode:
            sys.exit(code)
        return code


class ProgramCommand(_Reported, Command):
    """A command that is a program of its own."""


APPLICATIONS = {"survey": "survey", "studio": "studio"}
"""Commands that the applications of this repository register, and the extra that installs what each needs."""


class Program(_Reported, ShortHelp, TyperGroup):
    """The program's commands, with those that are registered as entry points of the group ``ldpopt.commands``.

    A registered command is a `typer.Typer`. It is imported when it is called; the list of all commands shows the first
    sentence of its module's documentation, and imports it where there is none.
    """

    listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of all commands, those of the library first."""
        library_commands = super().list_commands(ctx)
        return [*library_commands, *(name for name in _registered() if name not in library_commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a name; `MissingExtra` for one of a missing application."""
        command = super().get_command(ctx, cmd_name)
        if command is None and (entry := _registered().get(cmd_name)):
            if self.listing and (sentence := _sentence(entry.module)):
                return TyperCommand(cmd_name, help=sentence)
            command = typer.main.get_command(entry.load())
            command.name = cmd_name
        if command is None and cmd_name in APPLICATIONS:
            raise uninstalled(f"ldpopt {cmd_name}", APPLICATIONS[cmd_name])
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with a sentence for each command."""
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False


@cache
def _registered() -> dict[str, EntryPoint]:
    """The entry points of commands by name, in alphabetical order."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in sorted(entry_points(group="ldpopt.commands"), key=lambda entry: entry.name)}


def _sentence(module: str) -> str:
    """The first sentence of a module's documentation, read from its source: no package is imported."""
    from importlib.machinery import PathFinder

    spec, path = None, None
    for depth in range(1, module.count(".") + 2):
        spec = PathFinder.find_spec(".".join(module.split(".")[:depth]), path)
        path = spec.submodule_search_locations if spec else []
    source = getattr(spec and spec.loader, "get_source", lambda _: None)(module)
    return (ast.get_docstring(ast.parse(source or "")) or "").split("\n\n")[0]


def _line_and_code(error: Exception) -> tuple[str, int] | None:
    """The line and the exit code for an error; None for one that nobody expects."""
    if isinstance(error, USAGE_ERROR):
        usage: Any = error
        where = usage.ctx.command_path if getattr(usage, "ctx", None) else "ldpopt"
        message = usage.format_message()  # none where the help was shown
        return f"{message} (see {where} --help)" if message else "", 2
    if isinstance(error, LdpoptError):
        return str(error), 2 if isinstance(error, InvalidInput) else 1
    if isinstance(error, OSError):
        return _system(error), 1
    if isinstance(error, MemoryError):
        return "there is not enough memory for this", 1
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in EXTRAS:
        return str(missing(error.name or "")), 1
    if from_arrow(error):
        return f"a file holds what Arrow cannot read or write ({type(error).__name__})", 1
    return None


def _system(error: OSError) -> str:
    """The system's message with the name of the file, and nothing else, since libraries put contents into messages."""
    reason = os.strerror(error.errno) if error.errno is not None and error.strerror else type(error).__name__
    where = ""
    if isinstance(error.filename, (str, bytes)):
        path = Path(os.fsdecode(error.filename))
        where = f"{path.parent if path.match(UNFINISHED) else path}: "  # nobody knows the name of an unfinished file
    return f"{where}{reason[:1].lower() + reason[1:]}"
