import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.plots import shares


def test_points_and_intervals_stand_where_they_should():
    """Estimates are drawn from the top down, with their intervals, and the truth beside them."""
    ax = shares(["a", "b"], [0.2, 0.8], [0.1, 0.7], [0.3, 0.9], truth=[0.25, 0.75])
    lines = {line.get_label(): line for line in ax.get_lines()}
    np.testing.assert_allclose(lines["estimate"].get_xdata(), [0.2, 0.8])
    np.testing.assert_allclose(lines["estimate"].get_ydata(), [1, 0])
    np.testing.assert_allclose(lines["truth"].get_xdata(), [0.25, 0.75])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]


def test_lengths_must_agree():
    """One value, one interval a label."""
    with pytest.raises(InvalidInput, match="shares"):
        shares(["a", "b"], [0.2], [0.1], [0.3])
