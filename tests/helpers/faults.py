"""The n-th file operation of a run fails, or the process ends there: what SQLite is tested with, for Python.

`Faults` wraps what the standard library and pyarrow do with files. A kill is an exception that nothing catches, after
which every further operation fails too: no cleaning up runs, as none does in a process that was killed.
"""

from __future__ import annotations

import builtins
import errno
import io
import itertools
import os
import secrets
import shutil
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
from pyarrow import csv

from ldpopt.errors import InvalidInput
from ldpopt.files import strict
from ldpopt_survey.collect.coding import Tally
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Fresh, Memoized, Randomness
from ldpopt_survey.collect.words import SecretKey, create_key
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

READING = ("open", "scandir", "listdir")
CHANGING = ("mkdir", "rename", "replace", "link", "unlink", "remove", "rmdir", "fsync")
ARROW = ((pq, "write_table"), (csv, "write_csv"), (pq, "ParquetWriter"), (pq, "ParquetFile"), (csv, "read_csv"))
GROWING = {"mkdir", "link", "fsync", "open to write", "write_table", "write_csv", "ParquetWriter"}


NEVER = 10**9
"""The moment of a run in which nothing fails."""


class Killed(BaseException):
    """The process ended here."""


class Faults:
    """Counts file operations below `folder` and spoils the `moment`-th.

    kind : "fail" (an input/output error, once), "full" (from there on nothing grows), or "kill", which also cuts the
        file that was being flushed in half.
    """

    def __init__(self, kind: str, moment: int) -> None:
        self.kind, self.moment = kind, moment
        self.count, self.dead, self.struck = 0, False, ""
        self.names: list[str] = []
        self.places: dict[tuple[str, ...], list[int]] = {}

    def moments(self, all_of_them: bool) -> list[int]:
        """After a run without a fault: every operation, or the first or last of every line of code, and one beyond.

        What does not grow meets no full disk: in its stead the next one that does is named.
        """
        telling = {times[-(n % 2)] for n, times in enumerate(self.places.values())}
        found = {*(range(1, self.count + 1) if all_of_them else telling), self.count + 1}
        growing = [n for n, name in enumerate(self.names, 1) if name in GROWING] + [self.count + 1]
        return sorted({growing[bisect_left(growing, one)] for one in found} if self.kind == "full" else found)

    def _at(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self.dead:
            raise Killed
        self.count += 1
        if self.moment == NEVER:
            self.names.append(name)
            self.places.setdefault((name, *_lines_of_the_package()), []).append(self.count)
        if self.count < self.moment or (self.count > self.moment and self.kind != "full"):
            return
        if self.kind == "full":
            if name in GROWING:
                self.struck = self.struck or name
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return
        self.struck = name
        if self.kind == "fail":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.dead = True
        if name == "fsync":
            os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2) if _writable(arguments[0]) else None
        raise Killed

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def spoiled(*arguments: Any, **options: Any) -> Any:
            self._at(_named(name, arguments, options), arguments)
            return function(*arguments, **options)

        return spoiled

    @contextmanager
    def striking(self) -> Iterator[None]:
        """Let the operations in the block fail."""
        pieces = [(os, name) for name in READING + CHANGING] + [(builtins, "open"), (io, "open"), *ARROW]
        patches = [patch.object(place, name, self.wrap(name, getattr(place, name))) for place, name in pieces]
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in patches:
                one.stop()


