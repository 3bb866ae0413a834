"""Curves over limits: value against epsilon or eta, trade-off curves and privacy profiles."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ldpopt.design import Divergence
from ldpopt.frontiers import BASELINES, Envelope, Frontier, Sweep
from ldpopt.frontiers import envelope as corners_of
from ldpopt.plots.figure import (
    FIRST_COLOR,
    MIN_WIDTH_FOR_SIDE_LEGEND,
    SECOND_COLOR,
    Axes,
    axes_or_new,
    inches_of,
    is_narrow,
    label_axes,
    label_text,
    legend_above,
    put_legend,
    scale_colors,
    slot_width,
    utility_name,
)
from ldpopt.values.distribution import Array


def sweep(sweep: Sweep, ax: Axes | None = None) -> Axes:
    """Draw the value of every design of a sweep, with a bar up to its proven bound if it is not certified.

    sweep : from `ldpopt.sweep`; parameters that are tuples are drawn side by side in their order.
    ax : matplotlib axes; without them a new figure is made. Returns the axes.

    >>> from ldpopt import LocalDP, MutualInformation, frontiers
    >>> sweep(frontiers.sweep(MutualInformation([0.6, 0.4]), LocalDP, [0.5, 1.0])).get_ylabel()
    'mutual information (nats) of the reports'
    """
    ax = axes_or_new(ax, 6.5, 4)
    is_scalar = all(not isinstance(row.parameter, tuple) for row in sweep.rows)
    x: Any = np.array(sweep.parameters) if is_scalar else np.arange(len(sweep.rows))
    order = np.argsort(x, kind="stable")
    x, value = x[order], sweep.value[order]
    bound = (sweep.lower_bound if sweep.utility.error else sweep.upper_bound)[order]
    is_proved = np.array([row.certified for row in sweep.rows])[order]
    ax.plot(x, value, "o-" if is_scalar else "o", color=FIRST_COLOR, lw=1.8, ms=4, label="optimal channel")
    for i, name in enumerate(sweep.names):
        baseline_values = sweep.baseline(name)[order]
        ax.plot(
            x,
            baseline_values,
            "s",
            ls=CUSTOM_LINE_STYLES[i % len(CUSTOM_LINE_STYLES)] if is_scalar else "",
            color="0.35",
            lw=1.4,
            ms=3,
            label=label_text(name),
        )
    is_loose = ~is_proved & np.isfinite(bound)
    if is_loose.any():
        low, high = np.minimum(value, bound)[is_loose], np.maximum(value, bound)[is_loose]
        ax.vlines(
            x[is_loose], low, high, color=SECOND_COLOR, lw=3, alpha=0.6, label="up to the proven bound, not certified"
        )
        legend_above(ax)
    if sweep.names and not is_loose.any():
        legend_above(ax)
    if not is_scalar:
        names = [", ".join(f"{part:g}" for part in np.atleast_1d(parameter)) for parameter in sweep.parameters]
        ax.set_xticks(x, names, rotation=30 if len(names) > 6 else 0, fontsize=8)
    x_label = "parameter of the constraint" + ("" if is_scalar else "s")
    return label_axes(ax, x_label, f"{utility_name(sweep.utility)} of the reports", "both")


STYLES = {
    "optimum": ("optimal channel", "-", 2.2),
    "erased_optimum": (BASELINES["erased_optimum"], "-", 0.9),
    "binary_with_erasure": (BASELINES["binary_with_erasure"], "--", 1.7),
    "randomized_response_with_erasure": (BASELINES["randomized_response_with_erasure"], ":", 1.9),
}
CUSTOM_LINE_STYLES: tuple[Any, ...] = ("-.", (0, (4, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 3)))
"""The lines of a user's own mechanisms, in turn."""
DOTTED_STYLE = (0, (1, 1, 5, 1))
BOUNDS: dict[str, tuple[str, Any]] = {
    "tv_bound": ("bound η·TV(P0, P1) [GI, Thm 5]", DOTTED_STYLE),
    "thm6": ("bound [GI, Thm 6]", (0, (7, 2, 1, 2))),
    "thm7": ("bound [GI, Thm 7]", DOTTED_STYLE),
}


