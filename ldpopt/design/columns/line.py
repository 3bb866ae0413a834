"""Pricing all staircase patterns for one contrast, for any number of inputs: only few sets can be the best.

For a kernel with one row kappa, a pattern t + a earns c^2 / m with c = kappa.a and m = t + p.a. As
c^2 / m = max over s of 2 s c - s^2 m,

    earned - paid = max over s of  -s^2 t - t sum lambda + sum over x in a of g_x(s),
    g_x(s) = 2 s kappa_x - s^2 p_x - lambda_x.

At any s the best set is {x : g_x(s) > 0}, which changes only at roots of the g_x. So at most 2 k + 1 sets can be best.
For a pair of hypotheses it is the same, with the likelihood ratio in place of kappa_x / p_x [KOV14, section 5].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.design.columns.charges import Charges
from ldpopt.distribution import Array
from ldpopt.enclosures import FLOAT, Enclosure

SAME = 2.0**-44
"""Roots that differ by less than this share of the largest one count as one root."""


def line_sets(kernel: Array, prior: Array, rows: Array) -> tuple[npt.NDArray[np.bool_], Array]:
    """(n, k) the best set between every two neighbouring roots, and (n + 1,) the ends of these intervals, in floats."""
    with np.errstate(all="ignore"):
        apart = kernel**2 - prior * rows
        root = np.sqrt(np.where(apart > 0, apart, np.nan))
        # The root that does not cancel, and the other one from the product of both.
        far = kernel + np.where(kernel >= 0, root, -root)
        roots = np.concatenate([far / prior, rows / far])
    roots = np.unique(roots[np.isfinite(roots)])
    if not len(roots):
        roots = np.zeros(1)
    # Roots that differ by rounding alone count as one: they belong to inputs with the same weight in the contrast.
    roots = roots[np.diff(roots, prepend=-np.inf) > SAME * np.abs(roots).max()]
    if not len(roots):
        roots = np.zeros(1)
    inside = (roots[:-1] + roots[1:]) / 2
    s = np.concatenate([[roots[0] - 1 - abs(roots[0])], inside, [roots[-1] + 1 + abs(roots[-1])]])
    sets = s[:, None] * (2 * kernel - s[:, None] * prior) - rows > 0
    return np.asarray(sets), np.concatenate([[-np.inf], roots, [np.inf]])


def most_of_line(charges: Charges, level: Enclosure) -> float:
    """An upper bound on the gains of all patterns t + a, t = `level`, for one row of K; inf where none is proved.

    Nothing may be charged for pairs. Rounding may have given a wrong set between two roots, so that what any other set
    could gain there is added, input by input.
    """
    kernel, p, t = FLOAT.of(charges.kernel)[0], FLOAT.of(charges.prior), FLOAT.of(level)
    rows = FLOAT.of(charges.rows)
    possible = (np.asarray(p.lower) > 0).all() and t.lower > 0
    if charges.pairs.any() or not possible or not np.isfinite(charges.rows).all():
        return math.inf
    sets, ends = line_sets(np.asarray(kernel.midpoint), np.asarray(p.midpoint), charges.rows)
    rise = sets.astype(np.float64)
    mass = rise @ p + t
    paid = rise @ rows + t * FLOAT.of(charges.total)
    earned: Any = rise @ kernel
    own = earned.square() / mass - paid
    finite = FLOAT.of(ends[1:-1])[:, None]
    at_ends = (kernel[None, :] * 2 - p[None, :] * finite) * finite - rows[None, :]
    least, most = np.asarray(at_ends.lower), np.asarray(at_ends.upper)
    top, peak = kernel / p, np.asarray((kernel.square() / p - rows).upper)
    # An input of the set may lose as much as g_x is below zero at an end; one outside may gain its largest g_x.
    edge = np.full((1, len(peak)), np.inf)
    lacking = -np.minimum(np.vstack([-edge, least]), np.vstack([least, -edge]))
    reach = (np.asarray(top.lower) <= ends[1:, None]) & (np.asarray(top.upper) >= ends[:-1, None])
    gained = np.where(reach, peak, np.maximum(np.vstack([-edge, most]), np.vstack([most, -edge])))
    wrong = np.where(sets, lacking, gained)
    wrong = np.maximum(wrong, 0.0)
    if not np.isfinite(wrong).all():
        return math.inf
    over = np.asarray((own + FLOAT.of(wrong).sum(axis=1)).upper)
    if not (over < math.inf).all():
        return math.inf
    worst = float((FLOAT.of(over) / t).max().upper)  # a mass is at least t
    if worst <= 0:
        return 0.0
    return worst if worst < math.inf else math.inf
