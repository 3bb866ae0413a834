import itertools
import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.privacy import ZCDP, ApproximateDP, FinitePair, PureDP, RenyiDP
from ldpopt.privacy.implications import group_approximate, group_gaussian_mcdp, group_pure, group_renyi, group_zcdp


def chain(seed, size):
    """Distributions P_0..P_size, each close to the next."""
    rng = np.random.default_rng(seed)
    steps = [rng.dirichlet(np.ones(5) * 4)]
    for _ in range(size):
        moved = steps[-1] * np.exp(rng.uniform(-0.3, 0.3, 5))
        steps.append(moved / moved.sum())
    return steps


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [2, 4])
def test_groups_hold_along_chains(seed, size):
    """What holds between neighbours of a chain holds between its ends as each theorem says."""
    steps = chain(seed, size)
    neighbours = [FinitePair(a, b) for a, b in itertools.pairwise(steps)]
    ends = FinitePair(steps[0], steps[-1])
    epsilon = max(float(pair.local_dp()) for pair in neighbours)
    assert ends.local_dp().lower <= group_pure(PureDP(epsilon), size).epsilon
    order = 8.0
    renyi = max(float(pair.renyi(order)) for pair in neighbours)
    grouped = group_renyi(RenyiDP(order, renyi), int(math.log2(size)))
    assert float(ends.renyi(grouped.order)) <= grouped.epsilon
    orders = np.geomspace(1.001, 200, 60)
    rho = max(float(pair.zcdp()) for pair in neighbours)
    zcdp = group_zcdp(ZCDP(0.0, rho), size)
    assert all(found.lower <= zcdp.xi + zcdp.rho * found.parameters["order"] for found in ends.renyi(orders))
    at = epsilon / 2
    delta = max(float(pair.hockey_stick(at)) for pair in neighbours)
    approximate = group_approximate(ApproximateDP(at, delta), size)
    assert ends.hockey_stick(approximate.epsilon).lower <= approximate.delta


def test_formulas():
    """BS Prop 5.3 and M Prop 2 as stated."""
    found = group_zcdp(ZCDP(0.1, 0.5), 3)
    assert (found.xi, found.rho) == (pytest.approx(0.1 * 3 * (1 + 1 / 2 + 1 / 3)), pytest.approx(4.5))
    assert group_renyi(RenyiDP(8, 0.1), 2) == RenyiDP(2.0, group_renyi(RenyiDP(8, 0.1), 2).epsilon)
    assert group_renyi(RenyiDP(8, 0.1), 2).epsilon == pytest.approx(0.9)
    assert group_zcdp(ZCDP(-0.1, 0.5), 2).xi == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: group_renyi(RenyiDP(3.9, 0.1), 1),
        lambda: group_pure(PureDP(1.0), 0),
        lambda: group_gaussian_mcdp(1.0, 0.0),
        lambda: group_gaussian_mcdp(-1.0, 1.0),
        lambda: group_zcdp(PureDP(1.0), 2),
    ],
)
def test_bad_input(call):
    """Orders too small for the group, empty groups and wrong notions are refused."""
    with pytest.raises(InvalidInput):
        call()


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_group_delta_is_the_geometric_sum(epsilon):
    """[GI, Def 1] applied three times: delta (1 + e^epsilon + e^(2 epsilon)), which is 3 delta for epsilon 0."""
    made = group_approximate(ApproximateDP(epsilon, 1e-6), 3)
    assert made.delta == pytest.approx(1e-6 * (1 + math.exp(epsilon) + math.exp(2 * epsilon)), rel=1e-12)


def test_no_doubling_leaves_the_claim():
    """Groups of one person have the claim itself, and fewer than none there are not."""
    alone = group_renyi(RenyiDP(8.0, 0.125), 0)
    assert (alone.order, alone.epsilon) == (8.0, pytest.approx(0.125, rel=1e-15))
    with pytest.raises(InvalidInput):
        group_renyi(RenyiDP(8.0, 0.125), -1)
    assert group_renyi(RenyiDP(8.0, 0.125), 2).order == 2.0
    with pytest.raises(InvalidInput, match="order"):
        group_renyi(RenyiDP(8.0, 0.125), 3)
