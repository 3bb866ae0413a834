"""Contraction: the bounds hold for every channel tried, and are attained where they are said to be."""

import math

import numpy as np
import pytest

from ldpopt.bounds import asoodeh_zhang, dobrushin
from ldpopt.channel import Channel
from ldpopt.divergences import (
    CHI_SQUARED,
    JEFFREYS,
    JENSEN_SHANNON,
    KL,
    LE_CAM,
    NAMED,
    NEYMAN_CHI_SQUARED,
    REVERSE_KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    alpha,
    hockey_stick,
)
from ldpopt.errors import InvalidInput

SQUARED = [
    CHI_SQUARED, KL, SQUARED_HELLINGER, REVERSE_KL, NEYMAN_CHI_SQUARED, JEFFREYS, LE_CAM, JENSEN_SHANNON,
]  # fmt: skip


@pytest.mark.parametrize("divergence", SQUARED, ids=lambda f: f.name)
def test_private_channels_contract_by_the_square_of_tanh(trials, divergence):
    """[AZ] D(M0 || M1) <= tanh(eps/2)^2 D(P0 || P1) for every eps-LDP channel and these divergences."""
    for p0, p1, q, epsilon, _ in trials:
        kept = divergence(q.push(p0), q.push(p1))
        assert kept <= asoodeh_zhang(divergence, p0, p1, epsilon) * (1 + 1e-11)


@pytest.mark.parametrize("divergence", [*NAMED.values(), hockey_stick(1.5), hockey_stick(0.4), alpha(3), alpha(-1)])
def test_every_divergence_contracts_by_the_dobrushin_coefficient(trials, divergence):
    """[Dobrushin] D_f(M0 || M1) <= eta D_f(P0 || P1) for every channel of Dobrushin coefficient eta."""
    for p0, p1, q, _, eta in trials:
        # The hockey stick of orders below one is a difference of numbers near 1 - gamma.
        assert divergence(q.push(p0), q.push(p1)) <= dobrushin(divergence, p0, p1, eta) * (1 + 1e-11) + 1e-15


def flip(epsilon):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return Channel([[keep, 1 - keep], [1 - keep, keep]])


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_randomized_response_attains_chi_squared(epsilon):
    """[AZ] Binary randomized response contracts chi-squared by exactly tanh(eps/2)^2 when P1 is uniform."""
    q, p0, p1 = flip(epsilon), [0.7, 0.3], [0.5, 0.5]
    kept = CHI_SQUARED(q.push(p0), q.push(p1))
    assert kept == pytest.approx(asoodeh_zhang(CHI_SQUARED, p0, p1, epsilon), rel=1e-11)


@pytest.mark.parametrize("divergence", SQUARED, ids=lambda f: f.name)
def test_close_pairs_attain_it_in_the_limit(divergence):
    """[AZ] For pairs at distance d about the uniform one, the ratio to the bound is 1 - O(d^2)."""
    short = []
    for d in (0.02, 0.01):
        p0, p1, q = [0.5 + d, 0.5 - d], [0.5 - d, 0.5 + d], flip(1.0)
        short.append(1 - divergence(q.push(p0), q.push(p1)) / asoodeh_zhang(divergence, p0, p1, 1.0))
    assert -1e-13 <= short[0] < 0.01
    assert short[0] / short[1] == pytest.approx(4.0, rel=0.01) or short[0] < 1e-12


def test_point_masses_attain_the_dobrushin_coefficient():
    """[Dobrushin] For total variation the bound is attained by point masses on the two most distant rows."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        q = rng.dirichlet(np.ones(4), size=5)
        distances = [(abs(q[x] - q[y]).sum() / 2, x, y) for x in range(5) for y in range(5)]
        eta, x, y = max(distances)
        p0, p1 = np.eye(5)[x], np.eye(5)[y]
        assert TOTAL_VARIATION(p0 @ q, p1 @ q) == pytest.approx(dobrushin(TOTAL_VARIATION, p0, p1, eta), rel=1e-12)


def test_total_variation_contracts_more_slowly():
    """Total variation contracts by tanh(eps/2), not by its square: the bound refuses it, and the example shows why."""
    q, p0, p1 = flip(1.0), [1, 0], [0, 1]
    assert TOTAL_VARIATION(q.push(p0), q.push(p1)) > 1.5 * math.tanh(0.5) ** 2
    for divergence in (TOTAL_VARIATION, hockey_stick(1.5), alpha(0.5)):
        with pytest.raises(InvalidInput, match="divergence: expected one of chi-squared divergence, KL divergence"):
            asoodeh_zhang(divergence, p0, p1, 1.0)


def test_infinite_divergences():
    """Disjoint populations at infinite divergence give an infinite bound, and zero when eta is zero."""
    assert asoodeh_zhang(KL, [1, 0], [0, 1], 1.0) == math.inf
    assert dobrushin(KL, [1, 0], [0, 1], 0.5) == math.inf
    assert dobrushin(KL, [1, 0], [0, 1], 0.0) == 0


def test_values():
    """Values computed with 30 digits."""
    assert asoodeh_zhang(KL, [0.9, 0.1], [0.4, 0.6], 1.0) == pytest.approx(0.117594957808143119, rel=1e-13)
    assert dobrushin(CHI_SQUARED, [0.9, 0.1], [0.4, 0.6], 0.5) == pytest.approx(0.520833333333333333, rel=1e-13)


def test_bad_input():
    """Bad epsilon and eta are errors."""
    with pytest.raises(InvalidInput, match="epsilon"):
        asoodeh_zhang(KL, [1, 0], [0, 1], 0)
    with pytest.raises(InvalidInput, match="eta"):
        dobrushin(KL, [1, 0], [0, 1], 2)
