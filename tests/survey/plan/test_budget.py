"""Respondents against the budget, power targets, and what nonresponse and the design of the sample cost."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from ldpopt.composition import k_fold, shuffled
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response, subset_selection
from ldpopt.survey import (
    QuestionSpec,
    SurveySpec,
    TestPower,
    Together,
    asymptotic_covariance,
    goodness_of_fit_power,
    make_plan,
    plan_survey,
    respondents_needed,
)
from ldpopt.survey.plan.budget import Budget, after_shuffling, split_budget, variance_at_uniform
from ldpopt.survey.plan.precision import HalfWidth
from ldpopt.survey.plan.question import QuestionPlanner

YES_NO = np.array([0.2, 0.8])


def test_equal_questions_share_equally():
    """Two equal questions get half of the budget each."""
    split = split_budget({"a": (YES_NO, HalfWidth(0.05)), "b": (YES_NO, HalfWidth(0.05))}, Budget(2.0))
    assert split.epsilons["a"] == pytest.approx(1.0, rel=1e-9)
    assert split.epsilons["b"] == pytest.approx(1.0, rel=1e-9)


def test_the_split_is_the_best_of_a_fine_grid():
    """No other split of the budget over two unequal questions needs fewer respondents, by a scan of 200 splits."""
    questions = {"a": (YES_NO, HalfWidth(0.03)), "b": (np.array([0.5, 0.5]), HalfWidth(0.06))}
    split = split_budget(questions, Budget(2.0))

    def needed(p, width, epsilon):
        e = math.exp(epsilon)
        return (1.959964 / width) ** 2 * (p[0] * p[1] + e / (e - 1) ** 2)

    scan = [
        max(needed(YES_NO, 0.03, share), needed([0.5, 0.5], 0.06, 2.0 - share))
        for share in np.linspace(0.05, 1.95, 200)
    ]
    assert split.respondents <= min(scan) * 1.003
    assert sum(split.epsilons.values()) <= 2.0
    for name, (pilot, target) in questions.items():
        assert QuestionPlanner(pilot).respondents(target, split.epsilons[name]) <= split.respondents


def test_a_delta_buys_epsilon_by_theorem_two():
    """With delta the composed questions stay within (epsilon, delta) as Theorem 2 has it, and get more each."""
    budget = Budget(2.0, 0.01)
    split = split_budget({name: (YES_NO, HalfWidth(0.05)) for name in "abcd"}, budget)
    each = split.epsilons["a"]
    assert each > 0.5
    assert k_fold(each, 0.0, math.tanh(each / 2), 4).epsilon_at(0.01) <= 2.0 * (1 + 1e-9)
    assert not budget.allows([(1.05 * each, math.tanh(1.05 * each / 2))] * 4)


def test_a_cap_on_eta_binds_too():
    """1 - prod(1 - eta_i) stays below the cap."""
    split = split_budget({"a": (YES_NO, HalfWidth(0.05)), "b": (YES_NO, HalfWidth(0.05))}, Budget(4.0, eta=0.5))
    assert 1 - math.prod(1 - math.tanh(e / 2) for e in split.epsilons.values()) <= 0.5


def test_bad_budgets_are_refused():
    """A budget has a positive epsilon, and there is something to split it over."""
    with pytest.raises(InvalidInput, match="budget epsilon"):
        Budget(0.0)
    with pytest.raises(InvalidInput, match="questions"):
        split_budget({}, Budget(1.0))


def test_many_categories_are_split_by_their_optimal_channels():
    """Seven categories, skewed: both questions need the same respondents through their optimal channels, to 2 %."""
    skewed = np.array([0.8, *[1 / 30] * 6])
    targets = {"many": (skewed, HalfWidth(0.05)), "two": (np.array([0.3, 0.7]), HalfWidth(0.02))}
    split = split_budget(targets, Budget(2.0))
    needed = [QuestionPlanner(p).respondents(t, split.epsilons[name]) for name, (p, t) in targets.items()]
    assert max(needed) <= 1.02 * min(needed)
    assert max(needed) <= 1.02 * split.respondents
    assert sum(split.epsilons.values()) <= 2.0


TWO_ANSWERS = ("no", "yes")


@pytest.mark.parametrize("k", [2, 3, 5, 9])
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 5.0, 40.0])
def test_equal_shares_are_closed_form(k: int, epsilon: float) -> None:
    """The variance at equal shares is that of the optimal channel, which is subset selection of the best size [YB]."""
    pilot = np.full(k, 1 / k)
    designed = np.diag(asymptotic_covariance(QuestionPlanner(pilot).channel(epsilon), pilot)).max()
    sizes = [np.diag(asymptotic_covariance(subset_selection(k, epsilon, size), pilot)).max() for size in range(1, k)]
    assert variance_at_uniform(k, epsilon) == pytest.approx(min(sizes), rel=1e-7 if epsilon < 0.1 else 1e-10)
    assert variance_at_uniform(k, epsilon) == pytest.approx(designed, rel=1e-4)  # found by a solver at k = 9


def test_the_table_is_what_the_plans_need() -> None:
    """The respondents of the table are those of the plan with the same budget, or more where longer booklets help."""
    spec = SurveySpec(
        "demo", (QuestionSpec("a", TWO_ANSWERS), QuestionSpec("b", (1, 2, 3, 4), half_width=0.04)), epsilon=2.0
    )
    (found,) = respondents_needed(spec, [2.0])
    planned = plan_survey(spec)
    assert planned.respondents <= found.respondents == planned.one_question
    (split,) = respondents_needed(replace(spec, design="split"), [2.0])
    assert split.respondents == pytest.approx(planned.split, rel=1e-3)
    assert [one.respondents for one in respondents_needed(spec)] == sorted(
        (one.respondents for one in respondents_needed(spec)), reverse=True
    )


def test_nonresponse_and_design_effect_inflate() -> None:
    """n deff / (1 - nonresponse) people are invited, and as many at hand are worth so many fewer."""
    asked = (QuestionSpec("a", TWO_ANSWERS, epsilon=1.0),)
    plain = plan_survey(SurveySpec("demo", asked), 1000).plan.questions[0].expected
    inflated = (
        plan_survey(SurveySpec("demo", asked, nonresponse=0.2, design_effect=1.6), 1000).plan.questions[0].expected
    )
    assert inflated["invited"] == math.ceil(plain["respondents"] * 2)
    assert "invited" not in plain
    assert inflated["half_width_at_hand"] == pytest.approx(plain["half_width_at_hand"] * math.sqrt(2))
    for fields in ({"nonresponse": 1.0}, {"nonresponse": -0.1}, {"design_effect": 0.9}, {"design_effect": math.nan}):
        with pytest.raises(InvalidInput):
            SurveySpec("demo", asked, **fields)


def test_a_power_target_is_reached_and_no_more() -> None:
    """At the respondents that the plan says the test has its power, and one fewer per cent does not."""
    alternative = np.array([0.6, 0.25, 0.15])
    asked = QuestionSpec("a", (1, 2, 3), pilot=[0.7, 0.2, 0.1], alternative=alternative, power=0.9)
    planned = plan_survey(SurveySpec("demo", (asked,), epsilon=1.0)).plan.questions[0]
    n = int(planned.expected["respondents_for_power"])
    channel = planned.channel.matrix
    assert float(goodness_of_fit_power(channel, asked.pilot, alternative, n)) >= 0.9
    assert float(goodness_of_fit_power(channel, asked.pilot, alternative, int(0.97 * n))) < 0.9
    assert "half_width" not in planned.expected


def test_widths_and_powers_share_one_budget() -> None:
    """Questions with a width, a power or both are split so that all need about the same number of people."""
    shares = {"pilot": [0.5, 0.5], "alternative": [0.4, 0.6]}
    spec = SurveySpec(
        "demo",
        (
            QuestionSpec("w", TWO_ANSWERS),
            QuestionSpec("p", TWO_ANSWERS, **shares),
            QuestionSpec("b", TWO_ANSWERS, half_width=0.1, **shares),
        ),
        epsilon=3.0,
        design="split",
    )
    needs = []
    for question in plan_survey(spec).plan.questions:
        expected = question.expected
        needs.append(max(expected.get("respondents", 0), expected.get("respondents_for_power", 0)))
    assert max(needs) <= 1.02 * min(needs)


def test_together_is_the_larger() -> None:
    """Of two targets the one that needs more people counts."""
    planner, parts = QuestionPlanner([0.5, 0.5]), (HalfWidth(0.2), TestPower([0.48, 0.52]))
    assert planner.respondents(Together(parts), 1.0) == max(planner.respondents(one, 1.0) for one in parts)


@pytest.mark.parametrize("fields", [{"power": 0.8}, {"alternative": [0.5, 0.5], "power": 0.01}, {"alternative": [1.0]}])
def test_what_is_no_power_target(fields: dict[str, object]) -> None:
    """A power needs an alternative, as many shares as categories, and more than the level."""
    with pytest.raises(InvalidInput):
        QuestionSpec("a", TWO_ANSWERS, **fields)


def shuffled_plan(*epsilons, **more):
    """A plan of yes/no questions, each asked of everybody by randomized response."""
    questions = tuple(QuestionSpec(f"q{at}", ("no", "yes")) for at in range(len(epsilons)))
    channels = {q.name: randomized_response(2, e).matrix for q, e in zip(questions, epsilons, strict=True)}
    return make_plan(SurveySpec("demo", questions, **more), channels)


def counts_of_yes(chances):
    """The law of the number of yes among independent reports with these chances."""
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    return law


def test_after_shuffling_one_question_is_its_channel():
    """A plan with one question guarantees what its channel does [BBGN]."""
    plan = shuffled_plan(1.0)
    found, expected = after_shuffling(plan, 2000, 1e-6), shuffled(plan.questions[0].channel, 2000).epsilon_at(1e-6)
    assert (found.value, found.lower) == (expected.value, expected.lower)
    assert found.value < 0.1


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("epsilons", [(0.5, 1.0), (1.5, 1.5), (0.3, 2.0)])
def test_shuffled_guarantees_of_questions_add_up(epsilons, delta):
    """Whatever the others answered, the shuffled reports about two questions keep (value, delta) [KOV15].

    Every data set of four people is enumerated, with the exact law of both numbers of yes.
    """
    plan, others = shuffled_plan(*epsilons), 3
    value = after_shuffling(plan, others + 1, delta).value
    yes = [np.array([1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e))]) for e in epsilons]
    worst = 0.0
    for said in itertools.product(range(others + 1), repeat=2):  # how many of the others have yes, by question
        laws = [
            [counts_of_yes([chances[own], *[chances[1]] * n, *[chances[0]] * (others - n)]) for own in (0, 1)]
            for chances, n in zip(yes, said, strict=True)
        ]
        joint = [np.outer(laws[0][a], laws[1][b]) for a, b in itertools.product((0, 1), repeat=2)]
        for one, other in itertools.permutations(joint, 2):
            worst = max(worst, float(np.maximum(one - math.exp(value) * other, 0).sum()))
    assert worst <= delta


def test_what_a_shuffler_does_not_make_alike_is_refused():
    """Public columns, and answers that something else tells: nothing is guaranteed."""
    with pytest.raises(InvalidInput, match="carried columns"):
        after_shuffling(shuffled_plan(1.0, carry=("region",)), 1000)
    with pytest.raises(InvalidInput, match="a respondent column"):
        after_shuffling(shuffled_plan(1.0, respondent="id"), 1000)
    ten = tuple(QuestionSpec(f"q{at}", ("no", "yes")) for at in range(3))
    with pytest.raises(InvalidInput, match="booklets"):
        after_shuffling(plan_survey(SurveySpec("demo", ten, epsilon=1.0)).plan, 1000)
