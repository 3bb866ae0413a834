"""Collected reports count, verify and add up as privatized ones do."""

import itertools
import json
import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from collectors import habits

from ldpopt.errors import InvalidInput
from ldpopt_survey import Analysis, Device, Respondents, Survey, SurveySpec, aggregate, plan_survey
from ldpopt_survey.collect.manifest import manifest_in_schema
from ldpopt_survey.reports import verify_delivery
from ldpopt_survey.server import Submission, database, draw_invitations, export, export_reports
from ldpopt_survey.server.invitations import read_frame
from ldpopt_survey.server.submission import Reader

SIZES = (3, 2, 4)
ROUNDS = itertools.count(1)


@pytest.fixture
def codes(location, plan, monkeypatch):
    """Reports of 500 respondents on two days, stored; read in several batches and files."""
    monkeypatch.setattr(export, "BATCH_ROWS", 64)
    monkeypatch.setattr(export, "FILE_ROWS", 128)
    rng = random.Random(3)
    rows = [[rng.randrange(size) for size in SIZES] for _ in range(500)]
    made = [Submission(rng.randbytes(16), np.array(row, "<u4").tobytes()) for row in rows]
    with database(location, plan, create=True) as store:
        store.write(made[:300], "2026-01-30")
        store.write(made[300:], "2026-01-31")
    return np.array(rows)


def test_a_database_counts_as_its_rows_do(location, plan, codes):
    """Counts from the database are those of the reports one by one, pairs included."""
    counts = aggregate(plan, location, [("smokes", "drinks")])
    assert counts.rows == 500
    assert not counts.simulation
    assert not counts.unlabelled
    for q, question in enumerate(plan.questions):
        assert counts[question.name].tolist() == np.bincount(codes[:, q], minlength=SIZES[q]).tolist()
    pairs = np.zeros((3, 2), int)
    np.add.at(pairs, (codes[:, 0], codes[:, 1]), 1)
    assert counts["smokes", "drinks"].tolist() == pairs.tolist()


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", ["reports.parquet", "reports"])
def test_an_export_is_a_delivery(location, plan, codes, tmp_path, name):
    """File and folder count as the database does, carry its manifest, and pass verification; ids and days stay."""
    (tmp_path / "delivery").mkdir()
    output = tmp_path / "delivery" / name
    assert export_reports(plan, location, output) == 500
    assert aggregate(plan, output) == aggregate(plan, location) or name == "reports"
    assert all((aggregate(plan, output)[q.name] == aggregate(plan, location)[q.name]).all() for q in plan.questions)
    files = sorted(output.glob("*.parquet")) if output.is_dir() else [output]
    assert len(files) == (1 if name.endswith(".parquet") else 4)
    for file in files:
        assert pq.read_schema(file).names == [question.name for question in plan.questions]
        manifest_in_schema(pq.read_schema(file), "").require(plan, "")
    (tmp_path / "delivery" / "plan.json").write_text(plan.to_json())
    found = verify_delivery(tmp_path / "delivery")
    assert found, found
    assert "500 reports" in repr(found)


def test_the_same_reports_are_not_counted_twice(location, plan, codes, tmp_path):
    """A database beside its own export, in one file or in many, or two exports, are the same reports."""
    one, two = tmp_path / "one.parquet", tmp_path / "two"
    export_reports(plan, location, one)
    export_reports(plan, location, two)
    for both in ([location, one], [location, two], [one, two], [location, location]):
        with pytest.raises(InvalidInput, match=r"twice|again"):
            aggregate(plan, both)


def test_an_earlier_export_is_part_of_a_later_one(location, plan, codes, tmp_path):
    """Days that are over are the same in both, so that the two are not added up."""
    export_reports(plan, location, tmp_path / "early.parquet")
    with database(location, plan) as store:
        store.write([Submission(bytes(16), bytes(12))], "2026-02-01")
    export_reports(plan, location, tmp_path / "late.parquet")
    with pytest.raises(InvalidInput, match=r"twice|again"):
        aggregate(plan, [tmp_path / "early.parquet", tmp_path / "late.parquet"])


def test_nothing_is_overwritten(location, plan, codes, tmp_path):
    """A taken path, a folder that is not there and another kind of file are refused, and nothing is left."""
    (tmp_path / "taken.parquet").write_text("mine")
    before = sorted(tmp_path.iterdir())
    for output in ("taken.parquet", "none/reports.parquet", "reports.csv"):
        with pytest.raises(InvalidInput):
            export_reports(plan, location, tmp_path / output)
    assert sorted(tmp_path.iterdir()) == before


def test_another_plan_is_refused(location, plan, codes):
    """Reports are counted under the plan that they were collected under, and no other."""
    with pytest.raises(InvalidInput, match="no reports of the plan"):
        aggregate(habits(plan.round + 5000), location)


def test_damaged_reports_are_refused(tmp_path):
    """A report that the plan does not know is refused, as in a file."""
    plan = habits()
    for name, wrong in (("a.db", bytes(8)), ("b.db", np.array([3, 0, 0], "<u4").tobytes())):
        with database(tmp_path / name, plan, create=True) as store:
            store.write([Submission(bytes(16), wrong)], "2026-01-31")
        with pytest.raises(InvalidInput):
            aggregate(plan, tmp_path / name)


