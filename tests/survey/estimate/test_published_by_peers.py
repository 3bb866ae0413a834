"""Figures and formulas that R's packages rr and RRTCS document for randomized response, against the estimates here."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from ldpopt.channel import Channel
from ldpopt_survey import SampleDesign, SampledReports, asymptotic_covariance, estimate


def forced(yes: float, no: float) -> Channel:
    """Forced response: with these chances "yes" or "no" is said whatever is true, else the truth."""
    return Channel([[1 - yes, yes], [no, 1 - no]], ("no", "yes"), ("no", "yes"))


def test_the_power_that_rr_documents():
    """power.rr.test(p = 2/3, p1 = 1/6, p0 = 1/6, n = 200, presp = .2, presp.null = 0, sig.level = .01): 0.9868872.

    The figure stands in the tests of the package (rr 1.4, tests/testthat/test-rrreg.R), which asks for the n that has
    it [Blair, Imai, Zhou]. It is one-sided, and the errors are those at the alternative and at the null.
    """
    channel = forced(1 / 6, 1 / 6)
    alternative, null = (
        math.sqrt(asymptotic_covariance(channel, [1 - share, share], 200)[1, 1]) for share in (0.2, 0.0)
    )
    power = norm.sf((norm.ppf(0.99) * null - 0.2) / alternative)
    assert round(float(power), 7) == 0.9868872


@pytest.mark.parametrize(("yes", "no"), [(0.2, 0.2), (0.3, 0.1), (0.05, 0.4)])
def test_forced_response_is_that_of_rrtcs(yes, no):
    """RRTCS's `ForcedResponse`: r = (z - p1) / (1 - p1 - p2), the Horvitz-Thompson total, and V_R = sum r (r - 1)."""
    rng = np.random.default_rng(41)
    channel, n = forced(yes, no), 400
    z = channel.sample_indices(rng.integers(0, 2, n), rng)
    pi = np.full(n, 0.4)
    r = (z - yes) / (1 - yes - no)
    made = estimate(SampledReports(z, channel, SampleDesign(1 / pi)), channel)
    assert np.isclose(made.values[1], (r / pi).sum() / (1 / pi).sum(), rtol=1e-12)
    census = estimate(SampledReports(z, channel, SampleDesign(size=n, fpc=np.full(n, n))), channel)
    assert np.isclose(census.standard_errors[1] ** 2, (r * (r - 1)).sum() / n**2, rtol=1e-10)


@pytest.mark.parametrize("p", [0.6, 0.7, 0.9])
def test_warner_is_that_of_rrtcs(p):
    """RRTCS's `Warner`: r = (z - (1 - p)) / (2 p - 1), and V_R = p (1 - p) / (2 p - 1)^2 for everybody."""
    rng = np.random.default_rng(42)
    channel = Channel([[p, 1 - p], [1 - p, p]])
    z = channel.sample_indices((rng.random(300) < 0.3).astype(int), rng)
    w = rng.uniform(1, 5, 300)
    r = (z - (1 - p)) / (2 * p - 1)
    made = estimate(SampledReports(z, channel, SampleDesign(w, fpc=np.full(300, 300))), channel)
    assert np.isclose(made.values[1], w @ r / w.sum(), rtol=1e-12)
    assert np.isclose(made.standard_errors[1] ** 2, p * (1 - p) / (2 * p - 1) ** 2 * (w @ w) / w.sum() ** 2, rtol=1e-10)
