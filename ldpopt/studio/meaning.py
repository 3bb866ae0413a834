"""The view "What it means": for one person, the chance of the answer after a report, the best test, and many rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.composition.k_fold import KFold, k_fold
from ldpopt.distribution import Array, positive_epsilon
from ldpopt.errors import Phrase, invalid
from ldpopt.privacy import FinitePair, TradeOffCurve, local_dp, total_variation, trade_off
from ldpopt.rounding import ULP, float_down, float_up
from ldpopt.studio import chances
from ldpopt.studio.chances import Ratio, as_chance, as_typed, at_least, at_most
from ldpopt.studio.fields import (
    State,
    choice,
    field,
    items,
    mapping,
    number,
    numbers,
    position,
    shares,
    take,
    texts,
    whole,
    wrong,
)
from ldpopt.studio.question import asked, designed, wishes
from ldpopt.survey.plan.question import MAX_EPSILON, MIN_EPSILON

MAX_ANSWERS, MAX_REPORTS = 100, 1000
MAX_ROUNDS = 365
ROUNDS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 250, 365)
"""Numbers of rounds at which the curves are computed."""
PRIORS = tuple(1 / (1 + math.exp(-at / 4)) for at in range(-28, 29))
"""Chances before a report at which the curves are computed, with even steps in log odds."""
LISTED = 200
"""The largest number of reports in the list, which begins with the most informative ones."""
STEEPEST = 700.0
"""The largest epsilon for which e^epsilon is a finite float, roughly."""
POINTS = 257
"""Points of a drawn trade-off curve."""


@dataclass(frozen=True, eq=False)
class Person:
    """A channel as it concerns a person with answer x: how well reports distinguish this answer from the others.

    rows : the channel's rows as exact fractions. ratios : for every report, as in `chances.likelier`.
    up, down : the largest of these ratios. epsilon, eta : between x and any other answer, rounded up.
    one : the trade-off curve of one report.
    """

    channel: Channel
    x: int
    rows: list[list[Fraction]]
    ratios: list[tuple[Ratio, Ratio]]
    up: Ratio
    down: Ratio
    epsilon: float
    eta: float
    one: TradeOffCurve

    def rounds(self, count: int) -> KFold:
        """`count` fresh reports together, bounded as for every mechanism with this epsilon and eta [GI, Thm 2]."""
        if not self.epsilon <= STEEPEST:  # only the distance gives a bound
            return k_fold(0.0, self.eta, None, count)
        return k_fold(self.epsilon, 0.0, self.eta, count)

    def curve(self, count: int) -> TradeOffCurve:
        """A lower bound on the share of cases that the best test of `count` reports misses [GI, Thm 1]."""
        if count == 1:
            return self.one
        made = self.rounds(count)
        kept = np.flatnonzero(np.append(True, np.diff(made.epsilons) > 0) & (made.epsilons <= STEEPEST))
        return FinitePair.through(made.epsilons[kept], made.deltas[kept]).trade_off()

    def guess(self, count: int) -> Fraction:
        """An upper bound on how often the answer is guessed right between two equally likely answers."""
        eta = self.eta if count == 1 else min(1.0, self.rounds(count).total_variation)
        return (1 + Fraction(eta)) / 2

    def missed(self, count: int, alpha: float) -> float:
        """A lower bound on the share of people with the answer whom a test misses if it suspects `alpha` of others."""
        return max(0.0, float(self.curve(count)(alpha)) - 4 * ULP)


def view(state: State) -> dict[str, Any]:
    """The content of the page for one person, for a question's channel or a given one.

    source : "question" (with question: pilot, labels; epsilon, eta, aim) or "matrix" (with matrix, inputs, outputs, and
        pilot for the shares of the answers, if known).
    answer : the position of the person's answer. prior : the chance of this answer before the report.
    rounds : the number of fresh reports of the same answer. alpha : the share of other people who are wrongly
        suspected.
    delta : for the epsilon of all rounds together.

    >>> told = view({"question": {"pilot": [0.5, 0.5]}, "epsilon": 1.0, "prior": 0.01})
    >>> told["posterior"]["words"]
    'at most 1 in 37'
    """
    channel, pilot = channel_of(state)
    count = channel.shape[0]
    x = take(state, "answer", position(count), 0)
    prior = take(state, "prior", _inside, 0.01)
    alpha, delta = take(state, "alpha", _inside, 0.05), take(state, "delta", _inside, 1e-6)
    n = take(state, "rounds", whole, 1)
    if n > MAX_ROUNDS:
        raise wrong("rounds", f"1 to {MAX_ROUNDS}", n)
    person = _person(channel.matrix.tobytes(), channel.shape, channel.inputs, channel.outputs, x)
    chance = as_chance(prior)
    most, least = chances.after(chance, person.up, n), chances.before(chance, person.down, n)
    return {
        "answers": [str(label) for label in channel.inputs],
        "answer": x,
        "exposed": chances.most_exposed(channel),
        "pilot": pilot,
        "epsilon": person.epsilon,
        "eta": person.eta,
        "prior": {"chance": prior, "words": as_typed(chance)},
        "posterior": {
            "most": float_up(most),
            "least": float_down(least),
            "words": f"at most {at_most(most)}",
            "words_least": f"at least {at_least(least)}",
        },
        "sentences": _sentences(person, chance, as_chance(alpha), n),
        "priors": [_bounds(person, one, n) for one in sorted({*PRIORS, prior})],
        "reports": _reports(person, chance, pilot),
        "test": _test(person, alpha, n),
        "rounds": [_after_rounds(person, chance, alpha, delta, one) for one in sorted({*ROUNDS, n})],
        "now": _after_rounds(person, chance, alpha, delta, n),
        "delta": delta,
    }


def _sentences(person: Person, prior: Fraction, alpha: Fraction, n: int) -> list[str]:
    """Sentences about the channel's guarantees for the person. Each gives a bound that no attacker can beat."""
    label = person.channel.inputs[person.x]
    reports = "your report" if n == 1 else f"{n} fresh reports of yours"
    most, least = chances.after(prior, person.up, n), chances.before(prior, person.down, n)
    missed = Fraction(person.missed(n, float(alpha)))
    told = [
        f"Whoever thinks it {as_typed(prior)} that you answer “{label}” thinks it at most {at_most(most)} after "
        f"{reports}, whatever is reported and whatever they think of the other answers; and at least "
        f"{at_least(least)}.",
        f"Whoever hesitates between “{label}” and one other answer, each as likely, is right at most "
        f"{at_most(person.guess(n))} times after {reports}, and 1 in 2 times without.",
        f"Whoever wrongly suspects at most {as_typed(alpha)} of those with another answer overlooks at least "
        f"{at_least(missed)} of those who answer “{label}”.",
    ]
    if n > 1:
        told.append("A report that is kept and sent again each time adds nothing to the first one.")
    return told


