"""Two stages: what the planner promises is what simulated surveys get."""

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import subset_selection
from ldpopt.privacy import local_dp
from ldpopt_survey import estimate, estimate_waves, pilot_shares, plan_two_stages, second_channel

SKEWED = np.array([0.9, 0.025, 0.025, 0.025, 0.025])


def test_skewed_shares_pay_for_a_pilot_and_even_ones_do_not():
    """A pilot saves most of what knowing the truth would; a binary question gains nothing."""
    made = plan_two_stages(2000, 1.0, SKEWED, draws=2, shares=(0.1, 0.3))
    assert made.pilot in (200, 600)
    assert made.pilot + made.second == 2000
    assert 0.08 < made.saving < 1 - made.informed / made.single + 1e-9
    binary = plan_two_stages(2000, 1.0, [0.3, 0.7], draws=1, shares=(0.2,))
    assert binary.pilot == 0
    assert binary.saving == 0
    assert "one stage" in repr(binary)


def test_the_second_channel_keeps_epsilon_and_suits_the_estimate():
    first = estimate(
        np.round(SKEWED @ subset_selection(5, 1.0, 1).matrix * 5000).astype(int), subset_selection(5, 1.0, 1)
    )
    q = second_channel(first, 1.0)
    assert float(local_dp(q)) <= 1.0 + 1e-9
    assert q.inputs == first.labels
    capped = second_channel(first, 1.0, 0.3)
    assert float(local_dp(capped)) <= 1.0 + 1e-9
    assert np.isclose(pilot_shares(first).sum(), 1)


@pytest.mark.full
def test_two_stages_cover():
    """In simulated surveys of two stages, 95 % intervals of the pooled estimate cover about as often as they say.

    The full form is experiments/trust/coverage.py.
    """
    rng = np.random.default_rng(5)
    truth, rounds = np.array([0.8, 0.15, 0.05]), 80
    start = subset_selection(3, 1.5, 1)
    hits = np.zeros(3)
    for _ in range(rounds):
        c1 = rng.multinomial(300, truth @ start.matrix)
        q = second_channel(estimate(c1, start), 1.5)
        c2 = rng.multinomial(1200, truth @ q.matrix)
        hits += estimate_waves([(c1, start), (c2, q)]).intervals().contains(truth)
    # Three and a half standard errors of 0.95 over 80 surveys are 0.085.
    assert np.all(hits / rounds > 0.865)


def test_wrong_plans_are_refused():
    for given, said in (
        ({"n": 10}, "n"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"scenarios": [0.5, 0.6]}, "scenario"),
        ({"shares": (0.0, 0.5)}, "shares"),
        ({"guess": [0.5, 0.2, 0.3]}, "guess"),
    ):
        with pytest.raises(InvalidInput, match=said):
            plan_two_stages(**{"n": 1000, "epsilon": 1.0, "scenarios": [0.5, 0.5], **given})
