""""""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import HadamardResponse, hadamard_response, local_hashing, optimized_local_hashing
from ldpopt.privacy import local_dp, total_variation


@pytest.mark.parametrize(("k", "epsilon"), [(5, 0.5), (13, 1.0), (13, 2.2), (40, 30.0)])
def test_signs_are_rows_of_hadamard_matrices(k, epsilon):
    """Within its block an answer's signs are one row of the Sylvester matrix, not the constant one; outside, 0."""
    oracle = hadamard_response(k, epsilon)
    table = hadamard(oracle.width)
    seen = set()
    for x in range(k):
        signs = oracle.sign(x, np.arange(oracle.reports)).reshape(oracle.blocks, oracle.width)
        block = int(np.flatnonzero(np.abs(signs).sum(axis=1))[0])
        row = int(np.flatnonzero((table == signs[block]).all(axis=1))[0])
        assert row > 0
        assert np.count_nonzero(signs) == oracle.width
        seen.add((block, row))
    assert len(seen) == k


def test_fast_transform_matches_the_definition():
    """The transform of the counts is the sum of the signed supports."""
    oracle = hadamard_response(11, 1.3)
    reports = np.random.default_rng(0).integers(0, oracle.reports, 500)
    direct = oracle.sign(np.arange(11)[:, None], reports).sum(axis=1)
    np.testing.assert_array_equal(oracle.support_counts(reports), direct)


@pytest.mark.parametrize("epsilon", [0.1, 0.69, 0.7, 1.5, 5.0, 300.0])
def test_blocks_and_widths_are_powers_of_two(epsilon):
    """Blocks and width are powers of two with room for every answer, and no more than the paper's K."""
    for k in (2, 3, 4, 7, 8, 100):
        m = hadamard_response(k, epsilon)
        assert m.blocks & (m.blocks - 1) == 0
        assert m.width & (m.width - 1) == 0
        assert m.blocks * (m.width - 1) >= k
        assert m.blocks <= min(np.exp(epsilon), 2 * k)
        assert m.blocks * (m.width // 2 - 1) < k


def test_bad_block_frequency_is_refused():
    """The answers of a block include the answer itself; with one block they are all."""
    with pytest.raises(InvalidInput, match="block_frequency"):
        hadamard_response(10, 1.0).variance(0.5, 10, 0.2)
    with pytest.raises(InvalidInput, match="block_frequency"):
        hadamard_response(10, 0.1).variance(0.1, 10, 0.5)


@pytest.mark.parametrize(
    ("k", "blocks", "width"), [(10, 1, 8), (3, 3, 4), (3, 1, 6), (5, 4, 1), (16, 1, 16), (3, 0, 8)]
)
def test_blocks_that_hold_no_row_for_every_answer_are_refused(k, blocks, width):
    """Blocks and widths are powers of two, and blocks (width - 1) rows serve k answers, else nothing is made [HR]."""
    with pytest.raises(InvalidInput):
        HadamardResponse(k, 1.0, blocks, width)


def test_an_unusual_layout_is_a_channel_all_the_same():
    """Any other layout than the paper's with room for all answers keeps epsilon and its eta."""
    for blocks, width in ((1, 16), (2, 8), (8, 4), (16, 2)):
        made = HadamardResponse(10, 1.0, blocks, width)
        assert float(local_dp(made.channel())) <= 1.0
        assert made.eta == pytest.approx(float(total_variation(made.channel())), rel=1e-13)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-8, 1e-6, 0.3, 2.0])
@pytest.mark.parametrize("k", [2, 5, 13])
def test_eta_covers_the_floats_of_the_channel(k, epsilon):
    """At epsilon 1e-9 the entries' rounding is 1e-7 of eta, which covers it and the probabilities as drawn from."""
    made = hadamard_response(k, epsilon)
    found = total_variation(made.channel())
    assert found.lower <= made.eta
    assert made.signal * (0.5 if made.blocks == 1 else 1.0) <= made.eta <= found.value * (1 + 1e-6)


@pytest.mark.parametrize(("buckets", "prime"), [(2, 7), (3, 7), (5, 11), (7, 7)])
def test_the_collision_probability_agrees_with_a_count(buckets, prime):
    """Over all hashes of the family, two answers share a bucket with the stated probability, whichever two."""
    oracle = local_hashing(6, 1.0, buckets, prime)
    a, b = (part.ravel() for part in np.indices((prime, prime)))
    hashed = [oracle.buckets_of(a, b, v) for v in range(6)]
    for v in range(6):
        for w in range(v):
            assert np.mean(hashed[v] == hashed[w]) == pytest.approx(oracle.collision, abs=1e-15)


def test_total_variation_agrees_with_its_closed_form():
    """The total variation with an ideal hash is (1 - 1/g)(e - 1)/(e + g - 1)."""
    oracle = local_hashing(100, 1.5, 4)
    e = math.exp(1.5)
    assert oracle.eta == pytest.approx(0.75 * (e - 1) / (e + 3), rel=1e-9)


def test_the_optimized_number_of_buckets_is_the_nearest_integer():
    """The optimized number of buckets is the integer nearest to e^epsilon + 1."""
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
