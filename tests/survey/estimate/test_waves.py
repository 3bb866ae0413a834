"""Waves pooled: the likelihood of both, and the least variance that two unbiased estimates allow."""

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.survey import (
    MaximumLikelihood,
    SampleDesign,
    SampledReports,
    estimate,
    estimate_contrasts,
    estimate_waves,
    pooled_channel,
)

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


def test_waves_may_identify_together_what_neither_does_alone():
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
