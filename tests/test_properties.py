"""Properties that hold for every channel, graph, exact channel and plan."""

import json

import numpy as np
import pytest
import strategies
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ldpopt.channel import Channel
from ldpopt.errors import LdpoptError
from ldpopt.exact import ExactChannel
from ldpopt.privacy import hockey_stick, local_dp, renyi, total_variation
from ldpopt_survey.plan.plan import Plan

MEASURES = [
    local_dp,
    total_variation,
    lambda q, graph=None: hockey_stick(q, 0.5, graph),
    lambda q, graph=None: renyi(q, 2, graph),
]


@given(st.data())
@settings(max_examples=25)
@pytest.mark.parametrize("measure", MEASURES)
def test_a_policy_graph_never_raises_a_guarantee(measure, data):
    """Comparing fewer pairs gives a guarantee whose true value is no larger."""
    channel = data.draw(strategies.channels())
    graph = data.draw(strategies.graphs(channel))
    assert measure(channel, graph).lower <= measure(channel).value


@given(st.data())
@settings(max_examples=25)
@pytest.mark.parametrize("measure", MEASURES)
def test_post_processing_never_hurts(measure, data):
    """Garbling the reports gives a guarantee whose true value is no larger, up to the rounding of the product."""
    channel = data.draw(strategies.channels())
    after = data.draw(strategies.channels(inputs=channel.shape[1]))
    garbled = Channel(channel.matrix @ after.matrix / (channel.matrix @ after.matrix).sum(axis=1, keepdims=True))
    tiny = channel.matrix[channel.matrix > 0].min() * after.matrix[after.matrix > 0].min() < 1e-290
    if not tiny:  # products that underflow are another channel
        assert measure(garbled).lower <= measure(channel).value * (1 + 1e-9) + 1e-13


@given(strategies.channels())
def test_channels_survive_json(channel):
    """A channel read back from its JSON is the same, to the last bit."""
    assert Channel.from_json(channel.to_json()) == channel


@given(strategies.exact_channels())
def test_exact_channels_survive_json_and_prove_themselves(exact):
    """An exact channel proves what it claims, and its file is the same channel."""
    assert ExactChannel.from_json(exact.to_json()) == exact
    exact.verify(exact.epsilon, exact.eta)


@given(strategies.plans(), st.data())
@settings(max_examples=25)
def test_plans_survive_json_and_no_changed_plan_is_read(plan, data):
    """A plan read back is the same; a plan whose content changed without its checksum is refused."""
    text = plan.to_json()
    assert Plan.from_json(text).to_json() == text
    content = json.loads(text)
    field = data.draw(st.sampled_from(sorted(set(content) - {"checksum"})))
    before = content[field]
    content[field] = data.draw(
        st.one_of(st.none(), st.integers(10, 99), st.text(), st.lists(st.integers(), max_size=2))
    )
    assume(content[field] != before)
    with pytest.raises(LdpoptError):
        Plan.from_json(json.dumps(content))


@given(strategies.distributions())
def test_distributions_are_distributions(p):
    """The strategy gives what it says."""
    assert p.min() >= 0
    assert abs(np.sum(p) - 1) < 1e-12
