"""Tests of `ldpopt.design.information.proof_capacity`: the bound that holds for every prior.

Mutual information from what every two rows may differ by, against channels, a plain scan and forgeries.
"""

import math
from itertools import islice

import mpmath
import networkx as nx
import numpy as np
import pytest

from ldpopt import Channel, Divergence
from ldpopt.design import (
    ApproximateLDP,
    ConcentratedLDP,
    InformationCapacity,
    LocalDP,
    MutualInformation,
    Outputs,
    PairwiseInformation,
    PatternLP,
    RenyiLDP,
    TotalVariation,
    optimal_channel,
)
from ldpopt.design.information.program import pairwise_weights
from ldpopt.design.information.proof_capacity import binary_information, information_capacity, nearest_half
from ldpopt.divergences import KL
from ldpopt.numbers.enclosures import FLOAT, arithmetic
from tests.design.kernel.forging import forged as every_forgery
from tests.design.kernel.forging import tampered


@pytest.mark.parametrize("epsilon", [1e-9, 1e-5, 9.99e-4, 1.001e-3, 0.1, 1.0, 3.0, 40.0, 500.0])
def test_the_capacity_encloses_its_closed_form(epsilon):
    """x - 1 - log x lies between the ends, in 50 digits, and is the largest h(a)/m over all a."""
    with mpmath.workdps(50):
        x = mpmath.mpf(epsilon) / (1 - mpmath.exp(-mpmath.mpf(epsilon)))
        truth = x - 1 - mpmath.log(x)
        for ground in (FLOAT, arithmetic(True)):
            found = information_capacity(ground.of(epsilon))
            assert found.lower <= truth <= found.upper
            assert found.upper <= truth * (1 + 1e-7)
    if epsilon < 50:
        a = (np.linspace(0, 1, 100_001)[1:-1]) ** 3
        mean = 1 + math.expm1(epsilon) * a
        worth = (math.exp(epsilon) * epsilon * a - mean * np.log(mean)) / mean
        assert worth.max() <= float(truth) * (1 + 1e-9) + 1e-15


def test_the_capacity_bounds_designs_and_is_nearly_reached():
    """No optimum is above it; subset selection of the best size on 200 answers comes within 1e-4 of it."""
    rng = np.random.default_rng(0)
    for epsilon in (0.1, 1.0, 4.0):
        for prior in rng.dirichlet(np.ones(6), 3):
            design = optimal_channel(MutualInformation(prior), LocalDP(epsilon), method=PatternLP())
            bound = InformationCapacity(design.utility, design.constraints, design.channel).bound
            assert design.value <= bound
    # Every report of subset selection names w of k answers: the information of one is h(w/k)/m.
    share = max((math.e * w / 200 / (1 + math.expm1(1) * w / 200) - math.log(1 + math.expm1(1) * w / 200))
                for w in range(1, 200))  # fmt: skip
    assert share <= information_capacity(FLOAT.of(1.0)).upper <= share * (1 + 1e-4)


def test_fifty_answers_are_bounded():
    """Where patterns are too many to list, a design of 30 answers still has a bound below 0.1234 at epsilon 1."""
    prior = np.random.default_rng(1).dirichlet(np.ones(30))
    channel = Channel(np.ones((30, 1)))
    utility = MutualInformation(prior)
    assert InformationCapacity(utility, (LocalDP(1.0),), channel).bound <= 0.1234


def test_the_capacity_proves_no_bound_for_other_problems():
    """Without pure LDP, and for other utilities, there is no bound."""
    channel = Channel(np.eye(3))
    utility = MutualInformation([0.5, 0.3, 0.2])
    for forged in (
        InformationCapacity(utility, (TotalVariation(0.2),), channel),
        InformationCapacity(utility, (), channel),
        InformationCapacity(utility, (LocalDP(1.0, graph=nx.Graph([(0, 1)])),), channel),
        InformationCapacity(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), (LocalDP(1.0),), channel),
    ):
        assert forged.bound == math.inf
        assert not forged.verify()


