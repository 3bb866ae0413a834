"""Tests of `ldpopt.design.patterns.program` on staircase patterns: the optimum of the whole program, at every scale."""

import itertools
import math

import numpy as np
import pytest
from design_problems import DIVERGENCES, random_pair
from scipy.optimize import linprog

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import MutualInformation, WorstOf
from ldpopt.design.kernel.sets import members
from ldpopt.design.patterns.method import MAX_PRICED_INPUTS, pattern_program
from ldpopt.design.problems.reduction import reduce_pair
from ldpopt.design.two_hypotheses.program import Blocks
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL
from ldpopt.errors import InvalidInput


def plain_lp(utility, epsilon, eta):
    """The program as [KOV14, Thm 4] writes it, over all columns with entries 1 and e^epsilon, by scipy."""
    k, ratio = utility.size, math.exp(epsilon)
    inside = members(np.arange(2**k - 1), k)
    columns = np.where(inside, ratio, 1.0)
    mu = utility.columns(columns.T)
    pairs = list(itertools.combinations(range(k), 2))
    caps = np.array([(ratio - 1) * (inside[:, x] & ~inside[:, z]) for x, z in pairs])
    # The last variable is the least of the criteria.
    found = linprog(
        np.append(np.zeros(len(columns)), -1.0),
        A_ub=np.vstack([np.hstack([caps, np.zeros((len(pairs), 1))]), np.hstack([-mu, np.ones((len(mu), 1))])]),
        b_ub=np.append(np.full(len(pairs), eta), np.zeros(len(mu))),
        A_eq=np.hstack([columns.T, np.zeros((k, 1))]),
        b_eq=np.ones(k),
        bounds=[(0, None)] * len(columns) + [(None, None)],
        method="highs-ds",
    )
    return -found.fun


def pattern_value(utility, sets, theta, epsilon):
    """What the pattern weights keep, and the rows that they make."""
    columns = np.where(sets, 1.0, math.exp(-epsilon))
    return float((utility.columns(columns.T) @ theta).min()), theta @ columns


@pytest.mark.parametrize("share", [10.0, 0.3, 0.8])
@pytest.mark.parametrize("name", ["kl", "jensen_shannon", "hockey_stick_1_5"])
def test_the_pattern_program_agrees_with_the_plain_program(name, share):
    """The weights reach the optimum of the plain program, and the dual values close the gap [KOV14, Thm 4]."""
    for seed, (k, epsilon) in enumerate([(2, 0.5), (5, 1.0), (8, 2.5), (11, 1.0)]):
        utility = Divergence(DIVERGENCES[name], *random_pair(k, seed))
        eta = min(1.0, share * math.tanh(epsilon / 2))
        truth = plain_lp(utility, epsilon, eta)
        *weights, found = pattern_program(utility, epsilon, eta)
        value, rows = pattern_value(utility, *weights, epsilon)
        assert value == pytest.approx(truth, rel=1e-8, abs=1e-12)
        assert found.rows.sum() + eta * found.prices.sum() == pytest.approx(truth, rel=1e-7, abs=1e-12)
        assert np.allclose(rows, 1.0, atol=1e-9)


@pytest.mark.parametrize("eta", [1.0, 0.2])
def test_several_criteria_agree_with_the_plain_program(eta):
    """The same for mutual information, and for the worst of three divergences."""
    rng = np.random.default_rng(4)
    for utility in (
        MutualInformation(rng.dirichlet(np.ones(6))),
        WorstOf(CHI_SQUARED, rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6), 3)),
    ):
        *weights, found = pattern_program(utility, 1.3, eta)
        truth = plain_lp(utility, 1.3, eta)
        assert pattern_value(utility, *weights, 1.3)[0] == pytest.approx(truth, rel=1e-8)
        assert found.rows.sum() + eta * found.prices.sum() == pytest.approx(truth, rel=1e-8)
        assert found.criteria.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["kl", "total_variation", "jensen_shannon", "squared_hellinger"])
@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 1.0, 60.0, 700.0])
def test_the_pattern_program_agrees_with_partitions_at_every_scale(name, epsilon):
    """Weights and dual values agree with the partition method for epsilon from 1e-8 to 700 and eta from 1e-12 [SPR]."""
    pair = random_pair(7, 2)
    utility, reduced = Divergence(DIVERGENCES[name], *pair), reduce_pair(*pair).pair
    blocks = Blocks(DIVERGENCES[name], reduced, epsilon)
    reach = math.tanh(epsilon / 2)
    for eta in (1.0, 1e-12, 1e-9, 0.3 * reach, 0.95 * reach):
        coin = blocks.coin(eta if eta < reach else None).parts
        truth = sum(weight * cut.rate(blocks.level) for weight, cut in coin)
        *_, found = pattern_program(utility, epsilon, eta)
        proved = found.rows.sum() + eta * found.prices.sum()
        assert proved == pytest.approx(truth, rel=1e-8, abs=0)


def test_erasure_remains_where_no_utility_can_be_reached():
    """A total variation of zero, and a hockey stick beyond e^epsilon, leave erasure alone."""
    utility = Divergence(KL, *random_pair(4, 0))
    for sets, _, found in (
        pattern_program(utility, 1.0, 0.0),
        pattern_program(Divergence(DIVERGENCES["hockey_stick_1_5"], *random_pair(4, 0)), 0.3),
    ):
        assert sets.tolist() == [[False] * 4]
        assert found.rows.sum() == 0


def test_too_many_inputs_are_refused():
    """More inputs than the program can price are refused."""
    with pytest.raises(InvalidInput, match=f"at most {MAX_PRICED_INPUTS} inputs"):
        pattern_program(Divergence(JENSEN_SHANNON, *random_pair(MAX_PRICED_INPUTS + 1, 0)), 2.0)


@pytest.mark.parametrize(("apart", "epsilon", "constraints"), [(1e-12, 1.7, []), (0.3, 400.0, [0.4]), (1e-9, 7.0, [])])
def test_a_tiny_weakest_criterion_decides_the_worst_case(apart, epsilon, constraints):
    """Where one criterion is worth 1e-20 of another, the worst of both is what the weak one alone can be worth."""
    weak = Divergence(CHI_SQUARED, [0.5, 0.5], [0.5 + apart, 0.5 - apart])
    caps = [LocalDP(epsilon), *map(TotalVariation, constraints)]
    alone = optimal_channel(weak, caps)
    both = optimal_channel(WorstOf(CHI_SQUARED, [0.5, 0.5], [[0.5 + apart, 0.5 - apart], [0.0, 1.0]]), caps)
    assert both.certified
    assert both.verify()
    # Two inputs leave one proper mechanism, the binary one, erased to the cap: it is best for either pair.
    assert both.value == pytest.approx(alone.value, rel=1e-6)
    assert both.upper_bound >= alone.value * (1 - 1e-12)
