"""Lemmas 3.5, 3.6 and 3.7: between zCDP and approximate privacy, on the Gaussian mechanism."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.mechanisms import gaussian
from ldpopt.privacy.claims import ZCDP
from ldpopt.privacy.conversions import approximate_curve_to_zcdp, zcdp_delta
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of


def points(parameters: Parameters) -> list[Row]:
    """Every rho with every epsilon, as a number of standard deviations above rho; then the converse lemma's points."""
    forward = grid(part=["forward"], rho=parameters["rhos"], deviations=parameters["deviations"])
    return forward + grid(part=["converse"], rho=[rho for rho in parameters["rhos"] if rho <= 0.25])


def measure(part: str, rho: float, deviations: float = 0.0) -> Row:
    """The exact delta of the rho-zCDP Gaussian mechanism beside both lemmas; or the converse's xi."""
    if part == "converse":
        claim = approximate_curve_to_zcdp(rho, 4 * rho)  # rho-zCDP is (rho + sqrt(4 rho log 1/delta), delta)-DP
        return {"xi": claim.xi, "rho_returned": claim.rho, "at_order_2": claim.xi + 2 * claim.rho, "exact": 2 * rho}
    epsilon = rho + deviations * math.sqrt(2 * rho)
    return {
        "epsilon": epsilon,
        "exact": gaussian(1 / math.sqrt(2 * rho)).pair.hockey_stick(epsilon).lower,
        "lemma_3_5": math.exp(-((epsilon - rho) ** 2) / (4 * rho)),
        "lemma_3_6": zcdp_delta(ZCDP(0.0, rho), epsilon).delta,
    }


def judge(table: Table) -> Verdict:
    """The ratio of every lemma's delta to the exact one."""
    forward, converse = table.where(part="forward"), table.where(part="converse")
    ratios = {name: forward.column(name) / forward.column("exact") for name in ("lemma_3_5", "lemma_3_6")}
    back = converse.column("at_order_2") / converse.column("exact")
    order = forward.column("lemma_3_5") / forward.column("lemma_3_6")
    return Verdict(
        outcome_of(np.concatenate([*ratios.values(), back, order])),
        f"On the Gaussian mechanism δ of Lemma 3.5 is {ratios['lemma_3_5'].min():.3g} to "
        f"{ratios['lemma_3_5'].max():.3g} "
        f"times the exact one, that of Lemma 3.6 {ratios['lemma_3_6'].min():.3g} to {ratios['lemma_3_6'].max():.3g} "
        "times. "
        f"There and back by Lemma 3.7 returns the same ρ but adds ξ: D_2 grows {back.min():.3g} to {back.max():.3g} "
        "times.",
        {
            "Lemma 3.5 over exact, largest": float(ratios["lemma_3_5"].max()),
            "Lemma 3.6 over exact, smallest": float(ratios["lemma_3_6"].min()),
            "Lemma 3.6 over exact, largest": float(ratios["lemma_3_6"].max()),
            "Lemma 3.7, D_2 over exact, smallest": float(back.min()),
            "Lemma 3.7, D_2 over exact, largest": float(back.max()),
        },
    )


def draw(table: Table) -> Any:
    """delta against epsilon for the middle rho, and the ratios for all."""
    left, right = frames(2)
    forward = table.where(part="forward")
    rhos = sorted(set(forward.column("rho")))
    rows = forward.where(rho=rhos[len(rhos) // 2])
    names = (("lemma_3_5", "Lemma 3.5", 1), ("lemma_3_6", "Lemma 3.6", 2), ("exact", "Gaussian mechanism, exact", 0))
    for name, label, at in names:
        line(left, rows.column("epsilon"), rows.column(name), at, label)
    finish(left, f"δ of a ρ-zCDP mechanism, ρ = {rhos[len(rhos) // 2]:g}", "ε (nats)", "δ", scale="y")
    for at, rho in enumerate(rhos):
        one = forward.where(rho=rho)
        ratio = one.column("lemma_3_6") / one.column("exact")
        line(right, one.column("deviations"), ratio, at, f"ρ = {rho:g}")
    finish(right, "Lemma 3.6 over the exact δ", "(ε - ρ) / √(2ρ)", "times too large")
    return left


EXPERIMENT = Experiment(
    name="bs-lemmas-3-5-to-3-7",
    claim="ρ-zCDP implies (ρ + √(4ρ log 1/δ), δ)-DP for all δ (3.5), with a sharper δ (3.6), and such a curve implies "
    "zCDP back, up to a loss (3.7).",
    source="[BS, Lemma 3.5; BS, Lemma 3.6; BS, Lemma 3.7]",
    full={"rhos": [0.001, 0.01, 0.1, 0.5, 2.0], "deviations": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0]},
    quick={"rhos": [0.01, 0.1], "deviations": [0.0, 2.0, 5.0]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Left: δ against ε, by both lemmas and exactly. Right: how many times Lemma 3.6 exceeds the exact δ.",
)
