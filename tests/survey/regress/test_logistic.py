"""Logistic regression of a privatized answer on a matrix of regressors, against statsmodels and a general optimiser."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.special import expit

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, SolverError
from ldpopt_survey import logistic_regression, with_constant

Q = Channel([[0.8, 0.2], [0.2, 0.8]], inputs=["no", "yes"], outputs=["N", "Y"])
WIDE = Channel([[0.5, 0.2, 0.2, 0.1], [0.1, 0.5, 0.1, 0.3]])
BETA = np.array([-0.5, 1.0, -0.7])


def survey(rng, n, channel, beta=BETA):
    x = with_constant(rng.normal(size=(n, len(beta) - 1)))
    answers = (rng.random(n) < expit(x @ beta)).astype(int)
    return x, channel.sample_indices(answers, rng)


def test_without_privacy_it_is_logistic_regression():
    """Through the identity channel the fit is that of statsmodels' Logit: coefficients, errors and likelihoods."""
    rng = np.random.default_rng(121)
    x, y = survey(rng, 500, Channel(np.eye(2)))
    made, want = logistic_regression(y, x, np.eye(2)), sm.Logit(y, x).fit(disp=0)
    assert np.allclose(made.values, want.params, atol=1e-7)
    assert np.allclose(made.standard_errors, want.bse, rtol=1e-6)
    assert np.allclose(made.p_values, want.pvalues, atol=1e-7)
    assert np.allclose(np.stack([made.intervals().lower, made.intervals().upper], axis=1), want.conf_int(), atol=1e-6)
    assert np.isclose(made.log_likelihood, want.llf)
    assert np.isclose(made.null_log_likelihood, want.llnull)
    assert np.allclose(made.predict(x)[:, 0], want.predict(x), atol=1e-7)


@pytest.mark.parametrize("channel", [Q, WIDE])
def test_fit_maximises_the_likelihood_of_the_reports(channel):
    """No other coefficients, found by a general optimiser, make the reports more likely."""
    x, y = survey(np.random.default_rng(122), 1500, channel)
    made = logistic_regression(np.array(channel.outputs)[y], x, channel)

    def minus(b):
        pi = expit(x @ b)
        return -np.log(channel.matrix[0, y] * (1 - pi) + channel.matrix[1, y] * pi).sum()

    want = minimize(minus, made.values + 0.2, method="BFGS", options={"gtol": 1e-6})
    assert np.isclose(made.log_likelihood, -want.fun, atol=1e-8)
    assert np.allclose(made.values, want.x, atol=1e-4)


@pytest.mark.full
def test_errors_are_those_of_repeated_surveys():
    """Over simulated surveys the coefficients scatter as the standard errors say, and intervals cover."""
    rng = np.random.default_rng(123)
    rounds, made = 80, []
    for _ in range(rounds):
        x, y = survey(rng, 1500, WIDE)
        made.append(logistic_regression(y, x, WIDE))
    spread = np.std([m.coefficients for m in made], axis=0)
    # A standard deviation over 80 draws has a relative error of 8 %.
    assert np.allclose(spread, np.mean([m.standard_errors for m in made], axis=0), rtol=0.28)
    cover = np.mean([m.intervals().contains(BETA) for m in made], axis=0)
    # Three and a half standard errors of 0.95 over 80 surveys.
    assert np.abs(cover - 0.95).max() < 0.086


def test_success_swaps_the_signs():
    x, y = survey(np.random.default_rng(124), 800, Q)
    reports = np.array(Q.outputs)[y]
    a, b = logistic_regression(reports, x, Q, "yes"), logistic_regression(reports, x, Q, "no")
    assert np.allclose(a.coefficients, -b.coefficients, atol=1e-7)


def test_frames_name_the_coefficients():
    x, y = survey(np.random.default_rng(125), 800, Q)
    frame = with_constant(pd.DataFrame(x[:, 1:], columns=["age", "income"]))
    made = logistic_regression(np.array(Q.outputs)[y], frame, Q)
    assert made.names == ("const", "age", "income")
    assert (made.equations, made.reference) == (("yes",), "no")
    text = repr(made)
    for word in ("coefficient", "se", "p", "const", "age", "income", "log-odds of yes against no"):
        assert word in text
    assert made._repr_html_().count("<tr>") == 4
    assert np.allclose(made.odds_ratios().lower, np.exp(made.intervals().lower))


def test_the_scale_of_a_regressor_is_of_no_account():
    x, y = survey(np.random.default_rng(126), 800, Q)
    scale = np.array([1.0, 1e6, 1e-6])
    a, b = (logistic_regression(np.array(Q.outputs)[y], z, Q) for z in (x, x * scale))
    assert np.allclose(a.coefficients, b.coefficients * scale, rtol=1e-6)
    assert np.allclose(a.statistics, b.statistics, rtol=1e-6)


def test_a_design_without_a_constant_has_a_null_of_one_half():
    x, y = survey(np.random.default_rng(127), 400, Q)
    made = logistic_regression(np.array(Q.outputs)[y], x[:, 1:], Q)
    assert np.isclose(made.null_log_likelihood, 400 * np.log(0.5))


def test_separation_is_an_error_and_not_a_number():
    """Reports that are compatible with infinite coefficients have no estimate."""
    x = with_constant(np.linspace(-1, 1, 40))
    with pytest.raises(SolverError, match="of x1 were reached; the terms separate"):
        logistic_regression((x[:, 1] > 0).astype(int), x, np.eye(2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: logistic_regression(y, x, np.full((3, 3), 1 / 3)), "2 inputs"),
        (lambda x, y: logistic_regression(y, x, np.full((2, 2), 0.5)), "rank"),
        (lambda x, y: logistic_regression(y, x[:5], Q), "rows"),
        (lambda x, y: logistic_regression(y, np.hstack([x, x]), Q), "independent"),
        (lambda x, y: logistic_regression(y, x, Q, "maybe"), "success"),
        (lambda x, y: logistic_regression(y, x, Q, names=("a",)), "3 names"),
        (lambda x, y: logistic_regression(["Q"] * 100, x, Q), "one of the outputs"),
        (lambda x, y: logistic_regression(y, x, Q).predict([[1.0]]), "3 columns"),
    ],
)
def test_bad_input_is_refused(call, message):
    x, y = survey(np.random.default_rng(128), 100, Q)
    with pytest.raises(InvalidInput, match=message):
        call(x, np.array(Q.outputs)[y])
