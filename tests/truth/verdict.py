"""What is wrong with a design: a false bound, value or certificate, or a channel that is not private."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

from truth import extreme
from truth.attempts import attempts
from truth.decisions import Against, Estimate, Loss, Sampling
from truth.feasible import Told, violations
from truth.optimum import optimum, rows_of
from truth.utilities import Kept

SLACK = 1e-9
"""For the truth's own accuracy, relative to what is compared."""


@dataclass(frozen=True)
class Posed:
    """A problem in plain numbers."""

    utility: Any
    constraints: tuple[Told, ...]


@dataclass
class Found:
    """What is known of an optimum: some channel attains `lower` (for errors: `upper`), none is beyond the other."""

    lower: mpf = field(default_factory=lambda: -mpmath.inf)
    upper: mpf = field(default_factory=lambda: mpmath.inf)


def caps(constraints: Sequence[Told]) -> tuple[float, float, bool]:
    """(epsilon, eta, exact): pure LDP and total variation that the constraints imply; whether they say no more."""
    epsilon, eta, exact = math.inf, 1.0, True
    for kind, *given in constraints:
        if kind == "local-dp":
            epsilon = min(epsilon, given[0])
        elif kind == "total-variation":
            eta = min(eta, given[0])
        elif kind == "approximate":
            exact = False
            low = math.exp(-given[0])
            eta = min(eta, (1 - low + 2 * given[1] * low) / (1 + low) * (1 + 1e-14))
        elif kind == "renyi":
            exact = False
            eta = min(eta, math.sqrt(given[1] / 2) * (1 + 1e-14))
        elif kind == "zcdp":
            exact = False
            eta = min(eta, math.sqrt(given[0] / 2) * (1 + 1e-14))
        else:
            exact = False
    return epsilon, eta, exact and math.isfinite(epsilon)


def truth(posed: Posed, rng: np.random.Generator, channel: np.ndarray | None, steps: int = 30) -> Found:
    """Bounds on the optimum that do not come from the package; `channel` is where a search may start."""
    utility, found = posed.utility, Found()
    epsilon, eta, exact = caps(posed.constraints)
    starts = [] if channel is None else [channel]
    outputs = None
    if isinstance(utility, Kept):
        _ceiling(found, utility, epsilon, eta)
        if exact:
            found.lower = optimum(utility, epsilon, eta).lower
            return found
        k, digits = utility.size, utility.digits(1e-3)
        starts += _made(extreme.start(utility, posed.constraints))
    else:
        digits = utility.digits() + 20
        if isinstance(utility, Against):
            k = utility.first.shape[1]
            for pair in utility.pairs():
                _ceiling(found, pair, epsilon, eta)
        elif isinstance(utility, Estimate):
            k = len(utility.prior)
            if math.isfinite(epsilon):
                starts += _made(utility.best(epsilon, eta))
            steps = min(steps, 10)
        elif isinstance(utility, Loss):
            k, outputs = utility.loss.shape
            if math.isfinite(epsilon):
                starts += _made(utility.best(epsilon, eta))
        elif isinstance(utility, Sampling):
            k, outputs = utility.distributions.shape
            found.upper = mpf(0)
            starts.append(utility.distributions)
        else:
            raise TypeError(type(utility))
    sign = -1 if isinstance(utility, Estimate) else 1

    def score(q: np.ndarray) -> float:
        with mpmath.workdps(digits):
            value = float(sign * utility.value(rows_of(q)))
        return value if value == value else -math.inf

    if isinstance(utility, Against):
        steps = 0
    with mpmath.workdps(digits):
        for q in attempts(rng, k, posed.constraints, score, outputs, starts, steps):
            value = utility.value(rows_of(q))
            if isinstance(utility, Kept) and not np.ptp(q, axis=0).any():
                value = mpf(0)  # equal rows keep nothing but rounding
            if sign < 0 and utility.criterion != "d" and not value > 0:
                continue  # a variance below zero is the rounding of a singular matrix
            if sign < 0 and value <= found.upper:
                found.upper = value
            elif sign > 0 and value >= found.lower:
                found.lower = value
    return found


def _made(matrix: np.ndarray | None) -> list[np.ndarray]:
    return [] if matrix is None else [matrix]


def _ceiling(found: Found, utility: Kept, epsilon: float, eta: float) -> None:
    """Full disclosure, its contraction by a total-variation cap, and the optimum under pure LDP."""
    with mpmath.workdps(utility.digits()):
        whole = utility.unprivate()
        found.upper = min(found.upper, whole if mpmath.isinf(whole) else whole * mpf(eta))
    if math.isfinite(epsilon) and utility.size <= 7:
        found.upper = min(found.upper, optimum(utility, epsilon, eta).upper)


