"""Compare the confidence sequences of a running survey with the target widths of its questions, as a small HTML page.

The sequences are time-uniform, so a survey may be stopped because of this page.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from ldpopt.errors import InvalidInput
from ldpopt.values.results import Result
from ldpopt_survey.estimate.anytime import HALF_WIDTH
from ldpopt_survey.estimate.estimate import Estimate
from ldpopt_survey.estimate.intervals import Binomial
from ldpopt_survey.plan.plan import Plan
from ldpopt_survey.plan.reported_precision import target_of


@dataclass(frozen=True)
class Progress(Result):
    """The half-width of the widest sequence of a question, and its target half-width; for a mean without `unit`.

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
    """Return the progress of every question by its anytime estimate, None without reports.

    The target half-width is the plan's, and 0.05 if the plan has none. Raises `InvalidInput` for other estimates.
    """
    progress = []
    for name, current in estimates.items():
        if current is not None and current.bets is None:
            raise InvalidInput(f"estimate of {name!r}: it must be an anytime one (anytime=True)")
        target, part = target_of(plan, name) or HALF_WIDTH, plan.part(name)
        low, high = part.ends
        ends = (low, high) if current is None else attrgetter("lower", "upper")(current.intervals(Binomial(level)))
        width = float(np.ptp(np.clip(ends, low, high), axis=0).max()) / 2
        progress.append(
            Progress(name, 0 if current is None else current.n, width, target, *[""][: part.measure == "mean"])
        )
    return progress


def in_words(progress: Sequence[Progress]) -> str:
    """Return a sentence that states whether the survey may be stopped."""
    unreached_count = sum(not question.reached for question in progress)
    if not unreached_count:
        return "Every target width is reached: the survey may be stopped."
    return f"Collect on: {unreached_count} of {len(progress)} questions have not reached their target width."


def page(title: str, progress: Sequence[Progress]) -> bytes:
    """Render the progress page, without scripts."""
    rows = "".join(
        f'<li><meter min="0" max="1" value="{min(1.0, question.wanted / max(question.half_width, 1e-9)):.4f}"></meter> '
        f"{html.escape(str(question))}</li>"
        for question in progress
    )
    body = f'<p role="status"><strong>{html.escape(in_words(progress))}</strong></p><ul>{rows}</ul>'
    body += "<p>95 % confidence sequences, for a simple random sample. They stay valid under repeated looks.</p>"
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
    return f"{head}<meta name=viewport content='width=device-width'><h1>{html.escape(title)}</h1>{body}".encode()
