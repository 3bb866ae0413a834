"""Waves pooled: the likelihood of both, and the least variance that two unbiased estimates allow."""

import numpy as np
import pytest
from scipy.stats import beta

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    CountTable,
    MaximumLikelihood,
    SampleDesign,
    SampledReports,
    Simultaneous,
    Wald,
    difference,
    estimate,
    estimate_contrasts,
    estimate_waves,
    pooled_channel,
    tables_by_group,
)

Q = Channel([[0.8, 0.2], [0.2, 0.8]])


def test_difference_has_the_sum_of_the_variances():
    """Independent groups: the difference is of the estimates, and its covariance the sum of theirs."""
    a, b = estimate({0: 400, 1: 600}, Q), estimate({0: 150, 1: 350}, [[0.9, 0.1], [0.3, 0.7]])
    made = difference(a, b)
    assert np.allclose(made.values, a.values - b.values)
    assert np.allclose(made.covariance, a.covariance + b.covariance)
    wald = made.intervals(Wald())
    assert np.allclose(wald.width, 2 * 1.959963984540054 * made.standard_errors)


def test_intervals_of_a_difference_are_newcombes_square_and_add():
    """For binary reports through one channel they are Newcombe's rule for the groups' own intervals, rescaled."""
    a, b = {0: 40, 1: 60}, {0: 27, 1: 53}
    (l1, u1), (l2, u2) = (
        (beta.ppf(0.025, x + 0.25, n - x + 0.75), beta.ppf(0.975, x + 0.75, n - x + 0.25))
        for x, n in ((40, 100), (27, 80))
    )
    p1, p2 = 0.4, 27 / 80
    low, high = p1 - p2 - np.hypot(p1 - l1, u2 - p2), p1 - p2 + np.hypot(u1 - p1, p2 - l2)
    made = difference(estimate(a, Q), estimate(b, Q)).intervals()
    assert np.allclose([made.lower[0], made.upper[0]], np.array([low, high]) / 0.6, atol=1e-10)


def test_groups_that_share_clusters_are_not_independent():
    """A cluster effect common to both groups cancels in their difference, and the variance knows it."""
    rng = np.random.default_rng(81)
    rounds, inside, spread = 150, 0, []
    for _ in range(rounds):
        rate = np.clip(rng.normal(0.5, 0.2, 40), 0, 1)
        clusters = np.repeat(np.arange(40), 20)
        groups = np.tile(["f", "m"], 400)
        answers = (rng.random(800) >= rate[clusters]).astype(int)
        made = tables_by_group(Q.sample_indices(answers, rng), Q, groups, SampleDesign(clusters=clusters))
        d = difference(estimate(made["f"], Q), estimate(made["m"], Q))
        inside += bool(d.intervals(Wald()).contains(0.0)[0])
        spread.append(d.standard_errors[0] / np.sqrt(np.sum([e.covariance[0, 0] for e in (d.first, d.second)])))
    # Three and a half standard errors of 0.95 over 150 surveys.
    assert abs(inside / rounds - 0.95) < 0.063
    assert np.mean(spread) < 0.95


def test_tables_by_group_add_up_and_keep_every_cluster():
    rng = np.random.default_rng(82)
    y, g = rng.integers(0, 2, 60), rng.integers(0, 3, 60)
    c = np.repeat(np.arange(12), 5)
    made = tables_by_group(y, Q, g, SampleDesign(rng.uniform(1, 2, 60), clusters=c))
    assert np.array_equal(sum(t.totals for t in made.values()), CountTable.from_reports(y, Q).totals)
    assert all(t.design.units.tolist() == [12] for t in made.values())


def test_simultaneous_differences_and_text():
    a, b = (estimate(c, np.eye(3) * 0.7 + 0.1) for c in ([40, 70, 90], [55, 75, 70]))
    made = difference(a, b)
    assert np.all(made.intervals(Simultaneous()).width > made.intervals().width)
    assert "difference" in repr(made)
    assert np.all((made.p_values >= 0) & (made.p_values <= 1))
    same = difference(a, a)
    assert np.allclose(same.values, 0)
    assert np.allclose(same.p_values, 1)


