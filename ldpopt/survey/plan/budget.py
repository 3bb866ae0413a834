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
from ldpopt.deadline import Deadline, Progress, watched
from ldpopt.distribution import Array, distribution, positive_epsilon, unit_interval
from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.mechanisms import subset_selection
from ldpopt.results import Result
from ldpopt.survey.plan.plan import BOOKLET
from ldpopt.survey.plan.precision import HalfWidth, Precision
from ldpopt.survey.plan.question import MIN_EPSILON, QuestionPlanner
from ldpopt.survey.plan.spec import SurveySpec
from ldpopt.tolerances import SPLIT_RESPONDENTS

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
        shown = ", ".join(f"{name}: {epsilon:.4g}" for name, epsilon in self.epsilons.items())
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
    curves: dict[str, _Curve | _Given] = {}
    known: dict[tuple[bytes, Any], _Curve] = {}
    for name, needs in {**questions, **drawn}.items():
        if callable(needs):
            curves[name] = _Given(needs)
            continue
        given, target = needs
        pilot = distribution(given, f"{name}: pilot")
        curves[name] = known.setdefault((pilot.tobytes(), target), _Curve(pilot, target, designed, deadline.inner))
    made: dict[str, _Curve | _Given | _Drawn] = {name: curves[name] for name in questions}
    if drawn:
        made[BOOKLET] = _Drawn([curves[name] for name in drawn])
    for _ in deadline.rounds(range(CORRECTIONS)):
        split = _split(made, budget, spent, deadline.inner)
        if all([curve.settled(split.epsilons[name]) for name, curve in made.items()]):
            break
    return split


def _split(
    curves: Mapping[str, _Curve | _Given | _Drawn],
    budget: Budget,
    spent: Sequence[tuple[float, float]],
    deadline: Deadline,
) -> Split:
    most = budget.epsilon

    def parts(n: float) -> dict[str, float] | None:
        made = {}
        for name, curve in curves.items():
            epsilon = _least_epsilon(curve, n, most, deadline)
            if epsilon is None:
                return None
            made[name] = epsilon
        return made

    def allowed(n: float) -> bool:
        made = parts(n)
        # The cap min(1, tanh(epsilon/2)) on eta holds for every channel of that epsilon [GI, Prop 2].
        return made is not None and budget.allows([*spent, *((e, math.tanh(e / 2)) for e in made.values())])

    low = max(curve(most) for curve in curves.values())
    high = low
    while not allowed(high):
        if deadline.late:
            return _even(curves, budget, spent, deadline)
        high *= 2
        if high > 1e15:
            raise InvalidInput(f"budget: expected enough for {len(curves) + len(spent)} questions, got {budget}")
    low = max(low, high / 2)
    while high > low * (1 + SPLIT_RESPONDENTS) and not deadline.over():
        middle = math.sqrt(low * high)
        low, high = (low, middle) if allowed(middle) else (middle, high)
    made = parts(high)
    assert made is not None
    epsilons = _filled(made, budget, math.fsum(epsilon for epsilon, _ in spent))
    needed = max(curve(epsilons[name]) for name, curve in curves.items())
    return Split(epsilons, math.ceil(min(high, needed)))


def _even(
    curves: Mapping[str, _Curve | _Given | _Drawn],
    budget: Budget,
    spent: Sequence[tuple[float, float]],
    deadline: Deadline,
) -> Split:
    """Even shares, for want of time; `SolverError` where the budget does not allow them."""
    share = (budget.epsilon - math.fsum(epsilon for epsilon, _ in spent)) / len(curves) * (1 - 1e-12)
    if not share >= MIN_EPSILON or not budget.allows([*spent, *[(share, math.tanh(share / 2))] * len(curves)]):
        raise SolverError(f"time_limit: {deadline.seconds:g} s were over before a split within the budget was known")
    needed = max(curve(share) for curve in curves.values())
    return Split(dict.fromkeys(curves, share), math.ceil(needed))


def _filled(epsilons: dict[str, float], budget: Budget, spent: float) -> dict[str, float]:
    """The epsilons scaled up in proportion, so that they use the small rest of the budget that bisection left."""
    if budget.delta > 0 or budget.eta < 1:
        return epsilons
    share = (budget.epsilon - spent) * (1 - 1e-12) / math.fsum(epsilons.values())
    return {name: epsilon * max(share, 1.0) for name, epsilon in epsilons.items()}


class _Curve:
    """Respondents needed, as a number, for every epsilon."""

    def __init__(self, pilot: Array, target: Precision, designed: int, deadline: Deadline) -> None:
        self.deadline = deadline
        self.planner, self.target, self.height = QuestionPlanner(pilot), target, 1.0
        self.shape_of = target if isinstance(target, HalfWidth) else None
        self.uniform = self.shape_of is not None and self.shape_of.category is None and uniform(pilot)
        self.stands_in = len(pilot) > designed and not self.uniform
        self._shape = cache(self._needed)

    def __call__(self, epsilon: float) -> float:
        """The respondents at `epsilon`."""
        return self.height * self._shape(epsilon)

    def settled(self, epsilon: float) -> bool:
        """Whether the height already was that of the optimal channel at `epsilon`. After the call it is."""
        if not self.stands_in:
            return True
        before, channel = self.height, self._channel(epsilon)
        self.height = self._respondents(channel) / self._shape(epsilon)
        return abs(self.height / before - 1) <= 0.01

    def _needed(self, epsilon: float) -> float:
        k = len(self.planner.pilot)
        if self.uniform and self.shape_of is not None:
            return float(self.shape_of.respondents_for(variance_at_uniform(k, epsilon)))
        if not self.stands_in:
            return self._respondents(self._channel(epsilon))
        sizes = [size for size in range(1, k) if math.comb(k, size) * k <= 2**16]
        return min(self._respondents(subset_selection(k, epsilon, size)) for size in sizes)

    def _channel(self, epsilon: float) -> Channel:
        return self.planner.channel(epsilon, precision=self.shape_of, **self.deadline.passed)

    def _respondents(self, channel: Channel) -> float:
        return float(self.target.respondents(channel, self.planner.pilot))


class _Given:
    """Respondents needed, by a function of epsilon."""

    def __init__(self, needed: Callable[[float], float]) -> None:
        self._needed = cache(needed)

    def __call__(self, epsilon: float) -> float:
        """The respondents at `epsilon`."""
        return self._needed(epsilon)

    def settled(self, epsilon: float) -> bool:
        """Always: nothing stands in for the function."""
        return True


class _Drawn:
    """Respondents needed if each is asked one of several questions."""

    def __init__(self, curves: Sequence[_Curve | _Given]) -> None:
        self.curves = curves

    def __call__(self, epsilon: float) -> float:
        """The respondents at `epsilon`."""
        return math.fsum(curve(epsilon) for curve in self.curves)

    def settled(self, epsilon: float) -> bool:
        """As for one question."""
        return all([curve.settled(epsilon) for curve in self.curves])


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

    >>> from ldpopt.survey import QuestionSpec
    >>> asked = (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),)
    >>> invited(SurveySpec("demo", asked, nonresponse=0.2, design_effect=1.5), 1000)
    1875
    """
    return math.ceil(respondents * spec.design_effect / (1 - spec.nonresponse) * (1 - 1e-12))
