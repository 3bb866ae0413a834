"""Pictures of one channel or design: its matrix, its blocks, the patterns it uses, and shares with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.design.problems.reduction import Cells
from ldpopt.errors import InvalidInput, Phrase, invalid
from ldpopt.plots.figure import (
    FIRST_COLOR,
    SECOND_COLOR,
    Axes,
    axes_or_new,
    draw_colorbar,
    fit_labels,
    inches_of,
    label_axes,
    label_text,
    legend_above,
    log_ticks,
    panels,
    picture,
    positive_width,
    row_labels,
    text_color,
)
from ldpopt.values.distribution import Array

if TYPE_CHECKING:
    from ldpopt.design import Design, Divergence, Structures


MAX_LABELS = 60
"""More rows or columns than this are numbered instead of labelled one by one."""


def channel(channel: ChannelLike, ax: Axes | None = None, order: Sequence[int] | None = None) -> Axes:
    """Draw Pr(report | answer), with one row per answer and one column per report.

    Probabilities are printed in the cells if they are readable at this size.

    Parameters
    ----------
    channel : `Channel`, or a (k, m) array whose rows sum to 1.
    ax : Matplotlib axes; without them a new figure is made.
    order : The rows from top to bottom, as positions of the k answers; by default the order of the channel.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    InvalidInput
        If the array is not a channel, or the order is not one of its rows.

    Examples
    --------
    >>> channel([[0.7, 0.3], [0.3, 0.7]]).get_xlabel()
    'report'
    """
    channel = as_channel(channel)
    k, m = channel.shape
    if order is not None:
        if sorted(order) != list(range(k)):
            raise invalid("order", f"each position from 0 to {k - 1} once", Phrase(list(order)))
        channel = Channel(channel.matrix[list(order)], [channel.inputs[x] for x in order], channel.outputs)
    _, inch = row_labels(channel.inputs)
    ax = axes_or_new(ax, 2.2 + min(max(0.65 * m, 2.2), 11), 1.4 + min(max(inch * k, 1.5), 12))
    return _draw_channel(channel, ax, rows=True)


def _draw_channel(channel: Channel, ax: Axes, rows: bool) -> Axes:
    """Draw a channel on axes, with or without the labels of its rows."""
    k, m = channel.shape
    image = ax.imshow(channel.matrix, cmap="Blues", vmin=0, vmax=channel.matrix.max(), aspect="auto")
    image.set_interpolation("nearest")
    columns = [label_text(label) for label in channel.outputs]
    answers = row_labels(channel.inputs)[0] if rows else []
    for axis, labels in ((ax.xaxis, columns), (ax.yaxis, answers)):
        if len(labels) <= MAX_LABELS:
            axis.set_ticks(range(len(labels)), labels)
    ax.tick_params(length=0, labelsize=8 if k > 12 else 9)
    ax.set_xlabel("report")
    ax.set_ylabel("answer" if rows else "")
    fit_labels(ax, draw_colorbar(image, ax, "Pr(report | answer)"))
    inches, tick_labels = inches_of(ax)[0] / m, ax.get_xticklabels()
    size = tick_labels[0].get_fontsize() if tick_labels else 9
    half_widths = [0.009 * size * max(map(len, text.split("\n"))) for text in columns]
    if m <= MAX_LABELS and any(left + right > 2 * inches for left, right in pairwise(half_widths)):
        step = math.ceil(0.14 / inches)  # of the labels that there is room for
        ax.set_xticks(range(0, m, step), columns[::step])
        ax.tick_params(axis="x", labelrotation=40)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    _print_probabilities(ax, channel.matrix, image)
    ax.spines[:].set_visible(False)
    return ax


def _print_probabilities(ax: Axes, matrix: Array, image: Any) -> None:
    """Print the probabilities in the cells, with as many decimals as fit, or none of them."""
    k, m = matrix.shape
    width, height = inches_of(ax) / (m, k)
    digits = next((digits for digits in (3, 2) if (digits + 2) * _DIGIT_WIDTH <= 0.95 * width), None)
    if digits is None or height < 0.1 or k > 30 or m > 12:
        return
    for (x, y), value in np.ndenumerate(matrix):
        colour = text_color(image.cmap(image.norm(value)))
        size = 7.5 if height >= 0.13 else 6
        ax.text(y, x, _probability(value, digits), ha="center", va="center", fontsize=size, color=colour)


_DIGIT_WIDTH = 0.07
"""The width of a printed digit in inches."""


def _probability(value: float, digits: int = 3) -> str:
    """A probability in few characters: 0.123, 0, 1, 4e-05."""
    if value in (0.0, 1.0):
        return f"{value:.0f}"
    half = 0.5 * 10.0**-digits
    return f"{value:.{digits}f}" if half <= value < 1 - half else f"{value:.0e}" if value < 0.5 else "1−"


def blocks(
    utility: Divergence | Design,
    channel: ChannelLike | None = None,
    ax: Axes | None = None,
    *,
    names: tuple[str, str] | None = None,
) -> Axes:
    """Draw P0 and P1 with the answers sorted by P0/P1, and a band for every block of answers.

    The answers of one block have one row, the same distribution of reports, so a report cannot distinguish them.

    Parameters
    ----------
    utility : Finite `Divergence` with k answers, or a `Design`, whose own channel is then the default.
    channel : The channel with the blocks, k rows.
    ax : Matplotlib axes; without them a new figure is made.
    names : The names of P0 and P1.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    InvalidInput
        If the number of rows is another one, or no channel is given for a `Divergence`.

    Examples
    --------
    >>> from ldpopt import Divergence
    >>> from ldpopt.divergences import KL
    >>> ax = blocks(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [[0.7, 0.3], [0.3, 0.7], [0.3, 0.7]])
    >>> [text.get_text() for text in ax.texts]
    ['block 0\\nP0/P1 0.4 to 1', 'block 1\\nP0/P1 = 2.5']
    """
    divergence: Any = utility
    if hasattr(divergence, "channel"):
        channel, divergence = divergence.channel if channel is None else channel, _finite_utility(divergence)
    if channel is None:
        raise InvalidInput("channel not given: a Divergence has none; pass channel=, or a Design as the utility")
    channel = as_channel(channel)
    if divergence.continuous:
        raise invalid("utility", "hypotheses on finitely many answers", divergence)
    if channel.shape[0] != len(divergence.p0):
        raise invalid("channel", f"{len(divergence.p0)} rows, one for each answer", channel.shape[0])
    p0, p1 = np.asarray(divergence.p0), np.asarray(divergence.p1)
    ratio, order = ratio_order(p0, p1)
    ratio, p0, p1, rows = ratio[order], p0[order], p1[order], channel.matrix[order]
    starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    k = len(p0)
    ax = axes_or_new(ax, 7.5, 1.2 + min(max(0.27 * k, 1.8), 12))
    titles = ["P0", "P1"] if names is None else [f"P{index}: {label_text(label)}" for index, label in enumerate(names)]
    bars = ((p0, FIRST_COLOR, titles[0], -0.2), (p1, SECOND_COLOR, titles[1], 0.2))
    for mass, colour, name, shift in bars:
        if k <= MAX_LABELS:
            ax.barh(np.arange(k) + shift, mass, 0.4, color=colour, label=name)
        else:
            ax.stairs(mass, np.arange(k + 1) - 0.5, orientation="horizontal", color=colour, lw=0.8, label=name)
    if k <= MAX_LABELS:
        ax.set_yticks(np.arange(k), row_labels([channel.inputs[x] for x in order])[0])
    line = 0.16 * k / (ax.get_window_extent().height / ax.figure.dpi)  # as many answers as one line of text is high
    last_baseline = -np.inf
    for number, (start, stop) in enumerate(zip(starts, [*starts[1:], k], strict=True)):
        ax.axhspan(start - 0.5, stop - 0.5, color="1.0" if number % 2 else "0.93", lw=0, zorder=0)
        if start:
            ax.axhline(start - 0.5, color="0.35", lw=0.9, ls=(0, (5, 3)))
        if len(starts) <= 24:
            lines = 1 if stop - start < 2.2 * line else 2
            text = f"block {number}" + (" · " if lines == 1 else "\n") + _ratio_text(ratio[start:stop])
            # The text of a narrow block is moved to make room for the text above it.
            middle = max((start + stop - 1) / 2, last_baseline + lines * line / 2)
            last_baseline = middle + lines * line / 2
            ax.text(1.01, middle, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    ax.set(xlim=(0, 1.05 * float(max(p0.max(), p1.max()))), ylim=(k - 0.5, -0.5))
    ax.tick_params(axis="y", length=0, labelsize=8 if k > 12 else 9)
    legend_above(ax)
    return label_axes(ax, "probability of the answer", "answers, sorted by P0/P1")


def _finite_utility(design: Any) -> Any:
    """The utility of a design; of continuous hypotheses that were cut into cells, the one of its cells."""
    utility = design.utility
    if utility.continuous and design.edges is not None:
        return Cells(utility.p0, utility.p1, design.edges).divergence(utility.f)
    return utility


def design_picture(
    design: Design, names: tuple[str, str] | None = None, kind: str = "png", *, width: float | None = None
) -> bytes:
    """Draw P0 and P1 with the design's blocks next to its channel.

    Returns the bytes of a png, svg, pdf or pgf file.

    names : the names of P0 and P1. kind : of the file. width : of the picture in inches; by default it grows with the
        number of reports. The answers are in the same order in both. Raises `InvalidInput` for another kind, and for a
        width that is not positive.

    >>> from ldpopt import KL, Divergence, LocalDP, optimal_channel
    >>> design_picture(optimal_channel(Divergence(KL, [0.9, 0.1], [0.5, 0.5]), LocalDP(1.0)))[1:4]
    b'PNG'
    """
    k, m = design.channel.shape
    widths = np.array([7.5, 2.6 + min(max(0.6 * m, 2.4), 9)])
    if width is not None:
        widths *= positive_width(width) / widths.sum()
    left, right = panels(widths.tolist(), 1.3 + min(max(0.27 * k, 2.2), 12))
    blocks(design, ax=left, names=names)
    divergence = _finite_utility(design)
    _, order = ratio_order(np.asarray(divergence.p0), np.asarray(divergence.p1))
    best = design.channel
    rows = Channel(best.matrix[order], [best.inputs[x] for x in order], best.outputs)
    _draw_channel(rows, right, rows=False)  # in line with the rows of the blocks
    return picture(left, kind)


def ratio_order(p0: Array, p1: Array) -> tuple[Array, Any]:
    """Return the likelihood ratios P0/P1 of k answers, and the order of the answers in `blocks`.

    p0, p1 : distributions, shape (k,). A ratio is inf where only P1 is 0, and NaN where both are; those come last.

    >>> ratio_order(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5]))[1]
    array([2, 1, 0])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(p0, p1)
    return ratio, np.argsort(np.where(np.isnan(ratio), np.inf, ratio), kind="stable")


