"""Run a view or a job, by its name and for a state, in a process that can be killed."""

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
from ldpopt_studio.fields import FieldError, to_json_types

MAX_RUNNING_JOBS = 3
"""Largest number of jobs that run at once. Another one replaces the oldest."""
MAX_STORED_JOBS = 24
"""Largest number of jobs whose results are stored."""


MAX_VIEW_SECONDS = 60
"""A view that takes longer is stopped."""


FOLDER_PREFIX = "ldpopt-studio-"
"""Beginning of the name of a process's temporary folder; the id of the studio's process follows."""
CONTEXT = multiprocessing.get_context("forkserver") if sys.platform == "linux" else multiprocessing.get_context("spawn")
"""Start method: processes are copies of one that only imports, or each imports by itself."""
PRELOADED_MODULES = ["ldpopt.cli", "ldpopt_studio.tell", __name__]


def remove_stale_folders() -> None:
    """Remove the folders of studios that were killed with all their processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*") if os.name == "posix" else ():
        process_id = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        try:
            os.kill(int(process_id), 0)
        except (ProcessLookupError, OverflowError):
            shutil.rmtree(folder, ignore_errors=True)
        except (PermissionError, ValueError):  # another user's process, or a foreign folder
            continue


class Views:
    """The process that answers views, one after another.

    It is killed if the page has left the view that it computes.
    """

    def __init__(self) -> None:
        self._process: _Job | None = None
        self._turn = asyncio.Lock()

    def warm(self) -> None:
        """Start the process, unless it is alive."""
        if self._process is None or not self._process.process.is_alive():
            self.close()
            self._process = _Job(serves_views=True)

    async def outcome(self, function: str, state: Any, is_abandoned: Callable[[], Awaitable[bool]]) -> dict[str, Any]:
        """Compute the outcome of a view in the process.

        Returns
        -------
        dict
            The outcome, as of `compute_outcome`. It is an ``error`` if the view takes too long, or if `is_abandoned`
            returns
            True because the page has left it.
        """
        async with self._turn:
            if await is_abandoned():
                return {"error": "The page no longer waits for this view."}
            await asyncio.to_thread(self.warm)
            process = self._process
            assert process is not None
            process.begin(function, state)
            message = None
            try:
                for _ in range(20 * MAX_VIEW_SECONDS):
                    message = await asyncio.to_thread(process.next_message, 0.05)
                    if message is not None:
                        return message
                    if await is_abandoned():
                        break
            finally:
                if message is None:  # the next view must not receive this answer
                    self.close()
            await asyncio.to_thread(self.warm)
            return {"error": f"This takes longer than {MAX_VIEW_SECONDS} seconds; try fewer answers."}

    def close(self) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.kill()
        self._process = None


class Jobs:
    """The jobs of one studio, started by name, polled and killed. A spare process with everything imported waits."""

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
        """Start a job and return its id; an unknown name raises `KeyError`."""
        function = self._functions[name]
        with self._lock:
            unfinished = [job for job in self._jobs.values() if not job.outcome]
            if len(unfinished) >= MAX_RUNNING_JOBS:
                unfinished[0].kill()
            job, self._spare = self._spare or _Job(), None
            job.begin(function, state)
            job_id = secrets.token_urlsafe(12)
            self._jobs[job_id] = job
            for old_id in list(self._jobs)[:-MAX_STORED_JOBS]:
                self._jobs.pop(old_id).kill()
        return job_id

    def poll(self, job_id: str) -> dict[str, Any] | None:
        """Return the progress of a job, and its result once it is done; None for an unknown id."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:
                return None
            status = job.poll()
            self._spare = self._spare or (_Job() if job.outcome else None)
            return status

    def cancel(self, job_id: str) -> bool:
        """Stop a job and forget it. Return True if it existed."""
        with self._lock:
            job = self._jobs.pop(job_id, None)
            if job is not None:
                job.kill()
                self._spare = self._spare or _Job()
            return job is not None

    def close(self) -> None:
        """Stop all processes."""
        with self._lock:
            for job in (*self._jobs.values(), *([self._spare] if self._spare else [])):
                job.kill()
            self._jobs, self._spare = {}, None


