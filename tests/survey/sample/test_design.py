"""The variance engine against the textbook's formulas, written out respondent by respondent and by brute force.

Known margins: the weights meet them, and the variance is that of what they do not explain.
"""

from itertools import combinations

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, SolverError
from ldpopt_survey import (
    GivenReplicates,
    Jackknife,
    LonelyUnit,
    RescaledBootstrap,
    SampleDesign,
    SampledReports,
    difference,
    estimate,
    post_stratify,
    rake,
    tables_by_group,
)

Q = Channel([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
BINARY = Channel([[0.8, 0.2], [0.2, 0.8]])


def by_hand(scores, weights, strata, clusters, fractions=None, noise=None):
    """R's `svyrecvar` for one stage: sum_h (1 - f_h) n_h / (n_h - 1) sum_j (z_hj - mean_h)^2, loop by loop."""
    variance = 0.0
    for stratum in sorted(set(strata)):
        units = sorted({c for c, s in zip(clusters, strata, strict=True) if s == stratum})
        totals = [
            sum(
                w * x for w, x, s, c in zip(weights, scores, strata, clusters, strict=True) if (s, c) == (stratum, unit)
            )
            for unit in units
        ]
        mean, n = sum(totals) / len(units), len(units)
        f = 0.0 if fractions is None else fractions[stratum]
        variance += (1 - f) * n / (n - 1) * sum((t - mean) ** 2 for t in totals)
        variance += f * (0.0 if noise is None else noise[stratum])
    return variance


def sample(seed=1, n=240):
    rng = np.random.default_rng(seed)
    strata, clusters = rng.integers(0, 4, n), rng.integers(0, 7, n)
    return rng.normal(3, 2, n), rng.uniform(0.5, 4, n), strata, clusters


def test_a_total_has_the_textbook_variance():
    """Weighted, stratified, clustered, from a finite population: the loop over strata and units [SSW, section 4.3]."""
    x, w, s, c = sample()
    sizes = np.array([20, 30, 10, 50])
    made = SampleDesign(w, s, c, sizes[s])
    zero = np.zeros((4, 1, 1))
    names = made.stratum_names
    want = by_hand(x, w, s, c, {h: 7 / sizes[h] for h in range(4)})
    assert np.isclose(made.total_variance(x, zero).covariance[0, 0], want, rtol=1e-12)
    assert made.total_variance(x, zero).degrees == 28 - 4
    assert np.isclose(made.total(x)[0], w @ x)
    noise = np.array([[[5.0 + names[h]]] for h in range(4)])
    want = by_hand(x, w, s, c, {h: 7 / sizes[h] for h in range(4)}, {h: 5.0 + h for h in range(4)})
    assert np.isclose(made.total_variance(x, noise).covariance[0, 0], want, rtol=1e-12)
    # Without the channel's part the population is taken to be infinite, which is on the safe side.
    assert np.isclose(made.total_variance(x).covariance[0, 0], by_hand(x, w, s, c), rtol=1e-12)
    shares = SampleDesign(w, s, c, (7 / sizes)[s])
    assert np.isclose(shares.total_variance(x, zero).covariance[0, 0], by_hand(x, w, s, c, dict(enumerate(7 / sizes))))


def test_simple_random_sampling_is_unbiased_over_every_sample():
    """Over all samples of 3 units out of 6, the variance estimate averages to the true variance of the total."""
    population = np.array([1.0, 4.0, 2.0, 9.0, 5.0, 7.0])
    totals, variances = [], []
    for chosen in combinations(range(6), 3):
        x = population[list(chosen)]
        made = SampleDesign(weights=np.full(3, 2.0), fpc=np.full(3, 6))
        totals.append(made.total(x)[0])
        variances.append(made.total_variance(x, np.zeros((1, 1, 1))).covariance[0, 0])
    assert np.isclose(np.mean(totals), population.sum())
    assert np.isclose(np.mean(variances), np.var(totals))


def test_a_census_of_private_answers_still_has_the_error_of_its_channel():
    """Averaged over all reports that a census can give, the variance is exactly that of the randomization."""
    answers = np.array([0, 0, 1, 0, 1])
    loadings = np.linalg.inv(BINARY.matrix).T
    design = SampleDesign(size=5, fpc=np.full(5, 5))
    values, variances, chances = [], [], []
    for index in range(32):
        reports = np.array([(index >> i) & 1 for i in range(5)])
        chances.append(np.prod(BINARY.matrix[answers, reports]))
        made = estimate(SampledReports.of(reports, BINARY, design), BINARY)
        values.append(made.values[0])
        variances.append(made.covariance[0, 0])
    values, chances = np.array(values), np.array(chances)
    true = chances @ (values - chances @ values) ** 2
    spread = np.sum(BINARY.matrix * loadings[0] ** 2, axis=1) - np.array([1.0, 0.0])
    assert np.isclose(true, spread[answers].sum() / 25)
    # Both answers of this channel have the same spread, so that the estimate is exact for every census.
    assert np.allclose(variances, true, rtol=1e-12)


def test_between_a_census_and_an_infinite_population_the_variance_is_unbiased():
    """Over all samples and all their reports, the variance averages to the true one, but for the least that it has.

    That is the variance of the channel's own randomness, known here, below which no estimate of a variance is taken.
    """
    alone = np.prod(BINARY.matrix[0]) / (BINARY.matrix[0, 0] - BINARY.matrix[0, 1]) ** 2 / 4
    population = np.array([0, 0, 1, 1, 1, 0])
    values, variances, chances = [], [], []
    for chosen in combinations(range(6), 4):
        for index in range(16):
            reports = np.array([(index >> i) & 1 for i in range(4)])
            chances.append(np.prod(BINARY.matrix[population[list(chosen)], reports]) / 15)
            made = estimate(SampledReports.of(reports, BINARY, SampleDesign(size=4, fpc=np.full(4, 6))), BINARY)
            values.append(made.values[0])
            scores = np.where(reports == 0, made.loadings[0, 0], made.loadings[0, 1]) / 4
            mixed = SampleDesign(size=4).total_variance(scores).covariance[0, 0] / 3 + 2 / 3 * alone
            assert np.isclose(made.covariance[0, 0], max(mixed, alone), rtol=1e-12)
            variances.append(mixed)
    values, chances, variances = np.array(values), np.array(chances), np.array(variances)
    true = chances @ (values - chances @ values) ** 2
    assert np.isclose(chances @ values, 0.5)
    assert np.isclose(chances @ variances, true, rtol=1e-10)


def test_jackknife_is_the_loop_that_leaves_one_unit_out():
    """JKn of a ratio: a unit's weight goes to the others of its stratum, and the estimate is made again [Wolter]."""
    rng = np.random.default_rng(4)
    _, w, s, c = sample(4)
    y = rng.integers(0, 3, len(w))
    sizes = np.array([20, 30, 10, 50])
    design = SampleDesign(w, s, c, method=Jackknife())
    made = estimate(SampledReports.of(y, Q, design), Q)
    loadings, want = made.loadings, np.zeros((3, 3))
    for stratum in range(4):
        for unit in range(7):
            lifted = np.where(s == stratum, np.where(c == unit, 0.0, w * 7 / 6), w)
            f = np.bincount(y, lifted, 3) / lifted.sum()
            away = loadings @ f - made.values
            want += 6 / 7 * np.outer(away, away)
    assert np.allclose(made.covariance, want, rtol=1e-12)
    assert 15 < made.degrees < 24  # of unequal weights
    # A finite population shrinks it by the share drawn, and adds back what the channel alone makes random.
    smaller = estimate(SampledReports.of(y, Q, SampleDesign(w, s, c, sizes[s], method=Jackknife())), Q)
    linear = estimate(SampledReports.of(y, Q, SampleDesign(w, s, c, sizes[s])), Q)
    assert np.all(smaller.standard_errors < made.standard_errors)
    assert np.allclose(smaller.standard_errors, linear.standard_errors, rtol=0.05)


def test_bootstrap_converges_to_linearization_for_totals():
    """For a total, Rao and Wu's bootstrap has the linearised variance as its expectation [RaoWu]."""
    x, w, s, c = sample(5)
    sizes = np.array([20, 30, 10, 50])
    zero = np.zeros((4, 1, 1))
    linear = SampleDesign(w, s, c, sizes[s])
    drawn = linear.with_method(RescaledBootstrap(20_000, 1)).total_variance(x, zero)
    want = linear.total_variance(x, zero)
    assert np.isclose(drawn.covariance[0, 0], want.covariance[0, 0], rtol=0.05)
    assert np.isclose(
        linear.with_method(Jackknife()).total_variance(x, zero).covariance[0, 0], want.covariance[0, 0], rtol=1e-10
    )


def test_given_replicates_are_used_as_they_are():
    """The jackknife's weights, written into a file and read back, give the jackknife's variance."""
    x, w, s, c = sample(6)
    design = SampleDesign(w, s, c)
    columns, scales = [], []
    for stratum in range(4):
        for unit in range(7):
            columns.append(np.where(s == stratum, np.where(c == unit, 0.0, w * 7 / 6), w))
            scales.append(6 / 7)
    given = design.with_method(GivenReplicates(np.array(columns).T, scales)).total_variance(x)
    assert np.isclose(given.covariance[0, 0], design.total_variance(x).covariance[0, 0], rtol=1e-10)
    assert given.degrees == 27


def test_a_subgroup_keeps_the_whole_design():
    """The variance of a group's mean is that of scores which are zero outside it, in every unit of the sample."""
    rng = np.random.default_rng(7)
    _, w, s, c = sample(7)
    y, g = rng.integers(0, 3, len(w)), rng.random(len(w)) < 0.2
    made = estimate(tables_by_group(y, Q, g, design=SampleDesign(w, s, c))[True], Q)
    f = np.bincount(y[g], w[g], 3) / w[g].sum()
    for row, error in zip(made.loadings, made.standard_errors, strict=True):
        scores = np.where(g, (row[y] - row @ f) / w[g].sum(), 0.0)
        assert np.isclose(error**2, by_hand(scores, w, s, c), rtol=1e-12)
    units = {(a, b) for a, b, inside in zip(s, c, g, strict=True) if inside}
    assert 4 < made.degrees < len(units) - len({a for a, _ in units})


def test_a_difference_of_groups_counts_their_covariance():
    rng = np.random.default_rng(8)
    _, w, s, c = sample(8)
    y, g = rng.integers(0, 3, len(w)), rng.integers(0, 2, len(w))
    tables = tables_by_group(y, Q, g, design=SampleDesign(w, s, c))
    a, b = (estimate(tables[i], Q) for i in (0, 1))
    made = difference(a, b)
    f = [np.bincount(y[g == i], w[g == i], 3) / w[g == i].sum() for i in (0, 1)]
    row = a.loadings[1]
    scores = [np.where(g == i, (row[y] - row @ f[i]) / w[g == i].sum(), 0.0) for i in (0, 1)]
    assert np.isclose(made.covariance[1, 1], by_hand(scores[0] - scores[1], w, s, c), rtol=1e-10)


def test_lonely_units_follow_the_option():
    """Refused by default; certain, centred on the mean of all units, or as the other strata on average."""
    x, w = np.array([1.0, 3.0, 2.0, 5.0, 4.0]), np.ones(5)
    s = ["a", "a", "b", "b", "c"]
    zero = np.zeros((3, 1, 1))
    with pytest.raises(InvalidInput, match="'c'"):
        SampleDesign(w, s).total_variance(x)
    rest = 2 * 2.0 + 2 * 4.5
    for lonely, want in (
        (LonelyUnit.CERTAINTY, rest),
        (LonelyUnit.CENTRED, rest + (4.0 - x.mean()) ** 2),
        (LonelyUnit.AVERAGE, rest * 3 / 2),
    ):
        made = SampleDesign(w, s, lonely=lonely).total_variance(x, zero)
        assert np.isclose(made.covariance[0, 0], want), lonely
        assert made.degrees == 2
    with pytest.raises(InvalidInput, match="certain"):
        SampleDesign(w, s, lonely=LonelyUnit.CERTAINTY).total_variance(x)
    average = SampleDesign(w, s, lonely=LonelyUnit.AVERAGE, method=Jackknife()).total_variance(x)
    assert np.isclose(average.covariance[0, 0], rest * 3 / 2)
    with pytest.raises(InvalidInput, match="centre"):
        SampleDesign(w, s, lonely=LonelyUnit.CENTRED, method=Jackknife()).total_variance(x)
    with pytest.raises(InvalidInput, match="average"):
        SampleDesign(w[:2], ["a", "b"], lonely=LonelyUnit.AVERAGE).total_variance(x[:2])


def test_scale_does_not_matter():
    """Weights of 1e-150 or 1e150 and scores of any size change the variance by their square alone."""
    x, w, s, c = sample(9)
    want = SampleDesign(w, s, c).total_variance(x).covariance[0, 0]
    for scale in (1e-140, 1e140):
        got = SampleDesign(w * scale, s, c).total_variance(x).covariance[0, 0]
        assert np.isclose(got / scale / scale, want, rtol=1e-9)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": [0.0, 0.0]}, "one positive"),
        ({"weights": [1.0, -2.0]}, "none negative"),
        ({"weights": [1.0, np.nan]}, "finite"),
        ({"weights": []}, "size"),
        ({}, "size"),
        ({"weights": [1.0, 1.0], "strata": ["a"]}, "strata"),
        ({"strata": ["a", None]}, "strata"),
        ({"clusters": ["a", float("nan")]}, "clusters"),
        ({"weights": [1.0, 1.0], "fpc": [1.5, 1.5]}, "2.* units"),
        ({"weights": [1.0, 1.0], "fpc": [3, 4]}, "one number"),
        ({"weights": [1.0, 1.0], "fpc": [0, 0]}, "positive"),
        ({"weights": [1.0, 1.0], "fpc": [3]}, "positive"),
    ],
)
def test_wrong_designs_are_refused(given, said):
    with pytest.raises(InvalidInput, match=said):
        SampleDesign(**given)


