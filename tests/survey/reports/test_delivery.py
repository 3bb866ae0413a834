"""A delivery is what it says, or the check says what is not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.files import strict
from ldpopt_survey import Counts, Fresh, QuestionSpec, Simulated, Survey, SurveySpec, aggregate, make_plan, privatize
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.reports import results, survey_report, verify_delivery

PLAN = make_plan(
    SurveySpec("habits", (QuestionSpec("drug", ("no", "yes")), QuestionSpec("drink", ("no", "yes")))),
    lambda q: [[0.75, 0.25], [0.25, 0.75]],
)
RAW = "drug,drink\n" + "no,yes\nyes,yes\nno,no\n" * 100


def write(folder: Path, counts: Counts, name: str = "") -> None:
    """Counts, estimates and a page of them."""
    (folder / f"counts{name}.json").write_text(counts.to_json(), encoding="utf-8")
    made = Survey(PLAN).estimates(counts)
    (folder / f"estimates{name}.json").write_text(strict.json_text(results(made, counts)), encoding="utf-8")
    (folder / f"report{name}.html").write_text(survey_report(PLAN, made, counts), encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole delivery: two files of reports and a folder, and what was made of them."""
    folder = tmp_path_factory.mktemp("delivery")
    raw = tmp_path_factory.mktemp("raw") / "raw.csv"
    raw.write_text(RAW)
    (folder / "plan.json").write_text(PLAN.to_json(), encoding="utf-8")
    for name in ("a.csv", "b.parquet", "c"):
        privatize(PLAN, raw, folder / name, Fresh())
    write(folder, aggregate(PLAN, [folder / "a.csv", folder / "b.parquet"], [("drug", "drink")]))
    write(folder, aggregate(PLAN, folder / "c"), "-c")
    return folder


@pytest.fixture
def delivery(made: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(made, tmp_path / "delivery"))


def failures(folder: Path) -> set[str]:
    return {one.name for one in verify_delivery(folder).failures}


@pytest.mark.full
def test_a_whole_delivery_is_verified(delivery: Path) -> None:
    """Plan, reports in three forms, counts, estimates and pages hold; nothing is left unchecked."""
    found = verify_delivery(delivery)
    assert found, found
    assert all(one.holds for one in found.findings)
    assert len(found.findings) == 1 + 3 + 2 + 2 + 2
    assert not found.simulation
    assert "600 reports" in repr(found)


def edit(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        changed = change(text)
        assert changed != text
        (folder / name).write_text(changed, encoding="utf-8")

    return do


def set_json(name: str, change: Callable[[dict], object]) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        data = json.loads((folder / name).read_text("utf-8"))
        change(data)
        (folder / name).write_text(json.dumps(data), encoding="utf-8")

    return do


def moved(data: dict) -> None:
    table = data["tables"][0]["counts"]
    table[0], table[1] = table[0] + 1, table[1] - 1


CHANGES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "a report changed": (edit("a.csv", lambda t: t[:-3] + ("0" if t[-3] == "1" else "1") + t[-2:]), {"a.csv"}),
    "a report left out": (edit("a.csv", lambda t: t[: t.rindex("\n", 0, -1) + 1]), {"a.csv"}),
    "reports missing": (lambda folder: (folder / "a.csv").unlink(), {"a.csv.manifest.json"}),
    "a manifest missing": (lambda folder: (folder / "a.csv.manifest.json").unlink(), {"a.csv"}),
    "a part missing": (lambda folder: (folder / "c" / "part-000000.csv").unlink(), {"c"}),
    "counts changed": (set_json("counts.json", moved), {"counts.json"}),
    "counts of a simulation": (set_json("counts.json", lambda d: d.update(simulation=True)), {"counts.json"}),
    "counts of others": (set_json("counts.json", lambda d: d.update(sources=["0" * 31 + "1"])), {"counts.json"}),
    "an estimate changed": (
        set_json("estimates.json", lambda d: d["drug"]["values"].__setitem__(0, 0.6000001)),
        {"estimates.json"},
    ),
    "a standard error halved": (
        set_json("estimates.json", lambda d: d["drug"].update(standard_errors=[0.01, 0.01])),
        {"estimates.json"},
    ),
    "a question left out": (set_json("estimates.json", lambda d: d.pop("drug")), {"estimates.json"}),
    "a page's share changed": (edit("report.html", lambda t: t.replace(" %</td>", "1 %</td>", 1)), {"report.html"}),
    "a page's promise changed": (edit("report.html", lambda t: t.replace("at most", "at best", 1)), {"report.html"}),
    "a page of others": (
        edit("report.html", lambda t: t.replace('reports" content="', 'reports" content="' + "0" * 32 + " x", 1)),
        {"report.html"},
    ),
    "a key": (lambda folder: create_key(folder / "key"), {"key"}),
    "a work folder": (lambda folder: (folder / ".a.csv.partial").mkdir(), {".a.csv.partial"}),
    "raw answers": (lambda folder: (folder / "raw.csv").write_text(RAW), {"raw.csv"}),
    "a plan that claims too much": (
        edit("plan.json", lambda t: t.replace('"eta": 0.5', '"eta": 0.4', 1)),
        {"plan.json"},
    ),
}


