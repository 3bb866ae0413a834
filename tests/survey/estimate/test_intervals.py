import csv
import importlib.util
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, binom, multivariate_normal, multivariate_t, norm

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Binomial,
    Bonferroni,
    CountTable,
    GeneralizedLeastSquares,
    SampleDesign,
    SampledReports,
    Simultaneous,
    Wald,
    estimate,
)
from ldpopt_survey.estimate.intervals import correlation, max_normal_quantile, moments, two_sided
from ldpopt_survey.sample.design import SamplingVariance


def test_moments_are_those_of_the_loadings():
    """Centre and variance are those of the loadings; the report of two kinds has their mean, variance, third moment."""
    rng = np.random.default_rng(51)
    f, loadings = rng.dirichlet(np.ones(5)), rng.normal(size=(2, 5))
    m = moments(f, loadings, None, 100)
    for row, value in enumerate(loadings):
        mean = f @ value
        assert np.isclose(m.centre[row], mean)
        assert np.isclose(m.variance[row], f @ (value - mean) ** 2)
        share = (mean - m.low[row]) / m.span[row]
        two, law = m.low[row] + m.span[row] * np.array([0.0, 1.0]), np.array([1 - share, share])
        assert 0 < share < 1
        for power in (2, 3):
            assert np.isclose(law @ (two - mean) ** power, f @ (value - mean) ** power)
    together = np.cov(loadings, aweights=f, ddof=0)
    assert np.allclose(m.correlation[0, 1], together[0, 1] / np.sqrt(together[0, 0] * together[1, 1]))


@pytest.mark.parametrize("n", [20, 50])
def test_reports_that_were_not_seen_are_reckoned_with(n):
    """Where next to all give one of many reports, the lacking ones have loadings of many sizes."""
    raw = np.exp(-2.0 * np.abs(np.subtract.outer(np.arange(4), np.arange(4))))
    q, p = Channel(raw / raw.sum(axis=1, keepdims=True)), np.array([0.97, 0.01, 0.01, 0.01])
    rows = np.random.default_rng(53).multinomial(n, q.push(p), size=800)
    found = [estimate(CountTable.from_counts(row, q.outputs), q) for row in rows]
    hits = np.mean([one.intervals().contains(p) for one in found], axis=0)
    assert hits.min() > 0.935 - 0.02
    assert np.mean([one.intervals(Wald()).contains(p) for one in found], axis=0).min() < 0.6


def test_a_covariance_sets_the_effective_size():
    f = np.array([0.5, 0.5])
    m = moments(f, np.array([[1.0, 0.0]]), SamplingVariance(np.array([[0.005]]), 20), 100)
    assert np.isclose(m.size[0], 50)
    assert m.redraw is None


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e100])
@pytest.mark.parametrize(
    ("degrees", "unit_fraction", "critical"),
    [
        (10, 1.0, two_sided(0.95, 10)),
        (10, 0.9, two_sided(0.95, 10) * 0.9**0.5),  # the units' variance with its quantile is the larger one
        (10, 0.5, two_sided(0.95)),
        (1, 0.1, two_sided(0.95, 1) * 0.1**0.5),
        (1, 0.0, two_sided(0.95)),
        (10, 1.44, two_sided(0.95, 10) * 1.2),
        (np.inf, 1.0, two_sided(0.95)),
    ],
)
def test_noise_that_is_known_needs_no_quantile_of_student(degrees, unit_fraction, critical, scale):
    """Of the intervals of the units' variance and of the channel's noise the longer one counts, at every scale."""
    variance = 0.005 * scale**2
    sampling = SamplingVariance(np.array([[variance]]), degrees, np.array([variance * unit_fraction]))
    m = moments(np.array([0.5, 0.5]), np.array([[scale, 0.0]]), sampling, 100)
    lower, upper = Wald().limits(m)
    assert np.isclose((upper - lower)[0] / 2, critical * variance**0.5, rtol=1e-6, atol=0)
    inner, outer = Binomial().limits(m)
    assert np.isclose((outer - inner)[0], (upper - lower)[0], rtol=0.12, atol=0) or degrees == 1
    assert inner[0] < m.centre[0] < outer[0]


