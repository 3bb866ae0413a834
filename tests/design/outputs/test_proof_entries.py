"""The tree of boxes of entries: sound for any numbers, in float64 and in balls."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from ldpopt.design import (
    ChamberDual,
    Divergence,
    LocalDP,
    MutualInformation,
    Outputs,
    RenyiLDP,
    Support,
    TotalVariation,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.design.outputs.proof import BoxPrices, Chambers, EntrySplit
from ldpopt.divergences import CHI_SQUARED, KL
from ldpopt.numbers.enclosures import EXACT, FLOAT
from tests.design.kernel.forging import NO_RECORD, fails_in_words, forged

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
MASK = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 0, 1]], bool)


def utilities():
    yield MutualInformation(PRIOR)
    yield Divergence(KL, PRIOR, PRIOR[::-1])
    yield WorstOf(CHI_SQUARED, PRIOR, [PRIOR[::-1], np.full(4, 0.25)])


@pytest.mark.full(but=2)
@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT], ids=["floats", "balls"])
@pytest.mark.parametrize(
    ("eta", "epsilon"), [(1.0, 700.0), (0.3, 700.0), (0.05, 700.0), (0.3, 1.0), (0.1, 0.2), (1.0, 2.0)]
)
def test_no_column_of_a_box_gains_more_than_the_listed_ones(eta, epsilon, arithmetic):
    """Of any prices: the largest of utility less price over a box, within the caps, is at a listed column."""
    rng = np.random.default_rng(7)
    for utility, _ in itertools.product(utilities(), range(4)):
        constraints = [TotalVariation(eta), LocalDP(epsilon), Outputs(2)]
        boxes = Chambers.from_constraints(utility, constraints, range(4), 10**6, arithmetic)
        ends = np.sort(rng.choice([0.0, 0.2, eta, 0.5, 1.0, *rng.random(2)], (2, 4)), axis=0)
        rows, pairs = rng.normal(size=4), np.triu(rng.random((4, 4)), 1)
        weights = rng.random(2 if isinstance(utility, WorstOf) else 1) + 0.1
        nothing = np.zeros((2, 4))  # another output, which is always zero
        box = np.stack([ends, nothing], axis=1)
        columns = ends[0] + rng.random((4000, 4)) ** rng.choice([0.1, 1, 8], (4000, 1)) * (ends[1] - ends[0])
        near = np.exp(rng.uniform(-min(epsilon, 3), 0, (4000, 4)) * rng.choice([0.1, 1, 1], (4000, 1)))
        columns = np.concatenate([columns, np.clip(near * rng.random((4000, 1)), *ends)])
        columns = columns[np.ptp(columns, axis=1) <= boxes.eta]
        columns = columns[columns.max(axis=1) <= columns.min(axis=1) * np.exp(epsilon)]
        if not len(boxes.columns(ends).values):
            assert not len(columns)
            continue
        bound = boxes.bound(BoxPrices(rows, pairs, weights), box)
        worth = weights / weights.sum() @ utility.columns(columns.T)
        paid = columns @ rows + sum(
            pairs[x, z] * np.maximum(columns[:, x] - columns[:, z], 0) for x, z in itertools.combinations(range(4), 2)
        )
        most = rows.sum() + boxes.eta * pairs.sum() + (worth - paid).max(initial=-np.inf)
        if np.isfinite(most):
            assert float(bound.upper) >= most - 1e-12


@pytest.mark.full(but=1)
@pytest.mark.parametrize("constraints", [[Support(MASK), TotalVariation(0.3)], [Outputs(2), TotalVariation(0.2)]])
def test_any_numbers_prove_a_true_bound(constraints):
    """However the certificate is changed, it proves nothing below a channel that meets the constraints, or says why."""
    design = optimal_channel(MutualInformation(PRIOR), constraints)
    assert design.certified
    assert isinstance(design.certificate, ChamberDual)
    assert design.verify()
    assert design.verify(exact=True)
    rng = np.random.default_rng(0)
    all_forged = forged(design.certificate, rng, keep=("utility", "constraints", "channel", "edges"))
    for changed in itertools.islice(all_forged, 0, None, 3):
        bound = changed.bound_in(FLOAT)
        assert bound.value >= design.value * (1 - 1e-12)
        assert np.isfinite(bound.value) or bound.reason
    for nodes in NO_RECORD:
        assert fails_in_words(replace(design.certificate, nodes=nodes))
    for columns in (None, -1, 0, 3, 2.5, "x", True, 2**60):
        assert fails_in_words(replace(design.certificate, columns=columns))


def test_trees_that_do_not_cover_all_entries_prove_nothing():
    """A branch that is missing, met twice or of an entry that there is not."""
    design = optimal_channel(MutualInformation(PRIOR), [Outputs(2), TotalVariation(0.2)])
    leaf = next(node for node in design.certificate.nodes if isinstance(node, BoxPrices))
    for split in ((0, 0.1, 1, 1, 0), (0, 0.1, 1, 0, 0), (2, 0.1, 1, 2, 0), (0, 0.1, 1, 2, 4), (0, np.nan, 1, 2, 0)):
        assert fails_in_words(replace(design.certificate, nodes=(EntrySplit(*split), leaf, leaf)))
    assert fails_in_words(replace(design.certificate, constraints=(TotalVariation(0.2),)))


@pytest.mark.full
def test_other_constraints_are_left_out_of_the_bound():
    """Under Renyi privacy too it is a bound, by the total variation that this allows, not a tight one."""
    utility, renyi = MutualInformation(PRIOR), RenyiLDP(2.0, 0.1)
    easier = optimal_channel(utility, [TotalVariation(float(renyi.variation(FLOAT).upper)), Outputs(2)])
    channel = optimal_channel(utility, [renyi, Outputs(2)], certify=False)
    proof = easier.certificate.rebind(utility, (renyi, Outputs(2)), channel.channel)
    assert channel.value < proof.bound <= easier.value * (1 + 1e-6)
    with pytest.raises(Unproved, match="no constraint says what the outputs are"):
        proof.rebind(utility, (LocalDP(1.0),), channel.channel).proved(FLOAT)


def test_entries_that_are_rounded_are_enclosed():
    """Sums with the cap and products with the ratio are no floats: they are enclosed, and other entries are exact."""
    constraints = [TotalVariation(0.1), LocalDP(0.5), Outputs(2)]
    boxes = Chambers.from_constraints(MutualInformation(PRIOR), constraints, range(4), 10**6, EXACT)
    columns = boxes.columns(np.stack([[0.3, 0.0, 0.0, 0.0], [0.3, 1.0, 1.0, 1.0]]))
    entries = (columns.base + columns.rise).T
    both = 0.1 / np.expm1(0.5)
    true = np.array([0.3, 0.4, 0.3 - 0.1, 0.3 * np.exp(0.5), 0.3 / np.exp(0.5), both, both + 0.1])
    for lower, value, upper in zip(*map(np.ravel, (entries.lower, columns.values, entries.upper)), strict=True):
        assert lower <= value <= upper
        assert lower == upper if value == 0.3 else upper - lower <= 4e-15 * value
        assert np.abs(true - value).min() <= 1e-15
