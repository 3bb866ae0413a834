"""Inferences about one person's answer: the third view of the studio.

It has the chance of the answer after a report, the best test, and many rounds. Chances follow by Bayes' rule in exact
fractions. Their words are rounded so that they remain true.
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
from ldpopt_studio.ask import design_question, read_options, read_question
from ldpopt_studio.fields import State, attributes_of, field, field_error, number_between, take
from ldpopt_survey.plan.question import MAX_EPSILON, MIN_EPSILON
from ldpopt_survey.reports.words import as_typed, at_least, at_most

Ratio = Fraction | None
"""A ratio of probabilities; None stands for infinity."""


def decimal_fraction(value: float) -> Fraction:
    """Convert a float to the decimal fraction that its user typed."""
    return Fraction(repr(float(value)))


def exact_rows(channel: Channel) -> list[list[Fraction]]:
    """Convert the rows of a channel to exact fractions, each divided by its exact sum."""
    return [[Fraction(chance) / exact_sum(row) for chance in row.tolist()] for row in channel.matrix]


def likelihood_ratios(rows: list[list[Fraction]], x: int, y: int) -> tuple[Ratio, Ratio]:
    """Compute the extreme likelihood ratios of report y between answer x and another answer.

    Returns
    -------
    ratio of x to others, ratio of others to x : Ratio
        Pr(y | x) over the smallest probability under another answer, and the largest such probability over Pr(y | x).
    """
    probability, others = rows[x][y], [row[y] for answer, row in enumerate(rows) if answer != x]
    return _ratio(probability, min(others)), _ratio(max(others), probability)


def largest_ratio(ratios: Iterable[Ratio]) -> Ratio:
    """Return the largest ratio."""
    all_ratios = list(ratios)
    return None if None in all_ratios else max(ratio for ratio in all_ratios if ratio is not None)


def posterior_above(prior: Fraction, ratio: Ratio, reports: int = 1) -> Fraction:
    """Compute the chance after reports that are each `ratio` times as likely from the answer.

    It is prior ratio^n / (prior ratio^n + 1 - prior) by Bayes' rule, for any chances of the other answers. An upper
    bound
    of the ratio gives an upper bound.
    """
    if ratio is None:
        return Fraction(1)
    total_ratio = ratio**reports
    return prior * total_ratio / (prior * total_ratio + 1 - prior)


def posterior_below(prior: Fraction, ratio: Ratio, reports: int = 1) -> Fraction:
    """Compute the chance after reports that are each `ratio` times as likely from others.

    An upper bound of the ratio gives a lower bound.
    """
    return Fraction(0) if ratio is None else prior / (prior + (1 - prior) * ratio**reports)


def posterior(prior: Fraction, rows: list[list[Fraction]], x: int, y: int, weights: list[Fraction]) -> Fraction | None:
    """Compute the chance of answer x after report y; None if y never occurs.

    The other answers share the rest of the prior in proportion to `weights`.
    """
    rest = sum((weight for answer, weight in enumerate(weights) if answer != x), Fraction(0))
    if rest == 0:
        return None
    others = sum((weight * rows[answer][y] for answer, weight in enumerate(weights) if answer != x), Fraction(0)) / rest
    report_probability = prior * rows[x][y] + (1 - prior) * others
    return None if report_probability == 0 else prior * rows[x][y] / report_probability


def most_exposed_answer(channel: Channel) -> int:
    """Find the answer that a report can reveal most about.

    It has the largest ratio to another answer.
    """
    matrix = channel.matrix
    smallest_other = np.array([np.delete(matrix, x, axis=0).min(axis=0) for x in range(len(matrix))])
    with np.errstate(divide="ignore", invalid="ignore"):
        return int(np.where(matrix > 0, matrix / smallest_other, 0.0).max(axis=1).argmax())


def _ratio(top: Fraction, bottom: Fraction) -> Ratio:
    if bottom == 0:
        return None if top > 0 else Fraction(0)
    return top / bottom


MAX_ANSWERS, MAX_REPORTS = 100, 1000
MAX_ROUNDS = 365
ROUND_COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 250, 365)
"""Numbers of rounds at which the curves are computed."""
PRIORS = tuple(1 / (1 + math.exp(-step / 4)) for step in range(-28, 29))
"""Chances before a report at which the curves are computed, with even steps in log odds."""
MAX_LISTED_REPORTS = 200
"""Largest number of reports in the list, which begins with the most informative ones."""
MAX_FINITE_EPSILON = 700.0
"""Nearly the largest epsilon for which e^epsilon is a finite float."""
CURVE_POINTS = 257
"""Approximate number of points of a trade-off curve in a figure."""


@dataclass(frozen=True, eq=False)
class Person:
    """A channel for a person with answer x: how well reports distinguish this answer from the others.

    Attributes
    ----------
    ratios : list of pairs
        For each report, the ratios of `likelihood_ratios`.

    epsilon, eta : float
        Epsilon (nats) and total variation between x and any other answer, rounded up.
    trade_off : TradeOffCurve
        Errors of the best test with one report.
    """

    channel: Channel
    x: int
    rows: list[list[Fraction]]
    ratios: list[tuple[Ratio, Ratio]]
    epsilon: float
    eta: float
    trade_off: TradeOffCurve

    def posterior_bounds(self, prior: Fraction, count: int = 1) -> tuple[Fraction, Fraction]:
        """Bound the chance of the answer after any `count` reports, from below and from above."""
        up, down = self.largest_ratios
        return posterior_below(prior, down, count), posterior_above(prior, up, count)

    @cached_property
    def largest_ratios(self) -> tuple[Ratio, Ratio]:
        """The largest ratio in each direction."""
        up, down = zip(*self.ratios, strict=True)
        return largest_ratio(up), largest_ratio(down)

    def compose(self, count: int) -> KFold:
        """Compose `count` fresh reports by the bound for all mechanisms of this epsilon and eta.

        The source is [GI, Thm 2].
        """
        if not self.epsilon <= MAX_FINITE_EPSILON:  # only the distance gives a bound
            return k_fold(0.0, self.eta, None, count)
        return k_fold(self.epsilon, 0.0, self.eta, count)

    def trade_off_after(self, count: int) -> TradeOffCurve:
        """Bound from below the fraction that the best test of `count` reports misses [GI, Thm 1]."""
        if count == 1:
            return self.trade_off
        composed = self.compose(count)
        finite_knots = np.flatnonzero(
            np.append(True, np.diff(composed.epsilons) > 0) & (composed.epsilons <= MAX_FINITE_EPSILON)
        )
        return FinitePair.through(composed.epsilons[finite_knots], composed.deltas[finite_knots]).trade_off()

    def max_correct_guesses(self, count: int) -> Fraction:
        """Bound the chance to guess right between the answer and an equally likely one."""
        eta = self.eta if count == 1 else min(1.0, self.compose(count).total_variation().value)
        return (1 + Fraction(eta)) / 2

    def min_missed(self, count: int, alpha: float) -> float:
        """Bound from below the people with the answer whom a test misses.

        Parameters
        ----------
        count : int
            Number of fresh reports.
        alpha : float
            Fraction of the people with another answer whom the test suspects wrongly.

        Returns
        -------
        float
            Fraction of the people with the answer.
        """
        return max(0.0, float(self.trade_off_after(count)(alpha)) - 4 * ULP)


def view(state: State) -> dict[str, Any]:
    """Compute the content of the page for one person.

    Parameters
    ----------
    state : mapping
        - The channel: as in `read_channel`.
        - ``answer``: position of the person's answer, and ``prior``, its chance before the report.
        - ``rounds``: the number of fresh reports, and ``delta`` for their composed epsilon.
        - ``alpha``: fraction of the other people whom a test suspects wrongly.
    """
    channel, pilot = read_channel(state)
    x = take(state, "answer", fields.position(channel.shape[0]), 0)
    prior, alpha, delta = (
        take(state, name, number_between(1e-12, 1 - 1e-12, "a number between 0 and 1"), usual)
        for name, usual in (("prior", 0.01), ("alpha", 0.05), ("delta", 1e-6))
    )
    n = take(state, "rounds", number_between(1, MAX_ROUNDS, f"a whole number, 1 to {MAX_ROUNDS}", integer=True), 1)
    person = _person(channel.matrix.tobytes(), channel.shape, channel.inputs, channel.outputs, x)
    exact_prior = decimal_fraction(prior)
    posterior_min, posterior_max = person.posterior_bounds(exact_prior, n)
    return {
        "answers": [str(label) for label in channel.inputs],
        "answer": x,
        "exposed": most_exposed_answer(channel),
        "pilot": pilot,
        **attributes_of(person, "epsilon eta"),
        "prior": {"chance": prior, "words": as_typed(exact_prior)},
        "posterior": {
            "most": float_up(posterior_max),
            "least": float_down(posterior_min),
            "words": f"at most {at_most(posterior_max)}",
            "words_least": f"at least {at_least(posterior_min)}",
        },
        "sentences": _sentences(person, exact_prior, decimal_fraction(alpha), n),
        "priors": [
            [value, *_posterior_bounds(person, value, 1), *_posterior_bounds(person, value, n)]
            for value in sorted({*PRIORS, prior})
        ],
        "reports": _report_rows(person, exact_prior, pilot),
        "test": {
            "alpha": alpha,
            "missed": person.min_missed(n, alpha),
            "missed_once": person.min_missed(1, alpha),
            "once": _thin_knots(person.trade_off_after(1).knots),
            "all": _thin_knots(person.trade_off_after(n).knots),
        },
        "rounds": [_rounds_row(person, exact_prior, alpha, delta, count) for count in sorted({*ROUND_COUNTS, n})],
        "now": _rounds_row(person, exact_prior, alpha, delta, n),
        "delta": delta,
    }


def _sentences(person: Person, prior: Fraction, alpha: Fraction, n: int) -> list[str]:
    """Write sentences about the channel's guarantees for the person, each with a bound for all attackers."""
    label, (posterior_min, posterior_max) = person.channel.inputs[person.x], person.posterior_bounds(prior, n)
    reports, pronoun = ("your report", "it") if n == 1 else (f"{n} of your fresh reports", "them")
    after_reports = f"After {reports}"
    sentences = [
        f"Suppose someone thinks the chance that your answer is “{label}” is {as_typed(prior)}. {after_reports}, "
        f"they think it is at most {at_most(posterior_max)} and at least {at_least(posterior_min)}, whatever they "
        "think about the other answers.",
        f"Suppose someone considers “{label}” and one other answer equally likely. Without {reports}, they would guess "
        f"correctly 1 in 2 times; with {pronoun}, at most {at_most(person.max_correct_guesses(n))} times.",
        f"Suppose a test wrongly suspects at most {as_typed(alpha)} of the people with another answer. It then misses "
        f"at least {at_least(Fraction(person.min_missed(n, float(alpha))))} of the people who answer “{label}”.",
    ]
    if n > 1:
        sentences.append("Sending the same report again reveals nothing beyond the first time.")
    return sentences


