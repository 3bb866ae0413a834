import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import binary, randomized_response, sort_partition_randomize
from ldpopt.privacy import local_dp, total_variation

P0, P1 = [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("blocks", [[[0], [1], [2], [3]], [[0, 1], [2], [3]], [[3, 2], [1, 0]], [[0], [1, 2, 3]]])
@pytest.mark.parametrize("epsilon", [1e-7, 0.3, 1.0, 6.0, 200.0])
def test_closed_form_and_guarantees(blocks, epsilon):
    """The block with weight e/(e+m-1), every other with 1/(e+m-1); epsilon-LDP, (e-1)/(e+m-1)-TV."""
    q = sort_partition_randomize(P0, P1, epsilon, blocks)
    total = math.exp(epsilon) + len(blocks) - 1
    for x in range(4):
        expected = [math.exp(epsilon) / total if x in block else 1 / total for block in blocks]
        np.testing.assert_allclose(q.matrix[x], expected, rtol=1e-12, atol=0)
    assert epsilon - 1e-13 * (1 + epsilon) <= local_dp(q).lower <= float(local_dp(q)) <= epsilon
    assert float(total_variation(q)) == pytest.approx(math.expm1(epsilon) / total, abs=1e-13)


def test_special_cases():
    """Singletons give randomized response, the two sides of ratio one the binary mechanism, one block a constant."""
    assert sort_partition_randomize(P0, P1, 1.0, [[0], [1], [2], [3]]) == randomized_response(4, 1.0)
    assert sort_partition_randomize(P0, P1, 1.0, [[0, 1], [2, 3]]) == binary(P0, P1, 1.0)
    assert sort_partition_randomize(P0, P1, 1.0, [[0, 1, 2, 3]]).matrix.tolist() == [[1.0]] * 4


def test_ties_and_impossible_inputs_may_go_either_way():
    """Inputs of one ratio may be split between neighbours; inputs outside both supports may be anywhere."""
    p0, p1 = [0.5, 0.2, 0.2, 0.1, 0.0], [0.1, 0.2, 0.2, 0.5, 0.0]
    for blocks in ([[0, 1], [2, 3, 4]], [[0, 2, 4], [1, 3]], [[1], [2], [0], [3, 4]], [[4], [0, 1, 2, 3]]):
        assert sort_partition_randomize(p0, p1, 1.0, blocks).shape == (5, len(blocks))


def test_disjoint_supports_sort_last():
    """A ratio of 0 or infinity is an end of the order, not an error."""
    q = sort_partition_randomize([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], 1.0, [[2], [1], [0]])
    assert float(local_dp(q)) <= 1.0


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (2, "a sequence of lists of input positions, got 2"),
        ([], "a sequence of lists"),
        ("01", "a sequence of lists"),
        ([[0, 1], [2]], "every input in a block, got 'input 3 in none'"),
        ([[0, 1], [1, 2, 3]], "each position 0 to 3 once, got 1 at block 1"),
        ([[0, 1], [2, 3, 4]], "each position 0 to 3 once, got 4 at block 1"),
        ([[0, 1], [], [2, 3]], "non-empty lists"),
        ([[0.0, 1.0], [2, 3]], "non-empty lists of input positions"),
        ([[0, 2], [1, 3]], "intervals of the sorted ratio P0/P1"),
        ([[0, 3], [1], [2]], "intervals of the sorted ratio P0/P1, got 'blocks 0 and 2 overlapping"),
    ],
)
def test_bad_blocks_are_refused(blocks, message):
    """Blocks are a partition of the inputs into intervals of the likelihood ratio."""
    with pytest.raises(InvalidInput, match=message):
        sort_partition_randomize(P0, P1, 1.0, blocks)
