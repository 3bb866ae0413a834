"""Plan one question: compute respondents, epsilon, eta, half-width or power from the others.

The channel is optimal for the pilot (the expected shares of the answers) within epsilon and eta. More respondents, a
larger epsilon and a larger eta never reduce precision, so a bracketed secant method computes each of them. The result
is on the safe side: the returned respondents, epsilon or eta reach the target, and a half-width is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design import AOptimal, Divergence, FisherInformation, MVOptimal, Neighbourhood, optimal_channel
from ldpopt.divergences import CHI_SQUARED
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.mechanisms import randomized_response
from ldpopt.numbers.tolerances import PLANNED_EPSILON
from ldpopt.values.deadline import UNLIMITED, Deadline, Progress, watched
from ldpopt.values.distribution import distribution, positive_epsilon, positive_integer, unit_interval
from ldpopt.values.results import ByValue
from ldpopt_survey.plan.precision import (
    HalfWidth,
    Precision,
    TestPower,
    limits,
    no_channel_found,
    prior_for_search,
    require_precision,
    smoothed,
)

__all__ = ["MAX_EPSILON", "MIN_EPSILON", "MIN_ETA_SHARE", "QuestionPlanner"]

MIN_EPSILON, MAX_EPSILON = 0.01, 16.0
"""The range of epsilon. Below, a survey needs millions of respondents; above, it has hardly any privacy."""

MIN_ETA_SHARE = 1e-2
"""The smallest eta that is searched, as a share of tanh(epsilon/2)."""


@dataclass(frozen=True, eq=False)
class QuestionPlanner(ByValue):
    """Planner of one question from its pilot (k,): respondents, epsilon, eta, width or power from the others.

    Parameters
    ----------
    pilot : The expected proportions of the answers.
    neighbourhood : The distributions around the pilot that the plan must also serve, if any.

    All methods take `time_limit` and `progress` as `optimal_channel` does. After the time limit, the results are those
    of the best channel so far, which may need more respondents than the optimal one. The returned epsilon or eta still
    reaches the target; without a known one, `SolverError` is raised.

    >>> question = QuestionPlanner([0.1, 0.9])
    >>> question.respondents(HalfWidth(0.05), epsilon=1.0)
    1553
    >>> round(question.half_width(1553, epsilon=1.0), 6), round(question.epsilon(HalfWidth(0.05), 1553), 3)
    (0.05, 1.0)
    """

    pilot: Any
    neighbourhood: Neighbourhood | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "pilot", distribution(self.pilot, "pilot"))

    def channel(
        self,
        epsilon: float,
        eta: float = 1.0,
        precision: Precision | None = None,
        *,
        time_limit: float | None = None,
        progress: Progress = False,
    ) -> Channel:
        """Design the optimal channel for a precision, within epsilon (nats) and eta.

        By default the precision is the sum of variances. A neighbourhood also uses the sum of variances instead of the
        largest variance. With a cap on eta and more than 20 answers, the result is the channel for uniform proportions,
        which is computed at once.

        For a test, the result is the one of three channels that needs the fewest respondents:

        - the channel for the sum of variances;
        - the channel that preserves most of the chi-squared distance between pilot and alternative;
        - a binary question, whose reports give the test one degree of freedom.

        time_limit, progress : as for `optimal_channel`.
        """
        with watched(time_limit, progress) as deadline:
            return self._designed(epsilon, eta, precision, deadline)

    def _designed(self, epsilon: float, eta: float, precision: Precision | None, deadline: Deadline) -> Channel:
        k = len(self.pilot)
        criterion = AOptimal() if precision is None else require_precision(precision).criterion(k)
        if self.neighbourhood is not None and isinstance(criterion, MVOptimal):
            criterion = AOptimal()
        constraints = limits(positive_epsilon(epsilon), eta if unit_interval(eta, "eta") < 1 else None)
        prior = self.pilot if self.neighbourhood is not None else prior_for_search(self.pilot, eta)
        if prior is not self.pilot and isinstance(criterion, MVOptimal):
            criterion = AOptimal()
        is_test = isinstance(precision, TestPower) and self.neighbourhood is None
        turn = deadline.turn(0, 1 + is_test)
        priors = (prior, *smoothed(prior))
        for number, pilot in enumerate(priors):
            utility = FisherInformation(pilot, criterion, self.neighbourhood)
            try:
                for_variances = optimal_channel(utility, constraints, certify=False, **turn.passed).channel
                break
            except SolverError as error:
                if deadline.late or self.neighbourhood is not None:
                    raise
                if number == len(priors) - 1:
                    raise no_channel_found("question", self.pilot, epsilon) from error
        if not isinstance(precision, TestPower) or self.neighbourhood is not None:
            return for_variances
        turn = deadline.turn(1, 2)
        divergence = Divergence(CHI_SQUARED, precision.alternative, self.pilot)
        for_divergence = optimal_channel(divergence, constraints, certify=False, **turn.passed).channel
        return min(
            [for_variances, for_divergence, *self._cuts(precision, epsilon, eta)],
            key=lambda channel: precision.respondents(channel, self.pilot),
        )

    def _cuts(self, precision: TestPower, epsilon: float, eta: float) -> Iterator[Channel]:
        """Yield binary questions "does the alternative make this answer likelier?", one per cut of the ratio."""
        binary, variation = randomized_response(2, epsilon), math.tanh(epsilon / 2)
        order = np.argsort(np.arctan2(precision.alternative, self.pilot), kind="stable")  # by likelihood ratio
        for cut in range(1, len(order)):
            side = np.isin(np.arange(len(order)), order[cut:]).astype(int)
            channel = Channel(binary.matrix[side])
            cut_moves = precision.alternative[side == 1].sum() != self.pilot[side == 1].sum()
            if cut_moves:
                yield channel if eta >= variation else channel.erase(min(1.0, 1 - eta / variation + 1e-15))

    def respondents(
        self,
        precision: Precision,
        epsilon: float,
        eta: float = 1.0,
        *,
        time_limit: float | None = None,
        progress: Progress = False,
    ) -> int:
        """Compute the fewest respondents that reach `precision`."""
        with watched(time_limit, progress) as deadline:
            return require_precision(precision).respondents(
                self._designed(epsilon, eta, precision, deadline), self.pilot
            )

    def half_width(
        self,
        n: int,
        epsilon: float,
        eta: float = 1.0,
        level: float = 0.95,
        category: int | None = None,
        *,
        time_limit: float | None = None,
        progress: Progress = False,
    ) -> float:
        """Compute the half-width of n respondents, for the widest interval or one category."""
        with watched(time_limit, progress) as deadline:
            return self._reached(HalfWidth(0.5, level, category), n, epsilon, eta, deadline)

    def power(
        self,
        n: int,
        alternative: Any,
        epsilon: float,
        eta: float = 1.0,
        level: float = 0.05,
        *,
        time_limit: float | None = None,
        progress: Progress = False,
    ) -> float:
        """Compute the power of n respondents against `alternative`, by goodness of fit."""
        with watched(time_limit, progress) as deadline:
            return self._reached(TestPower(alternative, level=level), n, epsilon, eta, deadline)

    def epsilon(
        self,
        precision: Precision,
        n: int,
        eta: float = 1.0,
        *,
        time_limit: float | None = None,
        progress: Progress = False,
    ) -> float:
        """Compute the smallest epsilon that lets n respondents reach `precision`."""
        ends = MIN_EPSILON, MAX_EPSILON
        with watched(time_limit, progress) as deadline:
            required = partial(self._unrounded, require_precision(precision), eta=eta, deadline=deadline.inner)
            return _find_smallest(required, positive_integer(n, "n"), ends, -2.0, "epsilon", deadline)

    def eta(
        self,
        precision: Precision,
        n: int,
        epsilon: float,
        *,
        time_limit: float | None = None,
        progress: Progress = False,
    ) -> float:
        """Compute the smallest eta that lets n respondents reach `precision` with `epsilon`."""
        max_eta = math.tanh(positive_epsilon(epsilon) / 2)
        with watched(time_limit, progress) as deadline:
            required = partial(self._unrounded, require_precision(precision), epsilon, deadline=deadline.inner)
            return _find_smallest(
                required, positive_integer(n, "n"), (MIN_ETA_SHARE * max_eta, max_eta), -1.0, "eta", deadline
            )

    def _reached(
        self, precision: HalfWidth | TestPower, n: int, epsilon: float, eta: float, deadline: Deadline
    ) -> float:
        channel = self._designed(epsilon, eta, precision, deadline)
        return precision.reached(channel, self.pilot, positive_integer(n, "n"))

    def _unrounded(self, precision: Precision, epsilon: float, eta: float, deadline: Deadline) -> float:
        """Return the respondents, unrounded for a half-width and an integer for other targets."""
        channel = self._designed(epsilon, eta, precision, deadline)
        if not isinstance(precision, HalfWidth):
            return float(precision.respondents(channel, self.pilot))
        return precision.unrounded_respondents(precision.variance_of(channel, self.pilot))


def _find_smallest(
    required: Callable[[float], float], n: int, ends: tuple[float, float], slope: float, name: str,
    deadline: Deadline = UNLIMITED,
) -> float:  # fmt: skip
    """Return the smallest argument that suffices for n respondents; `InvalidInput` if the largest does not.

    The search is in logarithms. It starts at 1 or at the nearer end, follows a line of `slope` and then secants. Each
    step overshoots a little, so that a good step leaves a bracket of the required accuracy. If steps do not help, as
    with integers, the bracket is halved. When the time is over, the smallest sufficient argument so far is returned.
    """
    low, high = 0.0, math.inf  # the largest argument that fails, the smallest that reaches
    x, last_point, overshoot = min(max(1.0, ends[0]), ends[1]), (math.nan, math.nan), PLANNED_EPSILON / 3
    for step in range(200):
        excess = math.log(max(required(x), 1e-300) / n)
        low, high = (low, x) if excess <= 0 else (x, high)
        if low >= ends[1]:
            break
        if high <= ends[0] or high <= low * (1 + PLANNED_EPSILON):
            return high
        deadline.tell(1 - 0.8**step)
        if deadline.over():
            if high < math.inf:
                return high
            raise SolverError(f"time_limit: {deadline.seconds:g} s were over before any {name} was known to be enough")
        if math.isfinite(excess):
            secant = (
                (excess - last_point[1]) / (math.log(x) - last_point[0]) if math.log(x) != last_point[0] else math.nan
            )
            if secant < 0:
                slope = min(max(secant, -50.0), -0.05)
            # After two steps on the same side the next one goes further beyond, to leave a flat stretch.
            overshoot = min(4 * overshoot, 1.0) if (excess > 0) == (last_point[1] > 0) and step else PLANNED_EPSILON / 3
            last_point = math.log(x), excess
            proposal = math.exp(
                last_point[0] + min(max(-excess / slope, -20.0), 20.0) + math.copysign(overshoot, excess)
            )
        else:
            proposal = 4 * x
        x = min(max(proposal, ends[0]), ends[1])
        if not low < x < high or (step > 8 and math.isfinite(high) and low > 0):
            x = math.sqrt(max(low, ends[0]) * min(high, ends[1]))
    raise InvalidInput(
        f"{name}: expected a precision that {n} respondents can reach, got one beyond {name} = {ends[1]:.6g}; "
        "take more respondents or a wider interval"
    )
