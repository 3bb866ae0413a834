import cvxpy as cp
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, SolverError
from ldpopt_survey import (
    CountTable,
    GeneralizedLeastSquares,
    LeastSquares,
    MaximumLikelihood,
    NotIdentifiable,
    SampleDesign,
    SampledReports,
    estimate,
    parametric_bootstrap,
)
from ldpopt_survey.estimate.likelihood import fit_many, maxima


def randomized_response(k, epsilon):
    e = np.exp(epsilon)
    return Channel((np.ones((k, k)) + (e - 1) * np.eye(k)) / (e + k - 1))


def cases():
    rng = np.random.default_rng(11)
    for k, m, n in ((2, 2, 200), (4, 4, 1000), (7, 7, 300), (5, 12, 400), (24, 24, 2000)):
        q = randomized_response(k, 1.5) if k == m else Channel(rng.dirichlet(np.ones(m), size=k))
        for concentration in (1.0, 0.2):
            p = rng.dirichlet(np.full(k, concentration))
            yield q, rng.multinomial(n, q.push(p)) / n


@pytest.mark.parametrize(("channel", "frequencies"), list(cases()))
def test_maximum_equals_a_conic_solution(channel, frequencies):
    """Newton's method and an exponential-cone program find the same distribution, to 1e-6."""
    k = channel.shape[0]
    x = cp.Variable(k, nonneg=True)
    used = frequencies > 0
    objective = frequencies[used] @ cp.log(channel.matrix[:, used].T @ x)
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-10}
    cp.Problem(cp.Maximize(objective), [cp.sum(x) == 1]).solve(solver=cp.CLARABEL, **tight)
    made = MaximumLikelihood().maximum(frequencies, channel)
    assert np.abs(made.p - x.value).max() < 1e-6
    assert made.gap <= 1e-11


def test_gap_bounds_the_likelihood_left():
    """No distribution has a log-likelihood above the one found by more than the gap that is reported."""
    rng = np.random.default_rng(12)
    q = randomized_response(5, 1.0)
    f = rng.multinomial(300, q.push(rng.dirichlet(np.ones(5)))) / 300
    for rounds in (1, 3, 10, 1000):
        p, gap = maxima(f[None], q.matrix, 1e-13, rounds)
        value = f @ np.log(p[0] @ q.matrix)
        others = rng.dirichlet(np.ones(5), size=2000)
        best = MaximumLikelihood().maximum(f, q)
        assert (np.log(others @ q.matrix) @ f).max() <= value + gap[0] + 1e-14
        assert best.log_likelihood <= value + gap[0] + 1e-14


def test_rows_do_not_touch_each_other():
    """Many surveys at once, some with outputs that nobody reported, have the maxima that each has alone."""
    rng = np.random.default_rng(13)
    q = rng.dirichlet(np.ones(8), size=6)
    f = rng.multinomial(50, rng.dirichlet(np.ones(6)) @ q, size=30) / 50
    p, gap = maxima(f, q, 1e-12)
    alone = np.concatenate([maxima(row[None], q, 1e-12)[0] for row in f])
    assert gap.max() <= 1e-12
    assert np.abs(p - alone).max() < 1e-9


def test_estimates_stay_in_the_simplex():
    """The maximum-likelihood estimate is a distribution, also where the unbiased one is negative."""
    rng = np.random.default_rng(14)
    q = randomized_response(24, 0.5)
    f = rng.multinomial(1000, q.push(np.eye(24)[0]), size=50) / 1000
    for row in f:
        made = MaximumLikelihood().maximum(row, q, 1000)
        assert made.p.min() >= 0
        assert abs(made.p.sum() - 1) < 1e-12
        assert 0 <= made.gap < 1e-7
    assert maxima(f, q.matrix, 1e-9)[0].min() >= 0


