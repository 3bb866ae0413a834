"""Curves over limits: value against epsilon or eta, gaps, published bounds, trade-off curves and privacy profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ldpopt.design import Divergence
from ldpopt.errors import Phrase, invalid
from ldpopt.frontiers import BASELINES, Envelope, Frontier, FrontierRow, Sweep
from ldpopt.frontiers import envelope as corners_of
from ldpopt.plots.figure import (
    COLUMN,
    FIRST_COLOR,
    SECOND_COLOR,
    Axes,
    axes_or_new,
    fit_column,
    ink,
    is_narrow,
    label_axes,
    label_text,
    legend_above,
    log_ticks,
    panels,
    put_legend,
    shade,
    with_unit,
)
from ldpopt.values.distribution import Array, number

if TYPE_CHECKING:
    from ldpopt.bounds import Comparison


def sweep(sweep: Sweep, ax: Axes | None = None) -> Axes:
    """Draw the value of every design of a sweep, with a bar up to its proven bound if it is not certified.

    sweep : from `ldpopt.sweep`; parameters that are tuples are drawn side by side in their order.
    ax : matplotlib axes; without them a new figure is made. Returns the axes.

    >>> from ldpopt import LocalDP, MutualInformation, frontiers
    >>> sweep(frontiers.sweep(MutualInformation([0.6, 0.4]), LocalDP, [0.5, 1.0])).get_ylabel()
    'mutual information of the reports'
    """
    ax = axes_or_new(ax, 6.5, 4)
    single = all(not isinstance(row.parameter, tuple) for row in sweep.rows)
    x: Any = np.array(sweep.parameters) if single else np.arange(len(sweep.rows))
    order = np.argsort(x, kind="stable")
    x, value = x[order], sweep.value[order]
    bound = (sweep.lower_bound if sweep.utility.error else sweep.upper_bound)[order]
    proved = np.array([row.certified for row in sweep.rows])[order]
    ax.plot(x, value, "o-" if single else "o", color=FIRST_COLOR, lw=1.8, ms=4, label="optimal channel")
    loose = ~proved & np.isfinite(bound)
    if loose.any():
        low, high = np.minimum(value, bound)[loose], np.maximum(value, bound)[loose]
        ax.vlines(
            x[loose], low, high, color=SECOND_COLOR, lw=3, alpha=0.6, label="up to the proven bound, not certified"
        )
        legend_above(ax)
    if not single:
        names = [", ".join(f"{part:g}" for part in np.atleast_1d(parameter)) for parameter in sweep.parameters]
        ax.set_xticks(x, names, rotation=30 if len(names) > 6 else 0, fontsize=8)
    named = "parameter of the constraint" + ("" if single else "s")
    return label_axes(ax, named, f"{sweep.utility.name} of the reports", "both")


STYLES = {
    "optimum": ("optimal channel", "-", 2.2),
    "erased_optimum": (BASELINES["erased_optimum"], "-", 0.9),
    "binary_with_erasure": (BASELINES["binary_with_erasure"], "--", 1.7),
    "randomized_response_with_erasure": (BASELINES["randomized_response_with_erasure"], ":", 1.9),
}
_DOTTED = (0, (1, 1, 5, 1))
BOUNDS: dict[str, tuple[str, Any]] = {
    "tv_bound": ("bound η·TV(P0, P1) [GI, Thm 5]", _DOTTED),
    "thm6": ("bound [GI, Thm 6]", (0, (7, 2, 1, 2))),
    "thm7": ("bound [GI, Thm 7]", _DOTTED),
}


def frontier(frontier: Frontier | Sweep, ax: Axes | None = None, *, legend: str = "auto", corners: bool = True) -> Axes:
    """Draw the utility of the optimal channel and of textbook mechanisms against eta, with a colour for each epsilon.

    frontier : from `ldpopt.frontier`; a result of `ldpopt.sweep` is drawn by `plots.sweep`.
    ax : matplotlib axes; without them a new figure is made.
    legend : where it stands, one of "above", "below", "beside", "inside" and "none"; "auto" is beside the data, or
        below axes of less than 5 inches, as in a column of a paper.
    corners : whether the optimum of two finite hypotheses bends at its own corners (`frontiers.envelope`) between the
        caps of the table. Without them, and for other utilities, straight lines join the caps.

    Mechanisms that are not known for the utility are left out. The band above an optimum reaches to its proven upper
    bound; a certified design has a band without width. Erased mechanisms and bounds bend where eta stops binding. A
    bound is a thin line at every epsilon at which some of it stays within the picture; the legend names these values
    where they are not all. Returns the axes. Raises `InvalidInput` for another place of the legend.

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
    colours = shade(np.linspace(0, 1, len(epsilons)) if len(epsilons) > 1 else np.array([0.4]))
    error = frontier.utility.error
    proved = "lower_bound" if error else "upper_bound"
    known = {name: style for name, style in STYLES.items() if not np.isnan(frontier.column(name)).all()}
    reach = np.concatenate([frontier.column(proved), frontier.column("optimum")])
    top = 1.12 * float(reach[np.isfinite(reach)].max(initial=0.0))
    fitting: dict[str, list[float]] = {}
    uncertain = False
    for epsilon, colour in zip(epsilons, colours, strict=True):
        chosen = np.flatnonzero(frontier.column("epsilon") == epsilon)
        chosen = chosen[np.argsort(frontier.column("eta")[chosen], kind="stable")]
        eta, optimum, bound = (frontier.column(name)[chosen] for name in ("eta", "optimum", proved))
        # A single point does not make a line.
        marker = "o" if len(chosen) == 1 else ""
        for name, (_, style, width) in reversed(known.items()):
            values = frontier.column(name)[chosen]
            bends = (
                _bend(eta, values) if name != "optimum" else _corners(frontier, epsilon, eta, values) if corners else []
            )
            ax.plot(*_with_bends(eta, values, bends), style, color=colour, lw=width, marker=marker, ms=4)
        open_gap = (bound != optimum) & np.isfinite(bound) & (frontier.column("certified")[chosen] == 0)
        if open_gap.any():
            uncertain = True
            ax.fill_between(eta, optimum, np.where(open_gap, bound, optimum), color=colour, alpha=0.3, lw=0)
        for name, (_, style) in BOUNDS.items():
            values = frontier.column(name)[chosen]
            if np.any((values <= top) & (eta > 0)):
                ax.plot(*_with_bends(eta, values, _bend(eta, values)), ls=style, lw=0.9, color=colour, zorder=1)
                fitting.setdefault(name, []).append(float(epsilon))
    entries = [
        ({"color": colour, "lw": 5}, f"ε = {epsilon:g}") for epsilon, colour in zip(epsilons, colours, strict=True)
    ]
    entries += [({"ls": style, "lw": width}, text) for text, style, width in known.values()]
    for name in (name for name in BOUNDS if name in fitting):
        shown = ", ".join(f"{epsilon:g}" for epsilon in fitting[name])
        which = "" if len(fitting[name]) == len(epsilons) else f", ε = {shown}"
        entries.append(({"ls": BOUNDS[name][1], "lw": 0.9}, BOUNDS[name][0] + which))
    entries += [({"alpha": 0.3, "lw": 7}, "up to the proven bound, not certified")] if uncertain else []
    handles = [Line2D([], [], **{"color": "0.25"} | style) for style, _ in entries]
    low, high = float(np.min(frontier.column("eta"))), float(np.max(frontier.column("eta")))
    if high > low:
        ax.set_xlim(low, high)
    if top > 0:
        ax.set_ylim(0, top)
    value = with_unit(frontier.utility.f) if hasattr(frontier.utility, "f") else frontier.utility.name
    label_axes(ax, "cap η on total variation", f"{value} of the reports", "both")
    size = 9 if ax.get_window_extent().width / ax.figure.dpi >= COLUMN else 7
    put_legend(ax, legend, handles, [text for _, text in entries], size=size, title="ε in nats")
    return ax


