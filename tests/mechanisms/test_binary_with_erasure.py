import math

import numpy as np
import pytest

from ldpopt.divergences import TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import binary, binary_with_erasure
from ldpopt.privacy import local_dp, total_variation


def test_entries_are_those_of_equations_26_to_28():
    """The binary mechanism times 1 - alpha, and the erasure alpha = 1 - eta (e + 1)/(e - 1)."""
    p0, p1, epsilon, eta = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 0.8, 0.25
    alpha = 1 - eta * (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    expected = binary(p0, p1, epsilon).erase(alpha)
    got = binary_with_erasure(p0, p1, epsilon, eta)
    assert got.outputs == expected.outputs
    np.testing.assert_allclose(got.matrix, expected.matrix, rtol=0, atol=5e-14)


def test_keeps_eta_times_total_variation():
    """Among epsilon-LDP and eta-TV channels the marginals are exactly eta TV(P0, P1) apart [GI, Thm 5]."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        p0, p1 = rng.dirichlet(np.ones(6), size=2)
        q = binary_with_erasure(p0, p1, 1.1, 0.3)
        assert TOTAL_VARIATION(q.push(p0), q.push(p1)) == pytest.approx(0.3 * TOTAL_VARIATION(p0, p1), abs=1e-13)


def test_promises_hold_for_the_floats_returned():
    """Whatever epsilon and eta, the measured guarantees of the float64 matrix stay within both, and close to them."""
    rng = np.random.default_rng(7)
    for _ in range(500):
        epsilon = float(10 ** rng.uniform(-9, 2.69))
        most = math.tanh(epsilon / 2)
        eta = float(rng.choice([10 ** rng.uniform(-14, 0), most * rng.random(), most, 1.0]))
        q = binary_with_erasure([0.6, 0.4, 0.0], [0.4, 0.6, 0.0], epsilon, eta)
        assert float(local_dp(q)) <= epsilon
        assert float(total_variation(q)) <= eta
        assert total_variation(q).lower >= min(eta, most) - 1.5e-14


def test_a_loose_eta_erases_nothing():
    """From tanh(epsilon/2) on, eta does not bind: the erasure never happens and the rest is the binary mechanism."""
    q = binary_with_erasure([0.6, 0.4], [0.4, 0.6], 1.0, 0.9)
    assert q.matrix[:, 2].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(q.matrix[:, :2], binary([0.6, 0.4], [0.4, 0.6], 1.0).matrix, rtol=0, atol=1e-15)


def test_eta_zero_erases_everything():
    """At eta = 0 every report is the erasure."""
    assert binary_with_erasure([0.6, 0.4], [0.4, 0.6], 1.0, 0.0).matrix.tolist() == [[0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("eta", [-0.1, 1.1, math.nan, "0.5"])
def test_bad_eta_is_refused(eta):
    """eta lies in [0, 1]."""
    with pytest.raises(InvalidInput, match="eta: expected a number in"):
        binary_with_erasure([0.6, 0.4], [0.4, 0.6], 1.0, eta)
