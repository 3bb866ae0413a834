"""The parts of a frontier: computed by free workers, saved in a folder when they are finished, returned in order.

Workers are this process, several processes, or those of another backend of joblib, with the same results. The folder
has one file for every finished part, written whole or not at all, and a checksum of the problem, which is the same in
every process.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.utilities.base import Utility
from ldpopt.design.utilities.divergence import is_scipy_distribution
from ldpopt.divergences import FDivergence
from ldpopt.errors import InvalidInput, LdpoptError, Phrase, invalid
from ldpopt.files import strict
from ldpopt.files.atomic import UNFINISHED, PathLike, hold_lock, read_text, write_text
from ldpopt.values.deadline import Progress, checked, watched
from ldpopt.values.distribution import number, positive_integer
from ldpopt.version import __version__

Task = TypeVar("Task")
Result = TypeVar("Result")


def unordered_results(
    function: Callable[[Task], Result], tasks: Sequence[tuple[int, Task]], jobs: int
) -> Generator[tuple[int, Result], None, None]:
    """Yield (number, function(task)) for numbered tasks, in the order of completion.

    jobs : the number of joblib's workers; -1 for one on each core. When the caller stops or a task fails, waiting work
    is cancelled.
    """
    if jobs == 1 or len(tasks) < 2:
        for number, task in tasks:
            yield number, function(task)
    else:
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator_unordered", batch_size=1)
        numbered_results = pool(delayed(_call_numbered)(function, number, task) for number, task in tasks)
        try:
            # By calls of `next`: `yield from numbered` would close the pool outside of the block that catches warnings.
            yield from iter(numbered_results.__next__, None)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the warning says that tasks were cancelled, which is intended
                numbered_results.close()


def check_jobs(jobs: Any) -> int:
    """Return `jobs` after a check. Raises `InvalidInput` for anything but a number of workers or -1."""
    return jobs if jobs == -1 else positive_integer(jobs, "jobs")


def _call_numbered(function: Callable[[Task], Result], number: int, task: Task) -> tuple[int, Result]:
    return number, function(task)


_PROBES = np.concatenate([np.geomspace(1e-6, 1e6, 49), [1.0]])


def fingerprint(*values: Any) -> str:
    """Compute the SHA-256 of values of any type, as 64 hexadecimal digits.

    It depends on

    - the bits of numbers and arrays,
    - the type and the fields of dataclasses and other objects,
    - the nodes and edges of graphs,
    - the values of divergences,
    - the code and the enclosed variables of functions.

    Global variables that a function uses are not included.

    Examples
    --------
    >>> fingerprint(1.0, [2, 3]) == fingerprint(1.0, [2, 3]) != fingerprint(1.0, (2, 3))
    True
    """
    digest = sha256()
    for piece in _pieces(values, ()):
        digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.hexdigest()


def _pieces(value: Any, ancestors: tuple[int, ...]) -> Iterator[bytes]:
    """The parts of a value, depth first. `ancestors` holds the ids of the values that contain it, to end cycles."""
    parts = [] if id(value) in ancestors else list(_parts(value))
    yield f"{type(value).__qualname__} of {len(parts)}".encode()
    inner = (*ancestors, id(value))
    for part in parts:
        if isinstance(part, bytes):
            yield part
        else:
            yield from _pieces(part, inner)


def _parts(value: Any) -> Iterator[Any]:
    """The parts of a value: bytes, or values that have parts themselves."""
    if value is None or isinstance(value, (bool, int, str, bytes, complex)):
        yield repr(value).encode()
    elif isinstance(value, float):
        yield value.hex().encode()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield from (value.dtype.str.encode(), repr(value.shape).encode(), value.tobytes())
    elif isinstance(value, (np.generic, np.ndarray)):
        yield value.tolist()
    elif isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, (set, frozenset)):
        yield from (entry.encode() for entry in sorted(fingerprint(entry) for entry in value))
    elif isinstance(value, Mapping):
        yield from ((key, value[key]) for key in sorted(value, key=repr))
    elif isinstance(value, FDivergence):
        yield from (value.name, value.at_zero, value.slope_at_infinity, np.asarray(value.generator(_PROBES)))
    elif isinstance(value, type):
        yield from (value.__module__, value.__qualname__)
        if not value.__module__.startswith("ldpopt."):
            yield from (
                attribute for _, attribute in sorted(vars(value).items()) if isinstance(attribute, types.FunctionType)
            )
    elif isinstance(value, types.CodeType):
        yield from (value.co_code, value.co_names, value.co_consts)
    elif isinstance(value, types.FunctionType):
        yield from (value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__)
        yield from (cell.cell_contents for cell in value.__closure__ or ())
    elif isinstance(value, types.MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif hasattr(value, "nodes") and hasattr(value, "edges"):
        yield from (list(value.nodes(data=True)), list(value.edges(data=True)))
    elif is_scipy_distribution(value):
        yield from (value.dist.name, value.args, value.kwds)
    else:
        yield type(value)
        yield from _state(value)


def _state(value: Any) -> Iterator[Any]:
    if is_dataclass(value):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))
    elif hasattr(value, "__dict__"):
        yield from sorted(vars(value).items())
    else:
        names = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
        yield from [(name, getattr(value, name)) for name in names if hasattr(value, name)]
        yield getattr(value, "__qualname__", None)


FORMAT = "ldpopt-frontier"
PROBLEM = "problem.json"
LOCK = ".ldpopt.lock"


@dataclass(frozen=True)
class Checkpoint:
    """The finished parts of one problem. `problem` is its `fingerprint`."""

    folder: Path
    problem: str

    def load(self, number: int) -> Any:
        """Load the saved rows of a part, or None if it is not finished."""
        path = self.part(number)
        if not path.exists():
            return None
        record = strict.json_value(read_text(path), str(path))
        if not isinstance(record, dict) or record.get("problem") != self.problem or "rows" not in record:
            raise InvalidInput(f"{path} is not a part of this frontier; delete the file to compute the part again")
        return record["rows"]

    def save(self, number: int, rows: Any) -> None:
        """Save the rows of a part."""
        write_text(self.part(number), strict.json_text({"problem": self.problem, "rows": rows}), force=True)

    def part(self, number: int) -> Path:
        """Return the path of a part's file."""
        return self.folder / f"part-{number:06d}.json"


