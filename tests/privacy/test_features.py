import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.privacy import Affine, Polynomial
from ldpopt.privacy.capacity import feature_map


def test_the_basis_is_orthonormal_and_spans_the_polynomials():
    """Every monomial up to the degree is a combination of the basis, whose columns are orthonormal."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 2)) * [1.0, 1e6] + [5.0, -3e7]
    basis = Polynomial(x, 3).basis(40)
    assert basis.shape == (40, 10)
    assert np.allclose(basis.T @ basis, np.eye(10), atol=1e-13)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    for a in range(4):
        for b in range(4 - a):
            monomial = scaled[:, 0] ** a * scaled[:, 1] ** b
            assert np.allclose(basis @ (basis.T @ monomial), monomial, atol=1e-10)


def test_high_degrees_stay_well_conditioned():
    """Degree m - 1 on m points spans every function, also where powers would be dependent to rounding."""
    assert Polynomial(np.arange(30), 29).basis(30).shape == (30, 30)
    assert Polynomial(np.arange(30), 60).basis(30).shape == (30, 30)


def test_dependent_features_add_nothing():
    """Repeated, constant and rescaled features leave the class as it is."""
    y = np.arange(6.0)
    assert Affine(np.stack([y, 2 * y + 1, np.ones(6)], axis=1)).basis(6).shape == (6, 2)
    assert Affine(np.zeros(4)).basis(4).shape == (4, 1)
    assert isinstance(feature_map([0, 1]), Affine)


@pytest.mark.parametrize("features", [[], [[]], "abc", [1, None], np.zeros((2, 2, 2)), [0, np.inf]])
def test_bad_features_are_refused(features):
    """Anything but a finite array of one or two dimensions raises InvalidInput."""
    with pytest.raises(InvalidInput, match="features"):
        Affine(features)
