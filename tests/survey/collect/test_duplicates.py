"""Duplicates are the rows after the first of each identity, found the same in memory and in buckets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ldpopt.survey.collect.duplicates import bucket_count, duplicate_rows, duplicates_in_bucket, spilled


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40))
def test_all_but_the_first_row_of_an_identity(identities: list[tuple[int, int]]) -> None:
    """The result is what a set of identities seen so far gives."""
    seen, expected = set(), []
    for row, identity in enumerate(identities):
        if identity in seen:
            expected.append(row + 5)
        seen.add(identity)
    found = duplicate_rows(np.array(identities, np.uint64).reshape(-1, 2), np.arange(len(identities)) + 5)
    assert found.tolist() == expected


def test_buckets_together_find_the_same(tmp_path: Path) -> None:
    """Spilling three partitions into eight buckets finds the duplicates across partitions."""
    rng = np.random.default_rng(0)
    identities = rng.integers(0, 40, (900, 2), dtype=np.uint64)
    for part in range(3):
        contents = spilled(identities[300 * part : 300 * part + 300], 300 * part, 8)
        (tmp_path / str(part)).write_bytes(contents)
    paths = [tmp_path / str(part) for part in range(3)]
    found = np.sort(np.concatenate([duplicates_in_bucket(paths, bucket, 8) for bucket in range(8)]))
    assert found.tolist() == duplicate_rows(identities, np.arange(900)).tolist()
    assert 0 < len(found) < 900


def test_buckets_stay_small() -> None:
    """A bucket holds about half a million rows at most, up to tens of billions of rows."""
    assert bucket_count(1) == 1
    assert all(n / bucket_count(n) <= 1 << 19 for n in (10**6, 10**8, 3 * 10**10))
