"""Figure 5: what share of the optimum the binary mechanism is sure of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.bounds import binary_share_ghazi_issa, binary_share_kairouz
from ldpopt.design import Divergence, LocalDP, optimal_channel
from ldpopt.distribution import Array
from ldpopt.divergences import KL
from ldpopt.mechanisms import binary
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of
from ldpopt.reproduce.search import worst_pair


def points(parameters: Parameters) -> list[Row]:
    """The epsilons of the search, for each number of inputs."""
    made = grid(epsilon=parameters["epsilons"], k=parameters["sizes"])
    return [row | {"starts": parameters["starts"], "steps": parameters["steps"]} for row in made]


def measure(epsilon: float, k: float, starts: float, steps: float) -> Row:
    """The two published shares, and the smallest share that the search finds."""

    def advantage(p0: Array, p1: Array) -> float:
        utility = Divergence(KL, p0, p1)
        best = optimal_channel(utility, LocalDP(epsilon), certify=False).value
        return best / utility.value(binary(p0, p1, epsilon))

    found = worst_pair(advantage, int(k), int(starts), int(steps))
    return {
        "kairouz": binary_share_kairouz(epsilon),
        "ghazi_issa": binary_share_ghazi_issa(epsilon),
        "exact": 1 / float(found["ratio"]),
        "p0": found["p0"],
        "p1": found["p1"],
    }


def judge(table: Table) -> Verdict:
    """Both shares below the exact one, the newer the larger."""
    exact = np.array([by.column("exact").min() for _, by in table.groups("epsilon")])
    older = np.array([by.column("kairouz")[0] for _, by in table.groups("epsilon")])
    newer = np.array([by.column("ghazi_issa")[0] for _, by in table.groups("epsilon")])
    low = table.row("exact", np.argmin)
    return Verdict(
        outcome_of(np.concatenate([exact / older, exact / newer, newer / older])),
        f"The newer share is {(newer / older).min():.3g} to {(newer / older).max():.3g} times the older. The search "
        f"finds populations of which the binary mechanism keeps just {exact.min():.4f} (at ε = {low['epsilon']:g}, "
        f"P0 = ({low['p0']}), P1 = ({low['p1']})); the smallest shares it finds, which may not be the least, are "
        f"{(exact / newer).min():.3g} to {(exact / newer).max():.3g} times the newer share.",
        {
            "older share at ε = 1": binary_share_kairouz(1.0),
            "newer share at ε = 1": binary_share_ghazi_issa(1.0),
            **{
                f"smallest share found, ε = {e:g}": float(by.column("exact").min()) for e, by in table.groups("epsilon")
            },
        },
    )


def draw(table: Table) -> Any:
    """Figure 5's two curves, and the share found."""
    (ax,) = frames(1, 6.2, 4.2)
    epsilons = np.linspace(0.02, max(table.column("epsilon")), 200)
    line(ax, epsilons, [binary_share_ghazi_issa(e) for e in epsilons], 1, "1/(min(2, e^ε)(e^ε+1)) [GI]", ls="-")
    line(ax, epsilons, [binary_share_kairouz(e) for e in epsilons], 0, "1/(2(e^ε+1)²) [KOV14]", ls="--")
    found = [(float(e), by.column("exact").min()) for e, by in table.groups("epsilon")]
    line(ax, [e for e, _ in found], [share for _, share in found], 2, "smallest found over P0, P1", marker="o", ms=4)
    finish(ax, "Figure 5: share of the KL optimum kept by the binary mechanism", "ε (nats)", "share", "center right")
    ax.set_ylim(0, 1.05)
    ax.set_xlim(0, None)
    return ax


EXPERIMENT = Experiment(
    name="gi-figure-5",
    claim="For KL divergence the binary mechanism reaches at least 1/(min(2, e^ε)(e^ε+1)) of the optimum, for all P0 "
    "and "
    "P1; 1/(2(e^ε+1)²) was known.",
    source="[GI, section VII-B1; GI, Fig 5; KOV14, Thm 7]",
    full={"epsilons": [0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0], "sizes": [3, 5], "starts": 6, "steps": 800},
    quick={"epsilons": [0.5, 3.0], "sizes": [4], "starts": 2, "steps": 120},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The two guaranteed shares of Figure 5, and the smallest share that a search over P0 and P1 finds.",
)
