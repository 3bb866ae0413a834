import warnings

import numpy as np
import pytest

from ldpopt import plots
from ldpopt.plots import figure

SCRIPTS = ["東京", "สวัสดี", "नमस्ते", "Привет", "שלום", "emoji 🎲", "private \U0010fffd"]


def test_long_labels_are_wrapped():
    """Words stay whole, what does not fit ends in dots, and a dollar is a dollar."""
    assert figure.label_text("a " * 12, 10) == "a a a a a\na a a a a\na a"
    assert figure.label_text("x" * 200, 10).endswith("…")
    assert max(map(len, figure.label_text("word " * 100).split("\n"))) <= figure.LABEL_LINE_LENGTH
    assert figure.label_text(("a", 1)) == "a, 1"
    assert figure.label_text("") == " "


def test_dollars_are_no_formula():
    """Two dollar signs in a label are drawn as two dollar signs."""
    ax = plots.shares(["$5 to $10", "_{x}^2"], [0.4, 0.6], [0.3, 0.5], [0.5, 0.7])
    plots.picture(ax)
    tick = ax.get_yticklabels()[0]
    assert tick._preprocess_math(tick.get_text()) == ("$5 to $10", False)


@pytest.mark.full
@pytest.mark.parametrize("label", SCRIPTS)
def test_no_character_is_a_box(label):
    """Drawing warns of no missing glyph, whatever the script: a font is found, or the code point stands for it."""
    ax = plots.channel([[0.7, 0.3], [0.3, 0.7]])
    ax.set_yticks([0, 1], [figure.label_text(label), "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.picture(ax)


def test_characters_without_a_font_are_code_points(monkeypatch):
    """Where the machine has no font for a script, its characters are named."""
    monkeypatch.setattr(figure, "_font_with", lambda code: None)
    ax = plots.shares(["東", "b"], [0.4, 0.6], [0.3, 0.5], [0.5, 0.7])
    plots.picture(ax)
    assert ax.get_yticklabels()[0].get_text().strip() == "U+6771"


def test_rows_can_be_put_in_order():
    """The channel of a design picture has its rows as the left panel has them."""
    q = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    ax = plots.channel(q, order=[2, 0, 1])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["2", "0", "1"]
    assert np.array_equal(ax.images[0].get_array(), q[[2, 0, 1]])
