"""Regressions by unbiased indicators of the answers, and those of questions that share a report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import SampleDesign
from ldpopt_survey.estimate.groups import Source
from ldpopt_survey.regress.moments import linear_regression, logit_by_moments, moment_regression
from ldpopt_survey.regress.result import Subsample

YES_NO = ("no", "yes")
ANSWERS = {"a": YES_NO, "b": YES_NO}
PLAIN = Source("plain", Channel(np.eye(4)), np.empty(0, int), np.eye(4), np.full(4, 0.25))


def population(n, rng):
    """x, and a and b as positions: b hangs on both."""
    x = rng.normal(size=n)
    a = (rng.random(n) < 1 / (1 + np.exp(0.5 - 0.4 * x))).astype(int)
    b = (rng.random(n) < 1 / (1 + np.exp(0.6 - a - 0.5 * x))).astype(int)
    return x, a, b


def booklets(a, b, epsilon, rng):
    """Two booklets, of a and b, and of these and a third question, each by randomized response."""
    c, drawn = (a + (rng.random(len(a)) < 0.3)) % 2, rng.random(len(a)) < 0.5
    made = []
    for cells, size, asked in ((2 * a + b, 4, drawn), (4 * a + 2 * b + c, 8, ~drawn)):
        q = randomized_response(size, epsilon).matrix
        reports = (rng.random(len(a))[:, None] > np.cumsum(q, axis=1)[cells][:, :-1]).sum(axis=1)
        contrasts = np.repeat(np.eye(4), size // 4, axis=1)
        made.append(Source(f"{size}", Channel(q), np.where(asked, reports, -1), contrasts, np.full(size, 1 / size)))
    return made


@pytest.mark.parametrize("weights", [None, (0.5, 2.0)])
def test_without_privacy_it_is_the_regression_of_the_answers(weights):
    """Reports that are the answers have the coefficients of statsmodels, and its sandwich errors."""
    x, a, b = population(1500, np.random.default_rng(1))
    w = np.ones(len(x)) if weights is None else np.where(x > 0, *weights)
    sample = None if weights is None else SampleDesign(weights=w)
    plain = [replace(PLAIN, positions=2 * a + b)]
    design = np.column_stack([np.ones(len(x)), a, x])
    found = moment_regression("b ~ a + x", {"x": x}, ANSWERS, plain, sample=sample)
    fit = sm.GLM(b, design, sm.families.Binomial(), var_weights=w).fit(cov_type="HC0")
    np.testing.assert_allclose(found.values, fit.params, atol=1e-7)
    np.testing.assert_allclose(found.standard_errors.ravel(), fit.bse, rtol=2e-3)
    linear = moment_regression(
        "x ~ a", {"x": x}, {"a": YES_NO}, [replace(PLAIN, positions=2 * a + b, contrasts=A)], False
    )
    np.testing.assert_allclose(linear.values, sm.OLS(x, design[:, :2]).fit().params, atol=1e-9)
    scored = moment_regression("b ~ a", {}, ANSWERS, plain, logit=False, scores=[0.0, 3.0])
    np.testing.assert_allclose(scored.values, sm.OLS(3.0 * b, design[:, :2]).fit().params, atol=1e-9)
    public = moment_regression(
        "x ~ a", {"x": np.sign(x)}, {"a": YES_NO}, [replace(PLAIN, positions=2 * a + b, contrasts=A)]
    )
    np.testing.assert_allclose(public.values, sm.Logit(x > 0, design[:, :2]).fit(disp=0).params, atol=1e-7)


A = np.repeat(np.eye(2), 2, axis=1)
"""From the cells of a and b to a."""


@pytest.mark.full
def test_intervals_over_booklets_cover():
    """95 % intervals hold the coefficients in 60 surveys as they should, from reports of pairs and of triples."""
    inside, rng = [], np.random.default_rng(2)
    for _ in range(60):
        x, a, b = population(3000, rng)
        found = moment_regression("b ~ a + x", {"x": x}, ANSWERS, booklets(a, b, 3.0, rng))
        inside.append(found.intervals().contains([-0.6, 1.0, 0.5]))
    assert 0.9 < np.mean(inside) < 0.99


def test_separate_reports_are_those_of_the_product():
    """A private number on a private predictor with reports of their own: the same as `linear_regression`."""
    rng = np.random.default_rng(3)
    _, a, b = population(4000, rng)
    q = randomized_response(2, 1.0).matrix
    y, z = ((rng.random(4000) < q[answer, 1]).astype(int) for answer in (a, b))
    together = replace(PLAIN, channel=Channel(np.kron(q, q)), positions=2 * y + z)
    one = moment_regression("b ~ a", {}, ANSWERS, [together], logit=False, scores=[0.0, 1.0])
    labelled = {name: Channel(q, YES_NO, (0, 1)) for name in "ab"}
    two = linear_regression("b ~ a", {"a": y, "b": z}, labelled, scores=[0.0, 1.0])
    np.testing.assert_allclose(one.values, two.values, atol=1e-9)
    np.testing.assert_allclose(one.covariance, two.covariance, atol=1e-9)


def test_a_subgroup_stays_in_its_design():
    """Errors of a subgroup are those with scores of zero for all others [SSW, section 5.8]."""
    rng = np.random.default_rng(4)
    x, a, b = population(900, rng)
    who = x > -0.5
    design = SampleDesign(clusters=np.arange(900) // 9)
    found = moment_regression(
        "b ~ a", {}, ANSWERS, [replace(PLAIN, positions=(2 * a + b)[who])], sample=Subsample(design, who)
    )
    assert (found.n, found.degrees) == (int(who.sum()), 98)
    fit = sm.GLM(b[who], sm.add_constant(a[who]), sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": (np.arange(900) // 9)[who]}
    )
    np.testing.assert_allclose(found.standard_errors.ravel(), fit.bse, rtol=0.02)


def test_infinite_coefficients_are_an_error():
    """Separated answers, too few reports, one answer only: each a documented error."""
    a = np.repeat([0, 1], 20)
    with pytest.raises((SolverError, InvalidInput)):
        moment_regression("b ~ a", {}, ANSWERS, [replace(PLAIN, positions=3 * a)])
    with pytest.raises(InvalidInput, match="more respondents than the 2"):
        moment_regression("b ~ a", {}, ANSWERS, [replace(PLAIN, positions=np.array([0, 3]))])
    with pytest.raises(InvalidInput, match="distinguish the coefficients"):
        moment_regression("b ~ a", {}, ANSWERS, [replace(PLAIN, positions=np.zeros(50, int))])
    with pytest.raises(InvalidInput, match="one report of each"):
        moment_regression("b ~ a", {}, ANSWERS, [replace(PLAIN, positions=np.array([0, -1, 3]))])


def test_too_few_reports_are_no_mistake_of_the_caller():
    """What keeps moments of few reports from a finite solution is a `SolverError`, at which the likelihood is tried.

    A formula with the same predictor twice is a mistake, and told as one.
    """
    rng, reasons = np.random.default_rng(5), set()
    channels = {name: randomized_response(5, 0.75, inputs=range(5)) for name in ("u", "v", "w")}
    channels["y"] = randomized_response(2, 0.75)
    for _ in range(40):
        data = {name: rng.integers(0, len(channel.inputs), 400) for name, channel in channels.items()}
        try:
            logit_by_moments("y ~ u + v + w", data, channels)
        except SolverError as error:
            reasons.add("distinguish the coefficients" in str(error))
    assert reasons == {True, False}
    x = rng.normal(size=400)
    with pytest.raises(InvalidInput, match="collinear"):
        logit_by_moments("y ~ x + z", data | {"x": x, "z": 2 * x}, {"y": channels["y"]})
