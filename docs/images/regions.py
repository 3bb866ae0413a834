"""Draw trade-off regions, and the plane of epsilon and eta: ``python docs/images/regions.py``."""

from typing import Any

import numpy as np
from drawn import FIRST, GREEN, GREY, SECOND, TYPE, beside, frame, panels, save

from ldpopt.mechanisms import dominating_pair, randomized_response, subset_selection
from ldpopt.privacy import local_dp, total_variation, trade_off


def regions(ax: Any) -> None:
    """The worst trade-off curves under epsilon, and under epsilon with two caps."""
    ax.plot([0, 1], [1, 0], ":", color=GREY, lw=1.3, label="the report tells nothing")
    for share, colour, style in ((1.0, FIRST, "-"), (0.6, SECOND, "--"), (0.25, GREEN, "-.")):
        eta = share * np.tanh(1.0)
        knots = trade_off(dominating_pair(2.0, eta=eta).channel).knots
        cap = "no cap, η = 0.76" if share == 1.0 else f"cap η = {eta:.2f}"
        ax.plot(*knots.T, style, color=colour, lw=1.8, label=f"ε = 2, {cap}")
    knots = trade_off(dominating_pair(2.0).channel).knots
    ax.fill(*knots.T, color=FIRST, alpha=0.07, lw=0)
    frame(ax, "What a test of two answers can reach", "error of the first kind", "error of the second kind")
    ax.set(aspect="equal", xlim=(0, 1), ylim=(0, 1))
    beside(ax)


def plane(ax: Any) -> None:
    """Where channels lie between the two promises; nothing lies above the curve."""
    epsilons = np.linspace(0, 4, 100)
    ax.fill_between(epsilons, np.tanh(epsilons / 2), 1, color="0.92", lw=0)
    ax.plot(
        epsilons, np.tanh(epsilons / 2), color=FIRST, lw=1.8, label="η = tanh(ε/2): two answers, randomized response"
    )
    made = {
        "randomized response of 4 answers": [randomized_response(4, e) for e in (1.0, 2.0, 3.0)],
        "subset selection, 2 of 8 answers": [subset_selection(8, e, 2) for e in (1.0, 2.0, 3.0)],
        "two answers, half of the reports erased": [randomized_response(2, e).erase(0.5) for e in (1.0, 2.0, 3.0)],
    }
    for (name, channels), mark, colour in zip(made.items(), "osD", (SECOND, GREEN, GREY), strict=True):
        ax.plot(
            [float(local_dp(one)) for one in channels],
            [float(total_variation(one)) for one in channels],
            mark,
            color=colour,
            ms=6,
            label=name,
        )
    ax.text(0.35, 0.8, "no channel is here", fontsize=TYPE, color="0.3")
    frame(ax, "The two promises of common channels", "ε in nats", "η")
    ax.set(xlim=(0, 4), ylim=(0, 1))
    beside(ax)


def draw() -> Any:
    """Regions on the left, the plane on the right."""
    left, right = panels((4.2, 4.6), 4.9)
    regions(left)
    plane(right)
    return left


if __name__ == "__main__":
    save(draw(), __file__)
