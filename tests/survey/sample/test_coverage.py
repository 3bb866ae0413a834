"""Intervals cover as often as they say: the quick form of `experiments/trust/coverage.py`."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

SCRIPT = Path(__file__).resolve().parents[3] / "experiments" / "trust" / "coverage.py"
SURVEYS = 80
LEAST = 0.85
"""Four standard errors of a share of 0.95 over 80 surveys below it."""


@pytest.fixture(scope="module")
def coverage():
    spec = importlib.util.spec_from_file_location("coverage_of_surveys", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["weighted", "clustered", "census_of_villages", "raked", "by_group", "cheating_detection", "private_groups"]
)
def test_coverage(coverage, name):
    """Of 80 surveys with a fixed seed, at least 85 % of the 95 % intervals of every quantity hold the truth."""
    found = coverage.cover(name, SURVEYS, seed=7)
    assert found
    assert min(found.values()) >= LEAST, found
    bounded = {quantity: share for quantity, share in found.items() if "bounds" not in quantity}
    # Intervals that always hold would be too wide to be of use.
    assert sum(bounded.values()) / len(bounded) < 0.99


def test_ignoring_the_design_does_not_cover():
    """The same clustered samples, taken for simple ones, cover far less often: the design makes the difference."""
    import numpy as np

    from ldpopt.channel import Channel
    from ldpopt_survey import SampleDesign, SampledReports, estimate

    q, rng, hits = Channel([[0.9, 0.1], [0.1, 0.9]]), np.random.default_rng(3), np.zeros(2)
    for _ in range(200):
        rate = np.clip(rng.normal(0.4, 0.2, 30), 0, 1)
        cluster = np.repeat(np.arange(30), 40)
        y = q.sample_indices((rng.random(1200) < rate[cluster]).astype(int), rng)
        for at, design in enumerate((SampleDesign(size=1200), SampleDesign(clusters=cluster))):
            hits[at] += estimate(SampledReports.of(y, q, design), q).intervals().contains([0.6, 0.4])[1]
    assert hits[0] / 200 < 0.7
    assert hits[1] / 200 > 0.89
