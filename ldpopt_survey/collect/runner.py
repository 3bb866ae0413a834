"""Tasks on partitions -> their results: on threads of this process, or on a Dask cluster, with the same result.

On a cluster counts are merged in a tree. Tasks carry paths and partition numbers, never answers or keys. So every
worker must see the same files at the same paths, the key file included. A task that runs twice, because its worker was
killed, writes the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

from ldpopt.errors import LdpoptError, invalid
from ldpopt.extras import need
from ldpopt.values.distribution import positive_integer

__all__ = ["Dask", "LostWork", "Threads"]

T = TypeVar("T")


class LostWork(LdpoptError, RuntimeError):
    """Part of the work was lost, for example with a cluster's scheduler. The same call, repeated, continues it."""


class Runner(Protocol):
    """Runs a function on every item, in any order. The function may run more than once on an item."""

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """Return the results as they become ready."""

    def total(self, function: Callable[[Any], T], items: Sequence[Any], merge: Callable[[T, T], T]) -> T:
        """Merge the results of at least one item; `merge` is associative and commutative."""


def yield_all(results: Iterator[T], expected: int) -> Iterator[T]:
    """Pass on the results; `LostWork` if there are fewer than `expected`.

    >>> list(yield_all(iter("ab"), 3))
    Traceback (most recent call last):
    ldpopt_survey.collect.runner.LostWork: 2 of 3 parts of the work came back; the same call does the others
    """
    count = 0
    for result in results:
        count += 1
        yield result
    if count != expected:
        raise LostWork(f"{count} of {expected} parts of the work came back; the same call does the others")


@dataclass(frozen=True)
class Threads:
    """A runner on `workers` threads of this process.

    The work is done outside Python's lock, so threads run in parallel.
    """

    workers: int = 1

    def __post_init__(self) -> None:
        positive_integer(self.workers, "workers")

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """Yield the results as they become ready. After a failure no further item is begun."""
        if self.workers == 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def total(self, function: Callable[[Any], T], items: Sequence[Any], merge: Callable[[T, T], T]) -> T:
        """Return the results of at least one item, merged."""
        return reduce(merge, self.map(function, items))


_MERGE_ARITY = 8


@dataclass(frozen=True)
class Dask:
    """A runner on a `distributed.Client`. If the cluster loses work, it raises `LostWork` and never skips a result."""

    client: Any

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """Yield the results as they become ready; after a failure, cancel the remaining tasks."""
        from distributed import as_completed

        futures = self.client.map(function, list(items), pure=False)
        try:
            # Each future is asked for its result, since a lost scheduler shows as cancelled futures or as an early end.
            yield from yield_all((_result(future) for future in as_completed(futures)), len(futures))
        finally:
            if self.client.status == "running":
                with suppress(*_cluster_errors()):
                    self.client.cancel(futures)

    def total(self, function: Callable[[Any], T], items: Sequence[Any], merge: Callable[[T, T], T]) -> T:
        """Return the results of at least one item, merged on the workers, a few at a time."""
        fold = partial(reduce, merge)
        level = self.client.map(function, list(items), pure=False)
        while len(level) > 1:
            groups = [level[start : start + _MERGE_ARITY] for start in range(0, len(level), _MERGE_ARITY)]
            level = [self.client.submit(fold, group, pure=False) for group in groups]
        merged: T = _result(level[0])
        return merged


def _result(future: Any) -> Any:
    """The result of a future. The task's own exceptions pass through; the cluster's become `LostWork`."""
    try:
        return future.result()
    except _cluster_errors() as error:
        reason = f"the cluster lost part of the work ({type(error).__name__})"
    raise LostWork(f"{reason}; the same call goes on from what is done")


def _cluster_errors() -> tuple[type[BaseException], ...]:
    """The exceptions that a cluster raises when its scheduler or its workers are gone."""
    import asyncio
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    return (CancelledError, asyncio.CancelledError, KilledWorker, CommClosedError)


@contextmanager
def dask_runner(scheduler: str | None = None, workers: int = 2) -> Iterator[Dask]:
    """Open the cluster at `scheduler` (``tcp://...``), or one of `workers` local processes.

    Needs the extra ``dask``.
    """
    need("distributed")
    from distributed import Client, LocalCluster

    with _quiet_cluster():
        yield from _runners(Client, LocalCluster, scheduler, workers)


_CLUSTER_LOGS = ("distributed", "tornado", "asyncio")
"""The loggers of a cluster, which print tracebacks of their own, with arguments that may hold answers."""


@contextmanager
def _quiet_cluster() -> Iterator[None]:
    """Log nothing of a cluster: lost work becomes `LostWork`, and a task's exception is raised here."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _CLUSTER_LOGS]
    loggers = [logging.getLogger(name) for name in {*names, *_CLUSTER_LOGS}]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _runners(Client: Any, LocalCluster: Any, scheduler: str | None, workers: int) -> Iterator[Dask]:
    if scheduler is not None:
        if not isinstance(scheduler, str) or "://" not in scheduler:
            raise invalid("scheduler", "an address such as tcp://host:8786", scheduler)
        try:
            client = Client(scheduler)
        except OSError:
            raise invalid("scheduler", "one that answers", scheduler) from None
        with client:
            yield Dask(client)
        return
    workers = positive_integer(workers, "workers")
    # Its page of state takes any free port, and answers this machine alone.
    cluster_options: dict[str, Any] = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    cluster_options["silence_logs"] = logging.CRITICAL
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, **cluster_options) as cluster,
        Client(cluster) as client,
    ):
        yield Dask(client)
