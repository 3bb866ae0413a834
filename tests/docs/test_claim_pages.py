"""The gallery shows every experiment: a card with its verdict, and a page with claim, picture, numbers and code."""

import sys
from pathlib import Path

import pytest

from experiments.papers import EXPERIMENTS, recorded

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
from claim_pages import ROOT, claim_pages, gallery

sys.path.pop(0)

pytestmark = pytest.mark.full
HERE = (ROOT / "experiments" / "README.md").is_file()  # the tests may run away from the repository
PAGES, CARDS = (claim_pages(), gallery()) if HERE else ({}, "")


@pytest.mark.skipif(not HERE, reason="the folders of the experiments are in the repository alone")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_has_a_card_and_a_page(name):
    """The page says what is claimed, what came out, and how to compute it; the card leads to it."""
    page, verdict = PAGES[f"{name}.md"], recorded()[name]
    assert f"**Verdict: {verdict['outcome']}.**" in page
    assert EXPERIMENTS[name].source in page
    assert f"python -m experiments.papers {name} --quick" in page
    assert "```{literalinclude} ../../experiments/papers/claims/" in page
    assert f":link: /claims/{name}\n" in CARDS
