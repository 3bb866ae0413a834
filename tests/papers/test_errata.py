"""Numbers and inequalities that the pages on errata and on adaptive composition state."""

import math

import numpy as np
import pytest

from experiments.papers.laws import random_law, tilted
from ldpopt.composition import compose_mcdp
from ldpopt.privacy import MCDP


def displayed(steps):
    """The tau that the page on errata displays, for (mu, tau) in the order used."""
    square, before = sum(tau**2 for _, tau in steps) + sum(mu for mu, _ in steps) ** 2 / 4, 0.0
    for mu, tau in steps:
        square, before = square + mu * math.sqrt(before), before + tau**2
    return math.sqrt(square)


def test_the_displayed_formula_differs_from_the_composition():
    """Steps (0.5, 1), (0.02, 0.2): 1.0619 as displayed, 1.0998 by default, 1.0296 for a given order."""
    steps = [(0.5, 1.0), (0.02, 0.2)]
    claims = [MCDP(*step) for step in steps]
    assert displayed(steps) == pytest.approx(1.0619, abs=5e-5)
    assert compose_mcdp(claims).tau == pytest.approx(1.0998, abs=5e-5)
    assert compose_mcdp(claims, ordered=True).tau == pytest.approx(1.0296, abs=5e-5)


def test_bounds_for_two_gaussian_steps_are_near_the_exact_value():
    """1.914, 1.658 and 1.601 for two steps of standard 1: the last two are at most 8.4 and 4.7 % above 1.530."""
    steps = [(0.5, 1.0)] * 2
    claims = [MCDP(*step) for step in steps]
    assert math.hypot(1, 1) + 0.5 == pytest.approx(1.914, abs=5e-4)
    assert displayed(steps) == pytest.approx(1.658, abs=5e-4) == compose_mcdp(claims).tau
    assert compose_mcdp(claims, ordered=True).tau == pytest.approx(1.601, abs=5e-4)
    assert displayed(steps) / 1.530 - 1 == pytest.approx(0.084, abs=5e-4)
    assert compose_mcdp(claims, ordered=True).tau / 1.530 - 1 <= 0.047


def test_the_repair_of_lemma_4_3_holds_for_small_parameters():
    """[BS, Lemma 4.3] E cosh 2sZ <= exp(2(e-1) v s^2) for |s| < 1/2 and v = D_2 <= 1, though Z is not bounded."""
    rng = np.random.default_rng(43)
    count, nearest = 0, 0.0
    for _ in range(300):
        p = random_law(rng, 4, 0.4, min_mass=1e-6)
        q = tilted(rng, p, float(rng.choice([0.03, 0.5, 2.0])))
        loss = np.log(p / q)
        v = float(np.log(p @ np.exp(loss)))  # the order 2 divergence is at most xi + 2 rho
        if v > 1:
            continue
        count += 1
        for s in (0.01, 0.2, 0.499):
            exponent = math.log(p @ np.cosh(2 * s * loss))
            nearest = max(nearest, exponent / (2 * (math.e - 1) * v * s**2))
    assert count > 100
    assert 0.2 < nearest <= 1
    assert 2 * (math.e - 1) <= 3.44 <= 4 < 4 * (math.e - 1)
