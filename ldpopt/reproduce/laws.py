"""Laws on few outcomes: random ones, their divergences as the papers define them, and searches for the worst pairs.

By [SPR] an optimal channel cuts the inputs, sorted by ratio, into m blocks and reports the block by m-ary randomized
response. For few inputs all partitions fit in one small matrix, so thousands of pairs are solved in one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np

from ldpopt.distribution import Array
from ldpopt.divergences import FDivergence
from ldpopt.reproduce.experiment import Row


def random_law(rng: np.random.Generator, size: int, concentration: float = 1.0, least: float = 1e-4) -> Array:
    """A random Dirichlet law on `size` outcomes, float64 (size,), with no mass below about `least`."""
    law = rng.dirichlet(np.full(size, concentration)) + least
    return np.asarray(law / law.sum(), dtype=np.float64)


def tilted(rng: np.random.Generator, law: Array, spread: float) -> Array:
    """A random law near another: masses are multiplied by exp of normal numbers with this spread, and normalised."""
    moved = law * np.exp(spread * rng.normal(size=len(law)))
    return np.asarray(moved / moved.sum(), dtype=np.float64)


def random_chain(steps: int, size: int, seed: int) -> list[Array]:
    """steps + 1 laws on `size` outcomes, each a neighbour of the next, along a straight or a bent line of log odds."""
    rng = np.random.default_rng([53, steps, size, seed])
    laws, direction = [random_law(rng, size, least=0.01)], rng.normal(size=size)
    spread = (0.02, 0.3, 1.0)[seed % 3]
    for _ in range(steps):
        turn = direction if seed % 2 else direction + 0.5 * rng.normal(size=size)
        moved = laws[-1] * np.exp(spread * turn)
        laws.append(np.asarray(moved / moved.sum()))
    return laws


def kl(p: Array, q: Array) -> float:
    """KL(p || q) in nats, for laws of full support."""
    return float(np.sum(p * np.log(p / q)))


def renyi(p: Array, q: Array, order: float) -> float:
    """The Rényi divergence D_order(p || q) in nats [M, Def 3], for a finite order of at least 1."""
    used = p > 0
    losses = np.log(p[used] / q[used])
    if order == 1:
        return float(p[used] @ losses)
    top = float(losses.max())
    return top + math.log(float(p[used] @ np.exp((order - 1) * (losses - top)))) / (order - 1)


def rr(epsilon: float) -> Array:
    """The rows of binary randomized response, float64 (2, 2)."""
    high = 1 / (1 + math.exp(-epsilon))
    return np.array([[high, 1 - high], [1 - high, high]])


CLOSEST = 1e-3
"""Pairs that are nearer in total variation are not tried, since ratios of tiny divergences are mostly rounding."""


def worst_pair(ratio: Callable[[Array, Array], float], k: int, starts: int, steps: int, seed: int = 1) -> Row:
    """The largest `ratio` that Nelder and Mead's search finds among pairs of distributions on k points, and the pair.

    It begins at the `starts` best of forty times as many random pairs, and evaluates each start `steps` times.
    """
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)

    def loss(logits: Array) -> float:
        p0, p1 = _pairs(logits.reshape(2, k), 12)
        return -ratio(p0, p1) if np.abs(p0 - p1).sum() / 2 >= CLOSEST else 0.0

    tried = [rng.normal(0, scale, 2 * k) for scale in np.geomspace(0.3, 12, 40 * starts)]
    options = {"maxfev": steps, "xatol": 1e-6}
    best = min(
        (minimize(loss, start, method="Nelder-Mead", options=options) for start in sorted(tried, key=loss)[:starts]),
        key=lambda end: float(end.fun),
    )
    p0, p1 = _pairs(best.x.reshape(2, k), 12)
    return {"ratio": -float(best.fun), "p0": _shown(p0), "p1": _shown(p1)}


def deepest_pair(ratio: Callable[[Array, Array], Array], k: int, starts: int, steps: int, seed: int = 1) -> Row:
    """As `worst_pair`, for a `ratio` that takes many pairs (n, k) at once; it begins with thousands of random pairs.

    The ratio is that of the pair rounded to twelve digits, as it is in the row.
    """
    from scipy.optimize import minimize

    rng = np.random.default_rng([seed, k])
    count = 500 * starts
    tried = rng.normal(size=(count, 2, k)) * np.geomspace(0.3, 8, count)[:, None, None]
    tried[::2, 1] = tried[::2, 0] + 0.1 * tried[::2, 1]

    def loss(logits: Array) -> Array:
        p0, p1 = _pairs(logits, 14)
        far = np.abs(p0 - p1).sum(axis=-1) / 2 >= CLOSEST
        return np.asarray(np.where(far, -ratio(p0, p1), 0.0))

    options = {"maxfev": steps, "xatol": 1e-7, "fatol": 1e-12, "adaptive": True}
    best, least = tried[0].ravel(), np.inf
    for at in np.argsort(loss(tried), kind="stable")[:starts]:
        x = tried[at].ravel()
        for _ in range(2):  # restarted once, since the simplex may have collapsed
            end = minimize(lambda y: float(loss(y.reshape(2, -1))), x, method="Nelder-Mead", options=options)
            x = end.x
        if float(end.fun) < least:
            best, least = x, float(end.fun)
    p0, p1 = np.round(_pairs(best.reshape(2, -1), 14), 12)
    p0, p1 = p0 / p0.sum(), p1 / p1.sum()
    return {"ratio": float(ratio(p0, p1)), "p0": _shown(p0, 12), "p1": _shown(p1, 12)}


def read_pair(row: Row) -> tuple[Array, Array]:
    """The pair that a search left in a row."""
    p0, p1 = (np.array([float(part) for part in str(row[name]).split()]) for name in ("p0", "p1"))
    return p0 / p0.sum(), p1 / p1.sum()


def few_digits(row: Row) -> str:
    """The pair of a row with few digits, for use in a sentence."""
    return ", ".join(f"P{i} = ({_shown(p, 4)})" for i, p in enumerate(read_pair(row)))


def _pairs(logits: Array, limit: float) -> tuple[Array, Array]:
    """The pairs (..., k) of laws whose logits (..., 2, k) are cut off at a limit."""
    raw = np.exp(np.clip(logits, -limit, limit))
    laws = raw / raw.sum(axis=-1, keepdims=True)
    return laws[..., 0, :], laws[..., 1, :]


def _shown(p: Array, digits: int = 4) -> str:
    return " ".join(f"{value:.{digits}g}" for value in p)


@cache
def _partitions(k: int) -> tuple[Array, Array, Array]:
    """Intervals as indicator rows (intervals, k), partitions as rows of intervals, and each partition's block count."""
    intervals = [(i, j) for i in range(k) for j in range(i + 1, k + 1)]
    place = {interval: at for at, interval in enumerate(intervals)}
    inside = np.array([[i <= x < j for x in range(k)] for i, j in intervals], dtype=np.float64)
    rows = []
    for cuts in range(2 ** (k - 1)):
        ends = [0, *(x + 1 for x in range(k - 1) if cuts >> x & 1), k]
        row = np.zeros(len(intervals))
        row[[place[pair] for pair in pairwise(ends)]] = 1
        rows.append(row)
    partitions = np.array(rows)
    return inside, partitions, partitions.sum(axis=1)


