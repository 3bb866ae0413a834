"""Booklets: the fewest respondents for a whole questionnaire, and what one respondent's reports reveal together."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import load_respondents
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.privacy import local_dp
from ldpopt_survey import QuestionSpec, Reading, SurveySpec, plan_survey
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.planned_question import NOT_APPLICABLE
from ldpopt_survey.plan.units import respondent_information, respondents_bound, units_of

YES_NO = ("no", "yes")
Z = 1.959963984540054


def yes_no(m: int, **more: object) -> tuple[QuestionSpec, ...]:
    """m yes/no questions."""
    return tuple(QuestionSpec(f"q{i}", YES_NO, **more) for i in range(m))


DRUGS = (
    QuestionSpec("drug", YES_NO),
    QuestionSpec("which", ("a", "b"), asked_if={"drug": ["yes"]}),
    QuestionSpec("party", ("x", "y", "z"), half_width=0.08),
)
DRUGS_SPEC = SurveySpec("s", DRUGS, epsilon=1.5)


@pytest.mark.parametrize(
    ("m", "epsilon", "split", "best"),
    [(2, 1.0, 6404, 3598), (5, 1.0, 38671, 8995), (10, 1.0, 153915, 17989), (30, 1.0, 1383182, 53966)],
)
def test_one_question_at_random_is_planned_and_proved_least(m: int, epsilon: float, split: int, best: int) -> None:
    """At epsilon = 1 the plan needs the respondents of theory.md 12, and no survey needs fewer."""
    planned = plan_survey(SurveySpec("s", yes_no(m), epsilon=epsilon))
    assert (planned.respondents, planned.one_question, planned.least) == (best, best, best)
    assert planned.split == pytest.approx(split, rel=2e-4)
    assert planned.plan.epsilon <= epsilon
    assert sum(question.probability for question in planned.plan.booklets) == 1


def test_a_question_that_leaves_missing_answers_out_shares_no_report() -> None:
    """Its empty report would leave out the answers beside it, also of people who gave them."""
    left_out = Reading(missing_answers="left out")
    asked = (*yes_no(3), QuestionSpec("open", YES_NO, reading=left_out))
    planned = plan_survey(SurveySpec("s", asked, epsilon=2.5))
    booklets = [[one.name for one in question.answers] for question in planned.plan.booklets]
    assert ["open"] in booklets
    assert max(map(len, booklets)) > 1
    assert all("open" not in names for names in booklets if len(names) > 1)
    with pytest.raises(InvalidInput, match='missing_answers = "category"'):
        SurveySpec("s", asked, epsilon=2.5, together=(("q0", "open"),))


@pytest.mark.parametrize("tested", [0, 1])
@pytest.mark.parametrize("width", [None, 0.1])
def test_a_power_is_not_promised_where_questions_share_a_report(tested: int, width: float | None) -> None:
    """Nothing plans for a test of questions that hang on one another, so a target power is refused and not ignored."""
    asked = [QuestionSpec("a", YES_NO), QuestionSpec("b", YES_NO, asked_if={"a": ["yes"]})]
    asked[tested] = replace(asked[tested], alternative=(0.3, 0.7), half_width=width)
    with pytest.raises(InvalidInput, match="alternative"):
        plan_survey(SurveySpec("s", tuple(asked), epsilon=1.0))


@pytest.mark.parametrize("pilot", [None, (0.2, 0.8)])
def test_a_plan_compares_its_respondents_with_alternatives(pilot: tuple[float, ...] | None) -> None:
    """This includes plans that ask everybody everything in one report, without a choice among booklets."""
    planned = plan_survey(SurveySpec("s", yes_no(3, pilot=pilot), epsilon=3.0))
    asked = "one booklet" if planned.plan.booklets else "everything"
    assert f"  {planned.respondents:,} respondents, each asked {asked} (" in repr(planned)
    about = "" if planned.split == planned.respondents else "about "
    assert f"split over the questions {about}{planned.split:,.0f}" in repr(planned)
    known = "proved" if planned.least == planned.respondents else "by a quick closed-form bound, which is not the least"
    said = f"if the answers are independent, any survey needs {planned.least:,}"
    assert known in next(line for line in repr(planned).splitlines() if said in line)
    assert "cells" not in repr(planned)


def test_a_plan_below_the_least_number_of_respondents_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """No survey of fewer people meets the targets, so a plan that says so is refused and not told as the least."""
    forged = replace(respondents_bound(units_of(yes_no(2)), 1.0), least=10**9)
    monkeypatch.setattr("ldpopt_survey.plan.planning.respondents_bound", lambda *_: forged)
    with pytest.raises(SolverError, match="mistake of the planner"):
        plan_survey(SurveySpec("s", yes_no(2), epsilon=1.0))


@pytest.mark.parametrize(("m", "epsilon"), [(2, 2.0), (3, 2.0), (7, 2.0), (10, 3.0), (4, 5.0)])
def test_longer_booklets_reach_the_rule(m: int, epsilon: float) -> None:
    """Even yes/no questions need m (z/2w)^2 / max_c rho_c^2 respondents; up to seven questions this is least."""
    planned = plan_survey(SurveySpec("s", yes_no(m), epsilon=epsilon))
    rho = max(c * ((math.exp(epsilon) - 1) / (2**c + math.exp(epsilon) - 1)) ** 2 for c in range(1, m + 1))
    wanted = m * 0.25 * (Z / 0.05) ** 2 / rho
    assert respondent_information(m, epsilon) == pytest.approx(rho)
    assert wanted <= planned.respondents <= 1.001 * wanted + 1
    assert planned.respondents <= min(planned.one_question, planned.split)
    if m <= 7:
        assert wanted <= planned.least + 1e-6 <= wanted + 1
    assert planned.least <= planned.respondents


@pytest.mark.parametrize(("k", "epsilon", "questions"), [(3, 1.0, 3), (4, 0.5, 4), (10, 1.0, 4)])
def test_several_answers_are_near_the_bound(k: int, epsilon: float, questions: int) -> None:
    """Questions of 3 to 10 answers are within 7 % of the least number at epsilon up to 1."""
    asked = tuple(QuestionSpec(f"q{i}", tuple(range(k))) for i in range(questions))
    planned = plan_survey(SurveySpec("s", asked, epsilon=epsilon))
    assert planned.least <= planned.respondents <= 1.07 * planned.least


def test_different_widths_and_pilots_are_all_met() -> None:
    """Every target is met at the planned number: shares add up what the booklets tell."""
    asked = (
        QuestionSpec("a", YES_NO, half_width=0.02),
        QuestionSpec("b", YES_NO, pilot=[0.8, 0.2]),
        QuestionSpec("c", ("x", "y", "z"), half_width=0.1),
    )
    for epsilon in (1.0, 2.5):
        planned = plan_survey(SurveySpec("s", asked, epsilon=epsilon))
        plan = planned.plan
        for question in asked:
            told = [
                float(one.probability)
                / contrast_variances(Channel(one.channel.matrix), one.shares, one.members(question.name))
                for one in plan.answers[question.name]
            ]
            width = Z * np.sqrt(1 / (planned.respondents * np.sum(told, axis=0)))
            assert width.max() <= (question.half_width or 0.05) * (1 + 1e-6)
        assert planned.least <= planned.respondents <= planned.split


def whole_channel(plan: Plan) -> tuple[list[tuple[object, ...]], np.ndarray]:
    """Every vector of answers, and its law over all that a respondent's reports can be, booklet included."""
    names = list(plan.answers)
    vectors = []
    for labels in itertools.product(*(plan.part(name).categories for name in names)):
        answers = dict(zip(names, labels, strict=True))
        applies = [
            all(answers[other] in allowed for other, allowed in getattr(plan.part(name), "asked_if", ()))
            for name in names
        ]
        fits = [
            (answers[n] == NOT_APPLICABLE) != a
            for n, a in zip(names, applies, strict=True)
            if hasattr(plan.part(n), "asked_if") and plan.part(n).asked_if
        ]
        if all(fits):
            vectors.append(answers)
    rows = []
    for answers in vectors:
        law = np.ones(1)
        for question in plan.everyone:
            law = np.outer(law, _row(question, answers)).ravel()
        drawn = [float(q.probability) * np.outer(law, _row(q, answers)).ravel() for q in plan.booklets]
        rows.append(np.concatenate(drawn) if drawn else law)
    return [tuple(answers.values()) for answers in vectors], np.array(rows)


