"""Tests of `ldpopt.design.patterns`."""

import itertools

import numpy as np
import pytest
from design_problems import DIVERGENCES, random_pair
from scipy.optimize import linprog

from ldpopt.design.columns.masks import members
from ldpopt.design.methods.blocks import Blocks
from ldpopt.design.problems.reduction import reduce
from ldpopt.design.programs.patterns import LIMIT, pattern_lp
from ldpopt.divergences import JENSEN_SHANNON, KL
from ldpopt.errors import InvalidInput


def plain_lp(f, pair, ratio, eta):
    """The program of the module's docstring, over all patterns at once, by scipy."""
    k = len(pair)
    inside = members(np.arange(2**k - 1), k)
    columns = np.where(inside, ratio, 1.0)
    pairs = list(itertools.combinations(range(k), 2))
    caps = None if eta is None else np.array([(ratio - 1) * (inside[:, x] & ~inside[:, z]) for x, z in pairs])
    found = linprog(
        -f.excess(columns @ pair.p0, columns @ pair.p1),
        A_ub=caps,
        b_ub=None if eta is None else np.full(len(pairs), eta),
        A_eq=columns.T,
        b_eq=np.ones(k),
        method="highs-ds",
    )
    return -found.fun


@pytest.mark.parametrize("share", [None, 0.3, 0.8])
@pytest.mark.parametrize("name", ["kl", "jensen_shannon", "hockey_stick_1_5"])
def test_against_the_plain_program(name, share):
    """Column generation reaches the optimum of the full program, and its dual values close the gap."""
    for seed, (k, epsilon) in enumerate([(2, 0.5), (5, 1.0), (8, 2.5)]):
        pair, ratio = reduce(*random_pair(k, seed)).pair, np.exp(epsilon)
        eta = None if share is None else share * np.tanh(epsilon / 2)
        truth = plain_lp(DIVERGENCES[name], pair, ratio, eta)
        solution = pattern_lp(DIVERGENCES[name], pair, ratio, eta)
        columns = np.where(members(solution.masks, k), ratio, 1.0)
        value = DIVERGENCES[name].excess(columns @ pair.p0, columns @ pair.p1) @ solution.theta
        dual = solution.rows.sum() + (eta or 0.0) * solution.pairs.sum()
        assert value == pytest.approx(truth, rel=1e-7, abs=1e-12)
        assert dual == pytest.approx(truth, rel=1e-6, abs=1e-12)
        assert np.allclose(solution.theta @ columns, 1.0, atol=1e-9)


def test_accuracy_for_tiny_eta_and_epsilon():
    """The scaled program keeps its relative accuracy at eta = 1e-6 and at epsilon = 1e-3."""
    pair = reduce(*random_pair(6, 1)).pair
    small = pattern_lp(KL, pair, np.exp(1.0), 1e-6)
    unit = pattern_lp(KL, pair, np.exp(1.0), 1e-3)
    assert 1e-6 * small.pairs.sum() + small.rows.sum() == pytest.approx(
        (1e-3 * unit.pairs.sum() + unit.rows.sum()) / 1000, rel=1e-7
    )
    tiny = pattern_lp(JENSEN_SHANNON, pair, np.exp(1e-3), None)
    blocks = Blocks(JENSEN_SHANNON, pair, np.exp(1e-3))
    assert tiny.rows.sum() == pytest.approx(blocks.rate(blocks.optimum()), rel=1e-5, abs=0)


def test_limit():
    """More than sixteen distinct ratios are refused."""
    with pytest.raises(InvalidInput, match=f"at most {LIMIT} inputs"):
        pattern_lp(KL, reduce(*random_pair(17, 0)).pair, 2.0, None)
