"""`privatize` with force: what it replaces, what it never replaces, and that no answer gets a second report by it."""

import os
from pathlib import Path

import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey.collect import commit
from ldpopt_survey.collect.aggregate import aggregate
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Memoized, Simulated
from ldpopt_survey.collect.words import create_key
from ldpopt_survey.plan.plan import make_plan
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec

FLIP = {"q": [[0.75, 0.25], [0.25, 0.75]]}
PLAN = make_plan(SurveySpec("s", (QuestionSpec("q", ("no", "yes")),)), FLIP)
NAMED = make_plan(SurveySpec("s", (QuestionSpec("q", ("no", "yes")),), respondent="id"), FLIP)
OUTPUTS = ("reports.csv", "reports.parquet", "reports")


def answers(folder: Path, rows: int, shift: int = 0) -> Path:
    path = folder / f"answers-{rows}-{shift}.csv"
    made = {"id": range(shift, shift + rows), "q": ["yes" if (i * i + shift) % 3 else "no" for i in range(rows)]}
    pd.DataFrame(made).to_csv(path, index=False)
    return path


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", OUTPUTS)
def test_simulated_reports_are_replaced(tmp_path: Path, name: str) -> None:
    """Without force the taken path is refused with the fix; with it the new reports are whole and alone."""
    out = tmp_path / name
    privatize(PLAN, answers(tmp_path, 40), out, Simulated(1))
    before = left(tmp_path)
    with pytest.raises(InvalidInput, match=r"not taken \(--force, force=True"):
        privatize(PLAN, answers(tmp_path, 60), out, Simulated(2))
    assert aggregate(PLAN, out).rows == 40
    privatize(PLAN, answers(tmp_path, 60), out, Simulated(2), force=True)
    assert aggregate(PLAN, out).rows == 60
    assert left(tmp_path) == before | {"answers-60-0.csv"}
    privatize(PLAN, answers(tmp_path, 60), tmp_path / f"new-{name}", Simulated(3), force=True)
    assert aggregate(PLAN, tmp_path / f"new-{name}").rows == 60


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_ledger_refuses_a_second_report_of_the_same_answers(tmp_path: Path, name: str) -> None:
    """Reports of other people may be replaced; those of the same answers may not be drawn again, and stay."""
    out, ledger = tmp_path / name, tmp_path / "ledger"
    privatize(PLAN, answers(tmp_path, 300), out, ledger=ledger)
    first = aggregate(PLAN, out)
    with pytest.raises(InvalidInput, match="round"):
        privatize(PLAN, answers(tmp_path, 300), out, ledger=ledger, force=True)
    assert aggregate(PLAN, out).sources == first.sources
    privatize(PLAN, answers(tmp_path, 301, 1000), out, ledger=ledger, force=True)
    assert aggregate(PLAN, out).rows == 301
    with pytest.raises(InvalidInput, match="round"):  # what was spent on the replaced ones stays spent
        privatize(PLAN, answers(tmp_path, 300), out, ledger=ledger, force=True)


def test_the_same_key_makes_the_same_reports_again(tmp_path: Path) -> None:
    """Memoized reports are replaced by the same bytes."""
    create_key(tmp_path / "key")
    out, ledger = tmp_path / "r.csv", tmp_path / "ledger"
    privatize(NAMED, answers(tmp_path, 50), out, Memoized(tmp_path / "key"), ledger=ledger)
    content = out.read_bytes()
    privatize(NAMED, answers(tmp_path, 50), out, Memoized(tmp_path / "key"), ledger=ledger, force=True)
    assert out.read_bytes() == content


@pytest.mark.parametrize("name", OUTPUTS)
def test_reports_of_people_are_not_replaced_by_simulated_ones(tmp_path: Path, name: str) -> None:
    """A trial under the same name would lose them."""
    out = tmp_path / name
    privatize(PLAN, answers(tmp_path, 40), out)
    with pytest.raises(InvalidInput, match="reports of people"):
        privatize(PLAN, answers(tmp_path, 40), out, Simulated(2), force=True)
    assert aggregate(PLAN, out).rows == 40


def test_nothing_else_is_replaced(tmp_path: Path) -> None:
    """Answers, other files, folders with other files, a folder for a file, links."""
    source = answers(tmp_path, 40)
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("years of work")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere.csv")
    privatize(PLAN, source, tmp_path / "mixed", Simulated(1))
    (tmp_path / "mixed" / "thesis.txt").write_text("years of work")
    for name in (source.name, "other.parquet", "folder", "folder.csv", "link.csv", "mixed"):
        with pytest.raises(InvalidInput):
            privatize(PLAN, source, tmp_path / name, Simulated(2), force=True)
    assert source.read_text().startswith("id,q")
    assert (tmp_path / "folder" / "thesis.txt").exists()
    assert (tmp_path / "mixed" / "thesis.txt").exists()
    assert os.path.islink(tmp_path / "link.csv")


@pytest.mark.full
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("step", ["os.replace", "rename"])
def test_a_kill_while_replacing_loses_neither(tmp_path: Path, name: str, step: str, monkeypatch) -> None:
    """At every move of a file the run is killed once; the same call ends with whole new reports, and no old ones."""
    out, old, new = tmp_path / name, answers(tmp_path, 40), answers(tmp_path, 60)
    kills = 0
    for at in range(6):
        privatize(PLAN, old, out, Simulated(1), force=True)
        calls = 0

        def killed(function, last=at + 1):
            def moved(*arguments):
                nonlocal calls
                calls += 1
                if calls == last:
                    raise KeyboardInterrupt
                return function(*arguments)

            return moved

        with monkeypatch.context() as patched:
            if step == "rename":
                patched.setattr(Path, "rename", killed(Path.rename))
            else:
                patched.setattr(commit.os, "replace", killed(os.replace))
            try:
                privatize(PLAN, new, out, Simulated(2), force=True)
            except KeyboardInterrupt:
                kills += 1
        privatize(PLAN, new, out, Simulated(2), force=True)
        assert aggregate(PLAN, out).rows == 60
    assert kills
    assert {path for path in left(tmp_path) if path.endswith((".replaced", ".partial", ".finished"))} == set()
