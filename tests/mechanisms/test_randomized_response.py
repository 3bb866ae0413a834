import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt.privacy import local_dp, total_variation


@pytest.mark.parametrize("k", [2, 3, 10, 200])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 2.0, 50.0])
def test_closed_form_and_guarantees(k, epsilon):
    """e/(e+k-1) on the diagonal, 1/(e+k-1) off it; epsilon-LDP, (e-1)/(e+k-1)-TV."""
    q = randomized_response(k, epsilon)
    total = math.exp(epsilon) + k - 1
    np.testing.assert_allclose(q.matrix, np.where(np.eye(k) == 1, math.exp(epsilon), 1) / total, rtol=1e-12, atol=0)
    assert epsilon - 1e-13 * (1 + epsilon) <= local_dp(q).lower <= float(local_dp(q)) <= epsilon
    assert float(total_variation(q)) == pytest.approx(math.expm1(epsilon) / total, abs=1e-13)


def test_outputs_carry_the_labels_of_the_inputs():
    """A report is one of the answers."""
    q = randomized_response(3, 1.0, inputs=["left", "centre", "right"])
    assert q.outputs == q.inputs == ("left", "centre", "right")


@pytest.mark.parametrize("k", [1, 0, 2.0, True])
def test_bad_k_is_refused(k):
    """k is an integer of at least 2."""
    with pytest.raises(InvalidInput, match="k: expected an integer of at least 2"):
        randomized_response(k, 1.0)
