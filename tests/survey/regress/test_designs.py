"""Regressions of samples: replicates, finite populations, single units, weights of 0; separation; any mean."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

from ldpopt.channel import Channel
from ldpopt.errors import SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import (
    GivenReplicates,
    Jackknife,
    LonelyUnit,
    RescaledBootstrap,
    SampleDesign,
    linear_regression,
    logit_by_moments,
    logit_regression,
)
from ldpopt_survey.regress.result import Subsample

YES = Channel([[0.8, 0.2], [0.25, 0.75]], ("no", "yes"), (0, 1))
THREE = randomized_response(3, 2.0, inputs=("a", "b", "c"))
CHANNELS = {"y": YES, "p": THREE}
FITS = (linear_regression, logit_by_moments, logit_regression)


def people(rng, n, units=20):
    x, cluster = rng.normal(size=n).round(1), rng.integers(0, units, n)
    p = rng.integers(0, 3, n)
    answers = (rng.random(n) < expit(-0.3 + 0.8 * x + 0.5 * (p == 1))).astype(int)
    return x, cluster, p, answers


def reported(rng, x, p, answers):
    return {
        "x": x,
        "y": YES.sample_indices(answers, rng),
        "p": [THREE.outputs[i] for i in THREE.sample_indices(p, rng)],
    }


def fitted(function, data, sample, formula="y ~ x"):
    more = {"scores": [0.0, 1.0]} if function is linear_regression else {}
    return function(formula, data, {name: CHANNELS[name] for name in formula.split() if name in CHANNELS},
                    sample=sample, **more)  # fmt: skip


@pytest.mark.parametrize("function", FITS)
def test_the_jackknife_fits_again_without_each_unit(function):
    """The loop that leaves a unit out, raises the weights of its stratum, and fits anew [Wolter]."""
    rng = np.random.default_rng(11)
    x, cluster, p, _ = people(rng, 400)
    alike = rng.normal(size=(2, 20))[:, cluster]  # units differ, so that their variance is more than the channel's
    answers = (rng.random(400) < expit(1.5 * alike[0] + (0.8 + 1.5 * alike[1]) * x)).astype(int)
    data, w, stratum = reported(rng, x, p, answers), rng.uniform(1, 2, 400), cluster % 2
    made = fitted(function, data, SampleDesign(w, stratum, cluster, method=Jackknife()))
    whole, loop = fitted(function, data, SampleDesign(w, stratum, cluster)), np.zeros((2, 2))
    for unit in range(20):
        h = stratum == unit % 2
        again = np.where(cluster == unit, 0.0, np.where(h, w * 10 / 9, w))
        away = fitted(function, data, SampleDesign(again)).values - whole.values
        loop += 0.9 * np.outer(away, away)
    assert np.allclose(made.values, whole.values, atol=1e-8)
    assert np.allclose(made.covariance, loop, rtol=2e-3, atol=1e-8)
    assert np.allclose(made.covariance, whole.covariance, rtol=0.25)
    assert made.degrees == whole.degrees == 17


@pytest.mark.full(but=1)
@pytest.mark.parametrize("function", FITS)
def test_the_bootstrap_and_given_replicates_agree_with_linearization(function):
    """Both fit again under every replicate; the same weights given by hand give the same as the jackknife."""
    rng = np.random.default_rng(12)
    x, cluster, p, answers = people(rng, 600, 30)
    data = reported(rng, x, p, answers)
    plain = fitted(function, data, SampleDesign(clusters=cluster))
    drawn = fitted(function, data, SampleDesign(clusters=cluster, method=RescaledBootstrap(400, 3)))
    assert np.allclose(drawn.standard_errors, plain.standard_errors, rtol=0.2)
    out = (cluster[:, None] != np.arange(30)) * 30 / 29
    given = fitted(function, data, SampleDesign(size=600, method=GivenReplicates(out, 29 / 30)))
    left = fitted(function, data, SampleDesign(clusters=cluster, method=Jackknife()))
    assert np.allclose(given.covariance, left.covariance, rtol=1e-6)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("formula", ["y ~ x", "y ~ x + p"])
@pytest.mark.parametrize("function", FITS)
def test_a_census_has_the_error_of_the_channels_alone(function, formula):
    """Over many randomizations of the same people, the coefficients vary as the errors of a census say."""
    rng = np.random.default_rng(13)
    x, _, p, answers = people(rng, 3000)
    census, plain = SampleDesign(size=3000, fpc=np.full(3000, 3000)), SampleDesign(size=3000)
    rounds = 60
    fits = [fitted(function, reported(rng, x, p, answers), census, formula) for _ in range(rounds)]
    seen = np.std([fit.values for fit in fits], axis=0)
    told = np.mean([fit.standard_errors.ravel() for fit in fits], axis=0)
    assert (np.abs(told / seen - 1) < 4 / math.sqrt(2 * rounds)).all()
    assert math.isinf(fits[0].degrees)
    wider = fitted(function, reported(rng, x, p, answers), plain, formula).standard_errors.ravel()
    assert (wider > 1.02 * told).all()


def test_the_finite_population_is_that_of_r_without_privacy():
    """Public columns have no noise, so that every unit's variance is multiplied by 1 - f."""
    rng = np.random.default_rng(14)
    x, cluster, _, _ = people(rng, 300)
    data = {"x": x, "t": 5 + x + rng.normal(size=300)}
    plain = linear_regression("t ~ x", data, {}, sample=SampleDesign(clusters=cluster))
    finite = linear_regression("t ~ x", data, {}, sample=SampleDesign(clusters=cluster, fpc=np.full(300, 50)))
    assert np.allclose(finite.covariance, plain.covariance * (1 - 20 / 50), rtol=1e-9)


