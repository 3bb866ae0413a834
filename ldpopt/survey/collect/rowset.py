"""Fingerprints of sets of rows: the same rows have the same fingerprint in any order.

The fingerprint of a set is the sum, modulo 2**128, of one pseudorandom number for each row. The number comes from the
respondent, the plan and the survey key; if rows have no respondents, one number for each partition comes from the key
of the run. Without the key a fingerprint says nothing about the rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ldpopt.errors import Phrase, invalid

NO_ROWS = "0" * 32
"""The fingerprint of no rows."""

_HEX = frozenset("0123456789abcdef")


def is_hex(value: object, digits: int = 32) -> bool:
    """Whether `value` is a text of `digits` hexadecimal digits: 32 for a fingerprint, 64 for a SHA-256."""
    return isinstance(value, str) and len(value) == digits and set(value) <= _HEX


def row_set(value: object, where: str) -> str:
    """`value` if it is a fingerprint; else `InvalidInput`."""
    if not isinstance(value, str) or not is_hex(value):
        raise invalid("fingerprint", "32 hexadecimal digits", Phrase("something else"), where)
    return value


def total(parts: Iterable[str]) -> str:
    """The fingerprint of the union of disjoint sets.

    >>> total(["0" * 31 + "1", "f" * 32])
    '00000000000000000000000000000000'
    """
    return f"{sum(int(part, 16) for part in parts) % (1 << 128):032x}"


def of_numbers(numbers: npt.NDArray[np.uint64]) -> str:
    """The fingerprint of rows from their numbers, as little-endian words, shape (n, 2).

    >>> of_numbers(np.array([[2**64 - 1, 0], [2, 7]], np.uint64))
    '00000000000000080000000000000001'
    """
    made = 0
    for place in range(2):
        words = numbers[:, place]
        low, high = int((words & np.uint64(0xFFFFFFFF)).sum()), int((words >> np.uint64(32)).sum())
        made += (low + (high << 32)) << (64 * place)
    return f"{made % (1 << 128):032x}"
