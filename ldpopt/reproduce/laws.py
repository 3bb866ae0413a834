"""Laws on few outcomes for experiments: random laws, and divergences in the form in which the papers define them."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.distribution import Array


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