def _bounds(person: Person, prior: float, n: int) -> list[float]:
    """[prior, least, most] for one report, and [least, most] for n of them."""
    chance = as_chance(prior)
    found = [prior]
    for count in (1, n):
        found += [float_down(chances.before(chance, person.down, count))]
        found += [float_up(chances.after(chance, person.up, count))]
    return found


def _reports(person: Person, prior: Fraction, pilot: Array) -> list[dict[str, Any]]:
    """Every report, the most informative first, with its frequency and the chance of the answer after it."""
    shares = [Fraction(one) for one in pilot.tolist()]
    made: list[dict[str, Any]] = []
    for y, label in enumerate(person.channel.outputs):
        up, down = person.ratios[y]
        likely = chances.given(prior, person.rows, person.x, y, shares)
        others = [row[y] for at, row in enumerate(person.rows) if at != person.x]
        made.append({
            "report": str(label),
            "yours": float(person.rows[person.x][y]),
            "others": [float(min(others)), float(max(others))],
            "most": float_up(chances.after(prior, up)),
            "least": float_down(chances.before(prior, down)),
            "likely": None if likely is None else float(likely),
            "words": f"at most {at_most(chances.after(prior, up))}",
        })  # fmt: skip
    order = sorted(range(len(made)), key=lambda y: (-made[y]["most"], made[y]["least"]))
    return [made[y] for y in order[:LISTED]]


