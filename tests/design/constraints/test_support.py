"""Reports that are impossible under some answers."""

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import (
    ApproximateLDP,
    Divergence,
    ExpectedLoss,
    LocalDP,
    Support,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import JENSEN_SHANNON, KL, SQUARED_HELLINGER
from ldpopt.errors import InvalidInput

P0, P1 = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])


@pytest.mark.parametrize("f", [JENSEN_SHANNON, SQUARED_HELLINGER], ids=lambda f: f.name)
def test_brute_force_of_two_outputs(f):
    """Two outputs, one of them forbidden for one answer, under total variation: the best of a fine grid."""
    mask = [[True, False], [True, True], [True, True]]
    design = optimal_channel(Divergence(f, P0, P1), [TotalVariation(0.4), Support(mask)])
    grid = np.linspace(0, 0.4, 401)
    b, c = (part.ravel() for part in np.meshgrid(grid, grid))
    q = np.stack([np.zeros_like(b), b, c])
    best = f.excess(P0 @ q, P1 @ q) + f.excess(1 - P0 @ q, 1 - P1 @ q)
    assert design.value == pytest.approx(best.max(), rel=1e-9)
    assert design.certified
    assert design.certificate.verify()
    assert design.channel.matrix[0, 1] == 0
    assert [g.value <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True)] == [True, True]


def test_pure_ldp_uses_only_what_all_answers_allow():
    """Under pure LDP an output that some answer cannot give is given by none [GI, Def 6]."""
    mask = [[True, True, False], [True, True, True], [True, True, True]]
    utility = Divergence(KL, P0, P1)
    design = optimal_channel(utility, [LocalDP(1.5), Support(mask)])
    assert design.channel.matrix[:, 2].max() == 0
    assert design.channel.shape == (3, 3)
    full = optimal_channel(utility, [LocalDP(1.5), Support(np.ones((3, 2), dtype=bool))])
    assert design.value == pytest.approx(full.value, rel=1e-7)
    assert design.certified
    with pytest.raises(InvalidInput, match="every input allows"):
        optimal_channel(utility, [LocalDP(1.5), Support(np.eye(3, dtype=bool))])


def test_a_full_mask_changes_nothing():
    """With as many outputs as the free optimum has, and no zeros, the mask costs nothing."""
    utility = Divergence(KL, P0, P1)
    design = optimal_channel(utility, [ApproximateLDP(1.0, 0.05), Support(np.ones((3, 5), dtype=bool))])
    assert design.value == pytest.approx(optimal_channel(utility, ApproximateLDP(1.0, 0.05)).value, rel=1e-6)
    assert design.certified


def test_no_random_channel_within_the_mask_does_better():
    """Random channels of the mask, mixed until they are private, stay below the bound."""
    rng = np.random.default_rng(5)
    mask = np.array([[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 1, 1, 1]], dtype=bool)
    p0, p1 = rng.dirichlet(np.ones(4), 2)
    utility = Divergence(JENSEN_SHANNON, p0, p1)
    design = optimal_channel(utility, [TotalVariation(0.9), Support(mask)])
    assert design.certificate.verify()
    for _ in range(300):
        q = np.where(mask, rng.dirichlet(np.full(4, 0.3), 4) + 1e-9, 0.0)
        q = Channel(q / q.sum(axis=1, keepdims=True))
        if float(TotalVariation(0.9).measure(q)) <= 0.9:
            assert utility.value(q) <= design.upper_bound * (1 + 1e-9)


def test_a_contradiction_is_an_error():
    """Disjoint supports cannot be within total variation one half."""
    from ldpopt.errors import SolverError

    with pytest.raises((SolverError, InvalidInput)):
        optimal_channel(Divergence(JENSEN_SHANNON, P0, P1), [TotalVariation(0.5), Support(np.eye(3, dtype=bool))])


def test_losses_within_a_mask_are_linear_programs():
    """The least expected loss within a mask is exact: it equals the loss with forbidden decisions made dear."""
    mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool)
    loss = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
    design = optimal_channel(ExpectedLoss(P0, loss), [ApproximateLDP(1.0, 0.1), Support(mask)])
    dear = optimal_channel(ExpectedLoss(P0, np.where(mask, loss, 1e4)), ApproximateLDP(1.0, 0.1))
    assert design.value == pytest.approx(dear.value, rel=1e-6)
    assert design.certified
    assert design.certificate.verify()


@pytest.mark.parametrize(
    "mask", [[[1, 0], [0, 1]], [True, False], [[True, False], [False, False]], np.ones((0, 2), dtype=bool)]
)
def test_malformed_masks(mask):
    """A mask is a boolean matrix with something allowed for every input."""
    with pytest.raises(InvalidInput, match="mask"):
        Support(mask)


def test_a_mask_of_another_size_is_refused():
    """A mask has one row an input."""
    with pytest.raises(InvalidInput, match="mask"):
        optimal_channel(Divergence(KL, P0, P1), [LocalDP(1.0), Support(np.ones((4, 2), dtype=bool))])
    assert Support(np.ones((4, 2), dtype=bool)).measure(Channel(np.eye(2))).value == np.inf
