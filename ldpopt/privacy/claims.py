"""Claims: privacy guarantees given as numbers, without a channel, which can be converted, grouped and composed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ldpopt.errors import invalid
from ldpopt.numbers.rounding import ceil_digits, floor_digits
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.values.distribution import Checked, nonnegative, number, unit_interval
from ldpopt.values.results import Result

C = TypeVar("C", bound="Claim")


@dataclass(frozen=True, eq=False, repr=False)
class Claim(Checked, Result):
    """A guarantee as numbers, without a channel. Comparisons ignore the fields below, which record its derivation.

    tight : True if some mechanism that meets the premise attains the conclusion: no better conversion exists.
        False if better ones may exist; None for a claim that was not derived.
    reference : the theorem that it was derived from.
    budget : True for the largest parameters that meet a target. They are printed rounded down, guarantees rounded up.
    """

    tight: bool | None = field(default=None, compare=False, kw_only=True)
    reference: str = field(default="", compare=False, kw_only=True)
    budget: bool = field(default=False, compare=False, kw_only=True)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{f.name}={self._rounded(f.name)}" for f in fields(self) if f.compare)
        suffix = "" if self.tight is None else f" ({'tight' if self.tight else 'not tight'}, {self.reference})"
        return f"{type(self).__name__}({numbers}){suffix}"

    def _rounded(self, name: str) -> str:
        """A number rounded up, or an order rounded down, as a larger order claims more; reversed for a budget."""
        down = (name == "order") is not self.budget
        return (floor_digits if down else ceil_digits)(getattr(self, name))


def amount(value: Any, name: str) -> float:
    """Return `value` as a float of at least 0, or inf."""
    return nonnegative(value, name, infinite=True)


def _at_least_one(order: Any, name: str) -> float:
    if (value := amount(order, name)) < 1:
        raise invalid(name, "an order of at least 1", value)
    return value


def _signed(xi: Any, name: str) -> float:
    return math.inf if xi == math.inf else number(xi, name)


@dataclass(frozen=True, repr=False)
class PureDP(Claim, epsilon=amount):
    """The claim of epsilon-differential privacy, called pure, local or central; epsilon in nats [GI, Def 6].

    >>> PureDP(1)
    PureDP(epsilon=1)
    """

    epsilon: float


@dataclass(frozen=True, repr=False)
class ApproximateDP(Claim, epsilon=amount, delta=unit_interval):
    """The claim of (epsilon, delta)-differential privacy, local or central, epsilon in nats [GI, Def 1].

    >>> ApproximateDP(1.0, 1e-6).delta
    1e-06
    """

    epsilon: float
    delta: float


@dataclass(frozen=True, repr=False)
class TV(Claim, eta=unit_interval):
    """The claim of eta-TV: the total variation distance between any two rows is at most eta, in [0, 1] [GI, Def 7].

    >>> TV(0.25).eta
    0.25
    """

    eta: float


@dataclass(frozen=True, repr=False)
class RenyiDP(Claim, order=_at_least_one, epsilon=amount):
    """The claim that the Rényi divergence of `order` >= 1 is at most epsilon, in nats [M, Def 4].

    Order 1 bounds the KL divergence, and order inf is pure differential privacy.

    >>> RenyiDP(2.0, 0.5).order
    2.0
    """

    order: float
    epsilon: float


class _Concentrated(Claim, xi=_signed, rho=amount):
    """The fields of both definitions of zCDP."""

    xi: float
    rho: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.xi + self.rho < 0:
            raise invalid("xi", "xi + rho of at least 0, a bound on a divergence", self.xi)


@dataclass(frozen=True, repr=False)
class ApproximateZCDP(_Concentrated, delta=unit_interval):
    """The claim of delta-approximate (xi, rho)-zCDP: events of probability delta are set aside [BS, Def 8.1].

    On the remaining events, (xi, rho)-zCDP holds as in `ZCDP`. xi may be negative, xi + rho not.

    >>> ApproximateZCDP(1e-6, 0.0, 0.5).rho
    0.5
    """

    delta: float
    xi: float
    rho: float


@dataclass(frozen=True, repr=False)
class ZCDP(_Concentrated):
    """The claim of (xi, rho)-zCDP, zero-concentrated differential privacy [BS, Def 1.1].

    The Rényi divergence of every order alpha > 1 is at most xi + rho alpha. xi may be negative, xi + rho not.

    >>> ZCDP(0.0, 0.5)
    ZCDP(xi=0, rho=0.5)
    """

    xi: float
    rho: float


@dataclass(frozen=True, repr=False)
class MCDP(Claim, mu=amount, tau=amount):
    """The claim of (mu, tau)-mCDP, mean-concentrated differential privacy [DR, Def 3.3].

    The privacy loss, the log-ratio of the report's probabilities under two inputs, has a mean of at most mu, and is
    tau-subgaussian around its mean.

    >>> MCDP(0.5, 1.0)
    MCDP(mu=0.5, tau=1)
    """

    mu: float
    tau: float


Given = Claim | Guarantee
"""What conversions and compositions take."""


def as_claim(guarantee: Guarantee) -> Claim:
    """Convert a measured `Guarantee` to the claim with its numbers.

    Parameters
    ----------
    guarantee : The measured guarantee.

    Returns
    -------
    Claim
        The claim of the same privacy definition, such as `PureDP`.

    Raises
    ------
    InvalidInput
        If the privacy definition has no claim.

    Examples
    --------
    >>> as_claim(Guarantee("renyi", 0.5, 0.5, None, True, "[M, Def 3]", {"order": 2.0})).order
    2.0
    """
    if not isinstance(guarantee, Guarantee):
        raise invalid("guarantee", "a Guarantee", type(guarantee).__name__)
    value, parameters = guarantee.value, guarantee.parameters
    claims: dict[str, Any] = {
        "local_dp": lambda: PureDP(value),
        "total_variation": lambda: TV(min(1.0, value)),
        "hockey_stick": lambda: ApproximateDP(parameters["epsilon"], min(1.0, value)),
        "approximate_dp": lambda: ApproximateDP(value, parameters["delta"]),
        "renyi": lambda: RenyiDP(parameters["order"], value),
        "zcdp": lambda: ZCDP(parameters.get("xi", 0.0), value),
        "approximate_zcdp": lambda: ApproximateZCDP(parameters["delta"], parameters.get("xi", 0.0), value),
    }
    if guarantee.notion not in claims:
        raise invalid("guarantee", f"one of the notions {', '.join(claims)}", guarantee.notion)
    claim: Claim = claims[guarantee.notion]()
    return claim


def need(kind: type[C], claim: Given, name: str = "claim") -> C:
    """Return `claim`, or the claim of a `Guarantee`, if it has type `kind`; else `InvalidInput`."""
    if isinstance(claim, Guarantee):
        claim = as_claim(claim)
    if not isinstance(claim, kind):
        raise invalid(name, f"a {kind.__name__}", type(claim).__name__)
    return claim
