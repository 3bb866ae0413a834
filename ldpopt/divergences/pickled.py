"""Users' functions in pickles. A pickle keeps only the name of a function, not what it does."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from ldpopt.errors import invalid

WHOLE = {"cloudpickle", "dill"}
"""Packages whose pickles hold whole functions, even lambdas; joblib contains its own copy of the first."""


def require_findable(function: Any, name: str) -> None:
    """Raise `InvalidInput` for a function that a pickle cannot name: a lambda, or one that is defined inside another.

    >>> require_findable(lambda t: (t - 1) ** 4, "fourth power")
    Traceback (most recent call last):
    ldpopt.errors.InvalidInput: pickle of fourth power: expected functions that stand in a module under their names ...
    """
    qualified = getattr(function, "__qualname__", None)
    if qualified is None:  # None, or an object such as a partial, which pickles itself
        return
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if found is not function and not inspect.isbuiltin(function):
        expected = "functions that stand in a module under their names (cloudpickle.dumps takes others, too)"
        raise invalid(f"pickle of {name}", expected, function)


def taken_whole() -> bool:
    """Whether a package of `WHOLE` is pickling, as happens when joblib or Dask send work to other processes."""
    frame = inspect.currentframe()
    while frame is not None:
        if WHOLE & set(str(frame.f_globals.get("__name__", "")).split(".")):
            return True
        frame = frame.f_back
    return False
