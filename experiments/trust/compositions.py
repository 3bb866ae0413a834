"""Look for understated compositions and false lower ends: adaptive adversaries by brute force, in rational arithmetic.

    python experiments/trust/compositions.py [--cases 5000] [--seed 0] [--out compositions.csv]

Kind 0: lists of small channels, used once each or twice, against every adaptive choice of inputs, in the order given
(for lower ends) and in every order (for values): `compose`, `Ledger` and what they say of total variation, of
(epsilon, delta), pure and Rényi privacy. Kind 1: lists of parameters, whose dominating pairs are enumerated in 60
digits: `compose`, `k_fold`, `largest_count`. Kind 2: random trees of up to four channels with stopping, in high
precision: mCDP in every form, and what it converts to. Rows have zeros, masses down to e^-1000 or come as near as an
ulp. Finished blocks of 100 are kept in the table, so an interrupted run goes on where it stopped. Ends with exit code 1
if anything is wrong.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

import adaptive_trees as trees

from ldpopt.composition import Ledger, compose, compose_mcdp, k_fold, largest_count
from ldpopt.privacy import MCDP, ApproximateDP, mcdp
from ldpopt.privacy.conversions import mcdp_to_zcdp

BLOCK = 100
Rows = list[list[Fraction]]


def exponential(epsilon: float) -> tuple[Fraction, Fraction]:
    """Rational numbers below and above e^epsilon."""
    with mpmath.workdps(60):
        value = mpmath.exp(mpmath.mpf(epsilon))
        return rational(value * (1 - mpmath.mpf(10) ** -55)), rational(value * (1 + mpmath.mpf(10) ** -55))


def rational(value: mpmath.mpf) -> Fraction:
    """A high-precision number as the fraction that it is."""
    sign, mantissa, exponent, _ = value._mpf_
    return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def channel(rng: np.random.Generator, k: int, m: int) -> np.ndarray:
    """A channel of one of several hostile families."""
    family = int(rng.integers(7))
    q = rng.dirichlet(np.full(m, float(rng.choice([0.2, 1.0, 5.0]))), k)
    if family == 1:
        q = np.abs(q[:1] + 10.0 ** -float(rng.integers(3, 16)) * rng.normal(size=(k, m)))
    elif family == 2:
        q = np.exp(-rng.exponential(float(rng.choice([1.0, 20.0, 200.0])), (k, m)))
    elif family == 3:
        q = q * (rng.random((k, m)) < 0.7) + 1e-3 * (np.arange(m) == 0)
    elif family == 4:
        q = rng.integers(0, 4, (k, m)) + (np.arange(m) == 0)
    elif family == 5:
        kept = float(rng.random())
        q = np.full((k, m), (1 - kept) / m) + kept * np.eye(k, m)
    elif family == 6:
        q = np.repeat(q[:1], k, axis=0)
        q[:, 0] = np.nextafter(q[:, 0], rng.choice([0.0, 1.0], k))
    q[:, 0] += q.sum(axis=1) == 0
    return np.asarray(q / q.sum(axis=1, keepdims=True), dtype=float)


def exact(q: np.ndarray) -> Rows:
    """The laws proportional to the rows."""
    rows = [[Fraction(float(entry)) for entry in row] for row in q]
    return [[entry / sum(row) for entry in row] for row in rows]


def point(rng: np.random.Generator) -> float:
    """An epsilon at which curves are read."""
    return float(rng.choice([0.0, rng.exponential(0.3), rng.exponential(2.0), rng.exponential(20.0), 1e-9]))


def check_channels(rng: np.random.Generator) -> Iterator[str]:
    """Kind 0."""
    few = rng.random() < 0.5
    made = [
        channel(rng, int(rng.integers(2, 4)) if few else 2, int(rng.integers(2, 4))) for _ in range(2 if few else 3)
    ]
    if rng.random() < 0.4:
        made = [made[0]] * len(made)
    rows = [exact(q) for q in made]
    composed, ledger = compose(made), Ledger()
    for q in made:
        ledger = ledger.add(q)
    orders = [rows] if all(q is made[0] for q in made) else [list(order) for order in itertools.permutations(rows)]

    def most(ratio: Fraction) -> Fraction:
        return max(trees.best_strategy(order, ratio) for order in orders)

    epsilon = point(rng)
    low, high = exponential(epsilon)
    value, first = most(high), trees.best_strategy(rows, low)
    for name, source in (("compose", composed), ("Ledger", ledger)):
        found = source.hockey_stick(epsilon)
        if not Fraction(found.value) >= value:
            yield f"{name} hockey_stick({epsilon}) {found.value} < {float(value)}: {made}"
        if not Fraction(found.lower) <= (first if name == "compose" else max(first, most(low))):
            yield f"{name} hockey_stick({epsilon}) lower {found.lower} > {float(first)}: {made}"
        if found.exact and not found.value - float(value) <= 1e-10 * found.value + 1e-12:
            yield f"{name} hockey_stick({epsilon}) {found.value} exact, {float(value)}: {made}"
    delta = float(rng.choice([0.3, 0.01, 1e-6]))
    found = composed.approximate_dp(delta)
    if math.isfinite(found.value) and not most(exponential(found.value)[1]) <= Fraction(delta):
        yield f"approximate_dp({delta}) {found.value} is exceeded: {made}"
    if 0 < found.lower < math.inf:
        below = exponential(found.lower * (1 - 1e-15))[0]
        if not trees.best_strategy(rows, below) >= Fraction(delta):
            yield f"approximate_dp({delta}) lower {found.lower} is too much: {made}"
    variation = composed.total_variation()
    truth = most(Fraction(1)), trees.best_strategy(rows, Fraction(1))
    if not (Fraction(variation.lower) <= truth[1] and truth[0] <= Fraction(variation.value)):
        yield f"total_variation [{variation.lower}, {variation.value}], {float(truth[0])}: {made}"
    ratios = [max_ratio(q) for q in rows]
    for source in (composed, ledger):
        pure = source.local_dp()
        if math.isinf(pure.value) or None in ratios:
            if math.isfinite(pure.value) or None not in ratios:
                yield f"local_dp {pure.value} where the largest ratios are {ratios}: {made}"
            continue
        largest = math.prod((ratio for ratio in ratios if ratio), start=Fraction(1))
        if not exponential(pure.value)[1] >= largest or not exponential(pure.lower)[0] <= largest:
            yield f"local_dp [{pure.lower}, {pure.value}] against log {precise(largest)}: {made}"
    order = float(rng.choice([1.5, 2.0, 8.0]))
    with mpmath.workdps(80):
        divergence = mpmath.fsum(largest_renyi(q, order) for q in rows)
        slight = mpmath.mpf(10) ** -60
        for source in (composed, ledger):
            found = source.renyi(order)
            if not mpmath.mpf(found.value) >= divergence - slight:
                yield f"renyi({order}) {found.value} < {divergence}: {made}"
            if not mpmath.mpf(found.lower) <= divergence + slight:
                yield f"renyi({order}) lower {found.lower} > {divergence}: {made}"


def max_ratio(rows: Rows) -> Fraction | None:
    """The largest ratio of two entries of a column, None for an infinite one."""
    best = Fraction(1)
    for a, b in itertools.permutations(rows, 2):
        for p, q in zip(a, b, strict=True):
            if p and not q:
                return None
            best = max(best, p / q) if p else best
    return best


def largest_renyi(rows: Rows, order: float) -> mpmath.mpf:
    """The largest Rényi divergence of two rows, in high precision."""
    with mpmath.workdps(80):
        best = mpmath.mpf(0)
        for a, b in itertools.permutations(rows, 2):
            if any(p and not q for p, q in zip(a, b, strict=True)):
                return mpmath.inf
            best = max(best, renyi([precise(p) for p in a], [precise(q) for q in b], order))
        return best


def renyi(p: list[mpmath.mpf], q: list[mpmath.mpf], order: float) -> mpmath.mpf:
    """The Rényi divergence of p from q."""
    a = mpmath.mpf(order)
    total = mpmath.fsum(one**a * other ** (1 - a) for one, other in zip(p, q, strict=True) if one)
    return mpmath.log(total) / (a - 1)


def precise(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def check_parameters(rng: np.random.Generator) -> Iterator[str]:
    """Kind 1."""

    def drawn() -> tuple[float, float, float | None]:
        epsilon = float(rng.choice([rng.exponential(1.0), 0.5, 1e-8, 10.0, 1e-3, 0.1]))
        delta = float(rng.choice([0.0, 0.0, 1e-6, 0.1, 1e-30]))
        eta = float(rng.choice([1.0, 0.5, 1e-3, 1e-9])) * (1 - delta) * math.tanh(epsilon / 2) + delta
        return epsilon, delta, None if rng.random() < 0.4 else min(eta, 1.0)

    same = rng.random() < 0.5
    listed = [drawn()] * int(rng.integers(1, 6)) if same else [drawn() for _ in range(int(rng.integers(1, 4)))]
    composed, count = compose(listed), len(listed)
    readings: list[tuple[str, Callable[[float], float], Callable[[float], float]]] = [
        ("compose", composed.delta_at, composed.epsilon_at)
    ]
    if same:
        folded = k_fold(*listed[0], count)
        readings.append(("k_fold", folded.delta_at, folded.epsilon_at))
    with mpmath.workdps(60):
        law = enumerated(listed)
        epsilon = float(rng.choice([point(rng), 0.0, listed[0][0], math.fsum(one[0] for one in listed)]))
        truth = curve(law, mpmath.mpf(epsilon))
        slight = mpmath.mpf(10) ** -50
        for name, delta_at, epsilon_at in readings:
            if not mpmath.mpf(delta_at(epsilon)) >= truth * (1 - slight):
                yield f"{name} delta_at({epsilon}) {delta_at(epsilon)} < {truth}: {listed}"
            delta = float(rng.choice([0.1, 1e-6, 1e-12, listed[0][1]]))
            found = epsilon_at(delta)
            if math.isfinite(found):
                if not curve(law, mpmath.mpf(found)) <= mpmath.mpf(delta) * (1 + slight):
                    yield f"{name} epsilon_at({delta}) {found} is exceeded: {listed}"
            elif not curve(law, mpmath.inf) > delta:
                yield f"{name} epsilon_at({delta}) inf, {curve(law, mpmath.inf)}: {listed}"
        found = composed.hockey_stick(epsilon)
        if not mpmath.mpf(found.lower) <= truth * (1 + slight):
            yield f"compose hockey_stick({epsilon}) lower {found.lower} > {truth}: {listed}"
        if same:
            relative = mpmath.mpf(folded.relative_error)
            for j, value in enumerate(folded.deltas.tolist()):
                exact_value = curve(law, j * mpmath.mpf(folded.epsilon))
                if value > 1e-290 and not value <= exact_value * (1 + relative):
                    yield f"k_fold deltas[{j}] {value} beyond relative_error of {exact_value}: {listed}"
    target = ApproximateDP(float(rng.choice([1.0, 0.3, 5.0])), float(rng.choice([0.0, 1e-6])))
    fits = largest_count(listed[0], target, 8)
    if fits:
        with mpmath.workdps(60):
            if not curve(enumerated([listed[0]] * fits), mpmath.mpf(target.epsilon)) <= mpmath.mpf(target.delta) * (
                1 + slight
            ):
                yield f"largest_count {fits} exceeds {target}: {listed[0]}"


def enumerated(listed: list[tuple[float, float, float | None]]) -> tuple[dict[tuple[int, ...], mpmath.mpf], Any, Any]:
    """(mass of each tuple of signs, the epsilons, the mass of finite losses) of the dominating pairs' product."""
    law = {(): mpmath.mpf(1)}
    epsilons, finite = [], mpmath.mpf(1)
    for epsilon, delta, eta in listed:
        e, d = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
        kept = mpmath.mpf(1)
        if eta is not None:
            d = min(d, mpmath.mpf(eta))
            implied = (1 - d) * mpmath.tanh(mpmath.mpf(epsilon) / 2)
            kept = min(mpmath.mpf(1), (mpmath.mpf(eta) - d) / implied) if implied else mpmath.mpf(0)
        chances = ((1, kept * e / (1 + e)), (0, 1 - kept), (-1, kept / (1 + e)))
        law = {(*signs, s): mass * c for signs, mass in law.items() for s, c in chances if c}
        epsilons.append(mpmath.mpf(epsilon))
        finite *= 1 - d
    return law, epsilons, finite


