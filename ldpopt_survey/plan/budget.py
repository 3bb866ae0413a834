"""Split one budget over questions with targets, so that the fewest respondents are needed [GI, Thm 2]."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
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
from ldpopt_survey.plan.plan import BOOKLET, MAX_COMPOSED_EPSILON
from ldpopt_survey.plan.precision import HalfWidth, Precision
from ldpopt_survey.plan.question import MIN_EPSILON, QuestionPlanner
from ldpopt_survey.plan.spec import SurveySpec

MAX_DESIGNED_CATEGORIES = 10
"""Up to this many categories the curves are those of optimal channels. Beyond, subset selection gives their shape."""

MAX_QUICK_CELLS, MAX_SLOW_DESIGNS = 16, 4
"""Of more answers together than the first number, so many channels are designed at most.

They fix the curve of respondents, which is erratic where reports are rare, so that further ones change little.
"""

MAX_CURVE_CORRECTIONS, CURVE_RTOL, COARSE_CURVE_RTOL = 4, 2e-3, 5e-3
"""The most times that the heights of such curves are corrected, and how near to the channels they then are.

The second number is for questions that share a report, whose channels are coarse.
"""

MAX_EXTRAPOLATION, MAX_SLOPE = 0.1, 1.0
"""How far the logarithm of such a height is a line below the least epsilon of a design, and its largest slope."""

EPSILON_BISECTIONS = 30
"""How often the interval of the largest epsilon of a single question is halved."""

EPSILON_GRID_POINTS, ETA_STEPS, MAX_CAP_GROWTHS = 120, 20, 4
"""How many epsilons are tried for each question where a cap on eta is shared out, too, and how often its parts grow."""

PRICE_STEPS, NEAR_STEP = 20, 1.02
"""How often the price of eta is bisected, and by what factor respondents first change near those of another split."""


@dataclass(frozen=True)
class Budget:
    """The privacy budget of one respondent over all questions: (epsilon, delta)-DP, with epsilon in nats.

    With delta = 0 the epsilons of the questions add up. With delta > 0 the questions, each with its total variation
    eta_i, are composed exactly. For equal questions this is Theorem 2 [GI, Thm 2]. The cap `eta` bounds the total
    variation of all reports together.

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
        """Return True if questions with these (epsilon, eta) together are within the budget.

        >>> Budget(1.0).allows([(0.5, 0.25), (0.5, 0.25)]), Budget(1.0).allows([(0.6, 0.25), (0.5, 0.25)])
        (True, False)
        """
        is_within_sum = math.fsum(epsilon for epsilon, _ in parts) <= self.epsilon
        if not is_within_sum and self.delta == 0:
            return False
        cap = self.eta * (1 - 1e-12)
        if self.eta < 1 and not (_product_of(parts) <= cap or total_variation_of(parts) <= cap):
            return False
        if is_within_sum:
            return True
        from ldpopt.composition import compose

        return compose([(epsilon, 0.0, eta) for epsilon, eta in parts]).epsilon_at(self.delta) <= self.epsilon

    def largest_epsilon(self, parts: Sequence[tuple[float, float]], eta: float | None = None) -> float:
        """Return the largest epsilon of one more question, with this cap on its total variation.

        It is at most the budget's. With a positive delta it is found by bisection, and rounded down.

        >>> Budget(2.0).largest_epsilon([(0.5, 0.25)])
        1.4999999999985
        """
        low = (self.epsilon - math.fsum(epsilon for epsilon, _ in parts)) * (1 - 1e-12)
        high = self.epsilon
        for _ in range(EPSILON_BISECTIONS if self.delta > 0 else 0):
            middle = (low + high) / 2
            claim = middle, min(math.tanh(middle / 2), 1.0 if eta is None else eta)
            low, high = (middle, high) if middle > 0 and self.allows([*parts, claim]) else (low, middle)
        if not low >= MIN_EPSILON:
            raise InvalidInput(f"budget: expected enough for {len(parts) + 1} questions, got {self}")
        return low


