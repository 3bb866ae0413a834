"""Confidence sequences: intervals that hold at all looks together."""

from __future__ import annotations

import runpy
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import SampleDesign, difference, estimate
from ldpopt_survey.estimate.counts import CountTable
from ldpopt_survey.estimate.groups import Source, estimate_booklets
from ldpopt_survey.estimate.intervals import Binomial
from ldpopt_survey.estimate.sampled import SampledReports

EXPERIMENTS = Path(__file__).parents[3] / "experiments" / "surveys"
WARNER = randomized_response(2, 1.0)


def wealth(reports, channel, t, sign):
    """The wealth after some reports, by the definition: one report after the other, one lambda after the other."""
    bets = estimate(CountTable.from_counts(np.ones(channel.shape[1], int), channel.outputs), channel, anytime=True).bets
    lambdas, weights = bets._mixture(float(bets.losses[0 if sign > 0 else 1, 1]))
    total = 0.0
    for one, weight in zip(lambdas, weights, strict=True):
        made = weight
        for y in reports:
            made *= 1 + one * sign * (bets.gain[1, y] - t * bets.stake[1, y])
        total += made
    return total


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_wealth_is_a_martingale_at_the_truth_and_never_negative(epsilon):
    """Its mean over all sequences of three reports is 1 at the true share, which Ville's inequality takes [WSR]."""
    channel = randomized_response(2, epsilon)
    for share, sign in product((0.0, 0.2, 1.0), (1, -1)):
        law = channel.push([1 - share, share])
        values = {y: wealth(y, channel, share, sign) for y in product(range(2), repeat=3)}
        assert min(values.values()) >= 0
        assert sum(np.prod(law[list(y)]) * value for y, value in values.items()) == pytest.approx(1, abs=1e-12)


def test_the_ends_are_where_the_wealth_reaches_its_limit():
    """At a lower end above 0 the gambler who bets upwards has 2 / alpha, by its definition; order is of no account."""
    reports = np.random.default_rng(1).choice(2, 80, p=[0.3, 0.7])
    found = estimate(CountTable.from_counts(np.bincount(reports), WARNER.outputs), WARNER, anytime=True)
    limits = found.intervals()
    assert limits.method == "confidence sequence"
    assert wealth(reports, WARNER, limits.lower[1], 1) == pytest.approx(40, rel=1e-9)
    assert limits.upper[1] == 1 or wealth(reports, WARNER, limits.upper[1], -1) == pytest.approx(40, rel=1e-9)
    assert np.allclose(limits.lower + limits.upper[::-1], 1)  # of two answers the shares sum to 1
    assert (found.intervals(Binomial(0.99)).width > limits.width).all()


def test_extremes_end_within_zero_and_one():
    """No privacy, much, all reports alike, one report, a million: finite ends within [0, 1], in order."""
    for channel in (np.eye(3), randomized_response(3, 1e-3), randomized_response(3, 30.0)):
        for counts in ([1, 0, 0], [50, 0, 0], [10**6, 10**6, 1]):
            limits = estimate(
                CountTable.from_counts(counts, (0, 1, 2)), Channel(channel, None, (0, 1, 2)), anytime=True
            )
            limits = limits.intervals()
            assert np.isfinite(limits.width).all()
            assert ((limits.lower >= 0) & (limits.upper <= 1) & (limits.width >= 0)).all()


def test_reports_that_fit_no_proportion_give_the_whole_range():
    """All 500 reports alike at epsilon 1 are ruled out for every share: the whole range, and no reason to stop."""
    limits = estimate(CountTable.from_counts([500, 0], WARNER.outputs), WARNER, anytime=True).intervals()
    assert (limits.lower.tolist(), limits.upper.tolist()) == ([0, 0], [1, 1])


def test_wide_channels_and_contrasts_have_theirs_and_ratios_are_refused():
    """More reports than answers: fixed loadings. A difference holds the truth; ratios and tests take no sequence."""
    q = Channel([[0.5, 0.3, 0.1, 0.1], [0.1, 0.1, 0.5, 0.3], [0.2, 0.3, 0.2, 0.3]])
    counts = np.round(6000 * q.push([0.5, 0.3, 0.2])).astype(int)
    found = estimate(CountTable.from_counts(counts, q.outputs), q, anytime=True)
    assert found.intervals().contains([0.5, 0.3, 0.2]).all()
    made = found.contrast([[1, -1, 0], [0, 1, 1], [1, 0, 0]]).intervals()
    assert made.contains([0.2, 0.5, 0.5]).all()
    assert made.upper[2] == pytest.approx(found.intervals().upper[0])
    for refused in (lambda: found.ratio(np.eye(3)[:1], np.ones(3), (0,)), lambda: difference(found, found).intervals()):
        with pytest.raises(InvalidInput, match="anytime"):
            refused()


def test_booklets_count_by_their_precision():
    """A booklet that hardly tells widens no sequence: with it the length is that without it, to a tenth."""
    rng = np.random.default_rng(2)
    at = (rng.random(4000) < 0.4).astype(int)
    half = np.arange(4000) < 2000
    good = Source("good", WARNER, np.where(half, at, -1), np.eye(2), np.full(2, 0.5))
    vague = replace(good, name="vague", channel=randomized_response(2, 0.05), positions=np.where(half, -1, at))
    alone = estimate_booklets([replace(good, positions=at[half])], (0, 1), anytime=True).intervals()
    both = estimate_booklets([good, vague], (0, 1), anytime=True).intervals()
    assert (both.width < 1.1 * alone.width).all()


def test_weights_count_and_other_designs_are_refused():
    """Equal weights change nothing; strata, known margins and finite populations have no sequence."""
    at = np.random.default_rng(3).choice(2, 500)
    plain = estimate(CountTable.from_counts(np.bincount(at), WARNER.outputs), WARNER, anytime=True).intervals()
    weighted = estimate(SampledReports(at, WARNER, SampleDesign(weights=np.full(500, 7.0))), WARNER, anytime=True)
    assert np.allclose(weighted.intervals().lower, plain.lower)
    for design in (SampleDesign(strata=at), SampleDesign(weights=np.ones(500), fpc=np.full(500, 900))):
        with pytest.raises(InvalidInput, match="anytime"):
            estimate(SampledReports(at, WARNER, design), WARNER, anytime=True)


@pytest.mark.skipif(not EXPERIMENTS.is_dir(), reason="the experiments are not beside the tests")
def test_they_hold_at_all_looks():
    """Short forms of the experiment: at least 90 % of few surveys hold at 100 looks, in every kind of survey."""
    run = runpy.run_path(str(EXPERIMENTS / "coverage" / "anytime.py"))
    rng = np.random.default_rng(4)
    for held, *_ in (run["counted"](*run["SETTINGS"]["yes/no, epsilon 1"], 12, rng), run["weighted"](3, rng)):
        assert held.mean() > 0.8
