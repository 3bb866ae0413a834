"""Groups inside few primary units, and weights of zero: the channel's noise, degrees of freedom, lonely strata."""

import math

import numpy as np
import pytest
from typer.testing import CliRunner

from ldpopt.channel import Channel
from ldpopt.cli import app
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    GivenReplicates,
    Jackknife,
    LonelyUnit,
    QuestionSpec,
    RescaledBootstrap,
    SampleDesign,
    SampledReports,
    Simulated,
    Simultaneous,
    SurveySpec,
    difference,
    estimate,
    linear_regression,
    logit_by_moments,
    make_plan,
    post_stratify,
    privatize,
    tables_by_group,
)
from ldpopt_survey.estimate.groups import Source, estimate_booklets
from ldpopt_survey.estimate.intervals import Wald

BINARY = Channel([[0.8, 0.2], [0.2, 0.8]])
METHODS = [None, Jackknife(), RescaledBootstrap(200)]


def alone(channel: Channel, answers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The variances of the estimated shares that the channel's randomness alone gives, answer by answer."""
    inverse = np.linalg.inv(channel.matrix).T
    each = inverse**2 @ channel.matrix.T - np.eye(len(inverse))
    return np.asarray(each[:, answers] @ weights**2 / weights.sum() ** 2)


def designed(method, **more) -> SampleDesign:
    return SampleDesign(**more) if method is None else SampleDesign(**more, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_a_group_inside_one_unit_has_the_noise_of_its_channel_and_no_degrees(method):
    """Its total does not vary between units, but its reports are random all the same, no spread is seen."""
    rng = np.random.default_rng(1)
    village, w = np.repeat(np.arange(8), 25), rng.uniform(1, 3, 200)
    reports = BINARY.sample_indices(rng.integers(0, 2, 200), rng)
    whole = SampledReports.of(reports, BINARY, designed(method, weights=w, clusters=village))
    for group in range(8):
        inside = village == group
        made = estimate(whole.where(inside), BINARY)
        least = alone(BINARY, np.zeros(25, dtype=int), w[inside])[0]  # the same for both answers
        assert made.degrees == 0
        assert np.allclose(made.standard_errors, math.sqrt(least), rtol=1e-9)
        limits = made.intervals()
        assert (limits.lower <= 0).all()
        assert (limits.upper >= 1).all()
        assert np.isfinite(limits.width).all()
        assert (made.intervals(Simultaneous()).width >= limits.width - 1e-12).all()
        assert (made.intervals(Wald()).width >= limits.width - 1e-12).all()
    first, second = (estimate(whole.where(village == group), BINARY) for group in (0, 1))
    apart = difference(first, second)
    assert apart.degrees == 0
    assert (apart.p_values == 1).all()
    assert (apart.standard_errors**2 >= first.standard_errors**2 + second.standard_errors**2 - 1e-12).all()


def test_one_unit_in_each_stratum_has_no_degrees_either():
    """A group with one unit in each of two strata: units less strata is 0, whatever the strata have beside it."""
    rng = np.random.default_rng(2)
    stratum, unit = np.repeat([0, 1], 60), np.repeat(np.arange(12), 10)
    whole = SampledReports.of(rng.integers(0, 2, 120), BINARY, SampleDesign(strata=stratum, clusters=unit))
    assert estimate(whole.where(np.isin(unit, [0, 6])), BINARY).degrees == 0
    assert estimate(whole.where(np.isin(unit, [0, 1, 6])), BINARY).degrees == 1
    assert estimate(whole, BINARY).degrees == 10


def test_equal_units_still_have_the_noise_of_the_channel():
    """Two units whose reports are the same as each other's, and a group all of whose reports are the same."""
    reports = np.tile([0, 0, 1, 1], 2)
    made = estimate(SampledReports.of(reports, BINARY, SampleDesign(clusters=np.repeat([0, 1], 4))), BINARY)
    least = alone(BINARY, np.zeros(8, dtype=int), np.ones(8))[0]
    assert made.degrees == 1
    assert np.allclose(made.standard_errors**2, least)
    made = estimate(SampledReports.of(np.ones(9, int), BINARY, SampleDesign(clusters=np.repeat([0, 1, 2], 3))), BINARY)
    assert np.allclose(made.standard_errors**2, alone(BINARY, np.ones(9, dtype=int), np.ones(9)))
    open_answers = estimate(SampledReports.of(np.ones(9, int), np.eye(2), SampleDesign(size=9)), np.eye(2))
    assert open_answers.standard_errors.tolist() == [0, 0]  # nothing was randomized, and nothing varies


def test_several_booklets_have_the_noise_of_theirs():
    """One question in two booklets of other channels: a census has the variance of the channels, by brute force."""
    rng = np.random.default_rng(3)
    weak = Channel([[0.65, 0.35], [0.35, 0.65]])
    answers, first = rng.integers(0, 2, 400), np.arange(400) < 160
    design = SampleDesign(size=400, fpc=np.full(400, 400))

    def made(reports):
        sources = [
            Source(str(i), channel, np.where(part, reports, -1), np.eye(2), np.array([0.5, 0.5]))
            for i, (channel, part) in enumerate(((BINARY, first), (weak, ~first)))
        ]
        return estimate_booklets(sources, ("no", "yes"), design)

    drawn = [
        made(np.where(first, BINARY.sample_indices(answers, rng), weak.sample_indices(answers, rng)))
        for _ in range(400)
    ]
    # Answers differ between the booklets, which are no census each, so that errors are about their own people's shares.
    share = np.array([answers[first].mean(), answers[~first].mean()])
    weight = np.array([drawn[0].loadings[1, 2 * i + 1] - drawn[0].loadings[1, 2 * i] for i in range(2)])
    weight *= np.array([0.4, 0.6]) * np.array([0.6, 0.3])
    about = np.std([each.values[1] - weight @ share for each in drawn])
    told = np.mean([each.standard_errors[1] for each in drawn])
    assert abs(told / about - 1) < 0.12  # three standard errors of a deviation over 400 surveys are 0.106


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_zero_contributes_nothing(method):
    """Estimates, errors, degrees, units and strata are those without the respondents of weight 0."""
    rng = np.random.default_rng(4)
    n = 120
    w = np.where(rng.random(n) < 0.3, 0.0, rng.uniform(1, 3, n))
    stratum, unit = np.repeat([0, 1, 2], 40), np.repeat(np.arange(24), 5)
    w[:40] = 0  # a whole stratum, and a whole unit
    w[40:45] = 0
    reports, group, fpc = rng.integers(0, 2, n), rng.integers(0, 2, n), np.array([9, 30, 50])[stratum]
    kept = w > 0
    for more in ({}, {"fpc": fpc}):
        every = designed(method, weights=w, strata=stratum, clusters=unit, **more)
        some = {name: column[kept] for name, column in more.items()}
        without = designed(method, weights=w[kept], strata=stratum[kept], clusters=unit[kept], **some)
        assert every.degrees() == without.degrees()
        assert np.array_equal(every.units, without.units)
        for inside in (np.ones(n, dtype=bool), group == 1):
            made = estimate(SampledReports.of(reports, BINARY, every).where(inside), BINARY)
            want = estimate(SampledReports.of(reports[kept], BINARY, without).where(inside[kept]), BINARY)
            assert made.n == want.n
            assert made.degrees == pytest.approx(want.degrees)
            assert np.allclose(made.values, want.values)
            assert np.allclose(made.covariance, want.covariance)
            assert np.allclose(made.intervals().lower, want.intervals().lower)
    raked = post_stratify(SampleDesign(weights=w), group, {0: 50, 1: 70})
    without = post_stratify(SampleDesign(weights=w[kept]), group[kept], {0: 50, 1: 70})
    assert np.allclose(raked.weights[kept], without.weights)
    assert raked.weights[~kept].tolist() == [0.0] * (~kept).sum()
    with pytest.raises(InvalidInput, match="positive weight"):
        SampledReports.of(reports, BINARY, SampleDesign(weights=w)).where(~kept)


@pytest.mark.parametrize("unit", [1e-290, 1e-100, 1e100, 1e290])
def test_the_unit_of_weights_is_of_no_account(unit):
    """Estimates, errors, degrees and regressions of weights in any unit, within one cluster and beyond."""
    rng = np.random.default_rng(8)
    reports, w, cluster = rng.integers(0, 2, 60), rng.uniform(1, 2, 60), np.repeat(np.arange(6), 10)
    for inside in (cluster == 0, cluster < 4):
        for fpc in (None, np.full(60, 9)):
            designs = [SampleDesign(by, clusters=cluster, fpc=fpc) for by in (w * unit, w)]
            made, want = (estimate(SampledReports.of(reports, BINARY, each).where(inside), BINARY) for each in designs)
            assert np.allclose(made.values, want.values)
            assert np.allclose(made.standard_errors, want.standard_errors)
            assert made.degrees == pytest.approx(want.degrees)
    data = {"y": reports, "x": rng.normal(size=60)}
    for function in (logit_by_moments, linear_regression):
        fits = [function("y ~ x", data, {}, sample=SampleDesign(by, clusters=cluster)) for by in (w * unit, w)]
        assert np.allclose(fits[0].standard_errors, fits[1].standard_errors)


def test_given_replicates_of_a_weight_of_zero_count_for_nothing():
    """Zero divided by zero is no weight: what replicates give somebody without a weight is left out."""
    halves = GivenReplicates([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]], 0.5)
    design = SampleDesign(weights=[1.0, 1.0, 0.0], method=halves)
    without = SampleDesign(size=2, method=GivenReplicates([[2.0, 0.0], [0.0, 2.0]], 0.5))
    made = design.total_variance([1.0, 3.0, 700.0]).covariance
    assert np.allclose(made, without.total_variance([1.0, 3.0]).covariance)


def test_average_of_lonely_strata_is_about_the_strata_of_the_group():
    """A group without anybody in the lonely stratum has the variance that it has without the option."""
    rng = np.random.default_rng(5)
    stratum, unit = np.repeat([0, 1, 2], [40, 40, 5]), np.repeat(np.arange(17), 5)
    reports = rng.integers(0, 2, 85)
    for method in (None, Jackknife()):
        whole = SampledReports.of(
            reports, BINARY, designed(method, strata=stratum, clusters=unit, lonely=LonelyUnit.AVERAGE)
        )
        inside = stratum < 2
        plain = SampledReports.of(
            reports[inside], BINARY, designed(method, strata=stratum[inside], clusters=unit[inside])
        )
        made, want = estimate(whole.where(inside), BINARY), estimate(plain, BINARY)
        assert np.allclose(made.covariance, want.covariance)
        assert made.degrees == want.degrees
        refused = SampledReports.of(reports, BINARY, designed(method, strata=stratum, clusters=unit))
        assert np.allclose(estimate(refused.where(inside), BINARY).covariance, want.covariance)
        with pytest.raises(InvalidInput, match="lonely"):
            _ = estimate(refused, BINARY).covariance
        everybody = estimate(whole, BINARY).covariance[0, 0]
        scores = (np.linalg.inv(BINARY.matrix).T[0][reports] - estimate(whole, BINARY).values[0]) / 85
        two = designed(method, strata=stratum[inside], clusters=unit[inside]).total_variance(scores[inside])
        if method is None:
            assert np.isclose(everybody, 1.5 * two.covariance[0, 0])


def test_groups_of_a_census_have_known_noise_and_no_need_of_degrees():
    """Where every unit was drawn the variance is the channel's, so that the intervals are normal ones."""
    reports, group = np.tile([0, 1, 1], 20), np.repeat(["a", "b"], 30)
    made = tables_by_group(reports, BINARY, group, SampleDesign(size=60, fpc=np.full(60, 60)))
    assert math.isinf(estimate(made["a"], BINARY).degrees)
    certain = SampleDesign(clusters=group, strata=group, lonely=LonelyUnit.CERTAINTY)
    assert math.isinf(estimate(SampledReports.of(reports, BINARY, certain), BINARY).degrees)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A survey of ten villages, one weight of zero, and a plan: files for the commands."""
    made = tmp_path_factory.mktemp("villages")
    channel = np.array([[0.9, 0.1], [0.1, 0.9]])
    spec = SurveySpec("demo", (QuestionSpec("smokes", ("no", "yes")), QuestionSpec("job", ("a", "b", "c"))),
                      carry=("village", "w", "sex"))  # fmt: skip
    plan = make_plan(spec, {"smokes": channel, "job": np.full((3, 3), 0.15) + 0.55 * np.eye(3)})
    (made / "plan.json").write_text(plan.to_json(), "utf-8")
    rng = np.random.default_rng(6)
    rows = [
        [
            rng.choice(["no", "yes"]),
            rng.choice(list("abc")),
            f"v{i % 10}",
            "0" if i == 7 else f"{rng.uniform(1, 3):.3f}",
            "fm"[i // 7 % 2],
        ]
        for i in range(1000)
    ]
    (made / "answers.csv").write_text("\n".join(["smokes,job,village,w,sex", *map(",".join, rows)]) + "\n", "utf-8")
    privatize(plan, made / "answers.csv", made / "reports.csv", Simulated(rng))
    return made


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("estimate --by village --weights w", "All of them are of one primary unit"),
        ("estimate --where village=v1 --json", '"standard_errors"'),
        ("report --by village --weights w -o page.html --force", ""),
        ("compare --by village", "1.0000"),
        ("compare --by sex --where village=v1", "no test that all groups agree"),
        ("table smokes job --where village=v1", "No test of independence"),
        ("table smokes job --layer village --percent layer", "No test of independence"),
        ("describe smokes --scores 0,1 --where village=v1", "mean"),
        ("regress smokes~1 --where village=v1", "No degrees of freedom are left"),
        ("regress smokes~job --where village=v1", "No test of the slopes"),
        ("regress smokes~job --where village=v1 --format json", "null"),
        ("regress smokes~job --weights w --variance jackknife", "Test: all slopes zero"),
    ],
)
def test_every_command_works_for_a_group_inside_one_unit(folder, command, said, monkeypatch):
    """No command fails, none prints an error of 0, and each says what is not known."""
    monkeypatch.chdir(folder)
    name, *rest = command.split()
    made = CliRunner().invoke(app, ["survey", name, "plan.json", "reports.csv", *rest, "--clusters", "village"])
    assert made.exit_code == 0, made.output
    assert said in made.output
    assert "0.000000 " not in made.output


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e8])
def test_a_group_has_the_same_noise_and_degrees_beside_weights_of_any_size(scale):
    """The errors, degrees and intervals of a group do not depend on the weights of those who are not in it."""
    reports, unit = np.random.default_rng(8).integers(0, 2, 120), np.repeat(np.arange(12), 10)
    inside = unit < 6
    made = [
        estimate(SampledReports(reports, BINARY, SampleDesign(w, clusters=unit)).where(inside), BINARY)
        for w in (np.ones(120), np.where(inside, scale, 1.0))
    ]
    assert made[0].degrees == made[1].degrees == 5
    assert np.allclose(made[0].standard_errors, made[1].standard_errors, rtol=1e-9)
    assert np.allclose(made[0].intervals().lower, made[1].intervals().lower, rtol=1e-9)


@pytest.mark.parametrize("fpc", [None, np.full(9, 9)])
def test_equal_reports_have_a_wald_interval_of_their_error(fpc):
    """All reports are the same, in a sample and in a census: the channel's noise is in every kind of interval."""
    made = estimate(SampledReports(np.ones(9, dtype=int), BINARY, SampleDesign(size=9, fpc=fpc)), BINARY)
    assert (made.standard_errors > 0.1).all()
    assert np.allclose(made.intervals(Wald()).width / 2, 1.959964 * made.standard_errors, rtol=0.3)
    assert (made.intervals().width > 0.3).all()
