"""Designs at an even prior or pilot: two sizes of sets that treat all pairs of answers alike."""

import math

import numpy as np
import pytest

from ldpopt.design import (
    AOptimal,
    COptimal,
    DOptimal,
    FisherInformation,
    LocalDP,
    MutualInformation,
    MVOptimal,
    SymmetricEnvelope,
    TotalVariation,
    optimal_channel,
)
from ldpopt.design.estimation.method import EstimationColumns
from ldpopt.design.load import load_design
from ldpopt.design.symmetric.method import SymmetricSets, envelope, flat_sets
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import subset_selection
from ldpopt.privacy import local_dp, total_variation


def even(k, criterion=None):
    return FisherInformation(np.full(k, 1 / k), *([] if criterion is None else [criterion]))


def closed_form(k, epsilon):
    """The error of subset selection of the best size (theory of subset selection [YB])."""
    e = math.exp(epsilon)
    return min((k - 1) ** 2 * (k + (e - 1) * s) ** 2 / ((e - 1) ** 2 * k * s * (k - s)) for s in range(1, k))


@pytest.mark.parametrize(
    ("k", "eta", "value"),
    [(25, 0.2, 91.341), (30, 0.2, 110.595), (30, 0.1, 188.365), (40, 0.2, 149.151), (60, 0.2, 226.343)],
)
def test_sums_of_variances_under_a_cap(k, eta, value):
    """The values of the theorem are reached and proved to ten digits, within both limits."""
    design = optimal_channel(even(k), [LocalDP(1.0), TotalVariation(eta)])
    assert design.value == pytest.approx(value, abs=6e-4)
    assert design.certified
    assert design.relative_gap < 1e-9
    assert local_dp(design.channel).value <= 1.0
    assert total_variation(design.channel).value <= eta


def test_information_of_thirty_answers_is_certified_under_a_cap():
    """0.103981 nats of thirty answers, certified, and verified without any solver."""
    design = optimal_channel(MutualInformation(np.full(30, 1 / 30)), [LocalDP(1.0), TotalVariation(0.2)])
    assert design.value == pytest.approx(0.103981, abs=6e-7)
    assert design.relative_gap < 1e-9
    assert design.verify()


