"""The folder of a frontier that can be interrupted: one file for every finished part, whole or absent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldpopt import strictjson
from ldpopt.errors import Phrase, invalid
from ldpopt.files import UNFINISHED, PathLike, read_text, write_text
from ldpopt.locks import held

FORMAT = "ldpopt-frontier"
PROBLEM = "problem.json"
LOCK = ".ldpopt.lock"


@dataclass(frozen=True)
class Checkpoint:
    """The parts of one problem that are done. `problem` is its `fingerprint`."""

    folder: Path
    problem: str

    def load(self, number: int) -> Any:
        """What was saved of a part, or None."""
        path = self.part(number)
        if not path.exists():
            return None
        found = strictjson.loads(read_text(path), str(path))
        if not isinstance(found, dict) or found.get("problem") != self.problem or "rows" not in found:
            raise invalid(str(path), "a part of this frontier (without the file, it is computed again)", Phrase("none"))
        return found["rows"]

    def save(self, number: int, rows: Any) -> None:
        """Keep a part."""
        write_text(self.part(number), strictjson.dumps({"problem": self.problem, "rows": rows}), force=True)

    def part(self, number: int) -> Path:
        """Where a part is kept."""
        return self.folder / f"part-{number:06d}.json"


@contextmanager
def checkpoint(path: PathLike, problem: str) -> Iterator[Checkpoint]:
    """The folder at `path`, made if need be and held for this process alone.

    `InvalidInput` for a folder that began with another problem, is in use, or holds something else.
    """
    folder = Path(path)
    with ExitStack() as stack:
        try:
            folder.mkdir(exist_ok=True)
            stack.enter_context(held(folder / LOCK, str(folder), "a folder that no other run works in"))
        except OSError as error:
            reason = Phrase((error.strerror or type(error).__name__).lower())
            raise invalid(str(folder), "a folder, or a place for a new one", reason) from None
        for left in folder.glob(UNFINISHED):
            left.unlink(missing_ok=True)
        _claim(folder, problem)
        yield Checkpoint(folder, problem)


def _claim(folder: Path, problem: str) -> None:
    """Write what the folder is for into a new one, check it in an old one."""
    own = folder / PROBLEM
    if not own.exists():
        if any(path.name != LOCK for path in folder.iterdir()):
            raise invalid(str(folder), "an empty folder, or that of an interrupted frontier", Phrase("another one"))
        write_text(own, strictjson.dumps({"format": FORMAT, "problem": problem}))
        return
    found = strictjson.loads(read_text(own), str(own))
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise invalid(str(own), "what a frontier began with", Phrase("something else"))
    if found.get("problem") != problem:
        raise invalid(
            str(folder), "the folder of the same frontier (same utility, constraints, grid, method and ldpopt version)",
            Phrase(f"one of another problem ({str(found.get('problem'))[:12]}, now {problem[:12]})"),
        )  # fmt: skip
