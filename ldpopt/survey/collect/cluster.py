"""The same work on a Dask cluster: partitions in, partitions out, counts merged in a tree.

Tasks carry paths and partition numbers, never answers or keys: every worker must see the same files at the same
paths, the key file included. A task that runs twice, because its worker was killed, writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

from ldpopt.distribution import positive_integer
from ldpopt.errors import invalid

T = TypeVar("T")

_BRANCHES = 8


@dataclass(frozen=True)
class Dask:
    """A runner on a `distributed.Client`."""

    client: Any

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """The results, as they come; the tasks that remain after a failure are cancelled."""
        from distributed import as_completed

        futures = self.client.map(function, list(items), pure=False)
        try:
            for _, result in as_completed(futures, with_results=True):
                yield result
        finally:
            self.client.cancel(futures)

    def total(self, function: Callable[[Any], T], items: Sequence[Any], merge: Callable[[T, T], T]) -> T:
        """The results of at least one item, merged on the workers, a few at a time."""
        level = self.client.map(function, list(items), pure=False)
        fold = _Fold(merge)
        while len(level) > 1:
            groups = [level[at : at + _BRANCHES] for at in range(0, len(level), _BRANCHES)]
            level = [self.client.submit(fold, group, pure=False) for group in groups]
        made: T = level[0].result()
        return made


@dataclass(frozen=True)
class _Fold:
    merge: Callable[[Any, Any], Any]

    def __call__(self, parts: list[Any]) -> Any:
        return reduce(self.merge, parts)


@contextmanager
def dask_runner(scheduler: str | None = None, workers: int = 2) -> Iterator[Dask]:
    """A runner on the cluster at `scheduler` (``tcp://...``), or on `workers` processes of this machine.

    Needs the extra ``dask``.
    """
    from distributed import Client, LocalCluster

    if scheduler is not None:
        if not isinstance(scheduler, str) or "://" not in scheduler:
            raise invalid("scheduler", "an address such as tcp://host:8786", scheduler)
        with Client(scheduler) as client:
            yield Dask(client)
        return
    workers = positive_integer(workers, "workers")
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield Dask(client)
