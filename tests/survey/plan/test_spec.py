"""survey.toml: what is accepted, and that everything else is refused by name.

Codes, bins and missing answers: from what stands in a file to a category, through to the estimate.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt.files.delimited import Dialect
from ldpopt_survey import (
    Reading,
    Simulated,
    Survey,
    aggregate,
    among_answered,
    estimate,
    make_plan,
    plan_survey,
    privatize,
    privatize_frame,
)
from ldpopt_survey.collect.aggregate import Counts
from ldpopt_survey.plan.options_question import AnyOfSpec
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.public_question import PublicQuestion
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec
from ldpopt_survey.plan.targets import TargetSpec
from ldpopt_survey.records import reference
from ldpopt_survey.sample.spec import SampleSpec

FULL = """
[survey]
name = "health 1"
round = 2
respondent = "id"
duplicates = "first"
carry = ["stratum"]
[budget]
epsilon = 2
eta = 0.8
[[questions]]
name = "smoker"
column = "q7"
categories = ["no", "yes"]
pilot = [0.8, 0.2]
unknown = "no"
missing = "yes"
epsilon = 1.0
eta = 0.4
half_width = 0.02
[[questions]]
name = "children"
categories = [0, 1, 2]
"""


def test_everything_is_read() -> None:
    """Every field of the file arrives in the spec, checked."""
    spec = SurveySpec.from_toml(FULL.encode())
    assert (spec.name, spec.round, spec.respondent, spec.first_of_duplicates) == ("health 1", 2, "id", True)
    assert (spec.epsilon, spec.eta, spec.carry) == (2.0, 0.8, ("stratum",))
    first, second = spec.questions
    assert (first.column, first.categories, first.unknown, first.missing) == ("q7", ("no", "yes"), "no", "yes")
    assert (first.epsilon, first.eta, first.half_width) == (1.0, 0.4, 0.02)
    assert first.pilot is not None
    assert first.pilot.tolist() == [0.8, 0.2]
    assert (second.column, second.categories, second.pilot) == ("children", (0, 1, 2), None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "health 1"', "", r"\[survey\].*'name'"),
        ('name = "health 1"', "name = 3", r"\[survey\] name"),
        ('name = "health 1"', 'name = "a"\nextra = 1', "extra"),
        ("round = 2", "round = 0", "round"),
        ("round = 2", "round = true", "round"),
        ('"first"', '"last"', "duplicates"),
        ('respondent = "id"', "", "duplicates"),
        ('respondent = "id"', 'respondent = "q7"', "respondent"),
        ('carry = ["stratum"]', 'carry = ["q7"]', "raw answers"),
        ('carry = ["stratum"]', 'carry = ["smoker"]', "carried"),
        ('carry = ["stratum"]', 'carry = "stratum"', "carry"),
        ("epsilon = 2", "epsilon = inf", "epsilon"),
        ("epsilon = 2", "delta = 2", "delta"),
        ("eta = 0.8", "eta = 1.5", "eta"),
        ('["no", "yes"]', '["no"]', "categories"),
        ('["no", "yes"]', '["no", "no"]', "categories"),
        ('["no", "yes"]', '["1", 1]', "distinct"),
        ('["no", "yes"]', '["no", ""]', "not empty"),
        ('["no", "yes"]', '["no", nan]', "categories"),
        ('["no", "yes"]', '"noyes"', "categories"),
        ("[0.8, 0.2]", "[0.8, 0.1]", "pilot"),
        ("[0.8, 0.2]", "[1.0]", "pilot"),
        ('unknown = "no"', 'unknown = "maybe"', "unknown"),
        ('missing = "yes"', "missing = 1", "missing"),
        ("half_width = 0.02", "half_width = 0", "half_width"),
        ('name = "children"', 'name = "smoker"', "distinct"),
        ("[budget]", "[budgets]", "budgets"),
        ("[survey]", "[[survey]]", "survey"),
        ("[0, 1, 2]", "[0, 1, 2", "valid TOML"),
    ],
)
def test_anything_wrong_is_named(old: str, new: str, message: str) -> None:
    """A changed file is refused with a message that names what is wrong."""
    assert old in FULL
    with pytest.raises(InvalidInput, match=message):
        SurveySpec.from_toml(FULL.replace(old, new, 1))


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@settings(max_examples=200, deadline=None)
def test_only_invalid_input_comes_out(content: bytes | str) -> None:
    """Arbitrary bytes and text are refused as `InvalidInput`."""
    with pytest.raises(InvalidInput):
        SurveySpec.from_toml(content)


def test_deep_nesting_is_refused() -> None:
    """Thousands of brackets end in a message, not in the interpreter's limit."""
    with pytest.raises(InvalidInput):
        SurveySpec.from_toml("x = " + "[" * 100_000)


