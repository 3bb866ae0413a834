"""From a plan and a number of respondents to what all reports guarantee once a shuffler has mixed them [BBGN]."""

from __future__ import annotations

import math
from fractions import Fraction

from ldpopt.composition import shuffled
from ldpopt.distribution import positive_integer, unit_interval
from ldpopt.errors import Phrase, invalid
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import down, float_up
from ldpopt.survey.plan.plan import Plan


def after_shuffling(plan: Plan, respondents: int, delta: float = 1e-6) -> Guarantee:
    """What a plan guarantees if a shuffler hides which of at least so many people sent which report.

    The reports about each question are shuffled apart, and the questions' guarantees add up [KOV15]. Which booklet a
    person was asked is taken as known: their report hides among those of the same booklet, for which half of delta
    allows that few were asked it. epsilon in nats.

    Raises `InvalidInput` for plans whose reports a shuffler does not make alike: with public columns, with respondents
    by name, or with answers that something else tells.
    """
    told = {
        "carried columns": bool(plan.carry),
        "a respondent column": plan.respondent is not None,
        "answers that something else tells": bool(plan.revealed or plan.seen),
    }
    for what, there in told.items():
        if there:
            raise invalid("shuffled", "a plan whose reports say nothing but the answers", Phrase(f"one with {what}"))
    delta, people = unit_interval(delta, "delta"), positive_integer(respondents, "respondents")
    parts = len(plan.everyone) + bool(plan.booklets)
    each = math.nextafter(delta / parts, 0.0) if parts > 1 else delta
    values = [shuffled(question.channel, people).epsilon_at(each).value for question in plan.everyone]
    if plan.booklets:
        values.append(max(
            shuffled(question.channel, fewest(people, question.probability, each / 2)).epsilon_at(each / 2).value
            for question in plan.booklets
        ))  # fmt: skip
    value = math.inf if math.inf in values else float_up(sum(map(Fraction, values), Fraction(0)))
    # If all others were asked the same, a booklet would cost a person its probability times what it tells.
    lower = max(
        shuffled(question.channel, people).epsilon_at(min(1.0, float_up(Fraction(delta) / question.probability))).lower
        for question in plan.questions
    )
    parameters = {"delta": delta, "respondents": people}
    return Guarantee("shuffled_dp", value, lower, None, False, "[BBGN]; [KOV15]", parameters)


def fewest(people: int, probability: Fraction, delta: float) -> int:
    """So many of `people`, one who was asked a booklet among them, were asked it at least, but for a chance of `delta`.

    Each of the others is asked it with the given probability, in (0, 1), which leaves at most k of them with a chance
    of at most exp(-n D), D the KL divergence of k/n from the probability [Chernoff].

    >>> fewest(10_000, Fraction(1, 10), 1e-6), fewest(50, Fraction(1, 10), 1e-6)
    (847, 1)
    """
    n, q = people - 1, float(probability)

    def is_rare(k: int) -> bool:
        a = k / n
        exponent = (a * math.log(a / q) if a else 0.0) + (1 - a) * math.log((1 - a) / (1 - q))
        return delta > 0 and down(n * exponent, 64.0) >= -math.log(delta)

    # The largest k below the mean whose chance is at most delta; -1 if there is none.
    low, high = -1, math.floor(n * probability) if n else 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_rare(middle) else (low, middle)
    return low + 2
