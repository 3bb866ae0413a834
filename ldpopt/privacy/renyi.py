"""Rényi local differential privacy: the Rényi divergence of every order from one to infinity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.errors import invalid
from ldpopt.numbers.rounding import ULP
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.local_dp import local_dp
from ldpopt.privacy.loss import ROUNDED, PrivacyLoss, log_ratios, log_sums, privacy_loss
from ldpopt.privacy.pairs import Policy, larger, worst_pair
from ldpopt.values.distribution import Array

REFERENCE = "[M, Def 3]"
SCANNED_ORDERS = 41  # Orders compared first in the search for the highest rate.


@overload
def renyi(channel: ChannelLike, order: float, graph: Policy = None) -> Guarantee: ...
@overload
def renyi(
    channel: ChannelLike, order: list[float] | tuple[float, ...] | Array, graph: Policy = None
) -> tuple[Guarantee, ...]: ...


def renyi(channel: ChannelLike, order: Any, graph: Policy = None) -> Guarantee | tuple[Guarantee, ...]:
    """Compute the largest Rényi divergence between two rows, in nats.

    See [M, Def 3; BS, Def 2.1]. Order 1 is the KL divergence, and order inf is pure LDP. The divergence is inf if an
    output is possible for one input and impossible for another.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    order : In [1, inf], or a one-dimensional array of orders.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    Guarantee
        The divergence of this order, in nats; for an array of orders, a tuple of guarantees.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, an order is below 1, or the graph does not fit the inputs.

    Examples
    --------
    >>> q = [[0.75, 0.25], [0.25, 0.75]]
    >>> [round(float(g), 6) for g in renyi(q, [1, 2, float("inf")])]
    [0.549306, 0.847298, 1.098612]
    """
    channel = as_channel(channel)
    if np.ndim(order) == 1:
        return tuple(renyi(channel, single_order, graph) for single_order in order)
    alpha = renyi_order(order)
    if math.isinf(alpha):
        pure = local_dp(channel, graph)
        return Guarantee("renyi", pure.value, pure.lower, pure.witness, True, REFERENCE, {"order": alpha})
    return worst_pair(
        "renyi", channel, graph, lambda p, q: renyi_of_pairs(p, q, alpha, 0.0), REFERENCE,
        parameters={"order": alpha}, event=larger, screen=lambda matrix: _screen(matrix, alpha),
    )  # fmt: skip


def renyi_order(order: Any, name: str = "order") -> float:
    """Return an order in [1, inf] as a float."""
    try:
        if isinstance(order, (str, bytes, bool)):
            raise TypeError
        alpha = float(order)
    except (TypeError, ValueError, OverflowError):
        raise invalid(name, "a number in [1, inf]", order) from None
    if not alpha >= 1:
        raise invalid(name, "a number in [1, inf]", alpha)
    return alpha


def renyi_of_pairs(p: Array, q: Array, order: float, entry_error: Array | float = ROUNDED) -> tuple[Array, Array]:
    """Bound the Rényi divergence of n pairs, (n, m) -> (n,), (n,)."""
    p, q = np.atleast_2d(p, q)
    return privacy_loss(p, q, entry_error).renyi(order - 1)


def lowest(loss: PrivacyLoss, orders: Array) -> Array:
    """Return lower bounds (N, n) on the Rényi divergences of N finite orders."""
    return np.concatenate([low for low, _ in loss.renyi_at(orders - 1)])


def highest_rate(loss: PrivacyLoss, low: float, high: float) -> tuple[float, float]:
    """Find the order a in [low, high] with the largest D_a / a of any pair, and that rate.

    The order is accurate to 1e-4 of the range. The largest of several pairs may have several steep peaks, so the search
    climbs each peak of a scan.
    """
    from scipy.optimize import minimize_scalar

    def rate(order: float) -> float:
        return float(loss.renyi(order - 1)[0].max() / order)

    scanned_orders = np.linspace(low, high, SCANNED_ORDERS).tolist()
    rates, rates_and_orders = [-math.inf, *map(rate, scanned_orders), -math.inf], []
    options = {"xatol": 1e-4 * (high - low)}
    for peak_position in (i for i in range(SCANNED_ORDERS) if rates[i] <= rates[i + 1] >= rates[i + 2]):
        neighbor_orders = (
            scanned_orders[max(peak_position - 1, 0)],
            scanned_orders[min(peak_position + 1, SCANNED_ORDERS - 1)],
        )
        maximization = minimize_scalar(lambda a: -rate(a), bounds=neighbor_orders, method="bounded", options=options)
        rates_and_orders += [
            (rates[peak_position + 1], scanned_orders[peak_position]),
            (-float(maximization.fun), float(maximization.x)),
        ]
    largest_rate, order = max(rates_and_orders)
    return order, largest_rate


def _screen(matrix: Array, alpha: float) -> tuple[Array, Array]:
    """Bounds on every ordered pair at once, from one matrix product."""
    moments = Moments.from_matrix(matrix)
    return moments.mean if alpha == 1 else moments.divergence(alpha - 1)


@dataclass(frozen=True, eq=False)
class Moments:
    """Bounds on the moments of the privacy loss Z of every ordered pair of rows; each moment takes one matrix product.

    reference : (m,), column means; tilt : (k, m), log entries over it; sums : (k,), log row sums; outside : infinite
    losses.
    """

    matrix: Array
    reference: Array
    tilt: Array
    sums: Array
    infinite_losses: npt.NDArray[np.bool_]

    @classmethod
    def from_matrix(cls, matrix: Array) -> Moments:
        """Compute the moments of the rows of a matrix (k, m)."""
        used_columns = matrix[:, matrix.max(axis=0) > 0]
        is_positive = used_columns > 0
        has_infinite_loss = np.zeros((len(used_columns), len(used_columns)), dtype=bool)
        if not is_positive.all():
            has_infinite_loss = is_positive.astype(np.float64) @ (~is_positive).astype(np.float64).T > 0
        if has_infinite_loss.any():  # the largest value is infinite then, and only `has_infinite_loss` matters
            used_columns = np.ones((len(used_columns), 1))
        reference = np.maximum(used_columns.mean(axis=0), used_columns.min(axis=0))
        return cls(
            used_columns,
            reference,
            log_ratios(used_columns, np.broadcast_to(reference, used_columns.shape)),
            log_sums(used_columns),
            has_infinite_loss,
        )

    @cached_property
    def span(self) -> float:
        """A bound on the range of the loss of any pair."""
        return 2.01 * float(np.ptp(self.tilt, axis=1).max())

    @cached_property
    def mean(self) -> tuple[Array, Array]:
        """Bounds on E Z under the first row, (k, k) each."""
        expected_tilts = self.matrix @ self.tilt.T
        means = (
            (np.diag(expected_tilts)[:, None] - expected_tilts) / np.exp(self.sums)[:, None]
            - self.sums[:, None]
            + self.sums
        )
        error_scale = float(np.abs(self.tilt).max()) + float(np.abs(self.sums).max())
        return self._bounds(means, (4 * self.matrix.shape[1] + 64) * ULP * error_scale)

    def log_moment(self, s: float) -> tuple[Array, Array]:
        """Bound log E exp(s Z), (k, k) each, for any s."""
        tilt_factor, m = abs(1 + s) + abs(s), self.matrix.shape[1]
        largest_tilt, largest_sum = float(np.abs(self.tilt).max()), float(np.abs(self.sums).max())
        correction = s * self.sums - (1 + s) * self.sums[:, None]
        if (
            tilt_factor * largest_tilt <= 0.5
        ):  # every term is close to one; the small differences are summed, which keeps digits
            first_growth, second_growth = np.expm1((1 + s) * self.tilt), np.expm1(-s * self.tilt)
            defect = math.fsum([*self.reference.tolist(), -1.0])
            first_exponents = self.reference * first_growth
            total = (
                first_exponents.sum(axis=1)[:, None]
                + second_growth @ self.reference
                + first_exponents @ second_growth.T
                + defect
            )
            log_value = np.log1p(total) + correction
            return self._bounds(
                log_value, (4 * m + 128) * ULP * (tilt_factor * (largest_tilt + largest_sum) + abs(defect))
            )
        reference_logs = np.log(self.reference)
        first_exponents, second_exponents = (1 + s) * self.tilt + reference_logs, -s * self.tilt
        first_maxima, second_maxima = first_exponents.max(axis=1), second_exponents.max(axis=1)
        total = np.exp(first_exponents - first_maxima[:, None]) @ np.exp(second_exponents - second_maxima[:, None]).T
        exponent_size = tilt_factor * largest_tilt + float(np.abs(reference_logs).max())
        value = np.log(np.maximum(total, 5e-324)) + first_maxima[:, None] + second_maxima + correction
        error = 2 * ULP * (m + 64 + 8 * exponent_size) + 16 * ULP * tilt_factor * largest_sum + 8 * ULP * np.abs(value)
        # If a sum is so small that parts of it may have underflowed, nothing is bounded.
        return self._bounds(np.where(total > 1e-280, value, np.nan), error)

    def divergence(self, s: float) -> tuple[Array, Array]:
        """Bound the Rényi divergence of order 1 + s, s > 0."""
        low, high = self.log_moment(s)
        return low / s, high / s

    def _bounds(self, value: Array, error: Any) -> tuple[Array, Array]:
        low, high = value - error, value + error
        for bound, uninformative_value in ((low, -np.inf), (high, np.inf)):
            bound[np.isnan(bound)] = uninformative_value
            bound[self.infinite_losses] = np.inf
        return low, high
