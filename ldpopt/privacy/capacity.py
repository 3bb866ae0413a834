"""Capacity-bounded privacy: the divergence that adversaries find who compute only functions of some features [CIM]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.errors import invalid
from ldpopt.numbers.rounding import down, first_largest, up
from ldpopt.numbers.tolerances import ATTAINED_GAP, IN_SPAN, TIE_RTOL
from ldpopt.privacy.approximate_dp import hockey_stick_of_pairs
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.kinks import ReLU
from ldpopt.privacy.pairs import Policy, blocks, normalised
from ldpopt.privacy.renyi import renyi_of_pairs, renyi_order
from ldpopt.privacy.restricted import Bracket, restricted_kl, restricted_power, restricted_total_variation
from ldpopt.privacy.shapes import Thresholds
from ldpopt.values.distribution import Array, Checked, finite_array, positive_integer
from ldpopt.values.results import ByValue


def _columns(features: Any, name: str) -> Array:
    flat = np.ndim(features) == 1
    array = finite_array(features, name, 1 if flat else 2)
    if not array.size:
        raise invalid(name, "at least one feature of at least one output", f"shape {array.shape}")
    array = array[:, None] if flat else array
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Polynomial(Checked, ByValue, features=_columns, degree=positive_integer):
    """The polynomials of total degree at most `degree` in the features of an output [CIM, section 3].

    features : array (m,) or (m, d), one row of d numbers for each output of the channel. degree : at least 1.

    >>> Polynomial([0, 1, 2], 2).basis(3).shape
    (3, 3)
    """

    features: Any
    degree: int

    def basis(self, outputs: int) -> Array:
        """Build an orthonormal basis of the class, array (m, r), with the constant first."""
        x = self.features
        if len(x) != outputs:
            raise invalid("features", f"one row for each of the {outputs} outputs", len(x))
        x = x - (x.max(axis=0) + x.min(axis=0)) / 2
        x = x / np.where(np.abs(x).max(axis=0) > 0, np.abs(x).max(axis=0), 1.0)
        columns = [np.full(outputs, outputs**-0.5)]
        level_functions = [(columns[0], 0)]
        for _ in range(self.degree):
            # Multiplying orthonormal functions instead of powers keeps high degrees well conditioned.
            products = []
            for function, first_feature in level_functions:
                for j in range(first_feature, x.shape[1]):
                    orthogonal_part = _orthogonal_part(x[:, j] * function, columns)
                    if orthogonal_part is not None:
                        columns.append(orthogonal_part)
                    products.append((x[:, j] * function if orthogonal_part is None else orthogonal_part, j))
            level_functions = products if len(columns) < outputs else []
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class Affine(Checked, ByValue, features=_columns):
    """The functions a . phi(y) + b of the features phi of an output: linear adversaries [CIM, section 4].

    features : array (m,) or (m, d), the d features of each output of the channel. Any feature map can be given so.

    >>> Affine([0, 1, 2]).basis(3).shape
    (3, 2)
    """

    features: Any

    def basis(self, outputs: int) -> Array:
        """Build an orthonormal basis of the class, array (m, r), with the constant first."""
        return Polynomial(self.features, 1).basis(outputs)


FunctionClass = Affine | Polynomial | Thresholds | ReLU
"""What an adversary of bounded capacity can compute of a report."""


def feature_map(features: Any) -> FunctionClass:
    """Return `features` itself, or an array of features as an affine class."""
    return features if isinstance(features, FunctionClass) else Affine(features)


def brackets(functions: FunctionClass, outputs: int, divergence: Restricted) -> Callable[[Array, Array], Bracket]:
    """Return the function that bounds the divergence of two rows (m,) as the class sees them.

    functions : the class of the adversary's functions.
    outputs : the number m of the channel's outputs; another number than the class has raises `InvalidInput`.
    divergence : a restricted divergence.
    """
    if isinstance(functions, (Thresholds, ReLU)):
        functions.check(outputs)
        return partial(divergence._by_shape, functions)
    return partial(divergence._bracket, basis=functions.basis(outputs))


def _orthogonal_part(function: Array, columns: list[Array]) -> Array | None:
    """The normalized part of `function` outside the span of orthonormal `columns`; None if it is zero."""
    basis = np.stack(columns, axis=1)
    function_norm = float(np.linalg.norm(function))
    for _ in range(2):  # twice is enough [Kahan]
        function = function - basis @ (basis.T @ function)
    remainder_norm = float(np.linalg.norm(function))
    return (
        function / remainder_norm if remainder_norm > IN_SPAN * function_norm and len(columns) < len(function) else None
    )


REFERENCE = "[CIM, Def 3]"


class Restricted(Checked, ABC):
    """A divergence that can be restricted to a class of functions, those that an adversary can compute."""

    notion: ClassVar[str]
    """The name of the guarantee."""

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the divergence, by their names."""
        return dict(vars(self))

    @abstractmethod
    def _bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        """Bounds for one pair of rows, shape (m,), and the class that `basis`, shape (m, r), spans."""

    @abstractmethod
    def _by_shape(self, functions: Thresholds | ReLU, p: Array, q: Array) -> Bracket:
        """Bounds for one pair of rows and a class of functions of one number."""

    @abstractmethod
    def _unrestricted(self, p: Array, q: Array) -> Array:
        """Upper bounds on the divergence without a restriction, for n pairs of rows, (n, m) -> (n,)."""


