"""Targets of tables, groups and regressions: attained by the plan, simulated, and refused where no data can serve."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    AnyOfSpec,
    NumberSpec,
    PlannedSurvey,
    PublicQuestion,
    QuestionPlanner,
    QuestionSpec,
    Reading,
    RelativeError,
    Respondents,
    Simulated,
    Survey,
    SurveySpec,
    TargetSpec,
    asymptotic_covariance,
    plan_survey,
    second_spec,
)
from ldpopt_survey.plan.target_precision import respondents_for_targets

YES_NO = ("no", "yes")
DRUG = QuestionSpec("drug", YES_NO, pilot=(0.8, 0.2))
SMOKES = QuestionSpec("smokes", YES_NO, pilot=(0.7, 0.3))
AGE = QuestionSpec("age", ("a", "b", "c"), pilot=(0.3, 0.3, 0.4))
QUESTIONS = (DRUG, SMOKES, AGE)
REGION = PublicQuestion("region", ("north", "south"))
DEPENDENT = [[0.6, 0.2], [0.1, 0.1]]
Z = 1.959963984540054


def planned(*targets: TargetSpec, epsilon: float = 2.0, **more: Any) -> PlannedSurvey:
    """The plan of three questions with these targets."""
    return plan_survey(SurveySpec("s", **{"questions": QUESTIONS, "epsilon": epsilon, **more}, targets=targets))


def share(cells: np.ndarray) -> np.ndarray:
    """The shares of the column answers in each row."""
    return (cells / cells.sum(axis=1, keepdims=True)).ravel()


def differences(cells: np.ndarray) -> np.ndarray:
    """Of each column answer, its share in a row less that in the other rows together."""
    return np.ravel([own / own.sum() - (cells.sum(0) - own) / (cells.sum() - own.sum()) for own in cells])


def log_odds(cells: np.ndarray) -> np.ndarray:
    """The slope of the first question on the second one, of two answers each."""
    return np.array([np.log(cells[1, 1] * cells[0, 0] / cells[0, 1] / cells[1, 0])])


TABLES: dict[str, tuple[TargetSpec, Callable[[np.ndarray], np.ndarray], Any]] = {
    "cells": (TargetSpec(("drug", "smokes"), half_width=0.04), np.ravel, None),
    "relative": (TargetSpec(("drug", "smokes"), coefficient_of_variation=0.12), lambda p: np.log(p).ravel(), None),
    "three answers": (TargetSpec(("drug", "age"), half_width=0.03), np.ravel, None),
    "other order": (TargetSpec(("age", "drug"), half_width=0.03), np.ravel, None),
    "dependent": (TargetSpec(("drug", "smokes"), half_width=0.04, pilot=DEPENDENT), np.ravel, DEPENDENT),
    "association": (TargetSpec(("drug", "smokes"), quantity="association", half_width=0.1), differences, None),
    "of three": (TargetSpec(("age", "drug"), quantity="association", half_width=0.1, pilot=[[0.2, 0.1], [0.25, 0.05],
                 [0.35, 0.05]]), differences, [[0.2, 0.1], [0.25, 0.05], [0.35, 0.05]]),
    "groups": (TargetSpec(("drug",), by="age", half_width=0.08), share, None),
    "relative in groups": (TargetSpec(("drug",), by="smokes", coefficient_of_variation=0.2),
                           lambda p: np.log(share(p)), None),
    "regression": (TargetSpec(regression="drug ~ smokes", half_width=0.4), log_odds, None),
    "dependent regression": (TargetSpec(regression="drug ~ smokes", half_width=0.4, pilot=DEPENDENT), log_odds,
                             DEPENDENT),
}  # fmt: skip
"""Targets with the function of the table that they are about, and the table, where answers are dependent."""


def _law(names: tuple[str, ...], given: Any) -> np.ndarray:
    known = {question.name: question.shares for question in QUESTIONS}
    return np.multiply.outer(*(known[name] for name in names)) if given is None else np.array(given)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_precision_of_a_table_is_its_standard_error(name: str, epsilon: float) -> None:
    """By the covariance of the pair's report, and numeric derivatives of what is estimated."""
    target, function, given = TABLES[name]
    made = planned(target, epsilon=epsilon)
    names = tuple(n for n in ((target.by,) if target.by else ()) + target.names if n)
    (holder,) = [question for question in made.plan.questions if {p.name for p in question.answers} == set(names)]
    law = _law(names, given)
    order = [[part.name for part in holder.answers].index(asked) for asked in names]
    turned = law.transpose(np.argsort(order))
    covariance = asymptotic_covariance(holder.channel.matrix, turned.ravel())
    places = np.arange(law.size).reshape(turned.shape).transpose(order).ravel()
    covariance = covariance[np.ix_(places, places)] / (float(holder.probability) * made.respondents)
    steps = np.eye(law.size) * 1e-6
    slopes = [(function((law.ravel() + s).reshape(law.shape)) - function((law.ravel() - s).reshape(law.shape))) / 2e-6
              for s in steps]  # fmt: skip
    variances = np.einsum("ki,kl,li->i", np.array(slopes), covariance, np.array(slopes))
    (told,) = made.targets
    attained = math.sqrt(variances.max()) * (Z if target.half_width is not None else 1.0)
    assert told.value == pytest.approx(attained, rel=1e-4)
    assert told.value <= told.limit * (1 + 1e-9)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("name", TABLES)
