"""Regressions about those who answered, where a category of a private predictor or outcome stands for the others."""

import numpy as np
import pytest
import statsmodels.api as sm

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import Analysis, Counts, QuestionSpec, ReportRows, Respondents, SampleSpec, SurveySpec, make_plan
from ldpopt_survey.plan.reading import Reading

SILENT = "no answer"
READING = Reading(missing_answers="category")


def respondents(n, epsilon, seed, **settings):
    """Respondents with a yes/no and a number of hours, both at times unanswered, a public x; and their true answers.

    Those who do not answer are unlike the others: they smoke more, and have other hours.
    """
    rng = np.random.default_rng(seed)
    spec = SurveySpec(
        "s",
        (
            QuestionSpec("smokes", ("no", "yes", SILENT), missing=SILENT, reading=READING),
            QuestionSpec("hours", ("1", "2", "4", SILENT), missing=SILENT, reading=READING),
        ),
        carry=("x", "village"),
    )
    plan = make_plan(
        spec, {"smokes": randomized_response(3, epsilon).matrix, "hours": randomized_response(4, epsilon).matrix}
    )
    x = rng.normal(size=n).round(2)
    smokes = (rng.random(n) < 1 / (1 + np.exp(0.3 - 0.8 * x))).astype(int)
    hours = np.minimum(rng.binomial(2, 0.3 + 0.3 * smokes), 2)
    smokes[rng.random(n) < 0.1 + 0.2 * smokes] = 2
    hours[rng.random(n) < 0.1 + 0.15 * (hours == 2)] = 3
    reports = {
        name: plan.question(name).report_channel.sample_indices(answers, rng)
        for name, answers in (("smokes", smokes), ("hours", hours))
    }
    columns = {"x": x.astype(str).astype(object), "village": (np.arange(n) % 50).astype(str).astype(object)}
    rows = ReportRows(Counts(plan.checksum, n, {}), reports, columns)
    return Respondents(plan, rows, Analysis(answered=True, **settings)), x, smokes, hours


def least_squares(y, *columns):
    return sm.OLS(y, sm.add_constant(np.column_stack(columns).astype(float))).fit()


@pytest.mark.parametrize("settings", [{}, {"sample": SampleSpec(clusters="village")}])
def test_a_logit_is_that_of_those_who_answered(settings):
    """Nearly true reports give the logit of the complete answers: public outcome, private predictors with silence."""
    people, x, smokes, hours = respondents(4000, 30.0, 1, **settings)
    who = (smokes < 2) & (hours < 3)
    fit = people.logit("smokes ~ hours + x")
    true = sm.Logit(smokes[who], sm.add_constant(np.column_stack([np.array([1, 2, 4])[hours[who]], x[who]]))).fit(
        disp=0
    )
    assert fit.names == ("Intercept", "hours", "x")
    assert fit.equations == ("yes",)
    np.testing.assert_allclose(fit.values, true.params, rtol=1e-6)
    if not settings:
        robust = sm.Logit(smokes[who], true.model.exog).fit(disp=0, cov_type="HC0")
        np.testing.assert_allclose(fit.standard_errors.ravel(), robust.bse, rtol=0.01)


def test_a_linear_model_is_that_of_those_who_answered():
    """A private outcome that is at times silent, and a private predictor that is, too."""
    people, x, smokes, hours = respondents(4000, 30.0, 2)
    who = (smokes < 2) & (hours < 3)
    y = np.array([1.0, 2.0, 4.0])[hours[who]]
    for formula, columns in (
        ("hours ~ smokes + x", (smokes[who] == 1, x[who])),
        ("hours ~ smokes", (smokes[who] == 1,)),
    ):
        fit = people.linear(formula)
        np.testing.assert_allclose(fit.values, least_squares(y, *map(np.asarray, columns)).params, rtol=1e-6)
    answered = hours < 3
    alone = least_squares(np.array([1.0, 2.0, 4.0, 0.0])[hours[answered]], x[answered])
    np.testing.assert_allclose(people.linear("hours ~ x").values, alone.params, rtol=1e-6)
    public = people.linear("x ~ smokes")
    np.testing.assert_allclose(public.values, least_squares(x[smokes < 2], smokes[smokes < 2]).params, rtol=1e-6)


@pytest.mark.full
def test_regressions_of_reports_agree_with_true_answers():
    """At epsilon 3 the slopes are within four standard errors of the model's, which say how far they are."""
    fits = [respondents(20_000, 3.0, seed)[0].linear("hours ~ smokes") for seed in range(12)]
    estimates = np.array([fit.values for fit in fits])
    errors = np.array([fit.standard_errors.ravel() for fit in fits])
    # Of many complete answers, the limit of the estimates.
    _, _, smokes, hours = respondents(2_000_000, 3.0, 99)
    who = (smokes < 2) & (hours < 3)
    limit = least_squares(np.array([1.0, 2.0, 4.0])[hours[who]], smokes[who] == 1).params
    away = (estimates - limit) / errors
    assert np.abs(away).max() < 4
    assert 0.5 < np.sqrt((away**2).mean()) < 1.6


def test_the_likelihood_refuses_and_names_an_alternative():
    """The likelihood has no such fit, and the message names the method that has."""
    people, *_ = respondents(500, 3.0, 3)
    with pytest.raises(InvalidInput, match=r"by moments they may have one.*hours"):
        people.logit_by_likelihood("smokes ~ hours")
