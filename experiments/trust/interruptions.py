"""Every command that writes, with a fault at each of its file operations and SQL statements: nothing may be stranded.

    python experiments/trust/interruptions.py [COMMAND ...] [--all] [--quick]

fail       the operation fails once with an input/output error
full       from the operation on, nothing grows: the disk is full
kill       the process is killed (SIGKILL) at the operation
read-only  nothing can be made in the folder (only root can try this)

After a fault the same command runs again. Then it has ended as if nothing had happened, or it says that its output is
there already, and that is whole. Invitations: every code of the file is drawn in the database, no other is, and the
ledger counts each person once. No output is ever there in part, and nothing shows a traceback.

--all tries every operation, otherwise the first or the last of each line of code; --quick tries a few commands.
Prints a table of commands and faults, and ends with exit code 1 if anything else happened.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import every_command
import faults

from ldpopt_survey import Plan
from ldpopt_survey.server import database
from ldpopt_survey.server.decide import drawn_mark
from ldpopt_survey.server.submission import invitation_hash

KINDS = ("fail", "full", "kill", "read-only")
NOBODY = 65534
GROWS = ("INSERT", "UPDATE", "CREATE", "DELETE", "COMMIT", "VACUUM")


class Striking(faults.Faults):
    """Faults that also strike statements of SQL, and that kill the process."""

    def _at(self, name: str, arguments: tuple[Any, ...]) -> None:
        try:
            super()._at(name, arguments)
        except faults.Killed:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(self, text: str) -> None:
        """Count a statement; a full disk refuses those that grow."""
        grows = text.lstrip().upper().startswith(GROWS)
        try:
            self._at("write_table" if grows else "statement", ())
        except OSError:
            full = self.kind == "full"
            raise sqlite3.OperationalError("database or disk is full" if full else "disk I/O error") from None


def struck_connections(strikes: Striking) -> Any:
    """`sqlite3.connect` with connections that ask `strikes` before each statement."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> Any:
            if not (strikes.dead or (strikes.struck and sql == "ROLLBACK")):
                strikes.statement(sql)
            return super().execute(sql, *values)

    connect = sqlite3.connect
    return patch.object(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Connection))


@dataclass(frozen=True)
class Attempt:
    """A command, what it writes, and a check of the folder once it has ended."""

    line: tuple[str, ...]
    outputs: tuple[str, ...]
    check: Callable[[Path], None] = lambda _: None


def invitations_hold(folder: Path) -> None:
    """Check that the codes of the file are those that are drawn, and that everybody is counted once."""
    plan = Plan.from_json((folder / "plan.json").read_text(encoding="utf-8"))
    codes = (folder / "codes.txt").read_text(encoding="utf-8").split()
    with database(folder / "new.db", plan) as store:
        marks = {drawn_mark(invitation_hash(plan.checksum, code)) for code in codes}
        with store._connected() as db:
            drawn = {bytes(row[0]) for row in db.execute("SELECT hash FROM invitations")}
        assert marks == drawn, (len(codes), len(drawn))
        assert store.summary().drawn == len(codes) == 200, len(codes)
    assert not [path.name for path in folder.iterdir() if path.name.endswith(".unfinished")]


def frame_holds(folder: Path) -> None:
    """Check the invitations of a frame, and that the ledger has them as one run."""
    invitations_hold(folder)
    ledger = json.loads((folder / "plan.json.ledger").read_bytes())
    runs = [run for run in ledger["runs"] if run["words"].startswith("invitations")]
    marks = [len(base64.b64decode(run["people"])) for run in runs]
    assert marks == [8 * 200], marks


def closed(folder: Path) -> None:
    """Check that the round is closed and holds no invitation."""
    plan = Plan.from_json((folder / "plan.json").read_text(encoding="utf-8"))
    with database(folder / "collected.db", plan) as store, store._connected() as db:
        assert store.state().closed
        assert db.execute("SELECT count(*) FROM invitations").fetchone() == (0,)


def rows_hold(name: str) -> Callable[[Path], None]:
    """Make a check that a CSV file of reports has all 200 rows."""

    def check(folder: Path) -> None:
        assert len((folder / name).read_text(encoding="utf-8").splitlines()) == 201

    return check