def test_maximum_likelihood_groups():
    a, b = (estimate(c, Q, MaximumLikelihood()) for c in ({0: 100, 1: 900}, {0: 400, 1: 600}))
    made = difference(a, b)
    assert np.allclose(made.values, a.values - b.values)


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="same categories"):
        difference(estimate({0: 4, 1: 6}, Q), estimate([4, 7, 9], np.eye(3)))
    with pytest.raises(InvalidInput, match="groups"):
        tables_by_group([0, 1], Q, ["a"])
    with pytest.raises(InvalidInput, match="a respondent of the design"):
        tables_by_group([0, 1], Q, ["a", "b"], SampleDesign(weights=[1.0]))
    with pytest.raises(InvalidInput, match="at least one"):
        tables_by_group([], Q, [])


Q1 = Channel([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
Q2 = Channel([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])


def test_pooled_estimates_are_weighted_by_their_information():
    """Near the truth the pooled estimate is the inverse-covariance mean of the two waves' own, with its covariance."""
    truth = np.array([0.5, 0.3, 0.2])
    c1, c2 = (np.round(truth @ q.matrix * n).astype(int) for q, n in ((Q1, 4000), (Q2, 9000)))
    made = estimate_waves([(c1, Q1), (c2, Q2)])
    parts = [estimate(c, q) for c, q in ((c1, Q1), (c2, Q2))]
    inverse = [np.linalg.inv(part.covariance[:2, :2]) for part in parts]
    covariance = np.linalg.inv(sum(inverse))
    mean = covariance @ sum(i @ part.values[:2] for i, part in zip(inverse, parts, strict=True))
    assert np.allclose(made.values[:2], mean, atol=1e-4)
    assert np.allclose(made.covariance[:2, :2], covariance, rtol=2e-2)


def test_one_wave_is_itself():
    counts = [300, 400, 300]
    one, same = estimate(counts, Q1), estimate_waves([(counts, Q1)])
    assert np.allclose(one.values, same.values)
    assert np.allclose(one.covariance, same.covariance)


def test_maximum_likelihood_of_waves_is_that_of_all_reports():
    """No other distribution gives the reports of both waves a larger likelihood."""
    c1, c2 = np.array([210, 320, 170]), np.array([500, 420, 380])
    p = estimate_waves([(c1, Q1), (c2, Q2)], MaximumLikelihood()).values

    def value(p):
        return c1 @ np.log(p @ Q1.matrix) + c2 @ np.log(p @ Q2.matrix)

    rng = np.random.default_rng(1)
    others = rng.dirichlet([1, 1, 1], 2000)
    near = p + rng.normal(0, 1e-3, (2000, 3))
    near = np.abs(near) / np.abs(near).sum(axis=1, keepdims=True)
    assert all(value(other) <= value(p) + 1e-9 for other in (*others, *near))


def test_two_waves_may_identify_proportions_together():
    """Two binary questions about three answers, each blind to one difference, identify all three shares."""
    a, b = Channel([[0.8, 0.2], [0.8, 0.2], [0.2, 0.8]]), Channel([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8]])
    truth = np.array([0.5, 0.2, 0.3])
    made = estimate_waves([(np.array([620, 380]), a), (np.array([500, 500]), b)])
    assert np.allclose(made.values, truth, atol=1e-9)
    assert estimate_contrasts(np.array([620, 380]), a, [0, 0, 1]).values[0] == pytest.approx(0.3)


def test_wrong_waves_are_refused():
    with pytest.raises(InvalidInput, match="same answers"):
        pooled_channel([Q1, np.eye(2)], [1, 1])
    with pytest.raises(InvalidInput, match="size"):
        pooled_channel([Q1, Q2], [1])
    with pytest.raises(InvalidInput, match="design"):
        estimate_waves([(SampledReports.of([0, 1, 2], Q1, SampleDesign(size=3)), Q1)])
    with pytest.raises(InvalidInput, match="waves"):
        estimate_waves([])
