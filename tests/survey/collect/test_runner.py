"""Threads give every result once, and stop at a failure."""

from __future__ import annotations

import time

import pytest

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.runner import Threads


@pytest.mark.parametrize("workers", [1, 3])
def test_every_item_once(workers: int) -> None:
    """`map` gives all results in some order, `total` their merger."""
    runner = Threads(workers)
    assert sorted(runner.map(lambda i: i * i, range(20))) == [i * i for i in range(20)]
    assert runner.total(lambda i: i, range(1, 6), lambda a, b: a * b) == 120


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_stops_the_rest(workers: int) -> None:
    """After the first failure at most the items begun are done."""
    done = []

    def work(item: int) -> None:
        done.append(item)
        if item == 3:
            raise KeyError(item)
        time.sleep(0.001)

    with pytest.raises(KeyError):
        list(Threads(workers).map(work, range(10_000)))
    assert 3 < len(done) + workers < 10_000


def test_workers_are_counted_from_one() -> None:
    """No workers do no work."""
    with pytest.raises(InvalidInput, match="workers"):
        Threads(0)