def curve(made: tuple[dict[tuple[int, ...], mpmath.mpf], Any, Any], epsilon: mpmath.mpf) -> mpmath.mpf:
    """delta at epsilon."""
    law, epsilons, finite = made
    total = mpmath.mpf(0)
    for signs, mass in law.items():
        loss = mpmath.fsum(s * e for s, e in zip(signs, epsilons, strict=True))
        if loss > epsilon:
            total -= mass * mpmath.expm1(epsilon - loss)
    return (1 - finite) + finite * total


def check_trees(rng: np.random.Generator) -> Iterator[str]:
    """Kind 2."""
    made = []
    for _ in range(int(rng.integers(2, 5))):
        q = np.maximum(channel(rng, int(rng.integers(2, 4)), int(rng.integers(2, 4))), 1e-12)
        made.append(q / q.sum(axis=1, keepdims=True))
    if rng.random() < 0.3:
        made = [made[0]] * len(made)
    items = [MCDP(float(found.mu), float(found.tau)) for found in map(mcdp, made)]
    rows = [exact(q) for q in made]
    p, q = trees.joint(rows, trees.random_choice(rng, [len(one) for one in made]))
    ledger = Ledger()
    for one in made:
        ledger = ledger.add(one)
    fixed = compose_mcdp(items, adaptive=False)
    converted = mcdp_to_zcdp(fixed)
    with mpmath.workdps(60):
        one, other = [precise(x) for x in p], [precise(x) for x in q]
        mu, tau = concentration(one, other)
        for name, claim in (("compose_mcdp", compose_mcdp(items)), ("Ledger.mcdp", ledger.mcdp())):
            if not (mu <= mpmath.mpf(claim.mu) and tau <= mpmath.mpf(claim.tau)):
                yield f"{name} {claim}, tree ({mu}, {tau}): {made}"
        for order in (1.2, 2.0, 6.0):
            divergence = renyi(one, other, order) - mpmath.mpf(10) ** -50
            if not divergence <= mpmath.mpf(converted.xi) + mpmath.mpf(converted.rho) * order:
                yield f"zCDP of the fixed claim at {order}: {divergence}: {made}"
            if not divergence <= mpmath.mpf(ledger.renyi(order).value):
                yield f"Ledger.renyi({order}) {ledger.renyi(order).value} < {divergence}: {made}"
    for epsilon in (0.0, point(rng)):
        reached = trees.hockey_stick(p, q, exponential(epsilon)[1])
        if not Fraction(ledger.hockey_stick(epsilon).value) >= reached:
            yield f"Ledger.hockey_stick({epsilon}) {ledger.hockey_stick(epsilon).value} < {float(reached)}: {made}"


