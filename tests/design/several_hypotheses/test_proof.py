"""The certificate of utilities of few marginals, against all staircase patterns and against forgeries."""

import itertools

import numpy as np
import pytest

from ldpopt import Channel, LocalDP, TotalVariation
from ldpopt.design import (
    Divergence,
    MarginalDual,
    MutualInformation,
    PatternDual,
    PatternLP,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.patterns.method import pattern_program
from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION
from ldpopt.numbers.enclosures import arithmetic
from tests.design.kernel.forging import forged

DIVERGENCES = (KL, TOTAL_VARIATION, CHI_SQUARED)


def problems():
    """(utility, constraints) of two to four laws, with zeros, ties, near laws, small and large epsilon, and caps."""
    rng = np.random.default_rng(11)
    for number, f in enumerate(DIVERGENCES):
        for n, epsilon, eta in (
            (2, 1.0, None),
            (3, 0.5, 0.1),
            *([(3, 3.0, None), (4, 1.0, None)] if number == 1 else []),
        ):
            laws = rng.dirichlet(np.full(5, 0.7), n)
            utility = WorstOf(f, laws[0], laws[1:])
            if number % 2 and n > 2:
                parts = [Divergence(f, laws[i - 1], laws[i]) for i in range(1, n)]
                utility = WeightedSum(rng.uniform(0.5, 2.0, n - 1).tolist(), parts)
            yield utility, (LocalDP(epsilon), *([TotalVariation(eta)] if eta else []))
    p0, p1, p2 = [0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25]
    yield WorstOf(KL, p2, [p0, p1]), (LocalDP(1.0),)
    yield WorstOf(CHI_SQUARED, p0, [p1, p2]), (LocalDP(2.0), TotalVariation(0.2))
    near = np.array(p2) + 1e-3 * np.array([1.0, -1.0, 2.0, -2.0])
    yield WorstOf(KL, p2, [near, p0]), (LocalDP(1.0),)


def solved(utility, constraints):
    """The design over all patterns, and the multipliers of its program as a certificate by patterns."""
    design = optimal_channel(utility, constraints, method=PatternLP())
    eta = min((c.eta for c in constraints if isinstance(c, TotalVariation)), default=1.0)
    *_, found = pattern_program(utility, constraints[0].epsilon, eta)
    return design, PatternDual(utility, constraints, design.channel, found.rows, found.pairs(), found.criteria)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("number", range(len(list(problems()))))
def test_the_bound_is_that_of_all_patterns_with_the_same_multipliers(number):
    """Never below the optimum, and within 1e-6 of what the same multipliers prove pattern by pattern [KOV14, Thm 4]."""
    utility, constraints = list(problems())[number]
    design, numbers = solved(utility, constraints)
    made = MarginalDual(utility, constraints, design.channel, numbers.rows, numbers.pairs, numbers.weights)
    assert design.value <= made.bound <= numbers.bound * (1 + 1e-6)
    rng = np.random.default_rng(number)
    # Worse multipliers prove less, in either form, and the optimum is below both.
    rows = numbers.rows + 0.1 * np.abs(numbers.rows).max() * rng.normal(size=utility.size)
    other = MarginalDual(utility, constraints, design.channel, rows, numbers.pairs, numbers.weights)
    assert design.value <= other.bound


@pytest.mark.full
def test_in_exact_arithmetic_the_bound_is_the_same_but_for_rounding():
    """Balls of 256 bits on the simplices that floats have found."""
    laws = np.random.default_rng(5).dirichlet(np.ones(4), 3)
    utility, constraints = WorstOf(KL, laws[0], laws[1:]), (LocalDP(1.0), TotalVariation(0.3))
    design, numbers = solved(utility, constraints)
    made = MarginalDual(utility, constraints, design.channel, numbers.rows, numbers.pairs, numbers.weights)
    exact = made.bound_in(arithmetic(True)).value
    assert design.value <= exact
    assert exact == pytest.approx(made.bound, rel=1e-7)
    assert made.verify()


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("f", "eta", "every"), [(TOTAL_VARIATION, 0.2, 24), (KL, None, 36)])
def test_forged_numbers_prove_nothing_below_the_optimum(f, eta, every):
    """Whatever stands in the place of a number: a bound that is proved is one that holds."""
    laws = np.random.default_rng(5).dirichlet(np.ones(4), 3)
    constraints = (LocalDP(1.0), *([TotalVariation(eta)] if eta else []))
    utility = WorstOf(f, laws[0], laws[1:])
    design, numbers = solved(utility, constraints)
    made = MarginalDual(utility, constraints, design.channel, numbers.rows, numbers.pairs, numbers.weights)
    all_forged = forged(made, np.random.default_rng(0), keep=("utility", "constraints", "channel", "edges"))
    tried = list(itertools.islice(all_forged, 0, None, every))
    bounds = np.array([other.bound for other in tried])
    assert len(tried) > 2
    assert not (bounds < design.value).any()
    assert np.isfinite(bounds).any()


def test_unsupported_problems_prove_no_bound():
    """Mutual information, a missing LDP and six distributions have no proof, and the reason is stated."""
    laws = np.random.default_rng(5).dirichlet(np.ones(4), 6)
    flat, channel = (np.ones(4), np.zeros((4, 4)), np.ones(1)), Channel(np.full((4, 2), 0.5))
    information = MarginalDual(MutualInformation(laws[0]), (LocalDP(1.0),), channel, *flat)
    free = MarginalDual(Divergence(KL, laws[0], laws[1]), (TotalVariation(0.1),), channel, *flat)
    many = MarginalDual(WorstOf(KL, laws[0], laws[1:]), (LocalDP(1.0),), channel, *flat[:2], np.ones(5))
    for made, words in ((information, "marginals"), (free, "LocalDP"), (many, "6 laws")):
        assert made.bound == np.inf
        assert any(words in failure for failure in made.verify().failures)