def test_fewer_respondents_do_not_attain_it(name: str) -> None:
    """The number is the least with the plan's channels: with a hundredth fewer something is missed."""
    target = TABLES[name][0]
    made = planned(target)
    spec = SurveySpec("s", QUESTIONS, epsilon=2.0, targets=(target,))
    assert made.respondents <= math.ceil(respondents_for_targets(made.plan, spec)) * 1.01 or all(
        width.half_width > 0.0495 for width in made.precision if width.questions[0] not in target.names
    )
    narrower = replace(target, **{m: 0.8 * v for m in ("half_width", "coefficient_of_variation")
                                  if (v := getattr(target, m)) is not None})  # fmt: skip
    assert respondents_for_targets(made.plan, replace(spec, targets=(narrower,))) > made.respondents * 1.2


def _estimates(name: str, people: Respondents) -> np.ndarray:
    target, function, _ = TABLES[name]
    if target.regression:
        return people.logit_by_moments(target.regression).coefficients.ravel()[1:2]
    row, column = ((target.by,) if target.by else ()) + target.names
    return function(np.maximum(people.two_way(row, column).proportions, 1e-9))


@pytest.mark.full
@pytest.mark.parametrize("name", TABLES)
def test_the_planned_precision_is_attained_in_simulated_surveys(name: str, tmp_path: Path) -> None:
    """150 surveys, privatized and estimated: the scatter is at most the target, within the error of simulation."""
    target, _, given = TABLES[name]
    made = planned(target)
    names = tuple(n for n in ((target.by,) if target.by else ()) + target.names if n)
    law, rng, n = _law(names, given), np.random.default_rng(11), made.respondents
    found = []
    for number in range(150):
        pairs = rng.choice(law.size, n, p=law.ravel())
        answers = {asked.name: rng.choice(asked.categories, n, p=asked.shares) for asked in QUESTIONS}
        for place, asked in zip(np.unravel_index(pairs, law.shape), names, strict=True):
            answers[asked] = np.array(next(q for q in QUESTIONS if q.name == asked).categories)[place]
        reports = Survey(made.plan).privatize(pd.DataFrame(answers), Simulated(rng))
        pq.write_table(reports, path := tmp_path / f"{number}.parquet")
        found.append(_estimates(name, Respondents.read(made.plan, path)))
    spread = np.array(found).std(axis=0, ddof=1).max()
    (told,) = made.targets
    wanted = told.limit / (Z if target.half_width is not None else 1.0)
    assert 0.7 * wanted < spread < 1.25 * wanted  # of 2 to 6 scatters known to 6 %


