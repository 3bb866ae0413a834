"""A budget of outputs.

Reports that are impossible under some answers.
"""

import itertools
import math

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import (
    ApproximateLDP,
    Divergence,
    ExpectedLoss,
    LocalDP,
    MutualInformation,
    Outputs,
    RenyiLDP,
    Support,
    TotalVariation,
    optimal_channel,
)
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, SQUARED_HELLINGER, TOTAL_VARIATION
from ldpopt.errors import InvalidInput


def pair(k, seed):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))


def two_levels(f, p0, p1, corners):
    """The best channel of two outputs whose first column takes the values of a corner, above and below a cut."""
    order = np.argsort(p0 / p1)
    best = 0.0
    for low, high in corners:
        for cut in range(1, len(p0)):
            q = np.full(len(p0), low)
            q[order[cut:]] = high
            for column in (q, low + high - q):
                matrix = np.column_stack([column, 1 - column])
                best = max(best, float(f.excess(p0 @ matrix, p1 @ matrix).sum()))
    return best


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("f", "k"), [(KL, 4), (CHI_SQUARED, 3), (SQUARED_HELLINGER, 9)], ids=str)
def test_two_outputs_take_two_levels(k, f):
    """With two outputs the first column q rises with the ratio and takes two values, a corner of what one pair allows.

    Pairs of rows (a, b) and (b, a) that are allowed, with all (a, a), span a triangle that holds every pair of values
    between a and b; and a convex function of q on [a, b]^k is largest where q is a or b.
    """
    p0, p1 = pair(k, k)
    e = math.exp(3.0)
    for caps, corners in (
        ([LocalDP(3.0)], [(1 / (1 + e), e / (1 + e))]),
        ([LocalDP(3.0), TotalVariation(0.4)], [(0.4 / (e - 1), 0.4 * e / (e - 1))]),
        ([ApproximateLDP(1.0, 0.1)], [(0.0, 0.1), (0.9 / (1 + math.e), 1 - 0.9 / (1 + math.e))]),
    ):
        design = optimal_channel(Divergence(f, p0, p1), [*caps, Outputs(2)])
        assert design.value == pytest.approx(two_levels(f, p0, p1, corners), rel=1e-8)
        assert design.certified
        assert design.certificate.verify()
        assert design.channel.shape[1] <= 2
        assert all(g.value <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))


@pytest.mark.full
def test_three_outputs_are_nearly_optimal_among_grid_vertices():
    """No three columns between m and e m, with m on a grid and rows at the corners of what they allow, do better."""
    k, ratio = 4, math.exp(7.0)
    p0, p1 = pair(4, 0)
    design = optimal_channel(Divergence(KL, p0, p1), [LocalDP(7.0), Outputs(3)])
    free = optimal_channel(Divergence(KL, p0, p1), LocalDP(7.0))
    assert free.channel.shape[1] > 3
    assert design.value < free.value
    assert design.certified
    best = 0.0
    grid = np.linspace(1 / (2 * ratio), 4 / ratio, 8)
    for floors in itertools.product(grid, repeat=3):
        floor = np.array(floors)
        rows = []
        for order in itertools.permutations(range(3)):
            row, left = floor.copy(), 1 - floor.sum()
            for y in order:
                given = min(left, (ratio - 1) * floor[y])
                row[y] += given
                left -= given
            if abs(left) < 1e-12:
                rows.append(row)
        if not rows:
            continue
        rows = np.unique(np.round(rows, 12), axis=0)
        every = np.array(list(itertools.product(range(len(rows)), repeat=k)))
        a, b = np.einsum("x,nxy->ny", p0, rows[every]), np.einsum("x,nxy->ny", p1, rows[every])
        best = max(best, float(KL.excess(a, b).sum(axis=1).max()))
    assert best <= design.upper_bound * (1 + 1e-9)
    assert best >= 0.97 * design.value


@pytest.mark.full
def test_more_outputs_keep_more_and_enough_keep_all():
    """The optimum rises with the budget, to the optimum without one, whose own certificate then serves."""
    utility = Divergence(KL, *pair(5, 0))
    free = optimal_channel(utility, LocalDP(4.0))
    designs = [optimal_channel(utility, [LocalDP(4.0), Outputs(m)]) for m in (1, 2, 3, 5)]
    values = [design.value for design in designs]
    assert values == sorted(values)
    assert values[0] == pytest.approx(0.0, abs=1e-12)
    assert values[-1] == free.value
    assert all(design.certified for design in designs[1:])
    assert all(design.certificate.verify() for design in designs)
    assert "does not bind" in designs[-1].note


