"""Search for a channel with more noise than it must have, where too few rare reports need more respondents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldpopt.channel import Channel
from ldpopt.values.deadline import Deadline
from ldpopt_survey.plan.question import MIN_EPSILON

MAX_SMALLER_EPSILONS, MAX_UNIT_EPSILONS, SMALLER_EPSILON_RTOL = 8, 3, 0.05
"""How many smaller epsilons are tried for a channel whose rare reports need more respondents, and how exactly.

The second number is for questions that hang on one another, whose designs are slow.
"""

FIRST_STEP, LARGEST_STEP = 0.5 * math.log(2.0), 2 * math.log(2.0)
"""The step of the logarithm of epsilon if nothing is known of the excess there, and the largest one."""

LEAST_PART = 0.1
"""The next epsilon differs from both ends of the interval by at least this part of it."""

USUAL_SLOPES = 4.5, -1.5
"""The slopes of the excess, and of the logarithm of the respondents for targets, in the logarithm of epsilon."""

LEAST_RISE, LARGEST_RISE = 3.0, 9.0
"""The slopes of the excess that are taken for true; between two attempts it also has a random part."""

LEAST_EXCESS = 0.02
"""The logarithm of the ratio of both numbers of respondents where they count as equal."""

LEAST_SAVING, COARSE_LEAST_SAVING = 0.01, 0.03
"""The least saving of respondents for which another epsilon is tried; for slow designs, or to compare budgets."""


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
    least_saving: float = LEAST_SAVING,
    usual: float = 0.0,
    max_designs: int = MAX_SMALLER_EPSILONS,
) -> list[Attempt]:
    """Return the known attempts, and those of a search for the epsilon that needs the fewest respondents.

    At a large epsilon a channel hardly ever sends the report of a rare answer for other answers. With more noise such
    reports are frequent, so that fewer respondents make the intervals accurate. The standard errors are larger then, so
    the fewest respondents are needed where both numbers are equal. A bracketed secant method finds it.

    - `design_at` : it returns None if no channel is found at an epsilon.
    - `epsilon` (nats) : the largest one.
    - `known_attempts` : of this search. Those of larger epsilons do not count.
    - `first_epsilon` : an epsilon near the best one, if it is known.
    - `rivals` : the attempts for the same questions with another pilot of the search. The search ends if their slopes
      predict no fewer respondents than the best of them needs.
    - `least_saving` : the search ends if it is predicted to save a smaller part of the respondents.
    - `usual` : the least number of respondents whose part is meant.
    - `max_designs` : how many epsilons are tried at most.
    """
    attempts, least_failure = [attempt for attempt in known_attempts if attempt.epsilon <= epsilon], math.inf
    for _ in range(max_designs):
        upper = min((a for a in attempts if a.excess > 0), key=lambda a: a.epsilon, default=None)
        top = min(epsilon, least_failure, math.inf if upper is None else upper.epsilon)
        lower = max((a for a in attempts if a.excess <= 0 and a.epsilon <= top), key=lambda a: a.epsilon, default=None)
        low, high = math.log(MIN_EPSILON if lower is None else lower.epsilon), math.log(top)
        nearest = min(attempts, key=lambda a: abs(a.excess), default=None)
        slopes = _slopes(attempts or rivals)
        if (
            deadline.over()
            or high - low < SMALLER_EPSILON_RTOL
            or (nearest is not None and not _saves(nearest, slopes, attempts, least_saving, usual))
            or (nearest is not None and rivals and not _saves(nearest, _slopes(rivals), rivals, least_saving, usual))
            # Between both epsilons at least so many are needed for the targets.
            or (upper is not None and upper.for_targets > _worth(attempts, least_saving, usual))
        ):
            break
        if first_epsilon is not None and lower is None and (first_epsilon < top or not attempts):
            log_epsilon = math.log(min(first_epsilon, top))
        else:
            is_open = upper is None and math.isinf(least_failure)
            is_bracketed = lower is not None and upper is not None
            log_epsilon = _log_epsilon_between(low, high, nearest, slopes[0], is_open, is_bracketed)
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
    low: float, high: float, nearest: Attempt | None, rise: float, is_open: bool, is_bracketed: bool
) -> float:
    """Return the logarithm of an epsilon between two others, about where both numbers of respondents are equal.

    - `nearest` : the attempt whose excess is nearest to 0, if there is any.
    - `rise` : the slope of the excess.
    - `is_open` : True if there was no attempt at the upper one, which may be returned.
    - `is_bracketed` : True if there were attempts at both, with excesses below and above 0.
    """
    if nearest is None or not math.isfinite(nearest.excess):
        return max(high - FIRST_STEP, (low + high) / 2)
    log_epsilon = math.log(nearest.epsilon) + min(max(-nearest.excess / rise, -LARGEST_STEP), LARGEST_STEP)
    if is_bracketed and not low < log_epsilon < high:
        return (low + high) / 2
    margin = LEAST_PART * min(high - low, FIRST_STEP)
    return min(max(log_epsilon, low + margin), high if is_open else high - margin)


def _saves(
    attempt: Attempt, slopes: tuple[float, float], rivals: Sequence[Attempt], least_saving: float, usual: float
) -> bool:
    """Return True if a pilot is predicted to need fewer respondents at another epsilon than `rivals` do.

    - `attempt`, `slopes` : of this pilot.
    - `least_saving`, `usual` : as for `smaller_epsilons`.
    """
    if not math.isfinite(attempt.excess):
        return True
    rise, fall = slopes
    worth = _worth(rivals, least_saving, usual)
    return worth > 0 and math.log(attempt.for_targets) - fall / rise * attempt.excess < math.log(worth)


def _worth(attempts: Sequence[Attempt], least_saving: float, usual: float) -> float:
    """Return the respondents of another channel that would be worth its design, or fewer than 0 if none is."""
    needed = fewest(attempts)
    return needed if math.isinf(needed) else needed - least_saving * max(needed, usual)


def _slopes(attempts: Sequence[Attempt]) -> tuple[float, float]:
    """Return the slopes of the excess and of the logarithm of `for_targets` in that of epsilon, near excess 0."""
    nearest = sorted((a for a in attempts if math.isfinite(a.excess)), key=lambda a: abs(a.excess))[:2]
    if len(nearest) < 2 or nearest[0].epsilon == nearest[1].epsilon:
        return USUAL_SLOPES
    first, second = nearest
    step = math.log(second.epsilon / first.epsilon)
    rise, fall = (second.excess - first.excess) / step, math.log(second.for_targets / first.for_targets) / step
    return min(max(rise, LEAST_RISE), LARGEST_RISE), min(fall, 0.0)
