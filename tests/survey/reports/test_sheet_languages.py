"""Sheets in another language: every sentence is in it, missing ones are named, and cards look alike there too."""

from __future__ import annotations

import io
import json
import re
from functools import cache
from itertools import cycle

import numpy as np
import pytest
from plain_sheets import plain_sheet

from ldpopt.errors import InvalidInput
from ldpopt_survey import QuestionSpec, Reading, SurveySpec, paper_survey, plan_survey
from ldpopt_survey.kit.folder import LANGUAGES, kit_files
from ldpopt_survey.paper.design import DEVICES, Sheet, device_named, shipped_texts
from ldpopt_survey.plan.public_question import PublicQuestion
from ldpopt_survey.reports.promises import words_of
from ldpopt_survey.reports.sheets import paper_sheets

pypdf = pytest.importorskip("pypdf")
PLACE = re.compile(r"\{\w+\}")
OTHERS = [one for one in LANGUAGES if one != "en"]


@pytest.fixture(scope="module", autouse=True)
def _plain_sheets():
    """Which letters stand on the cards is no matter here."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ldpopt_survey.paper.design.design_sheet", plain_sheet)
        yield


@cache
def plan():
    """Two booklets, a public question, a category of missing answers: everything that sheets speak of."""
    silent = QuestionSpec("q1", ("a1", "a2", "a3"), missing="a3", reading=Reading(missing_answers="category"))
    asked = (silent, QuestionSpec("q2", ("b1", "b2")))
    spec = SurveySpec(
        "S", asked, epsilon=1.0, public=(PublicQuestion("p", ("c1", "c2")),), wording=(("q1", "W?"),),
        design="one question",
    )  # fmt: skip
    return plan_survey(spec).plan


def survey_of(device="two-dice"):
    return paper_survey(plan(), device_named(device))


def written(sheets):
    return " ".join(" ".join(page.extract_text().split()) for page in pypdf.PdfReader(io.BytesIO(sheets.pdf)).pages)


def runs_of_words(texts, n=3):
    """All runs of so many words in sentences, places left out."""
    found = set()
    for text in texts:
        for piece in PLACE.split(text):
            words = re.findall(r"[a-z']+", piece.lower())
            found |= {" ".join(words[at : at + n]) for at in range(len(words) - n + 1)}
    return found


def english_in(text):
    """The runs of three words of an English sentence that stand in a text."""
    words = " ".join(re.findall(r"[a-z']+", text.lower()))
    english = (text for key, text in shipped_texts().items() if key != "cards.values")
    return [run for run in runs_of_words(english) if f" {run} " in f" {words} "]


@pytest.mark.parametrize("language", OTHERS)
def test_no_sentence_is_left_in_english(language):
    """No three words of an English sentence follow each other in the sentences of any device."""
    assert not english_in(" | ".join(shipped_texts(language).values()))
    assert english_in(" | ".join(shipped_texts().values()))


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("device", "language"), list(zip(DEVICES, cycle(OTHERS), strict=False)))
def test_a_sheet_in_another_language_has_no_english(device, language):
    """No three words of an English sentence follow each other on any page, and no place is left unfilled."""
    text = written(paper_sheets(survey_of(device), language=language))
    assert not english_in(text)
    assert not PLACE.search(text)
    assert runs_of_words(["So antworten Sie, ohne dass"]) & runs_of_words([text]) or language != "de"


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_have_the_same_sentences_and_places(language):
    """None is missing, and none lacks a number that another one tells."""
    english, found = shipped_texts(), shipped_texts(language)
    assert list(found) == list(english)
    for key, text in found.items():
        assert text.strip()
        assert set(PLACE.findall(text)) == set(PLACE.findall(english[key])), key


def test_missing_sentences_are_named_and_no_sheet_is_made():
    """A language that the package lacks needs all of them, with their places; a shipped one may change some."""
    survey, english = survey_of(), dict(shipped_texts())
    page = {"code": "fr", "noneChosen": "aucun", "notApplicable": "sans objet"}
    with pytest.raises(InvalidInput, match=r"texts of 'fr': expected all sentences .*: decimal, paper: comma"):
        words_of(survey.plan, "paper", texts='{"code": "fr"}')
    some = {key: f"FR {text}" for key, text in english.items() if key not in ("why.times", "rules.look")}
    with pytest.raises(InvalidInput, match=r"got none for paper: why.times, paper: rules.look$"):
        paper_sheets(survey, texts=json.dumps(page | {"paper": some}))
    whole = {key: f"FR {text}" if " " in text else text for key, text in english.items()}
    assert "FR Whatever your answer" in written(paper_sheets(survey, texts=json.dumps(page | {"paper": whole})))
    for change in ({"why.times": "FR"}, {"why": "FR {times}"}, {"whi": "FR"}, {"why": 3}):
        with pytest.raises(InvalidInput, match="texts of 'fr': paper"):
            words_of(survey.plan, "paper", texts=json.dumps(page | {"paper": whole | change}))
    own = {"code": "de", "survey": "Titel", "paper": {"why": "Darum"}, "questions": {"q1": {"answers": {"a1": "Ja!"}}}}
    text = written(paper_sheets(survey, texts=json.dumps(own)))
    assert all(said in text for said in ("Titel", "Darum", "Meine Antwort: Ja!", "Legen Sie die Karte"))
    with pytest.raises(InvalidInput, match="language: expected one of en, de, ar"):
        paper_sheets(survey, language="fr")


def test_the_page_does_not_carry_sentences_of_paper():
    """Texts may be of both; devices need the page's alone."""
    files = kit_files(plan_survey(SurveySpec("S", (QuestionSpec("q", (0, 1)),), epsilon=1.0)).plan, texts=[
        json.dumps({"code": "de", "paper": {"why": "Weshalbsicher"}})
    ])  # fmt: skip
    assert b"Weshalbsicher" not in files["language-de.json"]


