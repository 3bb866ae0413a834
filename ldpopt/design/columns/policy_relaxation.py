"""A bound on the price of every column of a policy graph, for graphs with too many extreme columns to list [Shor].

A column s within the graph has  a.s = exp(L[x,x']) s_x' - s_x >= 0  for every edge. With lambda as in `charges`, it
does not pay when (s.p)(lambda.s) - s^T G s >= 0, and that holds for all of them when this form, less a combination of
products (a.s)(b.s) >= 0 with weights n >= 0, is positive semidefinite. Under a cap on total variation a column pays
nu[x,x'] (s_x - s_x')_+, too, and with d = s_x - s_x' and |d| <= R (s.p) within the graph,

    (d)_+ (s.p) >= (d (s.p) + d^2 / R) / 2.

The form is in z_x = s_x / unit_x, where unit_x is the most that s_x can be for s.p = 1: then |z|^2 <= k (s.p)^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.charges import Charges
from ldpopt.design.columns.definite import least_eigenvalue
from ldpopt.design.columns.extreme import direct_limits
from ldpopt.design.columns.relaxation import finite, most_of_form
from ldpopt.distribution import Array
from ldpopt.enclosures import Enclosure

PRODUCTS = 6000
"""The most products of two constraints that are weighed; of more, those that share an input come first."""

OUTWARD = 2.0**-44
"""Relative room for what rounding did to the limits, products of weights and epsilon added up along paths."""


@dataclass(frozen=True, eq=False)
class PolicyRelaxation:
    """n (products,), the weights of the products of constraints, none below zero; sound whatever its values."""

    weights: Array

    words: ClassVar[str] = "Shor's relaxation of"

    def most(self, charges: Charges, limits: Array) -> float:
        """No column within `limits` is priced above this; inf where the numbers prove nothing."""
        arithmetic, k = charges.arithmetic, len(limits)
        x, other = limits_used(limits)
        first, second = product_pairs(_support(limits, x, other))
        weights = finite(self.weights, (len(first),))
        if weights is None or not (weights >= 0).all():
            return math.inf
        wide = arithmetic.of(np.where(np.isfinite(limits), limits, 0.0)) * (1 + OUTWARD)
        # s.p >= s_x sum_x' p_x' exp(-L[x,x'])
        shrunk = arithmetic.where(np.isfinite(limits), (-wide).exp(), 0.0)
        unit = 1 / (shrunk @ charges.prior)
        faces = _enclosed_faces(wide[x, other], unit, x, other, k, bool(np.isinf(limits).any()))
        products = (faces[first] * weights[:, None]).T @ faces[second]
        shift, bent = _apart(charges, wide, np.isfinite(limits), unit)
        paid = charges.prior[:, None] * (arithmetic.of(charges.rows) + shift)[None, :]
        square = charges.kernel.T @ charges.kernel - bent
        form = ((paid + paid.T) / 2 - square) * unit[:, None] * unit[None, :] - (products + products.T) / 2
        return most_of_form(least_eigenvalue(form), k)


def limits_used(limits: Array) -> tuple[Any, Any]:
    """The ends of the limits that no path through other inputs implies."""
    x, other = np.nonzero(direct_limits(limits))
    return x, other


def _support(limits: Array, x: Any, other: Any) -> npt.NDArray[np.bool_]:
    """(faces, k) which inputs the limits speak of, and where some inputs have none, each entry by itself."""
    k = len(limits)
    made = np.zeros((len(x), k), dtype=bool)
    made[np.arange(len(x)), x] = made[np.arange(len(x)), other] = True
    return np.vstack([made, np.eye(k, dtype=bool)]) if np.isinf(limits).any() else made


def _enclosed_faces(wide: Enclosure, unit: Enclosure, x: Any, other: Any, k: int, single: bool) -> Enclosure:
    """The limits exp(L/2) s_x' - exp(-L/2) s_x >= 0 in units, over some positive number each, (faces, k)."""
    arithmetic, at = wide.arithmetic, np.arange(len(x))
    up, down = (wide / 2).exp() * unit[other], (-wide / 2).exp() * unit[x]
    # Over the larger of the two, as the program has them.
    scale = np.maximum(np.asarray(up.midpoint), np.asarray(down.midpoint))
    into, out = np.zeros((len(x), k)), np.zeros((len(x), k))
    into[at, other] = out[at, x] = 1.0
    made = (up / scale)[:, None] * into - (down / scale)[:, None] * out
    return arithmetic.concatenate([made, arithmetic.of(np.eye(k))]) if single else made


def _apart(
    charges: Charges, wide: Enclosure, near: npt.NDArray[np.bool_], unit: Enclosure
) -> tuple[Enclosure, Enclosure]:
    """What sum nu (d (s.p) + d^2 / R) / 2 adds to lambda (k,), and its square form (k, k), d = s_x - s_x'."""
    arithmetic = charges.arithmetic
    pairs = arithmetic.of(charges.pairs)
    # s_x - s_x' is at most unit_x (1 - exp(-L[x,x'])) for s.p = 1, and so the other way round.
    reach = unit[:, None] * arithmetic.where(near, -(-wide).expm1(), 1.0)
    reach = reach.maximum(reach.T)
    priced = charges.pairs > 0
    bent = arithmetic.where(priced, pairs / (arithmetic.where(priced, reach, 1.0) * 2), 0.0)
    bent = bent + bent.T
    ones = bent.sum(axis=1)
    diagonal = arithmetic.where(np.eye(len(near), dtype=bool), ones[:, None] * np.ones((1, len(near))), 0.0)
    return (pairs.sum(axis=1) - pairs.sum(axis=0)) / 2, diagonal - bent


def product_pairs(support: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
    """The first and the second constraint of each product that is weighed."""
    first, second = np.triu_indices(len(support), 1)
    if len(first) > PRODUCTS:
        shared = (support[first] & support[second]).sum(axis=1)
        kept = np.sort(np.argsort(-shared, kind="stable")[:PRODUCTS])
        first, second = first[kept], second[kept]
    return first, second
