"""Measures of every named mechanism over its whole range of parameters, against formulas with 50 digits or more.

Each family draws parameters on logarithmic scales, its ends included, and states the law of two answers that are as far
apart as any, in exact numbers: from the published formula, not from the package. A measure must hold the value of this
law. Channels are made from a slightly smaller epsilon, so theirs may also lie below it by that much.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from ldpopt import mechanisms as m
from ldpopt.privacy import hockey_stick, local_dp, renyi, total_variation

Law = list[Any]
SMALLEST, LARGEST = 1e-9, 700.0


def any_epsilon(rng: np.random.Generator, top: float = LARGEST) -> float:
    """An epsilon from 1e-9 to `top`: the ends now and then, else uniform in the logarithm."""
    return float(
        rng.choice([SMALLEST, top, math.exp(rng.uniform(math.log(SMALLEST), math.log(top)))], p=[0.1, 0.1, 0.8])
    )


def share(rng: np.random.Generator) -> float:
    """A number in (0, 1), now and then near one of the ends."""
    return float(
        rng.choice([10.0 ** rng.uniform(-12, 0) * 0.999, 1 - 10.0 ** rng.uniform(-12, -1), rng.uniform(0.01, 0.99)])
    )


@dataclass
class Case:
    """A mechanism with the exact laws p, q of two answers. private : how far, relatively, measures may lie below."""

    name: str
    measured: Any
    p: Law
    q: Law
    private: float = 0.0


def ratio_law(k: int, inside: int, epsilon: float) -> tuple[Law, Law]:
    """Two rows that prefer `inside` of k outputs each, those of the second being shared as far as k allows."""
    e = mp.exp(mpf(epsilon))
    total = inside * e + (k - inside)
    return [e / total] * inside + [1 / total] * (k - inside), [1 / total] * (k - inside) + [e / total] * inside


def lowered(epsilon: float) -> float:
    """How much less than epsilon a channel may keep, relatively: 2^-47 and some units in the last place of epsilon."""
    return 4 * (2.0**-47 + 16 * 2.0**-52 * epsilon) / min(epsilon, 1.0) * max(epsilon, 1.0)


def response(rng: np.random.Generator) -> Case:
    k, epsilon = int(rng.integers(2, 40)), any_epsilon(rng)
    e = mp.exp(mpf(epsilon))
    p = [e / (e + k - 1)] + [1 / (e + k - 1)] * (k - 1)
    q = [p[1], p[0], *p[2:]]
    return Case(f"randomized_response({k}, {epsilon!r})", m.randomized_response(k, epsilon), p, q, lowered(epsilon))


def subsets(rng: np.random.Generator) -> Case:
    k = int(rng.integers(2, 9))
    size, epsilon = int(rng.integers(1, k)), any_epsilon(rng)
    e = mp.exp(mpf(epsilon))
    total = math.comb(k - 1, size - 1) * e + math.comb(k - 1, size)
    both, one = math.comb(k - 2, size - 2) if size > 1 else 0, math.comb(k - 2, size - 1)
    neither = math.comb(k, size) - both - 2 * one
    p = [e * both / total, e * one / total, one / total, neither / total]
    q = [p[0], p[2], p[1], p[3]]
    used = [n for n in range(4) if p[n] > 0]
    made = m.subset_selection(k, epsilon, size)
    return Case(f"subset_selection({k}, {epsilon!r}, {size})", made, [p[n] for n in used], [q[n] for n in used],
                lowered(epsilon))  # fmt: skip


def geometric(rng: np.random.Generator) -> Case:
    k, epsilon = int(rng.integers(2, 12)), any_epsilon(rng)
    q = mp.exp(-mpf(epsilon) / (k - 1))
    rows = [[q ** abs(x - y) / (1 + q) * (1 if y in (0, k - 1) else 1 - q) for y in range(k)] for x in (0, k - 1)]
    return Case(f"truncated_geometric({k}, {epsilon!r})", m.truncated_geometric(k, epsilon), *rows, lowered(epsilon))


def erasure(rng: np.random.Generator) -> Case:
    epsilon = any_epsilon(rng, 300.0)
    eta = float(mp.tanh(mpf(epsilon) / 2) * mpf(rng.uniform(0.05, 0.95)))
    pair = m.dominating_pair(epsilon, 0.0, eta)
    e = mp.exp(mpf(epsilon))
    kept = mpf(eta) * (e + 1) / (e - 1)
    p = [kept * e / (1 + e), 1 - kept, kept / (1 + e)]
    room = lowered(epsilon) + 1e-12 + 2.0**-44 / eta  # the pair is enlarged by 2^-47 of each parameter
    return Case(f"dominating_pair({epsilon!r}, 0, {eta!r})", pair, p, p[::-1], -room)


def yes_no(design: Any, chances: tuple[Any, Any]) -> Case:
    p, q = ([mpf(x), 1 - mpf(x)] for x in chances)
    return Case(repr(design), design, p, q)


def warner(rng: np.random.Generator) -> Case:
    p = share(rng)
    if p == 0.5:
        p = 0.25
    return yes_no(rng.choice([m.Warner, m.Crosswise])(p), (mpf(p), 1 - mpf(p)))


def forced(rng: np.random.Generator) -> Case:
    a = share(rng)
    b = float((1 - a) * rng.uniform(0.01, 0.99))
    return yes_no(m.ForcedResponse(a, b), (1 - mpf(b), mpf(a)))


def unrelated(rng: np.random.Generator) -> Case:
    p, prevalence = share(rng), share(rng)
    yes = (1 - mpf(p)) * mpf(prevalence)
    return yes_no(m.UnrelatedQuestion(p, prevalence), (mpf(p) + yes, yes))


def kuk(rng: np.random.Generator) -> Case:
    first, second, draws = share(rng), share(rng), int(rng.choice([1, 2, 7, 40]))
    if first == second:
        second /= 2
    rows = [[mp.binomial(draws, r) * mpf(t) ** r * (1 - mpf(t)) ** (draws - r) for r in range(draws + 1)]
            for t in (first, second)]  # fmt: skip
    return Case(f"Kuk({first!r}, {second!r}, {draws})", m.Kuk(first, second, draws), *rows)


def unary(rng: np.random.Generator) -> Case:
    k, epsilon = int(rng.integers(2, 50)), any_epsilon(rng, 70.0)
    best = bool(rng.integers(2))
    half = mp.exp(mpf(epsilon) / 2)
    a, b = (mpf(1) / 2, 1 / (1 + half**2)) if best else (half / (1 + half), 1 / (1 + half))
    p = [a * (1 - b), a * b, (1 - a) * (1 - b), (1 - a) * b]
    q = [p[3], p[1], p[2], p[0]]
    name = "optimized_unary_encoding" if best else "unary_encoding"
    return Case(
        f"{name}({k}, {epsilon!r})", getattr(m, name)(k, epsilon), p, q, 1e-3 if epsilon > 30 else lowered(epsilon)
    )


def hashed(rng: np.random.Generator) -> Case:
    k, epsilon = int(rng.integers(3, 60)), any_epsilon(rng, 20.0)
    e = mp.exp(mpf(epsilon))
    made = m.local_hashing(k, epsilon, int(rng.integers(2, 6)))
    g = made.buckets
    p = [e / (e + g - 1)] + [1 / (e + g - 1)] * (g - 1)
    return Case(f"local_hashing({k}, {epsilon!r}, {g})", made, p, [p[1], p[0], *p[2:]], 1.0)


def hadamard(rng: np.random.Generator) -> Case:
    k, epsilon = int(rng.integers(2, 60)), any_epsilon(rng, 20.0)
    made = m.hadamard_response(k, epsilon)
    b, w, e = made.blocks, made.width, mp.exp(mpf(epsilon))
    total = e * w / 2 + (b * w - mpf(w) / 2)
    if b == 1 or k <= w - 1:
        p = [e * w / 4 / total, e * w / 4 / total, mpf(w) / 4 / total, mpf(w) / 4 / total, (b - 1) * w / total]
        q = [p[0], p[2], p[1], p[3], p[4]]
    else:
        p = [e * w / 2 / total, mpf(w) / 2 / total, mpf(w) / 2 / total, mpf(w) / 2 / total, (b - 2) * w / total]
        q = [p[1], p[2], p[0], p[3], p[4]]
    return Case(f"hadamard_response({k}, {epsilon!r})", made, p, q, 1.0)


def window(rng: np.random.Generator) -> Case:
    epsilon = any_epsilon(rng, 20.0)
    made = rng.choice([m.Piecewise, m.SquareWave])(epsilon)
    e = mp.exp(mpf(epsilon))
    if isinstance(made, m.Piecewise):
        c = (mp.exp(mpf(epsilon) / 2) + 1) / (mp.exp(mpf(epsilon) / 2) - 1)
        width, length = c - 1, 2 * c
    else:
        b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon)) if epsilon > 1e-3 else None
        if b is None:
            with mp.workdps(90):
                x = mpf(epsilon)
                b = (x * mp.exp(x) - mp.expm1(x)) / (2 * mp.exp(x) * (mp.expm1(x) - x))
        width, length = 2 * b, 1 + 2 * b
    low = 1 / (length - width + width * e)
    p = [low * e * width, low * width, low * (length - 2 * width)]
    return Case(f"{type(made).__name__}({epsilon!r})", made, p, [p[1], p[0], p[2]], lowered(epsilon) + 1e-12)


def steps(rng: np.random.Generator) -> Case:
    epsilon, gamma = any_epsilon(rng), float(rng.choice([0.0, 1.0, 0.5, rng.uniform(), 10.0 ** rng.uniform(-15, 0)]))
    q, g = mp.exp(-mpf(epsilon)), mpf(gamma)
    w = g + q * (1 - g)
    eta = (1 - q) * (2 * g * (1 - q) + q) / (2 * w) if gamma < 0.5 else (1 - q) / (2 * w)
    kept = eta * (1 + q) / (1 - q)
    p = [kept / (1 + q), 1 - kept, kept * q / (1 + q)]
    made = m.Staircase(epsilon, gamma)
    return Case(f"Staircase({epsilon!r}, {gamma!r})", made, p, p[::-1], -lowered(epsilon) - 1e-12)


FAMILIES: dict[str, Callable[[np.random.Generator], Case]] = {
    "randomized response": response, "subset selection": subsets, "truncated geometric": geometric,
    "erasure": erasure, "warner and crosswise": warner, "forced response": forced, "unrelated question": unrelated,
    "Kuk": kuk, "unary encodings": unary, "local hashing": hashed, "Hadamard response": hadamard, "windows": window,
    "staircase": steps,
}  # fmt: skip


def exact(case: Case) -> dict[str, Any]:
    """The measures of the two laws, in 60 digits."""
    p, q = ([x for x in law] for law in (case.p, case.q))
    both = [(a, b) for a, b in zip(p, q, strict=True) if a > 0 or b > 0]
    swapped = [(b, a) for a, b in both]

    def loss(rows: Law) -> Any:
        return max((mp.log(a / b) if b > 0 else mp.inf) for a, b in rows if a > 0)

    def stick(rows: Law, epsilon: float) -> Any:
        return mp.fsum(max(a - mp.exp(mpf(epsilon)) * b, mpf(0)) for a, b in rows)

    def divergence(rows: Law, order: float) -> Any:
        if any(b == 0 for a, b in rows if a > 0):
            return mp.inf
        a_ = mpf(order)
        with mp.workdps(mp.dps + 60):
            return mp.log(mp.fsum(mp.exp(a_ * mp.log(a) - (a_ - 1) * mp.log(b)) for a, b in rows if a > 0)) / (a_ - 1)

    return {
        "epsilon": max(loss(both), loss(swapped)),
        "eta": stick(both, 0.0),
        "stick": lambda epsilon: max(stick(both, epsilon), stick(swapped, epsilon)),
        "renyi": lambda order: max(divergence(both, order), divergence(swapped, order)),
    }


def compared(case: Case) -> list[str]:
    """What disagrees: a value below the exact one, or above it by more than rounding outward."""
    wrong: list[str] = []
    with mp.workdps(60):
        truth = exact(case)

        def check(what: str, value: float, lower: float, expected: Any, room: float = 1e-11) -> None:
            slack = mpf(abs(case.private)) + room
            # A channel that is more private than its formula by `private` may lie below it; a pair, above.
            least = expected * (1 - slack) if case.private > 0 else expected * (1 - mpf(10) ** -14)
            most = expected * (1 + (slack if case.private < 0 else room)) + mpf(10) ** -300
            if mp.isinf(expected):
                good = value == math.inf
            else:
                good = value >= least - mpf(10) ** -320 and value <= most and lower <= most
            if not good:
                wrong.append(f"{case.name}: {what} [{lower!r}, {value!r}], exact {mp.nstr(expected, 20)}")

        made = case.measured
        if hasattr(made, "epsilon") and not isinstance(made, m.FinitePair):
            stated = float(made.epsilon)
            check("stated epsilon", stated, stated * (1 - 1e-12), truth["epsilon"], 1e-11)
            # The eta of a window includes the rounding of its ends, which are close together at a large epsilon.
            check(
                "stated eta",
                float(made.eta),
                0.0,
                truth["eta"],
                1e-6 if isinstance(made, m.Piecewise | m.SquareWave) else 1e-9,
            )
        pair = None
        if isinstance(made, m.Staircase):
            pair = made.pair
        elif isinstance(made, (m.FinitePair, m.SurveyDesign)) or type(made).__name__ == "Channel":
            pair = made
            if isinstance(made, m.Kuk):
                try:
                    pair = made.channel
                except ValueError:
                    return wrong  # its reports are rarer than floats can hold, which it says
        if pair is not None:
            if isinstance(made, m.SurveyDesign):
                # The entries of the channel are rounded to floats, which the design's own epsilon and eta are not.
                case.private = float(mpf(10) ** -15 / (truth["eta"] * min(x for x in (*case.p, *case.q) if x > 0)))
            room = max(1e-9, case.private) if isinstance(made, (m.SurveyDesign, m.FinitePair, m.Staircase)) else 1e-11
            for what, found, expected in (
                ("epsilon", local_dp(pair), truth["epsilon"]),
                ("total variation", total_variation(pair), truth["eta"]),
                ("hockey stick", hockey_stick(pair, 0.3), truth["stick"](0.3)),
                ("hockey stick below 0", hockey_stick(pair, -0.3), truth["stick"](-0.3)),
                ("Rényi 2.5", renyi(pair, 2.5), truth["renyi"](2.5)),
                ("Rényi 40", renyi(pair, 40.0), truth["renyi"](40.0)),
            ):
                if what == "hockey stick" and expected < mpf(10) ** -8:
                    continue  # a difference of near numbers, which the entries' rounding decides
                check(what, found.value, found.lower, expected, room)
    return wrong


@pytest.mark.parametrize("family", FAMILIES)
def test_six_parameters_of_each_family_agree(family):
    """Six draws of each family in the first tier."""
    with mp.workdps(60):
        cases = [FAMILIES[family](np.random.default_rng([7, n])) for n in range(6)]
    assert [text for case in cases for text in compared(case)] == []


@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_three_hundred_parameters_of_each_family_agree(family):
    """Three hundred draws of each family."""
    with mp.workdps(60):
        cases = [FAMILIES[family](np.random.default_rng([8, n])) for n in range(300)]
    assert [text for case in cases for text in compared(case)] == []


def test_the_comparison_notices_a_smaller_guarantee():
    """A law that is one part in a million easier to tell apart than the mechanism's is reported."""
    with mp.workdps(60):
        case = warner(np.random.default_rng([7, 1]))
        case.p = [case.p[0] * (1 + mpf(10) ** -6), 1 - case.p[0] * (1 + mpf(10) ** -6)]
    assert compared(case) != []