def _ratio_text(ratios: Array) -> str:
    """The likelihood ratios of a block, as ``P0/P1 0.4 to 1``."""
    finite_ratios = ratios[~np.isnan(ratios)]
    if not finite_ratios.size:
        return "never occurs"
    low, high = f"{finite_ratios.min():.3g}", f"{finite_ratios.max():.3g}"
    return f"P0/P1 = {low}" if low == high else f"P0/P1 {low} to {high}"


def structures(pieces: Structures, ax: Axes | None = None) -> Axes:
    """Draw a bar for every pattern over the epsilons (nats) where the optimal channel uses it.

    pieces : from `ldpopt.design.structures`. ax : matplotlib axes; without them a new figure is made. A line marks
        every epsilon where the patterns change. Returns the axes.

    >>> from ldpopt.design import Divergence, structures as seek
    >>> from ldpopt.divergences import KL
    >>> ax = structures(seek(Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]), 0.1, 5.0, tolerance=1e-6))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0', '1, 2', '1', '2']
    """
    patterns = list(dict.fromkeys(pattern for piece in pieces for pattern in piece.patterns))
    ax = axes_or_new(ax, 8, 1.2 + 0.27 * max(4, min(len(patterns), 40)))
    for piece in pieces:
        for pattern in piece.patterns:
            colour = FIRST_COLOR if pattern else SECOND_COLOR
            place = patterns.index(pattern)
            ax.barh(place, piece.high - piece.low, left=piece.low, height=0.62, color=colour, lw=0)
    for low, high in pieces.breaks:
        ax.axvline((low + high) / 2, color="0.55", lw=0.7, zorder=0)
    ax.set_xscale("log")
    ax.set_xlim(pieces.pieces[0].low, pieces.pieces[-1].high)
    ax.set_ylim(len(patterns) - 0.5, -0.5)
    names = [label_text(", ".join(map(str, pattern)) if pattern else "none (erasure)") for pattern in patterns]
    ax.set_yticks(range(len(patterns)), names)
    log_ticks(ax)
    return label_axes(ax, "ε (nats)", "answers that a report favours")


