"""Printed sheets: every answer has its card, every letter its cell, and glyphs that are missing are told."""

import io
import json
import re
from collections import Counter
from functools import cache

import pytest
from plain_sheets import plain_sheet

from ldpopt.errors import InvalidInput
from ldpopt_survey import QuestionSpec, Reading, SurveySpec, paper_survey, plan_survey
from ldpopt_survey.paper.design import DEVICES, device_named
from ldpopt_survey.reports import sheet_drawing
from ldpopt_survey.reports.sheets import paper_sheets, sheet_text

pypdf = pytest.importorskip("pypdf")


@cache
def survey_of(categories=("no", "yes"), name="vote", device="two-dice"):
    plan = plan_survey(SurveySpec("demo", (QuestionSpec(name, categories, epsilon=1.0),))).plan
    return paper_survey(plan, device_named(device))


def pages(sheets):
    return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(sheets.pdf)).pages]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("device", "paper"), [*((device, "a4") for device in DEVICES), ("two-dice", "letter")])
def test_a_file_has_instructions_cards_form_and_promises(device, paper):
    survey = survey_of(device=device)
    found = paper_sheets(survey, paper)
    first, cards, form, promise = pages(found)
    assert "How to answer" in first
    assert cards.count("My answer:") == 2
    assert "For the interviewer" in form
    assert "What the sheet guarantees" in promise
    assert str(survey.plan.questions[0].channel.proof().ratio) in promise
    size = pypdf.PdfReader(io.BytesIO(found.pdf)).pages[0].mediabox
    assert (round(float(size.width)), round(float(size.height))) == {"a4": (595, 842), "letter": (612, 792)}[paper]
    assert not found.warnings


def test_a_card_has_every_outcome_once():
    """The letters that are drawn on the cards of both answers are those of the integers."""
    survey = survey_of()
    text = pages(paper_sheets(survey))[1]
    drawn = Counter(word for word in text.split() if word in survey.plan.questions[0].reports)
    weights = survey.plan.questions[0].channel.weights.sum(axis=0).tolist()
    assert [drawn[letter] for letter in survey.plan.questions[0].reports] == weights


def test_all_fonts_are_embedded():
    reader = pypdf.PdfReader(io.BytesIO(paper_sheets(survey_of()).pdf))
    for page in reader.pages:
        for font in page["/Resources"]["/Font"].values():
            inner = font.get_object()["/DescendantFonts"][0].get_object()["/FontDescriptor"].get_object()
            assert "/FontFile2" in inner or "/FontFile3" in inner


def test_characters_without_a_font_give_one_warning(monkeypatch):
    """With no fonts but DejaVu, Chinese is said to be missing; the file is made all the same."""
    monkeypatch.setattr(sheet_drawing, "_installed_fonts", list)
    found = paper_sheets(survey_of(("不", "是")))
    assert len(found.warnings) == 1
    assert "不" in found.warnings[0]
    assert "\n" not in found.warnings[0]


def test_joining_letters_give_a_warning_without_shaping(monkeypatch):
    monkeypatch.setattr(sheet_drawing, "find_spec", lambda name: None)
    assert any("Arabic" in line for line in paper_sheets(survey_of(("لا", "نعم"))).warnings)


def test_greek_and_cyrillic_need_no_other_font(monkeypatch):
    monkeypatch.setattr(sheet_drawing, "_installed_fonts", lambda: pytest.fail("looked for more fonts"))
    assert not paper_sheets(survey_of(("όχι", "да"))).warnings


