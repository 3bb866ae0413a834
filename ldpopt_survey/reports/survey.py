"""Generate the HTML report of a survey: estimates, missing answers, channels, and their guarantees."""

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
from ldpopt_survey.sample.analysis import (
    NO_REPORT,
    Analysis,
    Findings,
    counts_have_reports,
    has_own_report,
    questions_without_reports,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ldpopt_survey.collect.aggregate import Counts
    from ldpopt_survey.estimate.estimate import Estimate
    from ldpopt_survey.plan.plan import Plan
    from ldpopt_survey.plan.planned_question import Part, PlannedQuestion


def among_those_who_answered(plan: Plan, estimates: Mapping[str, Estimate | Findings]) -> dict[str, Findings]:
    """Estimate among those who answered, for questions whose missing answers are a category.

    Questions without such an estimate are left out. `Findings.groups_left_out` names the groups without one.
    """
    findings = {}
    for question in map(plan.part, plan.answers):
        if not non_answers(question) or question.measure == "mean" or question.name not in estimates:
            continue
        estimate = as_findings(estimates[question.name])
        groups, left_out = {}, dict(estimate.groups_left_out)
        for name, group_estimate in estimate.groups.items():
            try:
                groups[name] = among_answered(group_estimate, *non_answers(question))
            except InvalidInput as error:
                left_out[name] = str(error)
        with suppress(InvalidInput):
            overall = among_answered(estimate.whole, *non_answers(question))
            findings[question.name] = Findings(overall, groups, left_out)
    return findings


def as_findings(estimate: Estimate | Findings) -> Findings:
    """Convert an estimate to `Findings` without groups; leave `Findings` unchanged."""
    return estimate if isinstance(estimate, Findings) else Findings(estimate, {})


def why_not_among_answered(plan: Plan, name: str, estimate: Estimate) -> str:
    """Return the reason why a question has no estimate among those who answered.

    The text is empty if it has one, and if all categories of the estimate are answers.
    """
    part = plan.part(name)
    is_restricted = not set(non_answers(part)) & set(estimate.labels)
    if is_restricted or part.measure == "mean" or estimate.bets is not None:
        return ""
    try:
        among_answered(estimate, *non_answers(part))
    except InvalidInput as error:
        return str(error)
    return ""


def no_estimate_in_words(question: str, reason: str = NO_REPORT) -> str:
    """Describe that a question has no estimate, with the reason."""
    return f"{question}: no estimate ({reason})."


def left_out_in_words(question: str, findings: Findings, by: Sequence[str]) -> list[str]:
    """Describe the groups of the columns `by` without an estimate of a question, one sentence for each reason."""
    groups_by_reason: dict[str, list[str]] = {}
    for group, reason in findings.groups_left_out.items():
        groups_by_reason.setdefault(reason, []).append(group)
    return [
        f"{question}: no estimate for {', '.join(by)} {', '.join(groups)} ({reason})."
        for reason, groups in groups_by_reason.items()
    ]


def missing_in_words(question: Part | PlannedQuestion, answer_count: int, rows: int | None) -> str:
    """Describe the treatment of missing answers, and its effect on the guarantee.

    The text is empty if missing answers were refused.

    rows : the number of all reports, if everybody was asked.
    """
    reading = question.reading
    if reading.left_out and rows is None:
        return (
            "People who were asked and did not answer have an empty report, which everybody with the reports sees: "
            f"this is not protected. The proportions are among the {answer_count:,} who answered, whose answers are "
            "protected."
        )
    if reading.left_out and rows is not None:
        return (
            f"{rows - answer_count:,} of {rows:,} reports are empty: everybody with the reports sees who did not "
            f"answer, which is not protected. The proportions are among the {answer_count:,} who answered, whose "
            "answers are protected."
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


def precision_in_words(plan: Plan, name: str, estimate: Estimate) -> str:
    """Describe the target half-width of the plan and the widest one obtained, both at 95 %.

    The text is empty without a target.
    """
    expected = plan.answers[name][0].expected or {}
    if len(plan.answers[name]) > 1 or "half_width" not in expected or estimate.bets is not None:
        return ""
    limits = estimate.intervals(Binomial())
    widest = float(np.max(limits.upper - limits.lower)) / 2
    times, unit = (1, "") if plan.part(name).measure == "mean" else (100, " percentage points")
    return (
        f"Planned: intervals of ±{times * expected['half_width']:.3g}{unit} at 95 %, with "
        f"{expected['respondents']:,.0f} reports of a simple sample. Obtained: at most ±{times * widest:.3g}, with "
        f"{estimate.n:,} reports."
    )


def caveats_in_words(estimate: Estimate) -> str:
    """Describe the weakness of an estimate: few reports, one primary unit, or few who are asked.

    Of a mean among those who are asked it says how many these are. The text is empty if nothing applies.
    """
    if isinstance(estimate, ConditionalMean):
        rest = _weakness_in_words(estimate) if estimate.estimable else ""
        return " ".join(filter(None, [estimate.caveat, rest]))
    return _weakness_in_words(estimate)


def _weakness_in_words(estimate: Estimate) -> str:
    if estimate.bets is None and not estimate.degrees:
        return (
            "All of them are of one primary unit (of each stratum), which does not show how units differ: the standard "
            "errors are those of the reports' randomness only, and the intervals include all values that reports "
            "allow."
        )
    if not estimate.few_report_labels:
        return ""
    answers = (
        "this"
        if len(estimate.few_report_labels) == len(estimate.labels)
        else ", ".join(map(as_text, estimate.few_report_labels))
    )
    return (
        f"Few reports inform about {answers}: 95 % intervals may cover in 91 to 99 of 100 surveys there, depending on "
        "how the true proportion falls between whole numbers of reports."
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

    Parameters
    ----------
    plan : The plan.
    estimates : An estimate, or `Findings`, for each question that has reports.
    counts : The counts of the reports, which the page identifies; it states if they are simulated.
    pictures : False to describe figures instead of showing them.
    analysis : The analysis of the estimates; the default one if None.

    Returns
    -------
    str
        The page as HTML.
    """
    simulation, unlabelled = (counts.simulation, counts.unlabelled) if counts is not None else (False, False)
    findings = {name: as_findings(result) for name, result in estimates.items()}
    analysis_used = Analysis() if analysis is None else analysis
    without_reports = questions_without_reports(plan, findings)
    for name in without_reports:
        if counts is not None and analysis_used.of_counts and counts_have_reports(plan, name, counts):
            raise InvalidInput(f"estimates: the question {name!r} has reports, and no estimate among these")
    marks = []  # `ldpopt_survey.reports.verify_delivery` recomputes the page from these
    if counts is not None:
        marks = [("ldpopt-reports", f"{add_fingerprints(counts.sources)} {__version__}")]
        marks += (
            []
            if analysis_used.is_default
            else [("ldpopt-analysis", json.dumps(analysis_used.to_dict(), sort_keys=True))]
        )
    page = _Page(analysis_used, f"{100 * analysis_used.level:g} %", counts, pictures)
    total_name = "all reports of a person" if plan.booklets else "all questions together"
    parts = [(q.name, str(len(q.categories)), q) for q in plan.questions] + [(total_name, "", plan)]
    budget = [[name, answers, ceil_digits(part.epsilon, 4), ceil_digits(part.eta, 4)] for name, answers, part in parts]
    if plan.booklets:
        budget = [
            [*row, probability]
            for row, probability in zip(budget, [*(str(q.probability) for q in plan.questions), ""], strict=True)
        ]
    has_several = len(plan.questions) > 1
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
        budget=budget if has_several else None,
        promise=promises_in_words(plan),
        rounds=rounds_in_words(plan, () if counts is None else counts.rounds),
        left_out=[no_estimate_in_words(name) for name in without_reports],
        questions=[page.question(plan, name, findings[name]) for name in plan.answers if name in findings],
        level=analysis_used.level,
    )


@dataclass(frozen=True, eq=False)
class _Page:
    """The common data of the parts of a page: analysis, level in percent, counts, and whether it has figures."""

    analysis: Analysis
    percent: str
    counts: Counts | None
    pictures: bool

    def draw(self, draw: Callable[..., Any], subject: Any) -> bytes:
        """Draw a figure as bytes; empty if the page has none."""
        return plots.picture(draw(subject)) if self.pictures else b""

    def question(self, plan: Plan, name: str, findings: Findings) -> dict[str, Any]:
        """Collect the values that the template shows of a question."""
        estimate, holders, part = findings.whole, plan.answers[name], plan.part(name)
        k, m = holders[0].channel.shape
        is_drawn = m <= MAX_REPORTS_DRAWN and len(holders) == 1
        channel = Channel(holders[0].channel.matrix, holders[0].categories, holders[0].reports) if is_drawn else None
        rows = estimate.n if self.counts is None else self.counts.rows
        missing = missing_in_words(part, estimate.n, rows if holders[0].probability == 1 else None)
        effect = _effect(estimate) if part.measure == "shares" else ""
        answered_table: str | Markup = ""
        if non_answers(part) and part.measure == "shares" and not self.analysis.anytime and not self.analysis.answered:
            if reason := why_not_among_answered(plan, name, estimate):
                answered_table = Markup("<p>{}</p>").format(no_estimate_in_words(name, reason))
            else:
                among = among_answered(estimate, *non_answers(part))
                answered_table = self.intervals(among, "Among those who answered")
        return {
            "name": name,
            "wording": dict(plan.wording).get(getattr(part, "option_of", None) or name, ""),
            "intervals": self.intervals(estimate, f"{estimate.n:,} reports"),
            "effect": f"{precision_in_words(plan, name, estimate)} {effect}",
            "groups": self.groups(findings),
            "left_out": left_out_in_words(name, findings, self.analysis.by),
            "few": caveats_in_words(estimate),
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
            "rivals": self.rivals(holders[0], estimate) if has_own_report(plan, name) else None,
            "missing": missing,
            "answered": answered_table,
        }

    def intervals(self, estimate: Estimate, subject: str) -> Markup:
        """Generate a table of the estimates with their intervals."""
        limits, labels = (
            estimate.intervals(Binomial(self.analysis.level)),
            [as_text(label) for label in estimate.labels],
        )
        caption = f"{subject}; {self.percent} {limits.interval}s."
        is_mean = estimate.labels == ("mean",)
        return interval_table(labels, estimate.values, limits.lower, limits.upper, caption, self.percent, is_mean)

    def groups(self, findings: Findings) -> Markup:
        """Generate a table of the intervals of all groups, answer by answer.

        Of two answers only the second is shown.
        """
        if not findings.groups:
            return Markup("")
        groups = [
            (name, estimate, estimate.intervals(Binomial(self.analysis.level)))
            for name, estimate in findings.groups.items()
        ]
        k = len(findings.whole.labels)
        answers = range(1 if k == 2 else 0, k)
        labels = [
            f"{as_text(estimate.labels[x])}: {name} ({estimate.n:,})" for x in answers for name, estimate, _ in groups
        ]
        values, lower, upper = np.array(
            [[estimate.values[x], limits.lower[x], limits.upper[x]] for x in answers for _, estimate, limits in groups]
        ).T
        caption = f"By {', '.join(self.analysis.by)} (reports); {self.percent} {groups[0][2].interval}s."
        return interval_table(labels, values, lower, upper, caption, self.percent, findings.whole.labels == ("mean",))

    def rivals(self, question: PlannedQuestion, estimate: Estimate) -> dict[str, Any] | None:
        """Compute the respondents that other protocols need for the planned half-width.

        They have the same epsilon. The result is None without the proportions of all categories.
        """
        if not 0 < question.epsilon < math.inf:
            return None
        if question.pilot is None and len(estimate.labels) < len(question.categories):  # among those who answered
            return None
        shares = np.clip(estimate.values, 1e-6, None) if question.pilot is None else question.pilot
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


def _effect(estimate: Estimate) -> str:
    """The design effect at the estimate, in words."""
    p = np.clip(estimate.values, 0.0, 1.0)
    if estimate.table.simple:
        variances = np.diag(estimate.loadings * estimate.table.frequencies @ estimate.loadings.T) - estimate.values**2
    else:
        variances = estimate.n * np.diag(estimate.sampling.covariance)
    binomial_variance = max(float((p * (1 - p)).max()), 1 / max(estimate.n, 1))
    effect = float(variances.max()) / binomial_variance
    if not effect > 0:
        return f"No design effect can be estimated: all {estimate.n:,} reports are equal."
    sources = "" if estimate.table.simple else ", of the sample and of privacy together"
    return (
        f"Design effect {effect:.3g}{sources}: these {estimate.n:,} private reports are equivalent to about "
        f"{max(1, round(estimate.n / effect)):,} open answers."
    )
