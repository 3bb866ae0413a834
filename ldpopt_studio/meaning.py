"""The view "What it means": for one person, the chance of the answer after a report, the best test, and many rounds.

Chances follow by Bayes' rule in exact fractions, and are said in words that are rounded safely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.composition import KFold, k_fold
from ldpopt.errors import Phrase
from ldpopt.numbers.rounding import ULP, exact_sum, float_down, float_up
from ldpopt.privacy import FinitePair, TradeOffCurve, local_dp, total_variation, trade_off
from ldpopt.values.distribution import Array
from ldpopt_studio import fields
from ldpopt_studio.ask import asked, designed, wishes
from ldpopt_studio.fields import State, field, picked, take, within, wrong
from ldpopt_survey.plan.question import MAX_EPSILON, MIN_EPSILON
from ldpopt_survey.reports.words import as_typed, at_least, at_most

Ratio = Fraction | None
"""A ratio of probabilities; None stands for infinity."""


def as_chance(value: float) -> Fraction:
    """A float that somebody typed, as the decimal fraction that was typed."""
    return Fraction(repr(float(value)))


def rows_of(channel: Channel) -> list[list[Fraction]]:
    """The rows of a channel as exact fractions, each divided by its exact sum."""
    return [[Fraction(chance) / exact_sum(row) for chance in row.tolist()] for row in channel.matrix]


def likelier(rows: list[list[Fraction]], x: int, y: int) -> tuple[Ratio, Ratio]:
    """Pr(y) under x divided by its least value under other answers, and its largest such value divided by that of x."""
    mine, others = rows[x][y], [row[y] for answer, row in enumerate(rows) if answer != x]
    return _ratio(mine, min(others)), _ratio(max(others), mine)


def largest(ratios: Iterable[Ratio]) -> Ratio:
    """The largest ratio."""
    known = list(ratios)
    return None if None in known else max(ratio for ratio in known if ratio is not None)


def after(prior: Fraction, up: Ratio, reports: int = 1) -> Fraction:
    """The chance after reports that are each `up` times likelier from the answer, or a bound, as `up` is.

    It is prior up^n / (prior up^n + 1 - prior) by Bayes' rule, whatever the chances of the other answers.
    """
    if up is None:
        return Fraction(1)
    times = up**reports
    return prior * times / (prior * times + 1 - prior)


def before(prior: Fraction, down: Ratio, reports: int = 1) -> Fraction:
    """The chance after reports that are each `down` times likelier from others, or a lower bound."""
    return Fraction(0) if down is None else prior / (prior + (1 - prior) * down**reports)


def given(prior: Fraction, rows: list[list[Fraction]], x: int, y: int, shares: list[Fraction]) -> Fraction | None:
    """The chance of answer x after report y, if the other answers have `shares` of the rest; None if y never occurs."""
    rest = sum((share for answer, share in enumerate(shares) if answer != x), Fraction(0))
    if rest == 0:
        return None
    others = sum((share * rows[answer][y] for answer, share in enumerate(shares) if answer != x), Fraction(0)) / rest
    whole = prior * rows[x][y] + (1 - prior) * others
    return None if whole == 0 else prior * rows[x][y] / whole


def most_exposed(channel: Channel) -> int:
    """The position of the answer about which a report can tell the most: it has the largest ratio to another answer."""
    matrix = channel.matrix
    least = np.array([np.delete(matrix, x, axis=0).min(axis=0) for x in range(len(matrix))])
    with np.errstate(divide="ignore", invalid="ignore"):
        return int(np.where(matrix > 0, matrix / least, 0.0).max(axis=1).argmax())


def _ratio(top: Fraction, bottom: Fraction) -> Ratio:
    if bottom == 0:
        return None if top > 0 else Fraction(0)
    return top / bottom


MAX_ANSWERS, MAX_REPORTS = 100, 1000
MAX_ROUNDS = 365
ROUNDS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 250, 365)
"""Numbers of rounds at which the curves are computed."""
PRIORS = tuple(1 / (1 + math.exp(-step / 4)) for step in range(-28, 29))
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

    ratios : for every report, as in `likelier`. epsilon, eta : between x and any other answer, rounded up.
    """

    channel: Channel
    x: int
    rows: list[list[Fraction]]
    ratios: list[tuple[Ratio, Ratio]]
    epsilon: float
    eta: float
    once: TradeOffCurve

    def chances(self, prior: Fraction, count: int = 1) -> tuple[Fraction, Fraction]:
        """The least and the largest chance of the answer after `count` reports, whatever these are."""
        up, down = self.worst
        return before(prior, down, count), after(prior, up, count)

    @cached_property
    def worst(self) -> tuple[Ratio, Ratio]:
        """The largest of the ratios, either way."""
        up, down = zip(*self.ratios, strict=True)
        return largest(up), largest(down)

    def rounds(self, count: int) -> KFold:
        """`count` fresh reports together, bounded as for every mechanism with this epsilon and eta [GI, Thm 2]."""
        if not self.epsilon <= STEEPEST:  # only the distance gives a bound
            return k_fold(0.0, self.eta, None, count)
        return k_fold(self.epsilon, 0.0, self.eta, count)

    def curve(self, count: int) -> TradeOffCurve:
        """A lower bound on the share of cases that the best test of `count` reports misses [GI, Thm 1]."""
        if count == 1:
            return self.once
        composed = self.rounds(count)
        kept = np.flatnonzero(np.append(True, np.diff(composed.epsilons) > 0) & (composed.epsilons <= STEEPEST))
        return FinitePair.through(composed.epsilons[kept], composed.deltas[kept]).trade_off()

    def guess(self, count: int) -> Fraction:
        """An upper bound on how often the answer is guessed right between two equally likely answers."""
        eta = self.eta if count == 1 else min(1.0, self.rounds(count).total_variation().value)
        return (1 + Fraction(eta)) / 2

    def missed(self, count: int, alpha: float) -> float:
        """A lower bound on the share of people with the answer whom a test misses if it suspects `alpha` of others."""
        return max(0.0, float(self.curve(count)(alpha)) - 4 * ULP)


