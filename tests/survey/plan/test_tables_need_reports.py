"""Tables of fewer respondents than planned are refused, and requested tables are planned to be estimable."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
from ldpopt_survey.plan.reported_precision import is_table_estimable, respondents_for_table

SURVEY = """
[survey]
name = "pair"
[budget]
epsilon = 1.0
together = [["a", "b"]]
[[questions]]
name = "a"
answers = ["x", "y", "z"]
[[questions]]
name = "b"
answers = ["x", "y"]
"""


def test_a_table_of_a_few_respondents_is_refused_with_the_number_that_is_enough(run: Any, tmp_path: Path) -> None:
    """The planned number of respondents is no reason to print the table of three."""
    (tmp_path / "survey.toml").write_text(SURVEY)
    assert run("survey", "plan", "survey.toml").exit_code == 0
    rng = np.random.default_rng(3)

    def table(n: int) -> Any:
        rows = [f"{a},{b}" for a, b in zip(rng.choice(list("xyz"), n), rng.choice(list("xy"), n), strict=True)]
        (tmp_path / "answers.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
        simulated = ("--simulate", n, "-o", f"{n}.csv")
        assert run("survey", "privatize", "plan.json", "answers.csv", *simulated).exit_code == 0
        return run("survey", "table", "plan.json", f"{n}.csv", "a", "b")

    refused = table(12)
    assert refused.exit_code == 2
    found = re.search(r"expected at least ([\d,]+) respondents, as its rarest reports require, got 12", refused.stderr)
    assert found is not None
    assert table(int(found[1].replace(",", ""))).exit_code == 0  # the remedy


def test_a_requested_table_is_estimable_with_the_planned_respondents() -> None:
    # By the widths of its cells alone, 1,494 respondents would do, whose rarest cells have too few reports.
    questions = (
        QuestionSpec("a", ("x", "y")),
        QuestionSpec("b", ("p", "q", "r", "s"), pilot=[0.3, 0.02, 0.16, 0.52]),
    )
    planned = plan_survey(SurveySpec("pair", questions, epsilon=8.0, together=(("a", "b"),)))
    needed = respondents_for_table(planned.plan, ("a", "b"))
    assert planned.for_targets < needed <= planned.respondents
    assert all(precise.estimable for precise in planned.tables)
    assert is_table_estimable(planned.plan, ("a", "b"), planned.respondents)
    assert not is_table_estimable(planned.plan, ("a", "b"), math.floor(0.7 * needed))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program on a list of arguments, in this process; gives typer's result."""
    from typer.testing import CliRunner

    from ldpopt.cli import app

    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])
