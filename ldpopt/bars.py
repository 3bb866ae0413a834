"""The one bar that shows on standard error how far work is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(what: str, steps: int | None = None, *, shares: bool = False) -> Iterator[Callable[..., None]]:
    """A bar while work goes on: of `steps`, of `shares` in percent, or a pulse. Nothing of it stays.

    Call what it gives after every step; a bar of shares with the share in [0, 1] that is done. Only a terminal or a
    notebook shows it.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):  # a bar that is disabled ends with an empty line
        yield lambda *_: None
        return
    counted = [TaskProgressColumn()] if shares else [MofNCompleteColumn()] if steps is not None else []
    columns = [TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(what, total=1.0 if shares else steps)

        def step(*done: object) -> None:
            if shares:
                shown.update(task, completed=float(str(done[0])))
            else:
                shown.advance(task)

        yield step