def test_the_capacity_along_a_graph_is_that_of_its_diameter():
    """A star of 19 answers has diameter 2: no channel keeps more than under 2 epsilon between all of them."""
    prior, star = np.random.default_rng(19).dirichlet(np.ones(19)), LocalDP(0.75, graph=nx.star_graph(18))
    channel = Channel(np.ones((19, 1)))
    for exact in (False, True):
        bound = InformationCapacity(MutualInformation(prior), (star,), channel).bound_in(arithmetic(exact)).value
        assert bound == pytest.approx(float(information_capacity(FLOAT.of(1.5)).upper), rel=1e-12)
    path = LocalDP(1.0, graph=nx.path_graph(5))
    for law in np.random.default_rng(2).dirichlet(np.ones(5), 4):
        design = optimal_channel(MutualInformation(law), path)
        assert design.value <= InformationCapacity(design.utility, design.constraints, design.channel).bound


@pytest.mark.parametrize("epsilon", [1e-8, 9.9e-3, 2.1e-2, 1.0, 5.0, 30.0, 600.0])
@pytest.mark.parametrize("off", [0.0, 1e-6, 0.2, 0.9])
def test_the_information_of_randomized_response_about_a_set_is_enclosed(epsilon, off):
    """The information of randomized response about a set of probability (1 + off)/2 lies between the ends."""
    with mpmath.workdps(50):
        q = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        a = (1 + mpmath.mpf(off)) / 2

        def spread(x):
            return sum(-y * mpmath.log(y) for y in (x, 1 - x) if y > 0)

        truth = spread(a * q + (1 - a) * (1 - q)) - spread(q)
        found = binary_information(FLOAT.of(epsilon), off, 0.0)
        assert found.lower <= truth <= found.upper
        assert found.upper <= truth * (1 + 1e-5) + 1e-300


@pytest.mark.full
def test_two_outputs_of_an_information_are_certified():
    """With two outputs the best channel is randomized response about a set: no vertex of the constraint set is better.

    Columns of channels with two outputs under epsilon-LDP are mixtures of constants and those of randomized response;
    hundreds of random ones keep less, and the set is the best of all, listed.
    """
    rng = np.random.default_rng(4)
    for k, epsilon in ((3, 0.5), (5, 1.0), (7, 3.0)):
        prior = rng.dirichlet(np.ones(k))
        utility = MutualInformation(prior)
        design = optimal_channel(utility, [LocalDP(epsilon), Outputs(2)])
        assert design.certified
        assert design.certificate.verify()
        high = 1 / (1 + math.exp(-epsilon))
        best = 0.0
        for code in range(2**k):
            first = np.where((code >> np.arange(k)) & 1, high, 1 - high)
            best = max(best, utility.value(np.stack([first, 1 - first], axis=1)))
        assert design.value == pytest.approx(best, rel=1e-9)
        for _ in range(100):
            low = rng.uniform()
            top = min(low * math.exp(epsilon), 1 - (1 - low) * math.exp(-epsilon))
            first = rng.uniform(low, top, k)
            assert utility.value(np.stack([first, 1 - first], axis=1)) <= design.upper_bound * (1 + 1e-12)


def test_the_set_nearest_to_one_half_is_the_best_of_all_sets():
    """Of ten answers the best of all sets; of more than twenty, none is listed, and the bound is that of one half."""
    prior = np.random.default_rng(8).dirichlet(np.ones(10))
    chosen, off, _ = nearest_half(prior)
    sums = [abs(2 * prior[(code >> np.arange(10)) & 1 == 1].sum() - 1) for code in range(1024)]
    assert off == pytest.approx(min(sums), abs=1e-12)
    assert abs(2 * prior[chosen].sum() - 1) == pytest.approx(off, abs=1e-12)
    assert nearest_half(np.full(30, 1 / 30))[1:] == (0.0, 0.0)


def test_the_capacity_alone_proves_an_easier_problem():
    """Its best numbers do not prove the optimum of a prior, but with two outputs, and it says so."""
    utility, channel = MutualInformation([0.5, 0.3, 0.2]), Channel([[0.6, 0.4], [0.4, 0.6], [0.4, 0.6]])
    assert not InformationCapacity(utility, (LocalDP(1.0),), channel).tight
    assert InformationCapacity(utility, (LocalDP(1.0), Outputs(2)), channel).tight


