"""The picture of structures."""

from design_problems import utility

from ldpopt import plots
from ldpopt.design import structures


def test_every_pattern_has_a_row_and_every_break_a_line():
    """A row for each distinct pattern, a bar for each piece that it is in, a line at each break point."""
    found = structures(utility(5, 1), 0.01, 12.0, eta=0.2, tolerance=1e-6)
    ax = plots.structures(found)
    patterns = {pattern for piece in found for pattern in piece.patterns}
    assert len(ax.get_yticks()) == len(patterns)
    assert len(ax.patches) == sum(len(piece.patterns) for piece in found)
    assert len(ax.lines) == len(found.breaks)
    assert "none (erasure)" in [label.get_text() for label in ax.get_yticklabels()]
    assert plots.picture(ax).startswith(b"\x89PNG")
