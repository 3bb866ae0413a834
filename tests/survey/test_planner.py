import math

import pytest

from ldpopt.errors import InvalidInput
from ldpopt.survey.planner import QuestionPlanner
from ldpopt.survey.precision import HalfWidth, TestPower

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
def test_what_cannot_be_is_refused(call, message):
    """Targets out of reach and malformed ones are named."""
    with pytest.raises(InvalidInput, match=message):
        call()