Point: TypeAlias = tuple[float, float]

FEW = 200
"""Up to so many answers, the corners of an optimum are found while it is drawn, in a fraction of a second."""


def _corners(frontier: Frontier, epsilon: float, eta: Array, optimum: Array) -> list[Point]:
    """The corners (eta, value) of the optimum between the caps of a table, if it is of two finite hypotheses.

    None where they do not agree with the table: it may be in bits, or have another utility at each point.
    """
    utility = frontier.utility
    if not isinstance(utility, Divergence) or utility.continuous or utility.size > FEW or len(eta) < 2:
        return []
    found = corners_of(utility, epsilon, time_limit=5.0)
    agree = np.allclose([found.at(cap) for cap in eta], optimum, rtol=1e-6, atol=0)
    return [(corner.eta, corner.value) for corner in found.corners] if found.complete and agree else []


def _bend(eta: Array, values: Array) -> list[Point]:
    """Where c min(1, eta / kappa), which rises along a line from zero and is constant from kappa on, bends."""
    rising = np.flatnonzero((eta > 0) & (values > 0))
    if rising.size < 2 or not values[rising[0]] < values[rising[-1]] or not np.isfinite(values[rising]).all():
        return []
    slope, height = values[rising[0]] / eta[rising[0]], values[rising[-1]]
    bend = height / slope
    return [(float(bend), float(height))] if bend < eta[rising[-1]] * (1 - 1e-9) else []