def test_reports_that_are_all_the_same_have_intervals():
    """In a census of reports that are all alike the intervals are finite: nothing divides by their zero variance."""
    for design in (SampleDesign(size=3, fpc=[3, 3, 3]), SampleDesign(size=3)):
        made = estimate(SampledReports.of([1, 1, 1], BINARY, design), BINARY).intervals()
        assert np.all(np.isfinite([made.lower, made.upper]))
        assert made.width.min() > 0


def test_wrong_scores_are_refused():
    with pytest.raises(InvalidInput, match="finite"):
        SampleDesign([1e308, 1e308]).total_variance([1.0, 2.0])
    design = SampleDesign(size=3)
    for scores in ([1.0, 2.0], [1.0, np.inf, 2.0], np.zeros((3, 2, 2))):
        with pytest.raises(InvalidInput, match="scores"):
            design.total_variance(scores)
    with pytest.raises(InvalidInput, match="noise"):
        design.total_variance([1.0, 2.0, 3.0], np.zeros((2, 1, 1)))
    with pytest.raises(InvalidInput, match="replicates"):
        design.replicate(lambda w: w)
    with pytest.raises(InvalidInput, match="one a respondent"):
        SampledReports.of([0, 1], BINARY, design)
    with pytest.raises(InvalidInput, match="no respondent of the group"):
        SampledReports.of([0, 1, 1], BINARY, design).where(np.zeros(3, dtype=bool))
    with pytest.raises(InvalidInput, match="truth values"):
        SampledReports.of([0, 1, 1], BINARY, design).where([0, 1, 1])
    with pytest.raises(InvalidInput, match="at most"):
        SampleDesign(size=60_000, method=Jackknife()).total_variance(np.zeros(60_000))