def _row(question: object, answers: dict[str, object]) -> np.ndarray:
    cell = tuple(answers[one.name] for one in question.answers)
    return question.channel.matrix[question.categories.index(cell if question.parts else cell[0])]


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    "spec",
    [
        SurveySpec("s", yes_no(3), epsilon=1.0),
        SurveySpec("s", yes_no(3), epsilon=2.0),
        DRUGS_SPEC,
        SurveySpec("s", DRUGS, epsilon=1.5, design="split"),
        SurveySpec("s", DRUGS, epsilon=2.0, everyone=("party",)),
        SurveySpec("s", yes_no(2) + DRUGS[2:], epsilon=1.0, together=(("q0", "q1"),)),
        SurveySpec("s", yes_no(3), epsilon=1.0, eta=0.3),
    ],
)
def test_the_channel_of_the_whole_survey_is_within_the_plan(spec: SurveySpec) -> None:
    """Enumerated: booklet drawn, all questions, routing. Its measured guarantees are never above those of the plan."""
    plan = drugs_plan() if spec is DRUGS_SPEC else plan_survey(spec).plan
    vectors, law = whole_channel(plan)
    assert len(set(vectors)) == len(vectors) == math.prod(len(u.cells) for u in units_of(spec.questions))
    assert np.allclose(law.sum(axis=1), 1)
    assert float(local_dp(Channel(law)).value) <= plan.epsilon * (1 + 1e-9) <= spec.epsilon * (1 + 1e-9)
    distance = max(np.abs(a - b).sum() / 2 for a, b in itertools.combinations(law, 2))
    assert distance <= plan.eta * (1 + 1e-9)
    if spec.eta is not None:
        assert plan.eta <= spec.eta


