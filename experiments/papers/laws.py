"""Laws on few outcomes: random ones, their divergences as the papers define them, and searches for the worst pairs.

Laplace and Gaussian noise: divergences by quadrature, unrestricted and for polynomial adversaries.

By [SPR] an optimal channel cuts the inputs, sorted by ratio, into m blocks and reports the block by m-ary randomized
response. For few inputs all partitions fit in one small matrix, so thousands of pairs are solved in one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize

from experiments.papers.experiment import Row
from ldpopt.divergences import FDivergence
from ldpopt.numbers.tolerances import SEARCHED_PAIR
from ldpopt.values.distribution import Array


def random_law(rng: np.random.Generator, size: int, concentration: float = 1.0, min_mass: float = 1e-4) -> Array:
    """Draw a random Dirichlet distribution on `size` outcomes, float64 (size,)."""
    # No mass is below about `min_mass`.
    law = rng.dirichlet(np.full(size, concentration)) + min_mass
    return np.asarray(law / law.sum(), dtype=np.float64)


def tilted(rng: np.random.Generator, law: Array, spread: float) -> Array:
    """Draw a distribution near another: masses times exp of normal numbers, normalized."""
    moved = law * np.exp(spread * rng.normal(size=len(law)))
    return np.asarray(moved / moved.sum(), dtype=np.float64)


def random_chain(steps: int, size: int, seed: int) -> list[Array]:
    """Draw steps + 1 distributions, each a neighbor of the next, along a line of log odds."""
    rng = np.random.default_rng([53, steps, size, seed])
    laws, direction = [random_law(rng, size, min_mass=0.01)], rng.normal(size=size)
    spread = (0.02, 0.3, 1.0)[seed % 3]
    for _ in range(steps):
        turn = direction if seed % 2 else direction + 0.5 * rng.normal(size=size)
        moved = laws[-1] * np.exp(spread * turn)
        laws.append(np.asarray(moved / moved.sum()))
    return laws


def kl(p: Array, q: Array) -> float:
    """Compute KL(p || q) in nats, for distributions of full support."""
    return float(np.sum(p * np.log(p / q)))


def renyi(p: Array, q: Array, order: float) -> float:
    """Compute the Rényi divergence D_order(p || q) in nats [M, Def 3], for finite order >= 1."""
    used = p > 0
    losses = np.log(p[used] / q[used])
    if order == 1:
        return float(p[used] @ losses)
    top = float(losses.max())
    return top + math.log(float(p[used] @ np.exp((order - 1) * (losses - top)))) / (order - 1)


def rr(epsilon: float) -> Array:
    """Return the rows of binary randomized response, float64 (2, 2)."""
    high = 1 / (1 + math.exp(-epsilon))
    return np.array([[high, 1 - high], [1 - high, high]])


def worst_pair(ratio: Callable[[Array, Array], float], k: int, starts: int, steps: int, seed: int = 1) -> Row:
    """Search the pair of distributions on k points with the largest `ratio`, by Nelder and Mead.

    It begins at the `starts` best of forty times as many random pairs, and evaluates each start `steps` times.
    """
    rng = np.random.default_rng(seed)

    def loss(logits: Array) -> float:
        p0, p1 = _pairs(logits.reshape(2, k), 12)
        return -ratio(p0, p1) if np.abs(p0 - p1).sum() / 2 >= SEARCHED_PAIR else 0.0

    tried = [rng.normal(0, scale, 2 * k) for scale in np.geomspace(0.3, 12, 40 * starts)]
    options = {"maxfev": steps, "xatol": 1e-6}
    best = min(
        (minimize(loss, start, method="Nelder-Mead", options=options) for start in sorted(tried, key=loss)[:starts]),
        key=lambda end: float(end.fun),
    )
    p0, p1 = _pairs(best.x.reshape(2, k), 12)
    return {"ratio": -float(best.fun), "p0": _formatted(p0), "p1": _formatted(p1)}


def deepest_pair(ratio: Callable[[Array, Array], Array], k: int, starts: int, steps: int, seed: int = 1) -> Row:
    """Search as `worst_pair`, for a `ratio` that takes many pairs (n, k) at once.

    The search begins with thousands of random pairs. The ratio is that of the pair rounded to twelve digits, as in the
    row.
    """
    rng = np.random.default_rng([seed, k])
    count = 500 * starts
    tried = rng.normal(size=(count, 2, k)) * np.geomspace(0.3, 8, count)[:, None, None]
    tried[::2, 1] = tried[::2, 0] + 0.1 * tried[::2, 1]

    def loss(logits: Array) -> Array:
        p0, p1 = _pairs(logits, 14)
        is_distant = np.abs(p0 - p1).sum(axis=-1) / 2 >= SEARCHED_PAIR
        return np.asarray(np.where(is_distant, -ratio(p0, p1), 0.0))

    options = {"maxfev": steps, "xatol": 1e-7, "fatol": 1e-12, "adaptive": True}
    best, smallest_loss = tried[0].ravel(), np.inf
    for start in np.argsort(loss(tried), kind="stable")[:starts]:
        x = tried[start].ravel()
        for _ in range(2):  # restarted once, since the simplex may have collapsed
            end = minimize(lambda y: float(loss(y.reshape(2, -1))), x, method="Nelder-Mead", options=options)
            x = end.x
        if float(end.fun) < smallest_loss:
            best, smallest_loss = x, float(end.fun)
    p0, p1 = np.round(_pairs(best.reshape(2, -1), 14), 12)
    p0, p1 = p0 / p0.sum(), p1 / p1.sum()
    return {"ratio": float(ratio(p0, p1)), "p0": _formatted(p0, 12), "p1": _formatted(p1, 12)}


def read_pair(row: Row) -> tuple[Array, Array]:
    """Read the pair that a search stored in a row."""
    p0, p1 = (np.array([float(part) for part in str(row[name]).split()]) for name in ("p0", "p1"))
    return p0 / p0.sum(), p1 / p1.sum()


def few_digits(row: Row) -> str:
    """Format the pair of a row with few digits, for use in a sentence."""
    return ", ".join(f"P{i} = ({_formatted(p, 4)})" for i, p in enumerate(read_pair(row)))


def _pairs(logits: Array, limit: float) -> tuple[Array, Array]:
    """The pairs (..., k) of laws whose logits (..., 2, k) are cut off at a limit."""
    raw = np.exp(np.clip(logits, -limit, limit))
    laws = raw / raw.sum(axis=-1, keepdims=True)
    return laws[..., 0, :], laws[..., 1, :]


def _formatted(p: Array, digits: int = 4) -> str:
    return " ".join(f"{value:.{digits}g}" for value in p)


@cache
def _partitions(k: int) -> tuple[Array, Array, Array]:
    """Intervals as indicator rows (intervals, k), partitions as rows of intervals, and each partition's block count."""
    intervals = [(i, j) for i in range(k) for j in range(i + 1, k + 1)]
    place = {interval: index for index, interval in enumerate(intervals)}
    indicators = np.array([[i <= x < j for x in range(k)] for i, j in intervals], dtype=np.float64)
    rows = []
    for cuts in range(2 ** (k - 1)):
        ends = [0, *(x + 1 for x in range(k - 1) if cuts >> x & 1), k]
        row = np.zeros(len(intervals))
        row[[place[pair] for pair in pairwise(ends)]] = 1
        rows.append(row)
    partitions = np.array(rows)
    return indicators, partitions, partitions.sum(axis=1)


