"""Tests of `ldpopt.design.methods.shapes`: many inputs under (epsilon, delta), against the exact programs."""

import numpy as np
import pytest
from design_problems import DIVERGENCES, level_shapes, random_pair

from ldpopt import Divergence, InvalidInput, LocalDP, optimal_channel
from ldpopt.design import ApproximateLDP, Dominated, Exchange, LevelLP, LevelShapes, MutualInformation
from ldpopt.design.methods.shapes import SHAPES, Family, shape_program
from ldpopt.design.problems.reduction import Pair
from ldpopt.divergences import KL


@pytest.mark.parametrize("name", ["kl", "chi_squared", "squared_hellinger", "total_variation"])
@pytest.mark.parametrize("k", [3, 5])
def test_the_shapes_reach_the_exact_optimum(name, k):
    """On small problems the shapes alone keep what all extreme columns keep."""
    for seed in range(1):
        utility = Divergence(DIVERGENCES[name], *random_pair(k, seed))
        for caps in (ApproximateLDP(1.0, 0.05), ApproximateLDP(0.3, 0.2)):
            exact = optimal_channel(utility, caps, method=LevelLP())
            found = optimal_channel(utility, caps, method=LevelShapes(), certify=False)
            assert found.value == pytest.approx(exact.value, rel=1e-7)
            assert float(found.guarantees[0]) <= caps.delta


def test_they_reach_the_exchange_at_sixteen_inputs_by_column_generation():
    """With 16 ratios the shapes are priced, not listed, and the certified optimum of another method is met."""
    utility = Divergence(KL, *random_pair(16, 3))
    caps = ApproximateLDP(1.0, 0.05)
    found = optimal_channel(utility, caps, method=LevelShapes(points=8))
    exact = optimal_channel(utility, caps, method=Exchange())
    assert found.value == pytest.approx(exact.value, rel=1e-7)
    assert isinstance(found.certificate, Dominated)
    assert exact.value * (1 - 1e-9) <= found.upper_bound <= 1.1 * exact.value
    assert not found.certified
    assert found.verify()
    assert found.certificate.verify(exact=True)


def test_many_inputs_have_a_bound():
    """300 inputs are merged into 20; the channel is within delta, and the bound is above what it keeps."""
    utility = Divergence(KL, *random_pair(300, 1))
    found = optimal_channel(utility, ApproximateLDP(1.0, 0.05), method=LevelShapes(bins=20, points=8))
    assert found.verify()
    assert found.value < found.upper_bound < 1.3 * found.value
    assert "20 merged inputs" in found.method


def test_families_are_the_shapes():
    """Levels, values and gains of the families agree with the columns themselves, one by one."""
    epsilon, pair = 0.8, Pair.of(*(np.sort(p) for p in random_pair(7, 2)))
    order = np.argsort(pair.p0 / pair.p1)
    pair = Pair.of(pair.p0[order], pair.p1[order])
    families = [Family.of(shape, KL, pair, epsilon) for shape in SHAPES]
    levels = np.concatenate([one.levels(np.arange(len(one.value)), 7) for one in families])
    assert {tuple(row) for row in levels} == {tuple(row) for row in level_shapes(7)[7:]}
    columns = np.exp(epsilon * (levels - levels.max(axis=1)[:, None]))
    worth = KL.excess(columns @ pair.p0, columns @ pair.p1)
    np.testing.assert_allclose(np.concatenate([one.value for one in families]), worth, rtol=1e-10, atol=1e-15)


def test_the_channel_is_within_every_pair_not_only_the_ends():
    """The program poses the pairs with the first and the last input; its channel keeps to delta between all others."""
    for k, epsilon, delta in ((9, 0.5, 0.1), (24, 2.0, 1e-3)):
        pair = Pair.of(*random_pair(k, 5))
        order = np.argsort(pair.p0 / pair.p1)
        columns = shape_program(KL, Pair.of(pair.p0[order], pair.p1[order]), epsilon, delta)
        over = np.maximum(columns[:, None] - np.exp(epsilon) * columns[None], 0.0).sum(axis=2)
        assert over.max() <= delta * (1 + 1e-9)
        np.testing.assert_allclose(columns.sum(axis=1), 1.0, rtol=1e-12)


def test_refusals_are_sentences():
    """What it does not take it refuses in words."""
    with pytest.raises(InvalidInput, match="likelihood ratio of two finite hypotheses"):
        optimal_channel(MutualInformation([0.5, 0.5]), ApproximateLDP(1.0, 0.1), method=LevelShapes())
    with pytest.raises(InvalidInput, match="ApproximateLDP alone"):
        optimal_channel(Divergence(KL, *random_pair(3, 1)), LocalDP(1.0), method=LevelShapes())
    utility = Divergence(KL, [0.5, 0.3, 0.2], [0.5, 0.5, 0.0])
    with pytest.raises(InvalidInput, match="is infinite"):
        optimal_channel(utility, ApproximateLDP(1.0, 0.1), method=LevelShapes())
    with pytest.raises(InvalidInput, match="points: expected an integer of at least 3"):
        LevelShapes(points=2)
