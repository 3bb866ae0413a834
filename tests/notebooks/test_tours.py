"""Every notebook runs from top to bottom with the core install, and its executed form shows what it gives."""

import base64
import contextlib
import io
import json
import re
import runpy
from pathlib import Path

import matplotlib
import pytest

pytestmark = pytest.mark.full

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
TOURS = sorted(FOLDER.glob("*.py"))
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|[-+]?\.\d+(?:e[-+]?\d+)?", re.IGNORECASE)
tours = pytest.mark.parametrize("tour", TOURS, ids=lambda path: path.stem)


def cells_of_text(text):
    """(kind, source) of each cell of a text in jupytext's percent format, without its header."""
    found = []
    for part in re.split(r"(?m)^# %%", text)[1:]:
        first, _, body = part.partition("\n")
        body = body.strip("\n")
        if "[markdown]" in first:
            found.append(("markdown", "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.split("\n"))))
        else:
            # Commands of the notebook itself, which are comments in the text.
            found.append(("code", re.sub(r"(?m)^# (?=%)", "", body)))
    return found


def executed_tour(tour):
    return json.loads(tour.with_suffix(".ipynb").read_text("utf-8"))


def outputs(notebook):
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def joined(source):
    return source if isinstance(source, str) else "".join(source)


def is_same_output(shown, stored):
    """The same words, and numbers that agree to a thousandth, or are both next to nothing."""
    if NUMBER.sub("#", " ".join(shown.split())) != NUMBER.sub("#", " ".join(stored.split())):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(stored), strict=True)
    numbers = [(float(one.replace(",", "")), float(other.replace(",", ""))) for one, other in pairs]
    return all(abs(one - other) <= max(1e-3 * abs(other), 1e-5) for one, other in numbers)


def test_every_subject_has_its_notebook():
    """From zero to theory, the five papers, continuous answers, graphs, a survey, the envelope and a certificate."""
    names = " ".join(path.stem for path in TOURS)
    assert len(TOURS) == 15
    assert names.count("paper_") == 5
    for subject in ("zero", "continuous", "policy", "survey_from_plan", "envelope", "certificate"):
        assert subject in names


@tours
def test_a_tour_runs(tour, tmp_path, monkeypatch):
    """The text ends without an error or a warning, writes nothing here, and prints what its executed form shows."""
    monkeypatch.chdir(tmp_path)
    printed_here = io.StringIO()
    # In this process, in which warnings are errors and what it imports is there already.
    with matplotlib.rc_context({"backend": "agg"}), contextlib.redirect_stdout(printed_here):
        runpy.run_path(str(tour), run_name="__main__")
    assert list(tmp_path.iterdir()) == []
    printed = "".join(joined(one["text"]) for one in outputs(executed_tour(tour)) if one["output_type"] == "stream")
    assert printed_here.getvalue()
    assert is_same_output(printed_here.getvalue(), printed), "run docs/_ext/notebooks.py " + tour.stem


@tours
def test_a_tour_is_paired_text(tour):
    """The text opens as a notebook: a jupytext header, a title, and no stored output."""
    text = tour.read_text("utf-8")
    assert "formats: ipynb,py:percent" in text
    assert "# %% [markdown]\n# # " in text
    assert text.count("# %%") > 10


@tours
def test_the_executed_form_is_in_step(tour):
    """Cell by cell, the executed notebook has the words and the code of the text."""
    notebook = executed_tour(tour)
    stored = [(cell["cell_type"], joined(cell["source"])) for cell in notebook["cells"]]
    assert stored == cells_of_text(tour.read_text("utf-8")), "run docs/_ext/notebooks.py " + tour.stem


@tours
def test_the_executed_form_has_outputs(tour):
    """Every code cell was run, in order and without an error or a warning, and a picture has a description."""
    notebook = executed_tour(tour)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for output in outputs(notebook):
        assert output["output_type"] in ("stream", "execute_result", "display_data")
        assert output.get("name", "stdout") == "stdout"
    pictures = [output for output in outputs(notebook) if "image/png" in output.get("data", {})]
    assert pictures
    for output in pictures:
        assert base64.b64decode(joined(output["data"]["image/png"])).startswith(b"\x89PNG")
        assert output["metadata"]["image/png"]["alt"]


@tours
def test_every_exercise_has_an_answer(tour):
    """A notebook ends with two or three exercises; each has an answer, folded, that was run and prints something."""
    cells = executed_tour(tour)["cells"]
    start = next(place for place, cell in enumerate(cells) if joined(cell["source"]).startswith("## Exercises"))
    asked = re.findall(r"(?m)^(\d)\. ", joined(cells[start]["source"]))
    assert asked in (["1", "2"], ["1", "2", "3"])
    answers = cells[start + 1 :]
    for number, cell in zip(asked, answers, strict=True):
        assert joined(cell["source"]).startswith(f"# Answer {number}. ")
        assert cell["metadata"]["tags"] == ["hide-cell"]
        assert cell["metadata"]["jupyter"]["source_hidden"]
        assert joined(cell["outputs"][0]["text"]).strip()


def test_the_executed_forms_are_small():
    """A clone does not carry more than three megabytes of them, and none without its text."""
    stored = sorted(FOLDER.glob("*.ipynb"))
    assert [path.stem for path in stored] == [path.stem for path in TOURS]
    assert sum(path.stat().st_size for path in stored) < 3e6


def test_the_comparison_can_fail():
    """Another word, another number or a missing line is seen; a last digit is not."""
    assert is_same_output("gap 1.2e-13, kept 0.41666", "gap 3e-14, kept 0.41667")
    assert not is_same_output("kept 0.42", "kept 0.43")
    assert not is_same_output("kept 0.42", "lost 0.42")
    assert not is_same_output("kept 0.42\nmore", "kept 0.42")
