"""Games of adaptive composition: a tree of mechanisms, each chosen by the earlier reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpopt.distribution import Array
from ldpopt.privacy import FinitePair, mcdp
from ldpopt.reproduce.laws import random_law, tilted

Pair = tuple[Array, Array]


@dataclass(frozen=True)
class Game:
    """The joint pair (p, q) of all reports, and for every step the largest (mu, tau) among its mechanisms."""

    p: Array
    q: Array
    means: tuple[float, ...]
    standards: tuple[float, ...]

    @property
    def printed(self) -> float:
        """The standard tau that [DR, Thm 3.4] gives: the root of the sum of squares."""
        return math.hypot(*self.standards)

    @property
    def corrected(self) -> float:
        """A standard tau that holds for every strategy, with the mechanisms in this order."""
        before = [math.hypot(*self.standards[:i]) for i in range(len(self.standards))]
        more = sum(mu * tau for mu, tau in zip(self.means, before, strict=True))
        return math.sqrt(self.printed**2 + sum(self.means) ** 2 / 4 + more)

    @property
    def exact(self) -> float:
        """The subgaussian standard of the joint pair, which is attained at some exponent."""
        return float(mcdp(FinitePair(self.p, self.q)).tau.lower)

    @property
    def above(self) -> float:
        """The least standard that bounds exponential moments of the loss above the sum of the means."""
        return max(_above(p, q, sum(self.means)) for p, q in ((self.p, self.q), (self.q, self.p)))


def _above(p: Array, q: Array, mean: float) -> float:
    loss = np.log(p / q)
    s = np.geomspace(1e-2, 60, 400)[:, None]
    top = loss.max()
    log_moment = np.log(np.exp(s * (loss - top)) @ p) + s[:, 0] * (top - mean)
    return math.sqrt(max(0.0, float(np.max(2 * log_moment / s[:, 0] ** 2))))


def game(steps: Sequence[Sequence[Pair]], choices: Sequence[npt.NDArray[np.intp]]) -> Game:
    """The game in which step i runs ``steps[i][choices[i][h]]`` after history number h of earlier reports."""
    p, q = np.ones(1), np.ones(1)
    for pairs, chosen in zip(steps, choices, strict=True):
        p = np.concatenate([mass * pairs[c][0] for mass, c in zip(p, chosen, strict=True)])
        q = np.concatenate([mass * pairs[c][1] for mass, c in zip(q, chosen, strict=True)])
    found = [[mcdp(FinitePair(*pair)) for pair in pairs] for pairs in steps]
    means = tuple(max(one.mu.value for one in step) for step in found)
    return Game(p / p.sum(), q / q.sum(), means, tuple(max(one.tau.value for one in step) for step in found))


def random_game(rng: np.random.Generator, depth: int = 3, size: int = 3) -> Game:
    """A game of `depth` steps, each with a choice of two mechanisms, one of which may reveal nothing."""
    steps, choices, histories = [], [], 1
    for _ in range(depth):
        law, spread = random_law(rng, size, least=0.02), float(rng.choice([0.3, 1.0, 2.0]))
        other = random_law(rng, size, least=0.02)
        second = (other, other) if rng.random() < 0.6 else (other, tilted(rng, other, spread))
        steps.append([(law, tilted(rng, law, spread)), second])
        choices.append(rng.integers(0, 2, histories).astype(np.intp))
        histories *= size
    return game(steps, choices)
