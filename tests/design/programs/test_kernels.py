"""Tests of `ldpopt.design.cut_columns`: the kernels are a relaxation, and prices are those of the patterns."""

import math

import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, random_pair

from ldpopt.design.problems.reduction import reduce
from ldpopt.design.programs.kernels import PatternProgram, blocks, every_block
from ldpopt.design.solve import INTERIOR, SIMPLEX


def columns(k, seed, eta, f="kl"):
    pair = reduce(*random_pair(k, seed)).pair
    return PatternProgram(DIVERGENCES[f], pair, math.e, eta, 0.01, np.zeros((k, 0), dtype=bool))


def test_every_block():
    """There are k(k+1)/2 - 1 proper blocks, each a run of ones."""
    start, stop = every_block(6)
    assert len(start) == 6 * 7 // 2 - 1
    inside = blocks(start, stop, 6)
    assert (np.abs(np.diff(inside.astype(int), axis=0)).sum(axis=0) <= 2).all()
    assert np.array_equal(inside.sum(axis=0), stop - start)


@pytest.mark.parametrize("name", ["kl", "chi_squared", "squared_hellinger"])
def test_kernels_are_a_relaxation(name):
    """With all patterns and only kernels for the TV cap the program is never below the optimum, and seldom above it."""
    excess = []
    for instance in ORACLE[:6]:
        pair = reduce(np.array(instance["p0"]), np.array(instance["p1"])).pair
        k = len(pair)
        every = ((np.arange(1, 2**k - 1)[:, None] >> np.arange(k)) & 1).T == 1
        optimum, ratio = instance["optimum"][name], math.exp(instance["epsilon"])
        program = PatternProgram(DIVERGENCES[name], pair, ratio, instance["eta"], optimum, every)
        theta, rows, pairs = program.solve(INTERIOR)
        assert program.worth(program.inside) @ theta >= 1 - 1e-7
        excess.append(rows.sum() + instance["eta"] * pairs.sum() - 1)
    assert min(excess) >= -1e-12
    assert np.median(excess) <= 1e-7


def test_prices_are_those_of_the_patterns():
    """Blocks priced from prefix sums gain what they gain one by one, and mended rows leave no gain in the program."""
    program = columns(12, 3, 0.2)
    _, rows, pairs = program.solve(INTERIOR)
    assert program.gains(program.inside, rows, pairs).max() <= 1e-9
    start, stop = every_block(12)
    one_by_one = program.gains(blocks(start, stop, 12), rows, pairs)
    assert program._block_gains(start, stop, rows, pairs) == pytest.approx(one_by_one, abs=1e-12)


def test_violated_caps_are_real():
    """The kernels and pairs that are said to be exceeded are, and a feasible solution exceeds none."""
    program = columns(8, 1, 0.2)
    program.kernels = program.kernels[:1]
    theta, _, _ = program.solve(SIMPLEX)
    kernels, pairs = program.violated(theta)
    assert pairs
    assert kernels
    for x, y in pairs:
        apart = program.inside[x] & ~program.inside[y]
        assert (math.e - 1) * theta[apart].sum() > 0.2
    assert program.violated(theta * 1e-3) == ([], [])


def test_added_patterns_are_distinct_and_proper():
    """Patterns join once; the empty set and the whole, which are erasure, never do."""
    program = columns(5, 2, 0.2)
    before = program.inside.shape[1]
    assert program.add(np.array([[True, False], [True, False], [True, False], [True, False], [True, False]])) == 0
    assert program.add(program.inside) == 0
    new = np.array([[True], [False], [True], [False], [True]])
    assert program.add(np.hstack([new, new])) == 1
    assert program.inside.shape[1] == before + 1
