"""Search for a channel with more noise than it must have, where too few rare reports need more respondents."""

from __future__ import annotations

import math
from collections.abc import Callable

from ldpopt.channel import Channel
from ldpopt.numbers.tolerances import BOOKLET_RTOL
from ldpopt.values.deadline import Deadline
from ldpopt_survey.plan.question import MIN_EPSILON

MAX_SMALLER_EPSILONS, SMALLER_EPSILON_RTOL = 10, 0.02
"""How many smaller epsilons are tried for a channel whose rare reports need more respondents, and how exactly."""

FIRST_STEP = 0.5 * math.log(2.0)
"""The step of the logarithm of epsilon until fewer respondents are needed for estimates than for targets."""

LEAST_EXCESS = 0.01
"""The logarithm of the ratio of both numbers of respondents where they count as equal."""


def channel_at_smaller_epsilon(
    design_at: Callable[[float], tuple[Channel, float, float] | None],
    epsilon: float,
    fewest: float,
    deadline: Deadline,
) -> Channel | None:
    """Return a channel of a smaller epsilon that needs less than `fewest` respondents; None if there is none.

    At a large epsilon a channel hardly ever sends the report of a rare answer for other answers. With more noise such
    reports are frequent, so that fewer respondents make the intervals accurate. The standard errors are larger then, so
    the fewest respondents are needed where both numbers are equal. False position finds it.

    design_at : the channel of an epsilon, the respondents for its targets, and those who make it estimable. It is None
        if no channel is found.
    epsilon (nats) : that of the channel with `fewest`.
    """
    best, low, high = None, math.log(MIN_EPSILON), math.log(epsilon)
    low_excess, high_excess = -math.inf, math.inf
    for _ in range(MAX_SMALLER_EPSILONS):
        if deadline.over() or high - low < SMALLER_EPSILON_RTOL:
            break
        middle = max(high - FIRST_STEP, (low + high) / 2)
        if math.isfinite(low_excess) and math.isfinite(high_excess):
            share = -low_excess / (high_excess - low_excess)
            middle = low + min(max(share, 0.1), 0.9) * (high - low)
        design = design_at(math.exp(middle))
        if design is None:
            high, high_excess = middle, math.inf
            continue
        channel, for_targets, to_estimate = design
        if (required := max(for_targets, to_estimate)) < fewest * (1 - BOOKLET_RTOL):
            best, fewest = channel, required
        is_between = to_estimate > 0 and 0 < for_targets < math.inf
        excess = math.log(to_estimate / for_targets) if is_between else -math.inf
        if abs(excess) < LEAST_EXCESS:
            break
        if excess > 0:
            high, high_excess = middle, excess
        else:
            low, low_excess = middle, excess
    return best
