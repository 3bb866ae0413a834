"""Questions and groups without reports are named, and the others have their estimates."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpopt import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Analysis,
    Condition,
    Counts,
    Findings,
    QuestionSpec,
    SampleSpec,
    Simulated,
    Survey,
    SurveySpec,
    aggregate,
    estimate,
    make_plan,
    privatize,
    read_rows,
)
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.reports import results, survey_report, verify_delivery
from ldpopt_survey.reports.survey import among_those_who_answered, why_not_among_answered
from ldpopt_survey.sample.analysis import NO_REPORT, NO_WEIGHT, questions_without_reports

FLIP = [[0.9, 0.1], [0.1, 0.9]]
THREE = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
SPEC = SurveySpec(
    "demo",
    tuple(QuestionSpec(name, ("no", "yes"), reading=Reading(missing_answers="left out")) for name in "abc"),
    carry=("region",),
)
PLAN = make_plan(SPEC, dict.fromkeys("abc", FLIP))
CATEGORY = QuestionSpec("v", ("no", "yes", "none"), missing="none", reading=Reading(missing_answers="category"))
N = 300
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everybody answers a, nobody of the east or west answers b, and nobody answers c."""
    path, rng = tmp_path_factory.mktemp("without"), np.random.default_rng(5)
    region = rng.choice(["east", "north", "south", "west"], N)
    a, b = rng.choice(["no", "yes"], (2, N))
    b[(region == "east") | (region == "west")] = ""
    lines = [",".join(row) for row in zip(region, a, b, [""] * N, strict=True)]
    (path / "answers.csv").write_text("region,a,b,c\n" + "\n".join(lines) + "\n")
    (path / "plan.json").write_text(PLAN.to_json())
    privatize(PLAN, path / "answers.csv", path / "reports.csv", Simulated(rng))
    privatize(PLAN, path / "answers.csv", path / "reports-2.csv", Simulated(rng))
    (path / "answers.csv").unlink()
    return path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command `ldpopt survey NAME plan.json reports.csv ...` in the folder; gives its standard output."""
    from typer.testing import CliRunner

    from ldpopt.cli import app

    monkeypatch.chdir(folder)

    def command(name: str, *arguments: str) -> str:
        made = CliRunner().invoke(app, ["survey", name, "plan.json", "reports.csv", *arguments])
        assert made.exit_code == 0, made.output
        return made.stdout

    return command


def found_by(folder: Path, by: Sequence[str] = ("region",), **settings: Any) -> dict[str, Findings]:
    rows = read_rows(PLAN, folder / "reports.csv", ["region"])
    return Analysis(by=tuple(by), **settings).estimates(PLAN, rows)


def test_groups_without_a_report_are_named_with_the_reason(folder: Path) -> None:
    found = found_by(folder)
    assert found["b"].groups_left_out == {"east": NO_REPORT, "west": NO_REPORT}
    assert set(found["b"].groups) == {"north", "south"}
    assert not found["a"].groups_left_out
    north = found_by(folder, where=(Condition.parse("region != east"),))
    assert north["b"].groups_left_out == {"west": NO_REPORT}  # a group outside the analysis is none of its groups


def test_a_group_without_a_weight_is_named(folder: Path) -> None:
    rows = read_rows(PLAN, folder / "reports.csv", ["region"])
    weights = np.where(rows.columns["region"] == "south", 0.0, 1.5).astype(object)
    weighted = replace(rows, columns={**rows.columns, "w": weights})
    found = Analysis(SampleSpec(weights="w"), by=("region",)).estimates(PLAN, weighted)
    assert found["a"].groups_left_out == {"south": NO_WEIGHT}
    assert found["b"].groups_left_out == {"east": NO_REPORT, "west": NO_REPORT, "south": NO_WEIGHT}
    conditions = (Condition.parse("region != south"),)
    others = Analysis(SampleSpec(weights="w"), ("region",), conditions).estimates(PLAN, weighted)
    assert not others["a"].groups_left_out


def test_a_question_without_reports_does_not_stop_the_others(folder: Path) -> None:
    found = found_by(folder, by=())
    assert questions_without_reports(PLAN, found) == ("c",)
    counts = aggregate(PLAN, folder / "reports.csv")
    for other in (Survey(PLAN).estimates(counts), Survey(PLAN).findings(counts)[0]):
        assert set(other) == {"a", "b"}
    assert np.array_equal(Survey(PLAN).estimates(counts)["b"].values, found["b"].whole.values)


def test_no_report_of_any_question_is_refused(folder: Path) -> None:
    rows = read_rows(PLAN, folder / "reports.csv", ["region"])
    empty = replace(rows, reports={name: np.full(N, -1) for name in rows.reports})
    with pytest.raises(InvalidInput, match="reports of a, b, c: all of them are empty"):
        Analysis().estimates(PLAN, empty)
    zeros = Counts(PLAN.checksum, 0, {(name,): np.zeros(2, dtype=int) for name in "abc"})
    with pytest.raises(InvalidInput, match="question 'a': expected a report of at least one respondent"):
        Survey(PLAN).estimates(zeros)
    with pytest.raises(InvalidInput, match="question 'c': expected a report"):
        Survey(PLAN).estimate("c", folder / "reports.csv")  # asked for alone


def test_a_group_in_which_nobody_is_estimated_to_have_answered_is_named() -> None:
    """Its share of answers is estimated below 0, so that no shares among them exist."""
    spec = SurveySpec("demo", (CATEGORY,), carry=("g",))
    plan = make_plan(spec, {"v": THREE})
    channel = Channel(THREE, plan.question("v").categories, plan.question("v").reports)
    whole, group = estimate([60, 60, 30], channel), estimate([0, 0, 9], channel)
    among = among_those_who_answered(plan, {"v": Findings(whole, {"x": whole, "y": group}, {"z": NO_REPORT})})["v"]
    assert set(among.groups) == {"x"}
    assert among.groups_left_out["z"] == NO_REPORT
    assert "expected an estimated share below that is positive" in among.groups_left_out["y"]
    # A page whose question has no estimate among those who answered is made all the same, and says so.
    page = survey_report(plan, {"v": group}, pictures=False)
    assert "v: no estimate (among those who answered: expected an estimated share" in page
    assert among_those_who_answered(plan, {"v": group}) == {}


def test_an_analysis_of_those_who_answered_names_its_groups_without_answers(folder: Path) -> None:
    spec = SurveySpec("demo", (CATEGORY,), carry=("region",))
    plan = make_plan(spec, {"v": THREE})
    rows = read_rows(PLAN, folder / "reports.csv", ["region"])
    reports = np.where(rows.columns["region"] == "east", 2, np.arange(N) % 2)
    own = replace(rows, counts=Counts(plan.checksum, N, {}), reports={"v": reports})
    analysis = Analysis(by=("region",), answered=True)
    found = analysis.estimates(plan, own)["v"]
    assert why_not_among_answered(plan, "v", found.whole) == ""  # it is among them already
    assert "no estimate for region east" in survey_report(plan, {"v": found}, pictures=False, analysis=analysis)
    assert set(found.groups) == {"north", "south", "west"}
    assert "among those who answered" in found.groups_left_out["east"]


def test_text_names_them(run: Run) -> None:
    said = run("estimate", "--by", "region")
    assert "c: no estimate (no report of the question).\n" in said
    assert "b: no estimate for region east, west (no report of the question).\n" in said
    assert "a: no estimate" not in said
    assert "c: no estimate (no report of the question).\n" in run("estimate")
    assert "0 reports" in run("estimate", "--anytime")  # the progress of c


@pytest.mark.parametrize("form", ["text", "md", "html", "json"])
def test_tables_name_them_in_their_notes(run: Run, form: str) -> None:
    said = run("estimate", "--by", "region", "--format", form)
    assert "c: no estimate (no report of the question)." in said
    assert "b: no estimate for region east, west (no report of the question)." in said


def test_csv_has_a_row_without_numbers_for_each(run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(run("estimate", "--by", "region", "--format", "csv"))))
    bare = {(row["question"], row["group"]) for row in rows if not row["answer"]}
    assert bare == {("b", "east"), ("b", "west"), ("c", "everybody")}
    assert all(row["share"] == row["respondents"] == "" for row in rows if not row["answer"])
    assert all(row["share"] and row["respondents"] for row in rows if row["answer"])


@pytest.mark.full
def test_data_and_page_name_them_and_are_verified(run: Run, folder: Path) -> None:
    data = json.loads(text := run("estimate", "--by", "region", "--json"))
    assert set(data) == {"a", "b"}
    assert data["a"]["questions_without_reports"] == ["c"]
    assert data["b"]["groups_left_out"] == {"east": NO_REPORT, "west": NO_REPORT}
    assert "groups_left_out" not in data["a"]
    run("report", "--by", "region")
    page = (folder / "report.html").read_text()
    assert "<p>c: no estimate (no report of the question).</p>" in page
    assert "<p>b: no estimate for region east, west (no report of the question).</p>" in page
    (folder / "estimates.json").write_text(text)
    assert verify_delivery(folder)
    data["a"]["questions_without_reports"] = []
    (folder / "estimates.json").write_text(json.dumps(data))
    assert {one.name for one in verify_delivery(folder).failures} == {"estimates.json"}
    for name in ("report.html", "estimates.json"):
        (folder / name).unlink()


def test_without_gaps_nothing_is_added(folder: Path) -> None:
    counts = aggregate(PLAN, folder / "reports.csv")
    made = Survey(PLAN).estimates(counts)
    assert "questions_without_reports" not in results({"a": made["a"]}, counts)["a"]
    assert "no estimate" not in survey_report(PLAN, {**made, "c": made["a"]}, pictures=False)


def test_a_page_is_not_made_without_an_estimate_that_the_reports_give(folder: Path) -> None:
    counts = aggregate(PLAN, folder / "reports.csv")
    made = Survey(PLAN).estimates(counts)
    with pytest.raises(InvalidInput, match="the question 'b' has reports, and no estimate"):
        survey_report(PLAN, {"a": made["a"]}, counts, pictures=False)


def waves(before: dict[str, list[int]], after: dict[str, list[int]]) -> tuple[Survey, Counts, Survey, Counts]:
    """Two surveys with their counts, the later one first."""
    plans = [make_plan(replace(SPEC, round=number), dict.fromkeys("abc", FLIP)) for number in (2, 1)]
    tables = [{(name,): np.array(row) for name, row in counts.items()} for counts in (after, before)]
    made = [(Survey(p), Counts(p.checksum, 100, counts)) for p, counts in zip(plans, tables, strict=True)]
    return (*made[0], *made[1])


def test_a_question_with_reports_in_one_wave_is_estimated_from_this_wave() -> None:
    now, counts, earlier, earlier_counts = waves(
        {"a": [60, 40], "b": [0, 0], "c": [0, 0]}, {"a": [50, 50], "b": [70, 30], "c": [0, 0]}
    )
    both = now.with_wave(counts, earlier, earlier_counts)
    assert set(both) == {"a", "b"}
    assert both["a"].n == 200
    assert both["b"].n == 100
    assert np.allclose(both["b"].values, estimate([70, 30], FLIP).values)
    assert np.allclose(both["b"].covariance, estimate([70, 30], FLIP).covariance)
    swapped = earlier.with_wave(earlier_counts, now, counts)
    assert np.allclose(swapped["b"].values, both["b"].values)


def test_waves_with_other_answers_are_refused() -> None:
    now, counts, _, _ = waves({}, {"a": [50, 50], "b": [0, 0], "c": [0, 0]})
    questions = tuple(replace(question, categories=("yes", "no")) for question in SPEC.questions)
    other = make_plan(replace(SPEC, questions=questions, round=1), dict.fromkeys("abc", FLIP))
    other_counts = Counts(other.checksum, 100, {(name,): np.array([50, 50]) for name in "abc"})
    with pytest.raises(InvalidInput, match="waves: expected 'a' with the same answers"):
        now.with_wave(counts, Survey(other), other_counts)


def test_the_command_says_which_wave_alone_has_reports(folder: Path, tmp_path: Path, run: Run) -> None:
    plan = make_plan(replace(SPEC, round=2), dict.fromkeys("abc", FLIP))
    (tmp_path / "answers.csv").write_text("region,a,b,c\n" + "north,no,,\n" * 50 + "north,yes,,yes\n" * 50)
    (tmp_path / "plan.json").write_text(plan.to_json())
    privatize(plan, tmp_path / "answers.csv", tmp_path / "reports.csv", Simulated(np.random.default_rng(1)))
    wave = ("--wave", str(tmp_path / "plan.json"), str(tmp_path / "reports.csv"))
    for arguments in ((), ("--format", "md")):
        said = run("estimate", *wave, *arguments)
        assert "b: reports of the later wave alone." in said
        assert "c: reports of the earlier wave alone." in said
        assert "a: reports" not in said


def test_groups_and_waves_are_compared_in_the_questions_with_reports(run: Run) -> None:
    """North and south report on a and b; c is named in a note, as between two waves."""
    where = ("--where", "region != east", "--where", "region != west")
    for said in (run("compare", "--by", "region", *where), run("compare", "--wave", "plan.json", "reports-2.csv")):
        assert "c: no estimate (no report of the question)." in said
        assert {"a", "b"} <= {line.split()[0] for line in said.splitlines() if line.strip()}


def test_r_has_the_questions_with_reports(run: Run, tmp_path: Path) -> None:
    run("to-r", "--out", str(tmp_path / "r"))
    script = next((tmp_path / "r").glob("*.R")).read_text()
    assert "a: yes" in script
    assert "c: " not in script
