"""Letters typed from paper: what is wrong is refused with its row, and what is right goes on to the estimates."""

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.values.distribution import simulate
from ldpopt_survey import (
    Analysis,
    QuestionSpec,
    Reading,
    Survey,
    SurveySpec,
    aggregate,
    enter_reports,
    paper_survey,
    plan_survey,
)
from ldpopt_survey.paper.design import TWO_DICE
from ldpopt_survey.plan.public_question import PublicQuestion
from ldpopt_survey.reports.survey import survey_report


@pytest.fixture(scope="module")
def plan():
    questions = (QuestionSpec("smokes", ("no", "yes"), epsilon=1.0), QuestionSpec("drinks", ("no", "yes"), epsilon=1.0))
    return paper_survey(plan_survey(SurveySpec("habits", questions, carry=("region",))).plan, TWO_DICE).plan


def letters(plan, name):
    return plan.question(name).reports


def write(folder, plan, lines, header="sheet,smokes,drinks,region"):
    path = folder / "codes.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8-sig")
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_letters_are_counted_and_estimated(plan, tmp_path, suffix):
    """1,000 people roll dice (numpy's): the shares come out within their intervals, with a manifest beside them."""
    rng = np.random.default_rng(7)
    truth = {"smokes": 0.3, "drinks": 0.6}
    lines = {}
    for name, share in truth.items():
        channel = plan.question(name).channel
        answers = (rng.random(1000) < share).astype(int)
        drawn = simulate(channel.matrix, answers, rng)
        lines[name] = [channel.outputs[y] for y in drawn]
    rows = [f"{i},{a.lower()}, {b} ,east" for i, (a, b) in enumerate(zip(*lines.values(), strict=True))]
    codes = write(tmp_path, plan, rows)
    out = tmp_path / f"reports.{suffix}"
    assert enter_reports(plan, codes, out).rows == 1000
    counts = aggregate(plan, out)
    assert not counts.unlabelled
    assert counts["smokes"].sum() == 1000
    estimates = Survey(plan).estimates(counts)
    for name, share in truth.items():
        low, high = estimates[name].intervals().lower[1], estimates[name].intervals().upper[1]
        assert low <= share <= high
    assert "habits" in survey_report(plan, estimates, counts, pictures=False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2,{s[0]},QQ,east", "row 2, column 'drinks'"),
        ("2,{d[0]},{d[0]},east", "a code of the question 'drinks' at row 2, column 'smokes'"),
        ("2,,{d[0]},east", "no code at row 2, column 'smokes'"),
        (",{s[0]},{d[0]},east", "has no sheet number"),
        ("1,{s[0]},{d[0]},east", "that of row 1 again at row 2"),
        ("2,{s[0]},{d[0]}", "4 cells in every row, got 3 at row 2"),
    ],
)
def test_an_error_is_one_line_with_its_row(plan, tmp_path, line, said):
    s, d = letters(plan, "smokes"), letters(plan, "drinks")
    codes = write(tmp_path, plan, [f"1,{s[0]},{d[0]},east", line.format(s=s, d=d)])
    with pytest.raises(InvalidInput) as error:
        enter_reports(plan, codes, tmp_path / "reports.csv")
    message = str(error.value)
    assert said in message
    assert "\n" not in message
    assert not (tmp_path / "reports.csv").exists()


def test_no_message_shows_a_typed_entry(plan, tmp_path):
    """Somebody may type the answer itself."""
    codes = write(tmp_path, plan, [f"1,canary-yes,{letters(plan, 'drinks')[0]},east"])
    with pytest.raises(InvalidInput) as error:
        enter_reports(plan, codes, tmp_path / "reports.csv")
    assert "canary" not in str(error.value)


@pytest.mark.parametrize("header", ["sheet,smokes,drinks", "sheet,smokes,drinks,region,name", "smokes,drinks,region,x"])
def test_other_columns_are_refused(plan, tmp_path, header):
    codes = write(tmp_path, plan, ["1,A,C,east"], header)
    with pytest.raises(InvalidInput, match="codes: expected the columns sheet, smokes, drinks, region"):
        enter_reports(plan, codes, tmp_path / "reports.csv")


def test_incomplete_rows_are_left_out_only_when_asked(plan, tmp_path):
    s, d = letters(plan, "smokes"), letters(plan, "drinks")
    codes = write(tmp_path, plan, [f"1,{s[0]},,east", f"2,{s[1]},{d[0]},west", ""])
    with pytest.raises(InvalidInput, match="no code"):
        enter_reports(plan, codes, tmp_path / "r.csv")
    found = enter_reports(plan, codes, tmp_path / "r.csv", leave_out_incomplete=True)
    assert (found.rows, found.left_out) == (1, 1)


