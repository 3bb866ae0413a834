"""The parts of a frontier: they are computed by free workers, saved when they are finished, and returned in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ldpopt.deadline import Progress, checked, watched
from ldpopt.distribution import number
from ldpopt.errors import LdpoptError, Phrase, invalid
from ldpopt.files import PathLike
from ldpopt.frontiers.checkpoint import checkpoint
from ldpopt.frontiers.fingerprint import fingerprint
from ldpopt.frontiers.workers import checked as checked_jobs
from ldpopt.frontiers.workers import results
from ldpopt.version import __version__

Part = TypeVar("Part")
Row = TypeVar("Row")


@dataclass(frozen=True)
class Work(Generic[Part, Row]):
    """The parts of a frontier, and functions for them.

    compute : gives the rows of a part, from the part, the seconds for each design (None for no limit), and a function
    to call with the share of the part that is done. pack, unpack : turn rows into JSON values and back.
    size : the number of rows of a part. points : the number of rows of all parts.
    """

    parts: Sequence[Part]
    compute: Callable[[Part, float | None, Callable[[float], object]], list[Row]]
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
    progress: Progress,
    time_limit: float | None,
) -> tuple[Row, ...]:
    """The rows of all parts, in order. With `resume`, every finished part is saved before waiting for the next."""
    jobs = checked_jobs(jobs, client)
    checked(time_limit)
    done: dict[int, list[Row]] = {}
    asked = (work.parts,) if time_limit is None else (work.parts, float(time_limit))
    opened = nullcontext() if resume is None else checkpoint(resume, fingerprint(__version__, *asked))
    with opened as folder, watched(None, progress, "designing") as deadline:

        def told(more: float = 0.0) -> None:
            deadline.tell((sum(map(len, done.values())) + more) / work.points)

        def here(part: Part) -> list[Row]:
            return work.compute(part, time_limit, lambda share: told(share * work.size(part)))

        def finish(number: int, rows: list[Row]) -> None:
            done[number] = rows
            told()
            for row in rows:
                if each is not None:
                    each(row)

        if folder is not None:
            for number, part in enumerate(work.parts):
                saved = folder.load(number)
                if saved is not None:
                    finish(number, _unpacked(work, part, saved, folder.part(number)))
        left = [(number, part) for number, part in enumerate(work.parts) if number not in done]
        away = client is not None or (jobs != 1 and len(left) > 1)
        compute = _Elsewhere(work.compute, time_limit) if away else here
        with closing(results(compute, left, jobs, client)) as made:
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


@dataclass(frozen=True)
class _Elsewhere(Generic[Part, Row]):
    """The work of another process, which tells nobody how far it is."""

    compute: Callable[[Part, float | None, Callable[[float], object]], list[Row]]
    time_limit: float | None

    def __call__(self, part: Part) -> list[Row]:
        return self.compute(part, self.time_limit, _nobody)


def _nobody(share: float) -> None:
    """Whom the work of another process tells."""


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