def faults(
    posed: Posed, design: Any, rng: np.random.Generator, steps: int = 30, found: Found | None = None
) -> list[tuple[str, str]]:
    """(kind, words) of all that is wrong; kinds: bound, value, certified, infeasible, verify. `found` : if known."""
    made: list[tuple[str, str]] = []
    matrix = np.asarray(design.channel.matrix)
    error = isinstance(posed.utility, Estimate)
    bound = float(design.lower_bound if error else design.upper_bound)
    value, slack = float(design.value), SLACK
    made += [("infeasible", text) for text in violations(matrix, posed.constraints)]
    least = [v for v in matrix.ravel().tolist() if v > 0]
    digits = posed.utility.digits(*least) if isinstance(posed.utility, Kept) else posed.utility.digits() + 60
    with mpmath.workdps(digits):
        own = posed.utility.value(rows_of(matrix))
        off = abs(mpf(value) - own) if math.isfinite(value) and mpmath.isfinite(own) else mpf(0)
        if math.isnan(value) or (math.isfinite(value) and mpmath.isinf(own)):
            made.append(("value", f"value {value!r}, the channel's is {mpmath.nstr(own, 12)}"))
        # The least divergence of a set is stated from below by a proof, and so is the truth's: they need not agree.
        loose = 1e-6 if isinstance(posed.utility, Against) else slack
        # What is not certified may be as inexact as floats are beside 1.
        floor = 0.0 if design.certified else 1e-14
        stated_low = isinstance(posed.utility, Against) and not design.certified and value <= own
        if not stated_low and not off <= loose * abs(own) + floor:
            made.append(("value", f"value {value!r}, the channel's is {mpmath.nstr(own, 12)}"))
    found = found or truth(posed, rng, matrix, steps)
    lower, upper = found.lower, found.upper
    digit = mpmath.nstr
    attained = upper if error else lower
    size = slack * abs(attained) if mpmath.isfinite(attained) else mpf(0)
    if "invariant" in {told[0] for told in posed.constraints}:
        # The channel that is found may miss the equation by what the package allows, which is worth something.
        size *= 1 + 1e-3 / min(1.0, caps(posed.constraints)[0])
    logarithm = error and posed.utility.criterion == "d"
    if logarithm:
        size = mpf(slack)
    if math.isnan(bound):
        made.append(("bound", "the bound is nan"))
    if mpmath.isfinite(attained):
        wrong = not bound <= attained + size if error else not bound >= attained - size
        if wrong:
            made.append(("bound", f"bound {bound!r}, but a feasible channel has {digit(attained, 15)}"))
    if not error and mpmath.isfinite(upper) and not value <= upper + slack * abs(upper) + floor:
        made.append(("value", f"value {value!r}, but no channel exceeds {digit(upper, 15)}"))
    if design.certified:
        made += _certified(design, value, bound, attained, error, logarithm)
    return made


def _certified(
    design: Any, value: float, bound: float, attained: mpf, error: bool, logarithm: bool
) -> list[tuple[str, str]]:
    made = []
    tolerance = float(design.tolerance)
    unit = 1.0 if logarithm else max(abs(value), abs(bound)) if math.isfinite(bound) else 0.0
    gap = value - bound if error else bound - value
    if not (math.isfinite(bound) and math.isfinite(value)):
        made.append(("certified", f"certified with value {value!r} and bound {bound!r}"))
    elif not -SLACK * unit <= gap <= tolerance * unit * (1 + 1e-9):
        made.append(("certified", f"certified with value {value!r} and bound {bound!r}: gap beyond {tolerance:g}"))
    if mpmath.isfinite(attained) and math.isfinite(value):
        lost = mpf(value) - attained if error else attained - mpf(value)
        allowed = (tolerance * (1 + 1e-9) + SLACK) * (1 if logarithm else max(abs(attained), abs(value)))
        if not lost <= allowed:
            made.append(("certified", f"certified value {value!r}, a feasible channel has {mpmath.nstr(attained, 15)}"))
    try:
        if not (found := design.verify()).proved:
            made.append(("verify", f"verify() of a certified design is {found.outcome}: {found.reasons[:2]}"))
    except Exception as raised:
        made.append(("verify", f"verify() of a certified design raises {type(raised).__name__}: {raised}"))
    return made
