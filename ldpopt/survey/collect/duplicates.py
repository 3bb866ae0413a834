"""Rows whose respondent has an earlier row, found in constant memory by keyed pseudonyms spilled to disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BUCKET_ROWS = 1 << 19
_RECORD = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<i8")])


def duplicate_rows(identities: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The sorted row numbers of all but the first row of every identity.

    identities : (n, 2) 128-bit pseudonyms; rows : their n row numbers, increasing.

    >>> duplicate_rows(np.array([[1, 2], [1, 3], [1, 2]], np.uint64), np.array([10, 11, 12]))
    array([12])
    """
    order = np.argsort(identities[:, 0])
    sorted_ = identities[order, 0]
    same = np.flatnonzero(sorted_[1:] == sorted_[:-1])
    if len(same) == 0:
        return np.empty(0, np.int64)
    # Only rows that share their first word are compared in full.
    suspects = np.unique(order[np.union1d(same, same + 1)])
    by_identity = suspects[np.lexsort((suspects, identities[suspects, 1], identities[suspects, 0]))]
    ordered = identities[by_identity]
    again = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1)) + 1
    return np.sort(rows[by_identity[again]])


def bucket_count(rows: int) -> int:
    """How many buckets keep each at about `BUCKET_ROWS` rows; a power of two, at most 2**16."""
    return min(1 << max(0, (rows // BUCKET_ROWS).bit_length()), 1 << 16)


def spilled(identities: npt.NDArray[np.uint64], first_row: int, buckets: int) -> bytes:
    """A partition's identities and row numbers as the contents of a file, grouped by bucket."""
    bucket = (identities[:, 0] & np.uint64(buckets - 1)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    made = np.empty(len(identities), _RECORD)
    made["high"], made["low"] = identities[order, 0], identities[order, 1]
    made["row"] = order + first_row
    ends = np.zeros(buckets + 1, "<i8")
    ends[1:] = np.cumsum(np.bincount(bucket, minlength=buckets))
    return ends.tobytes() + made.tobytes()


def duplicates_in_bucket(paths: Sequence[Path], bucket: int, buckets: int) -> npt.NDArray[np.int64]:
    """The duplicate rows among all spilled identities of one bucket."""
    parts: list[npt.NDArray[Any]] = []
    for path in paths:
        with open(path, "rb") as file:
            file.seek(8 * bucket)
            start, stop = np.fromfile(file, "<i8", 2)
            file.seek(8 * (buckets + 1) + _RECORD.itemsize * int(start))
            parts.append(np.fromfile(file, _RECORD, int(stop - start)))
    whole = np.concatenate(parts)
    identities = np.stack([whole["high"], whole["low"]], axis=1)
    return duplicate_rows(identities, np.asarray(whole["row"], np.int64))
