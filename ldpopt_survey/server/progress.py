"""Confidence sequences of a running survey -> how near each question is to the width that is wanted, as a small page.

Sequences hold at all looks together, so a survey may be stopped for what this page says.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from ldpopt.errors import invalid
from ldpopt.values.results import Result
from ldpopt_survey.estimate.anytime import HALF_WIDTH
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.intervals import Binomial
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.reported_precision import target_of


@dataclass(frozen=True)
class Progress(Result):
    """The half-width of the widest sequence of a question, and the width that it may be; of a mean without `unit`.

    >>> Progress("vote", 900, 0.06, 0.05).reached
    False
    """

    question: str
    reports: int
    half_width: float
    wanted: float
    unit: str = " points"

    @property
    def reached(self) -> bool:
        """True if the widest sequence is narrow enough."""
        return self.half_width <= self.wanted

    def __str__(self) -> str:
        times = 100 if self.unit else 1
        width = f"{math.ceil(100 * times * self.half_width) / 100:.2f}{self.unit}"
        now = f"{self.question}: within {width} from {self.reports:,} reports"
        return f"{now}; wanted {times * self.wanted:g}{', reached' if self.reached else ''}"


def progress_of(plan: Plan, estimates: Mapping[str, Estimate | None], level: float = 0.95) -> list[Progress]:
    """The progress of every question by its anytime estimate, None without reports; `InvalidInput` for other estimates.

    The half-width wanted is the plan's, and 0.05 where it says none.
    """
    steps = []
    for name, now in estimates.items():
        if now is not None and now.bets is None:
            raise invalid(f"estimate of {name!r}", "an anytime one", "another")
        wanted, part = target_of(plan, name) or HALF_WIDTH, plan.part(name)
        low, high = part.ends
        ends = (low, high) if now is None else attrgetter("lower", "upper")(now.intervals(Binomial(level)))
        width = float(np.ptp(np.clip(ends, low, high), axis=0).max()) / 2
        steps.append(Progress(name, 0 if now is None else now.n, width, wanted, *[""][: part.measure == "mean"]))
    return steps


def in_words(progress: Sequence[Progress]) -> str:
    """Return a sentence that states whether the survey may be stopped."""
    lacking = sum(not question.reached for question in progress)
    if not lacking:
        return "Every width that is wanted is reached: the survey may be stopped."
    return f"Collect on: {lacking} of {len(progress)} questions have not reached the width that is wanted."


def page(title: str, progress: Sequence[Progress]) -> bytes:
    """Render the progress page, without scripts."""
    rows = "".join(
        f'<li><meter min="0" max="1" value="{min(1.0, question.wanted / max(question.half_width, 1e-9)):.4f}"></meter> '
        f"{html.escape(str(question))}</li>"
        for question in progress
    )
    body = f'<p role="status"><strong>{html.escape(in_words(progress))}</strong></p><ul>{rows}</ul>'
    body += "<p>95 % confidence sequences, as of a simple sample: they hold at all looks together.</p>"
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
    return f"{head}<meta name=viewport content='width=device-width'><h1>{html.escape(title)}</h1>{body}".encode()
