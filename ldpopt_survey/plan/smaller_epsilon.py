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


def channel_at_smaller_epsilon(
    design_at: Callable[[float], tuple[Channel, float, float] | None],
    epsilon: float,
    fewest: float,
    deadline: Deadline,
) -> Channel | None:
    """Return a channel of a smaller epsilon that needs less than `fewest` respondents; None if there is none.

    At a large epsilon a channel hardly ever sends the report of a rare answer for other answers. With more noise such
    reports are frequent, so that fewer respondents make the intervals accurate. The standard errors are larger then, so
    the fewest respondents are needed where both numbers are equal.

    design_at : the channel of an epsilon, the respondents for its targets, and those who make it estimable, too. It is
        None if no channel is found.
    epsilon (nats) : that of the channel with `fewest`.
    """
    best, low, high = None, math.log(MIN_EPSILON), math.log(epsilon)
    for _ in range(MAX_SMALLER_EPSILONS):
        if deadline.over() or high - low < SMALLER_EPSILON_RTOL:
            break
        middle = max(high - math.log(2.0), (low + high) / 2)
        design = design_at(math.exp(middle))
        if design is None:
            high = middle
            continue
        channel, for_targets, required = design
        if required < fewest * (1 - BOOKLET_RTOL):
            best, fewest = channel, required
        low, high = (low, middle) if required > for_targets else (middle, high)
    return best