def _named(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> str:
    if name != "open":
        return name
    mode = arguments[1] if len(arguments) > 1 else options.get("mode", "r")
    writes = any(letter in mode for letter in "wxa+") if isinstance(mode, str) else bool(mode & os.O_CREAT)
    return "open to write" if writes else name


def _lines_of_the_package() -> list[str]:
    """The two innermost lines of the package through which an operation is reached."""
    lines: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(lines) < 2:
        if "ldpopt" in Path(file := frame.f_code.co_filename).parts:
            lines.append(f"{file}:{frame.f_lineno}")
        frame = frame.f_back
    return lines


def _writable(handle: int) -> bool:
    import fcntl

    return fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


def everything(folder: Path) -> dict[str, bytes]:
    """The contents of all files below a folder, by their path in it; folders have none."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


CANARY = b"CANARY"


class Privatization:
    """A small run in one of the output forms: two files of answers, a policy that maps answers, ids or none."""

    def __init__(self, folder: Path, form: str) -> None:
        import pandas as pd

        kind, shape, self.random = form.split()
        self.folder = folder
        self.name = "reports" if shape == "folder" else f"reports.{kind}"
        memoised = self.random == "memoised"
        spec = SurveySpec("s", (QuestionSpec("q", (0, 1, 2), unknown=0),), respondent="id" if memoised else None)
        self.plan: Plan = make_plan(spec, {"q": (np.ones((3, 3)) + np.eye(3)) / 4})
        (folder / "raw").mkdir()
        for file in range(2):
            raw = pd.DataFrame({"id": [f"CANARY-{file}-{i}" for i in range(4)], "q": ["0", "1", "2", "CANARY"]})
            raw.to_csv(folder / "raw" / f"{file}.csv", index=False)
            if kind == "parquet":
                (folder / "raw" / f"{file}.csv").unlink()
                raw.to_parquet(folder / "raw" / f"{file}.parquet")
        create_key(folder / "key")
        self.recovered: set[frozenset[tuple[str, bytes]]] = set()
        self.whole_tally = self.into("whole")
        self.whole = everything(folder / "whole")

    def into(self, place: str) -> Tally:
        (self.folder / place).mkdir(exist_ok=True)
        randomness: Randomness = Memoized(self.folder / "key") if self.random == "memoised" else Fresh()
        reports, ledger = self.folder / place / self.name, self.folder / f"{place}.ledger"
        return privatize(self.plan, self.folder / "raw", reports, randomness, ledger=ledger)

    def spoiled(self, faults: Faults) -> Tally | BaseException:
        """What came out of a run with faults: its tally or its error."""
        (self.folder / "out").mkdir()
        with faults.striking():
            try:
                return self.into("out")
            except (OSError, InvalidInput, Killed) as error:
                return error

    def check(self, found: Tally | BaseException, what: str) -> None:
        """Nothing raw is left; if the run did not end, the same call ends it, with the same bytes and tally.

        From the same files, to the byte, it has ended once and is not made to end again.
        """
        for path, content in everything(self.folder / "out").items():
            assert CANARY not in content, (what, path)
        if not isinstance(found, Tally):
            assert CANARY.decode() not in str(found)
            mine = everything(self.folder).items()
            left = frozenset(one for one in mine if not one[0].startswith(("raw", "key", "whole")))
            if left in self.recovered:
                self._clear()
                return
            self.recovered.add(left)
            found = self.into("out")
        assert found == self.whole_tally, what
        assert everything(self.folder / "out") == self.whole, what
        assert len(strict.json_value((self.folder / "out.ledger").read_bytes(), "")["runs"]) == 1, what
        beside = self._clear()
        assert all(name.startswith(".ldpopt-") for name in beside), (what, beside)  # what a kill left of one file

    def _clear(self) -> set[str]:
        """Make room for another run; the names of what was there beside its reports and its ledger."""
        shutil.rmtree(self.folder / "out")
        (self.folder / "out.ledger").unlink(missing_ok=True)
        left = {path.name for path in self.folder.iterdir()} - {"raw", "key", "whole", "whole.ledger"}
        for name in left:
            (self.folder / name).unlink()
        return left


def spoil_operations(folder: Path, form: str, kind: str, all_of_them: bool) -> Counter[str]:
    """Let one file operation fail in each of many runs: one at every place of the code, or every one of them.

    Those that failed are counted by name.
    """
    # No power is lost here. A run's own key is the same each time, so that its reports can be compared, and so are the
    # names of its files on the way, but for those of the run before, which may lie there.
    same_key = patch.object(SecretKey, "fresh", classmethod(lambda _: SecretKey(bytes(32))))
    numbers = itertools.count()
    same_names = patch.object(secrets, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    with same_key, same_names, patch.object(os, "fsync", lambda _: None):
        run, unharmed = Privatization(folder, form), Faults(kind, NEVER)
        run.check(run.spoiled(unharmed), "no fault")
        assert unharmed.count > 60
        struck = Counter[str]()
        for moment in unharmed.moments(all_of_them):
            faults, numbers = Faults(kind, moment), itertools.count()
            found = run.spoiled(faults)
            run.check(found, f"{kind} at {moment}: {faults.struck}, {found!r}")
            assert bool(faults.struck) == (moment <= unharmed.count)
            struck[faults.struck or "nothing"] += 1
        assert {"open to write", "fsync"} <= set(struck)
    return struck
