"""The best channel over a denominator, against brute force over all integer channels."""

import math
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest

from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt.design import (
    Denominator,
    Divergence,
    ExpectedLoss,
    FisherInformation,
    IntegerColumns,
    IntegerProgram,
    MutualInformation,
    Partition,
    PrivateSampling,
    RenyiLDP,
    Rounded,
    load_design,
)
from ldpopt.divergences import KL, TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.exact import exp_lower
from ldpopt.mechanisms import Crosswise, ForcedResponse, Kuk, Warner


def all_channels(k, total, epsilon, columns=None):
    """Every multiset of integer columns within the ratio that adds up to D in every row, by plain recursion."""
    if columns is None:
        every = product(range(1, total + 1), repeat=k)
        columns = [c for c in every if max(c) <= exp_lower(epsilon) * min(c)]

    def extend(left, start):
        if not any(left):
            yield ()
            return
        for at in range(start, len(columns)):
            rest = tuple(a - b for a, b in zip(left, columns[at], strict=True))
            if min(rest) >= 0:
                yield from ((columns[at], *more) for more in extend(rest, at))

    yield from extend((total,) * k, 0)


def best_of_all(utility, k, total, epsilon, cap=None):
    best = math.inf if utility.error else -math.inf
    for made in all_channels(k, total, epsilon):
        weights = np.array(made).T
        if cap is not None and any(
            np.maximum(weights[x] - weights[y], 0).sum() > cap for x, y in permutations(range(k), 2)
        ):
            continue
        value = utility.value(weights / total)
        best = min(best, value) if utility.error else max(best, value)
    return best


@pytest.mark.parametrize(
    ("utility", "k", "total", "epsilon"),
    [
        (Divergence(KL, [0.8, 0.2], [0.3, 0.7]), 2, 8, 1.0),
        (Divergence(TOTAL_VARIATION, [0.8, 0.2], [0.3, 0.7]), 2, 9, 0.5),
        (MutualInformation([0.6, 0.4]), 2, 8, 0.7),
        (MutualInformation([0.2, 0.3, 0.5]), 3, 5, 1.0),
        (Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), 3, 6, 1.0),
    ],
)
def test_the_program_finds_and_proves_the_best_integer_channel(utility, k, total, epsilon):
    """The design is as good as the best of all, and certified by the kernel in both arithmetics."""
    design = optimal_channel(utility, [LocalDP(epsilon), Denominator(total)])
    assert design.value == pytest.approx(best_of_all(utility, k, total, epsilon), rel=1e-9)
    assert isinstance(design.certificate, IntegerColumns)
    assert design.certified
    assert design.verify()
    assert design.verify(exact=True)


def test_a_cap_on_total_variation_is_met_by_the_best_integer_channel():
    utility = MutualInformation([0.2, 0.3, 0.5])
    design = optimal_channel(utility, [LocalDP(1.0), TotalVariation(0.21), Denominator(5)])
    assert design.value == pytest.approx(best_of_all(utility, 3, 5, 1.0, cap=1), rel=1e-9)
    assert design.verify()


@pytest.mark.parametrize(("total", "epsilon", "prior"), [(10, 1.0, [0.5, 0.5]), (9, 0.6, [0.8, 0.2])])
def test_the_least_variance_of_all_integer_channels_is_found(total, epsilon, prior):
    """A sum of variances is reached through its cuts; the bound is that of channels without a denominator."""
    utility = FisherInformation(prior)
    design = optimal_channel(utility, [LocalDP(epsilon), Denominator(total)])
    assert design.value == pytest.approx(best_of_all(utility, 2, total, epsilon), rel=1e-9)
    assert design.lower_bound <= optimal_channel(utility, LocalDP(epsilon)).value * (1 + 1e-12)
    assert not design.certified
    assert design.verify()


@pytest.mark.full(but=2)
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("denominator", [10, 36, 100])
def test_designs_are_integers_within_the_ratio(k, denominator):
    """Whatever method: weights are whole, rows sum to D, and ratios are below e^epsilon in rational arithmetic."""
    design = optimal_channel(FisherInformation(np.ones(k) / k), [LocalDP(1.0), Denominator(denominator)])
    weights = np.rint(design.channel.matrix * denominator).astype(int)
    assert np.array_equal(weights / denominator, design.channel.matrix)
    assert (weights.sum(axis=1) == denominator).all()
    ratio = exp_lower(1.0)
    assert all(a <= ratio * b for column in weights.T.tolist() for a in column for b in column)


