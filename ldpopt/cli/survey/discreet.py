"""An error of a survey command that nobody thought of is one line that quotes no answer."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


class Discreet(TyperGroup):
    """The survey commands. What the program has no line for is told by its kind and place, without its message.

    A library may quote the value that it stumbled over, and a traceback with local variables shows a whole batch.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from ldpopt.errors import LdpoptError

        try:
            return super().invoke(ctx)
        except (LdpoptError, OSError, MemoryError, ModuleNotFoundError, _USAGE_ERROR, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            arrow = sys.modules.get("pyarrow")
            if arrow is not None and isinstance(error, arrow.ArrowException):
                raise
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            said = f"unexpected {type(error).__name__} in {place} (not shown, since it may quote answers)"
        # Raised out here, so that the first error is not the context of this one.
        raise LdpoptError(said)