def block_values(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """Compute V_m of [SPR] for m = 1..k, (..., k), for pairs (..., k).

    V_m is the largest utility of m blocks times e^epsilon + m - 1.

    >>> from ldpopt.divergences import KL
    >>> v = block_values(KL, np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6]), 2.0)
    >>> round(float((v / (np.exp(2.0) + np.arange(3))).max()), 6)
    0.367979
    """
    order = np.argsort(-p0 / p1, axis=-1, kind="stable")
    a, b = (np.take_along_axis(p, order, -1) for p in (p0, p1))
    k, gain = a.shape[-1], np.expm1(epsilon)
    indicators, partitions, counts = _partitions(k)
    blocks = f.excess(1 + gain * (a @ indicators.T), 1 + gain * (b @ indicators.T))
    values = blocks @ partitions.T
    return np.stack([values[..., counts == m].max(axis=-1) for m in range(1, k + 1)], axis=-1)


def binary_value(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """Compute the utility of the binary mechanism for pairs (..., k)."""
    gain, likelier = np.expm1(epsilon), p0 >= p1
    total = np.zeros(p0.shape[:-1])
    for side in (likelier, ~likelier):
        total = total + f.excess(1 + gain * (p0 * side).sum(-1), 1 + gain * (p1 * side).sum(-1))
    return np.asarray(total / (np.exp(epsilon) + 1))


def optimum(f: FDivergence, p0: Array, p1: Array, epsilon: float) -> Array:
    """Compute the optimum under epsilon-LDP of pairs (..., k)."""
    values = block_values(f, p0, p1, epsilon)
    return np.asarray((values / (np.exp(epsilon) + np.arange(values.shape[-1]))).max(axis=-1))


def integrated(noise: str, shift: float, order: float) -> float:
    """Compute D_order of noise of scale 1 against itself moved by `shift`, by quadrature."""

    def density(u: float) -> float:
        return -abs(u) - math.log(2) if noise == "Laplace" else -u * u / 2 - math.log(2 * math.pi) / 2

    # The exponent order log p + (1 - order) log q is largest at 0 for Laplace noise, at (1 - order) shift for Gaussian.
    peak = 0.0 if noise == "Laplace" else (1 - order) * shift
    top = order * density(peak) + (1 - order) * density(peak - shift)

    def integrand(u: float) -> float:
        p, q = density(u), density(u - shift)
        return math.exp(p) * (p - q) if order == 1 else math.exp(order * p + (1 - order) * q - top)

    low, high = (-60.0, shift + 60.0) if noise == "Laplace" else (-order * shift - 40, shift + 40)
    edges = [low, low / 8 - 1, peak - 8, peak - 2, peak, peak + 2, 0.0, shift, shift + 8, high]
    edges = sorted({min(max(edge, low), high) for edge in edges})
    total = math.fsum(quad(integrand, a, b, epsabs=0, epsrel=1e-11, limit=200)[0] for a, b in pairwise(edges))
    return total if order == 1 else (top + math.log(total)) / (order - 1)


TAIL = {"Laplace": 45.0, "Gaussian": 13.0}
"""Where the density of noise of scale 1 is nothing."""


def polynomial_value(noise: str, degree: int, order: float) -> float:
    """Compute the Rényi divergence restricted to polynomials, between answers 0 and 1.

    The noise has scale 1. With A = order/(order - 1), the divergence is minus log min E_q |h|^A over polynomials h with
    E_p h = 1 [CIM, eq. 3]. This is a smooth convex program in at most `degree` unknowns, on Gauss-Legendre nodes. Both
    directions are equal, by reflection at 1/2. It shares no code with the programs of the package.
    """
    tail = TAIL[noise]
    edges = np.concatenate([np.linspace(-tail, 0, 121), np.linspace(0, 1, 13)[1:], np.linspace(1, 1 + tail, 121)[1:]])
    x, w = np.polynomial.legendre.leggauss(10)
    half = np.diff(edges)[:, None] / 2
    y, weight = (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    p, q = (weight * np.exp(-np.abs(u) if noise == "Laplace" else -u * u / 2) for u in (y, y - 1))
    p, q = p / p.sum(), q / q.sum()
    orthonormal = np.linalg.qr(np.sqrt(q)[:, None] * np.vander(y / 10, degree + 1))[0] / np.sqrt(q)[:, None]
    means = p @ orthonormal
    start = orthonormal @ (means / (means @ means))  # the solution for A = 2
    free = orthonormal @ np.linalg.svd(means[None, :])[2][1:].T
    power = order / (order - 1)

    def objective(z: Array) -> tuple[float, Array]:
        h = start + free @ z
        size = q * np.abs(h) ** (power - 1)
        total = float(size @ np.abs(h))
        return math.log(total), power * (free.T @ (size * np.sign(h))) / total

    return -float(minimize(objective, np.zeros(degree), jac=True, method="BFGS", options={"gtol": 1e-9}).fun)
