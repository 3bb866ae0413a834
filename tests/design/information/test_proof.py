"""Tests of `ldpopt.design.information.proof`: some inputs whole, the rest as if it could be divided."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from ldpopt import Channel
from ldpopt.design import InformationDual, LocalDP, MutualInformation, PatternDual, TotalVariation, optimal_channel
from ldpopt.design.information.method import BalancedSets
from ldpopt.design.information.proof import _Masses
from ldpopt.design.kernel.sets import members
from ldpopt.numbers.enclosures import EXACT, FLOAT
from tests.design.kernel.forging import fails_in_words, forged


def every_pattern(prior, epsilon, eta=1.0):
    """The optimum by a linear program over all 2^k patterns, with all rows of the cap: shares no code."""
    k, ratio = len(prior), math.exp(epsilon)
    sets = members(np.arange(2**k - 1), k).astype(float)
    columns = 1 + (ratio - 1) * sets
    mean = columns @ prior
    worth = (columns * np.log(columns / mean[:, None])) @ prior
    x, y = np.nonzero(~np.eye(k, dtype=bool))
    above = (ratio - 1) * (sets[:, x] * (1 - sets[:, y])).T
    found = linprog(
        -worth, A_ub=above, b_ub=np.full(len(x), eta), A_eq=columns.T, b_eq=np.ones(k), method="highs"
    )  # fmt: skip
    return -found.fun


@pytest.mark.full(but=1)
@pytest.mark.parametrize("cap", [None, 0.15])
def test_any_multipliers_bound_the_optimum(cap):
    """Whatever numbers a certificate holds, its bound is no lower than the optimum over all 2^k patterns [KOV14]."""
    rng = np.random.default_rng(3)
    for number in range(60):
        prior, epsilon = rng.dirichlet(np.ones(6)), float(rng.uniform(0.2, 4))
        caps = (LocalDP(epsilon),) if cap is None else (LocalDP(epsilon), TotalVariation(cap))
        best = every_pattern(prior, epsilon, 1.0 if cap is None else cap)
        n = int(rng.integers(0, 7))
        whole = rng.permutation(6)[:n]
        rest = np.delete(prior, whole).sum()
        rows = np.append(prior[whole], rest) * rng.uniform(0.5, 1.5, n + 1) * best
        pairs = rng.exponential(size=(n + 1, n + 1)) * best * (cap is not None) * 0.3
        if n == 6:
            rows[-1], pairs[-1], pairs[:, -1] = 0, 0, 0
        made = InformationDual(MutualInformation(prior), caps, Channel(np.ones((6, 1))), whole, rows, pairs)
        assert not made.bound < best * (1 - 1e-9), number


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("cap", [None, 0.5])
def test_multipliers_of_whole_inputs_prove_the_optimum(epsilon, cap):
    """With nothing left to divide the best multipliers prove the optimum of the pattern program."""
    prior = np.random.default_rng(1).dirichlet(np.ones(6))
    caps = [LocalDP(epsilon)] + ([] if cap is None else [TotalVariation(cap * math.tanh(epsilon / 2))])
    design = optimal_channel(MutualInformation(prior), caps, method=BalancedSets())
    assert isinstance(design.certificate, InformationDual)
    best = every_pattern(prior, epsilon, 1.0 if cap is None else cap * math.tanh(epsilon / 2))
    assert design.value <= best * (1 + 1e-8)
    assert best <= design.upper_bound * (1 + 1e-8)
    assert design.upper_bound <= best * (1 + 1e-7)
    assert design.certificate.verify()
    assert design.certificate.verify(exact=True)
    other = optimal_channel(MutualInformation(prior), caps)
    assert isinstance(other.certificate, PatternDual)
    assert other.value == pytest.approx(design.value, rel=1e-7)


def test_equal_inputs_are_looked_at_one_by_one():
    """A rest of equal probabilities has masses j/k only: a bound below the capacity, of the best subset selection."""
    k, epsilon = 5, 1.0
    best = every_pattern(np.full(k, 1 / k), epsilon)
    for prior in (np.full(k, 1 / k), np.append(np.full(k, 1 / k), [0.0, 0.0])):
        utility = MutualInformation(prior)
        made = InformationDual(
            utility, (LocalDP(epsilon),), Channel(np.ones((len(prior), 1))), np.zeros(0, dtype=int),
            np.array([best]), np.zeros((1, 1)),
        )  # fmt: skip
        assert best * (1 - 1e-9) <= made.bound <= best * (1 + 1e-9)


def test_forged_numbers_prove_nothing_false():
    """Numbers tampered with in every way prove no bound below the optimum, and fail in words where they prove none."""
    rng = np.random.default_rng(7)
    prior = rng.dirichlet(np.ones(7))
    caps = [LocalDP(1.0), TotalVariation(0.2)]
    design = optimal_channel(MutualInformation(prior), caps, method=BalancedSets())
    best = every_pattern(prior, 1.0, 0.2)
    honest = design.certificate
    part = InformationDual(
        design.utility, design.constraints, design.channel, np.array([0, 3]), np.array([0.1, 0.1, 0.2]),
        np.full((3, 3), 0.1),
    )  # fmt: skip
    for start in (honest, part):
        for false in forged(start, rng, keep=("utility", "constraints", "channel", "edges")):
            assert not false.bound < best * (1 - 1e-9)
    for bad in (np.array([0, 0]), np.array([7, 1]), np.array([-1, 2]), np.array([0.0, 1.0]), None, np.zeros((2, 1))):
        assert fails_in_words(replace(part, whole=bad))
    assert fails_in_words(replace(honest, whole=np.arange(21)))
    assert fails_in_words(replace(part, constraints=(TotalVariation(0.2),)))


def test_a_rest_that_is_empty_has_no_multipliers():
    """Multipliers for a rest without inputs would be charged to nobody: they are refused."""
    utility, channel = MutualInformation([0.5, 0.3, 0.2]), Channel(np.ones((3, 1)))
    made = InformationDual(utility, (LocalDP(1.0),), channel, np.arange(3), np.array([1.0, 1, 1, 0]), np.zeros((4, 4)))
    assert math.isfinite(made.bound)
    assert fails_in_words(replace(made, rows=np.array([1.0, 1, 1, -1])))
    assert fails_in_words(replace(made, pairs=np.eye(4)))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0])
def test_the_bound_does_not_rest_on_the_search_for_a_share(share, monkeypatch):
    """The share of the rest that the kernel looks for in floats is untrusted: another makes no bound false."""
    monkeypatch.setattr("ldpopt.design.information.proof.best_share", lambda own, *rest: np.full(len(own), share))
    rng = np.random.default_rng(11)
    for _ in range(40):
        prior, epsilon = rng.dirichlet(np.ones(4)), float(rng.uniform(0.3, 3))
        eta = float(rng.uniform(0.05, 0.9) * math.tanh(epsilon / 2))
        best = every_pattern(prior, epsilon, eta)
        n = int(rng.integers(0, 2))
        pairs = np.zeros((n + 1, n + 1))
        pairs[n, n] = 10 ** rng.uniform(-2, 0.5)
        rows = np.append(rng.normal(size=n) * 0.01, 10 ** rng.uniform(-3, 0))
        nothing = Channel(np.ones((4, 1)))
        caps = (LocalDP(epsilon), TotalVariation(eta))
        made = InformationDual(MutualInformation(prior), caps, nothing, rng.permutation(4)[:n], rows, pairs)
        assert made.bound >= best * (1 - 1e-9)


@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["float", "exact"])
def test_the_rest_is_spread_over_its_inputs(arithmetic):
    """1 - sum (P_x/R)^2 over the rest, its mass, and how many inputs of one probability it has."""
    prior = np.array([0.4, 0.1, 0.2, 0.3])
    some = _Masses.from_prior(prior, np.array([0]), np.array([1, 2, 3]), arithmetic)
    exact = 1 - sum((one / 0.6) ** 2 for one in (0.1, 0.2, 0.3))
    assert float(some.spread.lower) <= exact * (1 + 1e-12)
    assert float(some.spread.upper) == pytest.approx(exact, rel=1e-12)
    assert float(some.rest.upper) == pytest.approx(0.6, rel=1e-14)
    assert some.equal == 0
    alike = _Masses.from_prior(np.array([0.4, 0.3, 0.0, 0.3]), np.array([0]), np.array([1, 2, 3]), arithmetic)
    assert alike.equal == 2
    assert float(alike.spread.upper) == pytest.approx(0.5, rel=1e-12)
    none = _Masses.from_prior(prior, np.arange(4), np.zeros(0, dtype=np.intp), arithmetic)
    assert (none.equal, float(none.rest.upper), float(none.spread.upper)) == (0, 0.0, 1.0)
