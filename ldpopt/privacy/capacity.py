"""Capacity-bounded local differential privacy: privacy against adversaries who can compute only some functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.distribution import Array
from ldpopt.errors import invalid
from ldpopt.privacy.features import Affine, Polynomial, feature_map
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.hockey_stick import hockey_stick_of_pairs
from ldpopt.privacy.pairs import blocks, normalised
from ldpopt.privacy.policy import Policy
from ldpopt.privacy.renyi import renyi_of_pairs, renyi_order
from ldpopt.privacy.restricted import Bracket, restricted_kl, restricted_power, restricted_total_variation
from ldpopt.rounding import down, first_largest, up
from ldpopt.tolerances import TIE

REFERENCE = "[CIM, Def 3]"
ATTAINED = 1e-7
"""If the lower and upper bounds differ relatively by more than this, the value counts as a bound, not as attained."""


class Restricted(Protocol):
    """A divergence that can be restricted to a class of functions, those that an adversary can compute."""

    @property
    def notion(self) -> str:
        """The name of the guarantee."""

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the divergence."""

    def bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        """Lower and upper bounds for one pair of rows, shape (m,), and the class that `basis`, shape (m, r), spans."""

    def unrestricted(self, p: Array, q: Array) -> Array:
        """Upper bounds on the divergence without a restriction, for n pairs of rows, (n, m) -> (n,)."""


@dataclass(frozen=True)
class RestrictedRenyi:
    """The restricted Rényi divergence of `order` in [1, inf), in nats; order 1 is the restricted KL [CIM, eq. 3].

    It is log(sup over h in H of (E_p h)^a / (E_q |h|^A)^(a-1)) / (a - 1), with a = `order`, A = a/(a - 1) and H the
    class of functions.

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(capacity_bounded(q, [0, 1, 2], RestrictedRenyi(2.0)).value, 6)
    1.170071
    """

    order: float

    def __post_init__(self) -> None:
        order = renyi_order(self.order)
        if np.isinf(order):
            raise invalid("order", "a finite number of at least 1", order)
        object.__setattr__(self, "order", order)

    @property
    def notion(self) -> str:
        """The name of the guarantee."""
        return "restricted_renyi"

    @property
    def parameters(self) -> dict[str, float]:
        """The order, by its name."""
        return {"order": self.order}

    def bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        """Bounds on the restricted divergence of one pair of laws."""
        p, q = normalised(np.stack([p, q]))
        return restricted_kl(p, q, basis) if self.order == 1 else restricted_power(p, q, basis, self.order)

    def unrestricted(self, p: Array, q: Array) -> Array:
        """The Rényi divergence of stacked pairs, bounded above."""
        return renyi_of_pairs(p, q, self.order)[1]


@dataclass(frozen=True)
class RestrictedKL:
    """The restricted KL divergence, sup over h in the class of E_p h - E_q exp(h - 1), in nats [CIM, Lem 1].

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(capacity_bounded(q, [0, 1, 2], RestrictedKL()).value, 6)
    0.89588
    """

    @property
    def notion(self) -> str:
        """The name of the guarantee."""
        return "restricted_kl"

    @property
    def parameters(self) -> dict[str, float]:
        """An empty dictionary: this divergence has no parameters."""
        return {}

    def bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        """Bounds on the restricted divergence of one pair of laws."""
        p, q = normalised(np.stack([p, q]))
        return restricted_kl(p, q, basis)

    def unrestricted(self, p: Array, q: Array) -> Array:
        """The KL divergence of stacked pairs, bounded above."""
        return renyi_of_pairs(p, q, 1.0)[1]


@dataclass(frozen=True)
class RestrictedAlpha:
    """The restricted alpha-divergence, f(t) = (|t|^a - 1)/(a^2 - a), of `order` a in [1, inf) [CIM, Lem 3 corrected].

    It is the sup over h in the class of E_p h - C E_q |h|^(a/(a-1)) - 1/(a^2 - a), with C = (a-1)^(a/(a-1))/a.

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(capacity_bounded(q, [0, 1, 2], RestrictedAlpha(2.0)).value, 6)
    1.111111
    """

    order: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", RestrictedRenyi(self.order).order)

    @property
    def notion(self) -> str:
        """The name of the guarantee."""
        return "restricted_alpha"

    @property
    def parameters(self) -> dict[str, float]:
        """The order, by its name."""
        return {"order": self.order}

    def bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        """Bounds on the restricted divergence of one pair of laws."""
        low, high = RestrictedRenyi(self.order).bracket(p, q, basis)
        return down(float(self._of_renyi(low)), 8), up(float(self._of_renyi(high)), 8)

    def unrestricted(self, p: Array, q: Array) -> Array:
        """The alpha-divergence of stacked pairs, bounded above."""
        return np.asarray(self._of_renyi(renyi_of_pairs(p, q, self.order)[1])) * (1 + 1e-12)

    def _of_renyi(self, value: Any) -> Any:
        """D_a = (exp((a - 1) D_R) - 1)/(a^2 - a) [CIM, eq. 3]."""
        a = self.order
        with np.errstate(over="ignore"):
            return value if a == 1 else np.expm1((a - 1) * np.asarray(value)) / (a * (a - 1))


