"""Runners, which process partitions: threads of this process here, or a Dask cluster, with the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeVar

from ldpopt.distribution import positive_integer
from ldpopt.errors import LdpoptError

T = TypeVar("T")


class LostWork(LdpoptError, RuntimeError):
    """Part of the work was lost, for example with a cluster's scheduler. The same call, repeated, continues it."""


class Runner(Protocol):
    """Runs a function on every item, in any order. The function may run more than once on an item."""

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """The results, in the order in which they are ready."""

    def total(self, function: Callable[[Any], T], items: Sequence[Any], merge: Callable[[T, T], T]) -> T:
        """The results of at least one item, merged; `merge` is associative and commutative."""


def every(results: Iterator[T], expected: int) -> Iterator[T]:
    """Pass on the results; `LostWork` if there are fewer than `expected`.

    >>> list(every(iter("ab"), 3))
    Traceback (most recent call last):
    ldpopt.survey.collect.runner.LostWork: 2 of 3 parts of the work came back; the same call does the others
    """
    found = 0
    for result in results:
        found += 1
        yield result
    if found != expected:
        raise LostWork(f"{found} of {expected} parts of the work came back; the same call does the others")


@dataclass(frozen=True)
class Threads:
    """A runner on `workers` threads of this process.

    The work is done outside Python's lock, so threads run in parallel.
    """

    workers: int = 1

    def __post_init__(self) -> None:
        positive_integer(self.workers, "workers")

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """The results, in the order in which they are ready. After a failure no further item is begun."""
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
        """The results of at least one item, merged."""
        return reduce(merge, self.map(function, items))