@pytest.mark.parametrize("units", [2, 5, 40])
def test_units_that_are_alike_have_the_interval_of_the_noise(units):
    """The reports of each unit are the same: units show no variance, and its quantile does not multiply the noise."""
    q = randomized_response(2, 1.0)
    reports = np.tile([0, 0, 1, 1, 1], 8 * units)
    made = estimate(SampledReports(reports, q, SampleDesign(clusters=np.repeat(np.arange(units), 40))), q)
    assert made.degrees == units - 1
    assert np.allclose(made.intervals(Wald()).width / 2, two_sided(0.95) * made.standard_errors)
    simple = estimate(CountTable.from_counts(np.bincount(reports), q.outputs), q)
    assert (made.intervals().width <= 1.001 * simple.intervals().width).all()
    both = made.intervals(Bonferroni()).width / made.intervals().width
    assert np.allclose(both, two_sided(0.975) / two_sided(0.95), rtol=0.02)


def test_a_unit_with_most_of_the_weight_has_its_own_leverage():
    """A unit with a fraction h of the weight has its squared total divided by 1 - h; equal units change nothing."""
    q, rng = randomized_response(2, 3.0), np.random.default_rng(4)
    size = np.array([120, *[10] * 12])
    unit = np.repeat(np.arange(13), size)
    reports = (rng.random(240) < rng.uniform(0.1, 0.9, 13)[unit]).astype(int)
    made = estimate(SampledReports(reports, q, SampleDesign(clusters=unit)), q)
    influence = (made.loadings[1] - made.values[1])[reports] / 240
    totals = np.bincount(unit, influence) * np.sqrt(np.where(size > 20, (1 - 1 / 13) / (1 - size / 240), 1.0))
    expected = two_sided(0.95, made.degrees) * np.sqrt(((totals - totals.mean()) ** 2).sum() * 13 / 12)
    assert np.isclose(made.intervals(Wald()).width[1] / 2, expected)
    assert expected > 1.2 * two_sided(0.95, made.degrees) * made.standard_errors[1]
    alike = estimate(SampledReports(reports, q, SampleDesign(clusters=np.arange(240) // 20)), q)
    assert np.allclose(alike.intervals(Wald()).width / 2, two_sided(0.95, alike.degrees) * alike.standard_errors)


def test_the_law_of_a_designed_sample_is_moved_no_further_than_its_reports_need():
    """Rare answers estimated below zero do not raise the variance while all reports have positive probabilities."""
    q = randomized_response(4, 1.0)
    counts = np.round(1000 * np.array([0.95, 0.05, 0.0, 0.0]) @ q.matrix).astype(int) + np.array([9, 0, -4, -5])
    reports = np.repeat(np.arange(4), counts)
    design = SampleDesign(weights=np.ones(len(reports)))
    made = estimate(SampledReports(reports, q, design), q)
    assert made.values.min() < 0
    assert np.allclose(made.positive_distribution, made.table.frequencies)
    assert not np.allclose(made.projected_distribution, made.table.frequencies, rtol=1e-3)
    few = estimate(SampledReports(np.zeros(20, dtype=int), q, SampleDesign(size=20)), q)
    assert few.positive_distribution.min() >= 0.99 / 4 / 21
    assert np.isclose(few.positive_distribution.sum(), 1)


def test_correlation_of_a_constant_is_zero():
    assert correlation(np.array([[0.0, 0.0], [0.0, 4.0]])).tolist() == [[0, 0], [0, 1]]


def test_redrawn_surveys_have_the_same_distribution():
    f = np.array([0.2, 0.3, 0.5])
    m = moments(f, np.eye(3), None, 200)
    drawn = m.redraw(4000)
    assert drawn.centre.shape == (4000, 3)
    assert np.allclose(drawn.centre.mean(axis=0), f, atol=0.003)


def randomized_response(k, epsilon):
    e = np.exp(epsilon)
    return Channel((np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1))


def flat(k):
    return np.full(k, 1 / k)


def skewed(k):
    p = 1 / np.arange(1, k + 1) ** 2.0
    return p / p.sum()


def of_a_count(x, n, level=0.95):
    """Three quarters of the way from Jeffreys' interval, Beta(x + 1/2, n - x + 1/2), to Clopper and Pearson's."""
    tail = (1 - level) / 2
    low = beta.ppf(tail, x + 0.25, n - x + 0.75) if x else 0.0
    return np.array([low, beta.ppf(1 - tail, x + 0.75, n - x + 0.25) if x < n else 1.0])


@pytest.mark.parametrize("yes", [0, 1, 30, 99, 100])
def test_interval_of_a_binary_report_is_that_of_its_count(yes):
    """For a binary report the interval is that of the count, carried through the channel."""
    q = Channel([[0.8, 0.2], [0.3, 0.7]])
    made = estimate({0: yes, 1: 100 - yes}, q).intervals(Binomial(0.9))
    low, high = of_a_count(yes, 100, 0.9)
    assert np.allclose([made.lower[0], made.upper[0]], (np.array([low, high]) - 0.3) / 0.5, atol=1e-9)
    assert np.allclose([made.lower[1], made.upper[1]], 1 - (np.array([high, low]) - 0.3) / 0.5, atol=1e-9)


def test_interval_of_a_category_under_randomized_response_is_that_of_its_count():
    """Under k-ary randomized response a category's report is binary, and its interval that of their number."""
    q = randomized_response(5, 1.0)
    counts = np.array([210, 190, 250, 150, 200])
    made = estimate(counts, q).intervals()
    high, low = q.matrix[0, 0], q.matrix[0, 1]
    for x, count in enumerate(counts):
        assert np.allclose([made.lower[x], made.upper[x]], (of_a_count(count, 1000) - low) / (high - low), atol=1e-9)


@pytest.mark.parametrize("n", [20, 30, 50, 100, 300])
def test_a_count_of_few_reports_is_covered_at_every_chance(n):
    """From 20 reports on, chances of 0.2 to 99.8 % are covered in 92.5 % of all cases at least, and 95 % on average.

    Wilson's interval, whose tails are normal, covers chances near 1 / n in 84 %.
    """
    x, chances = np.arange(n + 1), np.linspace(0.002, 0.998, 400)
    lower, upper = Binomial().limits(moments(np.stack([x, n - x], axis=1) / n, np.array([[1.0, 0.0]]), None, n))
    inside = (lower <= chances) & (chances <= upper)
    covered = (binom.pmf(x[:, None], n, chances) * inside).sum(axis=0)
    assert covered.min() > 0.925
    assert np.mean(covered < 0.935) < 0.05
    assert 0.95 < covered.mean() < 0.97


def test_wald_interval_is_the_estimate_and_its_error():
    made = estimate([300, 700], [[0.8, 0.2], [0.2, 0.8]])
    shown = made.intervals(Wald())
    assert np.allclose(shown.upper, made.values + 1.959963984540054 * made.standard_errors)
    assert np.allclose(shown.lower + shown.upper, 2 * made.values)


@pytest.mark.parametrize("k", [2, 4, 7, 24])
@pytest.mark.parametrize("shape", [flat, skewed])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_intervals_have_their_exact_coverage(k, shape, epsilon):
    """Under randomized response with n = 1000 every 95 % interval covers between 94 % and 96.5 %, exactly."""
    n, q, p = 1000, randomized_response(k, epsilon), shape(k)
    high, low = q.matrix[0, 0], q.matrix[0, 1]
    counts = np.arange(n + 1)
    binary = np.stack([counts, n - counts], axis=1) / n
    # A category's estimate depends on the reports through its own count alone.
    loadings = np.array([[1 - low, -low]]) / (high - low)
    lower, upper = Binomial().limits(moments(binary, loadings, None, n))
    for share in p:
        law = binom.pmf(counts, n, low + share * (high - low))
        covered = law[(lower[:, 0] <= share) & (share <= upper[:, 0])].sum()
        assert 0.94 <= covered <= 0.965


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("shape", "rounds"), [(flat, 500), (skewed, 2000)])
def test_intervals_cover_when_the_left_inverse_is_estimated(shape, rounds):
    """With more outputs than inputs every 95 % interval covers as often as it says, over simulated surveys."""
    rng = np.random.default_rng(31)
    half = np.array([[1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 1, 0], [0, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 1]])
    raw = np.where(half == 1, np.e, 1.0) * np.array([3, 1, 1, 1, 1, 3])
    q = Channel(raw / raw.sum(axis=1, keepdims=True))
    p = shape(4)
    counts = rng.multinomial(1000, q.push(p), size=rounds)
    hits = np.mean([estimate(row, q).intervals().contains(p) for row in counts], axis=0)
    assert np.abs(hits - 0.95).max() < 3.58 * np.sqrt(0.05 * 0.95 / rounds)


@pytest.mark.full
def test_wald_undercovers_where_the_default_does_not():
    """On rare categories Wald intervals cover less than 94 %, which is why binomial intervals are the default."""
    q, p, n = randomized_response(24, 2.0), skewed(24), 1000
    loadings = GeneralizedLeastSquares().fit(q.push(p), q)[1]
    f = np.random.default_rng(32).multinomial(n, q.push(p), size=8_000) / n
    m = moments(f, loadings, None, n)
    cover = {}
    for method in (Wald(), Binomial()):
        lower, upper = method.limits(m)
        cover[method.name] = ((lower <= p) & (p <= upper)).mean(axis=0)
    assert cover["Wald"].min() < 0.937
    assert cover["binomial"].min() > 0.94
    assert cover["binomial"].max() < 0.965


def test_interval_inverts_its_pivot():
    """The ends of a binomial interval are where its standardised error equals the critical value."""
    rng = np.random.default_rng(33)
    loadings = rng.normal(size=(3, 6))
    m = moments(rng.dirichlet(np.ones(6)), loadings, None, 400)
    for method in (Binomial(0.8), Wald(0.8)):
        for end in method.limits(m):
            assert np.allclose(method.pivot(m, end), two_sided(0.8), rtol=1e-9)


def test_a_constant_has_an_interval_of_no_width():
    """The sum of all proportions is known, and its interval is the number 1."""
    made = estimate([40, 60, 11], randomized_response(3, 1.0)).contrast([1, 1, 1]).intervals()
    assert np.allclose([made.lower[0], made.upper[0]], 1.0, atol=1e-9)


def test_intervals_of_a_unanimous_sample_are_not_empty():
    """When every report is the same, the binomial interval still has a width."""
    made = estimate({0: 50, 1: 0, 2: 0}, randomized_response(3, 1.0)).intervals()
    assert np.all(made.width > 0)


def test_clip_and_show():
    made = estimate({0: 195, 1: 805}, [[0.8, 0.2], [0.2, 0.8]]).intervals()
    clipped = made.clip()
    assert clipped.lower.min() >= 0
    assert clipped.upper.max() <= 1
    assert np.all(clipped.contains([0.0, 1.0]))
    assert "clipped" in repr(clipped)
    assert made.to_dict()["level"] == 0.95
    assert "95 % binomial intervals" in repr(made)


def test_bad_levels_are_refused():
    for level in (0, 1, 1.5, float("nan"), "high"):
        with pytest.raises(InvalidInput, match="confidence level"):
            Binomial(level)
        with pytest.raises(InvalidInput, match="confidence level"):
            Wald(level)


def plain_response(k, epsilon):
    e = np.exp(epsilon)
    return Channel((np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1))


def test_quantile_of_independent_normals_is_sidaks():
    """For r independent estimates the critical value is Sidak's."""
    for r in (3, 10, 80):
        want = norm.isf((1 - 0.95 ** (1 / r)) / 2)
        assert abs(max_normal_quantile(np.eye(r), 0.95) - want) < 0.01


def test_quantile_agrees_with_the_multivariate_normal_distribution():
    """The box of the quantile has the stated probability under scipy's multivariate normal, within 0.001."""
    rng = np.random.default_rng(41)
    for _ in range(2):
        root = rng.normal(size=(4, 4))
        c = root @ root.T
        c /= np.sqrt(np.outer(np.diag(c), np.diag(c)))
        q = max_normal_quantile(c, 0.9)
        law = multivariate_normal(np.zeros(4), c, seed=1, abseps=1e-4, maxpts=200_000)
        assert abs(law.cdf(np.full(4, q), lower_limit=np.full(4, -q)) - 0.9) < 0.002


def test_quantile_with_few_degrees_agrees_with_the_multivariate_t_distribution():
    c = np.array([[1.0, 0.3], [0.3, 1.0]])
    q = max_normal_quantile(c, 0.95, 12)
    inside = multivariate_t(np.zeros(2), c, df=12, seed=1).cdf([q, q], lower_limit=[-q, -q])
    assert abs(inside - 0.95) < 0.002


def test_two_categories_need_no_correction():
    """Two proportions are one number, and their simultaneous intervals are the plain ones."""
    made = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    plain, at_once = made.intervals(Binomial()), made.intervals(Simultaneous(Binomial()))
    assert np.allclose(plain.lower, at_once.lower, atol=1e-12)


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("k", "power"), [(4, 2.0), (7, 0.0), (24, 2.0)])
def test_simultaneous_intervals_cover_together(k, power):
    """All k intervals cover at once in 94 to 96 % of 6,000 surveys of 1000, flat and skewed."""
    q = plain_response(k, 1.0)
    p = 1 / np.arange(1, k + 1) ** power
    p /= p.sum()
    rng = np.random.default_rng(42)
    frequencies = rng.multinomial(1000, q.push(p), size=6_000) / 1000
    loadings = GeneralizedLeastSquares().fit(q.push(p), q)[1]
    # One critical value for all surveys, at their average; the next test lets each survey have its own.
    lower, upper = Simultaneous().limits(moments(frequencies, loadings, None, 1000))
    assert 0.94 < ((lower <= p) & (p <= upper)).all(axis=1).mean() < 0.96


@pytest.mark.full
def test_each_survey_has_its_own_critical_value():
    """With a critical value from each survey alone, four intervals cover at once as often as they say."""
    rng = np.random.default_rng(44)
    q, p, rounds = plain_response(4, 1.0), np.array([0.7, 0.2, 0.08, 0.02]), 20
    counts = rng.multinomial(1000, q.push(p), size=rounds)
    hits = [
        bool(estimate(CountTable.from_counts(row, q.outputs), q).intervals(Simultaneous()).contains(p).all())
        for row in counts
    ]
    # Three and a half standard errors of 0.95 over 20 surveys.
    assert np.mean(hits) > 0.95 - 0.17


def test_bonferroni_is_the_base_at_a_smaller_error():
    made = estimate([400, 350, 250], plain_response(3, 1.0))
    assert np.allclose(made.intervals(Bonferroni(Wald(0.94))).width, made.intervals(Wald(0.98)).width)
    assert np.all(made.intervals(Simultaneous()).width <= made.intervals(Bonferroni()).width * 1.02)


def test_methods_without_simulation():
    """A complex sample takes the normal critical value, with its degrees of freedom."""
    rng = np.random.default_rng(43)
    q = plain_response(3, 1.0)
    design = SampleDesign(clusters=np.repeat(np.arange(30), 10))
    table = SampledReports.of(rng.integers(0, 3, 300), q, design)
    made = estimate(table, q)
    wide = made.intervals(Simultaneous(Wald())).width / made.intervals(Wald()).width
    want = max_normal_quantile(made.moments.correlation, 0.95, 29) / two_sided(0.95, 29)
    assert np.allclose(wide, want, rtol=1e-9)
    assert made.intervals(Simultaneous(Wald())).method == "simultaneous Wald"
    assert made.intervals(Bonferroni()).method == "Bonferroni binomial"


def test_bad_level_is_refused():
    with pytest.raises(InvalidInput, match="confidence level"):
        max_normal_quantile(np.eye(3), 1.0)


def subsets(k, epsilon, size):
    """Subset selection: a report is a set of `size` answers, more likely if the true one is in it."""
    chosen = list(combinations(range(k), size))
    raw = np.array([[np.exp(epsilon) if x in one else 1.0 for one in chosen] for x in range(k)])
    return Channel(raw / raw.sum(axis=1, keepdims=True))


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("channel", "p"),
    [
        (subsets(8, 4.0, 2), np.array([0.93] + [0.01] * 7)),
        (subsets(6, 3.0, 3), np.array([0.9, 0.06, 0.01, 0.01, 0.01, 0.01])),
        (subsets(6, 3.0, 2), np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.05])),
    ],
)
@pytest.mark.parametrize("n", [30])
def test_intervals_of_few_reports_over_many_outputs_cover(channel, p, n):
    """Of 30 reports over 28 outputs, binomial intervals cover each share in nearly 95 % of the surveys, not in half."""
    rng, rounds = np.random.default_rng(33), 500
    made = [
        estimate(CountTable.from_counts(row, channel.outputs), channel)
        for row in rng.multinomial(n, channel.push(p), size=rounds)
    ]
    hits = np.mean([one.intervals().contains(p) for one in made], axis=0)
    # Three and a half standard errors of 0.95 over 500 surveys, which is an asymptotic level.
    assert hits.min() > 0.95 - 0.034
    assert np.mean([one.values for one in made], axis=0) == pytest.approx(p, abs=0.02)


