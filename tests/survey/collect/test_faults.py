"""Whatever file operation of a run fails, and wherever it is killed, the same call ends with the same reports."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import Faults, Killed, everything

from ldpopt.errors import InvalidInput
from ldpopt.survey.collect.coding import Tally
from ldpopt.survey.collect.privatize import privatize
from ldpopt.survey.collect.randomness import Fresh, Memoised, Randomness
from ldpopt.survey.collect.words import SecretKey, create_key
from ldpopt.survey.plan.plan import Plan, make_plan
from ldpopt.survey.plan.spec import QuestionSpec, SurveySpec

FORMS = [f"{kind} {form} {random}" for kind in ("csv", "parquet") for form in ("file", "folder")
         for random in ("fresh", "memoised")]  # fmt: skip
CANARY = b"CANARY"


class Run:
    """A small run in one of the output forms: two files of answers, a policy that maps answers, ids or none."""

    def __init__(self, folder: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
        import pandas as pd

        kind, shape, self.random = form.split()
        self.folder = folder
        self.name = "reports" if shape == "folder" else f"reports.{kind}"
        memoised = self.random == "memoised"
        spec = SurveySpec("s", (QuestionSpec("q", (0, 1, 2), unknown=0),), respondent="id" if memoised else None)
        self.plan: Plan = make_plan(spec, {"q": (np.ones((3, 3)) + np.eye(3)) / 4})
        (folder / "raw").mkdir()
        for file in range(2):
            raw = pd.DataFrame({"id": [f"CANARY-{file}-{i}" for i in range(4)], "q": ["0", "1", "2", "CANARY"]})
            raw.to_csv(folder / "raw" / f"{file}.csv", index=False)
            if kind == "parquet":
                (folder / "raw" / f"{file}.csv").unlink()
                raw.to_parquet(folder / "raw" / f"{file}.parquet")
        create_key(folder / "key")
        monkeypatch.setattr(os, "fsync", lambda _: None)  # no power is lost here
        # A run's own key is the same each time, so that its reports can be compared.
        monkeypatch.setattr(SecretKey, "fresh", classmethod(lambda _: SecretKey(bytes(32))))
        self.whole_tally = self.into("whole")
        self.whole = everything(folder / "whole")

    def into(self, place: str) -> Tally:
        (self.folder / place).mkdir(exist_ok=True)
        randomness: Randomness = Memoised(self.folder / "key") if self.random == "memoised" else Fresh()
        return privatize(self.plan, self.folder / "raw", self.folder / place / self.name, randomness)

    def spoiled(self, faults: Faults) -> Tally | BaseException:
        """What came out of a run with faults: its tally or its error."""
        (self.folder / "out").mkdir()
        with faults.striking():
            try:
                return self.into("out")
            except (OSError, InvalidInput, Killed) as error:
                return error

    def check(self, found: Tally | BaseException, what: str) -> None:
        """Nothing raw is left; if the run did not end, the same call ends it, with the same bytes and tally."""
        for path, content in everything(self.folder / "out").items():
            assert CANARY not in content, (what, path)
        if not isinstance(found, Tally):
            assert CANARY.decode() not in str(found)
            found = self.into("out")
        assert found == self.whole_tally, what
        assert everything(self.folder / "out") == self.whole, what
        shutil.rmtree(self.folder / "out")


@pytest.mark.parametrize("kind", ["fail", "full", "kill"])
@pytest.mark.parametrize("form", FORMS)
def test_every_file_operation_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, kind: str) -> None:
    """For every n: if the n-th file operation fails, or the process ends there, a repeated call loses nothing."""
    run = Run(tmp_path, form, monkeypatch)
    struck: dict[str, Any] = {}
    for moment in range(1, 2000):
        faults = Faults(kind, moment)
        found = run.spoiled(faults)
        run.check(found, f"{kind} at {moment}: {faults.struck}, {found!r}")
        if not faults.struck:
            break
        struck[faults.struck] = moment
    assert moment > 60
    assert {"open to write", "fsync"} <= set(struck)
