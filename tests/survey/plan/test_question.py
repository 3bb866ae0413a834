import math

import pytest

from ldpopt.errors import InvalidInput
from ldpopt.privacy import local_dp
from ldpopt_survey.plan.precision import HalfWidth, TestPower
from ldpopt_survey.plan.protocols import compare_protocols
from ldpopt_survey.plan.question import QuestionPlanner, _find_smallest

Z = 1.959963984540054
QUESTION = QuestionPlanner([0.1, 0.9])


def test_respondents_are_those_of_the_closed_form():
    """For a yes-or-no question n = ceil(z^2 (p(1-p) + E/(E-1)^2) / w^2), the variance of Warner's design [Warner]."""
    for epsilon, width in [(1.0, 0.05), (0.5, 0.02), (2.0, 0.1)]:
        e = math.exp(epsilon)
        needed = Z**2 * (0.09 + e / (e - 1) ** 2) / width**2
        assert QUESTION.respondents(HalfWidth(width), epsilon) in (math.ceil(needed), math.ceil(needed) + 1)


def test_each_unknown_is_found_from_the_others_on_the_safe_side():
    """n, half-width, epsilon and eta solved in turn reach the target, and a little less of any does not."""
    target = HalfWidth(0.05)
    n = QUESTION.respondents(target, 1.0)
    assert QUESTION.half_width(n, 1.0) <= 0.05 < QUESTION.half_width(n - 1, 1.0)
    epsilon = QUESTION.epsilon(target, 2000)
    assert QUESTION.respondents(target, epsilon) <= 2000 < QUESTION.respondents(target, 0.99 * epsilon)
    eta = QUESTION.eta(target, 3000, 1.0)
    assert QUESTION.respondents(target, 1.0, eta) <= 3000 < QUESTION.respondents(target, 1.0, 0.99 * eta)
    # A channel of total variation eta alone at k = 2 is the erased binary question.
    assert eta < math.tanh(0.5)


def test_power_and_respondents_agree():
    """The respondents for a power have it, and one in twenty fewer have not."""
    target = TestPower([0.2, 0.8], power=0.8)
    n = QUESTION.respondents(target, 1.0)
    assert QUESTION.power(n, [0.2, 0.8], 1.0) == pytest.approx(0.8, abs=0.02)
    assert QUESTION.power(round(0.9 * n), [0.2, 0.8], 1.0) < 0.8
    assert QUESTION.epsilon(target, n) == pytest.approx(1.0, rel=2e-3)


def test_one_category_is_cheaper_than_all():
    """A target for one category never needs more respondents than the same target for every category."""
    question = QuestionPlanner([0.5, 0.2, 0.2, 0.1])
    assert question.respondents(HalfWidth(0.05, category=3), 1.0) < question.respondents(HalfWidth(0.05), 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QUESTION.epsilon(HalfWidth(0.001), 10), "beyond epsilon"),
        (lambda: QUESTION.eta(HalfWidth(0.05), 100, 1.0), "beyond eta"),
        (lambda: QUESTION.respondents(0.05, 1.0), "precision"),
        (lambda: HalfWidth(0.0), "half-width"),
        (lambda: HalfWidth(0.1, 1.5), "confidence level"),
        (lambda: QUESTION.respondents(HalfWidth(0.1, category=7), 1.0), "category"),
        (lambda: TestPower([0.5, 0.5], 0.01), "power"),
        (lambda: QUESTION.half_width(0, 1.0), "n"),
    ],
)
def test_unreachable_and_malformed_targets_are_refused(call, message):
    """The message names the target."""
    with pytest.raises(InvalidInput, match=message):
        call()


def test_a_test_is_planned_for_its_power():
    """The channel for a test needs no more respondents than the one of least variances, and here fewer by a third."""
    pilot, other = [0.4, 0.3, 0.2, 0.1], [0.3, 0.3, 0.2, 0.2]
    planner, target = QuestionPlanner(pilot), TestPower(other)
    n = planner.respondents(target, 1.0)
    assert n < 0.67 * target.respondents(planner.channel(1.0), pilot)
    assert planner.power(n, other, 1.0) >= 0.8
    channel = planner.channel(1.0, precision=target)
    assert target.respondents(channel, pilot) == n
    assert float(local_dp(channel)) <= 1.0


