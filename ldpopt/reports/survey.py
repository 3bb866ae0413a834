"""The page of a survey: what was estimated, through which channels, and what they promise the respondents."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ldpopt import plots
from ldpopt.channel import Channel
from ldpopt.privacy import Guarantee
from ldpopt.reports.page import embed, page, table
from ldpopt.reports.words import guarantee_in_words
from ldpopt.rounding import ceil_digits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ldpopt.survey.estimate import Estimate
    from ldpopt.survey.planfile import Plan, PlannedQuestion

DRAWN = 40
"""Reports of the largest channel that is drawn; beyond, a picture shows nothing."""


def survey_report(plan: Plan, estimates: Mapping[str, Estimate]) -> str:
    """One HTML page with every question's estimates, channel, guarantees in plain words and design effect.

    estimates : an `Estimate` for each question's name.
    """
    n = max(one.n for one in estimates.values())
    body = [
        f"<h1>{escape(plan.name)}</h1>",
        f'<p class="lead">Estimates from {n:,} privatized reports, round {plan.round}. The shares below are '
        "computed from randomized reports alone.</p>",
        "<h2>What respondents were promised</h2>",
        *_promises(plan),
    ]
    for question in plan.questions:
        body += _question(question, estimates[question.name])
    body += [
        "<h2>How to read this</h2>",
        "<p>An interval covers the true share in about 95 of 100 surveys like this one; it accounts for the sampling "
        "of respondents and for the randomization, not for refusals or untrue answers. Estimates are unbiased and "
        "may therefore be slightly negative where a share is near zero. The design effect is how many times more "
        "respondents this privacy costs than asking openly, for the category with the widest interval.</p>",
        f'<p class="soft">Plan checksum {plan.checksum}.</p>',
    ]
    return page(plan.name, body)


def _promises(plan: Plan) -> list[str]:
    if len(plan.questions) == 1:
        return _said(plan.questions[0])
    rows = [[q.name, str(len(q.categories)), ceil_digits(q.epsilon, 4), ceil_digits(q.eta, 4)] for q in plan.questions]
    rows.append(["all questions together", "", ceil_digits(plan.epsilon, 4), ceil_digits(plan.eta, 4)])
    return [
        table(["question", "answers", "ε (nats)", "η"], rows, "Smaller is more private.", numbers=(1, 2, 3)),
        "<p>ε bounds, on a logarithmic scale, how much likelier any report is under one answer than under another; η "
        "bounds how well anybody can tell two answers apart. Each further round of the survey adds to both. For "
        "all reports of one person together, whatever the answers:</p>",
        *_in_words(plan.epsilon, plan.eta),
    ]


def _said(question: PlannedQuestion) -> list[str]:
    return _in_words(question.epsilon, question.eta)


def _in_words(epsilon: float, eta: float) -> list[str]:
    """The claims of a plan, which its integers prove, as promises."""
    claims = [
        Guarantee("local_dp", epsilon, epsilon, None, True, "[GI, Def 6]"),
        Guarantee("total_variation", eta, eta, None, True, "[GI, Def 7]"),
    ]
    return [f"<p>{escape(guarantee_in_words(claim))}</p>" for claim in claims]


def _question(question: PlannedQuestion, found: Estimate) -> list[str]:
    shown = found.intervals().clip()
    rows = [
        [str(label), f"{100 * value:.2f} %", f"{100 * low:.2f} %", f"{100 * high:.2f} %"]
        for label, value, low, high in zip(found.labels, found.values, shown.lower, shown.upper, strict=True)
    ]
    k, m = question.channel.shape
    picture = plots.picture(plots.shares(found.labels, found.values, shown.lower, shown.upper))
    body = [
        f"<h2>{escape(question.name)}</h2>",
        embed(picture, f"Estimated shares of {k} answers with 95 % intervals"),
        table(
            ["answer", "estimate", "from", "to"], rows, f"{found.n:,} reports; 95 % score intervals.", numbers=(1, 2, 3)
        ),
        "<h3>What the report of one person says</h3>",
        *_said(question),
        f"<p>{_effect(found)}</p>",
    ]
    if m <= DRAWN:
        channel = Channel(question.channel.matrix, question.categories, question.reports)
        drawn = plots.picture(plots.channel(channel))
        body.append(embed(drawn, f"Channel from {k} answers to {m} reports", "How an answer becomes a report."))
    else:
        body.append(f'<p class="soft">The channel turns {k} answers into {m} possible reports; see the plan file.</p>')
    return body


def _effect(found: Estimate) -> str:
    """The design effect at the estimate, in words."""
    error = np.asarray(found.intervals().width)
    p = np.clip(found.values, 0.0, 1.0)
    widest = int(np.argmax(error))
    covariance = np.diag(found.loadings * found.table.frequencies @ found.loadings.T) - found.values**2
    plain = max(float(p[widest] * (1 - p[widest])), 1 / max(found.n, 1))
    effect = float(covariance[widest]) / plain
    return (
        f"Design effect {effect:.3g}: these {found.n:,} private reports are worth about "
        f"{max(1, round(found.n / effect)):,} open answers."
    )
