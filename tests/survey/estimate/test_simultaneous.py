import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t, norm

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.survey import Bonferroni, CountTable, GeneralizedLeastSquares, Score, Simultaneous, Wald, estimate
from ldpopt.survey.estimate.intervals import two_sided
from ldpopt.survey.estimate.moments import moments
from ldpopt.survey.estimate.simultaneous import max_normal_quantile


def randomized_response(k, epsilon):
    e = np.exp(epsilon)
    return Channel((np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1))


def test_quantile_of_independent_normals_is_sidaks():
    """For r independent estimates the critical value is Sidak's."""
    for r in (3, 10, 80):
        want = norm.isf((1 - 0.95 ** (1 / r)) / 2)
        assert abs(max_normal_quantile(np.eye(r), 0.95) - want) < 0.01


def test_quantile_agrees_with_the_multivariate_normal_law():
    """The box of the quantile has the stated probability under scipy's multivariate normal, within 0.001."""
    rng = np.random.default_rng(41)
    for _ in range(2):
        root = rng.normal(size=(4, 4))
        c = root @ root.T
        c /= np.sqrt(np.outer(np.diag(c), np.diag(c)))
        q = max_normal_quantile(c, 0.9)
        law = multivariate_normal(np.zeros(4), c, seed=1, abseps=1e-4, maxpts=200_000)
        assert abs(law.cdf(np.full(4, q), lower_limit=np.full(4, -q)) - 0.9) < 0.002


def test_quantile_with_few_degrees_agrees_with_the_multivariate_t_law():
    c = np.array([[1.0, 0.3], [0.3, 1.0]])
    q = max_normal_quantile(c, 0.95, 12)
    inside = multivariate_t(np.zeros(2), c, df=12, seed=1).cdf([q, q], lower_limit=[-q, -q])
    assert abs(inside - 0.95) < 0.002


def test_two_categories_need_no_correction():
    """Two proportions are one number, and their simultaneous intervals are the plain ones."""
    made = estimate({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]])
    plain, at_once = made.intervals(Score()), made.intervals(Simultaneous(Score()))
    assert np.allclose(plain.lower, at_once.lower, atol=1e-12)


@pytest.mark.parametrize("k", [4, 7, 24])
@pytest.mark.parametrize("power", [0.0, 2.0])
def test_simultaneous_intervals_cover_together(k, power):
    """All k intervals cover at once in 94 to 96 % of 20,000 surveys of 1000, flat and skewed."""
    q = randomized_response(k, 1.0)
    p = 1 / np.arange(1, k + 1) ** power
    p /= p.sum()
    rng = np.random.default_rng(42)
    frequencies = rng.multinomial(1000, q.push(p), size=20_000) / 1000
    loadings = GeneralizedLeastSquares().fit(q.push(p), q)[1]
    # One critical value for all surveys, at their average; the next test lets each survey have its own.
    lower, upper = Simultaneous().limits(moments(frequencies, loadings, None, 1000, np.inf))
    assert 0.94 < ((lower <= p) & (p <= upper)).all(axis=1).mean() < 0.96


def test_each_survey_has_its_own_critical_value():
    """With a critical value from each survey alone, four intervals cover at once as often as they say."""
    rng = np.random.default_rng(44)
    q, p, rounds = randomized_response(4, 1.0), np.array([0.7, 0.2, 0.08, 0.02]), 100
    counts = rng.multinomial(1000, q.push(p), size=rounds)
    hits = [
        bool(estimate(CountTable.from_counts(row, q.outputs), q).intervals(Simultaneous()).contains(p).all())
        for row in counts
    ]
    # Three and a half standard errors of 0.95 over 100 surveys.
    assert abs(np.mean(hits) - 0.95) < 0.077


def test_bonferroni_is_the_base_at_a_smaller_error():
    made = estimate([400, 350, 250], randomized_response(3, 1.0))
    assert np.allclose(made.intervals(Bonferroni(Wald(0.94))).width, made.intervals(Wald(0.98)).width)
    assert np.all(made.intervals(Simultaneous()).width <= made.intervals(Bonferroni()).width * 1.02)


def test_methods_without_simulation():
    """A complex sample takes the normal critical value, with its degrees of freedom."""
    rng = np.random.default_rng(43)
    q = randomized_response(3, 1.0)
    table = CountTable.from_reports(rng.integers(0, 3, 300), q, clusters=np.repeat(np.arange(30), 10))
    made = estimate(table, q)
    wide = made.intervals(Simultaneous(Wald())).width / made.intervals(Wald()).width
    want = max_normal_quantile(made.moments.correlation, 0.95, 29) / two_sided(0.95, 29)
    assert np.allclose(wide, want, rtol=1e-9)
    assert made.intervals(Simultaneous(Wald())).method == "simultaneous Wald"
    assert made.intervals(Bonferroni()).method == "Bonferroni score"


def test_bad_level_is_refused():
    with pytest.raises(InvalidInput, match="confidence level"):
        max_normal_quantile(np.eye(3), 1.0)
