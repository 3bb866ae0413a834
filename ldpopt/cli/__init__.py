"""The command line: `main` is the program ``ldpopt``, `app` its commands."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["app", "main"]


def main() -> int:
    """Run the command in `sys.argv` and return its exit code.

    0: done. 1: no usable answer, or the reader of the output went away. 2: bad input; nothing is written, and one line
    on standard error says what is wrong. 130: interrupted.
    """
    # Matrices are small here: more threads for each product take up to four times the processor's time for nothing.
    for threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
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


def __getattr__(name: str) -> Any:
    if name == "app":
        from ldpopt.cli.program import app

        return app
    raise AttributeError(f"module 'ldpopt.cli' has no attribute {name!r}")
