"""The pictures of the documentation: drawn by scripts, with letters that do not touch and legends off the data."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from plots.overlaps import cut_off, legends_on_data, letters, touching

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
SCRIPTS = sorted(path.stem for path in IMAGES.glob("*.py") if "def draw()" in path.read_text("utf-8"))
NAMES = (
    "certificates",
    "composition",
    "envelope",
    "errata",
    "guarantees",
    "large-alphabets",
    "optimal-channel",
    "questionnaires",
)
CONCEPTS = [ROOT / "docs" / "explanation" / f"{name}.md" for name in NAMES]

FEWER = {
    "binary": {"POINTS": 32},
    "bracket": {"CELLS": np.array([3, 16, 64])},
    "columns": {"POINTS": 30},
    "errata": {"POINTS": 8},
    "questionnaires": {"COUNTS": (1, 32)},
    "shuffling": {"RESPONDENTS": np.array([10**3, 10**6])},
}
"""Points between the same ends of curves that take long, of which letters, ticks and legends say nothing."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_picture_can_be_read(name, monkeypatch):
    """No letters touch or are cut off, legends lie off the data, and there are at most two sizes of type."""
    monkeypatch.syspath_prepend(str(IMAGES))
    script = importlib.import_module(name)
    for points, fewer in FEWER.get(name, {}).items():
        monkeypatch.setattr(script, points, fewer)
    figure = script.draw().figure
    try:
        assert touching(figure) == []
        assert cut_off(figure) == []
        assert legends_on_data(figure) == []
        assert len(letters(figure)) > 5
        texts = [text for ax in figure.axes for text in [*ax.texts, ax._left_title, ax.xaxis.label, ax.yaxis.label]]
        assert len({text.get_fontsize() for text in texts if text.get_text()}) <= 2
        assert IMAGES.joinpath(f"{name}.svg").read_bytes()[:5] == b"<?xml"
    finally:
        for one in (name, "drawn"):
            sys.modules.pop(one, None)


def test_touching_letters_are_seen():
    """Two labels at one place, and a legend on the data, do not pass."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.subplots()
    ax.plot([0, 1], label="line")
    ax.text(0.5, 0.5, "one")
    ax.text(0.51, 0.5, "other")
    ax.text(0.5, 0.2, "a long label that does not fit into the figure at all, whatever happens to its beginning")
    ax.legend()
    assert touching(figure) == [("one", "other")]
    assert len(cut_off(figure)) == 1
    assert legends_on_data(figure) == [["line"]]


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.stem)
def test_a_concept_page_has_a_figure_and_names_its_readers(page):
    """Each concept page opens with who needs it, and has a picture with words for those who do not see it."""
    text = page.read_text("utf-8")
    assert text.split("\n\n")[1].startswith("*For readers who ")
    pictures = re.findall(r"!\[([^\]]*)\]\(\.\./images/([\w-]+\.\w+)\)", text)
    assert pictures
    for words, file in pictures:
        assert len(words) > 40
        assert (IMAGES / file).is_file()


def test_every_picture_is_shown_somewhere():
    """No picture lies unused in the folder."""
    pages = (
        "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")) + (ROOT / "README.md").read_text()
    )
    for path in IMAGES.iterdir():
        if path.suffix in (".svg", ".png"):
            assert f"images/{path.name}" in pages, path.name
