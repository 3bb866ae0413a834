"""Measures of channels on which it matters that a row stands for a law: a list of what is understated, or no bracket.

Rows that sum to one within the tolerance only, rows a few ulps apart, entries down to 5e-324, epsilon beyond 709,
orders up to 1e18. The truth is that of the laws p/P in high precision, from the definitions alone.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import truth
from golden_section import least_value
from mpmath import mpf

from ldpopt.channel import Channel
from ldpopt.errors import LdpoptError
from ldpopt.privacy import (
    approximate_dp,
    chi_squared_contraction,
    doeblin,
    hockey_stick,
    hockey_stick_contraction,
    local_dp,
    maximal_leakage,
    mcdp,
    mutual_information,
    renyi,
    total_variation,
    zcdp,
)
from ldpopt.privacy.guarantee import Guarantee

Wrong = list[str]
Row = truth.Row


def _off_one(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    made = rng.dirichlet(np.full(m, 10.0 ** rng.uniform(-1, 1)), k)
    if rng.random() < 0.5:  # one law, as far as rows go
        made = np.repeat(made[:1], k, axis=0) * (1 + 10.0 ** rng.uniform(-12, -3) * rng.random((k, m)))
    return made / made.sum(axis=1, keepdims=True) * (1 + rng.uniform(-9.9e-10, 9.9e-10, (k, 1)))


def _ulps_apart(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    row = rng.dirichlet(np.ones(m))
    made = np.repeat(row[None], k, axis=0)
    for _ in range(int(rng.integers(1, 5))):
        made = np.where(rng.random((k, m)) < 0.5, np.nextafter(made, rng.choice([0.0, 1.0], (k, m))), made)
    return made


def _subnormal(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    made = 10.0 ** rng.uniform(-323.3, 0, (k, m))
    made[:, 0] = 1.0
    return made / made.sum(axis=1, keepdims=True)


def _log_uniform_pair(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    share = 10.0 ** rng.uniform(-30 if rng.random() < 0.7 else -323, 0, 2)
    return np.stack([share, 1 - share], axis=1)


def _lost_mass(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    d = 10.0 ** rng.uniform(-15, -0.4)
    return np.array([[d, 0.0, 1 - d], [0.0, d, 1 - d]])


FAMILIES = (_off_one, _ulps_apart, _subnormal, _log_uniform_pair, _lost_mass)


def check(rng: np.random.Generator) -> Wrong:
    """Violations found on one random channel, empty if all guarantees hold."""
    family = FAMILIES[int(rng.integers(len(FAMILIES)))]
    channel = Channel(family(rng, int(rng.integers(2, 4)), int(rng.integers(2, 6))))
    if (channel.matrix == channel.matrix[0]).all():
        return [] if mcdp(channel).tau.value == zcdp(channel).value == local_dp(channel).value == 0 else ["equal rows"]
    wrong: Wrong = []
    with mpmath.workdps(min(truth.digits(channel.matrix), 800)):
        rows = truth.rows(channel.matrix, proportional=True)
        for part in (_curve, _divergences, _leakage):
            try:
                part(channel, rows, rng, wrong)
            except (LdpoptError, ArithmeticError, ValueError) as error:  # a valid channel must be measured
                wrong.append(f"{part.__name__}: {type(error).__name__}: {error}")
    return [f"{family.__name__} {text} on {channel.matrix.tolist()}" for text in wrong]


def _inside(name: str, found: Guarantee, exact: mpf, wrong: Wrong, tight: float = 1e-6) -> None:
    """The truth is in the bracket, and what is called exact is that, relatively and beside 1e-21 of rounding."""
    if not mpf(found.lower) <= exact <= mpf(found.value):
        wrong.append(f"{name}: {mpmath.nstr(exact, 25)} outside [{found.lower!r}, {found.value!r}]")
    elif found.exact and found.value < math.inf and not found.value <= exact * (1 + mpf(tight)) + mpf(10) ** -21:
        wrong.append(f"{name}: {found.value!r} far above {mpmath.nstr(exact, 25)}, and called exact")


def _curve(channel: Channel, rows: list[Row], rng: np.random.Generator, wrong: Wrong) -> None:
    pure = truth.worst(rows, truth.local_dp)
    _inside("local_dp", local_dp(channel), pure, wrong, 1e-10)
    distance = truth.worst(rows, lambda p, q: truth.hockey_stick(p, q, 0))
    _inside("total_variation", total_variation(channel), distance, wrong, 1e-10)
    top = float(pure) if pure < mpf(10) ** 6 else 800.0
    for epsilon in (0.0, top * float(rng.random()), 10.0 ** rng.uniform(-18, 0), float(rng.uniform(600, 760))):
        exact = truth.worst(rows, lambda p, q, e=epsilon: truth.hockey_stick(p, q, e))
        _inside(f"hockey_stick({epsilon!r})", hockey_stick(channel, epsilon), exact, wrong)
        gamma = math.exp(min(epsilon, 709.7))
        exact_gamma = truth.worst(rows, lambda p, q, g=gamma: truth.hockey_stick(p, q, mpmath.log(mpf(g))))
        found = hockey_stick_contraction(channel, gamma)
        _inside(f"hockey_stick_contraction({gamma!r})", found, exact_gamma, wrong)
        delta = min(1.0, float(exact) * float(rng.choice([0.3, 1 - 1e-9, 1 + 1e-9])))
        _epsilon_at(channel, rows, delta, wrong)
    lost = float(max(sum(row[y] for y in range(len(row)) if channel.matrix[other, y] == 0)
                     for x, row in enumerate(channel.matrix) for other in range(len(rows)) if other != x))  # fmt: skip
    if 0 < lost < 1 and len(rows) == 2 and (channel.matrix[0] == 0).sum() == 1:
        found = approximate_dp(channel, lost)
        if not found.value <= 1e-9:
            wrong.append(f"approximate_dp({lost!r}), all that is lost: {found.value!r}")


def _epsilon_at(channel: Channel, rows: list[Row], delta: float, wrong: Wrong) -> None:
    found = approximate_dp(channel, delta)
    if found.value < math.inf:
        reached = truth.worst(rows, lambda p, q: truth.hockey_stick(p, q, found.value))
        if not reached <= mpf(delta) * (1 + mpf(2) ** -52):  # mass that only one input gives counts as it stands
            wrong.append(f"approximate_dp({delta!r}): {found.value!r} is too low")
    if 0 < found.lower < math.inf:
        reached = truth.worst(rows, lambda p, q: truth.hockey_stick(p, q, found.lower))
        if not reached >= mpf(delta):
            wrong.append(f"approximate_dp({delta!r}): lower {found.lower!r} is above the value")


def _divergences(channel: Channel, rows: list[Row], rng: np.random.Generator, wrong: Wrong) -> None:
    orders = [1.0, 1 + 10.0 ** rng.uniform(-9, 0), float(rng.uniform(1, 40)), 10.0 ** rng.uniform(1, 18)]
    pure, slope = local_dp(channel), mpf(0)
    with mpmath.workdps(mpmath.mp.dps + 40):
        for order in orders:
            exact = truth.worst(rows, lambda p, q, a=order: truth.kl(p, q) if a == 1 else truth.renyi(p, q, a))
            found = renyi(channel, order)
            _inside(f"renyi({order!r})", found, exact, wrong)
            if not found.lower <= pure.value:
                wrong.append(f"renyi({order!r}): {found.lower!r} above local_dp {pure.value!r}")
            slope = max(slope, exact / mpf(order))
        if slope < mpmath.inf:
            rho, tau = zcdp(channel), mcdp(channel).tau
            if not mpf(rho.value) >= slope:
                wrong.append(f"zcdp: {rho.value!r} below {mpmath.nstr(slope, 25)}")
            if not rho.lower <= rho.value:
                wrong.append(f"zcdp: bracket [{rho.lower!r}, {rho.value!r}]")
            reach = truth.worst(rows, _reach)
            if not tau.value <= reach * (1 + mpf(10) ** -9) + mpf(10) ** -28:  # Hoeffding's bound
                wrong.append(f"mcdp tau: {tau.value!r} above the range {mpmath.nstr(reach, 20)}")
            spread = mpf(0)
            for size in (1e-3, 0.03, 0.3, 3.0):
                for s in (size, -size):
                    spread = max(spread, truth.worst(rows, lambda p, q, s=s: truth.cumulant(p, q, s)) * 2 / mpf(s) ** 2)
            if not mpf(tau.value) ** 2 * (1 + mpf(10) ** -15) >= spread:
                wrong.append(f"mcdp tau: {tau.value!r} below {mpmath.nstr(mpmath.sqrt(spread), 25)}")


def _reach(p: Row, q: Row) -> mpf:
    losses = [mpmath.log(a / b) for a, b in zip(p, q, strict=True) if a > 0]
    return max(losses) - min(losses)


def _leakage(channel: Channel, rows: list[Row], rng: np.random.Generator, wrong: Wrong) -> None:
    columns = list(zip(*rows, strict=True))
    _inside("doeblin", doeblin(channel), mpmath.fsum(min(column) for column in columns), wrong, 1e-12)
    most = mpmath.log(mpmath.fsum(max(column) for column in columns))
    _inside("maximal_leakage", maximal_leakage(channel), most, wrong)
    prior = rng.dirichlet(np.ones(len(rows)))
    total = mpmath.fsum(mpf(float(w)) for w in prior)
    weights = [mpf(float(w)) / total for w in prior]
    mixture = [mpmath.fsum(w * x for w, x in zip(weights, column, strict=True)) for column in columns]
    exact = mpmath.fsum(
        w * x * mpmath.log(x / mix)
        for w, row in zip(weights, rows, strict=True)
        for x, mix in zip(row, mixture, strict=True)
        if x > 0
    )
    _inside("mutual_information", mutual_information(channel, prior), exact, wrong)
    _inside("chi_squared_contraction", chi_squared_contraction(channel), _worst_chi_squared(rows), wrong)


def _worst_chi_squared(rows: list[Row]) -> mpf:
    return max(_chi_squared(p, q) for x, p in enumerate(rows) for q in rows[:x])


def _chi_squared(p: Row, q: Row) -> mpf:
    """max over b of b (1 - b) sum (p - q)^2/(b p + (1 - b) q), by golden section on a concave function."""

    def value(b: mpf) -> mpf:
        both = ((x, y) for x, y in zip(p, q, strict=True) if x or y)
        return b * (1 - b) * mpmath.fsum((x - y) ** 2 / (b * x + (1 - b) * y) for x, y in both)

    best = -least_value(lambda b: -value(b), mpf(0), mpf(1), 60)
    pairs = list(zip(p, q, strict=True))
    outside = (mpmath.fsum(y for x, y in pairs if x == 0), mpmath.fsum(x for x, y in pairs if y == 0))
    return max(best, *outside)
