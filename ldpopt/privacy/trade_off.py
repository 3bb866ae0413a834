"""The trade-off curve: the smallest type II error of a test between two inputs, for each type I error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.errors import invalid
from ldpopt.numbers.rounding import ULP
from ldpopt.numbers.tolerances import CURVE_TOLERANCE, TURN_RTOL
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.privacy.pairs import Policy, blocks, normalised
from ldpopt.values.distribution import Array, distribution, finite_array, nonnegative
from ldpopt.values.results import Pictured

REFERENCE = "[GI, Def 2; DRS, Def 2.1]"

MAX_UNSAMPLED_POINTS = 1 << 14
"""With more points than this, points above the hull of a sample are dropped before the hull is computed."""


@dataclass(frozen=True, eq=False)
class TradeOffCurve(Pictured):
    """A piecewise-linear trade-off function on [0, 1]: convex, non-increasing, at most 1 - t [GI, Def 2].

    An adversary sees a report and tests which of two inputs it came from. Type I error is the probability of rejecting
    the first input although it is true. Type II error is that of accepting it although the second is true. The curve
    gives the smallest type II error for each type I error t. A higher curve hides the inputs better.

    - `knots` : array (n, 2) of (type I error, type II error), the type I errors increasing from 0. The curve is linear
      between knots. At the last knot and beyond, the type II error is 0.
    - `slack` : how far, relatively, knots may lie below the exact ones; they never lie above.

    Raises `InvalidInput` for knots that are not those of a trade-off function.

    >>> curve = TradeOffCurve.of_pair([0.75, 0.25], [0.25, 0.75])
    >>> round(float(curve(0.5)), 6), curve == curve.inverse()
    (0.166667, True)
    """

    knots: Any
    slack: float = 0.0

    _picture = "trade_off"

    def _columns(self) -> dict[str, list[Any]]:
        return dict(zip(("type_one", "type_two"), self.knots.T.tolist(), strict=True))

    def __post_init__(self) -> None:
        knots = finite_array(self.knots, "knots", 2)
        if knots.shape[1] != 2 or not len(knots):
            raise invalid("knots", "shape (n, 2): type I and type II errors", f"shape {knots.shape}")
        a, b = knots.T
        if a[0] != 0 or b[-1] != 0 or knots.min() < 0 or (a + b).max() > 1 + CURVE_TOLERANCE:
            raise invalid("knots", "points of [0, 1]^2 on or below 1 - t, from (0, b) to (a, 0)", knots.tolist())
        step, fall = np.diff(a), -np.diff(b)
        if (step <= 0).any() or (fall < 0).any():
            raise invalid("knots", "increasing type I and non-increasing type II errors", knots.tolist())
        # Slopes are compared without division, up to the rounding of the coordinates.
        turn = fall[1:] * step[:-1] - fall[:-1] * step[1:]
        if (turn > TURN_RTOL * (step[:-1] + step[1:])).any():
            raise invalid("knots", "a convex curve", knots.tolist())
        knots.setflags(write=False)
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "slack", float(self.slack))

    @classmethod
    def of_pair(cls, p: Any, q: Any) -> TradeOffCurve:
        """Build the curve of tests of p against q, (m,), by the lemma of Neyman and Pearson."""
        p = distribution(p, "p")
        return _lower_envelope([_pair_knots(p[None], distribution(q, "q", size=len(p))[None])], len(p))

    def __call__(self, type_one: Any) -> Any:
        """The least type II error at a type I error in [0, 1], or at an array of them."""
        t = type_one_errors(type_one)
        return np.interp(t, self.knots[:, 0], self.knots[:, 1], right=0.0)

    def inverse(self) -> TradeOffCurve:
        """Build the curve with the roles of the two hypotheses exchanged."""
        return _lower_envelope([self.knots[:, ::-1]], 0, self.slack)

    def symmetrised(self) -> TradeOffCurve:
        """Build the lower convex envelope of the curve and its inverse."""
        return _lower_envelope([self.knots, self.knots[:, ::-1]], 0, self.slack)

    def dominates(self, other: TradeOffCurve) -> bool:
        """Return True if this curve lies nowhere below `other`.

        A mechanism with this curve is then at least as private. The curves are piecewise linear, so they are compared
        at the knots of both, without tolerance.
        """
        t = np.union1d(self.knots[:, 0], other.knots[:, 0])
        return bool((self(t) >= other(t)).all())

    def to_approximate_dp(self, epsilon: float) -> Guarantee:
        """Compute the smallest delta at `epsilon` >= 0 (nats), in both directions.

        It is a `Guarantee` of notion "hockey_stick". By [GI, Thm 1] it follows from the lines that support the curve.
        """
        factor = math.exp(min(nonnegative(epsilon, "epsilon"), 709.0))
        delta_bounds = []
        for scale, sign in ((1 + 2 * self.slack, -1), (1.0, 1)):
            lines = [1 - b * scale - factor * a * scale for a, b in (self.knots.T, self.knots.T[::-1])]
            rounding = sign * 4 * ULP
            delta_bounds.append(min(1.0, max(0.0, *(float(line.max()) + rounding for line in lines))))
        return Guarantee(
            "hockey_stick", delta_bounds[1], delta_bounds[0], None, True, "[GI, Thm 1]", {"epsilon": float(epsilon)}
        )

    def to_total_variation(self) -> float:
        """Compute the total variation distance: 1 - min over t of t + f(t)."""
        return float(1 - self.knots.sum(axis=1).min())

    def __repr__(self) -> str:
        return f"TradeOffCurve({len(self.knots)} knots, total variation {self.to_total_variation():.6g})"


def type_one_errors(values: Any) -> Array:
    """Return type I errors in [0, 1] as an array of any shape."""
    try:
        t = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise invalid("type I error", "numbers in [0, 1]", values) from None
    if t.size and not (t.min() >= 0 and t.max() <= 1):
        raise invalid("type I error", "numbers in [0, 1]", values)
    return t


def trade_off(channel: ChannelLike, graph: Policy = None) -> TradeOffCurve:
    """Compute the largest trade-off function f such that the channel is f-DP.

    T(Q[x], Q[x']) >= f for all inputs x, x', where T(p, q) is the trade-off function of testing p against q. A channel
    is f-DP if one function f lies below those of all pairs of rows [DRS, Def 2.2]. A trade-off function is convex, so f
    is the lower convex envelope of the pointwise minimum over pairs, which need not be convex itself. Both give the
    same delta at every epsilon.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    graph : Policy graph over the inputs (networkx); only adjacent inputs are compared. None compares all.

    Returns
    -------
    TradeOffCurve
        The curve is exact and piecewise linear, with knots rounded downward; rows are divided by their sums.

    Raises
    ------
    InvalidInput
        If the matrix is not a channel, or the graph does not fit the inputs.

    Examples
    --------
    >>> trade_off([[0.75, 0.25], [0.25, 0.75]]).knots.round(6)
    array([[0.  , 1.  ],
           [0.25, 0.25],
           [1.  , 0.  ]])
    """
    channel = as_channel(channel)
    rows = normalised(channel.matrix)
    knot_blocks, stored_knots = [np.array([[0.0, 1.0], [1.0, 0.0]])], 0
    for i, j in blocks(channel, graph):
        knot_blocks.append(_pair_knots(rows[i], rows[j]))
        stored_knots += len(knot_blocks[-1])
        if stored_knots > 1 << 20:
            knot_blocks, stored_knots = [_hull(np.concatenate(knot_blocks))], 0
    return _lower_envelope(knot_blocks, channel.shape[1])


def _pair_knots(p: Array, q: Array) -> Array:
    """All knots of the curves of n pairs, (n, m) -> (n (m + 1), 2): tests reject outputs with the largest q/p first."""
    with np.errstate(divide="ignore", invalid="ignore"):  # scaled, so that only impossible outputs give infinity
        ratio = np.where(p > 0, q / (p * 2.0**60), np.where(q > 0, np.inf, -1.0))
    order = np.argsort(-ratio, axis=1, kind="stable")
    p, q = np.take_along_axis(p, order, 1), np.take_along_axis(q, order, 1)
    zero = np.zeros((len(p), 1))
    type_one_knots = np.hstack([zero, np.cumsum(p, axis=1)])
    type_two_knots = np.hstack([np.cumsum(q[:, ::-1], axis=1)[:, ::-1], zero])  # the rest of q, without cancellation
    return np.stack([type_one_knots.ravel(), type_two_knots.ravel()], axis=1)


def _lower_envelope(point_blocks: list[Array], terms: int, slack: float = 0.0) -> TradeOffCurve:
    """The largest convex non-increasing curve below the points; `terms` is how many entries each coordinate sums up."""
    points = np.concatenate(point_blocks)
    if terms:  # a curve through points moved down and to the left lies below the exact one
        points = points * (1 - 2 * (terms + 6) * ULP)
        slack = 4 * (terms + 6) * ULP
    points = _hull(np.minimum(points, 1.0))
    return TradeOffCurve(points, slack)


def _hull(points: Array) -> Array:
    """The knots of the lower convex hull of points in [0, 1]^2 with at least one on each axis."""
    if (
        len(points) > MAX_UNSAMPLED_POINTS
    ):  # a point above the hull of a sample cannot be a knot of the hull of all points
        end_indices = [
            np.where(points[:, 0] == 0, points[:, 1], 2.0).argmin(),
            np.where(points[:, 1] == 0, points[:, 0], 2.0).argmin(),
        ]
        partial_hull = _hull(np.concatenate([points[end_indices], points[::32]]))
        previous_indices = np.searchsorted(partial_hull[:, 0], points[:, 0], side="right") - 1
        chord = np.interp(points[:, 0], partial_hull[:, 0], partial_hull[:, 1], right=0.0)
        points = np.concatenate(
            [partial_hull, points[points[:, 1] <= chord + 16 * ULP * partial_hull[previous_indices, 1]]]
        )
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    # Only a point lower than all before it can be a knot of a non-increasing curve.
    lowest = np.minimum.accumulate(np.concatenate([[np.inf], points[:-1, 1]]))
    hull: list[tuple[float, float]] = []
    for x, y in points[points[:, 1] < lowest].tolist():
        while len(hull) > 1:
            (ax, ay), (bx, by) = hull[-2], hull[-1]
            turn_product, straight_product = (bx - ax) * (y - ay), (by - ay) * (x - ax)
            if min(turn_product, straight_product) > -1e-290:  # near underflow the products have few digits
                turn_product = Fraction(bx - ax) * Fraction(y - ay)
                straight_product = Fraction(by - ay) * Fraction(x - ax)
            if turn_product > straight_product:
                break
            hull.pop()
        hull.append((x, y))
    return np.array(hull)