def _with_bends(eta: Array, values: Array, bends: list[Point]) -> tuple[Array, Array]:
    """The points of a curve with those bends that lie strictly between them."""
    inside = [(x, y) for x, y in bends if eta[0] < x < eta[-1] and not np.any(np.isclose(eta, x, rtol=1e-12, atol=0))]
    x, y = (np.concatenate([known, [bend[axis] for bend in inside]]) for axis, known in enumerate((eta, values)))
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def envelope(envelope: Envelope, ax: Axes | None = None) -> Axes:
    """Draw the optimum at one epsilon against the cap eta: its corners, and the straight lines between them.

    envelope : from `ldpopt.frontiers.envelope`. ax : matplotlib axes; without them a new figure is made.

    After the last corner the optimum is constant up to eta = 1. A number beside each corner says how many blocks its
    partition has, if there are at most twelve corners. Returns the axes.

    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL
    >>> found = frontiers.envelope(Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]), 2.0)
    >>> envelope(found).get_lines()[0].get_xdata().round(4).tolist()
    [0.0, 0.6805, 1.0]
    """
    ax = axes_or_new(ax, 5.0, 3.4)
    eta, value = (np.array([getattr(one, name) for one in envelope.corners]) for name in ("eta", "value"))
    ax.plot([*eta, max(1.0, eta[-1])], [*value, value[-1]], color=FIRST_COLOR, lw=1.8)
    ax.plot(eta, value, "o", color=FIRST_COLOR, ms=4.5, clip_on=False)
    if len(eta) <= 12:
        for corner in envelope.corners[1:]:
            ax.annotate(
                f"{corner.blocks} block{'s' * (corner.blocks != 1)}", (corner.eta, corner.value), (4, -5),
                textcoords="offset points", ha="left", va="top", fontsize=8,
            )  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(0, 1.12 * float(value.max())))
    if not envelope.complete:
        ax.set_title("not all corners were found in time", loc="left", fontsize=8)
    return label_axes(ax, "cap η on total variation", f"{with_unit(envelope.utility.f)} of the reports", "both")


def gap_map(
    frontier: Frontier,
    baseline: str,
    ax: Axes | None = None,
    label: str = "",
    *,
    vmin: float = 0.0,
    vmax: float | None = None,
    bar: bool = True,
) -> Axes:
    """Draw the share of the optimum that a mechanism loses, 1 - baseline / optimum, at every (epsilon, eta).

    frontier : from `ldpopt.frontier`, over a grid. baseline : one of its columns, such as ``"binary_with_erasure"``.
    ax : matplotlib axes; without them a new figure is made. label : of the colours, instead of the baseline's name.
    vmin, vmax : the shares, in [0, 1], at the two ends of the colours; by default 0 and the largest share of the table.
        Maps that are compared need the same ones: `gap_maps` draws several with one scale.
    bar : whether the scale of the colours is drawn beside the map.

    Above the curve eta = tanh(epsilon/2) the cap on eta has no effect [GI, Prop 2]. Returns the axes. Raises
    `InvalidInput` for an unknown column, and for a scale that does not rise.

    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL
    >>> made = frontiers.frontier(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [0.5, 1.0], [0.1, 0.2])
    >>> gap_map(made, "binary_with_erasure").get_xlabel()
    'ε (nats)'
    """
    from matplotlib.patheffects import withStroke

    epsilons, column = np.unique(frontier.column("epsilon"), return_inverse=True)
    etas, row = np.unique(frontier.column("eta"), return_inverse=True)
    table = np.full((len(etas), len(epsilons)), np.nan)
    table[row, column] = frontier.gap(baseline)
    low = number(vmin, "vmin")
    high = max(low + 0.01, _largest(table)) if vmax is None else number(vmax, "vmax")
    if not low < high:
        raise invalid("vmax", f"a number above vmin = {low:g}", high)
    ax = axes_or_new(ax, 3.2 + min(max(0.55 * len(epsilons), 3), 9), 1.4 + min(max(0.36 * len(etas), 2.6), 7))
    across, up = _edges(epsilons), np.clip(_edges(etas), 0, 1)
    mesh = ax.pcolormesh(across, up, table, cmap="cividis", vmin=low, vmax=high)
    if table.size <= 150:
        for i, j in np.argwhere(np.isfinite(table)):
            cell = mesh.cmap(mesh.norm(table[i, j]))
            x, y = (across[j] + across[j + 1]) / 2, (up[i] + up[i + 1]) / 2
            text = ax.text(x, y, f"{max(0.0, table[i, j]):.0%}", ha="center", va="center", fontsize=7, color=ink(cell))
            text.set(zorder=4, path_effects=[withStroke(linewidth=2, foreground=cell)])
    curve = np.linspace(across[0], across[-1], 200)
    reach = np.tanh(curve / 2)
    ax.plot(curve, reach, color="white", lw=3)
    ax.plot(
        curve,
        reach,
        color="#D55E00",
        lw=1.4,
        label="η = tanh(ε/2)" + ("" if is_narrow(ax) else ": above it η does not bind"),
    )
    ax.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
    if np.any((reach > up[0]) & (reach < up[-1])):
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8.5, borderaxespad=0.2)
    ax.set_xlabel("ε (nats)")
    ax.set_ylabel("cap η on total variation")
    if bar:
        _shares_bar(mesh, ax, label or _missed(baseline))
    return ax


