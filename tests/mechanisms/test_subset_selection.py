import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response, subset_selection
from ldpopt.privacy import local_dp, total_variation


@pytest.mark.parametrize(("k", "size"), [(2, 1), (5, 1), (5, 2), (5, 4), (9, 4)])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0])
def test_closed_form_and_guarantees(k, size, epsilon):
    """A subset has weight e if it holds the answer, else 1; epsilon-LDP with the stated total variation."""
    q = subset_selection(k, epsilon, size)
    e = math.exp(epsilon)
    total = e * math.comb(k - 1, size - 1) + math.comb(k - 1, size)
    expected = [[(e if x in subset else 1) / total for subset in q.outputs] for x in q.inputs]
    np.testing.assert_allclose(q.matrix, expected, rtol=1e-12, atol=0)
    assert epsilon - 1e-13 <= local_dp(q).lower <= float(local_dp(q)) <= epsilon
    c = size * (k - size) / (k - 1)
    assert float(total_variation(q)) == pytest.approx((e - 1) * c / (size * e + k - size), abs=1e-13)


def test_size_one_is_randomized_response():
    """Subsets of one answer are randomized response."""
    np.testing.assert_array_equal(subset_selection(4, 1.0, 1).matrix, randomized_response(4, 1.0).matrix)


@pytest.mark.parametrize(
    ("k", "epsilon", "size", "known"),
    [(5, 0.5, 2, 50.258657), (5, 1.0, 1, 12.229751), (6, 0.8, 2, None), (7, 2.0, 3, None)],
)
def test_published_variance(k, epsilon, size, known):
    """At the uniform distribution the least total variance is (k-1)^2 (de + k-d)^2 / (n k d (k-d) (e-1)^2) [YB]."""
    q, p, e = subset_selection(k, epsilon, size).matrix, np.full(k, 1 / k), math.exp(epsilon)
    information = (q / (p @ q)) @ q.T
    least = np.trace(np.linalg.inv(information) - np.outer(p, p))
    published = (k - 1) ** 2 * (size * e + k - size) ** 2 / (k * size * (k - size) * (e - 1) ** 2)
    assert least == pytest.approx(published, rel=1e-10)
    if known is not None:
        assert least == pytest.approx(known, abs=1e-6)


def test_labels():
    """Outputs are tuples of input labels."""
    assert subset_selection(3, 1.0, 2, inputs=["x", "y", "z"]).outputs == (("x", "y"), ("x", "z"), ("y", "z"))


@pytest.mark.parametrize(
    ("k", "size", "message"),
    [(4, 4, "an integer below k = 4"), (4, 0, "size"), (1, 1, "k"), (200, 100, "a matrix of at most 16777216 entries")],
)
def test_bad_sizes_are_refused(k, size, message):
    """Sizes run from 1 to k - 1, and the matrix must fit."""
    with pytest.raises(InvalidInput, match=message):
        subset_selection(k, 1.0, size)
