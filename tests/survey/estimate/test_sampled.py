import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import estimate
from ldpopt_survey.estimate.counts import CountTable
from ldpopt_survey.estimate.sampled import SampledReports, sampling_variance
from ldpopt_survey.sample.design import SampleDesign

Q = Channel([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])


def by_hand(reports, weights, strata, clusters, loadings):
    """The textbook double loop over strata and primary units, respondent by respondent."""
    total = weights.sum()
    z = loadings.T[reports] * weights[:, None]
    ratio = z.sum(axis=0) / total
    influence = weights[:, None] * (loadings.T[reports] - ratio) / total
    variance = np.zeros((len(loadings), len(loadings)))
    for stratum in np.unique(strata):
        units = np.unique(clusters[strata == stratum])
        totals = np.array([influence[(strata == stratum) & (clusters == u)].sum(axis=0) for u in units])
        centred = totals - totals.mean(axis=0)
        variance += len(units) / (len(units) - 1) * centred.T @ centred
    return variance


def complex_sample(rng, n=300):
    strata, clusters = rng.integers(0, 3, n), rng.integers(0, 6, n)
    alike = (strata + clusters) % 3  # units differ, so that their variance is more than the channel's
    reports = np.where(rng.random(n) < 0.5, alike, rng.integers(0, 3, n))
    return reports, rng.uniform(0.5, 3, n), strata, clusters


def test_linearised_variance_equals_the_double_loop():
    """The variance of a design is the one computed respondent by respondent."""
    rng = np.random.default_rng(21)
    reports, weights, strata, clusters = complex_sample(rng)
    loadings = np.linalg.inv(Q.matrix).T
    for cluster in (clusters, np.arange(len(reports))):
        given = clusters if cluster is clusters else None
        table = SampledReports.of(reports, Q, SampleDesign(weights, strata, given))
        made = sampling_variance([(table, loadings)])
        want = by_hand(reports, weights, strata, cluster, loadings)
        assert np.allclose(made.covariance, want, rtol=1e-10, atol=1e-14)
        names, unit = np.unique(strata * 1000 + cluster, return_inverse=True)
        units, totals = len(names), np.bincount(unit, weights**2)
        equal = totals.sum() ** 2 / (totals**2).sum()  # of units with weights [BM]
        assert np.isclose(made.degrees, max(1.0, (units - 3) * equal / units))


def test_variance_of_a_simple_sample_is_multinomial():
    table = CountTable.from_counts([50, 30, 20], Q.outputs)
    f = table.frequencies
    made = sampling_variance([(table, np.eye(3))])
    assert np.allclose(made.covariance, (np.diag(f) - np.outer(f, f)) / 100, atol=1e-15)
    assert np.isinf(made.degrees)


def test_intervals_cover_in_a_clustered_sample():
    """With a cluster effect, linearised 95 % intervals cover as often as they say, and simple ones do not."""
    rng = np.random.default_rng(22)
    q = Channel([[0.8, 0.2], [0.2, 0.8]])
    hits, naive, rounds, size = 0, 0, 400, 15
    for _ in range(rounds):
        rate = np.clip(rng.normal(0.4, 0.15, 60), 0, 1)
        clusters = np.repeat(np.arange(60), size)
        answers = (rng.random(60 * size) >= rate[clusters]).astype(int)
        reports = q.sample_indices(answers, rng)
        truth = 0.4
        made = estimate(SampledReports.of(reports, q, SampleDesign(clusters=clusters)), q).intervals()
        hits += bool(made.contains(truth)[0])
        naive += bool(estimate(reports, q).intervals().contains(truth)[0])
    # Three standard errors of a proportion of 0.95 over 400 surveys are 0.033.
    assert 0.917 < hits / rounds < 0.983
    assert naive / rounds < 0.9


def test_strata_remove_the_variance_between_them():
    """Proportional strata that differ make the variance smaller than that of a simple sample."""
    reports = np.array([0] * 90 + [1] * 10 + [0] * 10 + [1] * 90)
    q = Channel([[0.9, 0.1], [0.1, 0.9]])
    stratified = estimate(SampledReports.of(reports, q, SampleDesign(strata=np.repeat([0, 1], 100))), q)
    assert stratified.standard_errors[0] < 0.7 * estimate(reports, q).standard_errors[0]
    assert stratified.degrees == 198


def test_a_stratum_with_one_unit_is_refused():
    table = SampledReports.of([0, 1, 2], Q, SampleDesign(strata=["s", "s", "t"]))
    with pytest.raises(InvalidInput, match="'t'"):
        sampling_variance([(table, np.eye(3))])
