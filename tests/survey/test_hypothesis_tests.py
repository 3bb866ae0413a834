""""""

import math

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency, chisquare, ncx2

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    CountTable,
    SampleDesign,
    SampledReports,
    asymptotic_covariance,
    goodness_of_fit,
    goodness_of_fit_power,
    respondents_for_power,
    tables_by_group,
    two_sample,
    two_sample_power,
    two_way_from_counts,
)
from ldpopt_survey.hypothesis_tests import compositions, log_multinomial

SQUARE = Channel([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
WIDE = Channel([[0.5, 0.2, 0.2, 0.1], [0.1, 0.5, 0.1, 0.3]])
P0, P1 = np.array([0.5, 0.3, 0.2]), np.array([0.35, 0.35, 0.3])


def table(counts, channel):
    return CountTable.from_counts(counts, channel.outputs)


def test_goodness_of_fit_is_pearsons_for_a_square_channel():
    """Through a square channel the score statistic is Pearson's on the reports."""
    counts = np.array([410, 320, 270])
    made = goodness_of_fit(table(counts, SQUARE), SQUARE, P0)
    want = chisquare(counts, 1000 * SQUARE.push(P0))
    assert np.isclose(made.statistic, want.statistic)
    assert np.isclose(made.p_value, want.pvalue)
    assert made.degrees == 2


@pytest.mark.parametrize("channel", [SQUARE, WIDE, Channel([[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]])])
def test_goodness_of_fit_has_its_level(channel):
    """Under the null the test rejects in 5 % of surveys, also when some proportions are not identifiable."""
    rng = np.random.default_rng(91)
    p = np.full(channel.shape[0], 1 / channel.shape[0])
    counts = rng.multinomial(500, channel.push(p), size=1000)
    rejected = np.mean([goodness_of_fit(table(c, channel), channel, p).p_value < 0.05 for c in counts])
    # Three and a half standard errors of 0.05 over 1,000 surveys.
    assert abs(rejected - 0.05) < 0.025
    assert goodness_of_fit(table(counts[0], channel), channel, p).degrees == channel.rank - 1


def test_power_is_that_of_simulated_surveys():
    """The stated power is the share of simulated surveys in which the test rejects."""
    rng = np.random.default_rng(92)
    for channel, p0, p1, n in ((SQUARE, P0, P1, 2000), (WIDE, [0.5, 0.5], [0.3, 0.7], 60), (SQUARE, P0, P1, 150)):
        made = goodness_of_fit_power(channel, p0, p1, n)
        counts = rng.multinomial(n, channel.push(p1), size=1000)
        seen = np.mean([goodness_of_fit(table(c, channel), channel, p0).p_value < 0.05 for c in counts])
        # Three and a half standard errors, and 0.01 for the approximation where it is one.
        assert abs(seen - float(made)) < 0.055 + (0 if made.exact else 0.01)
    assert goodness_of_fit_power(WIDE, [0.5, 0.5], [0.3, 0.7], 60).exact
    assert not goodness_of_fit_power(SQUARE, P0, P1, 2000).exact


def test_respondents_reach_the_power_and_no_fewer_do():
    """n respondents have the power asked for by noncentral chi-squared, and n - 1 do not."""
    for channel, p0, p1 in ((SQUARE, P0, P1), (WIDE, [0.5, 0.5], [0.45, 0.55])):
        n = respondents_for_power(channel, p0, p1, 0.9, 0.01)
        degrees = channel.rank - 1
        d = (np.asarray(p1) - p0)[:-1]
        each = d @ np.linalg.solve(asymptotic_covariance(channel, p0)[:-1, :-1], d)
        critical = chi2.isf(0.01, degrees)
        assert ncx2.sf(critical, degrees, n * each) >= 0.9 > ncx2.sf(critical, degrees, (n - 1) * each)


def test_complex_samples_use_the_linearised_variance():
    """With a cluster effect the test keeps its level, where the simple one does not."""
    rng = np.random.default_rng(93)
    q = Channel([[0.8, 0.2], [0.2, 0.8]])
    reject, naive, rounds = 0, 0, 400
    clusters = np.repeat(np.arange(40), 20)
    for _ in range(rounds):
        rate = np.clip(rng.normal(0.5, 0.2, 40), 0, 1)
        reports = q.sample_indices((rng.random(800) >= rate[clusters]).astype(int), rng)
        made = goodness_of_fit(SampledReports.of(reports, q, SampleDesign(clusters=clusters)), q, [0.5, 0.5])
        assert made.denominator == 39
        reject += made.p_value < 0.05
        naive += goodness_of_fit(reports, q, [0.5, 0.5]).p_value < 0.05
    assert abs(reject / rounds - 0.05) < 0.039
    assert naive / rounds > 0.12


def test_two_samples_equal_the_contingency_test_for_a_square_channel():
    """Through one square channel, with a pooled estimate in the simplex, it is Pearson's test of homogeneity."""
    a, b = np.array([410, 320, 270]), np.array([230, 190, 180])
    made = two_sample(table(a, SQUARE), table(b, SQUARE), SQUARE)
    want = chi2_contingency(np.array([a, b]))
    assert np.isclose(made.statistic, want.statistic)
    assert made.degrees == 2


def test_two_samples_through_different_channels_have_their_level_and_power():
    rng = np.random.default_rng(94)
    other = Channel([[0.6, 0.4], [0.1, 0.9]])
    p1, p2, rounds = np.array([0.4, 0.6]), np.array([0.5, 0.5]), 250
    for second, want in ((p1, 0.05), (p2, float(two_sample_power(WIDE, p1, p2, 1200, 800, other=other)))):
        a = rng.multinomial(1200, WIDE.push(p1), size=rounds)
        b = rng.multinomial(800, other.push(second), size=rounds)
        seen = np.mean(
            [two_sample(table(x, WIDE), table(y, other), WIDE, other).p_value < 0.05 for x, y in zip(a, b, strict=True)]
        )
        # Three and a half standard errors over 250 pairs, and 0.01 for the approximation.
        assert abs(seen - want) < 0.01 + 3.5 * np.sqrt(want * (1 - want) / rounds)


def test_two_complex_samples():
    rng = np.random.default_rng(95)
    groups = np.repeat(["a", "b"], 200)
    design = SampleDesign(strata=groups, clusters=np.arange(400) // 10)
    tables = tables_by_group(rng.integers(0, 3, 400), SQUARE, groups, design)
    made = two_sample(tables["a"], tables["b"], SQUARE)
    assert made.denominator == 38
    assert 0 < made.p_value < 1


def test_impossible_reports_reject_for_certain():
    q = Channel([[1.0, 0.0], [0.5, 0.5]])
    made = goodness_of_fit({0: 5, 1: 1}, q, [1.0, 0.0])
    assert made.p_value == 0
    assert made.statistic == math.inf


def test_an_uninformative_channel_never_rejects():
    q = Channel([[0.5, 0.5], [0.5, 0.5]])
    made = goodness_of_fit({0: 80, 1: 20}, q, [0.5, 0.5])
    assert (made.degrees, made.p_value) == (0, 1.0)
    with pytest.raises(InvalidInput, match="differ"):
        respondents_for_power(q, [0.5, 0.5], [0.1, 0.9])


def test_enumeration_is_complete():
    """Every count table is listed once, in the order of their numbers, and their probabilities sum to one."""
    for n, m in ((5, 1), (6, 2), (4, 3), (7, 4), (3, 4), (1, 1), (1, 300), (2, 40)):
        rows = compositions(n, m)
        assert len(rows) == math.comb(n + m - 1, m - 1) == len(np.unique(rows, axis=0))
        assert np.all(rows.sum(axis=1) == n)
        assert rows.tolist() == sorted(rows.tolist())
        law = np.random.default_rng(m).dirichlet(np.ones(m))
        assert abs(np.exp(log_multinomial(rows, law)).sum() - 1) < 1e-12


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="level"):
        goodness_of_fit_power(WIDE, [0.5, 0.5], [0.4, 0.6], 50, 1.0)
    with pytest.raises(InvalidInput, match="3 entries"):
        goodness_of_fit([1, 2, 4], SQUARE, [0.5, 0.5])
    with pytest.raises(InvalidInput, match="inputs"):
        two_sample({0: 3}, {0: 3}, WIDE, SQUARE)
    with pytest.raises(InvalidInput, match="degrees of freedom"):
        goodness_of_fit(SampledReports.of([0, 1, 2, 2], SQUARE, SampleDesign(clusters=[0, 0, 1, 1])), SQUARE, P0)
    with pytest.raises(InvalidInput, match="vary"):
        two_sample([50, 0, 0], [40, 0, 0], np.eye(3))


@pytest.mark.parametrize("q", [np.eye(4), (np.ones((4, 4)) + 7 * np.eye(4)) / 11])
def test_a_category_that_nobody_reported_takes_no_part(q):
    """With an output that no report has, the test of independence is Pearson's on the other outputs."""
    counts = np.array([[30, 0, 25, 9], [22, 0, 31, 17]])
    want = chi2_contingency(counts[:, [0, 2, 3]], correction=False)
    made = two_sample(CountTable.from_counts(counts[0], range(4)), CountTable.from_counts(counts[1], range(4)), q)
    table = two_way_from_counts(counts, np.eye(2), q).independence()
    assert table.degrees == 2
    assert np.isclose(table.statistic, want.statistic)
    if np.array_equal(q, np.eye(4)):  # through another channel people with the answer may have reported something else
        assert made.degrees == 2
        assert np.isclose(made.statistic, want.statistic)


def test_an_ambiguous_array_follows_the_other_sample():
    """An array that could be counts or reports is read like the other one; two such arrays are refused."""
    q = np.array([[0.8, 0.2], [0.2, 0.8]])
    want = two_sample(CountTable.from_counts([0, 1], range(2)), CountTable.from_counts([40, 60], range(2)), q)
    assert two_sample([0, 1], [40, 60], q) == want
    assert two_sample([40, 60], [0, 1], q).p_value == want.p_value
    with pytest.raises(InvalidInput, match="either"):
        two_sample([0, 1], [1, 1], q)
