"""Files as survey tools export them become questions of the right kind, and what a proposal would merge is asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.coding import Coder
from ldpopt_survey.datafiles.columns import profile
from ldpopt_survey.plan.options_question import AnyOfSpec
from ldpopt_survey.plan.propose import ProposalOptions, propose
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.plan.spec import QuestionSpec

EXPORTS = Path(__file__).parents[2] / "data" / "exports"
PEOPLE = 48
SCALE = ("never", "rarely", "sometimes", "often")
PAY = ("Cash", "Card", "Phone")

WANTED = {
    "qualtrics.csv": {"Q1": ("No", "Yes"), "Q2": PAY, "Q3": SCALE[:3]},
    "qualtrics.tsv": {"Q1": ("No", "Yes"), "Q2": PAY, "Q3": SCALE[:3]},
    "limesurvey_codes.csv": {"smoke": ("N", "Y"), "pay": ("SQ001", "SQ002", "SQ003"), "run": ("A1", "A2", "A3")},
    "limesurvey_texts.csv": {"Do you smoke?": ("No", "Yes"), "How do you pay?": PAY, "How often?": SCALE[:3]},
    "redcap_raw.csv": {"smoke": (0, 1), "pay": ("1", "2", "3"), "drink": (0, 1), "amount": (1, 2, 3, "no answer")},
    "redcap_labels.csv": {"smoke": ("No", "Yes"), "pay": ("1", "2", "3"), "drink": ("No", "Yes"),
                          "amount": ("1 glasses", "2 glasses", "3 glasses", "no answer")},
    "surveymonkey.csv": {"Do you smoke?": ("No", "Yes"), "How do you pay?": PAY},
    "google_forms.csv": {"Do you smoke?": ("No", "Yes"), "How do you pay?": ("Card", "Cash", "Phone")},
    "microsoft_forms.xlsx": {"Do you smoke?": ("No", "Yes"), "How do you pay?": ("Card", "Cash", "Phone"),
                             "Agree": ("false", "true")},
    "excel_german.csv": {"Rauchen": ("ja", "nein"), "Größe (1)": ("1.60", "1.67", "1.74"),
                         "Größe (2)": ("1.61", "1.68", "1.75")},
    "r.csv": {"smoke": ("FALSE", "TRUE"), "vote": ("left", "right", "no answer")},
    "spss.sav": {"run": (*SCALE, "no answer"), "smoke": ("no", "yes")},
    "stata.dta": {"run": SCALE, "smoke": ("no", "yes")},
    "pandas.parquet": {"run": SCALE, "smoke": ("false", "true"), "pay": ("Card", "Cash", "Phone")},
}  # fmt: skip


@pytest.mark.parametrize("name", WANTED)
def test_an_export_becomes_its_questions(name: str) -> None:
    """Every column is a question with the answers that people could give; header rows are nobody."""
    found = profile(EXPORTS / name)
    assert found.rows == (PEOPLE if name != "google_forms.csv" else found.rows) <= PEOPLE
    made = {q.spec.name: getattr(q.spec, "options", ()) or q.spec.categories for q in propose(found).questions}
    assert made == WANTED[name]


ASKED = {
    "qualtrics.csv": {("--blank-is-no", "Q2")},
    "limesurvey_codes.csv": {("--blank-is-no", "pay")},
    "r.csv": {("--missing-code", "vote=NA")},
    "surveymonkey.csv": {("--blank-is-no", "How do you pay?")},
    "microsoft_forms.xlsx": {("--blank-is-no", "How do you pay?")},
}


@pytest.mark.parametrize("name", WANTED)
def test_guesses_that_merge_or_drop_answers_are_confirmed(name: str) -> None:
    """Guesses about codes and empty boxes come with the options that confirm and decline them; nothing else does."""
    merges = propose(profile(EXPORTS / name)).merges
    wanted = ASKED.get(name, {("--blank-is-no", "Q2")} if name == "qualtrics.tsv" else set())
    pandas = {("--blank-is-no", "pay")} if name == "pandas.parquet" else set()
    assert {merging.accept for merging in merges} in (wanted, wanted | pandas)
    assert all(merging.accept != merging.decline for merging in merges)


def test_options_answer_the_questions_about_guesses(tmp_path: Path) -> None:
    """Each option leaves nothing to confirm about its question; declined guesses leave the answers unchanged."""
    path = tmp_path / "a.csv"
    cells = ["yes,1", "Yes,2", "no,9", "no,1"] * 10
    path.write_text("q,n\n" + "\n".join(cells) + "\n")
    found = profile(path)
    assert {merging.accept[0] for merging in propose(found).merges} == {"--merge", "--missing-code"}
    kept = propose(found, ProposalOptions(keep_apart=("q",), answers={"n": ("9",)}))
    assert not kept.merges
    assert [question.spec.categories for question in kept.questions] == [("no", "Yes", "yes"), (1, 2, 9)]
    merged = propose(found, ProposalOptions(merge=("q",), missing_codes={"n": ("9",)}))
    assert not merged.merges
    assert len(merged.questions[0].spec.categories) == 2


def test_boxes_that_are_missing_when_empty_need_no_confirmation() -> None:
    """--blank-is-missing takes each box apart: ticked or unknown, which is nothing to ask."""
    found = profile(EXPORTS / "qualtrics.csv")
    made = propose(found, ProposalOptions(blank_is_missing=("Q2",)))
    assert made.names == ["Q1", "Q3"]
    assert not made.merges


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("yes,18\n" + "no,30\nyes,18\n" * 20, "--header-rows 0"),
        ("a,b\n" + "1,2\n3,4\n" * 20 + "a,b\n" + "1,2\n" * 20, "stands in the file again"),
    ],
)
def test_a_missing_or_repeated_header_is_reported(tmp_path: Path, content: str, message: str) -> None:
    """Answers never become column names in silence, nor names answers."""
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InvalidInput, match=message):
        profile(tmp_path / "a.csv")
    assert profile(tmp_path / "a.csv", header_rows=0).columns[0].name == "column 1"


def test_a_repeated_header_at_the_top_is_one_header(tmp_path: Path) -> None:
    """The second row of names is no person."""
    (tmp_path / "a.csv").write_text("a,b\na,b\n" + "x,2\ny,4\n" * 20)
    found = profile(tmp_path / "a.csv")
    assert (found.rows, found.dialect.header_rows) == (40, 2)


def test_rows_at_the_end_without_a_cell_are_nobody(tmp_path: Path) -> None:
    """Delimiters, blanks and line ends alone, however many, in one encoding and another; in between they stay."""
    for encoding in ("utf-8", "utf-16"):
        text = "a,b\r\nx,1\r\n,\r\ny,2\r\n" + ",\r\n" * 70_000 + " , \r\n\r\n"
        (tmp_path / "a.csv").write_bytes(text.encode(encoding))
        assert profile(tmp_path / "a.csv").rows == 3


def test_ids_of_which_some_stand_twice_are_no_question(tmp_path: Path) -> None:
    """They are set aside with the option that takes them as ids; --question still asks them."""
    path = tmp_path / "a.csv"
    path.write_text("id,q\n" + "".join(f"{max(number, 2)},{'yn'[number % 3 == 0]}\n" for number in range(40)))
    made = propose(profile(path))
    assert made.names == ["q"]
    assert "--respondent id" in dict(made.aside)["id"]


@pytest.mark.parametrize("first", [0, 1000])
@pytest.mark.parametrize("name", ["pid", "userid", "Person-ID", "lfd"])
@pytest.mark.parametrize("repeats", [0, 6])
def test_ids_are_known_by_their_name_or_by_numbering_the_rows(
    tmp_path: Path, name: str, repeats: int, first: int
) -> None:
    """Neither short forms of "id" nor consecutive numbers of which a few repeat become questions."""
    path = tmp_path / "a.csv"
    numbers = [first + max(number, repeats) for number in range(300)]
    path.write_text(f"{name},q\n" + "".join(f"{number},{'yn'[number % 3 == 0]}\n" for number in numbers[::-1]))
    assert propose(profile(path)).names == ["q"]


def test_numbers_as_many_as_rows_that_repeat_are_answers(tmp_path: Path) -> None:
    """Numbers drawn at random from as many values as rows are answers, and so are amounts paid."""
    path = tmp_path / "a.csv"
    numbers = np.random.default_rng(1).integers(0, 300, 300)
    path.write_text("visits,paid\n" + "".join(f"{number},{number * 7 % 1009}\n" for number in numbers))
    assert propose(profile(path)).names == ["visits", "paid"]


def test_a_carried_stratum_stays_in_the_sample(tmp_path: Path) -> None:
    """--carry of a column that says how respondents were drawn does not take it out of [sample]."""
    path = tmp_path / "a.csv"
    path.write_text("stratum,q\n" + "".join(f"{'ab'[n % 2]},{'yn'[n % 3 == 0]}\n" for n in range(40)))
    for wishes in (ProposalOptions(), ProposalOptions(carry=("stratum",))):
        sample = propose(profile(path), wishes).sample
        assert sample is not None
        assert sample.strata == "stratum"


@pytest.mark.parametrize(
    "spelling", ["TRUE/FALSE", "True/False", "Yes/No", "t/f", "1/0", "Checked/Unchecked", "JA/NEIN"]
)
def test_true_and_false_in_any_common_spelling(spelling: str) -> None:
    """A question of which options are chosen reads each of them, and refuses what is neither."""
    yes, no = spelling.split("/")
    asked = AnyOfSpec("pay", options=("cash", "card")).answers[0]
    assert Coder(asked).positions(pa.array([yes, no, "perhaps"]))[0].tolist() == [1, 0, -1]
    truth = QuestionSpec("q", (False, True))
    assert Coder(truth).positions(pa.array([yes, no, "perhaps"]))[0].tolist() == [1, 0, -1]


def test_lists_in_a_cell_are_read_by_their_entries() -> None:
    """In any order, with blanks and a separator at the end; an entry that is no option is unknown; nothing is no."""
    spec = AnyOfSpec("pay", options=("cash", "card"), reading=Reading(separator=";"))
    cash, card = (Coder(asked) for asked in spec.answers)
    cells = pa.array(["cash; card", "card;cash;", "card", "", "card;other"])
    assert cash.positions(cells)[0].tolist() == [1, 1, 0, 0, -1]
    assert card.positions(cells)[0].tolist() == [1, 1, 1, 0, -1]
