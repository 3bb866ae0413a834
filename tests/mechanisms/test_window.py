import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import piecewise, square_wave
from ldpopt.privacy import local_dp, total_variation
from ldpopt_survey import MaximumLikelihood, estimate

EPSILONS = (1e-8, 1e-3, 0.5, 1.0, 4.0, 20.0)
MECHANISMS = (piecewise, square_wave)


@pytest.mark.parametrize("make", MECHANISMS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_report_is_likelier_than_epsilon_allows(make, epsilon):
    """The ratio of the two densities, in 50 digits, is at most e^epsilon, and nearly that [PM; SW]."""
    made = make(epsilon)
    high, low = (mpmath.mpf(d) for d in made.densities)
    with mpmath.workdps(50):
        ratio = mpmath.log(high / low)
    assert ratio <= epsilon
    assert ratio >= epsilon * (1 - 1e-9) - 1e-13


@pytest.mark.parametrize("make", MECHANISMS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_cells_keep_the_guarantee(make, epsilon):
    """The channel in cells measures no more than the claims of epsilon and eta, for coarse and fine cells."""
    made = make(epsilon)
    for points, cells in ((2, 2), (5, 3), (9, 64)):
        channel = made.channel(np.linspace(*made.domain, points), cells)
        assert float(local_dp(channel)) <= epsilon
        assert float(total_variation(channel)) <= made.eta
    assert made.local_dp().value == epsilon


@pytest.mark.parametrize("make", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_density_integrates_to_one_and_gives_eta(make, epsilon):
    """By quadrature: total mass 1; the distance of the ends of the domain is eta, and no pair is farther apart."""
    made = make(epsilon)
    low, high = made.range
    for x in np.linspace(*made.domain, 5):
        start = float(made._starts(np.float64(x)))
        cuts = sorted({low, high, min(max(start, low), high), min(max(start + made.width, low), high)})
        mass = sum(quad(lambda y, x=x: float(made.density(x, y)), a, b)[0] for a, b in itertools.pairwise(cuts))
        assert math.isclose(mass, 1.0, rel_tol=1e-6)
    fine = np.linspace(low, high, 400_001)
    ends = [made.density(x, fine) for x in made.domain]
    distance = np.abs(ends[0] - ends[1]).mean() * (high - low) / 2
    assert math.isclose(distance, made.eta, rel_tol=1e-3)


def test_the_piecewise_report_is_unbiased():
    """Mean and variance of reports are the answer and [PM, Lemma 1], within five standard errors."""
    rng = np.random.default_rng(331)
    for epsilon in (0.5, 2.0):
        made = piecewise(epsilon)
        for x in (-1.0, 0.0, 0.7):
            y = made.sample(np.full(200_000, x), rng)
            assert abs(y.mean() - x) < 5 * math.sqrt(made.variance(x) / 200_000)
            assert math.isclose(y.var(), made.variance(x), rel_tol=0.02)
            assert np.abs(y).max() <= made.reach


def test_the_square_wave_finds_the_shape():
    """Through its channel, maximum likelihood finds a distribution on ten points."""
    rng = np.random.default_rng(332)
    made = square_wave(3.0)
    points = np.linspace(0, 1, 10)
    truth = np.arange(1, 11) / 55
    channel = made.channel(points, 64)
    reports = channel.sample_indices(rng.choice(10, 200_000, p=truth), rng)
    found = estimate(np.bincount(reports, minlength=64), channel, MaximumLikelihood())
    assert abs(found.values @ points - truth @ points) < 0.01
    assert np.abs(np.cumsum(found.values) - np.cumsum(truth)).max() < 0.03


@pytest.mark.parametrize("make", MECHANISMS)
def test_values_out_of_range_are_refused(make):
    """A missing or too large epsilon, answers outside the domain and points that do not increase are refused."""
    for epsilon in (0.0, -1.0, math.nan, math.inf, 21.0):
        with pytest.raises(InvalidInput):
            make(epsilon)
    made = make(1.0)
    for x in (made.domain[1] + 0.1, math.nan):
        with pytest.raises(InvalidInput):
            made.sample(x, np.random.default_rng(0))
    with pytest.raises(InvalidInput):
        made.channel([0.5, 0.5], 4)
