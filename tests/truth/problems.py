"""Random and nasty design problems: the same in plain numbers, for the truth, and as the package's own objects."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from truth.decisions import Against, Estimate, Loss, Sampling
from truth.feasible import Told
from truth.objects import built
from truth.utilities import Generator, Kept, Pair, Prior
from truth.verdict import Posed, caps

FIXED = ["kl", "reverse-kl", "jeffreys", "total-variation", "chi-squared", "neyman-chi-squared", "squared-hellinger",
         "jensen-shannon", "le-cam"]  # fmt: skip
KINDS = {
    "divergence, LDP": 22, "divergence, LDP and TV": 22, "mutual information": 8, "worst of several": 7,
    "weighted sum": 6, "expected loss": 7, "private sampling": 4, "estimation": 8, "against a set": 3,
    "approximate": 5, "renyi": 4, "zcdp": 3, "trade-off": 3, "graph": 5, "mixed": 4, "outputs": 4, "support": 2,
    "invariant": 2, "columns, other constraints": 3,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One problem. `build` makes the utility and the constraints of the package, and may be refused."""

    kind: str
    text: str
    posed: Posed
    build: Callable[[], tuple[Any, list[Any]]]

    @property
    def finite(self) -> bool:
        """Whether the optimum is surely finite, so that there is nothing to refuse."""
        utility, constraints = self.posed.utility, self.posed.constraints
        if not isinstance(utility, Kept):
            return not isinstance(utility, Sampling)
        kinds = {told[0] for told in constraints}
        pure = math.isfinite(caps(constraints)[0]) or "graph" in kinds
        pure = pure or any(told[0] == "approximate" and told[2] == 0 for told in constraints)
        pure = pure or any(told[0] == "trade-off" and told[1][0][1] == 1 for told in constraints)
        parts = [part for criterion in utility.criteria for _, part in criterion]
        bounded = all(isinstance(part, Prior) or part.f[0] == "kl" for part in parts)
        return pure or math.isfinite(float(utility.unprivate())) or (bounded and bool(kinds & {"renyi", "zcdp"}))


def problem(seed: int, number: int) -> Case:
    """Case `number` of `seed`."""
    rng = np.random.default_rng([seed, number])
    names = list(KINDS)
    weights = np.array([KINDS[name] for name in names], dtype=float)
    kind = names[int(rng.choice(len(names), p=weights / weights.sum()))]
    return _case(rng, kind, f"seed {seed} number {number}")


def of_kind(kind: str, seed: int, number: int) -> Case:
    """A case of one kind."""
    return _case(
        np.random.default_rng([seed, number, list(KINDS).index(kind)]), kind, f"of_kind({kind!r}, {seed}, {number})"
    )


def case(kind: str, text: str, utility: Any, constraints: tuple[Told, ...]) -> Case:
    """A case from plain numbers."""
    described = f"{text}: {utility} under {constraints}".replace("np.float64", "")
    return Case(kind, described, Posed(utility, constraints), lambda: built(utility, constraints))


# -- numbers ---------------------------------------------------------------------------------------------------------


def exact(p: np.ndarray) -> np.ndarray:
    """p with large entries on a grid, so that they sum to 1 without rounding; tiny ones are too small to tell."""
    p = np.asarray(p, dtype=float) / np.sum(p)
    p = np.where((p > 1e-22) & (p < 2.0**-46), p * 1e-8, p)
    made = np.where(p >= 2.0**-46, np.round(p * 2.0**50) / 2.0**50, p)
    made[np.argmax(made)] += 1.0 - math.fsum(made[made >= 2.0**-50])
    return made


def epsilon(rng: np.random.Generator) -> float:
    where = rng.random()
    if where < 0.5:
        return float(np.round(rng.uniform(0.1, 5), 3))
    if where < 0.6:
        return float(rng.choice([1e-8, 1e-6, 1e-3, 30.0, 60.0, 100.0, 500.0, 700.0]))
    return float(10.0 ** rng.uniform(-8, math.log10(700.0)))


def eta(rng: np.random.Generator, of: float) -> float:
    where = rng.random()
    if where < 0.5:
        return float(rng.uniform(0.05, 1) * math.tanh(of / 2))
    if where < 0.6:
        return float(rng.choice([1e-12, 1e-9, math.tanh(of / 2), 0.5, 1.0]))
    return float(10.0 ** rng.uniform(-12, 0))