WARNER = Channel([[0.8, 0.2], [0.2, 0.8]])


def test_post_stratified_weights_and_variance():
    """Weights N_g / n_g inside a group, and the sum of squared residuals from the groups' means [SSW, section 7.6]."""
    x = np.array([1.0, 2.0, 5.0, 7.0, 9.0, 4.0])
    g = np.array(["a", "a", "b", "b", "b", "a"])
    made = post_stratify(SampleDesign(size=6), g, {"a": 30, "b": 60})
    assert np.allclose(made.weights, np.where(g == "a", 10, 20))
    e = np.where(g == "a", x - x[g == "a"].mean(), x - x[g == "b"].mean())
    z = made.weights * e
    assert np.isclose(made.total_variance(x).covariance[0, 0], 6 / 5 * np.sum((z - z.mean()) ** 2))
    # What the groups explain in full has no variance left.
    assert made.total_variance((g == "a").astype(float)).covariance[0, 0] < 1e-20


def test_raking_meets_every_margin_and_keeps_the_odds_ratios():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 500), rng.integers(0, 3, 500)
    w = rng.uniform(1, 3, 500)
    made = rake(SampleDesign(w), [(a, {0: 0.4, 1: 0.6}), (b, {0: 0.2, 1: 0.3, 2: 0.5})])
    assert np.allclose(np.bincount(a, made.weights) / w.sum(), [0.4, 0.6])
    assert np.allclose(np.bincount(b, made.weights) / w.sum(), [0.2, 0.3, 0.5], rtol=1e-9)
    factors = made.weights / w
    table = np.array([[factors[(a == i) & (b == j)][0] for j in range(3)] for i in range(2)])
    assert np.allclose(np.linalg.svd(table)[1][1:], 0, atol=1e-9)  # a product of a row's and a column's factor


