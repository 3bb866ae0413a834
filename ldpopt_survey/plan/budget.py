"""From questions with targets and one budget to an epsilon for each question and the fewest respondents [GI, Thm 2]."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from ldpopt.channel import Channel
from ldpopt.composition import compose
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.mechanisms import subset_selection
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.numbers.tolerances import SPLIT_RESPONDENTS
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import Array, distribution, positive_epsilon, unit_interval
from ldpopt.values.results import Result
from ldpopt_survey.plan.plan import BOOKLET
from ldpopt_survey.plan.precision import HalfWidth, Precision
from ldpopt_survey.plan.question import MIN_EPSILON, QuestionPlanner
from ldpopt_survey.plan.spec import SurveySpec

DESIGNED = 10
"""Up to this many categories the curves are those of optimal channels. Beyond, subset selection gives their shape."""

CORRECTIONS = 4
"""The most times that the heights of such curves are corrected."""


@dataclass(frozen=True)
class Budget:
    """The privacy budget of one respondent over all questions: (epsilon, delta)-DP, with epsilon in nats.

    With delta = 0 the epsilons of the questions add up. With delta > 0 the questions, each with its total variation
    eta_i, are composed exactly; for equal questions this is Theorem 2 [GI, Thm 2]. eta caps the total variation of all
    reports together.

    >>> Budget(2.0).allows([(0.5, 0.25), (1.5, 0.5)])
    True
    """

    epsilon: float
    delta: float = 0.0
    eta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(self.epsilon, "budget epsilon"))
        object.__setattr__(self, "delta", unit_interval(self.delta, "budget delta"))
        object.__setattr__(self, "eta", unit_interval(self.eta, "budget eta"))

    def allows(self, parts: Sequence[tuple[float, float]]) -> bool:
        """Whether questions with these (epsilon, eta) together stay within the budget.

        >>> Budget(1.0).allows([(0.5, 0.25), (0.5, 0.25)]), Budget(1.0).allows([(0.6, 0.25), (0.5, 0.25)])
        (True, False)
        """
        if 1 - math.prod(1 - eta for _, eta in parts) > self.eta * (1 - 1e-12) and self.eta < 1:
            return False
        if math.fsum(epsilon for epsilon, _ in parts) <= self.epsilon:
            return True
        if self.delta == 0:
            return False
        return compose([(epsilon, 0.0, eta) for epsilon, eta in parts]).epsilon_at(self.delta) <= self.epsilon


Needs = tuple[Array, Precision] | Callable[[float], float]


@dataclass(frozen=True, eq=False)
class Split(Result):
    """The epsilon of every question, by name, and the number of respondents that then meet every target."""

    epsilons: Mapping[str, float]
    respondents: int

    _heads = 1

    def _columns(self) -> dict[str, list[Any]]:
        return {"question": list(self.epsilons), "epsilon": list(self.epsilons.values())}

    def _title(self) -> str:
        return f"{self.respondents:,} respondents"

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {ceil_digits(epsilon, 4)}" for name, epsilon in self.epsilons.items())
        return f"Split({shown}; {self.respondents:,} respondents)"


def split_budget(
    questions: Mapping[str, tuple[Array, Precision]],
    budget: Budget,
    spent: Sequence[tuple[float, float]] = (),
    designed: int = DESIGNED,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Split:
    """Split `budget` over questions so that the fewest respondents meet every target.

    questions : for each name a pilot (the expected shares of the answers), shape (k,), and a target, a `HalfWidth` or a
        `TestPower`. For a test the channel is the one that estimates all shares well, since the question is estimated,
        too.
    spent : (epsilon, eta) of other questions that draw on the same budget.
    designed : up to so many categories, the optimal channel is computed for every epsilon that is tried. Beyond, the
        best subset selection gives the shape of the curve of respondents over epsilon, and optimal channels fix its
        height to 1 %. With 0 this is done for all questions, which takes a tenth of the time.
    time_limit, progress : as for `optimal_channel`. When the time is over, the split is one that the budget allows, not
        the best one.

    A question needs fewer respondents if its epsilon is larger. So in the best split all questions need the same number
    N. For each N the smallest epsilons follow, and bisection finds the least N whose epsilons fit the budget. Raises
    `InvalidInput` if no split within the range of epsilons fits.

    >>> even = {"a": ([0.2, 0.8], HalfWidth(0.05)), "b": ([0.2, 0.8], HalfWidth(0.05))}
    >>> split_budget(even, Budget(2.0))
    Split(a: 1, b: 1; 1,661 respondents)
    """
    with watched(time_limit, progress) as deadline:
        return split_within(questions, budget, spent, deadline, designed)


def split_within(
    questions: Mapping[str, Needs],
    budget: Budget,
    spent: Sequence[tuple[float, float]],
    deadline: Deadline,
    designed: int = DESIGNED,
    drawn: Mapping[str, Needs] = MappingProxyType({}),
) -> Split:
    """`split_budget` within a deadline; what a question needs may also be a function of epsilon.

    drawn : questions of which each respondent is asked one, at an epsilon that the split has under `BOOKLET`.
    """
    if not questions and not drawn:
        raise invalid("questions", "at least one", "none")
    curves: dict[str, _Curve] = {}
    known: dict[tuple[bytes, Any], _Curve] = {}
    for name, needs in {**questions, **drawn}.items():
        if callable(needs):
            curves[name] = _Curve(cache(needs))
            continue
        given, target = needs
        pilot = distribution(given, f"{name}: pilot")
        if (kind := (pilot.tobytes(), target)) not in known:
            known[kind] = _of_channels(QuestionPlanner(pilot), target, designed, deadline.inner)
        curves[name] = known[kind]
    shares = {name: curves[name] for name in questions}
    if drawn:  # the respondents of questions of which each person is asked one add up
        block = [curves[name] for name in drawn]
        shares[BOOKLET] = _Curve(
            lambda epsilon: math.fsum(curve.needed(epsilon) for curve in block),
            lambda epsilon: all([curve.settled(epsilon) for curve in block]),
        )
    for _ in deadline.rounds(range(CORRECTIONS)):
        split = _split(shares, budget, spent, deadline.inner)
        if all([curve.settled(split.epsilons[name]) for name, curve in shares.items()]):
            break
    return split


@dataclass(frozen=True)
class _Curve:
    """Respondents needed, as a number, for every epsilon.

    settled : whether the curve is exact at an epsilon and not that of something that stands in for the channels there;
        after the call it is.
    """

    needed: Callable[[float], float]
    settled: Callable[[float], bool] = lambda _: True


def _split(
    curves: Mapping[str, _Curve], budget: Budget, spent: Sequence[tuple[float, float]], deadline: Deadline
) -> Split:
    most, used = budget.epsilon, math.fsum(epsilon for epsilon, _ in spent)

    def parts(n: float) -> dict[str, float] | None:
        least = {}
        for name, curve in curves.items():
            if (epsilon := _least_epsilon(curve.needed, n, most, deadline)) is None:
                return None
            least[name] = epsilon
        return least

    def allowed(epsilons: Mapping[str, float] | None) -> bool:
        # The cap min(1, tanh(epsilon/2)) on eta holds for every channel of that epsilon [GI, Prop 2].
        return epsilons is not None and budget.allows([*spent, *((e, math.tanh(e / 2)) for e in epsilons.values())])

    low = high = max(curve.needed(most) for curve in curves.values())
    while not allowed(epsilons := parts(high)):
        if deadline.late:  # even shares, for want of time
            share = (most - used) / len(curves) * (1 - 1e-12)
            even = dict.fromkeys(curves, share)
            if not share >= MIN_EPSILON or not allowed(even):
                late = f"time_limit: {deadline.seconds:g} s were over before a split within the budget was known"
                raise SolverError(late)
            return Split(even, math.ceil(max(curve.needed(share) for curve in curves.values())))
        high *= 2
        if high > 1e15:
            raise InvalidInput(f"budget: expected enough for {len(curves) + len(spent)} questions, got {budget}")
    low = max(low, high / 2)
    while high > low * (1 + SPLIT_RESPONDENTS) and not deadline.over():
        middle = math.sqrt(low * high)
        if allowed(tried := parts(middle)):
            high, epsilons = middle, tried
        else:
            low = middle
    assert epsilons is not None
    if budget.delta == 0 and budget.eta == 1:  # scaled up to the small rest of the budget that bisection left
        share = (most - used) * (1 - 1e-12) / math.fsum(epsilons.values())
        epsilons = {name: epsilon * max(share, 1.0) for name, epsilon in epsilons.items()}
    needed = max(curve.needed(epsilons[name]) for name, curve in curves.items())
    return Split(epsilons, math.ceil(min(high, needed)))


def _of_channels(planner: QuestionPlanner, target: Precision, designed: int, deadline: Deadline) -> _Curve:
    """The curve of optimal channels.

    At equal shares it is known; for more than `designed` categories the best subset selection gives its shape, and the
    optimal channel at the last epsilon its height.
    """
    pilot, k = planner.pilot, len(planner.pilot)
    width = target if isinstance(target, HalfWidth) else None

    def respondents(channel: Channel) -> float:
        return float(target.respondents(channel, pilot))

    def optimal(epsilon: float) -> float:
        return respondents(planner.channel(epsilon, precision=width, **deadline.passed))

    if width is not None and width.category is None and uniform(pilot):
        return _Curve(cache(lambda epsilon: float(width.respondents_for(variance_at_uniform(k, epsilon)))))
    if k <= designed:
        return _Curve(cache(optimal))
    sizes = [size for size in range(1, k) if math.comb(k, size) * k <= 2**16]
    shape = cache(lambda epsilon: min(respondents(subset_selection(k, epsilon, size)) for size in sizes))
    height = 1.0

    def settled(epsilon: float) -> bool:
        nonlocal height
        before, height = height, optimal(epsilon) / shape(epsilon)
        return abs(height / before - 1) <= 0.01

    return _Curve(lambda epsilon: height * shape(epsilon), settled)


def uniform(pilot: Array) -> bool:
    """Whether all shares are equal."""
    return bool(pilot.max() - pilot.min() <= 1e-12)


def variance_at_uniform(k: int, epsilon: float) -> float:
    """The variance of each share, for one respondent, through the optimal channel for k equal shares.

    This channel is subset selection with the best size d. Its information is k d (k-d)/(k-1) times ((e^eps - 1)/(d
    e^eps + k - d))^2 in every direction [YB].
    """
    fall = math.exp(-epsilon)
    reach = [-math.expm1(-epsilon) / (d + (k - d) * fall) for d in range(1, k)]
    information = max(k * d * (k - d) / (k - 1) * reach[d - 1] ** 2 for d in range(1, k))
    return (1 - 1 / k) / information


def _least_epsilon(curve: Callable[[float], float], n: float, most: float, deadline: Deadline) -> float | None:
    """The smallest epsilon up to `most` at which n respondents suffice, by interpolation on a grid of 0.2 % steps."""
    try:
        if curve(most) > n:
            return None
        low, high = math.log(MIN_EPSILON), math.log(most)
        while high - low > SPLIT_RESPONDENTS and not deadline.over():
            middle = (low + high) / 2
            low, high = (middle, high) if curve(math.exp(round(middle, 4))) > n else (low, middle)
    except SolverError:
        if deadline.late:
            raise
        return None
    return math.exp(high)


EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, eq=False)
class Needed(Result):
    """For a budget of `epsilon` nats: the `respondents` that meet every target, and the people to invite, `invited`."""

    epsilon: float
    respondents: int
    invited: int


def invited(spec: SurveySpec, respondents: float) -> int:
    """The number of people to invite, so that the answers are as precise as a simple random sample of `respondents`.

    It is respondents x design effect / (1 - nonresponse), rounded up [SSW, section 2.10]. The design effect is the
    factor by which clusters and weights raise the number of respondents that is needed.

    >>> from ldpopt_survey import QuestionSpec
    >>> asked = (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),)
    >>> invited(SurveySpec("demo", asked, nonresponse=0.2, design_effect=1.5), 1000)
    1875
    """
    return math.ceil(respondents * spec.design_effect / (1 - spec.nonresponse) * (1 - 1e-12))