def test_rounding_is_never_better_than_the_search():
    utility = FisherInformation([0.2, 0.3, 0.5])
    problem = [LocalDP(1.0), Denominator(36)]
    searched, rounded = optimal_channel(utility, problem), optimal_channel(utility, problem, method=Rounded())
    assert searched.value <= rounded.value * (1 + 1e-12)
    assert "columns of integers" in searched.method


def test_two_ten_sided_dice_lose_less_than_five_per_cent_for_three_answers():
    design = optimal_channel(FisherInformation([1 / 3] * 3), [LocalDP(1.0), Denominator(100)])
    assert design.value / design.lower_bound < 1.05


@pytest.mark.parametrize(
    "classical", [Warner(26 / 36), Crosswise(26 / 36), ForcedResponse(1 / 6, 1 / 6), Kuk(26 / 36, 10 / 36)]
)
def test_the_best_channel_is_no_worse_than_the_classical_designs(classical):
    """Each is a channel over 36 (forced response over 6): the best one within its epsilon tells at least as much."""
    utility = FisherInformation([0.3, 0.7])
    design = optimal_channel(utility, [LocalDP(classical.epsilon + 1e-12), Denominator(36)])
    assert design.value <= utility.value(classical.channel) * (1 + 1e-12)


def test_methods_and_constraints_that_exclude_a_denominator_are_refused():
    utility = FisherInformation([0.5, 0.5])
    with pytest.raises(InvalidInput, match="it finds no multiples of 1/36"):
        optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), [LocalDP(1), Denominator(36)], method=Partition())
    with pytest.raises(InvalidInput, match="no other constraint beside a denominator"):
        optimal_channel(utility, [RenyiLDP(2.0, 0.5), Denominator(36)])
    with pytest.raises(InvalidInput, match="no constraint gives a denominator"):
        optimal_channel(utility, LocalDP(1), method=IntegerProgram())


def test_a_design_over_a_denominator_survives_a_file(tmp_path):
    design = optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), [LocalDP(1), Denominator(36)])
    design.save(tmp_path / "d.json")
    read = load_design(tmp_path / "d.json")
    assert read.verify()
    assert read.value == design.value
    assert read.constraints[1] == Denominator(36)


def test_a_channel_off_its_denominator_is_no_such_channel():
    """The measure is 0 for the nearest floats of n/D alone, and infinite where the integers do not add up."""
    assert Denominator(36).measure(Warner(0.75).channel).value == 0
    assert Denominator(36).measure(Warner(0.74).channel).value == pytest.approx(abs(0.74 - 27 / 36), abs=1e-12)


def test_merged_hypotheses_lose_nothing():
    """Inputs of one likelihood ratio get one row; brute force over unmerged channels finds nothing better."""
    utility = Divergence(KL, [0.4, 0.4, 0.2], [0.1, 0.1, 0.8])
    design = optimal_channel(utility, [LocalDP(1.0), Denominator(6)])
    assert design.value == pytest.approx(best_of_all(utility, 3, 6, 1.0), rel=1e-9)
    assert np.array_equal(design.channel.matrix[0], design.channel.matrix[1])


def test_combinations_are_counted():
    """The brute force above counts what it should: k = 1 has one column for each part of a partition of D."""
    partitions = sum(
        1 for size in range(1, 6) for parts in combinations_with_replacement(range(1, 6), size) if sum(parts) == 5
    )
    assert sum(1 for _ in all_channels(1, 5, 1.0)) == partitions == 7


@pytest.mark.parametrize("seed", range(3))
def test_decisions_and_draws_over_a_denominator_are_found_with_their_names(seed):
    """Designs are multiples with named outputs; by brute force none beats the best, or is far from it."""
    rng = np.random.default_rng(seed)
    loss = ExpectedLoss(rng.dirichlet([1, 1]), rng.random((2, 3)), decisions=("stay", "go", "wait"))
    sampling = PrivateSampling(TOTAL_VARIATION, rng.dirichlet([1, 1, 1], 2), answers=("stay", "go", "wait"))
    total, ratio = 8, float(exp_lower(1.0))
    rows = [(a, b, total - a - b) for a in range(total + 1) for b in range(total + 1 - a)]
    pairs = [
        (p, q) for p in rows for q in rows if all(max(x, y) <= ratio * min(x, y) for x, y in zip(p, q, strict=True))
    ]
    for utility in (loss, sampling):
        design = optimal_channel(utility, [LocalDP(1.0), Denominator(total)])
        assert design.channel.outputs == ("stay", "go", "wait")
        assert design.verify().failures == () or "no certificate" in design.verify().failures[0]
        best = max(utility.value(np.array(pair) / total) for pair in pairs)
        assert best - 0.05 <= design.value <= best + 1e-9
