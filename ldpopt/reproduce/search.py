"""Search for the populations at which a bound is at its worst."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldpopt.distribution import Array
from ldpopt.reproduce.experiment import Row

CLOSEST = 1e-3
"""Pairs nearer in total variation are not tried: there a ratio of two tiny divergences is mostly rounding."""


def worst_pair(ratio: Callable[[Array, Array], float], k: int, starts: int, steps: int, seed: int = 1) -> Row:
    """The largest `ratio` of pairs of distributions on k points found, and the pair: a lower bound on the supremum.

    Nelder and Mead's search over the logits of both, from the `starts` best of forty times as many random pairs,
    `steps` evaluations each.
    """
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)

    def loss(logits: Array) -> float:
        p0, p1 = _pair(logits)
        return -ratio(p0, p1) if np.abs(p0 - p1).sum() / 2 >= CLOSEST else 0.0

    tried = [rng.normal(0, scale, 2 * k) for scale in np.geomspace(0.3, 12, 40 * starts)]
    options = {"maxfev": steps, "xatol": 1e-6}
    found = min(
        (minimize(loss, start, method="Nelder-Mead", options=options) for start in sorted(tried, key=loss)[:starts]),
        key=lambda one: float(one.fun),
    )
    p0, p1 = _pair(found.x)
    return {"ratio": -float(found.fun), "p0": _shown(p0), "p1": _shown(p1)}


def _pair(logits: Array) -> tuple[Array, Array]:
    raw = np.exp(np.clip(logits, -12, 12)).reshape(2, -1)
    p0, p1 = raw / raw.sum(axis=1, keepdims=True)
    return p0, p1


def _shown(p: Array) -> str:
    return " ".join(f"{value:.4g}" for value in p)
