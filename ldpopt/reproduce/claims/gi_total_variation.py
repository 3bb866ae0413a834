"""Theorems 4 and 5: the optimum for total variation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.bounds import ghazi_issa_total_variation
from ldpopt.design import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import TOTAL_VARIATION
from ldpopt.mechanisms import binary_with_erasure
from ldpopt.reproduce.drawing import COLOURS, finish, frames
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Random populations of several sizes at several limits; share 1 is Theorem 4."""
    return grid(
        epsilon=parameters["epsilons"], share=parameters["shares"], k=parameters["sizes"],
        seed=list(range(parameters["pairs"])),
    )  # fmt: skip


def measure(epsilon: float, share: float, k: float, seed: float) -> Row:
    """The bound, the certified optimum, and the binary mechanism with erasure."""
    rng = np.random.default_rng([int(k), int(seed)])
    p0, p1 = rng.dirichlet(np.ones(int(k))), rng.dirichlet(np.ones(int(k)))
    eta = share * math.tanh(epsilon / 2)
    utility = Divergence(TOTAL_VARIATION, p0, p1)
    design = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)])
    return {
        "eta": eta,
        "distance": utility.unprivate,
        "bound": ghazi_issa_total_variation(p0, p1, eta),
        "optimum": design.value,
        "upper_bound": design.upper_bound,
        "binary_with_erasure": utility.value(binary_with_erasure(p0, p1, epsilon, eta)),
    }


def judge(table: Table) -> Verdict:
    """The verdict: the bound, the optimum and the mechanism have the same value."""
    ratios = table.column("bound") / table.column("optimum")
    reached = table.column("binary_with_erasure") / table.column("optimum")
    proved = table.column("upper_bound") / table.column("optimum") - 1
    off = max(float(np.abs(ratios - 1).max()), float(np.abs(reached - 1).max()))
    return Verdict(
        outcome_of(np.concatenate([ratios, reached, 1 / ratios, 1 / reached])),
        f"Bound, certified optimum and the binary mechanism with erasure agree to {off:.1e} on {len(ratios)} designs.",
        {"largest relative difference": off, "largest certified gap": float(proved.max())},
    )


def draw(table: Table) -> Any:
    """The optimum against the bound."""
    (ax,) = frames(1, 5.2, 4.4)
    top = float(table.column("bound").max()) * 1.05
    ax.plot([0, top], [0, top], color="0.6", lw=1, label="optimum = η·TV(P0, P1)")
    marks = "osD^"
    for at, (epsilon, rows) in enumerate(table.groups("epsilon")):
        ax.plot(
            rows.column("bound"), rows.column("optimum"), marks[at % 4], ms=5, mfc="none", color=COLOURS[at],
            label=f"ε = {epsilon:g}",
        )  # fmt: skip
    finish(ax, "Theorems 4 and 5: total variation kept", "bound η·TV(P0, P1)", "certified optimum")
    return ax


EXPERIMENT = Experiment(
    name="gi-theorem-5",
    claim="No ε-LDP and η-TV channel keeps more of the total variation than η TV(P0, P1), tanh(ε/2) TV(P0, P1) without "
    "η, and the binary mechanism with erasure keeps exactly that.",
    source="[GI, Thm 5; GI, Thm 4; KOV14, Thm 6]",
    full={"epsilons": [0.2, 1.0, 3.0], "shares": [0.3, 1.0], "sizes": [2, 5, 12], "pairs": 8},
    quick={"epsilons": [1.0], "shares": [0.3, 1.0], "sizes": [2, 5], "pairs": 2},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Every certified optimum for total variation lies on the bound.",
)