@pytest.mark.parametrize("measure", ["half_width", "coefficient_of_variation"])
def test_the_smallest_group_of_a_public_question_decides(measure: str) -> None:
    """A share s of the respondents tells its answers with s times their information."""
    target = TargetSpec(("drug",), by="region", groups={"north": 0.25, "south": 0.75}, **{measure: 0.1})
    wide = replace(DRUG, half_width=0.5)
    spec = SurveySpec("s", (wide,), epsilon=1.0, public=(REGION,), targets=(target,))
    made, alone = plan_survey(spec), replace(DRUG, half_width=None, coefficient_of_variation=None)
    whole = plan_survey(SurveySpec("s", (replace(alone, **{measure: 0.1}),), epsilon=1.0))
    assert made.respondents == pytest.approx(4 * whole.respondents, abs=4)
    (told,) = made.targets
    assert told.value == pytest.approx(0.1, rel=1e-3)
    assert "north (25 %)" in told.target
    even = replace(target, groups={"north": 0.5, "south": 0.5})
    assert plan_survey(replace(spec, targets=(even,))).respondents == pytest.approx(2 * whole.respondents, abs=2)


@pytest.mark.full
def test_the_precision_of_groups_agrees_with_simulations(tmp_path: Path) -> None:
    """The scatter of a share among a third of the respondents."""
    target = TargetSpec(by="region", groups={"north": 0.3, "south": 0.7}, half_width=0.08)
    made = planned(target, public=(REGION,))
    rng, found = np.random.default_rng(3), []
    for number in range(80):
        n = made.respondents
        answers = {asked.name: rng.choice(asked.categories, n, p=asked.shares) for asked in QUESTIONS}
        answers["region"] = rng.choice(REGION.answers, n, p=(0.3, 0.7))
        pq.write_table(
            Survey(made.plan).privatize(pd.DataFrame(answers), Simulated(rng)), path := tmp_path / f"{number}.parquet"
        )
        people = Respondents.read(made.plan, path, names=["region"])
        found.append([people.two_way("drug", "region").given_column("north").values[0]])
    assert 0.7 * 0.08 < Z * np.std(found, ddof=1) < 1.25 * 0.08


def test_a_mean_in_groups_is_planned_in_its_units() -> None:
    """Hours from 0 to 80: half-width in hours, and a coefficient of variation of the mean."""
    hours = NumberSpec("hours", low=20, high=100, half_width=4)
    groups = {"north": 0.25, "south": 0.75}
    target = TargetSpec(("hours",), by="region", groups=groups, half_width=4)
    spec = SurveySpec("s", (hours,), epsilon=2.0, public=(REGION,), targets=(target,))
    assert plan_survey(spec).respondents == pytest.approx(
        4 * plan_survey(replace(spec, targets=())).respondents, rel=1e-3
    )
    relative = replace(hours, half_width=None, coefficient_of_variation=4 / Z / 60)  # of a mean of 60
    same = plan_survey(SurveySpec("s", (relative,), epsilon=2.0))
    assert same.respondents == pytest.approx(plan_survey(replace(spec, targets=())).respondents, rel=1e-3)
    assert same.plan.question("hours").expected["coefficient_of_variation"] == pytest.approx(4 / Z / 60)


@pytest.mark.parametrize("pilot", [(0.5, 0.5), (0.9, 0.1), (0.6, 0.3, 0.1), tuple(np.arange(1, 17) / 136)])
def test_a_coefficient_of_variation_is_attained_by_every_share(pilot: tuple[float, ...]) -> None:
    """By the exact channel: of each answer, the standard error is at most a tenth of its share."""
    question = QuestionSpec("q", tuple(range(len(pilot))), pilot=pilot, coefficient_of_variation=0.1)
    made = plan_survey(SurveySpec("s", (question,), epsilon=1.5))
    channel = made.plan.question("q").channel.matrix
    errors = np.sqrt(np.diag(asymptotic_covariance(channel, np.array(pilot))) / made.respondents)
    assert (errors / pilot).max() <= 0.1 * (1 + 1e-9)
    assert (errors / pilot).max() >= 0.0995
    assert made.respondents <= QuestionPlanner(pilot).respondents(RelativeError(0.1), 1.5) * 1.001
    assert made.least <= made.respondents


