"""A batch of rows becomes a batch of reports, and its tally says what the policies did.

Duplicates are the rows after the first of each identity, found the same in memory and in buckets.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect.batch import (
    Privatizer,
    bucket_count,
    duplicate_rows,
    duplicates_in_bucket,
    pack_identities,
    privatize_frame,
    refuse_duplicates,
    require_columns,
)
from ldpopt_survey.collect.randomness import Fresh, Memoized, Simulated
from ldpopt_survey.collect.words import create_key, read_key
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

EXACT = [[1.0 - 2.0**-40, 2.0**-40], [2.0**-40, 1.0 - 2.0**-40]]
"""A channel that nearly tells the answer, so that rows can be followed."""


def plan(**changes: object) -> Plan:
    question = QuestionSpec("q", ("no", "yes"), column="answer")
    return make_plan(SurveySpec("s", (question,), **changes), {"q": EXACT})  # type: ignore[arg-type]


@pytest.fixture
def key(tmp_path: Path) -> Memoized:
    """A survey key."""
    create_key(tmp_path / "key")
    return Memoized(tmp_path / "key")


def test_second_rows_are_dropped_and_counted(key: Memoized) -> None:
    """Rows, duplicates and the reports' answers are those of the first row of each respondent."""
    raw = pd.DataFrame({"id": list("abacbbd"), "answer": ["no", "yes", "yes", "no", "no", "no", "yes"]})
    reports, tally = privatize_frame(plan(respondent="id", first_of_duplicates=True), raw, key)
    assert (tally.rows, tally.duplicates, reports.num_rows) == (4, 3, 4)
    assert reports.column("q").to_pylist() == ["0", "1", "0", "1"]
    with pytest.raises(InvalidInput, match="row 3"):
        privatize_frame(plan(respondent="id"), raw, key)


def test_rows_are_numbered_across_batches(key: Memoized) -> None:
    """The number of a row goes on from one record batch to the next, for what is dropped and for what is refused."""
    made = plan(respondent="id", first_of_duplicates=True, carry=("place",))
    privatizer = Privatizer(made, "memoised", key.key())
    batches = [
        pa.record_batch({"answer": ["no", "yes"], "place": [1, 2], "id": ["a", "b"]}),
        pa.record_batch({"answer": ["yes", "no", "no"], "place": [3, 4, 5], "id": ["c", "d", "e"]}),
    ]
    reports, tally = privatizer.partition(batches, 0, 10, np.array([5, 11, 13, 99]))
    assert reports.column("place").to_pylist() == [1, 3, 5]
    assert (tally.rows, tally.duplicates) == (3, 2)
    bad = [batches[0], pa.record_batch({"answer": ["yes", "maybe"], "place": [3, 4], "id": ["c", "d"]})]
    with pytest.raises(InvalidInput, match="row 13"):
        privatizer.partition(bad, 0, 10, np.empty(0, np.int64))


def test_every_respondent_has_an_id(key: Memoized) -> None:
    """Empty and missing ids are refused with their row, whole numbers and texts are taken, nothing else is."""
    made = plan(respondent="id")
    for ids in (["a", "", "c"], ["a", None, "c"]):
        with pytest.raises(InvalidInput, match="row 2"):
            privatize_frame(made, pa.table({"id": ids, "answer": ["no"] * 3}), key)
    for ids in (pa.array([1, 2]), pa.array(["1", "2"]), pa.array(["1", "2"]).dictionary_encode()):
        reports, _ = privatize_frame(made, pa.table({"id": ids, "answer": ["no", "yes"]}), key)
        assert reports.column("q").to_pylist() == ["0", "1"]
    for ids in ([1.5, 2.0], [True, False]):
        with pytest.raises(InvalidInput, match=r"whole numbers|text or integers"):
            privatize_frame(made, pa.table({"id": ids, "answer": ["no", "yes"]}), key)


def test_a_needed_column_must_occur_exactly_once() -> None:
    """A column that is missing or occurs twice is refused, and no message shows the other columns."""
    simulated = Simulated(np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="1 other at") as caught:
        privatize_frame(plan(), pd.DataFrame({"secret": [1]}), simulated)
    assert "secret" not in str(caught.value)
    twice = pa.Table.from_arrays([pa.array(["no"]), pa.array(["yes"])], names=["answer", "answer"])
    with pytest.raises(InvalidInput, match="two"):
        privatize_frame(plan(), twice, simulated)
    require_columns(["a"], ["b", "a"], "here")
    with pytest.raises(InvalidInput, match="data frame"):
        privatize_frame(plan(), 7, simulated)
    with pytest.raises(InvalidInput, match="no rows; expected at least one"):
        privatize_frame(plan(), pd.DataFrame({"answer": []}, dtype=str), simulated)


