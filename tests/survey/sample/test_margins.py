"""Known margins: the weights meet them, and the variance is that of what they do not explain."""

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.survey import Jackknife, SampleDesign, SampledReports, estimate, post_stratify, rake

Q = Channel([[0.8, 0.2], [0.2, 0.8]])


def test_post_stratified_weights_and_variance():
    """Weights N_g / n_g inside a group, and the sum of squared residuals from the groups' means [SSW, section 7.6]."""
    x = np.array([1.0, 2.0, 5.0, 7.0, 9.0, 4.0])
    g = np.array(["a", "a", "b", "b", "b", "a"])
    made = post_stratify(SampleDesign(size=6), g, {"a": 30, "b": 60})
    assert np.allclose(made.weights, np.where(g == "a", 10, 20))
    e = np.where(g == "a", x - x[g == "a"].mean(), x - x[g == "b"].mean())
    z = made.weights * e
    assert np.isclose(made.total_variance(x).covariance[0, 0], 6 / 5 * np.sum((z - z.mean()) ** 2))
    # What the groups explain in full has no variance left.
    assert made.total_variance((g == "a").astype(float)).covariance[0, 0] < 1e-20


def test_raking_meets_every_margin_and_keeps_the_odds_ratios():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 500), rng.integers(0, 3, 500)
    w = rng.uniform(1, 3, 500)
    made = rake(SampleDesign(w), [(a, {0: 0.4, 1: 0.6}), (b, {0: 0.2, 1: 0.3, 2: 0.5})])
    assert np.allclose(np.bincount(a, made.weights) / w.sum(), [0.4, 0.6])
    assert np.allclose(np.bincount(b, made.weights) / w.sum(), [0.2, 0.3, 0.5], rtol=1e-9)
    factors = made.weights / w
    table = np.array([[factors[(a == i) & (b == j)][0] for j in range(3)] for i in range(2)])
    assert np.allclose(np.linalg.svd(table)[1][1:], 0, atol=1e-9)  # a product of a row's and a column's factor


def test_replicates_are_raked_anew():
    """The jackknife of a raked mean, looped by hand with every replicate raked, and near the linearised one."""
    rng = np.random.default_rng(2)
    n = 150
    a, b, y = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    margins = [(a, {0: 0.4, 1: 0.6}), (b, {0: 0.7, 1: 0.3})]
    design = rake(SampleDesign(size=n), margins)
    made = estimate(SampledReports.of(y, Q, design.by(Jackknife())), Q)
    want = 0.0
    for out in range(n):
        keep = np.arange(n) != out
        w = rake(SampleDesign(size=n - 1), [(codes[keep], known) for codes, known in margins]).weights
        f = np.bincount(y[keep], w) / w.sum()
        want += (n - 1) / n * (made.loadings[0] @ f - made.values[0]) ** 2
    assert np.isclose(made.covariance[0, 0], want, rtol=1e-6)
    linear = estimate(SampledReports.of(y, Q, design), Q)
    assert np.isclose(made.standard_errors[0], linear.standard_errors[0], rtol=0.05)


def test_knowing_margins_pays_only_for_what_they_explain():
    """A margin that settles the answer removes the sampling variance and none of the channel's."""
    rng = np.random.default_rng(3)
    answers = np.repeat([0, 1], 500)
    spread = []
    for _ in range(400):
        y = Q.sample_indices(answers[rng.permutation(1000)], rng)
        spread.append(y.mean())
    y = Q.sample_indices(answers, rng)
    plain = estimate(SampledReports.of(y, Q, SampleDesign(size=1000)), Q)
    known = estimate(SampledReports.of(y, Q, post_stratify(SampleDesign(size=1000), answers, {0: 0.5, 1: 0.5})), Q)
    channel_alone = 0.8 * 0.2 / 0.36 / 1000
    assert np.isclose(known.covariance[0, 0], channel_alone, rtol=0.1)
    assert plain.covariance[0, 0] > 1.4 * channel_alone


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ([], "at least one"),
        ([(["a", "b"], {"a": 1.0})], "known total"),
        ([(["a", "b"], {"a": 1, "b": 2, "c": 3})], "respondent in every group"),
        ([(["a", "b"], {"a": 1, "b": 0})], "positive"),
        ([(["a", "b"], {"a": 1, "b": float("nan")})], "finite"),
        ([(["a", "b"], {"a": 10, "b": 20}), (["c", "d"], {"c": 10, "d": 30})], "same sum"),
        ([(["a", None], {"a": 10, "b": 20})], "label"),
    ],
)
def test_wrong_margins_are_refused(margins, said):
    with pytest.raises(InvalidInput, match=said):
        rake(SampleDesign(size=2), margins)


def test_margins_that_cannot_be_met_are_refused():
    with pytest.raises(SolverError, match="combination"):
        rake(SampleDesign(size=2), [(["a", "b"], {"a": 10, "b": 20}), (["c", "d"], {"c": 15, "d": 15})])
