"""The output of commands: text on standard output, progress on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ldpopt.privacy import Guarantee


def output() -> Console:
    """Standard output. Lines are not wrapped unless it is a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 160))


@contextmanager
def progress(what: str, steps: int | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar of `steps`, or a pulse, on standard error. It yields a function to call after every step.

    It is shown only on a terminal, and removed at the end.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:  # in some versions a disabled bar prints an empty line at its end
        yield lambda *_: None
        return
    counted = [MofNCompleteColumn()] if steps is not None else []
    columns = [TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=steps)

        def step(*_: object) -> None:
            bar.advance(task)

        yield step


def promise(guarantee: Guarantee) -> str:
    """The indented sentence below a printed guarantee; empty for a notion without a sentence."""
    from ldpopt.reports.words import guarantee_in_words

    sentence = guarantee_in_words(guarantee)
    return "" if sentence == f"{guarantee}." else f"\n  {sentence}"