def concentration(p: list[mpmath.mpf], q: list[mpmath.mpf]) -> tuple[mpmath.mpf, mpmath.mpf]:
    """(the mean of the loss, the largest sqrt(2 K(s))/|s| on a grid of s), the worse of both directions."""
    mu = tau = mpmath.mpf(0)
    for a, b in ((p, q), (q, p)):
        loss = [mpmath.log(x / y) for x, y in zip(a, b, strict=True)]
        mean = mpmath.fsum(x * z for x, z in zip(a, loss, strict=True))
        mu = max(mu, mean)
        for s in (-30.0, -6.0, -2.0, -0.5, -0.1, 0.1, 0.5, 2.0, 6.0, 30.0):
            moment = mpmath.fsum(x * mpmath.exp(s * (z - mean)) for x, z in zip(a, loss, strict=True))
            tau = max(tau, mpmath.sqrt(2 * mpmath.log(max(moment, mpmath.mpf(1)))) / abs(s))
    return mu, tau


CHECKS = (check_channels, check_parameters, check_trees)


def block(seed: int, number: int) -> tuple[list[str], int]:
    """What is wrong in one block of `BLOCK` compositions, and how many were checked."""
    found = []
    for case in range(number * BLOCK, (number + 1) * BLOCK):
        kind = case % len(CHECKS)
        wrong = CHECKS[kind](np.random.default_rng([seed, case, kind]))
        found += [f"seed {seed} case {case}: {text}" for text in wrong]
    return found, BLOCK


def main() -> int:
    """Run what the table does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("compositions.csv"))
    given = parser.parse_args()
    done: dict[tuple[int, int], int] = {}
    if given.out.exists():
        with given.out.open(newline="", encoding="utf-8") as file:
            done = {(int(row["seed"]), int(row["block"])): int(row["wrong"]) for row in csv.DictReader(file)}
    with given.out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(["seed", "block", "cases", "wrong"])
        for number in range(-(-given.cases // BLOCK)):
            if (given.seed, number) in done:
                continue
            found, cases = block(given.seed, number)
            for text in found:
                print(text, flush=True)
            done[given.seed, number] = len(found)
            writer.writerow([given.seed, number, cases, len(found)])
            file.flush()
    wrong = sum(done.values())
    print(f"{len(done) * BLOCK} compositions: {wrong} understated or with a false lower end")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
