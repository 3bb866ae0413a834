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


def step_of(ax):
    """The heights of the line above which eta does not bind, in cells; empty without a line."""
    lines = [patch for patch in ax.patches if hasattr(patch, "get_data")]
    return lines[-1].get_data().values if lines else np.array([])


def test_the_line_parts_the_cells_where_the_cap_binds():
    """A cell is above the line exactly if eta is tanh(epsilon/2) or more [GI, Prop 2]."""
    epsilons, etas = [0.25, 1.0, 1.5, 4.0], [0.0, 0.1, float(np.tanh(0.5)), 0.5, 0.7, 0.95]
    heights = step_of(plots.gap_map(frontier(UTILITY, epsilons, etas), "erased_optimum"))
    for epsilon, height in zip(epsilons, heights, strict=True):
        above = [number > height for number in range(len(etas))]
        assert above == [eta >= np.tanh(epsilon / 2) for eta in etas]


@pytest.mark.parametrize("etas", [[0.01, 0.02], [0.99, 1.0]])
def test_there_is_no_line_where_all_cells_are_alike(etas):
    """If eta binds in all cells, or in none, nothing parts them and no legend speaks of it."""
    ax = plots.gap_map(frontier(UTILITY, [1.0, 2.0], etas), "erased_optimum")
    assert step_of(ax).size == 0
    assert ax.get_legend() is None


@pytest.mark.parametrize("etas", [[0.0, 1.0], [0.2, 0.3, 0.9]])
def test_every_point_of_the_grid_has_one_cell_with_its_numbers(etas):
    """The cells are of one size, fill the map, and carry the numbers of the grid in their middle, and no others."""
    epsilons = [0.1, 1.0, 5.0]
    ax = plots.gap_map(frontier(UTILITY, epsilons, etas), "binary_with_erasure")
    for axis, values in ((ax.xaxis, epsilons), (ax.yaxis, etas)):
        assert axis.get_majorticklocs().tolist() == list(range(len(values)))
        assert [float(label.get_text()) for label in axis.get_majorticklabels()] == values
        assert tuple(axis.get_view_interval()) == (-0.5, len(values) - 0.5)
    corners = ax.collections[0].get_coordinates()
    assert np.ptp(np.diff(corners[..., 0], axis=1)) == np.ptp(np.diff(corners[..., 1], axis=0)) == 0


@pytest.mark.full
def test_a_dense_grid_has_fewer_numbers_than_cells():
    """Where there is no room, cells have no percentages, and every so many of them have a number on the axis."""
    ax = plots.gap_map(frontier(UTILITY, np.linspace(0.1, 3, 60), [0.1]), "binary_with_erasure")
    places = ax.xaxis.get_majorticklocs()
    assert 3 < len(places) < 60
    assert len(set(np.diff(places))) == 1
    assert len(ax.texts) == 0


def test_one_cell_is_a_map():
    """A table of a single row is one cell."""
    ax = plots.gap_map(frontier(UTILITY, [1.0], [0.3]), "binary_with_erasure")
    assert len(ax.texts) == 1


def test_an_unknown_baseline_is_refused(table):
    """A name that is no column of the table is an error that lists the columns."""
    with pytest.raises(InvalidInput, match="binary_with_erasure"):
        plots.gap_map(table, "uniform")
