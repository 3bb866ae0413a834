"""A privacy filter and an odometer: budgets for mechanisms that are chosen after the earlier reports.

The exact composition of a `Ledger` is not a bound then [RRUV], but sums of pure, Rényi and zCDP parameters are, along
every sequence of reports [RRUV; FZ; WRRW].
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ldpopt.composition.direction import infinite_mass
from ldpopt.composition.exact_measures import GaussianMeasures, ball, certainly_at_most, interval, loss_total, total_of
from ldpopt.composition.ledger import Ledger, Parts, rho_total
from ldpopt.composition.mechanism import Mechanism, as_mechanism
from ldpopt.composition.parametric import largest_integer, total, total_down
from ldpopt.composition.unread import Noticing, unread
from ldpopt.errors import BudgetExceeded, invalid
from ldpopt.mechanisms.continuous_pair import ContinuousPair
from ldpopt.privacy.calibrate import largest_rho_sharp
from ldpopt.privacy.claims import TV, ZCDP, ApproximateDP, PureDP, RenyiDP
from ldpopt.privacy.renyi import renyi_order
from ldpopt.values.distribution import Checked, open_unit, positive_integer, unit_interval
from ldpopt.values.results import Result

Budget = PureDP | TV | RenyiDP | ZCDP | ApproximateDP

DEFAULT_ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 128.0, 256.0)
"""Default Rényi orders of an odometer."""


MAX_RATIONAL = 64
"""Up to so many uses, a product of rational numbers is computed exactly."""


@dataclass(frozen=True, eq=False)
class PrivacyFilter(Noticing, Result):
    """A budget that is never exceeded, even if mechanisms, inputs and the end are chosen by the reports so far [RRUV].

    - `budget` : a `PureDP`, `TV`, `RenyiDP`, `ZCDP` or `ApproximateDP` claim, in nats.
    - `ledger` : the mechanisms used already.
    - `lost` : for an `ApproximateDP` budget, the part of its delta that is reserved for mechanisms with infinite
      losses.

    All mechanisms that `add` accepts meet `budget` together. Epsilons, or divergences of one order or of every order,
    add up [FZ; WRRW]. For total variation, the factors 1 - eta multiply. An (epsilon, delta) budget is met by the sum
    of epsilons, or by zCDP that implies (epsilon, delta - lost). Raises `InvalidInput` for another budget, or one that
    the ledger exceeds.

    >>> spent = PrivacyFilter(PureDP(1.0)).add((0.5,)).add((0.25,))
    >>> spent.admits((0.25,)), spent.admits((0.3,)), spent.room((0.1,))
    (True, False, 2)
    """

    budget: Budget
    ledger: Ledger = field(default_factory=Ledger)
    lost: float = 0.0

    def _columns(self) -> dict[str, list[Any]]:
        return {"budget": [str(self.budget)], "lost": [self.lost], "spent": [_spent(self.ledger)]}

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget):
            raise invalid("budget", "a PureDP, TV, RenyiDP, ZCDP or ApproximateDP claim", type(self.budget).__name__)
        lost_delta = unit_interval(self.lost, "lost")
        largest = self.budget.delta if isinstance(self.budget, ApproximateDP) else 0.0
        if not lost_delta <= largest:
            raise invalid("lost", f"a part of the budget's delta, at most {largest:g}", lost_delta)
        object.__setattr__(self, "lost", lost_delta)
        if not self._is_met_by(_ledger(self.ledger, "ledger")):
            raise invalid("ledger", f"one within {self.budget}", self.ledger)

    def admits(self, mechanism: Any, count: int = 1) -> bool:
        """Return True if `count` more uses of a mechanism, given as to `Ledger.add`, stay within the budget."""
        return self._is_met_by(self.ledger.after(mechanism, count))

    def add(self, mechanism: Any, count: int = 1, name: str = "") -> PrivacyFilter:
        """Return the filter after `count` more uses; a result that is dropped warns, as for `Ledger.add`.

        Raises `BudgetExceeded`, before any of the uses, if they do not fit.

        >>> PrivacyFilter(PureDP(1.0)).add((0.7,), 2)
        Traceback (most recent call last):
        ldpopt.errors.BudgetExceeded: 2 x (0.7) would exceed PureDP(epsilon=1); what is spent stays as it was
        """
        after = self.ledger.after(mechanism, count, name)
        if not self._is_met_by(after):
            entry = after.entries[-1]
            raise BudgetExceeded(
                f"{entry.count} x {entry.name} would exceed {self.budget}; what is spent stays as it was"
            )
        return unread(replace(self, ledger=after))

    def room(self, mechanism: Any, limit: int = 10**6) -> int:
        """Return the number of further uses of one mechanism that fit, at most `limit`."""
        limit = positive_integer(limit, "limit")
        use = as_mechanism(mechanism)
        return largest_integer(lambda count: self.admits(use, count), limit)

    def _is_met_by(self, ledger: Ledger) -> bool:
        budget = self.budget
        parts = ledger.parts
        if not parts:
            return True
        if isinstance(budget, PureDP):
            return _pure(parts, budget.epsilon)
        if isinstance(budget, TV):
            return budget.eta == 1 or certainly_at_most(lambda: -_missed(parts), Fraction(budget.eta) - 1)
        if isinstance(budget, RenyiDP):
            return _renyi(parts, budget.order, budget.epsilon)
        if isinstance(budget, ZCDP):
            return _concentrated(ledger, budget.xi, budget.rho)
        if _pure(parts, budget.epsilon):
            return True
        remaining_delta = budget.delta - self.lost
        if not remaining_delta > 0:
            return False
        if _single(parts, budget, self.lost):
            return True
        max_rho = _rho(budget.epsilon, math.nextafter(remaining_delta, 0.0))
        if math.isfinite(ledger.renyi(2.0).value):
            return _concentrated(ledger, 0.0, max_rho)
        guarantee = ledger.approximate_zcdp()
        return guarantee.parameters["delta"] <= self.lost and guarantee.value <= max_rho


def _pure(parts: Parts, epsilon: float) -> bool:
    total = loss_total([(mechanism.largest_loss, n) for mechanism, n in parts])
    return math.isinf(epsilon) if total is None else certainly_at_most(total, epsilon)


def _missed(parts: Parts) -> Any:
    """prod (1 - eta)^count, one minus the total variation of all uses, as a ball; a fraction for few rational ones."""
    etas = [(mechanism.variation(), n) for mechanism, n in parts]
    if all(isinstance(eta, Fraction) for eta, _ in etas) and sum(n for _, n in etas) <= MAX_RATIONAL:
        return math.prod(((1 - eta) ** n for eta, n in etas), start=Fraction(1))
    missed_mass = ball(1)
    for eta, n in etas:
        missed_mass *= (1 - (ball(eta) if isinstance(eta, Fraction) else eta)) ** n
    return missed_mass


def _renyi(parts: Parts, order: float, epsilon: float) -> bool:
    """True if the divergences of one order sum to at most epsilon: by floats where they decide, else by balls."""
    if math.isinf(order):
        return _pure(parts, epsilon)
    ends = [(*mechanism.divergence(order), n) for mechanism, n in parts]
    if math.isinf(epsilon) or total((high, n) for _, high, n in ends) <= epsilon:
        return True
    if total_down((low, n) for low, _, n in ends) > epsilon:
        return False
    return certainly_at_most(lambda: total_of((_divergence(mechanism, order), n) for mechanism, n in parts), epsilon)


def _divergence(mechanism: Mechanism, order: float) -> Any:
    exact = None if mechanism.exact is None else mechanism.exact.renyi(order)
    return interval(*mechanism.divergence(order)) if exact is None else exact


def _single(parts: Parts, budget: ApproximateDP, lost_delta: float) -> bool:
    """True if there was only one use, and it meets the budget by its own delta at epsilon.

    No report precedes it, so no choice depends on reports. Later uses have to meet the other rules.
    """
    (mechanism, n), *others = parts
    if others or n > 1:
        return False
    if not isinstance(mechanism.source, ContinuousPair):  # whose finite pair counts large losses as infinite
        infinite = max(infinite_mass(mechanism.pair), infinite_mass(mechanism.pair.swapped))
        if infinite > lost_delta:
            return False
    return mechanism.meets(budget.epsilon, budget.delta)


def _spent(ledger: Ledger) -> str:
    return ", ".join(f"{entry.count} x {entry.name}" for entry in ledger)


def _ledger(ledger: Any, name: str) -> Ledger:
    if not isinstance(ledger, Ledger):
        raise invalid(name, "a Ledger", type(ledger).__name__)
    return ledger


def _orders(orders: Any, name: str) -> tuple[float, ...]:
    checked_orders = tuple(renyi_order(order) for order in orders)
    if not checked_orders or not all(1 < order < math.inf for order in checked_orders):
        raise invalid(name, "finite orders above 1", orders)
    return checked_orders


def _concentrated(ledger: Ledger, xi: float, rho: float) -> bool:
    """True if the divergences of every order sum to at most xi + rho order; cheap tests come first."""
    if math.isinf(xi) or math.isinf(rho):
        return True
    if all(isinstance(mechanism.exact, GaussianMeasures) for mechanism, _ in ledger.parts):
        # Linear in the order: the largest orders decide, or those near 1.
        total_rho = total_of((mechanism.rho(), n) for mechanism, n in ledger.parts)
        return certainly_at_most(lambda: total_rho, Fraction(rho) + min(Fraction(xi), Fraction(0)))
    if any(Fraction(low) > Fraction(xi) + Fraction(rho) * Fraction(order) for order, low in _lower(ledger)):
        return False
    total_rho_bound = rho_total(ledger.parts, xi)
    return (total_rho_bound is not None and certainly_at_most(total_rho_bound, rho)) or ledger.zcdp(xi).value <= rho


def _lower(ledger: Ledger) -> Iterator[tuple[float, float]]:
    """Lower bounds on the divergences of some orders; a large float for an infinite one."""
    for order in (1.0, 2.0, 8.0, 64.0):
        yield order, min(ledger.renyi(order).lower, sys.float_info.max)


@lru_cache(maxsize=64)
def _rho(epsilon: float, delta: float) -> float:
    return largest_rho_sharp(ApproximateDP(epsilon, delta)).rho


@dataclass(frozen=True, eq=False)
class PrivacyOdometer(Noticing, Checked, Result, delta=open_unit, orders=_orders, ledger=_ledger):
    """A running bound on the privacy loss that holds simultaneously at all times, for all adaptive choices [RRUV].

    delta : in (0, 1), a bound on the probability that the loss ever exceeds the reading.
    orders : Rényi orders above 1, fixed before the first report.
    ledger : the mechanisms used so far.

    Under either input, with probability 1 - delta over the reports, the log-likelihood ratio of all reports is at most
    `reading` at every time. This is Ville's inequality for the supermartingales exp((a - 1)(loss - sum of divergences
    of order a)). The smallest bound over n orders costs log(n/delta). Raises `InvalidInput` for values out of range.

    >>> odometer = PrivacyOdometer(1e-6).add((0.1,), 100)
    >>> round(odometer.reading, 3), float(odometer.ledger.local_dp())
    (6.032, 10.000000000000002)
    """

    delta: float
    orders: tuple[float, ...] = DEFAULT_ORDERS
    ledger: Ledger = field(default_factory=Ledger)

    def _columns(self) -> dict[str, list[Any]]:
        return {"delta": [self.delta], "spent": [_spent(self.ledger)]}

    def add(self, mechanism: Any, count: int = 1, name: str = "") -> PrivacyOdometer:
        """Return the odometer after `count` more uses of a mechanism; arguments and warning as for `Ledger.add`."""
        return unread(replace(self, ledger=self.ledger.after(mechanism, count, name)))

    @property
    def reading(self) -> float:
        """The bound on the loss so far, in nats; at most the sum of the pure epsilons, which always holds."""
        if not self.ledger.entries:
            return 0.0
        cost = math.log(len(self.orders)) - math.log(self.delta)
        bounds = [float(self.ledger.renyi(order)) + cost / (order - 1) * (1 + 1e-14) for order in self.orders]
        return min(self.ledger.local_dp().value, math.nextafter(min(bounds), math.inf))
