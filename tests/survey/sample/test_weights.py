"""Bounded calibration and trimming of weights: R's figures, margins met, bounds kept, and what cannot be met."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, SolverError
from ldpopt_survey import (
    Jackknife,
    SampleDesign,
    SampledReports,
    SampleSpec,
    estimate,
    linear_regression,
    rake,
    trim,
)

CLUS1 = pd.read_csv(Path(__file__).parent / "data" / "apiclus1.csv")
DCLUS1 = SampleDesign(CLUS1.pw, clusters=CLUS1.dnum, fpc=CLUS1.fpc)
MARGINS = [(CLUS1.stype, {"E": 4421, "H": 755, "M": 1018}), (CLUS1["sch.wide"], {"No": 1072, "Yes": 5122})]


def test_bounded_weights_are_those_of_r():
    """calibrate(dclus1, ~stype + sch.wide, c(6194, 755, 1018, 5122), bounds = c(.6, 1.7), calfun = "logit")."""
    made = rake(DCLUS1, MARGINS, (0.6, 1.7))
    factors = made.weights / DCLUS1.weights
    assert np.allclose((factors.min(), factors.max()), (0.8755709282, 1.6681295638), rtol=1e-6)
    fit = linear_regression("api00 ~ 1", CLUS1, {}, sample=made)
    assert np.isclose(fit.values[0], 640.66945, rtol=1e-7)
    assert np.isclose(fit.standard_errors[0, 0], 23.93475382, rtol=0.01)  # R's residuals have design weights


@pytest.mark.parametrize("bounds", [(0.0, 1.65), (0.86, 1.7), (0.5, 3.0), (0.1, 100.0)])
def test_margins_are_met_within_the_bounds(bounds):
    """Every total is met, every factor is inside, also for weights of another size and for replicates."""
    for unit in (1.0, 1e-3):
        design = SampleDesign(CLUS1.pw * unit, clusters=CLUS1.dnum, method=Jackknife())
        made = rake(design, MARGINS, bounds)
        for groups, totals in MARGINS:
            for group, total in totals.items():
                assert np.isclose(made.weights[groups == group].sum(), total, rtol=1e-9)
        factors = made.weights / design.weights * (design.weights.sum() / 6194)
        assert factors.min() >= bounds[0] - 1e-9
        assert factors.max() <= bounds[1] + 1e-9
    wide = rake(SampleDesign(CLUS1.pw, clusters=CLUS1.dnum), MARGINS, (1e-6, 1e6)).weights
    assert np.allclose(wide, rake(DCLUS1, MARGINS).weights, rtol=1e-3)  # without bounds it is raking
    zero = SampleDesign(np.where(np.arange(183) % 5, CLUS1.pw, 0.0), clusters=CLUS1.dnum)
    assert (rake(zero, MARGINS, (0.3, 3.0)).weights[::5] == 0).all()


def test_replicates_are_calibrated_within_the_bounds_too():
    """An estimate of a margin's own groups has no sampling error, by linearization and by replicates."""
    channel = Channel(np.eye(3), ("E", "H", "M"), ("E", "H", "M"))
    plain = SampleDesign(CLUS1.pw, clusters=CLUS1.dnum)
    for design in (plain, plain.with_method(Jackknife())):
        made = estimate(SampledReports.of(CLUS1.stype, channel, rake(design, MARGINS, (0.2, 5.0))), channel)
        assert np.allclose(made.values, np.array([4421, 755, 1018]) / 6194, rtol=1e-9)
        assert made.standard_errors.max() < 1e-8


@pytest.mark.parametrize("bounds", [(0.95, 1.3), (0.99, 1.01)])
def test_bounds_that_are_too_narrow_are_an_error(bounds):
    with pytest.raises(SolverError, match="widen the"):
        rake(DCLUS1, MARGINS, bounds)


@pytest.mark.parametrize(
    "bounds", [(1.0, 2.0), (0.5, 1.0), (2.0, 0.5), (-0.1, 2.0), (0.5,), (0.5, 1.5, 2.0), (0.5, np.nan)]
)
def test_bounds_are_on_both_sides_of_one(bounds):
    with pytest.raises(InvalidInput, match="bounds"):
        rake(DCLUS1, MARGINS, bounds)


def test_trimmed_weights_are_those_of_r():
    """trimWeights(..., upper = 8), and upper = 5 with strict = TRUE: the sum stays, nothing is above."""
    w = [1.0, 2.0, 3.0, 4.0, 20.0, 1.0, 2.0]
    assert trim(SampleDesign(w), 8).weights.tolist() == [3, 4, 5, 6, 8, 3, 4]
    strict = trim(SampleDesign(w), 5).weights
    assert strict.max() <= 5
    assert np.isclose(strict.sum(), 33)
    assert trim(SampleDesign(w), 20).weights.tolist() == w
    assert trim(SampleDesign([0.0, *w]), 8).weights.tolist() == [0, 3, 4, 5, 6, 8, 3, 4]
    assert trim(SampleDesign([3.0, 3.0]), 3).weights.tolist() == [3, 3]
    for largest in (4.0, 0.0, -1.0, np.nan, np.inf * -1):
        with pytest.raises(InvalidInput):
            trim(SampleDesign(w), largest)


def test_a_survey_declares_them():
    """[sample] with bounds and largest_weight: the same as by hand; bounds without margins are refused."""
    declared = SampleSpec.from_dict({
        "weights": "pw", "largest_weight": 40.0, "bounds": [0.5, 2.0],
        "margins": {"stype": {"E": 4421, "H": 755, "M": 1018}},
    })  # fmt: skip
    w = np.where(np.arange(183) % 9, CLUS1.pw, 60.0)
    made = declared.design({"pw": [f"{value:.17g}" for value in w], "stype": CLUS1.stype.tolist()})
    want = rake(trim(SampleDesign(w), 40.0), MARGINS[:1], (0.5, 2.0))
    assert np.allclose(made.weights, want.weights)
    assert SampleSpec.from_dict(declared.to_dict()) == declared
    with pytest.raises(InvalidInput, match="margins"):
        SampleSpec(weights="w", bounds=(0.5, 2.0))
