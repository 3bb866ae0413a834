"""Where the ratio-labelled program cuts the likelihood ratios: knots on the scale s = P0/(P0+P1), both ends kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array

FINEST = 25
"""Graded knots begin at an eighth of the step of this many even ones."""


def even_knots(low: float, high: float, count: int) -> Array:
    """Even in log-ratio, and the ratio one, where many divergences have a kink."""
    first, last = (np.log(max(s, 1e-9)) - np.log(max(1 - s, 1e-9)) for s in (low, high))
    inner = 1 / (1 + np.exp(-np.linspace(first, last, count)[1:-1]))
    knots = np.unique(np.concatenate([[low, high, 0.5], inner]))
    return _apart(knots[(knots >= low) & (knots <= high)])


def graded_knots(knots: Array, at: Array) -> Array:
    """More knots at the posteriors `at` and around them, at distances that shrink by eight from the grid's own."""
    step = (knots[-1] - knots[0]) / FINEST * 8.0 ** -np.arange(0, 4)
    new = (at[:, None] + np.concatenate([[0.0], step, -step])).ravel()
    return _apart(np.unique(np.concatenate([knots, np.clip(new, knots[0], knots[-1])])), 1e-7)


def cut_knots(knots: Array, a: Array, b: Array, lossy: npt.NDArray[np.bool_]) -> Array:
    """The `lossy` intervals, whose outputs have marginals `a` and `b`, cut at those ratios and a sixteenth around."""
    at = np.flatnonzero(lossy & (a + b > 1e-9))
    inside = np.clip(a[at] / (a[at] + b[at]), knots[at], knots[at + 1])
    step = np.diff(knots)[at] / 16
    new = np.concatenate([inside, inside - step, inside + step])
    return _apart(np.unique(np.concatenate([knots, np.clip(new, knots[0], knots[-1])])))


def _apart(knots: Array, least: float = 1e-9) -> Array:
    """Knots with at least `least` between them."""
    kept = knots[np.concatenate([[True], np.diff(knots) > least])]
    kept[-1] = knots[-1]
    return np.asarray(kept)
