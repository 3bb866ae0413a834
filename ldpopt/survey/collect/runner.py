"""Who does the partitions: threads of this process, or a Dask cluster; the result is the same."""

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
    """Part of the work did not come back, as when a cluster's scheduler was lost; the same call goes on."""


class Runner(Protocol):
    """Runs a function on every item, in any order; the function may run more than once on an item."""

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """The results, as they come."""

    def total(self, function: Callable[[Any], T], items: Sequence[Any], merge: Callable[[T, T], T]) -> T:
        """The results of at least one item, merged; `merge` is associative and commutative."""


def every(results: Iterator[T], expected: int) -> Iterator[T]:
    """The results, of which there are `expected`; `LostWork` when they end before.

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
    """`workers` threads of this process; the work is in numpy, arrow and the cipher, outside Python's lock."""

    workers: int = 1

    def __post_init__(self) -> None:
        positive_integer(self.workers, "workers")

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """The results, as they come; after a failure no further item is begun."""
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