class _Job:
    """A process for one job, or for views, and its last message.

    Both ends of the pipe send JSON, so neither makes the other run code.
    """

    def __init__(self, serves_views: bool = False) -> None:
        CONTEXT.set_forkserver_preload(PRELOADED_MODULES)
        self.pipe, child_pipe = CONTEXT.Pipe()
        # A killed process cannot remove its own files.
        self._folder = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-")
        self.process = CONTEXT.Process(target=_run_process, args=(child_pipe, serves_views, self._folder), daemon=True)
        self.process.start()
        child_pipe.close()
        self.progress, self.outcome = 0.0, dict[str, Any]()

    def begin(self, function: str, state: Any) -> None:
        try:
            self.pipe.send_bytes(json.dumps([function, state]).encode())
        except OSError:  # the waiting process was killed from outside
            self.finish({"error": "The work could not be started; try again."})

    def poll(self) -> dict[str, Any]:
        while not self.outcome and (message := self.next_message(0.0)) is not None:
            if "progress" in message:
                self.progress = message["progress"]
            elif not self.outcome:
                self.finish(message)
        return {"progress": 1.0 if self.outcome else self.progress, "done": bool(self.outcome), **self.outcome}

    def next_message(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message; None if none arrives within `seconds`."""
        try:
            if self.outcome or not self.pipe.poll(seconds):
                return self.outcome or None
            message: dict[str, Any] = json.loads(self.pipe.recv_bytes())
            return message
        except (EOFError, OSError):
            self.finish({"error": "The work stopped before it was complete, perhaps for lack of memory."})
            return self.outcome

    def finish(self, outcome: dict[str, Any]) -> None:
        self.outcome = outcome
        if self.process.is_alive():
            self.process.kill()
        self.process.join(5)
        self.pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        if not self.outcome:
            self.finish({"error": "This was cancelled."})


def _run_process(pipe: Connection, serves_views: bool, folder: str) -> None:
    """Import the modules that most jobs need, then serve one job, or views until the process is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the studio, which then ends this process
    tempfile.tempdir = folder
    tell = import_module("ldpopt_studio.tell")
    if serves_views:
        tell.warm()

    # numpy's warnings would fill the terminal; results that are not finite are handled where they arise.
    warnings.filterwarnings("ignore", category=RuntimeWarning)

    def send(message: dict[str, Any]) -> None:
        try:
            pipe.send_bytes(json.dumps(message).encode())
        except OSError:
            raise _StudioGone from None

    try:
        while serves_views:
            send(compute_outcome(*json.loads(pipe.recv_bytes())))
        function, state = json.loads(pipe.recv_bytes())
        send(compute_outcome(function, state, lambda share: send({"progress": min(1.0, float(share))})))
        pipe.close()
    except (EOFError, OSError, _StudioGone):
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _StudioGone(BaseException):
    """The studio ended while a process worked for it. Only the process's own function catches this."""


def compute_outcome(function: str, *arguments: Any) -> dict[str, Any]:
    """Run a function and return its ``result``, its ``errors`` by field, or an ``error``.

    Parameters
    ----------
    function : str
        ``module:function`` in this package.
    *arguments : object
        The state, and for jobs a function for the progress.
    """
    try:
        return {"result": to_json_types(pkgutil.resolve_name(f"{__package__}.{function}")(*arguments))}
    except FieldError as error:
        return {"errors": {error.field: str(error)}}
    except LdpoptError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "There is not enough memory for this computation."}
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        description = f"unexpected {type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}"
        print(f"ldpopt studio: {description}", file=sys.stderr, flush=True)
        return {"error": f"Something went wrong ({type(error).__name__}). See the terminal for details."}
