"""The gap map draws the gaps of the table at their places."""

import numpy as np
import pytest

from ldpopt import Divergence, InvalidInput, frontier, plots
from ldpopt.divergences import KL

UTILITY = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])


@pytest.fixture(scope="module")
def table():
    return frontier(UTILITY, [1.0, 2.0, 4.0], [0.2, 0.4])


def test_every_gap_is_in_its_cell(table):
    """The cell of (epsilon, eta) has the table's gap there, and is printed as a percentage."""
    ax = plots.gap_map(table, "binary_with_erasure")
    drawn = np.asarray(ax.collections[0].get_array()).reshape(2, 3)
    gap = table.gap("binary_with_erasure")
    for at, line in enumerate(table):
        assert drawn[[0.2, 0.4].index(line.eta), [1.0, 2.0, 4.0].index(line.epsilon)] == gap[at]
    assert sorted(text.get_text() for text in ax.texts) == sorted(f"{value:.0%}" for value in gap)
    assert ax.get_xlabel() == "ε (nats)"


def test_the_curve_is_where_the_cap_stops_binding(table):
    """The line is eta = tanh(epsilon/2) [GI, Prop 2]."""
    for line in plots.gap_map(table, "erased_optimum").get_lines():
        assert np.allclose(line.get_ydata(), np.tanh(np.asarray(line.get_xdata()) / 2))


def test_cells_stay_within_the_meaningful_range():
    """Cells never reach below epsilon 0 or outside eta in [0, 1]."""
    ax = plots.gap_map(frontier(UTILITY, [0.1, 5.0], [0.0, 1.0]), "binary_with_erasure")
    assert ax.get_xlim()[0] >= 0
    assert ax.get_ylim() == (0, 1)


def test_one_cell_is_a_map():
    """A table of a single row is one cell."""
    ax = plots.gap_map(frontier(UTILITY, [1.0], [0.3]), "binary_with_erasure")
    assert len(ax.texts) == 1


def test_an_unknown_baseline_is_refused(table):
    """A name that is no column of the table is an error that lists the columns."""
    with pytest.raises(InvalidInput, match="binary_with_erasure"):
        plots.gap_map(table, "uniform")