def shares(
    labels: Sequence[object],
    values: Any,
    lower: Any,
    upper: Any,
    truth: Any = None,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
) -> Axes:
    """Draw a point and an interval for each of k answers, with the first answer on top.

    Parameters
    ----------
    labels : The k answers.
    values, lower, upper : Arrays (k,).
    truth : Known proportions to mark, (k,), if any.
    ax : Matplotlib axes; without them a new figure is made.
    level : Confidence level of the intervals, which the picture states.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    InvalidInput
        If an array has another shape.

    Examples
    --------
    >>> shares(["no", "yes"], [0.4, 0.6], [0.3, 0.5], [0.5, 0.7]).get_xlabel()
    'share of respondents, with 95 % intervals'
    """
    (values, lower, upper), k = (np.asarray(limit, dtype=float) for limit in (values, lower, upper)), len(labels)
    if not values.shape == lower.shape == upper.shape == (k,):
        raise invalid("shares", f"{k} values with lower and upper ends", values.shape)
    rows, inch = row_labels(labels)
    ax = axes_or_new(ax, 7.0, 0.9 + inch * max(k, 2))
    heights = np.arange(k)[::-1]
    ax.hlines(heights, lower, upper, color=FIRST_COLOR, linewidth=2.2, alpha=0.75)
    ax.plot(values, heights, "o", color=FIRST_COLOR, markersize=5, label="estimate")
    if truth is not None:
        ax.plot(np.asarray(truth), heights, "D", color=SECOND_COLOR, markersize=4, label="truth")
        legend_above(ax, 8)
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.set_yticks(heights, rows)
    ax.set_ylim(-0.6, k - 0.4)
    ax.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g} %")
    ax.tick_params(axis="y", length=0, labelsize=8 if k > 12 else 9)
    return label_axes(ax, f"share of respondents, with {100 * level:g} % intervals", grid="x", left=False)


def coefficients(
    labels: Sequence[object],
    values: Any,
    lower: Any,
    upper: Any,
    ax: Axes | None = None,
    axis_label: str = "coefficient",
) -> Axes:
    """Draw a point and an interval for each of k numbers, and a line at zero.

    The first number is on top.

    Parameters
    ----------
    labels : The k names.
    values, lower, upper : Arrays (k,).
    ax : Matplotlib axes; without them a new figure is made.
    axis_label : The name of the scale.

    Returns
    -------
    Axes
        The axes with the picture.

    Examples
    --------
    >>> coefficients(["Intercept", "age"], [-1.0, 0.2], [-1.5, 0.1], [-0.5, 0.3]).get_xlabel()
    'coefficient'
    """
    from matplotlib.ticker import ScalarFormatter

    ax = shares(labels, values, lower, upper, ax=ax)
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.set_xlabel(axis_label)
    return ax