def _law(rng: np.random.Generator, k: int) -> np.ndarray:
    family = rng.integers(6)
    if family == 0:
        return exact(rng.dirichlet(np.full(k, 10.0 ** rng.uniform(-1, 2))))
    if family == 1:
        p = rng.dirichlet(np.ones(k)) * (rng.random(k) < 0.7)
        return exact(p) if np.count_nonzero(p) >= 2 else exact(np.ones(k))
    if family == 2:
        p = 10.0 ** rng.uniform(-300, 0, k)
        p[rng.choice(k, 2, replace=False)] = rng.uniform(0.2, 1, 2)
        return exact(p)
    if family == 3:
        return exact(np.ones(k))
    return exact(rng.dirichlet(np.ones(k)))


def pair(rng: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Two different laws whose supports overlap."""
    while True:
        p0, family = _law(rng, k), rng.integers(9)
        if family == 0:  # near hypotheses
            p1 = exact(p0 * (1 + 10.0 ** rng.uniform(-13, -2) * rng.standard_normal(k)))
        elif family == 1:  # equal likelihood ratios, and nearly equal ones
            ratio = rng.choice([0.5, 1.0, 2.0], k) * (1 + rng.choice([0.0, 1e-9, 1e-14]) * rng.standard_normal(k))
            p1 = exact(p0 * ratio)
        elif family == 2:  # one answer impossible under one of them
            p1 = rng.dirichlet(np.ones(k))
            p1[rng.integers(k)] = 0.0
            p1 = exact(p1)
        elif family == 3:
            p1 = exact(p0[::-1])
        else:
            p1 = _law(rng, k)
        if rng.random() < 0.3:
            p0, p1 = p1, p0
        if np.abs(p0 - p1).max() > 1e-14 and ((p0 > 0) & (p1 > 0)).any() and min(p0.min(), p1.min()) >= 0:
            return p0, p1


def generator(rng: np.random.Generator) -> Generator:
    where = rng.random()
    if where < 0.1:
        return ("hockey-stick", float(np.round(10.0 ** rng.uniform(-0.5, 0.7), 3)))
    if where < 0.2:
        return ("alpha", float(np.round(rng.uniform(-1.5, 3.0), 2)))
    return (FIXED[int(rng.integers(len(FIXED)))],)


def _pair(rng: np.random.Generator, k: int, f: Generator | None = None, p0: np.ndarray | None = None) -> Pair:
    first, second = pair(rng, k)
    if p0 is not None and np.abs(p0 - second).max() > 1e-14 and ((p0 > 0) & (second > 0)).any():
        first = p0
    return Pair(f or generator(rng), tuple(map(float, first)), tuple(map(float, second)))


def _prior(rng: np.random.Generator, k: int) -> Prior:
    return Prior(tuple(map(float, _law(rng, k))))


# -- problems --------------------------------------------------------------------------------------------------------


def _case(rng: np.random.Generator, kind: str, text: str) -> Case:
    k = int(rng.choice([2, 3, 4, 5], p=[0.35, 0.35, 0.2, 0.1]))
    small = min(k, 3)
    e = epsilon(rng)
    plain: tuple[Told, ...] = (("local-dp", e),)
    if kind != "divergence, LDP" and rng.random() < (1.0 if kind == "divergence, LDP and TV" else 0.5):
        plain = (*plain, ("total-variation", eta(rng, e)))
    one = Kept((((1.0, _pair(rng, small if kind not in ("divergence, LDP", "divergence, LDP and TV") else k)),),))
    if kind in ("divergence, LDP", "divergence, LDP and TV"):
        return case(kind, text, one, plain)
    if kind == "mutual information":
        return case(kind, text, Kept((((1.0, _prior(rng, k)),),)), plain)
    if kind == "worst of several":
        return case(kind, text, _worst(rng, k), plain)
    if kind == "weighted sum":
        return case(kind, text, _weighted(rng, k), plain)
    if kind == "expected loss":
        loss = rng.choice([1.0, 1e-6, 1e6]) * (1 - np.eye(small) if rng.random() < 0.4 else rng.normal(size=(small, 3)))
        priors = (
            np.eye(small) if rng.random() < 0.3 else np.stack([_law(rng, small) for _ in range(rng.integers(1, 3))])
        )
        return case(kind, text, Loss(priors, np.round(loss, 9)), plain)
    if kind == "private sampling":
        held = np.stack([_law(rng, small) for _ in range(rng.integers(2, 4))])
        f = generator(rng)
        return case(kind, text, Sampling(f, held), plain)
    if kind == "estimation":
        prior = exact(rng.dirichlet(np.full(small, 10.0 ** rng.uniform(-0.5, 2))) + 1e-12)
        criterion = str(rng.choice(["a", "c", "d", "mv"]))
        numbers = tuple(np.round(rng.normal(size=small), 6).tolist()) if criterion == "c" else None
        return case(kind, text, Estimate(prior, criterion, numbers), plain)
    if kind == "against a set":
        while True:
            p, q = _law(rng, small), _law(rng, small)
            if np.abs(p - q).max() > 0.05:
                other = exact(0.9 * q + 0.1 * rng.dirichlet(np.ones(small)))
                return case(kind, text, Against(generator(rng), p[None], np.stack([q, other])), plain)
    if kind == "columns, other constraints":
        utility = [
            lambda: Kept((((1.0, _prior(rng, small)),),)),
            lambda: _worst(rng, small),
            lambda: _weighted(rng, small),
        ]
        other = [_approximate, _renyi, _graph][int(rng.integers(3))](rng, small)
        return case(kind, text, utility[int(rng.integers(3))](), other)
    other = {
        "approximate": _approximate, "renyi": _renyi, "zcdp": _zcdp, "trade-off": _trade_off, "graph": _graph,
        "mixed": _mixed, "outputs": _outputs, "support": _support, "invariant": _invariant,
    }[kind](rng, small)  # fmt: skip
    return case(kind, text, one, other)


def _worst(rng: np.random.Generator, k: int) -> Kept:
    f = generator(rng)
    first = _pair(rng, k, f)
    others = [_pair(rng, k, f, np.array(first.p0)) for _ in range(rng.integers(1, 3))]
    return Kept(tuple(((1.0, p),) for p in [first, *(p for p in others if p.p0 == first.p0)]))


def _weighted(rng: np.random.Generator, k: int) -> Kept:
    parts = [_pair(rng, k) if rng.random() < 0.7 else _prior(rng, k) for _ in range(2)]
    return Kept((tuple((float(np.round(10.0 ** rng.uniform(-3, 1), 6)), part) for part in parts),))


def _approximate(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    delta = float(rng.choice([0.0, 10.0 ** rng.uniform(-12, -0.5), rng.uniform(0, 0.5)]))
    return (("approximate", epsilon(rng) * float(rng.random() < 0.9), delta),)


def _renyi(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    order = float(rng.choice([1.0, 1.5, 2.0, 3.0, 10.0]))
    return (("renyi", order, float(min(10.0 ** rng.uniform(-5, 1.5), 400 / max(order - 1, 1)))),)


def _zcdp(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    return (("zcdp", float(10.0 ** rng.uniform(-5, 1))),)


def _trade_off(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    p, q = rng.dirichlet(np.ones(3), 2)
    order = np.argsort(-q / p)
    one, two = np.concatenate([[0], np.cumsum(p[order])]), 1 - np.concatenate([[0], np.cumsum(q[order])])
    one[-1], two[-1] = 1.0, 0.0
    if rng.random() < 0.7:  # a symmetric one, of three outcomes that mirror each other
        lost, share = sorted(rng.random(2))
        lost = lost if rng.random() < 0.5 else 0.0
        middle = (1 - lost) * share / 2
        one, two = np.array([0.0, middle, 1 - lost]), np.array([1 - lost, middle, 0.0])
    return (("trade-off", tuple(zip(one.tolist(), np.maximum(two, 0.0).tolist(), strict=True))),)


def _graph(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    e = min(epsilon(rng), 100.0)
    weights = rng.choice([1.0, 1.0, 0.5, 2.0], k - 1)
    edges = [(x, x + 1, float(w)) for x, w in enumerate(weights)]
    return (("graph", e, tuple(edges + [(y, x, w) for x, y, w in edges])),)


def _mixed(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    made: tuple[Told, ...] = (("local-dp", epsilon(rng)),)
    for extra in (_approximate, _renyi, _zcdp, _graph):
        if rng.random() < 0.4:
            made += extra(rng, k)
    return (*made, ("total-variation", float(10.0 ** rng.uniform(-6, 0))))


def _outputs(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    e = epsilon(rng)
    made: tuple[Told, ...] = (("outputs", 2), ("local-dp", e))
    return (*made, ("total-variation", eta(rng, e))) if rng.random() < 0.3 else made


def _support(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    mask = rng.random((k, 3)) < 0.7
    mask[:, 0] = True
    return (("support", tuple(map(tuple, mask.tolist()))), ("total-variation", float(10.0 ** rng.uniform(-6, 0))))


def _invariant(rng: np.random.Generator, k: int) -> tuple[Told, ...]:
    p = exact(rng.dirichlet(np.ones(k)) + 0.01)
    return (("invariant", tuple(map(float, p))), ("local-dp", epsilon(rng)))
