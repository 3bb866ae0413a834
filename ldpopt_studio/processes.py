"""A view or a job, by its name and a state -> its outcome, from a process that can be killed."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import pkgutil
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ldpopt.errors import LdpoptError
from ldpopt_studio.fields import FieldError, plain

RUNNING = 3
"""Jobs that run at once. Another one replaces the oldest."""
KEPT = 24
"""The most jobs whose results are kept."""


VIEW_SECONDS = 60
"""A view that takes longer is given up."""


FOLDER = "ldpopt-studio-"
"""The name of a process's folder of temporary files begins with this, and with the number of the studio's process."""
CONTEXT = multiprocessing.get_context("forkserver") if sys.platform == "linux" else multiprocessing.get_context("spawn")
"""How processes begin: as copies of one that only imports, or each by importing."""
PRELOADED = ["ldpopt.cli", "ldpopt_studio.tell", __name__]


def sweep() -> None:
    """Remove the folders of studios that were killed with all their processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*-*") if os.name == "posix" else ():
        number = folder.name.removeprefix(FOLDER).partition("-")[0]
        try:
            os.kill(int(number), 0)
        except (ProcessLookupError, OverflowError):
            shutil.rmtree(folder, ignore_errors=True)
        except (PermissionError, ValueError):  # another user's, or no folder of ours
            continue


class Views:
    """The process that answers views, one after another. It is killed with a view that nobody waits for any more."""

    def __init__(self) -> None:
        self._process: _Job | None = None
        self._turn = asyncio.Lock()

    def warm(self) -> None:
        """Start the process, unless it runs."""
        if self._process is None or not self._process.process.is_alive():
            self.close()
            self._process = _Job(lasting=True)

    async def outcome(self, place: str, state: Any, gone: Callable[[], Awaitable[bool]]) -> dict[str, Any]:
        """The outcome of a view; an ``error`` if it takes too long, and if `gone` says that the page left."""
        async with self._turn:
            if await gone():
                return {"error": "The page asked for something else."}
            await asyncio.to_thread(self.warm)
            process = self._process
            assert process is not None
            process.begin(place, state)
            said = None
            try:
                for _ in range(20 * VIEW_SECONDS):
                    said = await asyncio.to_thread(process.answer, 0.05)
                    if said is not None:
                        return said
                    if await gone():
                        break
            finally:
                if said is None:  # its answer may not be taken for that of the next view
                    self.close()
            await asyncio.to_thread(self.warm)
            return {"error": f"This takes longer than {VIEW_SECONDS} seconds here: try it with fewer answers."}

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
        self._process = None


class Jobs:
    """The jobs of one studio, started by name, watched and killed. A spare process, with everything imported, waits."""

    def __init__(self, functions: Mapping[str, str]) -> None:
        self._functions = functions
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()
        self._spare: _Job | None = None

    def warm(self) -> None:
        """Start the process that waits for a job."""
        with self._lock:
            self._spare = self._spare or _Job()

    def start(self, name: str, state: Any) -> str:
        """Begin a job and return its id; `KeyError` for an unknown name."""
        place = self._functions[name]
        with self._lock:
            live = [job for job in self._jobs.values() if not job.end]
            if len(live) >= RUNNING:
                live[0].kill()
            job, self._spare = self._spare or _Job(), None
            job.begin(place, state)
            which = secrets.token_urlsafe(12)
            self._jobs[which] = job
            for old in list(self._jobs)[:-KEPT]:
                self._jobs.pop(old).kill()
        return which

    def look(self, which: str) -> dict[str, Any] | None:
        """The progress of a job, and its result when it is done; None for an unknown id."""
        with self._lock:
            job = self._jobs.get(which)
            if job is None:
                return None
            told = job.look()
            self._spare = self._spare or (_Job() if job.end else None)
            return told

    def cancel(self, which: str) -> bool:
        """Kill a job and forget it. Returns whether there was one."""
        with self._lock:
            job = self._jobs.pop(which, None)
            if job is not None:
                job.kill()
                self._spare = self._spare or _Job()
            return job is not None

    def close(self) -> None:
        """Kill everything."""
        with self._lock:
            for job in (*self._jobs.values(), *([self._spare] if self._spare else [])):
                job.kill()
            self._jobs, self._spare = {}, None


class _Job:
    """A process for one job, or for views, and its last message.

    Both ends send JSON, so neither makes the other run code.
    """

    def __init__(self, lasting: bool = False) -> None:
        CONTEXT.set_forkserver_preload(PRELOADED)
        self.pipe, there = CONTEXT.Pipe()
        # What is killed cannot remove what it wrote.
        self._folder = tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-")
        self.process = CONTEXT.Process(target=_work, args=(there, lasting, self._folder), daemon=True)
        self.process.start()
        there.close()
        self.progress, self.end = 0.0, dict[str, Any]()

    def begin(self, place: str, state: Any) -> None:
        try:
            self.pipe.send_bytes(json.dumps([place, state]).encode())
        except OSError:  # the waiting process was killed from outside
            self.finish({"error": "The work could not be begun; try again."})

    def look(self) -> dict[str, Any]:
        while not self.end and (said := self.answer(0.0)) is not None:
            if "progress" in said:
                self.progress = said["progress"]
            elif not self.end:
                self.finish(said)
        return {"progress": 1.0 if self.end else self.progress, "done": bool(self.end), **self.end}

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """The next message, such as the outcome of a view; None if there is none within `seconds`."""
        try:
            if self.end or not self.pipe.poll(seconds):
                return self.end or None
            said: dict[str, Any] = json.loads(self.pipe.recv_bytes())
            return said
        except (EOFError, OSError):
            self.finish({"error": "The work ended before it was done; there may not have been enough memory."})
            return self.end

    def finish(self, end: dict[str, Any]) -> None:
        self.end = end
        if self.process.is_alive():
            self.process.kill()
        self.process.join(5)
        self.pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        if not self.end:
            self.finish({"error": "This was cancelled."})


def _work(pipe: Connection, lasting: bool, folder: str) -> None:
    """The function of a process: it imports what most jobs need, and does one job, or views until it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the studio, which then ends this process
    tempfile.tempdir = folder
    prepared = import_module("ldpopt_studio.tell")
    if lasting:
        prepared.warm()

    # What the numbers' library warns of is in the results, as far as they are concerned; the terminal shows none of it.
    warnings.filterwarnings("ignore", category=RuntimeWarning)

    def send(said: dict[str, Any]) -> None:
        try:
            pipe.send_bytes(json.dumps(said).encode())
        except OSError:
            raise _StudioGone from None

    try:
        while lasting:
            send(outcome(*json.loads(pipe.recv_bytes())))
        place, state = json.loads(pipe.recv_bytes())
        send(outcome(place, state, lambda share: send({"progress": min(1.0, float(share))})))
        pipe.close()
    except (EOFError, OSError, _StudioGone):
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _StudioGone(BaseException):
    """The studio was ended while a process worked for it: nothing catches this but the process's own function."""


def outcome(place: str, *arguments: Any) -> dict[str, Any]:
    """The outcome of a function of a state: its ``result``, or ``errors`` by field, or an ``error``."""
    try:
        return {"result": plain(pkgutil.resolve_name(f"{__package__}.{place}")(*arguments))}
    except FieldError as error:
        return {"errors": {error.field: str(error)}}
    except LdpoptError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "There is not enough memory for this."}
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        said = f"unexpected {type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}"
        print(f"ldpopt studio: {said}", file=sys.stderr, flush=True)
        return {"error": f"Something went wrong here ({type(error).__name__}); the terminal says more."}