@pytest.mark.parametrize("function", FITS)
def test_a_group_inside_one_unit_has_no_degrees_of_freedom(function):
    """Its errors are those of the channel, and nothing is significant."""
    rng = np.random.default_rng(15)
    x, cluster, p, answers = people(rng, 2000, 8)
    data = reported(rng, x, p, answers)
    inside = cluster == 3
    group = {name: np.asarray(column, dtype=object)[inside] for name, column in data.items()} | {"x": x[inside]}
    for method in (None, Jackknife()):
        design = SampleDesign(clusters=cluster, **({} if method is None else {"method": method}))
        made = fitted(function, group, Subsample(design, inside))
        census = fitted(function, group, SampleDesign(size=inside.sum(), fpc=np.full(inside.sum(), inside.sum())))
        assert made.degrees == 0
        assert np.allclose(made.standard_errors, census.standard_errors, rtol=1e-6)
        assert (made.p_values == 1).all()
        assert np.isinf(made.intervals().width).all()


@pytest.mark.parametrize("function", FITS)
def test_weights_of_zero_change_nothing(function):
    """The fit is that without them."""
    rng = np.random.default_rng(16)
    x, cluster, p, answers = people(rng, 500)
    data, w = reported(rng, x, p, answers), np.where(np.arange(500) % 4, rng.uniform(1, 3, 500), 0.0)
    kept = w > 0
    some = {name: np.asarray(column, dtype=object)[kept] for name, column in data.items()} | {"x": x[kept]}
    made = fitted(function, data, SampleDesign(w, clusters=cluster))
    want = fitted(function, some, SampleDesign(w[kept], clusters=cluster[kept]))
    assert np.allclose(made.values, want.values, atol=1e-7)
    assert np.allclose(made.covariance, want.covariance, rtol=1e-5)
    assert made.degrees == want.degrees


def test_units_that_were_certain_count_in_regressions():
    """With `LonelyUnit.CERTAINTY` a stratum of one unit adds the variance of its channel."""
    rng = np.random.default_rng(17)
    x, cluster, p, answers = people(rng, 600)
    data = reported(rng, x, p, answers)
    stratum = np.where(cluster == 0, 1, 0)
    errors = {
        lonely: fitted(
            logit_by_moments, data, SampleDesign(clusters=cluster, strata=stratum, lonely=lonely)
        ).standard_errors
        for lonely in (LonelyUnit.CERTAINTY, LonelyUnit.CENTRED, LonelyUnit.AVERAGE)
    }
    assert all(np.isfinite(error).all() for error in errors.values())
    assert not np.allclose(errors[LonelyUnit.CERTAINTY], errors[LonelyUnit.AVERAGE])


@pytest.mark.parametrize("where", [600.0, -600.0, 1e6, 1e-6, 0.0])
def test_a_linear_model_is_not_limited_like_logits(where):
    """Least squares of an outcome with any mean and any unit is that of statsmodels."""
    rng = np.random.default_rng(18)
    x = rng.normal(size=200)
    for unit in (1.0, 1e-8, 1e8):
        t = (where + x + rng.normal(size=200)) * unit
        made = linear_regression("t ~ x", {"x": x * 1e3, "t": t}, {})
        want = sm.OLS(t, sm.add_constant(x * 1e3)).fit(cov_type="HC1")
        assert np.allclose(made.values, want.params, rtol=1e-9, atol=1e-12 * unit)
        assert np.allclose(made.standard_errors[0], want.bse, rtol=1e-8)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0, 20.0, None])
@pytest.mark.parametrize("function", FITS[1:])
def test_separation_is_an_error_and_no_number(function, epsilon):
    """All reports of a small group are "yes": no finite log-odds, at any epsilon, in a group of any size."""
    channel = Channel(np.eye(2)) if epsilon is None else randomized_response(2, epsilon)
    rng = np.random.default_rng(19)
    for n, few in ((400, 20), (400, 200), (5000, 10), (40, 20)):
        group = np.repeat(["few", "rest"], [few, n - few])
        y = np.where(group == "few", 1, rng.integers(0, 2, n))
        for formula in ("y ~ group", "y ~ 0 + group", "y ~ x:group"):
            for data in ({"y": y, "group": group, "x": np.ones(n)}, {"y": 1 - y, "group": group, "x": np.ones(n)}):
                with pytest.raises(SolverError, match=r"no finite coefficients|apart"):
                    function(formula if "x" not in formula else "y ~ 0 + x:group", data, {"y": channel})
