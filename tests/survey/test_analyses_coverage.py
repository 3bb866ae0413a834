"""The quick form of experiments/surveys/analyses: a few settings, a hundred surveys, the same calls."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.full

SCRIPT = Path(__file__).resolve().parents[2] / "experiments" / "surveys" / "analyses" / "run.py"
QUICK = {
    "two-way, private and public, n 1000, epsilon 1": 100,
    "compare groups, n 400, epsilon 2": 150,
    "compare waves, n 1000, epsilon 1 and 2": 150,
    "mean, total, quantiles, n 1000, epsilon 1": 100,
    "logistic, private outcome, n 1000, epsilon 2": 150,
    "linear, private predictor, n 1000, epsilon 1": 100,
}


@pytest.mark.skipif(not SCRIPT.exists(), reason="the experiments are not beside these tests")
@pytest.mark.parametrize("name", QUICK)
def test_intervals_have_their_stated_coverage(name):
    """Every kind of interval holds the truth in 95 % of simulated surveys, within five standard errors."""
    spec = importlib.util.spec_from_file_location("analyses_run", SCRIPT)
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    for kind, surveys, average, least, most in run.cover(name, QUICK[name]):
        error = np.sqrt(0.95 * 0.05 / surveys)
        assert surveys == QUICK[name]
        assert 0.95 - 5.5 * error <= least <= average <= most, (kind, least)
