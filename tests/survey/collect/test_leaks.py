"""What would tell answers beside the reports is found by kind, in a message without a value; chance is not a leak."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import ProposalOptions, Reading, SurveySpec, plan_survey, propose
from ldpopt_survey.collect.answers import partitions
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.leaks import add_routes, discloses, find_leaks, find_routes, refuse_leaks, sample_rows
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Fresh, Simulated
from ldpopt_survey.datafiles.columns import profile
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import ORDER, PERSON, QuestionSpec
from ldpopt_survey.reports.promises import consent_paragraph, question_in_words

N = 800
LEFT_OUT = Reading(missing_answers="left out")
DRUG = QuestionSpec("drug", ("no", "yes"))
TYPE = QuestionSpec("type", ("grass", "coke"), reading=LEFT_OUT)


@pytest.fixture(scope="module")
def file() -> dict[str, Any]:
    """Independent answers of 800 people, a fifth of whom take drugs; the type is asked of these alone."""
    rng = np.random.default_rng(7)
    drug = np.where(rng.random(N) < 0.2, "yes", "no")
    kind = rng.choice(["grass", "coke"], N)
    return {
        "drug": drug,
        "type": [one if took else None for one, took in zip(kind, drug == "yes", strict=True)],
        "region": rng.choice(list("NESW"), N),
        "age": rng.integers(18, 90, N),
        "weight": np.round(rng.lognormal(0, 0.5, N), 1),
    }


def survey(*questions: QuestionSpec, **said: Any) -> SurveySpec:
    return SurveySpec("s", questions or (DRUG,), **said)


def leaks(survey: SurveySpec, file: dict[str, Any], **changed: Any) -> set[tuple[str, tuple[str, ...]]]:
    return {(leak.subject, leak.sources) for leak in find_leaks(survey, pa.table({**file, **changed}))}


def test_blanks_that_follow_an_answer(file: dict[str, Any]) -> None:
    """Where a question is left empty after "no", empty reports tell "no" [attacks F1]; random blanks tell nothing."""
    assert leaks(survey(DRUG, TYPE), file) == {("drug", ("type",))}
    rng = np.random.default_rng(0)
    blank = np.where(rng.random(N) < 0.5, None, "grass").tolist()
    assert leaks(survey(DRUG, TYPE), file, type=blank) == set()
    hidden = QuestionSpec(
        "type", ("grass", "coke", "none"), missing="none", reading=Reading(missing_answers="category")
    )
    assert leaks(survey(DRUG, hidden), file) == set()


def test_blanks_that_rule_an_answer_out(file: dict[str, Any]) -> None:
    """Three answers, one of which nobody gave who was asked further: the full report rules it out."""
    rng = np.random.default_rng(1)
    often = rng.choice(["never", "rarely", "often"], N)
    kind = [None if one == "never" or rng.random() < 0.3 else "grass" for one in often]
    asked = survey(QuestionSpec("often", ("never", "rarely", "often")), TYPE)
    assert ("often", ("type",)) in leaks(asked, file, often=often, type=kind)


def test_blanks_of_two_questions_together(file: dict[str, Any]) -> None:
    """Neither pattern tells the answer, and both together do: it is "yes" where exactly one of them is empty."""
    one, rng = np.array(file["drug"]) == "yes", np.random.default_rng(2)
    first = rng.random(N) < 0.5
    blanks = {"a": first, "b": first ^ one}
    changed = {name: np.where(blank, None, "grass").tolist() for name, blank in blanks.items()}
    asked = survey(DRUG, *(QuestionSpec(name, ("grass", "coke"), reading=LEFT_OUT) for name in "ab"))
    assert leaks(asked, file, **changed) == {("drug", ("a", "b"))}


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_carried_copy_of_an_answer(file: dict[str, Any], noise: float) -> None:
    """A carried column under another name that is the answer, or nearly, tells it [attacks F2]; so do two together."""
    rng = np.random.default_rng(3)
    copy = np.where((np.array(file["drug"]) == "yes") ^ (rng.random(N) < noise), "j", "n")
    assert leaks(survey(carry=("copy", "region")), file, copy=copy) == {("drug", ("copy",))}
    coin = rng.random(N) < 0.5
    both = {"a": coin.astype(int), "b": coin ^ (copy == "j")}
    assert leaks(survey(carry=("a", "b")), file, **both) == {("drug", ("a", "b"))}


def test_one_value_that_settles_an_answer(file: dict[str, Any]) -> None:
    """Only a twentieth of the people have the value, but all of them gave one answer."""
    drug = np.array(file["drug"])
    flag = np.where((drug == "yes") & (np.arange(N) % 4 == 0), "x", "-")
    assert leaks(survey(carry=("flag",)), file, flag=flag) == {("drug", ("flag",))}


def test_weights_that_differ_by_answer(file: dict[str, Any]) -> None:
    """Each weight is nearly unique, so no value tells an answer, but their order does."""
    weight = np.where(np.array(file["drug"]) == "yes", 2.0, 1.0) + np.random.default_rng(4).random(N)
    assert leaks(survey(carry=("weight",)), file, weight=weight) == {("drug", ("weight",)), (PERSON, ("weight",))}
    assert leaks(survey(carry=("weight",)), file) == set()  # rounded, and drawn without the answers


def test_ids_that_sort_by_answer(file: dict[str, Any]) -> None:
    """Numbers below 1000 for one answer and above for the other; shuffled numbers tell nothing."""
    rng = np.random.default_rng(5)
    own = rng.permutation(N)
    ids = own + np.where(np.array(file["drug"]) == "yes", 1000, 0)
    assert leaks(survey(respondent="id"), file, id=ids) == {("drug", ("id",))}
    assert leaks(survey(respondent="id"), file, id=[f"p{one}" for one in own]) == set()


def test_rows_in_the_order_of_an_answer(file: dict[str, Any]) -> None:
    """Reports stand in the order of the rows: a sorted file, or a long run in it, tells the answers."""
    drug = np.sort(np.array(file["drug"]))
    assert leaks(survey(), file, drug=drug) == {("drug", (ORDER,))}
    mixed = np.random.default_rng(6).choice(["no", "yes"], N)
    mixed[200:360] = "yes"
    assert leaks(survey(), file, drug=mixed) == {("drug", (ORDER,))}


def test_columns_that_single_people_out(file: dict[str, Any]) -> None:
    """A number that nobody shares, or several columns that nobody shares together."""
    assert leaks(survey(carry=("id",)), file, id=np.random.default_rng(8).permutation(N)) == {(PERSON, ("id",))}
    day = np.random.default_rng(9).integers(0, 300, N)
    assert leaks(survey(carry=("age", "day")), file, day=day) == {(PERSON, ("age", "day"))}
    assert leaks(survey(carry=("age", "region")), file) == set()


def test_chance_is_no_leak() -> None:
    """In 200 files of independent columns of many shapes nothing is found: each judgement errs once in a million."""
    rng = np.random.default_rng(10)
    for _ in range(200):
        n, k, groups = int(rng.integers(2, 400)), int(rng.integers(2, 9)), int(rng.integers(2, 40))
        shares = rng.dirichlet(np.full(k, 0.5))
        assert not discloses(rng.integers(0, groups, n), rng.choice(k, n, p=shares), excludes=True)


def test_the_probability_by_chance_is_that_of_counting() -> None:
    """Twenty people and two even answers: the chance that ten and ten agree is 2^-20, which alone is below 1e-6."""
    for n in range(2, 40, 2):
        even = np.arange(n) % 2
        assert discloses(even, even) == (2.0**-n <= 1e-6)


def test_message_and_consent_form_name_a_leak_without_values(file: dict[str, Any], tmp_path: Path) -> None:
    """Refused in frames and files, accepted by name, told to respondents; the message holds names alone."""
    spec = survey(carry=("copy",))
    raw = {name: file[name] for name in ("drug", "region")} | {
        "copy": np.where(np.array(file["drug"]) == "yes", "CAN", "ARY")
    }
    plan = make_plan(spec, {"drug": [[0.75, 0.25], [0.25, 0.75]]})
    with pytest.raises(InvalidInput, match=r'revealed = \{ "drug" = \["copy"\] \}') as refusal:
        privatize_frame(plan, pa.table(raw), Fresh())
    rows = zip(*raw.values(), strict=True)
    (tmp_path / "a.csv").write_text("\n".join(",".join(row) for row in [tuple(raw), *rows]) + "\n")
    with pytest.raises(InvalidInput, match="--accept drug=copy") as again:
        privatize(plan, tmp_path / "a.csv", tmp_path / "r.csv")
    for said in (str(refusal.value), str(again.value)):
        assert not any(word in said for word in ("CAN", "ARY", "yes", "800", "0."))
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert privatize_frame(plan, pa.table(raw), Simulated(np.random.default_rng(0)))[1].rows == N  # protects nobody
    accepted = make_plan(survey(carry=("copy",), revealed={"drug": ["copy"]}), {"drug": [[0.75, 0.25], [0.25, 0.75]]})
    assert privatize_frame(accepted, pa.table(raw), Fresh())[1].rows == N
    assert Plan.from_json(accepted.to_json()).revealed == (("drug", ("copy",)),)
    assert accepted.protected_claims() == (0.0, 0.0)
    (line,) = question_in_words(accepted, "drug")
    assert (
        line == "NOT PROTECTED: your answer to 'drug'. It can be inferred, exactly or almost exactly, from "
        "'copy' (published as it is)."
    )
    assert line in consent_paragraph(accepted)
    assert "as likely" not in consent_paragraph(accepted)
    with pytest.raises(InvalidInput, match="revealed"):
        survey(revealed={"drug": ["nothing"]})


def test_the_joint_guarantee_leaves_out_unprotected_questions() -> None:
    """The promise leaves out the unprotected question, and holds between answers with the same empty reports."""
    tables = {"drug": [[0.75, 0.25], [0.25, 0.75]], "type": [[0.9, 0.1], [0.1, 0.9]]}
    plan = make_plan(survey(DRUG, TYPE, carry=("c",), revealed={"drug": ["c", "type"]}), tables)
    assert (plan.questions_with_empty_reports, set(plan.unprotected)) == (("type",), {"drug"})
    assert plan.protected_claims()[0] == pytest.approx(np.log(9), rel=1e-9)
    assert plan.epsilon == pytest.approx(np.log(9) + np.log(3), rel=1e-9)
    said = consent_paragraph(plan)
    assert "as long as both leave the same questions out of 'type' empty" in said
    assert "No limit holds for whether you answer" in said
    assert "from 'c' (published as it is) and which answers to 'type' are empty." in said


@pytest.mark.full
def test_routes_are_proposed(file: dict[str, Any], tmp_path: Path) -> None:
    """A question that one answer leads to becomes `asked_if`, after that question, and then nothing leaks."""
    columns = {name: ["" if one is None else one for one in file[name]] for name in ("type", "drug", "region")}
    rows = zip(*columns.values(), strict=True)
    path = tmp_path / "a.csv"
    path.write_text("\n".join(",".join(row) for row in [tuple(columns), *rows]) + "\n")
    table = sample_rows(partitions([path]), list(columns))
    made = add_routes(propose(profile(path), ProposalOptions(missing_answers="left out")), table)
    assert made.names == ["drug", "type", "region"]
    assert made.questions[1].spec.asked_if == (("drug", ("yes",)),)
    spec = SurveySpec("s", tuple(one.spec for one in made.questions), epsilon=4.0, design="split")
    refuse_leaks(find_leaks(spec, table), spec.revealed)
    plan = plan_survey(spec).plan
    assert privatize(plan, path, tmp_path / "r.csv").rows == N
    assert find_routes([one.spec for one in made.questions][2:], table) == {}
    blank = np.where(np.random.default_rng(0).random(N) < 0.5, None, "grass").tolist()
    assert find_routes([DRUG, TYPE], pa.table({"drug": file["drug"], "type": blank})) == {}


def test_stretches_of_a_long_file_are_searched(tmp_path: Path) -> None:
    """At most so many rows are read, in stretches from the beginning to the end."""
    for number in range(20):
        (tmp_path / f"{number:02}.csv").write_text("a\n" + f"{number}\n" * 100)
    parts = partitions(sorted(tmp_path.glob("*.csv")))
    found = sample_rows(parts, ["a"], 400)["a"].to_pylist()
    assert len(found) == 400
    assert (found[0], found[-1], len(set(found))) == ("0", "19", 8)
    assert sample_rows(parts, ["a"]).num_rows == 2000