def test_without_a_half_width_a_coefficient_of_variation_is_the_only_target() -> None:
    """A wide one needs fewer respondents than five points; both together need what the harder one does."""
    wide = QuestionSpec("q", YES_NO, pilot=(0.5, 0.5), coefficient_of_variation=0.5)
    questions = wide, replace(wide, half_width=0.05), replace(wide, coefficient_of_variation=None)
    numbers = [plan_survey(SurveySpec("s", (question,), epsilon=1.0)).respondents for question in questions]
    assert numbers[0] < 100 < numbers[1] == numbers[2]


def test_the_proved_least_number_does_not_count_groups() -> None:
    """Whom to ask what may depend on a public group, so the bound is that of the questions alone."""
    target = TargetSpec(by="region", groups={"north": 0.1, "south": 0.9}, half_width=0.05)
    plain, more = planned(), planned(target, public=(REGION,))
    assert more.least == plain.least
    assert more.respondents > 5 * plain.respondents


@pytest.mark.parametrize("design", ["split", None])
def test_questions_asked_of_everybody_give_their_table(design: str | None) -> None:
    """Split, or with an epsilon each: the product of their channels is counted, without another design."""
    questions = QUESTIONS if design else tuple(replace(question, epsilon=1.0) for question in QUESTIONS)
    target = TargetSpec(("drug", "smokes"), half_width=0.04)
    made = planned(target, questions=questions, epsilon=3.0, design=design)
    q, r = (made.plan.question(name) for name in ("drug", "smokes"))
    matrix, law = np.kron(q.channel.matrix, r.channel.matrix), np.kron(DRUG.shares, SMOKES.shares)
    widest = Z * math.sqrt(np.diag(asymptotic_covariance(matrix, law)).max() / made.respondents)
    assert widest == pytest.approx(0.04, rel=2e-3)
    assert not math.isfinite(made.split) or made.split == made.respondents


def test_more_than_two_questions_are_asked_together_for_a_regression() -> None:
    """Two predictors: one booklet asks all three, and says what it attains."""
    made = planned(TargetSpec(regression="drug ~ smokes + age", half_width=0.8), epsilon=3.0)
    assert any({p.name for p in question.answers} == {"drug", "smokes", "age"} for question in made.plan.questions)
    (told,) = made.targets
    assert 0.3 < told.value <= 0.8
    assert told.estimate in ("smokes[yes]", "age[b]", "age[c]")


TOML = """
[survey]
name = "s"
[budget]
epsilon = 2.0
[[questions]]
name = "drug"
categories = ["no", "yes"]
pilot = [0.8, 0.2]
coefficient_of_variation = 0.2
[[questions]]
name = "smokes"
categories = ["no", "yes"]
pilot = [0.7, 0.3]
[[public]]
name = "region"
answers = ["north", "south"]
[[targets]]
questions = ["drug", "smokes"]
half_width = 0.05
pilot = [[0.6, 0.2], [0.1, 0.1]]
[[targets]]
by = "region"
groups = { north = 0.4, south = 0.6 }
half_width = 0.08
[[targets]]
regression = "drug ~ smokes"
half_width = 0.6
"""