def test_intervals_of_few_reports_carry_a_caveat():
    """Ten reports of either kind are the fewest whose intervals need no word; large samples have them."""
    q = np.array([[0.9, 0.1], [0.1, 0.9]])
    assert estimate([9, 91], q).few_report_labels == (0, 1)
    assert estimate([10, 90], q).few_report_labels == ()
    wide = estimate([60, 60, 60, 3], np.full((4, 4), 0.1) + 0.6 * np.eye(4))
    assert wide.few_report_labels == (3,)
    assert estimate([60_000, 40_000], q).few_report_labels == ()
    assert estimate([9, 91], q, anytime=True).few_report_labels == ()


def test_settings_with_coverage_below_93_5_carry_a_caveat():
    """Where simulations (experiments/surveys/coverage) saw less than 93.5 %, the estimate says that reports are few."""
    table = Path(__file__).parents[3] / "experiments/surveys/coverage/coverage.csv"
    spec = importlib.util.spec_from_file_location("coverage_run", table.with_name("run.py"))
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    with table.open(newline="") as file:
        low = [row for row in csv.DictReader(file) if row["sample"] == "simple" and float(row["least"]) < 93.5]
    assert low
    rng = np.random.default_rng(3)
    for row in low:
        channel = run.CHANNELS[row["channel"]](float(row["epsilon"]))
        p = run.truths(channel.shape[0])[row["truth"]]
        told = [bool(estimate(CountTable(channel.outputs, counts), channel).few_report_labels)
                for counts in rng.multinomial(int(row["n"]), channel.push(p), size=40)]  # fmt: skip
        assert np.mean(told) > 0.9, row


@pytest.mark.parametrize("n", [5, 200])
def test_equal_reports_of_a_simple_sample_have_the_error_of_the_channel(n):
    """Reports that happen to be equal say nothing against the channel's noise, whatever the answers are."""
    channel = randomized_response(3, 1.0)
    estimated = estimate([0] * n, channel)
    noise = [estimated.loadings**2 @ row - (estimated.loadings @ row) ** 2 for row in channel.matrix]
    assert (estimated.standard_errors**2 * n >= np.min(noise, axis=0) * (1 - 1e-12)).all()
