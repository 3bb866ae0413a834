"""The folder of a frontier that can be interrupted: one file for every finished part, written whole or not at all."""

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
    """The finished parts of one problem. `problem` is its `fingerprint`."""

    folder: Path
    problem: str

    def load(self, number: int) -> Any:
        """The saved rows of a part, or None if it is not finished."""
        path = self.part(number)
        if not path.exists():
            return None
        found = strictjson.loads(read_text(path), str(path))
        if not isinstance(found, dict) or found.get("problem") != self.problem or "rows" not in found:
            raise invalid(str(path), "a part of this frontier (without the file, it is computed again)", Phrase("none"))
        return found["rows"]

    def save(self, number: int, rows: Any) -> None:
        """Save the rows of a part."""
        write_text(self.part(number), strictjson.dumps({"problem": self.problem, "rows": rows}), force=True)

    def part(self, number: int) -> Path:
        """The file of a part."""
        return self.folder / f"part-{number:06d}.json"


@contextmanager
def checkpoint(path: PathLike, problem: str) -> Iterator[Checkpoint]:
    """The folder at `path`, created if it does not exist, and locked for this process.

    Raises `InvalidInput` for a folder that belongs to another problem, is in use, or holds other files.
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
    """Write the problem into a new folder, or check that an old folder has the same problem."""
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
