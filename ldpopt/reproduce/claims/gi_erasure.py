"""Theorem 8: the true frontier against erasing the optimal channel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.bounds import erased_share
from ldpopt.design import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.distribution import Array
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, SQUARED_HELLINGER
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of
from ldpopt.reproduce.search import worst_pair

F = {f.name: f for f in (KL, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON)}
P0, P1 = (0.4, 0.25, 0.2, 0.1, 0.05), (0.05, 0.1, 0.2, 0.25, 0.4)


def advantage(p0: Array, p1: Array, divergence: str, epsilon: float, share: float, certify: bool = False) -> Row:
    """The optimum under eta = share tanh(epsilon/2), and what erasing the optimum for epsilon keeps."""
    utility = Divergence(F[divergence], p0, p1)
    eta = share * math.tanh(epsilon / 2)
    erased = erased_share(epsilon, eta) * optimal_channel(utility, LocalDP(epsilon), certify=False).value
    design = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)], certify=certify)
    return {"eta": eta, "optimum": design.value, "erased": erased, "certified": float(design.certified)}


def points(parameters: Parameters) -> list[Row]:
    """The frontier of one pair on five inputs, then the search for the worst pair."""
    names = list(F)
    curves = grid(part=["frontier"], divergence=names, epsilon=parameters["epsilons"], share=parameters["shares"])
    search = grid(part=["worst"], divergence=names, epsilon=parameters["epsilons"], share=parameters["searched"])
    return [
        *curves,
        *(row | {"k": k, "steps": parameters["steps"]} for row in search for k in parameters["sizes"]),
    ]


def measure(part: str, divergence: str, epsilon: float, share: float, k: float = 0, steps: float = 0) -> Row:
    """One point of the frontier, or the pair at which erasure loses most."""
    if part == "frontier":
        return advantage(np.array(P0), np.array(P1), divergence, epsilon, share, certify=True)

    def ratio(p0: Array, p1: Array) -> float:
        found = advantage(p0, p1, divergence, epsilon, share)
        return float(found["optimum"]) / float(found["erased"])

    return worst_pair(ratio, int(k), 3, int(steps))


def judge(table: Table) -> Verdict:
    """The erased optimum never above, and by how much it falls short."""
    curves, worst = table.where(part="frontier"), table.where(part="worst")
    ratios = np.concatenate([curves.column("optimum") / curves.column("erased"), worst.column("ratio")])
    top = worst.row("ratio", np.argmax)
    lost = {str(name): 1 - 1 / float(rows.column("ratio").max()) for name, rows in worst.groups("divergence")}
    said = ", ".join(f"{name} {share:.1%}" for name, share in lost.items())
    return Verdict(
        outcome_of(ratios),
        f"Never above the optimum, but erasure is not optimal: it loses up to {said} of it where the search went, most "
        f"at ε = {top['epsilon']:g}, η = {top['share']:g} tanh(ε/2), P0 = ({top['p0']}), P1 = ({top['p1']}) for "
        f"{top['divergence']}. {curves.column('certified').mean():.0%} of the frontier is certified.",
        {
            **{f"largest loss, {name}": share for name, share in lost.items()},
            "optimum / erased at most": float(top["ratio"]),
            "at epsilon": float(top["epsilon"]),
            "at share": float(top["share"]),
        },
    )


def draw(table: Table) -> Any:
    """The share of the optimum that erasure keeps, for every divergence and epsilon."""
    curves = table.where(part="frontier")
    epsilons = list(curves.groups("epsilon"))
    axes = frames(len(epsilons), 4.0, 3.9)
    for ax, (epsilon, rows) in zip(axes, epsilons, strict=True):
        for at, (name, one) in enumerate(rows.groups("divergence")):
            kept = one.column("erased") / one.column("optimum")
            line(ax, one.column("eta"), kept, at, str(name))
        finish(ax, f"ε = {epsilon:g}", "cap η on total variation", "kept by erasure / optimum", None)
        ax.set_ylim(min(0.8, ax.get_ylim()[0]), 1.005)
        ax.set_xlim(0, None)
    axes[0].legend(fontsize=8, loc="lower right", framealpha=0.85, edgecolor="none")
    return axes[0]


EXPERIMENT = Experiment(
    name="gi-theorem-8",
    claim="OPT(ε, η) is at least η/tanh(ε/2) OPT(ε), for every f-divergence: erase the optimal channel. Is erasure "
    "optimal?",
    source="[GI, Thm 8]",
    full={
        "epsilons": [0.5, 1.0, 2.0, 4.0], "shares": [round(i / 20, 2) for i in range(1, 21)],
        "searched": [0.3, 0.5, 0.7],
        "sizes": [3, 5], "steps": 300,
    },
    quick={"epsilons": [2.0], "shares": [0.25, 0.5, 0.75, 1.0], "searched": [0.5], "sizes": [3], "steps": 60},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="What erasing the optimum for ε keeps of the true optimum, on the pair (0.4, 0.25, 0.2, 0.1, 0.05) against "
    "its reverse: all of it for small ε, less where more than two blocks pay.",
)  # fmt: skip