def test_an_empty_round_is_exported(tmp_path):
    """A round without a report is a file and a folder without rows."""
    plan = habits()
    with database(tmp_path / "reports.db", plan, create=True):
        pass
    for name in ("reports.parquet", "reports"):
        assert export_reports(plan, tmp_path / "reports.db", tmp_path / name) == 0
        assert aggregate(plan, tmp_path / name).rows == aggregate(plan, tmp_path / "reports.db").rows == 0


FRAME = """
[survey]
name = "Field"
round = {round}
[budget]
epsilon = 3
[[questions]]
name = "smokes"
categories = ["no", "yes"]
[[public]]
name = "age"
answers = ["young", "old"]
[[public]]
name = "w"
answers = [1, 3]
invited = true
[sample]
weights = "w"
"""


def framed(folder, rows, name="frame.csv"):
    (folder / name).write_text("address,w\n" + "".join(f"house {at},{w}\n" for at, w in enumerate(rows)))
    return folder / name


def test_weights_and_groups_come_out_as_columns(location, tmp_path):
    """1,200 devices with invitations from a frame: exported, shares are weighted and by group as the design says."""
    plan = plan_survey(SurveySpec.from_toml(FRAME.format(round=next(ROUNDS)))).plan
    rng, weights = np.random.default_rng(4), [1, 3] * 600
    _, groups = read_frame(plan, framed(tmp_path, weights))
    with database(location, plan, create=True) as store:
        invitations = draw_invitations(plan, store, len(groups), groups)
        reader, made = Reader(plan), []
        truth = np.where(rng.random(1200) < np.where(np.array(weights) == 1, 0.2, 0.6), "yes", "no")
        ages = rng.choice(["young", "old"], 1200)
        for invitation, smokes, age in zip(invitations, truth, ages, strict=True):
            sent = Device(plan).submission({"smokes": smokes}, invitation, {"age": age})
            made.append(reader.read(json.dumps(sent).encode()))
        assert {one.value for one in store.write(made, "2026-01-30")} == {"stored"}
        lying = Device(plan).submission({"smokes": "no"}, invitations[0][:-1] + "1", {"age": "old"})
        assert store.write([reader.read(json.dumps(lying).encode())], "2026-01-30")[0].value == "uninvited"
    export_reports(plan, location, tmp_path / "reports.parquet")
    table = pq.read_table(tmp_path / "reports.parquet")
    assert table.column_names == ["smokes", "age", "w"]
    assert sorted(table["w"].to_pylist()) == ["1"] * 600 + ["3"] * 600
    assert verify_delivery_of(plan, tmp_path)
    found, _ = Survey(plan).findings(tmp_path / "reports.parquet", Analysis(plan.sample, by=("age",)))
    weighted = float(np.average(truth == "yes", weights=weights))
    assert abs(found["smokes"].whole.values[1] - weighted) < 4 * found["smokes"].whole.standard_errors[1]
    assert set(found["smokes"].groups) == {"young", "old"}
    people = Respondents.read(plan, tmp_path / "reports.parquet", Analysis(plan.sample), ["age"])
    assert people.logit("smokes ~ age").coefficients.shape == (1, 2)


def verify_delivery_of(plan, folder):
    own = folder / "delivery"
    own.mkdir()
    (own / "plan.json").write_text(plan.to_json())
    (folder / "reports.parquet").rename(own / "reports.parquet")
    held = verify_delivery(own)
    (own / "reports.parquet").rename(folder / "reports.parquet")
    return held


def test_a_frame_that_singles_people_out_is_refused(tmp_path):
    """A group of four is refused unless the plan accepts it by name; so are other entries, and plans without frames."""
    plan = plan_survey(SurveySpec.from_toml(FRAME.format(round=1))).plan
    with pytest.raises(InvalidInput, match="1 with fewer"):
        read_frame(plan, framed(tmp_path, [1] * 50 + [3] * 4))
    assert read_frame(plan, framed(tmp_path, [1] * 5 + [3] * 5)) == ([], ["-0"] * 5 + ["-1"] * 5)
    accepted = FRAME.format(round=1).replace("[budget]", 'revealed = { respondent = ["w"] }\n[budget]')
    known = plan_survey(SurveySpec.from_toml(accepted)).plan
    assert len(read_frame(known, framed(tmp_path, [1] * 50 + [3]))[1]) == 51
    for rows in ([1, 2], ["house"], [], [""]):
        with pytest.raises(InvalidInput, match="frame") as error:
            read_frame(plan, framed(tmp_path, rows))
        assert "house" not in str(error.value)
    with pytest.raises(InvalidInput, match="public questions of the invitations"):
        read_frame(habits(1), framed(tmp_path, [1] * 9))
    with database(tmp_path / "reports.db", plan, create=True) as store, pytest.raises(InvalidInput, match="frame"):
        draw_invitations(plan, store, 5)