def view(state: State) -> dict[str, Any]:
    """The content of the page for one person, for a question's channel or a given one, as in `channel_of`.

    answer : its position. prior : its chance before the report. rounds : the number of fresh reports; delta : for their
    epsilon. alpha : the share of other people who are wrongly suspected.
    """
    channel, pilot = channel_of(state)
    x = take(state, "answer", fields.position(channel.shape[0]), 0)
    prior, alpha, delta = (
        take(state, name, within(1e-12, 1 - 1e-12, "a number between 0 and 1"), usual)
        for name, usual in (("prior", 0.01), ("alpha", 0.05), ("delta", 1e-6))
    )
    n = take(state, "rounds", within(1, MAX_ROUNDS, f"a whole number, 1 to {MAX_ROUNDS}", integer=True), 1)
    person = _person(channel.matrix.tobytes(), channel.shape, channel.inputs, channel.outputs, x)
    chance = as_chance(prior)
    least, most = person.chances(chance, n)
    return {
        "answers": [str(label) for label in channel.inputs],
        "answer": x,
        "exposed": most_exposed(channel),
        "pilot": pilot,
        **picked(person, "epsilon eta"),
        "prior": {"chance": prior, "words": as_typed(chance)},
        "posterior": {
            "most": float_up(most),
            "least": float_down(least),
            "words": f"at most {at_most(most)}",
            "words_least": f"at least {at_least(least)}",
        },
        "sentences": _sentences(person, chance, as_chance(alpha), n),
        "priors": [[own, *_bounds(person, own, 1), *_bounds(person, own, n)] for own in sorted({*PRIORS, prior})],
        "reports": _reports(person, chance, pilot),
        "test": {
            "alpha": alpha,
            "missed": person.missed(n, alpha),
            "missed_once": person.missed(1, alpha),
            "once": _thinned(person.curve(1).knots),
            "all": _thinned(person.curve(n).knots),
        },
        "rounds": [_after_rounds(person, chance, alpha, delta, own) for own in sorted({*ROUNDS, n})],
        "now": _after_rounds(person, chance, alpha, delta, n),
        "delta": delta,
    }


def _sentences(person: Person, prior: Fraction, alpha: Fraction, n: int) -> list[str]:
    """Sentences about the channel's guarantees for the person. Each gives a bound that no attacker can beat."""
    label, (least, most) = person.channel.inputs[person.x], person.chances(prior, n)
    reports = "your report" if n == 1 else f"{n} fresh reports of yours"
    told = [
        f"Suppose somebody puts the chance that you answer “{label}” at {as_typed(prior)}. After {reports}, they put "
        f"it at no more than {at_most(most)} and no less than {at_least(least)}, whatever they think of the other "
        "answers.",
        f"Suppose somebody hesitates between “{label}” and one other answer that is as likely. With {reports}, their "
        f"guess is right at most {at_most(person.guess(n))} times, and 1 in 2 times without.",
        f"Suppose a test wrongly suspects at most {as_typed(alpha)} of those with another answer. It overlooks at "
        f"least {at_least(Fraction(person.missed(n, float(alpha))))} of those who answer “{label}”.",
    ]
    return [*told, "A report that is kept and sent again each time adds nothing to the first one."] if n > 1 else told


