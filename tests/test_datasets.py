"""The shipped survey: complete, labelled, and equal to its source."""

import csv
import hashlib
import re
from importlib.resources import files

import numpy as np
import pytest

from ldpopt.datasets import load_anes96
from ldpopt.errors import InvalidInput

TABLE = load_anes96()


def test_the_extract_is_the_one_its_provenance_describes():
    """The shipped file has the checksum that the provenance beside it states."""
    raw = (files("ldpopt") / "data" / "anes96.csv").read_bytes()
    assert hashlib.sha256(raw).hexdigest() in TABLE.provenance
    assert "public domain" in TABLE.provenance
    assert re.search(r"electionstudies\.org", TABLE.provenance)


def test_the_margins_are_those_of_the_source():
    """The counts equal the ones of the statsmodels extract, category by category."""
    assert len(TABLE) == 944
    assert TABLE.counts("vote").tolist() == [551, 393]
    assert TABLE.counts("party").tolist() == [200, 180, 108, 37, 94, 150, 175]
    assert TABLE.counts("education").tolist() == [13, 52, 248, 187, 90, 227, 127]
    assert TABLE.counts("income").tolist() == [
        19, 12, 17, 19, 18, 13, 11, 17, 10, 15, 23, 35, 26, 39, 68, 70, 62, 48, 51, 100, 103, 53, 47, 68,
    ]  # fmt: skip


def test_every_code_has_a_label_and_every_label_is_used():
    """Codes are positions in the labels, labels are distinct, no category is empty."""
    sizes = {name: len(column.labels) for name, column in TABLE.columns.items()}
    assert sizes == {"party": 7, "income": 24, "education": 7, "vote": 2}
    for column in TABLE.columns.values():
        assert len(set(column.labels)) == len(column.labels)
        assert sorted(set(column.codes.tolist())) == list(range(len(column.labels)))


def test_income_brackets_adjoin():
    """Each income bracket starts one dollar above the end of the one before it."""
    bounds = [[int(n.replace(",", "")) for n in re.findall(r"[\d,]+", label)] for label in TABLE.labels("income")]
    assert bounds[0] == [3000]
    assert [b[0] for b in bounds[1:]] == [3000] + [b[1] + 1 for b in bounds[1:-1]]


def test_cross_counts_agree_with_a_loop_over_the_rows():
    """counts(column, by) equals counting the file row by row."""
    with (files("ldpopt") / "data" / "anes96.csv").open(encoding="utf-8") as file:
        rows = [{name: int(code) for name, code in row.items()} for row in csv.DictReader(file)]
    for by, column in (("vote", "income"), ("party", "education")):
        first = {"party": 0, "income": 1, "education": 1, "vote": 0}
        counts = np.zeros_like(TABLE.counts(column, by=by))
        for row in rows:
            counts[row[by] - first[by], row[column] - first[column]] += 1
        assert np.array_equal(TABLE.counts(column, by=by), counts)
        np.testing.assert_allclose(
            TABLE.conditional(column, given=by), counts / counts.sum(1, keepdims=True), rtol=1e-15
        )


def test_cross_counts_sum_to_the_margins():
    """The rows and the columns of a cross table sum to the tables of its two questions."""
    joint = TABLE.counts("income", by="party")
    assert np.array_equal(joint.sum(0), TABLE.counts("income"))
    assert np.array_equal(joint.sum(1), TABLE.counts("party"))


def test_the_two_candidates_voters_differ():
    """Voters of the two candidates differ more by party than by income, as P0 and P1 in the demonstration do."""
    distance = {}
    for column in ("income", "party", "education"):
        p0, p1 = TABLE.conditional(column, given="vote")
        distance[column] = abs(p0 - p1).sum() / 2
    assert distance["party"] == pytest.approx(0.8133119, abs=1e-6)
    assert distance["income"] == pytest.approx(0.1883229, abs=1e-6)
    assert distance["education"] < distance["income"]


def test_the_table_is_frozen():
    """Neither columns nor codes nor conditionals can be changed in place, and loading twice gives one table."""
    with pytest.raises(ValueError, match="read-only"):
        TABLE["vote"].codes[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        TABLE.conditional("income", "vote")[0, 0] = 1
    with pytest.raises(TypeError):
        TABLE.columns["more"] = TABLE["vote"]
    assert load_anes96() is TABLE


def test_an_unknown_column_is_named():
    """An unknown column is an error that lists the known ones."""
    for call in (lambda: TABLE["age"], lambda: TABLE.counts("age"), lambda: TABLE.conditional("income", "age")):
        with pytest.raises(InvalidInput, match="column: expected one of party, income, education, vote, got 'age'"):
            call()


def test_pandas_gets_ordered_categories():
    """to_pandas gives one ordered categorical a column, with the labels and the same counts."""
    frame = TABLE.to_pandas()
    assert frame.shape == (944, 4)
    assert list(frame["income"].cat.categories) == list(TABLE.labels("income"))
    assert frame["income"].cat.ordered
    assert frame["vote"].value_counts(sort=False).tolist() == [551, 393]


def test_the_repr_describes_the_table_and_a_column():
    """The table and a column describe themselves in one line."""
    assert repr(TABLE["vote"]) == "Column('expected vote', 2 categories, 944 answers)"
    assert repr(TABLE) == "SurveyTable(anes96: 944 respondents; party (7), income (24), education (7), vote (2))"
