"""Tests of `ldpopt.design.two_hypotheses.proof`: no dual_factor is smaller than what some block needs."""

import numpy as np
import pytest
from design_problems import DIVERGENCES

from ldpopt import LocalDP
from ldpopt.design.kernel.hypotheses import likelihood_ratio_order
from ldpopt.design.kernel.listed import Caps, dual_factor
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.design.problems.reduction import reduce_pair
from ldpopt.design.two_hypotheses import proof as blocks
from ldpopt.design.two_hypotheses.program import Blocks
from ldpopt.design.two_hypotheses.proof import SortedBlocks
from ldpopt.design.utilities.laws import LawPair
from ldpopt.divergences import KL
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.numbers.enclosures import FLOAT


def blocks_and_factor(f, p0, p1, epsilon, price, potentials):
    """The blocks of a problem, and the dual_factor that all pairs of inputs need, one after the other."""
    order, level = likelihood_ratio_order(p0, p1), Caps.from_constraints([LocalDP(epsilon)], FLOAT).level
    laws, u, n = LawPair.from_floats(p0, p1, FLOAT).take(order), FLOAT.of(potentials), len(order)
    parts = (laws.difference, laws.p1, laws.p0)
    d, b, a = (FLOAT.concatenate([part[i:].cumsum() for i in range(n)]) for part in parts)
    paid = FLOAT.concatenate([u[i + 1 :] - u[i] for i in range(n)]) + price
    needed = dual_factor(enclosed_excess(f, d, level + b, level + a), paid)
    apart = np.asarray(laws.difference.lower), np.asarray(laws.difference.upper)
    return SortedBlocks(f, p0[order], p1[order], *apart, level.lower, price, np.asarray(potentials)), needed


def hypotheses(rng, n, kind):
    p0 = rng.dirichlet(np.ones(n))
    p1 = {
        "apart": lambda: rng.dirichlet(np.ones(n)),
        "near": lambda: p0 * (1 + 1e-7 * rng.normal(size=n)),
        "zeros": lambda: np.where(rng.random(n) < 0.3, 0.0, p0**2),
        "tiny": lambda: p0 * np.exp(20 * rng.normal(size=n)),
    }[kind]()
    return p0 / p0.sum(), p1 / p1.sum()


KINDS = ("apart", "near", "zeros", "tiny")


@pytest.mark.full(but=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DIVERGENCES)
def test_no_factor_is_below_the_need_of_a_block(monkeypatch, name, kind):
    """Of potentials that are right, scaled, or disturbed by 1e-14 to 1: the factor is that of all pairs, or larger."""
    monkeypatch.setattr(blocks, "MAX_BAND_INPUTS", 4)
    monkeypatch.setattr(blocks, "LEAF_SIZE", 2)
    rng = np.random.default_rng(len(name))
    turn = (list(DIVERGENCES).index(name) + KINDS.index(kind)) % 3  # a small epsilon for some, a large one for others
    for epsilon in ((1e-3, 1.0), (1.0, 30.0), (30.0, 1e-3))[turn]:
        p0, p1 = hypotheses(rng, 30, kind)
        search = Blocks(DIVERGENCES[name], reduce_pair(p0, p1).pair, epsilon)
        price = search.coin(0.1).price
        right = search.paying(price, 2.0**-49)
        if len(right) != 1 + np.count_nonzero(p0 + p1):
            continue  # some inputs are merged
        size = 10.0 ** rng.uniform(-14, 0)
        noise = size * right[-1] * rng.normal(size=len(right))
        for potentials in (right, right * (1 - size), right + noise, np.sort(right + noise)):
            own, needed = blocks_and_factor(DIVERGENCES[name], p0, p1, epsilon, price, potentials)
            found = own.short()
            assert found >= needed * (1 - 1e-11)  # sums of all pairs are rounded more
            assert found <= max(needed * (1 + 1e-9), 1 + 1e-9) or needed > 1 + 1e-5


def test_blocks_unsettled_by_floats_include_all_unpaid_ones():
    """Every block that is worth more than is paid for it is among those that balls look at again."""
    rng = np.random.default_rng(0)
    p0, p1 = hypotheses(rng, 200, "apart")
    right = Blocks(KL, reduce_pair(p0, p1).pair, 1.0).paying(0.05, 2.0**-49)
    own, _ = blocks_and_factor(KL, p0, p1, 1.0, 0.05, right * 0.99)
    i, j = own.unsettled(10**6)
    every = np.triu_indices(201, 1)
    worth, paid = own.value_and_price_bounds(*every)
    wrong = {(int(a), int(b)) for a, b in np.stack(every, axis=1)[worth > paid * (1 + 1e-12)]}
    assert wrong
    assert wrong <= set(zip(i.tolist(), j.tolist(), strict=True))
    assert own.unsettled(3) is None


def test_running_sums_keep_the_digits_of_small_blocks():
    """A block of 1e-25 beside masses near one has all its digits, and sums of 1e-300 are not lost to underflow."""
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.random(50), 1e-25 * rng.random(50), rng.random(50)])
    sums = blocks.RunningSums.from_values(values)
    assert sums.between(np.array([50]), np.array([100]))[0] == pytest.approx(values[50:100].sum(), rel=1e-6)
    tiny = blocks.RunningSums.from_values(1e-300 * rng.random(100), 1e-300 * rng.random(100))
    assert 0 < abs(tiny.between(np.array([0]), np.array([100]))[0]) < 1e-297


def test_flat_potentials_of_many_inputs_end_in_time():
    """Where nearly all blocks are worth as much as is paid for them, the search ends, and says so or proves it."""
    n = 20_000
    p0 = np.full(n, 1 / n)
    p1 = np.linspace(1, 3, n) / np.linspace(1, 3, n).sum()
    order = likelihood_ratio_order(p0, p1)
    flat = np.zeros(n + 1)
    own = SortedBlocks(KL, p0[order], p1[order], (p0 - p1)[order], (p0 - p1)[order], 0.58, 1e-9, flat)
    try:
        assert own.short() > 1
    except Unproved as error:
        assert "too many blocks" in str(error)
