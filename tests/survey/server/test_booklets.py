"""Reports of booklets in a collector's database: kept in few bytes, counted, exported, and on a cluster."""

import json
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from kit_plans import booklet_plan

from ldpopt.errors import InvalidInput
from ldpopt_survey import Device, Simulated, Survey, aggregate, privatize_frame
from ldpopt_survey.collect.aggregate import read_rows
from ldpopt_survey.reports import verify_delivery
from ldpopt_survey.server import Submission, database, export, export_reports
from ldpopt_survey.server.submission import Reader

PLAN = booklet_plan()
PEOPLE = 400


@pytest.fixture(scope="module")
def sent():
    """The submissions of 400 devices, and what their people answered."""
    rng = np.random.default_rng(8)
    singles = {one.name: one for question in PLAN.questions for one in question.answers}
    made = []
    for _ in range(PEOPLE):
        answers = {name: getattr(one, "asked", one.categories)[rng.integers(2)] for name, one in singles.items()}
        made.append((Device(PLAN, Simulated(rng)).submission(answers), answers))
    return made


@pytest.fixture
def stored(sent, tmp_path, monkeypatch):
    """A database with them, read in several batches and files."""
    monkeypatch.setattr(export, "BATCH_ROWS", 64)
    monkeypatch.setattr(export, "FILE_ROWS", 128)
    reader = Reader(PLAN)
    with database(tmp_path / "reports.db", PLAN, create=True) as store:
        store.write([reader.read(json.dumps(body).encode()) for body, _ in sent], "2026-01-31")
    return tmp_path / "reports.db"


def test_every_report_is_counted_once_under_its_booklet(sent, stored):
    """Counts from the database are those of the submissions one by one; three numbers are stored of each."""
    counts = aggregate(PLAN, stored)
    assert counts.rows == PEOPLE
    for question in PLAN.questions:
        told = Counter(body["reports"][question.name] for body, _ in sent if question.name in body["reports"])
        assert counts[question.name].tolist() == [told[y] for y in range(len(question.reports))]
    assert sum(counts[question.name].sum() for question in PLAN.booklets) == PEOPLE
    with database(stored, PLAN) as store:
        assert {len(codes) for rows in store.rows(50) for _, _, codes in rows} == {12}


def test_estimates_are_those_of_the_answers(sent, stored):
    """Combined over the booklets that ask it, every share is within four standard errors of the answers given."""
    found = Survey(PLAN).estimates(aggregate(PLAN, stored))
    assert set(found) == {"region", "drug", "how often", "smokes", "drinks"}
    for name, made in found.items():
        asked = [answers[name] if name != "how often" or answers["drug"] == "drug-yes-zq" else "not applicable"
                 for _, answers in sent]  # fmt: skip
        true = np.array([asked.count(label) / PEOPLE for label in made.labels])
        assert (abs(made.values - true) <= 4 * np.sqrt(np.diag(made.covariance))).all(), name


@pytest.mark.full(but=1)
@pytest.mark.parametrize("name", ["reports.parquet", "reports"])
def test_an_export_has_the_form_of_privatized_files(sent, stored, tmp_path, name):
    """File and folder have the columns and types of privatized files, verify, and give single respondents."""
    (tmp_path / "delivery").mkdir()
    output = tmp_path / "delivery" / name
    assert export_reports(PLAN, stored, output) == PEOPLE
    assert all((aggregate(PLAN, output)[q.name] == aggregate(PLAN, stored)[q.name]).all() for q in PLAN.questions)
    frame = {one.column: [answers[one.name] for _, answers in sent]
             for question in PLAN.questions for one in question.answers}  # fmt: skip
    import pandas as pd

    expected = privatize_frame(PLAN, pd.DataFrame(frame), Simulated(1))[0]
    for file in sorted(output.glob("*.parquet")) if output.is_dir() else [output]:
        found = pq.read_table(file)
        assert found.schema.remove_metadata() == expected.schema.remove_metadata()
        for row in found.to_pylist():
            told = {name for name, label in row.items() if label is not None}
            assert told == {"booklet", "region", row["booklet"]}
    rows = read_rows(PLAN, output)
    assert rows.n == PEOPLE
    assert all((rows.counts[q.name] == aggregate(PLAN, stored)[q.name]).all() for q in PLAN.questions)
    (tmp_path / "delivery" / "plan.json").write_text(PLAN.to_json())
    assert verify_delivery(tmp_path / "delivery")


def test_an_empty_round_of_booklets_is_exported(tmp_path):
    """A round without a report is a file without rows, which counts as none."""
    with database(tmp_path / "reports.db", PLAN, create=True):
        pass
    assert export_reports(PLAN, tmp_path / "reports.db", tmp_path / "reports.parquet") == 0
    assert aggregate(PLAN, tmp_path / "reports.parquet").rows == aggregate(PLAN, tmp_path / "reports.db").rows == 0


@pytest.mark.parametrize("wrong", [[3, 0, 0], [0, 8, 0], [2, 2, 0], [0, 0, 3], [0, 0], [0, 0, 0, 0]], ids=str)
def test_damaged_reports_of_booklets_are_refused(tmp_path, wrong):
    """An unknown booklet, and a report that its booklet's channel does not give, are refused."""
    with database(tmp_path / "reports.db", PLAN, create=True) as store:
        store.write([Submission(bytes(16), np.array(wrong, "<u4").tobytes())], "2026-01-31")
    with pytest.raises(InvalidInput):
        aggregate(PLAN, tmp_path / "reports.db")


@pytest.mark.full
def test_a_cluster_counts_an_export_as_this_process_does(stored, tmp_path):
    """On a Dask worker the files of an export have the counts and estimates of the database."""
    pytest.importorskip("distributed", reason="distributed is not installed")
    from ldpopt_survey.collect.runner import dask_runner

    export_reports(PLAN, stored, tmp_path / "reports")
    with dask_runner(workers=1) as runner:
        counts = aggregate(PLAN, tmp_path / "reports", runner=runner)
    expected = aggregate(PLAN, stored)
    assert all((counts[question.name] == expected[question.name]).all() for question in PLAN.questions)
    found, other = (Survey(PLAN).estimates(one) for one in (counts, expected))
    assert all(np.array_equal(found[name].values, other[name].values) for name in found)