@pytest.mark.parametrize(("pilot", "eta"), [([0.5, 0.3, 0.15, 0.05], 1.0), ([0.9, 0.05, 0.05], 0.3)])
def test_every_unknown_solved_both_ways(pilot, eta):
    """Respondents, half-width, power, epsilon and eta: each solved from the others gives the others back."""
    planner, epsilon, width = QuestionPlanner(pilot), 1.2, 0.04
    n = planner.respondents(HalfWidth(width), epsilon, eta)
    assert planner.half_width(n, epsilon, eta) == pytest.approx(width, rel=1e-3)
    assert planner.epsilon(HalfWidth(width), n, eta) == pytest.approx(epsilon, rel=2e-3)
    if eta < 1:
        assert planner.eta(HalfWidth(width), n, epsilon) == pytest.approx(eta, rel=2e-3)
    other = [pilot[0] - 0.1, pilot[1] + 0.1, *pilot[2:]]
    for_power = planner.respondents(TestPower(other, 0.9), epsilon, eta)
    assert planner.power(for_power, other, epsilon, eta) == pytest.approx(
        0.9, abs=0.01
    )  # exact, where n is planned by the limit law
    assert planner.epsilon(TestPower(other, 0.9), for_power, eta) == pytest.approx(epsilon, rel=5e-3)


@pytest.mark.parametrize("pilot", [[0.5, 0.3, 0.15, 0.05], [0.7, 0.1, 0.1, 0.1], [0.25] * 4])
def test_no_protocol_beats_the_channel_planned_for_the_widest_interval(pilot):
    """Planned for the largest variance, the optimal channel comes first among all protocols, by respondents."""
    table = compare_protocols(pilot, HalfWidth(0.05), 1.0)
    assert table.rows[0].protocol == "optimal channel"
    assert all(row.respondents >= table.rows[0].respondents for row in table)


def test_an_epsilon_takes_few_designs(monkeypatch):
    """From 30 to a million respondents, epsilon is found to its accuracy with at most nine channels."""
    made = []
    honest = QuestionPlanner.channel
    monkeypatch.setattr(QuestionPlanner, "channel", lambda self, *rest: made.append(1) or honest(self, *rest))
    question = QuestionPlanner([0.2, 0.3, 0.5])
    for width, n in [(0.3, 30), (0.05, 2000), (0.01, 12000), (0.02, 10**6)]:
        made.clear()
        epsilon = question.epsilon(HalfWidth(width), n)
        assert len(made) <= 9
        assert question.respondents(HalfWidth(width), epsilon) <= n
        assert question.respondents(HalfWidth(width), epsilon * (1 - 2e-4)) >= n


def test_a_nan_never_reaches_a_target():
    """A number of respondents that is nan never reaches a target, and steps or flat stretches end."""
    with pytest.raises(InvalidInput, match="beyond epsilon"):
        _find_smallest(lambda at: math.nan, 10, (0.01, 16.0), -2.0, "epsilon")
    assert _find_smallest(lambda at: 5.0 if at >= 3 else 500.0, 10, (0.01, 16.0), -2.0, "epsilon") == pytest.approx(
        3, rel=1e-4
    )
    assert _find_smallest(lambda at: 5.0 if at >= 3 else math.inf, 10, (0.01, 16.0), -2.0, "epsilon") >= 3
    assert _find_smallest(lambda at: 10.0 if at >= 0.1 else 11.0, 10, (0.01, 16.0), -2.0, "epsilon") == pytest.approx(
        0.1, rel=1e-4
    )
    assert _find_smallest(lambda at: 10.0 if at >= 9 else 11.0, 10, (0.01, 16.0), -2.0, "epsilon") == pytest.approx(
        9, rel=1e-4
    )
    assert _find_smallest(lambda at: 10.0, 10, (0.01, 16.0), -2.0, "epsilon") == 0.01
    assert _find_smallest(lambda at: 0.0, 10, (0.01, 16.0), -2.0, "epsilon") == 0.01
    with pytest.raises(InvalidInput, match="beyond epsilon"):
        _find_smallest(lambda at: 11.0, 10, (0.01, 16.0), -2.0, "epsilon")
