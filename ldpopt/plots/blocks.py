"""Two distributions over the answers, sorted by likelihood ratio, with the blocks that a channel treats alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldpopt.channel import ChannelLike, as_channel
from ldpopt.design.problems.reduction import Cells
from ldpopt.distribution import Array
from ldpopt.errors import Phrase, invalid
from ldpopt.plots.channel import LABELLED
from ldpopt.plots.figure import FIRST, SECOND, Axes, axes_on
from ldpopt.plots.lettering import rows_written, written

if TYPE_CHECKING:
    from ldpopt.design import Design, Divergence


def blocks(
    utility: Divergence | Design,
    channel: ChannelLike | None = None,
    ax: Axes | None = None,
    *,
    names: tuple[str, str] | None = None,
) -> Axes:
    """Draw P0 and P1 with the answers sorted by P0/P1, and a band for every block of answers with one row.

    utility : a finite `Divergence` with k answers, or a `Design`, whose own channel is then the default.
    channel : the channel with the blocks, k rows. names : the names of P0 and P1.
    ax : matplotlib axes; without them a new figure is made.

    Answers of one block have the same distribution of reports, so a report cannot tell them apart. Returns the axes.
    Raises `InvalidInput` for another number of rows.

    >>> from ldpopt import Divergence
    >>> from ldpopt.divergences import KL
    >>> ax = blocks(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [[0.7, 0.3], [0.3, 0.7], [0.3, 0.7]])
    >>> [text.get_text() for text in ax.texts]
    ['block 0\\nP0/P1 0.4 to 1', 'block 1\\nP0/P1 = 2.5']
    """
    posed: Any = utility
    if hasattr(posed, "channel"):
        channel = posed.channel if channel is None else channel
        edges, posed = posed.edges, posed.utility
        if posed.continuous and edges is not None:
            posed = Cells(posed.p0, posed.p1, edges).divergence(posed.f)
    if channel is None:
        raise invalid("channel", "a channel beside a Divergence", Phrase("none"))
    channel = as_channel(channel)
    if posed.continuous:
        raise invalid("utility", "hypotheses on finitely many answers", posed)
    if channel.shape[0] != len(posed.p0):
        raise invalid("channel", f"{len(posed.p0)} rows, one for each answer", channel.shape[0])
    p0, p1 = np.asarray(posed.p0), np.asarray(posed.p1)
    ratio, order = ratio_order(p0, p1)
    ratio, p0, p1, rows = ratio[order], p0[order], p1[order], channel.matrix[order]
    starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)]))
    k = len(p0)
    ax = axes_on(ax, 7.5, 1.2 + min(max(0.27 * k, 1.8), 12))
    y = np.arange(k)
    titles = ("P0", "P1") if names is None else tuple(f"P{at}: {written(one)}" for at, one in enumerate(names))
    if k <= LABELLED:
        ax.barh(y - 0.2, p0, 0.4, color=FIRST, label=titles[0])
        ax.barh(y + 0.2, p1, 0.4, color=SECOND, label=titles[1])
        ax.set_yticks(y, rows_written([channel.inputs[x] for x in order])[0])
    else:
        for mass, colour, name in ((p0, FIRST, titles[0]), (p1, SECOND, titles[1])):
            ax.stairs(mass, np.arange(k + 1) - 0.5, orientation="horizontal", color=colour, lw=0.8, label=name)
    line = 0.16 * k / (ax.get_window_extent().height / ax.figure.dpi)  # as many answers as one line of text is high
    free = -np.inf
    for number, (start, stop) in enumerate(zip(starts, [*starts[1:], k], strict=True)):
        ax.axhspan(start - 0.5, stop - 0.5, color="1.0" if number % 2 else "0.93", lw=0, zorder=0)
        if start:
            ax.axhline(start - 0.5, color="0.35", lw=0.9, ls=(0, (5, 3)))
        if len(starts) <= 24:
            lines = 1 if stop - start < 2.2 * line else 2
            text = f"block {number}" + (" · " if lines == 1 else "\n") + _range(ratio[start:stop])
            # The text of a narrow block is moved to make room for the text above it.
            middle = max((start + stop - 1) / 2, free + lines * line / 2)
            free = middle + lines * line / 2
            ax.text(1.01, middle, text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    ax.set(xlim=(0, 1.05 * float(max(p0.max(), p1.max()))), ylim=(k - 0.5, -0.5))
    ax.tick_params(axis="y", length=0, labelsize=8 if k > 12 else 9)
    ax.set_xlabel("probability of the answer")
    ax.set_ylabel("answers, sorted by P0/P1")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False, fontsize=9, borderaxespad=0.2)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def ratio_order(p0: Array, p1: Array) -> tuple[Array, Any]:
    """The likelihood ratios P0/P1 of k answers, and the order in which `blocks` draws them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = p0 / p1
    return ratio, np.argsort(np.where(np.isnan(ratio), np.inf, ratio), kind="stable")


def _range(ratios: Array) -> str:
    """The likelihood ratios of a block, as ``P0/P1 0.4 to 1``."""
    known = ratios[~np.isnan(ratios)]
    if not known.size:
        return "never occurs"
    low, high = f"{known.min():.3g}", f"{known.max():.3g}"
    return f"P0/P1 = {low}" if low == high else f"P0/P1 {low} to {high}"
