"""What the proofs by listed columns share: on the same columns they are one proof."""

import networkx as nx
import numpy as np
import pytest

from ldpopt import LocalDP, TotalVariation
from ldpopt.design import MutualInformation, PatternDual, PolicyDual, WorstOf, optimal_channel
from ldpopt.divergences import KL
from ldpopt.numbers.enclosures import arithmetic

LAWS = np.random.default_rng(3).dirichlet(np.ones(5), 3)
UTILITIES = {
    "information": MutualInformation(LAWS[0]),
    "worst": WorstOf(KL, LAWS[0], LAWS[1:]),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("eta", [None, 0.2])
@pytest.mark.parametrize("utility", UTILITIES)
def test_on_a_complete_graph_the_patterns_and_the_columns_of_the_graph_prove_the_same_bound(utility, eta, exact):
    """Both lists hold the staircase columns, in other scales, of which the bound is free [KOV14, Thm 4]."""
    one = UTILITIES[utility]
    cap = [] if eta is None else [TotalVariation(eta)]
    found = optimal_channel(one, [LocalDP(1.3), *cap]).certificate
    assert isinstance(found, PatternDual)
    along = (LocalDP(1.3, graph=nx.complete_graph(5)), *cap)
    again = PolicyDual(one, along, found.channel, found.rows, found.pairs, found.weights)
    bounds = [each.enclosed_bound(arithmetic(exact)) for each in (found, again)]
    assert float(bounds[1].upper) == pytest.approx(float(bounds[0].upper), rel=1e-11)
    assert found.pairs.any() == (eta is not None)


@pytest.mark.parametrize("field", ["rows", "pairs"])
def test_multipliers_below_a_columns_worth_are_scaled_by_their_factor(field):
    """Half of the multipliers prove the bound of all of them, but for the share of the tangent, which is not theirs."""
    found = optimal_channel(UTILITIES["information"], [LocalDP(1.3), TotalVariation(0.2)]).certificate
    whole = float(found.enclosed_bound(arithmetic(False)).upper)
    changed = {"rows": found.rows, "pairs": found.pairs, "weights": found.weights, field: getattr(found, field) / 2}
    less = PatternDual(found.utility, found.constraints, found.channel, **changed)
    assert float(less.enclosed_bound(arithmetic(False)).upper) >= whole * (1 - 1e-12)
    both = PatternDual(found.utility, found.constraints, found.channel, found.rows / 2, found.pairs / 2, found.weights)
    assert float(both.enclosed_bound(arithmetic(False)).upper) == pytest.approx(whole, rel=1e-9)
