"""Which booklets are used, and of how many respondents: a linear program, and fractions near its shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ldpopt.errors import InvalidInput, SolverError
from ldpopt.numbers.tolerances import BOOKLETS
from ldpopt_survey.plan.booklet import Booklet, Shares
from ldpopt_survey.plan.planned_question import MAX_DENOMINATOR


def shared_out(booklets: Sequence[Booklet]) -> tuple[list[tuple[Booklet, float]], float]:
    """The booklets that are used, each with its respondents, and the sum of these: a linear program."""
    from scipy.optimize import linprog

    keys = list(dict.fromkeys(key for booklet in booklets for key in booklet.served))
    rates = np.array([[booklet.served.get(key, 0.0) for booklet in booklets] for key in keys])
    if not (rates.max(axis=1, initial=0.0) > 0).all():
        lacking = keys[int(np.argmin(rates.max(axis=1)))]
        raise InvalidInput(f"budget: expected enough to estimate {' and '.join(lacking[:-1])}, got too little")
    scale = 1 / rates.max(axis=1)
    solution = linprog(np.ones(len(booklets)), A_ub=-rates * scale[:, None], b_ub=-scale / scale.max(), method="highs")
    if solution.status != 0:
        raise SolverError(f"booklets: {solution.message}")
    people = solution.x * scale.max()
    # The solver leaves a trace of booklets that it does not need; together these serve no target by BOOKLETS of it.
    least = BOOKLETS / len(booklets)
    shares = zip(booklets, people, strict=True)
    used = [(booklet, n) for booklet, n in shares if n * max(booklet.served.values()) > least]
    return used, float(sum(n for _, n in used))


def rational_shares(used: Sequence[tuple[Booklet, float]], people: float) -> Shares:
    """The booklets with fractions of a small denominator near their shares of the respondents."""
    exact = np.array([n for _, n in used]) / people
    best: tuple[float, Shares] = (math.inf, ())
    for denominator in [*range(len(used), 1000), 10**4, MAX_DENOMINATOR]:
        whole = np.maximum(np.floor(exact * denominator + 1e-9), 1).astype(int)
        short = denominator - int(whole.sum())
        if short < 0 or short > len(used):
            continue
        order = np.argsort(whole - exact * denominator, kind="stable")
        whole[order[:short]] += 1
        shares = tuple((booklet, Fraction(int(n), denominator)) for (booklet, _), n in zip(used, whole, strict=True))
        needed = respondents_of(shares)
        if needed < best[0] * (1 - BOOKLETS):
            best = needed, shares
        if best[0] <= (1 + BOOKLETS) * people:
            break
    return best[1]


def respondents_of(shares: Shares) -> float:
    """The respondents, as a number, who meet every target with booklets in these shares."""
    rates: dict[tuple[str, ...], float] = {}
    for booklet, share in shares:
        for key, rate in booklet.served.items():
            rates[key] = rates.get(key, 0.0) + float(share) * rate
    return max(1 / rate for rate in rates.values())