def test_targets_are_read_from_files_and_reported_by_the_plan() -> None:
    """From survey.toml to the words and the JSON of the plan; a plan's own file has none of it."""
    spec = SurveySpec.from_toml(TOML)
    made = plan_survey(spec)
    told = json.loads(json.dumps(made.to_dict()))["targets"]
    assert [one["target"] for one in told] == [
        "cells of drug x smokes", "drug by region, north (40 %)", "smokes by region, north (40 %)", "drug ~ smokes"
    ]  # fmt: skip
    assert all(0 < one["value"] <= one["limit"] * (1 + 1e-9) for one in told)
    assert "drug ~ smokes: half width" in repr(made)
    assert "targets" not in json.loads(made.plan.to_json())
    assert [one.respondents for one in plan_survey(spec, n=500).targets] == [500.0] * 4
    assert any(one.value > one.limit for one in plan_survey(spec, n=500).targets)


def test_a_second_wave_keeps_the_odds_ratios_of_a_table() -> None:
    """Its pilots are the first wave's estimates; the table of a target follows these."""
    spec = SurveySpec.from_toml(TOML)
    survey = Survey(plan_survey(spec).plan)
    rng = np.random.default_rng(1)
    answers = pd.DataFrame({"drug": rng.choice(YES_NO, 4000, p=(0.6, 0.4)), "smokes": rng.choice(YES_NO, 4000),
                            "region": rng.choice(REGION.answers, 4000)})  # fmt: skip
    reports = survey.privatize(answers, Simulated(rng)).to_pandas()
    first = {name: survey.estimate(name, reports) for name in ("drug", "smokes")}
    second = second_spec(spec, first)
    table = np.array(second.targets[0].pilot)
    assert log_odds(table) == pytest.approx(log_odds(np.array(DEPENDENT)))
    assert table.sum(axis=1) == pytest.approx(second.questions[0].pilot)
    assert plan_survey(second).targets[0].value <= 0.05 * (1 + 1e-9)


OTHER = QuestionSpec("rare", ("no", "some", "yes"), pilot=(0.5, 0.5, 0.0))
PAID = AnyOfSpec("paid", options=("cash", "card"))
HOURS = NumberSpec("hours", low=0, high=80)
OPEN = replace(DRUG, reading=Reading(missing_answers="left out"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"questions": ("drug", "smokes")}, "half_width or coefficient_of_variation, got neither"),
        ({"questions": ("drug", "smokes"), "half_width": 0.1, "coefficient_of_variation": 0.1}, "got both"),
        ({"questions": ("drug",), "half_width": 0.1}, "half_width in \\[\\[questions\\]\\]"),
        ({"questions": ("drug", "drug"), "half_width": 0.1}, "distinct"),
        ({"questions": ("drug", "smokes"), "half_width": 5}, "half_width: expected a number in \\(0, 1\\)"),
        ({"questions": ("drug", "smokes"), "half_width": 1e-300}, "standard error of at least"),
        ({"questions": ("drug", "smokes"), "half_width": math.nan}, "half_width"),
        ({"questions": ("drug", "smokes"), "coefficient_of_variation": 1e-300}, "standard error of at least"),
        ({"questions": ("drug", "smokes"), "quantity": "association", "coefficient_of_variation": 0.1},
         "half_width and no"),
        ({"questions": ("drug", "other"), "half_width": 0.1}, "names of questions"),
        ({"questions": ("drug", "paid"), "half_width": 0.1}, "one of its options, such as 'paid: cash'"),
        ({"questions": ("drug", "hours"), "half_width": 0.1}, "public `by`"),
        ({"questions": ("drug", "rare"), "half_width": 0.1}, "shares above 0"),
        ({"questions": ("drug", "open"), "half_width": 0.1}, 'missing_answers = "category"'),
        ({"questions": ("drug",), "by": "rare", "half_width": 0.1}, "share above 0 of 'yes'"),
        ({"questions": ("drug",), "by": "nothing", "half_width": 0.1}, "a public question, a carried column"),
        ({"questions": ("drug",), "by": "region", "half_width": 0.1}, 'such as .* "north" = 0.5, "south" = 0.5'),
        ({"by": "region", "groups": {"north": 0.5, "east": 0.5}, "half_width": 0.1}, "share of each group"),
        ({"by": "region", "groups": {"north": 0.5, "south": 0.6}, "half_width": 0.1}, "the sum 1"),
        ({"by": "region", "groups": {"north": 0.5, "south": 0.5}, "half_width": 5}, "less than the range, 1"),
        ({"questions": ("smokes",), "by": "drug", "groups": {"no": 0.5, "yes": 0.5}, "half_width": 0.1}, "pilot of"),
        ({"questions": ("drug", "smokes"), "half_width": 0.1, "pilot": [[0.5, 0.5]]}, "lists of 2 x 2 shares"),
        ({"questions": ("drug", "smokes"), "half_width": 0.1, "pilot": "x"}, "lists of 2 x 2 shares"),
        ({"questions": ("drug", "smokes"), "half_width": 0.1, "pilot": [[0.7, 0.1], [0.2, 0]]}, "shares above 0"),
        ({"questions": ("drug", "smokes"), "half_width": 0.1, "pilot": [[0.4, 0.3], [0.2, 0.1]]},
         r"pilot = \[0.7, 0.3\] of 'drug'"),
        ({"regression": "drug ~ region", "half_width": 0.5}, "questions alone"),
        ({"regression": "drug ~ ", "half_width": 0.5}, "formula"),
        ({"regression": "age ~ drug", "half_width": 0.5}, "two answers"),
        ({"regression": "drug ~ smokes", "coefficient_of_variation": 0.5}, "coefficients may be 0"),
        ({"regression": "drug ~ smokes", "by": "age", "half_width": 0.5}, "without questions, quantity or by"),
    ],
)  # fmt: skip
def test_targets_that_no_data_serve_are_refused(values: dict[str, Any], said: str) -> None:
    """With the place and the fix."""
    questions = [DRUG, SMOKES, AGE]
    questions += [q for q in (OTHER, PAID, HOURS) if any(q.name in str(value) for value in values.values())]
    questions += [replace(OPEN, name="open", column="open")] if "open" in values.get("questions", ()) else []
    with pytest.raises(InvalidInput, match=said):
        plan_survey(SurveySpec("s", tuple(questions), epsilon=2.0, public=(REGION,), targets=(TargetSpec(**values),)))


