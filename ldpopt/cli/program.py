"""The program: its commands, and the one place that turns an error into a line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ldpopt.cli.check import check
from ldpopt.cli.demo import demo
from ldpopt.cli.design import design
from ldpopt.cli.foreign import USAGE_ERROR, from_arrow
from ldpopt.cli.frontier import frontier
from ldpopt.cli.reproduce import reproduce
from ldpopt.cli.studio import studio
from ldpopt.cli.survey import app as survey
from ldpopt.cli.verify import verify
from ldpopt.errors import InvalidInput, LdpoptError
from ldpopt.extras import EXTRAS, missing
from ldpopt.version import __version__


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
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    return f"{where}{reason[:1].lower() + reason[1:]}"


def _say(message: str, code: int) -> int:
    print(f"ldpopt: error: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return code


app = typer.Typer(
    cls=Program,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # local variables may be answers, ids and keys
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 2 bad input (one line on standard error, nothing written), 1 no usable answer, "
    "130 interrupted.",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"ldpopt {__version__}")
        raise typer.Exit


@app.callback()
def ldpopt(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Design, certify and measure locally private mechanisms."""


for command in (demo, design, verify, check, frontier, reproduce, studio):
    app.command()(command)
app.add_typer(survey, name="survey")
