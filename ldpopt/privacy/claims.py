"""Claims: guarantees given as numbers, to be converted, grouped and composed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from ldpopt.distribution import number, unit_interval
from ldpopt.errors import invalid
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.results import Result
from ldpopt.rounding import ceil_digits, floor_digits

C = TypeVar("C", bound="Claim")


@dataclass(frozen=True, eq=False, repr=False)
class Claim(Result):
    """A guarantee as numbers, without a channel. How it was derived is kept beside it and takes no part in comparisons.

    tight : True when some mechanism with the premise attains the conclusion, so that no better conversion exists;
        False when it is sound but loose; None for a claim that was not derived.
    budget : True for the most that meets a target; shown rounded down, where a guarantee is rounded up.
    """

    tight: bool | None = field(default=None, compare=False, kw_only=True)
    reference: str = field(default="", compare=False, kw_only=True)
    budget: bool = field(default=False, compare=False, kw_only=True)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{f.name}={self._shown(f.name)}" for f in fields(self) if f.compare)
        worth = "" if self.tight is None else f" ({'tight' if self.tight else 'not tight'}, {self.reference})"
        return f"{type(self).__name__}({numbers}){worth}"

    def _shown(self, name: str) -> str:
        """A number rounded up; an order, of which more would claim more, rounded down. The reverse for a budget."""
        down = (name == "order") is not self.budget
        return (floor_digits if down else ceil_digits)(getattr(self, name))


def nonnegative(value: Any, what: str) -> float:
    """`value` as a float of at least 0, inf included."""
    if isinstance(value, float) and value == math.inf:
        return math.inf
    result = number(value, what, "a non-negative number")
    if result < 0:
        raise invalid(what, "a non-negative number", result)
    return result


def positive_delta(delta: Any) -> float:
    """`delta` as a float in (0, 1]."""
    value = unit_interval(delta, "delta")
    if value == 0:
        raise invalid("delta", "a number in (0, 1]", value)
    return value


class _Checked:
    _nonnegative: ClassVar[tuple[str, ...]] = ()
    _unit: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self._nonnegative:
            object.__setattr__(self, name, nonnegative(getattr(self, name), name))
        for name in self._unit:
            object.__setattr__(self, name, unit_interval(getattr(self, name), name))


@dataclass(frozen=True, repr=False)
class PureDP(_Checked, Claim):
    """The claim of epsilon-differential privacy, local or central, epsilon in nats [GI, Def 6].

    >>> PureDP(1)
    PureDP(epsilon=1)
    """

    epsilon: float
    _nonnegative = ("epsilon",)


@dataclass(frozen=True, repr=False)
class ApproximateDP(_Checked, Claim):
    """The claim of (epsilon, delta)-differential privacy, local or central [GI, Def 1].

    >>> ApproximateDP(1.0, 1e-6).delta
    1e-06
    """

    epsilon: float
    delta: float
    _nonnegative = ("epsilon",)
    _unit = ("delta",)


@dataclass(frozen=True, repr=False)
class TV(_Checked, Claim):
    """The claim of eta-TV: total variation at most eta between any two rows [GI, Def 7].

    >>> TV(0.25).eta
    0.25
    """

    eta: float
    _unit = ("eta",)


@dataclass(frozen=True, repr=False)
class RenyiDP(_Checked, Claim):
    """The claim of a Rényi divergence of `order` >= 1 of at most epsilon [M, Def 4]; order inf is pure, order 1 is KL.

    >>> RenyiDP(2.0, 0.5).order
    2.0
    """

    order: float
    epsilon: float
    _nonnegative = ("order", "epsilon")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order < 1:
            raise invalid("order", "an order of at least 1", self.order)


@dataclass(frozen=True, repr=False)
class ApproximateZCDP(Claim):
    """The claim of delta-approximate (xi, rho)-zCDP [BS, Def 8.1]; xi may be negative.

    >>> ApproximateZCDP(1e-6, 0.0, 0.5).rho
    0.5
    """

    delta: float
    xi: float
    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", unit_interval(self.delta, "delta"))
        _set_zcdp(self)


@dataclass(frozen=True, repr=False)
class ZCDP(Claim):
    """(xi, rho)-zCDP: D_alpha <= xi + rho alpha for all alpha > 1 [BS, Def 1.1]; xi may be negative, xi + rho not.

    >>> ZCDP(0.0, 0.5)
    ZCDP(xi=0, rho=0.5)
    """

    xi: float
    rho: float

    def __post_init__(self) -> None:
        _set_zcdp(self)


@dataclass(frozen=True, repr=False)
class MCDP(_Checked, Claim):
    """(mu, tau)-mCDP: the privacy loss has mean at most mu and is tau-subgaussian around its mean [DR, Def 3.3].

    >>> MCDP(0.5, 1.0)
    MCDP(mu=0.5, tau=1)
    """

    mu: float
    tau: float
    _nonnegative = ("mu", "tau")


def _set_zcdp(claim: ZCDP | ApproximateZCDP) -> None:
    xi = math.inf if claim.xi == math.inf else number(claim.xi, "xi")
    rho = nonnegative(claim.rho, "rho")
    if xi + rho < 0:
        raise invalid("xi", "xi + rho of at least 0, a bound on a divergence", xi)
    object.__setattr__(claim, "xi", xi)
    object.__setattr__(claim, "rho", rho)


def as_claim(guarantee: Guarantee) -> Claim:
    """The claim that a measured `Guarantee` makes.

    >>> as_claim(Guarantee("renyi", 0.5, 0.5, None, True, "[M, Def 3]", {"order": 2.0})).order
    2.0
    """
    if not isinstance(guarantee, Guarantee):
        raise invalid("guarantee", "a Guarantee", type(guarantee).__name__)
    value, given = guarantee.value, guarantee.parameters
    made: dict[str, Any] = {
        "local_dp": lambda: PureDP(value),
        "total_variation": lambda: TV(min(1.0, value)),
        "hockey_stick": lambda: ApproximateDP(given["epsilon"], min(1.0, value)),
        "approximate_dp": lambda: ApproximateDP(value, given["delta"]),
        "renyi": lambda: RenyiDP(given["order"], value),
        "zcdp": lambda: ZCDP(given.get("xi", 0.0), value),
        "approximate_zcdp": lambda: ApproximateZCDP(given["delta"], given.get("xi", 0.0), value),
    }
    if guarantee.notion not in made:
        raise invalid("guarantee", f"one of the notions {', '.join(made)}", guarantee.notion)
    claim: Claim = made[guarantee.notion]()
    return claim


def need(kind: type[C], claim: Claim | Guarantee, what: str = "claim") -> C:
    """`claim` as a claim of the given kind; a `Guarantee` of that notion is taken too."""
    if isinstance(claim, Guarantee):
        claim = as_claim(claim)
    if not isinstance(claim, kind):
        raise invalid(what, f"a {kind.__name__}", type(claim).__name__)
    return claim
