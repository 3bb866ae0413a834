"""Feasible channels: what they keep is a lower bound on every optimum, whatever the constraints.

Known mechanisms and random ones are mixed with a constant channel, or with an erasure, by the least weight that makes a
re-measurement in high precision say that they are feasible; the best few are then changed at random while that helps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from truth.feasible import Told, quick, violations

Score = Callable[[np.ndarray], float]


def attempts(
    rng: np.random.Generator,
    k: int,
    constraints: Sequence[Told],
    score: Score,
    outputs: int | None = None,
    starts: Iterable[np.ndarray] = (),
    steps: int = 60,
) -> list[np.ndarray]:
    """The best feasible channels by `score`, best first; each proved feasible."""
    fixed = {told[0]: told for told in constraints}
    alphabet = outputs is not None or bool({"support", "invariant", "outputs"} & set(fixed))
    found: list[tuple[float, np.ndarray]] = []

    def consider(q: np.ndarray) -> float:
        if not np.isfinite(q).all() or (outputs is not None and q.shape[1] != outputs):
            return -math.inf
        best = -math.inf
        for made in _shrunk(q, constraints, fixed, alphabet):
            value = score(made)
            if value > best:
                found.append((value, made))
                best = value
        return best

    for start in itertools.chain(starts, _known(rng, k, constraints, fixed, outputs)):
        consider(start)
    for _ in range(steps if found else 0):
        start = max(found, key=lambda one: one[0])[1]
        found = sorted(found, key=lambda one: -one[0])[:4]
        size = 10.0 ** rng.uniform(-4, 0)
        moved = start * np.exp(size * rng.standard_normal(start.shape) * (rng.random(start.shape) < 0.5))
        consider(moved / moved.sum(axis=1, keepdims=True))
    found.sort(key=lambda one: -one[0])
    return [q for _, q in found[:3] if not violations(q, constraints, strict=True)]


def _known(
    rng: np.random.Generator, k: int, constraints: Sequence[Told], fixed: dict[str, Told], outputs: int | None
) -> Iterator[np.ndarray]:
    levels = [float(told[1]) for told in constraints if told[0] in ("local-dp", "graph", "approximate")]
    levels += [0.1, 1.0, 3.0, 10.0, 50.0]
    if "support" in fixed:
        mask = np.asarray(fixed["support"][1], dtype=float)
        for _ in range(8):
            made = mask * rng.gamma(0.5, size=mask.shape) + 1e-300 * mask
            yield made / made.sum(axis=1, keepdims=True)
        return
    if "invariant" in fixed:
        p = np.asarray(fixed["invariant"][1], dtype=float)
        for keep in (1.0, 0.7, 0.4):
            yield keep * np.eye(k) + (1 - keep) * np.outer(np.ones(k), p)
        return
    most = outputs or (int(fixed["outputs"][1]) if "outputs" in fixed else k)
    for epsilon in levels:
        low = math.exp(-min(epsilon, 700.0))
        cuts = [rng.integers(0, most, k) for _ in range(6)] + [np.arange(k) % most]
        cuts += [np.asarray(c) for c in itertools.islice(itertools.product((0, 1), repeat=k), 1, 16) if most >= 2]
        for cut in cuts:
            made = np.where(cut[:, None] == np.unique(cut), 1.0, low)
            if outputs is not None:
                made = np.hstack([made, np.zeros((k, outputs - made.shape[1]))])[:, rng.permutation(outputs)]
            yield made / made.sum(axis=1, keepdims=True)
        if most >= k:
            weights = rng.dirichlet(np.full(most, 0.5))
            made = np.where(rng.random((k, most)) < 0.5, 1.0, low) * weights
            yield made / made.sum(axis=1, keepdims=True)


def _shrunk(q: np.ndarray, constraints: Sequence[Told], fixed: dict[str, Told], alphabet: bool) -> Iterator[np.ndarray]:
    """q, mixed with a constant channel and with an erasure as little as it takes."""
    if "invariant" in fixed:
        constant = np.asarray(fixed["invariant"][1], dtype=float)
    elif "support" in fixed:
        common = np.asarray(fixed["support"][1]).all(axis=0)
        if not common.any():
            if quick(q, constraints):
                yield q
            return
        constant = common / common.sum()
    else:
        constant = q.mean(axis=0)

    def mixed(weight: float) -> np.ndarray:
        return (1 - weight) * q + weight * constant

    def erased(weight: float) -> np.ndarray:
        return np.hstack([(1 - weight) * q, np.full((len(q), 1), weight)])

    for make in [mixed] if alphabet else [mixed, erased]:
        if quick(q, constraints):
            if not violations(q, constraints, strict=True):
                yield q
                return
            for weight in (1e-15, 1e-14, 1e-13, 1e-12, 1e-10, 1e-8, 1e-6):  # what rounding has put beyond a limit
                if not violations(made := make(weight), constraints, strict=True):
                    yield made
                    break
            continue
        keep = 1.0
        # The share that is kept may be tiny: halve it until it is feasible, then bisect.
        for _ in range(60):
            keep /= 2
            if quick(make(1 - keep), constraints):
                break
        else:
            continue
        low, high = keep, 2 * keep
        for _ in range(34):
            middle = (low + high) / 2
            low, high = (middle, high) if quick(make(1 - middle), constraints) else (low, middle)
        for back in (0.0, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3):
            made = make(1 - low * (1 - back))
            if not violations(made, constraints, strict=True):
                yield made
                break
