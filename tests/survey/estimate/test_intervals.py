import numpy as np
import pytest
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.survey import GeneralizedLeastSquares, Score, Wald, estimate
from ldpopt.survey.estimate.intervals import two_sided
from ldpopt.survey.estimate.moments import moments


def randomized_response(k, epsilon):
    e = np.exp(epsilon)
    return Channel((np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1))


def flat(k):
    return np.full(k, 1 / k)


def skewed(k):
    p = 1 / np.arange(1, k + 1) ** 2.0
    return p / p.sum()


@pytest.mark.parametrize("yes", [0, 1, 30, 99, 100])
def test_score_interval_of_a_binary_report_is_wilsons(yes):
    """For a binary report the score interval is Wilson's, carried through the channel."""
    q = Channel([[0.8, 0.2], [0.3, 0.7]])
    made = estimate({0: yes, 1: 100 - yes}, q).intervals(Score(0.9))
    low, high = proportion_confint(yes, 100, alpha=0.1, method="wilson")
    assert np.allclose([made.lower[0], made.upper[0]], (np.array([low, high]) - 0.3) / 0.5, atol=1e-12)
    assert np.allclose([made.lower[1], made.upper[1]], 1 - (np.array([high, low]) - 0.3) / 0.5, atol=1e-12)


def test_score_interval_of_a_category_under_randomized_response_is_wilsons():
    """Under k-ary randomized response a category's report is binary, and its interval Wilson's."""
    q = randomized_response(5, 1.0)
    counts = np.array([210, 190, 250, 150, 200])
    made = estimate(counts, q).intervals()
    high, low = q.matrix[0, 0], q.matrix[0, 1]
    for x, count in enumerate(counts):
        want = (np.array(proportion_confint(count, 1000, method="wilson")) - low) / (high - low)
        assert np.allclose([made.lower[x], made.upper[x]], want, atol=1e-12)


def test_wald_interval_is_the_estimate_and_its_error():
    made = estimate([300, 700], [[0.8, 0.2], [0.2, 0.8]])
    shown = made.intervals(Wald())
    assert np.allclose(shown.upper, made.values + 1.959963984540054 * made.standard_errors)
    assert np.allclose(shown.lower + shown.upper, 2 * made.values)


@pytest.mark.parametrize("k", [2, 4, 7, 24])
@pytest.mark.parametrize("shape", [flat, skewed])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_score_intervals_cover_exactly_as_often_as_they_say(k, shape, epsilon):
    """Under randomized response with n = 1000 every 95 % score interval covers between 94 % and 96 %, exactly."""
    n, q, p = 1000, randomized_response(k, epsilon), shape(k)
    high, low = q.matrix[0, 0], q.matrix[0, 1]
    counts = np.arange(n + 1)
    binary = np.stack([counts, n - counts], axis=1) / n
    # A category's estimate depends on the reports through its own count alone.
    loadings = np.array([[1 - low, -low]]) / (high - low)
    lower, upper = Score().limits(moments(binary, loadings, None, n, np.inf))
    for share in p:
        law = binom.pmf(counts, n, low + share * (high - low))
        covered = law[(lower[:, 0] <= share) & (share <= upper[:, 0])].sum()
        assert 0.94 <= covered <= 0.96


@pytest.mark.parametrize("shape", [flat, skewed])
def test_score_intervals_cover_when_the_left_inverse_is_estimated(shape):
    """With more outputs than inputs, over 1,000 simulated surveys, every 95 % interval covers as often as it says."""
    rng = np.random.default_rng(31)
    half = np.array([[1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 1, 0], [0, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 1]])
    raw = np.where(half == 1, np.e, 1.0) * np.array([3, 1, 1, 1, 1, 3])
    q = Channel(raw / raw.sum(axis=1, keepdims=True))
    p, rounds = shape(4), 1000
    counts = rng.multinomial(1000, q.push(p), size=rounds)
    hits = np.mean([estimate(row, q).intervals().contains(p) for row in counts], axis=0)
    # Three and a half standard errors of 0.95 over 1,000 surveys.
    assert np.abs(hits - 0.95).max() < 0.025


def test_wald_undercovers_where_score_does_not():
    """On rare categories Wald intervals cover less than 94 %, which is why score intervals are the default."""
    q, p, n = randomized_response(24, 2.0), skewed(24), 1000
    loadings = GeneralizedLeastSquares().fit(q.push(p), q)[1]
    f = np.random.default_rng(32).multinomial(n, q.push(p), size=20_000) / n
    m = moments(f, loadings, None, n, np.inf)
    cover = {}
    for method in (Wald(), Score()):
        lower, upper = method.limits(m)
        cover[method.name] = ((lower <= p) & (p <= upper)).mean(axis=0)
    assert cover["Wald"].min() < 0.937
    assert cover["score"].min() > 0.94
    assert cover["score"].max() < 0.96


def test_score_interval_inverts_its_pivot():
    """The ends of a score interval are where its standardised error equals the critical value."""
    rng = np.random.default_rng(33)
    loadings = rng.normal(size=(3, 6))
    m = moments(rng.dirichlet(np.ones(6)), loadings, None, 400, np.inf)
    for method in (Score(0.8), Wald(0.8)):
        for end in method.limits(m):
            assert np.allclose(method.pivot(m, end), two_sided(0.8), rtol=1e-9)


def test_a_constant_has_an_interval_of_no_width():
    """The sum of all proportions is known, and its interval is the number 1."""
    made = estimate([40, 60, 11], randomized_response(3, 1.0)).contrast([1, 1, 1]).intervals()
    assert np.allclose([made.lower[0], made.upper[0]], 1.0, atol=1e-9)


def test_intervals_of_a_unanimous_sample_are_not_empty():
    """When every report is the same, the score interval still has the width of Wilson's."""
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
    assert "95 % score intervals" in repr(made)


def test_bad_levels_are_refused():
    for level in (0, 1, 1.5, float("nan"), "high"):
        with pytest.raises(InvalidInput, match="confidence level"):
            Score(level)
        with pytest.raises(InvalidInput, match="confidence level"):
            Wald(level)
