"""Mutual information, several tests at once and weighted sums."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt.channel import Channel
from ldpopt.design import (
    ApproximateLDP,
    Contraction,
    Divergence,
    Exchange,
    LocalDP,
    LocalSearch,
    MutualInformation,
    PairwiseInformation,
    PatternLP,
    TotalVariation,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.errors import InvalidInput
from ldpopt.privacy import mutual_information


def test_mutual_information_is_the_measure():
    """The utility of a channel is its mutual information as `privacy` measures it."""
    rng = np.random.default_rng(0)
    prior, q = rng.dirichlet(np.ones(4)), Channel(rng.dirichlet(np.ones(5), 4))
    assert MutualInformation(prior).value(q) == pytest.approx(float(mutual_information(q, prior)), rel=1e-12)


@pytest.mark.parametrize("k", [3, 6])
def test_mutual_information_has_two_regimes(k):
    """Randomized response is optimal for large epsilon, a binary channel nearly so for small [KOV14, Thm 8, 9]."""
    prior = np.full(k, 1 / k)
    utility = MutualInformation(prior)
    response = np.full((k, k), 1.0) + (math.exp(8.0) - 1) * np.eye(k)
    design = optimal_channel(utility, LocalDP(8.0))
    assert design.certified
    assert design.value == pytest.approx(utility.value(response / response.sum(axis=1, keepdims=True)), rel=1e-9)
    small = optimal_channel(utility, LocalDP(0.05))
    binary = max(
        utility.value(np.column_stack([np.where(np.arange(k) < cut, s, 1 - s), np.where(np.arange(k) < cut, 1 - s, s)]))
        for cut in range(1, k)
        for s in [math.exp(0.05) / (1 + math.exp(0.05))]
    )
    assert small.value == pytest.approx(binary, rel=2e-2)
    assert small.value >= binary * (1 - 1e-9)


def patterns_by_brute_force(prior, epsilon, eta):
    """The pattern program of mutual information with all 2^k columns at once, TV rows included [KOV14, Thm 4]."""
    k, gain = len(prior), math.exp(epsilon) - 1
    inside = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    columns = 1 + gain * inside
    mixture = columns @ prior
    worth = (columns * np.log(columns / mixture[:, None])) @ prior
    above, below = np.triu_indices(k, 1)
    caps = gain * (inside[:, above] * (1 - inside[:, below])).T
    found = linprog(-worth, caps, np.full(len(above), eta), columns.T, np.ones(k))
    return -found.fun


@pytest.mark.parametrize("k", [2, 3, 5, 7, 10])
def test_mutual_information_agrees_with_all_patterns(k):
    """With and without a TV cap the design keeps what the program over all 2^k staircase patterns keeps."""
    rng = np.random.default_rng(k)
    for epsilon in (0.3, 2.0):
        prior = rng.dirichlet(np.ones(k))
        for eta in (1.0, 0.5 * math.tanh(epsilon / 2)):
            design = optimal_channel(MutualInformation(prior), [LocalDP(epsilon), TotalVariation(eta)])
            assert design.value == pytest.approx(patterns_by_brute_force(prior, epsilon, eta), rel=1e-7, abs=1e-10)
            assert design.certified


@pytest.mark.parametrize("k", [4, 9])
def test_the_best_binary_mechanism_is_optimal_for_small_epsilon(k):
    """For small epsilon the best binary mechanism, on a set of mass nearest to 1/2, keeps everything [KOV14, Thm 8]."""
    prior = np.random.default_rng(k).dirichlet(np.ones(k))
    epsilon = 1e-3
    inside = (np.arange(1, 2**k - 1)[:, None] >> np.arange(k)) & 1
    best = inside[np.argmin(np.abs(inside @ prior - 0.5))]
    likely = math.exp(epsilon) / (1 + math.exp(epsilon))
    binary = np.column_stack([np.where(best, likely, 1 - likely), np.where(best, 1 - likely, likely)])
    utility = MutualInformation(prior)
    design = optimal_channel(utility, LocalDP(epsilon))
    assert design.value == pytest.approx(utility.value(binary), rel=1e-6)


def test_one_test_and_one_term_are_the_divergence():
    """A single alternative, or a sum of one divergence, has the divergence's own optimum, with and without eta."""
    rng = np.random.default_rng(2)
    p0, p1 = rng.dirichlet(np.ones(5), 2)
    plain = Divergence(CHI_SQUARED, p0, p1)
    for caps in ([LocalDP(1.1)], [LocalDP(1.1), TotalVariation(0.2)]):
        best = optimal_channel(plain, caps).value
        for utility in (WorstOf(CHI_SQUARED, p0, [p1]), WeightedSum([2.0], [plain])):
            design = optimal_channel(utility, caps)
            factor = 2.0 if isinstance(utility, WeightedSum) else 1.0
            assert design.value == pytest.approx(factor * best, rel=1e-7)
            assert design.certified
            assert design.certificate.verify()


