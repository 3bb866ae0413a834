from fractions import Fraction

import mpmath
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import AOptimal, COptimal, DOptimal, FisherInformation, MVOptimal
from ldpopt.design.utilities.criterion import log_det
from ldpopt.mechanisms import subset_selection
from ldpopt.numbers.enclosures import EXACT, FLOAT

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])


def precise_covariance(channel, prior):
    """J^-1 - p p^T of the laws that rows and prior stand for, in 60 digits."""
    with mpmath.workdps(60):
        total = sum(Fraction(x) for x in prior.tolist())
        p = [mpmath.mpf(f.numerator) / f.denominator for f in (Fraction(x) / total for x in prior.tolist())]
        rows = []
        for row in channel.matrix.tolist():
            total = sum(Fraction(x) for x in row)
            rows.append([mpmath.mpf(f.numerator) / f.denominator for f in (Fraction(x) / total for x in row)])
        q = mpmath.matrix(rows)
        k, m = q.rows, q.cols
        j = mpmath.zeros(k)
        for y in range(m):
            mass = sum(p[x] * q[x, y] for x in range(k))
            for a in range(k):
                for b in range(k):
                    j[a, b] += q[a, y] * q[b, y] / mass
        c = j**-1
        return mpmath.matrix([[c[a, b] - p[a] * p[b] for b in range(k)] for a in range(k)])


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 1.0, 15.0])
@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
def test_the_criterion_lies_between_its_ends(epsilon, arithmetic):
    """Criteria in 60 digits are between the proved ends, which are within 1e-9 of each other."""
    channel = subset_selection(4, epsilon, 2)
    c = precise_covariance(channel, PRIOR)
    a = [1, 0, -1, 2]
    with mpmath.workdps(60):
        truth = {
            AOptimal(): sum(c[x, x] for x in range(4)),
            AOptimal([2, 0, 1, 1]): 2 * c[0, 0] + c[2, 2] + c[3, 3],
            COptimal(a): sum(a[x] * a[y] * c[x, y] for x in range(4) for y in range(4)),
            MVOptimal(): max(c[x, x] for x in range(4)),
            MVOptimal(np.array([a, [0, 0, 0, 1]]).T): max(
                sum(a[x] * a[y] * c[x, y] for x in range(4) for y in range(4)), c[3, 3]
            ),
            DOptimal(): mpmath.log(mpmath.det(c[:3, :3])),
        }
    for criterion, true in truth.items():
        found = FisherInformation(PRIOR, criterion).enclosed_value(channel, arithmetic)
        assert found.lower <= true <= found.upper
        assert found.upper - found.lower <= 1e-9 * abs(true)


def test_the_normalized_distribution_counts_instead_of_the_floats():
    """Rows that sum to one only up to rounding, and a prior, stand for the distributions in proportion to them."""
    channel = Channel(subset_selection(4, 1.0, 2).matrix * (1 + 3e-10))
    prior = PRIOR * (1 - 2e-10)
    c = precise_covariance(channel, prior)
    found = FisherInformation(prior).enclosed_value(channel, EXACT)
    assert found.lower <= sum(c[x, x] for x in range(4)) <= found.upper


def test_a_channel_that_cannot_tell_all_proportions_apart():
    """Of one question about one category the float value counts, right to 2^-40; of none the error is infinite."""
    asks = Channel([[0.8, 0.2], [0.3, 0.7], [0.3, 0.7], [0.3, 0.7]])
    p = PRIOR[0]
    true = (0.3 + 0.5 * p) * (0.7 - 0.5 * p) / 0.5**2
    for arithmetic in (FLOAT, EXACT):
        found = FisherInformation(PRIOR, COptimal([1, 0, 0, 0])).enclosed_value(asks, arithmetic)
        assert found.lower <= true <= found.upper <= true * (1 + 1e-11)
        assert FisherInformation(PRIOR).enclosed_value(asks, arithmetic).upper == np.inf
        assert FisherInformation(PRIOR, DOptimal()).enclosed_value(asks, arithmetic).upper == np.inf


@pytest.mark.parametrize("seed", range(5))
def test_log_determinants_are_enclosed(seed):
    """log |det| of a matrix of floats, badly scaled, is between its ends; a singular one has none."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(6, 6)) * 10.0 ** rng.uniform(-8, 8, 6)
    with mpmath.workdps(60):
        true = mpmath.log(abs(mpmath.det(mpmath.matrix(a.tolist()))))
    for arithmetic in (FLOAT, EXACT):
        found = log_det(arithmetic.of(a))
        assert found.lower <= true <= found.upper <= found.lower + 1e-9
        a_singular = np.vstack([a[:-1], a[0]])
        assert log_det(arithmetic.of(a_singular)) is None
