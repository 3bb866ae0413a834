"""Branch and bound on entries: the optimum with given outputs, against searches and grids of other kinds."""

import itertools

import numpy as np
import pytest

from ldpopt.design import (
    Divergence,
    EntryBoxes,
    Invariant,
    LocalDP,
    LocalSearch,
    MutualInformation,
    Outputs,
    RenyiLDP,
    Support,
    TotalVariation,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL
from ldpopt.errors import InvalidInput


def problems():
    """Sums over columns of 2 to 6 answers, with zero masses, under masks and budgets, with a cap or without."""
    rng = np.random.default_rng(26)
    for number in range(15):
        k, m = int(rng.integers(2, 7)), int(rng.integers(2, 5))
        p, q, r = rng.dirichlet(np.ones(k), 3)
        if number % 3 == 0 and k > 2:
            p[-1] = 0
        p = p / p.sum()
        mask = rng.random((k, m)) < 0.7
        mask[:, 0] = True
        utility = [
            MutualInformation(p), Divergence(CHI_SQUARED, p, q),
            WeightedSum([1.0, 2.0], [MutualInformation(p), Divergence(JENSEN_SHANNON, q, r)]),
        ][number % 3]  # fmt: skip
        fixed = Support(mask) if number % 2 else Outputs(m)
        eta = float(rng.choice([1.0, 0.4, 0.05, 1e-4]))
        if k * m <= 20:
            yield utility, [fixed] if eta == 1 else [fixed, TotalVariation(eta)]
        if k < 6 and number % 2 == 0:
            yield utility, [fixed, LocalDP(float(rng.uniform(0.3, 3))), TotalVariation(max(eta, 0.05))]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("utility", "constraints"), list(problems()))
def test_the_optimum_is_certified_and_no_search_finds_more(utility, constraints):
    """Local search from five starts is never above the bound, and the value is never below what it finds."""
    design = optimal_channel(utility, constraints)
    assert design.certified
    assert design.verify()
    searched = optimal_channel(utility, constraints, method=LocalSearch(5), certify=False)
    assert searched.value <= design.upper_bound * (1 + 1e-9)
    assert design.value >= searched.value * (1 - 1e-6)


@pytest.mark.parametrize("eta", [1.0, 0.3])
def test_two_outputs_are_as_good_as_the_best_of_a_grid(eta):
    """Of three answers and two reports a channel is three numbers: the best of a fine grid comes near the optimum."""
    utility = MutualInformation([0.5, 0.3, 0.2])
    design = optimal_channel(utility, [Outputs(2)] if eta == 1 else [Outputs(2), TotalVariation(eta)])
    grid = np.linspace(0, 1, 41)
    first = np.array(list(itertools.product(grid, repeat=3)))
    first = first[np.ptp(first, axis=1) <= eta + 1e-12]
    values = utility.columns(first.T)[0] + utility.columns(1 - first.T)[0]
    assert values.max() <= design.upper_bound * (1 + 1e-9)
    assert design.value <= values.max() * 1.02  # the optimum's entries are 0, 1, eta and 1 - eta, or near them


@pytest.mark.full
def test_the_least_of_several_is_bounded():
    """The worst of several divergences is no convex function of the channel; its bound falls as boxes are split."""
    p, q, r = np.random.default_rng(3).dirichlet(np.ones(4), 3)
    utility, constraints = WorstOf(KL, p, [q, r]), [Outputs(3), TotalVariation(0.4)]
    bounds = [optimal_channel(utility, constraints, method=EntryBoxes(nodes)) for nodes in (1, 9, 25)]
    assert all(design.verify() for design in bounds)
    assert bounds[0].upper_bound >= bounds[1].upper_bound >= bounds[2].upper_bound > 0
    assert max(design.value for design in bounds) <= bounds[2].upper_bound


def test_a_search_out_of_time_returns_a_valid_bound():
    """A limit of no time leaves the first program, or none."""
    utility, constraints = MutualInformation(np.full(7, 1 / 7)), [Outputs(4), TotalVariation(0.01)]
    design = optimal_channel(utility, constraints, time_limit=0.2)
    assert design.verify()
    assert design.value <= design.upper_bound


@pytest.mark.parametrize(
    ("utility", "constraints", "why"),
    [
        (MutualInformation([0.5, 0.5]), [TotalVariation(0.3)], "needs a constraint on the outputs"),
        (MutualInformation([0.5, 0.5]), [RenyiLDP(2.0, 1.0), Outputs(2)], "there are other constraints"),
        (MutualInformation([0.5, 0.5]), [Invariant([0.5, 0.5]), TotalVariation(0.3)], "there are other constraints"),
        (Divergence(KL, [1.0, 0.0], [0.5, 0.5]), [Outputs(2)], None),
        (Divergence(KL, [0.5, 0.5], [1.0, 0.0]), [Outputs(2)], "of full disclosure is infinite"),
        (MutualInformation(np.full(9, 1 / 9)), [Outputs(2)], "too many columns to list"),
    ],
)
def test_unsupported_problems_are_refused_with_a_reason(utility, constraints, why):
    """The reason is half a sentence, under the name of the method."""
    if why is None:
        assert optimal_channel(utility, constraints, method=EntryBoxes()).certified
        return
    with pytest.raises(InvalidInput, match=why):
        optimal_channel(utility, constraints, method=EntryBoxes())
