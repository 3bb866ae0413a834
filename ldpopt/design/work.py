"""What a check costs, known from the sizes of its numbers before anything is computed: operations and memory.

Every utility, constraint and certificate states a `Work` that its check does not exceed. A file may ask for any amount
of work, so that more than `OPERATIONS` or `MEMORY`, times a budget that the user raises, is refused with a sentence.
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

OPERATIONS = 1e9
"""The most operations without being asked: about ten seconds of one processor."""
MEMORY = 2e9
"""The most bytes without being asked: two gigabytes. To read a design of 10^6 answers takes about one."""
AFFORDED = 6e8
"""The operations after which a search inside of a proof ends, and proves nothing."""
BALLS = 150.0
"""How many operations on floats take as long as one in ball arithmetic of 256 bits."""
BALL = 500.0
"""The bytes of one number in ball arithmetic, with the object that holds it."""
PARSED = MappingProxyType({",": 56.0, "[": 100.0, "{": 500.0, '"': 40.0})
"""The most bytes of memory for each of these characters of a file, beside the text itself, while it is read."""
TEXT = 5.0
"""The most bytes of memory for each byte of a file's text."""


@dataclass(frozen=True)
class Work:
    """operations : of about ten nanoseconds each on floats, and more on balls. memory : bytes held at the same time.
    floats, held : operations and bytes that are on floats in either arithmetic. The sum of two is the work of one after
    the other.

    >>> Work(2e9, 100.0) + Work(1e9, 300.0)
    Work(operations=3000000000.0, memory=300.0, floats=0.0, held=0.0)
    """

    operations: float = 0.0
    memory: float = 0.0
    floats: float = 0.0
    held: float = 0.0

    def __add__(self, other: Work) -> Work:
        operations, floats = self.operations + other.operations, self.floats + other.floats
        return Work(operations, max(self.memory, other.memory), floats, max(self.held, other.held))

    @classmethod
    def on(cls, numbers: float, each: float, held: float | None = None) -> Work:
        """`each` operation on many numbers, of which `held` are in memory at a time, in a dozen arrays."""
        return cls(float(numbers) * each, 100.0 * float(numbers if held is None else held))

    @property
    def in_floats(self) -> Work:
        """The same work where it is on floats in either arithmetic."""
        return Work(0.0, 0.0, self.operations + self.floats, max(self.memory, self.held))

    @property
    def in_balls(self) -> Work:
        """The same work in ball arithmetic."""
        return Work(self.operations * BALLS, self.memory / 100 * BALL, self.floats, self.held)

    def refused(self, budget: float) -> str:
        """Why the work is more than a budget allows, naming only what is exceeded; empty where nothing is."""
        operations, memory = self.operations + self.floats, max(self.memory, self.held)
        needed = max(operations / OPERATIONS, memory / MEMORY)
        if needed <= budget:
            return ""
        asked = f"a budget of {math.ceil(needed)} allows it" if needed < 1e9 else "it is more than any budget"
        most, held = OPERATIONS * budget, MEMORY * budget
        exceeded = [f"{operations:.2g} operations, more than {most:.2g}"] if operations > most else []
        exceeded += [f"{memory / 1e6:,.0f} MB of memory, more than {held / 1e6:,.0f}"] if memory > held else []
        return f"not checked: that takes up to {', and '.join(exceeded)}; {asked}"


def number_of_times(budget: Any) -> float:
    """A budget as a float: how many times the usual work is allowed. `InvalidInput` unless it is positive."""
    expected = "a positive number, of times ten seconds and 2 GB"
    times = number(budget, "budget", expected)
    if times <= 0:
        raise invalid("budget", expected, times)
    return times


def size(values: Any) -> int:
    """How many numbers an array holds, or a tuple or record with all its parts; 1 for anything else."""
    if isinstance(values, np.ndarray):
        return values.size
    if dataclasses.is_dataclass(values):
        return sum(map(size, vars(values).values()))
    return sum(map(size, values)) if isinstance(values, tuple | list) else 1


def distinct(rows: Any) -> int:
    """The number of different rows of a matrix."""
    return len({row.tobytes() for row in np.asarray(rows)})


def parsing(text: str) -> Work:
    """What the values in a JSON text take while they are read: numbers and the lists and objects that hold them."""
    return Work(0.0, 2.0 * len(text) + sum(each * text.count(mark) for mark, each in PARSED.items()))


def of_pairs(k: int, m: int, each: float, most: float, screen: float = 15.0, held: float = 60.0) -> Work:
    """Comparing all pairs of k rows of m numbers: a screen of all, and `each` operation on at most `most` entries.

    screen, held : operations and bytes of the screen for each pair. Its products of matrices take much less an entry.
    """
    pairs = float(k) * k
    entries = min(pairs * m, max(most, 192.0 * m))
    screened = Work(pairs * (screen + m / 8), held * pairs)
    return (screened + Work.on(entries, each, min(entries, 2.0**19))).in_floats
