"""Errors of libraries that read answers, without what they quote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ldpopt.errors import LdpoptError, Phrase, invalid

T = TypeVar("T")


def values_hidden(where: str, function: Callable[..., T], *arguments: Any) -> T:
    """The function's result; an error of a library, whose message may quote answers, becomes one that names `where`.

    Our own errors and the file system's pass.
    """
    try:
        return function(*arguments)
    except LdpoptError:
        raise
    except OSError as error:
        if error.errno is not None:  # the file system's, not arrow's word for a corrupt file
            raise
        failure = "a corrupt one"
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # Polars' own, no Exception
            raise
        failure = type(error).__name__
    # Raised out here, so that the first error is not the context of this one.
    raise invalid("answers", "well-formed values in UTF-8", Phrase(failure), where)
