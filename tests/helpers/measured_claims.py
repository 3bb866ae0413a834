"""Every measure of one channel against its definition in high precision: a list of what is understated."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import truth
from mpmath import mpf

from ldpopt.channel import Channel
from ldpopt.composition import FinitePair, compose, compose_same_input
from ldpopt.errors import LdpoptError
from ldpopt.privacy import (
    approximate_dp,
    approximate_zcdp,
    hockey_stick,
    local_dp,
    mcdp,
    renyi,
    total_variation,
    trade_off,
    zcdp,
)
from ldpopt.privacy.guarantee import Guarantee

Wrong = list[str]


def check(rng: np.random.Generator) -> Wrong:
    """Violations found on one random channel, empty if all guarantees hold."""
    channel = Channel(truth.channels(rng))
    with mpmath.workdps(truth.digits(channel.matrix)):
        wrong: Wrong = []
        for part in (_direct, _loss, _composed):
            try:
                part(channel, rng, wrong)
            except (LdpoptError, ArithmeticError, ValueError) as error:  # a valid channel must be measured
                wrong.append(f"{part.__name__}: {type(error).__name__}: {error}")
        return [f"{text} on {channel.matrix.tolist()}" for text in wrong]


def check_approximate_zcdp(rng: np.random.Generator) -> Wrong:
    """Violations found for a random delta: rho of the least favourable pairs covers a few orders."""
    channel, delta = Channel(truth.channels(rng)), float(10.0 ** rng.uniform(-12, -0.3))
    orders = [1 + 10.0 ** rng.uniform(-6, 0), float(rng.uniform(1, 4)), 1 + 10.0 ** rng.uniform(0, 2)]
    with mpmath.workdps(truth.digits(channel.matrix)):

        def slope(p: truth.Row, q: truth.Row) -> mpf:
            left, right = truth.cut(p, q, delta), truth.cut(q, p, delta)
            if left is None or right is None:
                return mpf(0)
            (left, right) = ([value / mpmath.fsum(row) for value in row] for row in (left, right))
            return max(truth.renyi(left, right, order) / order for order in orders)

        wrong: Wrong = []
        try:
            found = approximate_zcdp(channel, delta)
            rows = truth.rows(channel.matrix, proportional=True)
            _at_least(f"approximate_zcdp({delta!r})", found.value, truth.worst(rows, slope), wrong)
        except (LdpoptError, ArithmeticError, ValueError) as error:
            wrong.append(f"approximate_zcdp: {type(error).__name__}: {error}")
        return [f"{text} on {channel.matrix.tolist()}" for text in wrong]


def _inside(name: str, found: Guarantee, exact: mpf, wrong: Wrong) -> None:
    if not mpf(found.lower) <= exact <= mpf(found.value):
        wrong.append(f"{name}: {mpmath.nstr(exact, 25)} outside [{found.lower!r}, {found.value!r}]")


def _at_least(name: str, value: float | mpf, exact: mpf, wrong: Wrong) -> None:
    if not mpf(value) >= exact:
        wrong.append(f"{name}: {value!r} below {mpmath.nstr(exact, 25)}")


def _direct(channel: Channel, rng: np.random.Generator, wrong: Wrong) -> None:
    rows = truth.rows(channel.matrix, proportional=True)
    pure = truth.worst(rows, truth.local_dp)
    _inside("local_dp", local_dp(channel), pure, wrong)
    _inside("total_variation", total_variation(channel), truth.worst(rows, lambda p, q: truth.hockey_stick(p, q, 0)),
            wrong)  # fmt: skip
    top = float(min(pure, 690))
    curve = trade_off(channel)
    for epsilon in (0.0, top * float(rng.random()), min(10.0 ** rng.uniform(-15, 2.8), 700.0)):
        exact = truth.worst(rows, lambda p, q, e=epsilon: truth.hockey_stick(p, q, e))
        _inside(f"hockey_stick({epsilon!r})", hockey_stick(channel, epsilon), exact, wrong)
        _inside(f"trade_off({epsilon!r})", curve.to_approximate_dp(epsilon), exact, wrong)
        delta = min(1.0, float(exact) * float(rng.choice([0.3, 1.0, 1 + 1e-9, 1 - 1e-9])))
        found = approximate_dp(channel, delta)
        # The smallest epsilon with delta(epsilon) <= delta lies in [lower, value].
        if found.value < math.inf:
            # Mass that only one input gives counts as it stands in a row that sums to one but for rounding.
            _at_least(f"approximate_dp({delta!r})", mpf(delta) * (1 + 2.0**-52),
                      truth.worst(rows, lambda p, q, e=found.value: truth.hockey_stick(p, q, e)), wrong)  # fmt: skip
        if 0 < found.lower < math.inf:
            reached = truth.worst(rows, lambda p, q, e=found.lower: truth.hockey_stick(p, q, e))
            if not reached >= mpf(delta):
                wrong.append(f"approximate_dp({delta!r}): lower {found.lower!r} is above the value")


def _loss(channel: Channel, rng: np.random.Generator, wrong: Wrong) -> None:
    rows = truth.rows(channel.matrix, proportional=True)
    mean = truth.worst(rows, truth.kl)
    concentrated = mcdp(channel)
    _inside("renyi(1)", renyi(channel, 1), mean, wrong)
    _inside("mcdp.mu", concentrated.mu, mean, wrong)
    slope, found = mpf(0), zcdp(channel)
    orders = [1 + 10.0 ** rng.uniform(-9, 0), float(rng.uniform(1, 4)), 1 + 10.0 ** rng.uniform(-1, 3)]
    for order in orders:
        exact = truth.worst(rows, lambda p, q, a=order: truth.renyi(p, q, a))
        _inside(f"renyi({order!r})", renyi(channel, order), exact, wrong)
        slope = max(slope, exact / order)
    for power in (-6, -2, -1, 0, 1, 2):
        order = 1 + mpf(10) ** power * float(rng.uniform(1, 10))
        slope = max(slope, truth.worst(rows, lambda p, q, a=order: truth.renyi(p, q, a)) / order)
    _at_least("zcdp", found.value, slope, wrong)
    if math.isfinite(mean):
        _at_least("zcdp at order 1", found.value, mean, wrong)
        tau = mpf(concentrated.tau.value)
        for size in (1e-6, 1e-2, 0.3, 3.0, 100.0):
            for s in (size * float(rng.uniform(0.3, 3)), -size * float(rng.uniform(0.3, 3))):
                spread = truth.worst(rows, lambda p, q, s=s: 2 * truth.cumulant(p, q, s) / mpf(s) ** 2)
                _at_least(f"mcdp.tau^2 at {s!r}", float(tau), mpmath.sqrt(max(spread, mpf(0))), wrong)


def _composed(channel: Channel, rng: np.random.Generator, wrong: Wrong) -> None:
    """Two draws: from the same pair of inputs, and from the pair that dominates all inputs."""
    two = Channel(channel.matrix[:2])
    p, q = truth.rows(two.matrix, proportional=True)
    left, right = truth.product(p, q, 2)
    same = next(iter(compose_same_input([two], count=2).values()))
    alone = compose([FinitePair(*two.matrix)], count=2)
    every = compose([channel], count=2)
    worst = max(truth.local_dp(p, q), truth.local_dp(q, p))
    top = min(float(worst), 300.0)
    _inside("compose local_dp", same.local_dp(), 2 * worst, wrong)
    _at_least("compose channel local_dp", every.local_dp().value, 2 * worst, wrong)
    for order in (1 + 10.0 ** rng.uniform(-3, 0), float(rng.uniform(1, 64))):
        exact = 2 * max(truth.renyi(p, q, order), truth.renyi(q, p, order))
        _inside(f"compose renyi({order!r})", same.renyi(order), exact, wrong)
        _at_least(f"compose channel renyi({order!r})", every.renyi(order).value, exact, wrong)
    for epsilon in (0.0, top * float(rng.random()), 2 * top * float(rng.random())):
        forward = truth.hockey_stick(left, right, epsilon)
        exact = max(forward, truth.hockey_stick(right, left, epsilon))
        for name, made in (("same input", same), ("pair", alone)):
            _inside(f"compose {name} ({epsilon!r})", made.hockey_stick(epsilon), exact, wrong)
        _at_least(f"compose channel ({epsilon!r})", every.delta_at(epsilon), exact, wrong)
        delta = min(1.0, float(exact) * float(rng.choice([0.5, 1.0])))
        claimed = same.epsilon_at(delta)
        if math.isfinite(claimed):
            reached = max(truth.hockey_stick(left, right, claimed), truth.hockey_stick(right, left, claimed))
            _at_least(f"compose epsilon_at({delta!r})", delta, reached, wrong)
