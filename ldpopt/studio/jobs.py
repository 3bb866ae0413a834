"""The functions that the page may call: views, which answer at once, and jobs in processes that can be killed."""

from __future__ import annotations

import json
import multiprocessing
import secrets
import signal
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from ldpopt.errors import LdpoptError
from ldpopt.studio.fields import FieldError, plain

VIEWS = {
    "takeaway": "ldpopt.studio.takeaway:view",
    "inspect": "ldpopt.studio.inspect:view",
    "tell": "ldpopt.studio.tell:view",
    "compare": "ldpopt.studio.tell_curves:view",
    "ask": "ldpopt.studio.ask:view",
    "meaning": "ldpopt.studio.meaning:view",
    "load": "ldpopt.studio.load:view",
    "examples": "ldpopt.studio.load:examples",
}
"""For each NAME in ``/api/NAME`` the ``module:function``, called with a state."""

JOBS = {
    "report": "ldpopt.studio.report:view",
    "takeaway": "ldpopt.studio.takeaway:taken",
    "inspect": "ldpopt.studio.inspect:view",
    "design": "ldpopt.studio.tell:job",
    "envelope": "ldpopt.studio.tell_curves:envelope",
    "phases": "ldpopt.studio.tell_curves:phases",
    "survey": "ldpopt.studio.ask:job",
    "split": "ldpopt.studio.ask:split",
}
"""For each NAME in ``/api/jobs/NAME`` the ``module:function``, called with a state and a function for the progress."""


def function_of(place: str) -> Callable[..., Any]:
    """The function at ``module:name``, imported at its first use.

    >>> function_of("ldpopt.studio.fields:plain")((1, 2))
    [1, 2]
    """
    module, _, name = place.partition(":")
    made: Callable[..., Any] = getattr(import_module(module), name)
    return made


RUNNING = 3
"""Jobs that run at once. Another one replaces the oldest."""
KEPT = 24
"""The most jobs whose results are kept."""


class Jobs:
    """The jobs of one studio, which are started by name, watched and killed.

    functions : ``module:function`` by name. A spare process, with everything imported, waits for the next job.
    """

    def __init__(self, functions: Mapping[str, str]) -> None:
        self._functions = functions
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()
        self._spare: _Worker | None = None

    def warm(self) -> None:
        """Start the process that waits for a job."""
        with self._lock:
            self._spare = self._spare or _Worker()

    def start(self, name: str, state: Any) -> str:
        """Begin a job and return its id; `KeyError` for an unknown name."""
        place = self._functions[name]
        with self._lock:
            live = [job for job in self._jobs.values() if not job.done]
            if len(live) >= RUNNING:
                live[0].kill()
            worker, self._spare = self._spare or _Worker(), None
            job = _Job(worker)
            try:
                worker.send(place, state)
            except OSError:  # the waiting process was killed from outside
                job.finish({"error": "The work could not be begun; try again."})
            made = secrets.token_urlsafe(12)
            self._jobs[made] = job
            for old in list(self._jobs)[:-KEPT]:
                self._jobs.pop(old).kill()
        return made

    def look(self, which: str) -> dict[str, Any] | None:
        """The progress of a job, and its result when it is done; None for an unknown id."""
        with self._lock:
            job = self._jobs.get(which)
            if job is None:
                return None
            told = job.look()
            if job.done and self._spare is None:
                self._spare = _Worker()
            return told

    def cancel(self, which: str) -> bool:
        """Kill a job and forget it. Returns whether there was one."""
        with self._lock:
            job = self._jobs.pop(which, None)
            if job is None:
                return False
            job.kill()
            self._spare = self._spare or _Worker()
            return True

    def close(self) -> None:
        """Kill everything."""
        with self._lock:
            for job in self._jobs.values():
                job.kill()
            self._jobs.clear()
            if self._spare is not None:
                self._spare.kill()
            self._spare = None


class _Worker:
    """A process and the pipe to it. Both ends send JSON, so neither can make the other run code."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(there,), daemon=True)
        self.process.start()
        there.close()

    def send(self, place: str, state: Any) -> None:
        self.pipe.send_bytes(json.dumps([place, state]).encode())

    def kill(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join(5)
        self.pipe.close()


@dataclass
class _Job:
    """A job and its last message."""

    worker: _Worker
    progress: float = 0.0
    end: dict[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return bool(self.end)

    def look(self) -> dict[str, Any]:
        try:
            while not self.done and self.worker.pipe.poll():
                said = json.loads(self.worker.pipe.recv_bytes())
                if "progress" in said:
                    self.progress = said["progress"]
                else:
                    self.finish(said)
        except (EOFError, OSError):
            self.finish({"error": "The work ended before it was done; there may not have been enough memory."})
        return {"progress": 1.0 if self.done else self.progress, "done": self.done, **self.end}

    def finish(self, end: dict[str, Any]) -> None:
        self.end = end
        self.worker.kill()

    def kill(self) -> None:
        if not self.done:
            self.finish({"error": "This was cancelled."})


def _work(pipe: Connection) -> None:
    """The function of the process: it imports what most jobs need, waits for one job, and does it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the studio, which then ends this process
    import_module("ldpopt.studio.tell")
    try:
        place, state = json.loads(pipe.recv_bytes())
    except EOFError:
        return
    pipe.send_bytes(json.dumps(outcome(place, state, lambda share: _tell(pipe, share))).encode())
    pipe.close()


def _tell(pipe: Connection, share: float) -> None:
    pipe.send_bytes(json.dumps({"progress": min(1.0, float(share))}).encode())


def outcome(place: str, *arguments: Any) -> dict[str, Any]:
    """The outcome of a function of a state: its ``result``, or ``errors`` by field, or an ``error``.

    >>> outcome("ldpopt.studio.fields:whole", 0.5, "n")
    {'error': 'n: expected a whole number of at least 1, got 0.5'}
    """
    try:
        return {"result": plain(function_of(place)(*arguments))}
    except FieldError as error:
        return {"errors": {error.field: str(error)}}
    except LdpoptError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "There is not enough memory for this."}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"Something went wrong here ({type(error).__name__}); the terminal says more."}