def frontier(frontier: Frontier | Sweep, ax: Axes | None = None, *, legend: str = "auto", corners: bool = True) -> Axes:
    """Draw the utility of the optimal channel and of textbook mechanisms against eta.

    Each epsilon has a color. Mechanisms that are not known for the utility are left out, and a user's own are drawn
    under their names. The band above an optimum reaches to its proven upper bound; a certified design has a band
    without width. Erased mechanisms and bounds bend where eta stops binding. A bound is a thin line at every epsilon
    where some of it stays within the picture; the legend names these values where they are not all.

    Parameters
    ----------
    frontier : The result of `ldpopt.frontier`; a result of `ldpopt.sweep` is drawn by `plots.sweep`.
    ax : Matplotlib axes; without them a new figure is made.
    legend : One of `PLACES`, or "auto": to the right of the data, or below axes of less than 5 inches, as in a column
        of a paper.
    corners : True bends the optimum of two finite hypotheses at its own corners (`frontiers.envelope`) between the caps
        of the table. Without them, and for other utilities, straight lines join the caps.

    Returns
    -------
    Axes
        The axes with the picture.

    Raises
    ------
    InvalidInput
        If the place of the legend is another one.

    Examples
    --------
    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL
    >>> made = frontiers.frontier(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [1.0], [0.1, 0.2])
    >>> frontier(made).get_xlabel()
    'cap η on total variation'
    """
    from matplotlib.lines import Line2D

    if isinstance(frontier, Sweep):
        return sweep(frontier, ax)
    ax = axes_or_new(ax, 9, 5)
    epsilons = np.unique(frontier.column("epsilon"))
    colours = scale_colors(np.linspace(0, 1, len(epsilons)) if len(epsilons) > 1 else np.array([0.4]))
    error = frontier.utility.error
    proved_bound = "lower_bound" if error else "upper_bound"
    custom_styles = {
        name: (label_text(name), CUSTOM_LINE_STYLES[i % len(CUSTOM_LINE_STYLES)], 1.7)
        for i, name in enumerate(frontier.names)
    }
    styles: dict[str, tuple[str, Any, float]] = {
        name: style for name, style in (STYLES | custom_styles).items() if not np.isnan(frontier.column(name)).all()
    }
    reach = np.concatenate([frontier.column(proved_bound), frontier.column("optimum")])
    top = 1.12 * float(reach[np.isfinite(reach)].max(initial=0.0))
    visible_epsilons: dict[str, list[float]] = {}
    has_uncertified = False
    for epsilon, colour in zip(epsilons, colours, strict=True):
        rows = np.flatnonzero(frontier.column("epsilon") == epsilon)
        rows = rows[np.argsort(frontier.column("eta")[rows], kind="stable")]
        eta, optimum, bound = (frontier.column(name)[rows] for name in ("eta", "optimum", proved_bound))
        # A single point does not make a line.
        marker = "o" if len(rows) == 1 else ""
        for name, (_, style, width) in reversed(styles.items()):
            values = frontier.column(name)[rows]
            bends: list[Point] = []
            if name == "optimum":
                bends = _corners(frontier, epsilon, eta, values) if corners else []
            elif name not in custom_styles:
                bends = _bend(eta, values)
            ax.plot(*_with_bends(eta, values, bends), ls=style, color=colour, lw=width, marker=marker, ms=4)
        is_open = (bound != optimum) & np.isfinite(bound) & (frontier.column("certified")[rows] == 0)
        if is_open.any():
            has_uncertified = True
            ax.fill_between(eta, optimum, np.where(is_open, bound, optimum), color=colour, alpha=0.3, lw=0)
        for name, (_, style) in BOUNDS.items():
            values = frontier.column(name)[rows]
            if np.any((values <= top) & (eta > 0)):
                ax.plot(*_with_bends(eta, values, _bend(eta, values)), ls=style, lw=0.9, color=colour, zorder=1)
                visible_epsilons.setdefault(name, []).append(float(epsilon))
    entries = [
        ({"color": colour, "lw": 5}, f"ε = {epsilon:g}") for epsilon, colour in zip(epsilons, colours, strict=True)
    ]
    entries += [({"ls": style, "lw": width}, text) for text, style, width in styles.values()]
    for name in (name for name in BOUNDS if name in visible_epsilons):
        epsilon_list = ", ".join(f"{epsilon:g}" for epsilon in visible_epsilons[name])
        suffix = "" if len(visible_epsilons[name]) == len(epsilons) else f", ε = {epsilon_list}"
        entries.append(({"ls": BOUNDS[name][1], "lw": 0.9}, BOUNDS[name][0] + suffix))
    entries += [({"alpha": 0.3, "lw": 7}, "up to the proven bound, not certified")] if has_uncertified else []
    handles = [Line2D([], [], **{"color": "0.25"} | style) for style, _ in entries]
    low, high = float(np.min(frontier.column("eta"))), float(np.max(frontier.column("eta")))
    if high > low:
        ax.set_xlim(low, high)
    if top > 0:
        ax.set_ylim(0, top)
    label_axes(ax, "cap η on total variation", f"{utility_name(frontier.utility)} of the reports", "both")
    size = 9 if slot_width(ax) >= MIN_WIDTH_FOR_SIDE_LEGEND else 7
    put_legend(ax, legend, handles, [text for _, text in entries], size=size, title="ε (nats)")
    return ax