def test_plan_files_keep_the_booklets() -> None:
    """A plan with booklets comes back from its file with its checksum, and altered probabilities are refused."""
    plan = drugs_plan()
    back = Plan.from_json(plan.to_json())
    assert back.checksum == plan.checksum
    assert [q.probability for q in back.questions] == [q.probability for q in plan.questions]
    assert back.questions[0].parts[1].asked_if == (("drug", ("yes",)),)
    with pytest.raises(InvalidInput, match="sum to 1"):
        replace(plan, questions=tuple(replace(q, probability=Fraction(1, 3)) for q in plan.questions))


@pytest.mark.parametrize(
    "change",
    [
        {"asked_if": [["nobody", ["yes"]]]},
        {"asked_if": [["which", ["a"]]]},
        {"name": "drug", "asked_if": []},
        {"asked_if": 3},
        {"asked_if": [["drug", [{"a": 1}]]]},
        {"categories": list(range(2**14))},
        {"categories": []},
        {"categories": 3},
    ],
    ids=["unknown", "itself", "one name", "a number", "no label", "many", "none", "no list"],
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    """Whatever a file says of the parts of a report, it is one line that refuses it."""
    _refused(lambda question: question["parts"][1].update(change))


@pytest.mark.parametrize("share", ["0", "-1/2", "1e999999999", "1/0", "2", "1/10000000", 0.5, True, None, [1]])
def test_shares_that_are_no_fractions_are_refused(share: object) -> None:
    """A share of the respondents is a fraction of short whole numbers in text, so that no file asks for huge ones."""
    _refused(lambda question: question.update(probability=share))


@cache
def drugs_plan() -> Plan:
    """The plan of `DRUGS_SPEC`."""
    return plan_survey(DRUGS_SPEC).plan


def _refused(change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(drugs_plan().to_json())
    content.pop("checksum")
    change(content["questions"][0])
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    content["checksum"] = hashlib.sha256(canonical.encode()).hexdigest()
    with pytest.raises(InvalidInput):
        Plan.from_json(json.dumps(content))


def test_a_split_plan_has_the_file_that_it_had() -> None:
    """Without booklets a plan keeps its version, so that old plans keep their checksum."""
    plan = plan_survey(SurveySpec("s", yes_no(2), epsilon=1.0, design="split")).plan
    assert '"version": 2' in plan.to_json()
    assert "probability" not in plan.to_json()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"together": (("q0", "nobody"),)}, "nobody"),
        ({"everyone": ("nobody",)}, "nobody"),
        ({"design": "best"}, "design"),
        ({"together": (("q0", "q0"),)}, "two different"),
        ({"together": (("q0", "q1"),), "design": "split"}, "booklets"),
    ],
)
def test_wrong_designs_are_refused(more: dict[str, object], said: str) -> None:
    """Names that no question has, and tables that the design does not serve."""
    with pytest.raises(InvalidInput, match=said):
        plan_survey(SurveySpec("s", yes_no(3), epsilon=1.0, **more))


