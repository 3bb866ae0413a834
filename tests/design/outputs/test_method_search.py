"""Convex-concave local search, and the certified optimum beside it."""

import numpy as np
import pytest

from ldpopt.design import (
    ApproximateLDP,
    BranchAndBound,
    Divergence,
    LocalDP,
    LocalSearch,
    Outputs,
    Partition,
    RenyiLDP,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL
from ldpopt.errors import InvalidInput


@pytest.mark.full(but=1)
@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("constraint", [ApproximateLDP(0.8, 0.03), RenyiLDP(2.0, 0.4)], ids=["approximate", "renyi"])
def test_no_local_search_is_ahead_of_the_certified_optimum(k, constraint):
    """The optimum is at least the best of many local searches, and certified to 1e-5.

    The full form, 30 instances and 50 searches each, is experiments/trust/engine/run.py.
    """
    rng = np.random.default_rng(k)
    utility = Divergence([KL, CHI_SQUARED][k % 2], *rng.dirichlet(np.ones(k), 2))
    design = optimal_channel(utility, constraint)
    found = optimal_channel(utility, constraint, method=LocalSearch(8, np.random.default_rng(0)), certify=False)
    assert design.relative_gap <= 1e-5
    assert found.value <= design.value * (1 + 1e-6)
    assert found.value >= 0.8 * design.value
    assert found.guarantees[0].value <= constraint.bound


def test_searches_repeat_and_improve_with_starts():
    """One seed gives one channel, and more starts of one stream never lose."""
    utility = Divergence(KL, *np.random.default_rng(3).dirichlet(np.ones(4), 2))
    caps = [LocalDP(2.0), TotalVariation(0.3)]
    made = [
        optimal_channel(utility, caps, method=LocalSearch(n, np.random.default_rng(5)), certify=False)
        for n in (1, 1, 6)
    ]
    assert np.array_equal(made[0].channel.matrix, made[1].channel.matrix)
    assert made[2].value >= made[0].value * (1 - 1e-9)


def test_a_search_is_bounded_and_named_as_the_method():
    """Its design is feasible, below a valid bound, and names the search as its method."""
    utility = Divergence(JENSEN_SHANNON, [0.5, 0.3, 0.2], [0.1, 0.3, 0.6])
    design = optimal_channel(utility, [LocalDP(1.0)], method=LocalSearch(5))
    exact = optimal_channel(utility, LocalDP(1.0))
    assert design.method == "local search from 5 starts"
    assert design.value <= exact.value * (1 + 1e-9) <= design.upper_bound * (1 + 2e-9)
    fixed = optimal_channel(utility, [LocalDP(3.0), Outputs(2)], method=LocalSearch(5))
    assert fixed.channel.shape[1] <= 2
    assert fixed.value <= fixed.upper_bound


def test_the_number_of_outputs_can_be_named():
    """For constraints that leave it free, `outputs` caps the size of the search."""
    utility = Divergence(KL, *np.random.default_rng(8).dirichlet(np.ones(5), 2))
    design = optimal_channel(utility, LocalDP(3.0), method=LocalSearch(4, outputs=2), certify=False)
    assert design.channel.shape[1] <= 2


@pytest.mark.parametrize("bad", [dict(starts=0), dict(starts=1.5), dict(rng="0"), dict(outputs=0)])
def test_malformed_searches(bad):
    """Starts and outputs are positive integers, rng is a generator or a seed."""
    with pytest.raises(InvalidInput):
        LocalSearch(**bad)


def test_methods_check_constraints_on_the_outputs():
    """Partitions know no budget, branching needs one, and its settings are checked."""
    utility = Divergence(KL, [0.5, 0.3, 0.2], [0.1, 0.3, 0.6])
    with pytest.raises(InvalidInput, match="method"):
        optimal_channel(utility, [LocalDP(1.0), Outputs(2)], method=Partition())
    with pytest.raises(InvalidInput, match="BranchAndBound"):
        optimal_channel(utility, LocalDP(1.0), method=BranchAndBound())
    for bad in (dict(nodes=0), dict(starts=0), dict(rng="3")):
        with pytest.raises(InvalidInput):
            BranchAndBound(**bad)