def _posterior_bounds(person: Person, prior: float, n: int) -> tuple[float, float]:
    lower, upper = person.posterior_bounds(decimal_fraction(prior), n)
    return float_down(lower), float_up(upper)


def _report_rows(person: Person, prior: Fraction, pilot: Array) -> list[dict[str, Any]]:
    """List the reports with their frequencies and the chance of the answer after each, the most informative first."""
    weights = [Fraction(proportion) for proportion in pilot.tolist()]
    reports: list[dict[str, Any]] = []
    for y, label in enumerate(person.channel.outputs):
        up, down = person.ratios[y]
        pilot_posterior = posterior(prior, person.rows, person.x, y, weights)
        others = [row[y] for answer, row in enumerate(person.rows) if answer != person.x]
        reports.append({
            "report": str(label),
            "yours": float(person.rows[person.x][y]),
            "others": [float(min(others)), float(max(others))],
            "most": float_up(posterior_above(prior, up)),
            "least": float_down(posterior_below(prior, down)),
            "likely": None if pilot_posterior is None else float(pilot_posterior),
            "words": f"at most {at_most(posterior_above(prior, up))}",
        })  # fmt: skip
    order = sorted(range(len(reports)), key=lambda y: (-reports[y]["most"], reports[y]["least"]))
    return [reports[y] for y in order[:MAX_LISTED_REPORTS]]