def test_interior_maximum_solves_the_likelihood_equations():
    """Inside the simplex, with as many outputs as inputs, the maximum reproduces the frequencies exactly."""
    q = randomized_response(4, 2.0)
    f = q.push([0.4, 0.3, 0.2, 0.1])
    made = MaximumLikelihood().maximum(f, q)
    assert np.allclose(made.p, [0.4, 0.3, 0.2, 0.1], atol=1e-9)
    assert made.p.min() > 1e-9


def test_refusals():
    with pytest.raises(NotIdentifiable):
        MaximumLikelihood().maximum(np.array([0.5, 0.5]), Channel([[0.5, 0.5], [0.5, 0.5]]))
    with pytest.raises(InvalidInput, match="probability 0"):
        MaximumLikelihood().maximum(np.array([0.4, 0.5, 0.1]), Channel([[0.8, 0.2, 0.0], [0.2, 0.8, 0.0]]))
    with pytest.raises(SolverError, match="nats a respondent"):
        MaximumLikelihood(1e-300).maximum(np.random.default_rng(0).dirichlet(np.ones(9)), randomized_response(9, 0.1))


Q = Channel([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
WIDE = Channel([[0.5, 0.2, 0.2, 0.1], [0.1, 0.5, 0.1, 0.3], [0.2, 0.2, 0.5, 0.1]])


@pytest.mark.parametrize("channel", [Q, WIDE])
@pytest.mark.parametrize("estimator", [GeneralizedLeastSquares(), LeastSquares(), MaximumLikelihood()])
def test_bootstrap_errors_agree_with_the_formula(channel, estimator):
    """Inside the simplex, the spread of simulated surveys is the standard error that the formula gives."""
    counts = CountTable.from_counts(np.round(3000 * channel.push([0.4, 0.35, 0.25])), channel.outputs)
    made = estimate(counts, channel, estimator)
    drawn = parametric_bootstrap(counts, channel, np.random.default_rng(71), 2000, estimator)
    # A standard deviation over 2,000 draws has a relative error of 1.6 %.
    assert np.allclose(drawn.standard_errors, made.standard_errors, rtol=0.08)
    assert np.allclose(drawn.intervals().width, made.intervals().width, rtol=0.1)
    assert np.allclose(np.sqrt(np.diag(drawn.covariance)), drawn.standard_errors)


def test_draws_of_the_maximum_stay_in_the_simplex():
    counts = CountTable.from_counts([50, 700, 250], Q.outputs)
    drawn = parametric_bootstrap(counts, Q, np.random.default_rng(72), 300, MaximumLikelihood())
    assert drawn.draws.min() >= 0
    assert np.allclose(drawn.draws.sum(axis=1), 1)
    assert "300 surveys" in repr(drawn)


def test_fitting_many_is_fitting_each():
    """The batch gives the estimates that one call for each survey gives."""
    f = np.random.default_rng(73).multinomial(400, WIDE.push([0.8, 0.15, 0.05]), size=12) / 400
    for estimator in (GeneralizedLeastSquares(), LeastSquares(), MaximumLikelihood()):
        one = np.array([estimator.fit(row, WIDE)[0] for row in f])
        assert np.allclose(fit_many(f, WIDE, estimator), one, atol=1e-9)


def test_the_same_seed_gives_the_same_draws():
    a, b = (parametric_bootstrap({0: 40, 1: 30, 2: 30}, Q, np.random.default_rng(1), 10).draws for _ in range(2))
    assert np.array_equal(a, b)


def test_bad_input_is_refused():
    table = SampledReports.of([0, 1, 2, 1], Q, SampleDesign(strata=[0, 0, 1, 1]))
    with pytest.raises(InvalidInput, match="simple sample"):
        parametric_bootstrap(table, Q, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="Generator"):
        parametric_bootstrap({0: 4}, Q, "5")
    with pytest.raises(InvalidInput, match="replications"):
        parametric_bootstrap({0: 4}, Q, np.random.default_rng(0), 1)