def test_quantizers_without_privacy_are_cuts_of_sorted_answers():
    """Without privacy the best m reports are those of the best cut of the sorted answers into m runs."""
    p0, p1 = pair(7, 3)
    order = np.argsort(p0 / p1)
    a, b = p0[order], p1[order]
    best = 0.0
    for cuts in itertools.combinations(range(1, 7), 2):
        parts = np.split(np.arange(7), cuts)
        best = max(best, sum(float(KL.excess(a[part].sum(), b[part].sum())) for part in parts))
    design = optimal_channel(Divergence(KL, p0, p1), Outputs(3))
    assert design.value == pytest.approx(best, rel=1e-9)
    assert design.certified


@pytest.mark.full
def test_two_outputs_under_renyi_have_the_best_cut():
    """Two outputs under Rényi-LDP: the level that the divergence of two numbers allows, at the best cut."""
    p0, p1 = pair(4, 11)
    level = 0.4

    def spread(low, high):
        return math.log(high**2 / low + (1 - high) ** 2 / (1 - low))

    best = 0.0
    for low in np.linspace(0.002, 0.6, 1500):
        bottom, top = low, 1.0
        for _ in range(40):
            middle = (bottom + top) / 2
            inside = middle < 1 and max(spread(low, middle), spread(middle, low)) <= level
            bottom, top = (middle, top) if inside else (bottom, middle)
        best = max(best, two_levels(KL, p0, p1, [(low, bottom)]))
    design = optimal_channel(Divergence(KL, p0, p1), [RenyiLDP(2.0, level), Outputs(2)])
    assert best <= design.upper_bound * (1 + 1e-9)
    assert design.value == pytest.approx(best, rel=1e-4)
    assert design.certified


def test_other_utilities_take_a_budget():
    """Mutual information with two outputs is certified, and below the optimum without the budget."""
    utility = MutualInformation([0.3, 0.3, 0.2, 0.2])
    free = optimal_channel(utility, LocalDP(3.0))
    design = optimal_channel(utility, [LocalDP(3.0), Outputs(2)])
    assert design.channel.shape[1] <= 2
    assert 0 < design.value < free.value
    assert design.certified
    assert design.upper_bound < free.value
    e = math.exp(3.0)
    cuts = [np.where(np.isin(np.arange(4), part), e, 1.0) / (1 + e) for part in ([0], [0, 1], [0, 2], [2], [2, 3])]
    assert design.value >= max(utility.value(np.column_stack([q, 1 - q])) for q in cuts) - 1e-9


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, "2"])
def test_malformed_budgets_are_refused(bad):
    """A budget is a positive integer."""
    with pytest.raises(InvalidInput, match="m"):
        Outputs(bad)


def test_total_variation_needs_two_outputs_only():
    """For total variation the binary channel is optimal, so that two outputs lose nothing [GI, Thm 5]."""
    utility = Divergence(TOTAL_VARIATION, *pair(6, 1))
    design = optimal_channel(utility, [LocalDP(1.0), Outputs(2)])
    assert design.value == pytest.approx(optimal_channel(utility, LocalDP(1.0)).value, rel=1e-9)


P0, P1 = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])


@pytest.mark.parametrize("f", [JENSEN_SHANNON, SQUARED_HELLINGER], ids=lambda f: f.name)
def test_two_outputs_with_a_forbidden_one_agree_with_brute_force(f):
    """Two outputs, one of them forbidden for one answer, reach the best of a fine grid under total variation."""
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


def test_pure_ldp_uses_only_outputs_of_all_answers():
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


@pytest.mark.full
def test_a_full_mask_changes_nothing():
    """With as many outputs as the free optimum has, and no zeros, the mask costs nothing."""
    utility = Divergence(KL, [0.7, 0.3], [0.2, 0.8])
    free = optimal_channel(utility, ApproximateLDP(1.0, 0.05))
    mask = Support(np.ones(free.channel.shape, dtype=bool))
    design = optimal_channel(utility, [ApproximateLDP(1.0, 0.05), mask])
    assert design.value == pytest.approx(free.value, rel=1e-6)
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
def test_malformed_masks_are_refused(mask):
    """A mask is a boolean matrix with something allowed for every input."""
    with pytest.raises(InvalidInput, match="mask"):
        Support(mask)


def test_a_mask_of_another_size_is_refused():
    """A mask has one row an input."""
    with pytest.raises(InvalidInput, match="mask"):
        optimal_channel(Divergence(KL, P0, P1), [LocalDP(1.0), Support(np.ones((4, 2), dtype=bool))])
    assert Support(np.ones((4, 2), dtype=bool)).measure(Channel(np.eye(2))).value == np.inf