def test_every_key_has_a_meaning_in_the_reference() -> None:
    """The page of keys is made from what the classes say, and leaves none of the planner's own without a word."""
    inner = {
        "questions": QuestionSpec,
        "public": PublicQuestion,
        "targets": TargetSpec,
        "file": Dialect,
        "sample": SampleSpec,
    }
    page = reference(SurveySpec, inner)
    rows = [line for line in page.split("## `[sample]`")[0].splitlines() if line.startswith("| `")]
    assert len(rows) == 15 + 18 + 3 + 8 + 5
    assert not [row for row in page.splitlines() if row.endswith("|  |")]
    assert "| `duplicates` | text | `'refuse'` |" in page


def test_a_survey_needs_questions() -> None:
    """No questions, or a category policy of another type, is refused."""
    with pytest.raises(InvalidInput, match="at least one"):
        SurveySpec("s", ())
    with pytest.raises(InvalidInput, match="unknown"):
        QuestionSpec("q", (0, 1), unknown=False)


NEAR = 1e-6


def survey(question: QuestionSpec, file: Dialect | None = None) -> Plan:
    """A plan whose channel nearly tells the answer, so that a report shows what was read."""
    k = len(question.categories)
    channel = np.full((k, k), NEAR) + (1 - k * NEAR) * np.eye(k)
    spec = SurveySpec("demo", (question,), file=file or Dialect())
    return make_plan(spec, {question.name: channel})


def read(plan: Plan, values: list[object]) -> list[str | None]:
    """The reports for some answers, as the categories that they stand for."""
    table, _ = privatize_frame(plan, pa.table({plan.questions[0].column: values}), Simulated(np.random.default_rng(1)))
    reports = table.column(0).to_pylist()
    return [None if one is None else str(plan.questions[0].categories[int(one)]) for one in reports]


def test_codes_and_missing_codes_as_text_and_as_numbers() -> None:
    """1, 1.0 and "1" are one code; a code for no answer is none, whatever the column's type."""
    reading = Reading({"1": "yes", "2": "no"}, missing_codes=(-9, "k.A."), missing_answers="category")
    plan = survey(QuestionSpec("q", ("yes", "no", "none"), missing="none", reading=reading))
    wanted = ["yes", "no", "none", "none"]
    assert read(plan, ["1", "2", "-9", None]) == wanted
    assert read(plan, [1, 2, -9, None]) == wanted
    assert read(plan, [1.0, 2.0, -9.0, float("nan")]) == wanted
    assert read(plan, ["yes", "no", " k.A. ", ""][:3]) == wanted[:3]
    assert read(plan, pa.array(["1", "2", "k.A.", None]).dictionary_encode()) == wanted
    with pytest.raises(InvalidInput, match="row 2"):
        read(plan, ["1", "3"])


def test_bins_hold_numbers_from_their_lower_edge_on() -> None:
    """A number on an edge belongs above; text that is no number is refused without being shown."""
    reading = Reading(bins=(0, 1.5), missing_codes=(99,), missing_answers="category")
    plan = survey(QuestionSpec("q", ("low", "middle", "high", "none"), missing="none", reading=reading))
    wanted = ["low", "middle", "middle", "high", "high", "none", "none"]
    assert read(plan, ["-0.1", "0", " 1.49", "1.5", "1e3", "99", None]) == wanted
    assert read(plan, [-0.1, 0.0, 1.49, 1.5, 1e3, 99.0, None]) == wanted
    with pytest.raises(InvalidInput, match="row 1") as caught:
        read(plan, ["secret"])
    assert "secret" not in str(caught.value)


def test_left_out_answers_have_empty_reports_and_are_not_counted(tmp_path: Path) -> None:
    """Empty reports go through CSV, Parquet, counts and both kinds of frames; the shares are among the others."""
    reading = Reading(missing_codes=("9",), missing_answers="left out")
    plan = survey(QuestionSpec("q", ("1", "2"), reading=reading))
    assert read(plan, ["1", "9", None, "2"]) == ["1", None, None, "2"]
    (tmp_path / "a.csv").write_text("q\n" + "1\n" * 60 + "9\n" * 30 + "\n" * 10 + "2\n" * 100)
    for name in ("r.csv", "r.parquet", "folder"):
        privatize(plan, tmp_path / "a.csv", tmp_path / name, Simulated(np.random.default_rng(1)))
        counts = aggregate(plan, tmp_path / name)
        assert counts.rows == 200
        assert counts["q"].tolist() == [60, 100]
        assert Counts.from_json(counts.to_json(), plan) == counts
    made = Survey(plan).estimate("q", aggregate(plan, tmp_path / "r.csv")["q"])
    assert made.n == 160
    assert made.values == pytest.approx([0.375, 0.625], abs=1e-4)
    for frame in (pd.read_csv(tmp_path / "r.csv"), pd.read_parquet(tmp_path / "r.parquet")):
        again = Survey(plan).estimate("q", frame)
        assert again.values == pytest.approx(made.values)
        assert again.n == 160
    refused = survey(QuestionSpec("q", ("1", "2")))
    (tmp_path / "unlabelled.csv").write_bytes((tmp_path / "r.csv").read_bytes())
    with pytest.raises(InvalidInput, match="row 61"):
        aggregate(refused, tmp_path / "unlabelled.csv", unlabelled=True)


