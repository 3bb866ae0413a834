"""Who does the partitions: threads of this process, or a Dask cluster; the result is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeVar

from ldpopt.distribution import positive_integer

T = TypeVar("T")


class Runner(Protocol):
    """Runs a function on every item, in any order; the function may run more than once on an item."""

    def map(self, function: Callable[[Any], T], items: Sequence[Any]) -> Iterator[T]:
        """The results, as they come."""

    def total(self, function: Callable[[Any], T], items: Sequence[Any], merge: Callable[[T, T], T]) -> T:
        """The results of at least one item, merged; `merge` is associative and commutative."""


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
