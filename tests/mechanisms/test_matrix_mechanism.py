import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import laplace, matrix_mechanism

HADAMARD = np.array([[1.0, 1.0], [1.0, -1.0]])


@pytest.mark.parametrize("order", [1.5, 2.0, 3.0, 6.0])
def test_identity_strategy_is_the_laplace_mechanism(order):
    """With each count answered on its own, one record moves one entry: the one-dimensional value, exactly."""
    m = matrix_mechanism(np.eye(3), np.eye(3), 0.3)
    one = laplace(0.3).restricted_renyi(order)
    got = m.restricted_renyi(order)
    assert got.value == pytest.approx(one.value, rel=1e-8)
    assert got.lower <= one.value
    assert got.exact


def test_spread_columns_leak_less():
    """A Hadamard strategy spreads a record over two answers: at order 2, log(1 + 2 (epsilon/2)^2/2) exactly."""
    m = matrix_mechanism(np.eye(2), HADAMARD, 0.6)
    assert m.sensitivity == 2
    assert m.restricted_renyi(2).value == pytest.approx(math.log1p(0.3**2), rel=1e-8)
    for order in (1.5, 4.0):
        assert m.restricted_renyi(order).value < laplace(0.6).restricted_renyi(order).value
        assert m.restricted_renyi(order).value <= m.renyi(order).value


def test_a_narrow_workload_reveals_less():
    """Releasing one query of the strategy's span restricts the functionals: never more than the whole."""
    whole = matrix_mechanism(np.eye(2), HADAMARD, 1.0)
    part = matrix_mechanism([[1.0, 1.0]], HADAMARD, 1.0)
    assert part.restricted_renyi(3).value < whole.restricted_renyi(3).value
    # W A^+ = (1, 0): the release is the first answer alone, moved by half of epsilon.
    assert part.restricted_renyi(3).value == pytest.approx(laplace(0.5).restricted_renyi(3).value, rel=1e-7)
    assert not part.renyi(2).exact


def test_renyi_adds_over_answers():
    """Strategy answers are independent: their divergences add, and never exceed epsilon [CIM, Thm 11]."""
    m = matrix_mechanism(np.eye(2), HADAMARD, 1.4)
    one = laplace(0.7).pair.renyi(3)
    assert m.renyi(3).lower <= 2 * one.value
    assert m.renyi(3).value == pytest.approx(2 * one.value, rel=1e-12)
    assert m.renyi(math.inf).value == pytest.approx(1.4, rel=1e-12)
    assert m.renyi(3).exact


def test_below_the_lowest_order_only_a_bound_is_claimed():
    """Below order 1.5 the value is the one-dimensional bound, and says that it is not exact."""
    got = matrix_mechanism(np.eye(2), HADAMARD, 1.0).restricted_renyi(1.2)
    assert not got.exact
    assert got.lower == 0
    assert got.value == pytest.approx(laplace(1.0).restricted_renyi(1.2).value, rel=1e-12)


def test_simulated_error():
    """The squared error over simulated releases is the stated one, without bias (seed 2)."""
    workload = np.tril(np.ones((4, 4)))
    strategy = np.vstack([np.eye(4), np.ones((1, 4))])
    m, x, rng = matrix_mechanism(workload, strategy, 0.5), np.array([10, 20, 30, 40]), np.random.default_rng(2)
    errors = np.array([m.sample(x, rng) - workload @ x for _ in range(4000)])
    assert np.square(errors).sum(axis=1).mean() == pytest.approx(m.expected_squared_error, rel=0.12)
    assert np.all(np.abs(errors.mean(axis=0)) <= 5 * errors.std(axis=0) / math.sqrt(4000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matrix_mechanism(np.eye(2), [[1.0, 1.0]], 1.0), "rows that span those of the workload"),
        (lambda: matrix_mechanism(np.eye(2), np.eye(3), 1.0), "strategy: expected 2 columns"),
        (lambda: matrix_mechanism(np.zeros((1, 2)), np.eye(2), 1.0), "workload: expected at least one entry"),
        (lambda: matrix_mechanism([1.0], np.eye(2), 1.0), "workload: expected 2 dimensions"),
        (lambda: matrix_mechanism(np.eye(2), np.eye(2), 0.0), "epsilon"),
        (lambda: matrix_mechanism(np.eye(2), np.eye(2), 1.0).sample([1.0], np.random.default_rng()), "counts"),
        (lambda: matrix_mechanism(np.eye(2), np.eye(2), 1.0).restricted_renyi(1.0), "order"),
    ],
)
def test_bad_input_is_refused(call, message):
    """Shapes, values, and workloads beyond the strategy are refused."""
    with pytest.raises(InvalidInput, match=message):
        call()
