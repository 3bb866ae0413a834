"""Lemmas 4.2 and 4.3, B.4 and Appendix A: mean- against zero-concentrated privacy, and post-processing."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from ldpopt.mechanisms import dominating_pair, gaussian, laplace
from ldpopt.privacy import FinitePair, mcdp, zcdp
from ldpopt.privacy.claims import MCDP
from ldpopt.privacy.conversions import mcdp_to_zcdp
from ldpopt.reproduce.drawing import curves, marks, panel, picture
from ldpopt.reproduce.experiment import Experiment, Outcome, Row, Subject, Table, Verdict, grid, outcome_of
from ldpopt.reproduce.laws import random_law, rr, tilted
from ldpopt.reproduce.statements import Part, inequalities


def to_zcdp(part: str, epsilon: float, mechanism: str = "", threshold: float = 0.0) -> Row:
    """The converted claim and the exact rho at its xi; or tau before and after thresholding at sigma = 1."""
    if part == "post-processing":  # N(±1, 1), reported as "above t", "below -t" or "neither" [BS, App A]
        p, q = float(norm.sf(threshold - 1)), float(norm.sf(threshold + 1))
        rows = [[p, 1 - p - q, q], [q, 1 - p - q, p]]
        return {"before": 2.0, "after": mcdp(rows).tau.value, "rho_before": 2.0, "rho_after": zcdp(rows).value}
    if mechanism in {"Laplace", "Gaussian"}:
        pair = laplace(epsilon).pair if mechanism == "Laplace" else gaussian(1 / epsilon).pair
        own = pair.mcdp()
    else:
        share = 0.5 if mechanism.startswith("erased") else 1.0
        channel = dominating_pair(epsilon, 0.0, share * math.tanh(epsilon / 2)).channel
        own = mcdp(channel)
    mu, tau = own.mu.value, own.tau.value
    claim = mcdp_to_zcdp(MCDP(mu, tau))
    exact = pair.zcdp(claim.xi) if mechanism in {"Laplace", "Gaussian"} else zcdp(channel, claim.xi)
    return {"mu": mu, "tau": tau, "xi": claim.xi, "claimed": claim.rho, "exact": exact.lower}


def _to_zcdp_verdict(table: Table) -> Verdict:
    """Lemma 4.2's rho against the exact one, and tau, which grows under post-processing while rho does not."""
    lemma, post = table.where(part="lemma 4.2"), table.where(part="post-processing")
    slack = {name: float(rows.ratio("claimed", "exact").max()) for name, rows in lemma.groups("mechanism")}
    grown = float(post.ratio("after", "before").max())
    shrunk = bool((post.column("rho_after") <= post.column("rho_before") * (1 + 1e-9)).all())
    said = ", ".join(f"{name} {ratio:.4f}" for name, ratio in slack.items())
    return Verdict(
        outcome_of(lemma.ratio("claimed", "exact")) if grown > 1 and shrunk else Outcome.FAILS,
        f"Lemma 4.2's ρ over the exact one at its ξ, at most: {said}. Reporting only whether a Gaussian report exceeds "
        f"a threshold multiplies τ by up to {grown:.4f}, so mCDP is not closed under post-processing; ρ never grows.",
        {**{f"Lemma 4.2, {name}": ratio for name, ratio in slack.items()}, "τ after / before": grown},
    )


