"""Proposition 5.3: group privacy of zCDP, on noise with exact values for groups and on chains of random laws."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ldpopt.mechanisms import gaussian, laplace
from ldpopt.privacy import FinitePair
from ldpopt.privacy.claims import ZCDP
from ldpopt.privacy.implications import group_zcdp
from ldpopt.reproduce.drawing import COLOURS, finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of
from ldpopt.reproduce.laws import random_chain


def points(parameters: Parameters) -> list[Row]:
    """Both noises, every parameter, group size and xi as a share of the KL divergence; then chains of laws."""
    noises = grid(
        noise=["Laplace", "Gaussian"], scale=parameters["scales"], xi_share=parameters["xi_shares"],
        size=parameters["sizes"],
    )  # fmt: skip
    chains = grid(noise=["chain"], scale=parameters["chain_sizes"], xi_share=parameters["xi_shares"], size=[2, 3, 4])
    return noises + [row | {"seed": seed} for row in chains for seed in range(parameters["chains"])]


def measure(noise: str, scale: float, xi_share: float, size: float, seed: float = 0) -> Row:
    """The claimed rho of a group and the exact one at the claimed xi.

    `scale` is epsilon, 1/sigma or a number of outcomes.
    """
    if noise == "chain":
        laws = random_chain(int(size), int(scale), int(seed))
        pairs = [FinitePair(a, b) for a, b in pairwise(laws)]
        xi = xi_share * max(one.renyi(1.0).lower for one in pairs)
        claimed = group_zcdp(ZCDP(xi, max(one.zcdp(xi).value for one in pairs)), int(size))
        exact = FinitePair(laws[0], laws[-1]).zcdp(claimed.xi).lower
        return {"xi": claimed.xi, "claimed": claimed.rho, "exact": exact}

    def pair(times: float) -> Any:
        return laplace(scale * times).pair if noise == "Laplace" else gaussian(1 / scale, times).pair

    xi = xi_share * pair(1).renyi(1.0).lower
    claimed = group_zcdp(ZCDP(xi, pair(1).zcdp(xi).value), int(size))
    return {"xi": claimed.xi, "claimed": claimed.rho, "exact": pair(size).zcdp(claimed.xi).lower}


def judge(table: Table) -> Verdict:
    """The ratio of the claimed to the exact rho; it is 1 for the Gaussian without xi."""
    exact = table.column("exact")
    ratios = table.column("claimed") / np.where(exact > 0, exact, np.nan)
    seen = ratios[~np.isnan(ratios)]
    normal = table.where(noise="Gaussian", xi_share=0.0)
    tight = float(np.max(normal.column("claimed") / normal.column("exact")))
    other = table.where(noise="Laplace", xi_share=0.0)
    loose = other.column("claimed") / other.column("exact")
    chains = table.where(noise="chain", xi_share=0.0)
    bent = chains.column("claimed") / chains.column("exact")
    return Verdict(
        outcome_of(seen),
        f"Tight for the Gaussian mechanism without ξ (to {abs(tight - 1):.1e}); for the Laplace mechanism up to "
        f"{loose.max():.3g} times too large at ξ = 0, and up to {seen.max():.3g} times with ξ > 0. "
        f"Chains of random laws, straight and bent, are {bent.min():.4f} times off at the least at ξ = 0, never below.",
        {
            "Gaussian, ξ = 0": tight,
            "Laplace, ξ = 0, largest": float(loose.max()),
            "largest of all": float(seen.max()),
            "chains, ξ = 0, smallest": float(bent.min()),
        },
    )


def draw(table: Table) -> Any:
    """Claimed over exact against the group's size."""
    axes = frames(3, 4.6, 4.0)
    for ax, noise, x in zip(axes[:2], ("Laplace", "Gaussian"), ("ε", "1/σ"), strict=True):
        at = 0
        for scale, by_scale in table.where(noise=noise).groups("scale"):
            for share, rows in by_scale.groups("xi_share"):
                ratio = rows.column("claimed") / rows.column("exact")
                line(ax, rows.column("size"), ratio, at, f"{x} = {scale:g}, ξ = {share:g} KL", marker="o", ms=3)
                at += 1
        finish(ax, f"{noise} mechanism", "group size", "claimed ρ / exact ρ", "upper left")
        ax.set_ylim(0, max(2.0, 1.05 * ax.get_ylim()[1]))
    last = axes[2]
    for at, share in enumerate(dict.fromkeys(table.where(noise="chain").column("xi_share").tolist())):
        rows = table.where(noise="chain", xi_share=share)
        shown = rows.column("exact") > 0
        ratio = rows.column("claimed")[shown] / rows.column("exact")[shown]
        shift = 0.12 * (2 * at - 1)
        last.plot(rows.column("size")[shown] + shift, ratio, "o^"[at % 2], ms=4, mfc="none", color=COLOURS[at],
                  label=f"ξ = {share:g} KL")  # fmt: skip
    last.axhline(1, color="0.4", lw=1)
    last.set_xticks([2, 3, 4])
    finish(last, "Chains of random laws", "group size", "claimed ρ / exact ρ", "upper left", scale="y")
    return axes[0]


EXPERIMENT = Experiment(
    name="bs-proposition-5-3",
    claim="(ξ, ρ)-zCDP is (ξ s Σ_{i≤s} 1/i, ρ s²)-zCDP for groups of s.",
    source="[BS, Prop 5.3]",
    full={"scales": [0.2, 1.0, 2.0], "xi_shares": [0.0, 0.5], "sizes": [1, 2, 3, 4, 6, 8], "chain_sizes": [2, 3, 5],
          "chains": 30},
    quick={"scales": [1.0], "xi_shares": [0.0, 0.5], "sizes": [1, 3], "chain_sizes": [3],
           "chains": 3},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="How many times the group's ρ exceeds the exact one, for the Laplace and the Gaussian mechanism and for "
        "chains of random laws.",
)  # fmt: skip
