import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    GeneralizedLeastSquares,
    LeastSquares,
    LeftInverse,
    NotIdentifiable,
    asymptotic_covariance,
    estimable_contrasts,
    estimate,
    fisher_information,
)
from ldpopt_survey.estimate.counts import CountTable
from ldpopt_survey.estimate.linear import contrast_name, efficient_loadings
from ldpopt_survey.estimate.results import norm_sub, simplex_projection

VECTORS = st.lists(st.floats(-2, 2), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(VECTORS)
def test_projection_meets_its_optimality_conditions(values):
    """The projection x of p is the point of the simplex with (p - x) . (z - x) <= 0 for every vertex z."""
    p = np.array(values)
    x = simplex_projection(p)
    assert x.min() >= 0
    assert abs(x.sum() - 1) < 1e-12
    for vertex in np.eye(len(p)):
        assert (p - x) @ (vertex - x) <= 1e-9


def test_projection_agrees_with_a_quadratic_program():
    p = np.array([0.6, -0.3, 0.5, 0.1])
    x = cp.Variable(4, nonneg=True)
    cp.Problem(cp.Minimize(cp.sum_squares(x - p)), [cp.sum(x) == 1]).solve(solver=cp.CLARABEL)
    assert np.allclose(simplex_projection(p), x.value, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(VECTORS)
def test_norm_sub_shifts_the_kept_entries_equally(values):
    """Norm-sub sums to one, keeps non-positive entries at zero, and shifts all the entries it keeps by one constant."""
    p = np.array(values)
    if p.max() <= 1e-6:
        return
    x = norm_sub(p)
    assert abs(x.sum() - 1) < 1e-12
    assert np.all(x[p <= 0] == 0)
    kept = x > 1e-12
    assert np.ptp((x - p)[kept]) < 1e-9
    if p[p > 0].sum() >= 1:
        assert np.allclose(x, simplex_projection(np.maximum(p, 0)), atol=1e-9)


def test_rows_are_projected_one_by_one():
    rows = np.random.default_rng(0).normal(size=(20, 5)) + 0.3
    assert np.allclose(simplex_projection(rows), [simplex_projection(row) for row in rows])
    assert np.allclose(norm_sub(rows), [norm_sub(row) for row in rows])


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="a positive entry"):
        norm_sub([-1.0, 0.0])
    with pytest.raises(InvalidInput, match="finite"):
        simplex_projection([np.nan])
    with pytest.raises(InvalidInput, match="at least one entry"):
        simplex_projection([])


N, PI = 1000, 0.17


def random_channel(rng, k, m):
    return Channel(0.5 * rng.dirichlet(np.ones(m), size=k) + 0.5 * np.roll(np.eye(k, m), 0, axis=0))


def binary(yes_given_yes, yes_given_no):
    """The channel of a sensitive question; the first input and output are "yes"."""
    return Channel([[yes_given_yes, 1 - yes_given_yes], [yes_given_no, 1 - yes_given_no]])


@pytest.mark.parametrize(
    ("channel", "published"),
    [
        # Warner 1965: the statement is put as is with probability P, negated otherwise.
        (binary(0.7, 0.3), PI * (1 - PI) / N + 0.7 * 0.3 / (N * 0.4**2)),
        # Forced response, Boruch 1971: forced yes 1/6, forced no 1/6.
        (binary(5 / 6, 1 / 6), ((2 / 3) * PI + 1 / 6) * (1 - (2 / 3) * PI - 1 / 6) / (N * (2 / 3) ** 2)),
        # Unrelated question, Greenberg et al. 1969: prevalence 0.25 known, sensitive question with probability 0.7.
        (binary(0.7 + 0.3 * 0.25, 0.3 * 0.25), (0.7 * PI + 0.075) * (1 - 0.7 * PI - 0.075) / (N * 0.7**2)),
        # Kuk 1990, one card: red with probability 0.8 and 0.3.
        (binary(0.8, 0.3), (0.8 * PI + 0.3 * (1 - PI)) * (1 - 0.8 * PI - 0.3 * (1 - PI)) / (N * 0.5**2)),
        # Crosswise, Yu, Tian and Tang 2008: the two answers agree or not, second one with probability 0.25.
        (binary(0.25, 0.75), (0.25 * PI + 0.75 * (1 - PI)) * (1 - 0.25 * PI - 0.75 * (1 - PI)) / (N * 0.5**2)),
        # Triangular, the same: a yes to either question, second one with probability 0.25.
        (binary(1.0, 0.25), (PI + 0.25 * (1 - PI)) * (1 - PI - 0.25 * (1 - PI)) / (N * 0.75**2)),
    ],
    ids=["Warner", "forced", "unrelated", "Kuk", "crosswise", "triangular"],
)
def test_variances_agree_with_the_published_formulas(channel, published):
    """The variance of the classical designs is the one that their papers give, to 1e-10."""
    assert abs(asymptotic_covariance(channel, [PI, 1 - PI], N)[0, 0] / published - 1) < 1e-10
    yes = round(N * channel.push([PI, 1 - PI])[0])
    made = estimate({0: yes, 1: N - yes}, channel)
    p = made.values
    assert abs(made.standard_errors[0] ** 2 / asymptotic_covariance(channel, p, N)[0, 0] - 1) < 1e-10


def test_kuk_with_several_cards():
    """Kuk's estimate from r cards, linear in the number of red ones, has the variance that he published."""
    r, red_yes, red_no = 5, 0.8, 0.3
    q = Channel([binom.pmf(np.arange(r + 1), r, t) for t in (red_yes, red_no)])
    yes = (np.arange(r + 1) / r - red_no) / (red_yes - red_no)
    kuk = LeftInverse(np.stack([yes, 1 - yes]))
    rate = PI * red_yes + (1 - PI) * red_no
    published = rate * (1 - rate) / (N * r * (red_yes - red_no) ** 2) + (1 - 1 / r) * PI * (1 - PI) / N
    m = q.push([PI, 1 - PI])
    values, loadings = kuk.fit(m, q)
    assert abs(values[0] - PI) < 1e-12
    centred = loadings[0] - values[0]
    assert abs((centred**2 @ m) / N / published - 1) < 1e-10
    assert asymptotic_covariance(q, [PI, 1 - PI], N)[0, 0] <= published


def test_every_estimator_is_unbiased():
    """A left inverse recovers p from the exact marginal, for every p and every estimator."""
    rng = np.random.default_rng(2)
    for k, m in ((2, 2), (3, 5), (6, 6), (6, 11)):
        q = random_channel(rng, k, m)
        p = rng.dirichlet(np.ones(k))
        loadings = efficient_loadings(q, p)
        assert np.allclose(loadings @ q.matrix.T, np.eye(k), atol=1e-10)
        for estimator in (
            GeneralizedLeastSquares(), GeneralizedLeastSquares(tuple(p)), LeastSquares(), LeftInverse(loadings)
        ):  # fmt: skip
            assert np.allclose(estimator.fit(q.push(p), q)[0], p, atol=1e-10)


def test_generalised_least_squares_has_the_least_variance():
    """No left inverse has a smaller covariance at p than the generalised-least-squares one [Gauss-Markov]."""
    rng = np.random.default_rng(3)
    q = random_channel(rng, 4, 9)
    p = rng.dirichlet(np.ones(4))
    m = q.push(p)
    best = efficient_loadings(q, p)
    spread = np.diag(m) - np.outer(m, m)
    covariance = best @ spread @ best.T
    information = fisher_information(q, p)
    assert np.allclose(covariance, np.linalg.inv(information) - np.outer(p, p), atol=1e-12)
    assert np.allclose(covariance, asymptotic_covariance(q, p), atol=1e-12)
    null = np.linalg.svd(q.matrix)[2][4:]
    for _ in range(20):
        other = best + rng.normal(size=(4, 5)) @ null
        assert np.allclose(other @ q.matrix.T, np.eye(4), atol=1e-9)
        assert np.linalg.eigvalsh(other @ spread @ other.T - covariance).min() > -1e-9


def test_covariance_is_that_of_simulated_surveys():
    """(J^-1 - p p^T)/n is the covariance of estimates over repeated surveys."""
    rng = np.random.default_rng(4)
    q = random_channel(rng, 3, 3)
    p, n, r = np.array([0.6, 0.3, 0.1]), 500, 40_000
    draws = rng.multinomial(n, q.push(p), size=r) / n @ efficient_loadings(q, p).T
    want = asymptotic_covariance(q, p, n)
    # The standard error of a variance over r draws is its value times sqrt(2 / r).
    assert np.abs(np.cov(draws, rowvar=False) - want).max() < 5 * want.max() * np.sqrt(2 / r)


def test_non_identifiable_channels_are_refused_with_estimable_contrasts():
    """A channel of low rank is refused, and the message names a basis of what its reports do determine."""
    q = Channel([[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]], inputs=["never", "rarely", "often"])
    for estimator in (GeneralizedLeastSquares(), LeastSquares()):
        with pytest.raises(NotIdentifiable, match=r"p\(never\) \+ p\(rarely\); p\(often\)") as caught:
            estimate({0: 40, 1: 60}, q, estimator)
        assert caught.value.contrasts.tolist() == [[1, 1, 0], [0, 0, 1]]
    wide = Channel(np.full((3, 1), 1.0))
    with pytest.raises(NotIdentifiable, match=r"p\(0\) \+ p\(1\) \+ p\(2\)"):
        estimate({0: 5}, wide)


def test_estimable_contrasts_span_the_column_space():
    """A contrast is estimable exactly when it is a combination of the columns of Q."""
    rng = np.random.default_rng(5)
    for k, m in ((4, 2), (5, 3), (3, 3)):
        q = Channel(rng.dirichlet(np.ones(m), size=k))
        basis = estimable_contrasts(q)
        assert basis.shape == (q.rank, k)
        assert np.linalg.matrix_rank(np.vstack([basis, q.matrix.T])) == q.rank


def test_contrast_names():
    assert contrast_name(np.array([-1.0, 0.5]), ("a", "b")) == "-p(a) + 0.5 p(b)"
    assert contrast_name(np.zeros(2), ("a", "b")) == "0"


def test_bad_input_of_estimators_is_refused():
    q = Channel([[0.8, 0.2], [0.2, 0.8]])
    table = CountTable.from_counts([4, 6], q.outputs)
    with pytest.raises(InvalidInput, match="off by"):
        estimate(table, q, LeftInverse(np.eye(2)))
    with pytest.raises(InvalidInput, match="shape"):
        estimate(table, q, LeftInverse(np.eye(3)))
    with pytest.raises(InvalidInput, match="pilot"):
        GeneralizedLeastSquares((0.5, 0.6))
    with pytest.raises(InvalidInput, match="2 entries"):
        estimate(table, q, GeneralizedLeastSquares((0.5, 0.2, 0.3)))
