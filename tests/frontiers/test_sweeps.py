"""Sweeps over any family of constraints."""

import csv
import io
import math

import networkx as nx
import numpy as np
import pytest
from design_problems import utility

from ldpopt import (
    ApproximateLDP,
    ExpectedLoss,
    FisherInformation,
    InvalidInput,
    LocalDP,
    MutualInformation,
    RenyiLDP,
    TotalVariation,
    frontier,
    optimal_channel,
    sweep,
)
from ldpopt.design import Exchange
from ldpopt.frontiers import Sweep
from ldpopt.privacy import local_dp


class Square:
    """A user's own constraint: the likelihood ratios are at most the square of `level`."""

    def __init__(self, level):
        self.bound = 2 * math.log(level)

    def measure(self, channel):
        return local_dp(channel)

    def expression(self, q):
        k = q.shape[0]
        return [q[a] <= math.exp(self.bound) * q[b] for a in range(k) for b in range(k) if a != b]


@pytest.mark.full
def test_rows_are_the_designs():
    """Every row says what the design of its own constraints says, whatever the family."""
    problem = utility(3, 1)
    families = {
        "pure": (LocalDP, [0.5, 1.0]),
        "slack": (lambda delta: ApproximateLDP(0.7, delta), [0.0, 0.05]),
        "renyi": (lambda at: [RenyiLDP(*at)], [(2.0, 0.3)]),
        "line": (lambda epsilon: [LocalDP(epsilon, nx.path_graph(3)), TotalVariation(0.3)], [0.5]),
    }
    for family, parameters in families.values():
        table = sweep(problem, family, parameters)
        assert isinstance(table, Sweep)
        assert table.parameters == tuple(parameters)
        assert table.certified
        for row in table:
            design = optimal_channel(problem, family(row.parameter))
            assert (row.value, row.upper_bound, row.method) == (design.value, design.upper_bound, design.method)
            assert row.channel == design.channel
            assert row.guarantees == design.guarantees


def test_sweeps_accept_all_utilities_and_user_constraints():
    """Losses, informations, utilities of the parameter, and a constraint that the package does not know."""
    losses = sweep(ExpectedLoss(None, 1 - np.eye(3)), LocalDP, [0.5, 1.0])
    assert losses.value == pytest.approx([-2 / (math.exp(e) + 2) for e in (0.5, 1.0)], rel=1e-8)
    assert np.diff(sweep(MutualInformation([0.5, 0.3, 0.2]), LocalDP, [0.5, 1.0, 2.0]).value).min() > 0
    moving = sweep(lambda epsilon: utility(3, int(epsilon)), LocalDP, [1.0, 2.0])
    assert moving.value[1] == optimal_channel(utility(3, 2), LocalDP(2.0)).value
    own = sweep(utility(3, 1), Square, [1.5])
    assert own.value[0] == pytest.approx(optimal_channel(utility(3, 1), LocalDP(2 * math.log(1.5))).value, rel=1e-5)
    # Nothing is known of a constraint of one's own, so that no more is proved than for full disclosure.
    assert own.upper_bound[0] == pytest.approx(utility(3, 1).value_without_privacy, rel=1e-9)
    assert not own.certified
    named = sweep(utility(3, 1), LocalDP, [1.0], method=Exchange())
    assert "exchange" in named.rows[0].method


def test_errors_are_bounded_from_below():
    """Where less is better the proved bound lies below the error, and the gap is that of the design."""
    utility = FisherInformation([0.5, 0.3, 0.2])
    made = sweep(utility, LocalDP, [0.5, 1.0])
    for row in made:
        design = optimal_channel(utility, LocalDP(row.parameter))
        assert (row.lower_bound, row.upper_bound) == (design.lower_bound, design.value)
        assert row.relative_gap == design.relative_gap
    assert "lower_bound" in made.to_pandas()
    assert "upper_bound" not in made.to_pandas()


def test_all_formats_show_the_same_rows():
    """CSV, DataFrame, text and HTML show the same rows."""
    table = sweep(utility(3, 1), lambda at: [LocalDP(at[0]), TotalVariation(at[1])], [(1.0, 0.2), (1.0, 0.3)])
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert float(rows[1]["value"]) == table.rows[1].value == table.to_pandas().value[1]
    assert float(rows[0]["total_variation"]) <= 0.2
    assert "1, 0.2" in repr(table)
    assert table._repr_html_().count("<tr>") == 3
    assert "certified" in repr(table.rows[0])


def test_empty_ranges_and_bad_parameters_are_refused():
    """Empty ranges, parameters, utilities and constraints that are none are refused."""
    problem = utility(3, 1)
    with pytest.raises(InvalidInput, match="at least one parameter"):
        sweep(problem, LocalDP, [])
    with pytest.raises(InvalidInput, match="parameter: expected"):
        sweep(problem, LocalDP, ["a"])
    with pytest.raises(InvalidInput, match="utility: expected"):
        sweep(3, LocalDP, [1.0])
    with pytest.raises(InvalidInput, match="constraint: expected"):
        sweep(problem, lambda e: [e], [1.0])
    with pytest.raises(InvalidInput, match="family: expected a function"):
        sweep(problem, [1.0], [0.2], method=Exchange())
    with pytest.raises(InvalidInput, match="sweep takes a family"):
        frontier(problem, LocalDP, [0.2])
