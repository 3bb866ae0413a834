"""The channel as a labelled heat map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.errors import Phrase, invalid
from ldpopt.plots.figure import Axes, axes_on, ink
from ldpopt.plots.lettering import rows_written, written

LABELLED = 60
"""More rows or columns than this are numbered instead of labelled one by one."""


_CHARACTER = 0.08
"""The width of a label's character in inches."""


def channel(channel: ChannelLike, ax: Axes | None = None, order: Sequence[int] | None = None) -> Axes:
    """Draw Pr(report | answer): a row for each of the k answers, a column for each of the m reports.

    channel : a `Channel` or a (k, m) array. ax : matplotlib axes; without them a new figure is made.
    order : the rows from top to bottom, as positions of the k answers; by default the order of the channel.

    Probabilities are printed in the cells if they are readable at this size. Returns the axes. Raises `InvalidInput` if
    the array is not a channel.

    >>> channel([[0.7, 0.3], [0.3, 0.7]]).get_xlabel()
    'report'
    """
    channel = as_channel(channel)
    k, m = channel.shape
    if order is not None:
        if sorted(order) != list(range(k)):
            raise invalid("order", f"each position from 0 to {k - 1} once", Phrase("others"))
        channel = Channel(channel.matrix[list(order)], [channel.inputs[x] for x in order], channel.outputs)
    rows, inch = rows_written(channel.inputs)
    ax = axes_on(ax, 2.2 + min(max(0.65 * m, 2.2), 11), 1.4 + min(max(inch * k, 1.5), 12))
    image = ax.imshow(channel.matrix, cmap="Blues", vmin=0, vmax=channel.matrix.max(), aspect="auto")
    image.set_interpolation("nearest")
    columns = [written(label) for label in channel.outputs]
    for axis, labels in ((ax.xaxis, columns), (ax.yaxis, rows)):
        if len(labels) <= LABELLED:
            axis.set_ticks(range(len(labels)), labels)
    inches = ax.get_window_extent().width / ax.figure.dpi / m
    if m <= LABELLED and max(len(line) for text in columns for line in text.split("\n")) * _CHARACTER > inches:
        ax.tick_params(axis="x", labelrotation=40)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    ax.tick_params(length=0, labelsize=8 if k > 12 else 9)
    ax.set_xlabel("report")
    ax.set_ylabel("answer")
    if k <= 30 and m <= 12:
        for (x, y), value in np.ndenumerate(channel.matrix):
            colour = ink(image.cmap(image.norm(value)))
            ax.text(y, x, _probability(value), ha="center", va="center", fontsize=7.5, color=colour)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label("Pr(report | answer)")
    bar.outline.set_visible(False)
    ax.spines[:].set_visible(False)
    return ax


def _probability(value: float) -> str:
    """A probability with three significant digits in few characters: 0.123, 0, 1, 4e-05."""
    if value in (0.0, 1.0):
        return f"{value:.0f}"
    return f"{value:.3f}" if 5e-4 <= value < 0.9995 else f"{value:.0e}" if value < 0.5 else "1−"
