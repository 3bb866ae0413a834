"""Intervals cover as often as they say: the quick forms of `experiments/trust/coverage.py` and of two in surveys."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.full

EXPERIMENTS = Path(__file__).resolve().parents[3] / "experiments"
SURVEYS = 80
LEAST = 0.85
"""Four standard errors of a share of 0.95 over 80 surveys below it."""


def script(path: str) -> ModuleType:
    """A script among the experiments, as a module."""
    name = "script_" + Path(path).stem
    spec = importlib.util.spec_from_file_location(name, EXPERIMENTS / path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def coverage():
    return script("trust/coverage.py")


@pytest.fixture(scope="module")
def unforeseen():
    return script("surveys/coverage/unforeseen.py")


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


def test_tables_in_villages_are_not_covered_too_often():
    """Split plan 47 in 60 villages: the channel's noise beside Student's quantile covered 96.9 % of the cells."""
    (row,) = script("surveys/coverage/tables.py").simulate(47, 1200)
    assert row["cells"] == 25
    assert row["outside"] == 0
    assert 0.95 <= row["coverage"] <= 0.9635


KINDS = {
    "equal answers, 200": (0.94, 0.98),
    "equal answers, epsilon 8, 600 in 60 villages": (0.94, 0.98),
    "an answer of nobody, epsilon 4, 1000": (0.94, 0.98),
    "an answer of nobody, 600 in 30 villages": (0.94, 0.985),
    "half in one village, villages that differ": (0.935, 0.98),
    "half in one village, epsilon 4, villages that differ": (0.935, 0.985),
    "a group of zero weights: all": (0.93, 0.98),
    "a group of zero weights: the others": (0.94, 0.985),
    "30% of reports are missing, 30 villages": (0.94, 0.98),
    "a group of 3": (0.96, 1.0),
    "a group of 3, 30 villages": (0.96, 1.0),
    "a group of 3 against 297": (0.95, 1.0),
    "a group of 3 against 297, 30 villages, epsilon 4": (0.95, 1.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_that_no_estimator_was_designed_for(unforeseen, kind):
    """Of 400 surveys the intervals cover about 95 %; groups of three respondents more, and they are marked."""
    row = unforeseen.covered(unforeseen.kinds()[kind], 400, kind)
    least, most = KINDS[kind]
    assert row["refused"] == "0"
    assert least <= float(row["coverage %"]) / 100 <= most
    assert (float(row["of few reports %"]) == 100) == ("a group of 3" in kind)


@pytest.mark.parametrize(
    "kind",
    [
        "a group of zero weights: the group",
        "one respondent a stratum, strata that differ: refuse",
        "one respondent a stratum, strata that differ: average",
    ],
)
def test_what_cannot_be_estimated_is_refused(unforeseen, kind):
    """Nobody with a weight, or no stratum with two units: `InvalidInput` in every survey."""
    assert unforeseen.covered(unforeseen.kinds()[kind], 5, kind)["refused"] == "5"