@pytest.mark.parametrize(
    "text", ["Every card is as likely – “yes” or “no”. " * 6, "a  b   c " * 30, "word", "", "w" * 90]
)
def test_lines_end_where_those_of_fpdf_end(text):
    """Texts are broken as by `multi_cell`, at any width; words that are too long are left to it."""
    pdf = pytest.importorskip("fpdf").FPDF()
    sheet_drawing.set_fonts(pdf, [text])
    pdf.add_page()
    pdf.set_font(sheet_drawing.FAMILY, "", 11)
    for width in range(25, 175, 5):
        lines = sheet_drawing.lines_of(pdf, text, width)
        longest = max(map(pdf.get_string_width, text.split(" ")))
        assert bool(lines) == (longest <= width - 2 * pdf.c_margin)
        if lines and text:
            expected = pdf.multi_cell(width, 5, text, dry_run=True, output="LINES")
            assert [line.rstrip() for line in lines] == [line.rstrip() for line in expected]
    pdf.output()  # closes the files of the fonts


@pytest.mark.full
def test_long_names_and_many_answers_stay_on_their_pages():
    """Texts of 200 characters, and ten answers: nothing fails, and every answer has a card."""
    categories = tuple(f"{n} " + "a rather long answer " * 4 for n in range(5))
    text = pages(paper_sheets(survey_of(categories, "q" * 100 + " " + "w" * 90, "two-d10")))
    assert sum(page.count("My answer:") for page in text) == 5


def test_questions_stand_on_paper_in_their_own_words():
    """A page has all questions with their wording, or their name; a card has the wording of its question."""
    asked = (QuestionSpec("drug", ("no", "yes"), epsilon=1.0), QuestionSpec("vote", ("no", "yes"), epsilon=1.0))
    plan = plan_survey(SurveySpec("demo", asked, wording=(("drug", "Have you taken any drug?"),))).plan
    text = pages(paper_sheets(paper_survey(plan, device_named("two-dice"))))
    (page,) = [one for one in text if "The questions" in one]
    assert "Have you taken any drug?" in page
    assert "vote" in page
    assert ["My answer" in one for one in text if "Have you taken any drug?" in one] == [False, True]


@pytest.mark.full
def test_many_long_questions_stay_on_their_pages():
    """Fifteen questions of 500 characters each, on four pages, are all there."""
    asked = tuple(QuestionSpec(f"q{n}", ("no", "yes"), epsilon=1.0) for n in range(15))
    wording = tuple((one.name, f"Question {n}: " + "and so on " * 48 + "END.") for n, one in enumerate(asked))
    plan = plan_survey(SurveySpec("demo", asked, wording=wording)).plan
    text = [one for one in pages(paper_sheets(paper_survey(plan, device_named("dice")))) if "The questions" in one]
    assert len(text) == 4
    assert "".join(text).count("END.") == 15


def test_another_paper_is_refused():
    with pytest.raises(InvalidInput, match="paper: expected one of a4, letter"):
        paper_sheets(survey_of(), "a5")


@pytest.mark.full(but=2)
@pytest.mark.parametrize("device", DEVICES)
def test_instructions_have_short_sentences(device):
    """No sentence of the instructions has more than 26 words: a twelve-year-old is to follow it."""
    survey = survey_of(device=device)
    for text in sheet_text("steps", survey):
        for sentence in text.split(". "):
            assert len(sentence.split()) <= 26, sentence
    assert sheet_text("promises", survey, survey.plan.questions[0])


def test_the_channel_files_of_sheets_are_proved_by_check(tmp_path):
    """`ldpopt check` proves the epsilon of every sheet again from the integers in its file."""
    from typer.testing import CliRunner

    from ldpopt.cli import app

    spec = '[survey]\nname = "d"\n[[questions]]\nname = "a"\ncategories = ["no", "yes"]\nepsilon = 1.0\n'
    (tmp_path / "s.toml").write_text(spec)
    run = CliRunner().invoke
    for arguments in (
        ["survey", "plan", str(tmp_path / "s.toml"), "-o", str(tmp_path / "plan.json")],
        ["survey", "paper", str(tmp_path / "plan.json"), "--device", "two-d10", "-o", str(tmp_path / "paper")],
    ):
        made = run(app, arguments)
        assert made.exit_code == 0, made.output
    assert sorted(path.name for path in (tmp_path / "paper").iterdir()) == [
        "channel-1.json", "codes.csv", "plan.json", "sheets.pdf"
    ]  # fmt: skip
    found = run(app, ["check", str(tmp_path / "paper" / "channel-1.json"), "--json"])
    measured = json.loads(found.stdout)
    assert measured["proved_denominator"] == 100
    assert measured["guarantees"][0]["value"] <= 1.0
    again = run(app, ["survey", "paper", str(tmp_path / "plan.json"), "--device", "d10", "-o", str(tmp_path / "paper")])
    assert again.exit_code == 2