def total_variation_of(parts: Sequence[tuple[float, float]]) -> float:
    """Bound the total variation of reports within these (epsilon, eta) together [GI, Thm 2]."""
    product = _product_of(parts)
    positive_parts = [(epsilon, 0.0, eta) for epsilon, eta in parts if epsilon > 0]
    if len(positive_parts) < 2 or max(epsilon for epsilon, _, _ in positive_parts) > MAX_COMPOSED_EPSILON:
        return product
    from ldpopt.composition import compose

    return min(product, float(compose(positive_parts).total_variation().value))


def _product_of(parts: Sequence[tuple[float, float]]) -> float:
    """Bound the total variation of reports within these (epsilon, eta) together, for any epsilons."""
    return -math.expm1(math.fsum(-math.inf if eta == 1 else math.log1p(-eta) for _, eta in parts))


@dataclass(frozen=True, eq=False)
class SharedNeeds:
    """Requirement of questions that share a report.

    - `cells` : the number of their answers together.
    - `kind` : equal where the respondents are.
    - `design` : the epsilon of the channel that is designed within (epsilon, eta), and its respondents. Where reports
      would be rare, that epsilon is smaller. An eta of None means no cap.
    - `known_design` : (epsilon, eta, respondents) of the design that needs the fewest. Others need about as many more
      as at even shares.
    - `rtol` : how near to those of designs the respondents at the final split are.
    """

    cells: int
    kind: object
    design: Callable[[float, float | None], tuple[float, float]]
    known_design: tuple[float, float | None, float] | None = None
    rtol: float = CURVE_RTOL


Needs = tuple[Array, Precision] | SharedNeeds
"""A pilot and a target, or what several questions need."""