RNG = np.random.default_rng(3)
PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
CONSTRAINTS = {
    "renyi": (RenyiLDP(2.0, 0.5),),
    "kl": (RenyiLDP(1.0, 0.5),),
    "high order": (RenyiLDP(6.0, 1.0),),
    "zcdp": (ConcentratedLDP(0.1),),
    "approximate": (ApproximateLDP(1.0, 0.05), TotalVariation(0.3)),
    "both": (RenyiLDP(2.0, 0.3), LocalDP(1.0)),
    "total variation": (TotalVariation(0.1), RenyiLDP(3.0, 2.0)),
}


def certificates(prior, constraints):
    """Those that the prover makes, for a channel that says nothing."""
    channel = Channel(np.ones((len(prior), 1)))
    for paid in pairwise_weights(np.asarray(prior), constraints):
        yield PairwiseInformation(
            MutualInformation(prior), constraints, channel, paid.orders, paid.weights, paid.reaches, paid.above,
            paid.below, paid.slope,
        )  # fmt: skip


def least_bound(prior, constraints):
    """The best of them."""
    return min(one.bound for one in certificates(prior, constraints))


def scanned(one, caps, points=200_001):
    """The bound by a plain scan of s, whose maxima it finds up to the square of its step: never above the proof."""
    prior = one.utility.prior[one.utility.prior > 0]
    s = np.exp(np.linspace(-25, np.log(1 / prior.min()), points))
    paid = one.slope * (s - 1)
    for order, weight in zip(one.orders, one.weights, strict=True):
        paid = paid + weight * ((s - 1) * np.log(s) if order == 1 else s**order + s ** (1 - order) - 1 - s)
    for reach, above, below in zip(one.reaches, one.above, one.below, strict=True):
        paid = paid + above * np.maximum(s - np.exp(reach), 0) + below * np.maximum(1 - np.exp(reach) * s, 0)
    left = s * np.log(s) - s + 1 - paid
    each = [left[s <= 1 / p * (1 + 1e-12)].max() for p in prior]
    return (1 - prior @ prior) * caps + prior @ each


@pytest.mark.full(but=2)
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_bound_is_near_a_scan_and_both_arithmetics_agree(name):
    """Chords and tangents between knots lose little: the proof is above a plain scan of s, by less than 1e-5."""
    for one in certificates(PRIOR, CONSTRAINTS[name]):
        charged = float(one._charged(arithmetic(False)).upper)
        found = scanned(one, charged)
        assert found * (1 - 1e-9) <= one.bound <= found * (1 + 1e-5) + 1e-5
        assert one.bound_in(arithmetic(True)).value == pytest.approx(one.bound, rel=1e-9)


def random_channels(count, k=4, m=3):
    """Channels near to a common row, and far from it."""
    for number in range(count):
        rows = RNG.dirichlet(np.ones(m), k) * RNG.uniform(0, 1) ** 2
        rest = 1 - rows.sum(axis=1, keepdims=True)
        yield Channel(rows + rest * RNG.dirichlet(np.full(m, 0.3 + number % 3)))


@pytest.mark.full
def test_no_channel_exceeds_the_bound_of_its_own_measures():
    """For a channel's own Rényi divergence of orders 1, 2 and 5, its own delta at 1 and its own total variation."""
    for channel in random_channels(2):
        for prior in (PRIOR, np.array([0.97, 0.01, 0.01, 0.01]), RNG.dirichlet(np.ones(4))):
            value = MutualInformation(prior).value(channel)
            for order in (1.0, 2.0, 5.0):
                own = RenyiLDP(order, max(float(RenyiLDP(order, 1.0).measure(channel)), 1e-12))
                assert value <= least_bound(prior, (own,))
            delta = float(ApproximateLDP(1.0, 0.5).measure(channel))
            eta = float(TotalVariation(0.5).measure(channel))
            assert value <= least_bound(prior, (ApproximateLDP(1.0, delta), TotalVariation(eta)))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("order", [1.0, 2.0, 4.0])
