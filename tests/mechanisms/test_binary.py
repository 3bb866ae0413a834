import math

import numpy as np
import pytest

from ldpopt.divergences import TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import binary
from ldpopt.privacy import local_dp, total_variation


def test_entries_are_those_of_equations_23_and_24():
    """Q(0|x) is e/(1+e) where P0 >= P1 and 1/(1+e) elsewhere; an input outside both supports counts as P0 >= P1."""
    q = binary([0.5, 0.3, 0.2, 0.0], [0.2, 0.3, 0.5, 0.0], 1.3).matrix
    high, low = 1 / (1 + math.exp(-1.3)), 1 / (1 + math.exp(1.3))
    np.testing.assert_allclose(q, [[high, low], [high, low], [low, high], [high, low]], rtol=0, atol=3e-14)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1.0, 4.0, 30.0, 500.0])
def test_guarantees(epsilon):
    """The binary mechanism is epsilon-LDP and tanh(epsilon/2)-TV, and wastes almost nothing of either."""
    q = binary([0.8, 0.2], [0.3, 0.7], epsilon)
    assert epsilon - 1.5e-14 * (1 + epsilon) <= local_dp(q).lower <= float(local_dp(q)) <= epsilon
    assert float(total_variation(q)) == pytest.approx(
        math.tanh(epsilon / 2), abs=2e-14, rel=1e-14 if epsilon > 1 else 0
    )


def test_keeps_the_most_total_variation_of_any_epsilon_ldp_channel():
    """The marginals are tanh(epsilon/2) TV(P0, P1) apart, the most that epsilon-LDP allows [KOV14]."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        p0, p1 = rng.dirichlet(np.ones(5), size=2)
        q = binary(p0, p1, 0.9)
        kept = TOTAL_VARIATION(q.push(p0), q.push(p1))
        assert kept == pytest.approx(math.tanh(0.45) * TOTAL_VARIATION(p0, p1), abs=1e-13)


def test_labels():
    """Inputs carry the labels they are given."""
    q = binary([0.8, 0.2], [0.3, 0.7], 1.0, inputs=["yes", "no"])
    assert q.inputs == ("yes", "no")
    assert q.outputs == (0, 1)


@pytest.mark.parametrize(
    ("p0", "p1", "epsilon", "message"),
    [
        ([0.5, 0.5], [1.0], 1.0, "p1: expected 2 entries"),
        ([0.5, 0.6], [0.5, 0.5], 1.0, "p0: expected entries that sum to 1"),
        ([0.5, 0.5], [0.5, 0.5], 0.0, "epsilon"),
        ([0.5, 0.5], [0.5, 0.5], math.inf, "epsilon"),
    ],
)
def test_bad_input_is_refused(p0, p1, epsilon, message):
    """What is no pair of distributions, or no epsilon, is refused by name."""
    with pytest.raises(InvalidInput, match=message):
        binary(p0, p1, epsilon)


def test_wrong_labels_are_refused():
    """Labels must be as many as the inputs, and not one text."""
    with pytest.raises(InvalidInput, match="inputs: expected 2 labels, got 3"):
        binary([0.5, 0.5], [0.5, 0.5], 1.0, inputs=["a", "b", "c"])
    with pytest.raises(InvalidInput, match="inputs: expected 2 labels"):
        binary([0.5, 0.5], [0.5, 0.5], 1.0, inputs="ab")
