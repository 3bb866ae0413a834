"""A bound on the gain of every column of a policy graph, for graphs with too many extreme columns to list [Shor].

A column s within the graph has  a.s = exp(L[x,x']) s_x' - s_x >= 0  for every edge. With lambda as in `charges`, its
gain is not positive when (s.p)(lambda.s) - s^T G s >= 0. That holds for all columns when this form, less a combination
of products (a.s)(b.s) >= 0 with weights n >= 0, is positive semidefinite. Under a cap on total variation a column also
pays nu[x,x'] (s_x - s_x')_+. With d = s_x - s_x', and |d| <= R (s.p) within the graph, this is bounded by

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
from ldpopt.results import ByValue

PRODUCTS = 6000
"""The most products of two constraints that are used; where there are more, those that share inputs come first."""

OUTWARD = 2.0**-44
"""Relative room for the rounding of the limits, which are sums along paths of weights times epsilon."""


@dataclass(frozen=True, eq=False)
class PolicyRelaxation(ByValue):
    """weights : n (products,), the weights of the products of constraints, none below zero. Any of them are valid."""

    weights: Array

    words: ClassVar[str] = "Shor's relaxation of"

    def most(self, charges: Charges, limits: Array) -> float:
        """An upper bound on the gains of all columns within `limits` (k, k); inf where the weights prove none."""
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
    """The two inputs, (limits,) each, of every limit that no path through other inputs implies."""
    x, other = np.nonzero(direct_limits(limits))
    return x, other


def _support(limits: Array, x: Any, other: Any) -> npt.NDArray[np.bool_]:
    """(faces, k) the inputs of each limit; where some limits are infinite, also a face s_x >= 0 for each input."""
    k = len(limits)
    made = np.zeros((len(x), k), dtype=bool)
    made[np.arange(len(x)), x] = made[np.arange(len(x)), other] = True
    return np.vstack([made, np.eye(k, dtype=bool)]) if np.isinf(limits).any() else made


def _enclosed_faces(wide: Enclosure, unit: Enclosure, x: Any, other: Any, k: int, single: bool) -> Enclosure:
    """(faces, k) the limits exp(L/2) s_x' - exp(-L/2) s_x >= 0 in z, each divided by some positive number."""
    arithmetic, at = wide.arithmetic, np.arange(len(x))
    up, down = (wide / 2).exp() * unit[other], (-wide / 2).exp() * unit[x]
    # They are divided by the larger coefficient, as in the program.
    scale = np.maximum(np.asarray(up.midpoint), np.asarray(down.midpoint))
    into, out = np.zeros((len(x), k)), np.zeros((len(x), k))
    into[at, other] = out[at, x] = 1.0
    made = (up / scale)[:, None] * into - (down / scale)[:, None] * out
    return arithmetic.concatenate([made, arithmetic.of(np.eye(k))]) if single else made


def _apart(
    charges: Charges, wide: Enclosure, near: npt.NDArray[np.bool_], unit: Enclosure
) -> tuple[Enclosure, Enclosure]:
    """For sum nu (d (s.p) + d^2 / R) / 2, d = s_x - s_x': what it adds to lambda (k,), and its square form (k, k)."""
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
    """The first and the second constraint, (products,) each, of every product that is used."""
    first, second = np.triu_indices(len(support), 1)
    if len(first) > PRODUCTS:
        shared = (support[first] & support[second]).sum(axis=1)
        kept = np.sort(np.argsort(-shared, kind="stable")[:PRODUCTS])
        first, second = first[kept], second[kept]
    return first, second
