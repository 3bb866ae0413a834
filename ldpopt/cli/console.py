"""The output of commands: text on standard output, progress on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldpopt.bars import bar

if TYPE_CHECKING:
    from rich.console import Console

    from ldpopt.privacy import Guarantee

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
