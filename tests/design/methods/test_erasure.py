"""Erasure: the optimum under a cap on total variation alone, and under a cap of zero."""

import networkx as nx
import numpy as np
import pytest

from ldpopt import (
    ApproximateLDP,
    Divergence,
    ExpectedLoss,
    LocalDP,
    MutualInformation,
    PrivateSampling,
    RenyiLDP,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import KL, TOTAL_VARIATION

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.8, 0.0]
NOTHING = [
    [TotalVariation(0.0)],
    [LocalDP(1.0), TotalVariation(0.0)],
    [ApproximateLDP(0.0, 0.0)],
    [LocalDP(1e-8), ApproximateLDP(0.0, 0.0), RenyiLDP(3, 0.006)],
    [RenyiLDP(2, 0.3), TotalVariation(0.0)],
    [LocalDP(1.0, nx.path_graph(3)), TotalVariation(0.0)],
]


@pytest.mark.parametrize("constraints", NOTHING, ids=range(6))
@pytest.mark.parametrize(
    "utility",
    [Divergence(KL, P0, P1), Divergence(TOTAL_VARIATION, P0, P1), MutualInformation(P0)],
    ids=lambda u: u.name,
)
def test_under_a_cap_of_zero_nothing_is_kept_and_that_is_proved(utility, constraints):
    """Also where full disclosure is worth infinitely much."""
    design = optimal_channel(utility, constraints)
    assert (design.value, design.upper_bound, design.certified) == (0.0, 0.0, True)
    assert design.verify()
    assert design.verify(exact=True)


@pytest.mark.parametrize("constraints", NOTHING[:-1], ids=range(5))
def test_under_a_cap_of_zero_decisions_are_the_best_that_ignore_the_answer(constraints):
    """Always saying the likeliest answer errs with probability 1 - 0.5; sampling has equal rows as well."""
    loss = optimal_channel(ExpectedLoss(P0, 1 - np.eye(3)), constraints)
    assert loss.value == pytest.approx(-0.5, abs=1e-7)
    assert loss.upper_bound >= -0.5
    sampling = optimal_channel(PrivateSampling(KL, [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), constraints)
    assert np.ptp(np.asarray(sampling.channel.matrix), axis=0).max() == 0
    assert sampling.value <= sampling.upper_bound


def test_under_total_variation_alone_full_disclosure_is_erased():
    """eta times full disclosure [Dobrushin]."""
    design = optimal_channel(Divergence(TOTAL_VARIATION, P0, P1), TotalVariation(0.25))
    assert design.value == pytest.approx(0.25 * 0.5, rel=1e-12)
    assert design.certified