def test_replicates_are_raked_anew():
    """The jackknife of a raked mean, looped by hand with every replicate raked, and near the linearised one."""
    rng = np.random.default_rng(2)
    n = 150
    a, b, y = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    margins = [(a, {0: 0.4, 1: 0.6}), (b, {0: 0.7, 1: 0.3})]
    design = rake(SampleDesign(size=n), margins)
    made = estimate(SampledReports.of(y, WARNER, design.with_method(Jackknife())), WARNER)
    want = 0.0
    for out in range(n):
        keep = np.arange(n) != out
        w = rake(SampleDesign(size=n - 1), [(codes[keep], known) for codes, known in margins]).weights
        f = np.bincount(y[keep], w) / w.sum()
        want += (n - 1) / n * (made.loadings[0] @ f - made.values[0]) ** 2
    assert np.isclose(made.covariance[0, 0], want, rtol=1e-6)
    linear = estimate(SampledReports.of(y, WARNER, design), WARNER)
    assert np.isclose(made.standard_errors[0], linear.standard_errors[0], rtol=0.05)


def test_known_margins_reduce_only_explained_variance():
    """A margin that settles the answer removes the sampling variance and none of the channel's."""
    rng = np.random.default_rng(3)
    answers = np.repeat([0, 1], 500)
    spread = []
    for _ in range(400):
        y = WARNER.sample_indices(answers[rng.permutation(1000)], rng)
        spread.append(y.mean())
    y = WARNER.sample_indices(answers, rng)
    plain = estimate(SampledReports.of(y, WARNER, SampleDesign(size=1000)), WARNER)
    known = estimate(
        SampledReports.of(y, WARNER, post_stratify(SampleDesign(size=1000), answers, {0: 0.5, 1: 0.5})),
        WARNER,
    )
    channel_alone = 0.8 * 0.2 / 0.36 / 1000
    assert np.isclose(known.covariance[0, 0], channel_alone, rtol=0.1)
    assert plain.covariance[0, 0] > 1.4 * channel_alone


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ([], "at least one"),
        ([(["a", "b"], {"a": 1.0})], "known total"),
        ([(["a", "b"], {"a": 1, "b": 2, "c": 3})], "respondent in every group"),
        ([(["a", "b"], {"a": 1, "b": 0})], "positive"),
        ([(["a", "b"], {"a": 1, "b": float("nan")})], "finite"),
        ([(["a", "b"], {"a": 10, "b": 20}), (["c", "d"], {"c": 10, "d": 30})], "same sum"),
        ([(["a", None], {"a": 10, "b": 20})], "label"),
    ],
)
def test_wrong_margins_are_refused(margins, said):
    with pytest.raises(InvalidInput, match=said):
        rake(SampleDesign(size=2), margins)


def test_margins_that_cannot_be_met_are_refused():
    with pytest.raises(SolverError, match="combination"):
        rake(SampleDesign(size=2), [(["a", "b"], {"a": 10, "b": 20}), (["c", "d"], {"c": 15, "d": 15})])