def test_the_bound_is_proportional_to_a_small_cap(order):
    """As epsilon falls the bound is about epsilon (1 - sum P^2) / (2 order), the optimum of small differences."""
    apart = 1 - PRIOR @ PRIOR
    for epsilon in (1e-3, 1e-6, 1e-9):
        bound = least_bound(PRIOR, (RenyiLDP(order, epsilon),))
        assert bound >= epsilon * apart / (2 * order) * (1 - 1e-3)
        assert bound <= epsilon * apart / (2 * order) * (1.7 if order == 1 else 1.3)


def test_the_bound_is_finite_for_any_prior_and_order():
    """Answers that never occur, nearly never occur or are a thousand: a finite bound, the same in any order."""
    constraints = (RenyiLDP(2.0, 0.5),)
    one = least_bound([0.5, 0.3, 0.2], constraints)
    assert least_bound([0.0, 0.2, 0.5, 0.3], constraints) == pytest.approx(one, rel=1e-12)
    assert one <= least_bound([0.5, 0.3, 0.2 - 1e-9, 1e-9], constraints) <= one * 1.05
    assert 0.1 < least_bound(np.full(1000, 1e-3), constraints) < 0.17
    assert least_bound([1 - 1e-12, 1e-12], constraints) < 1e-11


@pytest.mark.full(but=1)
@pytest.mark.parametrize("constraint", [RenyiLDP(2.0, 0.5), ConcentratedLDP(0.2)])
def test_designs_of_renyi_caps_are_within_a_fifth_of_the_bound(constraint):
    """The gap is below a fifth, where contraction leaves a factor of seven."""
    design = optimal_channel(MutualInformation([0.5, 0.3, 0.2]), constraint)
    assert isinstance(design.certificate, PairwiseInformation)
    assert design.relative_gap < 0.2
    assert design.verify()


def test_forged_numbers_prove_no_bound_below_a_reached_value():
    """A bound that a forged number proves holds for channels that meet the constraints."""
    constraints = CONSTRAINTS["both"]
    design = optimal_channel(MutualInformation(PRIOR), constraints, certify=False)
    tried = proved = 0
    numbers = list(certificates(PRIOR, constraints))[-1]
    for other in islice(every_forgery(numbers, RNG, keep=("utility", "constraints", "channel")), 0, None, 5):
        tried += 1
        assert not other.bound < design.value
        proved += other.bound < np.inf
    assert 0 < proved < tried


def test_numbers_of_other_constraints_prove_nothing():
    """Moments and excesses that nothing caps: orders above a constraint's, reaches below, graphs."""
    import networkx as nx

    honest = next(certificates(PRIOR, (RenyiLDP(2.0, 0.5),)))
    for other in ((RenyiLDP(1.5, 0.5),), (TotalVariation(0.1),), (LocalDP(1.0, graph=nx.path_graph(4)),)):
        made = honest.rebind(honest.utility, other, honest.channel)
        assert made.bound == np.inf
        assert any("no constraint caps a moment" in failure for failure in made.verify().failures)
    reached = [one for one in certificates(PRIOR, (ApproximateLDP(1.0, 0.05),)) if one.above.any()]
    path = (LocalDP(1.0, graph=nx.path_graph(4)),)
    for one in reached:
        # An excess that nothing caps is at most 1: what is left is no more than the entropy needs, and holds.
        assert one.rebind(one.utility, path, one.channel).bound >= one.bound


def test_shapes_that_are_none():
    """Tampered arrays never raise anything but words."""
    honest = next(certificates(PRIOR, (RenyiLDP(2.0, 0.5),)))
    for bad in tampered(honest.weights, RNG):
        made = PairwiseInformation(
            honest.utility, honest.constraints, honest.channel, honest.orders, bad, honest.reaches, honest.above,
            honest.below, honest.slope,
        )  # fmt: skip
        assert made.bound >= 0.05
