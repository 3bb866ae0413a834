import numpy as np
import pytest
from scipy.linalg import hadamard

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import hadamard_response


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
def test_block_structure(epsilon):
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
