"""A warning when the result of `add` is dropped: ledgers, filters and odometers are immutable, so nothing is recorded.

It works like Python's warning about a coroutine that was never awaited: a result notices that the very statement that
called `add` throws it away. A result that was stored anywhere never warns.
"""

from __future__ import annotations

import dis
import sys
import warnings
from types import CodeType
from typing import TypeVar

from ldpopt.errors import DroppedResult

V = TypeVar("V")

LONGEST_CALL = 16
"""A bound on the bytes of the instruction of a call, caches included: what follows it next is not farther away."""

_CALLS: dict[int, tuple[int, CodeType, int]] = {}
"""The frame, code and instruction of the call, by the identity of each result of `add`."""


def unread(value: V) -> V:
    """Return `value` for the method that calls this; it warns if the caller of the method drops it at once."""
    frame = sys._getframe(2)
    _CALLS[id(value)] = id(frame), frame.f_code, frame.f_lasti
    return value


class Noticing:
    """An immutable account whose `add` returns a new one, by `unread`."""

    def __del__(self) -> None:
        call = _CALLS.pop(id(self), None)
        if call is not None and not sys.is_finalizing() and _is_dropped(*call):
            name = type(self).__name__
            text = f"{name}.add returns a new {name} and changes nothing; the result was dropped"
            warnings.warn(f"{text}: write `name = name.add(...)`", DroppedResult, stacklevel=2)


def _is_dropped(frame_id: int, code: CodeType, instruction: int) -> bool:
    """Return True if the frame that collects a value is the one that called, where it pops the result."""
    frame = sys._getframe(2)
    if id(frame) != frame_id or frame.f_code is not code or not 0 <= frame.f_lasti - instruction <= LONGEST_CALL:
        return False
    return code.co_code[frame.f_lasti] == dis.opmap["POP_TOP"]
