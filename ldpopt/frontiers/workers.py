"""Who computes the points: this process, processes of this machine, or a cluster. The results are the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

from ldpopt.distribution import positive_integer
from ldpopt.errors import Phrase, invalid

Task = TypeVar("Task")
Result = TypeVar("Result")


def results(
    function: Callable[[Task], Result], tasks: Sequence[tuple[int, Task]], jobs: int, client: Any
) -> Generator[tuple[int, Result], None, None]:
    """(number, function(task)) for numbered tasks, as they are done.

    jobs : processes of this machine; -1 for one a core. client : a `distributed.Client`, or any executor with
    `submit`, in their place. The work still waiting is cancelled when the caller stops or a task fails.
    """
    if client is not None:
        yield from _submitted(function, tasks, client)
    elif jobs == 1 or len(tasks) < 2:
        for number, task in tasks:
            yield number, function(task)
    else:
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator_unordered", batch_size=1)
        made = pool(delayed(_numbered)(function, number, task) for number, task in tasks)
        try:
            # By calls of `next`: `yield from made` would close the pool before the warning about it can be caught.
            yield from iter(made.__next__, None)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that tasks were cancelled is what was wanted
                made.close()


def checked(jobs: Any, client: Any) -> int:
    """`jobs`, or `InvalidInput` for a number that is none and for a client that takes no work."""
    if client is not None:
        if jobs != 1:
            raise invalid("jobs", "no number of jobs beside a client, which has its own workers", jobs)
        if not callable(getattr(client, "submit", None)):
            got = Phrase(type(client).__name__)
            raise invalid("client", "a distributed.Client or an executor with submit", got)
    return jobs if jobs == -1 else positive_integer(jobs, "jobs")


def _numbered(function: Callable[[Task], Result], number: int, task: Task) -> tuple[int, Result]:
    return number, function(task)


def _submitted(
    function: Callable[[Task], Result], tasks: Sequence[tuple[int, Task]], client: Any
) -> Iterator[tuple[int, Result]]:
    # A Dask client would take two equal tasks for one, and keep the result of an earlier call.
    options = {"pure": False} if hasattr(client, "scatter") else {}
    waiting = [client.submit(_numbered, function, number, task, **options) for number, task in tasks]
    try:
        for future in _completed(waiting, client):
            yield future.result()
    finally:
        for future in waiting:
            future.cancel()


def _completed(futures: Sequence[Any], client: Any) -> Iterator[Any]:
    if hasattr(client, "scatter"):
        from distributed import as_completed
    else:
        from concurrent.futures import as_completed
    yield from as_completed(futures)
