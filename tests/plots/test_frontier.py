"""The frontier's picture draws the table's numbers."""

import numpy as np
import pytest

from ldpopt import Divergence, frontier, plots
from ldpopt.divergences import KL, TOTAL_VARIATION
from ldpopt.frontiers import Frontier, FrontierRow
from ldpopt.plots.frontier import STYLES

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]


@pytest.fixture(scope="module")
def table():
    return frontier(Divergence(KL, P0, P1), [1.0, 2.0], [0.1, 0.3, 0.6])


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_each_mechanism_and_epsilon_has_a_line(table):
    """Every column of the table is a line against eta at each epsilon, with the values of the table."""
    ax = plots.frontier(table)
    lines = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in ax.get_lines()]
    at_caps = [[y for x, y in zip(*line, strict=True) if x in (0.1, 0.3, 0.6)] for line in lines]
    for name in STYLES:
        values = table.column(name)
        assert values[:3].tolist() in at_caps
        assert values[3:].tolist() in at_caps
    mechanisms = [text for text, _, _ in STYLES.values()]
    assert legend(ax) == ["ε = 1", "ε = 2", *mechanisms, "bound [GI, Thm 7], ε = 1"]
    assert ax.get_ylabel() == "KL divergence (nats) of the reports"
    assert ax.get_xlabel() == "cap η on total variation"


def test_total_variation_has_no_unit_and_its_bound_is_drawn():
    """[GI, Thm 5] is drawn on the optimum of total variation, which has no nats."""
    ax = plots.frontier(frontier(Divergence(TOTAL_VARIATION, P0, P1), [1.0], [0.0, 0.2, 0.4]))
    assert ax.get_ylabel() == "total variation of the reports"
    assert legend(ax)[-1] == "bound η·TV(P0, P1) [GI, Thm 5]"


def row(epsilon, eta, optimum, upper_bound, certified):
    return FrontierRow(epsilon, eta, optimum, optimum, upper_bound, certified, 0.1, 0.1, 0.1, None, None, None)


def test_a_design_without_a_tight_proof_shows_its_bound():
    """Where a design is not certified a band reaches from its value to the proven bound, and the legend says so."""
    rows = (row(1.0, 0.2, 0.2, 0.25, False), row(1.0, 0.4, 0.4, 0.4, True))
    ax = plots.frontier(Frontier(rows, Divergence(KL, P0, P1)))
    assert legend(ax)[-1] == "up to the proven bound, not certified"
    assert ax.collections[0].get_datalim(ax.transData).bounds == pytest.approx((0.2, 0.2, 0.2, 0.2))


def test_rows_are_drawn_in_the_order_of_eta():
    """A table given from large eta to small is drawn from left to right."""
    rows = (row(1.0, 0.4, 0.4, 0.4, True), row(1.0, 0.2, 0.2, 0.2, True))
    ax = plots.frontier(Frontier(rows, Divergence(KL, P0, P1)))
    assert all(np.all(np.diff(line.get_xdata()) > 0) for line in ax.get_lines())


def test_a_single_point_is_visible():
    """A table of one row is drawn with markers."""
    ax = plots.frontier(Frontier((row(1.0, 0.2, 0.2, 0.2, True),), Divergence(KL, P0, P1)))
    assert all(line.get_marker() == "o" for line in ax.get_lines())