Point: TypeAlias = tuple[float, float]

MAX_ANSWERS_WITH_CORNERS = 200
"""Up to so many answers, the corners of an optimum are found while it is drawn, in a fraction of a second."""


def _corners(frontier: Frontier, epsilon: float, eta: Array, optimum: Array) -> list[Point]:
    """The corners (eta, value) of the optimum between the caps of a table, if it is of two finite hypotheses.

    None where they do not agree with the table: it may be in bits, or have another utility at each point.
    """
    utility = frontier.utility
    if (
        not isinstance(utility, Divergence)
        or utility.continuous
        or utility.size > MAX_ANSWERS_WITH_CORNERS
        or len(eta) < 2
    ):
        return []
    curve = corners_of(utility, epsilon, time_limit=5.0)
    is_consistent = np.allclose([curve.value_at(cap) for cap in eta], optimum, rtol=1e-6, atol=0)
    return [(corner.eta, corner.value) for corner in curve.corners] if curve.complete and is_consistent else []


def _bend(eta: Array, values: Array) -> list[Point]:
    """The point where c min(1, eta / kappa) bends: it rises along a line from zero, and is constant from kappa on."""
    positive_points = np.flatnonzero((eta > 0) & (values > 0))
    if (
        positive_points.size < 2
        or not values[positive_points[0]] < values[positive_points[-1]]
        or not np.isfinite(values[positive_points]).all()
    ):
        return []
    slope, height = values[positive_points[0]] / eta[positive_points[0]], values[positive_points[-1]]
    bend = height / slope
    return [(float(bend), float(height))] if bend < eta[positive_points[-1]] * (1 - 1e-9) else []


def _with_bends(eta: Array, values: Array, bends: list[Point]) -> tuple[Array, Array]:
    """The points of a curve with those bends that lie strictly between them."""
    inner_bends = [
        (x, y) for x, y in bends if eta[0] < x < eta[-1] and not np.any(np.isclose(eta, x, rtol=1e-12, atol=0))
    ]
    x, y = (
        np.concatenate([coordinates, [bend[axis] for bend in inner_bends]])
        for axis, coordinates in enumerate((eta, values))
    )
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def envelope(envelope: Envelope, ax: Axes | None = None) -> Axes:
    """Draw the optimum at one epsilon against the cap eta: its corners, and the straight lines between them.

    envelope : from `ldpopt.frontiers.envelope`. ax : matplotlib axes; without them a new figure is made.

    After the last corner the optimum is constant up to eta = 1. A number at each corner is the number of blocks of its
    partition, if there are at most twelve corners; where they are close, one line lists the numbers. Returns the
    axes.

    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL
    >>> found = frontiers.envelope(Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]), 2.0)
    >>> envelope(found).get_lines()[0].get_xdata().round(4).tolist()
    [0.0, 0.6805, 1.0]
    """
    ax = axes_or_new(ax, 5.0, 3.4)
    eta, value = (np.array([getattr(corner, name) for corner in envelope.corners]) for name in ("eta", "value"))
    ax.plot([*eta, max(1.0, eta[-1])], [*value, value[-1]], color=FIRST_COLOR, lw=1.8)
    ax.plot(eta, value, "o", color=FIRST_COLOR, ms=4.5, clip_on=False)
    ax.set(xlim=(0, 1), ylim=(0, 1.12 * float(value.max())))
    if not envelope.complete:
        ax.set_title("not all corners were found in time", loc="left", fontsize=8)
    label_axes(ax, "cap η on total variation", f"{utility_name(envelope.utility)} of the reports", "both")
    if len(eta) <= 12:
        _name_corners(ax, eta[1:], value[1:], [corner.blocks for corner in envelope.corners[1:]])
    return ax


