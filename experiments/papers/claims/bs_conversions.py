"""Sections 1, 3 and 4: zero-concentrated privacy against pure, approximate and mean-concentrated privacy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from experiments.papers.drawing import curves, level, marks, panel, picture
from experiments.papers.experiment import Axis, Outcome, Row, Subject, Table, Verdict, grid, middle
from experiments.papers.laws import random_law, rr, tilted
from experiments.papers.statements import Part, among, bounded, claim, off_by, outcome_of, verdict
from ldpopt.mechanisms import dominating_pair, gaussian, laplace
from ldpopt.privacy import MCDP, ZCDP, FinitePair, local_dp, mcdp, zcdp
from ldpopt.privacy.conversions import approximate_curve_to_zcdp, mcdp_to_zcdp, zcdp_delta


@claim(
    "bs-proposition-1-4", "[BS, Prop 1.4]",
    points=grid(epsilon=Axis([0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0], [0.1, 1.0, 5.0]),
                share=Axis([0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0], [0.1, 0.7, 1.0])),
    judge=bounded(
        "The exact ρ of pure privacy is ε tanh(ε/2) (to {_off:.1e}), so ε²/2 is {ε²/2 over exact:.4f|.3g} times too "
        "large. With η it is εη while little is erased and more beyond: {_top[top]:.4f} times εη at ε = "
        "{_top[epsilon]:g}, η = {_top[share]:g} tanh(ε/2).",
        {"ε²/2 over exact": among("printed / exact", share=1.0), "ε²/2 over exact with η": "printed / exact"},
        {"_off": among(lambda rows: off_by(rows.ratio("exact", "epsilon_eta")), share=1.0),
         "_top": lambda table: table.top("exact / epsilon_eta"), "exact over εη": "exact / epsilon_eta"}),
    draw=picture(
        panel("The zCDP of (ε, η)", "ε (nats)", "ρ",
              curves("epsilon", "printed", "ε²/2 [BS]", first=6, where={"share": 1.0}),
              curves("epsilon", "exact", "exact, η = {share:g} tanh(ε/2)", by=("share",), max_curves=5), scale="xy"),
        panel("Exact ρ over εη", "η / tanh(ε/2)", "ρ / (εη)",
              curves("share", "exact / epsilon_eta", "ε = {epsilon:g}", by=("epsilon",), max_curves=5), scale="x")),
    caption="Left: the exact ρ that ε, and ε with η, imply. Right: how far it exceeds εη when nearly all is erased.",
)  # fmt: skip
def pure(epsilon: float, share: float) -> Row:
    """Every ε-DP mechanism is ε²/2-zCDP."""
    eta = share * math.tanh(epsilon / 2)
    exact = zcdp(dominating_pair(epsilon, 0.0, eta).channel)
    return {"exact": exact.value, "printed": epsilon**2 / 2, "epsilon_eta": epsilon * eta}


FORWARD = Part("ε-DP implies ρ = 0 at ξ = ε", equal=True, cells=("seed",))
LEAST = Part("the least ξ with ρ = 0 is ε", equal=True, cells=("seed",), tolerance=1e-4)


@claim(
    "bs-lemma-3-2", "[BS, Lemma 3.2]", FORWARD, LEAST, title="Lemma 3.2: pure privacy as zCDP",
    points=grid(seed=Axis(24, 1)),
    caption="Bisection for the least ξ at which ρ is 0, against the channel's ε; 1 + ρ at ξ = ε against 1.",
)  # fmt: skip
def pure_as_zcdp(seed: float) -> list[Row]:
    """A mechanism is ε-DP if and only if it is (ε, 0)-zCDP."""
    rng = np.random.default_rng([32, int(seed)])
    size, outputs = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    law = random_law(rng, outputs, min_mass=0.01)
    rows = np.stack([tilted(rng, law, float(rng.choice([0.1, 0.7, 2.0]))) for _ in range(size)])
    epsilon = local_dp(rows).value
    low, high = 0.0, 2 * epsilon
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (low, middle) if zcdp(rows, xi=middle).lower <= 1e-13 * epsilon else (middle, high)
    return [FORWARD(1 + zcdp(rows, xi=epsilon).lower, 1.0), LEAST(high, epsilon)]


@claim(
    "bs-lemmas-3-5-to-3-7", "[BS, Lemma 3.5; BS, Lemma 3.6; BS, Lemma 3.7]",
    points=grid(part=["forward"], rho=Axis([0.001, 0.01, 0.1, 0.5, 2.0], [0.01, 0.1]),
                deviations=Axis([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0], [0.0, 2.0, 5.0]))
    + grid(lambda row: row["rho"] <= 0.25, part=["converse"], rho="rho"),
    judge=bounded(
        "On the Gaussian mechanism δ of Lemma 3.5 is {Lemma 3.5 over exact} times the exact one, that of Lemma 3.6 "
        "{Lemma 3.6 over exact} times. There and back by Lemma 3.7 returns the same ρ but adds ξ: D_2 grows "
        "{Lemma 3.7, D_2 over exact} times.",
        {"Lemma 3.5 over exact": among("lemma_3_5 / exact", part="forward"),
         "Lemma 3.6 over exact": among("lemma_3_6 / exact", part="forward"),
         "Lemma 3.7, D_2 over exact": among("at_order_2 / exact", part="converse"),
         "_sharper": among("lemma_3_5 / lemma_3_6", part="forward")}),
    draw=picture(
        panel("δ of a ρ-zCDP mechanism, ρ = {rho:g}", "ε (nats)", "δ",
              curves("epsilon", "lemma_3_5", "Lemma 3.5", first=1),
              curves("epsilon", "lemma_3_6", "Lemma 3.6", first=2),
              curves("epsilon", "exact", "Gaussian mechanism, exact"),
              where={"part": "forward", "rho": middle}, scale="y"),
        panel("Lemma 3.6 over the exact δ", "(ε - ρ) / √(2ρ)", "times too large",
              curves("deviations", "lemma_3_6 / exact", "ρ = {rho:g}", by=("rho",)), where={"part": "forward"})),
    caption="Left: δ against ε, by both lemmas and exactly. Right: how many times Lemma 3.6 exceeds the exact δ.",
)  # fmt: skip
def to_approximate(part: str, rho: float, deviations: float = 0.0) -> Row:
    """ρ-zCDP implies (ρ + √(4ρ log 1/δ), δ)-DP for all δ (3.5), with a sharper δ (3.6), and such a curve implies zCDP
    back, up to a loss (3.7)."""
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


FIRST = Part("third ≤ first, √(πρ)", Subject.REMARK, cells=("rho", "excess"))
SECOND = Part("third ≤ second, 1/(1+(ε-ξ-ρ)/2ρ)", Subject.REMARK, cells=("rho", "excess"))


def _option(part: Part) -> Any:
    return panel(
        part.name.split("≤ ")[1] + " over the third",
        "1 + (ε-ξ-ρ)/2ρ",
        "ratio",
        curves(lambda rows: 1 + rows.column("excess"), "claimed / exact", "ρ = {rho:g}", by=("rho",), max_curves=5),
        level(color="0.5", lw=0.8),
        where={"part": part.name},
        scale="xy",
    )


@claim(
    "bs-lemma-3-6-options", "[BS, Lemma 3.6]", FIRST, SECOND,
    ending="The first is never attained but approached as ρ falls, the second as ρ or ε grows.",
    points=grid(rho=Axis([10.0**i for i in range(-6, 4)], [0.01, 1.0]),
                excess=Axis([0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0], [0.0, 1.0, 30.0])),
    subject=Subject.REMARK, draw=picture(_option(FIRST), _option(SECOND)),
    caption="How much larger the first and the second option are than the third.",
)  # fmt: skip
def options(rho: float, excess: float) -> list[Row]:
    """Of the three options of Lemma 3.6 the last is never larger than the first two."""
    # `excess` is that of epsilon over xi + rho, in units of 2 rho.
    u = 1 + excess
    third = 2 / (u + math.sqrt(u * u + 4 / (math.pi * rho)))
    return [FIRST(third, math.sqrt(math.pi * rho)), SECOND(third, 1 / u)]


def _to_zcdp_verdict(table: Table) -> Verdict:
    lemma, post = table.where(part="lemma 4.2"), table.where(part="post-processing")
    slack = {name: float(rows.ratio("claimed", "exact").max()) for name, rows in lemma.groups("mechanism")}
    grown, shrunk = float(post.ratio("after", "before").max()), post.ratio("rho_after", "rho_before").max() <= 1 + 1e-9
    return verdict(
        outcome_of(lemma.ratio("claimed", "exact")) if grown > 1 and shrunk else Outcome.FAILS,
        "Lemma 4.2's ρ over the exact one at its ξ, at most: {_slack}. Reporting only whether a Gaussian report "
        "exceeds a threshold multiplies τ by up to {τ after / before:.4f}, so mCDP is not closed under "
        "post-processing; ρ never grows.",
        {f"Lemma 4.2, {name}": ratio for name, ratio in slack.items()}
        | {"τ after / before": grown, "_slack": ", ".join(f"{name} {ratio:.4f}" for name, ratio in slack.items())},
    )


@claim(
    "bs-mcdp", "[BS, Lemma 4.2; BS, App A; DR, Def 3.3]",
    points=grid(part=["lemma 4.2"],
                mechanism=["randomized response", "erased, η = 0.5 tanh(ε/2)", "Laplace", "Gaussian"],
                epsilon=Axis([0.1, 0.3, 1.0, 2.0, 4.0], [1.0]))
    + grid(part=["post-processing"], epsilon=[2.0],
           threshold=Axis([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0], [1.0, 7.0])),
    judge=_to_zcdp_verdict,
    draw=picture(
        panel("Lemma 4.2: ρ = τ²/2", "ε, or 1/σ", "ρ",
              curves("epsilon", "claimed", "{mechanism}", by=("mechanism",), lw=1.3),
              marks("epsilon", "exact", "exact ρ at ξ = μ - τ²/2"), where={"part": "lemma 4.2"}, scale="xy"),
        panel("Appendix A: a thresholded Gaussian report", "threshold t", "τ, ρ",
              curves("threshold", "after", "τ after"),
              curves("threshold", "before", "τ of the Gaussian mechanism", first=1),
              curves("threshold", "rho_after", "ρ after (before: 2)", first=2), where={"part": "post-processing"})),
    caption="Left: the price of Lemma 4.2. Right: τ of a Gaussian report grows when it is thresholded.",
)  # fmt: skip
def to_zcdp(part: str, epsilon: float, mechanism: str = "", threshold: float = 0.0) -> Row:
    """(μ, τ)-mCDP implies (μ - τ²/2, τ²/2)-zCDP; unlike zCDP, mCDP is not closed under post-processing."""
    # Thresholding is at sigma = 1.
    if part == "post-processing":  # N(±1, 1), reported as "above t", "below -t" or "neither" [BS, App A]
        p, q = float(norm.sf(threshold - 1)), float(norm.sf(threshold + 1))
        rows = [[p, 1 - p - q, q], [q, 1 - p - q, p]]
        return {"before": 2.0, "after": mcdp(rows).tau.value, "rho_before": 2.0, "rho_after": zcdp(rows).value}
    if mechanism in {"Laplace", "Gaussian"}:
        pair = laplace(epsilon).pair if mechanism == "Laplace" else gaussian(1 / epsilon).pair
        measured = pair.mcdp()
    else:
        share = 0.5 if mechanism.startswith("erased") else 1.0
        channel = dominating_pair(epsilon, 0.0, share * math.tanh(epsilon / 2)).channel
        measured = mcdp(channel)
    mu, tau = measured.mu.value, measured.tau.value
    claim = mcdp_to_zcdp(MCDP(mu, tau))
    exact = pair.zcdp(claim.xi) if mechanism in {"Laplace", "Gaussian"} else zcdp(channel, claim.xi)
    return {"mu": mu, "tau": tau, "xi": claim.xi, "claimed": claim.rho, "exact": exact.lower}


MEAN = Part("mean at most ξ + ρ", cells=("seed", "xi"))
PRINTED = Part("τ = O(√(ξ+2ρ)): τ² ≤ 8(ξ+2ρ), its proof's constant", cells=("loss",))
REPAIRED = Part("repaired: τ² ≤ 8 max(v, v²), v = ξ+2ρ", cells=("loss", "seed", "xi"))
STANDARD = Part("τ² ≤ 8 max(ξ+2ρ, e^(ξ+2ρ)-1)", cells=("seed", "xi"))
LARGE = Part("E e^(λ(Z-EZ)) ≤ e^(4(ξ+2ρ)λ²) for |λ| ≥ 1/2, in logarithms", Subject.STEP, cells=("seed", "scale"))
CENTRED = Part("Lemma B.4, in logarithms", cells=("seed", "scale"))


def _three_losses(epsilon: float) -> tuple[float, float]:
    """The variance of the loss, which is at most τ², and ρ of (1/2, (1-e^-ε)/2, e^-ε/2) against its reverse."""
    tiny = math.exp(-epsilon)
    mean = epsilon * (1 - tiny) / 2
    variance = epsilon**2 * (1 + tiny) / 2 - mean**2
    order_excess = np.geomspace(1e-6, 1e4, 20_001)  # the order above 1; D over the order is flat at its largest
    moments = np.logaddexp(
        np.log1p(-tiny), np.logaddexp(order_excess * epsilon, -(1 + order_excess) * epsilon)
    ) - math.log(2)
    return variance, float(max(mean, (moments / order_excess / (1 + order_excess)).max()))


def _growing(table: Table) -> str:
    rows = [f"{8 * row['exact'] / row['claimed']:.3g} at ε = {row['loss']:g}" for row in PRINTED.rows_of(table).rows]
    return (
        f"No constant serves: for (1/2, (1-e^-ε)/2, e^-ε/2) and its reverse τ²/(ξ+2ρ) is at least {', '.join(rows)}. "
        "The proof has 8(ξ+2ρ) for |λ| ≥ 1/2 and 8(e^(ξ+2ρ)-1) below; the repaired form is proved on the errata page."
    )


@claim(
    "bs-lemma-4-3", "[BS, Lemma 4.3; BS, Lemma B.4; BS, Lemma B.5]", MEAN, PRINTED, REPAIRED, STANDARD, LARGE, CENTRED,
    title="Lemma 4.3, with its proof's constants, and repaired", ending=_growing,
    points=grid(seed=Axis(60, 6), xi=[0.0, 0.5])
    + grid(loss=Axis([1.0, 10.0, 100.0, 200.0, 1000.0], [1.0, 100.0])),
    caption="The exact mean and standard of pairs, and log moments of their losses, against what the lemma proves.",
)  # fmt: skip
def from_zcdp(seed: float = 0, xi: float = 0.0, loss: float = 0.0) -> list[Row]:
    """(ξ, ρ)-zCDP implies (ξ+ρ, O(√(ξ+2ρ)))-mCDP for all ξ and ρ, through E e^(X-E X) ≤ (E e^2X + E e^-2X)/2."""
    if loss:
        variance, rho = _three_losses(loss)
        return [PRINTED(variance, 16 * rho), REPAIRED(variance, 8 * max(2 * rho, 4 * rho**2))]
    # Seed 0 is randomized response.
    rng = np.random.default_rng([43, int(seed)])
    p, q = rr(2.0)
    if seed:
        p = random_law(rng, 4, min_mass=0.005)
        q = tilted(rng, p, float(rng.choice([0.2, 0.8, 2.0])))
    pair = FinitePair(p, q)
    measured = mcdp(pair)
    offset = xi * float(measured.mu.value)
    both = offset + 2 * float(pair.zcdp(offset).value)
    rows = [
        MEAN(float(measured.mu.lower), both / 2 + offset / 2),
        STANDARD(float(measured.tau.lower) ** 2, 8 * max(both, math.expm1(both))),
        REPAIRED(float(measured.tau.lower) ** 2, 8 * max(both, both**2)),
    ]
    losses = np.log(p / q)
    for scale in (-8.0, -2.0, -0.5, 0.5, 2.0, 8.0):
        moment = math.log(float(p @ np.exp(scale * (losses - float(p @ losses)))))
        rows.append(LARGE(moment, 4 * both * scale**2, scale=scale))
        rows.append(CENTRED(moment, math.log(float(p @ np.cosh(2 * scale * losses))), scale=scale))
    return rows
