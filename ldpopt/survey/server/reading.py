"""Stored reports as tables like those in privatized files: without ids and days, in the order of the random ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ldpopt.errors import Phrase, invalid
from ldpopt.survey.collect.manifest import of_numbers, total
from ldpopt.survey.plan.plan import Plan
from ldpopt.survey.server.store import Rows, Store
from ldpopt.survey.server.submission import CODE

BATCH_ROWS = 1 << 16
MODE = "collected"
"""The mode of collected reports, in the place of a source of randomness such as "fresh"."""


def stored_batches(plan: Plan, store: Store, parts: dict[str, list[str]]) -> Iterator[Any]:
    """All reports of the round at one moment, as record batches; `InvalidInput` for a report that `plan` does not know.

    parts : a dictionary that receives the fingerprints of the rows by day. The fingerprint of a report is a hash of its
        id, and that of several reports is the sum. It shows whether two exports, or an export and the database, hold
        the same reports.
    """
    import pyarrow as pa

    labels = [pa.array(question.reports, pa.string()) for question in plan.questions]
    width = CODE.itemsize * len(plan.questions)
    for rows in store.rows(BATCH_ROWS):
        if any(len(codes) != width for _, _, codes in rows):
            raise invalid("database", f"a report to each of {len(plan.questions)} questions", Phrase("others"))
        codes = np.frombuffer(b"".join(codes for _, _, codes in rows), CODE).reshape(len(rows), -1)
        columns = {}
        for q, question in enumerate(plan.questions):
            if codes[:, q].max() >= len(labels[q]):
                raise invalid(
                    f"reports of {question.name!r}", f"one of the {len(labels[q])} of the plan", Phrase("another")
                )
            kind = np.int8 if len(labels[q]) < 1 << 7 else np.int32
            columns[question.name] = pa.DictionaryArray.from_arrays(pa.array(codes[:, q].astype(kind)), labels[q])
        for day, part in _parts(plan, rows).items():
            parts.setdefault(day, []).append(part)
        yield pa.record_batch(columns)


def parts_of(parts: dict[str, list[str]]) -> list[str]:
    """The fingerprint of each day's reports, in the order of the days."""
    return [total(parts[day]) for day in sorted(parts)]


def _parts(plan: Plan, rows: Rows) -> dict[str, str]:
    """The fingerprints of the rows of each day."""
    head = hashlib.sha256(f"ldpopt stored report {plan.checksum} ".encode())
    days: dict[str, list[bytes]] = {}
    for id, day, _ in rows:
        made = head.copy()
        made.update(id)
        days.setdefault(day, []).append(made.digest()[:16])
    return {day: of_numbers(np.frombuffer(b"".join(made), "<u8").reshape(-1, 2)) for day, made in days.items()}
