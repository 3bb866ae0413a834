"""Draw what many reports reveal together: ``python docs/images/many_reports.py``."""

from typing import Any

import numpy as np
from drawn import FIRST, GREEN, GREY, SECOND, beside, frame, panels, save

from ldpopt import k_fold
from ldpopt.composition import advanced_composition, kov15
from ldpopt.privacy import PureDP

EPSILON, DELTA = 0.1, 1e-6


def draw() -> Any:
    """The level of k reports by three rules, and the curve of one thousand."""
    left, right = panels((4.4, 4.4), 4.5)
    counts = np.unique(np.geomspace(1, 3000, 40).astype(int))
    eta = 0.7 * np.tanh(EPSILON / 2)
    rules = {
        "plain sum": ([k * EPSILON for k in counts], GREY, ":"),
        "advanced composition": (
            [advanced_composition(PureDP(EPSILON), int(k), DELTA).epsilon for k in counts],
            SECOND,
            "-.",
        ),
        "exact": ([kov15(EPSILON, count=int(k)).epsilon_at(DELTA) for k in counts], FIRST, "-"),
        "exact, 30 % of the reports erased": (
            [k_fold(EPSILON, eta=eta, count=int(k)).epsilon_at(DELTA) for k in counts],
            GREEN,
            "--",
        ),
    }
    for name, (values, colour, style) in rules.items():
        left.loglog(counts, np.maximum(values, 1e-3), style, color=colour, lw=1.8, label=name)
    left.set(ylim=(0.05, 200))
    frame(left, "ε of all reports, at δ = 0.000001", "reports, each with ε = 0.1", "ε of all")
    beside(left)
    for share, colour, style in ((0.0, FIRST, "-"), (0.3, GREEN, "--"), (0.6, SECOND, "-.")):
        composed = k_fold(EPSILON, eta=(1 - share) * np.tanh(EPSILON / 2), count=1000)
        shown = composed.deltas > 1e-12
        right.semilogy(
            composed.epsilons[shown],
            composed.deltas[shown],
            style,
            color=colour,
            lw=1.8,
            label=f"{share:.0%} erased".replace("%", " %"),
        )
    right.set(xlim=(0, 25))
    frame(right, "A thousand reports: every pair (ε, δ)", "ε of all", "δ")
    beside(right)
    return left


if __name__ == "__main__":
    save(draw(), __file__)
