"""From questions with targets and one budget to an epsilon for each question and the fewest respondents [GI, Thm 2]."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from ldpopt.errors import InvalidInput, SolverError, invalid
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.numbers.tolerances import SPLIT_RESPONDENTS
from ldpopt.values.deadline import Deadline, Progress, watched
from ldpopt.values.distribution import Array, distribution, positive_epsilon, unit_interval
from ldpopt.values.results import Result
from ldpopt_survey.plan.plan import BOOKLET, MAX_COMPOSED
from ldpopt_survey.plan.precision import HalfWidth, Precision
from ldpopt_survey.plan.question import MIN_EPSILON, QuestionPlanner
from ldpopt_survey.plan.spec import SurveySpec

DESIGNED = 10
"""Up to this many categories the curves are those of optimal channels. Beyond, subset selection gives their shape."""

CORRECTIONS, SETTLED = 4, 2e-3
"""The most times that the heights of such curves are corrected, and how near to the channels they then are."""

GRID, GROWTHS = 120, 4
"""How many epsilons are tried for each question where a cap on eta is shared out, too, and how often its parts grow."""


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
        if self.eta < 1 and total_variation_of(parts) > self.eta * (1 - 1e-12):
            return False
        if math.fsum(epsilon for epsilon, _ in parts) <= self.epsilon:
            return True
        if self.delta == 0:
            return False
        from ldpopt.composition import compose

        return compose([(epsilon, 0.0, eta) for epsilon, eta in parts]).epsilon_at(self.delta) <= self.epsilon


def total_variation_of(parts: Sequence[tuple[float, float]]) -> float:
    """A bound on the total variation of reports within these (epsilon, eta) together [GI, Thm 2]."""
    product = 1 - math.prod(1 - eta for _, eta in parts)
    positive = [(epsilon, 0.0, eta) for epsilon, eta in parts if epsilon > 0]
    if len(positive) < 2 or max(epsilon for epsilon, _, _ in positive) > MAX_COMPOSED:
        return product
    from ldpopt.composition import compose

    return min(product, float(compose(positive).total_variation().value))


@dataclass(frozen=True, eq=False)
class NeedsOf:
    """What questions that share a report need: the respondents at (epsilon, eta), where eta None is no cap.

    cells : the number of their answers together. kind : equal where the respondents are.
    at : (epsilon, eta, respondents) that stand for a design; between such designs the number is about right.
    """

    cells: int
    kind: object
    needed: Callable[[float, float | None], float]
    at: tuple[float, float | None, float] | None = None


Needs = tuple[Array, Precision] | NeedsOf
"""A pilot and a target, or what several questions need."""


@dataclass(frozen=True, eq=False)
class Split(Result):
    """The epsilon of every question, by name, and the number of respondents that then meet every target.

    etas : the cap on the total variation of every question, by name; empty where the budget has no cap that binds.
    """

    epsilons: Mapping[str, float]
    respondents: int
    etas: Mapping[str, float] = field(default_factory=dict)

    _heads = 1

    def _columns(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {"question": list(self.epsilons), "epsilon": list(self.epsilons.values())}
        return columns | ({"eta": [self.etas[name] for name in self.epsilons]} if self.etas else {})

    def _title(self) -> str:
        return f"{self.respondents:,} respondents"

    def __repr__(self) -> str:
        caps = {name: f" (eta {ceil_digits(eta, 4)})" for name, eta in self.etas.items()}
        limits = {name: ceil_digits(epsilon, 4) for name, epsilon in self.epsilons.items()}
        shown = ", ".join(f"{name}: {epsilon}{caps.get(name, '')}" for name, epsilon in limits.items())
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
    designed : up to so many categories, and without a cap on eta, the optimal channel is computed for every epsilon
        that is tried. Beyond, subset selection at even shares gives the shape of the curve of respondents, and optimal
        channels fix its height to 0.2 % where the split ends. With 0 this is done for all questions, which takes a
        tenth of the time.
    time_limit, progress : as for `optimal_channel`. When the time is over, the split is one that the budget allows, not
        the best one.

    A question needs fewer respondents if its epsilon is larger. So in the best split all questions need the same number
    N. For each N the smallest epsilons follow, and bisection finds the least N whose epsilons fit the budget. With a
    cap on eta, each question has a part of it as well: the parts whose epsilons have the least sum. Raises
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
    designed: int = 0,
    drawn: Mapping[str, Needs] = MappingProxyType({}),
    corrections: int = CORRECTIONS,
) -> Split:
    """`split_budget` within a deadline; what a question needs may also be a function of epsilon and eta.

    corrections : how many times channels are designed where the split ends, so that its number is that of channels.
    drawn : questions of which each respondent is asked one, at an epsilon that the split has under `BOOKLET`.
    """
    if not questions and not drawn:
        raise invalid("questions", "at least one", "none")
    capped = budget.eta < 1
    curves: dict[str, _Curve] = {}
    known: dict[Any, _Curve] = {}
    for name, needs in {**questions, **drawn}.items():
        if isinstance(needs, tuple):
            needs = distribution(needs[0], f"{name}: pilot"), needs[1]
        kind = needs.kind if isinstance(needs, NeedsOf) else (needs[0].tobytes(), needs[1])
        if kind not in known:
            known[kind] = _curve_of(needs, 0 if capped else designed, deadline.inner)
        curves[name] = known[kind]
    shares: dict[str, _Curve] = {name: curves[name] for name in questions}
    if drawn:  # the respondents of questions of which each person is asked one add up
        shares[BOOKLET] = _Sum([curves[name] for name in drawn])
    split = _split(shares, budget, spent, deadline.inner)
    for _ in deadline.rounds(range(corrections)):
        if all([curve.settled(split.epsilons[name], split.etas.get(name)) for name, curve in shares.items()]):
            break
        split = _split(shares, budget, spent, deadline.inner)
    people = max(float(curve(split.epsilons[name], split.etas.get(name))) for name, curve in shares.items())
    return Split(split.epsilons, math.ceil(people * (1 - 1e-12)), split.etas)


class _Curve:
    """Respondents needed, as a number, at (epsilon, eta), or at arrays of both; eta None where it is not capped."""

    def __call__(self, epsilon: Any, eta: Any = None) -> Any:
        raise NotImplementedError

    def settled(self, epsilon: float, eta: float | None) -> bool:
        """Whether the curve is exact there and not that of something that stands in for the channels; afterwards it
        is.
        """
        return True

    def least_eta(self, epsilons: Array, n: float) -> Array:
        """(grid,) the least eta at which n suffice, or inf where none does."""
        low, high = np.zeros(len(epsilons)), np.tanh(epsilons / 2)
        enough = self(epsilons, high) <= n
        for _ in range(30):
            middle = (low + high) / 2
            reached = self(epsilons, np.maximum(middle, 1e-12)) <= n
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.where(enough, high, np.inf)


class _Exact(_Curve):
    """Of a function of one epsilon, without a cap on eta."""

    def __init__(self, needed: Callable[[float], float]) -> None:
        self.needed = cache(needed)

    def __call__(self, epsilon: Any, eta: Any = None) -> Any:
        return self.needed(epsilon)


class _Shape(_Curve):
    """The curve of subset selection among k even shares, times the ratio to it of the channels that were designed.

    Between the epsilons of these designs the logarithm of the ratio is interpolated linearly in that of epsilon.
    """

    def __init__(self, k: int, designed: Callable[[float, float | None], float]) -> None:
        self.k, self.designed, self.ratios, self.fixed = k, designed, dict[float, float](), False

    def __call__(self, epsilon: Any, eta: Any = None) -> Any:
        shape = (1 - 1 / self.k) / information_at_uniform(self.k, epsilon, eta)
        if not self.ratios:
            return shape
        places, ratios = zip(*sorted(self.ratios.items()), strict=True)
        return shape * np.exp(np.interp(np.log(epsilon), places, ratios))

    def least_eta(self, epsilons: Array, n: float) -> Array:
        sizes, fall, rise = np.arange(1.0, self.k), np.exp(-epsilons)[:, None], -np.expm1(-epsilons)[:, None]
        reach = rise / (sizes + (self.k - sizes) * fall)
        # By a coin information falls with eta, so the size counts whose information is the largest for its eta.
        scale = self(epsilons) * information_at_uniform(self.k, epsilons)
        wanted = (scale / n)[:, None]
        information = self.k * sizes * (self.k - sizes) / (self.k - 1) * reach**2
        etas = np.where(wanted <= information, wanted / (self.k * reach), np.inf)
        return np.asarray(etas.min(axis=1))

    def settled(self, epsilon: float, eta: float | None) -> bool:
        if self.fixed:
            return True
        needed = self.designed(epsilon, eta)
        if not math.isfinite(needed):
            raise InvalidInput("budget: expected enough to estimate every question, got too little")
        before = float(self(epsilon, eta))
        self.put(epsilon, eta, needed)
        return abs(needed / before - 1) <= SETTLED

    def put(self, epsilon: float, eta: float | None, needed: float) -> None:
        """Let the curve go through what a design needs."""
        shape = (1 - 1 / self.k) / float(information_at_uniform(self.k, epsilon, eta))
        self.ratios[math.log(epsilon)] = math.log(needed / shape)


class _Sum(_Curve):
    """Of questions of which each person is asked one."""

    def __init__(self, curves: Sequence[_Curve]) -> None:
        self.curves = curves

    def __call__(self, epsilon: Any, eta: Any = None) -> Any:
        return sum(curve(epsilon, eta) for curve in self.curves)

    def settled(self, epsilon: float, eta: float | None) -> bool:
        return all([curve.settled(epsilon, eta) for curve in self.curves])


def _split(
    curves: Mapping[str, _Curve], budget: Budget, spent: Sequence[tuple[float, float]], deadline: Deadline
) -> Split:
    """The split of the fewest respondents by the curves as they are.

    Where eta is capped, its parts are first such that the product of 1 - eta suffices. As reports that are composed
    tell less, the parts then grow as long as their composition stays within the cap.
    """
    if budget.eta == 1:
        return _split_of(curves, budget, spent, math.inf, deadline)
    spare = -math.log1p(-budget.eta) + math.fsum(math.log1p(-eta) for _, eta in spent)
    split, best = None, math.inf
    for _ in range(GROWTHS):
        tried = _split_of(curves, budget, spent, spare, deadline)
        parts = [(epsilon, tried.etas[name]) for name, epsilon in tried.epsilons.items()]
        people = max(float(curve(tried.epsilons[name], tried.etas[name])) for name, curve in curves.items())
        if split is None or (people < best and budget.allows([*spent, *parts])):
            split, best = tried, people
        if not (reached := total_variation_of([*spent, *parts])) < budget.eta * (1 - SETTLED):
            break
        spare *= math.log1p(-budget.eta) / math.log1p(-reached)
    assert split is not None
    return split


def _split_of(
    curves: Mapping[str, _Curve], budget: Budget, spent: Sequence[tuple[float, float]], spare: float, deadline: Deadline
) -> Split:
    most, used = budget.epsilon, math.fsum(epsilon for epsilon, _ in spent)

    def parts(n: float) -> dict[str, tuple[float, float]] | None:
        if budget.eta < 1:
            return _least_parts(curves, n, most, spare)
        least = {}
        for name, curve in curves.items():
            if (epsilon := _least_epsilon(curve, n, most, deadline)) is None:
                return None
            least[name] = epsilon, math.tanh(epsilon / 2)  # holds for every channel of that epsilon [GI, Prop 2]
        return least

    def allowed(pairs: Mapping[str, tuple[float, float]] | None) -> bool:
        return pairs is not None and budget.allows([*spent, *pairs.values()])

    def made(pairs: Mapping[str, tuple[float, float]], n: float) -> Split:
        etas = {name: eta for name, (_, eta) in pairs.items()} if budget.eta < 1 else {}
        return Split({name: epsilon for name, (epsilon, _) in pairs.items()}, math.ceil(n), etas)

    low = high = max(float(curve(most, budget.eta if budget.eta < 1 else None)) for curve in curves.values())
    while not allowed(pairs := parts(high)):
        if deadline.late:  # even shares, for want of time
            share = (most - used) / len(curves) * (1 - 1e-12)
            cap = -math.expm1(-spare / len(curves)) * (1 - 1e-12) if budget.eta < 1 else 1.0
            even = dict.fromkeys(curves, (share, min(cap, math.tanh(share / 2))))
            if not share >= MIN_EPSILON or not allowed(even):
                late = f"time_limit: {deadline.seconds:g} s were over before a split within the budget was known"
                raise SolverError(late)
            needed = max(float(c(share, even[name][1] if budget.eta < 1 else None)) for name, c in curves.items())
            return made(even, needed)
        high *= 2
        if not high <= 1e15:
            raise InvalidInput(f"budget: expected enough for {len(curves) + len(spent)} questions, got {budget}")
    low = max(low, high / 2)
    while high > low * (1 + SPLIT_RESPONDENTS) and not deadline.over():
        middle = math.sqrt(low * high)
        if allowed(tried := parts(middle)):
            high, pairs = middle, tried
        else:
            low = middle
    assert pairs is not None
    if budget.delta == 0 and budget.eta == 1:  # scaled up to the small rest of the budget that bisection left
        share = max((most - used) * (1 - 1e-12) / math.fsum(epsilon for epsilon, _ in pairs.values()), 1.0)
        pairs = {name: (epsilon * share, math.tanh(epsilon * share / 2)) for name, (epsilon, _) in pairs.items()}
    return made(pairs, high)


def _least_parts(
    curves: Mapping[str, _Curve], n: float, most: float, spare: float
) -> dict[str, tuple[float, float]] | None:
    """(epsilon, eta) of every question at which n respondents suffice, with the least sum of epsilons.

    spare : -log(1 - eta) of all together, which those of the questions must not exceed in sum. On a grid of epsilons
    the least eta of each is found, and a price of -log(1 - eta) by bisection. None where nothing suffices.
    """
    grids = {}
    for name, curve in curves.items():
        epsilons = np.geomspace(MIN_EPSILON, most, GRID)
        for _ in range(2):  # the second grid begins where the first one reaches n
            etas = curve.least_eta(epsilons, n)
            enough = etas <= -math.expm1(-spare)
            if not enough.any():
                return None
            epsilons = np.geomspace(epsilons[max(int(enough.argmax()) - 1, 0)], most, GRID)
        etas = curve.least_eta(epsilons, n)
        enough = etas <= -math.expm1(-spare)
        grids[name] = epsilons[enough], etas[enough], -np.log1p(-etas[enough])

    def chosen(price: float) -> dict[str, int]:
        return {name: int(np.argmin(epsilons + price * paid)) for name, (epsilons, _, paid) in grids.items()}

    def paid_by(places: Mapping[str, int]) -> float:
        return math.fsum(float(grids[name][2][place]) for name, place in places.items())

    free, dear = 0.0, 1e6
    if paid_by(places := chosen(free)) > spare:
        if paid_by(places := chosen(dear)) > spare:
            return None
        for _ in range(50):
            price = math.sqrt(max(free, 1e-9) * dear)
            if paid_by(tried := chosen(price)) > spare:
                free = price
            else:
                dear, places = price, tried
    return {name: (float(grids[name][0][place]), float(grids[name][1][place])) for name, place in places.items()}


def _curve_of(needs: Needs, designed: int, deadline: Deadline) -> _Curve:
    """The curve of optimal channels; at equal shares it is known, and beyond `designed` answers it is a `_Shape`."""
    if isinstance(needs, NeedsOf):
        shape = _Shape(needs.cells, needs.needed)
        if needs.at is not None:
            epsilon, eta, needed = needs.at
            shape.put(epsilon, eta, needed)
            shape.fixed = True
        return shape
    pilot, target = needs
    planner, k, width = QuestionPlanner(pilot), len(pilot), target if isinstance(target, HalfWidth) else None

    def optimal(epsilon: float, eta: float | None = None) -> float:
        channel = planner.channel(epsilon, 1.0 if eta is None else eta, precision=width, **deadline.passed)
        return (
            width.unrounded_respondents(width.variance_of(channel, pilot))
            if width
            else float(target.respondents(channel, pilot))
        )

    if designed and width is not None and width.category is None and uniform(pilot):
        return _Exact(lambda epsilon: width.unrounded_respondents(variance_at_uniform(k, epsilon)))
    return _Exact(optimal) if k <= designed else _Shape(k, optimal)


def uniform(pilot: Array) -> bool:
    """Whether all shares are equal."""
    return bool(pilot.max() - pilot.min() <= 1e-12)


def variance_at_uniform(k: int, epsilon: float) -> float:
    """The variance of each share, for one respondent, through the optimal channel for k equal shares [YB]."""
    return (1 - 1 / k) / float(information_at_uniform(k, epsilon))


def information_at_uniform(k: int, epsilon: Any, eta: Any = None) -> Any:
    """What subset selection of the best size d tells of each direction at k equal shares [YB]; arrays give arrays.

    It is k d (k-d)/(k-1) times ((e^eps - 1)/(d e^eps + k - d))^2, with a total variation of (e^eps - 1) d (k-d) /
    ((k-1) (k + (e^eps - 1) d)). Where that exceeds eta, a public coin leaves out the answer: both fall in proportion.
    """
    epsilon, sizes = np.asarray(epsilon, dtype=np.float64)[..., None], np.arange(1.0, k)
    fall, rise = np.exp(-epsilon), -np.expm1(-epsilon)
    reach = rise / (sizes + (k - sizes) * fall)
    information = k * sizes * (k - sizes) / (k - 1) * reach**2
    if eta is not None:
        information = information * np.minimum(
            1.0, np.asarray(eta, dtype=np.float64)[..., None] / (sizes * (k - sizes) / (k - 1) * reach)
        )
    return information.max(axis=-1)


def _least_epsilon(curve: _Curve, n: float, most: float, deadline: Deadline) -> float | None:
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
