"""Plot a plan (budget, precision, power), protocols by required respondents, and the figures of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import Channel
from ldpopt.extras import register
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.plots import (
    FIRST_COLOR,
    SECOND_COLOR,
    Axes,
    axes_or_new,
    inches_of,
    label_axes,
    label_text,
    log_ticks,
    panels,
    picture,
    put_legend,
)

if TYPE_CHECKING:
    from ldpopt_survey.plan.plan import Plan
    from ldpopt_survey.plan.spec import SurveySpec

__all__ = ["budget_split", "half_widths", "planning", "power_curves", "protocols", "survey_picture"]

LINE_COLORS = (FIRST_COLOR, SECOND_COLOR, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "0.35")
LINE_STYLES = ("-", "--", ":", "-.")


def budget_split(plan: Any, ax: Axes | None = None) -> Axes:
    """Draw a bar per question of a `Plan`, as long as its epsilon, with the first on top.

    Parameters
    ----------
    plan : A `Plan`.
    ax : Matplotlib axes; without them a new figure is made.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("a", ("no", "yes")), QuestionSpec("b", (1, 2, 3))), epsilon=2.0)
    >>> budget_split(plan_survey(spec).plan).get_xlabel()
    'ε of the question (nats), 2 in all'
    """
    questions = list(plan.questions)
    ax = axes_or_new(ax, 6.0, 1.2 + 0.3 * max(len(questions), 3))
    heights = np.arange(len(questions))[::-1]
    epsilons = [question.epsilon for question in questions]
    ax.barh(heights, epsilons, color=FIRST_COLOR, height=0.6)
    names = [f"{label_text(question.name, 24, 1)} ({len(question.categories)} answers)" for question in questions]
    ax.set_yticks(heights, names)
    ax.set_ylim(-0.6, len(questions) - 0.4)
    ax.tick_params(axis="y", length=0, labelsize=8)
    label_axes(ax, f"ε of the question (nats), {ceil_digits(plan.epsilon, 4)} in all", left=False)
    inches = inches_of(ax)[0]
    for place, question in zip(heights, questions, strict=True):
        probability = f", asked {question.probability}" if question.probability < 1 else ""
        ax.text(
            question.epsilon, float(place), f" {ceil_digits(question.epsilon, 3)}{probability}", va="center", fontsize=8
        )
    # Leave space for the longest text next to the longest bar.
    text_inches = 0.062 * max(len(text.get_text()) for text in ax.texts)
    ax.set_xlim(0, max(epsilons) / max(0.3, 1 - text_inches / inches))
    return ax


def half_widths(plan: Any, ax: Axes | None = None) -> Axes:
    """Draw the half-width of each question's widest 95 % interval against the respondents.

    The information of several booklets on a question is added, and a dot marks its target. A mean is drawn as a
    fraction of the range of its answers, stated in the legend.

    Parameters
    ----------
    plan : A `Plan`.
    ax : Matplotlib axes; without them a new figure is made.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("a", ("no", "yes")),), epsilon=2.0)
    >>> half_widths(plan_survey(spec).plan).get_ylabel().split()
    ['half-width', 'of', 'the', 'widest', '95', '%', 'interval']
    """
    from ldpopt_survey.plan.reported_precision import half_width_of_one, target_of

    ax = axes_or_new(ax, 5.0, 3.6)
    width_by_question = {name: half_width_of_one(plan, name) for name in plan.answers}
    targets = {name: target_of(plan, name) for name in width_by_question}
    mean_questions = [name for name in width_by_question if plan.part(name).measure == "mean"]
    # Means have units of their own, so their lines are as parts of the range of the answers.
    spans = {name: float(np.ptp(plan.part(name).ends)) for name in mean_questions}
    required = [(unit_width / (targets[name] or 0.05)) ** 2 for name, unit_width in width_by_question.items()]
    n = np.geomspace(max(30.0, min(required) / 10), 10 * max(required), 120)
    for number, (name, unit_width) in enumerate(width_by_question.items()):
        # Dashes distinguish lines that coincide, and lines printed without colors.
        color, style = LINE_COLORS[number % len(LINE_COLORS)], LINE_STYLES[number % len(LINE_STYLES)]
        span, target = spans.get(name, 1.0), targets[name]
        unit = f", 100 points = {span:g}" if name in spans else ""
        ax.plot(n, unit_width / span / np.sqrt(n), style, color=color, label=f"{label_text(name, 24, 1)}{unit}")
        if target is not None:
            ax.plot([(unit_width / target) ** 2], [target / span], "o", color=color, markersize=5)
    ax.set_xscale("log")
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ticks = [step * 10.0**ten for ten in range(-6, 1) for step in (1, 2, 5) if low <= step * 10.0**ten <= min(high, 1)]
    ax.set_yticks(ticks or [low, high], minor=False)
    ax.set_yticks([], minor=True)
    ax.yaxis.set_major_formatter(lambda y, _: f"± {100 * y:.3g} points")
    return _against_respondents(ax, "half-width of the widest 95 % interval")


def power_curves(plan: Any, alternatives: Any, level: float = 0.05, ax: Axes | None = None) -> Axes:
    """Draw the power of each question's goodness-of-fit test against the respondents.

    Parameters
    ----------
    plan : A `Plan`.
    alternatives : By a question's name, the proportions (k,) that the test should detect; other questions are left out.
    level : The level of significance, in (0, 1).
    ax : Matplotlib axes; without them a new figure is made.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. For comparison they show the power without privacy, too.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("a", ("no", "yes")),), epsilon=2.0)
    >>> power_curves(plan_survey(spec).plan, {"a": [0.4, 0.6]}).get_xlabel()
    'respondents (of a simple random sample)'
    """
    from ldpopt_survey.hypothesis_tests import goodness_of_fit_power, respondents_for_power

    ax = axes_or_new(ax, 5.0, 3.6)
    questions = [question for question in plan.questions if question.name in alternatives]
    pairs = [
        (planned, (Channel(planned.channel.matrix), Channel(np.eye(len(planned.shares))))) for planned in questions
    ]
    ends = [
        respondents_for_power(channel, planned.shares, alternatives[planned.name], 0.95, level)
        for planned, channels in pairs
        for channel in channels
    ]
    n = np.unique(np.geomspace(max(5.0, min(ends) / 20), 2.0 * max(ends), 80).astype(int))
    for number, (question, channels) in enumerate(pairs):
        color, alternative = LINE_COLORS[number % len(LINE_COLORS)], alternatives[question.name]
        names = (f"ε = {ceil_digits(question.epsilon, 3)}", "without privacy")
        for channel, style, name in zip(channels, "-:", names, strict=True):
            power = [
                float(goodness_of_fit_power(channel, question.shares, alternative, int(size), level)) for size in n
            ]
            ax.plot(n, power, style, color=color, label=f"{label_text(question.name, 20, 1)}, {name}")
        target = (question.expected or {}).get("power")
        if target is not None:
            ax.plot([question.expected["respondents_for_power"]], [target], "o", color=color, markersize=5)
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    return _against_respondents(ax, f"power of the test at level {level:g}")


def planning(plan: Any, alternatives: Any = None) -> Axes:
    """Draw `budget_split`, `half_widths` and, with `alternatives`, `power_curves` together.

    Parameters
    ----------
    plan, alternatives : As in these functions.

    Returns
    -------
    matplotlib.axes.Axes
        The first axes.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("a", ("no", "yes")),), epsilon=2.0)
    >>> len(planning(plan_survey(spec).plan).figure.axes)
    2
    """
    height = max(3.8, 1.2 + 0.3 * len(plan.questions))
    axes = panels((5.2, 5.6, 5.6) if alternatives else (5.2, 5.6), height)
    budget_split(plan, axes[0])
    half_widths(plan, axes[1])
    if alternatives:
        power_curves(plan, alternatives, ax=axes[2])
    return axes[0]


def _against_respondents(ax: Axes, y: str) -> Axes:
    """Return `ax` with a legend below the data, a light grid, and numbers of respondents such as 1,000."""
    log_ticks(ax)
    label_axes(ax, "respondents (of a simple random sample)", y, "both")
    put_legend(ax, "below", *ax.get_legend_handles_labels(), size=7)
    return ax


def protocols(table: Any, ax: Axes | None = None) -> Axes:
    """Draw a dot per protocol of a `ProtocolTable`, on a logarithmic scale of respondents.

    A line from the number of respondents that suffices without privacy to each dot is as long as the factor between the
    two.

    Parameters
    ----------
    table : The table, from `survey.compare_protocols`.
    ax : Matplotlib axes; without them a new figure is made.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    >>> from ldpopt_survey import HalfWidth, compare_protocols
    >>> protocols(compare_protocols([0.3, 0.7], HalfWidth(0.05), 1.0)).get_xlabel()
    'respondents for a half-width of 5 points'
    """
    rows = list(table)[::-1]
    ax = axes_or_new(ax, 7.0, 1.1 + 0.3 * len(rows))
    for height, row in enumerate(rows):
        is_designed = row.protocol in ("optimal channel", "channel of this survey")
        color = FIRST_COLOR if is_designed else "0.45"
        ax.hlines(height, table.respondents_without_privacy, row.respondents, color=color, lw=1.4)
        ax.plot([row.respondents], [height], "o" if is_designed else "s", color=color, ms=6 if is_designed else 4.5)
        ax.annotate(
            f"{row.respondents:,}", (row.respondents, height), (6, 0),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    ax.axvline(table.respondents_without_privacy, color=SECOND_COLOR, linewidth=1.2)
    ax.text(
        table.respondents_without_privacy,
        len(rows) - 0.4,
        f" {table.respondents_without_privacy:,} without privacy",
        color=SECOND_COLOR,
        fontsize=8,
    )
    ax.set_yticks(range(len(rows)), [label_text(row.protocol) for row in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xscale("log")
    ax.set_xlim(table.respondents_without_privacy / 1.3, 4 * max(row.respondents for row in rows))
    log_ticks(ax)
    ax.tick_params(axis="y", length=0, labelsize=9)
    return label_axes(
        ax, f"respondents for a half-width of {100 * table.precision.width:g} points", grid="x", left=False
    )


def survey_picture(plan: Plan, spec: SurveySpec, kind: str = "png") -> bytes:
    """Plot the budget, half-widths and power of a plan, as the bytes of a figure.

    The power is drawn if `spec` has a target for it.

    >>> from ldpopt_survey import QuestionSpec, SurveySpec, plan_survey
    >>> spec = SurveySpec("demo", (QuestionSpec("a", ("no", "yes")),), epsilon=2.0)
    >>> survey_picture(plan_survey(spec).plan, spec)[1:4]
    b'PNG'
    """
    alternatives = {
        question.name: question.alternative for question in spec.questions if question.alternative is not None
    }
    return picture(planning(plan, alternatives), kind)


register(budget_split, protocols)
