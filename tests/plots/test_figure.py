"""Pictures are drawn where they are told to, without a screen and without global state."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from ldpopt import Divergence, InvalidInput, frontier, plots
from ldpopt.divergences import KL
from ldpopt.plots.figure import ink

UTILITY = Divergence(KL, [0.5, 0.5], [0.25, 0.75])
TABLE = frontier(UTILITY, [1.0], [0.1, 0.2])
DRAW = {
    "blocks": lambda ax: plots.blocks(UTILITY, np.eye(2), ax=ax),
    "channel": lambda ax: plots.channel(np.eye(2), ax=ax),
    "frontier": lambda ax: plots.frontier(TABLE, ax=ax),
    "gap_map": lambda ax: plots.gap_map(TABLE, "binary_with_erasure", ax=ax),
}


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_the_given_axes_are_drawn_on_and_returned(draw):
    """Every plot function returns the axes it was given, drawn on, and leaves their neighbours and settings alone."""
    ours, other = Figure(figsize=(8, 4)).subplots(1, 2)
    settings = dict(mpl.rcParams)
    assert draw(ours) is ours
    assert ours.has_data()
    assert not other.has_data()
    assert dict(mpl.rcParams) == settings


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_without_axes_a_new_figure_is_made(draw):
    """Every plot function makes its own figure when it is given no axes."""
    first, second = draw(None), draw(None)
    assert first.figure is not second.figure
    assert first.get_xlabel()
    assert first.get_ylabel()


def test_pyplot_is_never_imported():
    """Drawing and saving a picture imports no pyplot, so no window can open."""
    code = (
        "import sys, numpy as np; from ldpopt import plots; assert 'matplotlib' not in sys.modules; "
        "plots.picture(plots.channel(np.eye(2))); print('matplotlib.pyplot' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == "False"


@pytest.mark.parametrize(("kind", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_picture_is_the_same_bytes_every_time(kind, magic):
    """The same figure gives the same file, in every format."""
    first, second = (plots.picture(plots.channel(np.eye(2)), kind) for _ in range(2))
    assert first.startswith(magic)
    assert first == second


def test_an_unknown_format_is_refused():
    """A format that is none of the three is an error."""
    with pytest.raises(InvalidInput, match="png, svg, pdf"):
        plots.picture(plots.channel(np.eye(2)), "bmp")


def test_text_is_legible():
    """Dark cells get white text, light ones black; long labels are cut."""
    assert (ink((0, 0, 0.3, 1)), ink((0.9, 0.95, 1, 1))) == ("white", "black")
