import itertools
import math

import numpy as np
import pytest

from ldpopt.composition import FinitePair, compose, gaussian_limit, gaussian_total_variation, gaussian_trade_off
from ldpopt.errors import InvalidInput


def curve(pair, count, points):
    """The trade-off curve of the product of equal pairs by enumeration of sorted ratios."""
    pair = pair.ordered
    p, q = pair.p, pair.q
    for _ in range(count - 1):
        p, q = np.outer(p, pair.p).ravel(), np.outer(q, pair.q).ravel()
    order = np.argsort(-(np.log(p) - np.log(q)))
    size, power = np.concatenate([[0], np.cumsum(q[order])]), np.concatenate([[0], np.cumsum(p[order])])
    return np.interp(points, size, 1 - power)


@pytest.mark.parametrize(("epsilon", "eta", "count"), [(1.0, 0.3, 4), (0.3, 0.1, 7), (2.0, None, 3)])
def test_distance_is_the_sup_over_a_fine_grid(epsilon, eta, count):
    """The stated distance is sup |f - G_mu|, here found on a grid of type I errors."""
    eta = math.tanh(epsilon / 2) if eta is None else eta
    found = gaussian_limit([epsilon] * count, [eta] * count)
    points = np.linspace(0, 1, 200_001)
    gap = np.abs(
        curve(FinitePair.of_parameters(epsilon, 0.0, eta), count, points) - gaussian_trade_off(found.mu, points)
    )
    assert found.distance >= gap.max() - 1e-12
    assert found.distance == pytest.approx(gap.max(), abs=2e-5)
    assert found.mu == pytest.approx(math.sqrt(2 * count * epsilon * eta))


def test_limit_is_reached():
    """GI Thm 3: with sum eps_i eta_i fixed and eps falling, the curve converges uniformly to G_mu."""
    distances = []
    for n in (10, 100, 1000, 10_000):
        epsilon = 1 / math.sqrt(n)
        eta = 0.7 * math.tanh(epsilon / 2)
        distances.append(gaussian_limit([epsilon] * n, [eta] * n).distance)
    assert all(later < 0.2 * earlier for earlier, later in itertools.pairwise(distances))
    assert distances[-1] < 2e-5


def test_heterogeneous_limit_is_the_same_as_equal_ones():
    """A list of different epsilons on one lattice goes through transforms; equal ones through the recurrence."""
    one = gaussian_limit([0.2] * 50, [0.05] * 50)
    mixed = gaussian_limit([0.2] * 49 + [0.2 * (1 + 1e-15)], [0.05] * 49 + [0.05 * (1 + 1e-9)])
    assert mixed.distance == pytest.approx(one.distance, rel=1e-4)
    different = gaussian_limit([0.1] * 400 + [0.2] * 100, [0.03] * 400 + [0.06] * 100)
    assert different.mu == pytest.approx(math.sqrt(2 * (400 * 0.003 + 100 * 0.012)))
    assert different.distance < 0.01


def test_slow_epsilon_with_fast_variation():
    """Eps may fall as any small power of n if eta makes up for it (GI section IV)."""
    n, power = 20_000, 0.3
    limit = gaussian_limit([n**-power] * n, [0.5 * n ** (power - 1)] * n)
    assert limit.mu == pytest.approx(1.0)
    assert limit.distance < 0.01


def test_gaussian_total_variation():
    """k mu-GDP mechanisms have variation 2 Phi(mu sqrt(k)/2) - 1, which the trade-off curve shows."""
    t = np.linspace(0, 1, 100_001)
    assert gaussian_total_variation(0.5, 9) == pytest.approx((1 - t - gaussian_trade_off(1.5, t)).max(), abs=1e-9)
    small = compose([(0.01, 0.0, None)], 10_000)
    mu = math.sqrt(2 * 10_000 * 0.01 * math.tanh(0.005))
    assert small.total_variation().value == pytest.approx(gaussian_total_variation(mu), rel=1e-4)


def test_no_variation():
    """mu = 0 is the perfect curve."""
    limit = gaussian_limit([0.5, 0.5], [0.0, 0.0])
    assert (limit.mu, limit.distance) == (0.0, 0.0)


def test_bad_input():
    """Lists of different lengths, empty ones, negative mu."""
    with pytest.raises(InvalidInput, match="as many as the 2 epsilons"):
        gaussian_limit([0.1, 0.2], [0.1])
    for call in (
        lambda: gaussian_limit([], []),
        lambda: gaussian_limit("ab", "cd"),
        lambda: gaussian_limit([-0.1], [0.1]),
        lambda: gaussian_total_variation(-1.0),
        lambda: gaussian_trade_off(1.0, [1.5]),
    ):
        with pytest.raises(InvalidInput):
            call()