@pytest.mark.parametrize("language", OTHERS)
def test_translated_cards_are_indistinguishable_from_a_distance(language):
    """As in English: the same colours, lines and number of letters on the cards of a question."""
    question = QuestionSpec("q", ("a", "b", "c", "d"), epsilon=1.0)
    survey = paper_survey(plan_survey(SurveySpec("S", (question,))).plan, device_named("two-dice"))
    pages = pypdf.PdfReader(io.BytesIO(paper_sheets(survey, language=language).pdf)).pages[1:3]
    marks = []
    for page in pages:
        content = page.get_contents().get_data().decode("latin-1")
        drawn = re.sub(r"BT.*?ET", "", content, flags=re.DOTALL)
        lines, colours = (sorted(re.findall(rf"^.* (?:{ends})$", drawn, re.M)) for ends in ("S|f|l|c|re", "rg|RG|g|G"))
        marks.append((lines, set(colours), content.count("BT")))
    assert marks[0] == marks[1]
    assert marks[0][2] >= 2 * survey.device.denominator


@pytest.mark.full
def test_a_long_table_of_integers_continues_on_the_next_page(monkeypatch):
    """Twenty answers and as many letters: no row of the table is below the edge of a page, and some are on another."""
    whole = Sheet(4 + 20 * np.eye(20, dtype=np.int64), 0.0, 0.0)  # one that is not the best, and found at once
    monkeypatch.setattr("ldpopt_survey.paper.design.design_sheet", lambda *_: whole)
    question = QuestionSpec("q", tuple(f"a{n:02d}" for n in range(20)), epsilon=2.0)
    survey = paper_survey(plan_survey(SurveySpec("S", (question,))).plan, device_named("two-d10"), simpler=0.0)
    reader = pypdf.PdfReader(io.BytesIO(paper_sheets(survey).pdf))
    places = {}
    for number, page in enumerate(reader.pages[-2:]):
        page.extract_text(
            visitor_text=lambda text, cm, tm, *_, page=number: places.setdefault(text.strip(), (page, tm[5]))
        )
    places.pop("", None)
    assert all(height > 36 for _, height in places.values())
    assert any("What the sheet guarantees" in text for text in places)
    assert next(page for text, (page, _) in places.items() if "What the sheet" in text) == 0
    assert max(page for page, _ in places.values()) == 1