@dataclass(frozen=True, eq=False)
class Split(Result):
    """Epsilon of every question, by name, and the number of respondents who meet every target.

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
        epsilons = ", ".join(f"{name}: {epsilon}{caps.get(name, '')}" for name, epsilon in limits.items())
        return f"Split({epsilons}; {self.respondents:,} respondents)"


def split_budget(
    questions: Mapping[str, tuple[Array, Precision]],
    budget: Budget,
    other_claims: Sequence[tuple[float, float]] = (),
    max_designed: int = MAX_DESIGNED_CATEGORIES,
    *,
    time_limit: float | None = None,
    progress: Progress = False,
) -> Split:
    """Split `budget` over questions so that the fewest respondents meet every target.

    Parameters
    ----------
    questions : For each name a pilot (the expected proportions of the answers), shape (k,), and a target, a `HalfWidth`
    or
        a `TestPower`. For a test the channel is the one that estimates all proportions well, since the question is
        estimated, too.
    budget : The budget of one respondent.
    other_claims : (epsilon, eta) of other questions that draw on the same budget.
    max_designed : The largest number of categories with an optimal channel for every epsilon in the search, without a
    cap
        on eta. For more, subset selection at uniform proportions gives the shape of the curve of respondents, and
        optimal channels fix its height to 0.2 % at the final split. With 0 this is done for all questions, in a tenth
        of the time.
    time_limit, progress : As for `optimal_channel`. After the time limit, the split is one that the budget allows, not
        the best one.

    Returns
    -------
    Split
        The epsilon of each question, in nats, its eta, and the number of respondents.

    Raises
    ------
    InvalidInput
        If no split within the range of epsilons fits.

    Notes
    -----
    A question needs fewer respondents if its epsilon is larger. So in the best split all questions need the same number
    N. For each N the smallest epsilons follow, and bisection finds the least N whose epsilons fit the budget. With a
    cap on eta, each question has a part of it as well: the parts whose epsilons have the least sum.

    >>> even = {"a": ([0.2, 0.8], HalfWidth(0.05)), "b": ([0.2, 0.8], HalfWidth(0.05))}
    >>> split_budget(even, Budget(2.0))
    Split(a: 1, b: 1; 1,661 respondents)
    """
    with watched(time_limit, progress) as deadline:
        return split_within(questions, budget, other_claims, deadline, max_designed)


def split_within(
    questions: Mapping[str, Needs],
    budget: Budget,
    other_claims: Sequence[tuple[float, float]],
    deadline: Deadline,
    max_designed: int = 0,
    booklet_needs: Mapping[str, Needs] = MappingProxyType({}),
    corrections: int = MAX_CURVE_CORRECTIONS,
    known_curves: KnownCurves | None = None,
    uncorrected: Container[str] = (),
) -> Split:
    """Split a budget within a deadline; the requirement of a question may be a function.

    - `max_designed` : as in `split_budget`.
    - `corrections` : the most times that channels are designed at the final split.
    - `known_curves` : of former calls with the same questions and caps, and of this one afterwards.
    - `uncorrected` : questions whose channels are not designed at the final split.
    - `booklet_needs` : questions that are alternatives for a respondent; the split has their epsilon under `BOOKLET`.
    """
    if not questions and not booklet_needs:
        raise invalid("questions", "at least one", "none")
    has_cap = budget.eta < 1
    curves: dict[str, _Curve] = {}
    curve_by_kind = {} if known_curves is None else known_curves
    for name, needs in {**questions, **booklet_needs}.items():
        if isinstance(needs, tuple):
            needs = distribution(needs[0], f"{name}: pilot"), needs[1]
        kind = needs.kind if isinstance(needs, SharedNeeds) else (needs[0].tobytes(), needs[1])
        if kind not in curve_by_kind:
            curve_by_kind[kind] = _curve_of(needs, 0 if has_cap else max_designed, deadline.inner)
        curves[name] = curve_by_kind[kind]
    curve_by_part: dict[str, _Curve] = {name: curves[name] for name in questions}
    if booklet_needs:  # the respondents of alternative questions add up
        curve_by_part[BOOKLET] = _Sum([curves[name] for name in booklet_needs])
    split = _split(curve_by_part, budget, other_claims, deadline.inner)
    for _ in deadline.rounds(range(corrections)):
        corrected = [(name, curve) for name, curve in curve_by_part.items() if name not in uncorrected]
        if all([curve.refine(split.epsilons[name], split.etas.get(name)) for name, curve in corrected]):
            break
        split = _split(curve_by_part, budget, other_claims, deadline.inner, split.respondents)
    respondents = max(float(curve(split.epsilons[name], split.etas.get(name))) for name, curve in curve_by_part.items())
    return Split(split.epsilons, math.ceil(respondents * (1 - 1e-12)), split.etas)


class _Curve:
    """Unrounded respondents needed at (epsilon, eta), or at arrays of both; eta None means no cap."""

    def __call__(self, epsilon: Any, eta: Any = None) -> Any:
        raise NotImplementedError

    def refine(self, epsilon: float, eta: float | None) -> bool:
        """Return True if the curve is exact there; otherwise make it exact by a design.

        An approximate curve interpolates between designed channels.
        """
        return True

    def smallest_eta(self, epsilons: Array, n: float) -> Array:
        """Return the smallest eta (grid,) that suffices for n respondents, or inf."""
        low, high = np.zeros(len(epsilons)), np.tanh(epsilons / 2)
        low_rate, high_rate = np.zeros(len(epsilons)), 1 / self(epsilons, high)
        is_sufficient = high_rate >= 1 / n
        for number in range(ETA_STEPS):
            fraction: Any = 0.5
            if number % 2 == 0:  # The inverse of the respondents is nearly linear in eta.
                fraction = np.clip((1 / n - low_rate) / np.maximum(high_rate - low_rate, 1e-300), 1e-3, 1.0)
            middle = low + fraction * (high - low)
            rate = 1 / self(epsilons, np.maximum(middle, 1e-12))
            is_reached = rate >= 1 / n
            low, high = np.where(is_reached, low, middle), np.where(is_reached, middle, high)
            low_rate, high_rate = np.where(is_reached, low_rate, rate), np.where(is_reached, rate, high_rate)
        return np.where(is_sufficient, high, np.inf)


KnownCurves = dict[Any, _Curve]
"""Curves by the requirements of their questions."""


class _Exact(_Curve):
    """Curve of a function of epsilon, without a cap on eta."""

    def __init__(self, respondents: Callable[[float], float]) -> None:
        self.respondents = cache(respondents)

    def __call__(self, epsilon: Any, eta: Any = None) -> Any:
        return self.respondents(epsilon)


class _Shape(_Curve):
    """Curve of subset selection at k uniform shares, multiplied by the ratio of the designed channels to it.

    Between the epsilons of these designs, and a little below, the logarithm of the ratio is linear in that of epsilon.
    """

    def __init__(
        self, k: int, design: Callable[[float, float | None], tuple[float, float]], rtol: float = CURVE_RTOL
    ) -> None:
        self.k, self.design, self.rtol, self.ratios = k, design, rtol, dict[float, float]()
        self.best_epsilon, self.fewest = math.inf, 0.0  # More epsilon than the best one saves no respondents.
        self.designed: list[tuple[float, float | None]] = []

    def __call__(self, epsilon: Any, eta: Any = None) -> Any:
        shape = (1 - 1 / self.k) / information_at_uniform(self.k, epsilon, eta)
        if not self.ratios:
            return shape
        log_epsilons, ratios = np.array(sorted(self.ratios.items())).T
        log_epsilon = np.log(epsilon)
        log_ratio = np.interp(log_epsilon, log_epsilons, ratios)
        if len(ratios) > 1:  # Below the least epsilon of a design, the line continues a little.
            slope = (ratios[1] - ratios[0]) / max(log_epsilons[1] - log_epsilons[0], 1e-9)
            distance = np.clip(log_epsilons[0] - log_epsilon, 0.0, MAX_EXTRAPOLATION)
            log_ratio = log_ratio - distance * np.clip(slope, -MAX_SLOPE, MAX_SLOPE)
        return np.maximum(shape * np.exp(log_ratio), self.fewest)

    def smallest_eta(self, epsilons: Array, n: float) -> Array:
        sizes, fall, rise = np.arange(1.0, self.k), np.exp(-epsilons)[:, None], -np.expm1(-epsilons)[:, None]
        reach = rise / (sizes + (self.k - sizes) * fall)
        # By a coin information falls with eta, so the size counts whose information is the largest for its eta.
        scale = self(epsilons) * information_at_uniform(self.k, epsilons)
        required_information = (scale / n)[:, None]
        information = self.k * sizes * (self.k - sizes) / (self.k - 1) * reach**2
        etas = np.where(required_information <= information, required_information / (self.k * reach), np.inf)
        return np.asarray(etas.min(axis=1))

    def refine(self, epsilon: float, eta: float | None) -> bool:
        if any(_is_near((epsilon, eta), other, self.rtol / 2) for other in self.designed):
            return True
        if eta is None and epsilon >= self.best_epsilon:
            return True
        if self.k > MAX_QUICK_CELLS and len(self.designed) >= MAX_SLOW_DESIGNS:
            return True
        self.designed.append((epsilon, eta))
        used_epsilon, respondents = self.design(epsilon, eta)
        if not math.isfinite(respondents):
            raise InvalidInput("budget: expected enough to estimate every question, got too little")
        interpolated = float(self(epsilon, eta))
        self.put(epsilon if eta is not None else used_epsilon, eta, respondents)
        if eta is None and used_epsilon < epsilon:
            self.best_epsilon, self.fewest = used_epsilon, respondents
        return abs(respondents / interpolated - 1) <= self.rtol

    def put(self, epsilon: float, eta: float | None, respondents: float) -> None:
        """Set the curve to the respondents that a design needs."""
        shape = (1 - 1 / self.k) / float(information_at_uniform(self.k, epsilon, eta))
        self.ratios[math.log(epsilon)] = math.log(respondents / shape)


def _is_near(first: tuple[float, float | None], second: tuple[float, float | None], rtol: float) -> bool:
    """Return True if the numbers of two designs hardly differ, and so their respondents."""
    pairs = zip(first, second, strict=True)
    return all(a == b or (a and b and abs(a / b - 1) <= rtol) for a, b in pairs)


class _Sum(_Curve):
    """Sum of the curves of questions that are alternatives for a respondent."""

    def __init__(self, curves: Sequence[_Curve]) -> None:
        self.curves = curves

    def __call__(self, epsilon: Any, eta: Any = None) -> Any:
        return sum(curve(epsilon, eta) for curve in self.curves)

    def refine(self, epsilon: float, eta: float | None) -> bool:
        return all([curve.refine(epsilon, eta) for curve in self.curves])


def _split(
    curves: Mapping[str, _Curve],
    budget: Budget,
    other_claims: Sequence[tuple[float, float]],
    deadline: Deadline,
    expected: float = math.inf,
) -> Split:
    """Return the split with the fewest respondents by the present curves; `expected` is about their number, if known.

    If eta is capped, its parts first satisfy the product rule for 1 - eta. The composition of reports has a smaller
    total variation, so the parts then grow while it stays within the cap.
    """
    if budget.eta == 1:
        return _split_of(curves, budget, other_claims, math.inf, deadline, expected)
    log_budget = -math.log1p(-budget.eta) + math.fsum(math.log1p(-eta) for _, eta in other_claims)
    split, fewest_respondents, respondents = None, math.inf, expected
    for _ in range(MAX_CAP_GROWTHS):
        candidate = _split_of(curves, budget, other_claims, log_budget, deadline, respondents)
        parts = [(epsilon, candidate.etas[name]) for name, epsilon in candidate.epsilons.items()]
        respondents = max(
            float(curve(candidate.epsilons[name], candidate.etas[name])) for name, curve in curves.items()
        )
        if split is None or (respondents < fewest_respondents and budget.allows([*other_claims, *parts])):
            split, fewest_respondents = candidate, respondents
        if not (variation := total_variation_of([*other_claims, *parts])) < budget.eta * (1 - CURVE_RTOL):
            break
        log_budget *= math.log1p(-budget.eta) / math.log1p(-variation)
    assert split is not None
    return split


def _split_of(
    curves: Mapping[str, _Curve],
    budget: Budget,
    other_claims: Sequence[tuple[float, float]],
    log_budget: float,
    deadline: Deadline,
    expected: float = math.inf,
) -> Split:
    """Return the split with the fewest respondents; `expected` is about their number, if known."""
    max_epsilon, other_epsilon = budget.epsilon, math.fsum(epsilon for epsilon, _ in other_claims)

    def parts_for(n: float) -> dict[str, tuple[float, float]] | None:
        if budget.eta < 1:
            return _smallest_parts(curves, n, max_epsilon, log_budget)
        smallest = {}
        for name, curve in curves.items():
            if (epsilon := _smallest_epsilon(curve, n, max_epsilon, deadline)) is None:
                return None
            smallest[name] = epsilon, math.tanh(epsilon / 2)  # holds for every channel of that epsilon [GI, Prop 2]
        return smallest

    def is_allowed(pairs: Mapping[str, tuple[float, float]] | None) -> bool:
        return pairs is not None and budget.allows([*other_claims, *pairs.values()])

    def build_split(pairs: Mapping[str, tuple[float, float]], n: float) -> Split:
        etas = {name: eta for name, (_, eta) in pairs.items()} if budget.eta < 1 else {}
        return Split({name: epsilon for name, (epsilon, _) in pairs.items()}, math.ceil(n), etas)

    low = max(float(curve(max_epsilon, budget.eta if budget.eta < 1 else None)) for curve in curves.values())
    high, step = (expected, NEAR_STEP) if low < expected < math.inf else (low, 2.0)
    pairs = parts_for(high)
    while high > low and is_allowed(pairs):
        if not is_allowed(lower_pairs := parts_for(lower := max(low, high / step))):
            low = lower
            break
        high, pairs, step = lower, lower_pairs, step**2
    while not is_allowed(pairs):
        if deadline.late:  # even shares, for want of time
            share = (max_epsilon - other_epsilon) / len(curves) * (1 - 1e-12)
            cap = -math.expm1(-log_budget / len(curves)) * (1 - 1e-12) if budget.eta < 1 else 1.0
            equal_parts = dict.fromkeys(curves, (share, min(cap, math.tanh(share / 2))))
            if not share >= MIN_EPSILON or not is_allowed(equal_parts):
                message = f"time_limit: {deadline.seconds:g} s were over before a split within the budget was known"
                raise SolverError(message)
            required = max(
                float(c(share, equal_parts[name][1] if budget.eta < 1 else None)) for name, c in curves.items()
            )
            return build_split(equal_parts, required)
        low, high = high, high * step
        if not high <= 1e15:
            raise InvalidInput(f"budget: expected enough for {len(curves) + len(other_claims)} questions, got {budget}")
        pairs, step = parts_for(high), min(step**2, 2.0)
    while high > low * (1 + SPLIT_RESPONDENTS) and not deadline.over():
        middle = math.sqrt(low * high)
        if is_allowed(candidate := parts_for(middle)):
            high, pairs = middle, candidate
        else:
            low = middle
    assert pairs is not None
    if budget.delta == 0 and budget.eta == 1:  # scaled up to the small rest of the budget that bisection left
        share = max(
            (max_epsilon - other_epsilon) * (1 - 1e-12) / math.fsum(epsilon for epsilon, _ in pairs.values()), 1.0
        )
        pairs = {name: (epsilon * share, math.tanh(epsilon * share / 2)) for name, (epsilon, _) in pairs.items()}
    return build_split(pairs, high)


def _smallest_parts(
    curves: Mapping[str, _Curve], n: float, max_epsilon: float, log_budget: float
) -> dict[str, tuple[float, float]] | None:
    """Return (epsilon, eta) of every question for n respondents, with the smallest sum of epsilons.

    log_budget : the largest sum of -log(1 - eta) over the questions.

    The function computes the smallest eta of each question on a grid of epsilons, and a price of -log(1 - eta) by
    bisection. It returns None if nothing suffices.
    """
    grids, largest_eta = {}, -math.expm1(-log_budget)
    for name, curve in curves.items():
        epsilons = np.geomspace(MIN_EPSILON, max_epsilon, EPSILON_GRID_POINTS)
        for _ in range(2):  # the second grid begins where the first one reaches n
            is_sufficient = curve(epsilons, np.minimum(largest_eta, np.tanh(epsilons / 2))) <= n
            if not is_sufficient.any():
                return None
            epsilons = np.geomspace(epsilons[max(int(is_sufficient.argmax()) - 1, 0)], max_epsilon, EPSILON_GRID_POINTS)
        etas = curve.smallest_eta(epsilons, n)
        is_sufficient = etas <= largest_eta
        if not is_sufficient.any():
            return None
        grids[name] = epsilons[is_sufficient], etas[is_sufficient], -np.log1p(-etas[is_sufficient])

    def cheapest_positions(price: float) -> dict[str, int]:
        return {name: int(np.argmin(epsilons + price * costs)) for name, (epsilons, _, costs) in grids.items()}

    def total_cost(places: Mapping[str, int]) -> float:
        return math.fsum(float(grids[name][2][place]) for name, place in places.items())

    low_price, high_price = 0.0, 1e6
    if total_cost(places := cheapest_positions(low_price)) > log_budget:
        if total_cost(places := cheapest_positions(high_price)) > log_budget:
            return None
        for _ in range(PRICE_STEPS):
            price = math.sqrt(max(low_price, 1e-9) * high_price)
            if total_cost(candidate := cheapest_positions(price)) > log_budget:
                low_price = price
            else:
                high_price, places = price, candidate
    return {name: (float(grids[name][0][place]), float(grids[name][1][place])) for name, place in places.items()}


def _curve_of(requirement: Needs, max_designed: int, deadline: Deadline) -> _Curve:
    """Return the curve of optimal channels: exact at uniform shares, a `_Shape` beyond `max_designed` answers."""
    if isinstance(requirement, SharedNeeds):
        shape = _Shape(requirement.cells, requirement.design, requirement.rtol)
        if requirement.known_design is not None:
            epsilon, eta, required = requirement.known_design
            shape.put(epsilon, eta, required)
            if eta is None:
                shape.best_epsilon, shape.fewest = epsilon, required
        return shape
    pilot, target = requirement
    planner, k, width = QuestionPlanner(pilot), len(pilot), target if isinstance(target, HalfWidth) else None

    def optimal_respondents(epsilon: float, eta: float | None = None) -> float:
        channel = planner.channel(epsilon, 1.0 if eta is None else eta, precision=width, **deadline.passed)
        return (
            width.unrounded_respondents(width.variance_of(channel, pilot))
            if width
            else float(target.respondents(channel, pilot))
        )

    if max_designed and width is not None and width.category is None and is_uniform(pilot):
        return _Exact(lambda epsilon: width.unrounded_respondents(variance_at_uniform(k, epsilon)))
    if k <= max_designed:
        return _Exact(optimal_respondents)
    return _Shape(k, lambda epsilon, eta: (epsilon, optimal_respondents(epsilon, eta)))


def is_uniform(pilot: Array) -> bool:
    """Return True if all shares are equal."""
    return bool(pilot.max() - pilot.min() <= 1e-12)


def variance_at_uniform(k: int, epsilon: float) -> float:
    """Compute the variance of a share from one report, for k equal shares, optimally [YB]."""
    return (1 - 1 / k) / float(information_at_uniform(k, epsilon))


def information_at_uniform(k: int, epsilon: Any, eta: Any = None) -> Any:
    """Compute the information of subset selection at k equal proportions and the best size [YB].

    The information is the same in each direction. Arrays give arrays. For subsets of size d it is::

        k d (k-d)/(k-1) ((e^eps - 1)/(d e^eps + k - d))^2

    The total variation is::

        (e^eps - 1) d (k-d) / ((k-1) (k + (e^eps - 1) d))

    If that exceeds eta, a public coin leaves out the answer, and both fall in proportion.
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