def _finite_order(order: Any, name: str) -> float:
    alpha = renyi_order(order)
    if np.isinf(alpha):
        raise invalid(name, "a finite number of at least 1", alpha)
    return alpha


@dataclass(frozen=True)
class RestrictedRenyi(Restricted, order=_finite_order):
    """The restricted Rényi divergence of `order` in [1, inf), in nats [CIM, eq. 3].

    It is log(sup over h in H of (E_p h)^a / (E_q |h|^A)^(a-1)) / (a - 1), where a = `order` and A = a/(a - 1).
    H is the class of functions. Order 1 is the restricted KL divergence.

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(capacity_bounded(q, [0, 1, 2], RestrictedRenyi(2.0)).value, 6)
    1.170071
    """

    notion = "restricted_renyi"
    order: float

    def _bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        p, q = normalised(np.stack([p, q]))
        return restricted_kl(p, q, basis) if self.order == 1 else restricted_power(p, q, basis, self.order)

    def _by_shape(self, functions: Thresholds | ReLU, p: Array, q: Array) -> Bracket:
        return functions.renyi(p, q, self.order)

    def _unrestricted(self, p: Array, q: Array) -> Array:
        return renyi_of_pairs(p, q, self.order)[1]


@dataclass(frozen=True)
class RestrictedKL(Restricted):
    """The restricted KL divergence, sup over h in the class of E_p h - E_q exp(h - 1), in nats [CIM, Lem 1].

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(capacity_bounded(q, [0, 1, 2], RestrictedKL()).value, 6)
    0.89588
    """

    notion = "restricted_kl"

    def _bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        return RestrictedRenyi(1.0)._bracket(p, q, basis)

    def _by_shape(self, functions: Thresholds | ReLU, p: Array, q: Array) -> Bracket:
        return functions.renyi(p, q, 1.0)

    def _unrestricted(self, p: Array, q: Array) -> Array:
        return RestrictedRenyi(1.0)._unrestricted(p, q)


@dataclass(frozen=True)
class RestrictedAlpha(Restricted, order=_finite_order):
    """The restricted alpha-divergence, f(t) = (|t|^a - 1)/(a^2 - a), of `order` a in [1, inf) [CIM, Lem 3 corrected].

    It is the sup over h in the class of E_p h - C E_q |h|^(a/(a-1)) - 1/(a^2 - a), with C = (a-1)^(a/(a-1))/a.

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(capacity_bounded(q, [0, 1, 2], RestrictedAlpha(2.0)).value, 6)
    1.111111
    """

    notion = "restricted_alpha"
    order: float

    def _bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        return self._of_ends(RestrictedRenyi(self.order)._bracket(p, q, basis))

    def _by_shape(self, functions: Thresholds | ReLU, p: Array, q: Array) -> Bracket:
        return self._of_ends(functions.renyi(p, q, self.order))

    def _of_ends(self, ends: Bracket) -> Bracket:
        return down(float(self._of_renyi(ends[0])), 8), up(float(self._of_renyi(ends[1])), 8)

    def _unrestricted(self, p: Array, q: Array) -> Array:
        return np.asarray(self._of_renyi(renyi_of_pairs(p, q, self.order)[1])) * (1 + 1e-12)

    def _of_renyi(self, value: Any) -> Any:
        """D_a = (exp((a - 1) D_R) - 1)/(a^2 - a) [CIM, eq. 3]."""
        a = self.order
        with np.errstate(over="ignore"):
            return value if a == 1 else np.expm1((a - 1) * np.asarray(value)) / (a * (a - 1))


