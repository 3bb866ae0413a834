"""Respondents against the budget, power targets, and what nonresponse and the design of the sample cost."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from ldpopt.composition import k_fold
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.mechanisms import subset_selection
from ldpopt_survey import (
    QuestionSpec,
    SurveySpec,
    TestPower,
    Together,
    asymptotic_covariance,
    goodness_of_fit_power,
    plan_survey,
    respondents_needed,
)
from ldpopt_survey.plan.budget import (
    Budget,
    _Curve,
    _Shape,
    _split,
    _Sum,
    split_budget,
    total_variation_of,
    variance_at_uniform,
)
from ldpopt_survey.plan.precision import HalfWidth
from ldpopt_survey.plan.question import QuestionPlanner

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
    """The composition's total variation stays below the cap and uses it up, and no epsilon is cut to meet it."""
    asked = {"a": (YES_NO, HalfWidth(0.05)), "b": (YES_NO, HalfWidth(0.05))}
    split = split_budget(asked, Budget(4.0, eta=0.5))
    assert 0.495 < total_variation_of([(e, split.etas[name]) for name, e in split.epsilons.items()]) <= 0.5
    assert sum(split.epsilons.values()) > 3.9
    alone = 2 * math.atanh(1 - math.sqrt(0.5))  # the epsilon that reaches half the cap without erasing
    assert split.respondents < 0.6 * QuestionPlanner(YES_NO).respondents(HalfWidth(0.05), alone)


@pytest.mark.parametrize("eta", [1.500819958641148e-12, 2e-10, 1e-3, 0.4])
def test_caps_as_small_as_rounding_are_kept(eta: float) -> None:
    """Parts are allowed where their exact product is within the cap, also where 1 - eta keeps few digits of eta."""
    for count, excess in product(range(2, 8), [-1e-4, -1e-11, *np.linspace(1e-11, 2e-4, 30)]):
        part = -math.expm1(math.log1p(-eta) / count) * (1 + float(excess))
        total = 1 - (1 - Fraction(part)) ** count
        assert Budget(700.0, eta=eta).allows([(40.0, part)] * count) == (total <= Fraction(eta))


def test_bad_budgets_are_refused():
    """A budget has a positive epsilon, and there is something to split it over."""
    with pytest.raises(InvalidInput, match="budget epsilon"):
        Budget(0.0)
    with pytest.raises(InvalidInput, match="questions"):
        split_budget({}, Budget(1.0))


@pytest.mark.full
def test_many_categories_are_split_by_their_optimal_channels():
    """Five categories, skewed: both questions need the same respondents through their optimal channels, to 2 %."""
    skewed = np.array([0.8, *[0.05] * 4])
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


def test_the_table_has_the_respondents_of_the_plans() -> None:
    """The respondents of the table are those of the plan with the same budget, or more where longer booklets help."""
    spec = SurveySpec(
        "demo", (QuestionSpec("a", TWO_ANSWERS), QuestionSpec("b", (1, 2, 3, 4), half_width=0.04)), epsilon=2.0
    )
    (found,) = respondents_needed(spec, [2.0])
    planned = plan_survey(spec)
    assert planned.respondents <= found.respondents == planned.one_question
    (split,) = respondents_needed(replace(spec, design="split"), [2.0])
    assert split.respondents == pytest.approx(planned.split, rel=1e-3)
    needed = [one.respondents for one in respondents_needed(spec)]
    assert needed == sorted(needed, reverse=True)


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
def test_invalid_power_targets_are_refused(fields: dict[str, object]) -> None:
    """A power needs an alternative, as many shares as categories, and more than the level."""
    with pytest.raises(InvalidInput):
        QuestionSpec("a", TWO_ANSWERS, **fields)


@pytest.mark.parametrize("looks", [0, 1, 3, 10, 30, 60, 100, 200])
def test_a_split_is_within_the_budget_whenever_the_time_is_over(looks):
    """The time may be over after any number of looks at the clock; epsilons never exceed the budget then."""

    class Squares(_Curve):
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, epsilon, eta=None):
            return self.scale / epsilon**2 / (1.0 if eta is None else eta)

    class Clock:
        seconds, left = 1.0, looks

        def over(self):
            self.left -= 1
            return self.left < 0

        @property
        def late(self):
            return self.left < 0

    curves = {name: Squares(scale) for name, scale in (("a", 90), ("b", 700))}
    for budget in (Budget(1.5), Budget(1.5, eta=0.5), Budget(1.5, delta=1e-6)):
        try:
            split = _split(curves, budget, [], Clock())
        except SolverError as error:
            assert "before a split within the budget was known" in str(error)
            assert looks < 100
            continue
        etas = split.etas or {name: math.tanh(one / 2) for name, one in split.epsilons.items()}
        assert budget.allows([(one, etas[name]) for name, one in split.epsilons.items()])


@pytest.mark.parametrize("people", [12_000, 30_000, 1e6, 1e8])
def test_the_least_part_of_a_cap_is_where_the_respondents_are_reached(people: float) -> None:
    """For the sum of curves of 10 and 5 answers: no eta below it suffices, and it does itself."""
    curves = [_Shape(10, lambda *_: 0.0), _Shape(5, lambda *_: 0.0)]
    for curve, respondents in zip(curves, (5000.0, 3000.0), strict=True):
        curve.put(2.0, 0.4, respondents)
    both, epsilons = _Sum(curves), np.geomspace(1e-3, 3.0, 100)
    etas = both.smallest_eta(epsilons, people)
    is_sufficient = both(epsilons, np.tanh(epsilons / 2)) <= people
    np.testing.assert_array_equal(np.isfinite(etas), is_sufficient)
    assert is_sufficient.any()
    assert (both(epsilons, etas)[is_sufficient] <= people * (1 + 1e-12)).all()
    assert (both(epsilons, etas * (1 - 1e-5))[is_sufficient] > people).all()
