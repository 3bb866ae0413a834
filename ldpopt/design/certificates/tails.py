"""The end of the likelihood ratios where a divergence is infinite: a tangent, and moments that pay for the rest.

Beyond a ratio R, mu is its tangent plane at R plus a rest. A cap on a moment of order o between rows
(`constraints.moment`) pays for the rest. For the power divergences

    f(u) - tangent of f at R  =  c R^p g_p(u/R),      g_o(v) = (v^o - o v + o - 1)/(o - 1),  g_1(v) = v log v - v + 1,

and for u = R v >= R two inequalities hold. First, g_p(v) <= g_o(v) for p <= o, since g_o'(v) = o (v^(o-1) - 1)/(o - 1)
grows with o. Second, R^o psi_o(v) <= psi_o(R v) for psi_o = (o - 1) g_o, since their difference
o v (R^o - R) - (o - 1)(R^o - 1) grows with v and is psi_o(R) >= 0 at v = 1. So the rest is at most
c R^(p-o)/(o-1) psi_o(M0, M1). As psi_o is jointly convex, that is at most the mean of psi_o between the rows of two
inputs drawn from P0 and P1, whose sum over the outputs is capped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ldpopt.design.certificates.base import Unproved
from ldpopt.design.constraints.base import ColumnConstraint
from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.divergences.enclosed import enclosed_slopes
from ldpopt.enclosures import FLOAT, Arithmetic, Enclosure

ORDERS = (1.0625, 1.125, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0)
"""The orders of moments that are tried, besides those that constraints name."""

REACHES = 10.0 ** np.arange(1, 16)
"""The cuts nearest to these ratios are tried: a near cut costs more moments, a far cut needs steeper tangents."""

ENOUGH = 1e-8
"""The cost of the rest beyond a ratio counts as little below this share of its cost beyond the first of `REACHES`."""


def tails(
    f: FDivergence, knots: Array, mirrored: bool, constraints: Sequence[ColumnConstraint], of: Arithmetic
) -> Iterator[tuple[npt.NDArray[np.bool_], Enclosure, Enclosure, Enclosure]]:
    """For some cuts: the labels beyond, the tangent's coefficients of M0 - M1 and of M1, and the cost of the rest.

    mirrored : whether the infinite end is that of small ratios.
    """
    power, labels = tail_power(f, mirrored), len(knots) - 1
    if power is None:
        raise Unproved(f"{f.name} is infinite at the end of the ratios")
    with np.errstate(all="ignore"):
        ratios = knots[1:-1] / (1 - knots[1:-1])
    far = 1 / ratios if mirrored else ratios
    usable = np.flatnonzero((far > 1) & (far < np.inf))
    if not len(usable):
        raise Unproved(f"no cut is between ratio 1 and the end where {f.name} is infinite")
    tried = {int(usable[np.abs(np.log(far[usable] / reach)).argmin()]) for reach in REACHES}
    some = False
    for cut in sorted(tried):
        s = of.of(float(knots[cut + 1]))
        ratio = s / (1 - s)
        reach = 1 / ratio if mirrored else ratio
        cost = tail_cost(power, reach, constraints) if float(reach.lower) > 1 else None
        if cost is not None and np.isfinite(cost.upper):
            on_a, on_b = enclosed_slopes(f, ratio, of)
            beyond = np.arange(labels) <= cut if mirrored else np.arange(labels) > cut
            some = True
            yield beyond, on_a, on_a + on_b, cost
    if not some:
        raise Unproved(f"{f.name} is infinite at the end of the ratios, and no moment between rows is capped")


def far_enough(f: FDivergence, mirrored: bool, constraints: Sequence[ColumnConstraint]) -> float | None:
    """A ratio above 1 beyond which the rest costs little, or as little as it can; None where its cost is not finite."""
    power = tail_power(f, mirrored)
    if power is None:
        return None
    costs = [tail_cost(power, FLOAT.of(float(one)), constraints) for one in REACHES[:9]]
    each = [float(one.upper) for one in costs if one is not None]
    if not each:
        return None
    enough = [float(far) for far, cost in zip(REACHES, each, strict=False) if cost <= ENOUGH * each[0]]
    # The tangent there is about as steep as R^(p-1), which solvers should still see beside the rest.
    steep = 1e9 if power[0] <= 1 else 10 ** (5 / (power[0] - 1))
    return min(enough[0] if enough else float(REACHES[8]), steep)


def tail_cost(
    power: tuple[float, float], reach: Enclosure, constraints: Sequence[ColumnConstraint]
) -> Enclosure | None:
    """The least cost of the rest of a power divergence beyond a ratio above 1; None where no moment pays for it."""
    of, (degree, factor) = reach.arithmetic, power
    costs = []
    for order in (1.0, *_orders(constraints)):
        cap = least([made for c in constraints if (made := c.moment(order, of)) is not None])
        if cap is not None and order == degree == 1:
            costs.append(cap)  # u log(u/R) - u + R is at most u log u - u + 1 from u = R on
        elif cap is not None and order > 1 and degree <= order:
            share = (reach.log() * (of.of(degree) - order)).exp() / (of.of(order) - 1)
            costs.append(cap * share * factor)
    return least(costs)


def tail_power(f: FDivergence, mirrored: bool) -> tuple[float, float] | None:
    """(p, c) of the rest c R^p g_p above a tangent, for f or, `mirrored`, with its arguments exchanged; else None."""
    if f.recipe is None:
        return None
    name, *parameters = f.recipe
    if name == "alpha":
        order = 1 - parameters[0] if mirrored else parameters[0]
        return (order, 1 / order) if order > 1 else None
    return {("kl", False): (1.0, 1.0), ("reverse-kl", True): (1.0, 1.0), ("chi-squared", False): (2.0, 1.0),
            ("neyman-chi-squared", True): (2.0, 1.0)}.get((name, mirrored))  # fmt: skip


def _orders(constraints: Sequence[ColumnConstraint]) -> list[float]:
    named = [float(o) for c in constraints for o in (getattr(c, "order", 1.0), *getattr(c, "orders", ()))]
    return sorted({o for o in (*ORDERS, *named) if 1 < o < np.inf})


def least(each: Sequence[Enclosure]) -> Enclosure | None:
    """The enclosure with the smallest upper end; None if there are none."""
    return min(each, key=lambda one: float(one.upper), default=None)
