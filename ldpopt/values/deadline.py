"""How long work may take, and who is told how far it is: one frozen value that is passed down, and its bar."""

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
def bar(what: str, steps: int | None = None, *, shares: bool = False) -> Iterator[Callable[..., None]]:
    """A bar on a terminal or in a notebook while work goes on: of `steps`, of `shares` in [0, 1], or a pulse."""
    if not (sys.stderr.isatty() or "FORCE_COLOR" in os.environ or "IPython" in sys.modules):
        yield lambda *_: None  # without Rich, which takes long to load
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):  # a bar that is disabled ends with an empty line
        yield lambda *_: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    counted = [TaskProgressColumn()] if shares else [MofNCompleteColumn()] if steps is not None else []
    columns = [TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(what, total=1.0 if shares else steps)

        def step(*done: object) -> None:
            if shares:
                shown.update(task, completed=float(str(done[0])))
            else:
                shown.advance(task)

        yield step


Item = TypeVar("Item")

Progress: TypeAlias = bool | Callable[[float], object]
"""True shows a bar on standard error; a function is called with the share in [0, 1] that is done, which never falls."""

EXPECTED = "seconds above 0, or inf or None for no limit"

MAX_TIMED = 0.99
"""The most that the clock alone says is done."""


class Passed(TypedDict):
    """What a function is called with that takes both."""

    time_limit: float | None
    progress: Progress


@dataclass
class Meter:
    """What has been told so far, and whether anything was left out for want of time."""

    report: Callable[[float], object] | None
    told: float = 0.0
    late: bool = False

    def tell(self, share: float) -> None:
        """Report the largest share so far."""
        self.told = max(self.told, min(share, 1.0))
        if self.report is not None:
            self.report(self.told)


@dataclass(frozen=True, eq=False)
class Deadline:
    """When work is to end, by a clock that nobody can set, and the part [low, high] of all progress that it is.

    seconds : allowed from `begun` on; inf for no limit. meter : None where there is no limit and nobody to tell.
    counted : whether rounds count as progress.
    """

    seconds: float = math.inf
    begun: float = 0.0
    meter: Meter | None = None
    low: float = 0.0
    high: float = 1.0
    counted: bool = True

    @property
    def late(self) -> bool:
        """Whether anything was left out because the time was over."""
        return self.meter is not None and self.meter.late

    @property
    def left(self) -> float | None:
        """Seconds that are left, as a time limit for another call: a little where there are none; None for no limit."""
        if math.isinf(self.seconds):
            return None
        return max(self.begun + self.seconds - monotonic(), 1e-9)

    @property
    def passed(self) -> Passed:
        """For another call: what is left of the time, and its progress as that of this part."""
        return {"time_limit": self.left, "progress": False if self.meter is None else self.tell}

    def over(self) -> bool:
        """Whether the time has ended; whoever asks leaves something out if so."""
        if self.meter is None or not monotonic() - self.begun >= self.seconds:
            return False
        self.meter.late = True
        return True

    def tell(self, share: float) -> None:
        """Say that a share in [0, 1] of this part is done. What the listener raises ends the work."""
        if self.meter is None:
            return
        done = share if self.counted else 0.0
        timed = min((monotonic() - self.begun) / self.seconds, MAX_TIMED) if math.isfinite(self.seconds) else 0.0
        self.meter.tell(max(timed, self.low + (self.high - self.low) * done))

    def rounds(self, items: Sequence[Item]) -> Iterator[Item]:
        """The items, while there is time: the first in any case. Before each it is told how many are done."""
        for turn, item in enumerate(items):
            self.tell(turn / len(items))
            if turn and self.over():
                return
            yield item

    def part(self, low: float, high: float) -> Deadline:
        """The same time, for a part of the progress."""
        span = self.high - self.low
        return replace(self, low=self.low + span * low, high=self.low + span * high)

    @property
    def inner(self) -> Deadline:
        """The same, for rounds within a round: they do not count as progress."""
        return replace(self, counted=False)

    def turn(self, number: int, of: int) -> Deadline:
        """For `number` of `of` pieces of work: an even share of the time that is left, and its part of progress."""
        part = self.part(number / of, (number + 1) / of)
        if math.isinf(self.seconds):
            return part
        now = monotonic()
        return replace(part, begun=now, seconds=max(self.begun + self.seconds - now, 1e-9) / (of - number))


UNLIMITED = Deadline()
"""No limit, and nobody to tell."""


@contextmanager
def watched(time_limit: Any, progress: Progress, what: str = "designing") -> Iterator[Deadline]:
    """The deadline of a call that takes `time_limit` and `progress`; a bar ends with it. `InvalidInput` for neither."""
    seconds = checked(time_limit)
    if not isinstance(progress, bool) and not callable(progress):
        raise invalid("progress", "True, False or a function of the share that is done", progress)
    if progress is False:
        yield UNLIMITED if math.isinf(seconds) else Deadline(seconds, monotonic(), Meter(None))
    elif progress is True:
        with bar(what, shares=True) as step:
            yield Deadline(seconds, monotonic(), Meter(step))
    else:
        meter = Meter(progress)
        yield Deadline(seconds, monotonic(), meter)
        meter.tell(1.0)


def checked(time_limit: Any) -> float:
    """A time limit in seconds; inf for None. `InvalidInput` for what is no number above 0."""
    if time_limit is None or (isinstance(time_limit, float) and time_limit == math.inf):
        return math.inf
    seconds = number(time_limit, "time_limit", EXPECTED)
    if not seconds > 0:
        raise invalid("time_limit", EXPECTED, time_limit)
    return seconds
