import math

import numpy as np
import pytest

from ldpopt.composition import k_fold
from ldpopt.errors import InvalidInput
from ldpopt.survey.plan.budget import Budget, split_budget
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
    """Eleven categories, skewed: both questions need the same respondents through their optimal channels, to 2 %."""
    skewed = np.array([0.8, *[0.02] * 10])
    targets = {"many": (skewed, HalfWidth(0.05)), "two": (np.array([0.3, 0.7]), HalfWidth(0.02))}
    split = split_budget(targets, Budget(2.0))
    needed = [QuestionPlanner(p).respondents(t, split.epsilons[name]) for name, (p, t) in targets.items()]
    assert max(needed) <= 1.02 * min(needed)
    assert max(needed) <= 1.02 * split.respondents
    assert sum(split.epsilons.values()) <= 2.0