@contextmanager
def checkpoint(path: PathLike, problem: str) -> Iterator[Checkpoint]:
    """Open the folder at `path`, created if it does not exist, and lock it for this process.

    Raises `InvalidInput` for a folder that belongs to another problem, is in use, or holds other files.
    """
    folder = Path(path)
    problem_file = folder / PROBLEM
    with ExitStack() as stack:
        try:
            folder.mkdir(exist_ok=True)
            stack.enter_context(hold_lock(folder / LOCK, str(folder), "a folder that no other run works in"))
        except OSError as error:
            reason = Phrase((error.strerror or type(error).__name__).lower())
            raise invalid(str(folder), "a folder, or a place for a new one", reason) from None
        for unfinished_path in folder.glob(UNFINISHED):
            unfinished_path.unlink(missing_ok=True)
        if not problem_file.exists():
            if any(path.name != LOCK for path in folder.iterdir()):
                raise invalid(str(folder), "an empty folder, or that of an interrupted frontier", Phrase("another one"))
            write_text(problem_file, strict.json_text({"format": FORMAT, "problem": problem}))
        header = strict.json_value(read_text(problem_file), str(problem_file))
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise invalid(str(problem_file), "the header of a frontier", Phrase("something else"))
        if header.get("problem") != problem:
            expected = "the folder of the same frontier (same utility, constraints, grid, method and ldpopt version)"
            other = f"one of another problem ({str(header.get('problem'))[:12]}, now {problem[:12]})"
            raise invalid(str(folder), expected, Phrase(other))
        yield Checkpoint(folder, problem)


Part = TypeVar("Part")
Row = TypeVar("Row")


@dataclass(frozen=True)
class Work(Generic[Part, Row]):
    """The parts of a frontier, and functions for them.

    Attributes
    ----------
    compute : Function that computes the rows of a part. Its arguments are the part, the seconds for each design (None
        for no limit), and a function to call with the completed fraction of the part.
    unpack : Function that turns a row of JSON values back, for a part and the row's place in it; `row_to_json` made
        them.
    size : Function that counts the rows of a part.
    annotate : Function that adds the values that are known besides the design to a row, for a part and the row's place
        in it. The result is neither saved nor computed by workers.
    """

    parts: Sequence[Part]
    compute: Callable[..., list[Row]]
    unpack: Callable[[Part, int, Any], Row]
    size: Callable[[Part], int]
    annotate: Callable[[Part, int, Row], Row] = lambda _part, _position, row: row