def block_values(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """(..., k) V_m of [SPR] for m = 1..k: the largest utility of m blocks times e^epsilon + m - 1, for pairs (..., k).

    >>> from ldpopt.divergences import KL
    >>> v = block_values(KL, np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6]), 2.0)
    >>> round(float((v / (np.exp(2.0) + np.arange(3))).max()), 6)
    0.367979
    """
    order = np.argsort(-p0 / p1, axis=-1, kind="stable")
    a, b = (np.take_along_axis(p, order, -1) for p in (p0, p1))
    k, gain = a.shape[-1], np.expm1(epsilon)
    inside, partitions, counts = _partitions(k)
    blocks = f.excess(1 + gain * (a @ inside.T), 1 + gain * (b @ inside.T))
    values = blocks @ partitions.T
    return np.stack([values[..., counts == m].max(axis=-1) for m in range(1, k + 1)], axis=-1)


def binary_value(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """The utility of the binary mechanism for pairs (..., k). It reports whether P0 >= P1 by randomized response."""
    gain, likelier = np.expm1(epsilon), p0 >= p1
    total = np.zeros(p0.shape[:-1])
    for side in (likelier, ~likelier):
        total = total + f.excess(1 + gain * (p0 * side).sum(-1), 1 + gain * (p1 * side).sum(-1))
    return np.asarray(total / (np.exp(epsilon) + 1))


def optimum(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """The optimum under epsilon-LDP of pairs (..., k)."""
    values = block_values(f, p0, p1, epsilon)
    return np.asarray((values / (np.exp(epsilon) + np.arange(values.shape[-1]))).max(axis=-1))