def _test(person: Person, alpha: float, n: int) -> dict[str, Any]:
    """The trade-off curves of one report and of n, and the point at alpha."""
    return {
        "alpha": alpha,
        "missed": person.missed(n, alpha),
        "missed_once": person.missed(1, alpha),
        "once": _thinned(person.curve(1).knots),
        "all": _thinned(person.curve(n).knots),
    }


def _thinned(knots: Array) -> list[list[float]]:
    """At most about `POINTS` of the knots of a curve, for a picture."""
    step = max(1, len(knots) // POINTS)
    kept = sorted({*range(0, len(knots), step), len(knots) - 1})
    return [[float(a), float(b)] for a, b in knots[kept]]


def _after_rounds(person: Person, prior: Fraction, alpha: float, delta: float, n: int) -> dict[str, Any]:
    guess, missed, epsilon = _composed(person, alpha, delta, n)
    most = chances.after(prior, person.up, n)
    return {
        "rounds": n,
        "most": float_up(most),
        "guess": guess,
        "missed": missed,
        "epsilon": float_up(n * Fraction(person.epsilon)) if math.isfinite(person.epsilon) else math.inf,
        "epsilon_at_delta": epsilon,
    }


@lru_cache(maxsize=512)
def _composed(person: Person, alpha: float, delta: float, n: int) -> tuple[float, float, float]:
    return float_up(person.guess(n)), person.missed(n, alpha), person.rounds(n).epsilon_at(delta)


@lru_cache(maxsize=16)
def _person(matrix: bytes, shape: tuple[int, int], inputs: Sequence[Any], outputs: Sequence[Any], x: int) -> Person:
    import networkx

    channel = Channel(np.frombuffer(matrix).reshape(shape), inputs, outputs)
    rows = chances.rows_of(channel)
    ratios = [chances.likelier(rows, x, y) for y in range(shape[1])]
    mine, theirs = networkx.DiGraph(), networkx.DiGraph()
    others = [label for at, label in enumerate(channel.inputs) if at != x]
    mine.add_edges_from((channel.inputs[x], other) for other in others)
    theirs.add_edges_from((other, channel.inputs[x]) for other in others)
    return Person(
        channel,
        x,
        rows,
        ratios,
        chances.largest(up for up, _ in ratios),
        chances.largest(down for _, down in ratios),
        max(local_dp(channel, mine).value, local_dp(channel, theirs).value),
        total_variation(channel, mine.to_undirected()).value,
        trade_off(channel, theirs),
    )


def channel_of(state: State) -> tuple[Channel, Array]:
    """The channel of a state, and the shares of the answers, which are equal if nothing is known.

    >>> channel_of({"source": "matrix", "matrix": [[0.75, 0.25], [0.25, 0.75]]})[1].tolist()
    [0.5, 0.5]
    """
    source = take(state, "source", choice(("question", "matrix")), "question")
    if source == "question":
        aim, level, eta = wishes(state)
        question = asked(take(state, "question", mapping), "question.", aim, level)
        if not question.quick:
            raise wrong(
                "question.pilot", "a question whose channel is found at once", Phrase(f"{len(question.labels)} answers")
            )
        epsilon = take(state, "epsilon", positive_epsilon)
        if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
            raise wrong("epsilon", f"{MIN_EPSILON:g} to {MAX_EPSILON:g} nats", epsilon)
        return designed(question, epsilon, eta).channel, question.pilot
    inputs, outputs = take(state, "inputs", texts, None), take(state, "outputs", texts, None)
    rows = take(state, "matrix", items)
    with field("matrix"):
        channel = Channel([numbers(row, "matrix") for row in rows], inputs, outputs)
    k, m = channel.shape
    if not (2 <= k <= MAX_ANSWERS and m <= MAX_REPORTS):
        raise wrong("matrix", f"2 to {MAX_ANSWERS} answers and at most {MAX_REPORTS} reports", Phrase(f"{k} and {m}"))
    pilot = take(state, "pilot", shares, np.full(k, 1 / k))
    if len(pilot) != k:
        raise wrong("pilot", f"{k} shares, one for each answer", len(pilot))
    return channel, pilot


def _inside(value: Any, what: str) -> float:
    """A number strictly between 0 and 1."""
    found = number(value, what)
    if not 1e-12 <= found <= 1 - 1e-12:
        raise invalid(what, "a number between 0 and 1", value)
    return found
