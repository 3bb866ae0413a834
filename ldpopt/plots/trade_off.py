"""How well a test can tell two answers apart: the trade-off curve, and the privacy profile of a composition."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.plots.figure import FIRST, Axes, axes_on


def trade_off(curve: Any, ax: Axes | None = None) -> Axes:
    """Draw the least type II error against the type I error, with the line of perfect privacy [GI, section III].

    curve : a `TradeOffCurve`, or an object that has one, such as a `FinitePair`.
    ax : matplotlib axes; without them a new figure is made.

    Both errors are small in the shaded region, which no test reaches. Returns the axes.

    >>> from ldpopt.privacy import TradeOffCurve
    >>> trade_off(TradeOffCurve.of_pair([0.75, 0.25], [0.25, 0.75])).get_xlabel()
    'type I error'
    """
    made = getattr(curve, "trade_off", None)
    curve = made() if callable(made) else curve
    ax = axes_on(ax, 4.2, 4)
    a, b = np.vstack([curve.knots, [1.0, 0.0]]).T
    ax.plot([0, 1], [1, 0], color="0.6", lw=1, ls=(0, (5, 3)), label="perfect privacy")
    ax.plot(a, b, color=FIRST, lw=2, label="the best test")
    ax.fill_between(a, 0, b, color=FIRST, alpha=0.12, lw=0)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error", ylabel="type II error", aspect="equal")
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def profile(composed: Any, ax: Axes | None = None) -> Axes:
    """Draw the smallest delta at every epsilon, on a logarithmic scale.

    composed : a `ComposedPair`, or another object with `hockey_stick` and `local_dp`.
    ax : matplotlib axes; without them a new figure is made.

    Epsilon is in nats; delta is a probability [GI, Def 1]. Returns the axes.

    >>> from ldpopt import compose
    >>> profile(compose([(0.5,)] * 4)).get_ylabel()
    'smallest δ'
    """
    ax = axes_on(ax, 5, 3.6)
    top = float(composed.approximate_dp(1e-12))
    epsilons = np.linspace(0.0, top if 0 < top < np.inf else 1.0, 120)
    deltas = np.array([float(composed.hockey_stick(float(epsilon))) for epsilon in epsilons])
    ax.plot(epsilons, np.where(deltas > 0, deltas, np.nan), color=FIRST, lw=2)
    ax.set_yscale("log")
    ax.set_ylim(max(1e-12, float(deltas[deltas > 0].min(initial=1.0)) / 2), 1.0)
    ax.set(xlabel="ε (nats)", ylabel="smallest δ")
    ax.grid(alpha=0.25, lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
