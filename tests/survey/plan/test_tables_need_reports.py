"""Tables of fewer respondents than planned are refused, and requested tables are planned to be estimable."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Analysis,
    Condition,
    Counts,
    QuestionSpec,
    ReportRows,
    Respondents,
    SurveySpec,
    make_plan,
    plan_survey,
)
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.plan.reported_precision import is_table_estimable, respondents_for_table
from ldpopt_survey.reports.analyses import three_way_rows

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


FLIP = [[0.8, 0.2], [0.2, 0.8]]


def people(sizes: dict[str, int], where: str = "") -> Respondents:
    """Groups of these sizes, whose reports of two questions are all equally frequent."""
    questions = (QuestionSpec("a", ("no", "yes")), QuestionSpec("b", ("p", "q")))
    plan = make_plan(SurveySpec("s", questions, carry=("g",)), {"a": FLIP, "b": FLIP})
    groups = np.repeat(np.array(list(sizes), dtype=object), list(sizes.values()))
    place = np.arange(len(groups))
    rows = ReportRows(
        Counts(plan.checksum, len(groups), {}), {"a": place % 2, "b": place // 2 % 2}, {"g": groups}
    )  # fmt: skip
    return Respondents(plan, rows, Analysis(where=(Condition.parse(where),) if where else ()))


def test_a_group_is_judged_by_its_own_number() -> None:
    """Of 2,000 respondents, the intervals of 20 with such channels had half-widths of more than 50 points."""
    needed = math.ceil(respondents_for_table(people({"x": 4}).plan, ("a", "b")))
    assert 20 < needed < 100
    for size in (5, 20, needed - 1):
        sizes = {"small": size, "rest": 2000 - size}
        assert people(sizes).two_way("a", "b").joint.n == 2000
        with pytest.raises(InvalidInput, match=f"at least {needed} respondents, .*, got {size}$"):
            people(sizes, "g = small").two_way("a", "b")
    sizes = {"small": needed, "rest": 2000 - needed}
    limits = people(sizes, "g = small").two_way("a", "b").joint.intervals()
    assert ((limits.upper - limits.lower) / 2 < 0.505).all()


def test_the_allowance_for_nonresponse_is_not_for_a_group() -> None:
    """A survey of 80 % of the planned respondents counts as the planned one; a group has no planned number."""
    needed = math.ceil(respondents_for_table(people({"x": 4}).plan, ("a", "b")))
    some = math.ceil(0.85 * needed)
    survey, group = people({"x": some}), people({"x": some, "y": 1}, "g = x")
    question = replace(survey.plan.questions[0], expected={"respondents": float(needed)})
    for respondents, is_estimable in ((survey, True), (group, False)):
        plan = replace(respondents.plan, questions=(question, *respondents.plan.questions[1:]))
        assert replace(respondents, plan=plan).is_table_estimable(("a", "b"), some) is is_estimable


def test_respondents_who_left_a_question_out_do_not_count() -> None:
    """Their reports are empty, so that the table is of the others."""
    full = people({"x": 500, "y": 500})
    needed = math.ceil(respondents_for_table(full.plan, ("a", "b")))
    reading = Reading(missing_answers="left out")
    parts = tuple(QuestionSpec(part.name, part.categories, reading=reading) for part in full.plan.questions)
    plan = make_plan(SurveySpec("s", parts, carry=("g",)), {"a": FLIP, "b": FLIP})
    for answered, is_printed in ((needed - 1, False), (needed, True)):
        b = np.where(np.arange(1000) < answered, full.rows.reports["b"], -1)
        rows = replace(full.rows, counts=Counts(plan.checksum, 1000, {}), reports={**full.rows.reports, "b": b})
        respondents = Respondents(plan, rows, Analysis())
        if is_printed:
            assert respondents.two_way("a", "b").joint.n == needed
            assert {cell[2] for cell in respondents.three_way("a", "b", "g").joint.labels} == {"x", "y"}
        else:
            for table in (lambda r: r.two_way("a", "b"), lambda r: r.three_way("a", "b", "g")):
                with pytest.raises(InvalidInput, match=f"at least {needed} respondents, .*, got {answered}$"):
                    table(respondents)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_cells_of_a_small_layer_are_left_out(place: int) -> None:
    """Intervals of layers of five had half-widths of any size within the layer, and covered 74 % as shares of all."""
    respondents = people({"tiny": 20, "rest": 1000})
    names = ["a", "b"]
    names.insert(place, "g")
    table = respondents.three_way(*names)
    assert set(table.left_out) == {cell for cell in table.joint.labels if cell[place] == "tiny"}
    ((label, reason),) = table.reasons_left_out(place).items()
    assert label == "tiny"
    assert reason.endswith("got 20")
    assert f"left out: tiny ({reason})" in repr(table)
    frame = table.to_pandas()
    assert frame["share"].isna().sum() == 4
    tests = respondents.independence_by(*names)
    for percent in ("all", "row", "column", "layer"):
        made = three_way_rows("t", table, tuple(names), percent, tests=tests)
        for row in made.rows:
            is_blank = row[3:] == (None,) * 4
            assert is_blank == ("tiny" in row[:3])
        assert sum("g tiny: no proportions" in note for note in made.notes) == 1
    if place == 2:
        with pytest.raises(InvalidInput, match="layer 'tiny': table: expected at least"):
            table.layer("tiny")
        assert table.layer("rest").joint.n == 1020


def test_layers_of_one_question_and_large_layers_are_complete() -> None:
    assert not people({"x": 900, "y": 800}).three_way("a", "b", "g").left_out
    assert not people({"x": 10, "y": 800}, "g = y").three_way("a", "b", "g").reasons_left_out(2)  # nobody is in x


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program on a list of arguments, in this process; gives typer's result."""
    from typer.testing import CliRunner

    from ldpopt.cli import app

    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])
