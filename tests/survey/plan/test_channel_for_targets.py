"""The channel of a booklet serves the target that needs the most respondents as well as any channel can."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldpopt import Channel, optimal_channel
from ldpopt.design import FisherInformation, MVOptimal
from ldpopt.privacy import local_dp, total_variation
from ldpopt.values.deadline import UNLIMITED
from ldpopt_survey import QuestionSpec, SurveySpec, TargetSpec, plan_survey
from ldpopt_survey.estimate.linear import contrast_variances
from ldpopt_survey.plan import booklet_channels
from ldpopt_survey.plan.booklet import channel_for_targets
from ldpopt_survey.plan.precision import limits
from ldpopt_survey.plan.units import binding_targets, product_of, units_of


def skip_pattern(answers: int, seed: int) -> tuple[np.ndarray, list]:
    """The shares and targets of two questions, where the second is asked of those with one answer to the first."""
    rng = np.random.default_rng(seed)
    first, second = (rng.dirichlet(np.ones(k)) * 0.9 + 0.1 / k for k in (answers, 3))
    names = [f"a{place}" for place in range(answers)]
    questions = [
        QuestionSpec("q0", names, pilot=list(first), half_width=0.02),
        QuestionSpec("q1", ("x", "y", "z"), pilot=list(second), asked_if=(("q0", ("a0",)),), half_width=0.05),
    ]
    (unit,) = units_of(questions)
    pilot, targets = product_of((unit,))
    return pilot, binding_targets(targets)


def respondents(channel: Channel, pilot: np.ndarray, targets: list) -> float:
    """The respondents that the targets need, unrounded."""
    variances = contrast_variances(channel, pilot, np.array([target.row for target in targets]))
    return max(variance / target.variance for variance, target in zip(variances, targets, strict=True))


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize(("epsilon", "eta"), [(0.5, None), (2.0, None), (5.0, None), (2.0, 0.4), (1.0, 0.1)])
def test_no_channel_needs_a_thousandth_fewer_respondents(epsilon: float, eta: float | None, seed: int) -> None:
    """The respondents are those of the channel that another method designs for the largest variance."""
    pilot, targets = skip_pattern(4, seed)
    channel = channel_for_targets(targets, pilot, limits(epsilon, eta), UNLIMITED, 1e-4)
    assert float(local_dp(channel)) <= epsilon * (1 + 1e-12)
    assert eta is None or float(total_variation(channel)) <= eta * (1 + 1e-12)
    rows = np.array([(t.row - t.row @ pilot) / math.sqrt(t.variance) for t in targets])
    best = optimal_channel(FisherInformation(pilot, MVOptimal(rows.T)), limits(epsilon, eta))
    assert best.certified
    assert best.value * (1 - 1e-6) <= respondents(channel, pilot, targets) <= best.value * (1 + 1e-3)


@pytest.mark.parametrize(("epsilon", "eta"), [(2.0, 1e-3), (25.0, None)])
def test_where_the_method_is_refused_another_one_serves_all_targets(epsilon: float, eta: float | None) -> None:
    """A small cap and a large budget are left to the methods for a sum of variances."""
    pilot, targets = skip_pattern(3, 1)
    channel = channel_for_targets(targets, pilot, limits(epsilon, eta), UNLIMITED, 1e-3)
    assert float(local_dp(channel)) <= epsilon * (1 + 1e-12)
    assert math.isfinite(respondents(channel, pilot, targets))


def test_a_single_target_is_served() -> None:
    """One contrast of few answers, and the same target twice with different variances."""
    pilot, targets = skip_pattern(3, 4)
    one = channel_for_targets(targets[:1], pilot, limits(1.0, None), UNLIMITED, 1e-3)
    twice = channel_for_targets([*targets[:1], *targets[:1]], pilot, limits(1.0, None), UNLIMITED, 1e-3)
    assert respondents(one, pilot, targets[:1]) == pytest.approx(respondents(twice, pilot, targets[:1]), rel=1e-9)


def test_a_known_channel_is_not_searched_for_where_groups_want_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even yes/no questions with targets for groups have the channel in closed form, as without groups."""
    monkeypatch.setattr(booklet_channels, "channel_for_targets", lambda *_: pytest.fail("a channel was searched for"))
    monkeypatch.setattr(booklet_channels, "optimal_channel", lambda *_, **__: pytest.fail("a channel was searched for"))
    questions = (QuestionSpec("a", ("n", "y")), QuestionSpec("b", ("n", "y")))
    by_group = TargetSpec((), half_width=0.08, by="region", groups={"north": 0.3, "south": 0.7})
    planned = plan_survey(SurveySpec("s", questions, epsilon=2.5, targets=(by_group,), carry=("region",)))
    assert planned.respondents == 923
