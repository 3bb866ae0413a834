"""Recorded pictures of claims are those of print: a column or the text wide, with nothing on anything else."""

import io

import pytest
from plots.overlaps import cut_off, legends_on_data, touching
from plots.test_print import fonts

from experiments.papers.claims import EXPERIMENTS
from experiments.papers.drawing import COLUMN_WIDTH, TEXT_WIDTH
from experiments.papers.experiment import Table
from experiments.papers.folder import RECORDS, ROWS
from ldpopt.plots import inches_of

FIRST_TIER = ("az-theorem-1", "bs-lemma-3-2", "cim-figures-1-2", "gi-theorem-8")
"""One part, parts of a claim, and rows of two."""
NAMES = [name if name in FIRST_TIER else pytest.param(name, marks=pytest.mark.full) for name in EXPERIMENTS]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", NAMES)
def test_a_picture_can_be_printed(name):
    """Drawn from the recorded rows, in letters of 7 points and more, which are embedded as TrueType."""
    path = RECORDS / name / ROWS
    figure = EXPERIMENTS[name].draw(Table.from_csv(path.read_text("utf-8"), str(path))).figure
    width = figure.get_size_inches()[0]
    assert width == pytest.approx(COLUMN_WIDTH) or width == pytest.approx(TEXT_WIDTH)
    assert touching(figure) == cut_off(figure) == legends_on_data(figure) == []
    assert min(inches_of(ax)[1] for ax in figure.axes) > (1.0 if width > len(figure.axes) * COLUMN_WIDTH + 0.3 else 1.8)
    for ax in figure.axes:
        texts = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label, ax.title]
        texts += ax.get_legend().get_texts() if ax.get_legend() else []
        assert min(text.get_fontsize() for text in texts) >= 7
    out = io.BytesIO()
    figure.savefig(out, format="pdf")
    assert fonts(out.getvalue()) >= {b"CIDFontType2"}
    assert b"Type3" not in fonts(out.getvalue())
