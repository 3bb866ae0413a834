"""What the commands show: text on standard output, progress on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ldpopt.privacy import Guarantee


def output() -> Console:
    """Standard output; a line is as long as it is where nobody watches."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 160))


@contextmanager
def progress(what: str, steps: int | None = None) -> Iterator[Callable[..., None]]:
    """A bar of `steps`, or a pulse, on standard error while work goes on; call what it gives after every step.

    Only a terminal shows it, and nothing of it stays.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:  # a bar that is disabled ends with an empty line in some versions
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
    """The sentence below a printed guarantee, indented; empty for a notion that has none."""
    from ldpopt.reports.words import guarantee_in_words

    sentence = guarantee_in_words(guarantee)
    return "" if sentence == f"{guarantee}." else f"\n  {sentence}"
