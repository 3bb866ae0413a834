"""Whatever goes wrong in a survey command is one line that quotes no answer."""

from __future__ import annotations

import errno
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

_OF_THE_CALLER = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG}


_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


class Discreet(TyperGroup):
    """The survey commands. Errors of the system and of libraries become those of the package, without their messages.

    A library may quote the value that it could not convert, and a traceback with local variables shows a whole batch.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from ldpopt.errors import LdpoptError, Phrase, invalid

        try:
            return super().invoke(ctx)
        except (LdpoptError, typer.Exit, typer.Abort, _USAGE_ERROR, BrokenPipeError):
            raise
        except OSError as error:
            reason = Phrase((error.strerror or type(error).__name__).lower())
            where = str(error.filename or "the disk")
            if error.errno in _OF_THE_CALLER:
                said: LdpoptError = invalid(where, "a file or place that can be used", reason)
            else:
                said = LdpoptError(f"{where}: {reason}; the same command goes on from what is done")
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            said = LdpoptError(f"unexpected {type(error).__name__} in {place} (not shown, since it may quote answers)")
        # Raised out here, so that the first error is not the context of this one.
        raise said