def _smallest_epsilon(curve: _Curve, n: float, max_epsilon: float, deadline: Deadline) -> float | None:
    """Return the smallest epsilon up to `max_epsilon` that suffices for n respondents, within 0.2 %."""
    try:
        if curve(max_epsilon) > n:
            return None
        low, high = math.log(MIN_EPSILON), math.log(max_epsilon)
        while high - low > SPLIT_RESPONDENTS and not deadline.over():
            middle = (low + high) / 2
            low, high = (middle, high) if curve(math.exp(round(middle, 4))) > n else (low, middle)
    except SolverError:
        if deadline.late:
            raise
        return None
    return math.exp(high)


TABULATED_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, eq=False)
class BudgetRequirement(Result):
    """Respondents who meet every target under a budget of `epsilon` nats, and the number of people to invite."""

    epsilon: float
    respondents: int
    invited: int


def people_to_invite(spec: SurveySpec, respondents: float) -> int:
    """Compute the number of invitations that give the precision of `respondents`.

    The precision is that of a simple random sample.

    It is respondents x design effect / (1 - nonresponse), rounded up [SSW, section 2.10]. The design effect is the
    ratio of required respondents with clusters and weights to those of a simple random sample.

    >>> from ldpopt_survey import QuestionSpec
    >>> asked = (QuestionSpec("vote", ("no", "yes"), epsilon=1.0),)
    >>> people_to_invite(SurveySpec("demo", asked, nonresponse=0.2, design_effect=1.5), 1000)
    1875
    """
    return math.ceil(respondents * spec.design_effect / (1 - spec.nonresponse) * (1 - 1e-12))
