"""Tests of `ldpopt.design.problems.labelling`: all labels of a design are one list, in one order."""

import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from ldpopt import Channel, Divergence, ExpectedLoss, LocalDP, MutualInformation, TotalVariation, optimal_channel
from ldpopt.design import Invariant, PrivateSampling, Support, WeightedSum
from ldpopt.design.files import design_text
from ldpopt.design.load import parse_design
from ldpopt.design.problems.labelling import require_one_labelling
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput

LABELS = ("a", "b", "c")
P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
ROWS = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
LOSS = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]]

SHUFFLED = [LABELS[::-1], ("b", "a", "c"), ("a", "b", "x"), ("A", "b", "c"), (2, 1, 0)]


def series(values, labels):
    return pd.Series(values, index=list(labels))


@pytest.mark.parametrize("others", SHUFFLED)
def test_a_channel_with_other_labels_is_refuted(others):
    """A design whose channel has its inputs in another order does not hold, and the reason shows both lists."""
    design = optimal_channel(Divergence(KL, P0, P1, LABELS), [LocalDP(1.0), TotalVariation(0.2)])
    channel = Channel(design.channel.matrix, others, design.channel.outputs)
    found = replace(design, channel=channel).verify()
    assert found.outcome == "refuted"
    assert "'a', 'b', 'c'" in found.failures[0]
    assert ", ".join(map(repr, others)) in found.failures[0]
    data = json.loads(design_text(design))
    data["channel"]["inputs"] = list(others)
    with pytest.raises(InvalidInput, match="inputs of the channel"):
        parse_design(json.dumps(data))


@pytest.mark.parametrize("others", [*SHUFFLED, (0, 2, 1)])
@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_decisions_and_draws_are_those_of_the_channel(others, side):
    """A loss and private sampling name reports; a channel that names them in another order is refused."""
    for utility in (
        ExpectedLoss(P0, LOSS, LABELS, LABELS),
        PrivateSampling(KL, [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]], LABELS, LABELS),
    ):
        sides = {"inputs": LABELS, "outputs": LABELS} | {side: others}
        require_one_labelling(utility, (), Channel(ROWS, LABELS, LABELS))
        with pytest.raises(InvalidInput, match=f"{side} of the channel"):
            require_one_labelling(utility, (), Channel(ROWS, **sides))


def test_every_part_of_a_sum_has_the_labels():
    """The parts of a sum that name inputs name those of the channel."""
    utility = WeightedSum([1.0, 1.0], [Divergence(KL, P0, P1), MutualInformation(P0, LABELS)])
    require_one_labelling(utility, (), Channel(ROWS, LABELS))
    require_one_labelling(utility, [LocalDP(1.0, nx.path_graph(LABELS))], Channel(ROWS, LABELS))
    with pytest.raises(InvalidInput, match="inputs of the channel"):
        require_one_labelling(utility, (), Channel(ROWS, LABELS[::-1]))


def test_labels_that_are_absent_are_positions():
    """A problem without labels has 0, 1, 2. A channel may have other words then, but not these in another order."""
    utility = Divergence(KL, P0, P1)
    for inputs in ((0, 1, 2), (0.0, 1.0, 2.0), LABELS, (7, 8, 9)):
        require_one_labelling(utility, (), Channel(ROWS, inputs))
    for inputs in ((2, 1, 0), (0, 2, 1), ("a", 1, "c"), (1, 2, 3)):
        with pytest.raises(InvalidInput, match=r"expected \[0, 1, 2\] in this order"):
            require_one_labelling(utility, (), Channel(ROWS, inputs))


def test_a_policy_graph_goes_by_the_labels_of_problem_and_channel():
    """With a graph nothing stands for absent labels, as measure and bound would go by different ones."""
    graph = LocalDP(1.0, nx.path_graph(3))
    require_one_labelling(Divergence(KL, P0, P1), [graph], Channel(ROWS))
    with pytest.raises(InvalidInput, match="inputs of the channel"):
        require_one_labelling(Divergence(KL, P0, P1), [graph], Channel(ROWS, LABELS))
    with pytest.raises(InvalidInput, match="inputs of the channel"):
        require_one_labelling(Divergence(KL, P0, P1, (2, 1, 0)), [graph], Channel(ROWS))


@pytest.mark.parametrize("others", SHUFFLED)
def test_an_invariant_distribution_has_the_labels_of_the_problem(others):
    """A distribution with labels in another order is refused by a design, not matched by position."""
    utility = ExpectedLoss(P0, LOSS, LABELS, LABELS)
    design = optimal_channel(utility, [LocalDP(1.0), Invariant(series(P0, LABELS))])
    assert design.channel.outputs == LABELS
    with pytest.raises(InvalidInput, match=r"inputs of Invariant: expected \['a', 'b', 'c'\] in this order"):
        optimal_channel(utility, [LocalDP(1.0), Invariant(series(P0, others))])
    data = json.loads(design_text(design))
    assert data["constraints"][1]["inputs"] == list(LABELS)
    data["constraints"][1]["inputs"] = list(others)
    with pytest.raises(InvalidInput, match="inputs of Invariant"):
        parse_design(json.dumps(data))


def test_reports_of_an_invariant_distribution_are_named_like_answers():
    """p Q = p compares reports with answers, so that both have the same names in the same order."""
    utility = MutualInformation(P0, LABELS)
    require_one_labelling(utility, [Invariant(P0)], Channel(ROWS, LABELS, LABELS))
    with pytest.raises(InvalidInput, match="outputs of the channel with Invariant"):
        require_one_labelling(utility, [Invariant(P0)], Channel(ROWS, LABELS, LABELS[::-1]))
    with pytest.raises(InvalidInput, match="outputs of the channel with Invariant"):
        optimal_channel(ExpectedLoss(P0, LOSS, LABELS, ("x", "y", "z")), [LocalDP(1.0), Invariant(P0)])


def test_a_mask_has_the_labels_of_problem_and_reports():
    """The rows of a mask are answers, its columns reports, which the designed channel then has."""
    allowed = [[True, False, True], [True, True, True], [False, True, True]]
    mask = pd.DataFrame(allowed, index=list(LABELS), columns=["x", "y", "z"])
    utility = MutualInformation(P0, LABELS)
    design = optimal_channel(utility, [TotalVariation(0.3), Support(mask)], time_limit=20)
    assert (design.channel.inputs, design.channel.outputs) == (LABELS, ("x", "y", "z"))
    assert parse_design(design_text(design)).constraints[1] == Support(mask)
    with pytest.raises(InvalidInput, match="inputs of Support"):
        optimal_channel(utility, [TotalVariation(0.3), Support(mask.iloc[::-1])])
    data = json.loads(design_text(design))
    data["channel"]["outputs"] = ["y", "x", "z"]
    with pytest.raises(InvalidInput, match="outputs of the channel with Support"):
        parse_design(json.dumps(data))


def test_long_lists_are_cut_in_the_message():
    """Of many labels the first are shown, with their number."""
    labels = tuple(f"answer {x}" for x in range(1000))
    utility = MutualInformation(np.full(1000, 1e-3), labels)
    with pytest.raises(InvalidInput, match=r"\(1,000 labels\)") as error:
        require_one_labelling(utility, (), Channel(np.full((1000, 2), 0.5), labels[::-1]))
    assert len(str(error.value)) < 400
