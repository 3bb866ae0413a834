"""Time limits and progress reports: one frozen value that is passed down, and its bar."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, TypeAlias, TypedDict, TypeVar

from ldpopt.errors import invalid
from ldpopt.values.distribution import number

__all__ = ["EXPECTED", "MAX_TIMED", "UNLIMITED", "Deadline", "Meter", "Passed", "Progress", "bar", "checked", "watched"]


@contextmanager
def bar(label: str, steps: int | None = None, *, shares: bool = False) -> Iterator[Callable[..., None]]:
    """Print a bar on a terminal or in a notebook during work."""
    # It counts `steps`, or shows fractions in [0, 1], or pulses.
    if not (sys.stderr.isatty() or "FORCE_COLOR" in os.environ or "IPython" in sys.modules):
        yield lambda *_: None  # without Rich, which takes long to load
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):  # a bar that is disabled ends with an empty line
        yield lambda *_: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    count_columns = [TaskProgressColumn()] if shares else [MofNCompleteColumn()] if steps is not None else []
    columns = [TextColumn("{task.description}"), BarColumn(), *count_columns, TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task(label, total=1.0 if shares else steps)

        def step(*fraction: object) -> None:
            if shares:
                display.update(task, completed=float(str(fraction[0])))
            else:
                display.advance(task)

        yield step


Item = TypeVar("Item")

Progress: TypeAlias = bool | Callable[[float], object]
"""True shows a bar on standard error; a function is called with the share in [0, 1] that is done, which never falls."""

EXPECTED = "seconds above 0, or inf or None for no limit"

MAX_TIMED = 0.99
"""The most that the clock alone says is done."""


class Passed(TypedDict):
    """The keyword arguments of a function that takes both a time limit and a progress listener."""

    time_limit: float | None
    progress: Progress


@dataclass
class Meter:
    """The progress reported so far, and whether any work was skipped for lack of time."""

    report: Callable[[float], object] | None
    reported: float = 0.0
    late: bool = False

    def tell(self, share: float) -> None:
        """Send the largest fraction so far to the listener."""
        self.reported = max(self.reported, min(share, 1.0))
        if self.report is not None:
            self.report(self.reported)


@dataclass(frozen=True, eq=False)
class Deadline:
    """A time limit by a monotonic clock, and the part [low, high] of all progress that the work is.

    seconds : allowed from `start` on; inf for no limit.
    meter : None without a limit and a listener.
    counted : True if rounds count as progress.
    """

    seconds: float = math.inf
    start: float = 0.0
    meter: Meter | None = None
    low: float = 0.0
    high: float = 1.0
    counted: bool = True

    @property
    def late(self) -> bool:
        """True if any work was skipped because the time was over."""
        return self.meter is not None and self.meter.late

    @property
    def left(self) -> float | None:
        """Seconds that are left, as a time limit for another call: a little where there are none; None for no limit."""
        if math.isinf(self.seconds):
            return None
        return max(self.start + self.seconds - monotonic(), 1e-9)

    @property
    def passed(self) -> Passed:
        """The remaining time, and the progress of this part, as arguments of another call."""
        return {"time_limit": self.left, "progress": False if self.meter is None else self.tell}

    def over(self) -> bool:
        """Return True once the time limit has passed, and mark the result as incomplete."""
        # Callers skip work when this is True.
        if self.meter is None or not monotonic() - self.start >= self.seconds:
            return False
        self.meter.late = True
        return True

    def tell(self, share: float) -> None:
        """Send the listener a fraction in [0, 1] of this part; its errors end the work."""
        if self.meter is None:
            return
        fraction_done = share if self.counted else 0.0
        elapsed_fraction = (
            min((monotonic() - self.start) / self.seconds, MAX_TIMED) if math.isfinite(self.seconds) else 0.0
        )
        self.meter.tell(max(elapsed_fraction, self.low + (self.high - self.low) * fraction_done))

    def rounds(self, items: Sequence[Item]) -> Iterator[Item]:
        """Iterate over the items while there is time, the first in any case, and report progress."""
        for turn, item in enumerate(items):
            self.tell(turn / len(items))
            if turn and self.over():
                return
            yield item

    def part(self, low: float, high: float) -> Deadline:
        """Return the same time limit for a part of the progress."""
        span = self.high - self.low
        return replace(self, low=self.low + span * low, high=self.low + span * high)

    @property
    def inner(self) -> Deadline:
        """The same, for rounds within a round: they do not count as progress."""
        return replace(self, counted=False)

    def turn(self, number: int, count: int) -> Deadline:
        """Return the deadline of piece `number` of `count`: an even part of the remaining time."""
        part = self.part(number / count, (number + 1) / count)
        if math.isinf(self.seconds):
            return part
        now = monotonic()
        return replace(part, start=now, seconds=max(self.start + self.seconds - now, 1e-9) / (count - number))


UNLIMITED = Deadline()
"""No limit, and nobody to tell."""


@contextmanager
def watched(time_limit: Any, progress: Progress, label: str = "designing") -> Iterator[Deadline]:
    """Create the deadline of a call that takes `time_limit` and `progress`; a bar ends with it."""
    seconds = checked(time_limit)
    if not isinstance(progress, bool) and not callable(progress):
        raise invalid("progress", "True, False or a function of the share that is done", progress)
    if progress is False:
        yield UNLIMITED if math.isinf(seconds) else Deadline(seconds, monotonic(), Meter(None))
    elif progress is True:
        with bar(label, shares=True) as step:
            yield Deadline(seconds, monotonic(), Meter(step))
    else:
        meter = Meter(progress)
        yield Deadline(seconds, monotonic(), meter)
        meter.tell(1.0)


def checked(time_limit: Any) -> float:
    """Return a time limit in seconds; inf for None."""
    if time_limit is None or (isinstance(time_limit, float) and time_limit == math.inf):
        return math.inf
    seconds = number(time_limit, "time_limit", EXPECTED)
    if not seconds > 0:
        raise invalid("time_limit", EXPECTED, time_limit)
    return seconds
