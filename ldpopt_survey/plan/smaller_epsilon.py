"""Search for a channel with more noise than it must have, where too few rare reports need more respondents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldpopt.channel import Channel
from ldpopt.values.deadline import Deadline
from ldpopt_survey.plan.question import MIN_EPSILON

MAX_SMALLER_EPSILONS, SMALLER_EPSILON_RTOL = 7, 0.05
"""How many smaller epsilons are tried for a channel whose rare reports need more respondents, and how exactly."""

FIRST_STEP, LARGEST_STEP = 0.5 * math.log(2.0), 2 * math.log(2.0)
"""The step of the logarithm of epsilon if nothing is known of the excess there, and the largest one."""

USUAL_SLOPES = 4.5, -1.5
"""The slopes of the excess, and of the logarithm of the respondents for targets, in the logarithm of epsilon."""

LEAST_EXCESS, LEAST_SAVING = 0.02, 0.01
"""The logarithm of the ratio of both numbers of respondents where they count as equal, and the least saving of them."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """A channel that was designed at an epsilon (nats).

    for_targets, to_estimate : the respondents for its targets, and those who make it estimable.
    """

    epsilon: float
    channel: Channel
    for_targets: float
    to_estimate: float

    @property
    def required(self) -> float:
        """The respondents who meet the targets with intervals that can be trusted."""
        return max(self.for_targets, self.to_estimate)

    @property
    def excess(self) -> float:
        """The logarithm of the ratio of `to_estimate` to `for_targets`."""
        is_between = self.to_estimate > 0 and 0 < self.for_targets < math.inf
        return math.log(self.to_estimate / self.for_targets) if is_between else -math.inf


def smaller_epsilons(
    design_at: Callable[[float], Attempt | None],
    epsilon: float,
    deadline: Deadline,
    known_attempts: Sequence[Attempt] = (),
    first_epsilon: float | None = None,
    rivals: Sequence[Attempt] = (),
) -> list[Attempt]:
    """Return the known attempts, and those of a search for the epsilon that needs the fewest respondents.

    At a large epsilon a channel hardly ever sends the report of a rare answer for other answers. With more noise such
    reports are frequent, so that fewer respondents make the intervals accurate. The standard errors are larger then, so
    the fewest respondents are needed where both numbers are equal. False position finds it.

    - `design_at` : it returns None if no channel is found at an epsilon.
    - `epsilon` (nats) : the largest one.
    - `known_attempts` : of this search. Those of larger epsilons do not count.
    - `first_epsilon` : an epsilon near the best one, if it is known.
    - `rivals` : the attempts for the same questions with another pilot of the search. The search ends if their slopes
      predict no fewer respondents than the best of them needs.
    """
    attempts, least_failure = [attempt for attempt in known_attempts if attempt.epsilon <= epsilon], math.inf
    for _ in range(MAX_SMALLER_EPSILONS):
        upper = min((a for a in attempts if a.excess > 0), key=lambda a: a.epsilon, default=None)
        top = min(epsilon, least_failure, math.inf if upper is None else upper.epsilon)
        lower = max((a for a in attempts if a.excess <= 0 and a.epsilon <= top), key=lambda a: a.epsilon, default=None)
        low, high = math.log(MIN_EPSILON if lower is None else lower.epsilon), math.log(top)
        nearest = min(attempts, key=lambda a: abs(a.excess), default=None)
        if (
            deadline.over()
            or high - low < SMALLER_EPSILON_RTOL
            or (nearest is not None and abs(nearest.excess) < LEAST_EXCESS)
            or (nearest is not None and rivals and not _is_promising(nearest, rivals))
            # Between both epsilons at least so many are needed for the targets.
            or (upper is not None and upper.for_targets > fewest(attempts) * (1 - LEAST_SAVING))
        ):
            break
        if first_epsilon is not None and lower is None and first_epsilon < top:
            log_epsilon = math.log(first_epsilon)
        else:
            is_open = upper is None and math.isinf(least_failure)
            log_epsilon = _log_epsilon_between(low, high, lower, upper, _slopes(attempts or rivals)[0], is_open)
        first_epsilon = None
        if (design := design_at(min(math.exp(log_epsilon), top))) is None:
            least_failure = math.exp(log_epsilon)
        else:
            attempts.append(design)
    return attempts


def fewest(attempts: Sequence[Attempt]) -> float:
    """Return the fewest respondents that one of these channels requires; inf if there is none."""
    return min((attempt.required for attempt in attempts), default=math.inf)


def _log_epsilon_between(
    low: float, high: float, lower: Attempt | None, upper: Attempt | None, rise: float, is_open: bool
) -> float:
    """Return the logarithm of an epsilon between two others, about where both numbers of respondents are equal.

    - `lower`, `upper` : the attempts at these two, if there are any. Their excess is negative and positive.
    - `rise` : the slope of the excess.
    - `is_open` : True if there was no attempt at the upper one, which may be returned.
    """
    low_excess = -math.inf if lower is None else lower.excess
    high_excess = math.inf if upper is None else upper.excess
    if math.isfinite(low_excess) and math.isfinite(high_excess):
        share = -low_excess / (high_excess - low_excess)
        return low + min(max(share, 0.1), 0.9) * (high - low)
    if math.isfinite(low_excess):
        step = min(max(-low_excess / rise, FIRST_STEP / 4), LARGEST_STEP)
        return min(low + step, high) if is_open else min(low + step, (low + high) / 2)
    step = min(max(high_excess / rise, FIRST_STEP), LARGEST_STEP) if math.isfinite(high_excess) else FIRST_STEP
    return max(high - step, (low + high) / 2)


def _is_promising(attempt: Attempt, rivals: Sequence[Attempt]) -> bool:
    """Return True if the slopes of `rivals` predict that this pilot needs fewer respondents than they do."""
    if not math.isfinite(attempt.excess):
        return True
    rise, fall = _slopes(rivals)
    predicted = math.log(attempt.for_targets) - fall / rise * attempt.excess
    return predicted < math.log(fewest(rivals)) - LEAST_SAVING


def _slopes(attempts: Sequence[Attempt]) -> tuple[float, float]:
    """Return the slopes of the excess and of the logarithm of `for_targets` in that of epsilon, near excess 0."""
    nearest = sorted((a for a in attempts if math.isfinite(a.excess)), key=lambda a: abs(a.excess))[:2]
    if len(nearest) < 2 or nearest[0].epsilon == nearest[1].epsilon:
        return USUAL_SLOPES
    first, second = nearest
    step = math.log(second.epsilon / first.epsilon)
    rise, fall = (second.excess - first.excess) / step, math.log(second.for_targets / first.for_targets) / step
    return max(rise, USUAL_SLOPES[0] / 8), min(fall, 0.0)
