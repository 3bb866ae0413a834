"""Reports of a survey to a page: its estimates, who did not answer, its channels, and their guarantees."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from ldpopt import plots
from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.privacy import local_dp
from ldpopt.values.labels import as_text
from ldpopt.version import __version__
from ldpopt.words import label_in_words
from ldpopt_survey.collect.manifest import total
from ldpopt_survey.estimate.intervals import Binomial
from ldpopt_survey.estimate.numbers import among_answered
from ldpopt_survey.pictures import protocols
from ldpopt_survey.plan.planned_question import non_answers
from ldpopt_survey.plan.precision import HalfWidth
from ldpopt_survey.plan.protocols import compare_protocols
from ldpopt_survey.reports.page import interval_table, render
from ldpopt_survey.reports.promises import promises_in_words, question_in_words, rounds_in_words
from ldpopt_survey.sample.analysis import Analysis, Findings, has_own_report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ldpopt_survey.collect.aggregate import Counts
    from ldpopt_survey.estimate.estimate import Estimate
    from ldpopt_survey.plan.plan import Plan
    from ldpopt_survey.plan.planned_question import Part, PlannedQuestion


def among_those_who_answered(plan: Plan, estimates: Mapping[str, Estimate | Findings]) -> dict[str, Findings]:
    """Estimates among those who answered, for questions whose missing answers are a category, if they can be made."""
    among = {}
    for question in map(plan.part, plan.answers):
        if not non_answers(question) or question.name not in estimates:
            continue
        own = estimates[question.name]
        answered = {}
        for name, inside in ({"": own.whole, **own.groups} if isinstance(own, Findings) else {"": own}).items():
            with suppress(InvalidInput):
                answered[name] = among_answered(inside, *non_answers(question))
        if "" in answered:
            among[question.name] = Findings(answered.pop(""), answered)
    return among


def missing_in_words(question: Part | PlannedQuestion, answered: int, rows: int | None) -> str:
    """How missing answers were treated, and what this means for the guarantee; empty if they were refused.

    rows : the number of all reports, if everybody was asked.
    """
    reading = question.reading
    if reading.left_out and rows is None:
        return (
            "Who was asked and did not answer has an empty report, seen by everybody who has the reports: this is not "
            f"protected. The shares are among the {answered:,} who answered, whose answers are."
        )
    if reading.left_out and rows is not None:
        return (
            f"{rows - answered:,} of {rows:,} reports are empty: who did not answer is seen by everybody who has the "
            f"reports, and is not protected. The shares are among the {answered:,} who answered, whose answers are."
        )
    if reading.own_category:
        return (
            f"Missing answers are the category {question.missing!s}: whether somebody answered is protected like the "
            "answer itself."
        )
    if reading.missing_answers == "counted":
        return f"Missing answers were counted as {question.missing!s}, as if that had been answered."
    return ""


def missing_of(plan: Plan, counts: Counts) -> dict[str, str]:
    """`missing_in_words` by question, without the questions for which it is empty."""
    said = {}
    for name, asked in plan.answers.items():
        rows = counts.rows if asked[0].probability == 1 else None
        said[name] = missing_in_words(plan.part(name), sum(int(counts[holder.name].sum()) for holder in asked), rows)
    return {name: words for name, words in said.items() if words}


def reached_in_words(plan: Plan, name: str, estimated: Estimate) -> str:
    """The half-width that the plan asks for and the widest one obtained, both at 95 %; empty without a target."""
    planned = plan.answers[name][0].expected or {}
    if len(plan.answers[name]) > 1 or "half_width" not in planned or estimated.bets is not None:
        return ""
    limits = estimated.intervals(Binomial())
    widest = float(np.max(limits.upper - limits.lower)) / 2
    times, unit = (1, "") if plan.part(name).measure == "mean" else (100, " percentage points")
    return (
        f"Planned: intervals of ±{times * planned['half_width']:.3g}{unit} at 95 %, with "
        f"{planned['respondents']:,.0f} reports of a simple sample. Obtained: at most ±{times * widest:.3g}, with "
        f"{estimated.n:,} reports."
    )


def few_in_words(shares: Estimate) -> str:
    """What is to be known of intervals that rest on few reports, or on one unit; empty where they do on neither."""
    if shares.bets is None and not shares.degrees:
        return (
            "All of them are of one primary unit (of each stratum), which does not show how units differ: the standard "
            "errors are those of the reports' randomness alone, and the intervals have all that reports could give."
        )
    if not shares.few_report_labels:
        return ""
    of = (
        "this"
        if len(shares.few_report_labels) == len(shares.labels)
        else ", ".join(map(as_text, shares.few_report_labels))
    )
    return (
        f"Few reports tell of {of}: intervals of 95 % may cover in anything from 91 to 99 of 100 surveys there, by how "
        "the true share falls between whole numbers of reports."
    )


DRAWN = 40
"""Channels with more reports than this are not drawn, since nothing could be read."""


def survey_report(
    plan: Plan,
    estimates: Mapping[str, Estimate | Findings],
    counts: Counts | None = None,
    pictures: bool = True,
    analysis: Analysis | None = None,
) -> str:
    """One HTML page with every question's estimates, channel, guarantees in plain words and rival protocols.

    With `counts` the page names its reports, and says if they are simulated; without `pictures` it describes them.
    """
    simulation, unlabelled = (counts.simulation, counts.unlabelled) if counts is not None else (False, False)
    findings = {name: own if isinstance(own, Findings) else Findings(own, {}) for name, own in estimates.items()}
    asked = Analysis() if analysis is None else analysis
    marks = []  # what `ldpopt_survey.reports.verify_delivery` makes the page again from
    if counts is not None:
        marks = [("ldpopt-reports", f"{total(counts.sources)} {__version__}")]
        marks += [] if asked.is_default else [("ldpopt-analysis", json.dumps(asked.to_dict(), sort_keys=True))]
    page = _Page(asked, f"{100 * asked.level:g} %", counts, pictures)
    together = "all reports of a person" if plan.booklets else "all questions together"
    parts = [(q.name, str(len(q.categories)), q) for q in plan.questions] + [(together, "", plan)]
    budget = [[name, answers, ceil_digits(own.epsilon, 4), ceil_digits(own.eta, 4)] for name, answers, own in parts]
    if plan.booklets:
        budget = [
            [*row, share]
            for row, share in zip(budget, [*(str(q.probability) for q in plan.questions), ""], strict=True)
        ]
    several = len(plan.questions) > 1
    n = max(own.whole.n for own in findings.values())
    if counts is not None and plan.booklets and not asked.where:
        n = counts.rows  # each is of one booklet, so that no question has them all
    return render(
        "survey.html",
        title=f"Simulation: {plan.name}" if simulation else plan.name,
        marks=marks,
        plan=plan,
        n=f"{n:,}",
        how=str(asked),
        simulation=simulation,
        unlabelled=unlabelled,
        budget=budget if several else None,
        promise=promises_in_words(plan),
        rounds=rounds_in_words(plan, () if counts is None else counts.rounds),
        questions=[page.question(plan, name, findings[name]) for name in plan.answers],
        level=asked.level,
    )


@dataclass(frozen=True, eq=False)
class _Page:
    """What the parts of one page share: the analysis, its level in percent, the counts, and whether it has pictures."""

    asked: Analysis
    percent: str
    counts: Counts | None
    pictures: bool

    def draw(self, draw: Callable[..., Any], drawn: Any) -> bytes:
        """The bytes of a picture; empty if the page has none."""
        return plots.picture(draw(drawn)) if self.pictures else b""

    def question(self, plan: Plan, name: str, both: Findings) -> dict[str, Any]:
        """The values that the template shows of a question."""
        shares, asked, part = both.whole, plan.answers[name], plan.part(name)
        k, m = asked[0].channel.shape
        drawn = m <= DRAWN and len(asked) == 1
        channel = Channel(asked[0].channel.matrix, asked[0].categories, asked[0].reports) if drawn else None
        rows = shares.n if self.counts is None else self.counts.rows
        missing = missing_in_words(part, shares.n, rows if asked[0].probability == 1 else None)
        answered: str | Markup = ""
        if non_answers(part) and not self.asked.anytime and not self.asked.answered:
            answered = self.intervals(among_answered(shares, *non_answers(part)), "Among those who answered")
        return {
            "name": name,
            "wording": dict(plan.wording).get(getattr(part, "option_of", None) or name, ""),
            "intervals": self.intervals(shares, f"{shares.n:,} reports"),
            "effect": f"{reached_in_words(plan, name, shares)} {_effect(shares) if part.measure == 'shares' else ''}",
            "groups": self.groups(both),
            "few": few_in_words(shares),
            "promise": question_in_words(plan, name),
            "booklets": []
            if has_own_report(plan, name) or part.measure == "mean"
            else [
                f"{holder.name} ({holder.channel.shape[0]} answers, {holder.channel.shape[1]} possible reports)"
                for holder in asked
            ],
            "pilot": asked[0].pilot is not None,
            "shape": (k, m),
            "channel": None if channel is None else _channel_in_words(channel),
            "drawn": b"" if channel is None else self.draw(plots.channel, channel),
            "rivals": self.rivals(asked[0], shares) if has_own_report(plan, name) else None,
            "missing": missing,
            "answered": answered,
        }

    def intervals(self, shares: Estimate, of: str) -> Markup:
        """The estimates with their intervals, as a table."""
        shown, labels = shares.intervals(Binomial(self.asked.level)), [as_text(label) for label in shares.labels]
        said = f"{of}; {self.percent} {shown.interval}s."
        plain = shares.labels == ("mean",)
        return interval_table(labels, shares.values, shown.lower, shown.upper, said, self.percent, plain)

    def groups(self, both: Findings) -> Markup:
        """The intervals of all groups under one another, answer by answer; of two answers only the second."""
        if not both.groups:
            return Markup("")
        groups = [(name, own, own.intervals(Binomial(self.asked.level))) for name, own in both.groups.items()]
        k = len(both.whole.labels)
        answers = range(1 if k == 2 else 0, k)
        labels = [f"{as_text(own.labels[x])}: {name} ({own.n:,})" for x in answers for name, own, _ in groups]
        values, lower, upper = np.array(
            [[own.values[x], limits.lower[x], limits.upper[x]] for x in answers for _, own, limits in groups]
        ).T
        said = f"By {', '.join(self.asked.by)} (reports); {self.percent} {groups[0][2].interval}s."
        return interval_table(labels, values, lower, upper, said, self.percent, both.whole.labels == ("mean",))

    def rivals(self, question: PlannedQuestion, estimated: Estimate) -> dict[str, Any] | None:
        """The respondents that other protocols with the same epsilon would need for the planned half-width."""
        if not 0 < question.epsilon < math.inf:
            return None
        shares = np.clip(estimated.values, 1e-6, None) if question.pilot is None else question.pilot
        width = (question.expected or {}).get("half_width", 0.05)
        own = Channel(question.channel.matrix)
        # Measured in floats and rounded outward, the channel may exceed the proved epsilon by a rounding error.
        epsilon = max(question.epsilon, float(local_dp(own)))
        compared = compare_protocols(shares / shares.sum(), HalfWidth(width), epsilon, optimal=own)
        rows = [
            replace(row, protocol="channel of this survey") if row.protocol == "optimal channel" else row
            for row in compared
        ]
        shown = replace(compared, rows=tuple(rows))
        cells = [[r.protocol, ceil_digits(r.epsilon, 4), ceil_digits(r.eta, 4), f"{r.respondents:,}"] for r in shown]
        drawn = self.draw(protocols, shown)
        return {"cells": cells, "width": width, "unprivate": f"{shown.respondents_without_privacy:,}", "drawn": drawn}


def _channel_in_words(channel: Channel) -> str:
    """The probabilities of a small channel in words; for a large one the likeliest report of each answer."""
    k, m = channel.shape
    said = []
    for label, row in zip(channel.inputs, channel.matrix, strict=True):
        best = np.argsort(-row, kind="stable")[: m if k * m <= 36 else 1]
        parts = ", ".join(f"{label_in_words(channel.outputs[y])} {100 * row[y]:.1f} %" for y in sorted(best))
        said.append(f"{label_in_words(label)} is reported as {parts}")
    return f"Channel from {k} answers to {m} reports: {'; '.join(said)}."


def _effect(shares: Estimate) -> str:
    """The design effect at the estimate, in words."""
    p = np.clip(shares.values, 0.0, 1.0)
    if shares.table.simple:
        variances = np.diag(shares.loadings * shares.table.frequencies @ shares.loadings.T) - shares.values**2
    else:
        variances = shares.n * np.diag(shares.sampling.covariance)
    plain = max(float((p * (1 - p)).max()), 1 / max(shares.n, 1))
    effect = float(variances.max()) / plain
    if not effect > 0:
        return f"No design effect can be estimated: all {shares.n:,} reports are equal."
    of = "" if shares.table.simple else ", of the sample and of privacy together"
    return (
        f"Design effect {effect:.3g}{of}: these {shares.n:,} private reports are worth about "
        f"{max(1, round(shares.n / effect)):,} open answers."
    )
