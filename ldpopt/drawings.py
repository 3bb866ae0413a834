"""The name of a picture to the function that draws it. The room of pictures registers them when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_DRAW: dict[str, Callable[..., Any]] = {}
_LOADERS: list[Callable[[], object]] = []


def load_with(load: Callable[[], object]) -> None:
    """Say what is called before the first picture is drawn: it must `register` the functions."""
    _LOADERS[:] = [load]


def register(*functions: Callable[..., Any]) -> None:
    """Functions that draw, each under its own name."""
    _DRAW.update({function.__name__: function for function in functions})


def drawing(name: str) -> Callable[..., Any]:
    """The function that draws the pictures of this name."""
    for load in _LOADERS:
        load()
    return _DRAW[name]
