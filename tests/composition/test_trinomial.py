"""The law of the differences of draws, against the same law in 60 digits."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.composition.k_fold import trinomial_log_pmf


def exact(count, epsilon, kept):
    """log Pr(#plus - #minus = d), d = -count..count, by repeated convolution in the digits at hand."""
    plus = kept / (1 + mpmath.exp(-mpf(epsilon)))
    law = [mpf(1)]
    for _ in range(count):
        longer = [mpf(0)] * (len(law) + 2)
        for place, mass in enumerate(law):
            longer[place] += mass * (kept - plus)
            longer[place + 1] += mass * (1 - kept)
            longer[place + 2] += mass * plus
        law = longer
    return [mpmath.log(mass) if mass else -mpmath.inf for mass in law]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 25])
@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.7, 40.0])
@pytest.mark.parametrize("erasure", [0.0, 1e-12, 0.3, 0.999])
def test_every_mass_keeps_its_digits(count, epsilon, erasure):
    """Each log mass is right to a few units in the last place for each step from the mode [GI, eq. 7]."""
    with mpmath.workdps(60):
        truth = exact(count, epsilon, 1 - mpf(erasure))
    found = trinomial_log_pmf(count, epsilon, erasure)
    for ours, right in zip(found.tolist(), truth, strict=True):
        if math.isinf(ours):
            assert right == -mpmath.inf
        else:
            assert abs(ours - float(right)) <= 2e-14 * (count + abs(float(right)))


@pytest.mark.parametrize("kept", [1e-30, 0.9e-100, 1.1e-100, 1e-140])
@pytest.mark.parametrize("epsilon", [0.0, 2.0])
def test_hardly_any_draw_is_kept(kept, epsilon):
    """The share that is kept counts where 1 - erasure has lost its digits, on both sides of the change of formulas."""
    with mpmath.workdps(400):
        truth = [float(mass) for mass in exact(3, epsilon, mpf(kept))]
    assert trinomial_log_pmf(3, epsilon, 1.0, kept) == pytest.approx(truth, rel=1e-14)


def test_nothing_is_kept():
    """Where all draws are erased the difference is zero."""
    assert trinomial_log_pmf(2, 1.0, 1.0).tolist() == [-math.inf, -math.inf, 0.0, -math.inf, -math.inf]
    assert np.exp(trinomial_log_pmf(1, 0.0, 1.0, 0.5)).sum() == pytest.approx(1.0)
