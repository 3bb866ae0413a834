"""Tests of `ldpopt.design.estimation.staircase`: no pattern gains more than the bound in floats says."""

import math

import numpy as np
import pytest

from ldpopt.design.estimation.branches import Sizes
from ldpopt.design.estimation.prices import Charges, subsets
from ldpopt.design.estimation.staircase import StaircaseColumns, pattern_gain_bound
from ldpopt.design.estimation.thresholds import Scarf, Thresholds
from ldpopt.numbers.enclosures import EXACT, FLOAT


def some(k, seed, epsilon, least):
    """Numbers as a design has them: a kernel of influences, a prior with small shares, multipliers that nearly pay."""
    rng = np.random.default_rng(seed)
    p = np.maximum(rng.dirichlet(np.ones(k)), least)
    p /= p.sum()
    kernel = rng.normal(size=(k, k)) * p
    earned = ((kernel - np.outer(kernel.sum(axis=1), p)) ** 2).sum() / p.min()
    rows = p * earned * (1 + 1e-6 * rng.normal(size=k))
    return kernel, p, rows, np.triu(rng.random((k, k)), 1) * earned * 1e-3


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 20.0, 100.0])
@pytest.mark.parametrize("least", [1e-2, 1e-9])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_bound_in_halves_is_just_above_the_largest_price(k, epsilon, least):
    """No pattern is priced above it in balls of 256 bits, and the largest price is within its rounding of it."""
    kernel, p, rows, pairs = some(k, 3, epsilon, least)
    level = 1 / EXACT.of(epsilon).expm1()
    exact = Charges.from_kernel(EXACT.of(kernel), p, rows, pairs)
    sets = subsets(k)
    true = exact.gain_bound(level * np.ones(len(sets)), EXACT.of(sets))
    found = pattern_gain_bound(Charges.from_kernel(FLOAT.of(kernel), p, rows, pairs), 1 / FLOAT.of(epsilon).expm1())
    lowest = true - float(np.nextafter(abs(true) * 2.0**-50, 1))
    # What the terms add up to without their signs is what rounding is measured by.
    mass = 1 / np.expm1(epsilon) + sets @ p
    root = np.sqrt(((kernel - np.outer(kernel.sum(axis=1), p)) ** 2).sum(axis=0))
    told = np.abs(rows).sum() / np.expm1(epsilon) + 2 * sets @ (rows + pairs.sum(axis=1))
    size = ((sets @ root) ** 2 / mass + told) / mass
    assert lowest <= found <= true + 1e-11 * size.max()


@pytest.mark.parametrize("scale", [1e-280, 1e-160, 1e150, 1e300])
def test_numbers_near_the_ends_of_floats_are_bounded_or_refused(scale):
    """Where products overflow or underflow the answer is still an upper bound, or inf."""
    kernel, p, rows, pairs = some(5, 1, 1.0, 1e-3)
    rows = rows * -1e-5
    scaled = Charges.from_kernel(EXACT.of(kernel * scale), p, rows * scale**0.5, pairs * 0)
    sets = subsets(5)
    true = scaled.gain_bound((1 / EXACT.of(1.0).expm1()) * np.ones(len(sets)), EXACT.of(sets))
    floats = Charges.from_kernel(FLOAT.of(kernel * scale), p, rows * scale**0.5, pairs * 0)
    found = pattern_gain_bound(floats, 1 / FLOAT.of(1.0).expm1())
    assert found >= true * (1 - math.copysign(1e-12, true))


def test_a_level_too_small_for_floats_is_refused():
    """At an epsilon of 700 the weights of the constant underflow in products: nothing is claimed."""
    kernel, p, rows, pairs = some(4, 1, 1.0, 1e-3)
    charges = Charges.from_kernel(FLOAT.of(kernel), p, rows, pairs)
    assert pattern_gain_bound(charges, 1 / FLOAT.of(700.0).expm1()) == math.inf
    assert pattern_gain_bound(charges, 1 / FLOAT.of(100.0).expm1()) < math.inf


@pytest.mark.parametrize("relaxed", [Sizes(), Scarf(), Thresholds(0.0, 0)], ids=lambda relaxed: type(relaxed).__name__)
def test_few_patterns_are_priced_one_by_one_despite_the_file(relaxed):
    """A proof for up to twelve inputs is that of all patterns, as of every program that prices them."""
    kernel, p, rows, _ = some(6, 5, 1.0, 1e-2)
    charges = Charges.from_kernel(FLOAT.of(kernel), p, rows, np.zeros((6, 6)))
    columns = StaircaseColumns(6, 1.0)
    assert columns.gain_bound(charges, relaxed) == columns.gain_bound(charges, None)
