"""The groups of commands: the one place that turns an error into a line on standard error and an exit code.

An unexpected error of a survey command becomes a line that quotes no answer.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from ldpopt.cli.outputs import visible
from ldpopt.errors import InvalidInput, LdpoptError
from ldpopt.extras import EXTRAS, missing
from ldpopt.files import UNFINISHED

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""The error that typer raises for bad arguments. It has no public name."""


def from_arrow(error: Exception) -> bool:
    """Whether an error comes from pyarrow. Pyarrow is not imported for this question."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(error, arrow.ArrowException)


class Discreet(TyperGroup):
    """The survey commands. For an unexpected error they print its kind and place, without its message.

    A library may quote a value in its message, and a traceback with local variables shows a whole batch.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
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


class Program(TyperGroup):
    """The group of commands; bad input ends it with one line and exit code 2."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run, and exit with the code, or return the code if not `standalone_mode`."""
        try:
            code = super().main(args, *rest, **extra | {"standalone_mode": False})
        except USAGE_ERROR as error:
            code = _say(_usage(error), 2)
        except InvalidInput as error:
            code = _say(str(error), 2)
        except LdpoptError as error:
            code = _say(str(error), 1)
        except typer.Abort:
            code = 130
        except BrokenPipeError:
            raise  # the reader of the output went away, which `main` handles
        except OSError as error:
            code = _say(_system(error), 1)
        except MemoryError:
            code = _say("there is not enough memory for this", 1)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in EXTRAS:
                raise
            code = _say(str(missing(error.name or "")), 1)
        except Exception as error:
            if not from_arrow(error):
                raise
            code = _say(f"a file holds what Arrow cannot read or write ({type(error).__name__})", 1)
        code = code if isinstance(code, int) else 0
        if standalone_mode:
            sys.exit(code)
        return code


def _usage(error: Any) -> str:
    where = error.ctx.command_path if getattr(error, "ctx", None) else "ldpopt"
    return f"{error.format_message()} (see {where} --help)"


def _system(error: OSError) -> str:
    """The system's message with the name of the file, and nothing else, since libraries put contents into messages."""
    reason = error.strerror if error.errno is not None and error.strerror else type(error).__name__
    where = ""
    if isinstance(error.filename, (str, bytes)):
        path = Path(os.fsdecode(error.filename))
        where = f"{path.parent if path.match(UNFINISHED) else path}: "  # nobody knows the name of an unfinished file
    return f"{where}{reason[:1].lower() + reason[1:]}"


def _say(message: str, code: int) -> int:
    print(f"ldpopt: error: {visible(' '.join(message.split()))}", file=sys.stderr, flush=True)
    return code