@pytest.mark.parametrize(
    ("asked_if", "said"),
    [
        ({"later": ["yes"]}, "before it"),
        ({"drug": ["maybe"]}, "maybe"),
        ({"drug": "yes"}, "list"),
        ({"drug": []}, "list"),
    ],
)
def test_wrong_routes_are_refused(asked_if: object, said: str) -> None:
    """A question hangs on questions before it, and on answers that they have."""
    with pytest.raises(InvalidInput, match=said):
        _routed(asked_if)


def test_an_empty_report_never_reveals_that_a_question_was_asked() -> None:
    """Left out, a missing answer to a question that hangs on another would publish that other answer: it is refused."""
    left_out = Reading(missing_answers="left out")
    asked = (QuestionSpec("drug", YES_NO), QuestionSpec("which", YES_NO, asked_if={"drug": ["yes"]}, reading=left_out))
    with pytest.raises(InvalidInput, match="an empty report tells that it was asked"):
        plan_survey(SurveySpec("s", asked, epsilon=1.0))
    plan = drugs_plan()
    with pytest.raises(InvalidInput, match="an empty report tells that it was asked"):
        replace(plan.questions[0].parts[1], reading=left_out)


def _routed(asked_if: object) -> None:
    asked = (
        QuestionSpec("drug", YES_NO),
        QuestionSpec("which", YES_NO, asked_if=asked_if),
        QuestionSpec("later", YES_NO),
    )
    plan_survey(SurveySpec("s", asked, epsilon=1.0))


def test_no_bound_is_above_a_design_that_meets_the_targets() -> None:
    """The least number is at most that of certified single designs, for random pilots, widths and epsilons."""
    rng = np.random.default_rng(12)
    for _ in range(12):
        k = int(rng.integers(2, 5))
        asked = QuestionSpec("q", tuple(range(k)), pilot=rng.dirichlet(np.ones(k)) * 0.9 + 0.1 / k, half_width=0.05)
        epsilon = float(rng.uniform(0.2, 4))
        planned = plan_survey(SurveySpec("s", (asked,), epsilon=epsilon))
        assert respondents_bound(units_of((asked,)), epsilon).least <= planned.respondents
        assert planned.least <= planned.respondents


@pytest.mark.full(but=1)
@pytest.mark.parametrize("m", [3, 8])
def test_a_trace_of_a_booklet_is_left_out(m):
    """At uneven pilots the program's solution has booklets of a ten-millionth of the people: the plan has none."""
    spec = SurveySpec("s", tuple(QuestionSpec(f"q{i}", (0, 1), pilot=(0.3, 0.7)) for i in range(m)), epsilon=3.0)
    planned = plan_survey(spec)
    assert planned.least <= planned.respondents < planned.one_question < planned.split
    assert {one.name for booklet in planned.plan.questions for one in booklet.answers} == {f"q{i}" for i in range(m)}
    assert all(booklet.probability > Fraction(1, 1000) for booklet in planned.plan.booklets)


@pytest.mark.parametrize(
    ("kinds", "widths"), [((3, 3, 3), (0.05, 0.05, 0.05)), ((3, 2, 2, 3), (0.05, 0.02, 0.04, 0.05))]
)
def test_plans_at_uniform_pilots_meet_the_lower_bound(kinds, widths, tmp_path):
    """Plans of 27 and 36 uniform cells at epsilon 2: a proof shows that no survey does with 4 % fewer."""
    both = enumerate(zip(kinds, widths, strict=True))
    asked = [QuestionSpec(f"q{i}", tuple(range(k)), half_width=width) for i, (k, width) in both]
    planned = plan_survey(SurveySpec("s", tuple(asked), epsilon=2.0), prove=True)
    assert planned.least <= planned.respondents <= 1.04 * planned.least
    planned.proof.save(tmp_path / "least.json")
    assert load_respondents(tmp_path / "least.json").verify()
    assert not replace(planned.proof, least=planned.least + 2).verify()
    assert respondents_bound(units_of(asked), 2.0).least < 0.8 * planned.least


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("epsilon", "eta", "pilots", "most"),
    [
        (2.0, 0.4, [(0.7, 0.3), (0.4, 0.3, 0.15, 0.1, 0.05)], 1910),
        (3.0, 0.6, [(0.6, 0.3, 0.1), (0.7, 0.2, 0.1)], 860),
        (2.0, 0.4, [(0.7, 0.3), (0.5, 0.3, 0.2), (0.4, 0.3, 0.2, 0.1)], 2880),
    ],
)
def test_a_joint_report_under_a_cap_is_weighed_for_the_pilot(epsilon, eta, pilots, most):
    """Fewer respondents than without (2,137, 909 and 3,166), within both limits, and no rare report."""
    questions = tuple(
        QuestionSpec(name, tuple("abcde"[: len(p)]), pilot=p)
        for name, p in zip("xyz"[: len(pilots)], pilots, strict=True)
    )
    made = plan_survey(SurveySpec("s", questions, epsilon=epsilon, eta=eta, design="joint"))
    (question,) = made.plan.questions
    assert made.respondents <= most
    assert question.epsilon <= epsilon
    assert question.eta <= eta
    assert (question.shares @ question.channel.matrix).min() >= 0.99e-4


