import numpy as np
import pytest

from ldpopt.design import AOptimal, Box, COptimal, DOptimal, FisherInformation
from ldpopt.design.utilities.fisher_information import slope, worst_case
from ldpopt.mechanisms import subset_selection


@pytest.mark.parametrize("criterion", [AOptimal(), COptimal([1, 0, -1, 0]), DOptimal()], ids=repr)
def test_slope_is_the_derivative(criterion):
    """The gradient of the criterion in the distribution agrees with finite differences along the simplex."""
    q = subset_selection(4, 1.0, 2).matrix
    p, direction = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.5, -0.1, -0.1, -0.3])
    step = 1e-6
    ends = [slope(criterion, q, p + sign * step * direction)[0] for sign in (1, -1)]
    assert slope(criterion, q, p)[1] @ direction == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)


def test_the_worst_case_is_bracketed():
    """The proven upper end is within a millionth of the value found, and above every distribution of the box."""
    utility = FisherInformation([0.5, 0.3, 0.1, 0.1], neighbourhood=Box(0.15))
    q = subset_selection(4, 1.0, 1).matrix
    found = worst_case(utility, q)
    assert found.upper <= found.value * (1 + 1e-6)
    assert np.abs(found.prior - utility.prior).max() <= 0.15 + 1e-9
    rng = np.random.default_rng(0)
    for _ in range(100):
        p = utility.neighbourhood.highest(rng.normal(size=4), utility.prior)
        assert slope(utility.criterion, q, p)[0] <= found.upper
