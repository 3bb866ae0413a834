"""Errors of libraries, which the program and its survey commands distinguish from their own errors."""

from __future__ import annotations

import sys

import typer

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""The error that typer raises for bad arguments. It has no public name."""


def from_arrow(error: Exception) -> bool:
    """Whether an error comes from pyarrow. Pyarrow is not imported for this question."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(error, arrow.ArrowException)
