import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.survey import (
    CountTable,
    GeneralizedLeastSquares,
    LeastSquares,
    MaximumLikelihood,
    estimate,
    parametric_bootstrap,
)
from ldpopt.survey.estimate.bootstrap import fit_many

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
        assert np.allclose(fit_many(f, WIDE, estimator), one, atol=2e-4)


def test_the_same_seed_gives_the_same_draws():
    a, b = (parametric_bootstrap({0: 40, 1: 30, 2: 30}, Q, np.random.default_rng(1), 10).draws for _ in range(2))
    assert np.array_equal(a, b)


def test_bad_input_is_refused():
    table = CountTable.from_reports([0, 1, 2, 1], Q, strata=[0, 0, 1, 1])
    with pytest.raises(InvalidInput, match="simple sample"):
        parametric_bootstrap(table, Q, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="Generator"):
        parametric_bootstrap({0: 4}, Q, 5)
    with pytest.raises(InvalidInput, match="replications"):
        parametric_bootstrap({0: 4}, Q, np.random.default_rng(0), 1)
