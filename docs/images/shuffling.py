"""Draw what shuffling adds, and how close its two ends are: ``python docs/images/shuffling.py``."""

from typing import Any

import numpy as np
from drawn import FIRST, GREEN, SECOND, beside, frame, panels, save

from ldpopt.composition import shuffled
from ldpopt.mechanisms import randomized_response, subset_selection

DELTA = 1e-6
RESPONDENTS = 10 ** np.arange(3, 7)
CHANNELS = {
    "randomized response, 2 answers": (randomized_response(2, 1.0), FIRST, "o-"),
    "randomized response, 10 answers": (randomized_response(10, 1.0), SECOND, "s--"),
    "subset selection, 3 of 10": (subset_selection(10, 1.0, 3), GREEN, "^:"),
}


def draw() -> Any:
    """The central epsilon over the number of respondents, and the ratio of its upper to its lower end."""
    left, right = panels((4.4, 4.4), 3.6)
    for name, (channel, color, style) in CHANNELS.items():
        ends = [shuffled(channel, int(n)).epsilon_at(DELTA) for n in RESPONDENTS]
        value, lower = np.array([one.value for one in ends]), np.array([one.lower for one in ends])
        left.loglog(RESPONDENTS, value, style, color=color, ms=5, label=name)
        right.semilogx(RESPONDENTS, value / lower, style, color=color, ms=5, label=name)
    frame(left, "Each report is 1-LDP; after shuffling", "respondents", "ε at δ = 0.000001, upper end")
    frame(right, "How close the ends are", "respondents", "upper end / lower end")
    right.set(ylim=(0.99, 1.12))
    beside(left)
    beside(right)
    return left


if __name__ == "__main__":
    save(draw(), __file__)