TO_ZCDP = Experiment(
    "bs-mcdp", "[BS, Lemma 4.2; BS, App A; DR, Def 3.3]",
    "(μ, τ)-mCDP implies (μ - τ²/2, τ²/2)-zCDP; unlike zCDP, mCDP is not closed under post-processing.",
    full={"epsilons": [0.1, 0.3, 1.0, 2.0, 4.0],
          "thresholds": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0]},
    quick={"epsilons": [1.0], "thresholds": [1.0, 7.0]},
    points=grid(part=["lemma 4.2"], mechanism=["randomized response", "erased, η = 0.5 tanh(ε/2)", "Laplace",
                                               "Gaussian"], epsilon="epsilons")
    + grid(part=["post-processing"], epsilon=[2.0], threshold="thresholds"),
    measure=to_zcdp, judge=_to_zcdp_verdict,
    draw=picture(
        panel("Lemma 4.2: ρ = τ²/2", "ε, or 1/σ", "ρ",
              curves("epsilon", "claimed", "{mechanism}", by=("mechanism",), lw=1.3),
              marks("epsilon", "exact", "exact ρ at ξ = μ - τ²/2"), where={"part": "lemma 4.2"}, scale="xy"),
        panel("Appendix A: a thresholded Gaussian report", "threshold t", "τ, ρ",
              curves("threshold", "after", "τ after"),
              curves("threshold", "before", "τ of the Gaussian mechanism", at=1),
              curves("threshold", "rho_after", "ρ after (before: 2)", at=2), where={"part": "post-processing"})),
    caption="Left: the price of Lemma 4.2. Right: τ of a Gaussian report grows when it is thresholded.",
)  # fmt: skip

MEAN = Part("mean at most ξ + ρ", cells=("seed", "xi"))
STANDARD = Part("τ² ≤ 8 max(ξ+2ρ, e^(ξ+2ρ)-1)", cells=("seed", "xi"))
LARGE = Part("E e^(λ(Z-EZ)) ≤ e^(4(ξ+2ρ)λ²) for |λ| ≥ 1/2, in logarithms", Subject.STEP, cells=("seed", "scale"))
CENTRED = Part("Lemma B.4, in logarithms", cells=("seed", "scale"))


def from_zcdp(seed: float, xi: float) -> list[Row]:
    """A random pair's (mu, tau) and what is proved from its (xi, rho), and the steps; seed 0 is randomized response."""
    rng = np.random.default_rng([43, int(seed)])
    p, q = rr(2.0)
    if seed:
        p = random_law(rng, 4, least=0.005)
        q = tilted(rng, p, float(rng.choice([0.2, 0.8, 2.0])))
    pair = FinitePair(p, q)
    own = mcdp(pair)
    offset = xi * float(own.mu.value)
    both = offset + 2 * float(pair.zcdp(offset).value)
    rows = [
        MEAN(float(own.mu.lower), both / 2 + offset / 2),
        STANDARD(float(own.tau.lower) ** 2, 8 * max(both, math.expm1(both))),
    ]
    loss = np.log(p / q)
    for scale in (-8.0, -2.0, -0.5, 0.5, 2.0, 8.0):
        moment = math.log(float(p @ np.exp(scale * (loss - float(p @ loss)))))
        rows.append(LARGE(moment, 4 * both * scale**2, scale=scale))
        rows.append(CENTRED(moment, math.log(float(p @ np.cosh(2 * scale * loss))), scale=scale))
    return rows


FROM_ZCDP = inequalities(
    "bs-lemma-4-3", "[BS, Lemma 4.3; BS, Lemma B.4; BS, Lemma B.5]",
    "(ξ, ρ)-zCDP implies (ξ+ρ, τ)-mCDP with τ² at most 8 max(ξ+2ρ, e^(ξ+2ρ)-1), through "
    "E e^(X-E X) ≤ (E e^2X + E e^-2X)/2.",
    MEAN, STANDARD, LARGE, CENTRED, title="Lemma 4.3, with its proof's constants",
    ending="The lemma says O(√(ξ+2ρ)); its proof gives 8(ξ+2ρ) for |λ| ≥ 1/2 and 8(e^(ξ+2ρ)-1) below.",
    full={"pairs": 60}, quick={"pairs": 6}, points=grid(seed="pairs", xi=[0.0, 0.5]), measure=from_zcdp,
    caption="The exact mean and standard of pairs, and log moments of their losses, against what the lemma proves.",
)  # fmt: skip