def test_the_certified_worst_case_exceeds_random_channels():
    """The certified worst case is above every random private channel's, and below each test's own optimum."""
    rng = np.random.default_rng(4)
    p0, *others = rng.dirichlet(np.ones(4), 4)
    utility = WorstOf(KL, p0, others)
    design = optimal_channel(utility, LocalDP(1.0))
    assert design.certified
    assert design.value <= min(optimal_channel(Divergence(KL, p0, p), LocalDP(1.0)).value for p in others) + 1e-9
    ratios = np.where(rng.random((200, 4, 6)) < 0.5, 1.0, math.e)
    for q in ratios:
        # Rows of a staircase channel sum to one only after balancing; randomized response on a random coarsening does.
        labels = (q[:, 0] > 1).astype(int)
        s = math.e / (1 + math.e)
        channel = np.column_stack([np.where(labels, s, 1 - s), np.where(labels, 1 - s, s)])
        assert utility.value(channel) <= design.upper_bound + 1e-12


def test_without_a_pattern_program_the_bound_is_a_relaxation():
    """A search under (epsilon, delta)-LDP is bounded by averages over pairs; extreme columns prove what it misses."""
    utility, caps = MutualInformation([0.5, 0.3, 0.2]), ApproximateLDP(1.0, 0.01)
    exact, design = optimal_channel(utility, caps), optimal_channel(utility, caps, method=LocalSearch(8))
    assert exact.certified
    assert design.value <= exact.upper_bound
    assert not design.certified
    assert isinstance(design.certificate, PairwiseInformation)
    assert design.upper_bound < Contraction(utility, (caps,), design.channel).bound
    assert "easier problem" in design.note
    assert design.upper_bound <= design.utility.value_without_privacy
    pure = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), LocalDP(1.0))
    assert pure.value * (1 - 1e-6) <= design.value <= design.upper_bound


def test_malformed_utilities_are_refused():
    """Weights match utilities, sizes agree, something is uncertain."""
    u, v = Divergence(KL, [0.5, 0.5], [0.2, 0.8]), MutualInformation([0.2, 0.3, 0.5])
    with pytest.raises(InvalidInput, match="weights"):
        WeightedSum([1.0, -1.0], [u, u])
    with pytest.raises(InvalidInput, match="utilities"):
        WeightedSum([1.0, 1.0], [u, v])
    with pytest.raises(InvalidInput, match="prior"):
        MutualInformation([1.0, 0.0])
    with pytest.raises(InvalidInput, match="others"):
        WorstOf(KL, [0.5, 0.5], [])


def test_a_design_of_mutual_information_names_its_method():
    """Mutual information says which method found it, and takes the two that apply."""
    utility = MutualInformation([0.5, 0.3, 0.2])
    exact = optimal_channel(utility, LocalDP(1.0), method=PatternLP())
    assert exact.method == "pattern LP over 7 staircase patterns"
    assert exact.certified
    searched = optimal_channel(utility, LocalDP(1.0), method=LocalSearch(3))
    assert searched.method == "local search from 3 starts"
    assert searched.value == pytest.approx(exact.value, rel=1e-6)
    assert searched.upper_bound >= exact.value
    slack = optimal_channel(utility, ApproximateLDP(1.0, 0.01))
    assert slack.method == "extreme columns of (epsilon, delta)-LDP, 21 in a linear program"
    assert optimal_channel(MutualInformation(np.ones(9) / 9), ApproximateLDP(1.0, 0.01)).method.startswith("local")


@pytest.mark.parametrize(
    ("utility", "caps", "method", "message"),
    [
        (
            MutualInformation([0.5, 0.5]),
            LocalDP(1.0),
            Exchange(),
            "Exchange: it goes by the likelihood ratio of two hypotheses",
        ),
        (MutualInformation([0.5, 0.5]), ApproximateLDP(1.0, 0.1), PatternLP(), "optimal under LocalDP"),
        (MutualInformation(np.full(15, 1 / 15)), LocalDP(1.0), PatternLP(), "15 inputs have too many"),
    ],
)
def test_methods_that_do_not_apply(utility, caps, method, message):
    """A method that cannot take the utility says why."""
    with pytest.raises(InvalidInput, match=message):
        optimal_channel(utility, caps, method=method)