def run(
    work: Work[Part, Row],
    on_row: Callable[[Row], object] | None,
    jobs: int,
    resume: PathLike | None,
    progress: Progress,
    time_limit: float | None,
) -> tuple[Row, ...]:
    """Compute the rows of all parts, in order.

    With `resume`, every finished part is saved before waiting for the next.
    """
    jobs = check_jobs(jobs)
    checked(time_limit)
    rows_by_part: dict[int, list[Row]] = {}
    problem = (work.parts,) if time_limit is None else (work.parts, float(time_limit))
    opening = nullcontext() if resume is None else checkpoint(resume, fingerprint(__version__, *problem))
    points = sum(map(work.size, work.parts))
    with opening as folder, watched(None, progress, "designing") as deadline:

        def report_progress(fraction: float = 0.0) -> None:
            deadline.tell((sum(map(len, rows_by_part.values())) + fraction) / points)

        def compute_here(part: Part) -> list[Row]:
            return work.compute(part, time_limit, lambda share: report_progress(share * work.size(part)))

        def finish(number: int, rows: list[Row]) -> None:
            rows = [work.annotate(work.parts[number], position, row) for position, row in enumerate(rows)]
            rows_by_part[number] = rows
            report_progress()
            for row in rows:
                if on_row is not None:
                    on_row(row)

        if folder is not None:
            for number, part in enumerate(work.parts):
                saved_rows = folder.load(number)
                if saved_rows is not None:
                    finish(number, _load_rows(work, part, saved_rows, folder.part(number)))
        remaining_parts = [(number, part) for number, part in enumerate(work.parts) if number not in rows_by_part]
        parallel = jobs != 1 and len(remaining_parts) > 1
        compute = (
            functools.partial(work.compute, time_limit=time_limit, progress=_ignore_progress)
            if parallel
            else compute_here
        )
        with closing(unordered_results(compute, remaining_parts, jobs)) as results:
            for number, rows in results:
                if folder is not None:
                    folder.save(number, [row_to_json(row) for row in rows])
                finish(number, rows)
    return tuple(row for number in sorted(rows_by_part) for row in rows_by_part[number])


def _load_rows(work: Work[Part, Row], part: Part, saved_rows: Any, path: Path) -> list[Row]:
    expected = "finished rows of this frontier (without the file, they are computed again)"
    if (
        not isinstance(saved_rows, list)
        or len(saved_rows) != work.size(part)
        or not all(isinstance(row, dict) for row in saved_rows)
    ):
        raise invalid(str(path), expected, Phrase("something else"))
    try:
        return [work.unpack(part, position, row) for position, row in enumerate(saved_rows)]
    except (LdpoptError, KeyError, TypeError, ValueError) as error:
        raise invalid(str(path), expected, Phrase(str(error) or type(error).__name__)) from None


def _ignore_progress(share: float) -> None:
    """Ignore the progress of a part that another process computes."""


def row_to_json(row: Any) -> dict[str, Any]:
    """Return the fields of a row as strict JSON values.

    The values inf, -inf and nan become text; channels have their JSON form.
    """
    return {field.name: _to_json(getattr(row, field.name)) for field in fields(row) if field.name not in DERIVED_FIELDS}


DERIVED_FIELDS = ("parameter", "guarantees", "baselines")
"""Fields of rows that are known from the problem, or measured again."""


def _to_json(value: Any) -> Any:
    if isinstance(value, Channel):
        return strict.json_value(value.to_json())
    return str(value) if isinstance(value, float) and not abs(value) < float("inf") else value


def number_from_json(value: Any) -> float:
    """Read the number that `row_to_json` wrote. Raises `InvalidInput` for nan and anything else."""
    return float(value) if value in ("inf", "-inf") else number(value, "number")


def utility_at(utility: Any, *point: Any) -> Utility:
    """Return a utility, or the one that a function gives for a point."""
    value = utility(*point) if callable(utility) and not isinstance(utility, Utility) else utility
    if not isinstance(value, Utility):
        raise invalid("utility", "a utility such as Divergence or MutualInformation", Phrase(type(value).__name__))
    return value


def table_text(head: list[str], lines: list[str]) -> str:
    """Format a table: its head, and at most thirty of its lines."""
    omission = [f"... {len(lines) - 30} more rows"] if len(lines) > 30 else []
    return "\n".join([*head, *lines[:30], *omission])