def drawn_marks(page):
    """What a page draws beside text: its lines and rectangles, and the colours that it uses for them and for text."""
    content = page.get_contents().get_data().decode("latin-1")
    lines = [line.strip() for line in re.sub(r"BT.*?ET", "", content, flags=re.DOTALL).split("\n")]
    coloured = {line for line in lines if line.endswith((" rg", " RG", " g", " G"))}
    return Counter(line for line in lines if line not in coloured and re.search("[Sflc]$", line)), coloured


@pytest.mark.full(but=1)
@pytest.mark.parametrize("device", ["two-dice", "cards", "spinner"])
def test_cards_of_a_question_are_indistinguishable_from_a_distance(device, monkeypatch):
    """All cards have the same colours, lines and number of letters; only which letter stands where differs."""
    monkeypatch.setattr("ldpopt_survey.paper.design.design_sheet", plain_sheet)
    survey = survey_of(("a", "b", "c", "d"), device=device)
    pages = [page for page in pypdf.PdfReader(io.BytesIO(paper_sheets(survey).pdf)).pages]
    first, second = (page for page in pages if "My answer:" in page.extract_text())
    assert drawn_marks(first) == drawn_marks(second)
    assert all(len(set(line.split()[:-1])) == 1 for line in drawn_marks(first)[1])  # greys alone
    written = [page.get_contents().get_data().count(b"Tj") for page in (first, second)]
    assert written[0] == written[1] >= 2 * survey.device.denominator


def test_rules_about_empty_boxes_are_those_of_the_plan(monkeypatch):
    """A card for who does not answer, an empty box that everybody sees, or no part at all [`Reading`]."""
    monkeypatch.setattr("ldpopt_survey.paper.design.design_sheet", plain_sheet)
    policies = {
        "own": QuestionSpec("own", ("no", "yes", "none"), missing="none", reading=Reading(missing_answers="category")),
        "seen": QuestionSpec("seen", ("no", "yes"), reading=Reading(missing_answers="left out")),
        "must": QuestionSpec("must", ("no", "yes")),
    }
    spec = SurveySpec("demo", tuple(policies.values()), epsilon=6.0, design="split")
    survey = paper_survey(plan_survey(spec).plan, device_named("two-d10"))
    said = "\n".join(sheet_text("rules", survey))
    assert "answer “own” take a card that says “none”" in said
    assert "answer “seen”: leave its box empty" in said
    assert "answer another question take no part" in said
    assert any("take a card that says “none”" in step for step in sheet_text("steps", survey))
    alone = "\n".join(sheet_text("rules", survey_of()))
    assert "answer a question take no part" in alone
    assert "No box is left empty." in alone
    assert "leave its box empty" not in alone


def test_slips_show_whole_names_of_questions():
    """Every slip has the whole name of its question, over as many lines as it needs."""
    names = [f"How often did you use the substance in the last year, question {letter}" for letter in "abcd"]
    spec = SurveySpec("demo", tuple(QuestionSpec(name, ("no", "yes")) for name in names), epsilon=1.0)
    sheets = paper_sheets(paper_survey(plan_survey(spec).plan, device_named("two-d10")))
    (slips,) = [" ".join(page.split()) for page in pages(sheets) if "Cut the slips apart" in page]
    assert [slips.count(name) for name in names] == [1] * 4