@dataclass(frozen=True)
class RestrictedTotalVariation:
    """The restricted total variation, sup of E_p h - E_q h over h in the class with values in [0, 1] [CIM, Def 4].

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(capacity_bounded(q, [0, 1, 2], RestrictedTotalVariation()).value, 6)
    0.5
    """

    @property
    def notion(self) -> str:
        """The name of the guarantee."""
        return "restricted_total_variation"

    @property
    def parameters(self) -> dict[str, float]:
        """An empty dictionary: this divergence has no parameters."""
        return {}

    def bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        """Bounds on the restricted divergence of one pair of laws."""
        return restricted_total_variation(p, q, basis)

    def unrestricted(self, p: Array, q: Array) -> Array:
        """The total variation of stacked pairs, bounded above."""
        return hockey_stick_of_pairs(p, q, 0.0)[1]


def capacity_bounded(
    channel: ChannelLike, features: Affine | Polynomial | Any, divergence: Restricted, graph: Policy = None
) -> Guarantee:
    """The largest `divergence` between two rows as an adversary limited to functions of `features` sees it.

    features : an array (m,) or (m, d), one row for each output: the adversary computes affine functions of them. Or a
        class `Affine` or `Polynomial`.
    divergence : `RestrictedKL()`, `RestrictedRenyi(order)`, `RestrictedAlpha(order)` or
        `RestrictedTotalVariation()`.

    It is the optimum of convex programs [CIM, Def 3]. `value` belongs to a solution of the dual program, so it is never
    too low, and `lower` is attained by a function. For entries below about 1e-14, floats may leave the two far apart;
    then `exact` is False. With a policy `graph`, only adjacent inputs are compared. Post-processing keeps this
    guarantee only if it turns functions of the class into functions of the class [CIM, Thm 1].

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(float(capacity_bounded(q, [0, 1, 2], RestrictedKL())), 9)
    0.895879735
    """
    channel = as_channel(channel)
    if not (hasattr(divergence, "bracket") and hasattr(divergence, "unrestricted")):
        raise invalid("divergence", "a restricted divergence such as RestrictedKL()", divergence)
    basis = feature_map(features).basis(channel.shape[1])
    pairs = [np.stack([i, j], axis=1) for i, j in blocks(channel, graph)]
    bounds = [divergence.unrestricted(channel.matrix[i], channel.matrix[j]) for i, j in blocks(channel, graph)]
    lower, upper, witness = 0.0, 0.0, None
    if pairs:
        rows, bound, pair = channel.matrix, np.concatenate(bounds), np.concatenate(pairs)
        above = np.zeros(len(bound))
        for at in _falling(bound):
            if bound[at] <= lower * (1 - 2 * TIE) or bound[at] == 0:
                break  # not even an unrestricted adversary finds more in the remaining pairs
            if bound[at] <= lower and at > first_largest(above):
                continue  # nor here, and of pairs with equal values the first is named
            x, other = pair[at]
            low, above[at] = divergence.bracket(rows[x], rows[other], basis)
            lower, upper = max(lower, low), max(upper, float(above[at]))
        if upper > 0:
            x, other = pair[first_largest(above)]
            witness = Witness((channel.inputs[x], channel.inputs[other]))
    exact = upper == lower or upper - lower <= ATTAINED * (upper + 1e-6)
    return Guarantee(divergence.notion, upper, lower, witness, exact, REFERENCE, divergence.parameters)


def _falling(bound: Array) -> list[int]:
    """The positions of `bound` from the largest to the least, ties in the order of their positions."""
    order = np.argsort(-bound, kind="stable")
    falling = bound[order]
    group = np.concatenate([[0], np.cumsum(falling[1:] < falling[:-1] * (1 - TIE))])
    return [int(at) for at in order[np.lexsort((order, group))]]
