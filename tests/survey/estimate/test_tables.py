import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    MaximumLikelihood,
    SampleDesign,
    SampledReports,
    estimate,
    independence_power,
    two_way,
    two_way_from_counts,
)

A = Channel([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]], inputs=["x", "y", "z"])
B = Channel([[0.8, 0.2], [0.2, 0.8]], inputs=["no", "yes"], outputs=["N", "Y"])
WIDE = Channel([[0.5, 0.2, 0.2, 0.1], [0.1, 0.5, 0.1, 0.3]])
JOINT = np.array([[0.3, 0.1], [0.1, 0.2], [0.1, 0.2]])


def draw(joint, a, b, n, rng):
    m = a.matrix.T @ joint @ b.matrix
    return rng.multinomial(n, m.ravel() / m.sum()).reshape(m.shape)


def test_joint_distribution_is_recovered():
    """From the exact marginal of the pairs of reports the joint distribution comes back, and its margins."""
    counts = np.round(1e6 * A.matrix.T @ JOINT @ B.matrix)
    made = two_way_from_counts(counts, A, B)
    assert np.allclose(made.proportions, JOINT, atol=1e-5)
    assert np.allclose(made.rows.values, JOINT.sum(axis=1), atol=1e-5)
    assert np.allclose(made.columns.values, JOINT.sum(axis=0), atol=1e-5)
    assert made.rows.labels == ("x", "y", "z")


def test_reports_and_counts_agree():
    rng = np.random.default_rng(111)
    a, b = rng.integers(0, 3, 300), np.array(["N", "Y"])[rng.integers(0, 2, 300)]
    counts = pd.crosstab(a, b).to_numpy()
    one, two = two_way(a, pd.Series(b), A, B), two_way_from_counts(counts, A, B)
    assert np.allclose(one.proportions, two.proportions)
    assert np.allclose(one.joint.covariance, two.joint.covariance)


def test_independence_is_pearsons_for_square_channels():
    """Through square channels the statistic is Pearson's on the table of reports."""
    counts = draw(JOINT, A, B, 2000, np.random.default_rng(112))
    made = two_way_from_counts(counts, A, B).independence()
    want = chi2_contingency(counts, correction=False)
    assert np.isclose(made.statistic, want.statistic)
    assert made.degrees == want.dof == 2


def test_independence_has_its_level_and_power_through_wide_channels():
    """With more outputs than inputs the test rejects as often as stated, under the null and the alternative."""
    rng = np.random.default_rng(113)
    rounds = 150
    null = np.outer([0.5, 0.3, 0.2], [0.4, 0.6])
    other = null + 0.06 * np.array([[1, -1], [-0.5, 0.5], [-0.5, 0.5]])
    for joint, want in ((null, 0.05), (other, float(independence_power(other, A, WIDE, 3000)))):
        tables = [two_way_from_counts(draw(joint, A, WIDE, 3000, rng), A, WIDE) for _ in range(rounds)]
        seen = np.mean([made.independence().p_value < 0.05 for made in tables])
        # Three and a half standard errors over 150 tables, and 0.02 for the approximation.
        assert abs(seen - want) < 0.02 + 3.5 * np.sqrt(want * (1 - want) / rounds)
        assert tables[0].independence().degrees == 2


def test_conditional_proportions_cover():
    """The delta-method intervals of the proportions within a row cover as often as they say."""
    rng = np.random.default_rng(114)
    truth, rounds = JOINT[0] / JOINT[0].sum(), 300
    hits = []
    for _ in range(rounds):
        made = two_way_from_counts(draw(JOINT, A, B, 4000, rng), A, B).given_row("x")
        hits.append(made.intervals().contains(truth))
    assert abs(np.mean(hits, axis=0) - 0.95).max() < 0.045
    assert abs(made.values.sum() - 1) < 1e-12
    assert made.standard_errors.min() > 0


def test_clusters_enter_the_independence_test():
    """When whole clusters answer alike, the simple test rejects too often and the clustered one does not."""
    rng = np.random.default_rng(115)
    rounds, reject, naive = 250, 0, 0
    clusters = np.repeat(np.arange(60), 12)
    for _ in range(rounds):
        rate_a, rate_b = rng.integers(0, 2, 60)[clusters], rng.integers(0, 2, 60)[clusters]
        a = B.sample_indices((rng.random(720) < rate_a).astype(int), rng)
        b = B.sample_indices((rng.random(720) < rate_b).astype(int), rng)
        made = two_way(np.array(["N", "Y"])[a], np.array(["N", "Y"])[b], B, B, sample=SampleDesign(clusters=clusters))
        reject += made.independence().p_value < 0.05
        naive += chi2_contingency(np.bincount(2 * a + b, minlength=4).reshape(2, 2), correction=False).pvalue < 0.05
    assert abs(reject / rounds - 0.05) < 0.049
    assert naive > 1.5 * reject


def test_maximum_likelihood_table_and_text():
    made = two_way_from_counts([[40, 10], [5, 45], [30, 20]], A, B, MaximumLikelihood())
    assert made.proportions.min() >= 0
    assert "3 x 2" in repr(made)
    assert made._repr_html_().count("<tr>") == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: two_way([0, 1], ["N"], A, B), "as many"),
        (lambda: two_way_from_counts([[1, 2]], A, B), "shape"),
        (lambda: two_way_from_counts(np.ones((3, 2)), A, B).given_row("w"), "one of"),
        (lambda: two_way_from_counts([[5, 0], [7, 0], [9, 0]], A, B).independence(), "are equal"),
        (lambda: two_way_from_counts([[0, 0], [9, 9], [9, 9]], A, B).given_row("x"), "positive"),
        (lambda: independence_power(np.ones((3, 2)), A, B, 10), "a distribution"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


def test_a_group_of_a_weighted_sample_keeps_the_whole_design():
    """Weights with a mask give the table of the group in the sample's design, and not that of a smaller sample."""
    rng = np.random.default_rng(5)
    a, b, weights, clusters = (
        rng.integers(2, size=60),
        rng.integers(2, size=60),
        rng.random(60) + 0.5,
        np.arange(60) % 12,
    )
    q, inside = [[0.8, 0.2], [0.2, 0.8]], np.arange(60) % 3 > 0
    design = SampleDesign(weights, clusters=clusters)
    found = two_way(a, b, q, q, sample=design, in_group=inside)
    pairs = SampledReports(2 * a + b, Channel(q).product(Channel(q)), design).where(inside)
    want = estimate(pairs, pairs.channel)
    assert np.array_equal(found.proportions.ravel(), want.values)
    assert np.array_equal(found.joint.covariance, want.covariance)