DATA = ("survey", "privatize", "plan.json", "people.csv", "--key")
ATTEMPTS = {
    "invitations": Attempt(
        ("survey", "invitations", "plan.json", "200", "--db", "new.db", "-o", "codes.txt"),
        ("codes.txt",),
        invitations_hold,
    ),
    "invitations --frame": Attempt(
        ("survey", "invitations", "plan.json", "--frame", "frame.csv", "--db", "new.db", "-o", "codes.txt"),
        ("codes.txt",),
        frame_holds,
    ),
    "collect --close": Attempt(("survey", "collect", "plan.json", "--db", "collected.db", "--close"), (), closed),
    "collect --check": Attempt(
        ("survey", "collect", "plan.json", "--db", "new.db", "--check", "--port", "0", "--token", "token"), ("token",)
    ),
    "export": Attempt(("survey", "export", "plan.json", "collected.db", "-o", "out.parquet"), ("out.parquet",)),
    "export a folder": Attempt(("survey", "export", "plan.json", "collected.db", "-o", "out"), ("out",)),
    "privatize csv": Attempt((*DATA, "key", "-o", "out.csv"), ("out.csv",), rows_hold("out.csv")),
    "privatize --new-key": Attempt(
        (*DATA, "other", "--new-key", "-o", "out.csv", "--ledger", "new.ledger"),
        ("out.csv", "other"),
        rows_hold("out.csv"),
    ),
    "privatize a folder": Attempt((*DATA, "key", "-o", "out"), ("out",)),
    "enter": Attempt(("survey", "enter", "paper/plan.json", "codes.csv", "-o", "out.csv"), ("out.csv",)),
    "aggregate": Attempt(("survey", "aggregate", "plan.json", "reports.csv", "-o", "out.json"), ("out.json",)),
    "kit": Attempt(("survey", "kit", "plan.json", "--out", "out"), ("out",)),
    "paper": Attempt(("survey", "paper", "one.json", "--device", "two-dice", "-o", "out"), ("out",)),
    "new": Attempt(("survey", "new", "people.csv", "-o", "out.toml", "--question", "drinks"), ("out.toml",)),
    "plan": Attempt(("survey", "plan", "one.toml", "-o", "out.json"), ("out.json",)),
    "consent": Attempt(("survey", "consent", "plan.json", "-o", "out.md"), ("out.md",)),
    "report": Attempt(("survey", "report", "plan.json", "counts.json", "-o", "out.html"), ("out.html",)),
    "to-r": Attempt(("survey", "to-r", "plan.json", "reports.csv", "-o", "out"), ("out",)),
    "estimate --out": Attempt(("survey", "estimate", "plan.json", "counts.json", "--out", "out.csv"), ("out.csv",)),
    "design": Attempt(
        ("design", *every_command.PAIR, "--epsilon", "1", "-o", "out.json", "--save-design", "out.design.json"),
        ("out.json", "out.design.json"),
    ),
    "frontier": Attempt(("frontier", *every_command.PAIR, "--epsilon", "1", "--eta", "0.2,1", "-o", "out"), ("out",)),
}
QUICK = ("invitations --frame", "collect --close")


@dataclass
class End:
    """What a run in a child process came to: exit code (negative for a signal), its output, and what was struck."""

    code: int
    text: str
    struck: str = ""
    moments: tuple[int, ...] = ()


