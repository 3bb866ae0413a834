"""Designs for estimation whose reports favour few of many categories: all sets that could pay are met."""

import dataclasses
import math
from itertools import combinations

import numpy as np
import pytest

from ldpopt.design import AOptimal, FisherInformation, LocalDP, optimal_channel
from ldpopt.design.estimation.branches import Branches
from ldpopt.design.estimation.method_variances import SampledColumns, SmallSets
from ldpopt.design.estimation.prices import Prices
from ldpopt.design.load import load_design
from ldpopt.errors import InvalidInput


def skewed(k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k))


@pytest.fixture(scope="module")
def design():
    return optimal_channel(FisherInformation(skewed(28)), LocalDP(3.0))


def test_small_sets_are_chosen_and_certified_with_a_small_gap(design):
    """At epsilon = 3 the gap is below 1e-4, where the semidefinite form alone leaves a percent."""
    coarse = optimal_channel(FisherInformation(skewed(28)), LocalDP(3.0), method=SampledColumns())
    assert design.certified
    assert "small sets" in design.method
    assert isinstance(design.certificate.relaxed, Branches)
    assert "branch and bound" in design.certificate.argument
    assert design.relative_gap < 1e-4 < coarse.relative_gap
    assert coarse.lower_bound < design.lower_bound <= design.value <= coarse.value
    assert design.verify()
    assert float(np.log(design.channel.matrix.max(axis=0) / design.channel.matrix.min(axis=0)).max()) <= 3.0


def test_no_small_set_pays_at_its_multipliers(design):
    """All sets of up to four categories, priced one by one in floats, pay at the multipliers of the certificate."""
    proof, p = design.certificate, skewed(28)
    centred = proof.kernel - np.outer(proof.kernel.sum(axis=1), p)
    prices = Prices(centred.T @ centred, p, proof.rows, proof.pairs, math.exp(3.0))
    for size in range(5):
        sets = np.array([np.isin(np.arange(28), chosen) for chosen in combinations(range(28), size)])
        assert prices.gains(np.where(sets, math.exp(3.0), 1.0)).max() <= 1e-9 * proof.rows.sum()


def test_multipliers_that_do_not_pay_prove_less(design):
    """Lower multipliers, other kernels and other branches never prove a bound above what a channel reaches."""
    proof, rng = design.certificate, np.random.default_rng(0)
    for share in (0.99, 0.9999):
        assert dataclasses.replace(proof, rows=proof.rows * share).bound <= design.value
    turned = proof.kernel + 0.01 * np.abs(proof.kernel).max() * rng.normal(size=proof.kernel.shape)
    assert dataclasses.replace(proof, kernel=turned).bound <= design.value
    for squares in (proof.relaxed.squares * 0.9, proof.relaxed.squares[::-1].copy()):
        assert dataclasses.replace(proof, relaxed=Branches(squares)).bound <= design.value


def test_the_design_is_written_and_read_with_its_branches(design, tmp_path):
    """A design file keeps the numbers of the search, and what is read proves the same bound."""
    design.save(tmp_path / "design.json")
    read = load_design(tmp_path / "design.json")
    assert isinstance(read.certificate.relaxed, Branches)
    assert read.certificate.bound == design.certificate.bound


def test_weights_of_the_variances_are_certified_as_well():
    """A sum of weighted variances has its own kernel, proved in the same way."""
    design = optimal_channel(FisherInformation(skewed(26, 4), AOptimal(1.0 + np.arange(26))), LocalDP(3.5))
    assert design.certified
    assert isinstance(design.certificate.relaxed, Branches)
    assert design.verify()


@pytest.mark.parametrize(
    ("k", "epsilon", "words"),
    [
        (48, 1.0, "too many sets"),
        (64, 2.0, "too many sets"),
        (65, 3.5, "at most 64"),
        (40, 4.5, "above 4"),
        (20, 3.0, "priced"),
    ],
)
def test_unsupported_problems_are_refused_with_a_reason(k, epsilon, words):
    """The reason names the limit that a problem exceeds."""
    with pytest.raises(InvalidInput, match=words):
        optimal_channel(FisherInformation(skewed(k)), LocalDP(epsilon), method=SmallSets())


def test_a_search_that_meets_too_many_sets_leaves_it_to_sets_drawn_at_random():
    """Where most shares are tiny, sets of many of them count: what is returned says how it was found."""
    pilot = 0.8 ** np.arange(26)
    design = optimal_channel(FisherInformation(pilot / pilot.sum()), LocalDP(3.9), method=SmallSets(sets=2700))
    assert "drawn near the best" in design.method
    assert design.verify()


@pytest.mark.parametrize("sets", [0, -1.0, math.nan, "many"])
def test_the_number_of_sets_is_checked(sets):
    """Only a number above zero says how many sets a search may meet."""
    with pytest.raises(InvalidInput, match="sets"):
        SmallSets(sets=sets)