def _largest(shares: Array) -> float:
    return float(np.max(shares[np.isfinite(shares)], initial=0.0))


def _missed(baseline: str) -> str:
    return f"share of the optimum missed by\n{STYLES.get(baseline, (baseline.replace('_', ' '),))[0]}"


def _shares_bar(mesh: Any, ax: Any, label: str) -> None:
    """The scale of the colours of one map, or of a list of axes that share it."""
    from matplotlib.ticker import PercentFormatter

    first = ax[0] if isinstance(ax, list) else ax
    bar = first.figure.colorbar(mesh, ax=ax, format=PercentFormatter(1.0), pad=0.02)
    bar.set_label(label)
    bar.outline.set_visible(False)
    fit_column(first, bar)


def gap_maps(frontiers: Mapping[str, Frontier], baseline: str, label: str = "") -> list[Axes]:
    """Draw `gap_map` for several frontiers side by side, on one scale of colours.

    frontiers : by the titles of their maps. baseline : one of their columns. label : of the colours.

    The scale reaches from 0 to the largest share of all maps. Returns the axes, from left to right. Raises
    `InvalidInput` for no frontiers and for an unknown column.

    >>> from ldpopt import Divergence, frontiers
    >>> from ldpopt.divergences import KL, TOTAL_VARIATION
    >>> p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    >>> tables = {f.name: frontiers.frontier(Divergence(f, p0, p1), [1.0], [0.1, 0.2]) for f in (KL, TOTAL_VARIATION)}
    >>> [ax.get_title(loc="left") for ax in gap_maps(tables, "binary_with_erasure")]
    ['KL divergence', 'total variation']
    """
    if not isinstance(frontiers, Mapping) or not frontiers:
        raise invalid("frontiers", "at least one frontier by its title", Phrase("none"))
    high = max(0.01, *(_largest(table.gap(baseline)) for table in frontiers.values()))
    axes = panels([4.0] * len(frontiers), 3.6)
    for ax, (title, table) in zip(axes, frontiers.items(), strict=True):
        gap_map(table, baseline, ax, vmax=high, bar=False)
        if (legend := ax.get_legend()) is not None and ax is not axes[-1]:
            legend.remove()
        ax.set_title(label_text(title), loc="left", fontsize=9, pad=20)
    _shares_bar(axes[-1].collections[0], axes, label or _missed(baseline))
    return axes


