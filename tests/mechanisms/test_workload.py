""""""

import math

import numpy as np
import pytest
from flint import arb
from mpmath import mp

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import laplace, matrix_mechanism
from ldpopt.mechanisms.workload import vector_divergence, weighted_moment
from ldpopt.numbers.enclosures.adaptive import enclosed


def density_of_two(a, b):
    """The density of a Y1 + b Y2 at x >= 0, unit Laplace Y, by partial fractions."""
    if a == b:
        return lambda x: (1 + x / a) * mp.exp(-x / a) / (4 * a)
    return lambda x: (a * mp.exp(-x / a) - b * mp.exp(-x / b)) / (2 * (a * a - b * b))


def moment(w, b, power, side):
    return weighted_moment([arb(float(x)) for x in w], arb(float(b)), arb(power), side)


WEIGHTS, OFFSETS, POWERS = [(1.0, 1.0), (0.3, 0.2), (0.5, 0.005)], [0.02, 0.5, 0.99], [1.05, 1.5, 2.9]


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    ("w", "b", "power"), [(WEIGHTS[i], OFFSETS[j], POWERS[(i + j) % 3]) for i in range(3) for j in range(3)]
)
def test_moments_of_weighted_sums_against_thirty_digits(w, b, power):
    """E|w.Y + b|^A of two Laplace variables, by quadrature of their exact density at 30 digits."""
    mp.dps = 30
    x, y = mp.mpf(w[0]), mp.mpf(w[1])
    density = density_of_two(x, y)
    points = sorted({mp.mpf(0), y, x, 5 * x, 20 * x, 80 * x, mp.mpf(b) / 2, mp.mpf(b), 2 * mp.mpf(b)})
    truth = mp.quad(lambda t: density(t) * (abs(t + b) ** power + abs(t - b) ** power), points) - 1
    low, high = (enclosed(lambda _, side=side: moment(w, b, power, side) - 1) for side in (-1, 1))
    assert low[0] - 1e-14 <= truth <= high[1] + 1e-14
    assert high[1] - low[0] <= 1e-12 * (1 + abs(truth))


def test_moments_of_many_variables_agree_with_simulation():
    """Six unequal weights, against a simulated mean (seed 5, 5 standard errors)."""
    w = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
    draws = np.abs(np.random.default_rng(5).laplace(size=(400_000, 6)) @ w + 0.4) ** 1.5
    value, _ = enclosed(lambda _: moment(w, 0.4, 1.5, 0))
    assert value == pytest.approx(draws.mean(), abs=5 * draws.std() / math.sqrt(400_000))


@pytest.mark.parametrize("shift", [(0.1, 0.0), (0.05, 0.05), (0.5, -0.3), (2.0, 1.0)])
def test_order_two_is_least_squares(shift):
    """At order 2 the divergence is log(1 + |v|^2/2), whatever the direction."""
    low, high = vector_divergence(np.array(shift), np.eye(2), 2.0)
    exact = math.log1p(np.square(shift).sum() / 2)
    assert low <= exact * (1 + 1e-13)
    assert high >= exact
    assert high - low <= 1e-9 * (1 + high)


@pytest.mark.parametrize("order", [1.5, 3.0, 8.0])
def test_all_the_shift_in_one_entry_is_the_one_dimensional_value(order):
    """Other entries' noise does not help: the value is that of the Laplace mechanism, however many entries."""
    low, high = vector_divergence(np.array([0.7, 0.0, 0.0]), np.eye(3), order)
    one = laplace(0.7).restricted_renyi(order)
    assert low <= one.value
    assert one.lower <= high
    assert high == pytest.approx(one.value, rel=1e-7)


@pytest.mark.parametrize("order", [1.5, 8.0])
def test_spreading_the_shift_lowers_the_divergence(order):
    """The divergence is convex in the shift: no shift of 1-norm 0.7 exceeds the one in a single entry."""
    one = laplace(0.7).restricted_renyi(order).value
    for shift in ((0.35, 0.35), (0.6, 0.1), (0.5, -0.2)):
        low, high = vector_divergence(np.array(shift), np.eye(2), order)
        assert 0 < low <= high < one


def test_bracket_holds_a_scan():
    """A grid of features in two dimensions finds nothing above the bracket, and its best comes close."""
    shift, order = np.array([0.4, 0.2]), 3.0
    low, high = vector_divergence(shift, np.eye(2), order)
    scan = max(
        -math.log(enclosed(lambda _, x=x, y=y: moment([x, y], 1 - x * 0.4 - y * 0.2, 1.5, 1))[1])
        for x in np.linspace(0.1, 0.6, 21)
        for y in np.linspace(0.0, 0.4, 21)
    )
    assert scan <= high
    assert scan == pytest.approx(low, rel=1e-2)
    assert high / low - 1 < 1e-7


def test_features_that_do_not_see_the_shift():
    """A space orthogonal to the shift tells nothing apart."""
    assert vector_divergence(np.array([0.3, 0.3]), np.array([[1.0], [-1.0]]) / math.sqrt(2), 3.0) == (0.0, 0.0)


HADAMARD = np.array([[1.0, 1.0], [1.0, -1.0]])


@pytest.mark.parametrize("order", [1.5, 2.0, 6.0])
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


def test_the_simulated_error_is_the_stated_one():
    """The squared error over simulated releases is the stated one, without bias (seed 2)."""
    workload = np.tril(np.ones((4, 4)))
    strategy = np.vstack([np.eye(4), np.ones((1, 4))])
    m, x, rng = matrix_mechanism(workload, strategy, 0.5), np.array([10, 20, 30, 40]), np.random.default_rng(2)
    errors = np.array([m.sample(x, rng) - workload @ x for _ in range(2000)])
    assert np.square(errors).sum(axis=1).mean() == pytest.approx(m.expected_squared_error, rel=0.17)
    assert np.all(np.abs(errors.mean(axis=0)) <= 5 * errors.std(axis=0) / math.sqrt(2000))


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
