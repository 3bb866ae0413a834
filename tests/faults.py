"""The n-th file operation of a run fails, or the process ends there: what SQLite is tested with, for Python.

`Faults` wraps what the standard library and pyarrow do with files. A kill is an exception that nothing catches, after
which every further operation fails too: no cleaning up runs, as none does in a process that was killed.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import sys
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

from ldpopt import strictjson
from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.coding import Tally
from ldpopt.survey.collect.privatize import privatize
from ldpopt.survey.collect.randomness import Fresh, Memoised, Randomness
from ldpopt.survey.collect.words import SecretKey, create_key
from ldpopt.survey.plan.plan import Plan, make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

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
        self.places: dict[tuple[str, ...], list[int]] = {}

    def telling_moments(self) -> list[int]:
        """After a run without a fault: the first or the last operation of every place in the code, and one beyond."""
        return sorted({times[-(n % 2)] for n, times in enumerate(self.places.values())} | {self.count + 1})

    def _at(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self.dead:
            raise Killed
        self.count += 1
        if self.moment == NEVER:
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
        self.whole_tally = self.into("whole")
        self.whole = everything(folder / "whole")

    def into(self, place: str) -> Tally:
        (self.folder / place).mkdir(exist_ok=True)
        randomness: Randomness = Memoised(self.folder / "key") if self.random == "memoised" else Fresh()
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
        """Nothing raw is left; if the run did not end, the same call ends it, with the same bytes and tally."""
        for path, content in everything(self.folder / "out").items():
            assert CANARY not in content, (what, path)
        if not isinstance(found, Tally):
            assert CANARY.decode() not in str(found)
            found = self.into("out")
        assert found == self.whole_tally, what
        assert everything(self.folder / "out") == self.whole, what
        shutil.rmtree(self.folder / "out")
        assert len(strictjson.loads((self.folder / "out.ledger").read_bytes(), "")["runs"]) == 1, what
        (self.folder / "out.ledger").unlink()
        left = {path.name for path in self.folder.iterdir()} - {"raw", "key", "whole", "whole.ledger"}
        assert all(name.startswith(".ldpopt-") for name in left), (what, left)  # what a kill left of one file


def spoil_operations(folder: Path, form: str, kind: str, all_of_them: bool) -> Counter[str]:
    """Let one file operation fail in each of many runs: one at every place of the code, or every one of them.

    Those that failed are counted by name.
    """
    # No power is lost here. A run's own key is the same each time, so that its reports can be compared.
    same_key = patch.object(SecretKey, "fresh", classmethod(lambda _: SecretKey(bytes(32))))
    with same_key, patch.object(os, "fsync", lambda _: None):
        run, unharmed = Privatization(folder, form), Faults(kind, NEVER)
        run.check(run.spoiled(unharmed), "no fault")
        assert unharmed.count > 60
        struck = Counter[str]()
        for moment in range(1, unharmed.count + 2) if all_of_them else unharmed.telling_moments():
            faults = Faults(kind, moment)
            found = run.spoiled(faults)
            run.check(found, f"{kind} at {moment}: {faults.struck}, {found!r}")
            # Where nothing grows any more, a full disk is not noticed.
            assert kind == "full" or bool(faults.struck) == (moment <= unharmed.count)
            struck[faults.struck or "nothing"] += 1
        assert {"open to write", "fsync"} <= set(struck)
    return struck
