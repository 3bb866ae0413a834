"""What the commands show: text on standard output, progress on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldpopt.bars import bar

if TYPE_CHECKING:
    from rich.console import Console

    from ldpopt.privacy import Guarantee

progress = bar
"""The bar of every command, on standard error."""


def output() -> Console:
    """Standard output; a line is as long as it is where nobody watches."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, 160))


def promise(guarantee: Guarantee) -> str:
    """The sentence below a printed guarantee, indented; empty for a notion that has none."""
    from ldpopt.reports.words import guarantee_in_words

    sentence = guarantee_in_words(guarantee)
    return "" if sentence == f"{guarantee}." else f"\n  {sentence}"
