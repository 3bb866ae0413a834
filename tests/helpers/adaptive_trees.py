"""Adaptive trees enumerated path by path, with no part of the package: what any composition must cover."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Matrix = Sequence[Sequence[Any]]
Step = tuple[int, int, int] | None
"""(mechanism, input under p, input under q), or None to stop."""


def joint(mechanisms: Sequence[Matrix], choose: Callable[[tuple[Any, ...], frozenset[int]], Step]) -> Any:
    """The two laws of the transcript when `choose(reports so far, mechanisms left)` says what is asked next."""
    paths: list[tuple[Any, Any]] = []

    def walk(seen: tuple[Any, ...], left: frozenset[int], p: Any, q: Any) -> None:
        step = choose(seen, left) if left else None
        if step is None:
            paths.append((p, q))
            return
        at, a, b = step
        for y, (one, other) in enumerate(zip(mechanisms[at][a], mechanisms[at][b], strict=True)):
            walk((*seen, (at, a, b, y)), left - {at}, p * one, q * other)

    walk((), frozenset(range(len(mechanisms))), 1, 1)
    return [p for p, _ in paths], [q for _, q in paths]


def random_choice(rng: np.random.Generator, inputs: Sequence[int], stop: float = 0.15) -> Callable[..., Step]:
    """A strategy drawn at random: which mechanism, which inputs, whether to go on, for every history."""
    known: dict[Any, Step] = {}

    def choose(seen: tuple[Any, ...], left: frozenset[int]) -> Step:
        if seen not in known:
            at = int(rng.choice(sorted(left)))
            a, b = (int(x) for x in rng.integers(0, inputs[at], 2))
            known[seen] = None if seen and rng.random() < stop else (at, a, b)
        return known[seen]

    return choose


def best_strategy(channels: Sequence[Matrix], ratio: Fraction, p: Any = Fraction(1), q: Any = Fraction(1)) -> Fraction:
    """The largest sum of (P - ratio Q)_+ over all adaptive choices of inputs, the channels used in this order."""
    if not channels:
        return max(p - ratio * q, Fraction(0))
    first, rest = channels[0], channels[1:]
    pairs = itertools.permutations(range(len(first)), 2)
    return max(
        (
            sum(
                (best_strategy(rest, ratio, p * a, q * b) for a, b in zip(first[x], first[y], strict=True)), Fraction(0)
            )
            for x, y in pairs
        ),
        default=best_strategy(rest, ratio, p, q),
    )


def hockey_stick(p: Sequence[Any], q: Sequence[Any], ratio: Any) -> Any:
    """sum (p - ratio q)_+, in the arithmetic of what is given."""
    return sum((max(a - ratio * b, 0 * a) for a, b in zip(p, q, strict=True)), Fraction(0))


def concentration(p: Sequence[float], q: Sequence[float]) -> tuple[float, float]:
    """(mean of the loss, sup over a grid of s of sqrt(2 K(s))/|s|), a bound on tau from below, the worse direction."""
    mu = tau = 0.0
    for a, b in ((np.array(p, float), np.array(q, float)), (np.array(q, float), np.array(p, float))):
        a, b = a[a > 0], b[a > 0]
        loss = np.log(a / b)
        mean = math.fsum(a * loss)
        s = np.concatenate([-(t := np.geomspace(0.05, 60, 160)), t])
        exponents = s[:, None] * (loss - mean) + np.log(a)
        top = exponents.max(axis=1)
        cumulant = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
        mu, tau = max(mu, mean), max(tau, math.sqrt(max(0.0, float((2 * cumulant / s**2).max()))))
    return mu, tau
