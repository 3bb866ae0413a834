"""The bounds on symmetrised KL hold, and improve on one another as stated."""

import math

import numpy as np
import pytest

from ldpopt.bounds import duchi_jordan_wainwright, ghazi_issa, ghazi_issa_corollary
from ldpopt.divergences import JEFFREYS
from ldpopt.errors import InvalidInput

P0, P1 = [0.9, 0.1], [0.4, 0.6]


def test_duchi_jordan_wainwright(trials):
    """[GI, Thm 6] J(M0, M1) <= min{4, e^2eps} (e^eps - 1)^2 TV(P0, P1)^2 for every eps-LDP channel."""
    for p0, p1, q, epsilon, _ in trials:
        assert JEFFREYS(q.push(p0), q.push(p1)) <= duchi_jordan_wainwright(p0, p1, epsilon) * (1 + 1e-12)


def test_ghazi_issa(trials):
    """[GI, Thm 7] J(M0, M1) <= 2 eta min{2, e^eps} (e^eps - 1) TV(P0, P1)^2 for every eps-LDP, eta-TV channel."""
    for p0, p1, q, epsilon, eta in trials:
        assert JEFFREYS(q.push(p0), q.push(p1)) <= ghazi_issa(p0, p1, epsilon, eta) * (1 + 1e-12)


def test_the_corollary(trials):
    """[GI, Cor 2] J(M0, M1) <= 2 min{2, e^eps} (e^eps - 1)^2 / (e^eps + 1) TV(P0, P1)^2 for every eps-LDP channel."""
    for p0, p1, q, epsilon, _ in trials:
        assert JEFFREYS(q.push(p0), q.push(p1)) <= ghazi_issa_corollary(p0, p1, epsilon) * (1 + 1e-12)


def test_each_bound_improves_on_the_one_before():
    """[GI, eq 45] With eta = tanh(eps/2) Theorem 7 is Corollary 2, which is never above Theorem 6."""
    for epsilon in np.geomspace(1e-6, 300, 60):
        corollary = ghazi_issa_corollary(P0, P1, epsilon)
        assert ghazi_issa(P0, P1, epsilon, math.tanh(epsilon / 2)) == corollary
        assert corollary <= duchi_jordan_wainwright(P0, P1, epsilon)
        assert ghazi_issa(P0, P1, epsilon, 0.3 * math.tanh(epsilon / 2)) == pytest.approx(0.3 * corollary, rel=1e-12)


def test_small_epsilon_is_within_a_factor_of_the_truth():
    """At small eps the binary mechanism reaches half of Theorem 7 (min{2, e^eps} is 1 there): J = eps^2 TV^2 / 1."""
    epsilon = 1e-4
    first = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    m0, m1 = np.dot(P0, first), np.dot(P1, first)
    reached = JEFFREYS([m0, 1 - m0], [m1, 1 - m1])
    assert reached / ghazi_issa_corollary(P0, P1, epsilon) == pytest.approx(1.0, rel=1e-3)


def test_values():
    """Values of the three formulas computed with 30 digits."""
    assert duchi_jordan_wainwright(P0, P1, 0.5) == pytest.approx(0.285989946678391454, rel=1e-13)
    assert ghazi_issa(P0, P1, 0.5, 0.1) == pytest.approx(0.0534780278879458544, rel=1e-13)
    assert ghazi_issa_corollary(P0, P1, 0.5) == pytest.approx(0.130977670583039527, rel=1e-13)
    assert duchi_jordan_wainwright(P0, P1, 1.0) == pytest.approx(4 * (math.e - 1) ** 2 / 4, rel=1e-13)


def test_the_ends_of_the_range():
    """Equal populations give zero at any epsilon; a huge epsilon gives a huge or infinite bound, not an error."""
    assert duchi_jordan_wainwright(P0, P0, 500) == 0
    assert duchi_jordan_wainwright(P0, P1, 500) == math.inf
    assert ghazi_issa(P0, P1, 500, 1.0) > 1e200
    assert ghazi_issa(P0, P1, 1.0, 0.0) == 0


def test_an_eta_above_what_epsilon_allows_does_not_bind():
    """[GI, Prop 2] eta above tanh(eps/2) changes nothing."""
    assert ghazi_issa(P0, P1, 1.0, 0.9) == ghazi_issa(P0, P1, 1.0, math.tanh(0.5))


@pytest.mark.parametrize(
    "bound", [duchi_jordan_wainwright, ghazi_issa_corollary, lambda p, q, e: ghazi_issa(p, q, e, 0.1)]
)
def test_bad_input(bound):
    """A bad epsilon and bad populations are errors."""
    for epsilon in (0, -1, math.inf, math.nan):
        with pytest.raises(InvalidInput, match="epsilon: expected a"):
            bound(P0, P1, epsilon)
    with pytest.raises(InvalidInput, match="sum to 1"):
        bound([0.5, 0.4], P1, 1.0)


def test_bad_eta():
    """An eta outside [0, 1] is an error."""
    with pytest.raises(InvalidInput, match="eta: expected a number in"):
        ghazi_issa(P0, P1, 1.0, -0.1)