@pytest.mark.parametrize("answers", [(3, 5), (2, 2), (2, 4)])
def test_a_joint_design_of_the_pair_of_a_table_is_one_booklet(answers: tuple[int, ...]) -> None:
    """`together` beside design = "joint", as `table` advises, plans the table instead of two booklets of one name."""
    questions = tuple(QuestionSpec(f"q{i}", tuple("abcde"[:k]), half_width=0.05) for i, k in enumerate(answers))
    planned = plan_survey(SurveySpec("s", questions, epsilon=2.0, design="joint", together=(("q0", "q1"),)))
    (booklet,) = planned.plan.questions
    assert np.linalg.matrix_rank(booklet.channel.matrix, tol=1e-6) == math.prod(answers)


SKIP = {"asked_if": {"q0": ["no"]}}
OWN_CAPS = {
    "a skip pattern in a table": ({"eta": 0.3}, SKIP, {}, {"epsilon": 8.0, "delta": 1e-6, "together": (("q0", "q1"),)}),
    "a wanted table": ({"eta": 0.01}, {}, {}, {"epsilon": 0.5, "eta": 0.2, "together": (("q0", "q1"),)}),
    "two caps": ({"eta": 0.01}, {"eta": 0.1}, {}, {"epsilon": 2.0, "delta": 0.3, "eta": 0.8}),
    "a table of a pattern and another": ({}, SKIP | {"eta": 0.01}, {}, {"epsilon": 4.0, "together": (("q0", "q2"),)}),
}


@pytest.mark.full(but=2)
@pytest.mark.parametrize("case", OWN_CAPS)
def test_a_shared_report_keeps_the_cap_on_eta_of_each_of_its_questions(case: str) -> None:
    """Also where it is mixed with randomized response among all answers, or with reports on single questions."""
    *caps, settings = OWN_CAPS[case]
    pilots = ((0.6, 0.4), (0.2, 0.8), (0.5, 0.3, 0.2))
    answers = (("no", "yes"), ("no", "yes"), ("no", "yes", "often"))
    questions = tuple(QuestionSpec(f"q{i}", answers[i], pilot=pilots[i], **more) for i, more in enumerate(caps))
    for question in plan_survey(SurveySpec("s", questions, **settings)).plan.questions:
        names = {part.name for part in question.answers}
        own_caps = [more["eta"] for i, more in enumerate(caps) if "eta" in more and f"q{i}" in names]
        assert question.eta <= min([1.0, *own_caps])  # That of its exact probabilities.


@pytest.mark.parametrize("eta", [None, 0.2])
@pytest.mark.parametrize("design", [None, "split"])
def test_a_skip_pattern_may_have_answers_that_the_pilot_did_not_see(eta: float | None, design: str | None) -> None:
    """The channel is designed for shares near these, as for a question alone; its precision is that at the pilot."""
    asked, others = {"asked_if": {"q0": ["a"]}}, tuple("abcde")
    required = []
    for pilot in ((0.5, 0.5, 0.0, 0.0), (0.5, 0.498, 0.001, 0.001)):
        questions = (QuestionSpec("q0", tuple("abcd"), pilot=pilot), QuestionSpec("q1", others, **asked))
        planned = plan_survey(SurveySpec("s", questions, epsilon=1.0, eta=eta, design=design))
        assert planned.plan.questions[0].channel.proof().epsilon <= 1.0
        required.append(planned.respondents)
    assert required[0] == pytest.approx(required[1], rel=0.05)
