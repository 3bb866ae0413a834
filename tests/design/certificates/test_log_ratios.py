"""Rays at logarithms of ratios, and the logarithms that inputs have."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from ldpopt.design.certificates.log_ratios import LogRatioRays, log_ratios
from ldpopt.design.utilities.laws import Laws
from ldpopt.enclosures import EXACT, FLOAT


def test_rays_keep_their_digits():
    """(a, b)/(a + b) at log-ratios from 1e-12 to 400 agree with mpmath to fifteen digits."""
    logs = np.array([1e-12, -1e-6, 0.3, 5.0, -40.0, 400.0])
    rays = LogRatioRays.at(logs, FLOAT)
    with mpmath.workdps(400):
        for at, log in enumerate(logs.tolist()):
            on_p1 = 1 / (1 + mpmath.exp(log))
            for enclosed, true in ((rays.on_p1, on_p1), (rays.on_p0, 1 - on_p1), (rays.lean, 1 - 2 * on_p1)):
                assert enclosed.lower[at] <= true <= enclosed.upper[at]
                assert enclosed.upper[at] - enclosed.lower[at] <= 1e-14 * abs(true)
    ends = LogRatioRays.at(np.array([np.inf, -np.inf]), FLOAT)
    assert ends.on_p1.upper.tolist() == [0.0, 1.0]
    assert ends.lean.lower.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
@pytest.mark.parametrize("apart", [0.2, 1e-9, 1e-15])
def test_the_ends_enclose_the_logarithms_of_all_inputs(arithmetic, apart):
    """The least and largest log(P0/P1) in 60 digits lie within the ends, and near; what never occurs is left out."""
    p0, p1 = np.array([0.5 + apart, 0.25, 0.25 - apart, 0.0]), np.array([0.5, 0.25, 0.25, 0.0])
    low, high = log_ratios(Laws.of(p0, p1, arithmetic))
    with mpmath.workdps(60):
        laws = [[Fraction(x) / sum(map(Fraction, p.tolist())) for x in p.tolist()] for p in (p0, p1)]
        ratios = [a / b for a, b in zip(*laws, strict=True) if a or b]
        logs = [mpmath.log(mpmath.mpf(r.numerator) / r.denominator) for r in ratios]
        assert low <= min(logs)
        assert max(logs) <= high
        assert max(high - max(logs), min(logs) - low) <= 1e-13 * max(high, -low)


def test_an_input_of_one_hypothesis_alone_has_an_infinite_logarithm():
    """Where one mass is zero the end is infinite, on the side of the other."""
    low, high = log_ratios(Laws.of(np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5]), FLOAT))
    assert (low, high) == (-np.inf, np.inf)
