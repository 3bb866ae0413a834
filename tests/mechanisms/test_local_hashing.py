import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import local_hashing, optimized_local_hashing


@pytest.mark.parametrize(("buckets", "prime"), [(2, 7), (3, 7), (5, 11), (7, 7)])
def test_collision_probability_by_counting_all_hashes(buckets, prime):
    """Over all hashes of the family, two answers share a bucket with the stated probability, whichever two."""
    oracle = local_hashing(6, 1.0, buckets, prime)
    a, b = (part.ravel() for part in np.indices((prime, prime)))
    hashed = [oracle.buckets_of(a, b, v) for v in range(6)]
    for v in range(6):
        for w in range(v):
            assert np.mean(hashed[v] == hashed[w]) == pytest.approx(oracle.collision, abs=1e-15)


def test_total_variation_in_closed_form():
    """With an ideal hash it is (1 - 1/g)(e - 1)/(e + g - 1)."""
    oracle = local_hashing(100, 1.5, 4)
    e = math.exp(1.5)
    assert oracle.eta == pytest.approx(0.75 * (e - 1) / (e + 3), rel=1e-9)


def test_optimised_number_of_buckets():
    """The optimised number of buckets is the whole number nearest to e^epsilon + 1."""
    assert [optimized_local_hashing(9, e).buckets for e in (0.1, 1.0, 2.0)] == [2, 4, 8]


@pytest.mark.parametrize(
    ("buckets", "prime", "message"),
    [(1, 7, "buckets"), (3, 8, "prime: expected a prime from"), (3, 5, "prime"), (3, 2**31 + 11, "prime")],
)
def test_bad_hash_families_are_refused(buckets, prime, message):
    """At least two buckets, and a prime that is one and large enough."""
    with pytest.raises(InvalidInput, match=message):
        local_hashing(6, 1.0, buckets, prime)


def test_too_large_an_epsilon_is_refused():
    """Beyond 20 nats the optimised number of buckets exceeds the hash family."""
    with pytest.raises(InvalidInput, match="at most 20 nats"):
        optimized_local_hashing(6, 25.0)


@pytest.mark.parametrize("buckets", [2, 3, 4, 6, 7, 8, 12, 1024, 65537])
@pytest.mark.parametrize("prime", [65537, 2**31 - 1])
def test_support_is_counted_as_the_hash_says(buckets, prime):
    """The support counts are those of the hash evaluated for every report and answer, extremes of it included."""
    oracle = local_hashing(50, 1.0, buckets, prime)
    rng = np.random.default_rng(buckets)
    a, b = rng.integers(0, prime, (2, 5000))
    a[:4], b[:4] = [0, prime - 1, prime - 1, 1], [0, prime - 1, 0, prime - 1]
    y = np.where(
        rng.random(5000) < 0.5, oracle.buckets_of(a, b, rng.integers(50, size=5000)), rng.integers(buckets, size=5000)
    )
    expected = [(oracle.buckets_of(a, b, v) == y).sum() for v in range(50)]
    assert oracle.support_counts(np.stack([a, b, y], axis=1)).tolist() == expected
