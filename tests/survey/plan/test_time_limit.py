"""Plans that run out of time: channels that are kept, targets that are reached, and progress that never falls."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ldpopt.errors import SolverError
from ldpopt.values import deadline as module
from ldpopt_survey import (
    Budget,
    HalfWidth,
    QuestionPlanner,
    QuestionSpec,
    SurveySpec,
    advise_stages,
    compare_protocols,
    device_named,
    estimate,
    numeric_question,
    paper_survey,
    plan_survey,
    plan_two_stages,
    respondents_needed,
    second_channel,
    split_budget,
)

LONG, SHORTER = np.arange(1, 13.0) / 78, np.arange(1, 9.0) / 36
SPEC = SurveySpec(
    "two",
    (
        QuestionSpec("a", tuple("abcdefghijkl"), half_width=0.05, pilot=LONG),
        QuestionSpec("b", ("no", "yes"), half_width=0.05, pilot=[0.3, 0.7]),
    ),
    epsilon=2.0,
)


@pytest.fixture
def late(monkeypatch):
    """A clock on which every look takes a second."""
    now = [0.0]

    def look():
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(module, "monotonic", look)


@pytest.fixture
def heard():
    """A listener, whose shares are looked at after the test."""
    shares = []
    yield shares.append
    assert shares
    assert shares[-1] == 1.0
    assert all(0 <= a <= b <= 1 for a, b in pairwise([0.0, *shares]))


@pytest.mark.full
def test_a_plan_in_no_time_is_within_its_budget(late, heard):
    """Every question has a channel that keeps its epsilon, and the design says that the time ended."""
    made = plan_survey(SPEC, time_limit=0.5, progress=heard)
    assert made.plan.epsilon <= 2.0
    for design in made.designs.values():
        assert design.verify()
    assert "time limit" in made.designs["a"].note


def test_a_plan_with_time_enough_is_the_plan():
    """A limit that is far away changes nothing."""
    short = replace(SPEC, questions=(replace(SPEC.questions[0], pilot=[0.5, 0.3, 0.2], categories=("a", "b", "c")),))
    one, two = plan_survey(short), plan_survey(short, time_limit=3600)
    assert one.plan.to_json() == two.plan.to_json()


def test_a_split_in_no_time_is_one_that_the_budget_allows(late, heard):
    """Less time never spends more, and never promises fewer respondents."""
    asked = {"a": (SHORTER, HalfWidth(0.05)), "b": ([0.3, 0.7], HalfWidth(0.05))}
    early = split_budget(asked, Budget(2.0), time_limit=0.5, progress=heard)
    full = split_budget(asked, Budget(2.0), max_designed=0)
    assert math.fsum(early.epsilons.values()) <= 2.0
    assert early.respondents >= 0.98 * full.respondents


def test_an_epsilon_that_comes_back_reaches_the_target(monkeypatch):
    """Cut after some steps, the epsilon is one seen to be enough; where none was seen, the error says so."""
    planner, target = QuestionPlanner([0.5, 0.3, 0.2]), HalfWidth(0.03)
    monkeypatch.setattr(module.Deadline, "over", _after(1))
    early = planner.epsilon(target, 20000, time_limit=1e6)
    monkeypatch.undo()
    full = planner.epsilon(target, 20000)
    assert early >= full * (1 - 1e-3)
    assert planner.respondents(target, early) <= 20000


def _after(most):
    """A stand-in for `over` that says yes from the `most`-th question on, but not to the rounds of a design."""
    asked = []

    def over(self):
        outer = self.meter is not None and self.meter.report is None and self.counted
        asked.extend([1] * outer)
        return outer and len(asked) >= most

    return over


def test_a_time_limit_without_a_known_epsilon_is_an_error(late):
    """The first epsilon that is tried is not enough, and there is no time for another."""
    with pytest.raises(SolverError, match="before any epsilon was known to be enough"):
        QuestionPlanner([0.1, 0.9]).epsilon(HalfWidth(0.01), 1000, time_limit=0.5)


def test_stages_report_only_simulated_sizes(late, heard):
    """Of all sizes of the pilot wave, one was simulated in time."""
    made = plan_two_stages(2000, 1.0, [0.7, 0.2, 0.1], draws=1, time_limit=0.5, progress=heard)
    assert len(made.shares) == len(made.variances) == 1


def test_the_other_planning_functions_end_in_time(late):
    """Each passes its time on, and gives a usable answer."""
    listened = []
    both = {"time_limit": 0.5, "progress": listened.append}
    question = QuestionPlanner(SHORTER)
    assert question.channel(1.0, **both).shape[0] == 8
    assert question.respondents(HalfWidth(0.05), 1.0, **both) > 0
    assert 0 < question.half_width(5000, 1.0, **both) < 1
    assert 0 < question.power(5000, SHORTER[::-1], 1.0, **both) <= 1
    assert compare_protocols(SHORTER, HalfWidth(0.05), 1.0, **both).rows
    assert [one.epsilon for one in respondents_needed(SPEC, (1.0, 2.0), **both)] == [1.0, 2.0]
    assert numeric_question(0, 10, 1.0, 1.0, **both).channel.shape[0] > 1
    plan = plan_survey(SurveySpec("demo", (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),))).plan
    paper = paper_survey(plan, device_named("two-dice"), **both)
    assert paper.plan.question("vote").epsilon <= 1.0
    assert advise_stages(plan.question("vote"), 1000, draws=1, **both).second > 0
    told = estimate({0: 300, 1: 700}, [[0.8, 0.2], [0.2, 0.8]])
    assert second_channel(told, 1.0, **both).shape == (2, 2)
    assert listened.count(1.0) >= 10
