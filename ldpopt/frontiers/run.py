"""The parts of a frontier: they are computed by free workers, saved when they are finished, and returned in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ldpopt.distribution import number
from ldpopt.errors import LdpoptError, Phrase, invalid
from ldpopt.files import PathLike
from ldpopt.frontiers.checkpoint import checkpoint
from ldpopt.frontiers.fingerprint import fingerprint
from ldpopt.frontiers.workers import checked, results
from ldpopt.version import __version__

Part = TypeVar("Part")
Row = TypeVar("Row")


@dataclass(frozen=True)
class Work(Generic[Part, Row]):
    """The parts of a frontier, and functions for them.

    compute : gives the rows of a part. pack, unpack : turn rows into JSON values and back. size : the number of rows of
    a part.
    """

    parts: Sequence[Part]
    compute: Callable[[Part], list[Row]]
    pack: Callable[[Row], Any]
    unpack: Callable[[Part, int, Any], Row]
    size: Callable[[Part], int]

    @property
    def points(self) -> int:
        """The number of rows of all parts together."""
        return sum(map(self.size, self.parts))


def run(
    work: Work[Part, Row],
    each: Callable[[Row], object] | None,
    jobs: int,
    client: Any,
    resume: PathLike | None,
    progress: bool,
) -> tuple[Row, ...]:
    """The rows of all parts, in order. With `resume`, every finished part is saved before waiting for the next."""
    jobs = checked(jobs, client)
    done: dict[int, list[Row]] = {}
    opened = nullcontext() if resume is None else checkpoint(resume, fingerprint(__version__, work.parts))
    with opened as folder, _bar(work.points, progress) as advance:

        def finish(number: int, rows: list[Row]) -> None:
            done[number] = rows
            for row in rows:
                advance()
                if each is not None:
                    each(row)

        if folder is not None:
            for number, part in enumerate(work.parts):
                saved = folder.load(number)
                if saved is not None:
                    finish(number, _unpacked(work, part, saved, folder.part(number)))
        left = [(number, part) for number, part in enumerate(work.parts) if number not in done]
        with closing(results(work.compute, left, jobs, client)) as made:
            for number, rows in made:
                if folder is not None:
                    folder.save(number, [work.pack(row) for row in rows])
                finish(number, rows)
    return tuple(row for number in sorted(done) for row in done[number])


def _unpacked(work: Work[Part, Row], part: Part, saved: Any, path: Path) -> list[Row]:
    expected = "finished rows of this frontier (without the file, they are computed again)"
    if not isinstance(saved, list) or len(saved) != work.size(part) or not all(isinstance(row, dict) for row in saved):
        raise invalid(str(path), expected, Phrase("something else"))
    try:
        return [work.unpack(part, at, row) for at, row in enumerate(saved)]
    except (LdpoptError, KeyError, TypeError, ValueError) as error:
        raise invalid(str(path), expected, Phrase(str(error) or type(error).__name__)) from None


@contextmanager
def _bar(points: int, shown: bool) -> Iterator[Callable[[], object]]:
    """A progress bar on standard error, if `shown`; it disappears when the work is done."""
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("frontier", total=points)
        yield lambda: bar.advance(task)


def number_to_json(value: float | None) -> float | str | None:
    """A number as a strict JSON value: inf, -inf and nan become text."""
    return value if value is None or abs(value) < float("inf") else str(value)


def number_from_json(value: Any) -> float:
    """The number that `number_to_json` wrote. Raises `InvalidInput` for nan and anything else."""
    if value in ("inf", "-inf"):
        return float(value)
    return number(value, "number")


def number_or_none(value: Any) -> float | None:
    """`number_from_json`, or None for None."""
    return None if value is None else number_from_json(value)
