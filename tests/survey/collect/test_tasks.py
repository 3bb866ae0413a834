"""The tasks of a run: what they share in a process is of this run alone, and is forgotten with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect import tasks
from ldpopt.survey.collect.privatize import privatize
from ldpopt.survey.collect.randomness.randomness import Fresh, Memoised
from ldpopt.survey.collect.randomness.secret import create_key
from ldpopt.survey.collect.tasks import Job, PrivatizePartition
from ldpopt.survey.collect.workfolder import WorkFolder
from ldpopt.survey.plan.plan import Plan, make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec


def plan(respondent: str | None = None, share: float = 0.75) -> Plan:
    spec = SurveySpec("s", (QuestionSpec("q", ("no", "yes")),), respondent=respondent)
    return make_plan(spec, {"q": [[share, 1 - share], [1 - share, share]]})


def answers(folder: Path, values: list[str]) -> Path:
    path = folder / "answers.csv"
    pd.DataFrame({"id": range(len(values)), "q": values}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("values", [["no", "yes"], ["no", "perhaps"]])
def test_keys_are_forgotten_when_a_run_ends(tmp_path: Path, values: list[str]) -> None:
    """Nothing that tasks share, the key among it, stays in the process, whether the run ends well or is refused."""
    given = answers(tmp_path, values)
    if "perhaps" in values:
        with pytest.raises(InvalidInput):
            privatize(plan(), given, tmp_path / "out", Fresh())
    else:
        privatize(plan(), given, tmp_path / "out", Fresh())
    assert tasks._ready.cache_info().currsize == 0


def test_a_task_takes_no_other_plan_key_or_folder(tmp_path: Path) -> None:
    """The plan, the key and the state must be those that the caller named, whatever lies in the folder."""
    create_key(tmp_path / "key")
    create_key(tmp_path / "other")
    made = plan("id")
    folder = WorkFolder.create(
        tmp_path / ".out.partial", made, [answers(tmp_path, ["no", "yes"])], Memoised(tmp_path / "key"), "csv"
    )
    job = Job(str(folder.path), folder.seal, made.checksum, str(tmp_path / "key"))
    for wrong, said in (
        (replace(job, plan=plan("id", 0.8).checksum), "plan"),
        (replace(job, key_file=str(tmp_path / "other")), "key file"),
        (replace(job, seal="0" * 64), "work folder"),
    ):
        with pytest.raises(InvalidInput, match=said):
            PrivatizePartition(wrong)(0)
        tasks.forget()
    with pytest.raises(InvalidInput, match="rows to leave out"):
        PrivatizePartition(job)(0)
    tasks.forget()
    assert not folder.part(0).exists()
