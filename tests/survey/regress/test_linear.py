import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt_survey import SampleDesign, linear_regression

Q = [[0.8, 0.2], [0.2, 0.8]]


def people(rng, n):
    frame = pd.DataFrame({"age": rng.normal(50, 15, n), "works": rng.integers(0, 2, n)})
    frame["hours"] = 2 + 0.1 * frame.age + 3 * frame.works + rng.normal(size=n) * (1 + frame.works)
    return frame


def test_without_privacy_it_is_least_squares():
    """Coefficients and errors are those of statsmodels' OLS with HC1."""
    frame = people(np.random.default_rng(321), 500)
    want = smf.ols("hours ~ age * works", frame).fit(cov_type="HC1")
    for channels in ({}, {"works": np.eye(2)}):
        made = linear_regression("hours ~ age * works", frame, channels)
        assert np.allclose(made.values, want.params[list(made.names)], rtol=1e-8)
        assert np.allclose(made.standard_errors[0], want.bse[list(made.names)], rtol=1e-8)


def test_private_numbers_and_predictors_are_unbiased():
    """Over many surveys the average coefficient is the truth, and the errors are the scatter."""
    rng = np.random.default_rng(322)
    channel = randomized_response(4, 2.0)
    made = []
    for _ in range(200):
        works = rng.integers(0, 2, 1500)
        level = np.clip(works + rng.integers(0, 3, 1500), 0, 3)
        reports = channel.sample_indices(level, rng)
        seen = np.where(rng.random(1500) < 0.8, works, 1 - works)
        data = {"level": reports, "works": seen}
        made.append(linear_regression("level ~ works", data, {"level": channel, "works": Q}))
    values = np.array([one.values for one in made])
    assert np.allclose(values.mean(axis=0), [1.0, 1.0], atol=5 * values.std(axis=0).max() / np.sqrt(200))
    error = np.mean([one.standard_errors[0] for one in made], axis=0)
    assert np.allclose(values.std(axis=0), error, rtol=0.25)


def test_a_constant_is_the_mean():
    """y ~ 1 is the unbiased mean of the answers."""
    made = linear_regression("y ~ 1", {"y": [0, 1, 1, 1]}, {"y": Q})
    assert np.isclose(made.values[0], (0.75 - 0.2) / 0.6)


def test_weights_are_weighted_least_squares():
    """statsmodels' WLS with HC0 errors, but for the n/(n - 1) of the sample."""
    rng = np.random.default_rng(323)
    frame, w = people(rng, 400), rng.uniform(0.5, 2, 400)
    want = smf.wls("hours ~ age", frame, weights=w).fit(cov_type="HC0")
    made = linear_regression("hours ~ age", frame, {}, sample=SampleDesign(w))
    assert np.allclose(made.values, want.params, rtol=1e-8)
    assert np.allclose(made.standard_errors[0], want.bse * np.sqrt(400 / 399), rtol=1e-8)


def test_outcomes_without_numbers_are_refused():
    """Labels that are not numbers need scores; text needs another regression."""
    with pytest.raises(InvalidInput):
        linear_regression("y ~ 1", {"y": ["a", "b", "a"]}, {})
    with pytest.raises(InvalidInput):
        linear_regression("y ~ 1", {"y": [0, 1, 1]}, {"y": Q}, scores=[1.0])
    with pytest.raises(InvalidInput):
        linear_regression("y ~ x", {"y": [1.0, 2.0, 4.0], "x": ["a", "b", "a"]}, {}, sample=SampleDesign([1, 2]))
