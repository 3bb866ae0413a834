"""The heat map shows the channel, whatever its size and labels."""

from itertools import pairwise

import numpy as np
import pytest

from ldpopt import Channel, InvalidInput, plots


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_rows_are_answers_and_columns_are_reports():
    """The picture is the matrix itself, labelled with the channel's inputs and outputs."""
    channel = Channel([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], ["yes", "no"], [0, 1, "erased"])
    ax = plots.channel(channel)
    assert np.array_equal(ax.images[0].get_array(), channel.matrix)
    assert labels(ax.yaxis) == ["yes", "no"]
    assert labels(ax.xaxis) == ["0", "1", "erased"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("report", "answer")
    assert [text.get_text() for text in ax.texts] == ["0.700", "0.200", "0.100", "0.100", "0.200", "0.700"]
    assert ax.figure.axes[1].get_ylabel() == "Pr(report | answer)"


@pytest.mark.full(but=1)
@pytest.mark.parametrize("shape", [(24, 5), (7, 3), (1, 1), (2, 40)])
def test_every_row_and_column_of_a_survey_question_is_labelled(shape):
    """At the sizes of survey questions no label is left out, and none overlaps its neighbour."""
    k, m = shape
    names = [f"answer number {i} of some length" for i in range(k)]
    ax = plots.channel(Channel(np.full(shape, 1 / m), names))
    plots.picture(ax)
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) == k
    assert all(above.y0 >= below.y1 - 1 for above, below in pairwise(boxes))


def test_long_report_labels_are_turned():
    """Report labels too long for their column stand at an angle, so that they do not run into each other."""
    names = ["strong Democrat", "weak Democrat", "independent", "weak Republican"]
    ax = plots.channel(Channel(np.eye(4), names, names))
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {40}
    short = plots.channel(Channel(np.eye(4)))
    assert {label.get_rotation() for label in short.get_xticklabels()} == {0}


def test_a_large_channel_is_drawn_without_a_label_for_every_row():
    """A thousand rows are numbered by the axis, and no cell has its number printed."""
    ax = plots.channel(np.full((1000, 2), 0.5))
    assert len(ax.get_yticklabels()) < 50
    assert not ax.texts


def test_tiny_probabilities_are_not_printed_as_zero():
    """Only an exact zero is printed as 0, only an exact one as 1."""
    ax = plots.channel([[1.0, 0.0], [1 - 1e-5, 1e-5]])
    assert [text.get_text() for text in ax.texts] == ["1", "0", "1−", "1e-05"]


def test_matrices_that_are_not_channels_are_refused():
    """A matrix that is not stochastic is an error, not a picture."""
    with pytest.raises(InvalidInput, match="rows that sum to 1"):
        plots.channel([[0.5, 0.6]])