@pytest.mark.parametrize("design", ["one question", "joint"])
def test_a_target_of_a_table_refuses_designs_without_it(design: str) -> None:
    """Nothing is ignored in silence."""
    with pytest.raises(InvalidInput, match='"booklets" asks such questions together'):
        planned(TargetSpec(("drug", "smokes"), half_width=0.1), design=design)


def test_a_table_of_questions_that_nobody_is_asked_together_is_refused() -> None:
    """One of everybody and one of some are a pair; two tables with different pilots of the same pair are not."""
    target = TargetSpec(("drug", "smokes"), half_width=0.1)
    made = planned(target, everyone=("drug",), design="booklets")
    assert made.targets[0].value <= 0.1 * (1 + 1e-9)
    with pytest.raises(InvalidInput, match="one for the same questions"):
        planned(replace(target, pilot=DEPENDENT), replace(target, pilot=[[0.57, 0.23], [0.13, 0.07]]))


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, math.inf, "x"])
def test_limits_that_are_none_are_refused(limit: Any) -> None:
    """A comparison with them would be false, or true, for every number of respondents."""
    with pytest.raises(InvalidInput):
        RelativeError(limit)
    with pytest.raises(InvalidInput):
        TargetSpec(("drug", "smokes"), half_width=limit)
    with pytest.raises(InvalidInput):
        QuestionSpec("q", YES_NO, coefficient_of_variation=limit)


def test_a_share_0_has_no_coefficient_of_variation() -> None:
    """It is refused at the border, with the fix."""
    with pytest.raises(InvalidInput, match="join answers"):
        QuestionSpec("q", (1, 2, 3), pilot=(0.5, 0.5, 0.0), coefficient_of_variation=0.1)
    with pytest.raises(InvalidInput, match="half-width"):
        QuestionPlanner((1.0, 0.0)).respondents(RelativeError(0.1), 1.0)
    with pytest.raises(InvalidInput, match="other than 0"):
        NumberSpec("balance", low=-10, high=10, coefficient_of_variation=0.1)


