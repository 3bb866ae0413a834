"""Files of reports: as they were made, with their manifests, and joined without a row more or less."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpopt.files import digest
from ldpopt.survey.collect.coding import Tally
from ldpopt.survey.collect.manifest import Manifest, folder_manifest, in_table, with_manifest
from ldpopt.survey.collect.reports import join, write_manifest, write_reports
from ldpopt.survey.plan.plan import make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

PLAN = make_plan(SurveySpec("s", (QuestionSpec("q", ("no", "yes")),)), {"q": [[0.75, 0.25], [0.25, 0.75]]})


def part(rows: list[str], mark: str) -> pa.Table:
    """A partition's reports, with a dictionary, a string view and a plain column."""
    labels = pa.array(rows).dictionary_encode()
    table = pa.table({"q": labels, "place": pa.array(rows).cast(pa.string_view()), "n": list(range(len(rows)))})
    return with_manifest(table, Manifest.of(PLAN, "fresh", len(rows), [mark * 32]))


PARTS = [part(["0", "1"], "1"), part(["1"], "2"), part(["0", "0", "1"], "3")]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_parts_are_joined_whole(tmp_path: Path, ending: str) -> None:
    """The joined file has every row once, one header, and in Parquet the manifest of all."""
    paths = [tmp_path / f"{number}.{ending}" for number in range(3)]
    for path, table in zip(paths, PARTS, strict=True):
        write_reports(path, table)
    made = Manifest.of(PLAN, "fresh", 6, ["1" * 32, "2" * 32, "3" * 32])
    join(paths, tmp_path / f"all.{ending}", made)
    if ending == "csv":
        lines = (tmp_path / "all.csv").read_text().splitlines()
        assert lines[0] == '"q","place","n"'
        assert len(lines) == 7
        assert lines[1:] == ['"0","0",0', '"1","1",1', '"1","1",0', '"0","0",0', '"0","0",1', '"1","1",2']
    else:
        found = pq.read_table(tmp_path / "all.parquet")
        assert found.column("q").to_pylist() == ["0", "1", "1", "0", "0", "1"]
        assert found.column("n").to_pylist() == [0, 1, 0, 0, 1, 2]
        assert in_table(found.schema, "here") == made
        pq.read_table(tmp_path / "all.parquet", page_checksum_verification=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*(p.name for p in paths), f"all.{ending}"])


def test_the_list_of_a_folder_has_every_part(tmp_path: Path) -> None:
    """Rows, fingerprints and checksums of the files, which add up to the whole."""
    paths = [tmp_path / f"{number}.csv" for number in range(2)]
    tallies = [Tally(rows=2, row_set="1" * 32), Tally(rows=1, row_set="2" * 32)]
    for path, table in zip(paths, PARTS[:2], strict=True):
        write_reports(path, table)
    write_manifest(tmp_path, PLAN, "simulated", paths, tallies)
    found = folder_manifest(tmp_path)
    assert found is not None
    assert {name: (one.rows, one.parts, one.sha256) for name, one in found.items()} == {
        "0.csv": (2, ("1" * 32,), digest(paths[0])),
        "1.csv": (1, ("2" * 32,), digest(paths[1])),
    }