@dataclass(frozen=True)
class RestrictedTotalVariation(Restricted):
    """The restricted total variation, sup of E_p h - E_q h over h in the class with values in [0, 1] [CIM, Def 4].

    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(capacity_bounded(q, [0, 1, 2], RestrictedTotalVariation()).value, 6)
    0.5
    """

    notion = "restricted_total_variation"

    def _bracket(self, p: Array, q: Array, basis: Array) -> Bracket:
        return restricted_total_variation(p, q, basis)

    def _by_shape(self, functions: Thresholds | ReLU, p: Array, q: Array) -> Bracket:
        return functions.total_variation(p, q)

    def _unrestricted(self, p: Array, q: Array) -> Array:
        return hockey_stick_of_pairs(p, q, 0.0)[1]


def capacity_bounded(
    channel: ChannelLike, features: FunctionClass | Any, divergence: Restricted, graph: Policy = None
) -> Guarantee:
    """Bound the largest `divergence` of two rows for an adversary limited to `features`.

    Post-processing preserves this guarantee only if it turns functions of the class into functions of the class. See
    [CIM, Thm 1].

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    features : Array (m,) or (m, d), one row for each output, for affine functions of them; or `Affine`, `Polynomial`,
        `Thresholds`, `ReLU`.
    divergence : `RestrictedKL()`, `RestrictedRenyi(order)`, `RestrictedAlpha(order)` or `RestrictedTotalVariation()`.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        `value` belongs to a solution of the dual program, so it is never too low, and a function attains `lower`. For
        entries below about 1e-14 they may be far apart.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the features or the graph do not fit it.

    Examples
    --------
    >>> q = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    >>> round(float(capacity_bounded(q, [0, 1, 2], RestrictedKL())), 9)
    0.895879735
    """
    channel = as_channel(channel)
    if not isinstance(divergence, Restricted):
        raise invalid("divergence", "a restricted divergence such as RestrictedKL()", divergence)
    bracket = brackets(feature_map(features), channel.shape[1], divergence)
    pair_blocks = [np.stack([i, j], axis=1) for i, j in blocks(channel, graph)]
    block_bounds = [divergence._unrestricted(channel.matrix[i], channel.matrix[j]) for i, j in blocks(channel, graph)]
    lower, upper, witness = 0.0, 0.0, None
    if pair_blocks:
        matrix, unrestricted_bounds, pairs = channel.matrix, np.concatenate(block_bounds), np.concatenate(pair_blocks)
        restricted_bounds = np.zeros(len(unrestricted_bounds))
        for position in _falling(unrestricted_bounds):
            if unrestricted_bounds[position] <= lower * (1 - 2 * TIE_RTOL) or unrestricted_bounds[position] == 0:
                break  # not even an unrestricted adversary finds more in the remaining pairs
            if unrestricted_bounds[position] <= lower and position > first_largest(restricted_bounds):
                continue  # nor here, and of pairs with equal values the first is named
            x, other = pairs[position]
            low, high = bracket(matrix[x], matrix[other])
            restricted_bounds[position] = min(high, unrestricted_bounds[position])
            low = low if low <= restricted_bounds[position] * (1 + 2 * TIE_RTOL) else 0.0  # nobody finds more
            lower, upper = max(lower, low), max(upper, float(restricted_bounds[position]))
        if upper > 0:
            x, other = pairs[first_largest(restricted_bounds)]
            witness = Witness((channel.inputs[x], channel.inputs[other]))
    exact = upper == lower or upper - lower <= ATTAINED_GAP * (upper + 1e-6)
    return Guarantee(divergence.notion, upper, lower, witness, exact, REFERENCE, divergence.parameters)


def _falling(bound: Array) -> list[int]:
    """The positions of `bound` from the largest to the least, ties in the order of their positions."""
    order = np.argsort(-bound, kind="stable")
    sorted_bounds = bound[order]
    tie_groups = np.concatenate([[0], np.cumsum(sorted_bounds[1:] < sorted_bounds[:-1] * (1 - TIE_RTOL))])
    return [int(position) for position in order[np.lexsort((order, tie_groups))]]
