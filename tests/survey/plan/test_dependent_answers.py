"""The least number of respondents is one of independent answers: at a dependent law fewer people can be enough."""

import math
from itertools import product

import numpy as np
import pytest

from ldpopt.design import FisherInformation, LocalDP, Marginals, optimal_channel
from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey

EPSILON, HALF_WIDTH = 3.0, 0.05


def variances(channel, law):
    """Of each share of yes, times n: least squares from the reports of n people, by separate code."""
    answers = np.array(list(product((0.0, 1.0), repeat=4))).T
    inverse = np.linalg.inv((channel / (law @ channel)) @ channel.T)
    return np.array([row @ inverse @ row - (row @ law) ** 2 for row in answers])


def test_dependent_answers_may_need_fewer_than_the_independent_bound():
    """Nine in ten people give four equal answers: 789 respondents suffice, where `least` is 1,032."""
    questions = tuple(QuestionSpec(name, ("no", "yes"), half_width=HALF_WIDTH) for name in "abcd")
    planned = plan_survey(SurveySpec("four", questions, epsilon=EPSILON))
    assert planned.least == 1032
    law = np.full(16, 0.1 / 16)
    law[[0, 15]] += 0.45
    assert np.array(list(product((0, 1), repeat=4))).T @ law == pytest.approx(0.5)
    design = optimal_channel(FisherInformation(law, Marginals((2, 2, 2, 2))), LocalDP(EPSILON))
    matrix = design.channel.matrix
    assert (matrix.max(axis=0) <= math.exp(EPSILON) * (1 + 1e-12) * matrix.min(axis=0)).all()
    told = variances(matrix, law)
    assert told == pytest.approx(0.51284, abs=2e-5)
    people = math.ceil(told.max() / (HALF_WIDTH / 1.959964) ** 2)
    assert people == 789 < planned.least
    even = np.full(16, 1 / 16)
    assert math.ceil(variances(matrix, even).max() / (HALF_WIDTH / 1.959964) ** 2) >= planned.least


def test_the_sentences_state_the_assumption_of_independence():
    """Several questions: independent answers, in the plan's text and in the proof's sentence; one question: none."""
    several = plan_survey(SurveySpec("two", tuple(QuestionSpec(q, ("no", "yes")) for q in "ab"), epsilon=1.0))
    assert "if the answers are independent" in repr(several)
    assert several.proof.sentence.startswith("If the shares are as expected and the questions' answers are independent")
    one = plan_survey(SurveySpec("one", (QuestionSpec("a", ("no", "yes")),), epsilon=1.0))
    assert one.proof.sentence.startswith("If the shares are as expected, no 1-LDP survey of fewer than")