def _name_corners(ax: Axes, eta: Array, value: Array, blocks: list[int]) -> None:
    """Write the number of blocks at each corner, or in one line below the curve if corners are close."""
    places = np.column_stack([eta, value / ax.get_ylim()[1]]) * inches_of(ax)
    is_right = eta >= 0.75
    is_close = (np.abs(np.diff(places, axis=0)) < (0.65, 0.14)).all(axis=1) & (is_right[1:] == is_right[:-1])
    if is_close.any():
        text = f"corners from the left:\n{', '.join(map(str, blocks))} blocks"
        ax.text(0.98, 0.05, text, transform=ax.transAxes, ha="right", va="bottom", fontsize=8)
        return
    for corner, count, right in zip(zip(eta, value, strict=True), blocks, is_right, strict=True):
        # The curve is concave: the text is below it, or above it where it would leave the axes.
        shift, sides = ((-4, 4), ("right", "bottom")) if right else ((4, -5), ("left", "top"))
        style = {"textcoords": "offset points", "ha": sides[0], "va": sides[1], "fontsize": 8}
        ax.annotate(f"{count} block{'s' * (count != 1)}", corner, shift, **style)


def trade_off(curve: Any, ax: Axes | None = None) -> Axes:
    """Draw the least type II error against the type I error, with the line of perfect privacy [GI, section III].

    curve : a `TradeOffCurve`, or an object that has one, such as a `FinitePair`.
    ax : matplotlib axes; without them a new figure is made.

    Both errors are small in the shaded region, which no test reaches. Returns the axes.

    >>> from ldpopt.privacy import TradeOffCurve
    >>> trade_off(TradeOffCurve.of_pair([0.75, 0.25], [0.25, 0.75])).get_xlabel()
    'type I error'
    """
    method = getattr(curve, "trade_off", None)
    curve = method() if callable(method) else curve
    ax = axes_or_new(ax, 4.2, 4)
    a, b = np.vstack([curve.knots, [1.0, 0.0]]).T
    ax.plot([0, 1], [1, 0], color="0.6", lw=1, ls=(0, (5, 3)), label="perfect privacy")
    ax.plot(a, b, color=FIRST_COLOR, lw=2, label="the best test")
    ax.fill_between(a, 0, b, color=FIRST_COLOR, alpha=0.12, lw=0)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(frameon=False, fontsize=8 if is_narrow(ax) else 9, loc="upper right")
    return label_axes(ax, "type I error", "type II error")


def profile(composition: Any, ax: Axes | None = None) -> Axes:
    """Draw the smallest delta at every epsilon, on a logarithmic scale.

    composition : a `ComposedPair`, or another object with `hockey_stick` and `local_dp`.
    ax : matplotlib axes; without them a new figure is made.

    Epsilon is in nats; delta is a probability [GI, Def 1]. Returns the axes.

    >>> from ldpopt import compose
    >>> profile(compose([(0.5,)] * 4)).get_ylabel()
    'smallest δ'
    """
    ax = axes_or_new(ax, 5, 3.6)
    top = float(composition.approximate_dp(1e-12))
    epsilons = np.linspace(0.0, top if 0 < top < np.inf else 1.0, 120)
    deltas = np.array([float(composition.hockey_stick(float(epsilon))) for epsilon in epsilons])
    ax.plot(epsilons, np.where(deltas > 0, deltas, np.nan), color=FIRST_COLOR, lw=2)
    ax.set_yscale("log")
    # Where delta reaches zero, the scale does not follow it down.
    visible_deltas = deltas[(deltas > 0) & (epsilons <= 0.97 * epsilons[-1])]
    ax.set_ylim(max(1e-12, float(visible_deltas.min(initial=1.0)) / 3), 1.0)
    ax.set_xlim(0, epsilons[-1])
    return label_axes(ax, "ε (nats)", "smallest δ", "both")
