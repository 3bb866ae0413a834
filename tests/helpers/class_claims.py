"""Mechanisms with parameters, noise, its calibration, subsampling: what is understated for random parameters.

The truth is of the parameters as they are, in rationals or in high precision, by formulas that are written out here.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
from mpmath import mpf

from ldpopt.errors import InvalidInput, LdpoptError
from ldpopt.mechanisms import (
    Crosswise,
    ForcedResponse,
    Gaussian,
    HadamardResponse,
    Kuk,
    LaplacePair,
    UnaryEncoding,
    UnrelatedQuestion,
    Warner,
    hadamard_response,
    optimized_unary_encoding,
    unary_encoding,
)
from ldpopt.mechanisms.noise import GaussianPair
from ldpopt.privacy import FinitePair, local_dp, total_variation
from ldpopt.privacy.guarantee import Guarantee

Wrong = list[str]


def check(rng: np.random.Generator) -> Wrong:
    """Violations found for one random set of parameters, empty if all claims hold."""
    wrong: Wrong = []
    with mpmath.workdps(90):
        for part in (_designs, _kuk, _oracles, _gaussian, _calibrated, _laplace, _subsampled):
            try:
                part(rng, wrong)
            except (LdpoptError, ArithmeticError, ValueError) as error:  # valid parameters must be measured
                wrong.append(f"{part.__name__}: {type(error).__name__}: {error}")
    return wrong


def _draw(rng: np.random.Generator, low: float, high: float) -> float:
    return float(10.0 ** rng.uniform(low, high))


def _share(rng: np.random.Generator) -> float:
    share = _draw(rng, -25 if rng.random() < 0.3 else -3, -0.01)
    return share if rng.random() < 0.5 else min(max(1 - share, 0.5), 1 - 2.0**-53)


def _least(name: str, value: float, exact: mpf, wrong: Wrong, tight: float = 1e-9) -> None:
    if not mpf(value) >= exact:
        wrong.append(f"{name}: {value!r} below {mpmath.nstr(exact, 25)}")
    elif not (math.isinf(value) and mpmath.isinf(exact)) and not value <= exact * (1 + mpf(tight)) + mpf(10) ** -300:
        wrong.append(f"{name}: {value!r} far above {mpmath.nstr(exact, 25)}")


def _inside(name: str, found: Guarantee, exact: mpf, wrong: Wrong) -> None:
    if not mpf(found.lower) <= exact <= mpf(found.value):
        wrong.append(f"{name}: {mpmath.nstr(exact, 25)} outside [{found.lower!r}, {found.value!r}]")


def _log(ratio: Fraction) -> mpf:
    return mpmath.log(mpf(ratio.numerator)) - mpmath.log(mpf(ratio.denominator))


def _binary(name: str, made: object, own: Fraction, other: Fraction, wrong: Wrong) -> None:
    """Epsilon and eta of a design whose first report has these probabilities."""
    if 0 < own < 1 and 0 < other < 1:
        exact = max(abs(_log(own / other)), abs(_log((1 - own) / (1 - other))))
    else:
        exact = mpf(0) if own == other else mpmath.inf
    _least(f"{name}.epsilon", made.epsilon, exact, wrong)
    distance = abs(own - other)
    _least(f"{name}.eta", made.eta, mpf(distance.numerator) / distance.denominator, wrong)


def _designs(rng: np.random.Generator, wrong: Wrong) -> None:
    p = _share(rng)
    for kind in (Warner, Crosswise):
        if p != 0.5:
            _binary(f"{kind.__name__}({p!r})", kind(p), Fraction(p), 1 - Fraction(p), wrong)
    yes, no = (float(x) for x in rng.dirichlet([0.3, 0.3, 0.3])[:2])
    if Fraction(yes) + Fraction(no) < 1:
        _binary(f"ForcedResponse({yes!r}, {no!r})", ForcedResponse(yes, no), 1 - Fraction(no), Fraction(yes), wrong)
    truthful, share = _share(rng), _share(rng)
    made, rest = UnrelatedQuestion(truthful, share), 1 - Fraction(truthful)
    _binary(repr(made), made, 1 - rest * (1 - Fraction(share)), rest * Fraction(share), wrong)
    epsilon = min(max(_draw(rng, -9, 2.5), 1e-9), 300.0)
    for design in (Warner.for_epsilon(epsilon), ForcedResponse.for_epsilon(epsilon, 0.3),
                   UnrelatedQuestion.for_epsilon(epsilon, 0.4), Kuk.for_epsilon(epsilon, 3)):  # fmt: skip
        if not (design.epsilon <= epsilon and float(local_dp(design)) <= epsilon):
            wrong.append(f"{design!r}: epsilon {design.epsilon!r} above {epsilon!r}")


def _kuk(rng: np.random.Generator, wrong: Wrong) -> None:
    first, second, draws = _share(rng), _share(rng), int(10.0 ** rng.uniform(0, 2.3))
    if rng.random() < 0.5:
        second = first * float(rng.uniform(0.8, 1.2))
    if not (0 < first < 1 and 0 < second < 1 and first != second):
        return
    made, a, b = Kuk(first, second, draws), Fraction(first), Fraction(second)
    exact = draws * max(abs(_log(a / b)), abs(_log((1 - a) / (1 - b))))
    _least(f"{made!r}.epsilon", made.epsilon, exact, wrong)
    laws = [
        [math.comb(draws, r) * mpf(x) ** r * (1 - mpf(x)) ** (draws - r) for r in range(draws + 1)]
        for x in (first, second)
    ]
    eta = mpmath.fsum(max(p - q, mpf(0)) for p, q in zip(*laws, strict=True))
    _least(f"{made!r}.eta", made.eta, min(eta, mpf(1)), wrong, 1e-7)
    try:
        measured = local_dp(made)
    except InvalidInput:
        return
    if not abs(mpf(measured.value) - exact) <= mpf(10) ** -12 * (1 + exact):
        wrong.append(f"{made!r}: channel measures {measured.value!r}, the design {mpmath.nstr(exact, 20)}")


def _oracles(rng: np.random.Generator, wrong: Wrong) -> None:
    k, epsilon = int(rng.integers(2, 9)), min(max(_draw(rng, -9, 2.8), 1e-9), 600.0)
    for made in (unary_encoding(k, epsilon), optimized_unary_encoding(k, epsilon)):
        own, other = Fraction(made.own), Fraction(made.other)
        true = _log(own * (1 - other) / (other * (1 - own)))
        if not mpf(made.epsilon) >= true:
            wrong.append(f"{made!r}: epsilon below {mpmath.nstr(true, 20)}")
    own, other = sorted((_share(rng), _share(rng)), reverse=True)
    claimed = min(max(_draw(rng, -3, 1.5), 1e-9), 600.0)
    try:
        made = UnaryEncoding(k, claimed, own, other)
    except InvalidInput:
        made = None
    if made is not None:
        a, b = Fraction(own), Fraction(other)
        if not mpf(claimed) >= _log(a * (1 - b) / (b * (1 - a))):
            wrong.append(f"{made!r} is believed")
    blocks, width = 1 << int(rng.integers(0, 4)), 1 << int(rng.integers(1, 5))
    for oracle in (hadamard_response(k, epsilon), *_response(k, epsilon, blocks, width)):
        channel = oracle.channel()
        if not np.abs(channel.matrix.sum(axis=1) - 1).max() <= 1e-12:
            wrong.append(f"{oracle!r}: rows do not sum to one")
        measured, distance = local_dp(channel), total_variation(channel)
        if not measured.value <= oracle.epsilon:
            wrong.append(f"{oracle!r}: its channel measures {measured.value!r}")
        if not distance.lower <= oracle.eta <= distance.value * (1 + 1e-5) + 1e-300:
            wrong.append(f"{oracle!r}: eta {oracle.eta!r}, its channel [{distance.lower!r}, {distance.value!r}]")


def _response(k: int, epsilon: float, blocks: int, width: int) -> list[HadamardResponse]:
    try:
        return [HadamardResponse(k, epsilon, blocks, width)]
    except InvalidInput:
        return []


def _normal(x: mpf) -> mpf:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _gaussian_delta(mu: mpf, epsilon: mpf) -> mpf:
    return _normal(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * _normal(-mu / 2 - epsilon / mu)


def _gaussian(rng: np.random.Generator, wrong: Wrong) -> None:
    mu = _draw(rng, -6, 1.5)
    pair = GaussianPair(mu)
    with mpmath.workdps(400):
        for epsilon in (0.0, mu * float(rng.uniform(0, 10)), _draw(rng, -6, 2.5), -mu * float(rng.uniform(0, 3))):
            exact = _gaussian_delta(mpf(mu), mpf(epsilon))
            _inside(f"GaussianPair({mu!r}).hockey_stick({epsilon!r})", pair.hockey_stick(epsilon), exact, wrong)
        delta = _draw(rng, -300, 0) if rng.random() < 0.5 else _draw(rng, -12, 0)
        found = pair.approximate_dp(delta)
        name = f"GaussianPair({mu!r}).approximate_dp({delta!r})"
        if not _gaussian_delta(mpf(mu), mpf(found.value)) <= mpf(delta):
            wrong.append(f"{name}: {found.value!r} is too low")
        if found.lower > 0 and not _gaussian_delta(mpf(mu), mpf(found.lower)) >= mpf(delta):
            wrong.append(f"{name}: lower {found.lower!r} is above the value")
        if not found.value - found.lower <= 1e-6 * found.value:
            wrong.append(f"{name}: wide, [{found.lower!r}, {found.value!r}]")


def _calibrated(rng: np.random.Generator, wrong: Wrong) -> None:
    epsilon, sensitivity = _draw(rng, -6, 2), _draw(rng, -5, 5)
    delta = min(_draw(rng, -250, 0) if rng.random() < 0.3 else _draw(rng, -12, -0.01), 0.999)
    made = Gaussian.for_approximate_dp(epsilon, delta, sensitivity)
    with mpmath.workdps(400):
        mu = mpf(sensitivity) / mpf(made.sigma)
        if not _gaussian_delta(mu, mpf(epsilon)) <= mpf(delta):
            wrong.append(f"{made!r} is not ({epsilon!r}, {delta!r})-DP")
        if not _gaussian_delta(mu * (1 + mpf(10) ** -6), mpf(epsilon)) > mpf(delta):
            wrong.append(f"{made!r} is noisier than ({epsilon!r}, {delta!r})-DP needs")


def _laplace(rng: np.random.Generator, wrong: Wrong) -> None:
    epsilon = min(max(_draw(rng, -9, 2.5), 1e-9), 300.0)
    pair, at = LaplacePair(epsilon), epsilon * float(rng.uniform(0, 1.1))
    exact = max(mpf(0), -mpmath.expm1((mpf(at) - mpf(epsilon)) / 2))
    _inside(f"LaplacePair({epsilon!r}).hockey_stick({at!r})", pair.hockey_stick(at), exact, wrong)
    delta = _draw(rng, -12, 0)
    truth = max(mpf(0), mpf(epsilon) + 2 * mpmath.log1p(-mpf(delta))) if delta < 1 else mpf(0)
    _inside(f"LaplacePair({epsilon!r}).approximate_dp({delta!r})", pair.approximate_dp(delta), truth, wrong)


def _subsampled(rng: np.random.Generator, wrong: Wrong) -> None:
    rate, at = min(_draw(rng, -8, 0), 1.0), _draw(rng, -6, 1)
    p, q = rng.dirichlet(np.full(4, 0.7), 2)
    if rng.random() < 0.3:
        p = q * (1 + _draw(rng, -12, -1) * rng.random(4))
        p /= p.sum()
    pair = FinitePair(p, q)
    made, name = pair.subsampled(rate), f"FinitePair({p.tolist()}, {q.tolist()}).subsampled({rate!r})"
    left, right = ([mpf(float(x)) for x in law] for law in (pair.p, pair.q))
    left, right = ([x / mpmath.fsum(law) for x in law] for law in (left, right))
    mixed = [mpf(rate) * x + (1 - mpf(rate)) * y for x, y in zip(left, right, strict=True)]
    for epsilon in (0.0, at * rate, at):
        e = mpmath.exp(mpf(epsilon))
        for one, two in ((mixed, right), (right, mixed)):
            exact = mpmath.fsum(max(x - e * y, mpf(0)) for x, y in zip(one, two, strict=True))
            if not mpf(made.hockey_stick(epsilon).value) >= exact:
                wrong.append(f"{name}.hockey_stick({epsilon!r}): below {mpmath.nstr(exact, 25)}")
    exact = max(abs(mpmath.log(x / y)) for x, y in zip(mixed, right, strict=True))
    _least(f"{name}.local_dp()", made.local_dp().value, exact, wrong, math.inf if exact < 1e-6 else 1e-6)
    if rng.random() < 0.1:
        _subsampled_gaussian(float(rng.uniform(0.2, 3)), max(rate, 1e-4), float(rng.uniform(0, 1)), wrong)


def _subsampled_gaussian(mu: float, rate: float, epsilon: float, wrong: Wrong) -> None:
    """r N(mu, 1) + (1 - r) N(0, 1) against N(0, 1): each hockey stick is a Gaussian tail beyond one threshold."""
    r, m, e = mpf(rate), mpf(mu), mpmath.exp(mpf(epsilon))
    cut = (mpmath.log((e - 1 + r) / r) + m**2 / 2) / m  # where the mixture's ratio is e^epsilon
    exact = r * _normal(m - cut) + (1 - r - e) * _normal(-cut)
    if (1 / e - 1 + r) > 0:  # the other direction: N(0, 1) against the mixture
        low = (mpmath.log((1 / e - 1 + r) / r) + m**2 / 2) / m
        exact = max(exact, _normal(low) * (1 - e * (1 - r)) - e * r * _normal(low - m))
    found = GaussianPair(mu).subsampled(rate).hockey_stick(epsilon)
    if not (mpf(found.value) * (1 + mpf(10) ** -9) + mpf(10) ** -14 >= exact >= mpf(found.lower) * (1 - mpf(10) ** -9)
            - mpf(10) ** -14):  # fmt: skip
        wrong.append(f"GaussianPair({mu!r}).subsampled({rate!r}): [{found.lower!r}, {found.value!r}] for {exact}")
