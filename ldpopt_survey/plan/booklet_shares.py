"""Choose booklets and their fractions of the respondents: a linear program, then rational numbers near its solution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import BOOKLET_RTOL
from ldpopt_survey.plan.booklet import Booklet, BookletShares
from ldpopt_survey.plan.planned_question import MAX_DENOMINATOR

MIN_SHARE = 1e-3
"""Booklets of smaller shares are left out where this costs at most `BOOKLET_RTOL` of the respondents."""


def solve_shares(booklets: Sequence[Booklet]) -> tuple[list[tuple[Booklet, float]], float]:
    """Solve the linear program: the booklets, the respondents of each, and their sum, by `trusted_rates`."""
    from scipy.optimize import linprog

    keys = list(dict.fromkeys(key for booklet in booklets for key in booklet.trusted_rates))
    rates = np.array([[booklet.trusted_rates.get(key, 0.0) for booklet in booklets] for key in keys])
    if not (rates.max(axis=1, initial=0.0) > 0).all():
        unestimated_key = keys[int(np.argmin(rates.max(axis=1)))]
        raise InvalidInput(f"budget: expected enough to estimate {' and '.join(unestimated_key[:-1])}, got too little")
    # The tolerances of the solver are absolute, so each requirement is 1 and each booklet has a unit of its own: one
    # question may need a billion times the respondents of another.
    lowest = np.min(rates, axis=0, where=rates > 0, initial=math.inf)
    units = 1 / np.sqrt(
        np.where(np.isfinite(lowest), lowest, 1.0) * np.where(lowest < math.inf, rates.max(axis=0), 1.0)
    )
    solution = linprog(units / units.max(), A_ub=-rates * units, b_ub=-np.ones(len(keys)), method="highs")
    if solution.status != 0:
        raise SolverError(f"booklets: {solution.message}")
    respondents = solution.x * units
    # The solver leaves a trace of booklets that it does not need; together these serve no target by BOOKLET_RTOL of it.
    min_contribution = BOOKLET_RTOL / len(booklets)
    shares = zip(booklets, respondents, strict=True)
    chosen_booklets = [
        (booklet, n) for booklet, n in shares if n * max(booklet.trusted_rates.values()) > min_contribution
    ]
    total = float(sum(n for _, n in chosen_booklets))
    many = [(booklet, n) for booklet, n in chosen_booklets if n > MIN_SHARE * total]
    if len(many) == len(chosen_booklets) or len({key for booklet, _ in many for key in booklet.rates}) < len(keys):
        return chosen_booklets, total
    total_of_many = sum(n for _, n in many)
    fractions = [(booklet, n / total_of_many) for booklet, n in many]
    if (required := respondents_for_shares(fractions, trusted=True)) > (1 + BOOKLET_RTOL) * total:
        return chosen_booklets, total
    return [(booklet, fraction * required) for booklet, fraction in fractions], required


def rational_shares(booklets: Sequence[tuple[Booklet, float]], respondents: float) -> BookletShares:
    """Return the booklets with fractions of small denominator near their shares."""
    fractions = np.array([n for _, n in booklets]) / respondents
    best: tuple[float, BookletShares] = (math.inf, ())
    for denominator in [*range(len(booklets), 1000), 10**4, MAX_DENOMINATOR]:
        numerators = np.maximum(np.floor(fractions * denominator + 1e-9), 1).astype(int)
        remainder = denominator - int(numerators.sum())
        if remainder < 0:  # shares below 1/denominator were rounded up, at the cost of the largest
            numerators[numerators.argmax()] += remainder
            remainder = 0
        if numerators.min() < 1 or remainder > len(booklets):
            continue
        order = np.argsort(numerators - fractions * denominator, kind="stable")
        numerators[order[:remainder]] += 1
        shares = tuple(
            (booklet, Fraction(int(n), denominator)) for (booklet, _), n in zip(booklets, numerators, strict=True)
        )
        required = respondents_for_shares(shares, trusted=True)
        if required < best[0] * (1 - BOOKLET_RTOL):
            best = required, shares
        if best[0] <= (1 + BOOKLET_RTOL) * respondents:
            break
    return best[1]


def respondents_for_shares(shares: Sequence[tuple[Booklet, Fraction | float]], trusted: bool = False) -> float:
    """Return the unrounded number of respondents who meet every target with these shares.

    trusted : True by `trusted_rates`.
    """
    rates: dict[tuple[str, ...], float] = {}
    for booklet, share in shares:
        for key, rate in (booklet.trusted_rates if trusted else booklet.rates).items():
            rates[key] = rates.get(key, 0.0) + float(share) * rate
    lowest_rate = min(rates.values(), default=math.inf)
    return 1 / lowest_rate if lowest_rate > 0 else math.inf
