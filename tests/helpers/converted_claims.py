"""Conversions, groups, calibration and k-fold composition of one random claim against their formulas in 60 digits."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
from mpmath import mpf

from ldpopt.composition import k_fold, kov15, subsample
from ldpopt.composition.sums import advanced_composition, compose_approximate, compose_mcdp, compose_pure, compose_renyi
from ldpopt.errors import InvalidInput
from ldpopt.privacy import calibrate as cal
from ldpopt.privacy import conversions as c
from ldpopt.privacy import implications as g
from ldpopt.privacy.claims import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, PureDP, RenyiDP


def check(rng: np.random.Generator) -> list[str]:
    """What is understated for one random set of parameters, empty if nothing is."""
    wrong: list[str] = []

    def draw(low: float, high: float) -> float:
        return float(10.0 ** rng.uniform(low, high))

    def least(name: str, value: float, exact: mpf) -> None:
        if not mpf(value) >= exact:
            wrong.append(f"{name}: {value!r} below {mpmath.nstr(exact, 25)} ({given})")

    eps, rho, xi, tau = draw(-12, 2.5), draw(-12, 2.5), draw(-12, 1) * float(rng.choice([0, 1])), draw(-9, 1.5)
    delta, order, size = draw(-300, 0) ** float(rng.choice([1, 0.05])), 1 + draw(-9, 4), int(rng.integers(1, 40))
    given = {"eps": eps, "rho": rho, "xi": xi, "tau": tau, "delta": delta, "order": order, "size": size}
    with mpmath.workdps(400):
        _pure(eps, delta, order, least)
        _renyi_and_zcdp(eps, rho, xi, tau, delta, order, least)
        _groups(eps, rho, xi, delta, size, least)
        _calibrated(eps, xi, delta, order, least)
        _folds(eps, rng, least)
        _sums(eps, delta, order, tau, size, least)
    return wrong


Least = Callable[[str, float, mpf], None]


def _pure(eps: float, delta: float, order: float, least: Least) -> None:
    e, d, a, pure = mpf(eps), mpf(delta), mpf(order), PureDP(eps)
    half = mpmath.tanh(e / 2)
    least("pure_to_tv", c.pure_to_tv(pure).eta, half)
    inside = max(mpmath.exp(e) - d * (1 + mpmath.exp(e)), mpf(1))
    least("pure_to_approximate", c.pure_to_approximate(pure, delta).epsilon, mpmath.log(inside))
    least("pure_to_renyi", c.pure_to_renyi(pure, order).epsilon,
          mpmath.log(mpmath.cosh((a - mpf(1) / 2) * e) / mpmath.cosh(e / 2)) / (a - 1))  # fmt: skip
    least("pure_to_renyi(1)", c.pure_to_renyi(pure, 1).epsilon, e * half)
    least("pure_to_zcdp", c.pure_to_zcdp(pure).rho, e**2 / 2)
    least("pure_to_zcdp_sharp", c.pure_to_zcdp_sharp(pure).rho, e * half)
    least("pure_to_mcdp", c.pure_to_mcdp(pure).mu, e * mpmath.expm1(e) / 2)
    least("pure_to_mcdp_sharp", c.pure_to_mcdp_sharp(pure).mu, e * half)
    approximate = ApproximateDP(eps, delta)
    least("approximate_to_tv", c.approximate_to_tv(approximate).eta, d + (1 - d) * half)
    least("approximate_to_approximate_zcdp", c.approximate_to_approximate_zcdp(approximate).rho, e**2 / 2)
    least("approximate_to_approximate_zcdp_sharp", c.approximate_to_approximate_zcdp_sharp(approximate).rho, e * half)


def renyi_epsilon(order: mpf, divergence: mpf, delta: mpf) -> mpf:
    """The epsilon at `delta`, which 0 replaces when it is negative [CKS, Prop 12]."""
    return divergence + mpmath.log(1 - 1 / order) - mpmath.log(order * delta) / (order - 1)


def least_divergence(order: mpf, epsilon: mpf, delta: mpf) -> mpf:
    """The least D_order of two coins with a hockey stick of `delta` at `epsilon`, by a search over all coins."""
    with mpmath.workdps(120):
        growth = mpmath.exp(epsilon)

        def divergence(t: mpf) -> mpf:
            heads = delta + (1 - delta) / (1 + mpmath.exp(-t))
            other, tails, rest = (
                (heads - delta) / growth,
                (1 - delta) / (1 + mpmath.exp(t)),
                1 - (heads - delta) / growth,
            )
            rest = ((growth - 1) + delta + tails) / growth
            return mpmath.log(heads**order * other ** (1 - order) + tails**order * rest ** (1 - order)) / (order - 1)

        low, high = mpf(-3000), mpf(3000)
        for _ in range(160):  # golden section on a function with one minimum
            a, b = low + (high - low) * mpf("0.381966"), low + (high - low) * mpf("0.618034")
            low, high = (low, b) if divergence(a) <= divergence(b) else (a, high)
        return divergence((low + high) / 2)


def three_way(xi: float, rho: float, epsilon: mpf) -> mpf:
    """The delta of (xi, rho)-zCDP at epsilon [BS, Lemma 3.6]."""
    over, r = mpf(epsilon) - mpf(xi) - mpf(rho), mpf(rho)
    if over < 0:
        return mpf(1)
    u = over / (2 * r)
    last = 2 / (1 + u + mpmath.sqrt((1 + u) ** 2 + 4 / (mpmath.pi * r)))
    return mpmath.exp(-(over**2) / (4 * r)) * min(mpf(1), mpmath.sqrt(mpmath.pi * r), 1 / (1 + u), last)


def meets(xi: float, rho: float, epsilon: float, delta: float | mpf) -> bool:
    """Whether either sharp bound shows (xi, rho)-zCDP to be (epsilon, delta)-DP."""
    e, d = mpf(epsilon), mpf(delta)
    if three_way(xi, rho, e) <= d:
        return True
    guess = 1 + math.sqrt(max(float(-mpmath.log(d)), 1e-3) / rho)

    def at(log_excess: mpf) -> mpf:
        order = 1 + mpmath.exp(log_excess)
        return renyi_epsilon(order, mpf(xi) + mpf(rho) * order, d)

    low, high = mpf(math.log(guess - 1) - 8), mpf(math.log(guess - 1) + 8)
    with mpmath.workdps(40):
        for _ in range(120):  # golden section on a function with one minimum
            a, b = low + (high - low) * mpf("0.381966"), low + (high - low) * mpf("0.618034")
            low, high = (low, b) if at(a) <= at(b) else (a, high)
    return bool(at((low + high) / 2) <= e)


def _renyi_and_zcdp(eps: float, rho: float, xi: float, tau: float, delta: float, order: float, least: Least) -> None:
    e, r, x, d, a, t = (mpf(value) for value in (eps, rho, xi, delta, order, tau))
    renyi, zcdp = RenyiDP(order, eps), ZCDP(xi, rho)
    log = -mpmath.log(d)
    least("renyi_to_approximate", c.renyi_to_approximate(renyi, delta).epsilon, e + log / (a - 1))
    closed = c.renyi_to_approximate_closed(renyi, delta).epsilon
    least("renyi_to_approximate_closed", closed, max(mpf(0), renyi_epsilon(a, e, d)))
    claimed = c.renyi_to_approximate_sharp(renyi, delta).epsilon
    if (
        math.isfinite(claimed)
        and 0 < delta < 1
        and not least_divergence(a, mpf(claimed), d) >= e * (1 - mpf(10) ** -60)
    ):
        least("renyi_to_approximate_sharp", claimed, mpmath.inf)
    least("zcdp_to_renyi", c.zcdp_to_renyi(zcdp, order).epsilon, x + r * a)
    least("zcdp_to_approximate", c.zcdp_to_approximate(zcdp, delta).epsilon, x + r + mpmath.sqrt(4 * r * log))
    found = c.zcdp_to_approximate_sharp(zcdp, delta).epsilon
    if not meets(xi, rho, found, delta):
        least("zcdp_to_approximate_sharp", found, mpmath.inf)
    for epsilon in (xi + rho, xi + rho + math.sqrt(rho) * eps, eps):
        least("zcdp_delta", c.zcdp_delta(zcdp, epsilon).delta, three_way(xi, rho, mpf(epsilon)))
        outer = c.approximate_zcdp_to_approximate(ApproximateZCDP(delta, xi, rho), epsilon).delta
        least("approximate_zcdp_to_approximate", outer, d + (1 - d) * three_way(xi, rho, mpf(epsilon)))
    curve = c.approximate_curve_to_zcdp(min(xi, 1.0), min(rho, 1.0))
    x_hat, r_hat = mpf(min(xi, 1.0)), mpf(min(rho, 1.0))
    least("approximate_curve_to_zcdp xi", curve.xi, x_hat - r_hat / 4 + 5 * mpmath.root(r_hat, 4))
    least("approximate_curve_to_zcdp rho", curve.rho, r_hat / 4)
    made = c.mcdp_to_zcdp(MCDP(eps, tau))
    least("mcdp_to_zcdp rho", made.rho, t**2 / 2)
    if not mpf(made.xi) + mpf(made.rho) >= e:
        least("mcdp_to_zcdp xi", made.xi, e - mpf(made.rho))
    least("zcdp_to_mcdp_mean", c.zcdp_to_mcdp_mean(zcdp).epsilon, x + r)
    half = ApproximateZCDP(delta / 2, xi, rho)
    inner = c.approximate_zcdp_to_epsilon(half, delta).epsilon
    room = (d - mpf(half.delta)) / (1 - mpf(half.delta))
    if math.isfinite(inner) and not meets(xi, rho, inner, room):
        least("approximate_zcdp_to_epsilon", inner, mpmath.inf)


def _groups(eps: float, rho: float, xi: float, delta: float, size: int, least: Least) -> None:
    e, d, s = mpf(eps), mpf(delta), mpf(size)
    least("group_pure", g.group_pure(PureDP(eps), size).epsilon, s * e)
    made = g.group_approximate(ApproximateDP(eps, delta), size)
    least("group_approximate epsilon", made.epsilon, s * e)
    least("group_approximate delta", made.delta, min(mpf(1), d * mpmath.expm1(s * e) / mpmath.expm1(e)))
    zcdp = g.group_zcdp(ZCDP(xi, rho), size)
    least("group_zcdp xi", zcdp.xi, mpf(xi) * s * mpmath.fsum(mpf(1) / i for i in range(1, size + 1)))
    least("group_zcdp rho", zcdp.rho, mpf(rho) * s**2)
    least("group_renyi", g.group_renyi(RenyiDP(64, eps), 3).epsilon, 27 * e)
    gaussian = g.group_gaussian_mcdp(eps, rho, size)
    least("group_gaussian_mcdp mu", gaussian.mu, (s * e / mpf(rho)) ** 2 / 2)
    least("group_gaussian_mcdp tau", gaussian.tau, s * e / mpf(rho))


def _calibrated(eps: float, xi: float, delta: float, order: float, least: Least) -> None:
    target, d = ApproximateDP(eps, delta), mpf(delta)
    plain = cal.largest_rho(target, xi)
    if plain.rho > 0:
        need = mpf(xi) + mpf(plain.rho) + 2 * mpmath.sqrt(mpf(plain.rho) * -mpmath.log(d))
        least("largest_rho", eps, need)
        sharp = cal.largest_rho_sharp(target, xi)
        if not meets(xi, sharp.rho, eps, delta):
            least("largest_rho_sharp", eps, mpmath.inf)
    try:
        renyi = cal.largest_renyi(target, order)
    except InvalidInput:
        renyi = None  # no divergence at this order meets the target
    if renyi is not None:
        needed = max(mpf(0), least_divergence(mpf(order), mpf(eps), d)) if delta < 1 else mpmath.inf
        if not needed >= mpf(renyi.epsilon) * (1 - mpf(10) ** -60):
            least("largest_renyi", eps, mpmath.inf)
    pure = cal.largest_pure(target).epsilon
    if math.isfinite(pure):
        bound = (mpmath.exp(mpf(pure)) - mpmath.exp(mpf(eps))) / (1 + mpmath.exp(mpf(pure)))
        least("largest_pure", delta, max(bound, mpf(0)))


def fold_delta(eps: float, delta: float, erasure: float | mpf, count: int, at: mpf) -> mpf:
    """The delta of `count` copies of the three-point pair with infinite mass `delta` [GI, eq. 70-71]."""
    e = mpmath.exp(mpf(eps))
    kept = (1 - mpf(erasure)) / (1 + e)
    law = {0: mpf(1)}
    for _ in range(count):
        following: dict[int, mpf] = {}
        for total, mass in law.items():
            for step, weight in ((1, kept * e), (0, mpf(erasure)), (-1, kept)):
                following[total + step] = following.get(total + step, mpf(0)) + mass * weight
        law = following
    finite = mpmath.fsum(mass * max(1 - mpmath.exp(at - n * mpf(eps)), mpf(0)) for n, mass in law.items())
    return 1 - (1 - mpf(delta)) ** count * (1 - min(finite, mpf(1)))  # masses sum to one to 400 digits


def _folds(eps: float, rng: np.random.Generator, least: Least) -> None:
    eps, count = min(eps, 300.0), int(rng.integers(1, 9))
    delta = float(rng.choice([0.0, 10.0 ** rng.uniform(-15, -0.5)]))
    erasure = float(rng.random()) * float(rng.choice([0, 1]))
    top = mpmath.tanh(mpf(eps) / 2)
    eta = float(mpf(delta) + (1 - mpf(delta)) * (1 - mpf(erasure)) * top)
    # The float eta stands for an erasure of its own.
    exact = max(mpf(0), 1 - (mpf(eta) - mpf(delta)) / ((1 - mpf(delta)) * top))
    made = k_fold(eps, delta, eta, count)
    for at in (0.0, eps * float(rng.random()) * count, eps * int(rng.integers(0, count + 1))):
        least(f"k_fold {count} x ({eps!r}, {delta!r}, {eta!r}) at {at!r}", made.delta_at(at),
              fold_delta(eps, delta, exact, count, mpf(at)))  # fmt: skip
    for index, value in zip(made.epsilons.tolist(), made.deltas.tolist(), strict=True):
        least("k_fold list", value, fold_delta(eps, delta, exact, count, mpf(index)))
    level = float(made.deltas[0]) * float(rng.random())
    claimed = made.epsilon_at(level)
    if math.isfinite(claimed):
        least("k_fold epsilon_at", level, fold_delta(eps, delta, exact, count, mpf(claimed)))
    whole = kov15(eps, delta, count)
    for index, value in zip(whole.indices.tolist(), whole.deltas.tolist(), strict=True):
        least("kov15", value, fold_delta(eps, delta, 0, count, index * mpf(eps)))
    for point, value in zip(whole.epsilons.tolist(), whole.deltas.tolist(), strict=True):
        least("kov15 list", value, fold_delta(eps, delta, 0, count, mpf(point)))


def _sums(eps: float, delta: float, order: float, tau: float, size: int, least: Least) -> None:
    e, d, n = mpf(eps), mpf(delta), size
    least("compose_pure", compose_pure([(PureDP(eps), n)]).epsilon, n * e)
    least("compose_renyi", compose_renyi([(RenyiDP(order, eps), n)]).epsilon, n * e)
    made = compose_approximate([(ApproximateDP(eps, delta), n)])
    least("compose_approximate epsilon", made.epsilon, n * e)
    least("compose_approximate delta", made.delta, 1 - (1 - d) ** n)
    concentrated = compose_mcdp([(MCDP(eps, tau), n)])
    least("compose_mcdp mu", concentrated.mu, n * e)
    least("compose_mcdp tau", concentrated.tau, mpmath.sqrt(n) * mpf(tau))
    share = mpf(n) / 40
    taken = subsample(PureDP(eps), n, 40)
    least("subsample", taken.epsilon, mpmath.log1p(share * mpmath.expm1(e)))
    least("subsample TV", subsample(TV(min(1.0, delta)), n, 40).eta, share * d)
    advanced = advanced_composition(PureDP(eps), n, delta)
    least("advanced_composition", advanced.epsilon,
          mpmath.sqrt(-2 * n * mpmath.log(d)) * e + n * e * mpmath.expm1(e) / 2)  # fmt: skip
