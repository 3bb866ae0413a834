"""The cost of a check, computed from the sizes of its numbers before the check starts: operations and memory.

Every utility, constraint and certificate states a `Work` that its check does not exceed. A file may require any amount
of work. So a check of more than `MAX_OPERATIONS` or `MAX_BYTES`, times a budget that the user can raise, is refused.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ldpopt.errors import invalid
from ldpopt.values.distribution import number

MAX_OPERATIONS = 1e9
"""The default limit of operations: about ten seconds of one processor."""
MAX_BYTES = 2e9
"""The default limit of memory: two gigabytes. Reading a design of 10^6 answers takes about one."""
MAX_SEARCH_OPERATIONS = 6e8
"""The operations after which a search within a proof ends, and proves nothing."""
OPERATIONS_PER_BALL_OPERATION = 150.0
"""How many operations on floats take as long as one in 256-bit ball arithmetic."""
BYTES_PER_BALL = 500.0
"""The bytes of one number in ball arithmetic, with the object that holds it."""
BYTES_PER_JSON_MARK = MappingProxyType({",": 56.0, "[": 100.0, "{": 500.0, '"': 40.0})
"""An upper bound of the bytes of memory per such character of a file, in addition to the text, while it is read."""
BYTES_PER_TEXT_BYTE = 5.0
"""An upper bound of the bytes of memory per byte of a file's text."""


@dataclass(frozen=True)
class Work:
    """The operations and the memory of a check. The sum of two is the work of one after the other.

    - `operations` : of about ten nanoseconds each on floats, and more on balls.
    - `memory` : bytes held at the same time.
    - `float_operations`, `float_bytes` : operations and bytes that are on floats in either arithmetic.

    >>> Work(2e9, 100.0) + Work(1e9, 300.0)
    Work(operations=3000000000.0, memory=300.0, float_operations=0.0, float_bytes=0.0)
    """

    operations: float = 0.0
    memory: float = 0.0
    float_operations: float = 0.0
    float_bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        operations, floats = self.operations + other.operations, self.float_operations + other.float_operations
        return Work(operations, max(self.memory, other.memory), floats, max(self.float_bytes, other.float_bytes))

    @classmethod
    def on(cls, numbers: float, operations_per_number: float, numbers_in_memory: float | None = None) -> Work:
        """Return the work of `operations_per_number` operations on each number.

        numbers_in_memory : how many are in memory at a time, in a dozen arrays; None for all.
        """
        return cls(
            float(numbers) * operations_per_number,
            100.0 * float(numbers if numbers_in_memory is None else numbers_in_memory),
        )

    @property
    def in_floats(self) -> Work:
        """The same work if it is on floats in either arithmetic."""
        return Work(0.0, 0.0, self.operations + self.float_operations, max(self.memory, self.float_bytes))

    @property
    def in_balls(self) -> Work:
        """The same work in ball arithmetic."""
        return Work(
            self.operations * OPERATIONS_PER_BALL_OPERATION,
            self.memory / 100 * BYTES_PER_BALL,
            self.float_operations,
            self.float_bytes,
        )

    def refusal(self, budget: float) -> str:
        """Return why the work exceeds a budget, naming only the exceeded limits; empty if it does not."""
        operations, memory = self.operations + self.float_operations, max(self.memory, self.float_bytes)
        required_budget = max(operations / MAX_OPERATIONS, memory / MAX_BYTES)
        if required_budget <= budget:
            return ""
        remedy = (
            f"a budget of {math.ceil(required_budget)} allows it"
            if required_budget < 1e9
            else "it is more than any budget"
        )
        allowed_operations, allowed_bytes = MAX_OPERATIONS * budget, MAX_BYTES * budget
        exceeded_limits = (
            [f"{operations:.2g} operations, more than {allowed_operations:.2g}"]
            if operations > allowed_operations
            else []
        )
        exceeded_limits += (
            [f"{memory / 1e6:,.0f} MB of memory, more than {allowed_bytes / 1e6:,.0f}"]
            if memory > allowed_bytes
            else []
        )
        return f"not checked: that takes up to {', and '.join(exceeded_limits)}; {remedy}"


def positive_budget(budget: Any) -> float:
    """Check a budget, a multiple of the default limits, and return it as a float.

    Raises `InvalidInput` unless it is positive.
    """
    expected = "a positive number, of times ten seconds and 2 GB"
    times = number(budget, "budget", expected)
    if times <= 0:
        raise invalid("budget", expected, times)
    return times


def count_numbers(values: Any) -> int:
    """Count the numbers of an array, or of a tuple or record with all its parts; 1 for anything else."""
    if isinstance(values, np.ndarray):
        return values.size
    if dataclasses.is_dataclass(values):
        return sum(map(count_numbers, vars(values).values()))
    return sum(map(count_numbers, values)) if isinstance(values, tuple | list) else 1


def count_distinct_rows(rows: Any) -> int:
    """Count the different rows of a matrix."""
    return len({row.tobytes() for row in np.asarray(rows)})


def parsing_work(text: str) -> Work:
    """Bound the memory of the values of a JSON text while they are read: numbers, and the lists and objects around
    them.
    """
    return Work(
        0.0,
        2.0 * len(text)
        + sum(bytes_per_mark * text.count(mark) for mark, bytes_per_mark in BYTES_PER_JSON_MARK.items()),
    )


def pairwise_work(
    k: int,
    m: int,
    operations_per_entry: float,
    max_entries: float,
    screen_operations: float = 15.0,
    screen_bytes: float = 60.0,
) -> Work:
    """Bound the work to compare all pairs of k rows of m numbers.

    A screen of all pairs is followed by `operations_per_entry` operations on at most `max_entries` entries.
    screen_operations, screen_bytes : operations and bytes of the screen per pair. Its products of matrices take much
    less per entry.
    """
    pairs = float(k) * k
    entries = min(pairs * m, max(max_entries, 192.0 * m))
    screen_work = Work(pairs * (screen_operations + m / 8), screen_bytes * pairs)
    return (screen_work + Work.on(entries, operations_per_entry, min(entries, 2.0**19))).in_floats