def test_shares_among_those_who_answered_are_the_ratio_with_its_variance() -> None:
    """The estimate is p_x / (1 - p_missing), its variance that of the ratio by the delta method [SSW, section 5.6]."""
    channel = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.6, 0.2], [0.05, 0.05, 0.1, 0.8]])
    whole = estimate(np.array([300, 260, 190, 250]), channel)
    made = among_answered(whole, 3)
    p, covariance = whole.values, whole.covariance
    answered = 1 - p[3]
    gradient = np.zeros((3, 4))
    for x in range(3):
        gradient[x, x] = 1 / answered
        gradient[x, 3] = p[x] / answered**2
    assert made.values == pytest.approx(p[:3] / answered, rel=1e-12)
    assert made.values.sum() == pytest.approx(1)
    assert made.covariance == pytest.approx(gradient @ covariance @ gradient.T, rel=1e-9)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bins": (2, 1)}, "rising"),
        ({"bins": (1, float("nan"))}, "bins"),
        ({"bins": (1,), "codes": {"1": "a"}}, "one of them"),
        ({"missing_codes": ("9", 9)}, "distinct"),
        ({"missing_codes": (None,)}, "missing_codes"),
        ({"missing_answers": "ignore"}, "missing_answers"),
        ({"codes": {"1": "c"}}, "codes"),
        ({"bins": (1, 2)}, "one fewer"),
        ({"missing_answers": "category"}, "missing_answers"),
    ],
)
def test_invalid_readings_are_refused(fields: dict[str, object], message: str) -> None:
    """Each is refused with the field's name."""
    with pytest.raises(InvalidInput, match=message):
        QuestionSpec("q", ("a", "b"), reading=Reading(**fields))


def test_the_plan_keeps_its_reading_and_plain_plans_their_checksum() -> None:
    """A plan with a reading or a dialect is of version 3 and comes back; one without is of version 2, as before."""
    reading = Reading(bins=(1.5,), missing_codes=("-9",), missing_answers="left out")
    plan = survey(QuestionSpec("q", ("low", "high"), reading=reading), Dialect("\t", "cp1252", ","))
    again = Plan.from_json(plan.to_json())
    assert again.checksum == plan.checksum
    assert (again.questions[0].reading, again.file) == (reading, plan.file)
    plain = survey(QuestionSpec("q", ("low", "high")))
    assert '"version": 2' in plain.to_json()
    assert "reading" not in plain.to_json()
    assert '"version": 3' in plan.to_json()


def test_missing_as_an_answer_is_as_before() -> None:
    """`missing` alone counts a missing answer as that category, and the plan says so in words."""
    asked = QuestionSpec("q", ("a", "b"), missing="b")
    assert asked.reading.missing_answers == "counted"
    assert read(survey(asked), ["a", None]) == ["a", "b"]


def test_a_file_in_another_writing_is_privatized(tmp_path: Path) -> None:
    """Semicolons, Latin-1, decimal commas and CRLF: the reports are those of the same answers in plain CSV."""
    reading = Reading(bins=(1.7,), missing_codes=("k.A.",), missing_answers="left out")
    question = QuestionSpec("q", ("kurz", "lang"), column="Größe", reading=reading)
    plan = survey(question, Dialect(";", "latin-1", ","))
    text = "Name;Größe\r\nJürgen;1,69\r\nZoë;1,70\r\nRené;k.A.\r\nÅsa;2\r\n"
    (tmp_path / "a.csv").write_bytes(text.encode("latin-1"))
    privatize(plan, tmp_path / "a.csv", tmp_path / "r.csv", Simulated(np.random.default_rng(1)))
    assert aggregate(plan, tmp_path / "r.csv")["q"].tolist() == [1, 2]


