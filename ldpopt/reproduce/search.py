"""Search for the populations at which a bound is worst."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldpopt.distribution import Array
from ldpopt.reproduce.experiment import Row

CLOSEST = 1e-3
"""Pairs that are nearer in total variation are not tried, since ratios of tiny divergences are mostly rounding."""


def worst_pair(ratio: Callable[[Array, Array], float], k: int, starts: int, steps: int, seed: int = 1) -> Row:
    """The largest `ratio` found among pairs of distributions on k points, and the pair.

    It is a lower bound on the supremum.

    Nelder and Mead's search varies the logits of both distributions. It begins at the `starts` best of forty times as
    many random pairs, and evaluates each start `steps` times.
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


def deepest_pair(ratio: Callable[[Array, Array], Array], k: int, starts: int, steps: int, seed: int = 1) -> Row:
    """As `worst_pair`, for a `ratio` that takes many pairs (n, k) at once.

    The search begins with thousands of random pairs. In half of these the two distributions differ little. The result
    is rounded to twelve digits, and the ratio is that of the rounded pair.
    """
    from scipy.optimize import minimize

    rng = np.random.default_rng([seed, k])
    count = 500 * starts
    tried = rng.normal(size=(count, 2, k)) * np.geomspace(0.3, 8, count)[:, None, None]
    tried[::2, 1] = tried[::2, 0] + 0.1 * tried[::2, 1]

    def loss(logits: Array) -> Array:
        p0, p1 = _pairs(logits)
        far = np.abs(p0 - p1).sum(axis=-1) / 2 >= CLOSEST
        return np.asarray(np.where(far, -ratio(p0, p1), 0.0))

    options = {"maxfev": steps, "xatol": 1e-7, "fatol": 1e-12, "adaptive": True}
    best, least = tried[0].ravel(), np.inf
    for at in np.argsort(loss(tried), kind="stable")[:starts]:
        x = tried[at].ravel()
        for _ in range(2):  # restarted once, since the simplex may have collapsed
            found = minimize(lambda y: float(loss(y.reshape(2, -1))), x, method="Nelder-Mead", options=options)
            x = found.x
        if float(found.fun) < least:
            best, least = x, float(found.fun)
    p0, p1 = np.round(_pairs(best.reshape(2, -1)), 12)
    p0, p1 = p0 / p0.sum(), p1 / p1.sum()
    return {"ratio": float(ratio(p0, p1)), "p0": _shown(p0, 12), "p1": _shown(p1, 12)}


def read_pair(row: Row) -> tuple[Array, Array]:
    """The pair that a search left in a row."""
    p0, p1 = (np.array([float(part) for part in str(row[name]).split()]) for name in ("p0", "p1"))
    return p0 / p0.sum(), p1 / p1.sum()


def few_digits(row: Row) -> str:
    """The pair of a row with few digits, for use in a sentence."""
    return ", ".join(f"P{i} = ({_shown(p, 4)})" for i, p in enumerate(read_pair(row)))


def _pairs(logits: Array) -> tuple[Array, Array]:
    raw = np.exp(np.clip(logits, -14, 14))
    made = raw / raw.sum(axis=-1, keepdims=True)
    return made[..., 0, :], made[..., 1, :]


def _pair(logits: Array) -> tuple[Array, Array]:
    raw = np.exp(np.clip(logits, -12, 12)).reshape(2, -1)
    p0, p1 = raw / raw.sum(axis=1, keepdims=True)
    return p0, p1


def _shown(p: Array, digits: int = 4) -> str:
    return " ".join(f"{value:.{digits}g}" for value in p)
