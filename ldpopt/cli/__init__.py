"""The command line: `main` is the program ``ldpopt``, `app` its commands.

The other names are the parts of commands, also of applications: an application registers a `typer.Typer` as an entry
point of the group ``ldpopt.commands``.
"""

from __future__ import annotations

import os
import sys
import warnings

from ldpopt.extras import offering

_HOMES = {
    "ldpopt.cli.outputs": (
        "Command", "Program", "ProgramCommand", "ShortHelp", "USAGE_ERROR", "claim", "claim_folder", "free_folder",
        "from_arrow", "kind_of", "note", "progress", "promise", "say", "visible", "write_all", "write_folder",
    ),
    "ldpopt.cli.parameters": ("FileFlags", "PairFlags", "bins", "number", "numbers", "options", "seconds"),
    "ldpopt.cli.program": ("app",),
    "ldpopt.cli.streams": ("FOLDER", "refuse_stream"),
}  # fmt: skip


def main() -> int:
    """Run the command in `sys.argv` and return its exit code.

    0: done. 1: no usable answer, or the reader of the output went away. 2: bad input. Nothing is written, and one line
    on standard error states the error. 130: interrupted.
    """
    # Matrices are small here: more threads for each product take up to four times the processor's time for nothing.
    for threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
    # Results state their rounding and overflows themselves, so the terminal shows no lines of source about them.
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    try:
        from ldpopt.cli.program import app

        code = app(standalone_mode=False, prog_name="ldpopt")
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Buffered output has no reader either; without this line Python complains when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


# `main` sets the number of threads before the modules of the other names load.
__all__, __getattr__, __dir__ = offering(__name__, _HOMES, (main,))
