"""The bounds of easier problems that a design falls back on."""

import networkx as nx
import numpy as np
import pytest

from ldpopt import ApproximateLDP, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import MutualInformation, RenyiLDP


@pytest.mark.parametrize(
    ("settled", "other"),
    [
        (ApproximateLDP(1.0, 0.05), TotalVariation(0.3)),
        (LocalDP(0.5), RenyiLDP(2.0, 0.1)),
        (LocalDP(0.5, graph=nx.path_graph(4)), RenyiLDP(2.0, 0.1)),
    ],
    ids=["approximate and TV", "local and Renyi", "path and Renyi"],
)
def test_a_bound_under_fewer_constraints_is_one_under_all(settled, other):
    """Mutual information under two constraints: never bounded worse than under the one that a program settles."""
    utility = MutualInformation(np.random.default_rng(1).dirichlet(np.ones(4)))
    both = optimal_channel(utility, [settled, other])
    alone = optimal_channel(utility, settled)
    assert alone.certified
    assert both.value <= both.upper_bound <= alone.upper_bound * (1 + 1e-12)
    assert both.verify()
