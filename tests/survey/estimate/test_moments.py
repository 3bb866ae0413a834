import numpy as np

from ldpopt.survey.estimate.moments import correlation, moments


def test_moments_are_those_of_the_loadings():
    """Centre, variance and slope are the mean, the variance and the third central moment over the variance."""
    rng = np.random.default_rng(51)
    f, loadings = rng.dirichlet(np.ones(5)), rng.normal(size=(2, 5))
    m = moments(f, loadings, None, 100, np.inf)
    for row, value in enumerate(loadings):
        mean = f @ value
        assert np.isclose(m.centre[row], mean)
        assert np.isclose(m.variance[row], f @ (value - mean) ** 2)
        assert np.isclose(m.slope[row], (f @ (value - mean) ** 3) / (f @ (value - mean) ** 2))
        assert np.isclose(m.above[row], value.max() - mean)
        assert np.isclose(m.below[row], mean - value.min())
    together = np.cov(loadings, aweights=f, ddof=0)
    assert np.allclose(m.correlation[0, 1], together[0, 1] / np.sqrt(together[0, 0] * together[1, 1]))


def test_slope_is_how_the_variance_moves_along_the_fitted_path():
    """Along the generalised-least-squares path of marginals, dV/dt at the estimate is the slope."""
    rng = np.random.default_rng(52)
    f, loading = rng.dirichlet(np.ones(6)), rng.normal(size=6)
    spread = np.diag(f) - np.outer(f, f)
    direction = spread @ loading / (loading @ spread @ loading)
    h = 1e-6

    def variance(d):
        m = f + d * direction
        assert np.isclose(m @ loading, f @ loading + d, atol=1e-12)
        return m @ loading**2 - (m @ loading) ** 2

    made = moments(f, loading[None], None, 1, np.inf)
    assert np.isclose((variance(h) - variance(-h)) / (2 * h), made.slope[0], rtol=1e-6)


def test_a_covariance_sets_the_effective_size():
    f = np.array([0.5, 0.5])
    m = moments(f, np.array([[1.0, 0.0]]), np.array([[0.005]]), 100, 20)
    assert np.isclose(m.size[0], 50)
    assert m.redraw is None


def test_correlation_of_a_constant_is_zero():
    assert correlation(np.array([[0.0, 0.0], [0.0, 4.0]])).tolist() == [[0, 0], [0, 1]]


def test_redrawn_surveys_have_the_same_law():
    f = np.array([0.2, 0.3, 0.5])
    m = moments(f, np.eye(3), None, 200, np.inf)
    drawn = m.redraw(4000)
    assert drawn.centre.shape == (4000, 3)
    assert np.allclose(drawn.centre.mean(axis=0), f, atol=0.003)