@pytest.mark.full(but=8)
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_file_is_named(delivery: Path, name: str) -> None:
    """A changed, lost or added file is found, and its name is given."""
    change, named = CHANGES[name]
    (delivery / "report-c.html").unlink()  # no change concerns it, and its pictures are drawn again to be checked
    change(delivery)
    assert named <= failures(delivery)


def test_pictures_and_other_versions_are_not_judged(delivery: Path) -> None:
    """A page's pictures may differ; one by another version is not checked, and a note is listed as such."""
    page = (delivery / "report.html").read_text("utf-8")
    at = page.index("base64,") + 100
    (delivery / "report.html").write_text(page[:at] + "AAAA" + page[at + 4 :], encoding="utf-8")
    assert verify_delivery(delivery)
    other = (delivery / "report-c.html").read_text("utf-8")
    version = other.split('name="ldpopt-reports" content="')[1].split('"')[0].split()[1]
    (delivery / "report-c.html").write_text(other.replace(f' {version}">', ' 0.0.1">', 1), encoding="utf-8")
    (delivery / "note.txt").write_text("dear colleague")
    found = verify_delivery(delivery)
    assert {one.name for one in found.findings if one.holds is None} == {"report-c.html", "note.txt"}
    assert found


@pytest.mark.full
def test_a_simulation_is_labelled_everywhere(tmp_path: Path) -> None:
    """A page of simulated reports says so in its title, and the check of the delivery says it too."""
    (tmp_path / "raw.csv").write_text(RAW)
    folder = tmp_path / "delivery"
    folder.mkdir()
    (folder / "plan.json").write_text(PLAN.to_json(), encoding="utf-8")
    privatize(PLAN, tmp_path / "raw.csv", folder / "r.csv", Simulated(np.random.default_rng(1)))
    write(folder, aggregate(PLAN, folder / "r.csv"))
    page = (folder / "report.html").read_text("utf-8")
    assert "<title>Simulation: habits</title>" in page
    assert "<h1>Simulation: habits</h1>" in page
    assert "simulated reports" in page
    assert json.loads((folder / "estimates.json").read_text("utf-8"))["drug"]["simulation"] is True
    found = verify_delivery(folder)
    assert found
    assert found.simulation
    assert found.to_dict()["simulation"] is True


def test_folders_without_one_plan_are_refused(tmp_path: Path) -> None:
    """A file, an empty folder and two plans are refused."""
    with pytest.raises(InvalidInput, match="a folder"):
        verify_delivery(tmp_path / "none")
    with pytest.raises(InvalidInput, match="one plan"):
        verify_delivery(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(PLAN.to_json(), encoding="utf-8")
    with pytest.raises(InvalidInput, match="one plan"):
        verify_delivery(tmp_path)
