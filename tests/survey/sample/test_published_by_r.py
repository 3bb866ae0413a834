"""The documented examples of R's `survey`: its data sets api and nhanes, with the figures that it gives for them.

The data are those of the package (4.1-1; Lumley 2004, https://r-survey.r-forge.r-project.org/survey/): the Academic
Performance Index of California's schools, a stratified and a clustered sample, and NHANES 2009 and 2010. Columns that
are not used here were left out. The figures are printed by R, with ten digits, by the calls that stand beside them;
`svymean(~api00, dclus1)` and its like are the examples of `?svydesign`, `?svymean`, `?svyby`, `?svyglm` and `?nhanes`.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ldpopt.channel import Channel
from ldpopt_survey import (
    Jackknife,
    SampleDesign,
    SampledReports,
    estimate,
    linear_regression,
    logit_by_moments,
    logit_regression,
    post_stratify,
    rake,
    two_way,
)
from ldpopt_survey.regress.result import Subsample

DATA = Path(__file__).parent / "data"
STRAT, CLUS1 = (pd.read_csv(DATA / f"{name}.csv") for name in ("apistrat", "apiclus1"))
NHANES = pd.read_csv(DATA / "nhanes.csv.gz")
DSTRAT = SampleDesign(STRAT.pw, strata=STRAT.stype, fpc=STRAT.fpc)
DCLUS1 = SampleDesign(CLUS1.pw, clusters=CLUS1.dnum, fpc=CLUS1.fpc)
NEST = SampleDesign(NHANES.WTMEC2YR, strata=NHANES.SDMVSTRA, clusters=NHANES.SDMVPSU)
SCHOOLS = {"E": 4421, "H": 755, "M": 1018}


def mean(column, frame, design, inside=None):
    """The mean and its standard error, as the regression on a constant."""
    kept = np.ones(len(frame), dtype=bool) if inside is None else np.asarray(inside)
    sample = design if inside is None else Subsample(design, kept)
    made = linear_regression(f"{column} ~ 1", frame[kept], {}, sample=sample)
    return float(made.values[0]), float(made.standard_errors[0, 0])


def shares(column, frame, design, inside=None):
    """The shares of the values of a column, in their order, by the channel that tells the answer."""
    kinds = sorted(frame[column].dropna().unique())
    table = SampledReports.of(frame[column].fillna(kinds[0]), Channel(np.eye(len(kinds)), kinds, kinds), design)
    return estimate(table if inside is None else table.where(np.asarray(inside)), table.channel)


@pytest.mark.parametrize(
    ("column", "frame", "design", "want"),
    [
        ("api00", STRAT, DSTRAT, (662.28736, 9.408940803)),  # svymean(~api00, dstrat)
        ("api00", CLUS1, DCLUS1, (644.1694, 23.54224069)),  # svymean(~api00, dclus1)
    ],
)
def test_means(column, frame, design, want):
    assert np.allclose(mean(column, frame, design), want, rtol=1e-6)


@pytest.mark.parametrize(
    ("frame", "design", "want"),
    [(STRAT, DSTRAT, (3687177.5, 114641.7161)), (CLUS1, DCLUS1, (3404940.1, 932235.027))],
)
def test_totals(frame, design, want):
    """svytotal(~enroll, dstrat), svytotal(~enroll, dclus1)."""
    enrolled = frame.enroll.to_numpy(dtype=float)
    zero = np.zeros((len(design.units), 1, 1))  # no channel, no noise
    error = design.total_variance(enrolled, zero).covariance[0, 0] ** 0.5
    assert np.allclose((design.total(enrolled)[0], error), want, rtol=1e-7)


def test_shares():
    """svymean(~stype, dclus1), svymean(~sch.wide, dstrat)."""
    made = shares("stype", CLUS1, DCLUS1)
    assert np.allclose(made.values, [0.786885246, 0.076502732, 0.136612022], atol=1e-9)
    assert np.allclose(made.standard_errors, [0.04633655365, 0.02681021905, 0.02964904664], rtol=1e-8)
    made = shares("sch.wide", STRAT, DSTRAT)
    assert np.allclose(made.values, [0.17205199, 0.82794801], atol=1e-8)
    assert np.allclose(made.standard_errors, 0.02434478011, rtol=1e-8)


def test_groups():
    """svyby(~api00, ~stype, dclus1, svymean); the same of ~sch.wide, and of ~api99 in dstrat; degf of a subset."""
    want = {"E": (648.8680556, 22.36240889), "H": (618.5714286, 38.02024936), "M": (631.4400000, 31.60946523)}
    for stype, figures in want.items():
        assert np.allclose(mean("api00", CLUS1, DCLUS1, CLUS1.stype == stype), figures, rtol=1e-8)
    yes = {"E": (0.9166666667, 0.02098427895), "H": (0.7857142857, 0.09146190999), "M": (0.68, 0.10950224840)}
    for stype, figures in yes.items():
        made = shares("sch.wide", CLUS1, DCLUS1, CLUS1.stype == stype)
        assert np.allclose((made.values[1], made.standard_errors[1]), figures, rtol=1e-8)
    of_strata = {"E": (635.87, 13.18767808), "H": (617.36, 15.27341978), "M": (610.20, 16.34219218)}
    for stype, figures in of_strata.items():
        assert np.allclose(mean("api99", STRAT, DSTRAT, STRAT.stype == stype), figures, rtol=1e-8)
    improved = (CLUS1["comp.imp"] == "Yes").to_numpy()
    assert np.allclose(mean("api00", CLUS1, DCLUS1, improved), (648.40602, 22.47502152), rtol=1e-7)
    assert DCLUS1.degrees(improved) == 13


def coefficients(made):
    return dict(zip(made.names, zip(made.values, made.standard_errors.ravel(), strict=True), strict=True))


@pytest.mark.parametrize(
    ("frame", "design", "want", "degrees"),
    [
        (STRAT, DSTRAT, [(820.8873159056, 10.0777359499), (-0.4805866122, 0.3919734032),
                         (-3.1415353100, 0.2839465064), (0.2257132102, 0.3932183620)], 194),
        (CLUS1, DCLUS1, [(819.2790511391, 21.3899712652), (-0.5167217797, 0.3240039450),
                         (-3.1232042649, 0.2780830438), (-0.1689196822, 0.4449184192)], 11),
    ],
)  # fmt: skip
def test_linear_models(frame, design, want, degrees):
    """svyglm(api00 ~ ell + meals + mobility, design = dstrat), and dclus1: coefficients, errors, degrees."""
    made = linear_regression("api00 ~ ell + meals + mobility", frame, {}, sample=design)
    assert np.allclose(np.column_stack([made.values, made.standard_errors[0]]), want, rtol=1e-8)
    assert made.degrees == degrees


def test_p_values():
    """The p-values of svyglm(api00 ~ ell + meals + mobility, design = dclus1), which has 11 degrees."""
    made = linear_regression("api00 ~ ell + meals + mobility", CLUS1, {}, sample=DCLUS1)
    want = [4.646620300e-13, 1.390634673e-01, 2.290507412e-07, 7.114222317e-01]
    assert np.allclose(made.p_values[0], want, rtol=1e-6)


def test_interactions():
    """svyglm(api00 ~ ell * stype, design = dstrat)."""
    made = coefficients(linear_regression("api00 ~ ell*stype", STRAT, {}, sample=DSTRAT))
    want = {
        "Intercept": (771.2316267159, 12.5712129757), "ell": (-3.8505022560, 0.3435066119),
        "stype[H]": (-59.0052345258, 18.5069940533), "stype[M]": (-47.2901557879, 26.8261669763),
        "ell:stype[H]": (-2.4108305114, 0.7739682438), "ell:stype[M]": (-0.5830749485, 0.8844351584),
    }  # fmt: skip
    assert set(made) == set(want)
    assert all(np.allclose(made[name], want[name], rtol=1e-8) for name in want)


@pytest.mark.parametrize("function", [logit_regression, logit_by_moments])
def test_logistic_models(function):
    """svyglm(sw ~ ell + meals + mobility, design = dstrat, family = quasibinomial()), where sw is sch.wide == "Yes"."""
    made = coefficients(function("s ~ ell + meals + mobility", STRAT.assign(s=STRAT["sch.wide"]), {}, sample=DSTRAT))
    want = {
        "Intercept": (0.835836524845, 0.455620878360), "ell": (-0.002489635749, 0.013252510219),
        "meals": (-0.003152365112, 0.009199453609), "mobility": (0.060896778728, 0.031934576937),
    }  # fmt: skip
    assert all(np.allclose(made[name], want[name], rtol=1e-5) for name in want)


def test_replicates():
    """as.svrepdesign(dclus1, type = "JK1", mse = TRUE) without its fpc: svymean, and svyglm fitted under each."""
    jackknife = SampleDesign(CLUS1.pw, clusters=CLUS1.dnum, method=Jackknife())
    assert np.allclose(mean("api00", CLUS1, jackknife), (644.1694, 26.59971372), rtol=1e-6)
    made = linear_regression("api00 ~ ell + meals + mobility", CLUS1, {}, sample=jackknife)
    want = [23.2211048430, 0.3553345604, 0.3004494525, 0.5443205521]
    assert np.allclose(made.standard_errors[0], want, rtol=1e-8)
    frame = CLUS1.assign(s=CLUS1["sch.wide"])
    for function in (logit_regression, logit_by_moments):
        fit = function("s ~ ell + meals", frame, {}, sample=jackknife)
        assert np.allclose(fit.values, [1.89955691114, 0.03992541080, -0.01911468247], rtol=1e-5)
        assert np.allclose(fit.standard_errors[0], [0.54092992654, 0.01372876282, 0.00971314919], rtol=1e-4)


def test_known_margins():
    """postStratify(dclus1, ~stype, ...) and rake(dclus1, list(~stype, ~sch.wide), ...).

    R takes residuals from the margins with design weights, this package with raked ones: errors agree in per cent.
    """
    made = post_stratify(DCLUS1, CLUS1.stype, SCHOOLS)
    value, error = mean("api00", CLUS1, made)
    assert np.isclose(value, 642.31079, rtol=1e-7)
    assert np.isclose(error, 23.92048645, rtol=1e-6)
    made = rake(DCLUS1, [(CLUS1.stype, SCHOOLS), (CLUS1["sch.wide"], {"No": 1072, "Yes": 5122})])
    assert np.allclose((made.weights.min(), made.weights.max()), (29.87046387, 67.12578263), rtol=1e-5)
    value, error = mean("api00", CLUS1, made)
    assert np.isclose(value, 641.23025, rtol=1e-6)
    assert np.isclose(error, 23.70364124, rtol=0.01)
    total = made.total(CLUS1.enroll.to_numpy(dtype=float))[0]
    assert np.isclose(total, 3647300, rtol=1e-5)  # R stops raking at a difference of one school


def test_independence():
    """svychisq(~sch.wide + stype, dstrat, statistic = "Wald"): F with 2 degrees above.

    In clusters of several sizes the two differ: R's statistic is of totals, whose number of schools is estimated, too.
    """
    codes = [pd.Categorical(STRAT[name]) for name in ("sch.wide", "stype")]
    channels = [Channel(np.eye(len(code.categories)), tuple(code.categories)) for code in codes]
    made = two_way(*(code.codes for code in codes), *channels, sample=DSTRAT)
    assert np.isclose(made.independence().statistic / 2, 16.132022, rtol=1e-6)


def test_nhanes():
    """svymean(~HI_CHOL, ...), svyby(~HI_CHOL, ~race + RIAGENDR, ...), svyby(~HI_CHOL, ~agecat, ...), nest = TRUE."""
    known = NHANES.HI_CHOL.notna().to_numpy()
    assert np.allclose(mean("HI_CHOL", NHANES, NEST, known), (0.11214296, 0.005445839699), rtol=1e-6)
    of_ages = {"(0,19]": (0.008660267311, 0.002666899280), "(19,39]": (0.078891392456, 0.009069232926),
               "(39,59]": (0.178493821380, 0.010984692636), "(59,Inf]": (0.155297282631, 0.012568104893)}  # fmt: skip
    for age, want in of_ages.items():
        made = shares("HI_CHOL", NHANES, NEST, known & (NHANES.agecat == age))
        assert np.allclose((made.values[1], made.standard_errors[1]), want, rtol=1e-6)
    of_both = {(1, 1): (0.11467328987, 0.005222902130), (2, 1): (0.09972518789, 0.008704838139),
               (3, 1): (0.07782512222, 0.008944427471), (4, 1): (0.11324846348, 0.033198802519),
               (1, 2): (0.08764645670, 0.011278498957), (2, 2): (0.14291530623, 0.007839530517),
               (3, 2): (0.07931720915, 0.015624732287), (4, 2): (0.08788822516, 0.028509350754)}  # fmt: skip
    for (race, sex), want in of_both.items():
        inside = known & (NHANES.race == race) & (sex == NHANES.RIAGENDR)
        assert np.allclose(mean("HI_CHOL", NHANES, NEST, inside), want, rtol=1e-6)


@pytest.mark.parametrize("function", [logit_regression, logit_by_moments])
def test_nhanes_logistic(function):
    """svyglm(HI_CHOL ~ factor(race) + agecat + factor(RIAGENDR), family = quasibinomial()): 9 degrees of freedom."""
    known = NHANES.HI_CHOL.notna().to_numpy()
    data = NHANES[known].assign(HI_CHOL=lambda frame: frame.HI_CHOL.astype(int))
    made = function("HI_CHOL ~ C(race) + agecat + C(RIAGENDR)", data, {}, sample=Subsample(NEST, known))
    want = {
        "Intercept": (-4.73798322303, 0.31949872916), "race[2]": (-0.08488650659, 0.07988336581),
        "race[3]": (-0.43321864381, 0.15119309879), "race[4]": (-0.14621234717, 0.33641568320),
        "agecat[(19,39]]": (2.27973442041, 0.32702298077), "agecat[(39,59]]": (3.21236043170, 0.35586794876),
        "agecat[(59,Inf]]": (3.02996938072, 0.35056881805), "RIAGENDR[2]": (0.21276049520, 0.08461278040),
    }  # fmt: skip
    found = coefficients(made)
    assert set(found) == set(want)
    assert all(np.allclose(found[name], want[name], rtol=2e-5) for name in want)
    assert made.degrees == 9
