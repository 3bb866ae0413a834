"""Proposition 2: group privacy of Rényi differential privacy, on noise with exact group values and on random chains."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.mechanisms import gaussian, laplace
from ldpopt.privacy.claims import RenyiDP
from ldpopt.privacy.implications import group_renyi
from ldpopt.reproduce.drawing import COLOURS, finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of
from ldpopt.reproduce.laws import random_chain, renyi


def points(parameters: Parameters) -> list[Row]:
    """Both noises, every parameter, number of doublings, and order from 2^(c+1) up; then chains of random laws."""
    made = grid(
        noise=["Laplace", "Gaussian"], parameter=parameters["parameters"], doublings=parameters["doublings"],
        multiple=parameters["multiples"],
    )  # fmt: skip
    chains = grid(
        noise=["chain"], parameter=parameters["chain_sizes"], doublings=[1, 2], multiple=parameters["multiples"]
    )
    return made + [row | {"seed": seed} for row in chains for seed in range(parameters["chains"])]


def measure(noise: str, parameter: float, doublings: float, multiple: float, seed: float = 0) -> Row:
    """The claim for 2^c people at order/2^c, and the exact value.

    `parameter` is epsilon, 1/sigma or a number of outcomes.
    """
    c = int(doublings)
    order = multiple * 2 ** (c + 1)
    if noise == "chain":
        laws = random_chain(2**c, int(parameter), int(seed))
        near = max(max(renyi(a, b, order), renyi(b, a, order)) for a, b in pairwise(laws))
        claim = group_renyi(RenyiDP(order, near), c)
        return {"order": claim.order, "claimed": claim.epsilon, "exact": renyi(laws[0], laws[-1], claim.order)}

    def pair(people: int) -> Any:
        return laplace(parameter * people).pair if noise == "Laplace" else gaussian(1 / parameter, people).pair

    claim = group_renyi(RenyiDP(order, pair(1).renyi(order).value), c)
    return {"order": claim.order, "claimed": claim.epsilon, "exact": pair(2**c).renyi(claim.order).lower}


def judge(table: Table) -> Verdict:
    """The ratio of claimed to exact values, for each kind of noise."""
    ratios = table.column("claimed") / table.column("exact")
    shown = table.with_column("r", ratios)
    by_noise = {str(name): rows.column("r") for name, rows in shown.groups("noise")}
    said = ", ".join(f"{name} {one.min():.4g} to {one.max():.3g}" for name, one in by_noise.items())
    normal = table.where(noise="Gaussian")
    known = (3.0 ** normal.column("doublings")) / 2.0 ** normal.column("doublings")
    off = float(np.max(np.abs(normal.column("claimed") / normal.column("exact") / known - 1)))
    return Verdict(
        outcome_of(ratios),
        f"Times too large: {said}. For Gaussian noise the factor is (3/2)^c at every order (to {off:.1e}), so the loss "
        "grows with the group as s^0.585.",
        {f"{name}, {word}": float(pick(one)) for name, one in by_noise.items()
         for word, pick in (("smallest", np.min), ("largest", np.max))} | {"(3/2)^c off by": off},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """Claimed over exact against the group's size."""
    axes = frames(3, 4.6, 4.0)
    multiple = float(min(table.column("multiple")))
    for ax, noise, letter in zip(axes[:2], ("Laplace", "Gaussian"), ("ε", "1/σ"), strict=True):
        for at, (parameter, rows) in enumerate(table.where(noise=noise, multiple=multiple).groups("parameter")):
            size, ratio = 2 ** rows.column("doublings"), rows.column("claimed") / rows.column("exact")
            line(ax, size, ratio, at, f"{letter} = {parameter:g}", marker="o", ms=3)
        finish(ax, f"{noise} noise, at the least order allowed", "group size 2^c", "claimed / exact divergence")
        ax.set_xscale("log", base=2)
        ax.set_ylim(0.9, None)
    last = axes[2]
    for at, (outcomes, rows) in enumerate(table.where(noise="chain").groups("parameter")):
        place = 2 ** rows.column("doublings") * 1.06 ** (at - 1)
        last.plot(place, rows.column("claimed") / rows.column("exact"), "os^"[at % 3], ms=4, mfc="none",
                  color=COLOURS[at], label=f"{outcomes:g} outcomes")  # fmt: skip
    last.axhline(1, color="0.4", lw=1)
    finish(last, "Chains of random laws", "group size 2^c", "claimed / exact divergence", scale="y")
    last.set_xticks([2, 4])
    return axes[0]


EXPERIMENT = Experiment(
    name="m-proposition-2",
    claim="(α, ε)-RDP is (α/2^c, 3^c ε)-RDP for groups of 2^c, when α ≥ 2^(c+1).",
    source="[M, Prop 2]",
    full={"parameters": [0.1, 0.5, 2.0], "doublings": [0, 1, 2, 3, 4], "multiples": [1.0, 2.0, 8.0],
          "chain_sizes": [2, 3, 5], "chains": 30},
    quick={"parameters": [0.5], "doublings": [1, 3], "multiples": [1.0, 4.0],
           "chain_sizes": [3], "chains": 3},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="How many times 3^c ε exceeds the exact divergence of a group of 2^c.",
)  # fmt: skip
