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
from ldpopt_survey.collect.manifest import add_fingerprints
from ldpopt_survey.estimate.conditional_mean import ConditionalMean
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
    """Estimate among those who answered, for questions whose missing answers are a category.

    Questions without such an estimate are left out.
    """
    among = {}
    for question in map(plan.part, plan.answers):
        if not non_answers(question) or question.measure == "mean" or question.name not in estimates:
            continue
        estimate = estimates[question.name]
        answered = {}
        for name, group_estimate in (
            {"": estimate.whole, **estimate.groups} if isinstance(estimate, Findings) else {"": estimate}
        ).items():
            with suppress(InvalidInput):
                answered[name] = among_answered(group_estimate, *non_answers(question))
        if "" in answered:
            among[question.name] = Findings(answered.pop(""), answered)
    return among


def missing_in_words(question: Part | PlannedQuestion, answered: int, rows: int | None) -> str:
    """Describe the treatment of missing answers, and its effect on the guarantee.

    The text is empty if missing answers were refused.

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


def missing_by_question(plan: Plan, counts: Counts) -> dict[str, str]:
    """Describe the treatment of missing answers by question; leave empty texts out."""
    sentences = {}
    for name, holders in plan.answers.items():
        rows = counts.rows if holders[0].probability == 1 else None
        sentences[name] = missing_in_words(
            plan.part(name), sum(int(counts[holder.name].sum()) for holder in holders), rows
        )
    return {name: words for name, words in sentences.items() if words}


def precision_in_words(plan: Plan, name: str, estimated: Estimate) -> str:
    """Describe the target half-width of the plan and the widest one obtained, both at 95 %.

    The text is empty without a target.
    """
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


def caveats_in_words(shares: Estimate) -> str:
    """Describe the weakness of an estimate: few reports, one primary unit, or few who are asked.

    Of a mean among those who are asked it says how many these are. The text is empty if nothing applies.
    """
    if isinstance(shares, ConditionalMean):
        rest = _weakness_in_words(shares) if shares.estimable else ""
        return " ".join(filter(None, [shares.caveat, rest]))
    return _weakness_in_words(shares)


def _weakness_in_words(shares: Estimate) -> str:
    if shares.bets is None and not shares.degrees:
        return (
            "All of them are of one primary unit (of each stratum), which does not show how units differ: the standard "
            "errors are those of the reports' randomness alone, and the intervals have all that reports could give."
        )
    if not shares.few_report_labels:
        return ""
    answers = (
        "this"
        if len(shares.few_report_labels) == len(shares.labels)
        else ", ".join(map(as_text, shares.few_report_labels))
    )
    return (
        f"Few reports tell of {answers}: intervals of 95 % may cover in anything from 91 to 99 of 100 surveys there, "
        "by how the true share falls between whole numbers of reports."
    )


MAX_REPORTS_DRAWN = 40
"""Channels with more reports than this are not drawn, since nothing could be read."""


def survey_report(
    plan: Plan,
    estimates: Mapping[str, Estimate | Findings],
    counts: Counts | None = None,
    pictures: bool = True,
    analysis: Analysis | None = None,
) -> str:
    """Generate the HTML report with estimates, channels, guarantees and rival protocols.

    With `counts` the page names its reports, and says if they are simulated; without `pictures` it describes them.
    """
    simulation, unlabelled = (counts.simulation, counts.unlabelled) if counts is not None else (False, False)
    findings = {
        name: result if isinstance(result, Findings) else Findings(result, {}) for name, result in estimates.items()
    }
    analysis_used = Analysis() if analysis is None else analysis
    marks = []  # the data from which `ldpopt_survey.reports.verify_delivery` recomputes the page
    if counts is not None:
        marks = [("ldpopt-reports", f"{add_fingerprints(counts.sources)} {__version__}")]
        marks += (
            []
            if analysis_used.is_default
            else [("ldpopt-analysis", json.dumps(analysis_used.to_dict(), sort_keys=True))]
        )
    page = _Page(analysis_used, f"{100 * analysis_used.level:g} %", counts, pictures)
    together = "all reports of a person" if plan.booklets else "all questions together"
    parts = [(q.name, str(len(q.categories)), q) for q in plan.questions] + [(together, "", plan)]
    budget = [[name, answers, ceil_digits(part.epsilon, 4), ceil_digits(part.eta, 4)] for name, answers, part in parts]
    if plan.booklets:
        budget = [
            [*row, share]
            for row, share in zip(budget, [*(str(q.probability) for q in plan.questions), ""], strict=True)
        ]
    several = len(plan.questions) > 1
    n = max(result.whole.n for result in findings.values())
    if counts is not None and plan.booklets and not analysis_used.where:
        n = counts.rows  # each is of one booklet, so that no question has them all
    return render(
        "survey.html",
        title=f"Simulation: {plan.name}" if simulation else plan.name,
        marks=marks,
        plan=plan,
        n=f"{n:,}",
        how=str(analysis_used),
        simulation=simulation,
        unlabelled=unlabelled,
        budget=budget if several else None,
        promise=promises_in_words(plan),
        rounds=rounds_in_words(plan, () if counts is None else counts.rounds),
        questions=[page.question(plan, name, findings[name]) for name in plan.answers],
        level=analysis_used.level,
    )


@dataclass(frozen=True, eq=False)
class _Page:
    """The common data of the parts of a page: analysis, level in percent, counts, and whether it has figures."""

    asked: Analysis
    percent: str
    counts: Counts | None
    pictures: bool

    def draw(self, draw: Callable[..., Any], drawn: Any) -> bytes:
        """Draw a figure as bytes; empty if the page has none."""
        return plots.picture(draw(drawn)) if self.pictures else b""

    def question(self, plan: Plan, name: str, both: Findings) -> dict[str, Any]:
        """Collect the values that the template shows of a question."""
        shares, holders, part = both.whole, plan.answers[name], plan.part(name)
        k, m = holders[0].channel.shape
        drawn = m <= MAX_REPORTS_DRAWN and len(holders) == 1
        channel = Channel(holders[0].channel.matrix, holders[0].categories, holders[0].reports) if drawn else None
        rows = shares.n if self.counts is None else self.counts.rows
        missing = missing_in_words(part, shares.n, rows if holders[0].probability == 1 else None)
        answered: str | Markup = ""
        if non_answers(part) and part.measure == "shares" and not self.asked.anytime and not self.asked.answered:
            answered = self.intervals(among_answered(shares, *non_answers(part)), "Among those who answered")
        return {
            "name": name,
            "wording": dict(plan.wording).get(getattr(part, "option_of", None) or name, ""),
            "intervals": self.intervals(shares, f"{shares.n:,} reports"),
            "effect": f"{precision_in_words(plan, name, shares)} {_effect(shares) if part.measure == 'shares' else ''}",
            "groups": self.groups(both),
            "few": caveats_in_words(shares),
            "promise": question_in_words(plan, name),
            "booklets": []
            if has_own_report(plan, name) or part.measure == "mean"
            else [
                f"{holder.name} ({holder.channel.shape[0]} answers, {holder.channel.shape[1]} possible reports)"
                for holder in holders
            ],
            "pilot": holders[0].pilot is not None,
            "shape": (k, m),
            "channel": None if channel is None else _channel_in_words(channel),
            "drawn": b"" if channel is None else self.draw(plots.channel, channel),
            "rivals": self.rivals(holders[0], shares) if has_own_report(plan, name) else None,
            "missing": missing,
            "answered": answered,
        }

    def intervals(self, shares: Estimate, subject: str) -> Markup:
        """Generate a table of the estimates with their intervals."""
        limits, labels = shares.intervals(Binomial(self.asked.level)), [as_text(label) for label in shares.labels]
        caption = f"{subject}; {self.percent} {limits.interval}s."
        is_mean = shares.labels == ("mean",)
        return interval_table(labels, shares.values, limits.lower, limits.upper, caption, self.percent, is_mean)

    def groups(self, both: Findings) -> Markup:
        """Generate a table of the intervals of all groups, answer by answer.

        Of two answers only the second is shown.
        """
        if not both.groups:
            return Markup("")
        groups = [
            (name, estimate, estimate.intervals(Binomial(self.asked.level))) for name, estimate in both.groups.items()
        ]
        k = len(both.whole.labels)
        answers = range(1 if k == 2 else 0, k)
        labels = [
            f"{as_text(estimate.labels[x])}: {name} ({estimate.n:,})" for x in answers for name, estimate, _ in groups
        ]
        values, lower, upper = np.array(
            [[estimate.values[x], limits.lower[x], limits.upper[x]] for x in answers for _, estimate, limits in groups]
        ).T
        caption = f"By {', '.join(self.asked.by)} (reports); {self.percent} {groups[0][2].interval}s."
        return interval_table(labels, values, lower, upper, caption, self.percent, both.whole.labels == ("mean",))

    def rivals(self, question: PlannedQuestion, estimated: Estimate) -> dict[str, Any] | None:
        """Compute the respondents that other protocols need for the planned half-width.

        They have the same epsilon.
        """
        if not 0 < question.epsilon < math.inf:
            return None
        shares = np.clip(estimated.values, 1e-6, None) if question.pilot is None else question.pilot
        width = (question.expected or {}).get("half_width", 0.05)
        channel = Channel(question.channel.matrix)
        # Measured in floats and rounded outward, the channel may exceed the proved epsilon by a rounding error.
        epsilon = max(question.epsilon, float(local_dp(channel)))
        protocol_table = compare_protocols(shares / shares.sum(), HalfWidth(width), epsilon, optimal=channel)
        rows = [
            replace(row, protocol="channel of this survey") if row.protocol == "optimal channel" else row
            for row in protocol_table
        ]
        comparison = replace(protocol_table, rows=tuple(rows))
        cells = [
            [r.protocol, ceil_digits(r.epsilon, 4), ceil_digits(r.eta, 4), f"{r.respondents:,}"] for r in comparison
        ]
        figure = self.draw(protocols, comparison)
        return {
            "cells": cells,
            "width": width,
            "unprivate": f"{comparison.respondents_without_privacy:,}",
            "drawn": figure,
        }


def _channel_in_words(channel: Channel) -> str:
    """The probabilities of a small channel in words; for a large one the likeliest report of each answer."""
    k, m = channel.shape
    sentences = []
    for label, row in zip(channel.inputs, channel.matrix, strict=True):
        best = np.argsort(-row, kind="stable")[: m if k * m <= 36 else 1]
        parts = ", ".join(f"{label_in_words(channel.outputs[y])} {100 * row[y]:.1f} %" for y in sorted(best))
        sentences.append(f"{label_in_words(label)} is reported as {parts}")
    return f"Channel from {k} answers to {m} reports: {'; '.join(sentences)}."


def _effect(shares: Estimate) -> str:
    """The design effect at the estimate, in words."""
    p = np.clip(shares.values, 0.0, 1.0)
    if shares.table.simple:
        variances = np.diag(shares.loadings * shares.table.frequencies @ shares.loadings.T) - shares.values**2
    else:
        variances = shares.n * np.diag(shares.sampling.covariance)
    binomial_variance = max(float((p * (1 - p)).max()), 1 / max(shares.n, 1))
    effect = float(variances.max()) / binomial_variance
    if not effect > 0:
        return f"No design effect can be estimated: all {shares.n:,} reports are equal."
    sources = "" if shares.table.simple else ", of the sample and of privacy together"
    return (
        f"Design effect {effect:.3g}{sources}: these {shares.n:,} private reports are worth about "
        f"{max(1, round(shares.n / effect)):,} open answers."
    )
