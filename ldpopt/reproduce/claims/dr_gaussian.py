"""Theorem 3.2 and Corollary 3.3: Gaussian noise, alone and for groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldpopt.mechanisms import gaussian
from ldpopt.privacy.implications import group_gaussian_mcdp
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Outcome, Parameters, Row, Table, Verdict, grid


def points(parameters: Parameters) -> list[Row]:
    """Every sigma and group size, with sensitivity 1."""
    return grid(sigma=parameters["sigmas"], size=parameters["sizes"])


def measure(sigma: float, size: float) -> Row:
    """The exact (mu, tau) of the group, and the corollary's, printed and corrected."""
    found = gaussian(sigma, size).pair.mcdp()
    corrected = group_gaussian_mcdp(1.0, sigma, int(size))
    return {
        "mu": found.mu.value, "tau": found.tau.value, "mu_printed": (size / sigma) ** 2 / 2, "tau_printed": size,
        "mu_corrected": corrected.mu, "tau_corrected": corrected.tau,
    }  # fmt: skip


def judge(table: Table) -> Verdict:
    """Theorem 3.2 (one person, corrected form) holds; the printed tau of a group is wrong unless sigma is 1."""
    off = max(float(np.max(np.abs(table.column(f"{n}_corrected") / table.column(n) - 1))) for n in ("mu", "tau"))
    ratio = table.column("tau") / table.column("tau_printed")
    top = table.with_column("r", ratio).row("r", np.argmax)
    mean = float(np.max(np.abs(table.column("mu_printed") / table.column("mu") - 1)))
    figures = {"exact τ over printed τ, largest": float(ratio.max()), "smallest": float(ratio.min()),
               "printed μ off by": mean, "corrected form off by": off}  # fmt: skip
    if ratio.max() <= 1 + 1e-9:
        return Verdict(Outcome.LOOSELY, "No counterexample at these σ.", figures)
    return Verdict(
        Outcome.FAILS,
        f"Theorem 3.2 and μ are exact, but the printed τ = sΔ of a group is not: at σ = {top['sigma']:g}, s = "
        f"{top['size']:g} the exact τ is {top['tau']:.6g}, printed {top['tau_printed']:.6g}. The text before it "
        f"gives sΔ/σ, with which both are exact (to {off:.1e}); for σ ≥ 1 the printed one is a true bound, too large.",
        figures,
    )


def draw(table: Table) -> Any:
    """tau against sigma for every group size."""
    (ax,) = frames(1, 6.0, 4.2)
    for at, (size, rows) in enumerate(table.groups("size")):
        line(ax, rows.column("sigma"), rows.column("tau"), at, f"s = {size:g}, exact: s/σ", ls="-", marker="o", ms=3)
        line(ax, rows.column("sigma"), rows.column("tau_printed"), at, f"s = {size:g}, printed: s", ls=":", lw=1.4)
    finish(ax, "Corollary 3.3: τ of Gaussian noise, Δ = 1", "σ", "τ", scale="xy")
    ax.set_xscale("log", base=2)
    return ax


EXPERIMENT = Experiment(
    name="dr-corollary-3-3",
    claim="Gaussian noise of standard deviation σ is ((Δ/σ)²/2, Δ/σ)-CDP, and ((sΔ/σ)²/2, sΔ)-CDP for groups of s (as "
    "printed).",
    source="[DR, Cor 3.3; DR, Thm 3.2]",
    full={"sigmas": [0.25, 0.5, 1.0, 2.0, 4.0], "sizes": [1, 2, 5]},
    quick={"sigmas": [0.5, 1.0], "sizes": [1, 3]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="The subgaussian standard of the privacy loss: exact (solid), and sΔ as printed (dotted).",
)
