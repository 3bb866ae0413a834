"""Proposition 5.3: group privacy of zCDP, on noise whose groups are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.mechanisms import gaussian, laplace
from ldpopt.privacy.claims import ZCDP
from ldpopt.privacy.group import group_zcdp
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Both noises, every parameter, group size and xi as a share of the KL divergence."""
    return grid(
        noise=["Laplace", "Gaussian"], scale=parameters["scales"], xi_share=parameters["xi_shares"],
        size=parameters["sizes"],
    )  # fmt: skip


def measure(noise: str, scale: float, xi_share: float, size: float) -> Row:
    """The claimed rho for a group beside the exact one at the claimed xi; `scale` is epsilon, or 1/sigma."""

    def pair(times: float) -> Any:
        return laplace(scale * times).pair if noise == "Laplace" else gaussian(1 / scale, times).pair

    xi = xi_share * pair(1).renyi(1.0).lower
    claimed = group_zcdp(ZCDP(xi, pair(1).zcdp(xi).value), int(size))
    return {"xi": claimed.xi, "claimed": claimed.rho, "exact": pair(size).zcdp(claimed.xi).lower}


def judge(table: Table) -> Verdict:
    """Claimed over exact; tight for the Gaussian without xi."""
    exact = table.column("exact")
    ratios = table.column("claimed") / np.where(exact > 0, exact, np.nan)
    seen = ratios[~np.isnan(ratios)]
    normal = table.where(noise="Gaussian", xi_share=0.0)
    tight = float(np.max(normal.column("claimed") / normal.column("exact")))
    other = table.where(noise="Laplace", xi_share=0.0)
    loose = other.column("claimed") / other.column("exact")
    return Verdict(
        outcome_of(seen),
        f"Tight for the Gaussian mechanism without ξ (to {abs(tight - 1):.1e}); for the Laplace mechanism up to "
        f"{loose.max():.3g} times too large at ξ = 0, and up to {seen.max():.3g} times with ξ > 0.",
        {"Gaussian, ξ = 0": tight, "Laplace, ξ = 0, largest": float(loose.max()), "largest of all": float(seen.max())},
    )


def draw(table: Table) -> Any:
    """Claimed over exact against the group's size."""
    axes = frames(2)
    for ax, noise, x in zip(axes, ("Laplace", "Gaussian"), ("ε", "1/σ"), strict=True):
        at = 0
        for scale, by_scale in table.where(noise=noise).groups("scale"):
            for share, rows in by_scale.groups("xi_share"):
                ratio = rows.column("claimed") / rows.column("exact")
                line(ax, rows.column("size"), ratio, at, f"{x} = {scale:g}, ξ = {share:g} KL", marker="o", ms=3)
                at += 1
        finish(ax, f"{noise} mechanism", "group size", "claimed ρ / exact ρ", "upper left")
        ax.set_ylim(0, max(2.0, 1.05 * ax.get_ylim()[1]))
    return axes[0]


EXPERIMENT = Experiment(
    name="bs-proposition-5-3",
    claim="(ξ, ρ)-zCDP is (ξ s Σ_{i≤s} 1/i, ρ s²)-zCDP for groups of s.",
    source="[BS, Prop 5.3]",
    full={"scales": [0.2, 1.0, 2.0], "xi_shares": [0.0, 0.5], "sizes": [1, 2, 3, 4, 6, 8]},
    quick={"scales": [1.0], "xi_shares": [0.0, 0.5], "sizes": [1, 3]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="How many times the group's ρ exceeds the exact one, for the Laplace and the Gaussian mechanism.",
)