def _bounds(person: Person, prior: float, n: int) -> tuple[float, float]:
    least, most = person.chances(as_chance(prior), n)
    return float_down(least), float_up(most)


def _reports(person: Person, prior: Fraction, pilot: Array) -> list[dict[str, Any]]:
    """Every report, the most informative first, with its frequency and the chance of the answer after it."""
    shares = [Fraction(share) for share in pilot.tolist()]
    reports: list[dict[str, Any]] = []
    for y, label in enumerate(person.channel.outputs):
        up, down = person.ratios[y]
        likely = given(prior, person.rows, person.x, y, shares)
        others = [row[y] for answer, row in enumerate(person.rows) if answer != person.x]
        reports.append({
            "report": str(label),
            "yours": float(person.rows[person.x][y]),
            "others": [float(min(others)), float(max(others))],
            "most": float_up(after(prior, up)),
            "least": float_down(before(prior, down)),
            "likely": None if likely is None else float(likely),
            "words": f"at most {at_most(after(prior, up))}",
        })  # fmt: skip
    order = sorted(range(len(reports)), key=lambda y: (-reports[y]["most"], reports[y]["least"]))
    return [reports[y] for y in order[:LISTED]]


def _thinned(knots: Array) -> list[list[float]]:
    """At most about `POINTS` of the knots of a curve, for a picture."""
    step = max(1, len(knots) // POINTS)
    kept = sorted({*range(0, len(knots), step), len(knots) - 1})
    return [[float(a), float(b)] for a, b in knots[kept]]


def _after_rounds(person: Person, prior: Fraction, alpha: float, delta: float, n: int) -> dict[str, Any]:
    guess, missed, epsilon = _composed(person, alpha, delta, n)
    return {
        "rounds": n,
        "most": float_up(person.chances(prior, n)[1]),
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
    rows = rows_of(channel)
    ratios = [likelier(rows, x, y) for y in range(shape[1])]
    mine, theirs = networkx.DiGraph(), networkx.DiGraph()
    others = [label for answer, label in enumerate(channel.inputs) if answer != x]
    mine.add_edges_from((channel.inputs[x], other) for other in others)
    theirs.add_edges_from((other, channel.inputs[x]) for other in others)
    epsilon = max(local_dp(channel, mine).value, local_dp(channel, theirs).value)
    eta = total_variation(channel, mine.to_undirected()).value
    return Person(channel, x, rows, ratios, epsilon, eta, trade_off(channel, theirs))


def channel_of(state: State) -> tuple[Channel, Array]:
    """The channel of a state, and the shares of the answers, which are equal if nothing is known.

    source : "question" (with question, epsilon, eta, aim) or "matrix" (with matrix, inputs, outputs, pilot).
    """
    if take(state, "source", fields.choice(("question", "matrix")), "question") == "question":
        aim, level, eta = wishes(state)
        question = asked(take(state, "question", fields.mapping), "question.", aim, level)
        if not question.quick:
            answers = Phrase(f"{len(question.labels)} answers")
            raise wrong("question.pilot", "a question whose channel is found at once", answers)
        epsilon = take(state, "epsilon", within(MIN_EPSILON, MAX_EPSILON, f"{MIN_EPSILON:g} to {MAX_EPSILON:g} nats"))
        return designed(question, epsilon, eta).channel, question.pilot
    inputs, outputs = take(state, "inputs", fields.texts, None), take(state, "outputs", fields.texts, None)
    rows = take(state, "matrix", fields.items)
    with field("matrix"):
        channel = Channel([fields.numbers(row, "matrix") for row in rows], inputs, outputs)
    k, m = channel.shape
    if not (2 <= k <= MAX_ANSWERS and m <= MAX_REPORTS):
        raise wrong("matrix", f"2 to {MAX_ANSWERS} answers and at most {MAX_REPORTS} reports", Phrase(f"{k} and {m}"))
    pilot = take(state, "pilot", fields.shares, np.full(k, 1 / k))
    if len(pilot) != k:
        raise wrong("pilot", f"{k} shares, one for each answer", len(pilot))
    return channel, pilot
