"""Draw a printed bound that is too small: ``python docs/images/errata.py``."""

from typing import Any

import numpy as np
from drawn import FIRST, GREEN, SECOND, beside, frame, panels, save

from experiments.papers.claims.cim_noise import laplace_bound
from ldpopt.mechanisms import laplace

POINTS = 40


def draw() -> Any:
    """What linear adversaries find under Laplace noise, exactly and by the printed bound, for three orders."""
    (ax,) = panels((5.6,), 4.9)
    epsilons = np.geomspace(0.02, 2, POINTS)
    for order, colour in ((2.0, GREEN), (3.0, FIRST), (6.0, SECOND)):
        exact = [laplace(epsilon).restricted_renyi(order).value for epsilon in epsilons]
        ax.loglog(epsilons, exact, color=colour, lw=1.8, label=f"order {order:g}, exact")
        ax.loglog(
            epsilons,
            [laplace_bound(order, epsilon) for epsilon in epsilons],
            ":",
            color=colour,
            lw=1.8,
            label=f"order {order:g}, printed bound",
        )
    ax.set(ylim=(1e-8, 30))
    frame(ax, "What linear adversaries find under Laplace noise", "ε of the noise", "divergence, in nats")
    beside(ax)
    return ax


if __name__ == "__main__":
    save(draw(), __file__)