def run(line: tuple[str, ...], folder: Path, strikes: Striking | None, every: bool, user: int | None = None) -> End:
    """Run a command in a child process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        code, said = 70, io.StringIO()
        try:
            os.chdir(folder)
            if user is not None:
                os.setuid(user)
            with redirect_stdout(said), redirect_stderr(said):
                code = _called(line, strikes)
        finally:
            moments = strikes.moments(every) if strikes and strikes.moment == faults.NEVER else []
            text = f"{strikes.struck if strikes else ''}\0{','.join(map(str, moments))}\0{said.getvalue()}"
            os.write(writer, text.encode("utf-8", "replace")[:60_000])
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        struck, _, rest = pipe.read().decode("utf-8", "replace").partition("\0")
    moments, _, text = rest.partition("\0")
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return End(code, text, struck, tuple(int(moment) for moment in moments.split(",") if moment))


def _called(line: tuple[str, ...], strikes: Striking | None) -> int:
    from ldpopt.cli import app

    try:
        if strikes is None:
            return int(app(list(line), standalone_mode=False) or 0)
        with strikes.striking(), struck_connections(strikes):
            return int(app(list(line), standalone_mode=False) or 0)
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        return 70


def contents(path: Path) -> dict[str, int]:
    """The sizes of the files at a path, by name; empty if there is nothing."""
    if path.is_dir():
        return {str(one.relative_to(path)): one.stat().st_size for one in sorted(path.rglob("*"))}
    return {"": path.stat().st_size} if path.exists() else {}


def tried(name: str, home: Path, kind: str, every: bool, counts: Counter[str], step: int = 1) -> None:
    """Strike a command at every `step`-th moment, and count how it ended and whether it could be ended afterwards."""
    attempt = ATTEMPTS[name]
    with tempfile.TemporaryDirectory() as outer:
        os.chmod(outer, 0o755)
        clean = Path(outer, "clean")
        shutil.copytree(home, clean)
        counting = Striking(kind, faults.NEVER)
        whole = run(attempt.line, clean, counting, every)
        assert whole.code == 0, (name, whole)
        attempt.check(clean)
        expected = {output: contents(clean / output) for output in attempt.outputs}
        moments = (0,) if kind == "read-only" else whole.moments[::step]
        for moment in moments:
            work = Path(outer, "work")
            shutil.copytree(home, work)
            end = _struck(attempt.line, work, kind, moment, every)
            wrong = _judged(attempt, work, end, expected)
            counts["WRONG" if wrong else "tries"] += 1
            counts[f"ended with {end.code}"] += 1
            if wrong:
                print("WRONG", name, kind, moment, end.struck, wrong, end.text[-300:], flush=True)
            shutil.rmtree(work)


def _struck(line: tuple[str, ...], work: Path, kind: str, moment: int, every: bool) -> End:
    if kind != "read-only":
        return run(line, work, Striking(kind, moment), every)
    for path in (work, *work.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o555 if path.is_dir() else path.stat().st_mode)
    end = run(line, work, None, every, NOBODY)
    for path in (work, *work.rglob("*")):
        os.chown(path, os.getuid(), os.getgid())
        path.chmod(0o755 if path.is_dir() else path.stat().st_mode)
    return end


def _judged(attempt: Attempt, work: Path, end: End, expected: dict[str, dict[str, int]]) -> str:
    """What is wrong after a fault and after the command was repeated; empty if nothing is."""
    if "Traceback" in end.text or end.code not in (0, 1, 2, -signal.SIGKILL):
        return f"exit code {end.code}"
    for output, files in expected.items():
        there = contents(work / output)
        if output == "codes.txt" and there == {"": 0}:  # its codes wait
            continue
        if there and (there.keys() != files.keys() or (0 in there.values() and 0 not in files.values())):
            return f"{output} is there in part: {sorted(files.keys() - there.keys())[:3]}"
    again = run(attempt.line, work, None, False)
    made = all(contents(work / output).keys() == files.keys() for output, files in expected.items())
    if again.code == 2 and "exist" not in again.text and "taken" not in again.text:
        return f"repeated: {again.text[-300:]}"
    if again.code == 2 and "--new-key" in again.text:  # the key is there; the message says to leave the option out
        again = run(tuple(word for word in attempt.line if word != "--new-key"), work, None, False)
        made = all(contents(work / output).keys() == files.keys() for output, files in expected.items())
    if again.code == 2 and not made:  # one of several outputs is there: --force, as the message says
        again = run((*attempt.line, "--force"), work, None, False)
        if again.code:
            return f"stranded: {again.text[-300:]}"
    if again.code not in (0, 2):
        return f"repeated: {again.code} {again.text[-300:]}"
    try:
        attempt.check(work)
    except (AssertionError, OSError) as error:
        return f"repeated, and then {error!r}"
    return ""


def main() -> int:
    """Try the commands that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", choices=[*ATTEMPTS, []])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if kind != "read-only" or os.getuid() == 0]
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        home = Path(name, "home")
        home.mkdir()
        before = Path.cwd()
        os.chdir(home)
        every_command.write_inputs(home)
        if given.quick:
            assert every_command.here(("survey", "plan", "survey.toml", "-n", "200"))[0] == 0
        else:
            every_command.run_every(every_command.here)
        _collect_more(home)
        os.chdir(before)
        print(f"{'command':24}" + "".join(f"{kind:>28}" for kind in kinds))
        for command in given.commands or (QUICK if given.quick else ATTEMPTS):
            cells = []
            for kind in kinds:
                counts = Counter[str]()
                tried(command, home, kind, given.all, counts, 5 if given.quick else 1)
                wrong += counts["WRONG"]
                ends = ", ".join(f"{key[11:]}: {counts[key]}" for key in sorted(counts) if key.startswith("ended"))
                cells.append(f"{counts['WRONG']} of {counts['tries'] + counts['WRONG']} ({ends})")
            print(f"{command:24}" + "".join(f"{cell:>28}" for cell in cells), flush=True)
    return 1 if wrong else 0


def _collect_more(home: Path) -> None:
    """A frame, and a database with an open round that has reports and invitations."""
    (home / "frame.csv").write_text("\n".join(["id", *(f"f{n}" for n in range(200))]) + "\n", encoding="utf-8")
    for made in ("collected.db", "consent.md", "channel.json", "channel.png"):
        (home / made).unlink(missing_ok=True)
    plan = Plan.from_json((home / "plan.json").read_text(encoding="utf-8"))
    from ldpopt_survey.server import Submission, draw_invitations

    with database(home / "collected.db", plan, create=True) as store:
        codes = draw_invitations(plan, store, 80)
        sent = [
            Submission(os.urandom(16), bytes(4 * len(plan.answers)), invitation_hash(plan.checksum, code))
            for code in codes[:60]
        ]
        store.write(sent, "2026-01-30")


if __name__ == "__main__":
    sys.exit(main())
