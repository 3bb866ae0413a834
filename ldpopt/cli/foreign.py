"""Errors of the libraries beneath, which the program and its survey commands both tell from errors of their own."""

from __future__ import annotations

import sys

import typer

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""What typer raises for arguments that it cannot take; it has no public name of its own."""


def from_arrow(error: Exception) -> bool:
    """Whether the error is pyarrow's own, which is asked only where pyarrow is at work."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(error, arrow.ArrowException)