def test_the_same_sheets_are_not_counted_twice_and_not_under_another_plan(plan, tmp_path):
    s, d = letters(plan, "smokes"), letters(plan, "drinks")
    codes = write(tmp_path, plan, [f"1,{s[0]},{d[0]},east"])
    for name in ("a.csv", "b.csv"):
        enter_reports(plan, codes, tmp_path / name)
    with pytest.raises(InvalidInput, match="again"):
        aggregate(plan, [tmp_path / "a.csv", tmp_path / "b.csv"])
    other = paper_survey(
        plan_survey(SurveySpec("other", (QuestionSpec("smokes", ("no", "yes"), epsilon=1.0),))).plan, TWO_DICE
    )
    with pytest.raises(InvalidInput, match="those of another plan"):
        aggregate(other.plan, tmp_path / "a.csv")
    with pytest.raises(InvalidInput, match="not taken"):
        enter_reports(plan, codes, tmp_path / "a.csv")


def test_an_empty_box_is_a_missing_answer_where_the_plan_leaves_these_out(tmp_path):
    """Left out, its report is empty and the estimate is among those who answered; else the row is refused."""
    questions = (
        QuestionSpec("a", ("no", "yes"), epsilon=1.0, reading=Reading(missing_answers="left out")),
        QuestionSpec("b", ("no", "yes"), epsilon=1.0),
    )
    plan = paper_survey(plan_survey(SurveySpec("demo", questions)).plan, TWO_DICE).plan
    a, b = letters(plan, "a"), letters(plan, "b")
    rows = [f"{i},{'' if i % 3 == 0 else a[i % 2]},{b[i % 2]}" for i in range(60)]
    out = tmp_path / "reports.csv"
    assert enter_reports(plan, write(tmp_path, plan, rows, "sheet,a,b"), out).rows == 60
    counts = aggregate(plan, out)
    assert (counts["a"].sum(), counts["b"].sum()) == (40, 60)
    assert Survey(plan).estimates(counts)["a"].n == 40
    with pytest.raises(InvalidInput, match="no code at row 2, column 'b'"):
        enter_reports(plan, write(tmp_path, plan, [f"0,{a[0]},{b[0]}", f"1,{a[0]},"], "sheet,a,b"), tmp_path / "o.csv")


@pytest.fixture(scope="module")
def street_plan():
    """A plan with one question and a carried column, whose name is not in ASCII."""
    spec = SurveySpec("demo", (QuestionSpec("geraucht", ("nein", "ja"), epsilon=1.0),), carry=("Straße",))
    return paper_survey(plan_survey(spec).plan, TWO_DICE).plan


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_codes_are_read_as_spreadsheets_write_them(street_plan, tmp_path, delimiter, encoding):
    """Whatever stands between the cells, and in either encoding, the same reports come out."""
    plan = street_plan
    one, other = letters(plan, "geraucht")[:2]
    rows = [("sheet", "geraucht", "Straße"), ("1", one, "Höhe"), ("2", other, "Süd, links"), ("3", one, "Nord")]
    quoted = [[f'"{cell}"' if delimiter in cell else cell for cell in row] for row in rows]
    path = tmp_path / "codes.csv"
    path.write_bytes("\r\n".join(delimiter.join(row) for row in quoted).encode(encoding))
    assert enter_reports(plan, path, tmp_path / "r.csv").rows == 3
    counts = aggregate(plan, tmp_path / "r.csv")["geraucht"]
    assert (counts[plan.question("geraucht").reports.index(one)], counts.sum()) == (2, 3)
    assert "Süd, links" in (tmp_path / "r.csv").read_text("utf-8")


def test_public_answers_are_typed_with_the_letters(tmp_path):
    """Each is one of the plan's, in small letters or capitals; it becomes a column, by which shares are estimated."""
    public = (PublicQuestion("age", ("Young", "Old")),)
    spec = SurveySpec("habits", (QuestionSpec("smokes", ("no", "yes"), epsilon=1.0),), public=public)
    plan = paper_survey(plan_survey(spec).plan, TWO_DICE).plan
    lines = [f"{at},{'AB'[at % 2]},{('young', 'OLD', 'Old')[at % 3]}" for at in range(90)]
    enter_reports(plan, write(tmp_path, plan, lines, "sheet,smokes,age"), tmp_path / "reports.csv")
    found, _ = Survey(plan).findings(tmp_path / "reports.csv", Analysis(by=("age",)))
    assert {name: one.n for name, one in found["smokes"].groups.items()} == {"Young": 30, "Old": 60}
    for wrong in ("", "middle"):
        with pytest.raises(InvalidInput, match="row 1, column 'age'") as error:
            enter_reports(plan, write(tmp_path, plan, [f"1,A,{wrong}"], "sheet,smokes,age"), tmp_path / "other.csv")
        assert "middle" not in str(error.value)