def test_equal_pairs_of_questions_get_equal_plans() -> None:
    """Names and order decide nothing: six even pairs, each with the same width."""
    four = tuple(QuestionSpec(name, YES_NO) for name in "abcd")
    targets = tuple(TargetSpec(pair, half_width=0.06) for pair in itertools.combinations("abcd", 2))
    made = planned(*targets, questions=four, epsilon=2.0)
    turned = planned(*(replace(t, questions=t.questions[::-1]) for t in targets[::-1]), questions=four, epsilon=2.0)
    assert made.respondents == turned.respondents
    assert [one.value for one in made.targets] == pytest.approx([0.06] * 6, rel=1e-2)


EIGHT = tuple(QuestionSpec(name, tuple(range(8)), pilot=(0.3, *[0.1] * 7)) for name in "ab")
ROUTED = (DRUG, QuestionSpec("often", ("low", "high"), asked_if={"drug": ["yes"]}), SMOKES)
MANY = AnyOfSpec("paid", options=tuple("abcdef"))


@pytest.mark.full(but=5)
@pytest.mark.parametrize(
    ("questions", "target"),
    [
        (ROUTED, TargetSpec(("drug", "often"), half_width=0.04)),
        (ROUTED, TargetSpec(("drug", "often"), coefficient_of_variation=0.2)),
        (ROUTED, TargetSpec(("often", "smokes"), quantity="association", half_width=0.2)),
        (ROUTED, TargetSpec(("often",), by="smokes", half_width=0.2)),
        (ROUTED, TargetSpec(by="region", groups={"north": 0.5, "south": 0.5}, half_width=0.1)),
        ((PAID, DRUG), TargetSpec(("paid: cash", "paid: card"), half_width=0.04)),
        ((PAID, DRUG), TargetSpec(("drug", "paid: card"), half_width=0.04)),
        ((PAID, DRUG), TargetSpec(("paid",), by="drug", half_width=0.2)),
        ((PAID, DRUG), TargetSpec(("paid",), by="region", groups={"north": 0.5, "south": 0.5}, half_width=0.1)),
        ((MANY,), TargetSpec(("paid: a", "paid: f"), half_width=0.1)),
        (EIGHT, TargetSpec(("a", "b"), half_width=0.03)),
        (EIGHT, TargetSpec(regression="smokes ~ a", half_width=2.0)),
    ],
)
@pytest.mark.parametrize("eta", [None, 0.5])
def test_targets_of_every_kind_of_question_are_attained(
    questions: tuple[QuestionSpec, ...], target: TargetSpec, eta: float | None
) -> None:
    """Routes, options and many answers: attained, by a plan within its budget, and by no more than the plan says."""
    more = (SMOKES,) if target.regression else ()
    spec = SurveySpec("s", (*questions, *more), epsilon=3.0, eta=eta, public=(REGION,), targets=(target,))
    made = plan_survey(spec)
    assert made.plan.epsilon <= 3.0
    assert made.plan.eta <= (eta or 1.0)
    assert made.targets
    assert all(0 < one.value <= one.limit * (1 + 1e-9) for one in made.targets)


def test_the_default_design_is_not_worse_than_the_alternative_that_it_states() -> None:
    # Booklets of two questions meet the targets of all with 764 respondents, but leave the table too few reports.
    questions = (
        QuestionSpec("a", ("x", "y", "z"), pilot=[0.4625387, 0.14624828, 0.39121302]),
        QuestionSpec("b", ("p", "q", "r", "s")),
        AnyOfSpec("c", options=("o", "u"), pilot=[0.589, 0.498]),
    )
    target = TargetSpec(("b",), by="a", half_width=0.211)
    planned = plan_survey(SurveySpec("groups", questions, epsilon=13.504, targets=(target,)))
    assert planned.respondents == planned.one_question < 2_000
    assert planned.targets[0].estimable
