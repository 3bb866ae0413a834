"""Reports belong to their plan: no other plan's, no answers, none twice, none changed, and no simulation unsaid."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import Survey
from ldpopt_survey.collect.aggregate import Counts, aggregate
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.manifest import Manifest
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Fresh, Memoized, Simulated
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

ROWS = 60


def plan(share: float = 0.75, **changes: object) -> Plan:
    spec = SurveySpec("demo", (QuestionSpec("drug", ("no", "yes")),), **{"respondent": "id", **changes})  # type: ignore[arg-type]
    return make_plan(spec, {"drug": [[share, 1 - share], [1 - share, share]]})


PLAN = plan()
FORMS = ["r.csv", "r.parquet", "folder of csv", "folder of parquet"]


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Memoized:
    """A survey key."""
    path = tmp_path_factory.mktemp("survey") / "key"
    create_key(path)
    return Memoized(path)


def frame(first: int = 0, rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(first)
    return pd.DataFrame({"id": np.arange(first, first + rows), "drug": rng.choice(["no", "yes"], rows)})


def answers(folder: Path, ending: str, first: int = 0) -> Path:
    """Two files of answers."""
    made = folder / f"answers-{ending}-{first}"
    if not made.exists():
        made.mkdir()
        for file in range(2):
            getattr(frame(first + file * ROWS), f"to_{ending}")(made / f"{file}.{ending}", index=False)
    return made


def report(folder: Path, form: str, randomness: object, made: Plan = PLAN, first: int = 0, name: str = "") -> Path:
    """Reports of 120 respondents in one of the forms."""
    ending = "parquet" if "parquet" in form else "csv"
    path = folder / (name or form.replace(" ", "-"))
    privatize(made, answers(folder, ending, first), path, randomness)  # type: ignore[arg-type]
    return path


REPORTS: dict[tuple[Path, str, str, int], Path] = {}


def copied(folder: Path, form: str, key: Memoized, made: Plan = PLAN, first: int = 0, name: str = "") -> Path:
    """The same memoised reports, made once and copied as a delivery is."""
    kept = Path(key.key_file).parent
    which = (kept, form, made.checksum, first)
    if which not in REPORTS:
        REPORTS[which] = report(kept, form, key, made, first, f"{len(REPORTS)}-{form}".replace(" ", "-"))
    path = folder / (name or form.replace(" ", "-"))
    if REPORTS[which].is_dir():
        return Path(shutil.copytree(REPORTS[which], path))
    for end in ("", ".manifest.json"):
        if (file := Path(f"{REPORTS[which]}{end}")).exists():
            shutil.copy(file, f"{path}{end}")
    return path


@pytest.mark.parametrize("form", FORMS)
def test_reports_carry_their_plan_and_their_rows(tmp_path: Path, key: Memoized, form: str) -> None:
    """They are counted under their plan, and say how many rows there are, of which survey, round and questions."""
    path = copied(tmp_path, form, key)
    counts = aggregate(PLAN, path)
    assert (counts.rows, counts.simulation, counts.unlabelled) == (2 * ROWS, False, False)
    if form == "r.csv":
        said = json.loads((tmp_path / "r.csv.manifest.json").read_text())
    elif form == "r.parquet":
        said = json.loads(pq.read_schema(path).metadata[b"ldpopt-reports"])
    else:
        said = json.loads((path / "_manifest.json").read_text())
    assert (said["survey"], said["round"], said["plan"], said["questions"]) == ("demo", 1, PLAN.checksum, ["drug"])
    assert (said["rows"], said["simulation"], len(said["parts"])) == (2 * ROWS, False, 2)
    assert Counts.from_json(counts.to_json(), PLAN) == counts


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", [plan(0.9), plan(round=2)], ids=["another epsilon", "another round"])
def test_reports_of_another_plan_are_refused(tmp_path: Path, key: Memoized, form: str, other: Plan) -> None:
    """Reports made at one epsilon are not estimated at another, whatever the form of their file."""
    path = copied(tmp_path, form, key, other)
    with pytest.raises(InvalidInput, match="another plan"):
        aggregate(PLAN, path)
    with pytest.raises(InvalidInput, match="another plan"):
        Survey(PLAN).estimate("drug", path)
    with pytest.raises(InvalidInput, match="another plan"):
        aggregate(PLAN, path, unlabelled=True)


def test_reports_in_memory_are_bound_to_their_plan(key: Memoized) -> None:
    """A table that the package made says whose it is; under another plan it is refused."""
    table, _ = privatize_frame(PLAN, frame(), key)
    assert Survey(PLAN).estimate("drug", table).n == ROWS
    with pytest.raises(InvalidInput, match="another plan"):
        Survey(plan(0.9)).estimate("drug", table)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_without_a_manifest_need_to_be_named_as_such(tmp_path: Path, ending: str) -> None:
    """Answers that look like reports are refused; `unlabelled=True` takes them, and the counts say so."""
    path = tmp_path / f"hand.{ending}"
    getattr(pd.DataFrame({"drug": ["0"] * 60 + ["1"] * 40}), f"to_{ending}")(path, index=False)
    with pytest.raises(InvalidInput, match=r"(manifest .* not found|no manifest in its schema).*--unlabelled"):
        aggregate(PLAN, path)
    counts = aggregate(PLAN, path, unlabelled=True)
    assert counts.unlabelled
    assert counts["drug"].tolist() == [60, 40]
    assert Counts.from_json(counts.to_json(), PLAN).unlabelled
    with pytest.raises(InvalidInput, match="the same reports twice"):
        _ = counts + counts
    raw = tmp_path / f"raw.{ending}"
    getattr(pd.DataFrame({"drug": ["0"] * 60, "id": np.arange(60)}), f"to_{ending}")(raw, index=False)
    with pytest.raises(InvalidInput, match="raw answers"):
        aggregate(PLAN, raw, unlabelled=True)


TWICE: dict[str, Callable[[Path, Memoized], list[Path]]] = {}


def twice(function: Callable[[Path, Memoized], list[Path]]) -> Callable[[Path, Memoized], list[Path]]:
    TWICE[function.__doc__ or ""] = function
    return function


@twice
def _one_name(folder: Path, key: Memoized) -> list[Path]:
    """one file named twice"""
    return [copied(folder, "r.csv", key)] * 2


@twice
def _link(folder: Path, key: Memoized) -> list[Path]:
    """a file and a link to it"""
    path = copied(folder, "r.parquet", key)
    (folder / "link.parquet").symlink_to(path)
    return [path, folder / "link.parquet"]


@twice
def _copy(folder: Path, key: Memoized) -> list[Path]:
    """a CSV file and its copy, with the manifest"""
    path = copied(folder, "r.csv", key)
    for name in (path.name, f"{path.name}.manifest.json"):
        shutil.copy(folder / name, folder / name.replace("r.csv", "copy.csv"))
    return [path, folder / "copy.csv"]


@twice
def _parquet_copy(folder: Path, key: Memoized) -> list[Path]:
    """a Parquet file and its copy"""
    path = copied(folder, "r.parquet", key)
    return [path, Path(shutil.copy(path, folder / "copy.parquet"))]


@twice
def _folder_copy(folder: Path, key: Memoized) -> list[Path]:
    """a folder and its copy"""
    path = copied(folder, "folder of csv", key)
    return [path, Path(shutil.copytree(path, folder / "copy"))]


@twice
def _again(folder: Path, key: Memoized) -> list[Path]:
    """two memoised runs over the same respondents"""
    return [report(folder, "r.csv", key), report(folder, "r.csv", key, name="again.csv")]


@twice
def _recut(folder: Path, key: Memoized) -> list[Path]:
    """the same respondents in a folder and in one file whose answers were cut otherwise"""
    whole = pd.concat([frame(0), frame(ROWS)]).sample(frac=1, random_state=1)
    whole.to_csv(folder / "whole.csv", index=False)
    privatize(PLAN, folder / "whole.csv", folder / "one.csv", key)
    return [copied(folder, "folder of csv", key), folder / "one.csv"]


@twice
def _recut_folders(folder: Path, key: Memoized) -> list[Path]:
    """the same respondents in two folders that cut them otherwise"""
    whole = pd.concat([frame(0), frame(ROWS)])
    (folder / "uneven").mkdir()
    whole.iloc[:7].to_csv(folder / "uneven" / "0.csv", index=False)
    whole.iloc[7:].to_csv(folder / "uneven" / "1.csv", index=False)
    privatize(PLAN, folder / "uneven", folder / "other", key)
    return [copied(folder, "folder of csv", key), folder / "other"]


@twice
def _part(folder: Path, key: Memoized) -> list[Path]:
    """a folder joined into one file, and one of its parts"""
    path = copied(folder, "folder of parquet", key)
    return [path / "part-000001.parquet", copied(folder, "r.parquet", key)]


@twice
def _by_hand(folder: Path, key: Memoized) -> list[Path]:
    """a file written by hand and its copy"""
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("drug\n0\n1\n1\n")
    return [folder / "a.csv", folder / "b.csv"]


@pytest.mark.parametrize("name", TWICE)
def test_the_same_reports_are_not_counted_twice(tmp_path: Path, key: Memoized, name: str) -> None:
    """Named twice, copied, converted, run again or cut otherwise: one line of refusal."""
    with pytest.raises(InvalidInput, match=r"every (file|report|respondent's report) once"):
        aggregate(PLAN, TWICE[name](tmp_path, key), unlabelled=True)


@pytest.mark.parametrize("form", FORMS)
def test_reports_of_other_respondents_are_counted_together(tmp_path: Path, key: Memoized, form: str) -> None:
    """Two deliveries of different people add up, as files and as counts; each with itself does not."""
    one, two = copied(tmp_path, form, key, name=f"1-{form}"), copied(tmp_path, form, key, first=1000, name=f"2-{form}")
    both = aggregate(PLAN, [one, two])
    assert both.rows == 4 * ROWS
    assert aggregate(PLAN, one) + aggregate(PLAN, two) == both
    with pytest.raises(InvalidInput, match="the same reports twice"):
        _ = aggregate(PLAN, one) + aggregate(PLAN, one)
    with pytest.raises(InvalidInput, match="the same reports twice"):
        _ = both + aggregate(PLAN, two)


def test_fresh_runs_are_distinguished_from_copies(tmp_path: Path) -> None:
    """Without respondents every run has its own fingerprint, so that tiny files with equal contents are no copies."""
    made = plan(respondent=None)
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("drug\nno\n")
        privatize(made, tmp_path / f"{name}.csv", tmp_path / f"r{name}.csv", Fresh())
    assert aggregate(made, [tmp_path / "ra.csv", tmp_path / "rb.csv"]).rows == 2


@pytest.mark.parametrize("form", FORMS)
def test_simulated_reports_are_labelled(tmp_path: Path, form: str) -> None:
    """Counts of a simulation are marked, also in their file, and neither files nor counts mix with real ones."""
    made = plan(respondent=None)
    rng = np.random.default_rng(0)
    simulated, real = (
        report(tmp_path, form, Simulated(rng), made),
        report(tmp_path, form, Fresh(), made, name=f"x{form}"),
    )
    counts = aggregate(made, simulated)
    assert counts.simulation
    assert Counts.from_json(counts.to_json(), made).simulation
    with pytest.raises(InvalidInput, match="simulated reports cannot be combined with reports of people"):
        aggregate(made, [simulated, real])
    with pytest.raises(InvalidInput, match="simulated ones, or counts of reports"):
        _ = counts + aggregate(made, real)


def damage(folder: Path, key: Memoized, how: str) -> Path:
    """Reports that were changed after they were written."""
    form = "folder of parquet" if "parquet" in how else "folder of csv" if "part" in how else "r.csv"
    path = copied(folder, form, key)
    ending = form.split()[-1]
    first, second = path / f"part-000000.{ending}", path / f"part-000001.{ending}"
    if how == "a line less":
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    elif how == "a line more":
        path.write_text(path.read_text() + '"0"\n')
    elif how == "a report changed":
        text = path.read_text()
        path.write_text(text[:-3] + ("0" if text[-3] == "1" else "1") + text[-2:])
    elif how == "another manifest":
        other = copied(folder, "r.csv", key, first=1000, name="other.csv")
        shutil.copy(f"{other}.manifest.json", f"{path}.manifest.json")
    elif how == "a part cut at a line end":
        first.write_text("".join(first.read_text().splitlines(keepends=True)[:-10]))
    elif how == "an emptied part":
        first.write_text("")
    elif how in ("a part replaced by another", "a parquet part replaced by another"):
        shutil.copy(first, second)
    elif how in ("a missing part", "a missing parquet part"):
        first.unlink()
    elif how == "an added part":
        (path / "part-000002.csv").write_text(first.read_text())
    else:
        assert how == "parts exchanged"
        text = first.read_text()
        first.write_text(second.read_text())
        second.write_text(text)
    return path


DAMAGES = [
    "a line less",
    "a line more",
    "a report changed",
    "another manifest",
    "a part cut at a line end",
    "an emptied part",
    "a part replaced by another",
    "a parquet part replaced by another",
    "a missing part",
    "a missing parquet part",
    "an added part",
    "parts exchanged",
]


@pytest.mark.parametrize("how", DAMAGES)
def test_changed_reports_are_refused(tmp_path: Path, key: Memoized, how: str) -> None:
    """What was cut, changed, exchanged, lost or added since the manifest was written is noticed."""
    path = damage(tmp_path, key, how)
    with pytest.raises(
        InvalidInput, match=r"reports: expected|do not match the checksum in their manifest|differ from the manifest of"
    ):
        aggregate(PLAN, path)


def test_a_parquet_file_whose_bytes_changed_is_refused(tmp_path: Path, key: Memoized) -> None:
    """Pages carry checksums: no byte of the data can change unnoticed."""
    path = copied(tmp_path, "r.parquet", key)
    good, want = path.read_bytes(), aggregate(PLAN, path)
    noticed = 0
    for at in range(4, len(good) - 8, 19):
        bad = bytearray(good)
        bad[at] ^= 1
        path.write_bytes(bytes(bad))
        try:
            assert aggregate(PLAN, path)["drug"].tolist() == want["drug"].tolist()
        except InvalidInput:
            noticed += 1
    assert noticed > 10


def test_manifests_are_read_strictly(tmp_path: Path, key: Memoized) -> None:
    """Every field has its kind, no other is there, and the fingerprints add up; else one line, no matter what."""
    path = copied(tmp_path, "r.csv", key)
    beside = tmp_path / "r.csv.manifest.json"
    good = json.loads(beside.read_text())
    assert Manifest.from_dict(good, "x").to_dict() == good
    for name in good:
        for value in (None, 7, "x", [], {}, True, -1, "0" * 32):
            if (name, value) == ("simulation", True) or (value == good[name] and type(value) is type(good[name])):
                continue
            beside.write_text(json.dumps({**good, name: value}))
            with pytest.raises(InvalidInput):
                aggregate(PLAN, path)
        if name != "sha256":
            beside.write_text(json.dumps({key: value for key, value in good.items() if key != name}))
            with pytest.raises(InvalidInput):
                aggregate(PLAN, path)
    for text in (
        "",
        "[]",
        "{",
        json.dumps({**good, "more": 1}),
        json.dumps({k: good[k] for k in good if k != "sha256"}),
    ):
        beside.write_text(text)
        with pytest.raises(InvalidInput):
            aggregate(PLAN, path)


def test_a_foreign_manifest_in_the_way_is_not_overwritten(tmp_path: Path, key: Memoized) -> None:
    """A file where the manifest would go is a taken path; it stays, and no reports appear."""
    (tmp_path / "r.csv.manifest.json").write_text("mine")
    with pytest.raises(InvalidInput, match="not taken"):
        report(tmp_path, "r.csv", key)
    assert (tmp_path / "r.csv.manifest.json").read_text() == "mine"
    assert not (tmp_path / "r.csv").exists()


def test_the_plan_comes_before_the_reports(tmp_path: Path, key: Memoized) -> None:
    """As in `privatize`; the other way round is refused in words."""
    path = copied(tmp_path, "r.csv", key)
    assert aggregate(PLAN, path).rows
    for reports in (PLAN, path):
        with pytest.raises(InvalidInput, match="a Plan"):
            aggregate(path, reports)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_without_rows_are_no_copies_of_each_other(tmp_path: Path, key: Memoized, ending: str) -> None:
    """Empty files of answers give empty parts, which all have the fingerprint of no rows, and may stand together."""
    folder = tmp_path / "answers"
    folder.mkdir()
    for number, rows in enumerate((0, 10, 0, 5)):
        made = frame(100 * number, rows).astype({"id": "int64", "drug": "str"})
        getattr(made, f"to_{ending}")(folder / f"{number}.{ending}", index=False)
    privatize(PLAN, folder, tmp_path / "reports", key)
    assert aggregate(PLAN, tmp_path / "reports").rows == 15
