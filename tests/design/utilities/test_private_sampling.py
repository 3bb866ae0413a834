"""Private sampling as a convex program, beside its closed form."""

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from ldpopt import ApproximateLDP, Channel, InvalidInput, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import PrivateSampling
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, REVERSE_KL, SQUARED_HELLINGER, TOTAL_VARIATION
from ldpopt.mechanisms import PrivateSampler
from ldpopt.numbers.enclosures import FLOAT


@pytest.mark.parametrize(
    "f", [KL, TOTAL_VARIATION, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON], ids=lambda f: f.name
)
def test_point_masses_cost_the_closed_form(f):
    """No epsilon-LDP channel has a smaller worst divergence, even from the k point masses alone, than [PAL] says."""
    for k, epsilon in ((2, 0.5), (3, 2.0), (6, 1.0)):
        design = optimal_channel(PrivateSampling(f, np.eye(k)), LocalDP(epsilon))
        assert -design.value == pytest.approx(PrivateSampler(k, epsilon).risk(f), rel=1e-7)
        assert -design.upper_bound == pytest.approx(-design.value, rel=1e-6)
        assert design.certified
        assert design.certificate.verify()


def test_the_design_is_that_of_a_convex_program():
    """With any distributions the optimum is that of the program with the KL divergence itself, by a conic solver."""
    rng = np.random.default_rng(0)
    for held, caps in (
        (rng.dirichlet(np.ones(4), 5), [LocalDP(1.0)]),
        (np.eye(3), [LocalDP(1.5), TotalVariation(0.2)]),
    ):
        n, k = held.shape
        q = cp.Variable((n, k), nonneg=True)
        rows = [cp.sum(cp.rel_entr(held[i], q[i])) for i in range(n)]
        limits = [cp.sum(q, axis=1) == 1, *(one for cap in caps for one in cap.expression(q))]
        problem = cp.Problem(cp.Minimize(cp.maximum(*rows)), limits)
        problem.solve(solver="CLARABEL")
        design = optimal_channel(PrivateSampling(KL, held), caps)
        assert -design.value == pytest.approx(problem.value, rel=1e-6)
        assert design.certified
        assert design.certificate.verify()


def test_knowing_the_distributions_helps():
    """A list of distributions costs at most what all distributions do, and slack in privacy less."""
    held = np.random.default_rng(3).dirichlet(np.ones(4), 3)
    listed = optimal_channel(PrivateSampling(CHI_SQUARED, held), LocalDP(0.5))
    everyone = PrivateSampler(4, 0.5)
    assert -listed.value <= -PrivateSampling(CHI_SQUARED, held).value(everyone.channel(held)) + 1e-12
    slack = optimal_channel(PrivateSampling(CHI_SQUARED, held), ApproximateLDP(0.5, 0.05))
    assert slack.certified
    assert slack.value > listed.value


def test_forged_certificates_fail():
    """Other tangents or weights prove less than those of the design; numbers that are none prove nothing."""
    design = optimal_channel(PrivateSampling(KL, np.eye(3)), LocalDP(1.0))
    proof, best = design.certificate, design.value
    assert replace(proof, prior=np.array([1.0, 0.0, 0.0])).upper_bound >= best
    assert replace(proof, ratios=2 * proof.ratios).upper_bound >= best
    looser = optimal_channel(PrivateSampling(KL, np.eye(3)), LocalDP(2.0))
    assert replace(proof, constraints=(LocalDP(2.0),)).upper_bound >= looser.value
    assert replace(proof, constraints=()).upper_bound >= 0
    assert not replace(proof, constraints=()).verify()
    negative = proof.mixture.copy()
    negative[0, 0, 0] = -1.0
    for forged in (
        {"prior": np.full(3, np.nan)},
        {"prior": np.array([2.0, -1.0, 0.0])},
        {"prior": np.array([1.0, 0.0])},
        {"ratios": np.zeros_like(proof.ratios)},
        {"ratios": proof.ratios[::-1]},
        {"ratios": -proof.ratios},
        {"mixture": 0 * proof.mixture},
        {"mixture": negative},
        {"mixture": np.nan * proof.mixture},
        {"mixture": np.swapaxes(proof.mixture, 0, 2)},
    ):
        assert math.isinf(replace(proof, **forged).upper_bound)


def test_bad_distributions_and_divergences_are_refused():
    """Distributions, labels, channels and divergences are checked."""
    with pytest.raises(InvalidInput, match="distribution 1"):
        PrivateSampling(KL, [[0.5, 0.5], [0.5, 0.6]])
    with pytest.raises(InvalidInput, match="at least two"):
        PrivateSampling(KL, [[0.5, 0.5]])
    with pytest.raises(InvalidInput, match="with zeros"):
        PrivateSampling(REVERSE_KL, np.eye(2))
    with pytest.raises(InvalidInput, match="answers"):
        PrivateSampling(KL, np.eye(2), answers=("a",))
    with pytest.raises(InvalidInput, match="shape"):
        PrivateSampling(KL, np.eye(2)).value(np.full((2, 3), 1 / 3))
    with pytest.raises(InvalidInput, match="divergence: expected one of"):
        PrivateSampling("nonsense", np.eye(2))
    with pytest.raises(InvalidInput, match="method"):
        optimal_channel(PrivateSampling(KL, np.eye(2)), LocalDP(1.0), method=3)


def test_a_mass_of_1e_60_has_a_finite_enclosed_value():
    """The reverse KL divergence to a mass far below an ulp of the others is log(1/mass), in floats and enclosed."""
    utility = PrivateSampling(REVERSE_KL, [[1.0, 1e-60], [1e-60, 1.0]])
    enclosed = utility.enclosed_value(Channel(np.full((2, 2), 0.5)), FLOAT)
    exact = -(math.log(0.5) + 30 * math.log(10))
    assert enclosed.lower <= exact <= enclosed.upper
    assert enclosed.upper - enclosed.lower <= 1e-9
