"""The quick form of `experiments/surveys/field/run.py` for booklets: 200 devices and a collector."""

import csv
import importlib.util
from pathlib import Path

import pytest
from kit_plans import NODE, WITHOUT_NODE
from kit_site import CHROMIUM

FIELD = Path(__file__).resolve().parents[3] / "experiments" / "surveys" / "field"
pytestmark = [pytest.mark.full, pytest.mark.skipif(NODE is None, reason=WITHOUT_NODE)]


def test_two_hundred_devices_are_each_asked_one_booklet(tmp_path, capfd):
    """Every report arrives once, of half of the questions, and every estimate is within four standard errors."""
    pytest.importorskip("starlette", reason="starlette is not installed: no collector runs here")
    spec = importlib.util.spec_from_file_location("field_run", FIELD / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    with_page = ["--page"] if CHROMIUM is not None and importlib.util.find_spec("playwright") else []
    arguments = ["--survey", str(FIELD / "questionnaire.json"), "--respondents", "200", "--browsers", "0", *with_page]
    assert run.main([*arguments, "--out", str(tmp_path)]) == 0
    said = capfd.readouterr().out
    assert "200 of 200 respondents stored" in said
    assert 2 <= float(said.partition(" of 6 questions asked")[0].split()[-1]) <= 3.2
    with open(tmp_path / "questionnaire.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({row["question"] for row in rows}) == 6
    assert all(abs(float(row["estimate"]) - float(row["true"])) <= 4 * float(row["error"]) for row in rows)