def _edges(centres: Array) -> Array:
    """Cell borders halfway between sorted positive `centres`; a single cell reaches 0.1 to either side."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.1, centres[0] + 0.1])
    middle = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[max(2 * centres[0] - middle[0], 0.0)], middle, [2 * centres[-1] - middle[-1]]])


def bounds(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Draw a `Comparison`: at one (epsilon, eta) the ratio of each bound to the optimum, on a logarithmic scale.

    Of a question over several limits, side by side: the frontier, the share of the optimum that the binary mechanism
    misses, and the share of the tightest bound that no channel reaches; with `ax`, the frontier alone.

    comparison : from `bounds.compare`. ax : matplotlib axes; without them a new figure is made.

    Bounds that are infinite are left out. Returns the axes, of several the first.

    >>> from ldpopt.bounds import compare
    >>> bounds(compare([0.9, 0.1], [0.4, 0.6], 1.0)).get_xlabel()
    'times off the optimum'
    """
    if len(comparison.limits) > 1:
        return _over_limits(comparison, ax)
    drawn = [(row, row.looseness) for row in comparison.rows if row.looseness is not None][::-1]
    rows = [row for row, _ in drawn]
    ax = axes_or_new(ax, 8.5, 1.0 + 0.21 * max(len(rows), 4))
    heights = np.arange(len(rows))
    off, above = np.array([factor for _, factor in drawn]), np.array([row.above for row in rows], dtype=bool)
    ax.plot(off[above], heights[above], "o", color=FIRST_COLOR, ms=4.5, label="upper bound")
    ax.plot(off[~above], heights[~above], "s", color=SECOND_COLOR, ms=4.5, label="lower bound")
    ax.axvline(1.0, color="0.4", lw=0.9)
    ax.set_xscale("log")
    ax.set_yticks(
        heights,
        [label_text(f"{row.divergence}  {row.reference}", 40 if is_narrow(ax) else 60, 1) for row in rows],
        fontsize=7,
    )
    ax.set_ylim(-0.7, len(rows) - 0.3)
    log_ticks(ax)
    legend_above(ax, 8)
    return label_axes(ax, "times off the optimum", grid="x")


_COLUMNS = {
    "binary mechanism": "binary_with_erasure",
    "randomized response": "randomized_response_with_erasure",
    "[GI, Thm 8]": "erased_optimum",
    "[GI, Thm 5]": "tv_bound",
    "[DJW, Thm 1; GI, Thm 6]": "thm6",
    "[GI, Thm 7]": "thm7",
}
"""What a frontier calls a row of a comparison."""


def _over_limits(comparison: Comparison, ax: Axes | None) -> Axes:
    """The three pictures of a comparison over several limits, or the first of them on `ax`."""
    rows, reached = [], []
    for limits in comparison.points:
        these = comparison.at(*limits)
        first = these[0]
        known: dict[str, Any] = dict.fromkeys(_COLUMNS.values())
        known |= {_COLUMNS[row.reference]: row.value for row in these if row.reference in _COLUMNS}
        known |= {"lower_bound": first.optimum, "upper_bound": first.upper_bound, "certified": first.certified}
        rows.append(FrontierRow(*limits, optimum=first.optimum, **known))
        reached.append(replace(rows[-1], optimum=first.value, erased_optimum=first.optimum))
    table, to_bounds = (Frontier(tuple(each), comparison.designs[0].utility) for each in (rows, reached))
    unit = comparison.rows[0].unit
    second = third = None
    if ax is None:
        ax, second, third = panels((8.5, 5.0, 5.0), 4.2)
        gap_map(table, "binary_with_erasure", second)
        gap_map(to_bounds, "erased_optimum", third, "share of the tightest bound\nthat no channel reaches")
    drawn = frontier(table, ax)
    drawn.set_ylabel(drawn.get_ylabel().replace("(nats)", f"({unit})"))
    return drawn


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
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    return label_axes(ax, "type I error", "type II error")


def profile(composed: Any, ax: Axes | None = None) -> Axes:
    """Draw the smallest delta at every epsilon, on a logarithmic scale.

    composed : a `ComposedPair`, or another object with `hockey_stick` and `local_dp`.
    ax : matplotlib axes; without them a new figure is made.

    Epsilon is in nats; delta is a probability [GI, Def 1]. Returns the axes.

    >>> from ldpopt import compose
    >>> profile(compose([(0.5,)] * 4)).get_ylabel()
    'smallest δ'
    """
    ax = axes_or_new(ax, 5, 3.6)
    top = float(composed.approximate_dp(1e-12))
    epsilons = np.linspace(0.0, top if 0 < top < np.inf else 1.0, 120)
    deltas = np.array([float(composed.hockey_stick(float(epsilon))) for epsilon in epsilons])
    ax.plot(epsilons, np.where(deltas > 0, deltas, np.nan), color=FIRST_COLOR, lw=2)
    ax.set_yscale("log")
    ax.set_ylim(max(1e-12, float(deltas[deltas > 0].min(initial=1.0)) / 2), 1.0)
    return label_axes(ax, "ε (nats)", "smallest δ", "both")
