"""Every tour runs from top to bottom with the core install, without a warning."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
TOURS = sorted(FOLDER.glob("*.py"))


def test_there_are_four_tours():
    """The four tours are there to be run."""
    assert len(TOURS) == 4


@pytest.mark.parametrize("tour", TOURS, ids=lambda path: path.stem)
def test_a_tour_runs(tour, tmp_path):
    """The tour ends without an error or a warning and writes nothing into its folder."""
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(tour)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tour", TOURS, ids=lambda path: path.stem)
def test_a_tour_is_paired_text(tour):
    """The tour opens as a notebook: a jupytext header, a title, and no stored output."""
    text = tour.read_text("utf-8")
    assert "formats: ipynb,py:percent" in text
    assert "# %% [markdown]\n# # " in text
    assert text.count("# %%") > 10
