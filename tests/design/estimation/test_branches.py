"""Branch and bound over staircase patterns: no set is priced above what it proves, whatever numbers it is given."""

import math

import numpy as np
import pytest

from ldpopt.design.estimation import branches
from ldpopt.design.estimation.branches import Branches, Form, walk
from ldpopt.design.estimation.prices import Charges, Prices, subsets
from ldpopt.numbers.enclosures import EXACT, FLOAT


def some(k, seed, least=1e-2, slack=0.0):
    """A kernel of influences, a prior, and multipliers that pay for most sets, more or less."""
    rng = np.random.default_rng(seed)
    p = np.maximum(rng.dirichlet(np.ones(k)), least)
    p /= p.sum()
    kernel = rng.normal(size=(k, k)) * np.sqrt(p)
    earned = ((kernel - np.outer(kernel.sum(axis=1), p)) ** 2).sum(axis=0)
    return kernel, p, earned * (0.5 + 0.1 * rng.normal(size=k)) + slack * earned.sum() * p


def largest(kernel, p, rows, epsilon):
    """The largest price of all sets, in balls of 256 bits."""
    sets = subsets(len(p))
    charges = Charges.from_kernel(EXACT.of(kernel), p, rows, np.zeros((len(p), len(p))))
    return charges.gain_bound((1 / EXACT.of(epsilon).expm1()) * np.ones(len(sets)), EXACT.of(sets))


def bounded(kernel, p, rows, epsilon, squares, arithmetic=FLOAT):
    charges = Charges.from_kernel(arithmetic.of(kernel), p, rows, np.zeros((len(p), len(p))))
    return Branches(squares).gain_bound(charges, arithmetic.of(epsilon))


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 8.0])
@pytest.mark.parametrize(("least", "slack"), [(1e-2, 0.0), (1e-9, 0.0), (1e-2, 1.0), (1e-2, -0.3)])
@pytest.mark.parametrize("k", [2, 5, 9])
def test_the_largest_price_is_found_and_never_exceeded(k, epsilon, least, slack):
    """The bound is not below the largest price of all sets in exact arithmetic, nor above it by more than rounding."""
    kernel, p, rows = some(k, k, least, slack)
    true = largest(kernel, p, rows, epsilon)
    gram = (kernel - np.outer(kernel.sum(axis=1), p)).T @ (kernel - np.outer(kernel.sum(axis=1), p))
    for squares in (np.diag(gram), np.zeros(k), 10 * np.diag(gram)):
        found = bounded(kernel, p, rows, epsilon, squares)
        lowest = true - float(np.nextafter(abs(true) * 2.0**-50, 1))
        assert found >= max(lowest, 0.0)
        level = 1 / math.expm1(epsilon)
        told = float(gram.trace() / level + np.abs(rows).sum()) * (1 + 1 / level)
        assert found <= max(true, 0.0) + 1e-9 * told + 2.0**-34 * np.abs(rows).sum()
    assert bounded(kernel, p, rows, epsilon, np.diag(gram), EXACT) >= max(lowest, 0.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("nodes", [0, 1, 7, 2**20])
def test_any_numbers_and_any_patience_give_a_sound_bound(seed, nodes, monkeypatch):
    """Numbers of either sign and any size, and a search that is cut short: no set is priced above the bound."""
    monkeypatch.setattr(branches, "MAX_SEARCH_NODES", nodes)
    rng = np.random.default_rng(seed)
    kernel, p = rng.normal(size=(4, 7)), rng.dirichlet(np.ones(7))
    rows = rng.normal(size=7) + rng.integers(0, 3)
    true = largest(kernel, p, rows, 1.5)
    for size in (1e-12, 1.0, 1e9):
        assert bounded(kernel, p, rows, 1.5, size * rng.normal(size=7)) >= true * (1 - math.copysign(1e-12, true))


@pytest.mark.parametrize("scale", [1e-280, 1e-150, 1e-60, 1e60, 1e150, 1e300])
def test_numbers_near_the_ends_of_floats_are_bounded_or_refused(scale):
    """Where products overflow or underflow the answer is still an upper bound, or inf."""
    kernel, p, rows = some(6, 1)
    rows = rows * -1e-3
    true = largest(kernel * scale, p, rows * scale**0.5, 1.0)
    assert bounded(kernel * scale, p, rows * scale**0.5, 1.0, np.ones(6) * scale) >= true * (
        1 - math.copysign(1e-12, true)
    )


def test_bad_numbers_prove_no_bound():
    """Numbers that are missing, too many, not finite or not numbers bound nothing; nor do prices of pairs."""
    kernel, p, rows = some(4, 1)
    for squares in (np.ones(3), np.ones(5), np.full(4, math.nan), np.full(4, math.inf), "none", None, np.ones((4, 1))):
        assert bounded(kernel, p, rows, 1.0, squares) == math.inf
    pairs = np.triu(np.ones((4, 4)), 1)
    assert (
        Branches(np.ones(4)).gain_bound(Charges.from_kernel(FLOAT.of(kernel), p, rows, pairs), FLOAT.of(1.0))
        == math.inf
    )
    assert bounded(kernel, p, rows, 700.0, np.ones(4)) == math.inf
    assert bounded(kernel, p, rows, 1.0, np.ones(4)) < math.inf


def test_the_sets_that_a_walk_brings_pay_and_the_best_is_among_them():
    """Sets come back in the order of the inputs, each of a price above zero, the largest price first."""
    kernel, p, rows = some(8, 5, slack=-0.3)
    centred = kernel - np.outer(kernel.sum(axis=1), p)
    charges = Charges.from_kernel(FLOAT.of(kernel), p, rows, np.zeros((8, 8)))
    form = Form.from_charges(charges, 1 / FLOAT.of(1.0).expm1(), (centred**2).sum(axis=0))
    found = walk(form, 2**20, 5)
    sets = found.sets
    gains = Prices(centred.T @ centred, p, rows, np.zeros((8, 8)), math.e).gains(np.where(sets, math.e, 1.0))
    assert 1 <= len(sets) <= 5
    assert (gains > 0).all()
    assert gains[0] == pytest.approx(largest(kernel, p, rows, 1.0), rel=1e-9)
    assert found.max_gain == pytest.approx(gains[0], rel=1e-9)
    assert found.complete
    assert not walk(form, 3, 5).complete
