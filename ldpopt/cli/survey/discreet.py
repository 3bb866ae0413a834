"""An unexpected error of a survey command becomes one line that quotes no answer."""

from __future__ import annotations

import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from ldpopt.cli.foreign import USAGE_ERROR, from_arrow


class Discreet(TyperGroup):
    """The survey commands. For an unexpected error they print its kind and place, without its message.

    A library may quote a value in its message, and a traceback with local variables shows a whole batch.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from ldpopt.errors import LdpoptError

        try:
            return super().invoke(ctx)
        except (LdpoptError, OSError, MemoryError, ModuleNotFoundError, USAGE_ERROR, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if from_arrow(error):
                raise
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            said = f"unexpected {type(error).__name__} in {place} (not shown, since it may quote answers)"
        # Raised outside the except block, so that the first error is not the context of this one.
        raise LdpoptError(said)
