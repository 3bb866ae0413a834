"""The bounds on the gains of all patterns that a search over directions proves, against all patterns one by one."""

import math

import numpy as np
import pytest

from ldpopt.design.estimation.prices import Charges
from ldpopt.design.estimation.thresholds import Scarf, Thresholds, climb
from ldpopt.design.work import MAX_SEARCH_OPERATIONS
from ldpopt.numbers.enclosures import FLOAT


def problem(k, rows, seed, spread=1.0):
    """A kernel (rows, k), a law, prices near what the best column earns, and the ratio."""
    rng = np.random.default_rng([k, rows, seed])
    prior = rng.dirichlet(np.full(k, 3.0))
    kernel = rng.normal(size=(rows, k)) * prior * spread
    epsilon = float(rng.choice([0.1, 1.0, 3.0]))
    lam = prior * rng.uniform(0, 0.5 * spread**2, k)
    return kernel, prior, lam, epsilon


def gains(kernel, prior, lam, epsilon):
    """The gain of each of the 2^k patterns."""
    k = len(prior)
    columns = np.where((np.arange(2**k)[:, None] >> np.arange(k)) & 1, math.exp(epsilon), 1.0)
    centred = kernel - kernel.sum(axis=1)[:, None] * prior
    mass = columns @ prior
    return ((columns @ centred.T / mass[:, None]) ** 2).sum(axis=1) - columns @ lam / mass


def charges(kernel, prior, lam):
    return Charges.from_kernel(FLOAT.of(kernel), prior, lam, np.zeros((len(prior), len(prior))))


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [1.0, 1e-6, 1e6])
def test_a_level_is_proved_exactly_if_no_pattern_gains_more(rows, seed, spread):
    """A level 1e-6 above the largest gain is proved; one below it is not, at any scale."""
    kernel, prior, lam, epsilon = problem(9, rows, seed, spread)
    best = gains(kernel, prior, lam, epsilon).max()
    unit = lam.sum() + abs(best)
    above = max(best, 0.0) + 1e-6 * unit
    priced, ratio = charges(kernel, prior, lam), FLOAT.of(epsilon)
    assert Thresholds(above).gain_bound(priced, ratio) == above
    if best > 2e-6 * unit:
        assert Thresholds(best - 1e-6 * unit).gain_bound(priced, ratio) == math.inf


@pytest.mark.parametrize("level", [math.nan, math.inf, -1.0])
def test_a_bad_level_proves_no_bound(level):
    """Forged levels fail closed."""
    kernel, prior, lam, epsilon = problem(6, 2, 1)
    assert Thresholds(level).gain_bound(charges(kernel, prior, lam), FLOAT.of(epsilon)) == math.inf


def test_prices_of_pairs_prove_nothing():
    """The search knows prices of rows alone."""
    kernel, prior, lam, epsilon = problem(6, 2, 1)
    paired = Charges.from_kernel(FLOAT.of(kernel), prior, lam, np.ones((6, 6)))
    for relaxed in (Thresholds(1e9), Scarf()):
        assert relaxed.gain_bound(paired, FLOAT.of(epsilon)) == math.inf


@pytest.mark.parametrize("seed", range(12))
def test_second_moments_bound_every_gain(seed):
    """No pattern gains more than sinh^2(epsilon/2) times the largest second moment, less the least price [Scarf]."""
    kernel, prior, lam, epsilon = problem(8, 1 + seed % 3, seed)
    bound = Scarf().gain_bound(charges(kernel, prior, lam), FLOAT.of(epsilon))
    assert bound >= gains(kernel, prior, lam, epsilon).max()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, math.log(3), 2.0, 4.0])
def test_odd_scores_have_the_sharper_bound(epsilon):
    """For yes/no questions at even shares one question at random attains tanh^2(epsilon/2), up to epsilon = log 3."""
    cells = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij")).reshape(3, -1)
    prior = np.full(8, 1 / 8)
    bound = Scarf().gain_bound(charges(cells * prior, prior, np.zeros(8)), FLOAT.of(epsilon))
    best = gains(cells * prior, prior, np.zeros(8), epsilon).max()
    assert bound >= best
    if epsilon <= 1.0:
        assert bound == pytest.approx(best, rel=1e-12)
        assert best == pytest.approx(math.tanh(epsilon / 2) ** 2, rel=1e-12)
    assert bound <= math.sinh(epsilon / 2) ** 2 * (1 + 1e-12)


def test_climbs_end_where_no_threshold_gains_more():
    """From enough directions the climb meets the best of all patterns."""
    kernel, prior, lam, epsilon = problem(10, 2, 5)
    centred = kernel - kernel.sum(axis=1)[:, None] * prior
    starts = np.random.default_rng(1).normal(size=(200, 2))
    sets, found = climb(centred, lam, prior, math.exp(epsilon), starts)
    assert found.max() == pytest.approx(gains(kernel, prior, lam, epsilon).max(), rel=1e-12)
    assert sets.shape == (200, 10)


@pytest.mark.parametrize("boxes", [0, 1, 10**6, -5, 2**60, 1.5, None, "9"])
def test_a_number_of_boxes_only_says_how_long_a_search_may_take(boxes):
    """Any number of boxes, forged ones too, changes no answer of a short search, and states a finite amount of work."""
    kernel, prior, lam, epsilon = problem(9, 2, 3)
    best = max(gains(kernel, prior, lam, epsilon).max(), 0.0)
    priced, unit = charges(kernel, prior, lam), 1e-6 * (lam.sum() + best)
    assert Thresholds(best + unit, boxes).gain_bound(priced, FLOAT.of(epsilon)) == best + unit
    assert Thresholds(best - unit, boxes).gain_bound(priced, FLOAT.of(epsilon)) == math.inf or best <= unit
    assert MAX_SEARCH_OPERATIONS <= Thresholds(best, boxes).work(18) <= 1e12