def test_more_than_a_signed_byte_of_reports() -> None:
    """Reports beyond 127 keep their numbers."""
    k = 200
    question = QuestionSpec("q", tuple(range(k)))
    made = make_plan(SurveySpec("s", (question,)), {"q": np.eye(k) * (1 - 2.0**-20) + 2.0**-20 / k})
    reports, _ = privatize_frame(made, pa.table({"q": list(range(k))}), Fresh())
    told = np.array([int(one) for one in reports.column("q").to_pylist()])
    assert (told == np.arange(k)).mean() > 0.9


def test_refused_duplicates_name_the_first_row() -> None:
    """The least of the rows; none where there is none, or where the plan drops them."""
    refuse_duplicates(plan(respondent="id"), np.empty(0, np.int64))
    refuse_duplicates(plan(respondent="id", first_of_duplicates=True), np.array([7, 3]))
    with pytest.raises(InvalidInput, match="row 3"):
        refuse_duplicates(plan(respondent="id"), np.array([7, 3]))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40))
def test_all_but_the_first_row_of_an_identity(identities: list[tuple[int, int]]) -> None:
    """The result is what a set of identities seen so far gives."""
    seen, expected = set(), []
    for row, identity in enumerate(identities):
        if identity in seen:
            expected.append(row + 5)
        seen.add(identity)
    found = duplicate_rows(np.array(identities, np.uint64).reshape(-1, 2), np.arange(len(identities)) + 5)
    assert found.tolist() == expected


def test_buckets_together_find_the_same(tmp_path: Path) -> None:
    """Spilling three partitions into eight buckets finds the duplicates across partitions."""
    rng = np.random.default_rng(0)
    identities = rng.integers(0, 40, (900, 2), dtype=np.uint64)
    for part in range(3):
        contents = pack_identities(identities[300 * part : 300 * part + 300], 300 * part, 8)
        (tmp_path / str(part)).write_bytes(contents)
    paths = [tmp_path / str(part) for part in range(3)]
    found = np.sort(np.concatenate([duplicates_in_bucket(paths, bucket, 8) for bucket in range(8)]))
    assert found.tolist() == duplicate_rows(identities, np.arange(900)).tolist()
    assert 0 < len(found) < 900


def test_buckets_stay_small() -> None:
    """A bucket holds about half a million rows at most, up to tens of billions of rows."""
    assert bucket_count(1) == 1
    assert all(n / bucket_count(n) <= 1 << 19 for n in (10**6, 10**8, 3 * 10**10))


def test_an_id_is_one_person_in_every_writing(tmp_path):
    """Zeros before a number, a decimal point after it, spaces and composed letters make nobody somebody else."""
    create_key(tmp_path / "key")
    spec = SurveySpec("s", (QuestionSpec("q", ("no", "yes")),), respondent="id")
    made = make_plan(spec, {"q": [[0.75, 0.25], [0.25, 0.75]]})
    privatizer = Privatizer(made, "memoised", read_key(tmp_path / "key"))
    same = ["5", "5.0", "00005", " 5", "5 ", "+5", "5.", "\t5"]
    other = ["50", "5a", "005a", "0", "00", "0.50", "5.5", "-5", "5 0", ""]
    for column in (pa.array(same), pa.array([5, 5]), pa.array([5.0, 5.0]), pa.array(same).dictionary_encode()):
        found = privatizer.ids(pa.record_batch([column], ["id"]), 1)
        assert set(found.to_pylist()) == {"5"}
    assert privatizer.ids(pa.record_batch([pa.array(other[:-1])], ["id"]), 1).to_pylist() == [
        "50", "5a", "005a", "0", "0", "0.50", "5.5", "-5", "5 0",
    ]  # fmt: skip
    assert len(set(privatizer.ids(pa.record_batch([pa.array(["é", "e\u0301", " é"])], ["id"]), 1).to_pylist())) == 1
    for wrong in (pa.array([5.5]), pa.array(["5", " "]), pa.array(["5", ""]), pa.array([None, "5"])):
        with pytest.raises(InvalidInput, match="respondent column"):
            privatizer.ids(pa.record_batch([wrong], ["id"]), 1)
