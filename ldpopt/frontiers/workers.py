"""Computing points in this process, in several processes of this machine, or on a cluster, with the same results."""

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
    """(number, function(task)) for numbered tasks, in the order in which they are finished.

    jobs : the number of processes on this machine; -1 for one on each core. client : a `distributed.Client`, or any
    executor with `submit`, that does the work instead. When the caller stops or a task fails, waiting work is
    cancelled.
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
            # By calls of `next`: `yield from made` would close the pool outside of the block that catches warnings.
            yield from iter(made.__next__, None)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the warning says that tasks were cancelled, which is intended
                made.close()


def checked(jobs: Any, client: Any) -> int:
    """`jobs` after a check. Raises `InvalidInput` for a bad number, and for a client without `submit`."""
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
    # By default, a Dask client would run equal tasks only once, and reuse the result of an earlier call.
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