def _thin_knots(knots: Array) -> list[list[float]]:
    """Select about `CURVE_POINTS` of the knots of a curve, for a figure."""
    step = max(1, len(knots) // CURVE_POINTS)
    positions = sorted({*range(0, len(knots), step), len(knots) - 1})
    return [[float(a), float(b)] for a, b in knots[positions]]


def _rounds_row(person: Person, prior: Fraction, alpha: float, delta: float, n: int) -> dict[str, Any]:
    guess, missed, epsilon = _bounds_after_rounds(person, alpha, delta, n)
    return {
        "rounds": n,
        "most": float_up(person.posterior_bounds(prior, n)[1]),
        "guess": guess,
        "missed": missed,
        "epsilon": float_up(n * Fraction(person.epsilon)) if math.isfinite(person.epsilon) else math.inf,
        "epsilon_at_delta": epsilon,
    }


@lru_cache(maxsize=512)
def _bounds_after_rounds(person: Person, alpha: float, delta: float, n: int) -> tuple[float, float, float]:
    return float_up(person.max_correct_guesses(n)), person.min_missed(n, alpha), person.compose(n).epsilon_at(delta)


@lru_cache(maxsize=16)
def _person(matrix: bytes, shape: tuple[int, int], inputs: Sequence[Any], outputs: Sequence[Any], x: int) -> Person:
    import networkx

    channel = Channel(np.frombuffer(matrix).reshape(shape), inputs, outputs)
    rows = exact_rows(channel)
    ratios = [likelihood_ratios(rows, x, y) for y in range(shape[1])]
    from_answer, to_answer = networkx.DiGraph(), networkx.DiGraph()
    others = [label for answer, label in enumerate(channel.inputs) if answer != x]
    from_answer.add_edges_from((channel.inputs[x], other) for other in others)
    to_answer.add_edges_from((other, channel.inputs[x]) for other in others)
    epsilon = max(local_dp(channel, from_answer).value, local_dp(channel, to_answer).value)
    eta = total_variation(channel, from_answer.to_undirected()).value
    return Person(channel, x, rows, ratios, epsilon, eta, trade_off(channel, to_answer))


def read_channel(state: State) -> tuple[Channel, Array]:
    """Read the channel of a state, and the proportions of the answers.

    Parameters
    ----------
    state : mapping
        ``source`` is "question", with ``question``, ``epsilon`` (nats), ``eta`` and ``aim``, or "matrix", with
        ``matrix``,
        ``inputs``, ``outputs`` and ``pilot``. Without a pilot the proportions are equal.
    """
    if take(state, "source", fields.choice(("question", "matrix")), "question") == "question":
        aim, level, eta = read_options(state)
        question = read_question(take(state, "question", fields.mapping), "question.", aim, level)
        if not question.is_quick:
            answers = Phrase(f"{len(question.labels)} answers")
            raise field_error("question.pilot", "a question whose channel takes less than about 0.1 s", answers)
        epsilon = take(
            state, "epsilon", number_between(MIN_EPSILON, MAX_EPSILON, f"{MIN_EPSILON:g} to {MAX_EPSILON:g} nats")
        )
        return design_question(question, epsilon, eta).channel, question.pilot
    inputs, outputs = take(state, "inputs", fields.texts, None), take(state, "outputs", fields.texts, None)
    rows = take(state, "matrix", fields.items)
    with field("matrix"):
        channel = Channel([fields.numbers(row, "matrix") for row in rows], inputs, outputs)
    k, m = channel.shape
    if not (2 <= k <= MAX_ANSWERS and m <= MAX_REPORTS):
        raise field_error(
            "matrix", f"2 to {MAX_ANSWERS} answers and at most {MAX_REPORTS} reports", Phrase(f"{k} and {m}")
        )
    pilot = take(state, "pilot", fields.proportions, np.full(k, 1 / k))
    if len(pilot) != k:
        raise field_error("pilot", f"{k} shares, one for each answer", len(pilot))
    return channel, pilot
