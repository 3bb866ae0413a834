"""Branch and bound over the ratios of given outputs."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from ldpopt.design import (
    ApproximateLDP,
    BranchAndBound,
    BranchDual,
    Divergence,
    LocalDP,
    Outputs,
    TotalVariation,
    optimal_channel,
)
from ldpopt.design.outputs.proof import Leaf, Split
from ldpopt.divergences import CHI_SQUARED, KL

CAPS = [LocalDP(3.0), TotalVariation(0.5), Outputs(3)]


def utility(seed=4, k=5, f=KL):
    return Divergence(f, *np.random.default_rng(seed).dirichlet(np.ones(k), 2))


@cache
def searched():
    """The design for `utility()` within `CAPS`, searched to the end."""
    return optimal_channel(utility(), CAPS)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("nodes", [1, 5, 20])
def test_the_bound_holds_after_any_number_of_boxes(nodes):
    """More boxes give a smaller bound, and every one is above the optimum."""
    exact = searched()
    assert exact.certified
    early = optimal_channel(utility(), CAPS, method=BranchAndBound(nodes=nodes, starts=2))
    assert early.upper_bound >= exact.value * (1 - 1e-12)
    assert early.certificate.verify()


def test_any_numbers_prove_something_true():
    """Multipliers are only numbers: shifted ones prove a larger bound, never one below the optimum."""
    design = optimal_channel(utility(f=CHI_SQUARED), Outputs(3), method=BranchAndBound(nodes=60))
    certificate = design.certificate
    assert isinstance(certificate, BranchDual)
    rng = np.random.default_rng(0)
    best = design.value
    for _ in range(5):
        nodes = tuple(
            node if isinstance(node, Split) else replace(node, rows=node.rows + 0.01 * rng.normal(size=len(node.rows)))
            for node in certificate.nodes
        )
        assert replace(certificate, nodes=nodes).upper_bound >= best * (1 - 1e-12)


def test_a_tree_with_a_missing_half_proves_nothing():
    """A certificate whose tree runs in circles, or whose classes merge different ratios, is worth infinity."""
    design = optimal_channel(utility(), Outputs(3), method=BranchAndBound(nodes=60))
    certificate = design.certificate
    assert isinstance(certificate, BranchDual)
    circle = (Split(0, 0.5, 0, 0), *certificate.nodes[1:])
    assert replace(certificate, nodes=circle).upper_bound == np.inf
    assert replace(certificate, classes=np.zeros(5, dtype=int)).upper_bound == np.inf
    assert isinstance(certificate.nodes[-1], Leaf)


def test_a_channel_outside_the_constraints_fails_verification():
    """`verify` measures the channel itself."""
    design = searched()
    from ldpopt.channel import Channel

    wrong = replace(design.certificate, channel=Channel(np.eye(5)))
    assert not wrong.verify()
    assert "outputs" in str(wrong.verify())


def test_a_time_limit_leaves_a_bound():
    """Stopped by the clock after the first box, the bound holds, and the design says why it is not certified."""
    exact = searched()
    early = optimal_channel(utility(), CAPS, method=BranchAndBound(starts=2), time_limit=1e-6)
    assert early.upper_bound >= exact.value * (1 - 1e-12)
    assert early.certificate.verify()
    if not early.certified:
        assert "time limit" in str(early)


def test_outputs_that_suffice_are_those_of_the_free_optimum():
    """Under (epsilon, delta)-LDP eight outputs for five inputs cost nothing: value and bound are those without them."""
    caps = [ApproximateLDP(1.0, 0.05)]
    free = optimal_channel(utility(), caps)
    given = optimal_channel(utility(), [*caps, Outputs(8)])
    assert given.certified
    assert given.value == pytest.approx(free.value, rel=1e-7)
    assert given.channel.shape[1] <= 8