@pytest.mark.parametrize("k", [9, 11, 13, 16, 21, 31, 64])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_without_a_cap_the_closed_form_is_reached(k, epsilon):
    """Value and bound are those of subset selection of the best size, to ten digits, with at most k^2/2 reports."""
    design = optimal_channel(even(k), LocalDP(epsilon))
    best = closed_form(k, epsilon)
    assert "subset selection" in design.method
    assert design.lower_bound <= best * (1 + 1e-14)
    assert design.value == pytest.approx(best, rel=1e-9)
    assert design.relative_gap < 1e-9
    assert design.channel.shape[1] <= k * (k // 2 + 1)
    assert design.verify()


def test_few_reports_are_as_good_as_all_subsets_of_their_size():
    """The channel of all 84 subsets of 3 of 9 categories leaves the same error as the few reports that were found."""
    every = min(even(9).value(subset_selection(9, 1.0, size)) for size in range(1, 9))
    design = optimal_channel(even(9), LocalDP(1.0))
    assert design.value == pytest.approx(every, rel=1e-10)
    assert optimal_channel(even(9), LocalDP(1.0), method=EstimationColumns()).lower_bound <= design.value


@pytest.mark.parametrize("criterion", [AOptimal([0.5] * 10), DOptimal(), MVOptimal()])
def test_other_criteria_have_the_same_channel(criterion):
    """Every criterion that treats all categories alike is met by the same sets, no worse than column generation."""
    constraints = [LocalDP(1.0), TotalVariation(0.15)]
    design = optimal_channel(even(10, criterion), constraints)
    assert isinstance(design.certificate, SymmetricEnvelope)
    assert design.certified
    other = optimal_channel(even(10, criterion), constraints, method=EstimationColumns())
    assert design.value <= other.value + 1e-6 * abs(other.value)
    assert other.lower_bound <= design.value + 1e-9 * abs(design.value)


def test_answers_that_never_occur_copy_another():
    """Zero probabilities count as no answers: the information is that of the others."""
    posed = MutualInformation([*np.full(12, 1 / 12), 0.0, 0.0])
    design = optimal_channel(posed, [LocalDP(1.0), TotalVariation(0.2)])
    alone = optimal_channel(MutualInformation(np.full(12, 1 / 12)), [LocalDP(1.0), TotalVariation(0.2)])
    assert design.value == pytest.approx(alone.value, rel=1e-12)
    assert design.verify()


def test_the_bound_survives_a_file(tmp_path):
    """The bound is the same when the design is read again, in balls too."""
    design = optimal_channel(even(10), [LocalDP(1.0), TotalVariation(0.2)])
    design.save(tmp_path / "design.json")
    read = load_design(tmp_path / "design.json")
    assert read.certificate.slope == design.certificate.slope
    assert read.certificate.bound == design.certificate.bound
    assert read.certificate.verify(exact=True)


@pytest.mark.full
def test_ten_thousand_answers():
    """Of very many answers the bound is the exact envelope, and the design is near it and says how near."""
    posed = MutualInformation(np.full(10_000, 1e-4))
    design = optimal_channel(posed, LocalDP(1.0))
    assert design.certified
    assert design.relative_gap < 1e-4
    assert "alike" in design.note
    assert design.verify()
    capped = optimal_channel(posed, [LocalDP(1.0), TotalVariation(0.2)])
    assert capped.upper_bound == pytest.approx(0.107118736, abs=1e-8)
    assert capped.value <= capped.upper_bound
    assert capped.relative_gap < 0.1
    assert total_variation(capped.channel).value <= 0.2


@pytest.mark.parametrize(("k", "size"), [(7, 3), (10, 4), (13, 6), (30, 11)])
def test_flat_sets_separate_all_pairs_alike(k, size):
    """In the mixture of all rotations, every two answers are apart equally often."""
    sets, weights = flat_sets(k, size)
    turned = (np.arange(k)[None, :] - np.arange(k)[:, None]) % k
    whole = sets[:, turned].reshape(-1, k).astype(float)
    together = (whole * np.repeat(weights / weights.sum() / k, k)[:, None]).T @ whole
    off = together[~np.eye(k, dtype=bool)]
    np.testing.assert_allclose(np.diag(together), size / k)
    np.testing.assert_allclose(off, size * (size - 1) / k / (k - 1), rtol=1e-7)


@pytest.mark.parametrize(
    ("utility", "constraints", "words"),
    [
        (even(8), [LocalDP(1.0)], "9 answers or more"),
        (even(1500), [LocalDP(1.0)], "no channel has an error below 551.*too large"),
        (FisherInformation([0.11] * 5 + [0.09] * 5), [LocalDP(1.0)], "not even"),
        (FisherInformation(np.full(10, 0.1), AOptimal(np.arange(1.0, 11))), [LocalDP(1.0)], "alike"),
        (FisherInformation(np.full(10, 0.1), COptimal(np.arange(10.0))), [LocalDP(1.0)], "alike"),
        (even(10), [TotalVariation(0.1)], "LocalDP"),
        (MutualInformation([0.2, 0.8]), [LocalDP(1.0)], "not even"),
    ],
)
def test_unsupported_problems_are_refused_with_a_reason(utility, constraints, words):
    """The reason names the limit that a problem exceeds."""
    with pytest.raises(InvalidInput, match=words):
        optimal_channel(utility, constraints, method=SymmetricSets())


@pytest.mark.parametrize("epsilon", [1e-3, 20.0, 300.0])
@pytest.mark.parametrize("share", [1e-9, 0.5, None])
def test_scales(epsilon, share):
    """At tiny and huge epsilon and caps the designs keep both limits, and their bounds."""
    constraints = [LocalDP(epsilon)] + ([] if share is None else [TotalVariation(share * math.tanh(epsilon / 2))])
    for utility in (MutualInformation(np.full(12, 1 / 12)), even(12)):
        design = optimal_channel(utility, constraints)
        assert design.relative_gap < 1e-6 + 1e-14 / (1.0 if share is None else share * math.tanh(epsilon / 2))
        assert design.verify()


def test_the_envelope_of_no_families_is_empty():
    """Without families there is no mixture, and no slope."""
    assert envelope([], 0.2) == ([], 0.0)
