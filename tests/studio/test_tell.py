"""Two populations told apart: the view, its curves and its data on examples with known results."""

from __future__ import annotations

import numpy as np

from ldpopt.io import Populations
from ldpopt_studio import load, tell

THREE = {"p0": [0.6, 0.3, 0.1], "p1": [0.1, 0.3, 0.6]}


def test_the_view_has_the_optimum_and_its_proof():
    """The value agrees with an independent program, and the kernel has verified the proof."""
    content = tell.view({"p0": [0.5, 0.3, 0.2], "p1": [0.2, 0.3, 0.5], "epsilon": 1.0, "eta": 0.3})
    assert content["proof"]["verified"]
    assert round(content["value"], 6) == 0.029225
    assert tell.read_problem({"p0": [0.5, 0.5], "p1": [0.2, 0.8], "epsilon": 1.0}).is_quick


def test_equal_rows_are_one_block():
    """Consecutive equal rows form one block."""
    runs = tell.blocks(np.array([[0.7, 0.3], [0.3, 0.7], [0.3, 0.7]]))
    assert [(run["start"], run["stop"]) for run in runs] == [(0, 1), (1, 3)]


def test_curves_have_the_known_corners_and_phases():
    """The envelope has its known corners and certified points, and the structure changes at the known epsilon."""
    content = tell.compare({**THREE, "epsilon": 2.0})
    assert [round(corner["eta"], 4) for corner in content["corners"]] == [0.0, 0.6805]
    drawn = tell.envelope({**THREE, "epsilon": 2.0}, lambda share: None)
    assert (len(drawn["points"]), drawn["certified"]) == (40, 40)
    pieces = tell.phases({**THREE, "epsilon": 1.0}, lambda share: None)["pieces"]
    ends = [(piece["name"], round(piece["high"], 2)) for piece in pieces]
    assert ends == [("binary mechanism", 1.66), ("randomized response", 8.0)]


def test_populations_come_from_pasted_lines_and_the_package():
    """Counts become proportions, and the survey in the package has three questions."""
    assert load.view({"pasted": "no,3,6\nyes,7,4", "counts": True})["p0"] == [0.3, 0.7]
    pair = Populations(("no", "yes"), np.array([0.3, 0.7]), np.array([0.6, 0.4]))
    assert load.populations_state(pair)["labels"] == ["no", "yes"]
    titles = [example["title"] for example in load.examples({})["examples"]]
    assert titles == ["ANES 1996: party (7)", "ANES 1996: income (24)", "ANES 1996: education (7)"]
