import math

import mpmath
import numpy as np
import pytest

from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.divergences import hockey_stick as e_gamma
from ldpopt.privacy import chi_squared_contraction, hockey_stick_contraction, local_dp, total_variation


def test_chi_squared_contraction_is_the_worst_ratio():
    """No two input laws keep a larger share of their chi-squared or KL; a fine search on two inputs attains it."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = rng.dirichlet(np.full(4, 0.7), 3)
        found = chi_squared_contraction(q)
        best = 0.0
        for _ in range(300):
            p0, p1 = rng.dirichlet(np.full(3, 0.5), 2)
            for divergence in (CHI_SQUARED, KL):
                before, after = divergence(p0, p1), divergence(p0 @ q, p1 @ q)
                assert after <= found.value * before * (1 + 1e-9)
        x, y = found.witness.inputs
        for b in np.linspace(0.001, 0.999, 999):
            mix = b * q[x] + (1 - b) * q[y]
            best = max(best, b * (1 - b) * np.sum((q[x] - q[y]) ** 2 / mix))
        assert best <= found.value
        assert found.value == pytest.approx(best, rel=1e-5)
        assert found.value - found.lower <= 1e-12
        assert found.lower <= total_variation(q).value  # no f-divergence contracts less than total variation
        assert found.lower <= math.tanh(local_dp(q).value / 2) ** 2  # [AZ]


def test_the_binary_symmetric_and_erasure_channels_are_known():
    """(1-2p)^2 for a binary symmetric channel, 1 - erasure for an erasure channel, 1 for a noiseless one."""
    for p in (0.1, 0.3, 0.4999):
        assert chi_squared_contraction([[1 - p, p], [p, 1 - p]]).value == pytest.approx((1 - 2 * p) ** 2, rel=1e-9)
    erasure = [[0.7, 0.0, 0.3], [0.0, 0.7, 0.3]]
    assert chi_squared_contraction(erasure).value == pytest.approx(0.7, rel=1e-12)
    assert chi_squared_contraction(np.eye(3)).value == 1
    z = chi_squared_contraction([[1.0, 0.0], [0.4, 0.6]])  # the optimum lies at the end of the interval
    assert z.lower <= 0.6 <= z.value
    assert z.value == pytest.approx(0.6, rel=1e-9)


def test_hockey_stick_contraction_is_the_worst_ratio():
    """No two input laws keep a larger share of E_gamma than the worst two rows [ADC, Thm 2]."""
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.full(4, 0.7), 3)
    for gamma in (1.0, 1.5, 3.0):
        found = hockey_stick_contraction(q, gamma)
        for _ in range(300):
            p0, p1 = rng.dirichlet(np.full(3, 0.3), 2)
            before, after = e_gamma(gamma)(p0, p1), e_gamma(gamma)(p0 @ q, p1 @ q)
            assert after <= found.value * before + 1e-13
    assert hockey_stick_contraction(q, math.exp(local_dp(q).value) * (1 + 1e-12)).value <= 1e-15


@pytest.mark.parametrize(
    "rows",
    [
        [[1.055445607721799e-308, 1.0], [1.896140847e-315, 1.0]],
        [[2.28026e-318, 1.0], [2.532110351394119e-307, 1.0]],
        [[1e-300, 1.0], [1e-310, 1.0]],
        [[5e-324, 1.0], [1e-322, 1.0]],
    ],
)
def test_mixtures_of_subnormal_entries_are_enclosed(rows):
    """What rounding leaves of a mixture below 1e-308 counts: the bounds hold the value in 60 digits [OP, Thm 1]."""
    with mpmath.workdps(60):
        p, q = ([mpmath.mpf(x) / mpmath.fsum(map(mpmath.mpf, row)) for x in row] for row in rows)

        def at(log_odds):
            b = 1 / (1 + mpmath.exp(-log_odds))
            return b * (1 - b) * mpmath.fsum((x - y) ** 2 / (b * x + (1 - b) * y) for x, y in zip(p, q, strict=True))

        low, high = mpmath.mpf(-40), mpmath.mpf(40)
        for _ in range(250):
            first, second = low + (high - low) / 3, high - (high - low) / 3
            low, high = (first, high) if at(first) < at(second) else (low, second)
        found = chi_squared_contraction(rows)
        assert found.lower <= at(low) <= found.value