@pytest.mark.parametrize("category", ["b", "none"])
def test_a_declared_refusal_of_missing_answers_wins(category: str) -> None:
    """`missing_answers = "refuse"` beside a category for them is a contradiction, and it is refused, also in a file."""
    with pytest.raises(InvalidInput, match="missing_answers"):
        QuestionSpec("q", ("a", "b", "none"), missing=category, reading=Reading(missing_answers="refuse"))
    asked = f'name = "q"\ncategories = ["a", "b", "none"]\nmissing = "{category}"\n'
    content = f'[survey]\nname = "s"\n[budget]\nepsilon = 1.0\n[[questions]]\n{asked}'
    assert SurveySpec.from_toml(content).questions[0].reading.missing_answers == "counted"
    with pytest.raises(InvalidInput, match="missing_answers"):
        SurveySpec.from_toml(f'{content}missing_answers = "refuse"\n')
    assert QuestionSpec("q", ("a", "b")).reading.missing_answers == "refuse"


WORDED = """
[survey]
name = "habits"
[[questions]]
name = "drug"
categories = ["no", "yes"]
epsilon = 1.0
[[questions]]
name = "news"
type = "any of"
options = ["paper", "radio"]
epsilon = 1.0
[[public]]
name = "region"
answers = ["north", "south"]
[wording]
news = "Where do you get your news from?"
region = "Where do you live?"
"""


def test_the_words_in_which_questions_are_asked_come_with_the_plan():
    """They are in the plan's file, and in its checksum; a plan without them has the checksum that it had before."""
    spec = SurveySpec.from_toml(WORDED)
    plan = plan_survey(spec).plan
    assert plan.titles == {
        "drug": "drug",
        "news": "Where do you get your news from?",
        "region": "Where do you live?",
    }
    again = Plan.from_json(plan.to_json())
    assert (again.wording, again.checksum) == (plan.wording, plan.checksum)
    plain = replace(plan, wording=())
    assert plain.checksum != plan.checksum
    assert "wording" not in plain.to_json()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('other = "What?"', "wording: expected names of questions"),
        ("drug = 3", "wording: expected a table from questions to printable texts"),
        ('drug = ""', "wording: expected a table from questions to printable texts"),
        ('drug = "a\\u001bb"', "wording: expected a table from questions to printable texts"),
        (f'drug = "{"w" * 501}"', "texts of 1 to 500 characters"),
        ('"news: paper" = "What?"', "wording: expected names of questions"),
    ],
)
def test_wording_is_of_questions_and_printable(said, expected):
    """Anything else is refused, with what is expected."""
    with pytest.raises(InvalidInput, match=expected):
        SurveySpec.from_toml(WORDED + said)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *(("", key) for key in ("answers", "categories", "options")),
        *(('type = "any of"\n', key) for key in ("answers", "options")),
    ],
)
def test_answers_has_aliases_in_files(kind: str, key: str) -> None:
    question = SurveySpec.from_toml(
        f'[survey]\nname = "s"\n[[questions]]\nname = "a"\n{kind}{key} = ["cash", "card"]\n'
    ).questions[0]
    assert (question.options if isinstance(question, AnyOfSpec) else question.categories) == ("cash", "card")


@pytest.mark.parametrize("key", ["answers", "categories", "options"])
def test_answers_of_public_questions_have_the_same_aliases(key: str) -> None:
    content = (
        f'[survey]\nname = "s"\n[[questions]]\nname = "a"\nanswers = [1, 2]\n[[public]]\nname = "b"\n{key} = [3, 4]\n'
    )
    assert SurveySpec.from_toml(content).public[0].answers == (3, 4)


def test_two_keys_for_the_answers_are_refused() -> None:
    content = '[survey]\nname = "s"\n[[questions]]\nname = "a"\nanswers = [1, 2]\ncategories = [1, 2]\n'
    with pytest.raises(InvalidInput, match="'answers' cannot be combined with 'categories'; keep 'answers'"):
        SurveySpec.from_toml(content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[survey]\nname = 's'\nepsilon = 1.0\n", r"\[survey\]: .*, got 'epsilon', a key of \[budget\]$"),
        ("epsilon = 1.0\n[survey]\nname = 's'\n", r": .*, got 'epsilon', a key of \[budget\]$"),
        ("[survey]\nname = 's'\n[budget]\nepsilon = 1.0\nround = 2\n", r"got 'round', a key of \[survey\]$"),
        ("[survey]\nname = 's'\nepsilom = 1.0\n", r"got 'epsilom'$"),
    ],
)
def test_a_key_in_the_wrong_table_is_refused_with_its_table(text: str, message: str) -> None:
    """A key that another table has is refused with that table's name."""
    with pytest.raises(InvalidInput, match=message):
        SurveySpec.from_toml(f"{text}[[questions]]\nname = 'q'\nanswers = ['a', 'b']\n".encode())
